//! What one's own gateway refuses, in the words of the command line: wrong input is status 2 and names the flag.

use super::CliError;
use oap_client::ClientError;

/// Members of the owner's requests, and the flags that they were typed as.
const FLAGS: [(&str, &str); 27] = [
    ("expires_at", "--until"),
    ("not_before", "--from"),
    ("max_items", "--max-items"),
    ("redaction_profile", "--profile"),
    ("trust_level", "--trust-level"),
    ("grantee", "--to"),
    ("chain", "--chain"),
    ("captured_after", "--since"),
    ("captured_before", "--until"),
    ("delegable", "--delegable"),
    ("filter.kinds", "--kind"),
    ("filter.labels_any", "--label"),
    ("filter.labels_all", "--all-labels"),
    ("filter.exclude_labels", "--exclude-label"),
    ("filter.subject_entity_ids", "--subject"),
    ("filter.scopes", "--item-scope"),
    ("filter.sensitivities", "--sensitivity"),
    ("filter.captured_after", "--captured-after"),
    ("filter.captured_before", "--captured-before"),
    ("purpose", "--purpose"),
    ("content", "--text or --structured"),
    ("content.text", "--text"),
    ("content.structured", "--structured"),
    ("ttl_days", "--ttl-days"),
    ("redirect_uris", "--redirect"),
    ("did", "--did"),
    ("pinned_namespaces", "--pin"),
];

/// The message with the flag in the member's place.
fn of_flag(message: &str) -> String {
    message
        .split_once(": ")
        .and_then(|(member, fix)| {
            let (_, flag) = FLAGS.iter().find(|(name, _)| *name == member)?;
            Some(format!("{flag}: {fix}"))
        })
        .unwrap_or_else(|| message.to_owned())
}

/// What a resolver says where the rule for addresses may be why nobody was asked.
const NOT_PUBLIC: [&str; 2] =
    ["loopback is not a public address", "not reachable over https at a public address"];

impl CliError {
    /// What it says, with the flag that would help.
    pub(super) fn advised(&self) -> String {
        let mut text = self.to_string();
        let unknown = matches!(self, Self::Client(ClientError::UnknownAuthority(..)));
        if unknown || text.contains("certificate is not trusted") {
            text.push_str("; --trust-ca FILE names the authority that signed the certificate");
        }
        if NOT_PUBLIC.iter().any(|why| text.contains(why)) {
            text.push_str(
                "; of a host on this machine or on your own network, --allow-local-dids resolves it (say so to `serve`, where \
                 a gateway runs)",
            );
        }
        text
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused { own: true, status: 400, message, .. } => Self::Usage(of_flag(&message)),
            ClientError::Refused { own: true, status: 404, message, .. } => Self::Other(message),
            error => Self::Client(error),
        }
    }
}

/// The same for what was read from a file: its members are named as they stand there.
pub(super) fn of_file(flag: &str, path: &std::path::Path, error: ClientError) -> CliError {
    match error {
        ClientError::Refused { own: true, status: 400, message, .. } => {
            CliError::Usage(format!("{flag}: {}: {message}", path.display()))
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_gateway_refuses_input_and_another_the_grantee() {
        let refused = |own: bool, status: u16| {
            let message = "expires_at: must be later than now".to_owned();
            CliError::from(ClientError::Refused { own, status, code: "c".to_owned(), message })
        };
        let own = refused(true, 400);
        assert_eq!((own.status(), own.to_string().as_str()), (2, "--until: must be later than now"));
        assert_eq!(refused(true, 404).status(), 1);
        assert_eq!(refused(true, 507).status(), 1);
        for (own, status) in
            [(true, 401), (true, 403), (true, 409), (true, 429), (false, 400), (false, 404), (false, 507)]
        {
            assert_eq!(refused(own, status).status(), 3, "{own} {status}");
        }
        assert_eq!(of_flag("items: at most 500"), "items: at most 500");
    }

    #[test]
    fn a_host_that_may_be_local_is_told_of_the_flag() {
        let advised =
            |why: &str| CliError::Other(why.to_owned()).advised().contains("--allow-local-dids resolves it");
        assert!(NOT_PUBLIC.into_iter().all(advised));
        assert!(!advised("the host is not reachable") && !advised("no answer within five seconds"));
    }
}

//! What one's own gateway refuses, in the words of the command line: wrong input is status 2 and names the flag.

use super::CliError;
use oap_client::ClientError;

/// Members of the owner's requests, and the flags that they were typed as.
const FLAGS: [(&str, &str); 18] = [
    ("expires_at", "--until"),
    ("not_before", "--from"),
    ("max_items", "--max-items"),
    ("redaction_profile", "--profile"),
    ("trust_level", "--trust-level"),
    ("grantee", "--to"),
    ("captured_after", "--since"),
    ("captured_before", "--until"),
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
}

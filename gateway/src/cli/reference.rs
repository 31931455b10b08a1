//! Grants and jobs named by the beginning of their id.

use super::CliError;
use crate::api::access::{AskInfo, ListAsked, ListAsks};
use crate::api::grants::ListGrants;
use crate::api::jobs::ListJobs;
use oap_client::OwnerClient;
use oap_identity::{AskId, GrantId, JobId};
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::str::FromStr;

/// Candidates that are told when a beginning fits several.
const MAX_LISTED: usize = 10;
/// Characters of a ULID.
const ULID: usize = 26;

/// An id that can be named by its beginning.
pub(super) trait Named: FromStr + Clone + Send + Sync + 'static {
    /// How it begins.
    const PREFIX: &'static str;
    /// Whose id it is.
    const OF: &'static str;
    /// The commands that list them.
    const LIST: &'static str;
}

impl Named for GrantId {
    const PREFIX: &'static str = "mgr_";
    const OF: &'static str = "grant";
    const LIST: &'static str = "grant list";
}

impl Named for JobId {
    const PREFIX: &'static str = "job_";
    const OF: &'static str = "job";
    const LIST: &'static str = "job list";
}

impl Named for AskId {
    const PREFIX: &'static str = "ask_";
    const OF: &'static str = "request";
    const LIST: &'static str = "grant inbox` or `grant requests";
}

/// An id, or a beginning of it that no other one has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference<T>(String, PhantomData<T>);

/// A grant.
pub(super) type GrantRef = Reference<GrantId>;
/// A job.
pub(super) type JobRef = Reference<JobId>;
/// A request for access: of others in the inbox, or of the owner's own.
pub(super) type AskRef = Reference<AskId>;

/// The text is no beginning of such an id.
#[derive(Debug, thiserror::Error)]
#[error("must be a {of}'s id, or the beginning of one, such as {prefix}01J9V8B7")]
pub(super) struct ReferenceError {
    of: &'static str,
    prefix: &'static str,
}

impl<T: Named> FromStr for Reference<T> {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let rest = text.strip_prefix(T::PREFIX).unwrap_or(text).to_ascii_uppercase();
        // Crockford's alphabet has no I, L, O and U.
        let fits = |c: u8| c.is_ascii_alphanumeric() && !matches!(c, b'I' | b'L' | b'O' | b'U');
        if (1..=ULID).contains(&rest.len()) && rest.bytes().all(fits) {
            Ok(Self(format!("{}{rest}", T::PREFIX), PhantomData))
        } else {
            Err(ReferenceError { of: T::OF, prefix: T::PREFIX })
        }
    }
}

impl GrantRef {
    /// The grant that is meant; grants are listed only where the id is not whole.
    pub(super) async fn resolve(&self, owner: &OwnerClient) -> Result<GrantId, CliError> {
        if let Some(id) = self.whole() {
            return Ok(id);
        }
        let grants = owner.get::<ListGrants>((), &()).await?.grants;
        self.among(grants.iter().map(|info| info.grant.grant_id.to_string()))
    }
}

impl JobRef {
    /// The job that is meant; jobs are listed only where the id is not whole.
    pub(super) async fn resolve(&self, owner: &OwnerClient) -> Result<JobId, CliError> {
        if let Some(id) = self.whole() {
            return Ok(id);
        }
        let jobs = owner.get::<ListJobs>((), &()).await?.jobs;
        self.among(jobs.iter().map(|job| job.job_id.to_string()))
    }
}

impl AskRef {
    /// The task of the inbox that is meant.
    pub(super) async fn resolve_ask(&self, owner: &OwnerClient) -> Result<AskId, CliError> {
        self.task_of(&owner.get::<ListAsks>((), &()).await?.asks)
    }

    /// The one of these tasks that is meant, by the id that whoever asks knows it by, or by the one that it has here. The latter goes first:
    /// no stranger chose it.
    fn task_of(&self, asks: &[AskInfo]) -> Result<AskId, CliError> {
        if let Some(own) = asks.iter().find(|ask| ask.task.to_string() == self.0) {
            return Ok(own.task);
        }
        let begins = |id: &AskId| id.to_string().starts_with(&self.0);
        let is_meant = |ask: &&AskInfo| begins(&ask.task) || ask.requests.iter().any(begins);
        let found: Vec<&AskInfo> = asks.iter().filter(is_meant).collect();
        match found.as_slice() {
            [one] => Ok(one.task),
            [] => self.among(std::iter::empty()),
            several => {
                let named = several.iter().take(MAX_LISTED);
                let named: Vec<String> = named.map(|ask| format!("{} of {}", ask.task, ask.from)).collect();
                Err(CliError::Usage(format!(
                    "{} names {} requests; say which by its id here: {}",
                    self.0,
                    several.len(),
                    named.join(", ")
                )))
            }
        }
    }

    /// The owner's own request that is meant.
    pub(super) async fn resolve_asked(&self, owner: &OwnerClient) -> Result<AskId, CliError> {
        if let Some(id) = self.whole() {
            return Ok(id);
        }
        let asked = owner.get::<ListAsked>((), &()).await?.asked;
        self.among(asked.iter().map(|asked| asked.request.to_string()))
    }
}

impl<T: Named> Reference<T> {
    fn whole(&self) -> Option<T> {
        self.0.parse().ok()
    }

    fn among(&self, ids: impl Iterator<Item = String>) -> Result<T, CliError> {
        let (text, of) = (&self.0, T::OF);
        let found: BTreeSet<String> = ids.filter(|id| id.starts_with(text)).collect();
        match (found.len(), found.first().and_then(|id| id.parse().ok())) {
            (1, Some(id)) => Ok(id),
            (0, _) => Err(CliError::Other(format!("no {of}'s id begins with {text}; see `{}`", T::LIST))),
            (count, _) => {
                let mut listed: Vec<String> = found.into_iter().take(MAX_LISTED).collect();
                if count > MAX_LISTED {
                    listed.push(format!("and {} more", count - MAX_LISTED));
                }
                let listed = listed.join(", ");
                Err(CliError::Usage(format!("{text} is the beginning of {count} {of}s' ids: {listed}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(task: &str, requests: &[&str], from: &str) -> AskInfo {
        let ask = json!({"purpose": "p", "max_items": 1, "expires_at": "2026-06-15T12:00:00Z", "operations": ["query"]});
        let proposal = json!({
            "grantee": from, "purpose": "p", "filter": {}, "max_items": 1, "expires_at": "2026-06-15T12:00:00Z",
            "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 0,
        });
        serde_json::from_value(json!({
            "task": task, "requests": requests, "from": from, "known": false, "ask": ask, "asked_at": "2026-06-01T12:00:00Z",
            "until": "2026-06-15T12:00:00Z", "state": "pending", "over_at": null, "word": null, "grant": null, "proposal": proposal,
        }))
        .unwrap()
    }

    /// The attack: a stranger gives a request the name of somebody else's, so that the owner says yes to the wrong one.
    #[test]
    fn a_request_is_found_by_the_name_that_its_asker_knows() {
        let ids = [
            "ask_01J9V8B7H1ZK4D2A0M9R8F0KQX",
            "ask_01J9V8B7H1ZK4D2A0M9R8F0KQY",
            "ask_01J9V8B7H1ZK4D2A0M9R8F0KQZ",
        ];
        let theirs = "ask_01K0000000ZK4D2A0M9R8F0KQX";
        let bob = ask(ids[0], &[theirs, "ask_01K1111111ZK4D2A0M9R8F0KQX"], "did:web:bob.example");
        let of = |text: &str, asks: &[AskInfo]| text.parse::<AskRef>().unwrap().task_of(asks);
        for name in [theirs, "ask_01K0", "ask_01K1111111ZK4D2A0M9R8F0KQX", ids[0], "01J9"] {
            assert_eq!(of(name, std::slice::from_ref(&bob)).unwrap().to_string(), ids[0], "{name}");
        }
        let mallory = ask(ids[1], &[theirs], "did:web:mallory.example");
        let both = [bob.clone(), mallory];
        let told = of(theirs, &both).unwrap_err();
        assert_eq!(told.status(), 2);
        let text = told.to_string();
        assert!(
            text.contains(&format!("{} of did:web:bob.example", ids[0])) && text.contains(ids[1]),
            "{text}"
        );
        // Named after the task of another: that one is meant.
        let borrowed = [ask(ids[2], &[ids[0]], "did:web:mallory.example"), bob];
        assert_eq!(of(ids[0], &borrowed).unwrap().to_string(), ids[0]);
        assert!(of("ask_7Z", &both).unwrap_err().to_string().contains("no request's id begins with ask_7Z"));
    }

    #[test]
    fn one_grant_or_a_question() {
        let ids = ["mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX", "mgr_01J9V8B7H1ZK4D2A0M9R8F0KQY"];
        let among = |text: &str| text.parse::<GrantRef>().unwrap().among(ids.iter().map(ToString::to_string));
        assert_eq!(among("mgr_01J9V8B7H1ZK4D2A0M9R8F0KQY").unwrap().to_string(), ids[1]);
        let told = among("01j9").unwrap_err();
        assert_eq!(told.status(), 2);
        assert!(ids.iter().all(|id| told.to_string().contains(id)), "{told}");
        assert!(among("mgr_02").unwrap_err().to_string().contains("no grant's id begins with mgr_02"));
        for text in ["", "mgr_", "mem_01J9", "mgr_0I", "01J9V8B7H1ZK4D2A0M9R8F0KQXX", "mgr_../x", "mgr_é"] {
            assert!(text.parse::<GrantRef>().is_err(), "{text}");
        }
    }
}

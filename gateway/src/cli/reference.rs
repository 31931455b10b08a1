//! Grants and jobs named by the beginning of their id.

use super::CliError;
use crate::api::grants::ListGrants;
use crate::api::jobs::ListJobs;
use oap_client::OwnerClient;
use oap_identity::{GrantId, JobId};
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
}

impl Named for GrantId {
    const PREFIX: &'static str = "mgr_";
    const OF: &'static str = "grant";
}

impl Named for JobId {
    const PREFIX: &'static str = "job_";
    const OF: &'static str = "job";
}

/// An id, or a beginning of it that no other one has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference<T>(String, PhantomData<T>);

/// A grant.
pub(super) type GrantRef = Reference<GrantId>;
/// A job.
pub(super) type JobRef = Reference<JobId>;

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

impl<T: Named> Reference<T> {
    fn whole(&self) -> Option<T> {
        self.0.parse().ok()
    }

    fn among(&self, ids: impl Iterator<Item = String>) -> Result<T, CliError> {
        let (text, of) = (&self.0, T::OF);
        let found: BTreeSet<String> = ids.filter(|id| id.starts_with(text)).collect();
        match (found.len(), found.first().and_then(|id| id.parse().ok())) {
            (1, Some(id)) => Ok(id),
            (0, _) => Err(CliError::Other(format!("no {of}'s id begins with {text}; see `{of} list`"))),
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

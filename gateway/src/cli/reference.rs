//! Grants named by the beginning of their id.

use super::CliError;
use crate::api::grants::ListGrants;
use oap_client::OwnerClient;
use oap_identity::GrantId;
use std::collections::BTreeSet;
use std::str::FromStr;

/// Candidates that are told when a beginning fits several grants.
const TOLD: usize = 10;
const PREFIX: &str = "mgr_";
/// Characters of a ULID.
const ULID: usize = 26;

/// A grant: its id, or a beginning of it that no other grant has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GrantRef(String);

/// The text is no beginning of a grant's id.
#[derive(Debug, thiserror::Error)]
#[error("must be a grant's id, or the beginning of one, such as mgr_01J9V8B7")]
pub(super) struct GrantRefError;

impl FromStr for GrantRef {
    type Err = GrantRefError;
    fn from_str(text: &str) -> Result<Self, GrantRefError> {
        let rest = text.strip_prefix(PREFIX).unwrap_or(text).to_ascii_uppercase();
        // Crockford's alphabet has no I, L, O and U.
        let fits = |c: u8| c.is_ascii_alphanumeric() && !matches!(c, b'I' | b'L' | b'O' | b'U');
        if (1..=ULID).contains(&rest.len()) && rest.bytes().all(fits) {
            Ok(Self(format!("{PREFIX}{rest}")))
        } else {
            Err(GrantRefError)
        }
    }
}

impl GrantRef {
    /// The grant that is meant; grants are listed only where the id is not whole.
    pub(super) async fn resolve(&self, owner: &OwnerClient) -> Result<GrantId, CliError> {
        if let Ok(id) = self.0.parse() {
            return Ok(id);
        }
        let grants = owner.get::<ListGrants>((), &()).await?.grants;
        self.among(grants.iter().map(|info| info.grant.grant_id.to_string()))
    }

    fn among(&self, ids: impl Iterator<Item = String>) -> Result<GrantId, CliError> {
        let found: BTreeSet<String> = ids.filter(|id| id.starts_with(&self.0)).collect();
        match (found.len(), found.first().and_then(|id| id.parse().ok())) {
            (1, Some(id)) => Ok(id),
            (0, _) => Err(CliError::Other(format!("no grant's id begins with {}; see `grant list`", self.0))),
            (count, _) => {
                let mut told: Vec<String> = found.into_iter().take(TOLD).collect();
                if count > TOLD {
                    told.push(format!("and {} more", count - TOLD));
                }
                let told = told.join(", ");
                Err(CliError::Usage(format!("{} is the beginning of {count} grants' ids: {told}", self.0)))
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

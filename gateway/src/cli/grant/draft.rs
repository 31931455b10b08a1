//! Drafts: what would be signed, as JSON that people edit. A draft gives nobody anything.

use crate::api::grants::GrantDraft;
use crate::cli::{CliError, output};
use oap_grants::Grant;
use oap_identity::GrantId;
use oap_identity::json::JsonError;
use serde_json::{Value, json};
use std::path::Path;

/// The member that names the grant whose place a draft takes.
const SUPERSEDES: &str = "supersedes";

/// A draft as it stands in a file.
pub(in crate::cli) struct File {
    /// What would be signed.
    pub(super) grant: GrantDraft,
    /// The grant that is revoked once this one stands.
    pub(super) supersedes: Option<GrantId>,
}

/// A draft from its JSON; the message names the member.
pub(super) fn parse(draft: Value) -> Result<GrantDraft, JsonError> {
    oap_identity::json::from_value(draft)
}

impl File {
    /// Reads a draft; unknown members are refused, so that a misspelt one widens nothing.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let mut draft = output::read_json_of("--draft", path)?;
        let wrong = |why: String| CliError::Usage(format!("--draft: {}: {why}", path.display()));
        let supersedes = draft.as_object_mut().and_then(|members| members.remove(SUPERSEDES));
        let supersedes = supersedes.map(|id| id.as_str().unwrap_or_default().parse::<GrantId>()).transpose();
        let supersedes = supersedes.map_err(|e| wrong(format!("{SUPERSEDES}: {e}")))?;
        Ok(Self { grant: parse(draft).map_err(|e| wrong(e.to_string()))?, supersedes })
    }

    /// The draft of a grant that is there, to take its place. The gateway makes the members that are left out anew.
    pub(super) fn of(grant: &Grant) -> Self {
        let Grant {
            version: _,
            grant_id,
            granter,
            grantee,
            purpose,
            purpose_codes,
            filter,
            max_items,
            issued_at: _,
            not_before,
            expires_at,
            revocable: _,
            redaction_profile,
            trust_level,
            lawful_basis,
            operations,
            embedding_access,
            delegable,
            parent: _,
            budget,
            bearer,
            status: _,
        } = grant.clone();
        let grant = GrantDraft {
            grantee,
            purpose,
            purpose_codes,
            scope: Some(granter.scope),
            filter,
            max_items,
            not_before,
            expires_at,
            redaction_profile,
            trust_level,
            lawful_basis,
            operations,
            embedding_access,
            delegable,
            budget,
            bearer,
        };
        Self { grant, supersedes: Some(grant_id) }
    }

    /// The draft as it is written to a file.
    pub(super) fn json(&self) -> Result<Value, CliError> {
        let mut draft = serde_json::to_value(&self.grant).map_err(|e| CliError::Other(e.to_string()))?;
        if let Some(id) = self.supersedes {
            draft[SUPERSEDES] = json!(id);
        }
        Ok(draft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> Value {
        json!({
            "version": 1, "grant_id": "mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX", "granter": "did:web:a.example#work",
            "grantee": "did:web:b.example", "purpose": "p", "purpose_codes": ["c"],
            "filter": {"labels_any": ["x"], "min_confidence": 0.5}, "max_items": 7,
            "issued_at": "2026-06-01T00:00:00Z", "not_before": "2026-06-01T00:00:00Z",
            "expires_at": "2026-06-30T23:59:59Z", "revocable": true, "trust_level": 2,
            "redaction_profile": "oap.profile.projection.memory.v1", "lawful_basis": "contract",
            "operations": ["query", "export"], "embedding_access": true, "delegable": {"max_depth": 2},
            "budget": {"queries": 9}, "bearer": true,
        })
    }

    /// Whatever a grant can say, a draft of it says: a member that is forgotten here would be lost by `edit`.
    #[test]
    fn a_draft_says_all_that_the_grant_said() {
        let whole = grant();
        let typed: Grant = serde_json::from_value(whole.clone()).unwrap();
        let file = File::of(&typed);
        let draft = file.json().unwrap();
        for (name, value) in serde_json::to_value(&typed).unwrap().as_object().unwrap() {
            let made = ["version", "grant_id", "granter", "issued_at", "revocable", "parent", "status"];
            if !made.contains(&name.as_str()) {
                assert_eq!(&draft[name], value, "{name}");
            }
        }
        assert_eq!((&draft["scope"], &draft["supersedes"]), (&json!("work"), &whole["grant_id"]));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("draft.json");
        std::fs::write(&path, draft.to_string()).unwrap();
        let again = File::read(&path).unwrap();
        assert_eq!(again.json().unwrap(), draft);
        let mut misspelt = draft;
        misspelt["fliter"] = json!({});
        std::fs::write(&path, misspelt.to_string()).unwrap();
        let told = File::read(&path).err().unwrap();
        assert_eq!(told.status(), 2);
        assert!(told.to_string().contains("fliter"), "{told}");
    }
}

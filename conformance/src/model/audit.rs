//! The audit log and its three audiences (protocol section 8).

use super::expected::ExpectedAudit;
use super::rule::{Beside, Rule};
use super::{Model, Reader};
use std::collections::BTreeSet;

/// Receipts of an answer whose reader does not say.
const DEFAULT: usize = 100;

impl Model {
    /// What a reader of the audit log may see, without conditions of its own.
    #[must_use]
    pub fn audit(&self, reader: Reader<'_>) -> ExpectedAudit {
        let note = |rule| self.decided.note(Rule::Beside(rule));
        match reader {
            Reader::Owner => {
                note(Beside::AuditOwner);
                ExpectedAudit { newest_first: true, most: DEFAULT, ..ExpectedAudit::default() }
            }
            Reader::Grantee(did) => {
                note(Beside::AuditGrantee);
                let own = self.grants.values().filter(|grant| grant.grantee == did);
                ExpectedAudit {
                    agent: Some(did.to_owned()),
                    grants: Some(own.map(|grant| grant.id.clone()).collect()),
                    items: None,
                    newest_first: true,
                    most: DEFAULT,
                }
            }
            Reader::Nobody => {
                note(Beside::AuditNobody);
                ExpectedAudit {
                    agent: None,
                    grants: Some(BTreeSet::new()),
                    items: Some(BTreeSet::new()),
                    newest_first: false,
                    most: DEFAULT,
                }
            }
        }
    }
}

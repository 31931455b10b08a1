//! The audit log and its three audiences (protocol section 8).

use super::disclosed::Disclosed;
use super::expected::{Expected, ExpectedAudit};
use super::grant::Grant;
use super::item::time;
use super::rule::{Beside, Rule};
use super::{Model, Reader};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Receipts of a listing whose reader does not say.
const DEFAULT: u64 = 100;
/// Most receipts of a listing.
const MOST: u64 = 1000;
/// Most receipts of the public tail.
const PUBLIC: u64 = 100;

impl Model {
    /// What a grantee's question of the log must be answered with where its grant is not in force: the refusal.
    #[must_use]
    pub fn log_refused(&self, grant_id: &str, at: Timestamp) -> Option<Expected> {
        self.out_of_force(&self.chain(grant_id), at).map(|refusal| self.refuse(refusal))
    }

    /// What a reader of the audit log may see who asks without conditions.
    #[must_use]
    pub fn audit(&self, reader: Reader<'_>) -> ExpectedAudit {
        self.audit_where(reader, &json!({}), &Disclosed::default())
    }

    /// What a reader of the audit log may see who asks with conditions, the parameters `since`, `grantee`, `grant_id`, `item_id` and
    /// `limit` by their names; and what must be there of what was answered.
    #[must_use]
    pub fn audit_where(&self, reader: Reader<'_>, asked: &Value, spent: &Disclosed) -> ExpectedAudit {
        let note = |rule| self.decided.note(Rule::Beside(rule));
        let text = |name: &str| asked[name].as_str().map(str::to_owned);
        let limit = asked["limit"].as_u64().unwrap_or(DEFAULT).clamp(1, MOST);
        let base = ExpectedAudit {
            since: time(&asked["since"]),
            most: usize::try_from(limit).unwrap_or(usize::MAX),
            newest_first: true,
            ..ExpectedAudit::default()
        };
        let named = ExpectedAudit {
            agent: text("grantee"),
            grant: text("grant_id"),
            item: text("item_id"),
            ..base.clone()
        };
        let mut expected = match reader {
            Reader::Owner => {
                note(Beside::AuditOwner);
                named
            }
            Reader::Grantee(did) => {
                note(Beside::AuditGrantee);
                let own: Vec<&Grant> = self.grants.values().filter(|grant| grant.grantee == did).collect();
                // Who passed a grant on is named in the receipt of that, which names the child.
                let made = |grant: &&Grant| own.iter().any(|own| grant.parent.as_ref() == Some(&own.hash));
                let all = self.grants.values().filter(made).chain(own.iter().copied());
                let grants = Some(all.map(|grant| grant.id.clone()).collect());
                // Whoever asks for another's sees nothing.
                let other = named.agent.as_deref().is_some_and(|agent| agent != did);
                let most = if other { 0 } else { named.most };
                ExpectedAudit { agent: Some(did.to_owned()), grants, most, ..named }
            }
            Reader::Nobody => {
                note(Beside::AuditNobody);
                ExpectedAudit {
                    grants: Some(BTreeSet::new()),
                    items: Some(BTreeSet::new()),
                    newest_first: false,
                    most: usize::try_from(limit.min(PUBLIC)).unwrap_or(usize::MAX),
                    ..base
                }
            }
        };
        if reader != Reader::Nobody {
            let receipts = spent.receipts.iter().filter(|receipt| expected.admits(receipt));
            let named = |receipt: &Value| {
                receipt["receipt_id"].as_str().map(|id| (id.to_owned(), time(&receipt["timestamp"])))
            };
            expected.must = receipts.filter_map(named).collect();
            expected.unnamed = spent.unnamed.iter().filter(|one| expected.admits(one)).cloned().collect();
        }
        expected
    }
}

impl ExpectedAudit {
    /// Whether a receipt satisfies all conditions.
    pub(super) fn admits(&self, receipt: &Value) -> bool {
        let grant = receipt.pointer("/policy_decisions/0/consumed_grant_id").and_then(Value::as_str);
        let items = || tagged(receipt);
        self.agent.as_deref().is_none_or(|agent| receipt["agent_did"] == agent)
            && self.since.is_none_or(|since| time(&receipt["timestamp"]).is_some_and(|at| at >= since))
            && self.grant.as_deref().is_none_or(|wanted| grant == Some(wanted))
            && self.grants.as_ref().is_none_or(|grants| grant.is_none_or(|grant| grants.contains(grant)))
            && self.items.as_ref().is_none_or(|allowed| items().all(|item| allowed.contains(item)))
            && self.item.as_deref().is_none_or(|wanted| items().any(|item| item == wanted))
    }
}

/// The items that a receipt names.
pub(super) fn tagged(receipt: &Value) -> impl Iterator<Item = &str> {
    let tags = receipt["provenance_tags_out"].as_array().into_iter().flatten();
    tags.filter_map(Value::as_str).filter_map(|tag| tag.split('@').next())
}

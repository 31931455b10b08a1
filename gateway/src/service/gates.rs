//! What stands before projection: contexts, bridges, consent, and the decisions that came of them (RFC 0006
//! section 3.6, OAP-CORE 18).

use crate::api::Document;
pub use crate::api::gates::{BridgeDraft, BridgeInfo};
use crate::error::{Conflict, Error, MemberError};
use crate::service::erasures::Withdrawn;
use crate::state::commits::{Draft, Writing, chain_of};
use crate::state::gateway::Gateway;
use crate::state::grant_book::{GrantEntry, GrantKey};
use crate::state::schema::{BRIDGES, CONSENTS, CONTEXTS, DECISIONS, OBLIGATIONS, WITHDRAWN};
use crate::state::views::{BuiltView, Owed};
use oap_exchange::bridge::{Bridge, SignedBridge};
use oap_exchange::ccc::Ccc;
use oap_exchange::gate::{Obligations, Report, Rule};
use oap_grants::Grant;
use oap_identity::{BridgeId, DecisionId, GrantId, Hash, ScopeId, Timestamp};
use oap_memory::Filter;
use oap_memory::receipt::{Action, Outcome};
use oap_store::Tx;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A bridge as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredBridge {
    /// The document.
    pub(crate) document: String,
    /// When it was taken back.
    pub(crate) revoked_at: Option<Timestamp>,
}

/// What was decided, as it is stored: the Decision Record is made of it when it is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Decided {
    at: Timestamp,
    rules: Vec<(String, u32)>,
    outcome: Outcome,
    passed: u32,
    withheld: u32,
    grantee: String,
}

impl Decided {
    /// What the gates decided of a grant's items.
    #[must_use]
    pub fn of(seen: &BuiltView, grant: &Grant) -> Self {
        let Report { passed, withheld, rules } = &seen.report;
        Self {
            at: seen.at,
            rules: rules.iter().map(|(rule, count)| (rule.as_str().to_owned(), *count)).collect(),
            outcome: seen.report.outcome(),
            passed: *passed,
            withheld: *withheld,
            grantee: grant.grantee.to_string(),
        }
    }

    /// What was decided of a request that was refused as a whole.
    #[must_use]
    pub fn refused(rule: &str, grant: &Grant, at: Timestamp) -> Self {
        let rules = vec![(rule.to_owned(), 0)];
        let grantee = grant.grantee.to_string();
        Self { at, rules, outcome: Outcome::Block, passed: 0, withheld: 0, grantee }
    }

    /// The Decision Record (`oap-decision-record.schema.json`). Its outcome is the strictest that any item asked for;
    /// the receipt's is that of the answer, which holds only what passed.
    fn record(&self, id: DecisionId) -> Value {
        let fired = |rules: &[Rule]| {
            !self.rules.iter().any(|(name, _)| rules.iter().any(|rule| rule.as_str() == name))
        };
        let counted = self.rules.iter().map(|(rule, count)| match count {
            0 => rule.clone(),
            count => format!("{rule} ({count})"),
        });
        let why = counted.collect::<Vec<_>>().join(", ");
        let why = if why.is_empty() { "no rule fired".to_owned() } else { why };
        let conditions: Vec<&str> = self
            .rules
            .iter()
            .filter_map(|(name, _)| {
                let rule: Rule = name.parse().ok()?;
                (rule.outcome() == Outcome::AllowWithConditions).then_some(rule.as_str())
            })
            .collect();
        let applied: Vec<&String> = self.rules.iter().map(|(rule, _)| rule).collect();
        json!({
            "decision_id": id, "evaluated_at": self.at, "layers_evaluated": ["L2", "L3", "L4"],
            "applied_rules": applied, "outcome": self.outcome, "conditions": conditions,
            "explanation": format!("{why}; {} passed, {} withheld", self.passed, self.withheld),
            "explanation_for_principal": format!(
                "Of what the grant selects, {} could see {} and was not shown {}: {why}.",
                self.grantee, count(self.passed), count(self.withheld),
            ),
            "ccc_evaluation": {
                "embargo_clear": fired(&[Rule::Embargo]),
                "nda_coverage": fired(&[Rule::Nda]),
                "non_compete_clear": fired(&[Rule::NonCompete, Rule::NonSolicit]),
                "chinese_wall_clear": fired(&[Rule::ChineseWall]),
                "professional_code_compliant": fired(&[
                    Rule::ProfessionalCode, Rule::FiduciaryDuty, Rule::Classification, Rule::Health,
                    Rule::Classified, Rule::Insider,
                ]),
                "sanctions_clear": fired(&[Rule::Sanctions, Rule::Unscreened]),
                "export_classification_compatible": fired(&[Rule::ExportControl]),
            },
        })
    }
}

fn count(items: u32) -> String {
    match items {
        1 => "1 item".to_owned(),
        n => format!("{n} items"),
    }
}

impl Writing<'_, '_> {
    /// Stores what was decided.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn decided(&mut self, id: DecisionId, decided: &Decided) -> Result<(), Error> {
        Ok(DECISIONS.put(self.tx, &id, decided)?)
    }

    /// Takes a consent back.
    pub(crate) fn withdraw(&mut self, grant: GrantId) -> Result<(), Error> {
        let key = GrantKey::named(grant);
        CONSENTS.delete(self.tx, &key);
        WITHDRAWN.put(self.tx, &key, &self.now)?;
        self.ended.consents.push(Withdrawn { grant, at: self.now });
        Ok(())
    }

    /// Says that what the owner owes has changed: every view is built anew, and no answer from an older one leaves.
    pub(crate) fn obligations_changed(&mut self) -> Result<(), Error> {
        OBLIGATIONS.count(self.tx)?;
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || gateway.views.clear());
        Ok(())
    }

    pub(crate) fn owner_receipt(
        &mut self,
        action: Action,
        scope: &ScopeId,
        about: Hash,
    ) -> Result<(), Error> {
        let gateway = self.gateway;
        let mut draft: Draft = gateway.draft(action, gateway.principal.as_str());
        draft.rules = vec!["principal".to_owned()];
        draft.output_hash = Some(about);
        self.receipt(&chain_of(scope), draft)?;
        Ok(())
    }
}

/// How often contexts, bridges or consent changed.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub fn obligations(tx: &Tx) -> Result<u64, Error> {
    Ok(OBLIGATIONS.get(tx)?)
}

impl Gateway {
    /// The same as it was last committed.
    pub(crate) fn owed_now(&self) -> Result<u64, Error> {
        Ok(OBLIGATIONS.get(&self.store)?)
    }

    /// What the owner owes of a grant's items.
    pub(crate) fn obligations(&self, grant: &Grant) -> Result<Owed, Error> {
        // The count first: a change meanwhile makes it too low, never too high.
        let count = self.owed_now()?;
        let consented = CONSENTS.get(&self.store, &GrantKey::of(grant))?.is_some();
        let bridges = self.bridges()?;
        let obligations = Obligations {
            contexts: self.contexts()?.into_iter().map(|(scope, (ccc, _))| (scope, ccc)).collect(),
            bridges: bridges
                .into_iter()
                .filter(|(_, at)| at.is_none())
                .map(|(b, _)| b.bridge().clone())
                .collect(),
            sanctions: self.sanctions.clone(),
        };
        Ok(Owed { count, obligations, consented })
    }

    /// The context of every scope that has one, with the document.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn contexts(&self) -> Result<BTreeMap<ScopeId, (Ccc, Value)>, Error> {
        let mut contexts = BTreeMap::new();
        for row in CONTEXTS.scan(&self.store) {
            let (scope, bytes) = row?;
            let document = oap_identity::json::parse(&bytes)?;
            contexts.insert(scope, (Ccc::parse(document.clone())?, document));
        }
        Ok(contexts)
    }

    /// Sets the context of the scope that it names.
    ///
    /// # Errors
    /// [`Error::Ccc`].
    pub async fn set_context(self: &Arc<Self>, document: Value) -> Result<(), Error> {
        let ccc = Ccc::parse(document.clone())?;
        let bytes = oap_identity::json::canonical(&document)?;
        self.commit(move |w| {
            CONTEXTS.put(w.tx, &ccc.scope_id, &bytes)?;
            w.obligations_changed()?;
            w.owner_receipt(Action::Ccc, &ccc.scope_id, Hash::of(&bytes))
        })
        .await?;
        Ok(())
    }

    /// Takes away the context of a scope.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn remove_context(self: &Arc<Self>, scope: ScopeId) -> Result<(), Error> {
        self.commit(move |w| {
            let was = CONTEXTS.get(w.tx, &scope)?.ok_or(Error::NotFound)?;
            CONTEXTS.delete(w.tx, &scope);
            w.obligations_changed()?;
            w.owner_receipt(Action::CccRemove, &scope, Hash::of(&was))
        })
        .await?;
        Ok(())
    }

    /// Bridges whose signature holds, oldest first, and when each was taken back.
    fn bridges(&self) -> Result<Vec<(SignedBridge, Option<Timestamp>)>, Error> {
        let keys = self.keys();
        let mut bridges = Vec::new();
        for row in BRIDGES.scan(&self.store) {
            let (_, stored) = row?;
            let document = oap_identity::json::parse(stored.document.as_bytes())?;
            // One whose key was revoked carries nothing any more.
            if let Ok(bridge) = SignedBridge::verify(document, keys.document()) {
                bridges.push((bridge, stored.revoked_at));
            }
        }
        Ok(bridges)
    }

    /// Every bridge whose signature holds, oldest first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn bridge_list(&self) -> Result<Vec<BridgeInfo>, Error> {
        let now = self.clock.now();
        let info = |(signed, revoked_at): (SignedBridge, Option<Timestamp>)| BridgeInfo {
            state: Cow::Borrowed(match revoked_at {
                Some(_) => "revoked",
                None if signed.bridge().valid_until <= now => "expired",
                None => "active",
            }),
            bridge: Document::of(signed.document().clone(), signed.bridge().clone().into()),
            revoked_at,
        };
        Ok(self.bridges()?.into_iter().map(info).collect())
    }

    /// Signs and stores a bridge.
    ///
    /// # Errors
    /// [`Error::Bridge`]; [`Error::Conflict`] from a privileged scope.
    pub async fn issue_bridge(self: &Arc<Self>, draft: BridgeDraft) -> Result<Value, Error> {
        if self.contexts()?.get(&draft.from_scope).is_some_and(|(ccc, _)| ccc.is_privileged()) {
            return Err(Error::Conflict(Conflict::PrivilegedScope));
        }
        let now = self.clock.now();
        let bridge = Bridge {
            bridge_id: BridgeId::new(now, &*self.random),
            principal: self.principal.clone(),
            from_scope: draft.from_scope,
            to_scope: draft.to_scope,
            data_categories: draft.data_categories,
            issued_at: now,
            valid_until: draft.valid_until,
            revocable: true,
        };
        let stored = self
            .commit(move |w| {
                let (id, scope) = (bridge.bridge_id, bridge.from_scope.clone());
                let signed = SignedBridge::sign(bridge, w.keys.current())?;
                let document = signed.document().clone();
                let stored = StoredBridge { document: document.to_string(), revoked_at: None };
                BRIDGES.put(w.tx, &id, &stored)?;
                w.obligations_changed()?;
                w.owner_receipt(Action::Bridge, &scope, Hash::of_canonical(&document)?)?;
                Ok(document)
            })
            .await?;
        Ok(stored)
    }

    /// Takes a bridge back. It takes effect before the next answer leaves.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when it was taken back before.
    pub async fn revoke_bridge(self: &Arc<Self>, id: BridgeId) -> Result<(), Error> {
        self.commit(move |w| {
            let mut stored = BRIDGES.get(w.tx, &id)?.ok_or(Error::NotFound)?;
            if stored.revoked_at.replace(w.now).is_some() {
                return Err(Error::Conflict(Conflict::BridgeRevoked));
            }
            BRIDGES.put(w.tx, &id, &stored)?;
            w.ended.bridges.push(id);
            w.obligations_changed()?;
            let document = oap_identity::json::parse(stored.document.as_bytes())?;
            let scope: ScopeId = oap_identity::json::from_value(document["from_scope"].clone())?;
            w.owner_receipt(Action::BridgeRevoke, &scope, Hash::of_canonical(&document)?)
        })
        .await?;
        Ok(())
    }

    /// Gives the owner's consent to a grant where a context asks for it, or takes it back.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn consent(self: &Arc<Self>, id: GrantId, given: bool) -> Result<(), Error> {
        let GrantEntry { record, key, .. } = self.grant_book.one(id)?;
        self.commit(move |w| {
            if given {
                CONSENTS.put(w.tx, &key, &w.now)?;
            } else {
                w.withdraw(key.id())?;
            }
            w.obligations_changed()?;
            let action = if given { Action::Consent } else { Action::ConsentWithdraw };
            w.owner_receipt(action, &record.grant.grant().granter.scope, record.grant.hash())
        })
        .await?;
        Ok(())
    }

    /// That the items of every scope that a filter names can reach the grant's scope at all (RFC 0006 section 5.1).
    pub(crate) fn check_scopes(&self, filter: &Filter, to: &ScopeId, now: Timestamp) -> Result<(), Error> {
        let bridges = self.bridges()?;
        for scope in filter.scopes.iter().flatten().filter(|scope| *scope != to) {
            let bridged = bridges.iter().any(|(signed, revoked_at)| {
                let bridge = signed.bridge();
                let live = revoked_at.is_none() && now < bridge.valid_until;
                live && bridge.from_scope == *scope && bridge.to_scope == *to
            });
            if !bridged {
                return Err(Error::Member("filter.scopes", MemberError::NoBridge));
            }
        }
        Ok(())
    }

    /// The Decision Record of a decision (OAP-CORE 18.3): the owner's alone.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn decision(&self, id: DecisionId) -> Result<Value, Error> {
        let decided = DECISIONS.get(&self.store, &id)?.ok_or(Error::NotFound)?;
        Ok(decided.record(id))
    }
}

//! What stands before projection: contexts, bridges, consent, and the decisions that came of them (RFC 0006
//! section 3.6, OAP-CORE 18).

use crate::api::Document;
use crate::api::document::Signed;
use crate::api::gates::DecisionRecord;
pub use crate::api::gates::{BridgeDraft, BridgeInfo};
use crate::error::{Conflict, Error, MemberError};
use crate::service::Gates;
use crate::state::commits::{Draft, Writing, chain_of};
pub use crate::state::decided::Decided;
use crate::state::gateway::blocking;
use crate::state::grant_book::GrantEntry;
use crate::state::obligations::StoredBridge;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{BRIDGES, CONSENTS, CONTEXTS, DECISIONS};
use oap_exchange::bridge::{Bridge, SignedBridge};
use oap_exchange::ccc::Ccc;
use oap_identity::{BridgeId, DecisionId, GrantId, Hash, ScopeId, Timestamp};
use oap_memory::Filter;
use oap_memory::receipt::Action;
use serde_json::Value;
use std::borrow::Cow;

impl Writing<'_, '_> {
    /// Stores what was decided.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn decided(&mut self, id: DecisionId, decided: &Decided) -> Result<(), Error> {
        Ok(DECISIONS.put(self.tx, &id, decided)?)
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

impl Gates<'_> {
    /// The document of every scope's context.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn context_list(self, _: &Owner<impl Permits<Admin>>) -> Result<Vec<Document<Ccc>>, Error> {
        Ok(self.0.contexts()?.into_values().map(|(ccc, document)| Document::of(document, ccc)).collect())
    }

    /// Sets the context of the scope that it names.
    ///
    /// # Errors
    /// [`Error::Ccc`].
    pub async fn set_context(self, owner: &Owner<impl Permits<Admin>>, document: Value) -> Result<(), Error> {
        let ccc = Ccc::written(document.clone())?;
        // A list that was put there for this context counts with it.
        if self.0.home.is_some() {
            let gateway = self.0.clone();
            blocking(move || Ok(gateway.read_sanctions())).await?;
        }
        let bytes = oap_identity::json::canonical(&document)?;
        self.0
            .commit_as(owner, move |w| {
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
    pub async fn remove_context(
        self,
        owner: &Owner<impl Permits<Admin>>,
        scope: ScopeId,
    ) -> Result<(), Error> {
        self.0
            .commit_as(owner, move |w| {
                let was = CONTEXTS.get(w.tx, &scope)?.ok_or(Error::NotFound)?;
                CONTEXTS.delete(w.tx, &scope);
                w.obligations_changed()?;
                w.owner_receipt(Action::CccRemove, &scope, Hash::of(&was))
            })
            .await?;
        Ok(())
    }

    /// Every bridge whose signature holds, oldest first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn bridge_list(self, _: &Owner<impl Permits<Admin>>) -> Result<Vec<BridgeInfo>, Error> {
        let now = self.0.clock.now();
        let info = |(signed, revoked_at): (SignedBridge, Option<Timestamp>)| BridgeInfo {
            state: Cow::Borrowed(match revoked_at {
                Some(_) => "revoked",
                None if signed.bridge().valid_until <= now => "expired",
                None => "active",
            }),
            bridge: Document::of(signed.document().clone(), signed.bridge().clone().into()),
            revoked_at,
        };
        Ok(self.0.bridges()?.into_iter().map(info).collect())
    }

    /// Signs and stores a bridge.
    ///
    /// # Errors
    /// [`Error::Bridge`]; [`Error::Conflict`] from a privileged scope.
    pub async fn issue_bridge(
        self,
        owner: &Owner<impl Permits<Admin>>,
        draft: BridgeDraft,
    ) -> Result<Document<Signed<Bridge>>, Error> {
        let now = self.0.clock.now();
        let bridge = Bridge {
            bridge_id: BridgeId::new(now, &*self.0.random),
            principal: self.0.principal.clone(),
            from_scope: draft.from_scope,
            to_scope: draft.to_scope,
            data_categories: draft.data_categories,
            issued_at: now,
            valid_until: draft.valid_until,
            revocable: true,
        };
        let stored = self
            .0
            .commit_as(owner, move |w| {
                let (id, scope) = (bridge.bridge_id, bridge.from_scope.clone());
                if let Some(context) = CONTEXTS.get(w.tx, &scope)?
                    && Ccc::parse(oap_identity::json::parse(&context)?)?.is_privileged()
                {
                    return Err(Error::Conflict(Conflict::PrivilegedScope));
                }
                let signed = SignedBridge::sign(bridge, w.keys.current())?;
                let document = signed.document().clone();
                let stored = StoredBridge { document: document.to_string(), revoked_at: None };
                BRIDGES.put(w.tx, &id, &stored)?;
                w.obligations_changed()?;
                w.owner_receipt(Action::Bridge, &scope, Hash::of_canonical(&document)?)?;
                Ok(Document::of(document, signed.bridge().clone().into()))
            })
            .await?;
        Ok(stored)
    }

    /// Takes a bridge back. It takes effect before the next answer leaves.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when it was taken back before.
    pub async fn revoke_bridge(self, owner: &Owner<impl Permits<Admin>>, id: BridgeId) -> Result<(), Error> {
        self.0
            .commit_as(owner, move |w| {
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
    pub async fn consent(
        self,
        owner: &Owner<impl Permits<Admin>>,
        id: GrantId,
        given: bool,
    ) -> Result<(), Error> {
        let GrantEntry { record, key, .. } = self.0.grant_book.one(id)?;
        self.0
            .commit_as(owner, move |w| {
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
    pub(crate) fn check_scopes(self, filter: &Filter, to: &ScopeId, now: Timestamp) -> Result<(), Error> {
        let bridges = self.0.bridges()?;
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
    pub fn decision(
        self,
        _: &Owner<impl Permits<Admin>>,
        id: DecisionId,
    ) -> Result<Document<DecisionRecord>, Error> {
        let decided = DECISIONS.get(&self.0.store, &id)?.ok_or(Error::NotFound)?;
        Ok(Document::read(decided.record(id))?)
    }
}

//! What the owner owes others, as it is stored: contexts, bridges and consents, and the gates that are made of them (RFC 0006
//! section 3.6).

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::erasures::Withdrawn;
use crate::state::gateway::Gateway;
use crate::state::grant_book::GrantKey;
use crate::state::schema::{BRIDGES, CONSENTS, CONTEXTS, OBLIGATIONS, WITHDRAWN};
use crate::state::views::GateBasis;
use oap_exchange::bridge::SignedBridge;
use oap_exchange::ccc::Ccc;
use oap_exchange::gate::Obligations;
use oap_grants::Grant;
use oap_identity::{GrantId, ScopeId, Timestamp};
use oap_store::Tx;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A bridge as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct StoredBridge {
    pub(crate) document: String,
    /// When it was taken back.
    pub(crate) revoked_at: Option<Timestamp>,
}

/// The revision of what the owner owes: it goes up with every change of a context, bridge or consent.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub fn revision(tx: &Tx) -> Result<u64, Error> {
    Ok(OBLIGATIONS.get(tx)?)
}

impl Writing<'_, '_> {
    /// Takes a consent back.
    pub(crate) fn withdraw(&mut self, grant: GrantId) -> Result<(), Error> {
        let key = GrantKey::named(grant);
        CONSENTS.delete(self.tx, &key);
        WITHDRAWN.put(self.tx, &key, &self.now)?;
        self.ended.consents.push(Withdrawn { grant, at: self.now });
        Ok(())
    }

    /// Says that what the owner owes has changed: every view takes that over, and no answer from one as it was leaves.
    pub(crate) fn obligations_changed(&mut self) -> Result<(), Error> {
        OBLIGATIONS.count(self.tx)?;
        let (gateway, now) = (self.gateway.clone(), self.now);
        self.tx.on_commit(move || gateway.oblige_views(now));
        Ok(())
    }

    /// Says that signatures count, or count no more, by which views were built: every view is built anew, and no answer from an older one
    /// leaves.
    pub(crate) fn signatures_changed(&mut self) -> Result<(), Error> {
        OBLIGATIONS.count(self.tx)?;
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || gateway.views.clear());
        Ok(())
    }
}

impl Gateway {
    /// Reads the sanctions lists of the home anew; whether they are others than before. Where they cannot be read, those before stay.
    pub(crate) fn read_sanctions(&self) -> bool {
        let Some(home) = &self.home else { return false };
        match home.sanctions() {
            Ok(lists) if lists == **self.sanctions.load() => false,
            Ok(lists) => {
                self.sanctions.store(Arc::new(lists));
                // Whether a commit that tells them comes or not: the next reading finds nothing new.
                self.views.clear();
                true
            }
            Err(error) => {
                tracing::error!(%error, "the sanctions lists cannot be read anew; those before stay in force");
                false
            }
        }
    }

    /// The revision of what the owner owes, as last committed.
    pub(crate) fn obligations_revision(&self) -> Result<u64, Error> {
        Ok(OBLIGATIONS.get(&self.store)?)
    }

    /// What the gates before a grant's items rest on.
    pub(crate) fn gate_basis(&self, grant: &Grant) -> Result<GateBasis, Error> {
        // The revision first, and all else from the store after it: a change meanwhile makes it too low, never too high.
        let revision = self.obligations_revision()?;
        let consented = self.consented(grant)?;
        Ok(GateBasis { revision, obligations: self.obligations()?, consented })
    }

    /// Whether the owner consented to a grant.
    pub(crate) fn consented(&self, grant: &Grant) -> Result<bool, Error> {
        Ok(CONSENTS.get(&self.store, &GrantKey::of(grant))?.is_some())
    }

    /// What the owner owes, and the bridges that hold.
    pub(crate) fn obligations(&self) -> Result<Obligations, Error> {
        let bridges = self.bridges()?;
        Ok(Obligations {
            contexts: self.contexts()?.into_iter().map(|(scope, (ccc, _))| (scope, ccc)).collect(),
            bridges: bridges
                .into_iter()
                .filter(|(_, at)| at.is_none())
                .map(|(b, _)| b.bridge().clone())
                .collect(),
            sanctions: self.sanctions.load_full(),
        })
    }

    /// The context of every scope that has one, with the document, as last committed.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn contexts(&self) -> Result<BTreeMap<ScopeId, (Ccc, Value)>, Error> {
        let mut contexts = BTreeMap::new();
        for row in CONTEXTS.scan(&self.store) {
            let (scope, bytes) = row?;
            let document = oap_identity::json::parse(&bytes)?;
            contexts.insert(scope, (Ccc::parse(document.clone())?, document));
        }
        Ok(contexts)
    }

    /// Bridges whose signature holds, oldest first, and when each was taken back.
    pub(crate) fn bridges(&self) -> Result<Vec<(SignedBridge, Option<Timestamp>)>, Error> {
        let keys = self.keys_in(&self.store)?;
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
}

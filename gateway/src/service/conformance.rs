//! The gateway's Conformance Receipt: signed from a report of the protocol's suite, published while it is in force
//! (RFC 0019 section 7).

use crate::api::Document;
use crate::api::document::Submitted;
pub use crate::api::standing::AttestRequest;
use crate::error::{Conflict, Error};
use crate::service::Attestations;
use crate::state::commits::{chain_of, until_it_holds};
use crate::state::gateway::Gateway;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::published::conformance_in_force;
use crate::state::schema::{CONFORMANCE, MEMORIZATION};
use oap_conformance::receipt::{Attestation, ConformanceReceipt, attest, witness};
use oap_identity::{Hash, json as strict};
use oap_memory::receipt::Action;
use oap_store::Rows;
use serde_json::Value;

/// What a receipt rests on: read again in the transaction that stores it.
#[derive(PartialEq)]
struct Basis {
    /// The receipt before it, as it is stored.
    previous: Option<Vec<u8>>,
    /// The audit of memorization, which the tool manifest declares.
    audit: Option<Vec<u8>>,
    /// The hash of the tool manifest. It is published when what it declares is durable: what the same batch declares is above.
    manifest: Hash,
}

impl Basis {
    fn read(rows: &impl Rows, gateway: &Gateway) -> Result<Self, Error> {
        Ok(Self {
            previous: CONFORMANCE.get(rows)?,
            audit: MEMORIZATION.get(rows)?,
            manifest: Hash::of_canonical(&gateway.published().tool)?,
        })
    }
}

impl Attestations<'_> {
    /// The receipt as it is published.
    ///
    /// # Errors
    /// [`Error::NotFound`] without one, or when its time is over.
    pub fn conformance(self) -> Result<Value, Error> {
        conformance_in_force(&self.0.store, self.0.clock.now())?.ok_or(Error::NotFound)
    }

    /// Another's receipt with this gateway's signature as a witness (RFC 0019 section 7.1). That it was checked, and the suite
    /// run against the other, is what the owner says by asking.
    ///
    /// # Errors
    /// [`Error::Member`] for what is no receipt; [`Error::Conflict`] for one's own.
    pub fn witness(
        self,
        _: &Owner<impl Permits<Admin>>,
        mut receipt: Value,
    ) -> Result<Document<ConformanceReceipt>, Error> {
        let uri = format!("{}{}", self.0.origin, oap_manifest::path::CONFORMANCE);
        witness(&mut receipt, self.0.keys().current(), &uri, self.0.clock.now())
            .map_err(|e| Error::Member("receipt", e.into()))?;
        let signed: Document<ConformanceReceipt> = Document::read(receipt)?;
        if signed.implementation.did == self.0.principal {
            return Err(Error::Conflict(Conflict::OwnReceipt));
        }
        Ok(signed)
    }

    /// Signs a receipt, publishes it and names it in the manifest; a candidate is served but not named.
    ///
    /// # Errors
    /// [`Error::Attest`]: a level whose probes did not all run and pass is not attested.
    pub async fn attest(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: AttestRequest,
    ) -> Result<Document<ConformanceReceipt>, Error> {
        until_it_holds(|| self.attest_once(owner, &request)).await
    }

    async fn attest_once(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: &AttestRequest,
    ) -> Result<Document<ConformanceReceipt>, Error> {
        let keys = self.0.keys();
        let rests_on = Basis::read(&self.0.store, self.0)?;
        let previous = match &rests_on.previous {
            Some(receipt) => Some(Hash::of_canonical(&strict::parse(receipt)?)?),
            None => None,
        };
        let attestation = Attestation {
            target: &self.0.origin,
            version: env!("CARGO_PKG_VERSION"),
            manifest: rests_on.manifest,
            levels: &request.levels,
            report: request.report.as_ref().map(Submitted::whole),
            previous,
        };
        let receipt = attest(&attestation, keys.current(), self.0.clock.now(), &*self.0.random)?;
        let bytes = strict::canonical(&receipt)?;
        let gateway = self.0.clone();
        let signed_by = keys.current().kid().clone();
        self.0
            .commit_as(owner, move |w| {
                if *w.keys.current().kid() != signed_by || Basis::read(&*w.tx, &gateway)? != rests_on {
                    return Err(Error::Overtaken);
                }
                CONFORMANCE.put(w.tx, &bytes)?;
                let publishing = gateway.clone();
                w.tx.on_commit(move || publishing.publish());
                let mut draft = gateway.draft(Action::Attest, gateway.principal.as_str());
                draft.rules = vec!["principal".to_owned()];
                draft.output_hash = Some(Hash::of(&bytes));
                w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
                Ok(())
            })
            .await?;
        Ok(Document::of(serde_json::to_value(&receipt)?, receipt))
    }
}

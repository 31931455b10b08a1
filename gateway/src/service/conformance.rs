//! The gateway's Conformance Receipt: signed from a report of the protocol's suite, published while it is in force
//! (RFC 0019 section 7).

pub use crate::api::standing::AttestRequest;
use crate::error::{Conflict, Error};
use crate::service::Attestations;
use crate::state::commits::{chain_of, until_it_holds};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::published::{conformance_in_force, last_conformance};
use crate::state::schema::CONFORMANCE;
use oap_conformance::receipt::{Attestation, attest, witness};
use oap_identity::{Hash, json as strict};
use oap_memory::receipt::Action;
use serde_json::Value;

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
    pub fn witness(self, _: &Owner<impl Permits<Admin>>, mut receipt: Value) -> Result<Value, Error> {
        if receipt["implementation"]["did"] == self.0.principal.as_str() {
            return Err(Error::Conflict(Conflict::OwnReceipt));
        }
        let uri = format!("{}{}", self.0.origin, oap_manifest::path::CONFORMANCE);
        witness(&mut receipt, self.0.keys().current(), &uri, self.0.clock.now())
            .map_err(|e| Error::Member("receipt", e.into()))?;
        Ok(receipt)
    }

    /// Signs a receipt, publishes it and names it in the manifest; a candidate is served but not named.
    ///
    /// # Errors
    /// [`Error::Attest`]: a level whose probes did not all run and pass is not attested.
    pub async fn attest(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: AttestRequest,
    ) -> Result<Value, Error> {
        until_it_holds(|| self.attest_once(owner, &request)).await
    }

    async fn attest_once(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: &AttestRequest,
    ) -> Result<Value, Error> {
        let keys = self.0.keys();
        let previous =
            last_conformance(&self.0.store)?.map(|receipt| Hash::of_canonical(&receipt)).transpose()?;
        let attestation = Attestation {
            target: &self.0.origin,
            version: env!("CARGO_PKG_VERSION"),
            manifest: Hash::of_canonical(&self.0.published().tool)?,
            levels: &request.levels,
            report: request.report.as_ref(),
            previous,
        };
        let receipt = attest(&attestation, keys.current(), self.0.clock.now(), &*self.0.random)?;
        let bytes = strict::canonical(&receipt)?;
        let gateway = self.0.clone();
        let signed_by = keys.current().kid().clone();
        self.0
            .commit_as(owner, move |w| {
                if *w.keys.current().kid() != signed_by {
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
        Ok(receipt)
    }
}

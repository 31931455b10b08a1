//! What the principal proves as a grantee of somebody else.

use crate::api::standing::{Proof, ProofRequest};
use crate::error::Error;
use crate::service::Keys;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use oap_grants::{dpop, exchange};

impl Keys<'_> {
    /// Signs a proof with the key in use: `proof` or `dpop`.
    ///
    /// # Errors
    /// [`Error::Signed`]; none in practice.
    pub fn prove(self, _: &Owner<impl Permits<Admin>>, what: ProofRequest) -> Result<Proof, Error> {
        let (keys, now, random) = (self.0.keys(), self.0.clock.now(), &*self.0.random);
        Ok(match what {
            ProofRequest::Grant { endpoint, grant_hash } => {
                Proof::Proof(exchange::prove(keys.current(), &endpoint, grant_hash, now, random)?)
            }
            ProofRequest::Request { method, url, token } => {
                let target = dpop::Request { method: &method, url: &url };
                Proof::Dpop(dpop::prove(keys.current(), target, &token, now, random)?)
            }
        })
    }
}

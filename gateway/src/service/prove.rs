//! What the principal proves as a grantee of somebody else.

use crate::error::Error;
use crate::service::Keys;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use oap_grants::{dpop, exchange};
use oap_identity::Hash;
use serde::Deserialize;
use serde_json::{Value, json};

/// Control of its DID to a grant endpoint, or possession of its key to a query endpoint.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Prove {
    /// To a grant endpoint (protocol section 5.1).
    Grant {
        /// The endpoint's address.
        endpoint: String,
        /// The hash of the grant.
        grant_hash: Hash,
    },
    /// To a query endpoint (protocol section 5.2).
    Request {
        /// The request's method.
        method: String,
        /// The request's address.
        url: String,
        /// The token that it carries.
        token: String,
    },
}

impl Keys<'_> {
    /// Signs a proof with the key in use: `proof` or `dpop`.
    ///
    /// # Errors
    /// [`Error::Signed`]; none in practice.
    pub fn prove(self, _: &Owner<impl Permits<Admin>>, what: Prove) -> Result<Value, Error> {
        let (keys, now, random) = (self.0.keys(), self.0.clock.now(), &*self.0.random);
        Ok(match what {
            Prove::Grant { endpoint, grant_hash } => {
                json!({"proof": exchange::prove(keys.current(), &endpoint, grant_hash, now, random)?})
            }
            Prove::Request { method, url, token } => {
                let target = dpop::Request { method: &method, url: &url };
                json!({"dpop": dpop::prove(keys.current(), target, &token, now, random)?})
            }
        })
    }
}

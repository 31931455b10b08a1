//! A grantee whose key is in the store of its home: the home's gateway makes the proofs.

use super::HomeClient;
use crate::api::standing::{ProofRequest, Prove};
use oap_client::Prover;
use oap_client::prover::{Claim, Pending};
use oap_identity::Did;

/// The principal of a home, as somebody else's grantee.
pub struct HomeProver {
    did: Did,
    home: HomeClient,
}

impl HomeProver {
    /// The principal with that DID, by a client of its own gateway.
    #[must_use]
    pub const fn new(did: Did, home: HomeClient) -> Self {
        Self { did, home }
    }
}

impl Prover for HomeProver {
    fn did(&self) -> &Did {
        &self.did
    }

    fn prove<'a>(&'a self, claim: Claim<'a>) -> Pending<'a, String> {
        let request = match claim {
            Claim::Control { endpoint, grant } => {
                ProofRequest::Grant { endpoint: endpoint.to_owned(), grant_hash: grant }
            }
            Claim::Possession { method, url, token } => ProofRequest::Request {
                method: method.to_owned(),
                url: url.to_owned(),
                token: token.to_owned(),
            },
        };
        Box::pin(async move { Ok(self.home.send::<Prove>((), &request).await?.into_string()) })
    }
}

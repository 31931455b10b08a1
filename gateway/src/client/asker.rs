//! Who asks as a grantee: the keys of an open home, or a key file alone.

use super::ClientError;
use super::owner::OwnerClient;
use crate::api::standing::{ProofRequest, Prove};
use crate::system::clock::{SystemClock, SystemRandom};
use oap_grants::{dpop, exchange};
use oap_identity::{Clock, Did, Hash, Signer};

/// A grantee that can prove that it is one.
pub enum Asker {
    /// By the keys of a home.
    Home(Did, Box<OwnerClient>),
    /// By a key of its own, without a home.
    Key(Box<Signer>),
}

impl Asker {
    /// Who it is.
    #[must_use]
    pub const fn did(&self) -> &Did {
        match self {
            Self::Home(did, _) => did,
            Self::Key(signer) => signer.did(),
        }
    }

    /// A proof of control of the DID, for a grant and its endpoint (protocol section 5.1).
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn prove(&mut self, endpoint: &str, grant: Hash) -> Result<String, ClientError> {
        match self {
            Self::Home(_, owner) => {
                let request = ProofRequest::Grant { endpoint: endpoint.to_owned(), grant_hash: grant };
                Ok(owner.send::<Prove>((), &request).await?.into_string())
            }
            Self::Key(signer) => {
                Ok(exchange::prove(signer, endpoint, grant, SystemClock.now(), &SystemRandom)?)
            }
        }
    }

    /// A proof of possession of the key that a token is bound to, for a POST to `url` (RFC 9449).
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn dpop(&mut self, url: &str, token: &str) -> Result<String, ClientError> {
        match self {
            Self::Home(_, owner) => {
                let (method, url, token) = ("POST".to_owned(), url.to_owned(), token.to_owned());
                let request = ProofRequest::Request { method, url, token };
                Ok(owner.send::<Prove>((), &request).await?.into_string())
            }
            Self::Key(signer) => {
                let target = dpop::Request { method: "POST", url };
                Ok(dpop::prove(signer, target, token, SystemClock.now(), &SystemRandom)?)
            }
        }
    }
}

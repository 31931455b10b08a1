//! Who asks: whoever can make a grantee's proofs, wherever its key lives.
//!
//! A [`Prover`] makes whole proofs: a home, whose gateway makes them, or an agent with rules of its own. A [`SigningKey`] only signs
//! bytes, as an HSM does, and a [`KeyProver`] makes proofs with it. The key of a key file is one ([`crate::keyfile`]).

use crate::error::ClientError;
use oap_grants::{dpop, exchange};
use oap_identity::jwk::PublicKey;
use oap_identity::{Clock, Did, Hash, Kid, Random, Signer};
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

/// What somebody else is at work on.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send + 'a>>;

/// What is to be proved. It does not print: it may hold a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Claim<'a> {
    /// Control of the DID, to the grant endpoint of a gateway (protocol section 5.1).
    #[allow(missing_docs, reason = "the names say it")]
    Control {
        /// The grant endpoint.
        endpoint: &'a str,
        grant: Hash,
    },
    /// Possession of the key that a token is bound to, for one request (RFC 9449).
    #[allow(missing_docs, reason = "the names say it")]
    Possession {
        /// The request's method.
        method: &'a str,
        /// The request's address.
        url: &'a str,
        token: &'a str,
    },
}

/// Somebody who can prove who they are.
pub trait Prover: Send + Sync {
    /// Who it is.
    fn did(&self) -> &Did;

    /// A fresh proof: a compact JWS.
    fn prove<'a>(&'a self, claim: Claim<'a>) -> Pending<'a, String>;
}

/// An Ed25519 key that signs, wherever it is.
pub trait SigningKey: Send + Sync {
    /// The key id under which its public half is published.
    fn kid(&self) -> &Kid;

    /// The public half.
    fn public(&self) -> &PublicKey;

    /// The signature of a message, 64 bytes.
    fn sign<'a>(&'a self, message: &'a [u8]) -> Pending<'a, [u8; 64]>;
}

impl SigningKey for Signer {
    fn kid(&self) -> &Kid {
        Self::kid(self)
    }

    fn public(&self) -> &PublicKey {
        Self::public(self)
    }

    fn sign<'a>(&'a self, message: &'a [u8]) -> Pending<'a, [u8; 64]> {
        Box::pin(ready(Ok(self.signature(message))))
    }
}

/// A prover with a key at hand.
pub struct KeyProver<K> {
    key: K,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl<K: SigningKey> KeyProver<K> {
    /// A prover with this key; its proofs bear the clock's time and a random identifier.
    pub const fn new(key: K, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { key, clock, random }
    }
}

impl<K: SigningKey> Prover for KeyProver<K> {
    fn did(&self) -> &Did {
        self.key.kid().did()
    }

    fn prove<'a>(&'a self, claim: Claim<'a>) -> Pending<'a, String> {
        Box::pin(async move {
            let (now, random) = (self.clock.now(), &*self.random);
            let unsigned = match claim {
                Claim::Control { endpoint, grant } => {
                    exchange::unsigned(self.key.kid(), endpoint, grant, now, random)?
                }
                Claim::Possession { method, url, token } => {
                    dpop::unsigned(self.key.public(), dpop::Request { method, url }, token, now, random)?
                }
            };
            let signature = self.key.sign(unsigned.message()).await?;
            Ok(unsigned.signed(&signature))
        })
    }
}

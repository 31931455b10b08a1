//! Who speaks, and how their words are fixed: DIDs, keys, signatures, canonical JSON, hashes and typed
//! identifiers (protocol sections 1 and 2).
//!
//! Nothing here reads a clock or a random source: both come in as arguments ([`Clock`], [`Random`]).
//! The one part that talks to the network is [`outgoing`]; [`resolve`] fetches DID documents with it, behind `ssi`'s resolver trait.
//!
//! ```
//! use oap_identity::signed::{UnverifiedSignature, sign_document};
//! use oap_identity::{Signer, Timestamp, VerificationKey};
//! use serde_json::json;
//!
//! // A principal signs a document. The seed of its key comes from the caller.
//! let signer = Signer::from_seed("did:web:user.example#key-1".parse()?, &[7; 32])?;
//! let mut document = json!({"purpose": "Website redesign", "max_items": 5});
//! sign_document(&mut document, &signer)?;
//!
//! // A reader learns which key it names, and nothing else before that key has verified it.
//! let signature = UnverifiedSignature::of(&document)?;
//! assert_eq!(signature.kid(), signer.kid());
//! let key = VerificationKey::new(signer.kid().clone(), *signer.public());
//! let signed_at: Timestamp = "2026-05-01T12:00:00Z".parse()?;
//! signature.verify(&key, signed_at)?;
//!
//! // A key that was retired by then does not count, and neither does a document that was changed.
//! assert!(signature.verify(&key.clone().retired(signed_at), signed_at).is_err());
//! document["max_items"] = json!(500);
//! assert!(UnverifiedSignature::of(&document)?.verify(&key, signed_at).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used)]

pub mod detached;
pub mod did;
pub mod document;
pub mod hash;
pub mod http_signature;
pub mod ids;
pub mod jose;
pub mod json;
pub mod jwk;
pub mod key;
pub mod limits;
pub mod method;
pub mod origin;
pub mod outgoing;
pub mod random;
pub mod resolve;
mod schema;
pub mod signed;
pub mod time;
pub mod unverified;
pub mod webvh;

pub use detached::DetachedSignature;
pub use did::{Did, Kid, ScopeId, ScopedDid};
pub use document::{DidDocument, Documents, VerificationKey};
pub use hash::Hash;
pub use ids::{
    AskId, BridgeId, BundleId, DecisionId, DeletionId, GrantId, IntentId, ItemId, JobId, LetterId, ReceiptId,
    RequestId, SubscriptionId, TaskId,
};
pub use key::{AgreementKey, Signer};
pub use random::Random;
pub use time::{Clock, Timestamp};
pub use unverified::UnverifiedDocument;

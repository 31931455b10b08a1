//! Who speaks, and how their words are fixed: DIDs, keys, signatures, canonical JSON, hashes and typed
//! identifiers (protocol sections 1 and 2).
//!
//! Nothing here reads a clock or a random source: both come in as arguments ([`Clock`], [`Random`]).
//! The one part that talks to the network is [`resolve`], behind `ssi`'s resolver trait.

#![warn(clippy::unwrap_used)]

pub mod did;
pub mod document;
pub mod hash;
pub mod ids;
pub mod jose;
pub mod json;
pub mod jwk;
pub mod key;
pub mod limits;
pub mod method;
pub mod random;
pub mod resolve;
pub mod signed;
pub mod time;

pub use did::{Did, Kid, ScopeId, ScopedDid};
pub use document::{DidDocument, Documents, VerificationKey};
pub use hash::Hash;
pub use ids::{BridgeId, BundleId, DecisionId, DeletionId, GrantId, ItemId, JobId, ReceiptId, RequestId};
pub use key::{AgreementKey, Signer};
pub use random::Random;
pub use time::{Clock, Timestamp};

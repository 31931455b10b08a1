//! Who may see which slice of a principal's memory (RFC 0010 section 3.4, protocol section 5).
//!
//! A [`Grant`] is signed by its granter. Its grantee proves control of its DID and gets a short-lived,
//! sender-constrained token ([`exchange`]). A request with the token becomes a [`VerifiedGrant`] in one place,
//! [`verify`]; nothing else can make one, and everything that answers a grantee asks for one.
//!
//! No store, no HTTP: what is known of grants comes in behind [`GrantBook`], seen proofs behind [`Replay`].

#![warn(clippy::unwrap_used)]

pub mod attenuate;
pub mod bundle;
pub mod dpop;
pub mod evidence;
pub mod exchange;
pub mod freshness;
pub mod grant;
pub mod limits;
pub mod status;
pub mod token;
pub mod verify;

pub use grant::{Grant, LawfulBasis, Operation, SignedGrant};
pub use limits::Limits;
pub use verify::{GrantBook, GrantRecord, GrantState, Replay, VerifiedGrant};

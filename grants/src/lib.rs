//! Who may see which slice of a principal's memory (RFC 0010 section 3.4, protocol section 5).
//!
//! A [`Grant`] is signed by its granter. Its grantee proves control of its DID and gets a short-lived,
//! sender-constrained token ([`exchange`]). A request with the token becomes a [`VerifiedGrant`] in one place,
//! [`verify`]; nothing else can make one, and everything that answers a grantee asks for one.
//!
//! No store, no HTTP: what is known of grants comes in behind [`GrantBook`], seen proofs behind [`Replay`].
//!
//! ```
//! use oap_grants::{Grant, SignedGrant, attenuate, evidence};
//! use oap_identity::{DidDocument, Signer, VerificationKey};
//! use serde_json::json;
//!
//! let owner = Signer::from_seed("did:web:user.example#key-1".parse()?, &[7; 32])?;
//! let grant: Grant = serde_json::from_value(json!({
//!     "grant_id": "mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1",
//!     "granter": "did:web:user.example#personal", "grantee": "did:web:contractor.example",
//!     "purpose": "Website redesign", "filter": {"labels_any": ["website"]}, "max_items": 20,
//!     "issued_at": "2026-05-01T12:00:00.000Z", "expires_at": "2026-05-31T12:00:00.000Z",
//!     "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 2, "delegable": {"max_depth": 1},
//! }))?;
//! let signed = SignedGrant::sign(grant, &owner)?;
//!
//! // The grantee checks it offline, with the granter's DID document.
//! let key = VerificationKey::new(owner.kid().clone(), *owner.public());
//! let document = DidDocument::new(owner.did().clone(), vec![key]);
//! let terms = evidence::grant(signed.document(), &[], &document, "2026-05-02T00:00:00Z".parse()?)?;
//! assert_eq!(terms.signer(), owner.did());
//!
//! // What it passes on must lie within what it was given, member by member.
//! let parent = signed.grant();
//! let child = Grant { parent: Some(signed.hash()), delegable: None, max_items: 5, ..parent.clone() };
//! attenuate::check(parent, &child)?;
//! let wider = Grant { max_items: 21, ..child };
//! assert_eq!(attenuate::check(parent, &wider), Err(attenuate::Wider("max_items")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used)]

pub mod attenuate;
pub mod bundle;
pub mod checked;
pub mod dpop;
pub mod evidence;
pub mod exchange;
pub mod freshness;
pub mod grant;
pub mod limits;
pub mod status;
pub mod token;
pub mod verify;

pub use checked::CheckedTokens;
pub use grant::{Grant, LawfulBasis, Operation, SignedGrant};
pub use limits::Limits;
pub use verify::{GrantBook, GrantRecord, GrantState, Replay, VerifiedGrant};

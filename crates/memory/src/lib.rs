//! What a person's assistant knows, and what of it another may see.
//!
//! Pure functions: no I/O, no clock, no hidden randomness. Time, salts and keys come in as arguments.
//!
//! - [`item`]: the unit of memory (RFC 0010 section 3.2) and its reading from the wire
//! - [`size`], [`limits`]: what an item may take
//! - [`detect`]: spans of personal data in text
//! - [`sd_jwt`], [`commitment`]: a version of an item as one SD-JWT whose parts can be shown one by one
//! - [`chain`], [`receipt`]: append-only logs, signed entry by entry
//! - [`profile`], [`project`]: what a trust level shows
//! - [`epistemic`], [`record`], [`tree`], [`vouch`]: attitudes, what is kept of an item, documents with places, a second house's word
//! - [`filter`], [`text`]: what a grant selects, and the words that are matched
//! - [`answer`], [`evidence`], [`deletion`], [`form`], [`unchecked`]: what the receiver checks, and what it does not
//! - [`bundle`], [`lines`]: what changes house, line by line
//!
//! ```
//! use oap_identity::random::Seeded;
//! use oap_identity::{DidDocument, ItemId, ReceiptId, ScopeId, Signer, Timestamp, VerificationKey};
//! use oap_memory::chain::Event;
//! use oap_memory::commitment::{self, Committed, Place};
//! use oap_memory::detect::{People, segments};
//! use oap_memory::item::{Body, Defaults};
//! use oap_memory::project::project;
//! use oap_memory::{Profile, TrustLevel};
//! use serde_json::json;
//!
//! // An item is read, its text cut at personal data, and all of it committed to in one SD-JWT.
//! let (random, now) = (Seeded::new(1), "2026-05-01T12:00:00Z".parse::<Timestamp>()?);
//! let owner = Signer::from_seed("did:web:user.example#key-1".parse()?, &[7; 32])?;
//! let scope: ScopeId = "personal".parse()?;
//! let item = json!({"kind": "fact", "content": {"text": "Tea at nine, write to ann@b.example"}});
//! let body = Body::parse(&item, &Defaults { principal: owner.did(), scope: &scope, now })?;
//! let (item_id, receipt) = (ItemId::new(now, &random), ReceiptId::new(now, &random));
//! let place = Place { item_id, seq: 0, event: Event::Capture, at: now, prev: None, receipt };
//! let text = segments(body.text.as_deref().unwrap_or_default(), &People::none());
//! let committed = Committed::sign(&body, &text, &place, &owner, &random)?;
//!
//! // A grantee at trust level 2 is shown a part of it ...
//! let profiles = Profile::built_in();
//! let profile = profiles.iter().find(|p| p.name() == "oap.profile.projection.memory.v1").ok_or("no profile")?;
//! let shown = project(&committed, profile, TrustLevel::try_from(2)?, false)?;
//! assert_eq!(shown.item()["content"]["text"], "Tea at nine, write to [email]");
//!
//! // ... which is provably what the owner captured.
//! let key = VerificationKey::new(owner.kid().clone(), *owner.public());
//! let document = DidDocument::new(owner.did().clone(), vec![key]);
//! let claims = commitment::verify(&shown.sd_jwt(&committed)?, &document)?;
//! assert_eq!(claims.commitment(), committed.commitment());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used)]

pub mod answer;
pub mod bundle;
pub mod chain;
pub mod commitment;
pub mod deletion;
pub mod detect;
pub mod epistemic;
pub mod evidence;
pub mod filter;
pub mod form;
pub mod item;
pub mod limits;
pub mod lines;
pub mod log;
pub mod profile;
pub mod project;
mod reason;
pub mod receipt;
pub mod record;
pub mod sd_jwt;
pub mod size;
pub mod text;
pub mod tree;
pub mod unchecked;
pub mod vouch;

pub use chain::Link;
pub use commitment::Committed;
pub use filter::Filter;
pub use item::{Body, Confidence, Kind, Sensitivity};
pub use profile::{Profile, TrustLevel};
pub use receipt::Receipt;
pub use record::{Head, ItemRecord, Status};

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
//! - [`filter`], [`text`]: what a grant selects, and the words that are matched
//! - [`answer`], [`evidence`], [`deletion`], [`form`], [`unchecked`]: what the receiver checks, and what it does not
//! - [`bundle`]: what changes house

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
pub use record::{Head, Status, Whole};

//! From a verified grant to an answer (protocol sections 0, 5 and 6): a grant is a view, and an answer is a function of it.
//!
//! Pure functions: no I/O, no clock, no hidden randomness. Items are loaded by a closure, time and keys come in as arguments.
//!
//! - [`ccc`], [`bridge`], [`gate`]: what may leave at all
//! - [`view`], [`item`], [`allowance`]: all that a grantee can learn, and how much of it may still be disclosed
//! - [`preview`]: the same for the owner, before a grant is given; nothing is answered from it
//! - [`query`], [`rank`], [`vector`], [`answer`], [`mod@bundle`]: what a question finds in a view, or all of it
//! - [`mod@respond`]: from an answer and its durable receipt to the bytes that leave
//!
//! ```
//! use oap_exchange::rank::{Document, Index};
//! use oap_memory::Kind;
//! use oap_memory::text::Language;
//!
//! // What two grantees are shown of one item: the second sees its spans hidden.
//! let captured_at = "2026-05-01T12:00:00Z".parse()?;
//! let ranks = |texts: [&str; 2], question: &str| {
//!     let documents = texts.map(|text| Document { text, kind: Kind::Fact, captured_at });
//!     Index::build(&documents, Language::English).score(question)
//! };
//! let trusted = ["Write to ann@mail.example about tea", "The kitchen is painted"];
//! let known = ["Write to [email] about tea", "The kitchen is painted"];
//!
//! // A question is matched with what is shown, so that it cannot find out what is hidden.
//! assert!(ranks(trusted, "ann")[0] > 0.0);
//! assert_eq!(ranks(known, "ann"), [0.0, 0.0]);
//! assert!(ranks(known, "tea")[0] > ranks(known, "tea")[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used)]

pub mod allowance;
pub mod answer;
pub mod bridge;
pub mod bundle;
pub mod ccc;
#[cfg(doctest)]
mod forgeries;
pub mod gate;
pub mod item;
pub mod limits;
pub mod preview;
pub mod query;
pub mod rank;
pub mod respond;
mod slice;
pub mod vector;
pub mod view;

pub use allowance::Allowance;
pub use answer::Answer;
pub use preview::Preview;
pub use query::Query;
pub use respond::{Durable, respond};
pub use slice::{Model, Setting, ViewError};
pub use vector::Vector;
pub use view::View;

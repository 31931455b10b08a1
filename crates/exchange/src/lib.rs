//! From a verified grant to an answer (protocol sections 0, 5 and 6): a grant is a view, and an answer is a function of it.
//!
//! Pure functions: no I/O, no clock, no hidden randomness. Items are loaded by a closure, time and keys come in as arguments.
//!
//! - [`ccc`], [`bridge`], [`gate`]: what may leave at all
//! - [`view`], [`item`], [`allowance`]: all that a grantee can learn, and how much of it may still be disclosed
//! - [`Renewal`], [`Step`]: how a view follows the changes of items
//! - [`WrittenItems`]: items that were written out, for the next answer
//! - [`preview`]: the same for the owner, before a grant is given; nothing is answered from it
//! - [`query`], [`rank`], [`vector`], [`answer`], [`mod@bundle`]: what a question finds in a view, or all of it
//! - [`changes`]: what became of a view since a subscriber last said what it has
//! - [`mod@respond`]: from an answer and its durable receipt to the bytes that leave
//!
//! ```
//! use oap_exchange::rank::{Document, Index};
//! use oap_identity::ItemId;
//! use oap_memory::Kind;
//! use oap_memory::text::Language;
//!
//! // What two grantees are shown of one item: the second sees its spans hidden.
//! let captured_at = "2026-05-01T12:00:00Z".parse()?;
//! let items = [[1; 16], [2; 16]].map(ItemId::from_bytes);
//! let ranks = |texts: [&str; 2], question: &str| {
//!     let document = |n: usize| Document { item: items[n], text: texts[n], kind: Kind::Fact, captured_at };
//!     let documents = [document(0), document(1)];
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
pub mod changes;
mod corpus;
mod dates;
mod days;
#[cfg(doctest)]
mod forgeries;
pub mod gate;
pub mod item;
mod lens;
pub mod limits;
mod member;
pub mod preview;
pub mod query;
pub mod rank;
mod renewal;
pub mod respond;
mod setting;
mod slice;
mod turns;
pub mod vector;
pub mod view;
mod written;

pub use allowance::Allowance;
pub use answer::{Answer, Found};
pub use corpus::Corpus;
pub use member::Version;
pub use preview::Preview;
pub use query::Query;
pub use renewal::{Renewal, Step};
pub use respond::{Durable, respond};
pub use setting::{Embed, Model, Setting, ViewError};
pub use vector::Vector;
pub use view::View;
pub use written::{MAX_WRITTEN, WrittenItems};

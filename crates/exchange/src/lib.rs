//! From a verified grant to an answer (protocol sections 0, 5 and 6): a grant is a view, and an answer is a function of it.
//!
//! Pure functions: no I/O, no clock, no hidden randomness. Items are loaded by a closure, time and keys come in as arguments.
//!
//! - [`ccc`], [`bridge`], [`gate`]: what may leave at all
//! - [`view`], [`item`], [`allowance`]: all that a grantee can learn, and how much of it may still be disclosed
//! - [`preview`]: the same for the owner, before a grant is given; nothing is answered from it
//! - [`query`], [`rank`], [`vector`], [`answer`], [`mod@bundle`]: what a question finds in a view, or all of it
//! - [`mod@respond`]: from an answer and its durable receipt to the bytes that leave

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

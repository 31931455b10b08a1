//! From a verified grant to an answer (protocol sections 0, 5 and 6): a grant is a view, and an answer is a function of it.
//!
//! Pure functions: no I/O, no clock, no hidden randomness. Items are loaded by a closure, time and keys come in as arguments.
//!
//! - [`ccc`], [`bridge`], [`gate`]: what may leave at all
//! - [`view`], [`allowance`]: all that a grantee can learn, and how much of it may still be disclosed
//! - [`query`], [`rank`], [`vector`], [`answer`]: what a question finds in a view
//! - [`respond`]: from an answer to the bytes that leave

#![warn(clippy::unwrap_used)]

pub mod allowance;
pub mod answer;
pub mod bridge;
pub mod ccc;
pub mod gate;
pub mod limits;
pub mod query;
pub mod rank;
pub mod respond;
pub mod vector;
pub mod view;

pub use allowance::Allowance;
pub use answer::Answer;
pub use query::Query;
pub use vector::Vector;
pub use view::View;

//! Worlds: what an owner may have captured and granted and what a grantee may ask, made from a seed.

mod planted;

pub use planted::{Planted, Span, leaves};

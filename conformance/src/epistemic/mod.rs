//! RFC 0010 appendix A, on finite models.
//!
//! - [`model`]: worlds, one equivalence relation an agent, a valuation (A.1); confidence for belief (A.2)
//! - [`formula`]: K, B, possession, everyone knows, common knowledge (A.2 to A.4), and their truth at every world
//! - [`update`]: events that agents see or do not see; a grant, an acknowledgement, a joint receipt (A.5 to A.8)
//! - [`decode`]: the propositions that an item's structured content states (A.1)
//!
//! **What the appendix leaves out.** Two of its statements need a condition that it does not state, and the tests show
//! both sides. Corollary A.6.1 (no spurious knowledge) holds where the disclosed and the withheld propositions are
//! independent of each other for the grantee: if the grantee knows that `q` implies `p`, disclosing `q` discloses `p`.
//! Theorem 2 (no common knowledge from one grant) does not hold of the update that A.5 writes down, in which everybody
//! knows that the grant arrived; it holds where the granter considers it possible that it did not, which is the
//! situation that A.8 describes. [`update::grant`] is that event.

pub mod decode;
pub mod formula;
pub mod model;
pub mod update;

pub use formula::Formula;
pub use model::{Agent, Model, Partition, Proposition};

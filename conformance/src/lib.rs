//! Whether a memory gateway does what OAP RFC 0010 says.
//!
//! - [`epistemic`]: appendix A as finite Kripke models: what a grantee knows, believes and possesses, before and after
//! - [`possession`]: probe P1 (A.3) on the evidence of one grantee: for every item, the grant, the receipt, the chain
//! - [`receipt`]: Conformance Receipts, made of a report of the protocol's suite and checked (RFC 0019 section 7)
//! - [`model`]: what a gateway must answer in any world, and the rules that say so
//! - [`probe`]: probes of a gateway over HTTP, and the report of a run
//! - [`world`]: items, grants and queries made from a seed, with a word of its own in every place
//!
//! Uses what any grantee has: documents, answers, receipts. Never a store, never the gateway's own code.
//!
//! ```
//! use oap_conformance::epistemic::{Formula, Model, Partition};
//!
//! // Two worlds: in the first the proposition holds. The granter tells them apart, the grantee does not.
//! let model = Model::new(2)
//!     .agent("granter", Partition::seeing(2))
//!     .agent("grantee", Partition::blind(2))
//!     .proposition("p", vec![true, false]);
//! let known = Formula::holds("p").known_by("grantee");
//! assert!(model.is_true(&Formula::holds("p").known_by("granter"), 0));
//! assert!(!model.is_true(&known, 0));
//!
//! // An item that is certain makes it known; one that is less makes it believed, and possessed.
//! assert!(model.clone().deliver("grantee", "p", 1.0).is_true(&known, 0));
//! let told = model.deliver("grantee", "p", 0.7);
//! assert!(told.possesses("grantee", "p") && !told.is_true(&known, 0));
//! assert!(told.is_true(&Formula::holds("p").believed_by("grantee"), 0));
//! ```

#![warn(clippy::unwrap_used)]

pub mod epistemic;
pub mod model;
pub mod possession;
pub mod probe;
pub mod receipt;
pub mod world;

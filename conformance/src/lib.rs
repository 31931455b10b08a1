//! Whether a memory gateway does what OAP RFC 0010 says.
//!
//! - [`epistemic`]: appendix A as finite Kripke models: what a grantee knows, believes and possesses, before and after
//! - [`possession`]: probe P1 (A.3) on the evidence of one grantee: for every item, the grant, the receipt, the chain
//! - [`receipt`]: Conformance Receipts, made of a report of the protocol's suite and checked (RFC 0019 section 7)
//! - [`probe`]: probes of a gateway over HTTP, and the report of a run
//!
//! Uses what any grantee has: documents, answers, receipts. Never a store, never the gateway's own code.

#![warn(clippy::unwrap_used)]

pub mod epistemic;
pub mod possession;
pub mod probe;
pub mod receipt;

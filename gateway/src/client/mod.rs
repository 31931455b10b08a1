//! The clients of `oap-client` with a home: its keys, its socket, its store.

pub mod home;
pub mod prover;

pub use home::{Caller, HomeClient};
pub use prover::HomeProver;

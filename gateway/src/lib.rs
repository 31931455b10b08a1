//! A principal's memory gateway after OAP RFC 0010: services, HTTP and command line.
//!
//! The way of one query is in [`service::query`]; the rules of the protocol are in the rooms below
//! (`oap-identity`, `oap-memory`, `oap-grants`, `oap-exchange`, `oap-manifest`, `oap-store`).

#![warn(clippy::unwrap_used)]

pub mod cli;
pub mod client;
pub mod embedding;
pub mod error;
#[cfg(doctest)]
mod forgeries;
pub mod http;
pub mod limits;
pub mod service;
pub mod state;
pub mod system;

pub use error::Error;
pub use state::gateway::{Gateway, Parts};
pub use system::config::Config;

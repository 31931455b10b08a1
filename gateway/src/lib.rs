//! A principal's memory gateway after OAP RFC 0010: services, HTTP and command line.
//!
//! The way of one query is in [`service::query`]; the rules of the protocol are in the rooms below
//! (`oap-identity`, `oap-memory`, `oap-grants`, `oap-manifest`, `oap-store`).

#![warn(clippy::unwrap_used)]

pub mod address;
pub mod ambient;
pub mod catalog;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod embedding;
pub mod endorsed;
pub mod error;
pub mod files;
pub mod front;
pub mod gateway;
pub mod home;
pub mod http;
pub mod keyring;
pub mod ledger;
pub mod limits;
pub mod lock;
pub mod outlook;
pub mod panics;
pub mod prometheus;
pub mod proofs;
pub mod refusals;
pub mod restore;
pub mod serve;
pub mod service;
pub mod shelf;
pub mod socket;
pub mod tables;
pub mod tls;
pub mod transfer;
pub mod views;

pub use config::Config;
pub use error::Error;
pub use gateway::{Gateway, Parts};

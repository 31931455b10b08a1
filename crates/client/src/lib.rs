//! The clients of a memory gateway: what an owner or a grantee asks it with.
//!
//! An [`Endpoint`] is a type that says where it is, who may enter, what goes in and what comes out.

#![warn(clippy::unwrap_used)]

pub mod endpoint;
pub mod permission;
pub mod place;

pub use endpoint::Endpoint;
pub use permission::Permission;
pub use place::Place;

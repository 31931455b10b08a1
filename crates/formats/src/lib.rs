//! What other programs write and read.
//!
//! No store, no network, no clock; files are read where they stand.
//!
//! - [`import`]: what other vendors export, as items
//! - [`sources`]: their files, folders and archives
//! - [`export`]: items in the forms that other programs read
//! - [`limits`]: what foreign files may take

#![warn(clippy::unwrap_used)]

pub mod export;
pub mod import;
pub mod limits;
pub mod sources;

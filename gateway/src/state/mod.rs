//! What a running gateway holds: caches of the store that can only be behind it, and the transactions that decide.

pub(crate) mod chains;
pub mod clock;
pub mod commits;
pub mod contacts;
pub mod decided;
pub mod endorsed;
pub mod erasures;
pub mod gateway;
pub mod grant_book;
pub mod heads;
pub mod holds;
pub mod jobs;
pub mod keyring;
pub(crate) mod obligations;
pub mod owner;
pub(crate) mod published;
pub mod refusals;
pub mod replay;
pub mod schema;
pub(crate) mod sources;
pub mod spent;
pub(crate) mod upgrade;
pub mod views;

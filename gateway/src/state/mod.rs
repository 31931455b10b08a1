//! What a running gateway holds: caches of the store that can only be behind it, and the transactions that decide.

pub mod clock;
pub mod commits;
pub mod endorsed;
pub mod gateway;
pub mod grant_book;
pub mod heads;
pub mod jobs;
pub mod keyring;
pub mod owner;
pub mod refusals;
pub mod replay;
pub mod schema;
pub mod views;

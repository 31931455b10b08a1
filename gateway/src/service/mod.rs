//! What a gateway does, for whoever asks: HTTP handlers and the command line call the same functions.

mod align;
pub mod audit;
pub mod backup;
pub mod budget;
pub mod conformance;
pub mod deletion;
pub mod doctor;
pub(crate) mod doomed;
pub mod erasures;
pub mod export;
pub mod gates;
pub mod grants;
pub mod holds;
pub mod import;
pub mod incidents;
pub mod items;
pub mod keys;
pub(crate) mod lists;
pub mod memorization;
pub mod owner;
pub mod query;
pub mod replay;
pub(crate) mod sources;
pub mod status;
pub mod sweep;

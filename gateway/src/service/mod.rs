//! What a gateway does, for whoever asks: HTTP handlers and the command line call the same functions.

mod align;
pub mod audit;
pub mod backup;
pub(crate) mod brief;
pub mod budget;
pub mod bulk;
pub mod conformance;
pub(crate) mod cursor;
pub mod deletion;
pub mod doctor;
pub(crate) mod doomed;
pub mod export;
pub mod former;
pub mod gates;
pub mod grants;
pub mod history;
pub mod holds;
pub mod import;
pub mod incidents;
pub mod items;
pub mod jobs;
pub mod keys;
pub(crate) mod lists;
pub mod memorization;
pub(crate) mod outlook;
pub mod prefix;
pub mod prove;
pub mod query;
pub mod resealing;
pub mod restored;
pub mod search;
pub mod selection;
pub mod status;
pub mod sweep;
pub mod who;

pub use crate::state::owner;

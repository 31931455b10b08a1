//! What is wrong with the list of what was ended for good.

use oap_identity::json;
use oap_identity::signed::SignedError;
use std::io;

/// What is wrong with a list.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] io::Error),
    /// One of its lines does not hold.
    #[error("line {0}: {1}")]
    Line(usize, LineError),
}

/// What is wrong with a line of a list.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Longer than any that is written.
    #[error("too long")]
    TooLong,
    /// Not of the expected shape.
    #[error(transparent)]
    Json(#[from] json::JsonError),
    /// Another line stood before it, or was taken out.
    #[error("it does not follow the line before it")]
    Order,
    /// Somebody else wrote it.
    #[error("it is not one of this gateway's: its mac does not hold")]
    Mac,
    /// Written by a later version of the program.
    #[error("version {0}; this program reads up to {1}")]
    Version(u32, u32),
    /// Nothing says who wrote it.
    #[error("it has no mac")]
    NoMac,
    /// An older program's line whose key is none of the principal's.
    #[error("it is signed by an unknown key")]
    UnknownKey,
    /// An older program's line whose signature does not hold.
    #[error(transparent)]
    Signature(#[from] SignedError),
}

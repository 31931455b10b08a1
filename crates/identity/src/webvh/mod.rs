//! did:webvh 1.0 (<https://identity.foundation/didwebvh/v1.0/>): a DID whose document has a history that proves itself.
//!
//! The identifier begins with the hash of the first entry of a log (the SCID); each entry names the hash of the one before it and is signed by a
//! key that the entries before it allow. So whoever has the host cannot give the DID other keys, and which key was good *at a time* has an
//! answer: [`DidDocument::key_at`](crate::DidDocument::key_at). Pure functions: the bytes come in, and so does the time.
//!
//! - [`mod@log`]: the log, entry by entry, each checked before the next is looked at
//! - [`parameters`]: what an entry says of those that follow it
//! - [`proof`]: a signature of `eddsa-jcs-2022`
//! - [`witness`]: the approvals of witnesses, where the log asks for them
//! - [`history`]: the keys of all versions, each with its beginning and its end
//!
//! What is not taken: a log with a part that does not hold (the specification would let its beginning stand), `null` for a parameter, proofs that end, names in
//! other letters than ASCII. Watchers are not asked.

pub mod history;
pub mod log;
pub mod parameters;
pub mod proof;
pub mod witness;

pub use history::History;
pub use log::Log;

use crate::document::DocumentError;
use crate::json::JsonError;
use multibase::Base;
use sha2::{Digest, Sha256};

/// Longest log, in bytes.
pub const MAX_LOG: usize = 256 * 1024;
/// Most entries of a log.
pub const MAX_ENTRIES: usize = 256;
/// Most proofs of one entry; each is checked.
pub const MAX_PROOFS: usize = 2;
/// Most keys that may sign an entry, and most hashes of those that may sign the next one.
pub const MAX_UPDATE_KEYS: usize = 16;
/// Most witnesses at a time.
pub const MAX_WITNESSES: usize = 16;
/// Longest list of the proofs of witnesses, in bytes.
pub const MAX_WITNESS_FILE: usize = 256 * 1024;
/// Most proofs of witnesses that are looked at; a list with more is refused.
pub const MAX_WITNESS_PROOFS: usize = 256;

/// Why a log was refused. No text quotes it; the number is that of the entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// More than [`MAX_LOG`] bytes.
    #[error("the log has more than {MAX_LOG} bytes")]
    TooLong,
    /// No entry, or more than [`MAX_ENTRIES`].
    #[error("the log must have 1 to {MAX_ENTRIES} entries")]
    Entries,
    /// Checking it was broken off by a fault of ours.
    #[error("checking the log was broken off by a fault of this program")]
    Panicked,
    /// An entry that is no JSON that the wire allows, or not of the shape of an entry.
    #[error("entry {0}: {1}")]
    Json(usize, JsonError),
    /// A parameter that must not be so; its name.
    #[error("entry {0}: parameters.{1} is not as it must be")]
    Parameter(usize, &'static str),
    /// Another number than that of its place, or no hash.
    #[error("entry {0}: versionId must be the number of its place, a dash and a hash")]
    VersionId(usize),
    /// The hash is not that of the entry.
    #[error("entry {0}: versionId is not the hash of the entry behind the one before it")]
    Hash(usize),
    /// The identifier is not the hash of the first entry.
    #[error("the SCID is not the hash of the first entry")]
    Scid,
    /// A time that is none, not later than that of the entry before, or later than now.
    #[error(
        "entry {0}: versionTime must be UTC, later than that of the entry before, and not later than now"
    )]
    Time(usize),
    /// A document of another DID, or one that moved where it must not.
    #[error(
        "entry {0}: state.id must be of this SCID, and the same as before unless the DID is portable and names the former one"
    )]
    State(usize),
    /// The document of an entry is none.
    #[error("entry {0}: state: {1}")]
    Document(usize, Box<DocumentError>),
    /// No proof, or more than [`MAX_PROOFS`].
    #[error("entry {0}: proof must be a list of 1 to {MAX_PROOFS}")]
    Proofs(usize),
    /// A proof that does not hold.
    #[error("entry {0}: a proof must be of eddsa-jcs-2022 and hold")]
    Proof(usize),
    /// A key that may not sign this entry.
    #[error("entry {0}: signed by a key that may not")]
    NotAuthorized(usize),
    /// An entry behind the one that ended the DID.
    #[error("entry {0}: the DID was deactivated before it")]
    Over(usize),
    /// No entry has a document of this DID as it is now.
    #[error("the last entry is of another DID")]
    OtherDid,
    /// The log asks for witnesses, and their list is not there or is none.
    #[error(
        "did-witness.json must be a list of what witnesses signed, with at most {MAX_WITNESS_PROOFS} proofs"
    )]
    WitnessFile,
    /// Fewer witnesses than the log asks for.
    #[error("entry {0}: fewer witnesses approved of it than the log asks for")]
    Witnesses(usize),
    /// It is no continuation of the log that was read before.
    #[error("the log is not a continuation of the one that was read before")]
    Rewritten,
}

/// `base58btc(multihash(sha2-256))` of bytes: the one form of a hash in 1.0.
fn multihash(bytes: &[u8]) -> String {
    let mut hash = vec![0x12, 0x20];
    hash.extend_from_slice(&Sha256::digest(bytes));
    let mut text = multibase::encode(Base::Base58Btc, hash);
    // The multibase prefix, `z`.
    text.remove(0);
    text
}

//! What a member of an item must be.

use super::{MAX_DERIVED, MAX_LABELS, MAX_SHORT, MAX_TTL_DAYS};
use crate::size::{MAX_DEPTH, MAX_PARTS};
use oap_identity::did::DidError;
use oap_identity::ids::IdError;
use oap_identity::time::TimeError;

/// What a member must be, as its writer is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Expected {
    /// It is not there.
    #[error("is required")]
    Required,
    /// Not an object.
    #[error("must be an object")]
    Object,
    /// Not text.
    #[error("must be text")]
    Text,
    /// Not true or false.
    #[error("must be true or false")]
    Boolean,
    /// Not a number.
    #[error("must be a number")]
    Number,
    /// Beyond the bytes that are read.
    #[error("at most {0} bytes")]
    Bytes(usize),
    /// Not an array of text.
    #[error("must be an array of text")]
    Texts,
    /// More labels than an item has.
    #[error("at most {MAX_LABELS} labels")]
    Labels,
    /// Not an array of item ids.
    #[error("must be an array of item ids")]
    ItemIds,
    /// Made from more items than an item is.
    #[error("at most {MAX_DERIVED} item ids")]
    Sources,
    /// Not a number of days.
    #[error("must be a whole number from 1 to {MAX_TTL_DAYS}")]
    Days,
    /// Nested too deeply.
    #[error("an item is nested at most {MAX_DEPTH} levels deep")]
    Depth,
    /// Of more parts than an item has.
    #[error("an item has at most {MAX_PARTS} members and elements; write lists as text")]
    Parts,
    /// Of parts that would take far more than they say.
    #[error("too many small or deeply nested members for its size; write lists as text")]
    SmallParts,
    /// The names of a contact (RFC 0005 section 3.4).
    #[error("names of a contact must be an object")]
    ContactNames,
    /// A list of a contact.
    #[error("{0} of a contact must be an array of objects")]
    ContactList(&'static str),
    /// A name below `extensions` that is nobody's.
    #[error("each name must be a DID or a reverse domain")]
    ExtensionName,
    /// A name like the machinery of an SD-JWT (RFC 9901 section 4.1).
    #[error("the member name {0:?} is reserved")]
    Reserved(String),
    /// Not a short text.
    #[error(transparent)]
    Short(#[from] NotShort),
    /// Not a confidence.
    #[error(transparent)]
    Confidence(#[from] NotConfidence),
    /// None of few values.
    #[error(transparent)]
    OneOf(#[from] NotOneOf),
    /// Not a scope.
    #[error(transparent)]
    Scope(#[from] DidError),
    /// Not an id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// Not a time.
    #[error(transparent)]
    Time(#[from] TimeError),
}

/// Not a short text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be text of 1 to {MAX_SHORT} characters, none of them a control character")]
pub struct NotShort;

/// Not a confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be from 0 to 1")]
pub struct NotConfidence;

/// None of the values of a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of {}", .0.join(", "))]
pub struct NotOneOf(pub &'static [&'static str]);

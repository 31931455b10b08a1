//! Entries: the dialect of OpenIntent RFC-0015 (docs/openintent.md), read strictly and written out.
//!
//! An entry is a projection of an item and its record. Its value is opaque: it is kept as the text that came, so that big integers, the
//! order of members and white space come back as they were sent.

mod asked;
mod context;
mod members;
mod opaque;
mod shared;
mod shown;
mod ttl;

pub use asked::{Change, Filter, Match, New, check_together, entries_of};
pub use context::{Context, EXTENSION, Priority, Scope};
pub use opaque::Opaque;
pub use shared::{GivenPermissions, SetPermissions};
pub use shown::{Entry, EpisodicCount, Namespace, Page, Permissions, Summary, TierCount, WorkingCount};
pub use ttl::Ttl;

use oap_identity::json::JsonError;
use oap_memory::item::{MAX_LABELS, MAX_TTL_DAYS, NotShort};

/// Largest value of an entry, in bytes of its JSON (RFC-0015 1.3).
pub const MAX_VALUE: usize = 64 << 10;
/// Most entries of one answer (RFC-0015 4.1), and of one batch.
pub const MAX_ENTRIES: usize = 1000;
/// Entries of an answer where the caller does not say (RFC-0015 4.1).
pub const USUAL_ENTRIES: usize = 100;
/// Most bytes of the values of one answer, unless it is one; the rest is left for the next page.
pub const MAX_VALUES: usize = 4 << 20;

/// Most episodic entries of an agent (RFC-0015 2.2), where its owner says no other number; beyond it the one that is worth least goes.
pub const MAX_EPISODIC: usize = 1000;
/// Most working entries of an agent, where its owner says no other number; beyond it nothing is written.
pub const MAX_WORKING: usize = 1000;
/// Most semantic entries of an agent, where its owner says no other number; beyond it nothing is written.
pub const MAX_SEMANTIC: usize = 10_000;

/// Why a request of the dialect was refused. The text names the field and what it must be, and never repeats what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Not JSON, or no object.
    #[error("{0}")]
    NotJson(JsonError),
    /// Not of the shape.
    #[error(transparent)]
    Shape(#[from] JsonError),
    /// A field out of its bounds.
    #[error("{0}: {1}")]
    Field(&'static str, Must),
    /// A value beyond [`MAX_VALUE`].
    #[error(
        "value: at most {MAX_VALUE} bytes of JSON; keep what is larger elsewhere, and its name here (attachment_id)"
    )]
    TooLarge,
}

/// What a field must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Must {
    /// Something.
    #[error("is required")]
    Required,
    /// A tier of its own.
    #[error("must be working or episodic")]
    Own,
    /// What it is already.
    #[error("must be that of the entry that is there; delete that one to make another")]
    Kept,
    /// What the address says.
    #[error("must be left out, or that of the address")]
    Address,
    /// Short text.
    #[error(transparent)]
    Short(#[from] NotShort),
    /// An object.
    #[error("must be an object")]
    Object,
    /// What every reader of JSON understands alike.
    #[error(
        "must be JSON with no member twice, no lone surrogate, and at most {} levels",
        oap_identity::json::MAX_DEPTH
    )]
    Sound,
    /// Not so many tags.
    #[error("at most {MAX_LABELS}")]
    Tags,
    /// A life.
    #[error(
        "must be null, task_lifetime, or duration: and a duration of ISO 8601 in weeks, days, hours, minutes and seconds, such as duration:PT24H, of at most {MAX_TTL_DAYS} days"
    )]
    Ttl,
    /// A task to live as long as.
    #[error("is needed where ttl is task_lifetime")]
    Task,
    /// A time.
    #[error("must be a time of RFC 3339, such as 2026-06-30T23:59:59Z")]
    Time,
    /// A later time.
    #[error("must be later than now")]
    Passed,
    /// Text that is true or false.
    #[error("must be true or false")]
    Boolean,
    /// A number of entries.
    #[error("must be 1 to {MAX_ENTRIES}")]
    Number,
    /// So many entries.
    #[error("must be 1 to {MAX_ENTRIES} entries")]
    Batch,
    /// One key twice in a batch.
    #[error("one namespace and key appears twice")]
    Twice,
    /// Whose entries.
    #[error("is needed, but where memory_type is semantic or scope.task_id is given")]
    Whose,
    /// Something that selects.
    #[error("must select: give one parameter at least")]
    Selector,
    /// No page of what is erased.
    #[error("must be left out, and offset too: everything that matches is erased, 1000 entries a call")]
    All,
    /// A number of entries that an agent may have.
    #[error("at most {}", crate::terms::MAX_CAPACITY)]
    Capacity,
    /// So much room.
    #[error("must be 1 to {}", crate::task::MAX_TASK_KB)]
    Kilobytes,
    /// Not so many namespaces.
    #[error("at most {}", crate::task::MAX_NAMESPACES)]
    Namespaces,
    /// No more text.
    #[error("at most {} bytes", crate::task::MAX_DESCRIPTION)]
    Description,
    /// Something that is kept here.
    #[error("is not kept here; leave it out")]
    Empty,
    /// Something that is there.
    #[error("must name one that is there")]
    There,
    /// An agent that is there.
    #[error("must be the name or the DID of one of the owner's agents that is in force")]
    Agent,
    /// Each agent once, and not so many.
    #[error("must name each agent once, at most {}", crate::namespaces::MAX_ALLOWED)]
    OneAgent,
    /// Not so many agents.
    #[error("a task is assigned to at most {} agents, one after the other", crate::task::MAX_ASSIGNED)]
    Assigned,
    /// An archive that the intent asks for.
    #[error("must be true: the guardrails of the intent ask for the archive")]
    Archive,
    /// What others wrote by.
    #[error("must stay true: another agent is or was on the task, and wrote by that")]
    Promised,
    /// Words to look for.
    #[error("must have words, at most {} bytes", oap_exchange::query::MAX_QUERY)]
    Words,
    /// The name of an event.
    #[error("must be the name of an event, such as memory.updated or task.completed")]
    Event,
    /// A time from which there are not so many events.
    #[error("must be given, or later: before what comes next are more events than one answer looks through")]
    Later,
    /// A tier that others see.
    #[error("must not be restricted where memory_type is semantic, which other agents see; use episodic")]
    Shared,
}

pub(crate) fn refused<T>(field: &'static str, must: impl Into<Must>) -> Result<T, EntryError> {
    Err(EntryError::Field(field, must.into()))
}

//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::{age, answers, arguments, entry, namespaces, scoring, task, terms};
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: usize, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value: value as u64, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row("arguments::MAX_TAGS", arguments::MAX_TAGS, "tags", "a call of a memory tool"),
    row("arguments::MAX_KINDS", arguments::MAX_KINDS, "kinds", "a call of a memory tool"),
    row("arguments::MAX_TOPIC", arguments::MAX_TOPIC, "characters", "a topic"),
    row("arguments::MAX_SOURCE", arguments::MAX_SOURCE, "characters", "the type and the ref of a source"),
    row(
        "arguments::MAX_RELATIONSHIP",
        arguments::MAX_RELATIONSHIP,
        "characters",
        "the relationship of a link",
    ),
    row(
        "arguments::MAX_IRI",
        arguments::MAX_IRI,
        "characters",
        "an address elsewhere that an item is linked to",
    ),
    row("arguments::MAX_IDEMPOTENCY_KEY", arguments::MAX_IDEMPOTENCY_KEY, "characters", "an idempotency_key"),
    row("arguments::MAX_NEAR", arguments::MAX_NEAR, "items", "near of memory_recall"),
    row("age::MAX_AGE_TEXT", age::MAX_AGE_TEXT, "bytes", "max_age of memory_recall"),
    row("age::MAX_AGE_DAYS", age::MAX_AGE_DAYS as usize, "days", "max_age of memory_recall"),
    row(
        "scoring::MAX_STEPS",
        scoring::MAX_STEPS as usize,
        "links",
        "between an item and what a memory_recall names as near; beyond it it is not near",
    ),
    row(
        "scoring::MAX_FOLLOWED",
        scoring::MAX_FOLLOWED,
        "links",
        "those that one memory_recall follows from what it names as near; what lies behind further ones is not near",
    ),
    row("arguments::MAX_SPARQL", arguments::MAX_SPARQL, "bytes", "a SPARQL query of memory_query"),
    row("arguments::MAX_FACTS", arguments::MAX_FACTS, "facts", "the answer of a memory tool"),
    row("answers::MAX_TOPICS", answers::MAX_TOPICS, "topics", "what memory_status names"),
    row(
        "answers::MAX_LINKS",
        answers::MAX_LINKS,
        "links",
        "those of one author that begin at an item, or end there; beyond it 409",
    ),
    row(
        "answers::MAX_LINKS_TOLD",
        answers::MAX_LINKS_TOLD,
        "links",
        "an item in an answer; of each direction",
    ),
    row(
        "answers::MAX_COMPACTED",
        answers::MAX_COMPACTED,
        "items",
        "one memory_compact; the rest is the next one's",
    ),
    row("entry::MAX_VALUE", entry::MAX_VALUE, "bytes", "the value of an entry; beyond it 413"),
    row("entry::MAX_ENTRIES", entry::MAX_ENTRIES, "entries", "an answer, a batch, a deletion by filter"),
    row(
        "entry::MAX_EPISODIC",
        entry::MAX_EPISODIC,
        "entries",
        "the episodic tier of an agent whose owner says no other number; beyond it one is evicted, or 429 where all are pinned",
    ),
    row(
        "entry::MAX_WORKING",
        entry::MAX_WORKING,
        "entries",
        "the working tier of an agent whose owner says no other number; beyond it 429",
    ),
    row(
        "entry::MAX_SEMANTIC",
        entry::MAX_SEMANTIC,
        "entries",
        "the semantic tier of an agent whose owner says no other number; beyond it 429",
    ),
    row(
        "entry::MAX_VALUES",
        entry::MAX_VALUES,
        "bytes",
        "the values of one answer, unless it is one; the rest is the next page",
    ),
    row(
        "namespaces::MAX_SHARED",
        namespaces::MAX_SHARED,
        "namespaces",
        "those that have permissions; beyond it 409",
    ),
    row(
        "namespaces::MAX_ALLOWED",
        namespaces::MAX_ALLOWED,
        "agents",
        "the permissions of a namespace; beyond it 422",
    ),
    row(
        "task::MAX_DESCRIPTION",
        task::MAX_DESCRIPTION,
        "bytes",
        "the description of an intent or a task; beyond it 422",
    ),
    row(
        "task::MAX_ASSIGNED",
        task::MAX_ASSIGNED,
        "agents",
        "those that a task is ever assigned to; beyond it 422",
    ),
    row("task::MAX_NAMESPACES", task::MAX_NAMESPACES, "namespaces", "a list of a guardrail; beyond it 422"),
    row(
        "task::MAX_TASK_KB",
        task::MAX_TASK_KB as usize,
        "units of 1,024 bytes",
        "max_total_size_kb of a task; beyond it 422",
    ),
    row(
        "terms::MAX_CAPACITY",
        terms::MAX_CAPACITY as usize,
        "entries",
        "what an owner may let an agent have of a tier; beyond it 400",
    ),
    row(
        "terms::MAX_PINNED_NAMESPACES",
        terms::MAX_PINNED_NAMESPACES,
        "namespaces",
        "those of an agent whose episodic entries are never evicted; beyond it 400",
    ),
];

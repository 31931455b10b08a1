//! What binds a memory gateway (RFC 0010 and the sections that it leans on), and how far the probes see it.

/// A requirement.
#[derive(Debug, Clone, Copy)]
pub struct Requirement {
    /// Its id.
    pub id: &'static str,
    /// Where it stands.
    pub source: &'static str,
    /// What it asks for.
    pub text: &'static str,
    /// Why no probe can see it from outside, where that is so.
    pub unseen: Option<&'static str>,
}

const fn seen(id: &'static str, source: &'static str, text: &'static str) -> Requirement {
    Requirement { id, source, text, unseen: None }
}

const fn unseen(
    id: &'static str,
    source: &'static str,
    text: &'static str,
    why: &'static str,
) -> Requirement {
    Requirement { id, source, text, unseen: Some(why) }
}

/// Every requirement.
pub const ALL: &[Requirement] = &[
    seen("ME-01", "RFC 0010 3.5", "the projection profile is applied before any content leaves"),
    seen("ME-02", "RFC 0010 3.6", "every item carries a chain that proves it equals what was captured"),
    seen("ME-03", "RFC 0010 3.6", "a provenance log is kept for every item"),
    seen("ME-04", "RFC 0010 5.1", "tokens are short-lived, bound, and used over TLS alone"),
    seen("ME-05", "RFC 0010 5.2", "no embeddings to grantees by default"),
    seen("ME-06", "RFC 0010 6", "deletion covers items under live grants"),
    seen("ME-07", "RFC 0010 3.3", "a memory manifest is published"),
    seen(
        "ME-08",
        "RFC 0010 3.4",
        "grants are signed by the granter, name one grantee, hold for a time, and can be revoked",
    ),
    seen(
        "ME-09",
        "RFC 0010 3.5",
        "results are within the filter, ranked, and within max_results and max_items",
    ),
    seen("ME-10", "RFC 0010 3.7", "grants beyond the declared limits are refused"),
    seen("ME-12", "RFC 0010 A.3 P1", "whoever has an item has a grant, a receipt and a chain for it"),
    seen(
        "ME-13",
        "RFC 0010 A.6",
        "nothing outside the filter influences an answer; belief is passed on as belief",
    ),
    seen("ME-14", "RFC 0010 A.9", "confidential propositions reach nobody who may not have them"),
    unseen(
        "ME-15",
        "RFC 0010 A.11",
        "no membership inference",
        "a statistical property over many grantees; budgets are",
    ),
    unseen(
        "ME-16",
        "RFC 0010 A.11",
        "a canary audit before publishing",
        "the manifest declares it; its truth is the owner's",
    ),
    seen("PM-3", "protocol 1", "errors have error, message and request_id, and the matching status"),
    seen("PM-4", "protocol 1", "bodies are capped, depth is capped, duplicate keys are refused"),
    seen(
        "PM-5",
        "protocol 1",
        "answers have their media type, nosniff, a cache rule, and what a 401 and a 405 name",
    ),
    seen("ID-1", "protocol 2", "the DID document is published and names the key that signs"),
    seen("RC-1", "OAP-CORE 19.1", "every answer has a signed receipt in the principal's chain"),
    seen("RC-2", "protocol 8", "a grantee sees the receipts that name it and no others"),
    seen("IT-1", "RFC 0010 3.2", "items have their kind, content, provenance and attitude, as captured"),
    seen(
        "PR-1",
        "RFC 0007 3.3",
        "the normative profiles show at each level what their tables say, and no more",
    ),
    seen("CM-1", "protocol 4", "every part of an item is concealed with a salt of its own, of 128 bits"),
    seen("CO-09", "OAP-CORE 8.1", "TLS 1.3, and nothing without it"),
    seen("EX-1", "protocol 8", "a grantee's export is a projected bundle, for grants that allow it"),
    unseen("AR-1", "RFC 0010 5", "content is sealed at rest", "at rest nothing is asked over HTTP"),
    unseen(
        "TI-1",
        "protocol 9",
        "time tells nothing",
        "a network is noisier than what it would have to show; see the gateway's own tests",
    ),
];

/// The requirement of an id.
#[must_use]
pub fn of(id: &str) -> Option<&'static Requirement> {
    ALL.iter().find(|requirement| requirement.id == id)
}

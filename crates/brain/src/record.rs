//! What a graph is made of: the records that a caller sees, as a plain list.
//!
//! Whoever asks decides what stands in the list. Nothing else is ever looked at, so what a caller does not see cannot change an answer.

/// A record, as its caller sees it. What its caller does not see of it is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// Its IRI. A text that is no absolute IRI stands as `urn:oap:item:` and that text.
    pub id: String,
    /// What it says; `None` where that is hidden.
    pub content: Option<String>,
    /// What it is about.
    pub topic: Option<String>,
    /// Its labels.
    pub tags: Vec<String>,
    /// How far it is believed, 0 to 1.
    pub confidence: Option<f64>,
    /// Whose word it is, such as `agent_inferred`.
    pub level: Option<String>,
    /// The DID of whoever said it.
    pub author: Option<String>,
    /// Where it comes from: an address, a file, a conversation.
    pub source: Option<String>,
    /// Since when the record is there, whatever it said first, RFC 3339.
    pub learned_at: Option<String>,
    /// Which version of the record this is, from 1.
    pub version: Option<u32>,
    /// Since when this version stands, RFC 3339; where it is the first, since when the record is there.
    pub said_at: Option<String>,
    /// What it said before it was corrected, the oldest first.
    pub corrections: Vec<Former>,
    /// When it was taken back, RFC 3339. Such a record is history: it is no fact any more.
    pub retracted_at: Option<String>,
    /// Its relations to others.
    pub links: Vec<Link>,
    /// Whether its owner confirmed it; `None` where that is hidden.
    pub human_verified: Option<bool>,
    /// Who may see it: `private`, `local` or `shared`.
    pub scope: Option<String>,
}

/// What a record said before it was corrected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Former {
    /// Which version of the record it was.
    pub version: u32,
    /// What it said.
    pub content: String,
    /// The DID of whoever said it.
    pub author: Option<String>,
    /// Since when it was so, RFC 3339.
    pub learned_at: Option<String>,
    /// When it was corrected, RFC 3339.
    pub corrected_at: Option<String>,
}

/// A relation of a record to something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// What relates them, such as `supports`.
    pub relationship: String,
    /// To what.
    pub to: Target,
    /// The DID of whoever said so.
    pub author: Option<String>,
    /// Since when, RFC 3339.
    pub linked_at: Option<String>,
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A record, by its id. The link is shown only where that record is in the list too, and in force.
    Record(String),
    /// Anything else that has an IRI. Nothing fetches it.
    Elsewhere(String),
}

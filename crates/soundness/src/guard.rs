//! The poisoning guard: what in a text would order its reader, act, or leak (the lesson's "Memory poisoning"; ML-15).
//!
//! A text that an agent writes down is read by models later. The guard looks for what is written *to* a model: orders, words of a system's
//! message, marks of chat templates, calls of tools, hidden characters, encoded text that says any of it, pages' code, and addresses that
//! carry data away. It is a help and no boundary: what it lets through is still delimited, still at its level, and waits for the owner
//! before a grant reaches it. `docs/soundness.md` has what it measures at.
//!
//! Work is linear in the text's length, and each count has a bound.

mod blobs;
mod cues;
mod fold;
mod hidden;
mod markup;
mod orders;

pub use blobs::{MAX_BLOB, MAX_BLOBS};
pub use cues::MAX_CUES;

use fold::Folded;
use oap_agents::Level;
use oap_memory::closed_enum;
use oap_memory::item::MAX_TEXT;
use std::ops::Range;

/// Longest text that is judged, in bytes: as long as an item's may be. A longer one counts as hostile unread.
pub const MAX_JUDGED: usize = MAX_TEXT;
/// Most findings of one text, the first ones of the most severe.
pub const MAX_FINDINGS: usize = 32;
/// How deep text within encoded text is judged.
const MAX_DEPTH: usize = 2;

closed_enum! {
    /// What is wrong with a text.
    Kind {
        /// It tells its reader to take no notice of other instructions.
        Override = "override",
        /// It gives orders to an assistant.
        Directed = "directed",
        /// It makes its reader somebody else.
        Persona = "persona",
        /// It speaks as a system's message, or asks for it.
        SystemPrompt = "system_prompt",
        /// Marks of a chat template.
        Template = "template",
        /// A call of a tool.
        Tool = "tool",
        /// Orders about the memory itself.
        Memory = "memory",
        /// The user is not to know, or not to be asked.
        Secrecy = "secrecy",
        /// It asks to be handed on, to others or to every answer.
        Spreading = "spreading",
        /// What is the user's is to be sent away.
        Exfiltration = "exfiltration",
        /// Characters that are not seen.
        Invisible = "invisible",
        /// Encoded text that says any of this.
        Encoded = "encoded",
        /// An address that carries data away.
        Leak = "leak",
        /// Code of a page.
        Html = "html",
        /// More than is judged.
        Unjudged = "unjudged",
    }
}

closed_enum! {
    /// How much a finding weighs.
    Severity {
        /// Said, and without consequence: an order that is quoted as one.
        Note = "note",
        /// Reads as an order, and may be none. It stops whatever an agent writes.
        Suspect = "suspect",
        /// Is an order, or acts. It stops whatever an agent writes.
        Hostile = "hostile",
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// Where it stands in the text, in bytes: whole characters.
    pub range: Range<usize>,
    /// How much it weighs.
    pub severity: Severity,
    /// Why, in a sentence. It holds nothing of the text.
    pub says: &'static str,
}

/// What is done with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing stands against it.
    Clear,
    /// It waits for the owner, and no agent is given it before.
    Quarantined,
}

/// What was found in a text, the most severe first, then by place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Each of them.
    #[must_use]
    pub fn all(&self) -> &[Finding] {
        &self.0
    }

    /// The kinds of those that weigh as much as that or more, each once.
    #[must_use]
    pub fn kinds(&self, least: Severity) -> Vec<Kind> {
        let mut kinds: Vec<Kind> =
            self.0.iter().filter(|found| found.severity >= least).map(|found| found.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// What is done with the text, whose writer claims that level. The owner's own word is not judged.
    #[must_use]
    pub fn verdict(&self, level: Level) -> Verdict {
        let stops = stops_at(level);
        let stopped = stops.is_some_and(|least| self.0.iter().any(|found| found.severity >= least));
        if stopped { Verdict::Quarantined } else { Verdict::Clear }
    }
}

/// From which severity on a text is stopped whose writer claims that level. A level is an agent's own claim: none but the owner's word is exempt.
#[must_use]
pub const fn stops_at(level: Level) -> Option<Severity> {
    match level {
        Level::UserStated => None,
        Level::ToolVerified | Level::AgentInferred | Level::Recalled | Level::External => {
            Some(Severity::Suspect)
        }
    }
}

/// What is found in several texts that are one record's. Where each stands is said within its own text.
#[must_use]
pub fn examine_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Findings {
    sorted(texts.into_iter().flat_map(|text| examine(text).0).collect())
}

/// What is found in a text.
#[must_use]
pub fn examine(text: &str) -> Findings {
    if text.len() > MAX_JUDGED {
        return Findings(vec![unjudged(text, "It is longer than what is judged.")]);
    }
    sorted(examine_at(text, 0))
}

fn sorted(mut found: Vec<Finding>) -> Findings {
    found.sort_by(|a, b| {
        b.severity.cmp(&a.severity).then(a.range.start.cmp(&b.range.start)).then(a.kind.cmp(&b.kind))
    });
    found.dedup_by(|b, a| a.kind == b.kind && a.range.start == b.range.start);
    found.truncate(MAX_FINDINGS);
    Findings(found)
}

fn unjudged(text: &str, says: &'static str) -> Finding {
    Finding { kind: Kind::Unjudged, range: 0..text.len(), severity: Severity::Hostile, says }
}

fn examine_at(text: &str, depth: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    let folded = Folded::new(text);
    let (spelled, joined, unparted) = (folded.spelled(), folded.joined(), folded.unparted());
    for form in [Some(folded), spelled, joined, unparted].into_iter().flatten() {
        match orders::orders(&form) {
            Some(orders) => found.extend(back(&form, orders)),
            None => found.push(unjudged(text, "It has more telling phrases than are judged.")),
        }
        found.extend(back(&form, markup::markup(&form.lines())));
    }
    let hidden = hidden::hidden(text);
    found.extend(hidden.findings);
    if depth < MAX_DEPTH {
        for (range, said) in hidden.spelled {
            found.extend(within(&said, &range, depth));
        }
        let (blobs, more) = blobs::blobs(text);
        for (range, said) in blobs {
            found.extend(within(&said, &range, depth));
        }
        if more {
            let says = "It has more encoded stretches than are decoded.";
            found.push(Finding { severity: Severity::Suspect, ..unjudged(text, says) });
        }
    }
    found
}

/// Findings of a common form, where they stand in the text.
fn back(form: &Folded<'_>, found: Vec<Finding>) -> Vec<Finding> {
    found.into_iter().map(|finding| Finding { range: form.written(&finding.range), ..finding }).collect()
}

/// What an encoded stretch says is found where the stretch stands.
fn within(said: &str, range: &Range<usize>, depth: usize) -> Option<Finding> {
    let inner = examine_at(said, depth + 1);
    let severity = inner.into_iter().map(|finding| finding.severity).max()?;
    Some(Finding {
        kind: Kind::Encoded,
        range: range.clone(),
        severity: severity.max(Severity::Suspect),
        says: "It decodes to text that orders, acts or leaks.",
    })
}

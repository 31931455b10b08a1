//! What an answer is, beside what it must be: every difference, by its place.

mod beside;
mod items;
mod proof;

use super::expected::{Expected, ExpectedAnswer, ExpectedAudit, ExpectedExport};
use super::item::time;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// A difference between what came and what had to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where: the item's id and a JSON pointer in it, or a JSON pointer in the answer.
    pub at: String,
    /// What is wrong. It may hold what was captured.
    pub why: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

/// The differences found so far.
#[derive(Debug, Default)]
pub(super) struct Found(pub(super) Vec<Difference>);

impl Found {
    pub(super) fn add(&mut self, at: impl Into<String>, why: impl Into<String>) {
        self.0.push(Difference { at: at.into(), why: why.into() });
    }

    pub(super) fn equal(&mut self, at: impl Into<String>, got: &Value, wanted: &Value) {
        let (got, wanted) = (super::item::canonical(got), super::item::canonical(wanted));
        if got != wanted {
            self.add(at, format!("is {got}, must be {wanted}"));
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Expected {
    /// The differences of what came back: its status, its headers' media type aside, and its body.
    #[must_use]
    pub fn differences(&self, status: u16, body: &Value) -> Vec<Difference> {
        match self {
            Self::Answer(answer) if status == 200 => answer.differences(body),
            Self::Answer(_) => refused_instead(status, body),
            Self::Refused { codes, status: statuses, rule } => {
                not_refused(status, body, codes, statuses, &rule.to_string())
            }
        }
    }
}

impl ExpectedExport {
    /// The differences of what came back: its status and its lines, or its body where it is a refusal.
    #[must_use]
    pub fn differences(&self, status: u16, lines: &[Value]) -> Vec<Difference> {
        let body = lines.first().unwrap_or(&Value::Null);
        match self {
            Self::Bundle(bundle) if status == 200 => bundle.bundle_differences(lines),
            Self::Bundle(_) => refused_instead(status, body),
            Self::Refused { codes, status: statuses, rule } => {
                not_refused(status, body, codes, statuses, &rule.to_string())
            }
        }
    }
}

fn refused_instead(status: u16, body: &Value) -> Vec<Difference> {
    vec![Difference {
        at: "/status".to_owned(),
        why: format!("is {status} ({}), must be 200", text(&body["error"])),
    }]
}

fn not_refused(status: u16, body: &Value, codes: &[&str], statuses: &[u16], rule: &str) -> Vec<Difference> {
    let mut found = Found::default();
    if !statuses.contains(&status) {
        found.add("/status", format!("is {status}, must be one of {statuses:?}: {rule}"));
    } else if !codes.contains(&text(&body["error"])) {
        found.add("/error", format!("is {:?}, must be one of {codes:?}: {rule}", text(&body["error"])));
    }
    found.0
}

impl ExpectedAnswer {
    /// The differences of an answer, as it came.
    #[must_use]
    pub fn differences(&self, answer: &Value) -> Vec<Difference> {
        let mut found = Found::default();
        let members = [
            "items",
            "next_cursor",
            "projection_applied",
            "receipt",
            "request_id",
            "response_id",
            "signature",
        ];
        let keys: BTreeSet<&str> =
            answer.as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
        if keys != members.into() {
            found.add("", format!("has the members {keys:?}, must have {members:?}"));
        }
        let items = list(&answer["items"]);
        self.items_differ(items, &mut found);
        self.relevance_differs(items, &mut found);
        match (self.more, answer["next_cursor"].is_string()) {
            (Some(true), false) => found.add("/next_cursor", "is null, and there is more"),
            (Some(false), true) => found.add("/next_cursor", "leads on, and there is no more"),
            (_, true) => {}
            (_, false) => {
                let ids: BTreeSet<&str> = items.iter().map(|item| text(&item["item_id"])).collect();
                for id in
                    self.at_end.iter().filter(|id| !ids.contains(id.as_str()) && !self.certain.contains(*id))
                {
                    found.add(id, "is in none of the pages");
                }
            }
        }
        self.projection_differs(&answer["projection_applied"], &mut found);
        self.receipt_differs(answer, &mut found);
        if let Some(kid) = &self.signed_by {
            for at in ["/signature/kid", "/receipt/signatures/0/by"] {
                let got = answer.pointer(at).unwrap_or(&Value::Null);
                found.equal(at, got, &Value::from(kid.as_str()));
            }
        }
        found.0
    }

    /// The differences of a bundle, by its lines.
    fn bundle_differences(&self, lines: &[Value]) -> Vec<Difference> {
        let mut found = Found::default();
        let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
        let items: Vec<Value> = of("item").iter().map(|line| line["item"].clone()).collect();
        let others = lines.len() - items.len() - of("header").len() - of("trailer").len();
        if others > 0 {
            found.add("", format!("{others} lines that are neither header, item nor trailer"));
        }
        self.items_differ(&items, &mut found);
        for line in of("item").iter().filter(|line| line.as_object().map(serde_json::Map::len) != Some(2)) {
            found.add(text(&line["item"]["item_id"]), "a line with more than item and type");
        }
        for item in items.iter().filter(|item| !item["relevance"].is_null()) {
            found.add(text(&item["item_id"]), "relevance in a bundle");
        }
        let count = Value::from(items.len());
        for (kind, pointer) in [("header", "/items"), ("trailer", "/counts/items")] {
            match of(kind).as_slice() {
                [line] => found.equal(
                    format!("/{kind}{pointer}"),
                    line.pointer(pointer).unwrap_or(&Value::Null),
                    &count,
                ),
                lines => found.add(format!("/{kind}"), format!("{} lines, must be one", lines.len())),
            }
        }
        found.0
    }
}

impl ExpectedAudit {
    /// The differences of a listing of the audit log.
    #[must_use]
    pub fn differences(&self, listing: &Value) -> Vec<Difference> {
        let mut found = Found::default();
        let receipts = list(&listing["receipts"]);
        if receipts.len() > self.most {
            found.add("/receipts", format!("{} receipts, at most {}", receipts.len(), self.most));
        }
        let mut before: Option<&str> = None;
        for (number, receipt) in receipts.iter().enumerate() {
            let at = format!("/receipts/{number}");
            if !self.admits(receipt) {
                let (agent, tags) = (&receipt["agent_did"], &receipt["provenance_tags_out"]);
                found.add(
                    &at,
                    format!("is not for this reader, or was not asked for: of {agent}, names {tags}"),
                );
            }
            let time = text(&receipt["timestamp"]);
            if before.is_some_and(|before| if self.newest_first { before < time } else { before > time }) {
                found.add(&at, "is out of order");
            }
            before = Some(time);
        }
        let listed: BTreeSet<&str> = receipts.iter().map(|receipt| text(&receipt["receipt_id"])).collect();
        let last = receipts.last().and_then(|receipt| time(&receipt["timestamp"]));
        let is_full = receipts.len() >= self.most;
        for (id, at) in self.must.iter().filter(|(id, _)| !listed.contains(id.as_str())) {
            if !is_full || (self.newest_first && at.zip(last).is_some_and(|(at, last)| at > last)) {
                found.add("/receipts", format!("lacks {id}"));
            }
        }
        let agrees = |receipt: &&Value, wanted: &Value| {
            // In which order an export's receipt names its items is not said.
            let tags = |one: &Value| -> BTreeSet<String> {
                list(&one["provenance_tags_out"]).iter().map(|tag| text(tag).to_owned()).collect()
            };
            ["action_id", "output_hash"].iter().all(|name| receipt[*name] == wanted[*name])
                && (wanted["provenance_tags_out"].is_null() || tags(receipt) == tags(wanted))
        };
        for wanted in self.unnamed.iter().filter(|_| receipts.len() < self.most) {
            // The same vector may be given twice, and has two receipts then.
            let times = self.unnamed.iter().filter(|other| *other == wanted).count();
            if receipts.iter().filter(|receipt| agrees(receipt, wanted)).count() < times {
                let (action, hash) = (text(&wanted["action_id"]), &wanted["output_hash"]);
                found.add("/receipts", format!("lacks a receipt of {action} with output_hash {hash}"));
            }
        }
        found.0
    }
}

//! A record while an importer puts it together.

use super::{Found, MAX_ID, MAX_TAG, MAX_TEXT, Reach, Record, Sink, start_of};
use oap_identity::Timestamp;
use oap_memory::item::MAX_SHORT;
use serde_json::{Map, Value};
use std::ops::ControlFlow;

/// An item under construction.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) item: Value,
    reach: Reach,
    account: Option<String>,
    pub(super) group: Option<String>,
}

impl Draft {
    pub(super) fn new(kind: &str, text: &str, label: &str) -> Self {
        Self {
            item: serde_json::json!({
                "kind": kind, "content": {"text": text}, "labels": [label],
                "provenance": {"imported_from": label},
            }),
            reach: Reach::File,
            account: None,
            group: None,
        }
    }

    /// How far the source is unique.
    pub(super) const fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// The account at the vendor, where there is one.
    pub(super) fn account(mut self, account: &Value) -> Self {
        self.account = account.as_str().filter(|id| (1..=MAX_ID).contains(&id.len())).map(str::to_owned);
        self
    }

    /// The list without ids that it stands in.
    pub(super) fn group(mut self, group: Option<&str>) -> Self {
        self.group = group.map(str::to_owned);
        self
    }

    /// The size of its text, in bytes.
    pub(super) fn size(&self) -> usize {
        self.item["content"]["text"].as_str().map_or(0, str::len)
    }

    /// A member of the provenance, where there is one.
    pub(super) fn tag(mut self, name: &str, value: Option<&Value>) -> Self {
        let value = match value {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(Value::from(start_of(text, MAX_TAG))).filter(|tag| *tag != ""),
            Some(value) => Some(value.clone()).filter(|value| value.to_string().len() <= MAX_TAG),
        };
        if let Some(value) = value {
            self.item["provenance"][name] = value;
        }
        self
    }

    pub(super) fn at(mut self, at: Option<Timestamp>) -> Self {
        if let Some(at) = at {
            self.item["provenance"]["captured_at"] = serde_json::json!(at);
        }
        self
    }

    pub(super) fn structured(mut self, members: Map<String, Value>) -> Self {
        if !members.is_empty() {
            self.item["content"]["structured"] = Value::Object(members);
        }
        self
    }

    pub(super) fn confidence(mut self, confidence: f64) -> Self {
        self.item["provenance"]["confidence"] = serde_json::json!(confidence);
        self
    }

    pub(super) fn subject(mut self, subject: Option<&str>) -> Self {
        if let Some(subject) = subject.map(|s| start_of(s, MAX_SHORT)).filter(|s| !s.is_empty()) {
            self.item["subject_entity_id"] = serde_json::json!(subject);
        }
        self
    }

    pub(super) fn label(mut self, label: &str) -> Self {
        let label: String = label.trim().to_lowercase().chars().take(64).collect();
        if let Some(labels) = self.item["labels"].as_array_mut()
            && !label.is_empty()
            && labels.len() < 32
        {
            labels.push(Value::String(label));
        }
        self
    }

    /// Tells the sink; a text that is too long becomes several items, cut between lines or words.
    pub(super) fn send(self, source: String, place: String, sink: Sink) -> ControlFlow<()> {
        let Self { item, reach, account, group } = self;
        let text = item["content"]["text"].as_str().unwrap_or_default();
        if text.len() <= MAX_TEXT {
            let mut item = item;
            if item["content"]["text"] == ""
                && let Some(content) = item["content"].as_object_mut()
            {
                content.remove("text");
            }
            return sink(Found::Record(Box::new(Record { source, reach, account, group, place, item })));
        }
        let pieces: Vec<String> = pieces(text).map(str::to_owned).collect();
        for (number, piece) in pieces.iter().enumerate() {
            let mut item = item.clone();
            item["content"]["text"] = Value::String(piece.clone());
            item["provenance"]["part"] = serde_json::json!(number + 1);
            let source = format!("{source}#{number}");
            let (account, place) = (account.clone(), place.clone());
            let record = Record { source, reach, account, group: None, place, item };
            sink(Found::Record(Box::new(record)))?;
        }
        ControlFlow::Continue(())
    }
}

/// Pieces of at most [`MAX_TEXT`] bytes.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.floor_char_boundary(MAX_TEXT.min(rest.len()));
        if end < rest.len()
            && let Some(space) = rest[..end].rfind(['\n', ' ']).filter(|space| *space > MAX_TEXT / 2)
        {
            end = space + 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

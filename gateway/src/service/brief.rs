//! An item in one line, for its owner.

use crate::api::items::Brief;
use crate::error::Error;
use crate::service::Items;
use crate::state::gateway::Gateway;
use oap_identity::ItemId;
use oap_memory::{Head, Status};
use oap_store::StoreError;
use serde_json::Value;
use std::sync::Arc;

/// Longest beginning of what an item says, in characters.
pub const MAX_GIST: usize = 160;

/// Id, kind, state, time, labels, and the beginning of what the item says; without that where it was erased meanwhile.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(crate) fn brief(gateway: &Arc<Gateway>, head: &Head) -> Result<Brief, Error> {
    let gist = match Items(gateway).owner_item(head) {
        Ok(item) => Some(gist(&item)),
        Err(Error::NotFound | Error::Store(StoreError::Erased)) => None,
        Err(error) => return Err(error),
    };
    Ok(Brief {
        captured_at: Some(head.captured_at),
        gist,
        item_id: head.item_id,
        kind: Some(head.kind),
        labels: Some((*head.labels).clone()),
        snippet: None,
        status: head.status,
    })
}

impl Brief {
    /// An item that was erased.
    pub(crate) const fn erased(item_id: ItemId) -> Self {
        Self {
            captured_at: None,
            gist: None,
            item_id,
            kind: None,
            labels: None,
            snippet: None,
            status: Status::Erased,
        }
    }
}

/// The beginning of what an item says: of its text, else of its structured content.
fn gist(item: &Value) -> String {
    let content = &item["content"];
    content["text"].as_str().map_or_else(|| cut(&content["structured"].to_string()), cut)
}

/// The beginning of a text, in one line.
pub(crate) fn cut(text: &str) -> String {
    // So many words are longer than the line.
    let line = text.split_whitespace().take(MAX_GIST).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_GIST {
        return line;
    }
    line.chars().take(MAX_GIST - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_short() {
        assert_eq!(cut("a\n b\tc "), "a b c");
        assert_eq!(cut(""), "");
        for text in ["ä".repeat(1000), "word ".repeat(1000)] {
            assert!(cut(&text).chars().count() == MAX_GIST && cut(&text).ends_with('…'), "{}", cut(&text));
        }
    }
}

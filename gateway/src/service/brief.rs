//! An item in one line, for its owner.

use crate::error::Error;
use crate::gateway::Gateway;
use oap_memory::Head;
use oap_store::StoreError;
use serde_json::{Value, json};

/// Longest beginning of what an item says, in characters.
pub const MAX_GIST: usize = 160;

/// Id, kind, state, time, labels, and the beginning of what the item says; without that where it was erased meanwhile.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(crate) fn brief(gateway: &Gateway, head: &Head) -> Result<Value, Error> {
    let mut line = json!({
        "item_id": head.item_id, "kind": head.kind, "status": head.status, "captured_at": head.captured_at,
        "labels": head.labels,
    });
    match gateway.owner_item(head) {
        Ok(item) => line["gist"] = Value::String(gist(&item)),
        Err(Error::NotFound | Error::Store(StoreError::Erased)) => {}
        Err(error) => return Err(error),
    }
    Ok(line)
}

/// The beginning of what an item says: of its text, else of its structured content.
fn gist(item: &Value) -> String {
    let content = &item["content"];
    content["text"].as_str().map_or_else(|| cut(&content["structured"].to_string()), cut)
}

/// The beginning of a text, in one line.
pub(crate) fn cut(text: &str) -> String {
    let mut words = text.split_whitespace();
    let mut line = String::new();
    let mut length = 0;
    for word in &mut words {
        let room = MAX_GIST.saturating_sub(length + 1);
        let size = word.chars().count();
        if size > room {
            line.extend(word.chars().take(room));
            line.push('…');
            return line;
        }
        if !line.is_empty() {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += size;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_short() {
        assert_eq!(cut("a\n b\tc "), "a b c");
        assert_eq!(cut(""), "");
        for text in ["ä".repeat(1000), "word ".repeat(1000)] {
            assert!(cut(&text).chars().count() <= MAX_GIST && cut(&text).ends_with('…'), "{}", cut(&text));
        }
    }
}

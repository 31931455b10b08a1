//! What the maker of a world put into an item: spans that only one reading has, and canaries.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What stands where in one draft of an item. Says nothing of what a gateway may show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// By the JSON pointer of a text (`/content/text`): its spans, in order, none overlapping. What is not in a span is plain.
    pub spans: BTreeMap<String, Vec<Span>>,
    /// A word that stands nowhere else in the world, and the JSON pointer of the leaf of the draft that holds it. A key
    /// that is a canary itself has the pointer of its value. The words of spans and of the plain text around them are apart.
    pub canaries: BTreeMap<String, String>,
}

/// A span of personal data in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its class, as protocol section 7 writes it: `email`, `third_party`.
    pub class: String,
    /// Its first byte in the text.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
    /// The span itself: `text[start..end]`.
    pub text: String,
}

/// The leaves of a JSON value by their pointers: everything that is no container, and containers that are empty.
#[must_use]
pub fn leaves(value: &Value) -> BTreeMap<String, Value> {
    fn walk(value: &Value, at: &str, into: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (name, member) in members {
                    walk(member, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), into);
                }
            }
            Value::Array(elements) if !elements.is_empty() => {
                for (number, element) in elements.iter().enumerate() {
                    walk(element, &format!("{at}/{number}"), into);
                }
            }
            leaf => drop(into.insert(at.to_owned(), leaf.clone())),
        }
    }
    let mut into = BTreeMap::new();
    walk(value, "", &mut into);
    into
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn leaves_have_pointers_that_resolve() {
        let value = json!({"a": {"b/c": [1, {"~": null}], "d": {}}, "e": []});
        let found = leaves(&value);
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|(at, leaf)| value.pointer(at) == Some(leaf)), "{found:?}");
    }
}

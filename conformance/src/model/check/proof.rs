//! What the SD-JWT of an item discloses, beside what the item shows: no more than that.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use std::collections::BTreeSet;

/// What an item shows, as names and values.
#[derive(Default)]
struct Shown<'a> {
    names: BTreeSet<&'a str>,
    values: Vec<&'a Value>,
}

impl<'a> Shown<'a> {
    fn read(&mut self, value: &'a Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.names.insert(name);
                    self.read(member);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.read(element)),
            leaf => self.values.push(leaf),
        }
    }
}

/// Whether two leaves are one: a number has several ways to be written.
fn is_same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && a.as_f64() == b.as_f64())
}

/// The first disclosure of something that the item, without its proofs, does not show.
pub(super) fn beyond(sd_jwt: &str, visible: &Value) -> Option<String> {
    let mut shown = Shown::default();
    shown.read(visible);
    let text = visible.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
    // The parts of the text are disclosed one by one, those that are personal with the name `v`.
    let is_shown = |value: &Value| match value {
        Value::Object(_) | Value::Array(_) => true,
        Value::String(part) if text.contains(part.as_str()) => true,
        leaf => shown.values.iter().any(|known| is_same(known, leaf)),
    };
    sd_jwt.split('~').skip(1).filter(|part| !part.is_empty()).find_map(|part| {
        let bytes = URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
        let disclosure: Vec<Value> = serde_json::from_slice(&bytes).unwrap_or_default();
        match disclosure.as_slice() {
            [_, Value::String(name), _] if name != "v" && !shown.names.contains(name.as_str()) => {
                Some(format!("discloses {name:?}, which the item does not show"))
            }
            [_, value] | [_, _, value] if !is_shown(value) => {
                Some(format!("discloses {value}, which the item does not show"))
            }
            [_, _] | [_, _, _] => None,
            _ => Some(format!("has the disclosure {part:?}, which is none")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_disclosed_is_shown() {
        let visible = json!({"kind": "fact", "labels": ["a"], "content": {"text": "Write to [email] soon"},
                             "provenance": {"confidence": 1}});
        let with = |disclosures: &[Value]| {
            let parts = disclosures.iter().map(|one| URL_SAFE_NO_PAD.encode(one.to_string()));
            beyond(&format!("a.b.c~{}~", parts.collect::<Vec<_>>().join("~")), &visible)
        };
        let good = [
            json!(["s", "kind", "fact"]),
            json!(["s", "a"]),
            json!(["s", "content", {"_sd": ["x"]}]),
            json!(["s", "text", [{"...": "x"}]]),
            json!(["s", "Write to "]),
            json!(["s", {"t": "email", "_sd": ["x"]}]),
            json!(["s", "confidence", 1.0]),
        ];
        assert_eq!(with(&good), None);
        for bad in [
            json!(["s", "v", "bob@mail.example"]),
            json!(["s", "sensitivity", "internal"]),
            json!(["s", "b"]),
            json!(["s", "confidence", 0.5]),
            json!(["s"]),
        ] {
            assert!(with(&[good[0].clone(), bad.clone()]).is_some(), "{bad}");
        }
    }
}

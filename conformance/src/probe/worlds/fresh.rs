//! Answers without what is fresh in each (protocol section 9), and without the names that two fillings have apart.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::json as strict;
use serde_json::{Value, json};

/// Names, and what stands for them.
#[derive(Default)]
pub(super) struct Names(Vec<(String, String)>);

impl Names {
    /// Something stands for a name.
    pub(super) fn put(&mut self, name: &str, stands: &str) {
        self.0.push((name.to_owned(), stands.to_owned()));
    }

    fn replaced(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, stands)| text.replace(name.as_str(), stands))
    }
}

/// Members whose values are fresh, or are salted or signed over what is.
const FRESH: [&str; 18] = [
    "response_id",
    "request_id",
    "receipt_id",
    "timestamp",
    "previous_receipt_hash",
    "output_hash",
    "input_hash",
    "commitment",
    "prev",
    "receipt",
    "source_receipt",
    "next_cursor",
    "value",
    "signature",
    "id",
    "hash",
    "at",
    "grant_hash",
];

/// Further ones, of bundles.
const OF_BUNDLES: [&str; 4] = ["bundle_id", "created_at", "finished_at", "grant_id"];

/// A JSON text without what is fresh: blanked to its length. What is no JSON is its length.
pub(super) fn blank(bytes: &[u8], names: &Names) -> Value {
    let Ok(mut value) = strict::parse(bytes) else { return json!(bytes.len()) };
    mask(&mut value, names);
    sort(&mut value);
    value
}

fn mask(value: &mut Value, names: &Names) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let fresh = FRESH.contains(&name.as_str()) || OF_BUNDLES.contains(&name.as_str());
                match member {
                    Value::String(text) if name == "sd_jwt" => *member = opened(text, names),
                    Value::String(text) if fresh => *text = "x".repeat(text.len()),
                    Value::Array(tags) if name == "provenance_tags_out" => {
                        for tag in tags.iter_mut() {
                            let id = tag.as_str().and_then(|tag| tag.split('@').next()).unwrap_or_default();
                            *tag = json!(names.replaced(id));
                        }
                    }
                    _ => mask(member, names),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| mask(value, names)),
        Value::String(text) => *text = names.replaced(text),
        _ => {}
    }
}

/// An SD-JWT as structure: digests, salts and signature blanked.
fn opened(sd_jwt: &str, names: &Names) -> Value {
    let decode = |text: &str| -> Value {
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    };
    let mut parts = sd_jwt.split('~');
    let jwt = parts.next().unwrap_or_default();
    let mut payload = decode(jwt.split('.').nth(1).unwrap_or_default());
    digests(&mut payload);
    payload["iat"] = Value::Null;
    mask(&mut payload, names);
    let disclosures: Vec<Value> = parts
        .filter(|part| !part.is_empty())
        .map(|part| {
            let mut disclosure = decode(part);
            disclosure[0] = json!("salt");
            digests(&mut disclosure);
            if disclosure[1] == "source_receipt" {
                disclosure[2] = Value::Null;
            }
            mask(&mut disclosure, names);
            disclosure
        })
        .collect();
    json!({"payload": payload, "disclosures": disclosures})
}

fn digests(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match (name.as_str(), &mut *member) {
                    ("_sd", Value::Array(all)) => all.iter_mut().for_each(|digest| *digest = json!("digest")),
                    ("...", _) => *member = json!("digest"),
                    _ => digests(member),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(digests),
        _ => {}
    }
}

/// Items that rank alike stand in the order of their ids, which are fresh: they are put in one of their own.
fn sort(answer: &mut Value) {
    let listed = answer["items"].as_array().is_some();
    if let Some(items) = answer["items"].as_array_mut() {
        let rank = |item: &Value| item["relevance"].as_f64().unwrap_or(1.0);
        items.sort_by(|a, b| {
            let by_id = || a["item_id"].as_str().cmp(&b["item_id"].as_str());
            rank(b).total_cmp(&rank(a)).then_with(by_id)
        });
    }
    if listed && let Some(tags) = answer["receipt"]["provenance_tags_out"].as_array_mut() {
        tags.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
    for receipt in answer["receipts"].as_array_mut().into_iter().flatten() {
        if let Some(tags) = receipt["provenance_tags_out"].as_array_mut() {
            tags.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        }
    }
}

/// Where two values differ first, and how.
pub(super) fn difference(left: &Value, right: &Value, at: String) -> (String, String) {
    match (left, right) {
        (Value::Object(l), Value::Object(r)) if l.keys().eq(r.keys()) => {
            let first = l.iter().zip(r).find(|((_, l), (_, r))| l != r);
            first.map_or_else(
                || (at.clone(), "equal".to_owned()),
                |((name, l), (_, r))| difference(l, r, format!("{at}/{name}")),
            )
        }
        (Value::Array(l), Value::Array(r)) if l.len() == r.len() => {
            let first = l.iter().zip(r).enumerate().find(|(_, (l, r))| l != r);
            first.map_or_else(
                || (at.clone(), "equal".to_owned()),
                |(n, (l, r))| difference(l, r, format!("{at}/{n}")),
            )
        }
        _ => (at, format!("{left} and {right}")),
    }
}

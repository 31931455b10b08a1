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

/// Claims of a JWT that are fresh in each.
const OF_TOKENS: [&str; 4] = ["iat", "nbf", "exp", "jti"];

/// A JSON text without what is fresh: blanked to its length. Of a JWT what is signed; of what is neither its length.
pub(super) fn blank(bytes: &[u8], names: &Names) -> Value {
    if let Some(jwt) = str::from_utf8(bytes).ok().and_then(|text| token(text.trim(), names)) {
        return jwt;
    }
    let Ok(mut value) = strict::parse(bytes) else { return json!(bytes.len()) };
    mask(&mut value, names);
    sort(&mut value);
    // The same answer in an envelope, and of a tool.
    for place in ["/output", "/result/structuredContent"] {
        if let Some(answer) = value.pointer_mut(place) {
            sort(answer);
        }
    }
    for told in value.pointer_mut("/result/content").and_then(Value::as_array_mut).into_iter().flatten() {
        // Items stand on lines of their own, in the same order; what is said around them may name a time or a receipt.
        let lines = told["text"].as_str().unwrap_or_default().lines();
        let mut lines: Vec<&str> = lines.filter(|line| line.contains("<memory-item")).collect();
        lines.sort_unstable();
        *told = json!({"type": told["type"], "lines": lines});
    }
    value
}

/// The header and the claims of a JWT, where it is one.
fn token(jwt: &str, names: &Names) -> Option<Value> {
    let mut parts = jwt.split('.');
    let (header, payload, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let read = |part: &str| -> Option<Value> {
        let read: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()?;
        Some(read).filter(Value::is_object)
    };
    let (mut header, mut payload) = (read(header)?, read(payload)?);
    for name in OF_TOKENS {
        if let Some(claim) = payload.get_mut(name) {
            *claim = json!("fresh");
        }
    }
    mask(&mut header, names);
    mask(&mut payload, names);
    Some(json!({"header": header, "payload": payload}))
}

fn mask(value: &mut Value, names: &Names) {
    match value {
        Value::Object(members) => {
            // A second may go by between the two.
            if members.contains_key("memory_grant_jwt") {
                members.remove("expires_in");
            }
            for (name, member) in members.iter_mut() {
                let fresh = FRESH.contains(&name.as_str()) || OF_BUNDLES.contains(&name.as_str());
                match member {
                    Value::String(text) if name == "sd_jwt" => *member = opened(text, names),
                    Value::String(text) if name == "memory_grant_jwt" => {
                        *member = token(text, names).unwrap_or_else(|| json!(text.len()));
                    }
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
    if let Some(items) = answer.get_mut("items").and_then(Value::as_array_mut) {
        let rank = |item: &Value| item["relevance"].as_f64().unwrap_or(1.0);
        items.sort_by(|a, b| {
            let by_id = || a["item_id"].as_str().cmp(&b["item_id"].as_str());
            rank(b).total_cmp(&rank(a)).then_with(by_id)
        });
    }
    if let Some(receipt) = answer.get_mut("receipt") {
        sort_tags(receipt);
    }
    let receipts = answer.get_mut("receipts").and_then(Value::as_array_mut);
    receipts.into_iter().flatten().for_each(sort_tags);
}

fn sort_tags(receipt: &mut Value) {
    if let Some(tags) = receipt.get_mut("provenance_tags_out").and_then(Value::as_array_mut) {
        tags.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn jwt(payload: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.c2ln", part(&json!({"alg": "EdDSA"})), part(payload))
    }

    #[test]
    fn what_a_token_says_is_compared_and_its_times_are_not() {
        let names = Names::default();
        let list =
            |lst: &str, at: u64| jwt(&json!({"iat": at, "exp": at + 300, "status_list": {"lst": lst}}));
        let blanked = |text: String| blank(text.as_bytes(), &names);
        assert_eq!(blanked(list("AAAA", 1_777_636_800)), blanked(list("AAAA", 1_777_636_801)));
        assert_ne!(blanked(list("AAAA", 1_777_636_800)), blanked(list("AAAB", 1_777_636_800)));
        let exchanged = |scope: &str, life: u64| {
            let token = jwt(&json!({"jti": scope.len(), "oap_scope": scope}));
            json!({"memory_grant_jwt": token, "expires_in": life}).to_string()
        };
        assert_eq!(blanked(exchanged("one", 600)), blanked(exchanged("one", 599)));
        assert_ne!(blanked(exchanged("one", 600)), blanked(exchanged("two", 600)));
    }

    #[test]
    fn of_the_text_of_a_tool_the_items_are_compared() {
        let names = Names::default();
        let told = |text: &str| {
            blank(
                json!({"result": {"content": [{"type": "text", "text": text}]}}).to_string().as_bytes(),
                &names,
            )
        };
        let [one, two] = ["<memory-item id=\"1\">a</memory-item>", "<memory-item id=\"2\">b</memory-item>"];
        assert_eq!(told(&format!("At noon:\n{one}\n{two}")), told(&format!("At one:\n{two}\n{one}")));
        assert_ne!(told(&format!("{one}\n{two}")), told(&format!("{one}\n{one}")));
    }
}

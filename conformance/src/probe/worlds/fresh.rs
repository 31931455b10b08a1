//! Answers without what is fresh in each (protocol section 9), and without the names that two fillings have apart.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::{Timestamp, json as strict};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Names, and what stands for them.
#[derive(Default)]
pub(super) struct Names(Vec<(String, String)>);

impl Names {
    /// Something stands for a name.
    pub(super) fn put(&mut self, name: &str, stands: &str) {
        self.0.push((name.to_owned(), stands.to_owned()));
    }

    /// A text with what stands for the names in it.
    pub(super) fn replaced(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, stands)| text.replace(name.as_str(), stands))
    }
}

/// Members whose values are fresh, or are salted or signed over what is.
const FRESH: [&str; 20] = [
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
    "subscription",
    "begun_at",
];

/// Further ones, of bundles.
const OF_BUNDLES: [&str; 4] = ["bundle_id", "created_at", "finished_at", "grant_id"];

/// Claims of a JWT that are fresh in each; of its end is compared how long after `iat` it is.
const OF_TOKENS: [&str; 3] = ["iat", "nbf", "jti"];
/// Numbers that a gateway counts over all that it does, or draws: a place in the status list, a push, the one before it.
const OF_GATEWAYS: [&str; 3] = ["idx", "sequence", "after"];

/// A fresh text is as long at least, to be looked for in other text.
const SHORT: usize = 8;
/// Members that hold an item's own words: nothing of them is fresh, whatever it is called.
const OF_ITEMS: [&str; 3] = ["content", "extensions", "labels"];

/// A JSON text without what is fresh: blanked to its length. Of a JWT what is signed; what is neither as it is.
pub(super) fn blank(bytes: &[u8], names: &Names) -> Value {
    if let Some(jwt) = str::from_utf8(bytes).ok().and_then(|text| token(text.trim(), names)) {
        return jwt;
    }
    let Ok(mut value) = strict::parse(bytes) else {
        return json!(names.replaced(&String::from_utf8_lossy(bytes)));
    };
    let mut fresh = BTreeSet::new();
    fresh_texts(&value, &mut fresh);
    mask(&mut value, names);
    sort(&mut value);
    // The same answer in an envelope, of a tool, and in a push.
    for place in ["/output", "/result/structuredContent", "/answer"] {
        if let Some(answer) = value.pointer_mut(place) {
            sort(answer);
        }
    }
    for place in ["/changes/came", "/changes/changed", "/changes/left"] {
        if let Some(ids) = value.pointer_mut(place).and_then(Value::as_array_mut) {
            sort_texts(ids);
        }
    }
    for told in value.pointer_mut("/result/content").and_then(Value::as_array_mut).into_iter().flatten() {
        let text = told["text"].as_str().unwrap_or_default();
        let said = if strict::parse(text.as_bytes()).is_ok() {
            blank(text.as_bytes(), names)
        } else {
            // Items that rank alike stand in any order.
            let mut lines: Vec<String> =
                text.lines().map(|line| names.replaced(&without_fresh(line, &fresh))).collect();
            lines.sort_unstable();
            json!(lines)
        };
        *told = json!({"type": told["type"], "said": said});
    }
    value
}

/// An event of a stream, the first one: its fields, and its data without what is fresh. What is a comment, and its number, says nothing of it.
pub(super) fn blank_event(stream: &[u8], names: &Names) -> Value {
    let text = String::from_utf8_lossy(stream).replace("\r\n", "\n");
    let event = text.split("\n\n").next().unwrap_or_default();
    let (data, fields): (Vec<&str>, Vec<&str>) = event
        .lines()
        .filter(|line| !line.starts_with(':') && !line.starts_with("id:"))
        .partition(|line| line.starts_with("data:"));
    let data: Vec<&str> =
        data.into_iter().map(|line| line.trim_start_matches("data:").trim_start()).collect();
    json!({"fields": fields, "data": blank(data.join("\n").as_bytes(), names)})
}

/// How many bytes of a document say what is a gateway's own: how many digits a number has, what is in its token beside that.
pub(super) fn loose(value: &Value) -> usize {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| match member {
                Value::Number(number) if OF_GATEWAYS.contains(&name.as_str()) => number.to_string().len(),
                Value::String(token) if name == "memory_grant_jwt" => token.len(),
                member => loose(member),
            })
            .sum(),
        Value::Array(values) => values.iter().map(loose).sum(),
        _ => 0,
    }
}

/// The texts of a reply that are fresh.
fn fresh_texts(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if FRESH.contains(&name.as_str()) && text.len() >= SHORT => {
                        texts.insert(text.clone());
                    }
                    _ if OF_ITEMS.contains(&name.as_str()) && members.contains_key("item_id") => {}
                    _ => fresh_texts(member, texts),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fresh_texts(value, texts)),
        _ => {}
    }
}

/// A line of text without what is fresh in its reply, or may be a time or the name of a receipt.
fn without_fresh(line: &str, fresh: &BTreeSet<String>) -> String {
    let is_fresh = |word: &str| {
        fresh.contains(word) || word.parse::<Timestamp>().is_ok() || word.starts_with("urn:oap:receipt:")
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.:+".contains(c);
    let words = line.split_inclusive(|c| !is_part(c)).map(|word| {
        let bare = word.trim_end_matches(|c| !is_part(c)).trim_end_matches('.');
        // What it is may stand before it.
        let named = bare.split_once(':').map_or(bare, |(_, named)| named);
        let found = [bare, named].into_iter().find(|word| is_fresh(word));
        found.map_or_else(|| word.to_owned(), |found| word.replace(found, &"x".repeat(found.len())))
    });
    words.collect()
}

/// How many seconds, to the next ten: clocks are read more than once.
fn tens(seconds: i64) -> i64 {
    seconds.saturating_add(5) / 10
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
    let issued = payload["iat"].as_i64();
    if let Some(end) = payload.get_mut("exp") {
        let life = end.as_i64().zip(issued).map(|(end, issued)| tens(end.saturating_sub(issued)));
        *end = json!(life);
    }
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
            if let Some(life) = members.get_mut("expires_in") {
                *life = life.as_i64().map_or(Value::Null, |seconds| json!(tens(seconds)));
            }
            let is_item = members.contains_key("item_id");
            for (name, member) in members.iter_mut() {
                let fresh = FRESH.contains(&name.as_str()) || OF_BUNDLES.contains(&name.as_str());
                match member {
                    Value::String(text) if name == "sd_jwt" => *member = opened(text, names),
                    Value::String(text) if name == "memory_grant_jwt" => {
                        *member = token(text, names).unwrap_or_else(|| json!(text.len()));
                    }
                    Value::String(text) if fresh => *text = "x".repeat(text.len()),
                    _ if is_item && OF_ITEMS.contains(&name.as_str()) => renamed(member, names),
                    Value::Number(_) if OF_GATEWAYS.contains(&name.as_str()) => *member = json!("number"),
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

/// What an item says, with what stands for the names in it.
fn renamed(value: &mut Value, names: &Names) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|member| renamed(member, names)),
        Value::Array(values) => values.iter_mut().for_each(|value| renamed(value, names)),
        Value::String(text) => *text = names.replaced(text),
        _ => {}
    }
}

/// An SD-JWT as structure: digests, salts and signature blanked. What is none is as it is.
fn opened(sd_jwt: &str, names: &Names) -> Value {
    let decode =
        |text: &str| -> Option<Value> { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok() };
    let mut parts = sd_jwt.split('~');
    let mut jwt = parts.next().unwrap_or_default().split('.').map(decode);
    let (Some(Some(mut header)), Some(Some(Value::Object(payload)))) = (jwt.next(), jwt.next()) else {
        return json!(names.replaced(sd_jwt));
    };
    mask(&mut header, names);
    let mut payload = Value::Object(payload);
    digests(&mut payload);
    if let Some(issued) = payload.get_mut("iat") {
        *issued = Value::Null;
    }
    mask(&mut payload, names);
    let disclosures: Vec<Value> =
        parts.filter(|part| !part.is_empty()).map(|part| disclosed(part, decode(part), names)).collect();
    json!({"header": header, "payload": payload, "disclosures": disclosures})
}

/// A disclosure, `[salt, name, value]` or `[salt, value]`, without its salt and with what is fresh in it blanked.
fn disclosed(text: &str, read: Option<Value>, names: &Names) -> Value {
    let Some(Value::Array(mut parts)) = read else { return json!(names.replaced(text)) };
    if let Some(salt) = parts.first_mut() {
        *salt = json!("salt");
    }
    parts.iter_mut().for_each(digests);
    match parts.as_mut_slice() {
        [_, name, value] if name == "source_receipt" => *value = Value::Null,
        parts => parts.iter_mut().for_each(|part| renamed(part, names)),
    }
    Value::Array(parts)
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
        sort_texts(tags);
    }
}

fn sort_texts(texts: &mut [Value]) {
    texts.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
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
        let lives =
            |seconds: u64| blanked(jwt(&json!({"iat": 1_777_636_800, "exp": 1_777_636_800 + seconds})));
        assert_eq!(lives(600), lives(601));
        assert_ne!(lives(600), lives(540));
        let exchanged = |scope: &str, life: u64| {
            let token = jwt(&json!({"jti": scope.len(), "oap_scope": scope}));
            json!({"memory_grant_jwt": token, "expires_in": life}).to_string()
        };
        assert_eq!(blanked(exchanged("one", 600)), blanked(exchanged("one", 599)));
        assert_ne!(blanked(exchanged("one", 600)), blanked(exchanged("one", 500)));
        assert_ne!(blanked(exchanged("one", 600)), blanked(exchanged("two", 600)));
    }

    #[test]
    fn of_an_event_what_is_fresh_is_blanked() {
        let told = |of: &str, ids: [&str; 2]| {
            let mut names = Names::default();
            ids.iter().enumerate().for_each(|(number, id)| names.put(id, &format!("item {number}")));
            let mut came = ids.to_vec();
            came.sort_unstable();
            let push = json!({
                "subscription": of, "sequence": 1, "changes": {"came": came},
                "answer": {"items": [{"item_id": ids[1]}, {"item_id": ids[0]}], "receipt": {"receipt_id": of}},
            });
            blank_event(format!("id: {}\nevent: push\ndata: {push}\n\n: {of}", of.len()).as_bytes(), &names)
        };
        assert_eq!(told("sub_1", ["a", "b"]), told("sub_2", ["d", "c"]));
        let event = |event: &str| blank_event(event.as_bytes(), &Names::default());
        assert_eq!(event("id: 1\ndata: {}\n\n"), event("id: 20\r\ndata: {}\r\n\r\n: tick"));
        assert_eq!(event("data: [1,\ndata: 2]\n\n"), event("data: [1, 2]\n\n"));
        assert_ne!(event("event: push\ndata: {}\n\n"), event("event: ended\ndata: {}\n\n"));
        assert_ne!(event("retry: 1\ndata: {}\n\n"), event("retry: 2\ndata: {}\n\n"));
        assert_ne!(told("sub_1", ["a", "b"]), event("data: {}\n\n"));
    }

    #[test]
    fn a_place_in_the_status_list_is_random() {
        let place = |idx: u64, uri: &str| {
            let reply = json!({"status": {"status_list": {"idx": idx, "uri": uri}}});
            blank(reply.to_string().as_bytes(), &Names::default())
        };
        assert_eq!(place(7, "one"), place(131_071, "one"));
        assert_ne!(place(7, "one"), place(7, "two"));
    }

    #[test]
    fn the_text_of_a_tool_is_compared_but_for_what_is_fresh() {
        let names = Names::default();
        let told = |text: &str| {
            blank(
                json!({"result": {"content": [{"type": "text", "text": text}]}}).to_string().as_bytes(),
                &names,
            )
        };
        let [one, two] = ["<memory-item id=\"1\">a</memory-item>", "<memory-item id=\"2\">b</memory-item>"];
        let [noon, later] = ["2026-05-01T12:00:00.000Z", "2026-05-01T12:00:00.001Z"];
        assert_eq!(
            told(&format!("2 found at {noon}\n{one}\n{two}")),
            told(&format!("2 found at {later}\n{two}\n{one}"))
        );
        assert_ne!(told(&format!("{one}\n{two}")), told(&format!("{one}\n{one}")));
        assert_ne!(told(&format!("1 of 3\n{one}")), told(&format!("1 of 4\n{one}")));
        assert_ne!(told("<memory-item>\ntea\n</memory-item>"), told("<memory-item>\nrum\n</memory-item>"));
        // The same as JSON, or with what is fresh in it.
        let both = |receipt: &str, text: String| {
            let reply = json!({"result": {
                "structuredContent": {"receipt_id": receipt}, "content": [{"type": "text", "text": text}],
            }});
            blank(reply.to_string().as_bytes(), &names)
        };
        for of in [|r: &str| json!({"receipt_id": r}).to_string(), |r: &str| format!("receipt:{r}, 3 found")]
        {
            assert_eq!(both("receipt-1", of("receipt-1")), both("receipt-2", of("receipt-2")));
        }
        let receipt = |last: char| told(&format!("Receipt urn:oap:receipt:01HX2QFXR0Q4S8T9V3W7X2Y0Z{last}."));
        assert_eq!(receipt('1'), receipt('2'));
        assert_ne!(told("call +49 170 1234567890123"), told("call +49 170 1234567890124"));
    }

    /// Whatever a gateway sends for an SD-JWT is compared, and none of it ends the run.
    #[test]
    fn what_is_no_sd_jwt_is_compared_as_it_is() {
        let names = Names::default();
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let told = |sd_jwt: String| blank(json!({"sd_jwt": sd_jwt}).to_string().as_bytes(), &names);
        let of = |header: Value, payload: Value, disclosure: Value| {
            told(format!("{}.{}.c2ln~{}~", part(&header), part(&payload), part(&disclosure)))
        };
        let usual = || of(json!({"alg": "EdDSA"}), json!({"iat": 1}), json!(["salt", "kind", "fact"]));
        assert_eq!(usual(), of(json!({"alg": "EdDSA"}), json!({"iat": 2}), json!(["other", "kind", "fact"])));
        assert_ne!(
            usual(),
            of(json!({"alg": "EdDSA", "n": 7}), json!({"iat": 1}), json!(["salt", "kind", "fact"]))
        );
        assert_ne!(usual(), of(json!({"alg": "EdDSA"}), json!({"iat": 1}), json!(["salt", "kind", "note"])));
        for odd in [
            json!(null),
            json!([]),
            json!(["a"]),
            json!(["a", "b"]),
            json!([1, 2, 3, 4]),
            json!("x"),
            json!({}),
        ] {
            assert_ne!(usual(), of(json!({}), json!({}), odd.clone()));
            assert_ne!(usual(), of(json!({}), odd.clone(), json!(["salt", "kind", "fact"])));
            assert_ne!(usual(), of(odd, json!({}), json!(["salt", "kind", "fact"])));
        }
        for odd in ["", "a.b.c~x", "~", "....", "a", "a~b~c", "e30.W10.x~bnVsbA~"] {
            assert_ne!(usual(), told(odd.to_owned()));
        }
    }

    /// An item may have members of its own that are called as what is fresh.
    #[test]
    fn what_an_item_says_is_compared_whatever_it_is_called() {
        let names = Names::default();
        let item = |value: &str| {
            let item = json!({"items": [{"item_id": "mem_1", "content": {"structured": {"id": value, "at": "x"}}, "extensions": {"hash": "h"}}]});
            blank(item.to_string().as_bytes(), &names)
        };
        assert_ne!(item("one"), item("two"));
        let text = |text: &str| blank(text.as_bytes(), &names);
        assert_ne!(text("no JSON: 37"), text("no JSON: 38"));
    }
}

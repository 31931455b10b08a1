//! The formulas of `docs/bytes.md`: a line of a `check` block, evaluated over the named blocks of the page.
//!
//! It uses SHA-256, Ed25519, RFC 8785 and base64url, and nothing of the rooms that make or verify what is shown.
//! `.ci/interop/bytes.py` evaluates the same lines.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_identity::{Hash, Signer, Timestamp, json as strict, jwk::PublicKey};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;

/// The named blocks of a page, each with its text.
pub type Blocks = BTreeMap<String, String>;

/// JSON, or bytes. A text and its UTF-8 bytes are the same.
#[derive(Debug, Clone)]
pub enum Term {
    Json(Value),
    Bytes(Vec<u8>),
}

impl Term {
    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Json(Value::String(text)) => Some(text.clone().into_bytes()),
            Self::Json(value) => strict::canonical(value).ok(),
            Self::Bytes(bytes) => Some(bytes.clone()),
        }
    }

    fn text(&self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    fn json(&self) -> Option<Value> {
        match self {
            Self::Json(value) => Some(value.clone()),
            Self::Bytes(bytes) => String::from_utf8(bytes.clone()).ok().map(Value::String),
        }
    }
}

/// Whether a line holds; `None` where it cannot be evaluated.
pub fn holds(line: &str, blocks: &Blocks) -> Option<bool> {
    let mut rest = line.trim();
    let left = term(&mut rest, blocks)?;
    rest = rest.trim_start();
    if rest.is_empty() {
        return Some(left.json()? == true);
    }
    rest = rest.strip_prefix('=')?;
    let right = term(&mut rest, blocks)?;
    rest.trim().is_empty().then_some(left.bytes()? == right.bytes()?)
}

fn term(rest: &mut &str, blocks: &Blocks) -> Option<Term> {
    *rest = rest.trim_start();
    if rest.starts_with('"') {
        let end = 1 + rest[1..].find('"')?;
        let text: String = serde_json::from_str(&rest[..=end]).ok()?;
        *rest = &rest[end + 1..];
        return Some(Term::Json(json!(text)));
    }
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_/.".contains(c))).unwrap_or(rest.len());
    let name = &rest[..end];
    *rest = &rest[end..];
    let Some(after) = rest.strip_prefix('(') else { return named(name, blocks) };
    *rest = after;
    let mut arguments = Vec::new();
    loop {
        arguments.push(term(rest, blocks)?);
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(',') {
            *rest = after;
        } else {
            *rest = rest.strip_prefix(')')?;
            return call(name, &arguments);
        }
    }
}

/// `block` or `block/member/0/member`.
fn named(name: &str, blocks: &Blocks) -> Option<Term> {
    let (block, path) = name.split_at(name.find('/').unwrap_or(name.len()));
    let text = blocks.get(block)?;
    match strict::parse(text.as_bytes()) {
        Ok(value) => value.pointer(path).cloned().map(Term::Json),
        Err(_) if path.is_empty() => Some(Term::Bytes(text.clone().into_bytes())),
        Err(_) => None,
    }
}

fn call(name: &str, arguments: &[Term]) -> Option<Term> {
    let (first, more) = arguments.split_first()?;
    let names = || more.iter().map(Term::text).collect::<Option<Vec<String>>>();
    let text = |text: String| Some(Term::Json(json!(text)));
    match name {
        // The RFC 8785 form without the members named.
        "jcs" => {
            let mut value = first.json()?;
            for name in names()? {
                value.as_object_mut()?.remove(&name);
            }
            strict::canonical(&value).ok().map(Term::Bytes)
        }
        // The object with the members named alone.
        "only" => {
            let value = first.json()?;
            let members = names()?.into_iter().map(|name| value.get(&name).cloned().map(|v| (name, v)));
            members.collect::<Option<serde_json::Map<_, _>>>().map(|members| Term::Json(members.into()))
        }
        "sha256" => text(Hash::of(&first.bytes()?).to_string()),
        "digest" => text(B64.encode(Hash::of(&first.bytes()?).as_bytes())),
        "b64" => text(B64.encode(first.bytes()?)),
        "unb64" => B64.decode(first.bytes()?).ok().map(Term::Bytes),
        "json" => strict::parse(&first.bytes()?).ok().map(Term::Json),
        "part" => {
            let [separator, number] = names()?.try_into().ok()?;
            text(first.text()?.split(&separator).nth(number.parse().ok()?)?.to_owned())
        }
        "cat" => {
            let parts: Option<Vec<Vec<u8>>> = arguments.iter().map(Term::bytes).collect();
            Some(Term::Bytes(parts?.concat()))
        }
        // The first lines, each with its line feed.
        "lines" => {
            let count = more.first()?.text()?.parse().ok()?;
            text(first.text()?.lines().take(count).map(|line| format!("{line}\n")).collect())
        }
        "inflate" => {
            let mut bytes = Vec::new();
            let packed = first.bytes()?;
            flate2::read::ZlibDecoder::new(packed.as_slice()).take(1 << 20).read_to_end(&mut bytes).ok()?;
            Some(Term::Bytes(bytes))
        }
        "bit" => {
            let place: usize = more.first()?.text()?.parse().ok()?;
            Some(Term::Json(json!(first.bytes()?.get(place / 8)? >> (place % 8) & 1)))
        }
        "seconds" => Some(Term::Json(json!(first.text()?.parse::<Timestamp>().ok()?.seconds()))),
        "contains" => {
            let wanted = more.first()?.json()?;
            Some(Term::Json(json!(first.json()?.as_array()?.contains(&wanted))))
        }
        "public" => {
            let seed = B64.decode(first.bytes()?).ok()?.try_into().ok()?;
            Some(Term::Json(Signer::did_key(&seed).ok()?.public().jwk()["x"].clone()))
        }
        // A public key (base64url of 32 bytes), the message, the signature (base64url of 64 bytes).
        "verify" => {
            let [message, signature] = more else { return None };
            let key = PublicKey::from_bytes(&B64.decode(first.bytes()?).ok()?).ok()?;
            let signature = B64.decode(signature.bytes()?).ok()?;
            Some(Term::Json(json!(key.verify(&message.bytes()?, &signature).is_ok())))
        }
        _ => None,
    }
}

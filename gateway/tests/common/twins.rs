//! Two gateways side by side, and what may differ between their answers (protocol section 9).

use crate::common::*;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_exchange::Vector;
use oap_exchange::gate::Sanctions;
use oap_gateway::embedding::{Embedding, EmbeddingModel};
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::{Config, Gateway};
use oap_identity::random::Seeded;
use oap_identity::{Random, Timestamp};
use oap_store::Store;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Randomness that can be set back, so that the same item has the same id in both gateways.
pub struct Settable(Mutex<Seeded>);

impl Settable {
    pub fn set(&self, seed: u64) {
        *self.0.lock().unwrap() = Seeded::new(seed);
    }
}

impl Random for Settable {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().unwrap().fill(buffer);
    }
}

pub struct Side {
    pub world: World,
    pub random: Arc<Settable>,
}

impl Side {
    pub async fn new() -> Self {
        Self::with(None).await
    }

    /// With a model of embeddings.
    pub async fn with(model: Option<Box<dyn EmbeddingModel>>) -> Self {
        let random = Arc::new(Settable(Mutex::new(Seeded::new(1))));
        let store = Store::in_memory(random.clone()).unwrap();
        let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
        Gateway::init(&store, &keys).await.unwrap();
        let world = World::equipped(store, Config::default(), random.clone(), Sanctions::new(), model).await;
        Self { world, random }
    }

    /// Captures an item whose id follows from the seed.
    pub async fn capture(&self, seed: u64, item: &Value) -> String {
        self.random.set(seed);
        self.world.capture(std::slice::from_ref(item)).await.remove(0)
    }
}

/// A model to which every letter counts: a text can be told from its vector.
pub struct Letters;

impl EmbeddingModel for Letters {
    fn name(&self) -> &str {
        "letters"
    }

    fn dimensions(&self) -> usize {
        256
    }

    fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
        let count = |text: &String| {
            let mut counts = vec![0.001; 256];
            text.bytes().for_each(|byte| counts[usize::from(byte)] += 1.0);
            Vector::new(counts).unwrap()
        };
        let vectors = texts.iter().map(count).collect();
        Box::pin(async move { Ok(vectors) })
    }
}

/// Replaces the values that section 9 lets differ: what is fresh, and salted digests with what is signed over them.
/// Their number and their lengths stay.
pub fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match name.as_str() {
                    "response_id"
                    | "receipt_id"
                    | "timestamp"
                    | "published_at"
                    | "previous_receipt_hash"
                    | "output_hash"
                    | "commitment"
                    | "prev"
                    | "receipt"
                    | "source_receipt"
                    | "next_cursor"
                    | "value"
                    | "signature"
                    | "id"
                    | "hash" => blank(member),
                    "provenance_tags_out" => {
                        for tag in member.as_array_mut().into_iter().flatten() {
                            *tag = json!(tag.as_str().unwrap().split('@').next());
                        }
                    }
                    "sd_jwt" => *member = opened(member.as_str().unwrap()),
                    _ => mask(member),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        _ => {}
    }
}

pub fn blank(value: &mut Value) {
    match value {
        Value::String(text) => *text = "x".repeat(text.len()),
        other => mask(other),
    }
}

/// An SD-JWT as structure: digests and salts blanked, everything else as it is.
pub fn opened(sd_jwt: &str) -> Value {
    let mut parts = sd_jwt.split('~');
    let jwt: Vec<&str> = parts.next().unwrap().split('.').collect();
    let decode = |text: &str| -> Value { serde_json::from_slice(&B64.decode(text).unwrap()).unwrap() };
    let mut payload = decode(jwt[1]);
    digests(&mut payload);
    payload["prev"] = json!("");
    payload["receipt"] = json!("");
    let disclosures: Vec<Value> = parts
        .filter(|part| !part.is_empty())
        .map(|part| {
            let mut disclosure = decode(part);
            disclosure[0] = json!("salt");
            let name = disclosure[1].clone();
            digests(&mut disclosure);
            if name == "source_receipt" {
                disclosure[2] = json!("");
            }
            disclosure
        })
        .collect();
    json!({"header": jwt[0], "payload": payload, "disclosures": disclosures})
}

/// Where two values differ first.
pub fn difference(left: &Value, right: &Value, at: String) -> String {
    match (left, right) {
        (Value::Object(l), Value::Object(r)) if l.keys().eq(r.keys()) => l
            .iter()
            .find(|(name, value)| r[*name] != **value)
            .map_or(at.clone(), |(name, value)| difference(value, &r[name], format!("{at}/{name}"))),
        (Value::Array(l), Value::Array(r)) if l.len() == r.len() => l
            .iter()
            .zip(r)
            .position(|(l, r)| l != r)
            .map_or(at.clone(), |i| difference(&l[i], &r[i], format!("{at}/{i}"))),
        _ => format!("{at}: {left} and {right}"),
    }
}

pub fn digests(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match name.as_str() {
                    "_sd" => member.as_array_mut().unwrap().iter_mut().for_each(|d| *d = json!("digest")),
                    "..." => *member = json!("digest"),
                    _ => digests(member),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(digests),
        _ => {}
    }
}

//! Genuine documents of one gateway, and the parties.

use crate::common::*;
use crate::reseals;
use oap_identity::{Did, DidDocument, Hash, Signer, Timestamp, VerificationKey, json as strict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a reader has: the documents of everybody, and a clock.
pub struct Reader {
    pub documents: BTreeMap<Did, Arc<DidDocument>>,
    pub now: Timestamp,
}

pub struct Fixture {
    pub world: World,
    /// Who holds a key of its own, and a DID that everybody knows.
    pub mallory: Signer,
    pub grantee: Signer,
    pub reader: Reader,
    pub grant: Value,
    /// Of two items, at level 4.
    pub answer: Value,
    /// An item of one link.
    pub one: Value,
    /// An item of five links: captured, corrected, confirmed, retracted, restored.
    pub long: Value,
    /// An item that ends with its retraction, as its owner exports it.
    pub retracted: Value,
    /// The principal's chain of receipts.
    pub log: Vec<Value>,
    pub deletion: Value,
    pub list: String,
    /// The lines of a bundle, without its trailer.
    pub bundle: Vec<Value>,
}

fn document(signer: &Signer) -> DidDocument {
    let key = VerificationKey::new(signer.kid().clone(), *signer.public());
    DidDocument::new(signer.did().clone(), vec![key])
}

/// A text of every shape: a span, labels, structured content, provenance, an end, extensions.
fn rich(text: &str) -> Value {
    json!({
        "kind": "fact", "subject_entity_id": "ent_ann", "labels": ["case", "tea"],
        "content": {
            "text": format!("{text}, write to ann@b.example"),
            "structured": {"a": {"b": 1, "c": [true, null]}, "list": ["x", "y"], "empty": []},
        },
        "provenance": {"confidence": 0.75, "source": "chat"},
        "ttl_days": 300, "expires_at": "2027-01-01T00:00:00.000Z", "sensitivity": "confidential",
        "extensions": {"example.app": {"colour": "blue"}},
    })
}

impl Fixture {
    pub async fn new() -> Self {
        let world = World::new().await;
        let ids = world
            .capture(&[
                rich("Tea at nine"),
                note("Coffee at noon", &["case"]),
                note("Taken back", &["case"]),
                note("Deleted", &["gone"]),
            ])
            .await;
        world.clock.advance(Duration::from_secs(1));
        let event = |item: &str, event: &str| format!("/oap/owner/items/{item}/{event}");
        let correct = json!({"item": {"content": {"text": "Coffee at one"}}});
        world.owner("POST", &event(&ids[1], "correct"), Some(&correct)).await.ok();
        for (item, what) in
            [(&ids[1], "confirm"), (&ids[1], "retract"), (&ids[1], "restore"), (&ids[2], "retract")]
        {
            world.clock.advance(Duration::from_secs(1));
            world.owner("POST", &event(item, what), Some(&json!({}))).await.ok();
        }
        let grantee = agent(2);
        let mut draft = world.draft(&grantee);
        draft["filter"] = json!({"labels_any": ["case"]});
        draft["trust_level"] = json!(4);
        let grant = world.issue(&draft).await;
        let token = world.token(&grantee, &grant).await;
        let answer = world.query(&grantee, &token, &json!({})).await.ok();
        let item = |id: &str| {
            let items = answer["items"].as_array().unwrap();
            items.iter().find(|item| item["item_id"] == *id).unwrap().clone()
        };
        let (one, long) = (item(&ids[0]), item(&ids[1]));
        let deletion = json!({"items": [ids[3]]});
        let deletion = world.owner("POST", "/oap/data/delete", Some(&deletion)).await.ok();
        let log = world.owner("GET", "/oap/audit?chain=personal&from=0&limit=1000", None).await.ok();
        let log = log["receipts"].as_array().unwrap().clone();
        let list = world.raw("GET", "/oap/memory/status", &[], None).await;
        let list = String::from_utf8(list.bytes).unwrap().trim().to_owned();
        let bundle = lines(&world).await;
        let retracted = bundle.iter().find(|line| line["item"]["item_id"] == ids[2]).unwrap()["item"].clone();
        let mallory = Signer::from_seed("did:web:mallory.example#key-1".parse().unwrap(), &[66; 32]).unwrap();
        let documents = [world.document(), document(&mallory), document(&grantee), reseals::document()];
        let documents = documents.into_iter().map(|d| (d.id().clone(), Arc::new(d))).collect();
        Self {
            mallory,
            grantee,
            reader: Reader { documents, now: world.now() },
            grant,
            answer,
            one,
            long,
            retracted,
            log,
            deletion: deletion["deletion_receipt"].clone(),
            list,
            bundle,
            world,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.world.now()
    }
}

/// The lines of a whole bundle with grants and receipts, without its trailer.
async fn lines(world: &World) -> Vec<Value> {
    let header = world.owner("POST", "/oap/owner/export/header", Some(&json!({}))).await.ok();
    let mut header = header;
    header["type"] = json!("header");
    let mut lines = vec![header];
    for part in ["items", "grants", "receipts"] {
        let page = world.owner("POST", "/oap/owner/export/page", Some(&json!({"part": part}))).await;
        let page = page.bytes.split(|byte| *byte == b'\n').skip(1).filter(|line| !line.is_empty());
        lines.extend(page.map(|line| strict::parse(line).unwrap()));
    }
    lines
}

/// A hash of nothing that matters.
pub fn other_hash() -> Hash {
    Hash::of(b"something else")
}

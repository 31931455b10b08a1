//! Items captured as a gateway captures them, for tests.

#![allow(dead_code, reason = "each test binary uses its part")]

use oap_identity::random::{Random, Seeded};
use oap_identity::{
    DecisionId, Did, DidDocument, Hash, ItemId, ReceiptId, Signer, Timestamp, VerificationKey,
};
use oap_memory::Body;
use oap_memory::chain::{Event, Link};
use oap_memory::commitment::{Committed, Place};
use oap_memory::detect::{People, segments};
use oap_memory::item::Defaults;
use oap_memory::receipt::{Decision, GENESIS, Outcome, Receipt, ReceiptType, item_tag};
use oap_memory::record::ItemRecord;
use oap_memory::record::{Head, Meta};
use serde_json::{Map, Value, json};

/// 2026-05-01T12:00:00Z
pub fn now() -> Timestamp {
    Timestamp::from_seconds(1_777_636_800)
}

pub struct Owner {
    pub signer: Signer,
    pub random: Seeded,
}

impl Owner {
    pub fn new(seed: u64) -> Self {
        let kid = "did:web:user.example#key-1".parse().unwrap();
        Self { signer: Signer::from_seed(kid, &[7; 32]).unwrap(), random: Seeded::new(seed) }
    }

    pub fn did(&self) -> Did {
        self.signer.did().clone()
    }

    pub fn document(&self) -> DidDocument {
        let key = VerificationKey::new(self.signer.kid().clone(), *self.signer.public());
        DidDocument::new(self.did(), vec![key])
    }

    pub fn body(&self, item: &Value) -> Body {
        let scope = "personal".parse().unwrap();
        Body::parse(item, &Defaults { principal: &self.did(), scope: &scope, now: now() }).unwrap()
    }

    pub fn capture(&self, item: &Value) -> (Head, ItemRecord) {
        self.capture_as(ItemId::new(now(), &self.random), item)
    }

    pub fn capture_as(&self, item_id: ItemId, item: &Value) -> (Head, ItemRecord) {
        let body = self.body(item);
        let receipt_id = ReceiptId::new(now(), &self.random);
        let place =
            Place { item_id, seq: 0, event: Event::Capture, at: now(), prev: None, receipt: receipt_id };
        let committed = self.commit(&body, &place);
        let link = self.link(&place, &committed, receipt_id);
        let capture_receipt = self.capture_receipt(receipt_id, item_id, committed.commitment());
        let head = Head::new(item_id, &body, Meta::owner(self.did(), false));
        (head, ItemRecord { committed, chain: vec![link], capture_receipt })
    }

    /// A second version on top of the first.
    pub fn correct(&self, whole: &ItemRecord, item: &Value) -> ItemRecord {
        let before: Link = serde_json::from_str(whole.chain.last().unwrap()).unwrap();
        let body = self.body(item);
        let first: Link = serde_json::from_str(&whole.chain[0]).unwrap();
        let place = Place {
            item_id: before.item_id,
            seq: before.seq + 1,
            event: Event::Correct,
            at: now(),
            prev: Some(before.hash().unwrap()),
            receipt: first.receipt,
        };
        let committed = self.commit(&body, &place);
        let mut chain = whole.chain.clone();
        chain.push(self.link(&place, &committed, ReceiptId::new(now(), &self.random)));
        ItemRecord { committed, chain, capture_receipt: whole.capture_receipt.clone() }
    }

    /// The same, confirmed.
    pub fn confirm(&self, whole: &ItemRecord) -> ItemRecord {
        let before: Link = serde_json::from_str(whole.chain.last().unwrap()).unwrap();
        let receipt = ReceiptId::new(now(), &self.random);
        let link = before.followed_by(Event::Confirm, now(), &self.did(), receipt).unwrap();
        let mut confirmed = whole.clone();
        confirmed.chain.push(canonical(&link.signed(&self.signer).unwrap()));
        confirmed
    }

    fn commit(&self, body: &Body, place: &Place) -> Committed {
        self.commit_among(body, place, &People::none())
    }

    fn commit_among(&self, body: &Body, place: &Place, people: &People) -> Committed {
        let segments = segments(body.text.as_deref().unwrap_or_default(), people);
        Committed::sign(body, &segments, place, &self.signer, &self.random).unwrap()
    }

    /// The first version of an item whose text may name people.
    pub fn committed_among(&self, item: &Value, people: &People) -> Committed {
        let receipt = ReceiptId::new(now(), &self.random);
        let item_id = ItemId::new(now(), &self.random);
        let place = Place { item_id, seq: 0, event: Event::Capture, at: now(), prev: None, receipt };
        self.commit_among(&self.body(item), &place, people)
    }

    fn link(&self, place: &Place, committed: &Committed, receipt: ReceiptId) -> String {
        let link = Link {
            item_id: place.item_id,
            seq: place.seq,
            event: place.event,
            at: place.at,
            actor: self.did(),
            commitment: committed.commitment(),
            prev: Link::write_prev(place.prev),
            receipt,
            signature: String::new(),
        };
        canonical(&link.signed(&self.signer).unwrap())
    }

    fn capture_receipt(&self, receipt_id: ReceiptId, item_id: ItemId, commitment: Hash) -> String {
        let mut receipt = Receipt {
            receipt_id,
            kind: ReceiptType::Invocation,
            timestamp: now(),
            principal_did: self.did(),
            agent_did: self.did().to_string(),
            tool_did: Some(self.did()),
            action_id: Some("memory.capture".to_owned()),
            input_hash: None,
            output_hash: Some(commitment),
            policy_decisions: vec![Decision {
                id: DecisionId::new(now(), &self.random as &dyn Random),
                outcome: Outcome::Allow,
                rules: vec!["owner".to_owned()],
                more: Map::new(),
            }],
            provenance_tags_out: vec![item_tag(item_id, commitment)],
            previous_receipt_hash: GENESIS.to_owned(),
            signatures: Vec::new(),
        };
        receipt.sign(&self.signer).unwrap();
        canonical(&receipt)
    }
}

/// As the store has it.
fn canonical<T: serde::Serialize>(document: &T) -> String {
    String::from_utf8(oap_identity::json::canonical(document).unwrap()).unwrap()
}

/// A contact with an array of objects, and text with spans: every shape that a commitment conceals.
pub fn contact() -> Value {
    json!({
        "kind": "fact",
        "subject_entity_id": "ent_alice",
        "content": {
            "text": "Alice, reach her at alice@work.example or +49 30 901820.",
            "structured": {
                "entity_type": "oap.entity.contact",
                "names": {"given": "Alice", "family": "Schmidt"},
                "channels": [
                    {"type": "email", "value": "alice@work.example", "primary": true},
                    {"type": "email", "value": "alice@home.example"},
                    {"type": "phone", "value": "+4930901820", "primary": true},
                ],
                "affiliations": [{"organization_id": "ent_org", "role": "Lead", "since": "2024-01-01"}],
                "languages": ["de", "en"],
                "skills": [],
            },
        },
        "provenance": {"confidence": 0.92, "classification": "confidential"},
        "labels": ["project", "contact"],
        "ttl_days": 365,
        "extensions": {"example.app": {"colour": "blue"}},
    })
}

/// Every disclosure, in a full presentation.
pub fn full(whole: &ItemRecord) -> String {
    whole.committed.whole().unwrap()
}

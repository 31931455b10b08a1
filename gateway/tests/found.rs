//! What users found at the real program.

use crate::program::{Home, write};
use oap_federation::ack::Chain;
use oap_identity::{Hash, ReceiptId, Signer, Timestamp};
use oap_memory::receipt::Receipt;
use serde_json::{Value, json};

/// What `audit acks show --json` prints, of an answer of the first to the second, with so many signatures.
fn acknowledged(granter: &Signer, grantee: &Signer, links: usize) -> Value {
    let at: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
    let mut receipt: Receipt = serde_json::from_value(json!({
        "receipt_id": ReceiptId::from_bytes([7; 16]), "type": "invocation", "timestamp": at, "principal_did": granter.did(),
        "agent_did": grantee.did(), "action_id": "org.example.answer", "previous_receipt_hash": "genesis",
    }))
    .unwrap();
    receipt.sign(granter).unwrap();
    let hash = receipt.hash().unwrap();
    let mut chain = Chain::new(receipt.receipt_id, hash, granter.did().clone(), grantee.did().clone());
    chain.countersign(&receipt, grantee, at).unwrap();
    for number in 2..=links {
        chain.sign_next(if number % 2 == 0 { granter } else { grantee }, at).unwrap();
    }
    let signed: Vec<Value> =
        chain.links().iter().map(|link| serde_json::from_str(&link.document).unwrap()).collect();
    json!({"answer": {"order": 99}, "receipt": receipt, "signed": signed})
}

/// Acknowledgements are checked whole by anybody who has them: the receipt, and each signature over the one before.
#[test]
fn acknowledgements_are_verified_whole() {
    let (granter, grantee) = (Signer::did_key(&[1; 32]).unwrap(), Signer::did_key(&[2; 32]).unwrap());
    let home = Home::key();
    let file = home.path("acks.json");
    let verify = |acks: &Value, flags: &[&str]| {
        write(&file, acks);
        home.run(&[&["verify", file.as_str()][..], flags].concat())
    };
    let good = acknowledged(&granter, &grantee, 3);
    let told = verify(&good, &["--json"]).json();
    assert_eq!((&told["what"], &told["acknowledgements"]), (&json!("acknowledgements"), &json!(3)));
    assert_eq!((&told["order_to_granter"], &told["order_to_grantee"]), (&json!(4), &json!(3)));
    // What stands beside it is nobody's proof.
    assert_eq!(told["outside"], json!(["answer"]));
    let text = verify(&good, &[]).ok();
    assert!(text.contains("no common knowledge") && text.contains("outside the proof: answer"), "{text}");
    // The grantee has signed.
    assert!(!text.contains("the agent has not signed"), "{text}");
    // The attacks: one that was left out, one that was changed, another's receipt, a signature of somebody else.
    let mut short = good.clone();
    short["signed"].as_array_mut().unwrap().remove(1);
    verify(&short, &[]).failed(4, "does not hold");
    let mut changed = good.clone();
    changed["signed"][2]["of"] = json!(Hash::of(b"x"));
    verify(&changed, &[]).failed(4, "the acknowledgement's signature");
    let mut twice = good.clone();
    twice["signed"][2] = twice["signed"][1].clone();
    verify(&twice, &[]).failed(4, "does not hold");
    let mallory = acknowledged(&granter, &Signer::did_key(&[3; 32]).unwrap(), 1);
    let mut borrowed = good.clone();
    borrowed["signed"][0] = mallory["signed"][0].clone();
    verify(&borrowed, &[]).failed(4, "does not hold");
    let mut other = good.clone();
    other["receipt"]["action_id"] = json!("org.example.other");
    verify(&other, &[]).failed(4, "does not hold");
    let mut none = good;
    none["signed"] = json!({});
    verify(&none, &[]).failed(4, "signed: must be a list");
}

/// Whoever says yes beforehand is not asked, and is not refused for it.
#[test]
fn a_key_is_revoked_without_a_question() {
    let home = Home::web();
    let keys = home.run(&["keys", "revoke", "key-1", "--yes", "--json"]).json();
    assert_eq!(keys["keys"][1]["state"], "revoked", "{keys}");
}

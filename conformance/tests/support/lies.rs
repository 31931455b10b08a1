//! A gateway that lies and signs it: what a proof is worth only shows when the answer's own signature holds.

use crate::common::World;
use oap_identity::json as strict;
use oap_memory::answer::{answer_bytes, output_hash};
use oap_memory::receipt::{Receipt, item_tag};
use serde_json::{Value, json};

/// Seals a changed answer as its gateway would have: tags and hash of the receipt, the receipt's signature, the answer's.
/// An `output_hash` that was changed itself is left as it is. Nothing happens without a receipt.
pub fn reseal(world: &World, before: &Value, answer: &mut Value) {
    let Ok(mut receipt) = serde_json::from_value::<Receipt>(answer["receipt"].clone()) else { return };
    let keys = world.gateway.keys();
    let items = answer["items"].as_array().unwrap();
    receipt.provenance_tags_out = items
        .iter()
        .filter_map(|item| {
            let last = item["integrity"]["chain"].as_array()?.last()?;
            let (id, commitment) = (last["item_id"].as_str()?, last["commitment"].as_str()?);
            Some(item_tag(id.parse().ok()?, commitment.parse().ok()?))
        })
        .collect();
    if answer["receipt"]["output_hash"] == before["receipt"]["output_hash"] {
        let text = String::from_utf8(strict::canonical(items).unwrap()).unwrap();
        let response_id = answer["response_id"].as_str().unwrap().parse().unwrap();
        receipt.output_hash = Some(output_hash(&text, &response_id));
    }
    receipt.sign(keys.current()).unwrap();
    answer["receipt"] = serde_json::to_value(&receipt).unwrap();
    let value = keys.current().sign(&answer_bytes(answer).unwrap());
    answer["signature"] = json!({"alg": "EdDSA", "kid": keys.current().kid(), "value": value});
}

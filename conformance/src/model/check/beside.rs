//! What stands beside the items of an answer: the projection that was applied, the receipt.

use super::{Found, list, text};
use crate::model::disclosed::tag;
use crate::model::expected::ExpectedAnswer;
use oap_identity::Hash;
use serde_json::{Value, json};

impl ExpectedAnswer {
    pub(super) fn projection_differs(&self, applied: &Value, found: &mut Found) {
        for (name, wanted) in &self.projection_applied {
            found.equal(format!("/projection_applied/{name}"), &applied[name], wanted);
        }
        let at = "/projection_applied/redacted_field_count";
        let count = &applied["redacted_field_count"];
        match (count.as_u64(), self.redacted_field_count) {
            (None, _) => found.add(at, "is not a number"),
            (Some(count), Some(wanted)) if count != wanted => {
                found.add(at, format!("is {count}, must be {wanted} at this profile and level"));
            }
            _ => {}
        }
        let members = applied.as_object().map_or(0, serde_json::Map::len);
        if members != self.projection_applied.len() + 1 {
            found.add("/projection_applied", format!("has {members} members"));
        }
    }

    pub(super) fn receipt_differs(&self, answer: &Value, found: &mut Found) {
        let (receipt, wanted) = (&answer["receipt"], &self.receipt);
        for (name, value) in [
            ("type", "invocation"),
            ("action_id", wanted.action),
            ("agent_did", &wanted.agent),
            ("principal_did", &wanted.principal),
        ] {
            found.equal(format!("/receipt/{name}"), &receipt[name], &json!(value));
        }
        let decisions = list(&receipt["policy_decisions"]);
        let Some(decision) = decisions.first() else {
            found.add("/receipt/policy_decisions", "is empty");
            return;
        };
        if !text(&decision["outcome"]).starts_with("allow") {
            found.add("/receipt/policy_decisions/0/outcome", format!("is {}", decision["outcome"]));
        }
        for (name, value) in &wanted.decision {
            found.equal(format!("/receipt/policy_decisions/0/{name}"), &decision[name], value);
        }
        for name in ["purpose", "delegation"] {
            if !wanted.decision.contains_key(name) && !decision[name].is_null() {
                found.add(format!("/receipt/policy_decisions/0/{name}"), format!("is {}", decision[name]));
            }
        }
        self.tags_differ(answer, found);
        let output = json!({"items": answer["items"], "response_id": answer["response_id"]});
        hash_differs("/receipt/output_hash", &receipt["output_hash"], &output, found);
        if let Some(input) = &wanted.input {
            let mut input = input.clone();
            if let Some(members) = input.as_object_mut() {
                members.insert("request_id".to_owned(), answer["request_id"].clone());
            }
            hash_differs("/receipt/input_hash", &receipt["input_hash"], &input, found);
            if let Some(asked) = wanted.input.as_ref().and_then(|input| input["request_id"].as_str()) {
                found.equal("/request_id", &answer["request_id"], &json!(asked));
            }
        }
    }

    /// Each item of the answer in its order, with the commitment in force.
    fn tags_differ(&self, answer: &Value, found: &mut Found) {
        let tags: Vec<Value> = list(&answer["items"]).iter().map(tag).collect();
        if list(&answer["receipt"]["provenance_tags_out"]) != tags {
            found.add("/receipt/provenance_tags_out", "does not name the items and their commitments");
        }
    }
}

fn hash_differs(at: &str, got: &Value, of: &Value, found: &mut Found) {
    match Hash::of_canonical(of) {
        Ok(hash) => found.equal(at, got, &json!(hash)),
        Err(error) => found.add(at, format!("cannot be computed: {error}")),
    }
}

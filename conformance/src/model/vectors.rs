//! Vectors of the projected text (protocol section 6): where an item says that its own is, and who gets it.
//!
//! What a vector says is the gateway's own; here are its size and that nobody gets it who may not.

use super::Model;
use super::check::Difference;
use super::disclosed::Disclosed;
use super::grant::Grant;
use super::rule::{Refusal, Rule, Vectors};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The level from which on the built-in profiles show embeddings.
const SHOWN_FROM: u8 = 4;
/// Bytes of a dimension: a 32-bit float, little-endian.
const FLOAT: usize = 4;

/// A model of embeddings, as the manifest names it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Named {
    model: String,
    dimensions: u64,
}

impl Named {
    /// The models of a memory manifest.
    pub fn read(manifest: &Value) -> Vec<Self> {
        let one = |profile: &Value| {
            let model = profile["model"].as_str()?.to_owned();
            Some(Self { model, dimensions: profile["dimensions"].as_u64()? })
        };
        manifest["embedding_profiles"].as_array().into_iter().flatten().filter_map(one).collect()
    }
}

/// What `embedding_ref` of an item may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Refers {
    models: Vec<Named>,
    /// Where vectors are, up to the id of their item.
    below: String,
}

impl Refers {
    /// Why a reference is none of that item's.
    pub(super) fn wrong(&self, item_id: &str, got: &Value) -> Option<String> {
        let url = format!("{}{item_id}", self.below);
        let one = |named: &Named| {
            *got == json!({"model": named.model, "dimensions": named.dimensions, "vector_url": url})
        };
        (!self.models.iter().any(one))
            .then(|| format!("is {got}, must name a model of the manifest and {url}"))
    }
}

/// What a request for the vector of an item must be answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedVector {
    /// What it rests on.
    pub rule: Rule,
    status: u16,
    /// The code of a refusal.
    code: &'static str,
    /// The sizes of a vector, one of which it has, in bytes.
    sizes: Vec<usize>,
}

impl ExpectedVector {
    /// The differences of what came back.
    #[must_use]
    pub fn differences(&self, status: u16, body: &[u8]) -> Vec<Difference> {
        let told = |at: &str, why: String| {
            vec![Difference { at: at.to_owned(), why: format!("{why}: {}", self.rule) }]
        };
        if status != self.status {
            return told("/status", format!("is {status}, must be {}", self.status));
        }
        if status != 200 {
            let error = serde_json::from_slice::<Value>(body).unwrap_or_default()["error"].clone();
            return match error == self.code {
                true => Vec::new(),
                false => told("/error", format!("is {error}, must be {:?}", self.code)),
            };
        }
        if !self.sizes.contains(&body.len()) {
            return told("the body", format!("has {} bytes, must have {:?}", body.len(), self.sizes));
        }
        let finite =
            |bytes: &[u8]| <[u8; FLOAT]>::try_from(bytes).is_ok_and(|b| f32::from_le_bytes(b).is_finite());
        if !body.chunks(FLOAT).all(finite) {
            return told("the body", "holds what is no number".to_owned());
        }
        Vec::new()
    }
}

impl Model {
    /// Where the items of an answer say that their vectors are: `None` where they must not.
    pub(super) fn refers(&self, asked: bool, access: bool, level: u8) -> Option<Refers> {
        if self.embeddings.is_empty() {
            return None;
        }
        let shown = asked && access && level >= SHOWN_FROM;
        self.decided.note(Rule::Vectors(if shown { Vectors::Named } else { Vectors::NotNamed }));
        shown.then(|| Refers {
            models: self.embeddings.clone(),
            below: format!("{}/oap/memory/vec/", self.origin),
        })
    }

    /// What a request for the vector of an item must be answered with, by the grantee of a grant with a token that holds. Nothing is
    /// noted: whoever asks notes the rule ([`Model::vector_asked`]).
    #[must_use]
    pub fn vector(&self, grant_id: &str, item_id: &str, at: Timestamp, spent: &Disclosed) -> ExpectedVector {
        let chain = self.chain(grant_id);
        self.vector_of(&chain, &self.in_view(&chain, at), item_id, at, spent)
    }

    /// The first of some items for each reason to give its vector, or not to.
    #[must_use]
    pub fn vectors<'i>(
        &self,
        grant_id: &str,
        items: impl Iterator<Item = &'i str>,
        at: Timestamp,
        spent: &Disclosed,
    ) -> Vec<(&'i str, ExpectedVector)> {
        let chain = self.chain(grant_id);
        let view = self.in_view(&chain, at);
        let mut all: Vec<(&str, ExpectedVector)> = Vec::new();
        for item in items {
            let expected = self.vector_of(&chain, &view, item, at, spent);
            if all.iter().all(|(_, other)| other.rule != expected.rule) {
                all.push((item, expected));
            }
        }
        all
    }

    fn in_view(&self, chain: &[&Grant], at: Timestamp) -> BTreeSet<String> {
        let view = self.unheard().view(chain, true, at).unwrap_or_default();
        view.into_iter().map(|seen| seen.id).collect()
    }

    fn vector_of(
        &self,
        chain: &[&Grant],
        view: &BTreeSet<String>,
        item_id: &str,
        at: Timestamp,
        spent: &Disclosed,
    ) -> ExpectedVector {
        let refused = |rule: Rule, status: u16, code: &'static str| ExpectedVector {
            rule,
            status,
            code,
            sizes: Vec::new(),
        };
        if let Some(refusal) = self.not_in_force(chain, "query", at) {
            return refused(Rule::Refusal(refusal), 403, "policy_block");
        }
        let Some(grant) = chain.first() else {
            return refused(Rule::Refusal(Refusal::UnknownGrant), 403, "policy_block");
        };
        if !grant.embedding_access {
            return refused(Rule::Vectors(Vectors::NoAccess), 403, "policy_block");
        }
        let (seen, had) = (view.contains(item_id), spent.had(chain, item_id));
        let rule = match (seen, had) {
            _ if self.embeddings.is_empty() => Vectors::NoModel,
            (false, true) => Vectors::Gone,
            (false, false) => Vectors::Outside,
            (true, false) => Vectors::NotDisclosed,
            (true, true) if grant.level < SHOWN_FROM => Vectors::Hidden,
            (true, true) => Vectors::Given,
        };
        if rule != Vectors::Given {
            return refused(Rule::Vectors(rule), 404, "not_found");
        }
        // It is an answer that holds an item which was had before.
        if let Some(refusal) = spent.spent(chain, 1) {
            return refused(Rule::Refusal(refusal), 429, "budget_exhausted");
        }
        let sizes = self.embeddings.iter().filter_map(|named| usize::try_from(named.dimensions).ok());
        let sizes = sizes.map(|dimensions| FLOAT * dimensions).collect();
        ExpectedVector { rule: Rule::Vectors(rule), status: 200, code: "", sizes }
    }

    /// That a vector was asked for, of which this must be the answer.
    pub fn vector_asked(&self, expected: &ExpectedVector) {
        self.decided.note(expected.rule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Planted;

    const NOW: &str = "2026-05-01T12:00:00Z";

    fn grant(id: &str, level: u8, access: bool) -> Value {
        json!({
            "grant_id": id, "granter": "did:web:user.example#personal", "grantee": "did:web:b.example", "filter": {}, "max_items": 5,
            "trust_level": level, "embedding_access": access, "redaction_profile": "oap.profile.projection.memory.v1",
            "issued_at": NOW, "expires_at": "2026-05-02T12:00:00Z",
        })
    }

    fn model(profiles: &Value) -> Model {
        let manifest = json!({"embedding_profiles": profiles, "endpoints": {"query": "https://g.example/oap/memory/query"}});
        let mut model = Model::new("did:web:user.example".parse().unwrap(), &manifest, Vec::new());
        for id in ["mem_1", "mem_2"] {
            model.captured(
                id,
                &json!({"kind": "fact", "content": {"text": "x"}}),
                NOW.parse().unwrap(),
                &Planted::default(),
            );
        }
        model.granted(&grant("plain", 4, false));
        model.granted(&grant("below", 3, true));
        model.granted(&grant("all", 4, true));
        model
    }

    #[test]
    fn vectors_are_of_what_was_got_for_those_who_may() {
        let now = NOW.parse().unwrap();
        let model = model(&json!([{"model": "m", "dimensions": 2}]));
        let mut spent = Disclosed::default();
        let got = json!({"items": [{"item_id": "mem_1"}], "receipt": {}});
        for id in ["plain", "below", "all"] {
            spent.answered(&model, id, &json!({}), &got);
        }
        for (grant, item, expected) in [
            ("plain", "mem_1", Vectors::NoAccess),
            ("below", "mem_1", Vectors::Hidden),
            ("all", "mem_1", Vectors::Given),
            ("all", "mem_2", Vectors::NotDisclosed),
            ("all", "mem_3", Vectors::Outside),
        ] {
            assert_eq!(
                model.vector(grant, item, now, &spent).rule,
                Rule::Vectors(expected),
                "{grant} {item}"
            );
        }
        let given = model.vector("all", "mem_1", now, &spent);
        assert_eq!(given.differences(200, &[0; 8]), []);
        assert_eq!(given.differences(200, &[0; 4]).len(), 1);
        assert_eq!(given.differences(200, &[255; 8]).len(), 1, "no number");
        assert_eq!(given.differences(404, b"{}").len(), 1);
    }

    #[test]
    fn a_reference_names_the_model_and_the_item() {
        let model = model(&json!([{"model": "m", "dimensions": 2}]));
        assert_eq!(model.refers(true, true, 3), None);
        let refers = model.refers(true, true, 4).unwrap();
        let url = "https://g.example/oap/memory/vec/mem_1";
        let good = json!({"model": "m", "dimensions": 2, "vector_url": url});
        assert_eq!(refers.wrong("mem_1", &good), None);
        assert!(refers.wrong("mem_2", &good).is_some());
        assert!(refers.wrong("mem_1", &json!({"model": "n", "dimensions": 2, "vector_url": url})).is_some());
        assert_eq!(self::model(&json!([])).refers(true, true, 4), None);
    }
}

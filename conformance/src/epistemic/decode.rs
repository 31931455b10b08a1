//! The propositions that an item states (RFC 0010 A.1): `subject has property with value`, one for each leaf of its
//! structured content.

use super::model::Proposition;
use serde_json::Value;

/// What an item states, sorted. An item about nobody in particular is about itself.
#[must_use]
pub fn propositions(item: &Value) -> Vec<Proposition> {
    let subject = item["subject_entity_id"].as_str().or_else(|| item["item_id"].as_str()).unwrap_or_default();
    let mut found = Vec::new();
    leaves(&item["content"]["structured"], &mut String::new(), &mut |path, value| {
        found.push(format!("{subject} has {path} with value {value}"));
    });
    found.sort();
    found
}

fn leaves(value: &Value, path: &mut String, take: &mut dyn FnMut(&str, &Value)) {
    let length = path.len();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                leaves(member, path, take);
                path.truncate(length);
            }
        }
        Value::Array(elements) => {
            path.push_str("[]");
            elements.iter().for_each(|element| leaves(element, path, take));
            path.truncate(length);
        }
        Value::Null => {}
        leaf => take(path, leaf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_leaf_is_a_proposition() {
        let item = json!({
            "item_id": "mem_1", "subject_entity_id": "ada",
            "content": {"structured": {"job": {"title": "baker"}, "languages": ["de", "en"], "none": null}},
        });
        assert_eq!(
            propositions(&item),
            [
                "ada has job.title with value \"baker\"",
                "ada has languages[] with value \"de\"",
                "ada has languages[] with value \"en\"",
            ]
        );
        assert!(propositions(&json!({"content": {"text": "x"}})).is_empty());
    }
}

//! What was answered so far: what `max_items`, budgets and cursors count.

use super::Model;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What was disclosed so far, under which grant and to whom. The caller notes every answer, in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Disclosed {
    /// By grant: the distinct items.
    pub(super) items: BTreeMap<String, BTreeSet<String>>,
}

impl Disclosed {
    /// Notes the answer to a query under a grant, as it came.
    pub fn answered(&mut self, model: &Model, grant_id: &str, query: &Value, answer: &Value) {
        let _ = (model, query);
        let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ids = items.iter().filter_map(|item| item["item_id"].as_str().map(str::to_owned));
        self.items.entry(grant_id.to_owned()).or_default().extend(ids);
    }
}

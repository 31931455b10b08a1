//! The items of an answer: which, in which order, and what is shown of each.

use super::{Found, list, proof, text};
use crate::model::expected::{ExpectedAnswer, Form};
use crate::model::item::{canonical, time};
use crate::world::leaves;
use oap_identity::time::MAX_SKEW;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

impl ExpectedAnswer {
    pub(super) fn items_differ(&self, items: &[Value], found: &mut Found) {
        let ids: Vec<&str> = items.iter().map(|item| text(&item["item_id"])).collect();
        let set: BTreeSet<&str> = ids.iter().copied().collect();
        if set.len() < ids.len() {
            found.add("/items", "an item twice");
        }
        if ids.len() > self.most {
            found.add("/items", format!("{} items, at most {}", ids.len(), self.most));
        }
        for id in self.certain.iter().filter(|id| !set.contains(id.as_str())) {
            found.add(id, "is missing");
        }
        for (had, left) in &self.rooms {
            let new = ids.iter().filter(|id| !had.contains(**id)).count();
            if new > *left {
                found.add(
                    "/items",
                    format!("{new} items that were never disclosed, and max_items leaves {left}"),
                );
            }
        }
        self.order_differs(&ids, found);
        for item in items {
            self.item_differs(item, found);
        }
    }

    fn order_differs(&self, ids: &[&str], found: &mut Found) {
        let group = |id: &str| self.order.iter().position(|group| group.iter().any(|member| member == id));
        let places: Vec<usize> = ids.iter().filter_map(|id| group(id)).collect();
        if !places.is_sorted() {
            found.add("/items", format!("the order is {ids:?}, must be {:?}", self.order));
        }
    }

    fn item_differs(&self, item: &Value, found: &mut Found) {
        let id = text(&item["item_id"]);
        let Some(wanted) = self.items.get(id) else {
            found.add(id, "is shown, and is not in what the grant and the query admit");
            return;
        };
        let mut visible = item.clone();
        if let Some(members) = visible.as_object_mut() {
            members.remove("integrity");
            members.remove("relevance");
        }
        let reference = visible.as_object_mut().and_then(|members| members.remove("embedding_ref"));
        match (&self.refers, reference) {
            (None, None) => {}
            (None, Some(_)) => found.add(format!("{id}/embedding_ref"), "is shown"),
            (Some(_), None) => found.add(format!("{id}/embedding_ref"), "is missing"),
            (Some(refers), Some(got)) => {
                if let Some(why) = refers.wrong(id, &got) {
                    found.add(format!("{id}/embedding_ref"), why);
                }
            }
        }
        if let Some(why) = proof::beyond(text(&item["integrity"]["sd_jwt"]), &visible) {
            found.add(format!("{id}/integrity/sd_jwt"), why);
        }
        let mut shown: BTreeMap<String, Value> = leaves(&visible);
        for (pointer, form) in self.free.get(id).into_iter().flatten() {
            match shown.remove(pointer) {
                None => found.add(format!("{id}{pointer}"), "is missing"),
                Some(value) if is(&value, form, item) => {}
                Some(value) => found.add(format!("{id}{pointer}"), format!("is {value}, must be a {form:?}")),
            }
        }
        for (pointer, value) in &shown {
            match wanted.get(pointer) {
                None => found.add(format!("{id}{pointer}"), format!("is shown: {value}")),
                Some(wanted) => found.equal(format!("{id}{pointer}"), value, wanted),
            }
        }
        for pointer in wanted.keys().filter(|pointer| !shown.contains_key(*pointer)) {
            found.add(format!("{id}{pointer}"), "is missing");
        }
        self.integrity_differs(id, &item["integrity"], found);
    }

    fn integrity_differs(&self, id: &str, integrity: &Value, found: &mut Found) {
        let events: Vec<&str> = list(&integrity["chain"]).iter().map(|link| text(&link["event"])).collect();
        if let Some(wanted) = self.chain.get(id)
            && events != *wanted
        {
            found.add(
                format!("{id}/integrity/chain"),
                format!("has the events {events:?}, must have {wanted:?}"),
            );
        }
        if integrity["sd_jwt"].is_string() != self.sd_jwt {
            let why = if self.sd_jwt { "is missing" } else { "is there, and was not asked for" };
            found.add(format!("{id}/integrity/sd_jwt"), why);
        }
        let members = ["capture_receipt", "chain", "sd_jwt"];
        for name in integrity.as_object().into_iter().flatten().map(|(name, _)| name) {
            if !members.contains(&name.as_str()) {
                found.add(format!("{id}/integrity/{name}"), "is shown");
            }
        }
    }

    /// `relevance`: 1 for each item of a listing; else falling, from 0 to 1, with four decimals, and 1 where the best one is.
    pub(super) fn relevance_differs(&self, items: &[Value], found: &mut Found) {
        let mut before: Option<f64> = None;
        for item in items {
            let at = format!("{}/relevance", text(&item["item_id"]));
            let Some(relevance) = item["relevance"].as_f64() else {
                found.add(at, "is not a number");
                continue;
            };
            let decimals =
                canonical(&item["relevance"]).to_string().split_once('.').map_or(0, |(_, d)| d.len());
            if !(0.0..=1.0).contains(&relevance) || decimals > 4 {
                found.add(&at, format!("is {relevance}, must be from 0 to 1 with four decimals"));
            }
            if self.listing && relevance < 1.0 {
                found.add(&at, format!("is {relevance}, must be 1 in a listing"));
            }
            if self.has_best && before.is_none() && relevance < 1.0 {
                found.add(&at, format!("is {relevance}, must be 1: nothing is found that is better"));
            }
            if before.is_some_and(|before| before < relevance) {
                found.add(&at, "is above that of the item before");
            }
            before = Some(relevance);
        }
    }
}

/// Whether a value has its form.
fn is(value: &Value, form: &Form, item: &Value) -> bool {
    match form {
        Form::Receipt => {
            let receipt = item.pointer("/integrity/chain/0/receipt").map(text).unwrap_or_default();
            let short = receipt.strip_prefix("urn:oap:receipt:").map(|ulid| format!("rec_{ulid}"));
            short.is_some_and(|short| *value == short)
        }
        Form::Near(at) => {
            time(value).is_some_and(|shown| shown <= at.plus(MAX_SKEW) && *at <= shown.plus(MAX_SKEW))
        }
        Form::Joined(joined) => value.as_str().is_some_and(|shown| joined.allows(shown)),
    }
}

//! What grantees ask: every member of a query, alone and with others, and words from every place of the items.

use super::Setting;
use super::chance::Chance;
use super::item::{Common, Item};
use super::text::VOCABULARY;
use serde_json::{Value, json};

/// The queries under one grant. The first lists all, the second page by page.
pub(super) fn all(
    chance: &mut Chance,
    setting: &Setting,
    common: &Common,
    items: &[&Item],
    count: usize,
) -> Vec<Value> {
    let mut queries =
        vec![json!({"query": "", "max_results": 100}), json!({"max_results": 1 + chance.below(3)})];
    while queries.len() < count {
        queries.push(one(chance, setting, common, items));
    }
    queries.truncate(count);
    queries
}

/// A word from a place of some item whose pointer begins so.
fn planted(chance: &mut Chance, items: &[&Item], begins: &[&str]) -> String {
    for _ in 0..20 {
        let item = chance.of(items);
        let words: Vec<&String> = (item.planted.canaries.iter())
            .filter(|(word, at)| {
                begins.iter().any(|b| at.starts_with(b)) && word.chars().all(|c| c.is_ascii_lowercase())
            })
            .map(|(word, _)| word)
            .collect();
        if !words.is_empty() {
            return chance.of(&words).clone();
        }
    }
    VOCABULARY[0].to_owned()
}

/// A query: words, and each other member now and then.
fn one(chance: &mut Chance, setting: &Setting, common: &Common, items: &[&Item]) -> Value {
    let words = match chance.deal("words", 9) {
        0 => String::new(),
        1 | 2 => chance.of(&VOCABULARY).to_owned(),
        3 => format!("{} {}", chance.of(&VOCABULARY), chance.of(&VOCABULARY)),
        4 | 5 => planted(chance, items, &["/content/text"]),
        6 => planted(chance, items, &["/content/structured"]),
        7 => planted(chance, items, &["/labels", "/subject", "/provenance", "/extensions", "/embedding"]),
        _ => format!("{} {}", chance.of(&VOCABULARY), planted(chance, items, &["/content/text"])),
    };
    let mut query = json!({"query": words});
    if words.is_empty() && chance.once_in(2) {
        query = json!({});
    }
    if chance.deal("max_results", 4) == 0 {
        query["max_results"] = json!(chance.dealt("results", &[1, 2, 100]));
    }
    match chance.deal("asked", 12) {
        0 => query["kinds"] = json!([chance.of(&setting.kinds)]),
        1 => query["kinds"] = json!(chance.some(&setting.kinds)),
        2 => query["labels_any"] = json!([chance.of(&common.labels)]),
        3 => query["labels_any"] = json!(chance.some(&common.labels)),
        4 => query["labels_any"] = json!(["nobody-has-it"]),
        5 | 6 => query["min_confidence"] = json!(chance.dealt("asked confidence", &common.confidences)),
        7 => query["include_embeddings"] = json!(true),
        8 => query["purpose"] = json!(chance.dealt("purpose", &["travel", "surveys"])),
        9 => {
            query["kinds"] = json!(setting.kinds);
            query["min_confidence"] = json!(chance.of(&common.confidences));
            query["labels_any"] = json!(common.labels);
        }
        _ => {}
    }
    if chance.once_in(4) {
        query["integrity"] = json!(chance.of(&["chain", "full"]));
    }
    query
}

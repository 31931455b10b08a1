//! Queries as oracles: what is hidden must neither match nor rank.

use super::{Target, masked};
use crate::common::*;
use serde_json::json;

/// Queries that only hidden content could answer find nothing.
async fn finds_nothing(level: u8, query: &str) {
    let target = Target::at(level).await;
    let found = target.find(json!({"query": query})).await;
    assert!(found.is_empty(), "{query:?} at level {level}: {found:?}");
}

#[tokio::test]
async fn a_hidden_mailbox() {
    finds_nothing(2, "bobby.tables@mail.example").await;
    finds_nothing(2, "bobby").await;
    finds_nothing(2, "tables").await;
}

#[tokio::test]
async fn a_hidden_password() {
    finds_nothing(2, "Xk29vvTTmQ81").await;
    finds_nothing(3, "Xk29vvTTmQ81").await;
}

#[tokio::test]
async fn a_prefix_of_a_hidden_password() {
    for length in 1..12 {
        finds_nothing(3, &"Xk29vvTTmQ81"[..length]).await;
    }
}

#[tokio::test]
async fn a_hidden_structured_leaf() {
    finds_nothing(3, "zanzibar").await;
}

#[tokio::test]
async fn the_name_of_a_hidden_member() {
    finds_nothing(3, "codename").await;
}

#[tokio::test]
async fn a_hidden_extension() {
    finds_nothing(3, "quokka").await;
}

#[tokio::test]
async fn text_at_a_level_without_text() {
    finds_nothing(1, "budget").await;
    finds_nothing(0, "tea").await;
}

#[tokio::test]
async fn a_hidden_label_and_subject() {
    finds_nothing(0, "shared").await;
    finds_nothing(0, "urn:entity:bob").await;
}

#[tokio::test]
async fn the_words_of_an_item_outside() {
    for word in ["acquisition", "Umbrella", "Wollongong", "deals", "private"] {
        finds_nothing(3, word).await;
    }
}

#[tokio::test]
async fn inflections_and_cases_of_hidden_words() {
    for word in ["ZANZIBAR", "Zanzibars", "quokkas", "acquisitions", "BOBBY", "closing in wollongong"] {
        finds_nothing(2, word).await;
    }
}

#[tokio::test]
async fn wildcards_and_operators() {
    for query in
        ["zan*", "z?nzibar", "/zan.*/", "label:private", "zanzibar~2", "\"zanzibar\" OR zanzibar", "%"]
    {
        finds_nothing(3, query).await;
    }
}

#[tokio::test]
async fn control_and_format_characters() {
    for query in
        ["zan\u{200b}zibar", "\u{202e}rabiznaz", "zanzibar\u{0}", "\u{feff}zanzibar", "ｚａｎｚｉｂａｒ"]
    {
        finds_nothing(3, query).await;
    }
}

/// The weight of a word would tell how many items have it: only those of the view count.
#[tokio::test]
async fn the_weight_of_a_word_by_its_rarity_elsewhere() {
    let query = json!({"query": "budget tea", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"});
    let target = Target::at(2).await;
    let before = target.query(query.clone()).await.ok();
    let flood: Vec<_> = (0..100).map(|_| note("budget budget budget", &["private"])).collect();
    target.world.capture(&flood).await;
    let after = target.query(query).await.ok();
    let relevance = |answer: &serde_json::Value| -> Vec<serde_json::Value> {
        answer["items"].as_array().unwrap().iter().map(|i| i["relevance"].clone()).collect()
    };
    assert_eq!((ids(&before), relevance(&before)), (ids(&after), relevance(&after)));
}

/// Turns of a conversation are matched in their context: turns that are not granted are none of it.
#[tokio::test]
async fn the_turns_between() {
    let turn = |text: &str, minute: u8, label: &str| {
        json!({
            "kind": "conversation_turn", "content": {"text": text}, "labels": [label],
            "provenance": {"captured_at": format!("2026-04-01T10:{minute:02}:00Z")},
        })
    };
    let world = World::new().await;
    world
        .capture(&[
            turn("Shall we go?", 0, "shared"),
            turn("To the casino in Macau, secretly", 1, "private"),
            turn("Yes, on Friday", 2, "shared"),
        ])
        .await;
    let grantee = agent(2);
    let grant = world.issue(&Target::draft(&world, 3)).await;
    let token = world.token(&grantee, &grant).await;
    for query in ["casino", "macau", "secretly"] {
        let answer = world.query(&grantee, &token, &json!({"query": query})).await.ok();
        assert!(ids(&answer).is_empty(), "{query}");
    }
}

#[tokio::test]
async fn nothing_found_looks_like_nothing_there() {
    let target = Target::at(2).await;
    let asked = |word: &str| json!({"query": word, "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"});
    let mut hidden = target.query(asked("zanzibar")).await;
    let mut absent = target.query(asked("zanzibat")).await;
    for answer in [&mut hidden, &mut absent] {
        // It covers the query itself.
        answer.body["receipt"]["input_hash"] = json!("");
    }
    assert_eq!(masked(hidden), masked(absent));
}

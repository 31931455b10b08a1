//! Cursors as places to look from.

use super::Target;
use crate::common::*;
use serde_json::{Value, json};

async fn cursor(target: &Target) -> String {
    let answer = target.query(json!({"query": "", "max_results": 1})).await.ok();
    answer["next_cursor"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_changed_cursor() {
    let target = Target::at(2).await;
    let cursor = cursor(&target).await;
    let mut messages = std::collections::BTreeSet::new();
    for place in 0..cursor.len() {
        let mut changed = cursor.clone().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        // The last character may carry bits that base64url does not use.
        let answer = target.query(json!({"query": "", "max_results": 1, "cursor": changed})).await;
        messages.insert(answer.refused(400, "invalid_input")["message"].to_string());
    }
    assert_eq!(messages.len(), 1, "every refusal reads alike");
}

#[tokio::test]
async fn a_cut_or_made_up_cursor() {
    let target = Target::at(2).await;
    let cursor = cursor(&target).await;
    for made_up in ["", "AAAA", &cursor[..cursor.len() / 2], &format!("{cursor}AAAA"), "%00", "../../etc"] {
        target
            .query(json!({"query": "", "max_results": 1, "cursor": made_up}))
            .await
            .refused(400, "invalid_input");
    }
}

#[tokio::test]
async fn the_cursor_of_another_query() {
    let target = Target::at(2).await;
    let cursor = cursor(&target).await;
    for query in [
        json!({"query": "budget", "cursor": cursor}),
        json!({"query": "", "labels_any": ["shared"], "cursor": cursor}),
        json!({"query": "", "kinds": ["fact"], "cursor": cursor}),
        json!({"query": "", "min_confidence": 0.0, "cursor": cursor}),
    ] {
        target.query(query).await.refused(400, "invalid_input");
    }
}

#[tokio::test]
async fn the_cursor_of_another_grant() {
    let target = Target::at(2).await;
    let cursor = cursor(&target).await;
    let other = target.world.issue(&Target::draft(&target.world, 2)).await;
    let token = target.world.token(&target.grantee, &other).await;
    let query = json!({"query": "", "max_results": 1, "cursor": cursor});
    target.world.query(&target.grantee, &token, &query).await.refused(400, "invalid_input");
}

/// A cursor says that there is more in the view, never that there is more behind it.
#[tokio::test]
async fn a_cursor_that_counts_what_is_hidden() {
    let target = Target::at(2).await;
    let two = target.query(json!({"query": "", "max_results": 2})).await.ok();
    assert_eq!((ids(&two).len(), &two["next_cursor"]), (2, &Value::Null));
}

#[tokio::test]
async fn the_length_of_a_cursor() {
    let target = Target::at(2).await;
    let listing = cursor(&target).await;
    let scored = target.query(json!({"query": "budget tea", "max_results": 1})).await.ok();
    assert_eq!(scored["next_cursor"].as_str().unwrap().len(), listing.len());
}

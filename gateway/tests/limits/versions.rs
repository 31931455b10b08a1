//! Bounds of an item that is changed for years: what its owner's bundle takes along of what it replaced.

use crate::common::*;
use oap_memory::bundle::MAX_LINE;
use oap_memory::item::MAX_TEXT;
use serde_json::{Value, json};
use std::collections::BTreeSet;

async fn event(world: &World, id: &str, event: &str, body: Value) -> Answer {
    world.owner("POST", &format!("/oap/owner/items/{id}/{event}"), Some(&body)).await
}

/// What a page of a bundle's items holds: its cursor, and its lines.
async fn page(world: &World, after: &Value) -> (Value, Vec<Value>) {
    let body = json!({"part": "items", "after": after});
    let page = world.owner("POST", "/oap/owner/export/page", Some(&body)).await;
    assert_eq!(page.status, 200);
    let lines = page.bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let mut lines: Vec<Value> = lines.map(|line| oap_identity::json::parse(line).unwrap()).collect();
    let head = lines.remove(0);
    (head["next"].clone(), lines)
}

#[tokio::test]
async fn a_line_takes_the_newest_replaced_versions_along_and_a_page_so_many_bytes() {
    let world = World::new().await;
    let text = |n: usize| format!("{n:04} {}", "a".repeat(MAX_TEXT - 5));
    let ids = world.capture(&[note(&text(0), &[]), note(&text(0), &[]), note(&text(0), &[])]).await;
    // More than a line takes, each a third longer in an SD-JWT.
    let versions = MAX_LINE / MAX_TEXT * 5 / 8;
    for id in &ids {
        for n in 1..versions {
            event(&world, id, "correct", json!({"item": {"content": {"text": text(n)}}})).await.ok();
        }
    }
    let (mut after, mut seen) = (Value::Null, Vec::new());
    loop {
        let (next, lines) = page(&world, &after).await;
        let sizes: Vec<usize> = lines.iter().map(|line| line.to_string().len()).collect();
        assert!(sizes.iter().all(|size| *size < MAX_LINE), "{sizes:?}");
        // The line that goes beyond the bound is the last.
        assert!(sizes[..sizes.len() - 1].iter().sum::<usize>() < MAX_LINE, "{sizes:?}");
        seen.extend(lines);
        if next.is_null() {
            break;
        }
        after = next;
    }
    let held: BTreeSet<_> =
        seen.iter().map(|line| line["item"]["item_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((held, seen.len()), (ids.iter().cloned().collect(), ids.len()));
    for line in &seen {
        let superseded = line["superseded"].as_array().unwrap();
        let sizes: usize = superseded.iter().map(|text| text.as_str().unwrap().len()).sum();
        assert!(sizes <= MAX_LINE / 2 && sizes > MAX_LINE / 2 - 4 * MAX_TEXT, "{sizes}");
        assert!(superseded.len() < versions - 1);
    }
}

//! What a compromised key signed, and what resealing tells.

mod common;

use common::*;
use oap_memory::evidence;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn what_a_compromised_key_signed_later_is_held_back_and_the_rest_is_served() {
    let world = World::new().await;
    world.capture(&[note("tea in the morning", &["a"])]).await;
    world.clock.advance(Duration::from_secs(3_600));
    let since = world.now();
    world.clock.advance(Duration::from_secs(60));
    let late = world.capture(&[note("tea at night", &["a"])]).await;
    world.clock.advance(Duration::from_secs(60));
    world.gateway.revoke_key("key-1".into(), Some(since)).await.unwrap();
    // Grants of the compromised key are void: this one is new, and so is the key that signs it.
    let draft = serde_json::from_value(world.draft(&agent(2))).unwrap();
    let grant = world.gateway.issue(draft).await.unwrap().document().clone();
    let token = world.token(&agent(2), &grant).await;
    let answer = world.query(&agent(2), &token, &json!({})).await.ok();
    assert_eq!(texts(&answer), ["tea in the morning"]);
    evidence::answer(&answer, &world.document()).unwrap();
    let findings = world.gateway.examine().unwrap();
    let found = findings.iter().find(|finding| finding.part == "signatures of compromised keys").unwrap();
    assert_eq!(found.wrong.len(), 1);
    assert!(found.wrong[0].starts_with(&late[0]));
}

#[tokio::test]
async fn resealing_always_gives_a_version_that_says_the_same() {
    let world = World::new().await;
    let ids = world.capture(&[note("nobody is named here", &["a"])]).await;
    let item = ids[0].parse().unwrap();
    assert!(!world.gateway.would_reseal(item).await.unwrap());
    assert!(world.gateway.reseal(item, false).await.unwrap().is_none());
    let path = format!("/oap/owner/items/{}/reseal", ids[0]);
    let dry = world.owner("POST", &path, Some(&json!({"dry_run": true}))).await.ok();
    assert_eq!(dry["would_reseal"], false);
    let always = world.owner("POST", &path, Some(&json!({"always": true}))).await.ok();
    assert_eq!(always["resealed"]["version"], 2);
    let shown = world.gateway.item(item).unwrap();
    assert_eq!(shown["item"]["content"]["text"], "nobody is named here");
}

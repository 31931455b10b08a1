//! Subscriptions and their grants: one that was passed on (protocol section 5.2), one that ends, and a grantee whose key is new.

use super::house::{House, pair, subscribed, tick};
use crate::common::*;
use oap_identity::Signer;
use serde_json::{Value, json};
use std::time::Duration;

/// What is pushed is held against the grant with those that it was made from: the subscription goes on.
#[tokio::test]
async fn whom_a_grant_was_passed_on_to_is_told_too() {
    let (alice, bob) = pair().await;
    let carol = House::new(3).await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    let (above, hash) = alice.grants(&bob, json!({"delegable": {"max_depth": 1}})).await;
    let draft = json!({
        "grantee": carol.did, "purpose": "testing", "filter": {"labels_any": ["site"]}, "max_items": 5,
        "expires_at": alice.world.now().plus(Duration::from_secs(5 * 86_400)), "trust_level": 2,
        "redaction_profile": "oap.profile.projection.memory.v1", "operations": ["query", "subscribe"],
    });
    let made = bob.act(&format!("received/{hash}/delegate"), &draft).await.ok();
    carol.act("received", &json!({"grant": made["grant"], "chain": [above]})).await.ok();
    let child = made["hash"].as_str().unwrap();
    carol.act(&format!("received/{child}/subscribe"), &json!({"window": 60})).await.ok();
    for (number, text) in [(1, "The fair is in June"), (2, "The budget is 8000")] {
        alice.world.capture(&[note(text, &["site"])]).await;
        tick(&[&alice, &bob, &carol], 60);
        assert_eq!(alice.push().await, 1);
        let held = carol.held().await;
        let taken = (&held["sequence"], &held["came"], &held["ended_at"]);
        assert_eq!(taken, (&json!(number), &json!(number + 1), &Value::Null), "{held}");
        let given = alice.given().await;
        assert_eq!((&given["sequence"], &given["ended_by"]), (&json!(number), &Value::Null), "{given}");
    }
}

/// A granter that says nothing leaves nobody with a subscription that looks alive.
#[tokio::test]
async fn it_is_over_here_with_its_grant() {
    let (alice, bob) = pair().await;
    let soon = alice.world.now().plus(Duration::from_secs(120));
    subscribed(&alice, &bob, json!({"expires_at": soon})).await;
    assert_eq!((bob.ask_again().await, &bob.held().await["ended_at"]), (0, &Value::Null));
    let before = alice.requests().len();
    tick(&[&alice, &bob], 120);
    assert_eq!(bob.ask_again().await, 1);
    let held = bob.held().await;
    assert!(held["ended_at"].is_string());
    assert_eq!(held["ended_by"], "expired");
    assert_eq!((bob.ask_again().await, alice.requests().len()), (0, before));
}

/// What is known of a grantee without its new key is looked up anew: no ten minutes without a token for whoever changed a key.
#[tokio::test]
async fn a_new_key_of_the_grantee_is_looked_up() {
    let (alice, mut bob) = pair().await;
    let (grant, hash, _) = subscribed(&alice, &bob, json!({})).await;
    tick(&[&alice, &bob], 60);
    let rotated = bob.act("keys/rotate", &json!({})).await.ok();
    bob.world.token = rotated["trust_token"].as_str().unwrap().to_owned();
    let again = bob.act(&format!("received/{hash}/subscribe"), &json!({"window": 60})).await.ok();
    assert!(again["begun_at"].is_string(), "{again}");
    // Whoever signs with a key that nobody published has them looked up once a minute.
    let before = bob.requests().len();
    let forged = Signer::from_seed(format!("{}#key-9", bob.did).parse().unwrap(), &[9; 32]).unwrap();
    for _ in 0..3 {
        alice.world.exchange(&forged, &grant).await.refused(401, "auth_required");
    }
    assert_eq!(bob.requests().len(), before);
}

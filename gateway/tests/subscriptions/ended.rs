//! A granter that ends a subscription does not say so by itself: who holds one and hears nothing of it asks once a day whether it stands.

use super::counts;
use super::house::{DOWN, House, STRAY, UP, pair, subscribed, tick};
use crate::common::*;
use oap_gateway::service::Wallet;
use serde_json::{Value, json};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// How often a granter was asked for a subscription.
fn asked(granter: &House) -> usize {
    granter.requests().iter().filter(|path| *path == "/oap/memory/subscribe").count()
}

#[tokio::test]
async fn what_its_granter_ended_is_over_within_a_day() {
    let (alice, bob) = pair().await;
    let (_, _, id) = subscribed(&alice, &bob, json!({})).await;
    alice.act(&format!("subscriptions/{id}/end"), &json!({})).await.ok();
    // It was heard of when it was made.
    tick(&[&alice, &bob], DAY - 1);
    assert_eq!((bob.ask_again().await, &bob.held().await["ended_at"]), (0, &Value::Null));
    tick(&[&alice, &bob], 1);
    assert_eq!(bob.ask_again().await, 1);
    let held = bob.held().await;
    assert!(held["ended_at"].is_string(), "{held}");
    assert_eq!(held["ended_by"], "ended");
    assert_eq!(alice.given_of(&id).await["ended_by"], "granter");
    // Once.
    tick(&[&alice, &bob], DAY);
    assert_eq!((bob.ask_again().await, asked(&alice)), (0, 2));
}

/// That it is asked for again changes nothing of what stands, at either side; what was pushed says that it stands.
#[tokio::test]
async fn what_stands_is_asked_for_once_a_day_and_goes_on() {
    let (alice, bob) = pair().await;
    subscribed(&alice, &bob, json!({})).await;
    let (given, held) = (alice.given().await, bob.held().await);
    for day in 1..=2 {
        tick(&[&alice, &bob], DAY - 1);
        assert_eq!(bob.ask_again().await, 0, "{day}");
        tick(&[&alice, &bob], 1);
        assert_eq!((bob.ask_again().await, bob.ask_again().await), (1, 0), "{day}");
        assert_eq!((alice.given().await, bob.held().await), (given.clone(), held.clone()), "{day}");
    }
    assert_eq!(asked(&alice), 3);
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    tick(&[&alice, &bob], DAY / 2);
    assert_eq!(alice.push().await, 1);
    assert_eq!(counts(&bob.held().await), (1, 1, 0, 0));
    tick(&[&alice, &bob], DAY - 1);
    assert_eq!(bob.ask_again().await, 0);
    tick(&[&alice, &bob], 1);
    assert_eq!((bob.ask_again().await, asked(&alice)), (1, 4));
}

/// A granter that is away, or before whose gateway something else answers, ends nothing: who was not there is asked again in an hour.
#[tokio::test]
async fn nobody_else_says_that_it_is_over() {
    let (alice, bob) = pair().await;
    let (_, _, id) = subscribed(&alice, &bob, json!({})).await;
    alice.act(&format!("subscriptions/{id}/end"), &json!({})).await.ok();
    alice.is(DOWN);
    tick(&[&alice, &bob], DAY);
    assert_eq!((bob.ask_again().await, bob.ask_again().await), (1, 0));
    assert_eq!(bob.held().await["ended_at"], Value::Null);
    alice.is(STRAY);
    tick(&[&alice, &bob], HOUR);
    let before = asked(&alice);
    assert_eq!((bob.ask_again().await, asked(&alice)), (1, before + 1));
    assert_eq!(bob.held().await["ended_at"], Value::Null);
    // It was answered.
    alice.is(UP);
    tick(&[&alice, &bob], HOUR);
    assert_eq!(bob.ask_again().await, 0);
    tick(&[&alice, &bob], DAY - HOUR);
    assert_eq!(bob.ask_again().await, 1);
    assert_eq!(bob.held().await["ended_by"], "ended");
}

/// Where the notice of a revocation does not arrive, the status list says it within an hour: the subscription is over with its grant.
#[tokio::test]
async fn it_is_over_with_a_grant_that_the_status_list_says_is_revoked() {
    let (alice, bob) = pair().await;
    let (grant, hash, _) = subscribed(&alice, &bob, json!({})).await;
    let looked_up = async || Wallet(&bob.world.gateway).check_due().await.unwrap();
    assert_eq!(looked_up().await, 1);
    alice.act(&format!("grants/{}/revoke", grant["grant_id"].as_str().unwrap()), &json!({})).await.ok();
    tick(&[&alice, &bob], HOUR);
    assert_eq!((looked_up().await, bob.ask_again().await), (1, 1));
    assert_eq!(bob.get(&format!("received/{hash}")).await["state"], "revoked");
    assert_eq!(bob.held().await["ended_by"], "revoked");
}

/// One that made room for another at its granter's is forgotten there: asking whether it stands does not bring it back.
#[tokio::test]
async fn asking_brings_nothing_back() {
    let (alice, bob) = pair().await;
    let (_, hash, first) = subscribed(&alice, &bob, json!({})).await;
    let subscribe = async || {
        let held = bob.act(&format!("received/{hash}/subscribe"), &json!({"window": 60})).await.ok();
        held["subscription"].as_str().unwrap().to_owned()
    };
    alice.act(&format!("subscriptions/{first}/end"), &json!({})).await.ok();
    let second = subscribe().await;
    for _ in 0..3 {
        subscribe().await;
    }
    alice.act(&format!("subscriptions/{second}/end"), &json!({})).await.ok();
    tick(&[&alice, &bob], DAY);
    bob.ask_again().await;
    for id in [&first, &second] {
        assert_eq!(bob.held_of(id).await["ended_by"], "ended");
    }
    let all = alice.get("subscriptions").await;
    let live = all["given"].as_array().unwrap().iter().filter(|one| one["ended_by"].is_null()).count();
    assert_eq!(live, 3);
}

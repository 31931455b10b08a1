//! Who takes the room of others, who is away for a while, and what the merging of other parts adds to a push.

use super::house::{DOWN, House, SILENT, UP, pair, subscribed, tick};
use super::{counts, event, new, stream};
use crate::common::*;
use axum::body::{Body, HttpBody};
use oap_gateway::service::{Keys, Letters, Subscriptions};
use oap_gateway::state::subscriptions::MAX_STREAMS;
use oap_identity::Signer;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::Pin;

/// The longest window.
const DAY: u32 = 86_400;

/// A key that has subscribed to events; the grant, the token, the subscription.
async fn reads(alice: &House, key: &Signer, number: u8) -> (Value, String, String) {
    let mut draft = alice.world.draft(key);
    draft["operations"] = json!(["query", "subscribe"]);
    let grant = alice.world.issue(&draft).await;
    let token = alice.world.token(key, &grant).await;
    let asked = new(number, DAY, None);
    let made = alice.world.as_agent(key, &token, "POST", "/oap/memory/subscribe", Some(&asked)).await.ok();
    (grant, token, made["subscription"].as_str().unwrap().to_owned())
}

/// Reads a stream to its end.
async fn ends(mut body: Body) {
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        frame.unwrap();
    }
}

/// The attack: one grantee opens a stream again and again and never closes one, each of which would have its next tick in a day. There is
/// a place for whoever comes then, and each stream but the last is over at once.
#[tokio::test]
async fn one_reader_takes_no_more_than_one_place() {
    let alice = House::new(1).await;
    let key = agent(7);
    let (_, token, id) = reads(&alice, &key, 1).await;
    let mut open = Vec::new();
    for number in 0..=MAX_STREAMS {
        let (status, body) = stream(&alice, &key, &token, &id, None).await;
        assert_eq!(status, 200, "{number}");
        open.push(body);
    }
    let mut last = open.pop().unwrap();
    for body in open {
        ends(body).await;
    }
    assert!(event(&mut last).await.is_none());
    let other = agent(8);
    let (_, token, id) = reads(&alice, &other, 2).await;
    assert_eq!(stream(&alice, &other, &token, &id, None).await.0, 200);
}

/// A subscription of which nobody reads an event ends with its grant, too: it takes no room, and a stream of it is over.
#[tokio::test]
async fn a_subscription_is_over_with_its_grant_whoever_reads_it() {
    let alice = House::new(1).await;
    let (key, other) = (agent(7), agent(8));
    let (grant, token, id) = reads(&alice, &key, 1).await;
    let (_, _, lasting) = reads(&alice, &other, 2).await;
    let (_, mut body) = stream(&alice, &key, &token, &id, None).await;
    assert!(event(&mut body).await.is_none());
    let over = async || Subscriptions(&alice.world.gateway).end_over().await.unwrap();
    assert_eq!(over().await, 0);
    alice.act(&format!("grants/{}/revoke", grant["grant_id"].as_str().unwrap()), &json!({})).await.ok();
    assert_eq!((over().await, over().await), (1, 0));
    assert_eq!(alice.given_of(&id).await["ended_by"], "grant");
    assert!(alice.given_of(&lasting).await["ended_by"].is_null());
    ends(body).await;
}

/// Where a grantee's own gateway cannot be reached when it subscribes, that is no refusal for good: it asks again.
#[tokio::test]
async fn a_grantee_that_is_away_for_a_moment_is_no_stranger() {
    let (alice, bob) = pair().await;
    // From here on its document and its token are known.
    let (_, hash, _) = subscribed(&alice, &bob, json!({})).await;
    bob.is(DOWN);
    let held = bob.act(&format!("received/{hash}/subscribe"), &json!({"window": 60})).await.ok();
    assert!(held["begun_at"].is_null() && held["ended_at"].is_null(), "{held}");
    bob.is(UP);
    assert_eq!(bob.ask_again().await, 1);
    let held = bob.held_of(held["subscription"].as_str().unwrap()).await;
    assert!(held["begun_at"].is_string(), "{held}");
}

/// The attack: a granter's gateway that takes what it is asked and says nothing holds up the owner's subscriptions elsewhere. It says
/// something only once another one was asked.
#[tokio::test]
async fn a_silent_gateway_holds_up_no_other() {
    let (alice, bob) = pair().await;
    let carol = House::new(3).await;
    let mut held = Vec::new();
    for granter in [&alice, &carol] {
        let (_, hash) = granter.grants(&bob, json!({})).await;
        granter.is(DOWN);
        let made = bob.act(&format!("received/{hash}/subscribe"), &json!({"window": 60})).await.ok();
        assert!(made["begun_at"].is_null(), "{made}");
        held.push(made["subscription"].as_str().unwrap().to_owned());
        // The one that is silent was asked for first.
        tick(&[&alice, &bob, &carol], 1);
    }
    alice.is(SILENT);
    carol.is(UP);
    let (asked, ()) = tokio::join!(bob.ask_again(), async {
        carol.asked_for("/oap/memory/subscribe").await;
        alice.is(UP);
    });
    assert_eq!(asked, 2);
    for id in held {
        let held = bob.held_of(&id).await;
        assert!(held["begun_at"].is_string(), "{held}");
    }
}

/// A push is an answer: where the owners let their gateways, it is countersigned, and that is signed over.
#[tokio::test]
async fn a_push_is_acknowledged_as_every_answer_is() {
    let (alice, bob) = pair().await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    for house in [&alice, &bob] {
        house.act("acks", &json!({"automatic": true})).await.ok();
    }
    subscribed(&alice, &bob, json!({})).await;
    tick(&[&alice, &bob], 60);
    alice.push().await;
    let known = async |house: &House| {
        let answers = house.get("acks").await["answers"].clone();
        assert_eq!(answers.as_array().unwrap().len(), 1, "{answers}");
        (answers[0]["acknowledgements"].clone(), answers[0]["order"].clone())
    };
    assert_eq!(known(&bob).await, (json!(1), json!(1)));
    for house in [&bob, &alice] {
        Letters(&house.world.gateway).send_due().await.unwrap();
    }
    assert_eq!(known(&alice).await, (json!(2), json!(2)));
    assert_eq!(known(&bob).await, (json!(2), json!(3)));
}

/// Under a grant that was passed on the first granter pushes, and what it pushes holds behind all grants of the chain.
#[tokio::test]
async fn a_grant_that_was_passed_on_is_subscribed_to() {
    let (alice, bob) = pair().await;
    let carol = House::new(3).await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    let (grant, hash) = alice.grants(&bob, json!({"delegable": {"max_depth": 1}})).await;
    let draft = json!({
        "grantee": carol.did, "purpose": "Copy", "filter": grant["filter"], "max_items": 5,
        "expires_at": grant["expires_at"], "trust_level": grant["trust_level"],
        "redaction_profile": grant["redaction_profile"], "operations": grant["operations"],
    });
    let made = bob.act(&format!("received/{hash}/delegate"), &draft).await.ok();
    carol.act("received", &json!({"grant": made["grant"], "chain": made["above"]})).await.ok();
    let subscribe = format!("received/{}/subscribe", made["hash"].as_str().unwrap());
    let held = carol.act(&subscribe, &json!({"window": 60})).await.ok();
    assert!(held["begun_at"].is_string(), "{held}");
    tick(&[&alice, &bob, &carol], 60);
    alice.push().await;
    assert_eq!(counts(&carol.held().await), (1, 1, 0, 0));
    assert!(carol.held().await["ended_at"].is_null());
    // It is over with the first one.
    alice.world.capture(&[note("The budget is 8000", &["site"])]).await;
    alice.act(&format!("grants/{}/revoke", grant["grant_id"].as_str().unwrap()), &json!({})).await.ok();
    tick(&[&alice, &bob, &carol], 60);
    alice.push().await;
    assert_eq!(counts(&carol.held().await), (1, 1, 0, 0));
    assert_eq!(alice.given().await["ended_by"], "grant");
}

/// The attack: a granter, who knows what its grantee's subscription is called, subscribes at the grantee's under the same name, so that the
/// owner who means the one ends the other.
#[tokio::test]
async fn a_name_that_was_taken_twice_hides_no_subscription_from_its_owner() {
    let (alice, bob) = pair().await;
    let (_, _, id) = subscribed(&alice, &bob, json!({})).await;
    let (grant, _) = bob.grants(&alice, json!({})).await;
    let signer = alice.signer();
    let token = bob.world.token(&signer, &grant).await;
    let same = json!({"subscription": id, "window": 60});
    bob.world.as_agent(&signer, &token, "POST", "/oap/memory/subscribe", Some(&same)).await.ok();
    bob.act(&format!("subscriptions/{id}/end"), &json!({})).await.ok();
    assert_eq!(bob.given_of(&id).await["ended_by"], "granter");
    let held = bob.held_of(&id).await;
    assert!(held["ended_at"].is_string());
    assert_eq!(held["ended_by"], "owner");
}

/// A granter with a new key goes on pushing: the key is newer than what its grantee remembers of it.
#[tokio::test]
async fn a_push_by_a_new_key_is_taken() {
    let (alice, bob) = pair().await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    subscribed(&alice, &bob, json!({})).await;
    Keys(&alice.world.gateway).rotate_keys(&alice.world.proved().await).await.unwrap();
    tick(&[&alice, &bob], 60);
    alice.push().await;
    assert_eq!(counts(&bob.held().await), (1, 1, 0, 0));
}

/// The attack: whoever had the key that signs tokens made one, and subscribed. The owner learns of it and cannot say since when: the
/// subscription ends although its token says that it is older, and the grant is not the key's.
#[tokio::test]
async fn a_subscription_ends_with_the_key_of_its_token() {
    let alice = House::new(1).await;
    let key = agent(7);
    let mut draft = alice.world.draft(&key);
    draft["operations"] = json!(["query", "subscribe"]);
    let grant = alice.world.issue(&draft).await;
    let keys = Keys(&alice.world.gateway);
    keys.rotate_keys(&alice.world.proved().await).await.unwrap();
    let token = alice.world.token(&key, &grant).await;
    let asked = new(1, DAY, None);
    alice.world.as_agent(&key, &token, "POST", "/oap/memory/subscribe", Some(&asked)).await.ok();
    let over = async || Subscriptions(&alice.world.gateway).end_over().await.unwrap();
    tick(&[&alice], 60);
    assert_eq!(over().await, 0);
    keys.revoke_key(&alice.world.proved().await, "key-2".to_owned(), None).await.unwrap();
    assert_eq!((over().await, over().await), (1, 0));
}

//! Whoever else pushes, or pushes what is not so.

use super::house::{House, Pushed, pair, subscribed, tick};
use crate::common::*;
use axum::body::Body;
use axum::http::Request;
use oap_federation::push::TAG;
use oap_gateway::state::refusals::MAX_PUSHES;
use oap_identity::http_signature::{Covered, Nonce, SignedHeaders, sign};
use oap_identity::{Signer, SubscriptionId, Timestamp};
use serde_json::json;
use std::time::Duration;

/// Bytes at the door for pushes.
async fn at_the_door(bob: &House, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut request = Request::post(target).header("content-type", "application/oap+json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    bob.world.send(request.body(Body::from(body.to_vec())).unwrap()).await
}

/// How a push is signed that is not one.
struct Signing<'a> {
    target: &'a str,
    tag: &'a str,
    signer: &'a Signer,
    at: Timestamp,
}

impl Signing<'_> {
    fn of(&self, bob: &House, body: &[u8]) -> SignedHeaders {
        let covered = Covered::Request { method: "POST", target: self.target };
        sign(covered, body, &Nonce::new(&bob.world.fresh()), self.tag, self.signer, self.at)
    }
}

async fn push(bob: &House, target: &str, signed: &SignedHeaders, body: &[u8]) -> Answer {
    at_the_door(bob, target, &signed.named(), body).await
}

/// One honest push from Alice to Bob, as it came.
async fn pushed() -> (House, House, Pushed) {
    let (alice, bob) = pair().await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    subscribed(&alice, &bob, json!({})).await;
    tick(&[&alice, &bob], 60);
    alice.push().await;
    let pushed = bob.pushes()[0].clone();
    (alice, bob, pushed)
}

/// What Bob has of Alice's pushes: it is the same after every attack.
async fn untouched(bob: &House) {
    let held = bob.held().await;
    assert_eq!(
        (&held["sequence"], &held["came"], &held["left"]),
        (&json!(1), &json!(1), &json!(0)),
        "{held}"
    );
    assert!(held["ended_at"].is_null());
}

/// A forged signature, another tag, another address, another time: whoever is not proved is answered alike, and a replay is none.
#[tokio::test]
async fn whoever_is_not_the_granter_pushes_nothing() {
    let (alice, bob, pushed) = pushed().await;
    let (target, body) = (pushed.target.as_str(), &pushed.body[..]);
    let (signer, now) = (alice.signer(), bob.world.now());
    let honest = Signing { target, tag: TAG, signer: &signer, at: now };
    // What came once comes again.
    let again: Vec<(&str, &str)> = ["content-digest", "signature-input", "signature"]
        .map(|name| (name, pushed.headers[name].to_str().unwrap()))
        .to_vec();
    let replayed = at_the_door(&bob, target, &again, body).await.refused(401, "auth_required");
    let message = replayed["message"].clone();
    untouched(&bob).await;

    let forger = Signer::from_seed(signer.kid().clone(), &[66; 32]).unwrap();
    let other = SubscriptionId::from_bytes([9; 16]);
    let elsewhere = format!("/oap/peer/push/{other}");
    let stranger = agent(7);
    for (what, signing, at) in [
        ("forged", Signing { signer: &forger, ..honest }, target),
        ("a stranger's", Signing { signer: &stranger, ..honest }, target),
        ("the grantee's own", Signing { signer: &bob.signer(), ..honest }, target),
        ("for another address", Signing { target: &elsewhere, ..honest }, target),
        ("at an address that is none", Signing { target: &elsewhere, ..honest }, elsewhere.as_str()),
        ("expired", Signing { at: now.minus(Duration::from_secs(361)), ..honest }, target),
        ("to come", Signing { at: now.plus(Duration::from_secs(301)), ..honest }, target),
    ] {
        let answer = push(&bob, at, &signing.of(&bob, body), body).await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.body);
        assert_eq!(answer.body["message"], message, "{what}");
        untouched(&bob).await;
    }
    // What is not of the profile is not looked at any further.
    let tagged = Signing { tag: "oap-memory-push-reply", ..honest }.of(&bob, body);
    push(&bob, target, &tagged, body).await.refused(400, "invalid_input");
    at_the_door(&bob, target, &[], body).await.refused(400, "invalid_input");
    let signed = honest.of(&bob, body);
    let twice = [&signed.named()[..], &signed.named()[..]].concat();
    at_the_door(&bob, target, &twice, body).await.refused(400, "invalid_input");
    untouched(&bob).await;
    // A slow clock is forgiven as far as every other is.
    let late = Signing { at: now.minus(Duration::from_secs(299)), ..honest };
    assert_eq!(push(&bob, target, &late.of(&bob, body), body).await.ok()["outcome"], "behind");
    untouched(&bob).await;
}

/// The granter itself: another body than it signed, an old push signed anew, and what its receipt does not cover.
#[tokio::test]
async fn what_the_granter_signs_is_proved_all_the_same() {
    let (alice, bob, pushed) = pushed().await;
    let (target, body) = (pushed.target.as_str(), &pushed.body[..]);
    let signer = alice.signer();
    let honest = Signing { target, tag: TAG, signer: &signer, at: bob.world.now() };
    let text = std::str::from_utf8(body).unwrap();

    let signed = honest.of(&bob, body);
    push(&bob, target, &signed, text.replace("live", "dead").as_bytes()).await.refused(400, "invalid_input");
    untouched(&bob).await;
    // An old number has no effect; the reply says which was the last one.
    let answer = push(&bob, target, &honest.of(&bob, body), body).await.ok();
    assert_eq!((&answer["outcome"], &answer["sequence"]), (&json!("behind"), &json!(1)));
    untouched(&bob).await;
    // A higher number is not the one that its receipt has: a lie, which the owner is told of.
    let higher = text.replace("\"sequence\":1,", "\"sequence\":2,");
    assert_ne!(higher, text);
    let lied = push(&bob, target, &honest.of(&bob, higher.as_bytes()), higher.as_bytes()).await;
    lied.refused(400, "invalid_input");
    untouched(&bob).await;
    let lies = bob.get("lies").await["lies"].clone();
    assert_eq!((lies.as_array().unwrap().len(), &lies[0]["peer"]), (1, &json!(alice.did)), "{lies}");
    // What left, too, is the receipt's.
    let named = pushed.push()["changes"]["came"][0].as_str().unwrap().to_owned();
    let gone = SubscriptionId::from_bytes([3; 16]).ulid();
    let more = higher.replace("\"left\":[]", &format!("\"left\":[\"mem_{gone}\"]"));
    push(&bob, target, &honest.of(&bob, more.as_bytes()), more.as_bytes())
        .await
        .refused(400, "invalid_input");
    let twice = higher.replace("\"left\":[]", &format!("\"left\":[\"{named}\"]"));
    push(&bob, target, &honest.of(&bob, twice.as_bytes()), twice.as_bytes())
        .await
        .refused(400, "invalid_input");
    untouched(&bob).await;
    // One of another subscription.
    let other =
        text.replace(target.rsplit('/').next().unwrap(), &SubscriptionId::from_bytes([9; 16]).to_string());
    push(&bob, target, &honest.of(&bob, other.as_bytes()), other.as_bytes())
        .await
        .refused(400, "invalid_input");
    untouched(&bob).await;
}

/// The attack: another grantee has what it is told pushed to an address like that of somebody's subscription, and brings it there: the granter
/// signed it, for that address. It is not taken, and the granter is no liar for it.
#[tokio::test]
async fn what_was_pushed_to_another_is_no_lie_of_the_granters() {
    let (alice, bob, _) = pushed().await;
    let carol = House::new(3).await;
    let id = bob.held().await["subscription"].as_str().unwrap().to_owned();
    let (grant, _) = alice.grants(&carol, json!({})).await;
    let signer = carol.signer();
    let token = alice.world.token(&signer, &grant).await;
    let url = format!("{}/oap/peer/push/{id}", carol.origin());
    let new = json!({"subscription": id, "window": 60, "push": {"url": url}});
    alice.world.as_agent(&signer, &token, "POST", "/oap/memory/subscribe", Some(&new)).await.ok();
    tick(&[&alice, &bob, &carol], 60);
    alice.push().await;
    let stolen = carol.pushes()[0].clone();
    let headers = ["content-digest", "signature-input", "signature"]
        .map(|name| (name, stolen.headers[name].to_str().unwrap()));
    at_the_door(&bob, &stolen.target, &headers, &stolen.body).await.refused(400, "invalid_input");
    untouched(&bob).await;
    assert_eq!(bob.get("lies").await["lies"], json!([]));
}

/// The attack: a granter pushes as fast as it can, each time signed anew.
#[tokio::test]
async fn a_granter_pushes_no_faster_than_there_are_ticks() {
    let (alice, bob, pushed) = pushed().await;
    let (target, body) = (pushed.target.as_str(), &pushed.body[..]);
    let signer = alice.signer();
    let again = async || {
        let signing = Signing { target, tag: TAG, signer: &signer, at: bob.world.now() };
        push(&bob, target, &signing.of(&bob, body), body).await
    };
    // The honest one was the first.
    for _ in 1..MAX_PUSHES {
        assert_eq!(again().await.ok()["outcome"], "behind");
    }
    again().await.refused(429, "rate_limited");
    untouched(&bob).await;
    tick(&[&alice, &bob], 60);
    assert_eq!(again().await.ok()["outcome"], "behind");
}

/// Under a grant that the wallet knows to be void, or has not any more, nothing is taken; and the granter is told so.
#[tokio::test]
async fn nothing_is_taken_under_a_grant_that_is_gone() {
    let (alice, bob, _) = pushed().await;
    let hash = bob.held().await["grant"].as_str().unwrap().to_owned();
    bob.act(&format!("received/{hash}/remove"), &json!({})).await.ok();
    alice.world.capture(&[note("The budget is 8000", &["site"])]).await;
    tick(&[&alice, &bob], 60);
    alice.push().await;
    let held = bob.held().await;
    assert_eq!((&held["sequence"], &held["came"]), (&json!(1), &json!(1)));
    assert!(held["ended_at"].is_string());
    assert_eq!(held["ended_by"], "removed");
    assert_eq!(alice.given().await["ended_by"], "grantee");
}

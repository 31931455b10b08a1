//! Subscriptions: what becomes of a view is pushed to the grantee's gateway, or read as events; and whoever else pushes, or is pushed to,
//! gets nothing. Two gateways in one process, each behind a listener of its own; and two real ones over TLS.

mod attacks;
mod bounds;
mod ended;
mod house;
mod passed_on;
mod real;
mod ticks;

use crate::common::*;
use axum::body::{Body, HttpBody};
use axum::http::Request;
use house::{DEAF, DOWN, House, STALE, UP, pair, subscribed, tick};
use oap_gateway::state::subscriptions::MAX_PER_GRANT;
use oap_grants::dpop;
use oap_identity::{Signer, SubscriptionId, Timestamp};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

/// What a push names: came, changed, left, each sorted.
fn named(push: &Value) -> [Vec<String>; 3] {
    ["came", "changed", "left"].map(|name| {
        let items = push["changes"][name].as_array().unwrap();
        items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    })
}

fn counts(held: &Value) -> (u64, u64, u64, u64) {
    let count = |name: &str| held[name].as_u64().unwrap();
    (count("sequence"), count("came"), count("changed"), count("left"))
}

/// From the first push to one in which something came, changed and left.
#[tokio::test]
async fn what_becomes_of_a_view_is_pushed_proved_and_counted() {
    let (alice, bob) = pair().await;
    let old =
        alice.world.capture(&[note("The site goes live", &["site"]), note("The fair", &["site"])]).await;
    alice.world.capture(&[note("The doctor said to rest", &["health"])]).await;
    let (_, hash, id) = subscribed(&alice, &bob, json!({})).await;
    assert_eq!(counts(&bob.held().await), (0, 0, 0, 0));
    assert!(bob.held().await["begun_at"].is_string());
    // Its first tick is a window after it was made, whatever was there before.
    assert_eq!(alice.push().await, 0);
    tick(&[&alice, &bob], 59);
    assert_eq!((alice.push().await, bob.pushes().len()), (0, 0));
    tick(&[&alice, &bob], 1);
    assert_eq!((alice.push().await, bob.pushes().len()), (1, 1));
    let first = bob.pushes()[0].push();
    let mut expected = old.clone();
    expected.sort();
    assert_eq!(named(&first), [expected, vec![], vec![]]);
    assert_eq!(
        (&first["subscription"], &first["sequence"], &first["after"]),
        (&json!(id), &json!(1), &json!(0))
    );
    assert!(!first.to_string().contains("doctor"));
    assert_eq!(counts(&bob.held().await), (1, 2, 0, 0));
    let given = alice.given().await;
    assert_eq!(
        (&given["sequence"], &given["failure"], &given["ended_by"]),
        (&json!(1), &Value::Null, &Value::Null)
    );
    assert!(given["acknowledged_at"].is_string());

    let corrected = json!({"item": {"content": {"text": "The site goes live on 8 June"}}});
    alice.act(&format!("items/{}/correct", old[0]), &corrected).await.ok();
    alice.act(&format!("items/{}/retract", old[1]), &json!({})).await.ok();
    let new = alice.world.capture(&[note("The budget is 8000", &["site"])]).await;
    tick(&[&alice, &bob], 60);
    assert_eq!(alice.push().await, 1);
    let second = bob.pushes()[1].push();
    assert_eq!(named(&second), [new, vec![old[0].clone()], vec![old[1].clone()]]);
    assert_eq!(texts(&second["answer"]).len(), 2);
    assert_eq!((&second["sequence"], &second["after"]), (&json!(2), &json!(1)));
    assert_eq!(counts(&bob.held().await), (2, 3, 1, 1));
    // It is an answer: counted in the wallet, and receipted in the granter's log as one.
    let received = bob.get(&format!("received/{hash}")).await;
    assert_eq!((&received["reading"]["answers"], &received["reading"]["items"]), (&json!(2), &json!(4)));
    let grants = alice.get("grants").await;
    assert_eq!(grants["grants"][0]["disclosed"], 3, "{grants}");
    let receipt = &second["answer"]["receipt"];
    assert_eq!(receipt["action_id"], "memory.query");
    assert!(receipt.to_string().contains(id.as_str()), "{receipt}");
    alice.world.chains_hold().await;
}

/// A change outside the view has no tick of its own, no push, no request of any kind and no receipt.
#[tokio::test]
async fn a_change_outside_the_view_leaves_no_trace() {
    let run = async |outside: bool| {
        let (alice, bob) = pair().await;
        alice.world.capture(&[note("The site goes live", &["site"])]).await;
        subscribed(&alice, &bob, json!({})).await;
        tick(&[&alice, &bob], 60);
        alice.push().await;
        let before = bob.requests();
        if outside {
            let ids = alice.world.capture(&[note("The doctor said to rest", &["health"])]).await;
            let corrected = json!({"item": {"content": {"text": "The doctor said to run"}}});
            alice.act(&format!("items/{}/correct", ids[0]), &corrected).await.ok();
        }
        let mut ticks = Vec::new();
        for seconds in [30, 29, 1, 60] {
            tick(&[&alice, &bob], seconds);
            let due = alice.push().await;
            let given = alice.given().await;
            ticks.push((due, bob.requests()[before.len()..].to_vec(), given["sequence"].clone()));
        }
        // And with a change in the view at the same tick, what is sent has the same form.
        alice.world.capture(&[note("The budget is 8000", &["site"])]).await;
        tick(&[&alice, &bob], 60);
        alice.push().await;
        let pushed = bob.pushes().last().unwrap().clone();
        let push = pushed.push();
        let shape = (
            bob.requests()[before.len()..].iter().map(|path| path.len()).collect::<Vec<_>>(),
            pushed.header_names(),
            push["sequence"].clone(),
            texts(&push["answer"]),
            push["answer"]["items"][0].as_object().unwrap().keys().cloned().collect::<Vec<_>>(),
        );
        (ticks, shape)
    };
    let (quiet, loud) = (run(false).await, run(true).await);
    assert_eq!(quiet.0, loud.0);
    assert!(quiet.0.iter().all(|(_, requests, sequence)| requests.is_empty() && *sequence == 1), "{quiet:?}");
    assert_eq!(quiet.0.iter().map(|(due, ..)| *due).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(quiet.1, loud.1);
}

/// What is lost is made again under a higher number, judged anew, and counted once.
#[tokio::test]
async fn a_lost_reply_and_a_gateway_that_is_away() {
    let (alice, bob) = pair().await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    subscribed(&alice, &bob, json!({})).await;
    // Taken, and its reply is lost.
    bob.is(DEAF);
    tick(&[&alice, &bob], 60);
    alice.push().await;
    assert_eq!(counts(&bob.held().await), (1, 1, 0, 0));
    let given = alice.given().await;
    assert_eq!((&given["failure"], &given["attempts"]), (&json!("no_reply"), &json!(1)));
    assert!(given["acknowledged_at"].is_null());
    // Away: nothing is disclosed, numbered or paid for.
    bob.is(DOWN);
    let more = alice.world.capture(&[note("The budget is 8000", &["site"])]).await;
    tick(&[&alice, &bob], 60);
    assert_eq!(alice.push().await, 1);
    let given = alice.given().await;
    assert_eq!((&given["failure"], &given["attempts"]), (&json!("unreachable"), &json!(2)));
    assert_eq!(given["sequence"], 1);
    assert_eq!(alice.get("grants").await["grants"][0]["disclosed"], 1);
    // Later each time, on its ticks: after two windows.
    bob.is(UP);
    tick(&[&alice, &bob], 60);
    assert_eq!(alice.push().await, 0);
    tick(&[&alice, &bob], 60);
    assert_eq!(alice.push().await, 1);
    let last = bob.pushes().last().unwrap().push();
    assert_eq!(named(&last)[0].len(), 2, "what may not have come is there again");
    assert!(named(&last)[0].contains(&more[0]));
    assert_eq!(counts(&bob.held().await), (2, 2, 0, 0), "counted once");
    let given = alice.given().await;
    assert_eq!((&given["failure"], &given["attempts"]), (&Value::Null, &json!(0)));
    tick(&[&alice, &bob], 60);
    alice.push().await;
    assert_eq!(counts(&bob.held().await), (2, 2, 0, 0));
}

/// The signed reply to another push acknowledges nothing: its nonce is that one's.
#[tokio::test]
async fn the_reply_to_another_request_is_none() {
    let (alice, bob) = pair().await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    subscribed(&alice, &bob, json!({})).await;
    tick(&[&alice, &bob], 60);
    alice.push().await;
    let acknowledged = alice.given().await["acknowledged_at"].clone();
    bob.is(STALE);
    alice.world.capture(&[note("The budget is 8000", &["site"])]).await;
    tick(&[&alice, &bob], 60);
    alice.push().await;
    let given = alice.given().await;
    assert_eq!((&given["failure"], &given["acknowledged_at"]), (&json!("no_reply"), &acknowledged));
}

/// Nothing is pushed under a grant that was revoked, and there are no ticks any more.
#[tokio::test]
async fn what_was_revoked_is_not_pushed() {
    let (alice, bob) = pair().await;
    let (grant, _, _) = subscribed(&alice, &bob, json!({})).await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    let id = grant["grant_id"].as_str().unwrap();
    alice.act(&format!("grants/{id}/revoke"), &json!({})).await.ok();
    tick(&[&alice, &bob], 60);
    assert_eq!((alice.push().await, bob.pushes().len()), (1, 0));
    let given = alice.given().await;
    assert_eq!((&given["ended_by"], &given["sequence"]), (&json!("grant"), &json!(0)));
    tick(&[&alice, &bob], 600);
    assert_eq!((alice.push().await, bob.pushes().len()), (0, 0));
}

/// An erased item is pushed as gone, by its id alone.
#[tokio::test]
async fn an_erased_item_is_pushed_as_gone() {
    let (alice, bob) = pair().await;
    let ids = alice.world.capture(&[note("The password is tulip", &["site"]), note("Tea", &["site"])]).await;
    subscribed(&alice, &bob, json!({})).await;
    tick(&[&alice, &bob], 60);
    alice.push().await;
    alice.world.owner("POST", "/oap/data/delete", Some(&json!({"items": [ids[0]]}))).await.ok();
    tick(&[&alice, &bob], 60);
    alice.push().await;
    let push = bob.pushes()[1].push();
    assert_eq!(named(&push), [vec![], vec![], vec![ids[0].clone()]]);
    assert_eq!(push["answer"]["items"], json!([]));
    assert!(!push.to_string().contains("tulip"));
    assert_eq!(counts(&bob.held().await), (2, 2, 0, 1));
}

/// A push costs what an answer costs, and shows no more items than its grant.
#[tokio::test]
async fn a_push_is_paid_for_and_bounded_by_its_grant() {
    let (alice, bob) = pair().await;
    let notes = ["one", "two", "three"].map(|text| note(text, &["site"]));
    alice.world.capture(&notes).await;
    subscribed(&alice, &bob, json!({"max_items": 2, "budget": {"queries": 1}})).await;
    tick(&[&alice, &bob], 60);
    alice.push().await;
    assert_eq!(named(&bob.pushes()[0].push())[0].len(), 2);
    let shown = named(&bob.pushes()[0].push())[0][0].clone();
    let corrected = json!({"item": {"content": {"text": "another"}}});
    alice.act(&format!("items/{shown}/correct"), &corrected).await.ok();
    tick(&[&alice, &bob], 60);
    alice.push().await;
    assert_eq!(bob.pushes().len(), 1);
    assert_eq!(alice.given().await["failure"], "refused");
    // Refilled, it goes on.
    let id = alice.given().await["grant_id"].clone();
    alice.act("budgets/refill", &json!({"grantee": bob.did, "grant": id})).await.ok();
    tick(&[&alice, &bob], 60);
    alice.push().await;
    assert_eq!(named(&bob.pushes()[1].push())[1], [shown]);
}

/// More than one push has is pushed at the next ticks.
#[tokio::test]
async fn many_changes_come_in_batches() {
    let (alice, bob) = pair().await;
    let notes: Vec<Value> = (0..70).map(|n| note(&format!("note {n}"), &["site"])).collect();
    let ids = alice.world.capture(&notes).await;
    subscribed(&alice, &bob, json!({})).await;
    for _ in 0..3 {
        tick(&[&alice, &bob], 60);
        alice.push().await;
    }
    let pushes: Vec<Value> = bob.pushes().iter().map(|pushed| pushed.push()).collect();
    let sizes: Vec<(usize, bool)> =
        pushes.iter().map(|push| (named(push)[0].len(), push["more"].as_bool().unwrap())).collect();
    assert_eq!(sizes, [(50, true), (20, false)]);
    let mut came: Vec<String> = pushes.iter().flat_map(|push| named(push)[0].clone()).collect();
    came.sort();
    let mut ids = ids;
    ids.sort();
    assert_eq!(came, ids);
}

/// Either side ends it: the grantee at the granter's, who pushes no more; the granter, who pushes no more.
#[tokio::test]
async fn either_side_ends_it() {
    let (alice, bob) = pair().await;
    let (_, hash, id) = subscribed(&alice, &bob, json!({})).await;
    let over = bob.act(&format!("subscriptions/{id}/end"), &json!({})).await.ok();
    assert_eq!(over, json!({"subscription": id, "told": true}));
    assert_eq!(alice.given().await["ended_by"], "grantee");
    // Another one; and one whose end its granter was not told.
    let subscribe = format!("received/{hash}/subscribe");
    let second = bob.act(&subscribe, &json!({"window": 60})).await.ok();
    let second = second["subscription"].as_str().unwrap().to_owned();
    alice.is(DOWN);
    let over = bob.act(&format!("subscriptions/{second}/end"), &json!({})).await.ok();
    assert_eq!(over["told"], false);
    alice.is(UP);
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    tick(&[&alice, &bob], 60);
    alice.push().await;
    assert_eq!(bob.pushes().len(), 1, "it is told that it is over");
    assert_eq!(alice.given_of(&second).await["ended_by"], "grantee");
    assert_eq!(counts(&bob.held_of(&second).await), (0, 0, 0, 0));

    let third = bob.act(&subscribe, &json!({"window": 60})).await.ok();
    let third = third["subscription"].as_str().unwrap().to_owned();
    alice.act(&format!("subscriptions/{third}/end"), &json!({})).await.ok();
    alice.act(&format!("subscriptions/{third}/end"), &json!({})).await.refused(404, "not_found");
    assert_eq!(alice.given_of(&third).await["ended_by"], "granter");
    tick(&[&alice, &bob], 60);
    alice.push().await;
    assert_eq!(bob.pushes().len(), 1);
}

/// A granter that is away is asked again; one that refuses is not.
#[tokio::test]
async fn a_granter_that_is_away_is_asked_again() {
    let (alice, bob) = pair().await;
    let (_, hash) = alice.grants(&bob, json!({})).await;
    alice.is(DOWN);
    let held = bob.act(&format!("received/{hash}/subscribe"), &json!({"window": 60})).await.ok();
    assert!(held["begun_at"].is_null(), "{held}");
    assert_eq!(bob.ask_again().await, 1);
    assert!(bob.held().await["begun_at"].is_null());
    alice.is(UP);
    assert_eq!(bob.ask_again().await, 1);
    assert!(bob.held().await["begun_at"].is_string());
    assert_eq!(bob.ask_again().await, 0);
    assert_eq!(alice.given().await["subscription"], held["subscription"]);

    let (_, queries_only) = alice.grants(&bob, json!({"operations": ["query"]})).await;
    let subscribe = format!("received/{queries_only}/subscribe");
    bob.act(&subscribe, &json!({"window": 60})).await.refused(409, "conflict");
    bob.act(&format!("received/{hash}/subscribe"), &json!({"window": 9})).await.refused(400, "invalid_input");
}

fn new(id: u8, window: u32, url: Option<&str>) -> Value {
    let mut new = json!({"subscription": SubscriptionId::from_bytes([id; 16]), "window": window});
    if let Some(url) = url {
        new["push"] = json!({"url": url});
    }
    new
}

/// Pushes go to the grantee's own gateway and to nobody else's; and there are not more of them than there may be.
#[tokio::test]
async fn where_pushes_go_is_the_grantees_own() {
    let (alice, bob) = pair().await;
    let carol = House::new(3).await;
    let (grant, _) = alice.grants(&bob, json!({})).await;
    let signer = bob.signer();
    let signer = &*signer;
    let token = alice.world.token(signer, &grant).await;
    let subscribe = async |signer: &Signer, token: &str, body: Value| {
        alice.world.as_agent(signer, token, "POST", "/oap/memory/subscribe", Some(&body)).await
    };
    let (own, others) = (format!("{}/in", bob.origin()), format!("{}/in", carol.origin()));
    for url in [
        others.as_str(),
        "http://10.0.0.1/in",
        "https://bob.example/in",
        &own.replace("http://", "http://bob@"),
        &format!("{own}#x"),
        &own.replace("localhost", "localhost.evil.example"),
    ] {
        subscribe(signer, &token, new(1, 60, Some(url))).await.refused(400, "invalid_input");
    }
    assert!(carol.requests().is_empty(), "{:?}", carol.requests());
    subscribe(signer, &token, new(1, 9, Some(&own))).await.refused(400, "invalid_input");
    subscribe(signer, &token, new(1, 86_401, Some(&own))).await.refused(400, "invalid_input");
    let first = subscribe(signer, &token, new(1, 60, Some(&own))).await.ok();
    assert_eq!(subscribe(signer, &token, new(1, 60, Some(&own))).await.ok(), first, "the same again");
    subscribe(signer, &token, new(1, 61, Some(&own))).await.refused(409, "conflict");
    for id in 2..=u8::try_from(MAX_PER_GRANT).unwrap() {
        subscribe(signer, &token, new(id, 60, Some(&own))).await.ok();
    }
    subscribe(signer, &token, new(9, 60, Some(&own))).await.refused(409, "conflict");
    // One that is over makes room.
    let end = format!("/oap/memory/subscribe/{}/end", SubscriptionId::from_bytes([1; 16]));
    alice.world.as_agent(signer, &token, "POST", &end, Some(&json!({}))).await.ok();
    alice.world.as_agent(signer, &token, "POST", &end, Some(&json!({}))).await.refused(404, "not_found");
    subscribe(signer, &token, new(9, 60, Some(&own))).await.ok();

    // Who is a key has no gateway; and a grant says that it may be subscribed to.
    let key = agent(7);
    let mut draft = alice.world.draft(&key);
    draft["operations"] = json!(["query", "subscribe"]);
    let token = alice.world.token(&key, &alice.world.issue(&draft).await).await;
    subscribe(&key, &token, new(1, 60, Some(&own))).await.refused(400, "invalid_input");
    for operations in [json!(["query"]), json!(["subscribe"]), json!(["query", "export"])] {
        draft["operations"] = operations;
        let token = alice.world.token(&key, &alice.world.issue(&draft).await).await;
        subscribe(&key, &token, new(1, 60, None)).await.refused(403, "policy_block");
    }
    // A bearer token is whoever's has it.
    draft["operations"] = json!(["query", "subscribe"]);
    draft["bearer"] = json!(true);
    let token = alice.world.token(&key, &alice.world.issue(&draft).await).await;
    let bearer = [("authorization", format!("Bearer {token}"))];
    let bearer = bearer.each_ref().map(|(name, value)| (*name, value.as_str()));
    let refused = alice.world.raw("POST", "/oap/memory/subscribe", &bearer, Some(&new(1, 60, None))).await;
    refused.refused(401, "auth_required");
}

/// Opens a stream of events.
async fn stream(alice: &House, key: &Signer, token: &str, id: &str, last: Option<&str>) -> (u16, Body) {
    let path = format!("/oap/memory/subscribe/{id}/events");
    let url = format!("{}{path}", alice.origin());
    let target = dpop::Request { method: "GET", url: &url };
    let proof = dpop::prove(key, target, token, alice.world.now(), &alice.world.fresh()).unwrap();
    let mut request =
        Request::get(&path).header("authorization", format!("DPoP {token}")).header("dpop", proof);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response =
        tower::ServiceExt::oneshot(alice.world.router.clone(), request.body(Body::empty()).unwrap());
    let (head, body) = response.await.unwrap().into_parts();
    (head.status.as_u16(), body)
}

/// The next event of a stream: its number and what it pushes; none for a comment.
async fn event(body: &mut Body) -> Option<(u64, Value)> {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.unwrap().unwrap();
    let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
    assert!(text.ends_with("\n\n"), "{text}");
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    if text == ":\n\n" {
        return None;
    }
    assert_eq!(line("event: "), Some("push"));
    Some((line("id: ").unwrap().parse().unwrap(), serde_json::from_str(line("data: ").unwrap()).unwrap()))
}

/// Events go on after the last one that came, and say again what may not have come.
#[tokio::test]
async fn events_are_read_and_resumed() {
    let alice = House::new(1).await;
    let ids = alice.world.capture(&[note("The site goes live", &["site"])]).await;
    let key = agent(7);
    let mut draft = alice.world.draft(&key);
    draft["operations"] = json!(["query", "subscribe"]);
    let grant = alice.world.issue(&draft).await;
    let token = alice.world.token(&key, &grant).await;
    let asked = new(1, 10, None);
    let made = alice.world.as_agent(&key, &token, "POST", "/oap/memory/subscribe", Some(&asked)).await;
    let id = made.ok()["subscription"].as_str().unwrap().to_owned();
    assert_eq!(stream(&alice, &key, &token, "sub_01J9V8B7H1ZK4D2A0M9R8F0KQX", None).await.0, 404);
    assert_eq!(stream(&alice, &key, &token, &id, Some("x")).await.0, 400);
    let (status, mut body) = stream(&alice, &key, &token, &id, None).await;
    assert_eq!(status, 200);
    let (number, push) = event(&mut body).await.unwrap();
    assert_eq!((number, named(&push)), (1, [ids.clone(), vec![], vec![]]));
    drop(body);
    // It came: there is nothing more.
    let (_, mut body) = stream(&alice, &key, &token, &id, Some("1")).await;
    assert!(event(&mut body).await.is_none());
    drop(body);
    // What came since, and nothing else; it is lost on the way.
    let more = alice.world.capture(&[note("The budget is 8000", &["site"])]).await;
    let (_, mut body) = stream(&alice, &key, &token, &id, Some("1")).await;
    let (number, push) = event(&mut body).await.unwrap();
    assert_eq!((number, named(&push)), (2, [more.clone(), vec![], vec![]]));
    drop(body);
    let (_, mut body) = stream(&alice, &key, &token, &id, Some("1")).await;
    let (number, push) = event(&mut body).await.unwrap();
    assert_eq!((number, named(&push)), (3, [more.clone(), vec![], vec![]]));
    drop(body);
    let (_, mut body) = stream(&alice, &key, &token, &id, Some("3")).await;
    assert!(event(&mut body).await.is_none());
    drop(body);
    // It is read under the rules of a query: another's token, and a grant that was revoked.
    let other = agent(8);
    let stranger = alice.world.token(&other, &alice.world.issue(&alice.world.draft(&other)).await).await;
    assert_eq!(stream(&alice, &other, &stranger, &id, None).await.0, 403);
    let revoke = format!("grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    alice.act(&revoke, &json!({})).await.ok();
    assert_eq!(stream(&alice, &key, &token, &id, Some("3")).await.0, 403);
    alice.world.chains_hold().await;
}

/// An hour without a tick is one tick: what was missed is told once.
#[tokio::test]
async fn a_tick_that_was_missed_is_not_made_up_for() {
    let (alice, bob) = pair().await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    subscribed(&alice, &bob, json!({})).await;
    let begun: Timestamp = alice.given().await["begun_at"].as_str().unwrap().parse().unwrap();
    tick(&[&alice, &bob], 3 * 60 + 17);
    assert_eq!((alice.push().await, bob.pushes().len()), (1, 1));
    // The next one is where it would be without the delay.
    let next = begun.plus(Duration::from_secs(4 * 60));
    let early = next.millis() - alice.world.now().millis() - 1;
    for house in [&alice, &bob] {
        house.world.clock.advance(Duration::from_millis(u64::try_from(early).unwrap()));
    }
    assert_eq!(alice.push().await, 0);
    for house in [&alice, &bob] {
        house.world.clock.advance(Duration::from_millis(1));
    }
    assert_eq!(alice.push().await, 1);
}

/// What a clock put off that stood ten days ahead is pushed at the next tick once the owner has set it right.
#[tokio::test]
async fn a_clock_that_stood_ahead_puts_no_push_off() {
    let (alice, bob) = pair().await;
    subscribed(&alice, &bob, json!({})).await;
    alice.world.capture(&[note("The site goes live", &["site"])]).await;
    let start = alice.world.now();
    alice.world.clock.set(start.plus(Duration::from_secs(10 * 86_400)));
    assert_eq!(alice.push().await, 1);
    assert!(alice.given().await["failure"].is_string());
    alice.world.clock.set(start);
    alice.world.owner("POST", "/oap/owner/clock/accept", None).await.ok();
    tick(&[&alice, &bob], 60);
    assert_eq!(alice.push().await, 1);
    assert_eq!(bob.held().await["came"], 1);
}

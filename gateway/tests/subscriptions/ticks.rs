//! The ticks of a stream of events behind the first one. What a stream waits for is the runtime's own time, which these tests move.

use super::house::House;
use super::{event, named, new, stream};
use crate::common::*;
use axum::body::{Body, HttpBody};
use oap_gateway::state::subscriptions::MAX_EVENTS;
use oap_identity::Signer;
use serde_json::json;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// The longest window, in seconds: however slow the machine is, it takes no part of it.
const WINDOW: u32 = 86_400;

/// A key that has subscribed to events: the token, the subscription.
async fn subscribes(alice: &House, key: &Signer) -> (String, String) {
    let mut draft = alice.world.draft(key);
    draft["operations"] = json!(["query", "subscribe"]);
    let grant = alice.world.issue(&draft).await;
    let token = alice.world.token(key, &grant).await;
    let asked = new(1, WINDOW, None);
    let made = alice.world.as_agent(key, &token, "POST", "/oap/memory/subscribe", Some(&asked)).await.ok();
    (token, made["subscription"].as_str().unwrap().to_owned())
}

/// Lets the runtime's time go on.
async fn later(seconds: u32) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds.into())).await;
    tokio::time::resume();
}

/// Whether a stream says nothing now.
async fn is_quiet(body: &mut Body) -> bool {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *body).poll_frame(cx).is_pending())).await
}

/// What comes between two ticks is told at the next one, a tick without anything is told as such, and what was told and not said to have
/// come is told again to whoever comes back, however many ticks ago it was.
#[tokio::test]
async fn a_stream_tells_at_its_ticks() {
    let alice = House::new(1).await;
    let key = agent(7);
    let first = alice.world.capture(&[note("The site goes live", &["site"])]).await;
    let (token, id) = subscribes(&alice, &key).await;
    let (_, mut body) = stream(&alice, &key, &token, &id, None).await;
    let (number, push) = event(&mut body).await.unwrap();
    assert_eq!((number, named(&push), &push["after"]), (1, [first.clone(), vec![], vec![]], &json!(0)));
    let second = alice.world.capture(&[note("The budget is 8000", &["site"])]).await;
    assert!(is_quiet(&mut body).await);
    later(WINDOW - 3_600).await;
    assert!(is_quiet(&mut body).await);
    later(3_600).await;
    let (number, push) = event(&mut body).await.unwrap();
    assert_eq!((number, named(&push)), (2, [second.clone(), vec![], vec![]]));
    later(WINDOW).await;
    assert!(event(&mut body).await.is_none(), "nothing became of the view");
    drop(body);

    // The second one did not come, for all that is said.
    let (_, mut body) = stream(&alice, &key, &token, &id, Some("1")).await;
    let (number, push) = event(&mut body).await.unwrap();
    assert_eq!((number, named(&push), &push["after"]), (3, [second.clone(), vec![], vec![]], &json!(1)));
    let corrected = json!({"item": {"content": {"text": "The site goes live on 8 June"}}});
    alice.act(&format!("items/{}/correct", first[0]), &corrected).await.ok();
    alice.act(&format!("items/{}/retract", second[0]), &json!({})).await.ok();
    later(WINDOW).await;
    let (number, push) = event(&mut body).await.unwrap();
    assert_eq!((number, named(&push)), (4, [vec![], first.clone(), second.clone()]));
    drop(body);
    let (_, mut body) = stream(&alice, &key, &token, &id, Some("4")).await;
    assert!(event(&mut body).await.is_none());
    alice.world.chains_hold().await;
}

/// A stream ends with its last event, and its reader, who says what came, goes on behind it.
#[tokio::test]
async fn a_stream_ends_after_so_many_events() {
    let alice = House::new(1).await;
    let key = agent(7);
    let (token, id) = subscribes(&alice, &key).await;
    alice.world.capture(&[note("note 1", &["site"])]).await;
    let (_, mut body) = stream(&alice, &key, &token, &id, None).await;
    for number in 1..=MAX_EVENTS {
        let (told, push) = event(&mut body).await.unwrap();
        assert_eq!((usize::try_from(told).unwrap(), named(&push)[0].len()), (number, 1));
        alice.world.capture(&[note(&format!("note {}", number + 1), &["site"])]).await;
        later(WINDOW).await;
    }
    assert!(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.is_none());
    let last = MAX_EVENTS.to_string();
    let (_, mut body) = stream(&alice, &key, &token, &id, Some(&last)).await;
    let (told, push) = event(&mut body).await.unwrap();
    let next = MAX_EVENTS + 1;
    assert_eq!(
        (usize::try_from(told).unwrap(), texts(&push["answer"])),
        (next, vec![format!("note {next}")])
    );
}

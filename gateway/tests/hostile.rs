//! Peers that mean no good, played over TLS on loopback, at every door that talks with them: they are down or slow, break off, never end, nest
//! too deep, lead elsewhere, show what is not theirs, change their keys in the midst, say again what they said before, have another time, and
//! acknowledge what they never got. Nothing hangs, nothing of it is believed, and what others say still comes.
//!
//! What each of them does to each door, and the test that shows it:
//!
//! | | looking at a peer | letters that arrive | letters that are sent, deliveries and notices with them | recall | a grant's status |
//! |---|---|---|---|---|---|
//! | is down, slow, breaks off, is endless, nests deep, redirects | `peers::hosts::hosts_that_misbehave`, `..::a_host_that_says_nothing_holds_nothing_up` | [`arriving`] | [`sending`] | `federated::whoever_gives_no_answer_costs_the_rest_nothing` | [`status`] |
//! | leads to a private address | `peers::hosts::a_private_address_is_not_asked` | [`arriving`] | by the one client of all of them: `oap_identity::outgoing::public` | likewise | likewise |
//! | rebinds a name between check and connection | `oap_identity::outgoing::public`: the one client of all doors | likewise | likewise | likewise | likewise |
//! | shows another's document | `peers::hosts::hosts_that_misbehave` | [`arriving`] | [`sending`] | `federated::a_lie_is_named_dropped_and_told_to_the_owner` | [`status`] |
//! | changes its keys in the midst | [`looking`], `peers::a_key_that_*` | [`arriving`] | [`sending`] | `federated::a_new_key_of_a_peer_is_no_lie` | [`status`] |
//! | says again what it said before | `peers::an_old_manifest_that_comes_back_asks` | `letters::what_the_door_refuses` | [`sending`], [`telling`] | `federated::a_lie_is_named_dropped_and_told_to_the_owner` | [`status`] |
//! | has a clock ten minutes off | `peers::an_old_manifest_that_comes_back_asks` | [`arriving`] | its reply has no time that counts | [`recalled`] | [`status`] |
//! | floods | | `letters::a_flood_from_one_ends`, `..::a_flood_from_many_leaves_room_for_the_known`, `letters::bounds::*`, [`arriving`] | [`sending`]: takes its time | | |
//! | forges, or sends what nobody asked for | `peers::hosts::a_card_that_names_somebody_else` | `letters::a_grant_that_nobody_asked_for_is_not_taken`, `notices::who_gave_nothing_has_nothing_to_tell` | [`sending`] | `federated::a_lie_is_named_dropped_and_told_to_the_owner` | [`status`] |
//! | acknowledges what it never got | | | [`telling`] | | |
//!
//! Pushes: to receivers that misbehave [`pushing`]; forged, replayed and flooding ones `subscriptions::attacks`. Devices: `devices::attacks`.
//! What the house looks up by itself of a grant's status: [`checked`]. Witnesses and logs: `witnesses`, `witnesses::faces`.

mod arriving;
mod checked;
mod looking;
mod pushing;
mod recalled;
mod sending;
mod status;
mod telling;

use crate::common::*;
use crate::played::{Make, PlayedPeer, Reply, Trust, http};
use oap_federation::reply::LetterResult;
use oap_gateway::Config;
use oap_gateway::service::Letters;
use oap_identity::{Hash, Signer, Timestamp, json as strict};
use oap_manifest::path;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// A gateway that trusts the authority of these tests, and reaches hosts on loopback.
async fn world(trust: &Trust) -> World {
    World::with(1, Config { trust_ca: Some(trust.file()), allow_local_dids: true, ..Config::default() }).await
}

/// A peer that publishes what a sound one does.
async fn peer(world: &World, trust: &Trust) -> PlayedPeer {
    let peer = PlayedPeer::over_tls(trust).await;
    peer.publish(&PlayedPeer::shown(world.now()));
    peer
}

/// JSON in 10,000 levels.
fn deep() -> Vec<u8> {
    format!("{{\"id\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes()
}

/// An answer that ends long before it said it would.
fn cut_off() -> Reply {
    Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{\"principal\":".to_vec())
}

/// Sends on to somebody, who is not to be asked.
fn onward(to: &std::net::TcpListener) -> Reply {
    let location = format!("Location: http://{}/\r\n", to.local_addr().unwrap());
    Reply::Raw(http("307 Temporary Redirect", &location, b""))
}

/// Somebody who is not to be asked.
fn inside() -> std::net::TcpListener {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// That nobody connected to it.
#[track_caller]
fn nobody_came(to: &std::net::TcpListener) {
    assert_eq!(to.accept().map(drop).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

/// The signed reply to a letter.
fn reply_to(letter: &Value, said: LetterResult, signer: &Signer) -> Vec<u8> {
    let at: Timestamp = letter["issued_at"].as_str().unwrap().parse().unwrap();
    let hash = Hash::of_canonical(letter).unwrap();
    let reply = oap_federation::Reply::new(said, hash, signer.did().clone(), at);
    http("200 OK", "", &reply.sign(signer).unwrap())
}

/// A gateway that takes letters, and says this of each.
fn saying(signer: Signer, say: impl Fn(&Value) -> LetterResult + Send + Sync + 'static) -> Make {
    Arc::new(move |body| {
        let letter = strict::parse(body).unwrap();
        reply_to(&letter, say(&letter), &signer)
    })
}

/// The same of every letter.
fn says(signer: Signer, said: LetterResult) -> Reply {
    Reply::Made(saying(signer, move |_| said.clone()))
}

async fn get(world: &World, path: &str) -> Value {
    world.owner("GET", &format!("/oap/owner/{path}"), None).await.ok()
}

/// Asks a peer for access; the name of the request.
async fn asks(world: &World, peer: &PlayedPeer, max_items: usize) -> String {
    let ask = json!({
        "purpose": "Website redesign", "filter": {"labels_any": ["website"]}, "max_items": max_items,
        "expires_at": world.now().plus(30 * DAY), "operations": ["query"],
    });
    let body = json!({"from": peer.did, "ask": ask});
    let asked = world.owner("POST", "/oap/owner/asked", Some(&body)).await.ok();
    asked["request"].as_str().unwrap().to_owned()
}

async fn send_due(world: &World) -> usize {
    Letters(&world.gateway).send_due().await.unwrap()
}

/// The letters to a peer, newest first.
async fn letters_to(world: &World, peer: &PlayedPeer) -> Vec<Value> {
    let letters = get(world, "letters").await["letters"].clone();
    let letters = letters.as_array().unwrap().iter();
    letters.filter(|letter| letter["to"] == peer.did.as_str()).cloned().collect()
}

/// The only letter to a peer: its state, and why the last attempt failed.
async fn letter_to(world: &World, peer: &PlayedPeer) -> (String, String) {
    let letters = letters_to(world, peer).await;
    assert_eq!(letters.len(), 1, "{letters:?}");
    let text = |name: &str| letters[0][name].as_str().unwrap_or_default().to_owned();
    (text("state"), text("failure"))
}

fn pair(state: &str, failure: &str) -> (String, String) {
    (state.to_owned(), failure.to_owned())
}

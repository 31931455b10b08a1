//! Letters whose senders have hosts that misbehave: whoever is not proved is told the same, and costs the others nothing.

use super::*;
use crate::played::Shown;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use oap_federation::ask::AccessWithdrawal;
use oap_federation::letter::MAX_LIFE;
use oap_federation::notice::RevocationNotice;
use oap_federation::{Content, Letter, SignedLetter};
use oap_identity::{AskId, Did, LetterId};
use std::collections::BTreeSet;
use std::net::SocketAddr;

fn nothing() -> Content {
    Content::AccessWithdrawal(AccessWithdrawal { request: AskId::from_bytes([9; 16]) })
}

/// A letter to the principal of these tests, signed at a time.
fn letter(signer: &Signer, number: u8, at: Timestamp, content: Content) -> SignedLetter {
    let letter = Letter {
        id: LetterId::from_bytes([number; 16]),
        from: signer.did().clone(),
        to: PRINCIPAL.parse().unwrap(),
        issued_at: at,
        expires_at: at.plus(MAX_LIFE),
        content,
    };
    SignedLetter::sign(&letter, signer).unwrap()
}

/// Hands a letter in, from an address.
async fn hand_in(world: &World, address: &str, letter: &SignedLetter) -> Answer {
    let request = Request::post(path::LETTER).header("content-type", "application/oap+json");
    let mut request = request.body(Body::from(letter.bytes().to_vec())).unwrap();
    let from: SocketAddr = format!("{address}:4711").parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(from));
    world.send(request).await
}

/// What a letter that is not proved is told.
#[track_caller]
fn unproved(answer: Answer) -> String {
    answer.refused(401, "auth_required")["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sender_whose_host_misbehaves_is_nobody() {
    let (trust, elsewhere) = (Trust::new(), inside());
    let world = world(&trust).await;
    let (honest, other) = (peer(&world, &trust).await, peer(&world, &trust).await);
    let mut said = BTreeSet::new();
    let cases = [
        Reply::Raw(Vec::new()),
        Reply::Raw(http("404 Not Found", "", b"")),
        cut_off(),
        Reply::Endless,
        Reply::Silent,
        Reply::Bare(deep()),
        Reply::Bare(b"{}".to_vec()),
        onward(&elsewhere),
        // The document of somebody else who has that key.
        Reply::Bare(other.body(path::DID)),
    ];
    for (number, reply) in cases.into_iter().enumerate() {
        let peer = peer(&world, &trust).await;
        peer.reply(path::DID, reply);
        let letter = letter(&peer.signer(1), u8::try_from(number).unwrap(), world.now(), nothing());
        let handed = hand_in(&world, "203.0.113.9", &letter);
        let answer = tokio::time::timeout(Duration::from_secs(60), handed).await.expect("it hangs");
        said.insert(unproved(answer));
    }
    nobody_came(&elsewhere);
    assert_eq!(said.len(), 1, "{said:?}");
    let letter = letter(&honest.signer(1), 99, world.now(), nothing());
    assert_eq!(hand_in(&world, "203.0.113.9", &letter).await.ok()["outcome"], "taken");
}

/// The attack: letters of senders whose hosts say nothing. They use up the places of their own network, and nobody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hosts_that_say_nothing_hold_up_their_own_network_alone() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let mut silent = Vec::new();
    for _ in 0..oap_gateway::state::proving::MAX_PROVING_PER_SITE {
        let peer = peer(&world, &trust).await;
        peer.reply(path::DID, Reply::Silent);
        silent.push(peer);
    }
    let held = async |peer: &PlayedPeer| {
        unproved(hand_in(&world, "203.0.113.9", &letter(&peer.signer(1), 1, world.now(), nothing())).await)
    };
    let meanwhile = async {
        for peer in &silent {
            while peer.asked().is_empty() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        let (one, two) = (agent(7), agent(8));
        let late = letter(&one, 2, world.now(), nothing());
        hand_in(&world, "203.0.113.9", &late).await.refused(503, "maintenance");
        let elsewhere = letter(&two, 3, world.now(), nothing());
        assert_eq!(hand_in(&world, "198.51.100.9", &elsewhere).await.ok()["outcome"], "taken");
        late
    };
    assert_eq!(silent.len(), 4);
    let all = async {
        let [a, b, c, d] = [&silent[0], &silent[1], &silent[2], &silent[3]];
        tokio::join!(held(a), held(b), held(c), held(d), meanwhile)
    };
    let (.., late) = tokio::time::timeout(Duration::from_secs(60), all).await.expect("it hangs");
    // Once they are given up there is room.
    assert_eq!(hand_in(&world, "203.0.113.9", &late).await.ok()["outcome"], "taken");
}

/// Nobody has this gateway look into its own network for them: nothing is even connected to.
#[tokio::test]
async fn a_sender_at_a_private_address_is_nobody() {
    let (world, listener) = (World::new().await, inside());
    let did: Did = format!("did:web:localhost%3A{}", listener.local_addr().unwrap().port()).parse().unwrap();
    let signer = Signer::from_seed(did.key("key-1").unwrap(), &[1; 32]).unwrap();
    unproved(hand_in(&world, "203.0.113.9", &letter(&signer, 1, world.now(), nothing())).await);
    nobody_came(&listener);
}

/// A clock that is ten minutes ahead signs nothing that is taken; one that is ten minutes behind does, for a letter lives so long, and one
/// that is sixteen behind does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sender_whose_clock_is_off() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    let minutes = |n: u64| Duration::from_secs(60 * n);
    let hand_in = async |number: u8, at: Timestamp| {
        hand_in(&world, "203.0.113.9", &letter(&peer.signer(1), number, at, nothing())).await
    };
    for (number, at, why) in
        [(1, world.now().plus(minutes(10)), "issued_at"), (2, world.now().minus(minutes(16)), "expires_at")]
    {
        let refused = hand_in(number, at).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().starts_with(why), "{refused}");
    }
    assert_eq!(hand_in(3, world.now().minus(minutes(10))).await.ok()["outcome"], "taken");
}

/// A key that is newer than what is remembered of its owner counts after a minute; and whoever names keys that there are not has somebody
/// else's host asked once a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_key_counts_and_made_up_ones_ask_for_little() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    let by = async |key: u8, number: u8| {
        hand_in(&world, "203.0.113.9", &letter(&peer.signer(key), number, world.now(), nothing())).await
    };
    assert_eq!(by(1, 1).await.ok()["outcome"], "taken");
    let keys = vec![(2, None), (1, Some(world.now()))];
    peer.publish(&Shown { keys, signer: 2, ..PlayedPeer::shown(world.now()) });
    assert_eq!(peer.asked().len(), 1);
    world.clock.advance(Duration::from_secs(59));
    unproved(by(2, 2).await);
    assert!(peer.asked().is_empty());
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(by(2, 3).await.ok()["outcome"], "taken");
    // With what was learned the former key has ended.
    unproved(by(1, 4).await);
    assert_eq!(peer.asked().len(), 1);
    world.clock.advance(Duration::from_secs(60));
    for number in 5..8 {
        unproved(by(9, number).await);
    }
    assert_eq!(peer.asked().len(), 1);
    // Where its host is gone, what is known of it stays.
    world.clock.advance(Duration::from_secs(60));
    peer.reply(path::DID, Reply::Raw(Vec::new()));
    unproved(by(9, 8).await);
    assert_eq!(by(2, 9).await.ok()["outcome"], "taken");
}

/// The attack: a key that its owner retired, or said to be stolen, says that grants are void. The wallet stays as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_notice_by_a_key_that_ended_ends_nothing() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    let grant = status::grant(&world, &peer, 7);
    let body = json!({"grant": grant.document()});
    world.owner("POST", "/oap/owner/received", Some(&body)).await.ok();
    let notice = || {
        let (grants, revoked_at) = (vec![grant.hash()], world.now());
        Content::RevocationNotice(RevocationNotice { grants, revoked_at })
    };
    let is_void = async || !get(&world, "received").await["received"][0]["revoked_at"].is_null();
    let keys = vec![(2, None), (1, Some(world.now()))];
    peer.publish(&Shown { keys, signer: 2, ..PlayedPeer::shown(world.now()) });
    // Longer than what is remembered of its former document.
    world.clock.advance(Duration::from_secs(601));
    unproved(hand_in(&world, "203.0.113.9", &letter(&peer.signer(1), 1, world.now(), notice())).await);
    assert!(!is_void().await);
    // Nor does whoever has the host, with a key that its document does not have.
    unproved(hand_in(&world, "203.0.113.9", &letter(&peer.signer(3), 2, world.now(), notice())).await);
    assert!(!is_void().await);
    let good = letter(&peer.signer(2), 3, world.now(), notice());
    assert_eq!(hand_in(&world, "203.0.113.9", &good).await.ok()["outcome"], "taken");
    assert!(is_void().await);
}

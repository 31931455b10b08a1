//! Others whose DIDs have a history: what they sign counts by the keys that the log proves, and no longer than they do.

#[path = "../../crates/identity/tests/support/logs.rs"]
mod logs;

use crate::common::*;
use crate::played::{PlayedPeer, Reply, Shown};
use axum::Router;
use axum::routing::get;
use logs::{Made, hours};
use oap_gateway::Config;
use oap_gateway::api::peers::{PeerInfo, PeerState};
use oap_gateway::service::Deletions;
use oap_identity::random::Seeded;
use oap_identity::{Signer, Timestamp};
use oap_manifest::path;
use oap_memory::Receipt;
use serde_json::json;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Hours from the beginning of the log to the beginning of the test, rounded down.
const BY_NOW: u64 = 2121;

/// A principal that is did:webvh on a host of loopback, with its log.
struct Principal {
    made: Made,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// The key of its entries; those of its document have other seeds.
fn author() -> Signer {
    logs::signer(1)
}

impl Principal {
    async fn new(keys: &[(&str, &Signer)]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = format!("localhost%3A{}:agents:one", listener.local_addr().unwrap().port());
        let made = Made::new(&place, &json!({}), keys, &author());
        let shown = Arc::new(Mutex::new(made.bytes()));
        let served = shown.clone();
        let log = move || {
            let log = served.lock().unwrap().clone();
            async move { log }
        };
        let router = Router::new().route("/agents/one/did.jsonl", get(log));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { made, shown }
    }

    /// One more version of its document.
    fn update(&mut self, at: u64, keys: &[(&str, &Signer)]) {
        self.made.update(at, &json!({}), keys, &author());
        self.show(&self.made.clone());
    }

    fn show(&self, made: &Made) {
        *self.shown.lock().unwrap() = made.bytes();
    }

    fn signer(&self, fragment: &str, seed: u8) -> Signer {
        Signer::from_seed(self.made.did.key(fragment).unwrap(), &[seed; 32]).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grantee_is_proved_by_the_keys_of_its_log() {
    assert!(hours(BY_NOW) <= Timestamp::from_millis(START));
    let world = World::with(1, Config { allow_local_dids: true, ..Config::default() }).await;
    world.capture(&[note("Tea at four", &["tea"])]).await;
    let (first, second) = (logs::signer(11), logs::signer(12));
    let mut grantee = Principal::new(&[("key-1", &first)]).await;
    let before = grantee.made.clone();
    let (old, new) = (grantee.signer("key-1", 11), grantee.signer("key-2", 12));
    let grant = world.issue(&world.draft(&old)).await;
    assert_eq!(grant["grantee"], before.did.as_str());
    let token = world.token(&old, &grant).await;
    world.query(&old, &token, &json!({})).await.ok();
    // A key that the log does not have yet.
    world.exchange(&new, &grant).await.refused(401, "auth_required");

    grantee.update(BY_NOW, &[("key-2", &second)]);
    // What was resolved is read anew after ten minutes.
    world.clock.advance(Duration::from_secs(660));
    world.token(&new, &grant).await;
    world.exchange(&old, &grant).await.refused(401, "auth_required");

    // The attack: whoever has the host shows the log of before, with the key that they stole.
    grantee.show(&before);
    world.clock.advance(Duration::from_secs(660));
    world.exchange(&old, &grant).await.refused(401, "auth_required");
    // Or another end of it: they have the key of the document, and not that of the log.
    let mut forged = before.clone();
    forged.update(BY_NOW, &json!({}), &[("key-1", &first)], &first);
    grantee.show(&forged);
    world.clock.advance(Duration::from_secs(60));
    world.exchange(&old, &grant).await.refused(401, "auth_required");
    // What failed is not remembered for long, and the right log is read again.
    let right = grantee.made.clone();
    grantee.show(&right);
    world.clock.advance(Duration::from_secs(60));
    world.token(&new, &grant).await;
    world.chains_hold().await;
}

/// Whoever verifies a receipt asks for a key that was in force when it was made. The attack: a compromised key signs what is older than that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_is_countersigned_by_a_key_of_its_time() {
    let world = World::with(1, Config { allow_local_dids: true, ..Config::default() }).await;
    world.capture(&[note("Tea at four", &["tea"])]).await;
    let (first, second) = (logs::signer(11), logs::signer(12));
    let mut grantee = Principal::new(&[("key-1", &first)]).await;
    let (old, new) = (grantee.signer("key-1", 11), grantee.signer("key-2", 12));
    let grant = world.issue(&world.draft(&old)).await;
    let token = world.token(&old, &grant).await;
    let mut receipts: Vec<Receipt> = Vec::new();
    for query in ["tea", "coffee"] {
        let answer = world.query(&old, &token, &json!({"query": query})).await.ok();
        receipts.push(serde_json::from_value(answer["receipt"].clone()).unwrap());
    }
    let countersigned = async |signer: &Signer, receipt: &Receipt| {
        let value = signer.sign(&receipt.signed_bytes().unwrap());
        let signature = json!({"by": signer.kid(), "alg": "EdDSA", "value": value});
        let body = json!({"receipt_id": receipt.receipt_id, "signature": signature});
        world.raw("POST", "/oap/memory/ack", &[], Some(&body)).await
    };
    world.clock.advance(Duration::from_secs(2 * 3600));
    grantee.update(BY_NOW + 1, &[("key-1", &first), ("key-2", &second)]);
    countersigned(&new, &receipts[0]).await.refused(404, "not_found");
    countersigned(&old, &receipts[0]).await.ok();

    world.clock.advance(Duration::from_secs(2 * 3600));
    let mut state = logs::state(grantee.made.did.as_str(), &[("key-1", &first), ("key-2", &second)]);
    state["verificationMethod"][0]["revoked"] = json!(hours(BY_NOW + 2));
    grantee.made.push(BY_NOW + 3, &json!({}), state, &[&author()]);
    grantee.show(&grantee.made.clone());
    countersigned(&old, &receipts[1]).await.refused(404, "not_found");
}

const LOG: &str = "/.well-known/did.jsonl";

/// What a peer shows for itself now becomes the next version of its log.
fn publish(peer: &PlayedPeer, made: &mut Made, at: u64, shown: &Shown) {
    peer.publish(shown);
    let document = serde_json::from_slice(&peer.body(path::DID)).unwrap();
    made.push(at, &json!({}), document, &[&author()]);
    peer.reply(LOG, Reply::Paper(made.bytes(), ""));
}

/// A peer whose DID has a log: pinned by what the log proves; a log that goes back is not believed; a new key is asked about.
#[tokio::test]
async fn a_peer_is_known_by_its_log() {
    let world = World::with(1, Config { allow_local_dids: true, ..Config::default() }).await;
    let mut peer = PlayedPeer::new().await;
    let mut made = Made::new(&peer.host.replace(':', "%3A"), &json!({}), &[], &author());
    peer.did = made.did.clone();
    publish(&peer, &mut made, BY_NOW - 2, &PlayedPeer::shown(world.now()));
    // Nothing of a did:web is asked for: that document is not the one that the log proves.
    peer.reply(path::DID, Reply::Raw(b"HTTP/1.1 500 No\r\n\r\n".to_vec()));
    let added = world.owner("POST", "/oap/owner/peers", Some(&json!({"peer": peer.did}))).await.ok();
    let added: PeerInfo = serde_json::from_value(added).unwrap();
    assert_eq!((added.state, &added.pinned.did), (PeerState::Sound, &peer.did));
    assert_eq!(added.pinned.keys[0].thumbprint, peer.signer(1).public().thumbprint());
    let check = async || {
        let did = json!({"did": peer.did});
        let info = world.owner("POST", "/oap/owner/peers/check", Some(&did)).await.ok();
        serde_json::from_value::<PeerInfo>(info).unwrap()
    };
    assert_eq!(check().await.state, PeerState::Sound);
    let before = made.clone();
    let rotated =
        Shown { keys: vec![(2, None), (1, Some(world.now()))], signer: 2, ..PlayedPeer::shown(world.now()) };
    publish(&peer, &mut made, BY_NOW - 1, &rotated);
    let changed = check().await;
    assert_eq!(changed.state, PeerState::Changed);
    let yes = json!({"did": peer.did, "seen": changed.pending.unwrap().seen});
    world.owner("POST", "/oap/owner/peers/accept", Some(&yes)).await.ok();
    assert_eq!(check().await.state, PeerState::Sound);
    peer.reply(LOG, Reply::Paper(before.bytes(), ""));
    assert_eq!(check().await.state, PeerState::Disbelieved);
    let mut forged = before;
    publish(&peer, &mut forged, BY_NOW, &rotated);
    assert_eq!(check().await.state, PeerState::Disbelieved);
    peer.reply(LOG, Reply::Paper(made.bytes(), ""));
    assert_eq!(check().await.state, PeerState::Sound);
}

/// Asks for something about a peer.
async fn of_peer(world: &World, path: &str, body: &serde_json::Value) -> PeerInfo {
    let info = world.owner("POST", &format!("/oap/owner/peers{path}"), Some(body)).await.ok();
    serde_json::from_value(info).unwrap()
}

/// The attack: whoever has the host of a peer waits until the gateway is started anew, and shows the log as it was before. How far it was seen
/// is known still; of who is no peer any more it is forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_forgets_no_log_of_a_peer() {
    let (kept, world) = Kept::new().await;
    drop(world);
    let started = async |time: u64| {
        let config = Config { allow_local_dids: true, ..Config::default() };
        let world = World::open(kept.store(), config, Arc::new(Seeded::new(50 + time))).await;
        // Proofs that no world before it has used.
        world.proofs.store(1_000 * time, Ordering::SeqCst);
        world
    };
    let world = started(1).await;
    let mut peer = PlayedPeer::new().await;
    let mut made = Made::new(&peer.host.replace(':', "%3A"), &json!({}), &[], &author());
    peer.did = made.did.clone();
    let (named, shown) = (json!({"did": peer.did}), PlayedPeer::shown(world.now()));
    let add = json!({"peer": peer.did});
    publish(&peer, &mut made, BY_NOW - 2, &shown);
    assert_eq!(of_peer(&world, "", &add).await.state, PeerState::Sound);
    let before = made.clone();
    // Seen at a look by itself, later than it was pinned.
    publish(&peer, &mut made, BY_NOW - 1, &shown);
    assert_eq!(of_peer(&world, "/check", &named).await.state, PeerState::Sound);
    drop(world);

    let world = started(2).await;
    peer.reply(LOG, Reply::Paper(before.bytes(), ""));
    assert_eq!(of_peer(&world, "/check", &named).await.state, PeerState::Disbelieved);
    let mut forged = before.clone();
    publish(&peer, &mut forged, BY_NOW, &shown);
    assert_eq!(of_peer(&world, "/check", &named).await.state, PeerState::Disbelieved);
    peer.reply(LOG, Reply::Paper(made.bytes(), ""));
    assert_eq!(of_peer(&world, "/check", &named).await.state, PeerState::Sound);
    // A sweep takes nothing of a peer away.
    Deletions(&world.gateway).sweep().await.unwrap();
    drop(world);
    let world = started(3).await;
    peer.reply(LOG, Reply::Paper(before.bytes(), ""));
    assert_eq!(of_peer(&world, "/check", &named).await.state, PeerState::Disbelieved);
    // Who was removed is a stranger, of whom the first look counts.
    world.owner("POST", "/oap/owner/peers/remove", Some(&named)).await.ok();
    Deletions(&world.gateway).sweep().await.unwrap();
    drop(world);
    let world = started(4).await;
    assert_eq!(of_peer(&world, "", &add).await.state, PeerState::Sound);
}

//! Peers: what is pinned, what is taken over, what the owner is asked, and hosts that misbehave (protocol section 15).

mod hosts;

use crate::common::*;
use crate::played::{PlayedPeer, Reply, Shown, http};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_gateway::api::peers::{PeerInfo, PeerState};
use oap_gateway::service::Peers;
use oap_gateway::system::config::Config;
use oap_identity::random::Seeded;
use oap_identity::{Did, Random, Signer, Timestamp};
use oap_manifest::{card, path};
use oap_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const PEERS: &str = "/oap/owner/peers";

fn local() -> Config {
    Config { allow_local_dids: true, ..Config::default() }
}

async fn world() -> World {
    World::with(1, local()).await
}

/// A peer that publishes as one that is new, and is pinned.
async fn pinned() -> (World, PlayedPeer, Shown) {
    let (world, peer) = (world().await, PlayedPeer::new().await);
    let shown = Shown { claims: vec!["L1", "L2"], ..PlayedPeer::shown(world.now()) };
    peer.publish(&shown);
    add(&world, &peer).await;
    peer.asked();
    (world, peer, shown)
}

async fn ask(world: &World, path: &str, body: Value) -> Answer {
    world.owner("POST", &format!("{PEERS}{path}"), Some(&body)).await
}

async fn add(world: &World, peer: &PlayedPeer) -> PeerInfo {
    read(ask(world, "", json!({"peer": peer.did})).await.ok())
}

async fn check(world: &World, peer: &PlayedPeer) -> PeerInfo {
    read(ask(world, "/check", json!({"did": peer.did})).await.ok())
}

fn read(answer: Value) -> PeerInfo {
    serde_json::from_value(answer).unwrap()
}

/// How a peer stands, without looking at it.
async fn state(world: &World, peer: &PlayedPeer) -> PeerState {
    read(ask(world, "/show", json!({"did": peer.did})).await.ok()).state
}

/// The kinds of the changes that ask, and of those that were taken over.
fn changes(info: &PeerInfo) -> (Vec<&str>, Vec<&str>) {
    let asks = info.pending.iter().flat_map(|pending| &pending.changes).filter(|change| change.asks);
    let taken = info.notices.iter().filter(|notice| !notice.change.asks);
    (
        asks.map(|change| change.change.as_str()).collect(),
        taken.map(|notice| notice.change.change.as_str()).collect(),
    )
}

fn names(info: &PeerInfo) -> Vec<String> {
    info.pinned.keys.iter().map(|key| key.kid.fragment().to_owned()).collect()
}

#[tokio::test]
async fn a_gateway_is_pinned_by_its_did_or_its_host() {
    let (world, peer) = (world().await, PlayedPeer::new().await);
    peer.publish(&Shown { claims: vec!["L1"], ..PlayedPeer::shown(world.now()) });
    let info = add(&world, &peer).await;
    assert_eq!((info.state, &info.pinned.did), (PeerState::Sound, &peer.did));
    assert_eq!(info.pinned.keys[0].thumbprint, peer.signer(1).public().thumbprint());
    assert_eq!(info.pinned.endpoints["query"], format!("{}/oap/memory/query", peer.origin));
    assert_eq!(
        (info.pinned.claims.as_slice(), names(&info)),
        (&["L1".to_owned()][..], vec!["key-1".to_owned()])
    );
    ask(&world, "", json!({"peer": peer.did})).await.refused(409, "conflict");
    // Found through its card, and without one through its manifest.
    let found = ask(&world, "/find", json!({"host": peer.host})).await.ok();
    assert_eq!((&found["through"], &found["is_peer"]), (&json!("agent_card"), &json!(true)));
    assert_eq!(found["papers"]["did"], json!(peer.did));
    ask(&world, "/remove", json!({"did": peer.did})).await.ok();
    ask(&world, "/show", json!({"did": peer.did})).await.refused(404, "not_found");
    peer.reply(path::AGENT_CARD, Reply::Raw(http("404 Not Found", "", b"")));
    let found = ask(&world, "/find", json!({"host": peer.host})).await.ok();
    assert_eq!((&found["through"], &found["is_peer"]), (&json!("memory_manifest"), &json!(false)));
    // Finding pins nothing.
    assert_eq!(world.owner("GET", PEERS, None).await.ok(), json!({"peers": []}));
    let info = read(ask(&world, "", json!({"peer": peer.host})).await.ok());
    assert_eq!(info.pinned.did, peer.did);
    assert_eq!(world.owner("GET", PEERS, None).await.ok()["peers"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_that_the_former_one_signed_for_is_taken_over() {
    let (world, peer, shown) = pinned().await;
    let (at, before) = (world.now(), world.now().minus(Duration::from_millis(1)));
    let rotated = Shown { keys: vec![(2, None), (1, Some(at))], signer: 2, ..shown };
    peer.publish(&Shown { handovers: vec![peer.handover(1, 2, before)], ..rotated.clone() });
    let info = check(&world, &peer).await;
    assert_eq!((info.state, names(&info)), (PeerState::Sound, vec!["key-2".into(), "key-1".into()]));
    assert_eq!(changes(&info), (vec![], vec!["key_ended", "key_added", "manifest"]));
    let because = info.notices[1].change.because.as_deref().unwrap();
    assert!(because.contains("key-1"), "{because}");
    assert_eq!(state(&world, &peer).await, PeerState::Sound);
    // The handovers were asked for because a key was new, and are not asked for again.
    assert!(peer.asked().iter().any(|asked| asked.path == path::HANDOVERS));
    check(&world, &peer).await;
    assert!(!peer.asked().iter().any(|asked| asked.path == path::HANDOVERS));
    // Two steps at once.
    let mut keys = vec![(4, None), (3, Some(at)), (2, Some(at)), (1, Some(at))];
    let chain = vec![peer.handover(3, 4, before), peer.handover(2, 3, before), peer.handover(1, 2, before)];
    peer.publish(&Shown { keys: keys.clone(), signer: 4, handovers: chain.clone(), ..rotated.clone() });
    assert_eq!(check(&world, &peer).await.state, PeerState::Sound);
    // Whoever has the host, and a key that had ended, goes no further.
    keys.insert(0, (5, None));
    let forged = vec![peer.handover(1, 5, before)];
    peer.publish(&Shown { keys, signer: 5, handovers: forged, ..rotated });
    let info = check(&world, &peer).await;
    assert_eq!((info.state, changes(&info).0), (PeerState::Changed, vec!["key_added", "manifest"]));
    assert_eq!(info.pinned.keys.len(), 4);
}

#[tokio::test]
async fn a_key_that_nobody_signed_for_waits_for_the_owner() {
    let (world, peer, shown) = pinned().await;
    let before = world.now().minus(Duration::from_millis(1));
    let rotated = Shown { keys: vec![(2, None), (1, Some(world.now()))], signer: 2, ..shown.clone() };
    // An empty list; a handover by a key that nobody pinned; a list of another principal's; one that is none.
    let other = PlayedPeer::new().await;
    let lists: [Option<Vec<u8>>; 4] = [
        None,
        Some(
            json!({"principal": peer.did, "handovers": [peer.handover(9, 2, before)]})
                .to_string()
                .into_bytes(),
        ),
        Some(
            json!({"principal": other.did, "handovers": [other.handover(1, 2, before)]})
                .to_string()
                .into_bytes(),
        ),
        Some(b"[[[".to_vec()),
    ];
    for list in lists {
        peer.publish(&rotated);
        if let Some(list) = list {
            peer.reply(path::HANDOVERS, Reply::Bare(list));
        }
        let info = check(&world, &peer).await;
        assert_eq!((info.state, names(&info)), (PeerState::Changed, vec!["key-1".to_owned()]));
        assert_eq!(changes(&info), (vec!["key_added", "manifest"], vec![]));
        assert_eq!(state(&world, &peer).await, PeerState::Changed);
    }
    let seen = check(&world, &peer).await.pending.unwrap().seen;
    // Yes to something else is no yes.
    let yes = async |seen: Value| ask(&world, "/accept", json!({"did": peer.did, "seen": seen})).await;
    yes(json!(oap_identity::Hash::of(b"x"))).await.refused(409, "conflict");
    // Nor is yes to what it showed before it showed another.
    peer.publish(&Shown { keys: vec![(3, None)], signer: 3, ..shown.clone() });
    let other = check(&world, &peer).await.pending.unwrap().seen;
    assert_ne!(other, seen);
    yes(json!(seen)).await.refused(409, "conflict");
    let info = read(yes(json!(other)).await.ok());
    assert_eq!((info.state, names(&info)), (PeerState::Sound, vec!["key-3".to_owned()]));
    assert_eq!(state(&world, &peer).await, PeerState::Sound);
    // The owner's yes is remembered as that.
    assert!(info.notices.iter().all(|notice| notice.change.asks && notice.change.because.is_none()));
    yes(json!(other)).await.refused(409, "conflict");
    // The doctor tells of a peer that waits, and of none that does not. There is something to accept where something waits.
    assert_eq!(told(&world).await, (0, false));
    peer.publish(&rotated);
    check(&world, &peer).await;
    assert_eq!(told(&world).await, (1, true));
    ask(&world, "/remove", json!({"did": peer.did})).await.ok();
    let away = PlayedPeer::new().await;
    away.publish(&shown);
    add(&world, &away).await;
    away.reply(path::DID, Reply::Raw(Vec::new()));
    assert_eq!(check(&world, &away).await.state, PeerState::Unreachable);
    assert_eq!(told(&world).await, (1, false));
}

/// How many peers the doctor tells of, and whether it advises to accept what one shows.
async fn told(world: &World) -> (usize, bool) {
    let found = world.job(&json!({"job": "doctor"})).await;
    let findings = found["findings"].as_array().unwrap();
    let peers = findings.iter().find(|finding| finding["part"] == "peers").unwrap();
    let advises = peers["fix"].as_str().unwrap().contains("`peer accept`");
    (peers["soon"].as_array().map_or(0, Vec::len), advises)
}

#[tokio::test]
async fn a_new_address_or_a_lowered_claim_asks() {
    let (world, peer, shown) = pinned().await;
    let of = async |shown: &Shown| {
        peer.publish(shown);
        check(&world, &peer).await
    };
    let info = of(&Shown { endpoints: vec![("query", "/oap/other")], ..shown.clone() }).await;
    assert_eq!((info.state, changes(&info).0), (PeerState::Changed, vec!["endpoint"]));
    let says = &info.pending.as_ref().unwrap().changes[0].says;
    assert!(says.contains("/oap/memory/query") && says.contains("/oap/other"), "{says}");
    assert_eq!(info.pinned.endpoints["query"], format!("{}/oap/memory/query", peer.origin));
    let info = of(&Shown { endpoints: vec![("more", "/oap/more")], ..shown.clone() }).await;
    assert_eq!(changes(&info).0, ["endpoint"]);
    let info = of(&Shown { claims: vec!["L1"], ..shown.clone() }).await;
    assert_eq!(changes(&info).0, ["claim_lowered"]);
    assert_eq!(state(&world, &peer).await, PeerState::Changed);
    let info = of(&Shown { claims: vec![], ..shown.clone() }).await;
    assert_eq!(changes(&info).0, ["claim_lowered", "claim_lowered"]);
    // As it was: nothing waits any more.
    let info = of(&shown).await;
    assert_eq!((info.state, changes(&info)), (PeerState::Sound, (vec![], vec![])));
    let info = of(&Shown { claims: vec!["L1", "L2", "L3"], ..shown.clone() }).await;
    assert_eq!((info.state, changes(&info).1), (PeerState::Sound, vec!["claim_raised", "manifest"]));
    assert_eq!(info.pinned.claims, ["L1", "L2", "L3"]);
    // An endpoint at another host is no manifest at all.
    peer.publish(&shown);
    let mut memory: Value = serde_json::from_slice(&peer.body(path::MEMORY_MANIFEST)).unwrap();
    memory["endpoints"]["query"] = json!("https://evil.example/q");
    memory.as_object_mut().unwrap().remove("signature");
    oap_identity::signed::sign_document(&mut memory, &peer.signer(1)).unwrap();
    peer.reply(path::MEMORY_MANIFEST, Reply::Bare(memory.to_string().into_bytes()));
    let info = check(&world, &peer).await;
    assert_eq!(info.state, PeerState::Disbelieved);
}

/// Each start of a gateway signs the same manifest anew: nothing changed. What does change beside it is noted.
#[tokio::test]
async fn a_peer_that_is_started_again_has_not_changed() {
    let (world, peer) = (world().await, PlayedPeer::new().await);
    let shown = PlayedPeer::shown(world.now());
    peer.publish(&shown);
    add(&world, &peer).await;
    for _ in 0..2 {
        world.clock.advance(Duration::from_secs(60));
        peer.publish(&Shown { published_at: world.now(), ..shown.clone() });
        let info = check(&world, &peer).await;
        assert_eq!((info.state, changes(&info)), (PeerState::Sound, (vec![], vec![])));
        assert_eq!(info.pinned.published_at, world.now());
    }
    let same = check(&world, &peer).await.pinned;
    world.clock.advance(Duration::from_secs(60));
    let mut memory: Value = serde_json::from_slice(&peer.body(path::MEMORY_MANIFEST)).unwrap();
    memory.as_object_mut().unwrap().remove("signature");
    memory["published_at"] = json!(world.now());
    memory["max_grant_size_items"] = json!(5);
    oap_identity::signed::sign_document(&mut memory, &peer.signer(1)).unwrap();
    peer.reply(path::MEMORY_MANIFEST, Reply::Bare(memory.to_string().into_bytes()));
    let info = check(&world, &peer).await;
    assert_eq!((info.state, changes(&info)), (PeerState::Sound, (vec![], vec!["manifest"])));
    assert_eq!(info.pinned.endpoints, same.endpoints);
}

#[tokio::test]
async fn an_old_manifest_that_comes_back_asks() {
    let (world, peer, shown) = pinned().await;
    world.clock.advance(Duration::from_secs(3600));
    peer.publish(&Shown { published_at: world.now(), ..shown.clone() });
    assert_eq!(check(&world, &peer).await.state, PeerState::Sound);
    peer.publish(&shown);
    let info = check(&world, &peer).await;
    assert_eq!((info.state, changes(&info).0), (PeerState::Changed, vec!["older"]));
    // One from later than now is no manifest at all.
    peer.publish(&Shown { published_at: world.now().plus(Duration::from_secs(301)), ..shown.clone() });
    let info = check(&world, &peer).await;
    assert!(info.trouble.unwrap().why.contains("later than now"));
    peer.publish(&Shown { published_at: world.now().plus(Duration::from_secs(300)), ..shown });
    assert_eq!(check(&world, &peer).await.state, PeerState::Sound);
}

/// What waits for the owner is not forgotten because the host is down, and comes back as it was.
#[tokio::test]
async fn a_peer_that_is_down_is_looked_at_again_later_each_time() {
    let (world, peer, shown) = pinned().await;
    let down = || peer.reply(path::DID, Reply::Raw(Vec::new()));
    let due = async || Peers(&world.gateway).check_due().await.unwrap();
    let wait = |info: &PeerInfo| info.due_at.seconds() - world.now().seconds();
    assert_eq!(due().await, 0);
    world.clock.advance(Duration::from_secs(599));
    assert_eq!(due().await, 0);
    world.clock.advance(Duration::from_secs(1));
    down();
    assert_eq!(due().await, 1);
    let show = async || read(ask(&world, "/show", json!({"did": peer.did})).await.ok());
    let info = show().await;
    let since = world.now();
    assert_eq!((info.state, wait(&info)), (PeerState::Unreachable, 60));
    for expected in [120, 240, 480] {
        world.clock.advance(Duration::from_secs(wait(&show().await) as u64));
        assert_eq!(due().await, 1);
        assert_eq!((wait(&show().await), due().await), (expected, 0));
    }
    let trouble = show().await.trouble.unwrap();
    assert_eq!((trouble.since, trouble.times), (since, 4));
    // There again, and something waits; down again, and it still does.
    peer.publish(&Shown { claims: vec!["L1"], ..shown.clone() });
    assert_eq!(check(&world, &peer).await.state, PeerState::Changed);
    down();
    let info = check(&world, &peer).await;
    assert_eq!((info.state, info.trouble.unwrap().times), (PeerState::Changed, 1));
    assert_eq!(changes(&show().await).0, ["claim_lowered"]);
}

#[tokio::test]
async fn what_expires_when_is_within_bounds() {
    let (world, peer, shown) = pinned().await;
    for (caching, seconds) in [
        ("", 3600),
        ("Cache-Control: max-age=5\r\n", 60),
        ("Cache-Control: no-store\r\n", 60),
        ("Cache-Control: max-age=7200\r\n", 7200),
        ("Cache-Control: max-age=99999999999\r\n", 86_400),
        ("Expires: Fri, 01 May 2026 12:30:00 GMT\r\n", 1800),
        ("Expires: yesterday\r\n", 60),
    ] {
        peer.publish(&Shown { caching, ..shown.clone() });
        let info = check(&world, &peer).await;
        assert_eq!(info.due_at, world.now().plus(Duration::from_secs(seconds)), "{caching}");
    }
}

#[tokio::test]
async fn what_did_not_change_is_not_sent_again() {
    let (world, peer, shown) = pinned().await;
    for _ in 0..2 {
        let info = check(&world, &peer).await;
        assert_eq!((info.state, changes(&info)), (PeerState::Sound, (vec![], vec![])));
        let asked = peer.asked();
        let paths: Vec<&str> = asked.iter().map(|asked| asked.path.as_str()).collect();
        assert_eq!(paths, [path::DID, path::MEMORY_MANIFEST, path::TOOL_MANIFEST]);
        assert!(asked.iter().all(|asked| asked.if_none_match.is_some()), "{asked:?}");
    }
    // One of them changed: the others are what they were.
    let rotated = Shown { keys: vec![(1, None), (7, None)], ..shown.clone() };
    peer.publish(&rotated);
    assert_eq!(changes(&check(&world, &peer).await).0, ["key_added"]);
    peer.publish(&shown);
    assert_eq!(check(&world, &peer).await.state, PeerState::Sound);
    // "Not modified" to a question that named nothing says nothing.
    for path in [path::DID, path::MEMORY_MANIFEST, path::TOOL_MANIFEST] {
        peer.publish(&shown);
        let body = peer.body(path);
        peer.reply(path, Reply::Bare(body));
        assert_eq!(check(&world, &peer).await.state, PeerState::Sound);
        peer.asked();
        peer.reply(path, Reply::Raw(http("304 Not Modified", "", b"")));
        let info = check(&world, &peer).await;
        assert_eq!(info.state, PeerState::Disbelieved, "{path}");
        let asked = peer.asked();
        assert!(asked.iter().any(|asked| asked.path == path && asked.if_none_match.is_none()), "{asked:?}");
    }
}

/// Two gateways of this program: one rotates its keys twice, and the other follows; it revokes one, and the other asks.
#[tokio::test]
async fn a_gateway_of_this_kind_is_followed_through_its_rotations() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("localhost:{}", listener.local_addr().unwrap().port());
    let principal = Did::web(&host).unwrap();
    let random: Arc<dyn Random> = Arc::new(Seeded::new(9));
    let store = Store::in_memory(random.clone()).unwrap();
    let keys = oap_gateway::state::keyring::StoredKeys::generate(&*random, Timestamp::from_millis(START));
    oap_gateway::Gateway::init(&store, &keys).await.unwrap();
    let config = Config { plain_http: true, ..local() };
    let other = World::of(principal.as_str(), store, config, random, Default::default(), None).await;
    let router = other.router.clone();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let world = world().await;
    let info = read(ask(&world, "", json!({"peer": host})).await.ok());
    assert_eq!((&info.pinned.did, names(&info)), (&principal, vec!["key-1".to_owned()]));
    let check = async || read(ask(&world, "/check", json!({"did": principal})).await.ok());
    assert_eq!(check().await.notices, []);
    let owner = other.proved().await;
    oap_gateway::service::Keys(&other.gateway).rotate_keys(&owner).await.unwrap();
    let owner = other.proved().await;
    oap_gateway::service::Keys(&other.gateway).rotate_keys(&owner).await.unwrap();
    let info = check().await;
    assert_eq!((info.state, names(&info).len(), info.pending), (PeerState::Sound, 3, None));
    // The card is signed anew.
    let found = ask(&world, "/find", json!({"host": host})).await.ok();
    assert_eq!(found["through"], "agent_card");
    let owner = other.proved().await;
    oap_gateway::service::Keys(&other.gateway).revoke_key(&owner, "key-3".to_owned(), None).await.unwrap();
    let info = check().await;
    assert_eq!((info.state, names(&info).len()), (PeerState::Changed, 3));
    assert_eq!(changes(&info).0, ["key_added", "manifest"]);
}

/// What is published has an entity tag, and is not sent to whoever has it.
#[tokio::test]
async fn published_documents_are_asked_for_again_by_their_tags() {
    let world = World::new().await;
    let get = async |path: &str, tag: Option<&str>| {
        let mut request = axum::http::Request::get(path);
        if let Some(tag) = tag {
            request = request.header("if-none-match", tag);
        }
        let request = request.body(axum::body::Body::empty()).unwrap();
        let response = tower::ServiceExt::oneshot(world.router.clone(), request).await.unwrap();
        let headers = response.headers().clone();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        assert_eq!(headers["cache-control"], "max-age=60");
        (status, headers["etag"].to_str().unwrap().to_owned(), body.len())
    };
    for path in [
        path::DID,
        path::MEMORY_MANIFEST,
        path::TOOL_MANIFEST,
        path::SCOPES,
        path::HANDOVERS,
        path::AGENT_CARD,
    ] {
        let (status, tag, length) = get(path, None).await;
        assert!(status == 200 && length > 0, "{path}");
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            assert_eq!(get(path, Some(&known)).await, (304, tag.clone(), 0), "{path} {known}");
        }
        assert_eq!(get(path, Some("\"x\"")).await.0, 200, "{path}");
    }
    let card = world.raw("GET", path::AGENT_CARD, &[], None).await;
    assert_eq!(card.media_type.as_deref(), Some("application/json"));
    let read = card::UnverifiedCard::read(card.body).unwrap();
    assert_eq!(
        (read.principal().as_str(), read.memory_manifest()),
        (PRINCIPAL, "https://user.example/.well-known/oap-memory.json")
    );
    assert!(read.verify(&world.document(), world.now()).is_ok());
}

/// A DID that is its own key in JWK form needs nobody to be asked: its holder is granted, exchanges, and asks.
#[tokio::test]
async fn a_grantee_whose_did_is_a_jwk() {
    let world = World::new().await;
    world.capture(&[note("Tea at four", &[])]).await;
    let key = agent(41);
    let did: Did = format!("did:jwk:{}", B64.encode(key.public().jwk().to_string())).parse().unwrap();
    let grantee = Signer::from_seed(did.key("0").unwrap(), &[41; 32]).unwrap();
    let draft = world.draft(&grantee);
    assert_eq!(texts(&world.ask(&grantee, &draft, &json!({"query": "tea"})).await), ["Tea at four"]);
    // With another key there is nothing to be had.
    let grant = world.issue(&draft).await;
    let thief = Signer::from_seed(did.key("0").unwrap(), &[42; 32]).unwrap();
    world.exchange(&thief, &grant).await.refused(401, "auth_required");
    // A private key, and one of another kind, is nobody.
    let x = key.public().jwk()["x"].clone();
    for jwk in [
        json!({"kty": "OKP", "crv": "Ed25519", "x": x, "d": x}),
        json!({"kty": "OKP", "crv": "X25519", "x": x}),
    ] {
        let mut draft = draft.clone();
        draft["grantee"] = json!(format!("did:jwk:{}", B64.encode(jwk.to_string())));
        world.owner("POST", "/oap/owner/grants", Some(&draft)).await.refused(400, "invalid_input");
    }
}

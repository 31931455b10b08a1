//! Logs and their witnesses (protocol section 16): what a witness signs and what not, what a grantee is shown of a log and what not, and a
//! gateway with two faces.

mod faces;
mod quiet;

use crate::common::*;
use crate::played::PlayedPeer;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use oap_gateway::service::Witnesses;
use oap_gateway::system::config::Config;
use oap_identity::{Hash, Signer};
use oap_memory::log::checkpoint::{Checkpoint, cosigned_at};
use oap_memory::log::merkle::{self, Place};
use oap_memory::log::note::Note;
use oap_memory::log::submission::Submission;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// A gateway that pinned a peer.
async fn with_peer() -> (World, PlayedPeer) {
    let world = World::with(1, Config { allow_local_dids: true, ..Config::default() }).await;
    let peer = PlayedPeer::new().await;
    peer.publish(&PlayedPeer::shown(world.now()));
    world.owner("POST", "/oap/owner/peers", Some(&json!({"peer": peer.did}))).await.ok();
    (world, peer)
}

/// A log that is not ours.
struct Log {
    signer: Signer,
    size: u64,
    nodes: BTreeMap<Place, Hash>,
}

impl Log {
    fn of(signer: Signer) -> Self {
        Self { signer, size: 0, nodes: BTreeMap::new() }
    }

    fn read(&self) -> impl FnMut(Place) -> Result<Hash, Infallible> + '_ {
        move |place| Ok(self.nodes[&place])
    }

    fn grow(&mut self, leaves: &[&str]) {
        for leaf in leaves {
            let made = merkle::append(self.size, merkle::leaf(leaf.as_bytes()), self.read()).unwrap();
            self.nodes.extend(made);
            self.size += 1;
        }
    }

    fn checkpoint(&self) -> Checkpoint {
        let root = merkle::root(self.size, self.read()).unwrap();
        Checkpoint { origin: self.signer.did().to_string(), size: self.size, root }
    }

    fn since(&self, old: u64) -> Submission {
        let proof = merkle::consistency(old, self.size, self.read()).unwrap();
        Submission { old, proof, note: self.checkpoint().sign(&self.signer) }
    }
}

async fn submit(world: &World, submission: &Submission) -> Answer {
    let request = Request::post("/oap/witness/add-checkpoint").body(Body::from(submission.to_string()));
    world.send(request.unwrap()).await
}

/// What the witness signed last of a log, as anybody may see it.
async fn last_of(world: &World, log: &Log) -> Option<Checkpoint> {
    let origin: String =
        Sha256::digest(log.signer.did().as_str()).iter().map(|byte| format!("{byte:02x}")).collect();
    let answer = world.raw("GET", &format!("/oap/witness/{origin}/checkpoint"), &[], None).await;
    if answer.status == StatusCode::NOT_FOUND {
        return None;
    }
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let note = Note::parse(&answer.bytes).unwrap();
    assert_eq!(cosigned_at(&note, &world.document(), world.now()), Some(world.now()));
    Some(Checkpoint::read(note.text()).unwrap())
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.bytes.clone()).unwrap()
}

#[tokio::test]
async fn a_witness_signs_what_goes_on_and_nothing_else() {
    let (world, peer) = with_peer().await;
    let mut log = Log::of(peer.signer(1));
    log.grow(&["a", "b", "c"]);
    // Off, until the owner says for whom.
    submit(&world, &log.since(0)).await.refused(404, "not_found");
    let named = json!({"did": peer.did});
    world.owner("POST", "/oap/owner/witnessed", Some(&named)).await.ok();
    assert_eq!(last_of(&world, &log).await, None);

    let signed = submit(&world, &log.since(0)).await;
    assert_eq!(signed.status, StatusCode::OK, "{}", signed.body);
    // The lines put behind the checkpoint are a note that the witness signed.
    let whole = format!("{}{}", log.since(0).note, text(&signed));
    let note = Note::parse(whole.as_bytes()).unwrap();
    assert_eq!(cosigned_at(&note, &world.document(), world.now()), Some(world.now()));
    assert_eq!(last_of(&world, &log).await, Some(log.checkpoint()));

    // The same again is signed again; a longer one goes on.
    assert_eq!(submit(&world, &log.since(3)).await.status, StatusCode::OK);
    log.grow(&["d", "e"]);
    assert_eq!(submit(&world, &log.since(3)).await.status, StatusCode::OK);
    assert_eq!(last_of(&world, &log).await, Some(log.checkpoint()));

    // From another size than the last: it says which that is.
    for old in [0, 3, 4] {
        let conflict = submit(&world, &log.since(old)).await;
        assert_eq!(conflict.status, StatusCode::CONFLICT, "{old}");
        assert_eq!(conflict.media_type.as_deref(), Some("text/x.tlog.size"));
        assert_eq!(text(&conflict), "5\n");
    }
    let behind = Submission { old: 6, proof: Vec::new(), ..log.since(5) };
    submit(&world, &behind).await.refused(400, "invalid_input");
    // A proof too many, too few, or another; another tree of the same size; a shorter log.
    let current = log.checkpoint();
    let mut longer = Log::of(peer.signer(1));
    longer.grow(&["a", "b", "c", "d", "e", "f", "g"]);
    let honest = longer.since(5);
    let mut forked = Log::of(peer.signer(1));
    forked.grow(&["a", "b", "c", "x", "e"]);
    let same_size = forked.since(5);
    forked.grow(&["f", "g"]);
    let wrong = [
        Submission { proof: Vec::new(), ..honest.clone() },
        Submission { proof: [honest.proof.clone(), vec![Hash::of(b"x")]].concat(), ..honest.clone() },
        Submission { proof: forked.since(5).proof, ..honest.clone() },
        forked.since(5),
        same_size,
    ];
    for (number, submission) in wrong.iter().enumerate() {
        let refused = submit(&world, submission).await;
        assert_eq!(refused.status.as_u16(), 422, "{number}: {}", refused.body);
        assert_eq!(last_of(&world, &log).await, Some(current.clone()), "{number}");
    }
    // That of the same size is kept with what was signed: its key signed both.
    let list = world.owner("GET", "/oap/owner/witnessed", None).await.ok();
    let kept = &list["witnessed"][0];
    assert_eq!((&kept["signed"]["size"], &kept["other"]["size"]), (&json!(5), &json!(5)), "{list}");
    assert_ne!(kept["signed"]["root"], kept["other"]["root"]);
    assert!(kept["other"]["note"].as_str().unwrap().contains(peer.did.as_str()));
    // What goes on is signed all the same.
    assert_eq!(submit(&world, &honest).await.status, StatusCode::OK);
}

/// The attack: a stranger hands in the checkpoint that an honest log publishes, with a proof that is none. It is not signed, and its log is not
/// accused of anything.
#[tokio::test]
async fn whoever_hands_in_anothers_checkpoint_accuses_nobody() {
    let (world, peer) = with_peer().await;
    world.owner("POST", "/oap/owner/witnessed", Some(&json!({"did": peer.did}))).await.ok();
    let mut log = Log::of(peer.signer(1));
    log.grow(&["a", "b"]);
    assert_eq!(submit(&world, &log.since(0)).await.status, StatusCode::OK);
    let same = log.since(2);
    log.grow(&["c"]);
    let longer = log.since(2);
    for honest in [same, longer.clone()] {
        let framed = Submission { proof: vec![Hash::of(b"x")], ..honest };
        assert_eq!(submit(&world, &framed).await.status.as_u16(), 422);
    }
    let list = world.owner("GET", "/oap/owner/witnessed", None).await.ok();
    assert!(list["witnessed"][0]["other"].is_null(), "{list}");
    let examined = world.job(&json!({"job": "doctor"})).await;
    assert!(!examined.to_string().contains("another history than yours"), "{examined}");
    assert_eq!(submit(&world, &longer).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_witness_believes_the_pinned_key_alone() {
    let (world, peer) = with_peer().await;
    world.owner("POST", "/oap/owner/witnessed", Some(&json!({"did": peer.did}))).await.ok();
    let mut stolen = Log::of(peer.signer(2));
    stolen.grow(&["a"]);
    submit(&world, &stolen.since(0)).await.refused(403, "policy_block");
    // A signature of the right key over another text.
    let mut log = Log::of(peer.signer(1));
    log.grow(&["a"]);
    let honest = log.since(0);
    log.grow(&["b"]);
    let forged = Note::new(log.checkpoint().text(), honest.note.signatures()[0].clone());
    let forged = Submission { note: forged, ..log.since(0) };
    submit(&world, &forged).await.refused(403, "policy_block");
    assert_eq!(last_of(&world, &log).await, None);
    // A log without leaves that has a root.
    let rooted = Checkpoint { size: 0, ..log.checkpoint() };
    let rooted = Submission { old: 0, proof: Vec::new(), note: rooted.sign(&peer.signer(1)) };
    assert_eq!(submit(&world, &rooted).await.status.as_u16(), 422);
    for wrong in ["", "old 0\n\nnothing", "old 0\n\n\u{2014}"] {
        let request = Request::post("/oap/witness/add-checkpoint").body(Body::from(wrong));
        world.send(request.unwrap()).await.refused(400, "invalid_input");
    }
    assert_eq!(last_of(&world, &log).await, None);
}

/// Two submissions at once that both go on from what is signed: one of them is told that it does not any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_that_go_on_at_once_one_is_signed() {
    let (world, peer) = with_peer().await;
    world.owner("POST", "/oap/owner/witnessed", Some(&json!({"did": peer.did}))).await.ok();
    let (mut one, mut other) = (Log::of(peer.signer(1)), Log::of(peer.signer(1)));
    one.grow(&["a", "b"]);
    other.grow(&["x", "y", "z"]);
    let (one, other) = (one.since(0), other.since(0));
    let (first, second) = tokio::join!(submit(&world, &one), submit(&world, &other));
    let mut both = [first.status.as_u16(), second.status.as_u16()];
    both.sort_unstable();
    assert_eq!(both, [200, 409]);
}

/// After a lockdown (as after a restore, which draws the same value anew) nothing is known for certain of what was signed: the owner says so
/// again first.
#[tokio::test]
async fn after_a_lockdown_a_witness_waits_for_its_owner() {
    let (mut world, peer) = with_peer().await;
    let named = json!({"did": peer.did});
    world.owner("POST", "/oap/owner/witnessed", Some(&named)).await.ok();
    let mut log = Log::of(peer.signer(1));
    log.grow(&["a"]);
    assert_eq!(submit(&world, &log.since(0)).await.status, StatusCode::OK);
    let locked = world.owner("POST", "/oap/owner/lockdown", Some(&json!({}))).await.ok();
    world.token = locked["trust_token"].as_str().unwrap().to_owned();
    log.grow(&["b"]);
    submit(&world, &log.since(1)).await.refused(403, "policy_block");
    world.owner("POST", "/oap/owner/lockdown/lift", Some(&json!({}))).await.ok();
    let refused = submit(&world, &log.since(1)).await.refused(403, "policy_block");
    assert!(refused["message"].as_str().unwrap().contains("its owner says so again"), "{refused}");
    let list = world.owner("GET", "/oap/owner/witnessed", None).await.ok();
    assert_eq!(list["witnessed"][0]["signs"], false, "{list}");
    world.owner("POST", "/oap/owner/witnessed", Some(&named)).await.ok();
    // From where it was: it did not forget.
    assert_eq!(submit(&world, &log.since(0)).await.status, StatusCode::CONFLICT);
    assert_eq!(submit(&world, &log.since(1)).await.status, StatusCode::OK);
}

/// What the witness signed outlives its process.
#[tokio::test]
async fn a_witness_that_starts_anew_goes_back_to_nothing() {
    let random: std::sync::Arc<dyn oap_identity::Random> =
        std::sync::Arc::new(oap_identity::random::Seeded::new(9));
    let engine = std::sync::Arc::new(oap_store::MemoryEngine::default());
    let folder = tempfile::tempdir().unwrap();
    let vault = folder.path().join("vault");
    let master = || oap_store::Master::KeyFile([7; 32].into());
    oap_store::FileVault::create(&vault, &master(), &*random).unwrap();
    let store = || {
        let vault = oap_store::FileVault::open(&vault, &master()).unwrap();
        oap_store::Store::open(engine.clone(), vault, random.clone()).unwrap()
    };
    let config = || Config { allow_local_dids: true, ..Config::default() };
    let world = World::on(store(), config(), random.clone()).await;
    let peer = PlayedPeer::new().await;
    peer.publish(&PlayedPeer::shown(world.now()));
    let named = json!({"did": peer.did});
    world.owner("POST", "/oap/owner/peers", Some(&json!({"peer": peer.did}))).await.ok();
    world.owner("POST", "/oap/owner/witnessed", Some(&named)).await.ok();
    let mut log = Log::of(peer.signer(1));
    log.grow(&["a", "b"]);
    assert_eq!(submit(&world, &log.since(0)).await.status, StatusCode::OK);
    drop(world);
    let world = World::open(store(), config(), random.clone()).await;
    let mut other = Log::of(peer.signer(1));
    other.grow(&["x", "y", "z"]);
    assert_eq!(text(&submit(&world, &other.since(0)).await), "2\n");
    assert_eq!(submit(&world, &other.since(2)).await.status.as_u16(), 422);
}

/// Whoever asks for nothing leaves nothing: a gateway without witnesses has no log, and says so.
#[tokio::test]
async fn without_witnesses_there_is_no_log() {
    let (world, peer) = with_peer().await;
    world.clock.advance(MINUTE);
    assert!(!Witnesses(&world.gateway).round().await.unwrap());
    world.raw("GET", "/.well-known/oap-checkpoint", &[], None).await.refused(404, "not_found");
    world.raw("GET", "/oap/log/consistency?from=0&to=0", &[], None).await.refused(404, "not_found");
    let manifest = world.gateway.published().memory.clone();
    assert_eq!(manifest["endpoints"]["checkpoint"], format!("{ORIGIN}/.well-known/oap-checkpoint"));
    assert_eq!(manifest["endpoints"]["witness"], format!("{ORIGIN}/oap/witness"));
    // Nobody is a witness or demanded who is no peer.
    let stranger = json!({"did": "did:web:stranger.example"});
    for path in ["/oap/owner/witnesses", "/oap/owner/witnessed", "/oap/owner/witnesses/remove"] {
        world.owner("POST", path, Some(&stranger)).await.refused(404, "not_found");
    }
    let demand = json!({"did": peer.did, "need": 2, "of": [peer.did, peer.did]});
    world.owner("POST", "/oap/owner/peers/witnesses", Some(&demand)).await.refused(400, "invalid_input");
    // Nor does whoever keeps a log vouch for it.
    let demand = json!({"did": peer.did, "need": 1, "of": [peer.did]});
    let refused = world.owner("POST", "/oap/owner/peers/witnesses", Some(&demand)).await;
    let refused = refused.refused(400, "invalid_input");
    assert!(refused["message"].as_str().unwrap().starts_with("of: "), "{refused}");
    let demand = json!({"did": peer.did, "need": 1, "of": ["did:web:stranger.example"]});
    world.owner("POST", "/oap/owner/peers/witnesses", Some(&demand)).await.refused(404, "not_found");
    let added = world.owner("POST", "/oap/owner/witnesses", Some(&json!({"did": peer.did}))).await.ok();
    assert_eq!(added["size"], 0, "{added}");
    world
        .owner("POST", "/oap/owner/witnesses", Some(&json!({"did": peer.did})))
        .await
        .refused(409, "conflict");
}

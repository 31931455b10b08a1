//! What a log tells of what was done: to a grantee that its receipts are in it, and nothing else to anybody.

use super::*;
use oap_memory::log::inclusion::{Inclusion, Known};
use oap_memory::log::tick;
use std::collections::BTreeSet;

/// A gateway whose log is asked for by nobody who answers.
async fn logging() -> World {
    let (world, peer) = with_peer().await;
    world.owner("POST", "/oap/owner/witnesses", Some(&json!({"did": peer.did}))).await.ok();
    world
}

/// A minute goes by.
async fn minute(world: &World) {
    world.clock.advance(MINUTE);
    assert!(Witnesses(&world.gateway).round().await.unwrap());
    // One leaf a minute, however often it is asked for.
    assert!(!Witnesses(&world.gateway).round().await.unwrap());
}

async fn checkpoint(world: &World) -> Checkpoint {
    let answer = world.raw("GET", "/.well-known/oap-checkpoint", &[], None).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let note = Note::parse(&answer.bytes).unwrap();
    Checkpoint::verify(&note, &world.document(), world.now()).unwrap()
}

async fn way(world: &World, grantee: &Signer, token: &str, receipt: &Value) -> Answer {
    let path = format!("/oap/memory/witnessed/{}", receipt["receipt_id"].as_str().unwrap());
    world.as_agent(grantee, token, "GET", &path, None).await
}

fn tea() -> Value {
    json!({"query": "tea"})
}

#[tokio::test]
async fn a_grantee_is_shown_that_its_receipts_are_in_the_log() {
    let world = logging().await;
    world.capture(&[note("Tea at nine", &["tea"])]).await;
    let (grantee, other) = (agent(7), agent(8));
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let answer = world.query(&grantee, &token, &tea()).await.ok();
    let receipt = &answer["receipt"];
    way(&world, &grantee, &token, receipt).await.refused(404, "not_found");
    minute(&world).await;
    let mut earlier = checkpoint(&world).await;
    assert_eq!(earlier.size, 1);
    let known = Known::of(receipt).unwrap();
    for size in 2..=9 {
        let shown: Inclusion =
            serde_json::from_value(way(&world, &grantee, &token, receipt).await.ok()).unwrap();
        assert_eq!((shown.tick, shown.siblings.len()), (0, tick::DEPTH));
        shown.check(&known, &world.document(), world.now()).unwrap();
        // Of another receipt it says nothing.
        let other = Known { hash: Hash::of(b"another"), ..known.clone() };
        assert!(shown.check(&other, &world.document(), world.now()).is_err());
        minute(&world).await;
        let now = checkpoint(&world).await;
        assert_eq!(now.size, size);
        // It goes on, as anybody may check.
        let path = format!("/oap/log/consistency?from={}&to={}", earlier.size, now.size);
        let proof = world.raw("GET", &path, &[], None).await.ok();
        let proof: Vec<Hash> = serde_json::from_value(proof["proof"].clone()).unwrap();
        merkle::check_consistency(earlier.size, &earlier.root, now.size, &now.root, &proof).unwrap();
        earlier = now;
    }
    for sizes in ["from=1&to=10", "from=3&to=2"] {
        let path = format!("/oap/log/consistency?{sizes}");
        world.raw("GET", &path, &[], None).await.refused(404, "not_found");
    }
    // Nobody else is shown it: another grantee, and the same under another grant. Nor is it shown what is not its own.
    let second = world.issue(&world.draft(&other)).await;
    let others = world.token(&other, &second).await;
    way(&world, &other, &others, receipt).await.refused(404, "not_found");
    let third = world.issue(&world.draft(&grantee)).await;
    let elsewhere = world.token(&grantee, &third).await;
    way(&world, &grantee, &elsewhere, receipt).await.refused(404, "not_found");
    let capture = &answer["items"][0]["integrity"]["capture_receipt"];
    way(&world, &grantee, &token, capture).await.refused(404, "not_found");
    // Once the grant is revoked: no.
    let revoke = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &revoke, Some(&json!({}))).await.ok();
    way(&world, &grantee, &token, receipt).await.refused(403, "policy_block");
    world.chains_hold().await;
}

/// What was done before the log began is in it by hash alone, and what is done while the gateway does not tick is in the next leaf.
#[tokio::test]
async fn a_log_begins_behind_what_there_is() {
    let (world, peer) = with_peer().await;
    world.capture(&[note("Tea at nine", &["tea"])]).await;
    let grantee = agent(7);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let before = world.query(&grantee, &token, &tea()).await.ok();
    world.owner("POST", "/oap/owner/witnesses", Some(&json!({"did": peer.did}))).await.ok();
    let after = world.query(&grantee, &token, &tea()).await.ok();
    world.clock.advance(3 * MINUTE);
    let late = world.query(&grantee, &token, &tea()).await.ok();
    assert!(Witnesses(&world.gateway).round().await.unwrap());
    assert_eq!(checkpoint(&world).await.size, 1);
    way(&world, &grantee, &token, &before["receipt"]).await.refused(404, "not_found");
    for answer in [&after, &late] {
        let shown = way(&world, &grantee, &token, &answer["receipt"]).await.ok();
        let shown: Inclusion = serde_json::from_value(shown).unwrap();
        let known = Known::of(&answer["receipt"]).unwrap();
        shown.check(&known, &world.document(), world.now()).unwrap();
    }
}

/// Non-interference: of two gateways with the same view, one does a hundred things more. What anybody is shown of their logs has the same
/// sizes, the same number of hashes and the same number of bytes; and no hash of either is one that could be known without its secret.
#[tokio::test]
async fn a_log_does_not_tell_how_much_was_done() {
    let (quiet, busy) = (logging().await, logging().await);
    let mut seen = BTreeSet::new();
    let mut shapes = Vec::new();
    for (world, is_busy) in [(&quiet, false), (&busy, true)] {
        world.capture(&[note("Tea at nine", &["tea"])]).await;
        let (grantee, other) = (agent(7), agent(8));
        let mut draft = world.draft(&grantee);
        draft["filter"] = json!({"labels_any": ["tea"]});
        let grant = world.issue(&draft).await;
        let token = world.token(&grantee, &grant).await;
        let mut shape = Vec::new();
        let mut receipts = Vec::new();
        for round in 0..3 {
            if is_busy {
                let notes: Vec<Value> =
                    (0..20).map(|number| note(&format!("Other {round} {number}"), &["other"])).collect();
                world.capture(&notes).await;
                world.ask(&other, &world.draft(&other), &tea()).await;
            }
            // In the second minute the quiet one does nothing at all.
            if round != 1 {
                receipts.push(world.query(&grantee, &token, &tea()).await.ok()["receipt"].clone());
            }
            minute(world).await;
            let published = world.raw("GET", "/.well-known/oap-checkpoint", &[], None).await;
            shape.push(json!({"checkpoint": published.bytes.len(), "size": checkpoint(world).await.size}));
            assert!(
                seen.insert(checkpoint(world).await.root),
                "a root that comes again says that nothing was done"
            );
            for receipt in &receipts {
                let answer = way(world, &grantee, &token, receipt).await;
                let bytes = answer.bytes.len();
                let shown: Inclusion = serde_json::from_value(answer.ok()).unwrap();
                shown.check(&Known::of(receipt).unwrap(), &world.document(), world.now()).unwrap();
                shape.push(json!({
                    "bytes": bytes, "tick": shown.tick, "siblings": shown.siblings.len(), "path": shown.path.len(),
                }));
                if shown.tick == round {
                    let fresh = shown.siblings.iter().all(|hash| seen.insert(*hash));
                    assert!(fresh, "a hash that comes again tells that what is below it did not change");
                }
            }
        }
        shapes.push(shape);
    }
    assert_eq!(shapes[0], shapes[1]);
}

/// Minutes that a clock used up which stood ahead are lived again: the log goes on at once.
#[tokio::test]
async fn a_clock_that_stood_ahead_stops_no_log() {
    let world = logging().await;
    minute(&world).await;
    let start = world.now();
    world.clock.set(start.plus(Duration::from_secs(10 * 86_400)));
    minute(&world).await;
    world.clock.set(start);
    world.owner("POST", "/oap/owner/clock/accept", None).await.ok();
    minute(&world).await;
    assert_eq!(checkpoint(&world).await.size, 3);
}

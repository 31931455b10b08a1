//! Clocks that go back, stand ahead, and are set right (docs/decisions.md, "Time").

use crate::common::*;
use oap_gateway::Error;
use oap_gateway::service::{Audit, Deletions, Items, Keys};
use oap_gateway::state::clock::Standing;
use serde_json::{Value, json};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

async fn grant_of_a_day(world: &World) -> (Value, String) {
    world.capture(&[note("seen for a day", &[])]).await;
    let mut draft = world.draft(&agent(2));
    draft["expires_at"] = json!(world.now().plus(DAY));
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    (grant, token)
}

#[tokio::test]
async fn a_clock_that_goes_back_revives_no_grant() {
    let (kept, world) = Kept::new().await;
    let owner = world.proved().await;
    let start = world.now();
    let (grant, _) = grant_of_a_day(&world).await;
    world.clock.advance(DAY + Duration::from_secs(60));
    world.capture(&[note("later", &[])]).await;
    world.exchange(&agent(2), &grant).await.refused(403, "policy_block");
    // A little: time stands still, and the grant is over.
    world.clock.set(start.plus(DAY).minus(Duration::from_secs(60)));
    world.exchange(&agent(2), &grant).await.refused(403, "policy_block");
    // Far, and started anew: nothing is served, and the owner is told.
    let world = {
        drop(world);
        kept.open_at(start).await
    };
    assert_eq!(world.gateway.clock_info(&owner).standing, Standing::Behind);
    world.exchange(&agent(2), &grant).await.refused(503, "maintenance");
    world.raw("GET", "/oap/memory/status", &[], None).await.refused(503, "maintenance");
    assert!(matches!(Deletions(&world.gateway).sweep().await, Err(Error::Unavailable(_))));
    let findings = world.job(&json!({"job": "doctor"})).await["findings"].clone();
    let clock = findings.as_array().unwrap().iter().find(|f| f["part"] == "clock").unwrap().clone();
    assert!(clock["wrong"][0].as_str().unwrap().contains("behind"), "{clock}");
    // Right again.
    world.clock.set(start.plus(2 * DAY));
    world.exchange(&agent(2), &grant).await.refused(403, "policy_block");
    Deletions(&world.gateway).sweep().await.unwrap();
}

/// What waits in the same batch as the owner's word goes by the time that the owner said, and does not put the former one
/// back.
#[tokio::test]
async fn a_commit_after_the_owners_word_goes_by_it() {
    let (kept, world) = Kept::new().await;
    let owner = world.proved().await;
    let start = world.now();
    world.clock.advance(30 * DAY);
    world.capture(&[note("by a clock that stood ahead", &[])]).await;
    world.clock.set(start);
    assert_eq!(world.gateway.clock_info(&owner).standing, Standing::Behind);
    let (release, released) = std::sync::mpsc::channel::<()>();
    let holds_the_writer = world.gateway.commit(move |_| {
        released.recv().unwrap();
        Ok(())
    });
    let after = world.gateway.commit(|w| Ok(w.now));
    let go = async { release.send(()).unwrap() };
    let (held, accepted, after, ()) =
        tokio::join!(holds_the_writer, world.gateway.accept_clock(&owner), after, go);
    held.unwrap();
    assert_eq!(accepted.unwrap().standing, Standing::Believed);
    assert!(after.unwrap() < start.plus(DAY));
    drop(world);
    let world = kept.open_at(start).await;
    assert_eq!(world.gateway.clock_info(&owner).standing, Standing::Believed);
}

#[tokio::test]
async fn a_token_is_not_served_by_a_clock_that_is_not_believed() {
    let world = World::new().await;
    let (_, token) = grant_of_a_day(&world).await;
    world.query(&agent(2), &token, &json!({})).await.ok();
    let now = world.now();
    world.clock.set(now.minus(Duration::from_secs(301)));
    let refused = world.query(&agent(2), &token, &json!({})).await;
    assert!([401, 503].contains(&refused.status.as_u16()), "{}", refused.body);
    world.clock.set(now);
    world.query(&agent(2), &token, &json!({})).await.ok();
}

#[tokio::test]
async fn a_leap_ahead_erases_nothing_and_dates_nothing() {
    let world = World::new().await;
    let start = world.now();
    let ids = world.capture(&[note("taken back", &[])]).await;
    world.owner("POST", &format!("/oap/owner/items/{}/retract", ids[0]), Some(&json!({}))).await.ok();
    world.clock.set(start.plus(10 * YEAR));
    let owner = world.proved().await;
    assert_eq!(world.gateway.clock_info(&owner).standing, Standing::Ahead);
    assert!(matches!(Deletions(&world.gateway).sweep().await, Err(Error::Unavailable(_))));
    Items(&world.gateway).capture(&owner, &[note("written meanwhile", &[])]).await.unwrap();
    assert!(matches!(
        Keys(&world.gateway).revoke_key(&owner, "key-1".into(), None).await,
        Err(Error::Unavailable(_))
    ));
    for chain in Audit(&world.gateway).chain_list(&owner).unwrap() {
        assert!(chain.at <= start, "{chain:?}");
    }
    world.clock.set(start.plus(DAY));
    let owner = world.proved().await;
    Deletions(&world.gateway).sweep().await.unwrap();
    let keys = Keys(&world.gateway).revoke_key(&owner, "key-1".into(), None).await.unwrap();
    let revoked = keys.keys.iter().find_map(|key| key.revoked_at).unwrap();
    assert!(revoked <= start.plus(DAY).plus(Duration::from_secs(1)), "{revoked}");
    let shown = Items(&world.gateway).item(&owner, ids[0].parse().unwrap()).unwrap();
    assert!(shown.item.whole()["content"].is_object());
}

/// A clock that was believed and wrong: the owner sets it right, every chain says so, and what follows is dated by the clock.
#[tokio::test]
async fn a_receipt_from_a_wrong_clock_dates_nothing_after_it() {
    let (kept, world) = Kept::new().await;
    let start = world.now();
    world.clock.set(start.plus(YEAR));
    let owner = world.proved().await;
    Items(&world.gateway).capture(&owner, &[note("a year ahead", &[])]).await.unwrap();
    let world = {
        drop(world);
        kept.open_at(start.plus(DAY)).await
    };
    let owner = world.proved().await;
    assert!(matches!(
        Keys(&world.gateway).revoke_key(&owner, "key-1".into(), None).await,
        Err(Error::Unavailable(_))
    ));
    let info = world.owner("POST", "/oap/owner/clock/accept", None).await.ok();
    assert_eq!(info["standing"], "believed");
    Audit(&world.gateway).verify_audit(&owner, &Default::default()).unwrap();
    let said = Audit(&world.gateway).audit_owner(&owner, &Default::default()).unwrap().receipts;
    let said: Vec<_> = said
        .iter()
        .filter(|r| r.action_id.as_deref() == Some(oap_memory::receipt::Action::ClockAccept.as_str()))
        .collect();
    assert_eq!(said.len(), 2, "the anonymous chain's and the scope's");
    assert_eq!(said[0].policy_decisions[0].more["to"], json!(start.plus(DAY)));
    let keys = Keys(&world.gateway).revoke_key(&owner, "key-1".into(), None).await.unwrap();
    let revoked = keys.keys.iter().find_map(|key| key.revoked_at).unwrap();
    assert!(revoked < start.plus(2 * DAY), "{revoked}");
    // And it is so after the next start.
    let now = world.now();
    let world = {
        drop(world);
        kept.open_at(now).await
    };
    assert_eq!(world.gateway.clock_info(&owner).standing, Standing::Believed);
    let (_, token) = grant_of_a_day(&world).await;
    world.query(&agent(2), &token, &json!({})).await.ok();
}

/// Day ahead and back: the log goes on where it was, and no entry is older than the one before it.
#[tokio::test]
async fn receipts_do_not_go_back_by_themselves() {
    let world = World::new().await;
    let owner = world.proved().await;
    let start = world.now();
    world.clock.advance(DAY);
    Items(&world.gateway).capture(&owner, &[note("a day later", &[])]).await.unwrap();
    world.clock.set(start);
    Items(&world.gateway).capture(&owner, &[note("and back", &[])]).await.unwrap();
    Audit(&world.gateway).verify_audit(&owner, &Default::default()).unwrap();
}

/// The owner's proofs are judged by the clock as it is, for it is they who set it right: they are remembered for as long as they are
/// fresh by it, whatever the time was believed to be when they were used.
#[tokio::test]
async fn a_proof_that_was_used_while_the_clock_stood_ahead_is_not_taken_again() {
    let (kept, world) = Kept::new().await;
    let ahead = world.now().plus(10 * YEAR);
    world.clock.set(ahead);
    let admin = oap_identity::Signer::did_key(&[99; 32]).unwrap();
    let used = |world: &World, seed: u64| {
        let permission = oap_gateway::state::owner::Permission::Admin;
        let token = world.gateway.trust_token(&admin, permission).unwrap();
        let url = format!("{ORIGIN}/oap/owner/items");
        let target = oap_grants::dpop::Request { method: "GET", url: &url };
        let random = oap_identity::random::Seeded::new(seed);
        let proof = oap_grants::dpop::prove(&admin, target, &token, world.now(), &random).unwrap();
        [("authorization", format!("DPoP {token}")), ("dpop", proof)]
    };
    let get = async |world: &World, headers: &[(&str, String); 2]| {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        world.raw("GET", "/oap/owner/items", &headers, None).await
    };
    let first = used(&world, 7_000_001);
    get(&world, &first).await.ok();
    let owner = world.proved().await;
    world.gateway.accept_clock(&owner).await.unwrap();
    Deletions(&world.gateway).sweep().await.unwrap();
    get(&world, &first).await.refused(401, "auth_required");
    // Nor after a restart.
    drop((owner, world));
    let world = kept.open_at(ahead).await;
    get(&world, &first).await.refused(401, "auth_required");
    // It is forgotten when it is no longer fresh.
    let fresh = used(&world, 7_000_002);
    get(&world, &fresh).await.ok();
    world.clock.advance(DAY);
    let swept = Deletions(&world.gateway).sweep().await.unwrap();
    assert!(swept.proofs > 1, "{swept:?}");
}

//! Refusals leave a bounded number of receipts, and proofs count once, whatever came of the request.

use crate::common::*;
use oap_gateway::state::refusals::{MAX_FAILED, MAX_REFUSALS};
use oap_gateway::state::schema::PROOFS;
use oap_gateway::system::config::Config;
use oap_grants::dpop;
use oap_identity::Random;
use oap_identity::random::Seeded;
use oap_store::{FileVault, Master, SledEngine, Store};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

#[tokio::test]
async fn a_flood_of_refusals_leaves_few_receipts() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let other = world.issue(&world.draft(&agent(3))).await;
    let honest = world.token(&agent(3), &other).await;
    let path = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &path, None).await.ok();
    let query = json!({"query": ""});
    for _ in 0..MAX_REFUSALS {
        world.query(&agent(2), &token, &query).await.refused(403, "policy_block");
    }
    let receipts = async || {
        let listing = world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
        listing["receipts"].as_array().unwrap().len()
    };
    let before = receipts().await;
    for _ in 0..20 {
        world.query(&agent(2), &token, &query).await.refused(429, "rate_limited");
    }
    assert_eq!(receipts().await, before);
    // Another grantee notices nothing of it.
    world.query(&agent(3), &honest, &query).await.ok();
    world.clock.advance(Duration::from_secs(60));
    world.query(&agent(2), &token, &query).await.refused(403, "policy_block");
}

/// Requests that fail use up their proofs, which are kept for minutes: so many in a minute and no more.
#[tokio::test]
async fn a_flood_of_wrong_requests_leaves_few_proofs() {
    const MORE: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
    let world = World::on(store(folder.path(), &random), Config::default(), random.clone()).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let (wrong, right) = (json!({"max_results": 0}), json!({"query": ""}));
    for _ in 0..MAX_FAILED {
        world.query(&agent(2), &token, &wrong).await.refused(400, "invalid_input");
    }
    for _ in 0..MORE {
        world.query(&agent(2), &token, &wrong).await.refused(429, "rate_limited");
    }
    world.query(&agent(2), &token, &right).await.refused(429, "rate_limited");
    world.clock.advance(Duration::from_secs(60));
    world.query(&agent(2), &token, &right).await.ok();
    drop(world);
    let kept = PROOFS.scan(&store(folder.path(), &random)).count();
    assert!((MAX_FAILED as usize..MAX_FAILED as usize + MORE).contains(&kept), "{kept}");
}

fn store(folder: &Path, random: &Arc<dyn Random>) -> Store {
    let master = Master::KeyFile(Zeroizing::new([7; 32]));
    let vault = folder.join("vault");
    if !vault.exists() {
        FileVault::create(&vault, &master, &**random).unwrap();
    }
    let engine = SledEngine::open(&folder.join("store")).unwrap();
    Store::open(engine, FileVault::open(&vault, &master).unwrap(), random.clone()).unwrap()
}

/// The request was a 400, the gateway starts anew, and the proof is still used up.
#[tokio::test]
async fn a_proof_counts_once_even_where_its_request_was_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
    let world = World::on(store(folder.path(), &random), Config::default(), random.clone()).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let url = format!("{ORIGIN}/oap/memory/query");
    let target = dpop::Request { method: "POST", url: &url };
    let proof = dpop::prove(&agent(2), target, &token, world.now(), &Seeded::new(77)).unwrap();
    let authorization = format!("DPoP {token}");
    let headers = [("authorization", authorization.as_str()), ("dpop", proof.as_str())];
    let wrong = json!({"max_results": 0});
    world.raw("POST", "/oap/memory/query", &headers, Some(&wrong)).await.refused(400, "invalid_input");
    drop(world);
    let world = World::open(store(folder.path(), &random), Config::default(), random.clone()).await;
    let right = json!({"query": ""});
    let replayed = world.raw("POST", "/oap/memory/query", &headers, Some(&right)).await;
    replayed.refused(401, "auth_required");
    world.query(&agent(2), &token, &right).await.ok();
}

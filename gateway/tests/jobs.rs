//! Long work of the owner's side as jobs: begun, waited for, cancelled, and never two of a kind.

mod common;

use common::*;
use oap_gateway::service::{Backups, Health};
use serde_json::{Value, json};

const JOBS: &str = "/oap/owner/jobs";

async fn begin(world: &World, job: &Value) -> Value {
    let answer = world.owner("POST", JOBS, Some(job)).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.body
}

/// How a job ended.
async fn end(world: &World, job: &Value) -> Value {
    let path = format!("{JOBS}/{}?wait=20", job["job_id"].as_str().unwrap());
    let report = world.owner("GET", &path, None).await.ok();
    assert_ne!(report["state"], "running", "{report}");
    report
}

#[tokio::test]
async fn a_job_says_how_far_it_is_and_has_the_result_of_the_request_of_its_name() {
    let world = World::new().await;
    world.capture(&[note("Tea at four", &["shared"]), note("Oil the car", &[])]).await;
    let asked = world.owner("GET", "/oap/owner/doctor", None).await.ok();
    let report = end(&world, &begin(&world, &json!({"job": "doctor"})).await).await;
    assert_eq!((&report["state"], &report["job"]), (&json!("done"), &json!("doctor")));
    assert_eq!(report["result"], asked);
    assert!(report["done"].as_u64() >= Some(2) && report["done"] == report["expected"], "{report}");
    assert!(report["ended"].is_string());

    let asked = world.owner("GET", "/oap/owner/audit/verify", None).await.ok();
    let report = end(&world, &begin(&world, &json!({"job": "verify_audit"})).await).await;
    assert_eq!(report["result"], asked);

    let report = end(&world, &begin(&world, &json!({"job": "reseal"})).await).await;
    assert_eq!(report["result"], json!({"receipts": 0, "items": 0, "held_back": 0, "left": []}));

    let listed = world.owner("GET", JOBS, None).await.ok();
    let kinds: Vec<&Value> = listed["jobs"].as_array().unwrap().iter().map(|job| &job["job"]).collect();
    assert_eq!(kinds, ["reseal", "verify_audit", "doctor"]);
}

#[tokio::test]
async fn a_backup_that_failed_says_why_and_can_be_made_again_in_the_same_place() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    let wanted = json!({"job": "backup", "folder": place});
    std::fs::create_dir(&place).unwrap();
    let report = end(&world, &begin(&world, &wanted).await).await;
    assert_eq!((&report["state"], &report["error"]["status"]), (&json!("failed"), &json!(400)));
    assert!(report["error"]["message"].as_str().unwrap().starts_with("folder: "), "{report}");

    std::fs::remove_dir(&place).unwrap();
    let report = end(&world, &begin(&world, &wanted).await).await;
    assert_eq!(report["state"], "done", "{report}");
    assert!(place.join("backup.json").exists());
}

#[tokio::test]
async fn a_backup_that_is_cancelled_leaves_nothing_behind() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    let progress = oap_gateway::state::jobs::Jobs::default();
    let job = progress
        .begin(
            oap_gateway::state::jobs::JobKind::Backup,
            &"did:web:user.example#key-1".parse().unwrap(),
            world.now(),
            &oap_gateway::system::clock::SystemRandom,
        )
        .unwrap();
    progress.close();
    let owner = world.proved().await;
    let cancelled = Backups(&world.gateway).backup(&owner, place.clone(), &job.progress()).await;
    assert!(matches!(cancelled, Err(oap_gateway::Error::Cancelled)));
    assert!(!place.exists());
    let doctor = Health(&world.gateway).examine(&owner, &job.progress());
    assert!(matches!(doctor, Err(oap_gateway::Error::Cancelled)), "{doctor:?}");
}

#[tokio::test]
async fn what_is_no_job_is_refused_and_nobody_else_begins_one() {
    let world = World::new().await;
    for wrong in [
        json!({"job": "dance"}),
        json!({"job": "doctor", "folder": "/x"}),
        json!({"job": "backup"}),
        json!({}),
    ] {
        world.owner("POST", JOBS, Some(&wrong)).await.refused(400, "invalid_input");
    }
    let unknown = format!("{JOBS}/job_01JZZZZZZZZZZZZZZZZZZZZZZZ");
    world.owner("GET", &unknown, None).await.refused(404, "not_found");
    world.owner("POST", &format!("{unknown}/cancel"), None).await.refused(404, "not_found");
    world.owner("GET", &format!("{JOBS}/x"), None).await.refused(404, "not_found");

    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    world
        .as_agent(&grantee, &token, "POST", JOBS, Some(&json!({"job": "doctor"})))
        .await
        .refused(401, "auth_required");
}

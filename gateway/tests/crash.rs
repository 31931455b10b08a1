//! kill -9 at random moments under load: what was acknowledged is there, chains verify, views rebuild.
//!
//! `OAP_CRASH_ROUNDS` sets the number of rounds (50).

use crate::program::*;
use oap_gateway::client::{Caller, HomeClient};
use oap_gateway::system::clock::SystemRandom;
use oap_gateway::system::home;
use oap_identity::Random;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const WRITERS: usize = 4;

async fn owner(home: &Home) -> HomeClient {
    HomeClient::connect(home::Home::new(home.home()), &BTreeMap::new(), Caller::default()).await.unwrap()
}

/// What the gateway acknowledged: item and the version that it has at least.
type Acknowledged = Arc<Mutex<BTreeMap<String, u64>>>;

/// Writes, corrects and erases until the server is gone. Returns the ids whose erasure was acknowledged.
async fn write(owner: HomeClient, done: Acknowledged, tell: tokio::sync::mpsc::Sender<()>) -> Vec<String> {
    let mut erased = Vec::new();
    for number in 0_u64.. {
        let item = json!({"kind": "fact", "content": {"text": format!("note {number}")}, "labels": ["load"]});
        let body = json!({"items": [item.clone(), item]});
        let Ok(answer) = owner.call("POST", "/oap/owner/items", &[], Some(&body)).await else { break };
        let ids: Vec<String> = answer["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["item_id"].as_str().unwrap().to_owned())
            .collect();
        done.lock().unwrap().extend(ids.iter().map(|id| (id.clone(), 1)));
        let _ = tell.try_send(());
        if number % 3 == 1 {
            let path = format!("/oap/owner/items/{}/correct", ids[0]);
            let body = json!({"item": {"content": {"text": format!("corrected {number}")}}});
            let Ok(answer) = owner.call("POST", &path, &[], Some(&body)).await else { break };
            done.lock().unwrap().insert(ids[0].clone(), answer["version"].as_u64().unwrap());
            let _ = tell.try_send(());
        }
        if number % 5 == 2 {
            // From the request on it may be gone or not; after the answer it is gone.
            done.lock().unwrap().remove(&ids[1]);
            let body = json!({"items": [ids[1]]});
            if owner.call("POST", "/oap/data/delete", &[], Some(&body)).await.is_err() {
                break;
            }
            erased.push(ids[1].clone());
            let _ = tell.try_send(());
        }
    }
    erased
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let rounds: u32 = std::env::var("OAP_CRASH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    oap_gateway::system::tls::install();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let home = Home::web();
    let grantee = Home::key();
    let contractor = read(grantee.home().join("did.json"))["id"].as_str().unwrap().to_owned();
    let draft = json!({
        "grantee": contractor, "purpose": "crash", "filter": {"labels_any": ["load"]}, "max_items": 10_000,
        "expires_at": "2027-02-01T00:00:00Z", "redaction_profile": "oap.profile.projection.memory.v1",
        "trust_level": 2,
    });
    let mut total = 0;
    for round in 0..rounds {
        let server = home.serve(&[]);
        let acknowledged = Acknowledged::default();
        let mut moment = [0];
        SystemRandom.fill(&mut moment);
        let erased: Vec<String> = runtime.block_on(async {
            let (tell, mut told) = tokio::sync::mpsc::channel(1024);
            let mut writers = Vec::new();
            for _ in 0..WRITERS {
                let writer = write(owner(&home).await, acknowledged.clone(), tell.clone());
                writers.push(tokio::spawn(writer));
            }
            drop(tell);
            // The moment is counted in answers, so that it falls anywhere into the requests of the others.
            for _ in 0..moment[0] {
                told.recv().await.unwrap();
            }
            tokio::task::spawn_blocking(|| server.kill()).await.unwrap();
            let mut erased = Vec::new();
            for writer in writers {
                erased.extend(writer.await.unwrap());
            }
            erased
        });
        runtime.block_on(async {
            let mut owner = owner(&home).await;
            let call = async |owner: &mut HomeClient, path: &str| -> Value {
                owner
                    .call("GET", path, &[], None)
                    .await
                    .unwrap_or_else(|e| panic!("round {round}: {path}: {e}"))
            };
            let written = acknowledged.lock().unwrap().clone();
            total += written.len();
            for (id, version) in &written {
                let item = call(&mut owner, &format!("/oap/owner/items/{id}")).await;
                let found = item["item"]["version"].as_u64().unwrap();
                assert!(found >= *version, "round {round}: {id} is at {found}, not {version}");
            }
            let mut left = BTreeSet::new();
            let mut before: Option<String> = None;
            loop {
                let mut query = vec![("limit", "500".to_owned())];
                query.extend(before.map(|id| ("before", id)));
                let page = owner.call("GET", "/oap/owner/items", &query, None).await.unwrap();
                for item in page["items"].as_array().unwrap() {
                    left.insert(item["item_id"].as_str().unwrap().to_owned());
                }
                before = page["next"].as_str().map(str::to_owned);
                if before.is_none() {
                    break;
                }
            }
            for id in &erased {
                assert!(!left.contains(id), "round {round}: {id} was erased and is back");
            }
            let request = serde_json::json!({"job": "verify_audit"});
            let begun = owner.call("POST", "/oap/owner/jobs", &[], Some(&request)).await.unwrap();
            let job = format!("/oap/owner/jobs/{}", begun["job_id"].as_str().unwrap());
            let ended = owner.call("GET", &job, &[("wait", "20".to_owned())], None).await.unwrap();
            assert_eq!(ended["state"], "done", "round {round}: {ended}");
            // A view loads and opens every item in it.
            let preview = owner.call("POST", "/oap/owner/grants/preview", &[], Some(&draft)).await.unwrap();
            assert_eq!(preview["selected"].as_u64().unwrap() as usize, left.len(), "round {round}");
            // So that every round has its own share, not all that were before.
            if round % 10 == 9 {
                let body = json!({"labels": ["load"]});
                owner.call("POST", "/oap/data/delete", &[], Some(&body)).await.unwrap();
            }
        });
    }
    assert!(
        total > rounds as usize * 10,
        "{total} acknowledged items in {rounds} rounds are too few to say much"
    );
}

//! Deletion, holds, sweeping and restoring that overtake each other: each reads again in its own transaction what it rests on.
//!
//! The writer is held up while operations queue behind it, so that each has looked at the memory as it was and each finds it changed.

mod policy;

use crate::common::*;
use oap_gateway::Gateway;
use oap_gateway::service::deletion::{DeleteRequest, Deleted};
use oap_gateway::service::holds::{HoldReason, HoldRequest};
use oap_gateway::service::jobs::JobRequest;
use oap_gateway::service::{Attestations, Audit, Deletions, Gates, Grants, Items, Keys, LongWork};
use oap_gateway::state::owner::{Owner, mark::Admin};
use oap_gateway::state::schema::{self, HEADS};
use oap_identity::ItemId;
use oap_memory::chain::Event;
use oap_memory::record::Few;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tokio::task::JoinHandle;

const DAY: Duration = Duration::from_secs(86_400);

/// Holds up the writer until something is sent.
async fn held_up(gateway: &Arc<Gateway>) -> Sender<()> {
    let (go, wait) = channel();
    let gateway = gateway.clone();
    let held = async move {
        let waiting = gateway.commit(move |_| {
            let _ = wait.recv();
            Ok(())
        });
        waiting.await
    };
    queued(held).await;
    go
}

/// Starts something, and comes back when it waits for the writer.
async fn queued<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let handle = tokio::spawn(work);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    handle
}

fn parsed(ids: &[String]) -> Vec<ItemId> {
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

async fn delete(
    world: &World,
    owner: &Owner<Admin>,
    request: DeleteRequest,
) -> JoinHandle<Result<Deleted, oap_gateway::Error>> {
    let (gateway, owner) = (world.gateway.clone(), owner.clone());
    queued(async move { Deletions(&gateway).delete(&owner, request).await }).await
}

async fn events(world: &World, id: &str) -> Vec<String> {
    let shown = world.owner("GET", &format!("/oap/owner/items/{id}"), None).await.ok();
    let chain = shown["chain"].as_array().unwrap();
    chain.iter().map(|link| link["event"].as_str().unwrap().to_owned()).collect()
}

async fn status(world: &World, id: &str) -> Value {
    world.owner("GET", &format!("/oap/owner/items/{id}"), None).await.ok()["item"]["status"].clone()
}

#[tokio::test]
async fn two_deletions_of_the_same_items_both_succeed() {
    let world = World::new().await;
    let owner = world.proved().await;
    let items: Vec<Value> =
        (0..30).map(|n| note(&format!("n{n}"), &[if n < 20 { "x" } else { "y" }])).collect();
    let ids = world.capture(&items).await;
    let go = held_up(&world.gateway).await;
    let first =
        delete(&world, &owner, DeleteRequest { labels: vec!["x".into()], ..Default::default() }).await;
    let second = delete(&world, &owner, DeleteRequest { items: parsed(&ids), ..Default::default() }).await;
    go.send(()).unwrap();
    let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
    let (a, b) = (first.cascade_report, second.cascade_report);
    assert_eq!((a.erased.len(), b.erased.len(), b.not_found.len()), (20, 10, 20));
    assert_eq!(a.erased.into_iter().collect::<BTreeSet<_>>(), b.not_found.into_iter().collect());
    assert_eq!((a.remaining, b.remaining), (0, 0));
    assert_ne!(first.deletion_receipt.whole()["receipt_id"], second.deletion_receipt.whole()["receipt_id"]);
    for id in &ids {
        assert_eq!(events(&world, id).await, ["capture", "erase"]);
    }
    Audit(&world.gateway).verify_audit(&owner, &Default::default()).unwrap();
}

#[tokio::test]
async fn what_was_made_from_an_item_meanwhile_follows_it() {
    let world = World::new().await;
    let owner = world.proved().await;
    let ids = world.capture(&[note("source", &[]), note("made of it soon", &[])]).await;
    let go = held_up(&world.gateway).await;
    let (gateway, source, made) = (world.gateway.clone(), parsed(&ids)[0], parsed(&ids)[1]);
    // The store alone is told, so that the memory is behind it for certain.
    let derive = async move {
        let write = gateway.commit(move |w| {
            let (slot, mut head) = schema::head(w.tx, made)?;
            head.few = Few::new(vec![source], Vec::new());
            Ok(HEADS.put_in(w.tx, slot, &made, &head)?)
        });
        write.await
    };
    let derive = queued(derive).await;
    let request = DeleteRequest { items: parsed(&ids[..1]), ..Default::default() };
    let deletion = delete(&world, &owner, request).await;
    go.send(()).unwrap();
    derive.await.unwrap().unwrap();
    let report = deletion.await.unwrap().unwrap().cascade_report;
    assert_eq!((report.erased, report.derived), (parsed(&ids[..1]), parsed(&ids[1..])));
    assert_eq!(status(&world, &ids[1]).await, "erased");
}

fn hold(ids: &[String], world: &World, days: u32) -> HoldRequest {
    HoldRequest { items: parsed(ids), reason: HoldReason::LegalHold, until: world.now().plus(days * DAY) }
}

/// Each order of a hold and a deletion gives what that order means, and nothing between.
#[tokio::test]
async fn a_hold_and_a_deletion_at_once() {
    let world = World::new().await;
    let owner = world.proved().await;
    let ids = world.capture(&[note("evidence", &["all"]), note("the rest", &["all"])]).await;
    let go = held_up(&world.gateway).await;
    let (gateway, request) = (world.gateway.clone(), hold(&ids[..1], &world, 10));
    let by = owner.clone();
    let held = queued(async move { Deletions(&gateway).hold(&by, request).await }).await;
    let deletion = delete(&world, &owner, DeleteRequest { all: true, ..Default::default() }).await;
    go.send(()).unwrap();
    held.await.unwrap().unwrap();
    let done = deletion.await.unwrap().unwrap();
    assert_eq!(
        (done.cascade_report.held, done.cascade_report.erased),
        (parsed(&ids[..1]), parsed(&ids[1..]))
    );
    assert_eq!(done.deletion_receipt.whole()["exceptions"][0]["reason"], "legal_hold");
    assert_eq!(status(&world, &ids[0]).await, "retracted");
    // Its deletion was asked for: it is not put back into any view.
    let path = format!("/oap/owner/items/{}/restore", ids[0]);
    world.owner("POST", &path, Some(&json!({}))).await.refused(409, "conflict");

    let ids = world.capture(&[note("more", &["all"])]).await;
    let go = held_up(&world.gateway).await;
    let deletion = delete(&world, &owner, DeleteRequest { items: parsed(&ids), ..Default::default() }).await;
    let (gateway, request) = (world.gateway.clone(), hold(&ids, &world, 10));
    let by = owner.clone();
    let held = queued(async move { Deletions(&gateway).hold(&by, request).await }).await;
    go.send(()).unwrap();
    assert_eq!(deletion.await.unwrap().unwrap().cascade_report.erased, parsed(&ids));
    assert!(matches!(held.await.unwrap(), Err(oap_gateway::Error::NotFound)));
}

#[tokio::test]
async fn a_sweep_takes_only_what_is_due_when_it_erases() {
    let world = World::new().await;
    let owner = world.proved().await;
    let ids = world.capture(&[note("put back", &[]), note("held now", &[]), note("due", &[])]).await;
    for id in &ids {
        world.owner("POST", &format!("/oap/owner/items/{id}/retract"), Some(&json!({}))).await.ok();
    }
    world.clock.advance(31 * DAY);
    let go = held_up(&world.gateway).await;
    let (gateway, back) = (world.gateway.clone(), ids[0].parse().unwrap());
    let by = owner.clone();
    let restore = queued(async move { Items(&gateway).mark(&by, back, Event::Restore).await }).await;
    let (gateway, now_held) = (world.gateway.clone(), hold(&ids[1..2], &world, 60));
    let by = owner.clone();
    let held = queued(async move { Deletions(&gateway).hold(&by, now_held).await }).await;
    let gateway = world.gateway.clone();
    let sweep = queued(async move { Deletions(&gateway).sweep().await }).await;
    go.send(()).unwrap();
    restore.await.unwrap().unwrap();
    held.await.unwrap().unwrap();
    let swept = sweep.await.unwrap().unwrap();
    assert_eq!((swept.expired, swept.erased), (0, 1));
    assert_eq!(status(&world, &ids[0]).await, "current");
    assert_eq!(status(&world, &ids[1]).await, "retracted");
    assert_eq!(status(&world, &ids[2]).await, "erased");
}

#[tokio::test]
async fn a_sweep_does_not_end_a_hold_that_was_set_anew() {
    let world = World::new().await;
    let owner = world.proved().await;
    let ids = world.capture(&[note("held on", &[])]).await;
    Deletions(&world.gateway).hold(&owner, hold(&ids, &world, 31)).await.unwrap();
    let request = DeleteRequest { items: parsed(&ids), ..Default::default() };
    delete(&world, &owner, request).await.await.unwrap().unwrap();
    world.clock.advance(31 * DAY);
    let go = held_up(&world.gateway).await;
    let (gateway, longer) = (world.gateway.clone(), hold(&ids, &world, 60));
    let by = owner.clone();
    let longer = queued(async move { Deletions(&gateway).hold(&by, longer).await }).await;
    let gateway = world.gateway.clone();
    let sweep = queued(async move { Deletions(&gateway).sweep().await }).await;
    go.send(()).unwrap();
    longer.await.unwrap().unwrap();
    sweep.await.unwrap().unwrap();
    assert_eq!(status(&world, &ids[0]).await, "retracted");
}

/// What was made from a held item after its deletion was asked for goes with it when the hold ends.
#[tokio::test]
async fn what_follows_a_held_item_goes_when_its_hold_ends() {
    let world = World::new().await;
    let owner = world.proved().await;
    let ids = world.capture(&[note("held", &[])]).await;
    Deletions(&world.gateway).hold(&owner, hold(&ids, &world, 1)).await.unwrap();
    delete(&world, &owner, DeleteRequest { items: parsed(&ids), ..Default::default() })
        .await
        .await
        .unwrap()
        .unwrap();
    let mut made = note("made of it", &[]);
    made["derived_from"] = json!([ids[0]]);
    let made = world.capture(&[made]).await;
    world.clock.advance(DAY);
    Deletions(&world.gateway).sweep().await.unwrap();
    assert_eq!(
        (status(&world, &ids[0]).await, status(&world, &made[0]).await),
        (json!("erased"), json!("erased"))
    );
}

/// Both corrections are made of the first version; the one that is recorded second is made anew of the other's.
#[test]
fn two_corrections_at_once_lose_nothing() {
    // One thread for blocking work: what is put there is done in order.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let world = World::new().await;
        let owner = world.proved().await;
        let ids = world.capture(&[note("before", &["old"])]).await;
        let id = parsed(&ids)[0];
        let go = held_up(&world.gateway).await;
        let mut corrections = Vec::new();
        for changes in [json!({"labels": ["new"]}), json!({"content": {"text": "after"}})] {
            let gateway = world.gateway.clone();
            let by = owner.clone();
            let correction =
                async move { Items(&gateway).correct(&by, id, changes, None, Event::Correct).await };
            corrections.push(queued(correction).await);
        }
        tokio::task::spawn_blocking(|| ()).await.unwrap();
        queued(async {}).await;
        go.send(()).unwrap();
        for correction in corrections {
            correction.await.unwrap().unwrap();
        }
        let shown = world.owner("GET", &format!("/oap/owner/items/{id}"), None).await.ok();
        assert_eq!(shown["item"]["labels"], json!(["new"]));
        assert_eq!(shown["item"]["content"]["text"], "after");
        assert_eq!(shown["item"]["version"], 3);
        assert_eq!(events(&world, &ids[0]).await, ["capture", "correct", "correct"]);
    });
}

/// The owner rotates to end every credential. A request that was let in with one before is recorded after: it is not.
#[tokio::test]
async fn a_rotation_ends_the_credentials_of_requests_under_way() {
    let draft = World::new().await.draft(&agent(2));
    for (path, body) in [
        ("/oap/owner/grants", draft),
        ("/oap/owner/items", json!({"items": [note("planted", &[])]})),
        ("/oap/owner/keys/rotate", json!({})),
        ("/oap/data/delete", json!({"all": true})),
    ] {
        let world = World::new().await;
        let owner = world.proved().await;
        let keys = world.gateway.keys().list().len();
        let go = held_up(&world.gateway).await;
        let gateway = world.gateway.clone();
        let by = owner.clone();
        let rotated = queued(async move { Keys(&gateway).rotate_keys(&by).await }).await;
        let release = async {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
        };
        let (answer, ()) = tokio::join!(world.owner("POST", path, Some(&body)), release);
        answer.refused(401, "auth_required");
        rotated.await.unwrap().unwrap();
        let found = (Grants(&world.gateway).grant_list(&owner).len(), world.gateway.keys().list().len());
        assert_eq!(found, (0, keys + 1), "{path}");
    }
}

/// So does what a task of its own commits for the owner, whenever it does.
#[tokio::test]
async fn a_rotation_ends_what_tasks_do_for_the_owner() {
    let world = World::new().await;
    let owner = world.proved().await;
    Keys(&world.gateway).rotate_keys(&world.proved().await).await.unwrap();
    let (gateway, by) = (world.gateway.clone(), owner.clone());
    let captured = tokio::spawn(async move { Items(&gateway).capture(&by, &[note("planted", &[])]).await });
    assert!(matches!(captured.await.unwrap(), Err(oap_gateway::Error::Owner(_))));
    let page = Items(&world.gateway).list(&owner, &Default::default()).unwrap();
    assert!(page.items.is_empty());
    let place = tempfile::tempdir().unwrap();
    let copy = JobRequest::Backup { folder: place.path().join("copy") };
    let refused = LongWork(&world.gateway).start_job(&owner, copy);
    assert!(matches!(refused.map(drop), Err(oap_gateway::Error::Owner(_))));
    assert!(!place.path().join("copy").exists());
    let owner = world.proved().await;
    Items(&world.gateway).capture(&owner, &[note("meant", &[])]).await.unwrap();
}

/// What stops an answer stops it until its receipt is recorded: a revoked key, and the grant's end.
#[tokio::test]
async fn a_revoked_key_and_an_end_stop_answers_under_way() {
    for revokes in [true, false] {
        let world = World::new().await;
        let owner = world.proved().await;
        world.capture(&[note("tea", &[])]).await;
        let mut draft = world.draft(&agent(2));
        draft["expires_at"] = json!(world.now().plus(DAY));
        let grant = world.issue(&draft).await;
        let token = world.token(&agent(2), &grant).await;
        let go = held_up(&world.gateway).await;
        let mut revoked = None;
        if revokes {
            let gateway = world.gateway.clone();
            let by = owner.clone();
            revoked =
                Some(queued(async move { Keys(&gateway).revoke_key(&by, "key-1".into(), None).await }).await);
        }
        let (grantee, query) = (agent(2), json!({}));
        let release = async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            if !revokes {
                world.clock.advance(2 * DAY);
            }
            go.send(()).unwrap();
        };
        let (answer, ()) = tokio::join!(world.query(&grantee, &token, &query), release);
        assert!([401, 403].contains(&answer.status.as_u16()), "{revokes}: {}", answer.body);
        if let Some(revoked) = revoked {
            revoked.await.unwrap().unwrap();
        }
    }
}

/// Two answers that would disclose an item for the first time, at once: the second one shows what was got before, and is charged for it.
#[tokio::test]
async fn of_two_first_answers_at_once_one_is_the_first() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let ask = async |query: &str| world.query(&grantee, &token, &json!({"query": query})).await;
    // The view is there.
    ask("nothing").await.ok();
    let go = held_up(&world.gateway).await;
    // The writer has begun with what holds it up.
    while world.gateway.waiting_writes() > 0 {
        tokio::task::yield_now().await;
    }
    let release = async {
        world.writes_wait(1).await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        // The second one was found as the first, and waits for it.
        assert_eq!(world.gateway.waiting_writes(), 1);
        go.send(()).unwrap();
    };
    let (one, two, ()) = tokio::join!(ask("tea"), ask("tea"), release);
    one.ok();
    two.ok();
    let accounts = world.owner("GET", "/oap/owner/budgets", None).await.ok();
    assert_eq!(accounts["accounts"][0]["epsilon_spent"], json!(0.031));
}

/// Documents are published with the keys in use, whatever else is published at the same time.
#[tokio::test]
async fn an_attestation_publishes_no_key_that_was_rotated_meanwhile() {
    let world = World::new().await;
    let owner = world.proved().await;
    let go = held_up(&world.gateway).await;
    let gateway = world.gateway.clone();
    let by = owner.clone();
    let rotated = queued(async move { Keys(&gateway).rotate_keys(&by).await }).await;
    let body = json!({"levels": ["L0"]});
    let request = serde_json::from_value(body).unwrap();
    let gateway = world.gateway.clone();
    let by = owner.clone();
    let attested = queued(async move { Attestations(&gateway).attest(&by, request).await }).await;
    go.send(()).unwrap();
    rotated.await.unwrap().unwrap();
    // The rotation ended the credential: the owner asks again, with a fresh one.
    assert!(matches!(attested.await.unwrap(), Err(oap_gateway::Error::Owner(_))));
    let request = serde_json::from_value(json!({"levels": ["L0"]})).unwrap();
    let receipt = Attestations(&world.gateway).attest(&world.proved().await, request).await.unwrap();
    let keys = world.gateway.keys();
    let kid = keys.current().kid().to_string();
    assert!(world.gateway.published().did.to_string().contains(&kid));
    assert!(receipt.whole().to_string().contains(&kid), "{}", receipt.whole());
}

/// Whether a scope is privileged is asked where the bridge is recorded.
#[tokio::test]
async fn no_bridge_leads_out_of_a_scope_that_was_made_privileged_meanwhile() {
    let world = World::new().await;
    let owner = world.proved().await;
    let go = held_up(&world.gateway).await;
    let context = json!({
        "ccc_version": "1.0", "scope_id": "work", "regulatory_classification": "attorney_client_privileged",
    });
    let (gateway, by) = (world.gateway.clone(), owner.clone());
    let set = queued(async move { Gates(&gateway).set_context(&by, context).await }).await;
    let draft = serde_json::from_value(json!({
        "from_scope": "work", "to_scope": "personal", "data_categories": ["m"],
        "valid_until": "2099-01-01T00:00:00Z",
    }));
    let (gateway, by, draft) = (world.gateway.clone(), owner.clone(), draft.unwrap());
    let bridge = queued(async move { Gates(&gateway).issue_bridge(&by, draft).await }).await;
    go.send(()).unwrap();
    set.await.unwrap().unwrap();
    let refused = bridge.await.unwrap();
    assert!(matches!(
        refused,
        Err(oap_gateway::Error::Conflict(oap_gateway::error::Conflict::PrivilegedScope))
    ));
    assert!(Gates(&world.gateway).bridge_list(&owner).unwrap().is_empty());
}

/// Each attestation names the one before it, and the manifest that was published when it was recorded.
#[tokio::test]
async fn attestations_at_once_follow_each_other() {
    let world = World::new().await;
    let owner = world.proved().await;
    let go = held_up(&world.gateway).await;
    let mut attested = Vec::new();
    for _ in 0..3 {
        let request = serde_json::from_value(json!({"levels": ["L0"]})).unwrap();
        let (gateway, by) = (world.gateway.clone(), owner.clone());
        attested.push(queued(async move { Attestations(&gateway).attest(&by, request).await }).await);
    }
    go.send(()).unwrap();
    let mut named = BTreeSet::new();
    let mut hashes = BTreeSet::from(["genesis".to_owned()]);
    for receipt in attested {
        let receipt = receipt.await.unwrap().unwrap();
        assert!(named.insert(receipt.previous_receipt_hash.clone().unwrap()), "{}", receipt.whole());
        hashes.insert(oap_identity::Hash::of_canonical(&receipt).unwrap().to_string());
    }
    assert!(named.is_subset(&hashes), "{named:?} {hashes:?}");
}

/// Who exchanges a delegated grant first stores it; whoever does at the same moment is told its place in the status list, too.
#[tokio::test]
async fn two_first_exchanges_of_a_delegated_grant_tell_the_same_place() {
    let world = World::new().await;
    let mut draft = world.draft(&agent(2));
    draft["delegable"] = json!({"max_depth": 1});
    let parent = world.issue(&draft).await;
    let mut child = parent.clone();
    for made in ["signature", "delegable", "status"] {
        child.as_object_mut().unwrap().remove(made);
    }
    child["grant_id"] = json!(oap_identity::GrantId::new(world.now(), &oap_identity::random::Seeded::new(9)));
    child["grantee"] = json!(agent(3).did());
    child["parent"] = json!(oap_identity::Hash::of_canonical(&parent).unwrap());
    oap_identity::signed::sign_document(&mut child, &agent(2)).unwrap();
    let go = held_up(&world.gateway).await;
    let release = async {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
    };
    let grantee = agent(3);
    let (first, second, ()) =
        tokio::join!(world.exchange(&grantee, &child), world.exchange(&grantee, &child), release);
    let (first, second) = (first.ok(), second.ok());
    assert!(first["status"]["status_list"]["idx"].is_u64(), "{first}");
    assert_eq!(first["status"], second["status"]);
    assert_eq!(world.exchange(&grantee, &child).await.ok()["status"], first["status"]);
}

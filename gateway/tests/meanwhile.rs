//! What goes on while long work is under way: it is watched, cancelled, ended with the credential that began it, and it finds no
//! damage in what was written meanwhile.

use crate::common::hooked::Hooked;
use crate::common::*;
use oap_gateway::Error;
use oap_gateway::service::deletion_steps::MAX_STEP;
use oap_gateway::service::jobs::JobRequest;
use oap_gateway::service::{Audit, Backups, Health, Items, Keys, LongWork};
use oap_gateway::state::jobs::{JobState, Progress};
use oap_gateway::state::owner::Permission;
use oap_gateway::system::config::Config;
use oap_gateway::system::home::Home;
use oap_gateway::system::serve::serve;
use oap_grants::grant::UnverifiedGrant;
use oap_identity::random::Seeded;
use oap_identity::{ItemId, Random, Signer};
use oap_memory::chain::Event;
use oap_store::{Engine, FileVault, Op, Store};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

const JOBS: &str = "/oap/owner/jobs";
/// Longer than anything here takes: what waits for ever fails by it.
const PATIENCE: Duration = Duration::from_secs(60);

async fn world() -> (World, Arc<Hooked>) {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
    let engine = Arc::new(Hooked::default());
    let vault = FileVault::in_memory(&*random).unwrap();
    let store = Store::open(engine.clone(), vault, random.clone()).unwrap();
    (World::on(store, Config::default(), random).await, engine)
}

/// The owner with a token by the key that is in use.
async fn anew(world: &World, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let admin = Signer::did_key(&[99; 32]).unwrap();
    let token = world.gateway.trust_token(&admin, Permission::Admin).unwrap();
    world.as_agent(&admin, &token, method, path, body).await
}

/// A backup that has begun and waits at the gate for its first pair, and the gate, which opens at the end of the test.
struct Backup<'a> {
    engine: &'a Hooked,
    job: String,
}

impl Drop for Backup<'_> {
    fn drop(&mut self) {
        self.engine.gate.open();
    }
}

impl<'a> Backup<'a> {
    async fn held(world: &World, engine: &'a Hooked, folder: &Path) -> Self {
        engine.gate.close();
        let mut held = Self { engine, job: String::new() };
        let begun = world.owner("POST", JOBS, Some(&json!({"job": "backup", "folder": folder}))).await;
        assert_eq!(begun.status, 202, "{}", begun.body);
        held.job = format!("{JOBS}/{}", begun.body["job_id"].as_str().unwrap());
        while !engine.gate.waits() {
            tokio::task::yield_now().await;
        }
        held
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_watched_and_cancelled_and_holds_nothing_up() {
    let (world, engine) = world().await;
    world.capture(&[note("Tea at four", &["shared"])]).await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    let meanwhile = async {
        let held = Backup::held(&world, &engine, &place).await;
        assert!(place.exists());
        let shown = world.owner("GET", &held.job, None).await.ok();
        assert_eq!((&shown["state"], &shown["job"]), (&json!("running"), &json!("backup")));
        world
            .owner("POST", JOBS, Some(&json!({"job": "backup", "folder": folder.path().join("other")})))
            .await
            .refused(409, "conflict");
        world.query(&grantee, &token, &json!({})).await.ok();
        let revoke = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
        world.owner("POST", &revoke, Some(&json!({}))).await.ok();
        world.query(&grantee, &token, &json!({})).await.refused(403, "policy_block");
        world.owner("POST", &format!("{}/cancel", held.job), None).await.ok();
        engine.gate.open();
        let ended = world.owner("GET", &format!("{}?wait=20", held.job), None).await.ok();
        assert_eq!(ended["state"], "cancelled", "{ended}");
        assert!(!place.exists());

        // Not cancelled, it comes to its end, and says what there was when it began.
        let held = Backup::held(&world, &engine, &place).await;
        world.capture(&[note("Oil the car", &[])]).await;
        engine.gate.open();
        let ended = world.owner("GET", &format!("{}?wait=20", held.job), None).await.ok();
        assert_eq!((&ended["state"], &ended["result"]["items"]), (&json!("done"), &json!(1)), "{ended}");
        assert!(place.join("backup.json").exists());
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_ends_the_jobs_of_the_former_key_and_its_waiting_requests() {
    let (world, engine) = world().await;
    let folder = tempfile::tempdir().unwrap();
    let meanwhile = async {
        let held = Backup::held(&world, &engine, &folder.path().join("backup")).await;
        let waiting = format!("{}?wait=20", held.job);
        let applied = engine.applied();
        let wait = world.owner("GET", &waiting, None);
        let rotate = async {
            // Its proof is stored: its credential was judged by then.
            while engine.applied() == applied {
                tokio::task::yield_now().await;
            }
            anew(&world, "POST", "/oap/owner/keys/rotate", Some(&json!({}))).await.ok();
            engine.gate.open();
        };
        let (waited, ()) = tokio::join!(wait, rotate);
        waited.refused(401, "auth_required");
        let ended = anew(&world, "GET", &waiting, None).await.ok();
        assert_eq!(ended["state"], "cancelled", "{ended}");
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_ends_with_its_token_and_a_job_does_not() {
    let (world, engine) = world().await;
    let folder = tempfile::tempdir().unwrap();
    let meanwhile = async {
        let end = world.now().plus(Duration::from_secs(oap_gateway::state::owner::ADMIN_LIFE as u64));
        let owner = world.proved().await;
        let held = Backup::held(&world, &engine, &folder.path().join("backup")).await;
        world.clock.set(end.minus(Duration::from_secs(1)));
        let item = note("Tea at four", &[]);
        Items(&world.gateway).capture(&owner, std::slice::from_ref(&item)).await.unwrap();
        world.clock.set(end);
        let late = Items(&world.gateway).capture(&owner, &[item]).await;
        assert!(matches!(late, Err(Error::Owner(_))), "{late:?}");
        engine.gate.open();
        let ended = anew(&world, "GET", &format!("{}?wait=20", held.job), None).await.ok();
        assert_eq!(ended["state"], "done", "{ended}");
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reseal_that_is_cancelled_tells_what_it_did() {
    let (world, _) = world().await;
    world.capture(&[note("Tea at four", &[]), note("Oil the car", &[])]).await;
    let meanwhile = async {
        let owner = world.proved().await;
        world.clock.advance(Duration::from_secs(60));
        let since = Some(world.now().minus(Duration::from_secs(3600)));
        Keys(&world.gateway).revoke_key(&owner, "key-1".to_owned(), since).await.unwrap();
        let owner = world.proved().await;
        let gate = &world.clock.gate;
        gate.close();
        let job = LongWork(&world.gateway).start_job(&owner, JobRequest::Reseal {}).unwrap();
        // Its first transaction, in which receipts are signed anew, waits.
        while !gate.waits() {
            tokio::task::yield_now().await;
        }
        LongWork(&world.gateway).jobs(&owner).cancel(job.id()).unwrap();
        gate.open();
        job.wait().await;
        let ended = anew(&world, "GET", &format!("{JOBS}/{}", job.id()), None).await.ok();
        assert_eq!((&ended["state"], &ended["result"]), (&json!("cancelled"), &Value::Null), "{ended}");
        assert!(ended["so_far"]["receipts"].as_u64() > Some(0), "{ended}");
        assert_eq!(ended["so_far"]["items"], 0, "{ended}");

        let job = LongWork(&world.gateway).start_job(&owner, JobRequest::Reseal {}).unwrap();
        job.wait().await;
        let ended = anew(&world, "GET", &format!("{JOBS}/{}", job.id()), None).await.ok();
        let done = json!({"receipts": 0, "items": 2, "held_back": 0, "left": []});
        assert_eq!((&ended["state"], &ended["result"]), (&json!("done"), &done), "{ended}");
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

/// Begins a job, cancels it while its first transaction waits, and tells how it ended.
async fn cancelled_at_once(world: &World, request: JobRequest) -> Value {
    let owner = world.proved().await;
    let gate = &world.clock.gate;
    gate.close();
    let job = LongWork(&world.gateway).start_job(&owner, request).unwrap();
    while !gate.waits() {
        tokio::task::yield_now().await;
    }
    LongWork(&world.gateway).jobs(&owner).cancel(job.id()).unwrap();
    gate.open();
    job.wait().await;
    world.owner("GET", &format!("{JOBS}/{}", job.id()), None).await.ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_over_all_items_that_is_cancelled_tells_what_it_did() {
    let (world, _) = world().await;
    let contact = json!({"kind": "fact", "content": {"structured": {
        "entity_type": "oap.entity.contact", "names": {"given": "Jonas", "family": "Berg"},
        "channels": [{"type": "email", "value": "jonas@home.example", "primary": true}],
    }}});
    world.capture(&[note("Jonas likes tea", &[]), note("Oil the car", &[])]).await;
    world.capture(&[contact]).await;
    let meanwhile = async {
        let ended = cancelled_at_once(&world, JobRequest::ResealItems {}).await;
        assert_eq!((&ended["state"], &ended["result"]), (&json!("cancelled"), &Value::Null), "{ended}");
        assert_eq!(ended["so_far"]["seen"], 3, "{ended}");
        assert_eq!(ended["so_far"]["resealed"].as_array().unwrap().len(), 1, "{ended}");
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_is_cancelled_tells_what_it_erased() {
    let (world, _) = world().await;
    let many: Vec<Value> = (0..MAX_STEP).map(|n| note(&format!("n{n}"), &["all"])).collect();
    world.capture(&many).await;
    // Ids begin with the time: this one is the last.
    world.clock.advance(Duration::from_secs(1));
    world.capture(&[note("one more", &["all"])]).await;
    let request = || serde_json::from_value(json!({"job": "delete", "all": true})).unwrap();
    let meanwhile = async {
        let ended = cancelled_at_once(&world, request()).await;
        assert_eq!((&ended["state"], &ended["result"]), (&json!("cancelled"), &Value::Null), "{ended}");
        let so_far = &ended["so_far"];
        assert_eq!(so_far["deletion_receipts"].as_array().unwrap().len(), 1);
        assert_eq!(so_far["cascade_report"]["erased"].as_array().unwrap().len(), MAX_STEP);
        assert_eq!(so_far["cascade_report"]["remaining"], 1);
        assert_eq!((&ended["done"], &ended["expected"]), (&json!(MAX_STEP), &json!(MAX_STEP + 1)));
        let left = world.owner("GET", "/oap/owner/items", None).await.ok();
        assert_eq!(texts(&left), ["one more"]);

        // The same again does the rest.
        let owner = world.proved().await;
        let job = LongWork(&world.gateway).start_job(&owner, request()).unwrap();
        job.wait().await;
        let ended = world.owner("GET", &format!("{JOBS}/{}", job.id()), None).await.ok();
        assert_eq!(ended["result"]["cascade_report"]["erased"].as_array().unwrap().len(), 1, "{ended}");
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_of_memorization_that_is_cancelled_declares_nothing() {
    let (world, _) = world().await;
    let meanwhile = async {
        let ended = cancelled_at_once(&world, JobRequest::AuditMemorization {}).await;
        assert_eq!((&ended["state"], &ended["so_far"]), (&json!("cancelled"), &Value::Null), "{ended}");
        let declared = &world.gateway.published().memory["confidentiality"]["memorization_audit"];
        assert_eq!(declared, &json!({"status": "not_performed"}));
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_has_no_job_under_way() {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
    let engine = Arc::new(Hooked::default());
    let store = Store::open(engine.clone(), FileVault::in_memory(&*random).unwrap(), random.clone()).unwrap();
    let config = Config { plain_http: true, ..Config::default() };
    let world = World::on(store, config, random).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    let home = Home::new(folder.path().to_owned());
    let meanwhile = async {
        let owner = world.proved().await;
        let held = Backup::held(&world, &engine, &place).await;
        let job = LongWork(&world.gateway).jobs(&owner).list().remove(0);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let server = serve(world.gateway.clone(), &home, listener, stopped);
        let ends = async {
            drop(stop);
            while !job.progress().is_cancelled() {
                tokio::task::yield_now().await;
            }
            engine.gate.open();
        };
        let (served, ()) = tokio::join!(server, ends);
        served.unwrap();
        assert_eq!(job.report(|error| panic!("{error}")).state, JobState::Cancelled);
        assert!(!place.exists());
        world.owner("POST", JOBS, Some(&json!({"job": "doctor"}))).await.refused(503, "maintenance");
        drop(held);
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

/// A backup whose task goes away, as with its process, leaves no folder behind; nor does one that was only begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_nobody_waits_for_any_more_leaves_nothing() {
    let (world, engine) = world().await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    let meanwhile = async {
        let owner = world.proved().await;
        engine.gate.close();
        let _opens = Backup { engine: &engine, job: String::new() };
        let (gateway, to) = (world.gateway.clone(), place.clone());
        let task = tokio::spawn(async move {
            Backups(&gateway).backup(&owner, to, &Progress::default()).await.map(drop)
        });
        while !engine.gate.waits() {
            tokio::task::yield_now().await;
        }
        assert!(place.exists());
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        engine.gate.open();
        // Written to its end by a thread of its own, and gone with that.
        while place.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, meanwhile).await.unwrap();
}

/// Everything that a gateway does while it is looked over: a query, a correction, an erasure, a new item, another key.
async fn writes(world: &World, items: &[String], grant: &Value) {
    let grantee = agent(2);
    let token = world.token(&grantee, grant).await;
    // Where an item is damaged it may fail.
    drop(world.query(&grantee, &token, &json!({})).await);
    let correct = format!("/oap/owner/items/{}/correct", items[0]);
    anew(world, "POST", &correct, Some(&json!({"item": {"content": {"text": "Tea at five"}}}))).await.ok();
    anew(world, "POST", "/oap/data/delete", Some(&json!({"items": [items[1]]}))).await.ok();
    anew(world, "POST", "/oap/owner/items", Some(&json!({"items": [note("Feed the cat", &[])]}))).await.ok();
    anew(world, "POST", "/oap/owner/keys/rotate", Some(&json!({}))).await.ok();
    anew(world, "POST", &correct, Some(&json!({"item": {"content": {"text": "Tea at six"}}}))).await.ok();
}

/// A gateway with three items.
struct Looked {
    runtime: Runtime,
    world: Arc<World>,
    engine: Arc<Hooked>,
    items: Vec<String>,
    grant: Value,
}

impl Looked {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let (world, engine, items, grant) = runtime.block_on(async {
            let (world, engine) = world().await;
            let items = [note("Tea at four", &[]), note("Oil the car", &[]), note("Read", &[])];
            let items = world.capture(&items).await;
            let grant = world.issue(&world.draft(&agent(2))).await;
            (world, engine, items, grant)
        });
        Self { runtime, world: Arc::new(world), engine, items, grant }
    }

    /// Has everything written before the read of what follows that comes after so many.
    fn written_after(&self, reads: usize) {
        let (world, items, grant) = (self.world.clone(), self.items.clone(), self.grant.clone());
        let handle = self.runtime.handle().clone();
        self.engine.arm(reads, move || {
            let write = move || handle.block_on(writes(&world, &items, &grant));
            std::thread::spawn(write).join().unwrap();
        });
    }

    /// The row of the third item in a table.
    fn row(&self, table: u8) -> (Vec<u8>, Vec<u8>) {
        let item = self.items[2].parse::<ItemId>().unwrap().to_bytes();
        let mut rows = self.engine.memory.scan(&[table], &[table], false).map(Result::unwrap);
        rows.find(|(key, _)| key.windows(item.len()).any(|part| part == item)).unwrap()
    }

    /// What is wrong.
    fn doctor(&self) -> Vec<String> {
        let owner = self.runtime.block_on(self.world.proved());
        let findings = Health(&self.world.gateway).examine(&owner, &Progress::default()).unwrap();
        findings.into_iter().flat_map(|finding| finding.wrong).collect()
    }
}

/// At whatever read of an examination everything changes, it finds nothing where nothing is wrong.
#[test]
fn what_is_written_while_it_is_looked_over_is_no_damage() {
    for reads in 0.. {
        let looked = Looked::new();
        looked.written_after(reads);
        assert_eq!(looked.doctor(), [""; 0], "after {reads} reads");
        if !looked.engine.disarm() {
            assert!(reads > 20, "{reads} reads");
            break;
        }
    }
}

#[test]
fn a_chain_that_grows_while_it_is_verified_holds() {
    for reads in 0.. {
        let looked = Looked::new();
        let owner = looked.runtime.block_on(looked.world.proved());
        looked.written_after(reads);
        let verified = Audit(&looked.world.gateway).verify_audit(&owner, &Progress::default());
        assert!(verified.is_ok(), "after {reads} reads: {verified:?}");
        if !looked.engine.disarm() {
            assert!(reads > 2, "{reads} reads");
            break;
        }
    }
}

/// The same writes hide no damage: a version that does not open, a slot that nothing marks, a head that is gone with its version.
#[test]
fn damage_is_found_whatever_is_written_meanwhile() {
    for reads in [0, 3, 8, 15] {
        let looked = Looked::new();
        let memory = &looked.engine.memory;
        let (key, mut value) = looked.row(4);
        *value.last_mut().unwrap() ^= 1;
        memory.apply(vec![Op::Put(key, value)]).unwrap();
        let (mark, _) = memory.scan(&[1], &[1, 0xff], true).next().unwrap().unwrap();
        memory.apply(vec![Op::Delete(mark)]).unwrap();
        looked.written_after(reads);
        let found = looked.doctor();
        assert!(looked.engine.disarm());
        assert!(found.iter().any(|wrong| wrong.starts_with(&looked.items[2])), "{found:?}");
        assert!(found.iter().any(|wrong| wrong.starts_with("a value of table 4")), "{found:?}");
        assert!(found.iter().any(|wrong| wrong.ends_with("holds a key of nothing")), "{found:?}");

        let looked = Looked::new();
        let rows = [3, 4].map(|table| Op::Delete(looked.row(table).0));
        looked.engine.memory.apply(rows.to_vec()).unwrap();
        looked.written_after(reads);
        let found = looked.doctor();
        assert!(looked.engine.disarm());
        assert!(found.iter().any(|wrong| wrong.starts_with(&looked.items[2])), "{found:?}");
    }
}

/// Has an item's text corrected before the read of what follows that comes after so many, whoever reads.
fn corrected_after(looked: &Looked, reads: usize, item: String, text: &'static str) {
    let (handle, world) = (looked.runtime.handle().clone(), looked.world.clone());
    looked.engine.arm_all(reads, move || {
        let correct = async move { corrected(&world, &item, text).await };
        std::thread::spawn(move || handle.block_on(correct)).join().unwrap();
    });
}

async fn corrected(world: &World, item: &str, text: &str) {
    let path = format!("/oap/owner/items/{item}/correct");
    world.owner("POST", &path, Some(&json!({"item": {"content": {"text": text}}}))).await.ok();
}

/// What a grantee finds by a word, among how many.
fn found(looked: &Looked, token: &str, word: &str) -> usize {
    let asked = json!({"query": word});
    let answer = looked.runtime.block_on(looked.world.query(&agent(2), token, &asked)).ok();
    answer["items"].as_array().unwrap().len()
}

/// At whatever read of an answer an item is corrected that its view is only about to take over, or takes over another version of: the answer has it.
/// It is the first one that the step looks at, so that there are reads behind it.
#[test]
fn an_item_that_is_corrected_while_a_view_takes_it_over_is_not_missing() {
    for is_in in [false, true] {
        for reads in 0.. {
            let looked = Looked::new();
            let (token, item) = looked.runtime.block_on(async {
                let token = looked.world.token(&agent(2), &looked.grant).await;
                looked.world.query(&agent(2), &token, &json!({})).await.ok();
                let captured = looked.world.capture(&[note("Water the plants", &[]), note("Mow", &[])]).await;
                let item = captured.into_iter().min().unwrap();
                if is_in {
                    looked.world.query(&agent(2), &token, &json!({})).await.ok();
                    looked.world.clock.advance(Duration::from_secs(1));
                    looked.world.capture(&[note("Rake", &[])]).await;
                }
                corrected(&looked.world, &item, "Water the garden").await;
                (token, item)
            });
            corrected_after(&looked, reads, item, "Water the garden again");
            assert_eq!(found(&looked, &token, "garden"), 1, "{is_in}, after {reads} reads");
            if !looked.engine.disarm() {
                assert!(reads > 4, "{reads} reads");
                break;
            }
        }
    }
}

/// At whatever read of an answer an item is erased that its view takes over, the view holds no more than one that never had it.
#[test]
fn an_item_that_is_erased_while_a_view_takes_it_over_leaves_nothing() {
    let held = |reads: usize, is_soon: bool| {
        let looked = Looked::new();
        let (token, item) = looked.runtime.block_on(async {
            let token = looked.world.token(&agent(2), &looked.grant).await;
            looked.world.query(&agent(2), &token, &json!({})).await.ok();
            let captured =
                looked.world.capture(&[note("Mow the lawn", &[]), note("Mow the lawn", &[])]).await;
            (token, captured.into_iter().min().unwrap())
        });
        let (handle, world) = (looked.runtime.handle().clone(), looked.world.clone());
        let erase = move || {
            let erase = async move {
                world.owner("POST", "/oap/data/delete", Some(&json!({"items": [item]}))).await.ok();
            };
            std::thread::spawn(move || handle.block_on(erase)).join().unwrap();
        };
        if is_soon {
            erase()
        } else {
            looked.engine.arm_all(reads, erase)
        }
        // Whatever finds it is answered anew, and has the view follow once more.
        assert_eq!(found(&looked, &token, "elephants"), 0);
        let (bytes, is_over) = (looked.world.gateway.view_work().1, !looked.engine.disarm());
        (bytes, is_over)
    };
    let (never, _) = held(0, true);
    for reads in 0.. {
        let (bytes, is_over) = held(reads, false);
        if is_over {
            assert!(reads > 4, "{reads} reads");
            break;
        }
        assert_eq!(bytes, never, "after {reads} reads");
    }
}

/// What a change gives, and what is seen when it is committed and nobody was told yet.
async fn untold<C, T>(engine: &Hooked, change: impl Future<Output = C>, look: impl FnOnce() -> T) -> (C, T) {
    engine.applying.close();
    let meanwhile = async {
        while !engine.applying.waits() {
            tokio::task::yield_now().await;
        }
        let seen = look();
        engine.applying.open();
        seen
    };
    let both = async { tokio::join!(change, meanwhile) };
    tokio::time::timeout(PATIENCE, both).await.unwrap()
}

/// A key is revoked: that is committed, and nobody was told yet. What is read from then on rests on the keys that are committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_that_is_built_while_a_key_is_revoked_rests_on_the_committed_keys() {
    let (world, engine) = world().await;
    let since = world.now();
    world.capture(&[note("Tea at four", &["a"])]).await;
    let grant = UnverifiedGrant::parse(world.issue(&world.draft(&agent(2))).await).unwrap();
    let shown = || world.gateway.would_show(grant.unverified()).unwrap().items().len();
    assert_eq!(shown(), 1);
    let owner = world.proved().await;
    let revoke = Keys(&world.gateway).revoke_key(&owner, "key-1".into(), Some(since));
    let (revoked, shown) = untold(&engine, revoke, shown).await;
    revoked.unwrap();
    assert_eq!(shown, 0);
}

/// An item is corrected: that is committed, and nobody was told yet. A preview is not made without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_does_not_lack_an_item_that_is_being_corrected() {
    let (world, engine) = world().await;
    let item: ItemId = world.capture(&[note("Tea at four", &["a"])]).await[0].parse().unwrap();
    let grant = UnverifiedGrant::parse(world.issue(&world.draft(&agent(2))).await).unwrap();
    let shown = || world.gateway.would_show(grant.unverified()).map(|shown| shown.items().len());
    assert_eq!(shown().unwrap(), 1);
    let owner = world.proved().await;
    let changes = json!({"content": {"text": "Tea at five"}});
    let correct = Items(&world.gateway).correct(&owner, item, changes, None, Event::Correct);
    let (corrected, during) = untold(&engine, correct, &shown).await;
    corrected.unwrap();
    assert!(matches!(during, Err(Error::Overtaken)), "{during:?}");
    assert_eq!(shown().unwrap(), 1);
}

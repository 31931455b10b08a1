//! What the gateway does by itself about tasks and intents, what their logs cost, and what no agent takes of the disk.

use super::*;
use oap_gateway::service::Deletions;
use oap_gateway::state::events::StoredEvent;
use oap_gateway::state::schema::{self, EVENTS, INTENTS, STREAMS, TASKS};
use oap_gateway::system::config::Config;
use oap_identity::Random;
use oap_identity::random::Seeded;
use oap_identity::{IntentId, ItemId, TaskId};
use oap_store::{BESIDE, Disk, FileVault, Key, MIN_RESERVE, MemoryEngine, Raw, Space, Store, Table};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

async fn sweep(team: &Team) {
    Deletions(&team.world.gateway).sweep().await.unwrap();
}

/// Makes a row one that cannot be read.
async fn spoil<K: Key + Send + 'static>(team: &Team, table: u8, key: K) {
    let row = Table::<K, Vec<u8>, Raw>::new(table);
    team.world.gateway.commit(move |w| Ok(row.put(w.tx, &key, &vec![0xff; 3])?)).await.unwrap();
}

/// A task or an intent that cannot be read keeps no other one open.
#[tokio::test]
async fn one_that_cannot_be_read_stops_no_sweep() {
    let team = Team::new(&["b", "d"]).await;
    let broken = team.intent(json!({})).await;
    let over = team.intent(json!({})).await;
    let intent = team.intent(json!({})).await;
    let first = team.task(&intent, "d", json!({})).await;
    let second = team.task(&intent, "b", json!({})).await;
    spoil(&team, TASKS.number(), first.parse::<TaskId>().unwrap()).await;
    team.world.owner("POST", &format!("{AGENTS}/lead/remove"), None).await.ok();
    sweep(&team).await;
    assert_eq!(team.get("b", &format!("/tasks/{second}")).await.ok()["status"], "cancelled");
    spoil(&team, INTENTS.number(), broken.parse::<IntentId>().unwrap()).await;
    team.world.clock.advance(Duration::from_secs(31 * 86_400));
    sweep(&team).await;
    let over = over.parse::<IntentId>().unwrap();
    let kept = team.world.gateway.commit(move |w| Ok(INTENTS.get(w.tx, &over)?.is_some())).await.unwrap();
    assert!(!kept);
}

/// Tasks that others are or were on end with the role of who coordinates them, which nobody else can end; what an agent does by itself goes
/// on.
#[tokio::test]
async fn tasks_end_with_the_role_for_them() {
    let team = Team::new(&["b", "d"]).await;
    let intent = team.intent(json!({})).await;
    let given = team.task(&intent, "b", json!({})).await;
    let taken = team.task(&intent, "b", json!({})).await;
    team.patch("lead", &format!("/tasks/{taken}"), 1, json!({"assigned_agent": "lead"})).await.ok();
    let own = team.task(&intent, "lead", json!({})).await;
    sweep(&team).await;
    team.set("lead", json!({"role": "worker"})).await.ok();
    for (task, status) in [(&given, "pending"), (&taken, "pending"), (&own, "pending")] {
        assert_eq!(team.get("lead", &format!("/tasks/{task}")).await.ok()["status"], status);
    }
    sweep(&team).await;
    for (task, status) in [(&given, "cancelled"), (&taken, "cancelled"), (&own, "pending")] {
        assert_eq!(team.get("lead", &format!("/tasks/{task}")).await.ok()["status"], status);
    }
}

/// A disk that is told how much is left on it, that in the reserve counted in.
#[derive(Debug, Clone)]
struct Told {
    left: Arc<AtomicU64>,
    held: Arc<AtomicU64>,
}

impl Disk for Told {
    fn total(&self) -> io::Result<u64> {
        Ok(16 << 20)
    }
    fn free(&self) -> io::Result<u64> {
        Ok(self.left.load(Ordering::SeqCst).saturating_sub(self.held.load(Ordering::SeqCst)))
    }
    fn held(&self) -> io::Result<u64> {
        Ok(self.held.load(Ordering::SeqCst))
    }
    fn hold(&self, bytes: u64) -> io::Result<()> {
        if bytes > self.left.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.held.store(bytes, Ordering::SeqCst);
        Ok(())
    }
}

/// What is kept back for a full disk is the owner's: no agent erases with it, nor ends a task.
#[tokio::test]
async fn no_agent_takes_the_owners_reserve() {
    let disk = Told { left: Arc::new(AtomicU64::new(16 << 20)), held: Arc::default() };
    let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
    let (space, vault) = (Space::on(disk.clone()).unwrap(), FileVault::in_memory(&*random).unwrap());
    let store = Store::open_in(space, MemoryEngine::default(), vault, random.clone()).unwrap();
    let team = Team::on(World::on(store, Config::default(), random).await, &["b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({})).await;
    team.note("b", &task, "work", json!({})).await;
    let lesson = json!({"memory_type": "episodic", "ttl": "task_lifetime"});
    let lesson = team.note("b", &task, "lesson", lesson).await;
    disk.left.store(MIN_RESERVE + BESIDE - 1, Ordering::SeqCst);
    let held = disk.held.load(Ordering::SeqCst);
    assert_eq!(held, MIN_RESERVE);
    let path = format!("/memory/{lesson}");
    let end = team.patch("b", &format!("/tasks/{task}"), 1, json!({"status": "completed"})).await;
    let one = team.sends("b", "DELETE", &path, 1, None).await;
    let many = team.sends("b", "DELETE", "/memory/batch?namespace=job&agent_id=b", 1, None).await;
    for refused in [end, one, many] {
        assert_eq!(refused.status, 507, "{}", refused.body);
    }
    assert_eq!(disk.held.load(Ordering::SeqCst), held);
    team.erase(&lesson).await;
    let kept = team.world.owner("GET", &format!("/oap/owner/items/{lesson}"), None).await.ok();
    assert_eq!(kept["item"]["status"], "erased");
}

/// What an answer costs is bounded, whatever stands in the log, and `since` leads past it.
#[tokio::test]
async fn a_log_is_looked_through_in_parts() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    team.task(&intent, "b", json!({})).await;
    team.world.clock.advance(Duration::from_millis(1));
    let (b, at) = (overtaken::did(&team, "b").await, team.world.now());
    // Archives of an earlier version, which hold nothing for anybody but their author.
    let item = json!({"item": ItemId::from_bytes([1; 16]), "author": b, "is_sealed": true, "version": 0});
    let items = vec![item; 20_000];
    let event = json!({
        "what": {"Archive": items}, "at": at, "agent": b, "actor": null, "task": null, "intent": intent,
    });
    let event: StoredEvent = serde_json::from_value(event).unwrap();
    let stream = schema::agent(&format!("{intent} archives"));
    let written = team.world.gateway.commit(move |w| {
        for number in 0..4 {
            EVENTS.put(w.tx, &(stream, number), &event)?;
        }
        Ok(STREAMS.put(w.tx, &stream, &4)?)
    });
    written.await.unwrap();
    team.world.clock.advance(Duration::from_millis(10));
    let since = json!(team.world.now()).as_str().unwrap().to_owned();
    team.task(&intent, "b", json!({})).await;
    let told = async |who: &str, question: &str| {
        team.get(who, &format!("/intents/{intent}/events?{question}")).await
    };
    let count = |answer: Answer| answer.ok().as_array().unwrap().len();
    assert_eq!(count(told("b", "limit=1000").await), 4);
    let refusals = [
        ("offset=4", "since"),
        ("event_type=memory.archived&offset=3", "since"),
        ("event_type=zzz", "event_type"),
    ];
    for (question, field) in refusals {
        let refused = told("b", question).await.refused(422, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains(field), "{refused}");
    }
    // What stands elsewhere is found all the same, and so is what comes later.
    assert_eq!(count(told("b", "event_type=task.created").await), 2);
    assert_eq!(count(told("b", &format!("since={since}")).await), 1);
    // What nobody but its author is told of counts for nobody else.
    assert_eq!(count(told("lead", "limit=1000").await), 2);
    assert_eq!(count(told("lead", "event_type=memory.archived").await), 0);
}

/// How much others archived tells no answer but of who is told of it.
#[tokio::test]
async fn what_others_archived_counts_for_nobody_else() {
    let team = Team::new(&["b", "d"]).await;
    let intent = team.intent(json!({})).await;
    let (first, second) =
        (team.task(&intent, "d", json!({})).await, team.task(&intent, "b", json!({})).await);
    team.note("d", &first, "k", json!({})).await;
    team.gets("d", &first, "completed").await;
    let stream = schema::agent(&format!("{intent} archives {first}"));
    let written = team.world.gateway.commit(move |w| {
        let stored: StoredEvent = EVENTS.get(w.tx, &(stream, 0))?.unwrap();
        let mut event = serde_json::to_value(&stored).unwrap();
        let one = event["what"]["Archive"][0].clone();
        event["what"]["Archive"] = json!(vec![one; 20_000]);
        let event: StoredEvent = serde_json::from_value(event).unwrap();
        for number in 0..3 {
            EVENTS.put(w.tx, &(stream, number), &event)?;
        }
        Ok(STREAMS.put(w.tx, &stream, &3)?)
    });
    written.await.unwrap();
    team.note("b", &second, "k", json!({})).await;
    team.gets("b", &second, "completed").await;
    let archived = format!("/intents/{intent}/events?event_type=memory.archived");
    // The coordinator is told of all of it, and asks in parts.
    team.get("lead", &format!("{archived}&offset=3")).await.refused(422, "invalid_input");
    let own = team.get("b", &archived).await.ok();
    assert_eq!((&own[0]["task_id"], own.as_array().unwrap().len()), (&json!(second), 1), "{own}");
    // What was archived comes before the state that archived it, and after what was before.
    let log = team.events("b", &format!("/intents/{intent}")).await;
    assert_eq!(names(&log), ["task.created", "memory.created", "memory.archived", "task.completed"]);
    let since = own[0]["created_at"].as_str().unwrap();
    let later = team.get("lead", &format!("{archived}&since={since}")).await.ok();
    assert_eq!((&later[0]["task_id"], later.as_array().unwrap().len()), (&json!(second), 1), "{later}");
}

//! What the gateway does by itself about tasks and intents, what their logs cost, and what no agent takes of the disk.

use super::*;
use oap_gateway::service::Deletions;
use oap_gateway::state::schema::{INTENTS, TASKS};
use oap_identity::{IntentId, TaskId};
use oap_store::{Key, Raw, Table};

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
    let kept = INTENTS.get(&team.world.gateway.store, &over.parse().unwrap()).unwrap();
    assert_eq!(kept, None);
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

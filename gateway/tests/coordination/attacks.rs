//! Attacks on agents that work together: each was possible once.

use super::*;

/// Without the role a coordinator reads nothing of what others wrote, by whatever task it makes or takes over.
#[tokio::test]
async fn a_coordinator_without_the_role_takes_no_task_over() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({})).await;
    let work = team.note("b", &task, "private", json!({})).await;
    team.get("lead", &format!("/memory/{work}")).await.ok();
    team.set("lead", json!({"role": "worker"})).await.ok();
    team.patch("lead", &format!("/tasks/{task}"), 1, json!({"assigned_agent": "lead"}))
        .await
        .refused(403, "policy_block");
    let heir = json!({
        "intent_id": intent, "name": "heir", "assigned_agent": "lead", "parent_task_id": task,
        "memory_policy": {"inherit_from_parent": true},
    });
    team.post("lead", "/tasks", heir).await.refused(403, "policy_block");
    // What was set up while it had the role lets it read nothing now.
    team.set("lead", json!({"role": "coordinator"})).await.ok();
    team.patch("lead", &format!("/tasks/{task}"), 1, json!({"assigned_agent": "lead"})).await.ok();
    team.get("lead", &format!("/memory/{work}")).await.ok();
    team.set("lead", json!({"role": "worker"})).await.ok();
    team.get("lead", &format!("/memory/{work}")).await.refused(404, "not_found");
    let listed = team.get("lead", &format!("/memory?scope.task_id={task}")).await.ok();
    assert_eq!(listed["total"], 0);
}

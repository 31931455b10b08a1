//! Tasks: what they let others read and for how long, what becomes of entries with their end, and whom they bind.

use super::*;
use oap_gateway::service::Deletions;

const NEVER_TASK: &str = "task_01J9V8B7H1ZK4D2A0M9R8F0KQX";
const NEVER_INTENT: &str = "intent_01J9V8B7H1ZK4D2A0M9R8F0KQX";

#[tokio::test]
async fn a_coordinator_reads_while_the_task_is_open_and_writes_nothing() {
    let team = Team::new(&["a", "b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "a", json!({})).await;
    let work = team.note("a", &task, "progress", json!({"tags": ["x"]})).await;
    let hidden = team.note("a", &task, "secret", json!({"sensitivity": "restricted"})).await;
    let elsewhere = team.note("a", "another", "mine", json!({})).await;
    let learned = team.note("a", "none", "stripe", json!({"memory_type": "episodic"})).await;
    let strange = team.note("b", &task, "forged", json!({})).await;
    for item in [&work, &learned] {
        let path = format!("/memory/{item}");
        assert_eq!(team.get("lead", &path).await.ok(), team.get("a", &path).await.ok());
        team.patch("lead", &path, 1, json!({"value": {}})).await.refused(403, "policy_block");
        team.sends("lead", "DELETE", &path, 1, None).await.refused(403, "policy_block");
        team.get("b", &path).await.refused(404, "not_found");
    }
    // Not what its author keeps to itself, what was written for something else, nor what somebody writes who is not on the task.
    for item in [&hidden, &elsewhere, &strange] {
        let path = format!("/memory/{item}");
        team.get("lead", &path).await.refused(404, "not_found");
        team.patch("lead", &path, 1, json!({"value": {}})).await.refused(404, "not_found");
        team.sends("lead", "DELETE", &path, 1, None).await.refused(404, "not_found");
    }
    let found = team.get("lead", &format!("/memory?scope.task_id={task}&memory_type=working")).await.ok();
    assert_eq!((&found["total"], found["entries"][0]["key"].as_str()), (&json!(1), Some("progress")));
    let listed = team.get("lead", "/agents/a/memory").await.ok();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    team.sends("lead", "DELETE", &format!("/memory/batch?scope.task_id={task}"), 1, None).await.ok();
    team.get("a", &format!("/memory/{work}")).await.ok();
    // Another's summary it is not told, nor the memory tools' side of it.
    team.get("lead", "/agents/a/memory/summary").await.refused(404, "not_found");
    let call = json!({"tool": "memory_query", "arguments": {}});
    let told = team.world.owner("POST", &format!("{AGENTS}/lead/call"), Some(&call)).await.ok();
    assert_eq!(told["structured"]["matched"], 0);
    // What it was given is in its receipts.
    let given = team.world.owner("GET", &format!("{AGENTS}/lead/injected?limit=100"), None).await.ok();
    let said = given.to_string();
    assert!(said.contains(&work) && !said.contains(&hidden) && !said.contains(&strange), "{given}");
    // Without the role it reads nothing, and with it again.
    team.set("lead", json!({"role": "worker"})).await.ok();
    team.get("lead", &format!("/memory/{work}")).await.refused(404, "not_found");
    team.set("lead", json!({"role": "coordinator"})).await.ok();
    team.get("lead", &format!("/memory/{work}")).await.ok();
    // The end of the task ends it.
    team.gets("a", &task, "completed").await;
    for item in [&work, &learned, &hidden] {
        team.get("lead", &format!("/memory/{item}")).await.refused(404, "not_found");
    }
    team.get("a", &format!("/memory/{work}")).await.refused(404, "not_found");
    team.get("a", &format!("/memory/{learned}")).await.ok();
    team.get("a", &format!("/memory/{elsewhere}")).await.ok();
    team.get("b", &format!("/memory/{strange}")).await.ok();
    team.world.chains_hold().await;
}

#[tokio::test]
async fn with_its_end_a_task_is_archived_once() {
    let team = Team::new(&["a"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "a", json!({})).await;
    let plain = team.note("a", &task, "plain", json!({"tags": ["z", "b"]})).await;
    let guarded = team.note("a", &task, "guarded", json!({"sensitivity": "confidential"})).await;
    let secret = team.note("a", &task, "secret", json!({"sensitivity": "restricted"})).await;
    let lesson = json!({"memory_type": "episodic", "ttl": "task_lifetime"});
    let lesson = team.note("a", &task, "lesson", lesson).await;
    team.gets("a", &task, "running").await;
    let done = team.gets("a", &task, "completed").await;
    assert_eq!((&done["status"], &done["requires_tools"]), (&json!("completed"), &json!([])));
    team.get("a", &format!("/memory/{lesson}")).await.refused(404, "not_found");
    // Over is over.
    let path = format!("/tasks/{task}");
    let over = team.patch("lead", &path, 3, json!({"status": "running"})).await.refused(409, "conflict");
    assert_eq!(over["current"]["status"], "completed");
    team.post("a", "/memory", noted(&task, "late", &json!({}))).await.refused(409, "conflict");
    let log = format!("/intents/{intent}");
    let events = team.events("lead", &log).await;
    let archived: Vec<&Value> =
        events.iter().filter(|(name, _)| name == "memory.archived").map(|(_, d)| d).collect();
    let [archive] = archived.as_slice() else { panic!("{events:?}") };
    assert_eq!(archive["entries_archived"], 2, "{archive}");
    let shown = |item: &str| {
        archive["snapshot"].as_array().unwrap().iter().find(|entry| entry["entry_id"] == item).cloned()
    };
    assert_eq!(
        shown(&plain).unwrap(),
        json!({"entry_id": plain, "namespace": "job", "key": "plain", "tags": ["z", "b"], "value": {"of": "plain"}})
    );
    let guard = shown(&guarded).unwrap();
    assert_eq!((&guard["value_redacted"], guard.get("value")), (&json!(true), None));
    assert!(guard["commitment"].is_string());
    assert_eq!(shown(&secret), None);
    assert!(!json!(events).to_string().contains("\"secret\""), "{events:?}");
    // Its author is told of all of them.
    let own = team.events("a", "/agents/a").await;
    let (_, own) = own.iter().find(|(name, _)| name == "memory.archived").unwrap();
    assert_eq!(own["entries_archived"], 3);
    // What was told has its receipt, and erasure reaches it.
    let given = team.world.owner("GET", &format!("{AGENTS}/lead/injected?limit=1"), None).await.ok();
    assert!(given.to_string().contains(&plain), "{given}");
    team.erase(&plain).await;
    let events = team.events("lead", &log).await;
    let text = json!(events).to_string();
    assert!(!text.contains("\"plain\"") && text.contains("\"erased\":true"), "{text}");
    // What is kept goes with the retention time.
    team.world.clock.advance(Duration::from_secs(31 * 86_400));
    Deletions(&team.world.gateway).sweep().await.unwrap();
    let text = team.get("a", "/agents/a/events").await.ok().to_string();
    assert!(!text.contains("guarded") && !text.contains("\"secret\""), "{text}");
    // So does the intent, with its tasks and its log.
    team.get("lead", &log).await.refused(404, "not_found");
    team.get("lead", &path).await.refused(404, "not_found");
    team.world.chains_hold().await;
}

#[tokio::test]
async fn without_an_archive_what_is_cleared_is_gone() {
    let team = Team::new(&["a"]).await;
    let intent = team.intent(json!({})).await;
    for status in ["failed", "completed"] {
        let task = team.task(&intent, "a", json!({"memory_policy": {"archive_on_completion": false}})).await;
        let item = team.note("a", &task, &format!("gone-{status}"), json!({})).await;
        team.gets("a", &task, status).await;
        team.get("a", &format!("/memory/{item}")).await.refused(404, "not_found");
        let owned = team.world.owner("GET", &format!("/oap/owner/items/{item}"), None).await;
        assert_eq!(owned.ok()["item"]["status"], "erased");
    }
    let task = team.task(&intent, "a", json!({"memory_policy": {"archive_on_completion": false}})).await;
    team.note("a", &task, "gone-cancelled", json!({})).await;
    team.gets("lead", &task, "cancelled").await;
    let text = team.get("lead", &format!("/intents/{intent}/events?limit=1000")).await.ok().to_string();
    assert!(
        !text.contains("gone-") && !text.contains("memory.archived") && text.contains("memory.deleted"),
        "{text}"
    );
    // An intent may ask for the archive.
    let strict = team.intent(json!({"memory_archive_required": true})).await;
    let new = json!({"intent_id": strict, "name": "x", "memory_policy": {"archive_on_completion": false}});
    let refused = team.post("lead", "/tasks", new).await.refused(422, "invalid_input");
    assert!(refused["message"].as_str().unwrap().contains("archive"), "{refused}");
    let task = team.task(&strict, "a", json!({})).await;
    let loosened = json!({"memory_policy": {"archive_on_completion": false}});
    team.patch("lead", &format!("/tasks/{task}"), 1, loosened).await.refused(422, "invalid_input");
}

#[tokio::test]
async fn who_takes_over_reads_on_and_writes_its_own() {
    let team = Team::new(&["a", "b", "c"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "a", json!({})).await;
    let first = team.note("a", &task, "progress", json!({})).await;
    let path = format!("/memory/{first}");
    team.get("b", &path).await.refused(404, "not_found");
    let taken = team.patch("lead", &format!("/tasks/{task}"), 1, json!({"assigned_agent": "b"})).await.ok();
    assert_eq!(taken["assigned_agent"], "b");
    let found = team.get("b", &format!("/memory?scope.task_id={task}&memory_type=working")).await.ok();
    assert_eq!(found["entries"][0]["id"], json!(first));
    team.patch("b", &path, 1, json!({"value": {}})).await.refused(403, "policy_block");
    team.sends("b", "DELETE", &path, 1, None).await.refused(403, "policy_block");
    // Its own copy has the same key; and the one before reads nothing of it.
    let second = team.note("b", &task, "progress", json!({"value": {"resumed_from": first}})).await;
    team.get("a", &format!("/memory/{second}")).await.refused(404, "not_found");
    team.get("a", &path).await.ok();
    team.get("c", &path).await.refused(404, "not_found");
    // The one before says no more how far it is.
    team.patch("a", &format!("/tasks/{task}"), 2, json!({"status": "completed"}))
        .await
        .refused(403, "policy_block");
    team.get("c", &format!("/tasks/{task}")).await.refused(404, "not_found");
    // A task below reads what stands above it, where its policy says so.
    let heir = json!({"parent_task_id": task, "memory_policy": {"inherit_from_parent": true}});
    let below = team.task(&intent, "c", heir).await;
    team.get("c", &path).await.ok();
    team.get("c", &format!("/memory/{second}")).await.ok();
    team.patch("c", &path, 1, json!({"value": {}})).await.refused(403, "policy_block");
    let other = team.task(&intent, "c", json!({"parent_task_id": below})).await;
    team.gets("c", &below, "completed").await;
    team.get("c", &path).await.refused(404, "not_found");
    team.get("c", &format!("/tasks/{other}")).await.ok();
    team.gets("b", &task, "failed").await;
    team.get("b", &path).await.refused(404, "not_found");
}

#[tokio::test]
async fn who_is_on_no_task_learns_nothing_of_it() {
    let team = Team::new(&["a", "b"]).await;
    let intent = team.intent(json!({"denied_semantic_namespaces": ["secret_plans"]})).await;
    let task = team.task(&intent, "a", json!({})).await;
    team.note("a", &task, "private-key", json!({"tags": ["private-tag"]})).await;
    let nothing = |answer: Answer| {
        let mut refused = answer.refused(404, "not_found");
        refused.as_object_mut().unwrap().remove("request_id");
        assert_eq!(refused, json!({"error": "not_found", "message": "nothing of that name here"}));
    };
    for intent in [intent.as_str(), NEVER_INTENT, "x"] {
        for path in [
            format!("/intents/{intent}"),
            format!("/intents/{intent}/events"),
            format!("/intents/{intent}/tasks"),
        ] {
            nothing(team.get("b", &path).await);
        }
    }
    for task in [task.as_str(), NEVER_TASK, "x"] {
        nothing(team.get("b", &format!("/tasks/{task}")).await);
        nothing(team.patch("b", &format!("/tasks/{task}"), 1, json!({"status": "completed"})).await);
    }
    for who in ["a", "nobody"] {
        nothing(team.get("b", &format!("/agents/{who}/events")).await);
        nothing(team.get("b", &format!("/agents/{who}/memory/job/private-key")).await);
        assert_eq!(team.get("b", &format!("/agents/{who}/memory/job")).await.ok(), json!([]));
    }
    for path in ["/agents/a/memory", &format!("/memory?scope.task_id={task}")] {
        let told = team.get("b", path).await.ok().to_string();
        assert!(!told.contains("private"), "{told}");
    }
    assert_eq!(team.get("b", "/memory/search?q=private").await.ok()["total"], 0);
    for intent in [intent.as_str(), NEVER_INTENT] {
        let new = json!({"intent_id": intent, "name": "x"});
        nothing(team.post("b", "/tasks", new).await);
    }
    // A task that one is not on is a name like any other: it binds nothing, and tells nothing.
    for task in [task.as_str(), NEVER_TASK] {
        let made =
            team.post("b", "/memory", noted(task, &format!("by-{}", &task[5..9]), &json!({}))).await.ok();
        assert_eq!(made["version"], 1);
    }
    team.gets("a", &task, "completed").await;
    let made = team.post("b", "/memory", noted(&task, "later", &json!({}))).await.ok();
    assert_eq!(made["version"], 1);
    assert_eq!(team.events("b", "/agents/b").await.len(), 3);
    // With a task of its own in the same intent it knows of that one, and of nothing that the other did.
    team.task(&intent, "b", json!({})).await;
    let events = team.events("b", &format!("/intents/{intent}")).await;
    assert_eq!(names(&events), ["task.created"], "{events:?}");
    let tasks = team.get("b", &format!("/intents/{intent}/tasks")).await.ok();
    assert_eq!(tasks.as_array().unwrap().len(), 1);
    // And no worker makes another work, or itself a coordinator.
    let mine = id(&team.post("b", "/intents", json!({"title": "mine"})).await.ok());
    for whom in ["a", "nobody"] {
        let new = json!({"intent_id": mine, "name": "x", "assigned_agent": whom});
        team.post("b", "/tasks", new).await.refused(403, "policy_block");
    }
    let own = json!({"intent_id": mine, "name": "x", "assigned_agent": "b"});
    let own = id(&team.post("b", "/tasks", own).await.ok());
    team.patch("b", &format!("/tasks/{own}"), 1, json!({"assigned_agent": "a"}))
        .await
        .refused(403, "policy_block");
    let held = id(&team.post("a", "/memory", noted(&own, "forged", &json!({}))).await.ok());
    team.get("b", &format!("/memory/{held}")).await.refused(404, "not_found");
    let lies = json!({"title": "x", "created_by": "lead"});
    team.post("b", "/intents", lies).await.refused(403, "policy_block");
}

#[tokio::test]
async fn a_task_and_an_intent_bind_who_works_on_them() {
    let team = Team::new(&["a"]).await;
    let rails = json!({
        "max_episodic_memory_per_agent": 2, "denied_semantic_namespaces": ["internal"], "max_working_memory_per_task": 3,
    });
    for key in ["e1", "e2"] {
        team.note("a", "none", key, json!({"memory_type": "episodic"})).await;
    }
    let intent = team.intent(rails).await;
    let shared =
        |namespace: &str| json!({"namespace": namespace, "key": "k", "value": {}, "memory_type": "semantic"});
    let before = json!({"namespace": "internal", "key": "before", "value": {}, "memory_type": "semantic"});
    let before = id(&team.post("a", "/memory", before).await.ok());
    let link = json!({"item_id": before, "to": "https://example.org/", "relationship": "about"});
    let link = json!({"tool": "memory_link", "arguments": link});
    let calls = format!("{AGENTS}/a/call");
    let fact = json!({"tool": "memory_learn", "arguments": {"content": "tea is green"}});
    let fact = team.world.owner("POST", &calls, Some(&fact)).await.ok()["structured"]["item_id"].clone();
    let turned = json!({"item_id": fact, "to": before, "relationship": "about"});
    let turned = json!({"tool": "memory_link", "arguments": turned});
    let policy = json!({"max_entries": 2, "max_total_size_kb": 1});
    let task = team.task(&intent, "a", json!({"memory_policy": policy})).await;
    let refused = team.post("a", "/memory", shared("internal")).await.refused(403, "guardrail_violation");
    assert!(refused["message"].as_str().unwrap().starts_with("denied_semantic_namespaces"), "{refused}");
    team.post("a", "/memory", shared("other")).await.ok();
    // Nor does it say more of what is there, from whatever end.
    for link in [&link, &turned] {
        team.world.owner("POST", &calls, Some(link)).await.refused(403, "guardrail_violation");
    }
    // It says so in the log, and evicts nothing.
    let log = format!("/intents/{intent}");
    assert!(names(&team.events("lead", &log).await).contains(&"governance.violation"));
    let full = team.post("a", "/memory", noted("none", "e3", &json!({"memory_type": "episodic"}))).await;
    let full = full.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(2), &json!(2)));
    let kept = team.get("a", "/memory?agent_id=a&memory_type=episodic").await.ok();
    assert_eq!(kept["total"], 2);
    let first = team.note("a", &task, "w1", json!({})).await;
    team.note("a", &task, "w2", json!({})).await;
    let full =
        team.post("a", "/memory", noted(&task, "w3", &json!({}))).await.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(2), &json!(2)));
    let large = json!({"value": {"x": "x".repeat(1100)}});
    let full = team.patch("a", &format!("/memory/{first}"), 1, large).await.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(1), &json!(1)));
    team.note("a", "free", "w4", json!({})).await;
    // The end of the task is the end of its rails.
    team.gets("a", &task, "completed").await;
    team.post("a", "/memory", shared("internal")).await.ok();
    for link in [&link, &turned] {
        team.world.owner("POST", &calls, Some(link)).await.ok();
    }
    team.note("a", "none", "e3", json!({"memory_type": "episodic"})).await;
}

/// A link is told at both of its ends: it says nothing in a namespace that its author may only read.
#[tokio::test]
async fn a_namespace_that_one_may_read_takes_no_links() {
    let team = Team::new(&["a", "b"]).await;
    team.set("lead", json!({"permission": "memory.admin"})).await.ok();
    let shared = json!({"namespace": "rules", "key": "k", "value": {}, "memory_type": "semantic"});
    let entry = id(&team.post("b", "/memory", shared).await.ok());
    let calls = format!("{AGENTS}/a/call");
    let fact = json!({"tool": "memory_learn", "arguments": {"content": "tea is green"}});
    let fact = team.world.owner("POST", &calls, Some(&fact)).await.ok()["structured"]["item_id"].clone();
    let link = json!({"item_id": fact, "to": entry, "relationship": "contradicts"});
    let link = json!({"tool": "memory_link", "arguments": link});
    let permits = async |access: &str| {
        let permissions = json!({"permissions": {"default": access, "allow": []}});
        team.patch("lead", "/memory/namespaces/rules", 1, permissions).await.ok();
    };
    permits("read").await;
    team.world.owner("POST", &calls, Some(&link)).await.refused(403, "policy_block");
    permits("none").await;
    team.world.owner("POST", &calls, Some(&link)).await.refused(404, "not_found");
    permits("write").await;
    team.world.owner("POST", &calls, Some(&link)).await.ok();
}

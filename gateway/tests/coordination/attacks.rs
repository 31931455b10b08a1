//! Attacks on agents that work together: each was possible once.

use super::*;
use oap_gateway::Error;
use oap_gateway::api::agents::ToolCall;
use oap_gateway::error::Unavailable;
use oap_gateway::service::{Deletions, Tools};
use oap_gateway::state::schema::AGENTS as AGENTS_ROWS;

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

/// What others wrote for a task is not ended, and not erased, by who has no role; nor by loosening what they wrote by.
#[tokio::test]
async fn a_coordinator_without_the_role_ends_nobodys_entries() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({"denied_semantic_namespaces": ["plans"]})).await;
    let task = team.task(&intent, "b", json!({})).await;
    let work = team.note("b", &task, "work", json!({})).await;
    let path = format!("/tasks/{task}");
    let erase = json!({"status": "cancelled", "memory_policy": {"archive_on_completion": false}});
    team.patch("lead", &path, 1, erase.clone()).await.refused(422, "invalid_input");
    let shared = json!({"namespace": "plans", "key": "k", "value": {}, "memory_type": "semantic"});
    team.post("b", "/memory", shared.clone()).await.refused(403, "guardrail_violation");
    team.set("lead", json!({"role": "worker"})).await.ok();
    for change in [erase, json!({"status": "cancelled"}), json!({"memory_policy": {"max_entries": 1}})] {
        team.patch("lead", &path, 1, change).await.refused(403, "policy_block");
    }
    team.get("b", &format!("/memory/{work}")).await.ok();
    // Nor does it bind others any more.
    team.post("b", "/memory", shared).await.ok();
    // The owner ends what it left open, by removing it.
    team.world.owner("POST", &format!("{AGENTS}/lead/remove"), None).await.ok();
    Deletions(&team.world.gateway).sweep().await.unwrap();
    assert_eq!(team.get("b", &path).await.ok()["status"], "cancelled");
    let own = team.events("b", "/agents/b").await;
    assert!(names(&own).contains(&"memory.archived"), "{own:?}");
}

/// A value is opaque in a log, too: what looks like a reader's own tokens stops no reader, and is shown as what it is.
#[tokio::test]
async fn no_value_spoils_a_log_or_is_shown_as_another() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({})).await;
    let values = [
        r#"{"a":{"$serde_json::private::Number":"abc"}}"#,
        r#"{"a":{"$serde_json::private::RawValue":"{\"forged\":1}"}}"#,
        r#"{"n": 1.50e1 , "big": 123456789012345678901234567890}"#,
    ];
    for (number, value) in values.iter().enumerate() {
        let body = format!(
            r#"{{"namespace": "job", "key": "k{number}", "scope": {{"task_id": "{task}"}}, "value": {value}}}"#
        );
        let request = Request::builder().method("POST").uri("/api/v1/memory");
        let request = request.header("x-api-key", &team.keys["b"]).header("content-type", "application/json");
        let answer = team.world.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status, 200, "{value}");
    }
    team.gets("b", &task, "completed").await;
    for (who, path) in [("lead", format!("/intents/{intent}/events")), ("b", "/agents/b/events".to_owned())] {
        let answer = team.get(who, &path).await;
        assert_eq!(answer.status, 200, "{who}");
        let text = String::from_utf8(answer.bytes).unwrap();
        for value in values {
            assert!(text.contains(value), "{who}: {value}");
        }
    }
}

/// The log of an intent tells of what an open task lets others read: not of what is private again, and not of what is sealed.
#[tokio::test]
async fn a_log_tells_nothing_that_a_task_does_not_let_read() {
    let team = Team::new(&["b", "d"]).await;
    let intent = team.intent(json!({})).await;
    let log = format!("/intents/{intent}");
    let task = team.task(&intent, "b", json!({})).await;
    let lesson = team.note("b", &task, "lesson", json!({"memory_type": "episodic"})).await;
    let lessons = async |who: &str| {
        let events = team.events(who, &log).await;
        events.iter().filter(|(_, data)| data["entry_id"] == json!(lesson)).count()
    };
    assert_eq!(lessons("lead").await, 1);
    // Who takes over is told nothing of what the one before remembers; and nobody is, once it was taken off the task.
    team.patch("lead", &format!("/tasks/{task}"), 1, json!({"assigned_agent": "d"})).await.ok();
    assert_eq!(lessons("d").await, 0);
    team.patch("b", &format!("/memory/{lesson}"), 1, json!({"value": {"n": 2}})).await.ok();
    assert_eq!((lessons("lead").await, lessons("d").await), (1, 0));
    team.note("d", &task, "secret", json!({"sensitivity": "restricted"})).await;
    team.gets("d", &task, "completed").await;
    team.sends("b", "DELETE", &format!("/memory/{lesson}"), 1, None).await.ok();
    assert_eq!(lessons("lead").await, 1);
    // Of an archive that holds nothing for its reader nothing is told.
    assert!(!names(&team.events("lead", &log).await).contains(&"memory.archived"));
    assert!(names(&team.events("d", "/agents/d").await).contains(&"memory.archived"));
}

/// An archive shows what was archived, and nothing that stands in the entry later.
#[tokio::test]
async fn an_archive_shows_no_later_words() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({})).await;
    let work = team.note("b", &task, "work", json!({"value": {"said": "first"}})).await;
    team.gets("b", &task, "completed").await;
    let log = format!("/intents/{intent}");
    assert!(json!(team.events("lead", &log).await).to_string().contains("first"));
    let item = |what: &str| format!("/oap/owner/items/{work}/{what}");
    team.world.owner("POST", &item("restore"), None).await.ok();
    let later = json!({"item": {"content": {"text": "{\"said\": \"later\"}"}}});
    team.world.owner("POST", &item("correct"), Some(&later)).await.ok();
    team.world.owner("POST", &item("retract"), None).await.ok();
    for (who, path) in [("lead", log.as_str()), ("b", "/agents/b")] {
        let told = json!(team.events(who, path).await).to_string();
        assert!(!told.contains("later"), "{who}: {told}");
    }
}

/// No agent erases the owner's word by ending a task.
#[tokio::test]
async fn the_end_of_a_task_erases_nothing_of_the_owners() {
    let team = Team::new(&[]).await;
    team.set("lead", json!({"permission": "memory.admin"})).await.ok();
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "lead", json!({})).await;
    let shared = json!({"memory_type": "semantic", "ttl": "task_lifetime"});
    let entry = team.note("lead", &task, "rule", shared).await;
    let said = json!({"item": {"content": {"text": "{\"of\": \"the owner\"}"}}});
    team.world.owner("POST", &format!("/oap/owner/items/{entry}/correct"), Some(&said)).await.ok();
    team.patch("lead", &format!("/memory/{entry}"), 2, json!({"value": {"of": "an agent"}})).await.ok();
    team.sends("lead", "DELETE", &format!("/memory/{entry}"), 1, None).await.refused(403, "policy_block");
    team.gets("lead", &task, "completed").await;
    let kept = team.world.owner("GET", &format!("/oap/owner/items/{entry}"), None).await.ok();
    assert_eq!(kept["item"]["status"], "retracted");
}

/// What an agent asks costs what its open tasks are: no coordinator makes it more than a few, and none takes an agent's room for its own
/// tasks, or for those of another coordinator.
#[tokio::test]
async fn open_tasks_are_bounded() {
    let team = Team::new(&["b", "d"]).await;
    team.set("d", json!({"role": "coordinator"})).await.ok();
    let intent = team.intent(json!({})).await;
    let first = team.task(&intent, "b", json!({})).await;
    let mut tasks = Vec::new();
    for _ in 1..100 {
        tasks.push(team.task(&intent, "b", json!({})).await);
    }
    let more = |who: &str| json!({"intent_id": intent, "name": "more", "assigned_agent": who});
    for who in ["b", "d", "lead"] {
        team.post("lead", "/tasks", more(who)).await.refused(409, "conflict");
    }
    let own = async |who: &str| {
        let mine = id(&team.post(who, "/intents", json!({"title": "mine"})).await.ok());
        json!({"intent_id": mine, "name": "x", "assigned_agent": "b"})
    };
    let (of_b, of_d) = (own("b").await, own("d").await);
    let task_of_b = id(&team.post("b", "/tasks", of_b.clone()).await.ok());
    team.post("d", "/tasks", of_d.clone()).await.ok();
    // Nor by taking it off all of them, so that it may end none.
    for task in &tasks {
        team.patch("lead", &format!("/tasks/{task}"), 1, json!({"assigned_agent": "lead"})).await.ok();
    }
    team.post("b", "/tasks", of_b.clone()).await.ok();
    team.post("d", "/tasks", of_d).await.ok();
    // One that ends makes room for one.
    team.gets("b", &first, "completed").await;
    team.post("lead", "/tasks", more("b")).await.ok();
    team.post("lead", "/tasks", more("b")).await.refused(409, "conflict");
    // What it coordinates itself is bounded by itself.
    for _ in 2..100 {
        team.post("b", "/tasks", of_b.clone()).await.ok();
    }
    team.post("b", "/tasks", of_b.clone()).await.refused(409, "conflict");
    team.gets("b", &task_of_b, "completed").await;
    team.post("b", "/tasks", of_b).await.ok();
}

/// What is to end with a task that is over would never end: an entry is not changed into such a one either.
#[tokio::test]
async fn nothing_is_made_to_end_with_a_task_that_is_over() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({})).await;
    let item = team.note("b", &task, "lesson", json!({"memory_type": "episodic"})).await;
    let timed =
        json!({"memory_type": "episodic", "ttl": "task_lifetime", "expires_at": "2027-01-01T00:00:00Z"});
    let timed = team.note("b", &task, "timed", timed).await;
    team.gets("b", &task, "completed").await;
    let path = format!("/memory/{item}");
    team.patch("b", &path, 1, json!({"ttl": "task_lifetime"})).await.refused(409, "conflict");
    let entry = json!({"memory_type": "episodic", "ttl": "task_lifetime", "version": 1});
    let entry = noted(&task, "lesson", &entry);
    team.post("b", "/memory/batch", json!({"entries": [entry]})).await.refused(409, "conflict");
    // Nor by taking the time away that it ends at.
    let timed = format!("/memory/{timed}");
    team.patch("b", &timed, 1, json!({"expires_at": null})).await.refused(409, "conflict");
    // What it says may change.
    team.patch("b", &path, 1, json!({"value": {"n": 2}})).await.ok();
    team.patch("b", &timed, 1, json!({"value": {"n": 2}, "expires_at": "2027-02-01T00:00:00Z"})).await.ok();
}

/// A batch that names many tasks counts right for each of them.
#[tokio::test]
async fn a_batch_is_within_the_bounds_of_each_task() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    let policy = json!({"memory_policy": {"max_entries": 2}});
    let (one, two) = (team.task(&intent, "b", policy.clone()).await, team.task(&intent, "b", policy).await);
    team.note("b", &one, "k0", json!({})).await;
    let batch = |of_one: &[&str], of_two: &[&str]| {
        let entries = of_one.iter().map(|key| noted(&one, key, &json!({})));
        let entries = entries.chain(of_two.iter().map(|key| noted(&two, key, &json!({}))));
        json!({"entries": entries.collect::<Vec<_>>()})
    };
    let full = team.post("b", "/memory/batch", batch(&["k1", "k2"], &["k3"])).await;
    assert_eq!(full.refused(429, "capacity_exceeded")["current_count"], 1);
    let full = team.post("b", "/memory/batch", batch(&["k1"], &["k2", "k3", "k4"])).await;
    assert_eq!(full.refused(429, "capacity_exceeded")["current_count"], 0);
    team.post("b", "/memory/batch", batch(&["k1"], &["k2", "k3"])).await.ok();
}

/// Who was taken off a task puts nothing more before those who are on it.
#[tokio::test]
async fn who_was_taken_off_a_task_writes_nothing_for_it() {
    let team = Team::new(&["b", "d"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({})).await;
    let work = team.note("b", &task, "work", json!({})).await;
    let path = format!("/memory/{work}");
    team.patch("lead", &format!("/tasks/{task}"), 1, json!({"assigned_agent": "d"})).await.ok();
    team.post("b", "/memory", noted(&task, "orders", &json!({}))).await.refused(409, "conflict");
    team.patch("b", &path, 1, json!({"value": {"do": "this"}})).await.refused(409, "conflict");
    let correct =
        json!({"tool": "memory_correct", "arguments": {"item_id": work, "content": "another value"}});
    let call = format!("{AGENTS}/b/call");
    team.world.owner("POST", &call, Some(&correct)).await.refused(409, "conflict");
    assert_eq!(team.get("d", &path).await.ok()["value"], json!({"of": "work"}));
    // What is its own it may still take away.
    team.sends("b", "DELETE", &path, 1, None).await.ok();
}

/// A memory tool is no door around what a task binds an agent to.
#[tokio::test]
async fn rails_hold_at_the_memory_tools_too() {
    let team = Team::new(&["b"]).await;
    let plan = json!({"namespace": "plans", "key": "k", "value": {"n": 1}, "memory_type": "semantic"});
    let plan = id(&team.post("b", "/memory", plan).await.ok());
    let intent = team.intent(json!({"denied_semantic_namespaces": ["plans"]})).await;
    let task = team.task(&intent, "b", json!({"memory_policy": {"max_total_size_kb": 1}})).await;
    let work = team.note("b", &task, "work", json!({})).await;
    let correct = |item: &str, content: String| json!({"tool": "memory_correct", "arguments": {"item_id": item, "content": content}});
    let call = format!("{AGENTS}/b/call");
    let denied = team.world.owner("POST", &call, Some(&correct(&plan, "another plan".to_owned()))).await;
    denied.refused(403, "guardrail_violation");
    let large = correct(&work, "many words ".repeat(200));
    team.world.owner("POST", &call, Some(&large)).await.refused(409, "conflict");
    team.gets("b", &task, "completed").await;
    let after = correct(&plan, "another plan".to_owned());
    team.world.owner("POST", &call, Some(&after)).await.ok();
}

/// What an agent finds by words is ranked by what it sees now: neither by what it saw with another permission, nor by what a namespace
/// hides since.
#[tokio::test]
async fn words_are_read_anew_when_permissions_change() {
    let team = Team::new(&["b", "d"]).await;
    team.set("lead", json!({"permission": "memory.admin"})).await.ok();
    let shared = |namespace: &str, key: &str| json!({"namespace": namespace, "key": key, "value": {"text": "the lighthouse"}, "memory_type": "semantic"});
    team.post("d", "/memory", shared("open", "k")).await.ok();
    let score = async |who: &str| {
        let found = team.get(who, "/memory/search?q=lighthouse").await.ok();
        (found["total"].as_u64().unwrap(), found["entries"][0]["score"].to_string())
    };
    let before = score("b").await;
    let path = "/memory/namespaces/closed";
    let closed = json!({"permissions": {"default": "none", "allow": [{"agent": "d", "access": "write"}]}});
    team.patch("lead", path, 1, closed).await.ok();
    for key in ["k1", "k2", "k3"] {
        team.post("d", "/memory", shared("closed", key)).await.ok();
    }
    assert_eq!(score("b").await, before);
    team.set("b", json!({"permission": "memory.admin"})).await.ok();
    assert_eq!(score("b").await.0, 4);
    team.set("b", json!({"permission": "memory.write"})).await.ok();
    assert_eq!(score("b").await, before);
}

/// Permissions that are set to what they are change nothing: no request that is under way is refused for them.
#[tokio::test]
async fn permissions_that_stay_as_they_are_stop_nobody() {
    let team = Team::new(&["b"]).await;
    team.set("lead", json!({"permission": "memory.admin"})).await.ok();
    let call: ToolCall = serde_json::from_value(json!({"tool": "memory_status", "arguments": {}})).unwrap();
    let did = team.world.owner("GET", &format!("{AGENTS}/b"), None).await.ok()["did"].clone();
    let open = json!({"permissions": null});
    let closed = |agent: Value| json!({"permissions": {"default": "read", "allow": [{"agent": agent, "access": "write"}]}});
    for (set, changes) in [
        (open.clone(), false),
        (closed(json!("b")), true),
        (closed(did), false),
        (open.clone(), true),
        (open, false),
    ] {
        let under_way = team.world.gateway.agent_by_key(&[], &[team.keys["b"].clone()]).unwrap();
        team.patch("lead", "/memory/namespaces/policy", 1, set.clone()).await.ok();
        let told = Tools(&team.world.gateway).call(&under_way, call.clone()).await;
        match told {
            Ok(_) => assert!(!changes, "{set}"),
            Err(error) => {
                assert!(changes, "{set}");
                assert!(matches!(error, Error::Unavailable(Unavailable::Permissions)), "{error:?}");
            }
        }
    }
}

/// A proof that was used takes nothing of what its agent may ask.
#[tokio::test]
async fn a_used_proof_takes_no_room_from_its_agent() {
    let world = World::new().await;
    let key = agent(41);
    let new = json!({"name": "far", "permission": "memory.read", "did": key.did()});
    world.owner("POST", AGENTS, Some(&new)).await.ok();
    let held = Held { world: &world, key: &key };
    let path = "/api/v1/memory/namespaces";
    let used = held.proof("GET", path, None);
    held.with(path, &[("dpop", &used)]).await.ok();
    for _ in 0..700 {
        let answer = held.with(path, &[("dpop", &used)]).await;
        assert!([401, 429].contains(&answer.status.as_u16()), "{}", answer.body);
    }
    let fresh = held.proof("GET", path, None);
    held.with(path, &[("dpop", &fresh)]).await.ok();
}

/// No receipt, which is kept for good, holds the hash of a short name.
#[tokio::test]
async fn receipts_tell_no_name_to_who_guesses() {
    let team = Team::new(&["b"]).await;
    let at = "/agents/b/memory/contacts/alice@example.com";
    for n in [1, 2] {
        team.sends("b", "PUT", at, 1, Some(&json!({"value": {"n": n}}))).await.ok();
    }
    team.get("b", at).await.ok();
    team.get("b", "/memory/search?q=alice").await.ok();
    team.get("b", "/memory?agent_id=b&namespace=contacts&key=alice@example.com").await.ok();
    let kept = team.world.owner("GET", "/oap/audit?chain=%40agents", None).await.ok().to_string();
    let guesses = [
        json!(["contacts", "alice@example.com"]),
        json!(["b", "contacts", "alice@example.com"]),
        json!(["alice", 100]),
        json!([["agent_id", "b"], ["namespace", "contacts"], ["key", "alice@example.com"]]),
    ];
    for guess in guesses {
        let hash = oap_identity::Hash::of_canonical(&guess).unwrap().to_string();
        assert!(!kept.contains(&hash), "{guess}");
    }
    assert!(kept.contains("openintent.get") && kept.contains("input_hash"), "{kept}");
}

/// An agent is told when its words are another's, and what the owner lowers destroys nothing.
#[tokio::test]
async fn nothing_of_an_agents_goes_without_a_word() {
    let team = Team::new(&["b"]).await;
    for key in ["e1", "e2", "e3"] {
        team.note("b", "free", key, json!({"memory_type": "episodic"})).await;
    }
    team.set("b", json!({"capacities": {"episodic": 1}})).await.ok();
    let more = noted("free", "e4", &json!({"memory_type": "episodic"}));
    let full = team.post("b", "/memory", more).await.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(3), &json!(1)));
    assert_eq!(team.get("b", "/memory?agent_id=b").await.ok()["total"], 3);
    let rule = json!({"namespace": "rules", "key": "k", "value": {"n": 1}, "memory_type": "semantic"});
    let rule = id(&team.post("b", "/memory", rule).await.ok());
    let said = json!({"item": {"content": {"text": "{\"n\": 2}"}}});
    team.world.owner("POST", &format!("/oap/owner/items/{rule}/correct"), Some(&said)).await.ok();
    let own = team.events("b", "/agents/b").await;
    let (name, data) = own.last().unwrap();
    assert_eq!(
        (name.as_str(), &data["entry_id"], &data["version"]),
        ("memory.updated", &json!(rule), &json!(2))
    );
}

/// What a namespace hides from its author takes its room all the same.
#[tokio::test]
async fn hidden_entries_take_room() {
    let team = Team::new(&["b"]).await;
    team.set("lead", json!({"permission": "memory.admin"})).await.ok();
    team.set("b", json!({"capacities": {"semantic": 1}})).await.ok();
    let shared =
        |namespace: &str| json!({"namespace": namespace, "key": "k", "value": {}, "memory_type": "semantic"});
    team.post("b", "/memory", shared("one")).await.ok();
    let none = json!({"permissions": {"default": "none"}});
    team.patch("lead", "/memory/namespaces/one", 1, none).await.ok();
    team.post("b", "/memory", shared("two")).await.refused(429, "capacity_exceeded");
}

/// Who is given an intent or a task is in a receipt.
#[tokio::test]
async fn who_reads_a_task_leaves_a_receipt() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({})).await;
    team.get("b", &format!("/intents/{intent}")).await.ok();
    team.get("b", &format!("/intents/{intent}/tasks")).await.ok();
    team.get("b", &format!("/tasks/{task}")).await.ok();
    let kept = team.world.owner("GET", "/oap/audit?chain=%40agents", None).await.ok().to_string();
    for tool in ["openintent.intent", "openintent.tasks", "openintent.task"] {
        assert!(kept.contains(&format!("\"{tool}\"")), "{tool}: {kept}");
    }
    // So is who is shown it by a change, or by what stands in a change's way.
    let given = async || {
        let kept = team.world.owner("GET", "/oap/audit?chain=%40agents", None).await.ok().to_string();
        kept.matches("\"openintent.task\"").count()
    };
    let (before, path) = (given().await, format!("/tasks/{task}"));
    let refused = team.patch("b", &path, 99, json!({})).await.refused(409, "conflict");
    assert_eq!((&refused["current_version"], &refused["current"]["version"]), (&json!(1), &json!(1)));
    assert_eq!(given().await, before + 1);
    team.patch("b", &path, 1, json!({})).await.ok();
    assert_eq!(given().await, before + 2);
}

/// What stands in a change's way is not handed to an agent that was removed while it asked.
#[tokio::test]
async fn who_is_removed_meanwhile_is_shown_no_task() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({})).await;
    let b = overtaken::did(&team, "b").await;
    let removed = async {
        let removing = team.world.gateway.commit(move |w| {
            AGENTS_ROWS.delete(w.tx, &b);
            Ok(())
        });
        removing.await.unwrap();
    };
    let asked = async { team.patch("b", &format!("/tasks/{task}"), 99, json!({})).await };
    let ((), answer) = overtaken::behind(&team, removed, asked).await;
    assert!(answer.body.get("current").is_none() && answer.status != 409, "{}", answer.body);
}

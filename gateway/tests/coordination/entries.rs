//! Entries of agents that work together: their room, their events, their places, the permissions of their namespaces.

use super::*;
use oap_gateway::service::Deletions;

#[tokio::test]
async fn an_agent_has_the_room_that_the_owner_gives_it() {
    let team = Team::new(&["a"]).await;
    let set = team.set("a", json!({"capacities": {"working": 1, "episodic": 2}})).await.ok();
    assert_eq!(set["capacities"], json!({"working": 1, "episodic": 2, "semantic": 10_000}));
    team.note("a", "t", "w1", json!({})).await;
    let full =
        team.post("a", "/memory", noted("t", "w2", &json!({}))).await.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(1), &json!(1)));
    let first = team.note("a", "t", "e1", json!({"memory_type": "episodic"})).await;
    team.note("a", "t", "e2", json!({"memory_type": "episodic"})).await;
    team.note("a", "t", "e3", json!({"memory_type": "episodic"})).await;
    team.get("a", &format!("/memory/{first}")).await.refused(404, "not_found");
    let summary = team.get("a", "/agents/a/memory/summary").await.ok();
    assert_eq!((&summary["episodic"]["capacity"], &summary["working"]["capacity"]), (&json!(2), &json!(1)));
    // What stands in a namespace that is pinned counts, and is never evicted.
    team.set("a", json!({"pinned_namespaces": ["job"]})).await.ok();
    let all_pinned = team.post("a", "/memory", noted("t", "e4", &json!({"memory_type": "episodic"}))).await;
    all_pinned.refused(429, "capacity_exceeded");
    for wrong in [json!({"capacities": {"working": 0}}), json!({"capacities": {"semantic": 10_001}})] {
        let refused = team.set("a", wrong).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().starts_with("capacities."), "{refused}");
    }
    // No agent sets its own, or anybody's.
    let change = json!({"role": "coordinator", "capacities": {"working": 100}});
    for header in
        [("x-api-key", team.keys["a"].clone()), ("authorization", format!("Bearer {}", team.keys["a"]))]
    {
        let headers = [(header.0, header.1.as_str())];
        let answer = team.world.raw("POST", &format!("{AGENTS}/a/set"), &headers, Some(&change)).await;
        answer.refused(401, "auth_required");
    }
    let shown = team.world.owner("GET", &format!("{AGENTS}/a"), None).await.ok();
    assert_eq!((&shown["role"], &shown["capacities"]["working"]), (&json!("worker"), &json!(1)));
    // What the owner takes away is gone with the next request.
    team.set("a", json!({"permission": "memory.read"})).await.ok();
    team.post("a", "/memory", noted("t", "w3", &json!({}))).await.refused(403, "policy_block");
}

#[tokio::test]
async fn an_agent_is_told_what_became_of_its_entries() {
    let team = Team::new(&["a"]).await;
    team.set("a", json!({"capacities": {"episodic": 1}})).await.ok();
    let made = team.note("a", "free", "shown-key", json!({"tags": ["shown-tag"]})).await;
    team.patch("a", &format!("/memory/{made}"), 1, json!({"value": {"n": "never-in-an-event"}})).await.ok();
    let events = team.events("a", "/agents/a").await;
    assert_eq!(names(&events), ["memory.created", "memory.updated"]);
    assert_eq!((&events[1].1["version"], &events[1].1["previous_version"]), (&json!(2), &json!(1)));
    assert_eq!((&events[0].1["key"], &events[0].1["tags"]), (&json!("shown-key"), &json!(["shown-tag"])));
    assert!(!json!(events).to_string().contains("never-in-an-event"));
    team.sends("a", "DELETE", &format!("/memory/{made}"), 1, None).await.ok();
    let events = team.events("a", "/agents/a").await;
    assert_eq!(names(&events), ["memory.created", "memory.updated", "memory.deleted"]);
    // Of what is gone nothing is told but that.
    let text = json!(events).to_string();
    assert!(!text.contains("shown-key") && !text.contains("shown-tag"), "{text}");
    team.note("a", "free", "e1", json!({"memory_type": "episodic"})).await;
    team.note("a", "free", "e2", json!({"memory_type": "episodic", "ttl": "duration:PT1H"})).await;
    team.world.clock.advance(Duration::from_secs(3601));
    Deletions(&team.world.gateway).sweep().await.unwrap();
    let events = team.events("a", "/agents/a").await;
    assert_eq!(names(&events)[3..], ["memory.created", "memory.evicted", "memory.created", "memory.expired"]);
    let expired = team.get("a", "/agents/a/events?event_type=memory.expired").await.ok();
    assert_eq!((expired.as_array().unwrap().len(), &expired[0]["actor"]), (1, &json!("owner")));
    let since = expired[0]["timestamp"].as_str().unwrap();
    assert_eq!(
        team.get("a", &format!("/agents/a/events?since={since}")).await.ok().as_array().unwrap().len(),
        1
    );
    let paged = team.get("a", "/agents/a/events?limit=1&offset=2").await.ok();
    assert_eq!((paged.as_array().unwrap().len(), &paged[0]["type"]), (1, &json!("memory.deleted")));
    team.get("a", "/agents/a/events?limit=0").await.refused(422, "invalid_input");
    team.get("a", "/agents/a/events?since=x").await.refused(422, "invalid_input");
    // What a memory tool or the owner does to an entry is told, too.
    let made = team.note("a", "free", "again", json!({})).await;
    let forget = json!({"tool": "memory_forget", "arguments": {"item_id": made}});
    team.world.owner("POST", &format!("{AGENTS}/a/call"), Some(&forget)).await.ok();
    let events = team.events("a", "/agents/a").await;
    let (name, data) = events.last().unwrap();
    assert_eq!((name.as_str(), &data["oap_event"]), ("memory.updated", &json!("retracted")));
    assert!(!json!(events).to_string().contains("\"again\""));
}

#[tokio::test]
async fn entries_are_put_and_got_by_their_place() {
    let team = Team::new(&["a", "b"]).await;
    let put = |who: &'static str, path: &'static str, body: Value| {
        let team = &team;
        async move { team.sends(who, "PUT", path, 1, Some(&body)).await }
    };
    let at = "/agents/a/memory/notes.x/k";
    team.get("a", at).await.refused(404, "not_found");
    let made = put("a", at, json!({"value": {"n": 1}, "memory_type": "episodic", "tags": ["t"]})).await.ok();
    assert_eq!(
        (&made["namespace"], &made["key"], &made["version"]),
        (&json!("notes.x"), &json!("k"), &json!(1))
    );
    assert_eq!(team.get("a", at).await.ok(), made);
    let again = put("a", at, json!({"value": {"n": 2}})).await.ok();
    assert_eq!(
        (&again["id"], &again["version"], &again["memory_type"]),
        (&made["id"], &json!(2), &json!("episodic"))
    );
    assert_eq!((&again["value"], &again["tags"]), (&json!({"n": 2}), &json!([])));
    assert_eq!(team.get("a", "/agents/a/memory/notes.x").await.ok(), json!([again]));
    assert_eq!(team.get("a", "/agents/a/memory/notes.*").await.ok(), json!([]));
    put("a", at, json!({"value": {}, "memory_type": "working"})).await.refused(422, "invalid_input");
    put("a", at, json!({"value": {}, "memory_type": "semantic"})).await.refused(422, "invalid_input");
    put("a", at, json!({"value": {}, "key": "other"})).await.refused(422, "invalid_input");
    put("a", at, json!({})).await.refused(422, "invalid_input");
    // Who names a version means that one.
    put("a", at, json!({"value": {}, "version": 1})).await.refused(409, "conflict");
    put("a", "/agents/a/memory/notes.x/other", json!({"value": {}, "version": 1}))
        .await
        .refused(409, "conflict");
    // Nobody but its author, and it is there for nobody else.
    put("b", at, json!({"value": {}})).await.refused(403, "policy_block");
    team.get("b", at).await.refused(404, "not_found");
    // By words, beside the filters.
    let found = team.get("a", "/memory/search?q=2").await.ok();
    assert!(found["total"].is_u64() && found["entries"].is_array(), "{found}");
    team.note("a", "free", "sea", json!({"value": {"text": "The lighthouse keeper"}})).await;
    let found = team.get("a", "/memory/search?q=lighthouse").await.ok();
    assert_eq!((&found["total"], &found["entries"][0]["key"]), (&json!(1), &json!("sea")));
    assert_eq!(team.get("b", "/memory/search?q=lighthouse").await.ok()["total"], 0);
    for wrong in ["", "?q=", "?q=x&limit=0"] {
        team.get("a", &format!("/memory/search{wrong}")).await.refused(422, "invalid_input");
    }
    let told = team.world.raw("GET", "/.well-known/openintent.json", &[], None).await.ok();
    assert!(told["capabilities"].as_array().unwrap().contains(&json!("memory.search")));
}

/// A batch says what an entry is bound to; what it does not name stays.
#[tokio::test]
async fn a_batch_replaces_the_scope_that_it_names() {
    let team = Team::new(&["a"]).await;
    team.note("a", "one", "k", json!({})).await;
    let batch = |version: u64, more: Value| {
        let mut entry = json!({"namespace": "job", "key": "k", "value": {}, "version": version});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"entries": [entry]})
    };
    for (version, more, scope) in [
        (1, json!({}), json!({"task_id": "one"})),
        (
            2,
            json!({"scope": {"task_id": "two", "intent_id": "i"}}),
            json!({"task_id": "two", "intent_id": "i"}),
        ),
        (3, json!({"scope": {}}), json!({})),
    ] {
        let written = team.post("a", "/memory/batch", batch(version, more)).await.ok();
        assert_eq!(written["entries"][0]["scope"], scope);
    }
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "a", json!({})).await;
    team.post("a", "/memory/batch", batch(4, json!({"scope": {"task_id": task}}))).await.ok();
    team.gets("a", &task, "completed").await;
    assert_eq!(team.get("a", "/memory?agent_id=a").await.ok()["total"], 0);
}

#[tokio::test]
async fn a_namespace_is_for_whom_its_permissions_name() {
    let team = Team::new(&["curator", "reader", "a"]).await;
    team.set("lead", json!({"permission": "memory.admin"})).await.ok();
    let shared = |key: &str| json!({"namespace": "policy", "key": key, "value": {"text": "approval above ten"}, "memory_type": "semantic"});
    let own = id(&team.post("a", "/memory", shared("own")).await.ok());
    let path = "/memory/namespaces/policy";
    let permissions = |default: &str| {
        json!({"permissions": {"default": default, "allow": [
            {"agent": "curator", "access": "write"}, {"agent": "reader", "access": "read"},
        ]}})
    };
    // Only who has memory.admin sets them.
    for who in ["a", "curator"] {
        team.patch(who, path, 1, permissions("none")).await.refused(403, "policy_block");
    }
    let recall = json!({"tool": "memory_recall", "arguments": {"query": "approval"}});
    let recalled = async |who: &str| {
        let told = team.world.owner("POST", &format!("{AGENTS}/{who}/call"), Some(&recall)).await.ok();
        told["structured"]["matched"].as_u64().unwrap()
    };
    assert_eq!((recalled("a").await, recalled("reader").await), (1, 1));
    let set = team.patch("lead", path, 1, permissions("none")).await.ok();
    assert_eq!((&set["namespace"], &set["permissions"]["default"]), (&json!("policy"), &json!("none")));
    assert_eq!(set["permissions"]["allow"].as_array().unwrap().len(), 2);
    // Who is not named sees nothing of it, by whatever door; its own neither.
    let entry = format!("/memory/{own}");
    team.get("a", &entry).await.refused(404, "not_found");
    team.patch("a", &entry, 1, json!({"value": {}})).await.refused(404, "not_found");
    team.sends("a", "DELETE", &entry, 1, None).await.refused(404, "not_found");
    team.get("a", path).await.refused(404, "not_found");
    assert_eq!(team.get("a", "/memory/namespaces").await.ok()["namespaces"], json!([]));
    assert_eq!(team.get("a", "/memory?memory_type=semantic").await.ok()["total"], 0);
    assert_eq!(team.get("a", "/memory/search?q=approval").await.ok()["total"], 0);
    assert_eq!((recalled("a").await, recalled("reader").await), (0, 1));
    team.post("a", "/memory", shared("more")).await.refused(403, "policy_block");
    let batch = json!({"entries": [shared("more")]});
    team.post("a", "/memory/batch", batch).await.refused(403, "policy_block");
    let events = json!(team.events("a", "/agents/a").await).to_string();
    assert!(!events.contains("policy"), "{events}");
    // Who reads reads, who curates changes what others wrote.
    team.get("reader", &entry).await.ok();
    team.patch("reader", &entry, 1, json!({"value": {}})).await.refused(403, "policy_block");
    team.post("reader", "/memory", shared("more")).await.refused(403, "policy_block");
    let changed =
        team.patch("curator", &entry, 1, json!({"value": {"text": "approval above five"}})).await.ok();
    assert_eq!((&changed["version"], &changed["agent_id"]), (&json!(2), &json!("curator")));
    team.post("curator", "/memory", shared("more")).await.ok();
    let shown = team.get("reader", path).await.ok();
    assert_eq!((&shown["access"], &shown["permissions"]["allow"]), (&json!("read"), &json!([])));
    // By default all read.
    team.patch("lead", path, 1, permissions("read")).await.ok();
    team.get("a", &entry).await.ok();
    assert_eq!(recalled("a").await, 2);
    team.post("a", "/memory", shared("again")).await.refused(403, "policy_block");
    team.patch("lead", path, 1, json!({"permissions": null})).await.ok();
    team.post("a", "/memory", shared("again")).await.ok();
    for (wrong, field) in [
        (json!({}), "permissions"),
        (json!({"permissions": {"default": "all"}}), "default"),
        (
            json!({"permissions": {"default": "read", "allow": [{"agent": "nobody", "access": "read"}]}}),
            "allow",
        ),
    ] {
        let refused = team.patch("lead", path, 1, wrong).await.refused(422, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains(field), "{refused}");
    }
}

/// What its agent pins, or the owner with a namespace, goes by no compaction.
#[tokio::test]
async fn a_compaction_leaves_what_is_pinned() {
    let team = Team::new(&["a"]).await;
    team.set("a", json!({"permission": "memory.admin", "pinned_namespaces": ["kept"]})).await.ok();
    let plain = team.note("a", "t", "e1", json!({"memory_type": "episodic"})).await;
    team.note("a", "t", "e2", json!({"memory_type": "episodic", "pinned": true})).await;
    team.note("a", "t", "e3", json!({"memory_type": "episodic", "namespace": "kept"})).await;
    let calls = format!("{AGENTS}/a/call");
    let call = |arguments: Value| json!({"tool": "memory_compact", "arguments": arguments});
    let asked = call(json!({"min_confidence": 0.9}));
    let said = team.world.owner("POST", &calls, Some(&asked)).await.ok()["structured"].clone();
    let going: Vec<&str> =
        said["going"].as_array().unwrap().iter().map(|one| one["item_id"].as_str().unwrap()).collect();
    assert_eq!(going, [plain.as_str()]);
    let asked = call(json!({"min_confidence": 0.9, "plan": said["plan"]}));
    team.world.owner("POST", &calls, Some(&asked)).await.ok();
    assert_eq!(team.get("a", "/memory?agent_id=a").await.ok()["total"], 2);
    let events = team.events("a", "/agents/a").await;
    assert_eq!(names(&events), ["memory.created", "memory.created", "memory.created", "memory.updated"]);
}

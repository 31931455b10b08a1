//! Lockdown (OAP-CORE 22.3): one word of the owner's, and nobody else is answered; and nothing that it ended comes back.

use crate::common::{Answer, Kept, ORIGIN, World, agent, note};
use crate::program::{Home, read};
use oap_gateway::Error;
use oap_gateway::api::agents::ToolCall;
use oap_gateway::api::lockdown::LockdownOrder;
use oap_gateway::api::routes::{Access, Name, ROUTES};
use oap_gateway::service::lockdown::REVOKED_AT_ONCE;
use oap_gateway::service::{Items, Lockdowns, Tools};
use oap_gateway::state::owner::Permission;
use oap_identity::{Signer, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

const LOCKDOWN: &str = "/oap/owner/lockdown";
const LIFT: &str = "/oap/owner/lockdown/lift";

/// Locks down; the world goes on with the token that takes the place of the one that ended.
async fn lock(world: &mut World, order: &Value) -> Value {
    let locked = world.owner("POST", LOCKDOWN, Some(order)).await.ok();
    world.token = locked["trust_token"].as_str().unwrap().to_owned();
    locked["lockdown"].clone()
}

async fn lift(world: &World) -> Value {
    world.owner("POST", LIFT, Some(&json!({}))).await.ok()
}

/// An agent's API key.
async fn key_of(world: &World, name: &str) -> String {
    let new = json!({"name": name, "permission": "memory.admin"});
    let made = world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    made["api_key"].as_str().unwrap().to_owned()
}

async fn by_key(world: &World, method: &str, path: &str, key: &str, body: Option<&Value>) -> Answer {
    world.raw(method, path, &[("authorization", &format!("Bearer {key}"))], body).await
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}

/// The receipts of an action in the owner's log.
async fn said(world: &World, action: &str) -> Vec<Value> {
    let log = world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
    let receipts = log["receipts"].as_array().unwrap().iter();
    receipts.filter(|receipt| receipt["action_id"] == action).cloned().collect()
}

/// What stays readable: what others need to see that nothing counts any more, and whether the process lives.
const OPEN: [Name; 5] = [Name::Did, Name::StatusList, Name::Incidents, Name::Healthy, Name::Ready];

#[tokio::test]
async fn every_route_is_shut_to_all_but_the_owner() {
    let mut world = World::new().await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let key = key_of(&world, "scout").await;
    let reader = world.gateway.trust_token(&agent(5), Permission::Read).unwrap();
    lock(&mut world, &json!({})).await;
    for route in ROUTES {
        let (method, path) = (route.method.as_str(), &route.at("x"));
        let body = ["POST", "PUT", "PATCH"].contains(&method).then(|| json!({}));
        let bare = world.raw(method, path, &[], body.as_ref()).await;
        let granted = world.as_agent(&grantee, &token, method, path, body.as_ref()).await;
        let keyed = by_key(&world, method, path, &key, body.as_ref()).await;
        // A trust token of before, whatever it permitted.
        let former = world.as_agent(&agent(5), &reader, method, path, body.as_ref()).await;
        let others = [("bare", bare), ("granted", granted), ("keyed", keyed), ("former", former)];
        for (who, answer) in others {
            let told = answer.body["error"].as_str().map(|code| (answer.status.as_u16(), code));
            match route.permission {
                _ if OPEN.contains(&route.name) => {
                    assert_eq!(answer.status, 200, "{route:?} {who}: {}", answer.body);
                }
                // It is the owner's, too, and so it looks at a trust token.
                Access::Public if route.name == Name::Audit && who == "former" => {
                    assert_eq!(told, Some((401, "auth_required")), "{route:?} {who}");
                }
                Access::Owner(_) if route.name != Name::CallTool => {
                    assert_eq!(told, Some((401, "auth_required")), "{route:?} {who}");
                }
                _ => assert_eq!(told, Some((403, "policy_block")), "{route:?} {who}: {}", answer.body),
            }
        }
        // The owner reads everything.
        if method == "GET" && matches!(route.permission, Access::Owner(_)) {
            let answer = world.owner(method, path, None).await;
            assert!(![401, 403].contains(&answer.status.as_u16()), "{route:?}: {}", answer.body);
        }
    }
    world.owner("GET", "/oap/audit", None).await.ok();
    // What is no route, another method, and the same one that shows no body.
    for (method, path) in [("GET", "/nothing"), ("OPTIONS", "/oap/memory/query"), ("HEAD", "/oap/audit")] {
        assert_eq!(world.raw(method, path, &[], None).await.status, 403, "{method} {path}");
    }
    assert_eq!(world.raw("HEAD", "/healthz", &[], None).await.status, 200);
    // Nobody who was refused left anything in the log, nor hears why.
    assert!(said(&world, "memory.query").await.is_empty());
    let refused = world.raw("POST", "/oap/memory/query", &[], Some(&json!({}))).await;
    assert!(!refused.body.to_string().contains("reason"), "{}", refused.body);
    world.chains_hold().await;
}

/// The attack: an answer that was being computed when the owner pressed the button. The transaction that would record it comes after that
/// of the lockdown, and so does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_under_way_commits_nothing() {
    let mut world = World::new().await;
    world.capture(&[note("Tea at four", &["shared"])]).await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let key = key_of(&world, "scout").await;
    let by_key = world.gateway.agent_by_key(&[format!("Bearer {key}")], &[]).unwrap();
    let owner = world.proved().await;
    let by_owner = world.gateway.agent_as(&owner, &"scout".parse().unwrap()).unwrap();
    world.query(&grantee, &token, &json!({})).await.ok();
    let (answers, gateway) = (said(&world, "memory.query").await.len(), world.gateway.clone());
    // The writer waits in the transaction of the lockdown; the query gets behind it.
    world.clock.gate.close();
    let by = owner.clone();
    let locking =
        tokio::spawn(async move { Lockdowns(&gateway).begin(&by, LockdownOrder::default()).await.map(drop) });
    let meanwhile = async {
        while !world.clock.gate.waits() {
            tokio::task::yield_now().await;
        }
        assert!(!world.gateway.is_locked_down());
        let everything = json!({});
        let asked = world.query(&grantee, &token, &everything);
        let goes_on = async {
            world.writes_wait(1).await;
            world.clock.gate.open();
        };
        tokio::join!(asked, goes_on).0
    };
    let answer = tokio::time::timeout(Duration::from_secs(60), meanwhile).await.unwrap();
    answer.refused(403, "policy_block");
    locking.await.unwrap().unwrap();
    // So it is with an agent that was let in before, by its key and by the owner who acts as it.
    for caller in [&by_key, &by_owner] {
        for (tool, arguments) in
            [("memory_learn", json!({"content": "late"})), ("memory_recall", json!({"query": "tea"}))]
        {
            let call: ToolCall = serde_json::from_value(call(tool, arguments)).unwrap();
            let late = Tools(&world.gateway).call(caller, call).await;
            assert!(matches!(late, Err(Error::LockedDown)), "{tool}: {late:?}");
        }
    }
    // And with the owner's own request, whose token the lockdown ended: the successor is in the answer alone.
    let late = Items(&world.gateway).capture(&owner, &[note("late", &[])]).await;
    assert!(matches!(late, Err(Error::Owner(_))), "the token ended");
    world.token = world.gateway.trust_token(&Signer::did_key(&[99; 32]).unwrap(), Permission::Admin).unwrap();
    assert_eq!(said(&world, "memory.query").await.len(), answers);
    let items = world.owner("GET", "/oap/owner/items", None).await.ok();
    assert_eq!(items["items"].as_array().unwrap().len(), 1);
    world.chains_hold().await;
}

#[tokio::test]
async fn what_was_ended_does_not_come_back() {
    let mut world = World::new().await;
    world.capture(&[note("Tea at four", &["shared"])]).await;
    let grantee = agent(2);
    let mut later = world.draft(&grantee);
    later["not_before"] = json!(world.now().plus(Duration::from_secs(3600)));
    let grant = world.issue(&world.draft(&grantee)).await;
    let later = world.issue(&later).await;
    let token = world.token(&grantee, &grant).await;
    let key = key_of(&world, "scout").await;
    let (former, thief) =
        (world.token.clone(), world.gateway.trust_token(&agent(5), Permission::Admin).unwrap());
    let locked = lock(&mut world, &json!({"reason": "A laptop was stolen"})).await;
    assert_eq!(
        (&locked["grants"], &locked["agents"], &locked["left"], &locked["reason"]),
        (&json!(2), &json!(1), &json!(0), &json!("A laptop was stolen"))
    );
    // Whoever has a token of before neither lifts it nor does anything else; nor does a grantee or an agent.
    let admin = Signer::did_key(&[99; 32]).unwrap();
    world.as_agent(&admin, &former, "POST", LIFT, Some(&json!({}))).await.refused(401, "auth_required");
    world.as_agent(&agent(5), &thief, "POST", LIFT, Some(&json!({}))).await.refused(401, "auth_required");
    world.as_agent(&grantee, &token, "POST", LIFT, Some(&json!({}))).await.refused(401, "auth_required");
    by_key(&world, "POST", LIFT, &key, Some(&json!({}))).await.refused(401, "auth_required");
    world.exchange(&grantee, &grant).await.refused(403, "policy_block");
    let state = world.owner("GET", LOCKDOWN, None).await.ok();
    assert_eq!(state["locked_down"], true);
    world.clock.advance(Duration::from_secs(60));
    let lifted = lift(&world).await;
    assert_eq!((&lifted["locked_down"], &lifted["last"]["since"]), (&json!(false), &locked["since"]));
    // Lifted, it is as if each had been ended by itself.
    world.query(&grantee, &token, &json!({})).await.refused(403, "policy_block");
    world.exchange(&grantee, &grant).await.refused(403, "policy_block");
    let status = call("memory_status", json!({}));
    by_key(&world, "POST", "/oap/agent/call", &key, Some(&status)).await.refused(401, "auth_required");
    for (signer, token) in [(&admin, &former), (&agent(5), &thief)] {
        world.as_agent(signer, token, "GET", "/oap/owner/status", None).await.refused(401, "auth_required");
    }
    world.clock.advance(Duration::from_secs(7200));
    world.exchange(&grantee, &later).await.refused(403, "policy_block");
    for shown in world.owner("GET", "/oap/owner/grants", None).await.ok()["grants"].as_array().unwrap() {
        assert_eq!(shown["state"], "revoked");
        assert!(shown["revoked_at"].is_string(), "{shown}");
    }
    // What is given anew counts.
    let anew = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &anew).await;
    world.query(&grantee, &token, &json!({})).await.ok();
    let rotated = world.owner("POST", "/oap/owner/agents/scout/rotate", Some(&json!({}))).await.ok();
    let key = rotated["api_key"].as_str().unwrap();
    by_key(&world, "POST", "/oap/agent/call", key, Some(&status)).await.ok();
    world.owner("POST", LIFT, Some(&json!({}))).await.refused(409, "conflict");
    world.chains_hold().await;
}

#[tokio::test]
async fn nothing_that_gives_access_is_made_while_it_lasts() {
    let mut world = World::new().await;
    let item = world.capture(&[note("Tea at four", &["shared"])]).await.remove(0);
    key_of(&world, "scout").await;
    lock(&mut world, &json!({})).await;
    let draft = world.draft(&agent(2));
    let new = json!({"name": "other", "permission": "memory.read"});
    for (path, body) in [
        ("/oap/owner/grants", &draft),
        ("/oap/owner/agents", &new),
        ("/oap/owner/agents/scout/rotate", &json!({})),
    ] {
        let refused = world.owner("POST", path, Some(body)).await.refused(409, "conflict");
        assert!(refused["message"].as_str().unwrap().contains("lockdown lift"), "{refused}");
    }
    let learn = call("memory_learn", json!({"content": "x"}));
    world.owner("POST", "/oap/owner/agents/scout/call", Some(&learn)).await.refused(403, "policy_block");
    // Everything else is the owner's as ever: what takes away, what looks, what is written.
    world.owner("POST", "/oap/owner/grants/preview", Some(&draft)).await.ok();
    world.owner("POST", "/oap/owner/agents/scout/remove", Some(&json!({}))).await.ok();
    world.capture(&[note("What I noticed", &[])]).await;
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [item]}))).await.ok();
    let rotated = world.owner("POST", "/oap/owner/keys/rotate", Some(&json!({}))).await.ok();
    world.token = rotated["trust_token"].as_str().unwrap().to_owned();
    // A second word ends again what is there; since when it lasts stays.
    let since = world.owner("GET", LOCKDOWN, None).await.ok()["last"]["since"].clone();
    world.clock.advance(Duration::from_secs(60));
    let (former, again) = (world.token.clone(), lock(&mut world, &json!({"reason": "again"})).await);
    assert_eq!((&again["since"], &again["reason"]), (&since, &json!("again")));
    let admin = Signer::did_key(&[99; 32]).unwrap();
    world.as_agent(&admin, &former, "GET", LOCKDOWN, None).await.refused(401, "auth_required");
    assert_eq!(said(&world, "memory.lockdown").await.len(), 2);
    world.chains_hold().await;
}

#[tokio::test]
async fn every_grant_is_revoked_in_steps_and_in_the_status_list_at_once() {
    let mut world = World::new().await;
    let (grantee, many) = (agent(2), REVOKED_AT_ONCE + 3);
    let mut places = Vec::new();
    for _ in 0..many {
        let grant = world.issue(&world.draft(&grantee)).await;
        places.push(grant["status"]["status_list"]["idx"].as_u64().unwrap() as u32);
    }
    let locked = lock(&mut world, &json!({})).await;
    assert_eq!((&locked["grants"], &locked["left"]), (&json!(many), &json!(0)));
    let list = world.raw("GET", "/oap/memory/status", &[], None).await;
    let list = String::from_utf8(list.bytes).unwrap();
    let (address, document, now) = (format!("{ORIGIN}/oap/memory/status"), world.document(), world.now());
    for place in places {
        assert!(oap_grants::status::is_revoked(&list, place, &address, &document, now).unwrap());
    }
    assert_eq!(said(&world, "memory.revoke").await.len(), many);
    let lockdown = said(&world, "memory.lockdown").await.remove(0);
    assert_eq!(lockdown["policy_decisions"][0]["grants"], json!(many), "{lockdown}");
    assert_eq!(lockdown["receipt_id"], locked["receipt_id"]);
    lift(&world).await;
    let lifted = said(&world, "memory.lockdown_lift").await.remove(0);
    assert_eq!(lifted["policy_decisions"][0]["lockdown"], locked["receipt_id"], "{lifted}");
    world.chains_hold().await;
}

#[tokio::test]
async fn status_and_doctor_say_it_and_a_restart_keeps_it() {
    let (kept, mut world) = Kept::new().await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let (never, none) = (world.owner("GET", LOCKDOWN, None).await.ok(), "/oap/owner/status");
    assert_eq!(never, json!({"locked_down": false}));
    assert!(world.owner("GET", none, None).await.ok()["lockdown"].is_null());
    lock(&mut world, &json!({"reason": "A laptop was stolen"})).await;
    let world = {
        drop(world);
        kept.open().await
    };
    world.exchange(&grantee, &grant).await.refused(403, "policy_block");
    let status = world.owner("GET", "/oap/owner/status", None).await.ok();
    assert_eq!(status["lockdown"]["reason"], "A laptop was stolen");
    let findings = world.job(&json!({"job": "doctor"})).await["findings"].clone();
    for findings in [&status["findings"], &findings] {
        let parts = findings.as_array().unwrap().iter();
        let found = parts.filter(|finding| finding["part"] == "lockdown").collect::<Vec<_>>();
        assert_eq!(found.len(), 1, "{findings}");
        assert!(found[0]["fix"].as_str().unwrap().contains("lockdown lift"), "{findings}");
    }
    lift(&world).await;
    let world = {
        drop(world);
        kept.open_at(Timestamp::from_millis(crate::common::START)).await
    };
    assert!(!world.gateway.is_locked_down());
    world.exchange(&grantee, &grant).await.refused(403, "policy_block");
    let status = world.owner("GET", "/oap/owner/status", None).await.ok();
    assert!(status["lockdown"].is_null() && !status["findings"].to_string().contains("lockdown"), "{status}");
    world.chains_hold().await;
}

#[tokio::test]
async fn a_reason_is_words() {
    let world = World::new().await;
    for reason in [json!(""), json!("a\nb"), json!("x".repeat(257)), json!(7)] {
        let order = json!({"reason": reason});
        let refused = world.owner("POST", LOCKDOWN, Some(&order)).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains("reason"), "{refused}");
    }
    assert!(!world.gateway.is_locked_down());
}

/// The real program: `kill -9` changes nothing of it, and neither a server nor its absence does.
#[test]
fn kill_9_keeps_it() {
    let granter = Home::web();
    let server = granter.serve(&[]);
    let mut grantee = Home::key();
    let authority = granter.home().join("tls/cert.pem").to_string_lossy().into_owned();
    grantee.flags = vec!["--trust-ca".into(), authority, "--allow-local-dids".into()];
    let did = read(grantee.home().join("did.json"))["id"].as_str().unwrap().to_owned();
    granter.run(&["item", "add", "--kind", "fact", "--text", "tea"]).ok();
    let (grant, origin) = (granter.path("grant.json"), granter.origin());
    let issue = [
        "grant",
        "issue",
        "--to",
        &did,
        "--purpose",
        "x",
        "--until",
        "30d",
        "--trust-level",
        "2",
        "--out",
        &grant,
    ];
    granter.run(&issue).ok();
    let ask = || grantee.run(&["query", &origin, "--grant", &grant, "tea"]);
    ask().ok();
    granter.run(&["lockdown"]).failed(2, "--yes");
    let locked = granter.run(&["lockdown", "--reason", "A laptop was stolen", "--yes", "--json"]).json();
    assert_eq!((&locked["locked_down"], &locked["last"]["grants"]), (&json!(true), &json!(1)), "{locked}");
    assert!(!locked.to_string().contains("eyJ"), "the token is nobody's to read: {locked}");
    assert_eq!(ask().status, 3);
    server.kill();
    // Without a server the command line opens the home itself.
    assert!(granter.run(&["lockdown", "status"]).ok().contains("A laptop was stolen"));
    let server = granter.serve(&[]);
    assert_eq!(ask().status, 3);
    assert!(granter.run(&["status"]).ok().contains("Lockdown"));
    assert!(granter.run(&["doctor"]).stdout.contains("locked down since"));
    granter.run(&issue).failed(3, "lockdown lift");
    granter.run(&["lockdown", "lift"]).failed(2, "--yes");
    assert!(granter.run(&["lockdown", "lift", "--yes"]).ok().contains("not locked down"));
    assert_eq!(ask().status, 3);
    granter.run(&issue).ok();
    ask().ok();
    granter.run(&["audit", "verify"]).ok();
    drop(server);
}

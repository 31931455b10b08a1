//! What a compromised key signed, and what resealing tells.

use crate::common::*;
use oap_gateway::service::owner::Permission;
use oap_gateway::service::{Grants, Health, Items, Keys};
use oap_identity::{Signer, json as strict};
use oap_memory::evidence;
use serde_json::{Value, json};
use std::time::Duration;

/// Every current item under a new grant, as its grantee gets it and verifies it.
async fn seen(world: &World) -> Value {
    // Grants of the compromised key are void: this one is new, and so is the key that signs it.
    let draft = serde_json::from_value(world.draft(&agent(2))).unwrap();
    let grant = Grants(&world.gateway).issue(&world.proved().await, draft).await.unwrap().document().clone();
    let token = world.token(&agent(2), &grant).await;
    let answer = world.query(&agent(2), &token, &json!({})).await.ok();
    evidence::answer(&answer, &world.document()).unwrap();
    answer
}

/// A call with a token of now: those of before ended with the key.
async fn owner(world: &World, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let admin = Signer::did_key(&[99; 32]).unwrap();
    let token = world.gateway.trust_token(&admin, Permission::Admin).unwrap();
    world.as_agent(&admin, &token, method, path, body).await
}

/// What `doctor` finds wrong.
async fn wrong(world: &World) -> Vec<String> {
    let owner = world.proved().await;
    Health(&world.gateway)
        .examine(&owner, &Default::default())
        .unwrap()
        .into_iter()
        .flat_map(|finding| finding.wrong)
        .collect()
}

/// The job, as the command line begins it; the items that it left.
async fn reseal(world: &World) -> Vec<String> {
    let admin = Signer::did_key(&[99; 32]).unwrap();
    let token = world.gateway.trust_token(&admin, Permission::Admin).unwrap();
    let done = world.job_as(&admin, &token, &json!({"job": "reseal"})).await;
    serde_json::from_value(done["left"].clone()).unwrap()
}

#[tokio::test]
async fn what_is_the_owners_still_is_resealed_and_served_again() {
    let world = World::new().await;
    let early = world.capture(&[note("tea in the morning", &["a"])]).await;
    world.clock.advance(Duration::from_secs(3_600));
    let since = world.now();
    world.clock.advance(Duration::from_secs(60));
    let late = world.capture(&["tea at night", "tea at noon", "no tea"].map(|text| note(text, &["a"]))).await;
    world.clock.advance(Duration::from_secs(60));
    let event = |item: &str, event: &str| format!("/oap/owner/items/{item}/{event}");
    owner(&world, "POST", &event(&early[0], "confirm"), Some(&json!({}))).await.ok();
    owner(&world, "POST", &event(&late[2], "retract"), Some(&json!({}))).await.ok();
    world.clock.advance(Duration::from_secs(60));
    Keys(&world.gateway).revoke_key(&world.proved().await, "key-1".into(), Some(since)).await.unwrap();
    assert!(texts(&seen(&world).await).is_empty());
    assert!(!wrong(&world).await.is_empty());

    world.clock.advance(Duration::from_secs(60));
    assert!(reseal(&world).await.is_empty());
    world.clock.advance(Duration::from_secs(60));
    owner(&world, "POST", &event(&late[2], "restore"), Some(&json!({}))).await.ok();
    let answer = seen(&world).await;
    let mut shown = texts(&answer);
    shown.sort();
    assert_eq!(shown, ["no tea", "tea at night", "tea at noon", "tea in the morning"]);
    assert_eq!(wrong(&world).await, Vec::<String>::new());
    // All links of the job bear one time, and nothing is held back still.
    let items = answer["items"].as_array().unwrap();
    let reseals = items.iter().flat_map(|item| item["integrity"]["chain"].as_array().unwrap());
    let mut times: Vec<&Value> = reseals.filter(|l| l["event"] == "reseal").map(|l| &l["at"]).collect();
    assert_eq!(times.len(), 4);
    times.dedup();
    assert_eq!(times.len(), 1);
    let held = Keys(&world.gateway).held_back(&world.proved().await).await.unwrap();
    assert_eq!(held.items, []);

    // The new key is compromised too: a reseal by it vouches for nothing, and the next one does.
    let since = world.now();
    Keys(&world.gateway).revoke_key(&world.proved().await, "key-2".into(), Some(since)).await.unwrap();
    assert!(texts(&seen(&world).await).is_empty());
    assert!(reseal(&world).await.is_empty());
    assert_eq!(texts(&seen(&world).await).len(), 4);
    assert_eq!(wrong(&world).await, Vec::<String>::new());
}

/// Whoever had the key made an item in the owner's name, and had the owner take it in with a bundle. Nothing that the
/// gateway does by itself vouches for it.
#[tokio::test]
async fn what_the_thief_made_is_not_laundered() {
    // The same DID, the same key.
    let (thief, world) = (World::new().await, World::new().await);
    assert_eq!(thief.document(), world.document());
    let since = world.now();
    for world in [&thief, &world] {
        world.clock.advance(Duration::from_secs(3_600));
    }
    thief.clock.advance(Duration::from_millis(7));
    let forged = thief.capture(&[note("the thief says so", &["a"])]).await;
    let own = world.capture(&[note("the owner says so", &["a"])]).await;
    let header = owner(&thief, "POST", "/oap/owner/export/header", Some(&json!({}))).await.ok();
    let page = owner(&thief, "POST", "/oap/owner/export/page", Some(&json!({"part": "items"}))).await;
    let lines: Vec<Value> = page
        .bytes
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut line = strict::parse(line).unwrap();
            line.as_object_mut().unwrap().remove("type");
            line
        })
        .collect();
    let chunk = json!({
        "bundle_id": header["bundle_id"], "principal": header["principal"], "documents": header["documents"],
        "items": lines,
    });
    world.clock.advance(Duration::from_secs(60));
    let outcomes = owner(&world, "POST", "/oap/owner/import/bundle", Some(&chunk)).await.ok();
    assert!(outcomes["outcomes"][0].get("imported").is_some(), "{outcomes}");
    assert_eq!(seen(&world).await["items"].as_array().unwrap().len(), 2);

    world.clock.advance(Duration::from_secs(60));
    Keys(&world.gateway).revoke_key(&world.proved().await, "key-1".into(), Some(since)).await.unwrap();
    assert_eq!(reseal(&world).await, forged);
    let path = format!("/oap/owner/items/{}/reseal", forged[0]);
    owner(&world, "POST", &path, Some(&json!({"always": true}))).await.refused(409, "conflict");
    assert_eq!(ids(&seen(&world).await), own);
    let held: Vec<String> =
        wrong(&world).await.into_iter().filter(|line| line.contains("compromised")).collect();
    assert!(held.iter().all(|line| line.starts_with(&forged[0])) && !held.is_empty(), "{held:?}");
}

#[tokio::test]
async fn what_a_compromised_key_signed_later_is_held_back_and_the_rest_is_served() {
    let world = World::new().await;
    world.capture(&[note("tea in the morning", &["a"])]).await;
    world.clock.advance(Duration::from_secs(3_600));
    let since = world.now();
    world.clock.advance(Duration::from_secs(60));
    let late = world.capture(&[note("tea at night", &["a"])]).await;
    world.clock.advance(Duration::from_secs(60));
    Keys(&world.gateway).revoke_key(&world.proved().await, "key-1".into(), Some(since)).await.unwrap();
    assert_eq!(texts(&seen(&world).await), ["tea in the morning"]);
    let findings = Health(&world.gateway).examine(&world.proved().await, &Default::default()).unwrap();
    let found = findings.iter().find(|finding| finding.part == "signatures of compromised keys").unwrap();
    assert_eq!(found.wrong.len(), 1);
    assert!(found.wrong[0].starts_with(&late[0]));
}

#[tokio::test]
async fn resealing_always_gives_a_version_that_says_the_same() {
    let world = World::new().await;
    let ids = world.capture(&[note("nobody is named here", &["a"])]).await;
    let item = ids[0].parse().unwrap();
    assert!(!Items(&world.gateway).would_reseal(&world.proved().await, item).await.unwrap());
    assert!(Items(&world.gateway).reseal(&world.proved().await, item, false, None).await.unwrap().is_none());
    let path = format!("/oap/owner/items/{}/reseal", ids[0]);
    let dry = owner(&world, "POST", &path, Some(&json!({"dry_run": true}))).await.ok();
    assert_eq!(dry["would_reseal"], false);
    let always = owner(&world, "POST", &path, Some(&json!({"always": true}))).await.ok();
    assert_eq!(always["resealed"]["version"], 2);
    let shown = Items(&world.gateway).item(&world.proved().await, item).unwrap();
    assert_eq!(shown.item.content.text.as_deref(), Some("nobody is named here"));
}

/// Who sees two links of a bulk job learns nothing of how many came between; nor does a time ahead of the clock count.
#[tokio::test]
async fn a_job_that_reseals_all_has_one_time() {
    let world = World::new().await;
    let ids = world.capture(&["tea", "no tea"].map(|text| note(text, &["a"]))).await;
    world.clock.advance(Duration::from_secs(60));
    let began = world.now();
    for id in &ids {
        world.clock.advance(Duration::from_secs(7));
        let body = json!({"always": true, "at": began});
        owner(&world, "POST", &format!("/oap/owner/items/{id}/reseal"), Some(&body)).await.ok();
        let shown = Items(&world.gateway).item(&world.proved().await, id.parse().unwrap()).unwrap();
        assert_eq!(shown.chain[1].at, began);
    }
    let later = json!({"always": true, "at": world.now().plus(Duration::from_secs(9))});
    owner(&world, "POST", &format!("/oap/owner/items/{}/reseal", ids[0]), Some(&later)).await.ok();
    let shown = Items(&world.gateway).item(&world.proved().await, ids[0].parse().unwrap()).unwrap();
    assert_eq!(shown.chain[2].at, world.now());
}

/// What its reader would refuse is not in a bundle, and the header counts without it.
#[tokio::test]
async fn an_own_bundle_leaves_out_what_is_held_back() {
    let world = World::new().await;
    let early = world.capture(&[note("tea in the morning", &["a"])]).await;
    world.clock.advance(Duration::from_secs(3_600));
    let since = world.now();
    world.clock.advance(Duration::from_secs(60));
    world.capture(&[note("tea at night", &["a"])]).await;
    world.clock.advance(Duration::from_secs(60));
    Keys(&world.gateway).revoke_key(&world.proved().await, "key-1".into(), Some(since)).await.unwrap();
    let header = owner(&world, "POST", "/oap/owner/export/header", Some(&json!({}))).await.ok();
    assert_eq!(header["items"], 1);
    let page = owner(&world, "POST", "/oap/owner/export/page", Some(&json!({"part": "items"}))).await;
    let text = String::from_utf8(page.bytes).unwrap();
    assert_eq!(text.matches("\"sd_jwt\"").count(), 1);
    let cursor: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(cursor, json!({"next": null, "held_back": 1}));
    assert!(text.contains(&early[0]));
}

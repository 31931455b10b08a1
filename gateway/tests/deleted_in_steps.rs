//! A deletion in steps: each with a receipt of its own, none of what came later, and nothing lost where it ends early.

use crate::common::*;
use crate::program::Home;
use oap_gateway::Error;
use oap_gateway::service::Deletions;
use oap_gateway::service::deletion_steps::{Deleting, MAX_STEP};
use oap_memory::deletion::VerifiedDeletion;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// A deletion that has begun, of two items a step.
async fn begun(world: &World, what: Value) -> Deleting {
    let request = serde_json::from_value(what).unwrap();
    Deletions(&world.gateway).begin(&world.proved().await, request, 2).await.unwrap()
}

async fn step(world: &World, deleting: &mut Deleting) -> Result<bool, Error> {
    deleting.step(Deletions(&world.gateway), &world.proved().await).await
}

/// Goes on to the end.
async fn end(world: &World, deleting: &mut Deleting) {
    while step(world, deleting).await.unwrap() {}
}

fn verified(world: &World, deleted: &Value) -> Vec<VerifiedDeletion> {
    let receipts = deleted["deletion_receipts"].as_array().unwrap().iter();
    receipts
        .map(|receipt| oap_memory::deletion::verify(receipt, &world.document(), world.now()).unwrap())
        .collect()
}

async fn left(world: &World) -> BTreeSet<String> {
    texts(&world.owner("GET", "/oap/owner/items", None).await.ok()).into_iter().collect()
}

fn some(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn more_than_a_step_is_erased_by_one_job_with_a_receipt_for_each() {
    let world = World::new().await;
    let many: Vec<Value> = (0..MAX_STEP).map(|n| note(&format!("n{n}"), &["all"])).collect();
    let mut all = world.capture(&many).await;
    all.extend(world.capture(&[note("one more", &["all"]), note("another", &["all"])]).await);
    world.capture(&[note("kept", &["other"])]).await;
    let job = json!({"job": "delete", "labels": ["all"]});
    let begun = world.owner("POST", "/oap/owner/jobs", Some(&job)).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let path = format!("/oap/owner/jobs/{}?wait=20", begun.body["job_id"].as_str().unwrap());
    let report = loop {
        let report = world.owner("GET", &path, None).await.ok();
        if report["state"] != "running" {
            break report;
        }
    };
    assert_eq!((&report["state"], &report["job"]), (&json!("done"), &json!("delete")));
    assert_eq!((&report["done"], &report["expected"]), (&json!(MAX_STEP + 2), &json!(MAX_STEP + 2)));
    let result = &report["result"];
    let receipts = verified(&world, result);
    let steps: Vec<(usize, u64)> = receipts
        .iter()
        .map(|verified| &verified.receipt.scope.cascade)
        .map(|cascade| (cascade.named.len(), cascade.remaining))
        .collect();
    assert_eq!(steps, [(MAX_STEP, 2), (2, 0)]);
    let of_receipts: BTreeSet<String> = receipts
        .iter()
        .flat_map(|verified| &verified.receipt.scope.items)
        .map(|tag| tag.split('@').next().unwrap().to_owned())
        .collect();
    assert_eq!(of_receipts, all.iter().cloned().collect());
    assert_eq!(result["cascade_report"]["remaining"], 0);
    assert_eq!(result["cascade_report"]["erased"].as_array().unwrap().len(), all.len());
    assert_eq!(left(&world).await, some(&["kept"]));
}

#[tokio::test]
async fn each_step_is_in_the_log_and_what_was_made_from_an_item_is_never_left_without_it() {
    let world = World::new().await;
    let mut sources = world.capture(&[note("a", &["s"])]).await;
    // Ids begin with the time: this one is later.
    world.clock.advance(Duration::from_secs(1));
    sources.extend(world.capture(&[note("b", &["s"])]).await);
    let mut made = Vec::new();
    for source in [&sources[0], &sources[0], &sources[1]] {
        let mut item = note("made", &["m"]);
        item["derived_from"] = json!([source]);
        made.extend(world.capture(&[item]).await);
    }
    let mut deleting = begun(&world, json!({"labels": ["s"]})).await;
    assert!(step(&world, &mut deleting).await.unwrap());
    let report = &deleting.done().cascade_report;
    assert_eq!((report.erased.len(), report.derived.len(), report.remaining), (0, 2, 3));
    end(&world, &mut deleting).await;
    let done = json!(deleting.done());
    let receipts = verified(&world, &done);
    let ends: Vec<u64> = receipts.iter().map(|one| one.receipt.scope.cascade.remaining).collect();
    assert_eq!(ends, [3, 1, 0]);
    assert_eq!(deleting.done().cascade_report.erased.len(), 2);
    assert_eq!(deleting.done().cascade_report.derived.len(), 3);
    let log = world.owner("GET", "/oap/audit?chain=personal&from=0&limit=1000", None).await.ok();
    let chained: Vec<&Value> = log["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|receipt| receipt["action_id"] == "memory.delete")
        .map(|receipt| &receipt["output_hash"])
        .collect();
    let hashes: Vec<Value> = receipts.iter().map(|one| json!(one.hash)).collect();
    assert_eq!(chained, hashes.iter().collect::<Vec<&Value>>());
    assert!(left(&world).await.is_empty());
    world.chains_hold().await;
}

/// What the owner's selectors would select that came since stays; and so does what does not fit any more.
#[tokio::test]
async fn what_came_or_changed_since_it_began_stays() {
    let world = World::new().await;
    let items: Vec<Value> = ["a", "b", "c", "d", "e"].map(|text| note(text, &["all"])).to_vec();
    let all = world.capture(&items).await;
    for what in [json!({"all": true}), json!({"labels": ["all"]}), json!({"items": all, "labels": ["all"]})] {
        // Nothing is erased by a deletion that has only begun.
        assert_eq!(begun(&world, what).await.open(), 5);
    }
    let mut deleting = begun(&world, json!({"labels": ["all"]})).await;
    assert!(step(&world, &mut deleting).await.unwrap());
    let gone: BTreeSet<String> =
        deleting.done().cascade_report.erased.iter().map(ToString::to_string).collect();
    let stays = all.iter().find(|id| !gone.contains(*id)).unwrap();
    let path = format!("/oap/owner/items/{stays}/relabel");
    world.owner("POST", &path, Some(&json!({"labels": ["kept"]}))).await.ok();
    let text = world.owner("GET", &format!("/oap/owner/items/{stays}"), None).await.ok();
    let text = text["item"]["content"]["text"].as_str().unwrap().to_owned();
    world.capture(&[note("later", &["all"])]).await;
    end(&world, &mut deleting).await;
    assert_eq!(deleting.done().cascade_report.erased.len(), 4);
    assert_eq!(left(&world).await, BTreeSet::from([text, "later".to_owned()]));
}

/// With nothing left that is selected, a step selects nothing: never everything.
#[tokio::test]
async fn a_deletion_that_is_over_takes_nothing_more() {
    let world = World::new().await;
    world.capture(&[note("a", &["all"]), note("b", &["all"])]).await;
    let mut deleting = begun(&world, json!({"all": true})).await;
    assert!(!step(&world, &mut deleting).await.unwrap());
    world.capture(&[note("later", &["all"])]).await;
    assert!(!step(&world, &mut deleting).await.unwrap());
    assert_eq!(deleting.done().deletion_receipts.len(), 1);
    assert_eq!(left(&world).await, some(&["later"]));

    let owner = world.proved().await;
    let nothing = serde_json::from_value(json!({"labels": ["none"]})).unwrap();
    let begun = Deletions(&world.gateway).begin(&owner, nothing, 2).await;
    assert!(matches!(begun, Err(Error::NothingMatched)));
    let unnamed = serde_json::from_value(json!({})).unwrap();
    let begun = Deletions(&world.gateway).begin(&owner, unnamed, 2).await;
    assert!(matches!(begun, Err(Error::Member(..))));
}

#[tokio::test]
async fn a_hold_that_comes_between_two_steps_is_kept() {
    let world = World::new().await;
    let items: Vec<Value> = ["a", "b", "c", "d"].map(|text| note(text, &["all"])).to_vec();
    let all = world.capture(&items).await;
    let mut deleting = begun(&world, json!({"all": true})).await;
    assert!(step(&world, &mut deleting).await.unwrap());
    let gone: BTreeSet<String> =
        deleting.done().cascade_report.erased.iter().map(ToString::to_string).collect();
    let held = all.iter().find(|id| !gone.contains(*id)).unwrap();
    let until = world.now().plus(Duration::from_secs(10 * 86_400));
    let hold = json!({"items": [held], "reason": "ongoing_dispute", "until": until});
    world.owner("POST", "/oap/owner/holds", Some(&hold)).await.ok();
    end(&world, &mut deleting).await;
    let done = json!(deleting.done());
    assert_eq!(done["cascade_report"]["held"], json!([held]));
    assert_eq!(deleting.done().cascade_report.erased.len(), 3);
    let last = done["deletion_receipts"].as_array().unwrap().last().unwrap();
    assert_eq!(last["exceptions"], json!([{"reason": "ongoing_dispute", "retention_until": "2026-05-11"}]));
    // Out of every view, kept for its owner until the hold ends.
    let shown = world.owner("GET", &format!("/oap/owner/items/{held}"), None).await.ok();
    assert_eq!(shown["item"]["status"], "retracted");
    verified(&world, &done);
}

/// As after a kill between two steps: what was committed stays, and the same ids again are answered, not refused.
#[tokio::test]
async fn one_that_is_lost_between_two_steps_is_begun_again() {
    let world = World::new().await;
    let items: Vec<Value> = ["a", "b", "c", "d", "e"].map(|text| note(text, &["all"])).to_vec();
    let all = world.capture(&items).await;
    let what = json!({"items": all});
    let mut lost = begun(&world, what.clone()).await;
    assert!(step(&world, &mut lost).await.unwrap());
    let gone = lost.done().cascade_report.erased.clone();
    drop(lost);
    assert_eq!(left(&world).await.len(), 3);
    let mut again = begun(&world, what).await;
    end(&world, &mut again).await;
    let report = &again.done().cascade_report;
    assert_eq!((&report.not_found, report.erased.len(), report.remaining), (&gone, 3, 0));
    let done = json!(again.done());
    let not_found: Vec<usize> =
        verified(&world, &done).iter().map(|one| one.receipt.scope.cascade.not_found.len()).collect();
    assert_eq!(not_found, [2, 0], "said once");
    assert!(left(&world).await.is_empty());
}

/// Each step tells of what it erased itself, under its own receipt.
#[tokio::test]
async fn each_step_notes_who_was_shown_what_it_erased() {
    let world = World::new().await;
    let all = world.capture(&[note("a", &["all"]), note("b", &["all"]), note("c", &["all"])]).await;
    let grantee = agent(2);
    world.ask(&grantee, &world.draft(&grantee), &json!({})).await;
    let mut deleting = begun(&world, json!({"all": true})).await;
    end(&world, &mut deleting).await;
    let done = json!(deleting.done());
    let mut told = Vec::new();
    for one in verified(&world, &done) {
        let path = format!("/oap/owner/deletions/{}", one.receipt.receipt_id);
        let report = world.owner("GET", &path, None).await.ok();
        let named = &one.receipt.scope.cascade.named;
        assert_eq!(report["grantees"][0]["grantee"], json!(grantee.did()), "{report}");
        assert_eq!(report["grantees"][0]["items"], json!(named), "{report}");
        told.extend(named.iter().map(ToString::to_string));
    }
    assert_eq!(told.len(), all.len());
    assert_eq!(told.into_iter().collect::<BTreeSet<String>>(), all.into_iter().collect());
}

/// The credential that began it has ended: the next step erases nothing.
#[tokio::test]
async fn a_lockdown_between_two_steps_ends_it() {
    let mut world = World::new().await;
    world.capture(&[note("a", &["all"]), note("b", &["all"]), note("c", &["all"])]).await;
    let owner = world.proved().await;
    let mut deleting = begun(&world, json!({"all": true})).await;
    let first = deleting.step(Deletions(&world.gateway), &owner).await.unwrap();
    assert!(first);
    let locked = world.owner("POST", "/oap/owner/lockdown", Some(&json!({}))).await.ok();
    world.token = locked["trust_token"].as_str().unwrap().to_owned();
    let ended = deleting.step(Deletions(&world.gateway), &owner).await;
    assert!(matches!(ended, Err(Error::Owner(_))), "{ended:?}");
    assert_eq!(deleting.done().deletion_receipts.len(), 1);
    assert_eq!(left(&world).await.len(), 1);
}

#[test]
fn the_command_deletes_many_by_a_job_and_keeps_every_receipt() {
    let home = Home::web();
    let items = MAX_STEP + 3;
    let lines = (0..items).map(|n| format!("{{\"id\": \"{n}\", \"text\": \"Note {n} of many\"}}\n"));
    std::fs::write(home.path("items.jsonl"), lines.collect::<String>()).unwrap();
    let _server = home.serve(&[]);
    home.run(&["import", &home.path("items.jsonl"), "--as", "many"]).ok();
    let file = home.path("receipts.json");
    let done = home.run(&["delete", "--all", "--yes", "--json", "--receipt", &file]).json();
    assert_eq!(done["cascade_report"]["erased"].as_array().unwrap().len(), items);
    assert_eq!((&done["gone_or_changed"], &done["came_since"]), (&json!(0), &json!(0)));
    let receipts = done["deletion_receipts"].as_array().unwrap();
    assert_eq!((receipts.len(), &done["deletion_receipt"]), (2, &receipts[0]));
    assert_eq!(crate::program::read(&file), done["deletion_receipts"]);
    let jobs = home.run(&["--json", "job", "list"]).json();
    let job = &jobs["jobs"][0];
    assert_eq!((&job["job"], &job["state"]), (&json!("delete"), &json!("done")));
    let shown = home.run(&["job", "show", job["job_id"].as_str().unwrap()]).ok();
    assert!(shown.contains(&format!("{items} item(s) erased")), "{shown}");

    // What one step takes is one request.
    home.run(&["item", "add", "--kind", "fact", "--text", "Tea at four"]).ok();
    assert!(home.run(&["delete", "--all", "--yes"]).ok().contains("1 item(s) erased"));
    assert_eq!(home.run(&["--json", "job", "list"]).json(), jobs);
}

//! `as_of`: what was remembered at a time, of what an agent may see now.

use super::*;
use oap_identity::Timestamp;

async fn as_of(world: &World, agent: &str, at: Timestamp) -> Value {
    told(world, agent, "memory_query", json!({"as_of": at, "limit": 100})).await
}

async fn explained(world: &World, agent: &str, item: &str, at: Timestamp) -> Answer {
    uses(world, agent, "memory_explain", json!({"item_id": item, "as_of": at})).await
}

/// What the graph has as facts at a time.
async fn in_graph(world: &World, agent: &str, at: Timestamp) -> Vec<String> {
    let sparql = "SELECT ?what WHERE { ?fact a brain:Fact ; brain:content ?what } ORDER BY ?what";
    let asked = json!({"sparql": sparql, "as_of": at});
    let found = told(world, agent, "memory_query", asked).await;
    let rows = found["sparql"]["results"]["bindings"].as_array().unwrap().clone();
    rows.iter().map(|row| row["what"]["value"].as_str().unwrap().to_owned()).collect()
}

async fn owner(world: &World, item: &str, event: &str, body: Value) {
    world.owner("POST", &format!("/oap/owner/items/{item}/{event}"), Some(&body)).await.ok();
}

/// Goes on by an hour: the time before.
fn goes_on(world: &World) -> Timestamp {
    let then = world.now();
    world.clock.advance(HOUR);
    then
}

#[tokio::test]
async fn what_was_remembered_at_a_time_is_told() {
    let world = agents(Config::default()).await;
    let before = goes_on(&world);
    let item = learned(&world, "scout", json!({"content": "The bridge is open", "topic": "roads"})).await;
    world.clock.advance(Duration::from_secs(1));
    let open = goes_on(&world);
    let closed_by_chief = json!({"item_id": item, "content": "The bridge is closed"});
    uses(&world, "chief", "memory_correct", closed_by_chief).await.ok();
    world.clock.advance(Duration::from_secs(1));
    let closed = goes_on(&world);
    owner(&world, &item, "correct", json!({"item": {"content": {"text": "The bridge is gone"}}})).await;
    world.clock.advance(Duration::from_secs(1));
    let gone = goes_on(&world);

    assert_eq!(contents(&as_of(&world, "editor", before).await), [""; 0]);
    for (at, says, version, by) in [
        (open, "The bridge is open", 1, "scout"),
        (closed, "The bridge is closed", 2, "chief"),
        (gone, "The bridge is gone", 3, "owner"),
    ] {
        let answer = as_of(&world, "editor", at).await;
        assert_eq!((&answer["matched"], &answer["as_of"]), (&json!(1), &json!(at)), "{answer}");
        let fact = &facts(&answer)[0];
        assert_eq!(
            (&fact["content"], &fact["version"], &fact["agent"]),
            (&json!(says), &json!(version), &json!(by))
        );
        // The receipt has the version that was told, and no other.
        let tag = format!("{item}@{}", fact["commitment"].as_str().unwrap());
        assert_eq!(last_receipt(&world).await["provenance_tags_out"], json!([tag]));
        assert_eq!(in_graph(&world, "editor", at).await, [says]);
        let answer = explained(&world, "editor", &item, at).await.ok();
        let then = &answer["structured"];
        assert_eq!((&then["fact"]["content"], &then["as_of"]), (&json!(says), &json!(at)), "{then}");
        assert_eq!(then["corrections"].as_array().unwrap().len(), version - 1, "{then}");
        assert_eq!(then["chain"].as_array().unwrap().len(), version, "{then}");
        assert!(answer["text"].as_str().unwrap().contains("As of"), "{answer}");
        assert!(in_graph(&world, "editor", before).await.is_empty());
    }
    // By whom, and what it said before it was corrected.
    let whole = explained(&world, "editor", &item, gone).await.ok()["structured"].clone();
    let wrote: Vec<&Value> =
        whole["corrections"].as_array().unwrap().iter().map(|said| &said["agent"]).collect();
    assert_eq!(wrote, [&json!("chief"), &json!("scout")]);
    // What is asked for is asked of what was there then.
    for (asked, count) in [
        (json!({"as_of": open, "agent": "scout"}), 1),
        (json!({"as_of": closed, "agent": "scout"}), 0),
        (json!({"as_of": open, "topic": "roads"}), 1),
        (json!({"as_of": open, "topic": "tea"}), 0),
    ] {
        assert_eq!(told_of(&world, asked.clone()).await, count, "{asked}");
    }
    let diff = async |since: Timestamp, at: Timestamp| {
        let differs = told(&world, "editor", "memory_diff", json!({"since": since, "as_of": at})).await;
        let sort = |sort: &str| {
            let facts = differs[sort].as_array().unwrap().clone();
            facts.iter().map(|fact| fact["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        (sort("learned"), sort("corrected"))
    };
    let none = Vec::<String>::new();
    assert_eq!(diff(before, open).await, (vec!["The bridge is open".to_owned()], none.clone()));
    assert_eq!(diff(open, closed).await, (none.clone(), vec!["The bridge is closed".to_owned()]));
    assert_eq!(diff(before, closed).await, (vec!["The bridge is closed".to_owned()], none));
    // Nobody knows what will be.
    let ahead = world.now().plus(HOUR);
    for (tool, asked) in [
        ("memory_query", json!({"as_of": ahead})),
        ("memory_query", json!({"as_of": ahead, "sparql": "ASK {}"})),
        ("memory_explain", json!({"as_of": ahead, "item_id": item})),
        ("memory_diff", json!({"as_of": ahead, "since": before})),
    ] {
        let refused = uses(&world, "editor", tool, asked).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains("as_of: must not lie ahead"), "{refused}");
    }
    let refused = explained(&world, "editor", &item, before).await.refused(400, "invalid_input");
    assert!(refused["message"].as_str().unwrap().contains("not remembered then"), "{refused}");
    world.chains_hold().await;
}

async fn told_of(world: &World, asked: Value) -> usize {
    facts(&told(world, "editor", "memory_query", asked).await).len()
}

/// By looking back nobody sees what they may not see now: what was erased, what is another's alone, what was taken back, what was restricted,
/// and what is believed no more.
#[tokio::test]
async fn looking_back_shows_nothing_that_is_hidden_now() {
    let world = agents(Config::default()).await;
    let item = async |content: &str, scope: &str| {
        learned(&world, "scout", json!({"content": content, "scope": scope, "level": "tool_verified"})).await
    };
    let erased = item("MARKER-ERASED", "local").await;
    let private = item("MARKER-PRIVATE", "private").await;
    let taken_back = item("MARKER-TAKEN-BACK", "local").await;
    let concluded = learned(&world, "scout", json!({"content": "MARKER-CONCLUDED"})).await;
    let code = json!({"kind": "fact", "content": {"text": "MARKER-RESTRICTED"}, "sensitivity": "restricted"});
    let code = world.capture(&[code]).await.remove(0);
    world.clock.advance(Duration::from_secs(1));
    let then = goes_on(&world);
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [erased]}))).await.ok();
    uses(&world, "scout", "memory_forget", json!({"item_id": taken_back})).await.ok();
    let open = json!({"item": {"content": {"text": "There is a code"}, "sensitivity": "internal"}});
    owner(&world, &code, "correct", open).await;
    world.clock.advance(DAY * 8);

    let everything = async |agent: &str| {
        let mut all = String::new();
        for (tool, asked) in [
            ("memory_query", json!({"as_of": then, "limit": 100})),
            ("memory_query", json!({"as_of": then, "agent": "scout"})),
            ("memory_diff", json!({"since": "2020-01-01T00:00:00Z", "as_of": then})),
            ("memory_query", json!({"as_of": then, "sparql": "SELECT * WHERE { GRAPH ?g { ?s ?p ?o } }"})),
            ("memory_query", json!({"as_of": then, "sparql": "SELECT * WHERE { ?s ?p ?o }"})),
            ("memory_explain", json!({"as_of": then, "item_id": erased})),
            ("memory_explain", json!({"as_of": then, "item_id": private})),
            ("memory_explain", json!({"as_of": then, "item_id": taken_back})),
            ("memory_explain", json!({"as_of": then, "item_id": concluded})),
            ("memory_explain", json!({"as_of": then, "item_id": code})),
        ] {
            all.push_str(&uses(&world, agent, tool, asked).await.body.to_string());
        }
        all
    };
    for agent in ["editor", "chief"] {
        let all = everything(agent).await;
        assert!(!all.contains("MARKER"), "{agent}: {all}");
    }
    // Its author is told of its own, but for what nobody has any more; of what was restricted, that something is not told.
    let all = everything("scout").await;
    for (marker, is_told) in [
        ("MARKER-ERASED", false),
        ("MARKER-PRIVATE", true),
        ("MARKER-TAKEN-BACK", true),
        ("MARKER-CONCLUDED", true),
        ("MARKER-RESTRICTED", false),
    ] {
        assert_eq!(all.contains(marker), is_told, "{marker}: {all}");
    }
    // What is hidden is not counted, and what is seen and not kept is.
    let answer = as_of(&world, "editor", then).await;
    assert_eq!((&answer["matched"], &answer["not_kept"]), (&json!(0), &json!(1)), "{answer}");
    let never = explained(&world, "editor", NEVER, then).await.refused(404, "not_found");
    for hidden in [&erased, &private, &taken_back, &concluded] {
        let refused = explained(&world, "editor", hidden, then).await.refused(404, "not_found");
        assert_eq!(refused["message"], never["message"], "{hidden}");
    }
    let refused = explained(&world, "editor", &code, then).await.refused(400, "invalid_input");
    assert!(refused["message"].as_str().unwrap().starts_with("as_of: "), "{refused}");
    world.chains_hold().await;
}

/// What had been taken back for a while was not remembered in that while; and it was believed as it is by its age then.
#[tokio::test]
async fn it_is_told_as_it_stood_and_was_believed_then() {
    let world = agents(Config::default()).await;
    let tool = json!({"content": "The tram runs", "level": "tool_verified"});
    let tram = learned(&world, "scout", tool).await;
    let guess = learned(&world, "scout", json!({"content": "It may rain", "staleness": "daily"})).await;
    world.clock.advance(HOUR);
    let first = goes_on(&world);
    owner(&world, &tram, "retract", json!({})).await;
    world.clock.advance(HOUR);
    let away = goes_on(&world);
    owner(&world, &tram, "restore", json!({})).await;
    owner(&world, &tram, "confirm", json!({"version": 1})).await;
    world.clock.advance(DAY);
    let second = world.now();
    world.clock.advance(DAY * 3);

    let told_at = async |agent: &str, at: Timestamp| {
        let mut told = contents(&as_of(&world, agent, at).await);
        told.sort();
        told
    };
    assert_eq!(told_at("editor", first).await, ["It may rain", "The tram runs"]);
    assert_eq!(told_at("editor", away).await, ["It may rain"]);
    assert_eq!(in_graph(&world, "editor", away).await, ["It may rain"]);
    assert_eq!(told_at("editor", second).await, ["It may rain", "The tram runs"]);
    // In that while its author knows that it was taken back, and nobody else that there was anything.
    let own = explained(&world, "scout", &tram, away).await.ok()["structured"].clone();
    assert_eq!(own["fact"]["content"], "The tram runs");
    assert!(own["retracted_at"].is_string(), "{own}");
    explained(&world, "editor", &tram, away).await.refused(400, "invalid_input");
    let fact = async |item: &str, at: Timestamp| {
        explained(&world, "editor", item, at).await.ok()["structured"]["fact"].clone()
    };
    assert_eq!(fact(&tram, first).await["human_verified"], false);
    assert_eq!(fact(&tram, second).await["human_verified"], true);
    let (young, old) = (fact(&guess, first).await, fact(&guess, second).await);
    assert_eq!((&young["confidence"], young.get("stale")), (&json!(0.6), None), "{young}");
    assert_eq!((&old["confidence"], &old["stale"]), (&json!(0.55), &json!(true)), "{old}");
    let now = told(&world, "editor", "memory_explain", json!({"item_id": guess})).await;
    assert_eq!(now["fact"]["confidence"], 0.4, "{now}");
}

/// A link is told of from when it was made.
#[tokio::test]
async fn links_are_told_of_from_when_they_were_made() {
    let world = agents(Config::default()).await;
    let one = learned(&world, "scout", json!({"content": "One"})).await;
    let other = learned(&world, "scout", json!({"content": "Other"})).await;
    world.clock.advance(Duration::from_secs(1));
    let before = goes_on(&world);
    link(&world, "scout", &one, &other).await;
    world.clock.advance(Duration::from_secs(1));
    let after = goes_on(&world);
    let ask = "ASK { ?one rel:supports ?other }";
    for (at, links) in [(before, 0), (after, 1)] {
        let told_then = explained(&world, "editor", &one, at).await.ok()["structured"].clone();
        let there = told_then["fact"]["links"].as_array().map_or(0, Vec::len);
        assert_eq!(there, links, "{told_then}");
        let asked = told(&world, "editor", "memory_query", json!({"sparql": ask, "as_of": at})).await;
        assert_eq!(asked["sparql"]["boolean"], json!(links == 1), "{asked}");
    }
}

/// Which agent wrote what an item said before, for its owner; gone with that version.
#[tokio::test]
async fn the_history_names_the_agent_of_each_version() {
    let world = agents(Config::default()).await;
    let item = learned(&world, "scout", json!({"content": "Tea at four"})).await;
    world.clock.advance(HOUR);
    uses(&world, "chief", "memory_correct", json!({"item_id": item, "content": "Tea at five"})).await.ok();
    owner(&world, &item, "correct", json!({"item": {"content": {"text": "Tea at six"}}})).await;
    let history = async || world.owner("GET", &format!("/oap/owner/items/{item}/history"), None).await.ok();
    let shown = history().await;
    let wrote: Vec<&Value> =
        shown["events"].as_array().unwrap().iter().map(|event| &event["agent"]).collect();
    assert_eq!(wrote, [&json!("scout"), &json!("chief"), &Value::Null], "{shown}");
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [item]}))).await.ok();
    let shown = history().await.to_string();
    assert!(!shown.contains("scout") && !shown.contains("chief"), "{shown}");
}

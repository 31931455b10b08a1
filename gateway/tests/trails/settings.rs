//! What the owner says is usual, by `config.toml` or a `trails.toml`; what is of no use at a start; and what a refusal leaves.

use super::*;
use crate::program::{BINARY, Home, Server};
use oap_agents::staleness::Staleness;
use oap_gateway::service::Tools;
use oap_gateway::system::trails::BrainIri;
use oap_memory::record::Visibility;
use std::process::{Command, Stdio};

#[tokio::test]
async fn what_an_agent_does_not_say_is_as_the_owner_has_it() {
    let world = agents(Config {
        brain_scope: Visibility::Private,
        brain_staleness: Some(Staleness::Daily),
        brain_max_facts: 2,
        ..Config::default()
    })
    .await;
    let first = told(&world, "scout", "memory_learn", json!({"content": "One"})).await;
    assert_eq!((&first["scope"], first.get("warning")), (&json!("private"), None), "{first}");
    // What is said goes before what is usual.
    let second = told(
        &world,
        "scout",
        "memory_learn",
        json!({"content": "Two", "scope": "local", "staleness": "stable"}),
    )
    .await;
    assert_eq!((&second["scope"], second.get("warning")), (&json!("local"), None), "{second}");
    // A bound that is no bound: it is kept, and its writer is told.
    let third = uses(&world, "scout", "memory_learn", json!({"content": "Three"})).await.ok();
    let warning = third["structured"]["warning"].as_str().unwrap();
    assert!(warning.contains("the 2 that the owner wants"), "{third}");
    assert!(third["text"].as_str().unwrap().contains(warning), "{third}");
    let status = told(&world, "scout", "memory_status", json!({})).await;
    assert_eq!((&status["facts"], &status["over_limit"]), (&json!(3), &json!(true)), "{status}");
    // Of what others have for themselves nobody is told, not its number either.
    let status = told(&world, "editor", "memory_status", json!({})).await;
    assert_eq!((&status["facts"], status.get("over_limit")), (&json!(1), None), "{status}");
    let own = told(&world, "editor", "memory_learn", json!({"content": "Four"})).await;
    assert_eq!(own.get("warning"), None, "{own}");
    world.clock.advance(DAY + HOUR);
    let listed = told(&world, "scout", "memory_query", json!({})).await;
    let stale: Vec<(String, bool)> = facts(&listed)
        .iter()
        .map(|fact| (fact["content"].as_str().unwrap().to_owned(), fact["stale"] == true))
        .collect();
    let is_stale = |content: &str| stale.iter().find(|(said, _)| said == content).unwrap().1;
    assert!(is_stale("One") && !is_stale("Two") && is_stale("Three"), "{stale:?}");
}

#[tokio::test]
async fn a_start_takes_away_what_is_of_no_use() {
    let world = World::new().await;
    assert_eq!(Tools(&world.gateway).compact_on_start().await.unwrap(), None, "nobody may");
    drop(world);
    let world = agents(Config::default()).await;
    let stale = json!({"content": "Now", "staleness": "volatile", "level": "tool_verified"});
    let stale = learned(&world, "scout", stale).await;
    let fresh = learned(&world, "scout", json!({"content": "Then", "level": "tool_verified"})).await;
    let private =
        json!({"content": "Mine", "staleness": "volatile", "scope": "private", "level": "tool_verified"});
    let private = learned(&world, "scout", private).await;
    world.clock.advance(HOUR);
    assert_eq!(Tools(&world.gateway).compact_on_start().await.unwrap(), Some(1));
    let there =
        async |item: &str| uses(&world, "scout", "memory_explain", json!({"item_id": item})).await.ok();
    assert!(there(&stale).await["structured"]["retracted_at"].is_string());
    // As an agent that may: what that one does not see stays.
    for item in [&fresh, &private] {
        assert_eq!(there(item).await["structured"].get("retracted_at"), None, "{item}");
    }
    // It is in the owner's log, by whom, and another start finds nothing.
    let recorded = world.owner("GET", "/oap/audit?chain=@agents&limit=1000", None).await.ok();
    let compacts = |receipt: &&Value| receipt["policy_decisions"][0]["tool"] == "memory_compact";
    let receipts = recorded["receipts"].as_array().unwrap();
    let receipt = receipts.iter().rev().find(compacts).unwrap();
    let tag = receipt["provenance_tags_out"][0].as_str().unwrap();
    assert!(tag.starts_with(&format!("{stale}@")), "{receipt}");
    assert_eq!(Tools(&world.gateway).compact_on_start().await.unwrap(), Some(0));
    world.chains_hold().await;
}

/// The name that the owner gives the graph is that of its facts, at both ends of a link.
#[tokio::test]
async fn facts_have_the_iris_of_the_brain() {
    let brain_iri = Some(BrainIri::try_from("https://trails.example/brain/".to_owned()).unwrap());
    let world = agents(Config { brain_iri, ..Config::default() }).await;
    let one = learned(&world, "scout", json!({"content": "One"})).await;
    let other = learned(&world, "scout", json!({"content": "Other"})).await;
    link(&world, "scout", &one, &other).await;
    let sparql = format!(
        "ASK {{ <https://trails.example/brain/fact/{one}> a brain:Fact ; rel:supports <https://trails.example/brain/fact/{other}> }}"
    );
    let asked = told(&world, "editor", "memory_query", json!({"sparql": sparql})).await;
    assert_eq!(asked["sparql"]["boolean"], true, "{asked}");
}

/// What an agent asked and was refused stands in the owner's log: that it was asked, by whom, and nothing of the memory. So often a minute.
#[tokio::test]
async fn a_refused_query_leaves_a_receipt_and_not_many() {
    let world = agents(Config::default()).await;
    learned(&world, "scout", json!({"content": "MARKER"})).await;
    let service = "SELECT * WHERE { SERVICE <https://elsewhere.example/> { ?s ?p ?o } }";
    uses(&world, "editor", "memory_query", json!({"sparql": service})).await.refused(400, "invalid_input");
    let receipt = last_receipt(&world).await;
    assert_eq!(receipt["policy_decisions"][0]["outcome"], "block", "{receipt}");
    assert_eq!(receipt["provenance_tags_out"].as_array().map_or(0, Vec::len), 0, "{receipt}");
    assert!(receipt["output_hash"].is_null(), "{receipt}");
    assert!(receipt["input_hash"].is_string() && !receipt.to_string().contains("elsewhere"), "{receipt}");
    for _ in 0..40 {
        uses(&world, "editor", "memory_query", json!({"sparql": "ASK {"}))
            .await
            .refused(400, "invalid_input");
    }
    let recorded = world.owner("GET", "/oap/audit?chain=@agents&limit=1000", None).await.ok();
    let blocks = |receipt: &&Value| receipt["policy_decisions"][0]["outcome"] == "block";
    assert_eq!(recorded["receipts"].as_array().unwrap().iter().filter(blocks).count(), 30);
    // It is no answer: the agent was given nothing.
    let injected = world.owner("GET", "/oap/owner/agents/editor/injected", None).await.ok();
    assert_eq!(injected["answers"], json!([]), "{injected}");
    world.chains_hold().await;
}

/// What is rejected is what was read: judged in the transaction, as is that the other one stays.
#[tokio::test]
async fn a_rejection_is_of_the_version_that_was_read() {
    let world = agents(Config::default()).await;
    let waits = learned(&world, "scout", json!({"content": "Tea at four"})).await;
    let stays = world.capture(&[note("Tea is at four", &[])]).await.remove(0);
    let gone = world.capture(&[note("Tea is never", &[])]).await.remove(0);
    world.owner("POST", &format!("/oap/owner/items/{gone}/retract"), Some(&json!({}))).await.ok();
    world.clock.advance(HOUR);
    uses(&world, "scout", "memory_correct", json!({"item_id": waits, "content": "Tea at five"})).await.ok();
    let reject = async |item: &str, rejection: Value| {
        world.owner("POST", &format!("/oap/owner/items/{item}/reject"), Some(&rejection)).await
    };
    let refused = reject(&waits, json!({"version": 1})).await.refused(409, "conflict");
    assert!(refused["message"].as_str().unwrap().contains("version 2"), "{refused}");
    reject(&waits, json!({})).await.refused(400, "invalid_input");
    reject(&waits, json!({"version": 2, "into": waits})).await.refused(400, "invalid_input");
    for into in [gone.as_str(), NEVER] {
        reject(&waits, json!({"version": 2, "into": into})).await.refused(409, "conflict");
    }
    reject(&stays, json!({"version": 1})).await.refused(409, "conflict");
    reject(NEVER, json!({"version": 1})).await.refused(404, "not_found");
    assert_eq!(told(&world, "editor", "memory_query", json!({})).await["matched"], 2);
    reject(&waits, json!({"version": 2, "into": stays})).await.ok();
    assert_eq!(contents(&told(&world, "editor", "memory_query", json!({})).await), ["Tea is at four"]);
    world.chains_hold().await;
}

const ADR: &str = r#"
[project]
name = "my-brain"
base_iri = "https://trails.dev/brain/my-project/"
[graph]
backend = "oxigraph"
mode = "persistent"
path = ".trails/brain.db"
[brain]
default_scope = "local" # local | shared | private
default_staleness = "weekly" # stable | weekly | daily | hourly | volatile
compact_on_startup = false # run compaction when server starts
max_facts = 100000 # soft limit, warns when exceeded
"#;

/// The ADR's file, to the letter, in place of a home: its path is honoured, its settings are under the owner's own, and what is in force is shown.
#[test]
fn a_gateway_is_made_by_a_trails_toml() {
    let home = Home::empty();
    let file = home.path("trails.toml");
    std::fs::write(&file, ADR).unwrap();
    let run = |place: &str, arguments: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(["--home", place]).args(arguments).stdin(Stdio::null());
        command.env_remove("RUST_LOG");
        Home::finish(&mut command)
    };
    run(&file, &["init", "--did", "did:key", "--key-file", &home.path("key")]).ok();
    let folder = home.path(".trails/brain.db");
    assert!(std::fs::metadata(format!("{folder}/config.toml")).unwrap().is_file());
    // By its folder, too: config.toml names the file.
    for place in [&file, &folder] {
        let shown = run(place, &["--json", "config", "trails"]).json();
        let key = |name: &str| shown["keys"][name].clone();
        assert_eq!(shown["keys"].as_object().unwrap().len(), 9, "{shown}");
        assert_eq!(key("brain.default_staleness")["in_force"], "weekly", "{shown}");
        assert_eq!(key("brain.default_staleness")["from"], "trails.toml", "{shown}");
        assert_eq!(key("project.name")["in_force"], "my-brain", "{shown}");
        assert_eq!(shown["warnings"], json!([]));
        let config = run(place, &["--json", "config", "show"]).json();
        assert_eq!(config["brain_staleness"], json!({"value": "weekly", "from": "trails.toml"}));
    }
    let server = Server::start({
        let mut command = Command::new(BINARY);
        command.env_remove("RUST_LOG").stdin(Stdio::null());
        command.args(["--home", &file, "serve", "--listen", &format!("127.0.0.1:{}", home.port)]);
        command
    });
    assert_eq!(server.stop().0, 0);
    // The owner's own goes before it.
    let own = format!("{folder}/config.toml");
    let text = std::fs::read_to_string(&own).unwrap();
    std::fs::write(&own, format!("brain_staleness = \"daily\"\n{text}")).unwrap();
    let shown = run(&folder, &["--json", "config", "trails"]).json();
    let staleness = &shown["keys"]["brain.default_staleness"];
    assert_eq!((&staleness["value"], &staleness["in_force"]), (&json!("weekly"), &json!("daily")), "{shown}");
    assert_eq!(staleness["from"], "config.toml", "{shown}");
    // What is wrong is said before anything is opened, with the key and the fix.
    std::fs::write(&file, ADR.replace("max_facts", "maximum")).unwrap();
    for place in [&file, &folder] {
        let ran = run(place, &["config", "trails"]);
        assert!(ran.status != 0, "{ran:?}");
        for part in ["maximum", "max_facts", "config.toml", "trails.toml"] {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
    }
    std::fs::write(&file, ADR.replace(".trails/brain.db", "../elsewhere")).unwrap();
    let ran = run(&file, &["config", "show"]);
    assert!(ran.status == 2 && ran.stderr.contains("graph.path"), "{ran:?}");
    std::fs::write(&file, ADR.replace("oxigraph", "rocksdb")).unwrap();
    let shown = run(&folder, &["--json", "config", "trails"]).json();
    assert!(shown["warnings"][0].as_str().unwrap().contains("graph.backend"), "{shown}");
}

/// The attack: a file of somebody else's lies where the program is started. Nobody named it, and nobody reads it.
#[test]
fn a_trails_toml_that_merely_lies_there_is_not_read() {
    let home = Home::key();
    let folder = home.path("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(format!("{folder}/trails.toml"), "[brain]\ndefault_scope = \"shared\"\n").unwrap();
    let mut command = home.command(&["--json", "config", "show"]);
    let config = Home::finish(command.current_dir(&folder)).json();
    assert_eq!(config["brain_scope"], json!({"value": "local", "from": "default"}));
    home.run(&["config", "trails"]).failed(2, "no trails.toml is read");
}

//! The probes against the real gateway in memory: the honest one fails none, whatever the seed.

#[path = "../../gateway/tests/common/mod.rs"]
mod common;
mod support;

use axum::body::Body;
use common::*;
use oap_conformance::probe::{self, Limits, Outcome, Reply, Request, Setup, Wire, context::Pending};
use oap_identity::random::Seeded;
use serde_json::{Value, json};

struct Inside<'a>(&'a World);

impl Wire for Inside<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move {
            let mut made = axum::http::Request::builder().method(request.method).uri(&request.path);
            for (name, value) in &request.headers {
                made = made.header(name, value);
            }
            let made = made.body(Body::from(request.body.unwrap_or_default())).map_err(|e| e.to_string())?;
            let answer = self.0.send(made).await;
            Ok(Reply { status: answer.status.as_u16(), bytes: answer.bytes })
        })
    }
}

impl Setup for Inside<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value> {
        Box::pin(async move {
            let world = self.0;
            let (path, body) = match command["do"].as_str().unwrap_or_default() {
                "capture" => ("/oap/owner/items".to_owned(), json!({"items": command["items"]})),
                "grant" => ("/oap/owner/grants".to_owned(), command["draft"].clone()),
                "revoke" => {
                    (format!("/oap/owner/grants/{}/revoke", command["grant_id"].as_str().unwrap()), json!({}))
                }
                "correct" => (
                    format!("/oap/owner/items/{}/correct", command["item_id"].as_str().unwrap()),
                    json!({"item": command["item"]}),
                ),
                "delete" => ("/oap/data/delete".to_owned(), json!({"items": command["item_ids"]})),
                other => return Err(format!("{other:?} is no command")),
            };
            let answer = world.owner("POST", &path, Some(&body)).await;
            if answer.status != 200 {
                return Err(answer.body["message"].to_string());
            }
            let mut done = answer.body;
            if command["do"] == "capture" {
                let items = done["items"].as_array().cloned().unwrap_or_default();
                done["item_ids"] = items.iter().map(|item| item["item_id"].clone()).collect();
            }
            Ok(done)
        })
    }
}

async fn run(world: &World, seed: u64, setup: bool) -> probe::Report {
    let inside = Inside(world);
    let setup = setup.then_some(&inside as &dyn Setup);
    let random = Seeded::new(seed);
    probe::run(ORIGIN, &inside, setup, &*world.clock, &random, Limits::default(), &mut |_| {}).await
}

#[tokio::test]
async fn the_honest_gateway_fails_no_probe() {
    // CI asks for a hundred.
    let seeds = std::env::var("OAP_PROBE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    for seed in 0..seeds {
        let world = World::with(seed + 1, oap_gateway::Config::default()).await;
        let report = run(&world, seed, true).await;
        assert!(report.failures().is_empty(), "seed {seed}:\n{}", report.text());
        let skipped: Vec<_> = report
            .results
            .iter()
            .filter(|r| matches!(r.outcome, Outcome::Skipped(_)))
            .map(|r| &r.id)
            .collect();
        assert!(skipped.is_empty(), "{skipped:?}");
    }
}

#[tokio::test]
async fn without_the_owners_side_the_public_probes_are_made() {
    let world = World::new().await;
    let report = run(&world, 1, false).await;
    assert!(report.failures().is_empty(), "{}", report.text());
    let passed = report.results.iter().filter(|r| r.outcome == Outcome::Passed).count();
    assert!(passed >= 9 && passed < report.results.len());
}

#[tokio::test]
async fn orders_differ_with_the_seed_and_repeat_with_it() {
    let world = World::new().await;
    let order =
        async |seed| run(&world, seed, false).await.results.into_iter().map(|r| r.id).collect::<Vec<_>>();
    assert_eq!(order(1).await, order(1).await);
    assert_ne!(order(1).await, order(2).await);
}

#[tokio::test]
async fn a_run_is_bounded() {
    let world = World::new().await;
    let inside = Inside(&world);
    let limits = Limits { requests: 10 };
    let report =
        probe::run(ORIGIN, &inside, Some(&inside), &*world.clock, &Seeded::new(1), limits, &mut |_| {}).await;
    assert_eq!(report.requests, 10);
    assert!(report.failures().is_empty());
}

/// Every requirement that can be seen from outside has a probe, and no probe checks what is none.
#[test]
fn coverage_is_whole() {
    let probes = probe::all();
    for requirement in probe::requirements::ALL {
        let covered = probes.iter().any(|p| p.checks.contains(&requirement.id));
        assert_eq!(covered, requirement.unseen.is_none(), "{}", requirement.id);
    }
    for probe in &probes {
        assert!(probe.checks.iter().all(|id| probe::requirements::of(id).is_some()), "{}", probe.id);
    }
    let ids: std::collections::BTreeSet<_> = probes.iter().map(|p| p.id).collect();
    assert_eq!(ids.len(), probes.len());
}

/// A gateway with one fault, on its way out or on its owner's side.
struct Rogue<'a> {
    inside: Inside<'a>,
    fault: fn(&Request, Reply) -> Reply,
    owner: fn(Value) -> Value,
    /// Receipts of answers that were changed and sealed anew; the log shows them instead of its own.
    sealed: std::sync::Mutex<Vec<Value>>,
}

impl Wire for Rogue<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move {
            let honest = self.inside.send(request.clone()).await?;
            let before = honest.json();
            let reply = (self.fault)(&request, honest);
            Ok(self.sealed(&request, &before, reply))
        })
    }
}

impl Rogue<'_> {
    /// A changed answer with the gateway's signatures over it, and a log that agrees.
    fn sealed(&self, request: &Request, before: &Value, reply: Reply) -> Reply {
        let mut body = reply.json();
        let mut sealed = self.sealed.lock().unwrap();
        if is_query(request) && reply.status == 200 && body["receipt"].is_object() && body != *before {
            support::reseal(self.inside.0, before, &mut body);
            sealed.push(body["receipt"].clone());
            return edit(reply, |all| *all = body.clone());
        }
        if request.path.starts_with("/oap/audit") && reply.status == 200 && !sealed.is_empty() {
            return edit(reply, |log| {
                for receipt in log["receipts"].as_array_mut().into_iter().flatten() {
                    if let Some(own) = sealed.iter().find(|own| own["receipt_id"] == receipt["receipt_id"]) {
                        *receipt = own.clone();
                    }
                }
            });
        }
        reply
    }
}

impl Setup for Rogue<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value> {
        self.inside.call((self.owner)(command))
    }
}

fn edit(reply: Reply, change: impl Fn(&mut Value)) -> Reply {
    let mut body = reply.json();
    change(&mut body);
    Reply { status: reply.status, bytes: serde_json::to_vec(&body).unwrap() }
}

fn is_query(request: &Request) -> bool {
    request.path == "/oap/memory/query"
}

fn as_it_is(command: Value) -> Value {
    command
}

fn untouched(_: &Request, reply: Reply) -> Reply {
    reply
}

fn widened(mut command: Value, change: impl Fn(&mut Value)) -> Value {
    if command["do"] == "grant" {
        change(&mut command["draft"]);
    }
    command
}

/// One fault each, and the probe that is meant for it.
#[tokio::test]
async fn rogues_are_caught_by_the_probe_meant_for_them() {
    type Fault = fn(&Request, Reply) -> Reply;
    type Owner = fn(Value) -> Value;
    let rogues: Vec<(&str, &str, Fault, Owner)> = vec![
        ("skips projection", "projection", untouched, |c| widened(c, |d| d["trust_level"] = json!(4))),
        ("ignores the filter", "filter", untouched, |c| widened(c, |d| d["filter"] = json!({}))),
        ("forgets excluded labels", "filter", untouched, |c| {
            widened(c, |d| drop(d["filter"].as_object_mut().unwrap().remove("exclude_labels")))
        }),
        ("does not count items", "max-items", untouched, |c| widened(c, |d| d["max_items"] = json!(50))),
        ("shows restricted items", "filter", untouched, |c| {
            widened(c, |d| d["filter"]["sensitivities"] = json!(["internal", "restricted"]))
        }),
        ("gives embeddings to anybody", "embeddings-by-default", untouched, |c| {
            widened(c, |d| d["embedding_access"] = json!(true))
        }),
        ("hands out bearer tokens", "token-bound", untouched, |c| widened(c, |d| d["bearer"] = json!(true))),
        ("allows exports to all", "export", untouched, |c| {
            widened(c, |d| d["operations"] = json!(["query", "export"]))
        }),
        ("does not revoke", "grant-revoked", untouched, |c| {
            if c["do"] == "revoke" { json!({"do": "capture", "items": [note("x", &[])]}) } else { c }
        }),
        ("does not delete", "deletion", untouched, |c| {
            if c["do"] == "delete" { json!({"do": "capture", "items": [note("x", &[])]}) } else { c }
        }),
        ("does not correct", "correction", untouched, |c| {
            if c["do"] == "correct" { json!({"do": "capture", "items": [note("x", &[])]}) } else { c }
        }),
        (
            "cuts chains",
            "memory-exchange-possession",
            |request, reply| {
                if !is_query(request) {
                    return reply;
                }
                edit(reply, |body| {
                    for item in body["items"].as_array_mut().into_iter().flatten() {
                        item["integrity"]["chain"].as_array_mut().map(Vec::pop);
                    }
                })
            },
            as_it_is,
        ),
        (
            "strips signatures from links",
            "memory-exchange-possession",
            |request, reply| {
                if !is_query(request) {
                    return reply;
                }
                edit(reply, |body| {
                    for item in body["items"].as_array_mut().into_iter().flatten() {
                        item["integrity"]["chain"][0].as_object_mut().map(|link| link.remove("signature"));
                    }
                })
            },
            as_it_is,
        ),
        (
            "answers without a receipt",
            "memory-exchange-possession",
            |request, reply| {
                if is_query(request) { edit(reply, |body| body["receipt"] = Value::Null) } else { reply }
            },
            as_it_is,
        ),
        (
            "keeps no log",
            "memory-exchange-possession",
            |request, reply| {
                if request.path.starts_with("/oap/audit") {
                    edit(reply, |body| body["receipts"] = json!([]))
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "rewrites content after signing",
            "memory-exchange-possession",
            |request, reply| {
                if !is_query(request) {
                    return reply;
                }
                edit(reply, |body| {
                    for item in body["items"].as_array_mut().into_iter().flatten() {
                        item["labels"] = json!(["rewritten"]);
                    }
                })
            },
            as_it_is,
        ),
        (
            "reorders the answer",
            "max-results",
            |request, reply| {
                if !is_query(request) {
                    return reply;
                }
                edit(reply, |body| {
                    for (n, item) in body["items"].as_array_mut().into_iter().flatten().enumerate() {
                        item["relevance"] = json!(n as f64 / 10.0);
                    }
                })
            },
            as_it_is,
        ),
        (
            "raises belief to knowledge",
            "belief-stays-belief",
            |request, reply| {
                if !is_query(request) {
                    return reply;
                }
                edit(reply, |body| {
                    for item in body["items"].as_array_mut().into_iter().flatten() {
                        item["epistemic"] = json!("knowledge");
                    }
                })
            },
            as_it_is,
        ),
        (
            "publishes an unsigned manifest",
            "memory-manifest-signed",
            |request, reply| {
                if request.path.ends_with("oap-memory.json") {
                    edit(reply, |body| drop(body.as_object_mut().unwrap().remove("signature")))
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "declares limits that it does not have",
            "grant-limits",
            |request, reply| {
                if request.path.ends_with("oap-memory.json") {
                    edit(reply, |body| body["max_grant_size_items"] = json!(10))
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "serves anybody",
            "anonymous-query",
            |request, reply| {
                if is_query(request) && reply.status == 401 {
                    Reply { status: 200, bytes: b"{\"items\": []}".to_vec() }
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "answers errors without a code",
            "errors",
            |_, reply| {
                if reply.status >= 400 {
                    Reply { status: reply.status, bytes: b"no".to_vec() }
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "shows everybody's receipts",
            "receipts-of-others",
            |request, reply| {
                if request.path.starts_with("/oap/audit") {
                    edit(reply, |body| {
                        let first = body["receipts"][0].clone();
                        let mut other = first;
                        other["agent_did"] = json!("did:web:somebody.example");
                        if let Some(all) = body["receipts"].as_array_mut() {
                            all.push(other);
                        }
                    })
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "tells how many items are hidden",
            "labels-outside",
            |request, reply| {
                let text = String::from_utf8_lossy(request.body.as_deref().unwrap_or_default()).into_owned();
                // A label that is known makes the answer one byte longer.
                if is_query(request)
                    && text.contains("labels_any")
                    && KNOWN.lock().unwrap().iter().any(|l| text.contains(l.as_str()))
                {
                    let mut bytes = reply.bytes;
                    bytes.push(b' ');
                    return Reply { status: reply.status, bytes };
                }
                reply
            },
            |command| {
                if command["do"] == "capture" {
                    for item in command["items"].as_array().into_iter().flatten() {
                        for label in item["labels"].as_array().into_iter().flatten() {
                            KNOWN.lock().unwrap().push(label.as_str().unwrap().to_owned());
                        }
                    }
                }
                command
            },
        ),
        (
            "serves a manifest of another principal",
            "memory-manifest-signed",
            |request, reply| {
                if request.path.ends_with("oap-memory.json") {
                    edit(reply, |body| body["principal"] = json!("did:web:somebody.example"))
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "changes the tool manifest behind the signed one",
            "tool-manifest-agrees",
            |request, reply| {
                if request.path.ends_with("oap-tool.json") {
                    edit(reply, |body| body["risk_class"] = json!("high"))
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "swaps the chains of two items",
            "memory-exchange-possession",
            |request, reply| {
                if !is_query(request) {
                    return reply;
                }
                edit(reply, |body| {
                    let chains: Vec<Value> = body["items"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(|item| item["integrity"]["chain"].clone())
                        .collect();
                    for (n, item) in body["items"].as_array_mut().into_iter().flatten().enumerate() {
                        item["integrity"]["chain"] = chains[(n + 1) % chains.len()].clone();
                    }
                    // One item alone has nobody to swap with.
                    if chains.len() == 1 {
                        body["items"][0]["integrity"]["chain"][0]["item_id"] =
                            json!("mem_01M7YSCNYMS8E27HX54GMC7CC3");
                    }
                })
            },
            as_it_is,
        ),
        (
            "names another capture receipt",
            "memory-exchange-possession",
            |request, reply| {
                if !is_query(request) {
                    return reply;
                }
                edit(reply, |body| {
                    for item in body["items"].as_array_mut().into_iter().flatten() {
                        item["integrity"]["capture_receipt"]["timestamp"] = json!("2026-01-01T00:00:00Z");
                    }
                })
            },
            as_it_is,
        ),
        (
            "signs the receipt of another answer",
            "memory-exchange-possession",
            |request, reply| {
                if !is_query(request) {
                    return reply;
                }
                edit(reply, |body| body["receipt"]["output_hash"] = json!(oap_identity::Hash::of(b"another")))
            },
            as_it_is,
        ),
        (
            "fails with a stack trace on bad input",
            "hostile-bodies",
            |request, reply| {
                if request.path == "/oap/memory/grant" && reply.status == 400 {
                    Reply { status: 500, bytes: b"panicked at src/main.rs".to_vec() }
                } else {
                    reply
                }
            },
            as_it_is,
        ),
        (
            "names items in the public log",
            "anonymous-audit",
            |request, reply| {
                if request.path.starts_with("/oap/audit") {
                    edit(reply, |body| {
                        for receipt in body["receipts"].as_array_mut().into_iter().flatten() {
                            receipt["provenance_tags_out"] =
                                json!(["mem_01M7YSCNYMS8E27HX54GMC7CC3@sha256:0"]);
                        }
                    })
                } else {
                    reply
                }
            },
            as_it_is,
        ),
    ];
    assert!(rogues.len() >= 30, "{}", rogues.len());
    for (name, meant, fault, owner) in rogues {
        let world = World::new().await;
        let rogue = Rogue { inside: Inside(&world), fault, owner, sealed: std::sync::Mutex::default() };
        let report = probe::run(
            ORIGIN,
            &rogue,
            Some(&rogue),
            &*world.clock,
            &Seeded::new(7),
            Limits::default(),
            &mut |_| {},
        )
        .await;
        let failed: Vec<&str> = report.failures().iter().map(|f| f.id.as_str()).collect();
        assert!(failed.contains(&meant), "{name} is not caught by {meant}, only by {failed:?}");
        let result = report.results.iter().find(|r| r.id == meant).unwrap();
        let Outcome::Failed(why) = &result.outcome else { unreachable!() };
        assert!(
            !why.contains("the answer's signature"),
            "{name} is caught only because it does not sign: {why}"
        );
    }
}

static KNOWN: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

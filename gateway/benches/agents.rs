//! What the owner's agents get of their memory: `cargo bench -p oap-gateway --bench agents`.
//!
//! `OAP_BENCH_ITEMS` is how many facts there are (100,000), `OAP_BENCH_SECONDS` how long each rate is measured (2), `OAP_BENCH_DIR`
//! where the store goes. The store is redb on disk; every call is judged, and its receipt durable before its answer is there.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

#[path = "../tests/common/mod.rs"]
mod common;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::post;
use common::*;
use oap_gateway::Config;
use oap_gateway::api::agents::ToolCall;
use oap_gateway::service::{Items, Tools};
use oap_gateway::state::agents::Agent;
use oap_gateway::state::owner::mark::Read;
use oap_identity::Random;
use oap_identity::random::Seeded;
use oap_store::{EngineKind, FileVault, Master, Space, Store};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tikv_jemallocator::Jemalloc;
use tower::ServiceExt;
use zeroizing_alloc::ZeroAlloc;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<Jemalloc> = ZeroAlloc(Jemalloc);

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn store(folder: &Path) -> Store {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(5));
    let master = Master::KeyFile(zeroize::Zeroizing::new([3; 32]));
    FileVault::create(&folder.join("vault"), &master, &*random).unwrap();
    let vault = FileVault::open(&folder.join("vault"), &master).unwrap();
    Store::open(EngineKind::Redb.open(&folder.join("store"), &Space::endless()).unwrap(), vault, random)
        .unwrap()
}

/// A fact of a dozen words out of two thousand.
fn fact(number: usize) -> String {
    let mut mixed = number as u64;
    let mut word = || {
        mixed = mixed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("word{}", (mixed >> 33) % 2000)
    };
    (0..12).map(|_| word()).collect::<Vec<_>>().join(" ")
}

fn row(what: &str, value: String, limit: &str) {
    println!("{what:<58} {value:>22}   {limit}");
}

/// A lookup in SPARQL of what one fact says.
const LOOKUP: &str = "memory_query in SPARQL, by subject";
/// A number in SPARQL, of the facts of a topic that say something.
const COUNT: &str = "memory_query in SPARQL, COUNT with FILTER";
/// The topic of what is counted, to which nothing is learned while rates are measured: an answer reads 1000 versions at most.
const COUNTED: &str = "counted";

/// What one call sends.
fn call(what: &str, number: usize, learned: &[String]) -> ToolCall {
    let item = || &learned[number % learned.len()];
    let (tool, arguments) = match what {
        "memory_learn" => (what, json!({"content": fact(number), "topic": "bench"})),
        "memory_recall" => {
            (what, json!({"query": format!("word{} word{}", number % 2000, number * 7 % 2000)}))
        }
        "memory_query" => (what, json!({"topic": "bench", "limit": 10})),
        LOOKUP => {
            let sparql = format!("SELECT ?what {{ <urn:oap:item:{}> brain:content ?what }}", item());
            ("memory_query", json!({"sparql": sparql}))
        }
        COUNT => {
            let sparql = format!(
                "SELECT (COUNT(?fact) AS ?n) {{ ?fact brain:topic <urn:oap:topic:{COUNTED}> ; brain:content ?what \
                 FILTER(CONTAINS(?what, \"word{}\")) }}",
                number % 10
            );
            ("memory_query", json!({"sparql": sparql}))
        }
        _ => (what, json!({"item_id": item()})),
    };
    serde_json::from_value(json!({"tool": tool, "arguments": arguments})).unwrap()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = match std::env::var_os("OAP_BENCH_DIR") {
        Some(path) => tempfile::tempdir_in(path).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    runtime.block_on(run(folder.path(), number("OAP_BENCH_ITEMS", 100_000), number("OAP_BENCH_SECONDS", 2)));
}

async fn run(folder: &Path, items: usize, seconds: usize) {
    let world = Arc::new(World::on(store(folder), Config::default(), Arc::new(Seeded::new(6))).await);
    let owner = world.proved().await;
    for batch in 0..items.div_ceil(500) {
        let facts: Vec<Value> =
            (batch * 500..items.min(batch * 500 + 500)).map(|n| note(&fact(n), &[])).collect();
        Items(&world.gateway).capture(&owner, &facts).await.unwrap();
    }
    let new = json!({"name": "scout", "permission": "memory.write"});
    let key = world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    let key = format!("Bearer {}", key["api_key"].as_str().unwrap());
    let agent: Agent<Read> = world.gateway.agent_by_key(&[key], &[]).unwrap();
    let mut learned = Vec::new();
    for n in 0..20 {
        let mut call = call("memory_learn", items + n, &[]);
        call.arguments.insert("topic".to_owned(), json!(COUNTED));
        let answer = Tools(&world.gateway).call(&agent, call).await.unwrap();
        learned.push(answer.structured["item_id"].as_str().unwrap().to_owned());
    }
    let learned = Arc::new(learned);
    println!("{:<58} {:>22}", format!("{items} facts"), "measured");
    let began = Instant::now();
    let answer = Tools(&world.gateway).call(&agent, call("memory_recall", 1, &learned)).await.unwrap();
    row("first memory_recall after the start", format!("{:.0} ms", began.elapsed().as_secs_f64() * 1e3), "");
    let bytes = serde_json::to_vec(&json!({"structured": answer.structured, "text": answer.text})).unwrap();
    let bare = bare(bytes, seconds).await;
    row("bare handler that answers as much, 16 callers", format!("{bare:.0} a second"), "");
    for what in ["memory_learn", "memory_recall", "memory_query", "memory_explain", LOOKUP, COUNT] {
        if what == LOOKUP {
            let began = Instant::now();
            Tools(&world.gateway).call(&agent, call(what, 0, &learned)).await.unwrap();
            let made = format!("{:.0} ms", began.elapsed().as_secs_f64() * 1e3);
            row("first query in SPARQL, which makes the graph", made, "");
        }
        for callers in [1, 16] {
            let rate = rate(&world, &agent, &learned, what, callers, seconds).await;
            let share = format!("{:.4} of the bare handler", rate / bare);
            row(&format!("{what}, callers: {callers}"), format!("{rate:.0} a second"), &share);
        }
    }
}

async fn rate(
    world: &Arc<World>,
    agent: &Agent<Read>,
    learned: &Arc<Vec<String>>,
    what: &'static str,
    callers: usize,
    seconds: usize,
) -> f64 {
    let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let callers: Vec<_> = (0..callers)
        .map(|_| {
            let (world, agent, learned) = (world.clone(), agent.clone(), learned.clone());
            let (over, done) = (over.clone(), done.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let n = done.fetch_add(1, Ordering::Relaxed);
                    Tools(&world.gateway).call(&agent, call(what, n, &learned)).await.unwrap();
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

/// A handler that answers with these bytes, asked without a network.
async fn bare(bytes: Vec<u8>, seconds: usize) -> f64 {
    let app = Router::new().route("/", post(move || std::future::ready(bytes.clone())));
    let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (app, over, done) = (app.clone(), over.clone(), done.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let request = Request::post("/").body(Body::from("{}")).unwrap();
                    let answer = app.clone().oneshot(request).await.unwrap();
                    axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

//! What a memory costs that is written to while it is asked: `cargo bench -p oap-gateway --bench scale`.
//!
//! `OAP_BENCH_ITEMS` is the size of the view (10,000), `OAP_BENCH_OTHERS` how many items more there are that the grantee may not
//! see (none), `OAP_BENCH_SECONDS` how long each rate is measured (2), `OAP_BENCH_DIR` where the store goes (a folder of the system's temporary one). The store is redb on disk; every query
//! is answered with DPoP checked and a durable receipt.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::*;
use oap_gateway::Config;
use oap_gateway::service::Items;
use oap_identity::random::Seeded;
use oap_identity::{Random, Signer};
use oap_store::{EngineKind, FileVault, Master, Space, Store};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tikv_jemallocator::Jemalloc;
use zeroizing_alloc::ZeroAlloc;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<Jemalloc> = ZeroAlloc(Jemalloc);

const CLIENTS: usize = 16;
/// What the grantee may see.
const SHOWN: &str = "bench";
/// What the grantee may not see.
const HIDDEN: &str = "hidden";
/// Set for the process that opens what another wrote: its folder.
const OPENED: &str = "OAP_BENCH_OPENED";
/// How many items that has.
const WRITTEN: &str = "OAP_BENCH_WRITTEN";
/// How often the owner writes.
const EVERY: Duration = Duration::from_millis(20);

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn store(folder: &Path) -> Store {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(5));
    let master = Master::KeyFile(zeroize::Zeroizing::new([3; 32]));
    if !folder.join("vault").exists() {
        FileVault::create(&folder.join("vault"), &master, &*random).unwrap();
    }
    let vault = FileVault::open(&folder.join("vault"), &master).unwrap();
    Store::open(EngineKind::Redb.open(&folder.join("store"), &Space::endless()).unwrap(), vault, random)
        .unwrap()
}

/// Notes of a dozen words out of two thousand.
fn notes(seed: u64, count: usize, label: &str) -> Vec<Value> {
    let random = Seeded::new(seed);
    let words = || {
        let mut bytes = [0; 24];
        random.fill(&mut bytes);
        let word = |pair: &[u8]| format!("word{}", u16::from_be_bytes([pair[0], pair[1]]) % 2000);
        bytes.chunks(2).map(word).collect::<Vec<_>>().join(" ")
    };
    (0..count).map(|number| note(&format!("{} note{number}", words()), &[label])).collect()
}

fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// What was measured before views lived, by the beginning of a row.
const BEFORE: [(&str, &str); 5] = [
    ("captured, 500 a batch", "3,891 items/s"),
    ("answer after one write", "about 700 ms"),
    ("view of 10000 items, memory", "115 MB"),
    ("  refused", "82 of 85"),
    ("on disk, an item", "26 KB"),
];

fn row(what: &str, value: String, limit: &str) {
    let before = BEFORE.iter().find(|(name, _)| what.starts_with(name)).map_or("", |(_, before)| before);
    println!("{what:<58} {before:>14} {value:>22}   {limit}");
}

fn query(number: usize) -> Value {
    json!({"query": format!("word{} word{}", number % 2000, (number * 7) % 2000), "max_results": 10})
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(folder) = std::env::var_os(OPENED) {
        return runtime.block_on(reopen(Path::new(&folder), number(WRITTEN, 1)));
    }
    let folder = match std::env::var_os("OAP_BENCH_DIR") {
        Some(path) => tempfile::tempdir_in(path).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let (items, others) = (number("OAP_BENCH_ITEMS", 10_000), number("OAP_BENCH_OTHERS", 0));
    let written = runtime.block_on(run(folder.path(), items, others, number("OAP_BENCH_SECONDS", 2)));
    drop(runtime);
    let size = std::fs::read_dir(folder.path().join("store")).unwrap();
    let size: u64 = size.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    row("on disk, an item", format!("{:.1} KB", size as f64 / 1e3 / written as f64), "under 7 KB");
    // What a process kept that wrote them says little of one that only opens them.
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    let status = program.env(OPENED, folder.path()).env(WRITTEN, written.to_string()).status().unwrap();
    assert!(status.success());
}

fn config() -> Config {
    Config { max_grant_items: 1_000_000, epsilon_per_grantee: 1e9, ..Config::default() }
}

/// A grant over what the grantee may see, exchanged.
async fn granted(world: &World, grantee: &Signer) -> String {
    let mut draft = world.draft(grantee);
    draft["max_items"] = json!(1_000_000);
    draft["filter"] = json!({"labels_any": [SHOWN]});
    let grant = world.issue(&draft).await;
    world.token(grantee, &grant).await
}

/// What it takes to open a store that is there, and to answer from it.
async fn reopen(folder: &Path, items: usize) {
    let before = resident();
    let began = Instant::now();
    let world = World::open(store(folder), config(), Arc::new(Seeded::new(7))).await;
    row("opened", format!("{:.2} s", began.elapsed().as_secs_f64()), "a million in 15 s");
    // Proofs that the process which wrote the store has not used.
    world.proofs.store(1 << 40, Ordering::SeqCst);
    let grown = resident() - before;
    row(
        "  the process grew by, an item",
        format!("{:.0} bytes", grown / items as f64),
        "200, and what the store caches",
    );
    let grantee = agent(2);
    let token = granted(&world, &grantee).await;
    let began = Instant::now();
    world.query(&grantee, &token, &query(0)).await.ok();
    row(
        "  first answer",
        format!("{:.0} ms", began.elapsed().as_secs_f64() * 1e3),
        "10,000 of a million in 500 ms",
    );
    let mut times = Vec::new();
    for number in 0..1000 {
        let began = Instant::now();
        world.query(&grantee, &token, &query(number)).await.ok();
        times.push(began.elapsed());
    }
    times.sort();
    let [middle, last] = [500, 990].map(|at| times[at].as_secs_f64() * 1e3);
    row("  answers, median; 99th percentile", format!("{middle:.2}; {last:.2} ms"), "5; 20 ms of a million");
    let (_, bytes) = world.gateway.view_work();
    row("  memory of the view", format!("{:.1} MB", bytes as f64 / 1e6), "");
    row("  resident", format!("{:.0} MB", resident() / 1e6), "under 1 GB with a million");
}

async fn run(folder: &Path, items: usize, others: usize, seconds: usize) -> usize {
    let world = Arc::new(World::on(store(folder), config(), Arc::new(Seeded::new(6))).await);
    let owner = world.proved().await;
    println!("{:<58} {:>14} {:>22}   aim", "what", "before", "measured");
    let began = Instant::now();
    for (first, count, label) in [(1000, items, SHOWN), (1_000_000, others, HIDDEN)] {
        for batch in 0..count.div_ceil(500) {
            let notes = notes(first + batch as u64, 500.min(count - batch * 500), label);
            Items(&world.gateway).capture(&owner, &notes).await.unwrap();
        }
    }
    let captured = AtomicUsize::new(items + others);
    let rate = (items + others) as f64 / began.elapsed().as_secs_f64();
    row("captured, 500 a batch", format!("{rate:.0} items/s"), "8,000");

    let grantee = agent(2);
    let token = granted(&world, &grantee).await;
    let (before, began) = (resident(), Instant::now());
    world.query(&grantee, &token, &query(0)).await.ok();
    row("first answer", format!("{:.0} ms", began.elapsed().as_secs_f64() * 1e3), "");
    let (_, bytes) = world.gateway.view_work();
    let (bytes, grown) = (bytes as f64, resident() - before);
    row(&format!("view of {items} items, memory"), format!("{:.1} MB", bytes / 1e6), "5 MB of 10,000");
    row("  an item", format!("{:.0} bytes", bytes / items as f64), "");
    row(
        "  the process grew by",
        format!("{:.1} MB", grown / 1e6),
        "with the first answer, and what is freed",
    );

    let mut times = Vec::new();
    for number in 0..300 {
        let began = Instant::now();
        world.query(&grantee, &token, &query(number)).await.ok();
        times.push(began.elapsed());
    }
    let plain = median(times);
    row("answer, median, one at a time", format!("{plain:.2} ms"), "");
    let mut times = Vec::new();
    for item in notes(1, 100, SHOWN) {
        Items(&world.gateway).capture(&owner, &[item]).await.unwrap();
        captured.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        world.query(&grantee, &token, &query(times.len())).await.ok();
        times.push(began.elapsed());
    }
    let after = median(times);
    row("answer after one write into the view, median", format!("{after:.2} ms"), "");
    row("  beyond the one before", format!("{:.2} ms", after - plain), "under 5 ms");

    let rate = async |writes: Option<&str>| {
        let (over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let (world, grantee, token) = (world.clone(), agent(2), token.clone());
            let (over, asked) = (over.clone(), asked.clone());
            clients.push(tokio::spawn(async move {
                let mut refused = 0;
                while !over.load(Ordering::Relaxed) {
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    let answer = world.query(&grantee, &token, &query(number)).await;
                    refused += usize::from(answer.status != 200);
                }
                refused
            }));
        }
        let (began, mut written) = (Instant::now(), 0);
        let notes = notes(if writes.is_some() { 3 } else { 2 }, seconds * 60, writes.unwrap_or(SHOWN));
        for item in notes {
            if began.elapsed() >= Duration::from_secs(seconds as u64) {
                break;
            }
            tokio::time::sleep((began + EVERY * written).saturating_duration_since(Instant::now())).await;
            written += 1;
            if writes.is_some() {
                Items(&world.gateway).capture(&owner, &[item]).await.unwrap();
                captured.fetch_add(1, Ordering::Relaxed);
            }
        }
        let took = began.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        let mut refused = 0;
        for client in clients {
            refused += client.await.unwrap();
        }
        (asked.load(Ordering::Relaxed) as f64 / took, refused, f64::from(written) / took)
    };
    rate(None).await;
    let (alone, refused, _) = rate(None).await;
    row("queries, 16 clients", format!("{alone:.0} a second"), &format!("{refused} refused"));
    let before = world.gateway.view_work().0;
    let (beside, refused, written) = rate(Some(SHOWN)).await;
    let after = world.gateway.view_work().0;
    row("the same while the owner writes 50 items a second", format!("{beside:.0} a second"), "");
    row("  share of the line above", format!("{:.2}", beside / alone), "at least 0.8");
    row("  refused", refused.to_string(), "none");
    row("  written", format!("{written:.0} a second"), "50");
    row("  views built", (after.builds - before.builds).to_string(), "none");
    let before = world.gateway.view_work().0;
    let (hidden, refused, _) = rate(Some(HIDDEN)).await;
    let after = world.gateway.view_work().0;
    row(
        "the same, of what the grantee may not see",
        format!("{hidden:.0} a second"),
        &format!("{refused} refused"),
    );
    row(
        "  views built; steps of views",
        format!("{}; {}", after.builds - before.builds, after.steps - before.steps),
        "0; 0",
    );
    captured.into_inner()
}

//! What the exchange costs, as ratios within one run: `cargo bench -p oap-gateway --bench exchange`.
//!
//! Everything runs on a redb store on disk, or one of `OAP_BENCH_ENGINE=sled`, every query is answered with DPoP checked and a durable receipt.
//! `OAP_BENCH_DIR` is where the store goes (a folder of the system's temporary one).

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

#[path = "../tests/common/mod.rs"]
mod common;

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::routing::post;
use common::*;
use oap_gateway::Config;
use oap_gateway::http::App;
use oap_gateway::service::{Exchange, Items};
use oap_grants::verify::Presented;
use oap_grants::{Operation, dpop};
use oap_identity::Random;
use oap_identity::random::Seeded;
use oap_memory::receipt::Action;
use oap_store::{Engine, EngineKind, FileVault, Master, Raw, Space, Store, Table};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tikv_jemallocator::Jemalloc;
use zeroizing_alloc::ZeroAlloc;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<Jemalloc> = ZeroAlloc(Jemalloc);

const ITEMS: usize = 10_000;
const CLIENTS: usize = 16;
const QUERIES: usize = 4_000;

const PROBES: Table<u32, Vec<u8>, Raw> = Table::new(99);

fn folder() -> tempfile::TempDir {
    match std::env::var_os("OAP_BENCH_DIR") {
        Some(path) => tempfile::tempdir_in(path).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

fn engine(folder: &Path) -> Arc<dyn Engine> {
    let sled = std::env::var("OAP_BENCH_ENGINE").is_ok_and(|name| name == "sled");
    let kind = if sled { EngineKind::Sled } else { EngineKind::Redb };
    kind.open(&folder.join("store"), &Space::endless()).unwrap()
}

fn reopened(folder: &Path) -> Store {
    let master = Master::KeyFile(zeroize::Zeroizing::new([3; 32]));
    let vault = FileVault::open(&folder.join("vault"), &master).unwrap();
    Store::open(engine(folder), vault, Arc::new(Seeded::new(7))).unwrap()
}

fn store(folder: &Path) -> Store {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(5));
    let master = Master::KeyFile(zeroize::Zeroizing::new([3; 32]));
    FileVault::create(&folder.join("vault"), &master, &*random).unwrap();
    let vault = FileVault::open(&folder.join("vault"), &master).unwrap();
    Store::open(engine(folder), vault, random).unwrap()
}

/// Notes of a dozen words out of two thousand.
fn notes(seed: u64, count: usize) -> Vec<Value> {
    let random = Seeded::new(seed);
    (0..count)
        .map(|number| {
            let mut bytes = [0; 24];
            random.fill(&mut bytes);
            let words: Vec<String> = bytes
                .chunks(2)
                .map(|pair| format!("word{}", u16::from_be_bytes([pair[0], pair[1]]) % 2000))
                .collect();
            note(&format!("{} note{number}", words.join(" ")), &["bench"])
        })
        .collect()
}

async fn fill(world: &World, count: usize) -> Duration {
    let owner = world.proved().await;
    let start = Instant::now();
    for batch in 0..count.div_ceil(500) {
        let notes = notes(1000 + batch as u64, 500.min(count - batch * 500));
        Items(&world.gateway).capture(&owner, &notes).await.unwrap();
    }
    start.elapsed()
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn row(what: &str, value: String, limit: &str) {
    println!("{what:<58} {value:>22}   {limit}");
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// One keep-alive connection that sends a request and reads the answer's bytes.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::with_capacity(1 << 17, stream))
    }

    fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        self.0.get_mut().write_all(request).unwrap();
        let mut length = 0;
        let mut line = String::new();
        let mut first = true;
        loop {
            line.clear();
            self.0.read_line(&mut line).unwrap();
            if first {
                assert!(line.contains(" 200 "), "{line}");
                first = false;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        body
    }
}

/// Requests a second, all connections busy.
fn throughput(address: SocketAddr, requests: &[Vec<u8>]) -> f64 {
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut connection = Connection::open(address);
                while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    connection.ask(request);
                }
            });
        }
    });
    requests.len() as f64 / start.elapsed().as_secs_f64()
}

fn latencies(address: SocketAddr, requests: &[Vec<u8>]) -> Vec<Duration> {
    let mut connection = Connection::open(address);
    let one = |request: &Vec<u8>| {
        let start = Instant::now();
        connection.ask(request);
        start.elapsed()
    };
    requests.iter().map(one).collect()
}

async fn listen(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

fn main() {
    if std::env::args().any(|argument| argument == "--memory") {
        return memory();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run());
    let out = std::process::Command::new(std::env::current_exe().unwrap()).arg("--memory").output().unwrap();
    print!("{}", String::from_utf8_lossy(&out.stdout));
}

async fn run() {
    let folder = folder();
    let config = Config { max_grant_items: ITEMS as u32, epsilon_per_grantee: 1e9, ..Config::default() };
    let world = World::on(store(folder.path()), config, Arc::new(Seeded::new(6))).await;
    println!("{:<58} {:>22}   aim or limit", "what", "measured");

    // The disk: one small transaction, alone.
    let gateway = &world.gateway;
    let probe = store(&{
        let path = folder.path().join("probe");
        std::fs::create_dir(&path).unwrap();
        path
    });
    let mut syncs = Vec::new();
    for number in 0..300_u32 {
        let start = Instant::now();
        probe.transact(move |tx| PROBES.put(tx, &number, &vec![7; 600])).await.unwrap();
        syncs.push(start.elapsed());
    }
    let sync = median(syncs);
    row("commit of one small value (sync included)", micros(sync), "the disk");

    // Capture.
    let owner = world.proved().await;
    let start = Instant::now();
    for item in notes(12, 500) {
        Items(gateway).capture(&owner, std::slice::from_ref(&item)).await.unwrap();
    }
    let single = 500.0 / start.elapsed().as_secs_f64();
    row("capture, one after the other", format!("{single:.0} items/s"), "a sync and four signatures each");
    let took = fill(&world, ITEMS - 500).await;
    let batch = (ITEMS - 500) as f64 / took.as_secs_f64();
    row("capture, 500 a batch", format!("{batch:.0} items/s"), "digests and signatures, one core");

    // What a grant shows; `scale` measures views.
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["max_items"] = json!(ITEMS);
    let grant = world.issue(&draft).await;
    let parsed = oap_grants::grant::UnverifiedGrant::parse(grant.clone()).unwrap();
    let parsed = parsed.verify(&world.document(), world.now()).unwrap();
    let start = Instant::now();
    let shown = gateway.would_show(parsed.grant()).unwrap();
    let took = start.elapsed();
    assert_eq!(shown.items().len(), ITEMS);
    row(
        "preview of 10,000 items",
        format!("{:.0} ms", took.as_secs_f64() * 1e3),
        "unsealing, projecting, writing out",
    );
    drop(shown);

    // Token and proof to VerifiedGrant.
    let token = world.token(&grantee, &grant).await;
    let url = format!("{ORIGIN}/oap/memory/query");
    let target = dpop::Request { method: "POST", url: &url };
    let random = Seeded::new(77);
    let prove = || dpop::prove(&grantee, target, &token, world.now(), &random).unwrap();
    let authorization = format!("DPoP {token}");
    let mut times = Vec::new();
    for _ in 0..2_000 {
        let proof = prove();
        let start = Instant::now();
        let presented =
            Presented { authorization: &[authorization.as_str()], dpop: &[proof.as_str()], request: target };
        let caller = Exchange(gateway).caller(&presented).unwrap();
        let verified = Exchange(gateway).judge(&caller, Operation::Query, Action::Query).await;
        times.push(start.elapsed());
        verified.unwrap();
    }
    row("token and proof to VerifiedGrant, median", micros(median(times)), "under 87 µs (biscuit-rust 6.0)");

    // The query path against a handler that returns the same bytes.
    let query = |number: usize| json!({"query": format!("word{} word{}", number % 2000, (number * 7) % 2000), "max_results": 10});
    let request = |number: usize, path: &str| {
        let body = query(number).to_string();
        format!(
            "POST {path} HTTP/1.1\r\nhost: user.example\r\nauthorization: {authorization}\r\ndpop: {}\r\n\
             content-type: application/oap+json\r\ncontent-length: {}\r\n\r\n{body}",
            prove(),
            body.len()
        )
        .into_bytes()
    };
    let address = listen(App::new(gateway.clone()).router()).await;
    let requests: Vec<Vec<u8>> = (0..QUERIES).map(|number| request(number, "/oap/memory/query")).collect();
    let again: Vec<Vec<u8>> = (0..QUERIES).map(|number| request(number, "/oap/memory/query")).collect();
    let slow: Vec<Vec<u8>> = (0..1000).map(|number| request(number, "/oap/memory/query")).collect();
    let measured = tokio::task::spawn_blocking(move || {
        throughput(address, &requests);
        let body = Connection::open(address).ask(&slow[0]);
        (throughput(address, &again), median(latencies(address, &slow[1..])), body)
    });
    let (ours, latency, body) = measured.await.unwrap();
    let bytes = Bytes::from(body);
    let size = bytes.len();
    let same = Router::new().route(
        "/same",
        post(move |_: Bytes| {
            let bytes = bytes.clone();
            async move { ([(header::CONTENT_TYPE, "application/oap+json")], bytes) }
        }),
    );
    let address = listen(same).await;
    let requests: Vec<Vec<u8>> = (0..QUERIES).map(|number| request(number, "/same")).collect();
    let (theirs, base) = tokio::task::spawn_blocking(move || {
        throughput(address, &requests);
        (throughput(address, &requests), median(latencies(address, &requests[..1000])))
    })
    .await
    .unwrap();
    row(
        "axum handler that returns the same bytes",
        format!("{theirs:.0} requests/s"),
        &format!("{size} bytes each"),
    );
    row(
        "query over 10,000 items, DPoP and receipt",
        format!("{ours:.0} requests/s"),
        "one core signs, one writes",
    );
    row("  share of the handler's", format!("{:.2}", ours / theirs), "at least 0.25");
    row("query, median answer, one at a time", micros(latency), "");
    let beyond = latency.saturating_sub(sync).saturating_sub(base);
    row("  beyond the sync and the bare handler", micros(beyond), "under 1000 µs");
}

/// In a process of its own: what 100,000 items take, while they are written and after a restart.
fn memory() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = std::env::args().next_back().filter(|path| Path::new(path).is_dir());
    runtime.block_on(async {
        if let Some(folder) = folder {
            let random = Arc::new(Seeded::new(8));
            let world = World::open(reopened(Path::new(&folder)), Config::default(), random).await;
            let megabytes = resident() as f64 / 1e6;
            row(
                "resident memory with 100,000 items, after a restart",
                format!("{megabytes:.0} MB"),
                "under 300 MB",
            );
            drop(world);
            return;
        }
        let folder = self::folder();
        let world = World::on(store(folder.path()), Config::default(), Arc::new(Seeded::new(6))).await;
        let took = fill(&world, 100_000).await;
        row("100,000 items captured in batches", format!("{:.0} items/s", 1e5 / took.as_secs_f64()), "");
        let megabytes = resident() as f64 / 1e6;
        row("resident memory with 100,000 items, as written", format!("{megabytes:.0} MB"), "under 300 MB");
        drop(world);
        let disk: u64 = walk(folder.path());
        row("on disk", format!("{:.0} MB", disk as f64 / 1e6), "");
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .arg("--memory")
            .arg(folder.path())
            .output()
            .unwrap();
        print!("{}{}", String::from_utf8_lossy(&again.stdout), String::from_utf8_lossy(&again.stderr));
    });
}

fn walk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { walk(&path) } else { path.metadata().unwrap().len() }).sum()
}

//! What gateways cost each other: `cargo bench -p oap-gateway --bench federation`.
//!
//! Nine gateways in this process, each with a redb store on disk and reached by TLS on loopback, so that whoever asks and whoever answers share
//! the cores. `OAP_BENCH_ITEMS` is how many items each of the eight shows (200), `OAP_BENCH_ROUNDS` how often a recall is measured (40),
//! `OAP_BENCH_DIR` where the stores go (a folder of the system's temporary one).

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

#[path = "../tests/common/mod.rs"]
mod common;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use common::*;
use oap_client::grantee::CheckedAnswer;
use oap_exchange::gate::Sanctions;
use oap_gateway::http::front::{Connections, Deadlines, Front};
use oap_gateway::service::{Items, Letters, Subscriptions};
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::state::refusals::MAX_LETTERS;
use oap_gateway::state::subscriptions::MAX_PER_GRANT;
use oap_gateway::system::home::Home;
use oap_gateway::system::tls::{self, Authority};
use oap_gateway::{Config, Gateway};
use oap_grants::evidence;
use oap_identity::random::Seeded;
use oap_identity::{Did, Hash, Random, Timestamp};
use oap_store::{EngineKind, FileVault, Master, Space, Store};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tikv_jemallocator::Jemalloc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use zeroizing_alloc::ZeroAlloc;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<Jemalloc> = ZeroAlloc(Jemalloc);

/// How many are asked at once.
const PEERS: u64 = 8;
/// How far away they are, in the second run: a round trip across a continent.
const FAR: Duration = Duration::from_millis(50);
/// Items of an answer.
const LIMIT: usize = 20;
/// Grants that are revoked one by one.
const REVOKED: usize = 20;
/// Subscriptions of each gateway.
const SUBSCRIBED: usize = 32;
/// Ticks that are measured, behind one that is not.
const TICKS: u64 = 5;
/// Letters to each gateway: within what it takes of one sender in a minute, for the clocks stand still.
const LETTERS: u32 = MAX_LETTERS - 10;

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn row(what: &str, value: String, limit: &str) {
    println!("{what:<62} {value:>18}   {limit}");
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Notes of a dozen words out of forty: each word is in about a quarter of them.
fn notes(seed: u64, count: usize) -> Vec<Value> {
    let random = Seeded::new(seed);
    let words = || {
        let mut bytes = [0; 12];
        random.fill(&mut bytes);
        bytes.map(word).join(" ")
    };
    (0..count).map(|number| note(&format!("{} note{number} of {seed}", words()), &["bench"])).collect()
}

fn word(number: u8) -> String {
    format!("word{}", number % 40)
}

/// Where the gateways are.
struct Town {
    folder: PathBuf,
    authority: Authority,
    /// How long a query is under way, in microseconds.
    away: Arc<AtomicU64>,
}

/// A gateway.
struct House {
    world: World,
    did: String,
}

impl Town {
    fn new(folder: &Path) -> Self {
        tls::install();
        let authority = Authority::new().unwrap();
        std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        Self { folder: folder.to_owned(), authority, away: Arc::default() }
    }

    fn store(&self, name: &str, random: &Arc<dyn Random>) -> Store {
        let folder = self.folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        let master = Master::KeyFile(zeroize::Zeroizing::new([3; 32]));
        FileVault::create(&folder.join("vault"), &master, &**random).unwrap();
        let vault = FileVault::open(&folder.join("vault"), &master).unwrap();
        let engine = EngineKind::Redb.open(&folder.join("store"), &Space::endless()).unwrap();
        Store::open(engine, vault, random.clone()).unwrap()
    }

    async fn house(&self, seed: u64) -> House {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let did = format!("did:web:localhost%3A{port}");
        let file = |end: &str| self.folder.join(format!("{port}.{end}"));
        let (certificate, key) = self.authority.issue("localhost").unwrap();
        std::fs::write(file("pem"), certificate).unwrap();
        std::fs::write(file("key"), key).unwrap();
        let config = Config {
            trust_ca: Some(self.folder.join("ca.pem")),
            allow_local_dids: true,
            epsilon_per_grantee: 1e9,
            tls_cert: Some(file("pem")),
            tls_key: Some(file("key")),
            ..Config::default()
        };
        let tls = tls::server(&config, &Home::new(self.folder.clone())).unwrap();
        let random: Arc<dyn Random> = Arc::new(Seeded::new(seed));
        let store = self.store(&port.to_string(), &random);
        let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
        Gateway::init(&store, &keys).await.unwrap();
        let world = World::of(&did, store, config, random, Sanctions::new(), None).await;
        let away = self.away.clone();
        let far = from_fn(move |request: Request<Body>, next: Next| {
            let is_query = request.uri().path() == "/oap/memory/query";
            let away = Duration::from_micros(away.load(Ordering::Relaxed));
            async move {
                if is_query && !away.is_zero() {
                    tokio::time::sleep(away).await;
                }
                next.run(request).await
            }
        });
        let router: Router = world.router.clone().layer(far);
        let acceptor = Some(TlsAcceptor::from(tls));
        let front = Front::new(router, acceptor, Deadlines::default(), Connections::new(1000), Vec::new());
        let front = Arc::new(front).run(listener, std::future::pending(), Duration::from_secs(30));
        tokio::spawn(front);
        House { world, did }
    }
}

impl House {
    async fn post(&self, path: &str, body: Value) -> Value {
        self.world.owner("POST", &format!("/oap/owner/{path}"), Some(&body)).await.ok()
    }

    /// A grant over everything here.
    async fn grants(&self, to: &str) -> Value {
        self.grants_for(to, &["query"]).await
    }

    /// The same, for these operations.
    async fn grants_for(&self, to: &str, operations: &[&str]) -> Value {
        self.world
            .issue(&json!({
                "grantee": to, "purpose": "bench", "filter": {}, "max_items": 10_000,
                "expires_at": self.world.now().plus(Duration::from_secs(30 * 86_400)),
                "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
                "operations": operations,
            }))
            .await
    }

    async fn takes(&self, grant: &Value) {
        self.post("received", json!({"grant": grant})).await;
    }

    async fn removes(&self, grant: &Value) {
        self.post(&format!("received/{}/remove", Hash::of_canonical(grant).unwrap()), json!({})).await;
    }

    /// A recall; the verdicts on those who were asked.
    async fn recall(&self, words: &str) -> Vec<String> {
        let found = self.post("recall", json!({"text": words, "deadline": 25, "limit": LIMIT})).await;
        let peers = found["from_peers"]["peers"].as_array().unwrap();
        peers.iter().map(|peer| peer["verdict"].as_str().unwrap().to_owned()).collect()
    }

    /// How long recalls take, of whoever is in the wallet; all of them answer.
    async fn recalls(&self, rounds: usize) -> Duration {
        let asked = async |round: usize| {
            let words = word(u8::try_from(round % 40).unwrap());
            let began = Instant::now();
            let verdicts = self.recall(&words).await;
            assert!(verdicts.iter().all(|verdict| verdict == "answered"), "{verdicts:?}");
            began.elapsed()
        };
        // Who is asked is found, and every view is built, before it is measured.
        asked(0).await;
        asked(1).await;
        let mut times = Vec::with_capacity(rounds);
        for round in 0..rounds {
            times.push(asked(round).await);
        }
        median(times)
    }
}

fn main() {
    let folder = match std::env::var_os("OAP_BENCH_DIR") {
        Some(path) => tempfile::tempdir_in(path).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let (items, rounds) = (number("OAP_BENCH_ITEMS", 200), number("OAP_BENCH_ROUNDS", 40).max(1));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{:<62} {:>18}   aim", "what", "measured");
    runtime.block_on(async {
        let town = Town::new(folder.path());
        let asker = town.house(100).await;
        let mut peers = Vec::new();
        for seed in 0..PEERS {
            let peer = town.house(200 + seed).await;
            let owner = peer.world.proved().await;
            for batch in notes(seed, items).chunks(500) {
                Items(&peer.world.gateway).capture(&owner, batch).await.unwrap();
            }
            peers.push(peer);
        }
        recall(&town, &asker, &peers, rounds).await;
        verification().await;
        revocation(&asker, &peers[0]).await;
        pushes(&asker, &peers).await;
        letters(&asker, &peers).await;
    });
    // Servers and writers are at work in there: they end with the process.
    runtime.shutdown_background();
}

/// All at once, against the slowest of them alone.
async fn recall(town: &Town, asker: &House, peers: &[House], rounds: usize) {
    let mut grants = Vec::new();
    for peer in peers {
        grants.push(peer.grants(&asker.did).await);
    }
    for (away, place) in [(Duration::ZERO, "on the same cores"), (FAR, "50 ms away")] {
        town.away.store(u64::try_from(away.as_micros()).unwrap(), Ordering::Relaxed);
        let mut slowest = Duration::ZERO;
        for grant in &grants {
            asker.takes(grant).await;
            slowest = slowest.max(asker.recalls(rounds).await);
            asker.removes(grant).await;
        }
        row(&format!("recall over one peer, {place}, the slowest of {PEERS}"), millis(slowest), "");
        for grant in &grants {
            asker.takes(grant).await;
        }
        let all = asker.recalls(rounds).await;
        for grant in &grants {
            asker.removes(grant).await;
        }
        row(&format!("recall over {PEERS} peers, {place}"), millis(all), "");
        let ratio = all.as_secs_f64() / slowest.as_secs_f64();
        row("  against the slowest one", format!("{ratio:.2}"), "at most 1.3");
    }
    town.away.store(0, Ordering::Relaxed);
}

/// What a grantee checks of an answer of a hundred items: signatures, receipt, disclosures, chains, and that it was given under the grant.
async fn verification() {
    let world = World::new().await;
    let owner = world.proved().await;
    Items(&world.gateway).capture(&owner, &notes(7, 100)).await.unwrap();
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let query = json!({"query": "", "max_results": 100});
    let answer = world.query(&grantee, &token, &query).await.ok();
    let (document, did): (_, Did) = (world.document(), grantee.did().clone());
    let terms = evidence::grant(&grant, &[], &document, world.now()).unwrap();
    let items = answer["items"].as_array().unwrap().len();
    assert_eq!(items, 100);
    let mut times = Vec::new();
    for _ in 0..30 {
        let answer = answer.clone();
        let began = Instant::now();
        let checked = CheckedAnswer::of(answer, &document, &did).unwrap();
        checked.to(&query, &terms, world.now()).unwrap();
        times.push(began.elapsed());
    }
    let each = median(times).as_secs_f64() * 1e6 / items as f64;
    row("verification at the grantee, an item", format!("{each:.1} µs"), "under 120 µs of one core");
}

/// A grant is taken back, and asked under again with a token that was good a moment ago.
async fn revocation(asker: &House, peer: &House) {
    let (mut answered, mut listed, mut told, mut taken) = (0, Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REVOKED {
        let grant = peer.grants(&asker.did).await;
        let hash = Hash::of_canonical(&grant).unwrap();
        asker.takes(&grant).await;
        assert_eq!(asker.recall("word1").await, ["answered"]);
        let began = Instant::now();
        peer.post(&format!("grants/{}/revoke", grant["grant_id"].as_str().unwrap()), json!({})).await;
        taken.push(began.elapsed());
        answered += asker.recall("word2").await.iter().filter(|verdict| *verdict == "answered").count();
        let seen = Instant::now();
        let checked = asker.post(&format!("received/{hash}/check"), json!({})).await;
        // What the status list says, from the moment that the owner asked for it.
        assert_eq!(checked["state"], "revoked", "{checked}");
        listed.push(taken[taken.len() - 1] + seen.elapsed());
        let sent = Instant::now();
        assert_eq!(Letters(&peer.world.gateway).send_due().await.unwrap(), 1);
        told.push(sent.elapsed());
        asker.removes(&grant).await;
    }
    row("a grant is revoked", millis(median(taken)), "");
    row(
        &format!("  answers of the granter's after that, of {REVOKED} asked for"),
        answered.to_string(),
        "none",
    );
    let longest = listed.into_iter().max().unwrap();
    row("  in the status list, as a grantee reads it, at the latest", millis(longest), "within 1 s");
    row("  its notice arrived and was answered, median", millis(median(told)), "");
}

/// Changes pushed from one gateway to eight: each judged, projected, receipted and signed, proved there, and acknowledged.
async fn pushes(one: &House, peers: &[House]) {
    for peer in peers {
        for _ in 0..SUBSCRIBED / MAX_PER_GRANT {
            let grant = one.grants_for(&peer.did, &["query", "subscribe"]).await;
            peer.takes(&grant).await;
            let path = format!("received/{}/subscribe", Hash::of_canonical(&grant).unwrap());
            for _ in 0..MAX_PER_GRANT {
                let held = peer.post(&path, json!({"window": 60})).await;
                assert!(held["begun_at"].is_string(), "{held}");
            }
        }
    }
    let all = peers.len() * SUBSCRIBED;
    let mut times = Vec::new();
    for tick in 0..=TICKS {
        let owner = one.world.proved().await;
        Items(&one.world.gateway).capture(&owner, &notes(300 + tick, 1)).await.unwrap();
        for house in peers.iter().chain([one]) {
            house.world.clock.advance(Duration::from_secs(60));
        }
        let began = Instant::now();
        let mut pushed = 0;
        while pushed < all {
            let now = Subscriptions(&one.world.gateway).push_due().await.unwrap();
            assert!(now > 0, "{pushed} of {all}");
            pushed += now;
        }
        if tick > 0 {
            times.push(began.elapsed());
        }
    }
    let given = one.world.owner("GET", "/oap/owner/subscriptions", None).await.ok();
    let given = given["given"].as_array().unwrap();
    assert!(given.len() == all && given.iter().all(|row| row["failure"].is_null()), "{given:?}");
    row(
        &format!("pushes from one gateway to {PEERS}, on the same cores"),
        format!("{:.0} a second", all as f64 / median(times).as_secs_f64()),
        "1,000 a second",
    );
}

/// Notices from one gateway to eight, each signed, sent, verified, taken in durably and answered.
async fn letters(one: &House, peers: &[House]) {
    for peer in peers {
        for _ in 0..LETTERS {
            let grant = one.grants(&peer.did).await;
            peer.takes(&grant).await;
            one.post(&format!("grants/{}/revoke", grant["grant_id"].as_str().unwrap()), json!({})).await;
        }
    }
    let began = Instant::now();
    while Letters(&one.world.gateway).send_due().await.unwrap() > 0 {}
    let took = began.elapsed().as_secs_f64();
    let letters = one.world.owner("GET", "/oap/owner/letters", None).await.ok();
    let states = letters["letters"].as_array().unwrap().iter();
    let delivered = states.filter(|letter| letter["state"] == "delivered").count();
    assert_eq!(delivered, peers.len() * usize::try_from(LETTERS).unwrap());
    row(
        &format!("letters from one gateway to {PEERS}, on the same cores"),
        format!("{:.0} a second", delivered as f64 / took),
        "",
    );
}

//! A gateway in memory with a clock that stands still, and the parties that talk to it.

#![allow(dead_code, reason = "each test binary uses its part")]

pub mod gate;
pub mod hooked;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use oap_exchange::gate::Sanctions;
use oap_gateway::embedding::EmbeddingModel;
use oap_gateway::http::App;
use oap_gateway::http::front::Deadlines;
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::state::own_home::OwnHome;
use oap_gateway::state::owner::mark::Admin;
use oap_gateway::state::owner::{Owner, Permission};
use oap_gateway::system::config::Config;
use oap_gateway::system::home;
use oap_gateway::{Error, Gateway, Parts};
use oap_grants::{dpop, exchange};
use oap_identity::random::Seeded;
use oap_identity::{Clock, Did, Hash, Random, Signer, Timestamp, json as strict};
use oap_memory::Profile;
use oap_store::{FileVault, Master, MemoryEngine, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;

pub const ORIGIN: &str = "https://user.example";
pub const PRINCIPAL: &str = "did:web:user.example";

/// A clock that moves when it is told to.
pub struct TestClock {
    millis: AtomicI64,
    /// Whether the store's writer waits when it reads the clock, as it does in every transaction; a scheduler of
    /// interleavings lets it go on.
    pub gate: gate::Gate,
}

impl TestClock {
    pub fn advance(&self, by: Duration) {
        self.millis.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
    }
}

impl TestClock {
    /// Sets the clock, forward or back.
    pub fn set(&self, at: Timestamp) {
        self.millis.store(at.millis(), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        if std::thread::current().name() == Some("store-writer") {
            self.gate.pass();
        }
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst))
    }
}

/// 2026-05-01T12:00:00Z
pub const START: i64 = 1_777_636_800_000;

pub struct World {
    pub gateway: Arc<Gateway>,
    pub router: Router,
    pub clock: Arc<TestClock>,
    origin: String,
    admin: Signer,
    pub token: String,
    pub proofs: AtomicU64,
    /// The grants that were issued or exchanged here, by their hash.
    grants: Mutex<BTreeMap<String, Value>>,
    /// Its sanctions lists, where they are others later.
    pub lists: Option<Lists>,
}

/// What a gateway has beside its store.
pub struct Equipment {
    pub profiles: Vec<Profile>,
    pub sanctions: Sanctions,
    pub embeddings: Option<Box<dyn EmbeddingModel>>,
    pub lists: Option<Lists>,
}

impl Default for Equipment {
    fn default() -> Self {
        Self { profiles: Profile::built_in(), sanctions: Sanctions::new(), embeddings: None, lists: None }
    }
}

/// Sanctions lists that become others, as files of a home do.
#[derive(Debug, Clone, Default)]
pub struct Lists(pub Arc<Mutex<Sanctions>>);

impl OwnHome for Lists {
    fn folder(&self) -> &Path {
        Path::new("/nowhere")
    }

    fn sanctions(&self) -> std::io::Result<Sanctions> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn credential_ended(&self, _: &Gateway) {}
}

/// A store in memory, with its vault in a file, that outlives its gateway.
pub struct Kept {
    engine: Arc<MemoryEngine>,
    folder: tempfile::TempDir,
    random: Arc<dyn Random>,
    opened: AtomicU64,
}

impl Kept {
    /// With a gateway on it.
    pub async fn new() -> (Self, World) {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(5));
        let folder = tempfile::tempdir().unwrap();
        FileVault::create(&folder.path().join("vault"), &Self::master(), &*random).unwrap();
        let kept = Self { engine: Arc::default(), folder, random, opened: AtomicU64::new(0) };
        let world = World::on(kept.store(), Config::default(), kept.random.clone()).await;
        (kept, world)
    }

    fn master() -> Master {
        Master::KeyFile([7; 32].into())
    }

    /// The store; its gateway must be gone.
    pub fn store(&self) -> Store {
        let vault = FileVault::open(&self.folder.path().join("vault"), &Self::master()).unwrap();
        Store::open(self.engine.clone(), vault, self.random.clone()).unwrap()
    }

    /// A gateway, started anew.
    pub async fn open(&self) -> World {
        self.open_at(Timestamp::from_millis(START)).await
    }

    /// The same, by a clock that says `at`.
    pub async fn open_at(&self, at: Timestamp) -> World {
        let world = World::open_at(self.store(), Config::default(), self.random.clone(), at).await;
        // UsedProofs that no world before it has used.
        world.proofs.store(1000 * (1 + self.opened.fetch_add(1, Ordering::SeqCst)), Ordering::SeqCst);
        world
    }
}

/// What a gateway answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub connection: Option<String>,
    pub media_type: Option<String>,
    pub body: Value,
    pub bytes: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.body);
        self.body
    }

    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status.as_u16(), self.body["error"].as_str()),
            (status, Some(code)),
            "{}",
            self.body
        );
        self.body
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with(1, Config::default()).await
    }

    pub async fn with(seed: u64, config: Config) -> Self {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(seed));
        let store = Store::in_memory(random.clone()).unwrap();
        Self::on(store, config, random).await
    }

    pub async fn on(store: Store, config: Config, random: Arc<dyn Random>) -> Self {
        let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
        Gateway::init(&store, &keys).await.unwrap();
        Self::open(store, config, random).await
    }

    /// On a store that has keys.
    pub async fn open(store: Store, config: Config, random: Arc<dyn Random>) -> Self {
        Self::equipped(store, config, random, Sanctions::new(), None).await
    }

    /// New, with a model of embeddings.
    pub async fn embedding(model: Box<dyn EmbeddingModel>) -> Self {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
        let store = Store::in_memory(random.clone()).unwrap();
        let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
        Gateway::init(&store, &keys).await.unwrap();
        Self::equipped(store, Config::default(), random, Sanctions::new(), Some(model)).await
    }

    /// On a store that has keys, by a clock that says `at`.
    pub async fn open_at(store: Store, config: Config, random: Arc<dyn Random>, at: Timestamp) -> Self {
        let none: Option<Box<dyn EmbeddingModel>> = None;
        Self::by_clock(PRINCIPAL, store, config, random, Sanctions::new(), none, at).await
    }

    /// With sanctions lists and a model of embeddings.
    pub async fn equipped(
        store: Store,
        config: Config,
        random: Arc<dyn Random>,
        sanctions: Sanctions,
        embeddings: Option<Box<dyn EmbeddingModel>>,
    ) -> Self {
        Self::of(PRINCIPAL, store, config, random, sanctions, embeddings).await
    }

    /// Of another principal.
    pub async fn of(
        principal: &str,
        store: Store,
        config: Config,
        random: Arc<dyn Random>,
        sanctions: Sanctions,
        embeddings: Option<Box<dyn EmbeddingModel>>,
    ) -> Self {
        let start = Timestamp::from_millis(START);
        Self::by_clock(principal, store, config, random, sanctions, embeddings, start).await
    }

    pub async fn by_clock(
        principal: &str,
        store: Store,
        config: Config,
        random: Arc<dyn Random>,
        sanctions: Sanctions,
        embeddings: Option<Box<dyn EmbeddingModel>>,
        at: Timestamp,
    ) -> Self {
        let has = Equipment { sanctions, embeddings, ..Equipment::default() };
        Self::having(principal, store, config, random, has, at).await
    }

    /// With what it has beside its store.
    pub async fn having(
        principal: &str,
        store: Store,
        config: Config,
        random: Arc<dyn Random>,
        has: Equipment,
        at: Timestamp,
    ) -> Self {
        oap_gateway::system::tls::install();
        let clock = Arc::new(TestClock { millis: AtomicI64::new(at.millis()), gate: gate::Gate::default() });
        let mut config = Config { did: Some(principal.parse().unwrap()), ..config };
        let origin = config.origin();
        if config.anonymous_rpm == Config::default().anonymous_rpm {
            config.anonymous_rpm = 1_000_000;
        }
        let resolver = Arc::new(home::resolver(&config, clock.clone()).unwrap());
        let gateway = Gateway::open(Parts {
            principal: principal.parse().unwrap(),
            config,
            store,
            clock: clock.clone(),
            random,
            resolver,
            profiles: has.profiles,
            sanctions: has.sanctions,
            embeddings: has.embeddings,
            erasures: None,
            home: has.lists.clone().map(|lists| Box::new(lists) as Box<dyn OwnHome>),
        })
        .await
        .unwrap();
        let admin = Signer::did_key(&[99; 32]).unwrap();
        let token = gateway.trust_token(&admin, Permission::Admin).unwrap();
        // However slow the machine is: what is to end in time has deadlines of its own.
        let deadlines = Deadlines { request: Duration::from_secs(600), ..Deadlines::default() };
        let router = App::within(gateway.clone(), deadlines).router();
        let (proofs, grants) = (AtomicU64::new(0), Mutex::default());
        Self { gateway, router, clock, origin, admin, token, proofs, grants, lists: has.lists }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A source of randomness for a client; never the gateway's own.
    pub fn fresh(&self) -> Seeded {
        Seeded::new(1_000_000 + self.proofs.fetch_add(1, Ordering::SeqCst))
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let header = |name: &str| head.headers.get(name).map(|v| v.to_str().unwrap().to_owned());
        let (connection, media_type) = (header("connection"), header("content-type"));
        let bytes = axum::body::to_bytes(body, 1 << 30).await.unwrap().to_vec();
        let body = strict::parse(&bytes).unwrap_or(Value::Null);
        Answer { status: head.status, connection, media_type, body, bytes }
    }

    /// A request with these headers.
    pub async fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if body.is_some() {
            request = request.header("content-type", "application/oap+json");
        }
        let body = body.map_or(String::new(), Value::to_string);
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    /// Comes back when so many transactions wait for the store's writer, which something holds up.
    pub async fn writes_wait(&self, expected: usize) {
        let there = async {
            while self.gateway.waiting_writes() < expected {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(30), there).await.is_ok();
        assert!(in_time, "{} transactions wait, not {expected}", self.gateway.waiting_writes());
    }

    /// A request of the owner.
    pub async fn owner(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.as_agent(&self.admin, &self.token, method, path, body).await
    }

    /// The owner, proved to the gateway's services: by the key that is in use now.
    pub async fn proved(&self) -> Owner<Admin> {
        loop {
            let token = self.gateway.trust_token(&self.admin, Permission::Admin).unwrap();
            let url = format!("{}/oap/owner", self.origin);
            let target = dpop::Request { method: "POST", url: &url };
            let proof = dpop::prove(&self.admin, target, &token, self.now(), &self.fresh()).unwrap();
            match self.gateway.owner(&[format!("DPoP {token}")], &[proof], target).await {
                // The key was changed meanwhile.
                Err(Error::Owner(_)) => {}
                proved => return proved.unwrap(),
            }
        }
    }

    /// What comes out of a job of the owner's.
    pub async fn job(&self, job: &Value) -> Value {
        self.job_as(&self.admin, &self.token, job).await
    }

    /// That every receipt of every chain holds.
    pub async fn chains_hold(&self) {
        self.job(&json!({"job": "verify_audit"})).await;
    }

    /// What comes out of a job that an agent of the owner's begins.
    pub async fn job_as(&self, agent: &Signer, token: &str, job: &Value) -> Value {
        let begun = self.as_agent(agent, token, "POST", "/oap/owner/jobs", Some(job)).await;
        assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.body);
        let path = format!("/oap/owner/jobs/{}?wait=20", begun.body["job_id"].as_str().unwrap());
        let report = self.as_agent(agent, token, "GET", &path, None).await.ok();
        assert_eq!(report["state"], "done", "{report}");
        report["result"].clone()
    }

    pub async fn as_agent(
        &self,
        agent: &Signer,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let url = format!("{}{}", self.origin, path.split('?').next().unwrap());
        let target = dpop::Request { method, url: &url };
        let proof = dpop::prove(agent, target, token, self.now(), &self.fresh()).unwrap();
        let authorization = format!("DPoP {token}");
        self.raw(method, path, &[("authorization", &authorization), ("dpop", &proof)], body).await
    }

    /// Writes items; their ids.
    pub async fn capture(&self, items: &[Value]) -> Vec<String> {
        let answer = self.owner("POST", "/oap/owner/items", Some(&json!({"items": items}))).await.ok();
        let items = answer["items"].as_array().unwrap();
        items.iter().map(|item| item["item_id"].as_str().unwrap().to_owned()).collect()
    }

    /// A grant draft for a grantee, as of now.
    pub fn draft(&self, grantee: &Signer) -> Value {
        json!({
            "grantee": grantee.did(), "purpose": "testing", "filter": {}, "max_items": 500,
            "expires_at": self.now().plus(Duration::from_secs(30 * 86_400)),
            "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
        })
    }

    /// Issues a grant; its document.
    pub async fn issue(&self, draft: &Value) -> Value {
        let grant = self.owner("POST", "/oap/owner/grants", Some(draft)).await.ok()["grant"].clone();
        self.note_grant(&grant);
        grant
    }

    /// Remembers a grant, for the chain of what is made from it.
    fn note_grant(&self, grant: &Value) {
        let hash = Hash::of_canonical(grant).unwrap().to_string();
        self.grants.lock().unwrap().insert(hash, grant.clone());
    }

    /// The grants above one, as far as they were issued or exchanged here: first one first.
    pub fn above(&self, grant: &Value) -> Vec<Value> {
        let grants = self.grants.lock().unwrap();
        let mut above = Vec::new();
        let mut next = grant;
        while let Some(parent) = next["parent"].as_str().and_then(|parent| grants.get(parent)) {
            above.insert(0, parent.clone());
            next = parent;
        }
        above
    }

    /// An exchange with the grants above it that are known here.
    pub async fn exchange(&self, grantee: &Signer, grant: &Value) -> Answer {
        self.note_grant(grant);
        self.exchange_with(grantee, grant, &self.above(grant)).await
    }

    /// An exchange with these grants above it.
    pub async fn exchange_with(&self, grantee: &Signer, grant: &Value, above: &[Value]) -> Answer {
        let proof = exchange::prove(
            grantee,
            &format!("{}/oap/memory/grant", self.origin),
            Hash::of_canonical(grant).unwrap(),
            self.now(),
            &self.fresh(),
        )
        .unwrap();
        let mut request = json!({"grant": grant, "proof": proof});
        if !above.is_empty() {
            request["chain"] = json!(above);
        }
        self.raw("POST", "/oap/memory/grant", &[], Some(&request)).await
    }

    /// A token for a grant.
    pub async fn token(&self, grantee: &Signer, grant: &Value) -> String {
        let answer = self.exchange(grantee, grant).await.ok();
        answer["memory_grant_jwt"].as_str().unwrap().to_owned()
    }

    pub async fn query(&self, grantee: &Signer, token: &str, query: &Value) -> Answer {
        self.as_agent(grantee, token, "POST", "/oap/memory/query", Some(query)).await
    }

    /// Everything from a draft to an answer.
    pub async fn ask(&self, grantee: &Signer, draft: &Value, query: &Value) -> Value {
        let grant = self.issue(draft).await;
        let token = self.token(grantee, &grant).await;
        self.query(grantee, &token, query).await.ok()
    }

    /// The principal's document, as a grantee has it.
    pub fn document(&self) -> oap_identity::DidDocument {
        let published = self.gateway.published();
        let did: Did = published.did["id"].as_str().unwrap().parse().unwrap();
        oap_identity::DidDocument::parse(published.did.to_string().as_bytes(), &did).unwrap()
    }
}

/// A grantee: a did:key of a seed.
pub fn agent(seed: u8) -> Signer {
    Signer::did_key(&[seed; 32]).unwrap()
}

pub fn note(text: &str, labels: &[&str]) -> Value {
    json!({"kind": "fact", "content": {"text": text}, "labels": labels})
}

/// The texts of an answer, in order.
pub fn texts(answer: &Value) -> Vec<String> {
    let items = answer["items"].as_array().unwrap();
    items.iter().map(|item| item["content"]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The ids of an answer, in order.
pub fn ids(answer: &Value) -> Vec<String> {
    let items = answer["items"].as_array().unwrap();
    items.iter().map(|item| item["item_id"].as_str().unwrap().to_owned()).collect()
}

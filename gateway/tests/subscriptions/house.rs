//! A gateway that another one reaches, and what it is asked for and pushed.

use crate::common::*;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use oap_exchange::gate::Sanctions;
use oap_gateway::service::Subscriptions;
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::{Config, Gateway};
use oap_identity::random::Seeded;
use oap_identity::{Hash, Random, Signer, Timestamp};
use oap_store::Store;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tower::ServiceExt;

/// It answers.
pub const UP: u8 = 0;
/// It does not.
pub const DOWN: u8 = 1;
/// It takes what is pushed, and its reply is lost.
pub const DEAF: u8 = 2;
/// It replies to a push what it replied to the first one.
pub const STALE: u8 = 3;
/// It takes what it is asked, and says nothing before it is something else.
pub const SILENT: u8 = 4;
/// What stands before it knows nothing of subscribing.
pub const STRAY: u8 = 5;

/// A push as it came.
#[derive(Clone)]
pub struct Pushed {
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Pushed {
    pub fn push(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.headers.keys().map(|name| name.to_string()).collect();
        names.sort();
        names
    }
}

#[derive(Default)]
struct Door {
    state: AtomicU8,
    requests: Mutex<Vec<String>>,
    pushes: Mutex<Vec<Pushed>>,
    /// The first reply to a push.
    first: Mutex<Option<(HeaderMap, Bytes)>>,
    /// Told of every request, and of every other state.
    changed: Notify,
}

impl Door {
    /// Waits until something is there.
    async fn until<T>(&self, there: impl Fn() -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(there) = there() {
                return there;
            }
            changed.await;
        }
    }
}

pub struct House {
    pub world: World,
    pub did: String,
    door: Arc<Door>,
}

async fn answer(inner: Router, door: Arc<Door>, request: Request) -> Response {
    let target = request.uri().path_and_query().unwrap().to_string();
    door.requests.lock().unwrap().push(target.clone());
    door.changed.notify_waiters();
    let state = || Some(door.state.load(Ordering::SeqCst)).filter(|state| *state != SILENT);
    let state = door.until(state).await;
    if state == DOWN {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    if state == STRAY && target == "/oap/memory/subscribe" {
        return StatusCode::NOT_FOUND.into_response();
    }
    if !target.starts_with("/oap/peer/push/") {
        return inner.oneshot(request).await.unwrap();
    }
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 8 << 20).await.unwrap();
    let pushed = Pushed { target, headers: head.headers.clone(), body: body.clone() };
    door.pushes.lock().unwrap().push(pushed);
    let answer = inner.oneshot(Request::from_parts(head, Body::from(body))).await.unwrap();
    let (mut head, body) = answer.into_parts();
    let mut body = to_bytes(body, 8 << 20).await.unwrap();
    let mut first = door.first.lock().unwrap();
    let (headers, bytes) = first.get_or_insert_with(|| (head.headers.clone(), body.clone()));
    match state {
        DEAF => return StatusCode::BAD_GATEWAY.into_response(),
        STALE => (head.headers, body) = (headers.clone(), bytes.clone()),
        _ => {}
    }
    Response::from_parts(head, Body::from(body))
}

impl House {
    pub async fn new(seed: u64) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let did = format!("did:web:localhost%3A{}", listener.local_addr().unwrap().port());
        let config = Config { allow_local_dids: true, plain_http: true, ..Config::default() };
        let random: Arc<dyn Random> = Arc::new(Seeded::new(seed));
        let store = Store::in_memory(random.clone()).unwrap();
        let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
        Gateway::init(&store, &keys).await.unwrap();
        let world = World::of(&did, store, config, random, Sanctions::new(), None).await;
        let (door, inner) = (Arc::new(Door::default()), world.router.clone());
        let seen = door.clone();
        let handler = move |request: Request| answer(inner.clone(), seen.clone(), request);
        let router = Router::new().fallback(handler);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { world, did, door }
    }

    pub fn is(&self, state: u8) {
        self.door.state.store(state, Ordering::SeqCst);
        self.door.changed.notify_waiters();
    }

    /// Waits until it is asked for a path.
    pub async fn asked_for(&self, path: &str) {
        let is_there = || self.requests().iter().any(|asked| asked == path).then_some(());
        self.door.until(is_there).await;
    }

    pub fn origin(&self) -> String {
        self.world.gateway.origin().to_owned()
    }

    /// The key that it signs with.
    pub fn signer(&self) -> Arc<Signer> {
        self.world.gateway.keys().current().clone()
    }

    /// What others asked it for, by path.
    pub fn requests(&self) -> Vec<String> {
        self.door.requests.lock().unwrap().clone()
    }

    /// What was pushed to it.
    pub fn pushes(&self) -> Vec<Pushed> {
        self.door.pushes.lock().unwrap().clone()
    }

    /// Pushes what is due; how many subscriptions had their tick.
    pub async fn push(&self) -> usize {
        Subscriptions(&self.world.gateway).push_due().await.unwrap()
    }

    pub async fn ask_again(&self) -> usize {
        Subscriptions(&self.world.gateway).ask_again().await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Value {
        self.world.owner("GET", &format!("/oap/owner/{path}"), None).await.ok()
    }

    pub async fn act(&self, path: &str, body: &Value) -> Answer {
        self.world.owner("POST", &format!("/oap/owner/{path}"), Some(body)).await
    }

    /// The newest subscription of a grantee.
    pub async fn given(&self) -> Value {
        self.get("subscriptions").await["given"][0].clone()
    }

    pub async fn given_of(&self, id: &str) -> Value {
        find(&self.get("subscriptions").await["given"], id)
    }

    /// The newest subscription of its own.
    pub async fn held(&self) -> Value {
        self.get("subscriptions").await["held"][0].clone()
    }

    pub async fn held_of(&self, id: &str) -> Value {
        find(&self.get("subscriptions").await["held"], id)
    }

    /// Grants another to read what is labelled `site`, and puts that into its wallet; the grant and its hash.
    pub async fn grants(&self, to: &Self, more: Value) -> (Value, String) {
        let mut draft = json!({
            "grantee": to.did, "purpose": "testing", "filter": {"labels_any": ["site"]}, "max_items": 500,
            "expires_at": self.world.now().plus(Duration::from_secs(30 * 86_400)),
            "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
            "operations": ["query", "subscribe"],
        });
        for (name, value) in more.as_object().unwrap() {
            draft[name] = value.clone();
        }
        let grant = self.world.issue(&draft).await;
        to.act("received", &json!({"grant": grant})).await.ok();
        let hash = Hash::of_canonical(&grant).unwrap().to_string();
        (grant, hash)
    }
}

fn find(all: &Value, id: &str) -> Value {
    all.as_array().unwrap().iter().find(|info| info["subscription"] == id).unwrap().clone()
}

pub async fn pair() -> (House, House) {
    (House::new(1).await, House::new(2).await)
}

/// Lets the clocks of all go on.
pub fn tick(houses: &[&House], seconds: u64) {
    houses.iter().for_each(|house| house.world.clock.advance(Duration::from_secs(seconds)));
}

/// Another has subscribed to what a grant shows, every minute; the grant, its hash, the subscription.
pub async fn subscribed(alice: &House, bob: &House, more: Value) -> (Value, String, String) {
    let (grant, hash) = alice.grants(bob, more).await;
    let held = bob.act(&format!("received/{hash}/subscribe"), &json!({"window": 60})).await.ok();
    (grant, hash, held["subscription"].as_str().unwrap().to_owned())
}

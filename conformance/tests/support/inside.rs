//! A gateway in memory, as the probes reach it.

use crate::common::*;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderName, HeaderValue};
use oap_conformance::probe::{
    self, Forbidden, Limits, Outcome, Reply, Request, Setup, SetupError, Wire, WireError, wire::Pending,
};
use oap_conformance::world::{OWN, read_profile};
use oap_exchange::Vector;
use oap_exchange::ccc::SanctionsList;
use oap_exchange::gate::Sanctions;
use oap_gateway::cli::fixture::{self, Asked};
use oap_gateway::embedding::{Embedding, EmbeddingModel};
use oap_gateway::service::Witnesses;
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::state::owner::Permission;
use oap_gateway::{Config, Gateway};
use oap_identity::random::Seeded;
use oap_identity::{Random, Signer, Timestamp};
use oap_memory::Profile;
use oap_store::Store;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tower::ServiceExt;

pub struct Inside<'a>(pub &'a World);

fn unanswered(e: &dyn std::fmt::Display) -> WireError {
    WireError::Unanswered(e.to_string())
}

impl Inside<'_> {
    /// A sanctions list is there, or is not, as a file of a home.
    fn screened(&self, command: &Value) -> Result<Value, SetupError> {
        let lists = self.0.lists.as_ref().ok_or_else(|| SetupError::Lacks("it has no home".to_owned()))?;
        let list: SanctionsList = command["list"].as_str().unwrap_or_default().parse().unwrap();
        let mut lists = lists.0.lock().unwrap();
        match command["named"].as_array() {
            None => drop(lists.remove(&list)),
            Some(named) => {
                let named = named.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                lists.insert(list, named);
            }
        }
        Ok(json!({}))
    }

    /// What is answered, without the body; and the body.
    async fn asked(&self, request: Request) -> Result<(Reply, Body), WireError> {
        let mut made = axum::http::Request::builder().method(request.method).uri(&request.path);
        for (name, value) in &request.headers {
            made = made.header(name, value);
        }
        let made = made.body(Body::from(request.body.unwrap_or_default())).map_err(|e| unanswered(&e))?;
        let answer = self.0.router.clone().oneshot(made).await.map_err(|e| unanswered(&e))?;
        let status = answer.status().as_u16();
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = answer.headers().iter().map(header).collect();
        Ok((Reply { status, headers, bytes: Vec::new() }, answer.into_body()))
    }
}

/// A profile that lies in a home, as the next start reads it.
fn put_in_home(document: &Value) -> Result<Value, SetupError> {
    let written = as_toml(document).and_then(|document| toml::to_string(&document).ok());
    let written = written.ok_or_else(|| SetupError::Refused("no document in TOML".to_owned()))?;
    let read = Profile::parse(&written);
    read.map(|_| json!({})).map_err(|e| SetupError::Refused(e.to_string()))
}

/// A value as TOML, which has all of JSON but null.
fn as_toml(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => toml::Value::Boolean(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => toml::Value::Integer(whole),
            None => toml::Value::Float(number.as_f64()?),
        },
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(list) => toml::Value::Array(list.iter().map(as_toml).collect::<Option<_>>()?),
        Value::Object(members) => toml::Value::Table(
            members
                .iter()
                .map(|(name, value)| Some((name.clone(), as_toml(value)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

impl Wire for Inside<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move {
            let (reply, body) = self.asked(request).await?;
            let bytes = axum::body::to_bytes(body, 1 << 26).await.map_err(|e| unanswered(&e))?;
            Ok(Reply { bytes: bytes.to_vec(), ..reply })
        })
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move {
            let (mut reply, mut body) = self.asked(request).await?;
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                let frame = frame.map_err(|e| unanswered(&e))?;
                reply.bytes.extend(frame.into_data().unwrap_or_default());
                if reply.bytes.ends_with(b"\n\n") {
                    break;
                }
            }
            Ok(reply)
        })
    }

    /// A log, where there is one, grows by a leaf each minute, as the server of a gateway has it.
    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        self.0.clock.advance(time);
        Box::pin(async move {
            // Where the clock is not believed there is no leaf of this minute.
            let _ = Witnesses(&self.0.gateway).round().await;
            Ok(())
        })
    }

    fn sets_clock(&self) -> bool {
        true
    }

    fn forbidden(&self, _: Forbidden, _: Request) -> Pending<'_, Option<Reply>> {
        Box::pin(std::future::ready(Err(unanswered(&"nobody listens"))))
    }
}

impl Setup for Inside<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        Box::pin(async move {
            if command["do"] == "sanctions" {
                return self.screened(&command);
            }
            // Those of the probes are there since the start, or are not.
            let is_new =
                |document: &Value| OWN.iter().all(|own| read_profile(own)["name"] != document["name"]);
            if command["do"] == "profile" && is_new(&command["profile"]) {
                return put_in_home(&command["profile"]);
            }
            let asked = fixture::request(&command).map_err(SetupError::from)?;
            let (method, path, body) = match asked {
                Asked::Post { path, body } => ("POST", path, Some(body)),
                Asked::Get { path, query } => {
                    let query = query.iter().map(|(name, value)| format!("{name}={value}"));
                    ("GET", format!("{path}?{}", query.collect::<Vec<_>>().join("&")), None)
                }
            };
            let admin = Signer::did_key(&[99; 32]).map_err(|e| SetupError::Broken(e.to_string()))?;
            let ask = async || {
                // By a token of the key in use: a rotation ends those that there were.
                let token = self.0.gateway.trust_token(&admin, Permission::Admin);
                let token = token.map_err(|e| SetupError::Broken(e.to_string()))?;
                Ok::<_, SetupError>(self.0.as_agent(&admin, &token, method, &path, body.as_ref()).await)
            };
            let mut answer = ask().await?;
            // Another probe's rotation may have come between.
            if answer.status == 401 {
                answer = ask().await?;
            }
            if answer.status.is_server_error() {
                return Err(SetupError::Fault(answer.body["message"].to_string()));
            }
            if answer.status != 200 {
                return Err(SetupError::Refused(answer.body["message"].to_string()));
            }
            fixture::answer(&command, answer.body).map_err(SetupError::Lacks)
        })
    }

    fn may_lock_down(&self) -> bool {
        true
    }
}

/// A model of embeddings to which every letter counts.
struct Letters;

impl EmbeddingModel for Letters {
    fn name(&self) -> &str {
        "letters"
    }

    fn dimensions(&self) -> usize {
        32
    }

    fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
        let count = |text: &String| {
            let mut counts = vec![0.001; 32];
            text.bytes().for_each(|byte| counts[usize::from(byte % 32)] += 1.0);
            Vector::new(counts)
        };
        let vectors = texts.iter().filter_map(count).collect();
        Box::pin(async move { Ok(vectors) })
    }
}

/// The gateway behind something that sees each request, and may change what comes back.
pub struct Behind<'a, F> {
    inside: Inside<'a>,
    answers: F,
}

impl<'a, F: Fn(&Request, Reply) -> Reply + Send + Sync> Behind<'a, F> {
    pub fn of(world: &'a World, answers: F) -> Self {
        Self { inside: Inside(world), answers }
    }
}

impl<F: Fn(&Request, Reply) -> Reply + Send + Sync> Wire for Behind<'_, F> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move { Ok((self.answers)(&request, self.inside.send(request.clone()).await?)) })
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move { Ok((self.answers)(&request, self.inside.first_event(request.clone()).await?)) })
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        self.inside.wait(time)
    }

    fn sets_clock(&self) -> bool {
        true
    }

    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>> {
        self.inside.forbidden(way, request)
    }
}

/// What the probes want of a gateway: their own profiles, and sanctions lists that its owner's side sets.
pub fn equipment() -> Equipment {
    let own = OWN.map(|text| Profile::parse(text).unwrap());
    let profiles = Profile::built_in().into_iter().chain(own).collect();
    Equipment { profiles, lists: Some(Lists::default()), ..Equipment::default() }
}

/// A gateway to be probed.
pub async fn probed(seed: u64, config: Config, equipment: Equipment) -> World {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(seed));
    let store = Store::in_memory(random.clone()).unwrap();
    probed_on(store, config, random, equipment).await
}

/// The same, on a store.
pub async fn probed_on(store: Store, config: Config, random: Arc<dyn Random>, equipment: Equipment) -> World {
    let start = Timestamp::from_millis(START);
    Gateway::init(&store, &StoredKeys::generate(&*random, start)).await.unwrap();
    World::having(PRINCIPAL, store, config, random, equipment, start).await
}

/// A gateway with a model of embeddings.
pub async fn with_model(seed: u64) -> World {
    let equipment = Equipment { embeddings: Some(Box::new(Letters)), ..equipment() };
    probed(seed, Config::default(), equipment).await
}

/// A new gateway whose log another one is asked to sign, which says no: what is published of it is its own. A minute went by, so that there is
/// something. Both are on the runtime that made them.
pub async fn with_log(store: Store, random: Arc<dyn Random>) -> World {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let did = format!("did:web:localhost%3A{}", listener.local_addr().unwrap().port());
    let of_another: Arc<dyn Random> = Arc::new(Seeded::new(77));
    let its_store = Store::in_memory(of_another.clone()).unwrap();
    let keys = StoredKeys::generate(&*of_another, Timestamp::from_millis(START));
    Gateway::init(&its_store, &keys).await.unwrap();
    let config = Config { allow_local_dids: true, plain_http: true, ..Config::default() };
    let another = World::of(&did, its_store, config, of_another, Sanctions::new(), None).await;
    let router = another.router.clone();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });

    let config = Config { allow_local_dids: true, ..Config::default() };
    let world = World::on(store, config, random).await;
    for (path, named) in [("/oap/owner/peers", "peer"), ("/oap/owner/witnesses", "did")] {
        world.owner("POST", path, Some(&json!({named: did}))).await.ok();
    }
    world.clock.advance(Duration::from_secs(60));
    assert!(Witnesses(&world.gateway).round().await.unwrap());
    world
}

/// The one probe that is asked for, where it is one (`conformance/rogues/mutants.py`).
pub static ONLY: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("OAP_PROBE_ONLY").ok());

/// The probes against a gateway, with or without its owner's side.
pub async fn run(world: &World, seed: u64, setup: bool) -> probe::Report {
    let inside = Inside(world);
    let setup = setup.then_some(&inside as &dyn Setup);
    let random = Seeded::new(seed);
    let worlds = std::env::var("OAP_PROBE_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let limits = Limits { worlds, only: ONLY.as_deref(), ..Limits::default() };
    // Where a fault is looked for, the first one is enough (`conformance/rogues/mutants.py`).
    let first = std::env::var_os("OAP_PROBE_FIRST").is_some();
    let mut told = |result: &probe::report::Result| {
        assert!(
            !first || !matches!(result.outcome, Outcome::Failed(_)),
            "{}: {:?}",
            result.id,
            result.outcome
        );
    };
    probe::run(ORIGIN, &inside, setup, &*world.clock, &random, limits, &mut told).await
}

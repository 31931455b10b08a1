//! A gateway in memory, as the probes reach it.

use crate::common::*;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue};
use oap_conformance::probe::{
    self, Forbidden, Limits, Outcome, Reply, Request, Setup, SetupError, Wire, WireError, wire::Pending,
};
use oap_exchange::Vector;
use oap_exchange::gate::Sanctions;
use oap_gateway::cli::fixture;
use oap_gateway::embedding::{Embedding, EmbeddingModel};
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::state::owner::Permission;
use oap_gateway::{Config, Gateway};
use oap_identity::random::Seeded;
use oap_identity::{Random, Signer, Timestamp};
use oap_store::Store;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

pub struct Inside<'a>(pub &'a World);

fn unanswered(e: &dyn std::fmt::Display) -> WireError {
    WireError::Unanswered(e.to_string())
}

impl Wire for Inside<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move {
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
            let bytes =
                axum::body::to_bytes(answer.into_body(), 1 << 26).await.map_err(|e| unanswered(&e))?;
            Ok(Reply { status, headers, bytes: bytes.to_vec() })
        })
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        self.0.clock.advance(time);
        Box::pin(std::future::ready(Ok(())))
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
            let (path, body) = fixture::request(&command).map_err(|e| SetupError::Broken(e.to_string()))?;
            // By a token of the key in use: a rotation ends those that there were.
            let admin = Signer::did_key(&[99; 32]).map_err(|e| SetupError::Broken(e.to_string()))?;
            let token = self.0.gateway.trust_token(&admin, Permission::Admin);
            let token = token.map_err(|e| SetupError::Broken(e.to_string()))?;
            let answer = self.0.as_agent(&admin, &token, "POST", &path, Some(&body)).await;
            if answer.status != 200 {
                return Err(SetupError::Refused(answer.body["message"].to_string()));
            }
            Ok(fixture::answer(&command, answer.body))
        })
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

/// A gateway with a model of embeddings.
pub async fn with_model(seed: u64) -> World {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(seed));
    let store = Store::in_memory(random.clone()).unwrap();
    let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
    Gateway::init(&store, &keys).await.unwrap();
    World::equipped(store, Config::default(), random, Sanctions::new(), Some(Box::new(Letters))).await
}

/// The probes against a gateway, with or without its owner's side.
pub async fn run(world: &World, seed: u64, setup: bool) -> probe::Report {
    let inside = Inside(world);
    let setup = setup.then_some(&inside as &dyn Setup);
    let random = Seeded::new(seed);
    let worlds = std::env::var("OAP_PROBE_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let limits = Limits { worlds, ..Limits::default() };
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

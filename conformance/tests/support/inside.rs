//! A gateway in memory, as the probes reach it.

use crate::common::*;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue};
use oap_conformance::probe::{self, Forbidden, Limits, Reply, Request, Setup, Wire, context::Pending};
use oap_gateway::cli::fixture;
use oap_identity::random::Seeded;
use serde_json::Value;
use std::time::Duration;
use tower::ServiceExt;

pub struct Inside<'a>(pub &'a World);

impl Wire for Inside<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move {
            let mut made = axum::http::Request::builder().method(request.method).uri(&request.path);
            for (name, value) in &request.headers {
                made = made.header(name, value);
            }
            let made = made.body(Body::from(request.body.unwrap_or_default())).map_err(|e| e.to_string())?;
            let answer = self.0.router.clone().oneshot(made).await.map_err(|e| e.to_string())?;
            let status = answer.status().as_u16();
            let header = |(name, value): (&HeaderName, &HeaderValue)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            };
            let headers = answer.headers().iter().map(header).collect();
            let bytes = axum::body::to_bytes(answer.into_body(), 1 << 26).await.map_err(|e| e.to_string())?;
            Ok(Reply { status, headers, bytes: bytes.to_vec() })
        })
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        self.0.clock.advance(time);
        Box::pin(std::future::ready(Ok(())))
    }

    fn forbidden(&self, _: Forbidden, _: Request) -> Pending<'_, Option<Reply>> {
        Box::pin(std::future::ready(Err("nobody listens".to_owned())))
    }
}

impl Setup for Inside<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value> {
        Box::pin(async move {
            let (path, body) = fixture::request(&command).map_err(|e| e.to_string())?;
            let answer = self.0.owner("POST", &path, Some(&body)).await;
            if answer.status != 200 {
                return Err(answer.body["message"].to_string());
            }
            Ok(fixture::answer(&command, answer.body))
        })
    }
}

/// The probes against a gateway, with or without its owner's side.
pub async fn run(world: &World, seed: u64, setup: bool) -> probe::Report {
    let inside = Inside(world);
    let setup = setup.then_some(&inside as &dyn Setup);
    let random = Seeded::new(seed);
    let worlds = std::env::var("OAP_PROBE_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let limits = Limits { worlds, ..Limits::default() };
    probe::run(ORIGIN, &inside, setup, &*world.clock, &random, limits, &mut |_| {}).await
}

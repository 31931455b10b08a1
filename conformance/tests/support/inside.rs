//! A gateway in memory, as the probes reach it.

use crate::common::*;
use axum::body::Body;
use oap_conformance::probe::{self, Forbidden, Limits, Reply, Request, Setup, Wire, context::Pending};
use oap_identity::random::Seeded;
use serde_json::{Value, json};
use std::time::Duration;

pub struct Inside<'a>(pub &'a World);

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

/// The probes against a gateway, with or without its owner's side.
pub async fn run(world: &World, seed: u64, setup: bool) -> probe::Report {
    let inside = Inside(world);
    let setup = setup.then_some(&inside as &dyn Setup);
    let random = Seeded::new(seed);
    probe::run(ORIGIN, &inside, setup, &*world.clock, &random, Limits::default(), &mut |_| {}).await
}

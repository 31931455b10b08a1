//! A front around the real gateway, with one fault: it sees every request and every answer, and what the owner does.

use super::inside::Inside;
use super::lies::reseal;
use crate::common::*;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
pub use oap_conformance::probe::Request;
use oap_conformance::probe::{Forbidden, Reply, Setup, SetupError, Wire, WireError, wire::Pending};
use oap_identity::random::Seeded;
use oap_identity::{Clock, Random, Timestamp, json as strict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a front remembers.
#[derive(Default)]
pub struct Memory {
    /// Items as their owner wrote them.
    pub items: Vec<Value>,
    /// The same, by the ids that they were given.
    pub captured: BTreeMap<String, Value>,
    /// Whether something was deleted.
    pub deleted: bool,
    /// What was answered with 200, by the real gateway.
    pub good: Vec<(Request, Reply)>,
    /// Receipts of answers that were changed and sealed anew; the log shows them instead of its own.
    receipts: Vec<Value>,
}

impl Memory {
    /// The last good answer to a request that is like this.
    pub fn before(&self, like: impl Fn(&Request) -> bool) -> Option<Reply> {
        self.good.iter().rev().find(|(request, _)| like(request)).map(|(_, reply)| reply.clone())
    }

    /// Whether the gateway made this token.
    pub fn is_token(&self, token: &str) -> bool {
        self.good.iter().any(|(_, reply)| reply.json()["memory_grant_jwt"] == token)
    }
}

/// One fault, and the probe that is meant for it.
pub struct Rogue {
    pub name: &'static str,
    pub meant: &'static str,
    /// What becomes of a request on its way in.
    pub asked: fn(&Memory, Request) -> Request,
    /// What becomes of an answer on its way out. An answer to a query is sealed anew after it.
    pub answered: fn(&Memory, &Request, Reply) -> Reply,
    /// What becomes of the owner's command.
    pub owner: fn(&Memory, Value) -> Value,
    /// What becomes of what the owner is told.
    pub done: fn(Result<Value, SetupError>) -> Result<Value, SetupError>,
    /// What is answered where nobody may be heard.
    pub forbidden: fn() -> Result<Option<Reply>, WireError>,
    /// The gateway's clock stands still.
    pub timeless: bool,
    /// The gateway's randomness.
    pub random: fn() -> Arc<dyn Random>,
}

/// No fault.
pub const HONEST: Rogue = Rogue {
    name: "honest",
    meant: "",
    asked: |_, request| request,
    answered: |_, _, reply| reply,
    owner: |_, command| command,
    done: |done| done,
    forbidden: || Err(WireError::Unanswered("nobody listens".to_owned())),
    timeless: false,
    random: || Arc::new(Seeded::new(1)),
};

/// The clock of the probes: the gateway's, or one that goes on without it.
pub struct ProbesClock<'a>(pub &'a World, pub Mutex<Duration>);

impl Clock for ProbesClock<'_> {
    fn now(&self) -> Timestamp {
        self.0.now().plus(*self.1.lock().unwrap())
    }
}

/// The front.
pub struct Front<'a> {
    inside: Inside<'a>,
    rogue: &'a Rogue,
    clock: &'a ProbesClock<'a>,
    memory: Mutex<Memory>,
}

impl<'a> Front<'a> {
    pub fn of(world: &'a World, rogue: &'a Rogue, clock: &'a ProbesClock<'a>) -> Self {
        Self { inside: Inside(world), rogue, clock, memory: Mutex::default() }
    }

    /// A changed answer with the gateway's signatures over it, and a log that agrees.
    fn sealed(&self, memory: &mut Memory, request: &Request, before: &Value, reply: Reply) -> Reply {
        let mut body = reply.json();
        if is_query(request) && reply.status == 200 && body["receipt"].is_object() && body != *before {
            reseal(self.inside.0, before, &mut body);
            memory.receipts.push(body["receipt"].clone());
            return edit(reply, |all| *all = body.clone());
        }
        if is_letter(request) && reply.status == 200 && body["signature"].is_object() && body != *before {
            let keys = self.inside.0.gateway.keys();
            body.as_object_mut().map(|members| members.remove("signature"));
            let value = keys.current().sign(&strict::canonical(&body).unwrap());
            body["signature"] = json!({"alg": "EdDSA", "kid": keys.current().kid(), "value": value});
            return edit(reply, |all| *all = body.clone());
        }
        if is_audit(request) && reply.status == 200 && !memory.receipts.is_empty() {
            return edit(reply, |log| {
                for receipt in log["receipts"].as_array_mut().into_iter().flatten() {
                    let own = memory.receipts.iter().find(|own| own["receipt_id"] == receipt["receipt_id"]);
                    if let Some(own) = own {
                        *receipt = own.clone();
                    }
                }
            });
        }
        reply
    }
}

impl Front<'_> {
    async fn through(&self, request: Request, is_stream: bool) -> Result<Reply, WireError> {
        let asked = (self.rogue.asked)(&self.memory.lock().unwrap(), request.clone());
        let asked = if is_stream { self.inside.first_event(asked) } else { self.inside.send(asked) };
        let honest = asked.await?;
        let mut memory = self.memory.lock().unwrap();
        let reply = (self.rogue.answered)(&memory, &request, honest.clone());
        let reply = self.sealed(&mut memory, &request, &honest.json(), reply);
        if honest.status == 200 {
            memory.good.push((request, honest));
        }
        Ok(reply)
    }
}

impl Wire for Front<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(self.through(request, false))
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(self.through(request, true))
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        if self.rogue.timeless {
            *self.clock.1.lock().unwrap() += time;
            return Box::pin(std::future::ready(Ok(())));
        }
        self.inside.wait(time)
    }

    fn sets_clock(&self) -> bool {
        !self.rogue.timeless
    }

    fn forbidden(&self, _: Forbidden, _: Request) -> Pending<'_, Option<Reply>> {
        Box::pin(std::future::ready((self.rogue.forbidden)()))
    }
}

impl Setup for Front<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        let mut memory = self.memory.lock().unwrap();
        memory.items.extend(command["items"].as_array().into_iter().flatten().cloned());
        memory.deleted |= command["do"] == "delete";
        let drafts = command["items"].as_array().cloned().unwrap_or_default();
        let command = (self.rogue.owner)(&memory, command);
        drop(memory);
        Box::pin(async move {
            let done = self.inside.call(command).await;
            if let Ok(done) = &done {
                let ids = done["item_ids"].as_array().into_iter().flatten();
                let ids = ids.filter_map(|id| id.as_str().map(str::to_owned));
                self.memory.lock().unwrap().captured.extend(ids.zip(drafts));
            }
            (self.rogue.done)(done)
        })
    }

    fn may_lock_down(&self) -> bool {
        true
    }
}

/// A reply with another body.
pub fn edit(reply: Reply, change: impl FnOnce(&mut Value)) -> Reply {
    let mut body = reply.json();
    change(&mut body);
    Reply { bytes: serde_json::to_vec(&body).unwrap(), ..reply }
}

/// The same for what is asked at a path.
pub fn at(path: &str, request: &Request, reply: Reply, change: impl FnOnce(&mut Value)) -> Reply {
    if request.path.contains(path) && reply.status == 200 { edit(reply, change) } else { reply }
}

/// The same for every item of an answer.
pub fn items(request: &Request, reply: Reply, change: impl FnMut(&mut Value)) -> Reply {
    at("/oap/memory/query", request, reply, |body| {
        body["items"].as_array_mut().into_iter().flatten().for_each(change);
    })
}

/// An empty answer, where there should be none.
pub fn let_in() -> Reply {
    Reply { status: 200, headers: Vec::new(), bytes: b"{\"items\": []}".to_vec() }
}

/// A refusal in place of an answer.
pub fn refused(reply: Reply, status: u16, code: &str) -> Reply {
    let body = json!({"error": code, "message": "no", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"});
    Reply { status, bytes: body.to_string().into_bytes(), ..reply }
}

pub fn is_query(request: &Request) -> bool {
    request.path == "/oap/memory/query"
}

pub fn is_letter(request: &Request) -> bool {
    request.path == "/oap/peer/letter"
}

pub fn is_event(request: &Request) -> bool {
    request.path.starts_with("/oap/memory/subscribe/") && request.path.ends_with("/events")
}

pub fn is_audit(request: &Request) -> bool {
    request.path.starts_with("/oap/audit")
}

/// What its owner wrote of an item that is shown.
pub fn draft<'a>(memory: &'a Memory, item: &Value) -> &'a Value {
    memory.captured.get(item["item_id"].as_str().unwrap_or_default()).unwrap_or(&Value::Null)
}

/// A text with the spans of a class that were hidden: what stands between the same runs of the whole text.
pub fn unhidden(shown: &str, whole: &str, class: &str) -> String {
    let (mut text, mut rest, mut left) = (String::new(), whole, shown);
    while let Some((run, after)) = left.split_once('[') {
        let Some((name, after)) = after.split_once(']') else { break };
        let next = after.split('[').next().unwrap_or_default();
        let Some(begun) = rest.strip_prefix(run) else { return shown.to_owned() };
        let span = if next.is_empty() { begun } else { begun.split(next).next().unwrap_or_default() };
        text.push_str(run);
        text.push_str(if name == class {
            span
        } else {
            left.get(run.len()..run.len() + name.len() + 2).unwrap_or_default()
        });
        (rest, left) = (&begun[span.len()..], after);
    }
    text + left
}

/// What a request says.
pub fn body(request: &Request) -> Value {
    strict::parse(request.body.as_deref().unwrap_or_default()).unwrap_or(Value::Null)
}

/// A request that says something else.
pub fn rewrite(mut request: Request, change: impl FnOnce(&mut Value)) -> Request {
    let mut said = body(&request);
    change(&mut said);
    request.body = Some(said.to_string().into_bytes());
    request
}

/// A header, without the scheme of a credential.
pub fn header<'a>(request: &'a Request, name: &str) -> &'a str {
    let found = request.headers.iter().find(|(n, _)| n == name);
    found.map_or("", |(_, value)| value.rsplit(' ').next().unwrap_or_default())
}

/// The header or the claims of a JWT.
pub fn part(jwt: &str, number: usize) -> Value {
    let part = jwt.split('.').nth(number).unwrap_or_default();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap_or_default()).unwrap_or_default()
}

/// A JWT with other claims.
pub fn forged(jwt: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut claims = part(jwt, 1);
    change(&mut claims);
    let parts: Vec<&str> = jwt.split('.').collect();
    format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(claims.to_string()), parts[2])
}

/// A command with another draft, where it is a grant.
pub fn widened(mut command: Value, change: impl FnOnce(&mut Value)) -> Value {
    if command["do"] == "grant" {
        change(&mut command["draft"]);
    }
    command
}

/// A command whose items are changed.
pub fn captured(mut command: Value, change: impl FnMut(&mut Value)) -> Value {
    if command["do"] == "capture" {
        command["items"].as_array_mut().into_iter().flatten().for_each(change);
    }
    command
}

/// A command that is not carried out; something harmless is.
pub fn ignored(command: Value, what: &str) -> Value {
    if command["do"] == what {
        serde_json::json!({"do": "capture", "items": [note("x", &[])]})
    } else {
        command
    }
}

//! What a probe works with: the wire, the owner's side, keys of its own.

use super::declared::{Declared, Place};
use super::drafted::departures_of_grant;
use super::forms;
use super::{Failed, Limits};
use crate::model::Model;
use oap_grants::{dpop, exchange};
use oap_identity::{
    Clock, Did, DidDocument, Hash, Random, RequestId, Signer, Timestamp, json as strict, random,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A request.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Request {
    /// GET, POST.
    pub method: &'static str,
    /// The path, with its query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

/// What came back.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Reply {
    pub status: u16,
    /// Headers, their names in small letters.
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
}

impl Reply {
    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        strict::parse(&self.bytes).unwrap_or(Value::Null)
    }

    /// A header; the name in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// After how many seconds it may be asked again.
    fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.parse().ok().map(Duration::from_secs)
    }
}

/// Something on its way.
pub type Pending<'a, T, E = WireError> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Why a wire did not do what it was asked. The texts are for the person who reads the report.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Nothing listens, or what came is not HTTP.
    #[error("{0}")]
    Unanswered(String),
    /// The reply is longer than any that a gateway may give.
    #[error("an answer larger than any gateway's")]
    TooLarge,
    /// It cannot let time pass.
    #[error("time cannot pass: {0}")]
    Time(String),
}

/// What the gateway said when it refused a command of its owner.
#[derive(Debug)]
pub struct Refused(pub String);

/// Why the owner's side did not run a command.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The gateway refused it: what it says.
    #[error("{0}")]
    Refused(String),
    /// It never came to the gateway: this says nothing of what the gateway would do.
    #[error("{0}")]
    Broken(String),
}

/// A way to ask that a gateway must not answer (OAP-CORE 8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// HTTP without TLS.
    Plain,
    /// TLS older than 1.3.
    OldTls,
}

/// The way to the gateway.
pub trait Wire: Send + Sync {
    /// Sends a request to the gateway's origin.
    fn send(&self, request: Request) -> Pending<'_, Reply>;

    /// Lets time pass, the gateway's too.
    fn wait(&self, time: Duration) -> Pending<'_, ()>;

    /// Whether time that is waited for costs none: the gateway's clock is set, and this one with it.
    fn sets_clock(&self) -> bool {
        false
    }

    /// Asks in a way that must not be answered: an error when it is not, `None` where this wire cannot ask so.
    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>>;
}

/// The owner's side of the gateway: commands as JSON.
///
/// | `do` | with | gives |
/// |---|---|---|
/// | `capture` | `items`: as their owner writes them | `item_ids` |
/// | `grant` | `draft`: grantee, purpose, filter, max_items, expires_at, redaction_profile, trust_level, operations | `grant` |
/// | `revoke` | `grant_id` | |
/// | `correct` | `item_id`, `item` | |
/// | `relabel` | `item_id`, `labels` | |
/// | `confirm`, `retract`, `restore` | `item_id` | |
/// | `delete` | `item_ids` | `deletion_receipt` |
/// | `rotate` | | |
/// | `context` | `context`: a document of `oap-ccc.schema.json` | |
/// | `bridge` | `draft`: from_scope, to_scope, data_categories, valid_until | `bridge` |
/// | `unbridge` | `bridge_id` | |
/// | `consent` | `grant_id` | |
///
/// A command that the gateway refuses is [`SetupError::Refused`].
pub trait Setup: Send + Sync {
    /// Runs a command.
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError>;
}

/// What a probe works with.
pub struct Context<'a> {
    origin: &'a str,
    wire: &'a dyn Wire,
    setup: Option<&'a dyn Setup>,
    clock: &'a dyn Clock,
    random: &'a dyn Random,
    limits: Limits,
    declared: Declared,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: usize,
    /// When the run has used up its time; the beginning of it where nothing is said.
    until: Option<Timestamp>,
    sent: String,
    got: String,
    /// What replies lacked of the form that every reply has.
    deviations: BTreeSet<String>,
    /// How often each rule of the model and each condition decided something.
    decided: BTreeMap<String, u64>,
}

/// The provenance tag of every item that a run puts in, name and value: one selector of a deletion takes all of them.
pub const TAG: (&str, &str) = ("made_by", "oap-memory-probe");
/// The purpose of every grant that a run has issued, but for those that try what a purpose may be.
pub const PURPOSE: &str = "oap-memory probe";

/// An item with the [`TAG`] of a run.
#[must_use]
pub fn tagged(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        let provenance = members.entry("provenance").or_insert(Value::Null);
        if provenance.is_null() {
            *provenance = json!({});
        }
        if let Some(tags) = provenance.as_object_mut() {
            tags.insert(TAG.0.to_owned(), json!(TAG.1));
        }
    }
    item
}

/// How long a gateway is given that says that it was asked too often, or that it is busy (429 and 503, protocol section 1): its limits count a
/// minute.
const RATE_WAIT: Duration = Duration::from_secs(61);
/// How often one request is waited for so.
const RATE_WAITS: usize = 3;
/// Deviations that are kept; more say little more.
const MAX_DEVIATIONS: usize = 20;

/// Longest text of a request or reply in a report.
const SHOWN: usize = 600;

/// A grantee with a token.
#[allow(missing_docs, reason = "the names say it")]
pub struct Session {
    /// Its keys.
    pub grantee: Signer,
    pub grant: Value,
    pub token: String,
    /// How it is presented.
    pub bearer: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        origin: &'a str,
        wire: &'a dyn Wire,
        setup: Option<&'a dyn Setup>,
        clock: &'a dyn Clock,
        random: &'a dyn Random,
        limits: Limits,
    ) -> Self {
        let state = State { until: Some(clock.now().plus(limits.time)), ..State::default() };
        let declared = Declared::default();
        Self { origin, wire, setup, clock, random, limits, declared, state: Mutex::new(state) }
    }

    /// Reads what the gateway declares of itself. Where it cannot be read, what the protocol has stays; the probes of the manifest
    /// say so.
    pub(super) async fn learn(&mut self) {
        if let Ok(manifest) = self.get("/.well-known/oap-memory.json").await {
            self.declared = Declared::of(&manifest, self.origin);
        }
    }

    /// What the gateway declares of itself.
    #[must_use]
    pub const fn declared(&self) -> &Declared {
        &self.declared
    }

    /// The path of an endpoint, as the manifest has it.
    #[must_use]
    pub fn at(&self, place: Place) -> &str {
        self.declared.at(place)
    }

    /// A rule or a condition decided something.
    pub fn note(&self, rule: &dyn fmt::Display) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.decided.entry(rule.to_string()).or_default() += 1;
    }

    /// The same for all that a model counted.
    pub fn decided(&self, model: &Model) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (rule, times) in model.decided() {
            *state.decided.entry(rule.to_string()).or_default() += times;
        }
    }

    /// How often each rule of the model and each condition decided something.
    pub(super) fn coverage(&self) -> BTreeMap<String, u64> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).decided.clone()
    }

    /// What replies lacked so far of the form that every reply has.
    #[must_use]
    pub fn deviations(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).deviations.iter().cloned().collect()
    }

    pub(super) fn begin(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sent.clear();
        state.got.clear();
    }

    pub(super) fn last(&self) -> (String, String) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.sent.clone(), state.got.clone())
    }

    pub(super) fn requests(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).requests
    }

    /// A fresh DID and its key.
    #[must_use]
    pub fn stranger(&self) -> Signer {
        loop {
            if let Ok(signer) = Signer::did_key(&random::bytes(self.random)) {
                return signer;
            }
        }
    }

    /// A word that stands nowhere else.
    #[must_use]
    pub fn word(&self) -> String {
        let bytes: [u8; 12] = random::bytes(self.random);
        bytes.iter().map(|b| char::from(b'a' + b % 26)).collect()
    }

    /// Counts a request, and notes it for the report.
    fn count(&self, request: &Request) -> Result<(), Failed> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.requests >= self.limits.requests {
            return Err(Failed::Skipped("the run has used up its requests".to_owned()));
        }
        if state.until.is_some_and(|until| self.clock.now() >= until) {
            return Err(Failed::Skipped("the run has used up its time".to_owned()));
        }
        state.requests += 1;
        let body = String::from_utf8_lossy(request.body.as_deref().unwrap_or_default()).into_owned();
        state.sent = short(&format!("{} {} {body}", request.method, request.path));
        Ok(())
    }

    /// Sends a request. A gateway that says that it was asked too often, or that it is busy, is waited for.
    ///
    /// # Errors
    /// [`Failed::Skipped`] when the run has used up its requests or its time, or the gateway goes on saying so; [`Failed::Wrong`] when nothing
    /// comes back, or a fault of the gateway.
    pub async fn send(&self, request: Request) -> Result<Reply, Failed> {
        self.send_each(|| Ok(request.clone())).await
    }

    /// The same of a request that is made anew each time: a proof is good once.
    ///
    /// # Errors
    /// As [`Context::send`]; those of `make`.
    pub async fn send_each(
        &self,
        make: impl Fn() -> Result<Request, Failed> + Send,
    ) -> Result<Reply, Failed> {
        for _ in 0..=RATE_WAITS {
            let request = make()?;
            let asked = format!("{} {}", request.method, request.path);
            let reply = self.send_once(request).await?;
            let body = reply.json();
            let limited =
                [&body["error"], &body["error"]["code"]].iter().any(|code| **code == "rate_limited");
            let busy = (reply.status == 429 && limited) || reply.status == 503;
            if reply.status >= 500 && !busy {
                return Err(Failed::Wrong(format!(
                    "{asked}: a fault of the gateway, status {}",
                    reply.status
                )));
            }
            if !busy {
                return Ok(reply);
            }
            self.wait(reply.retry_after().unwrap_or(RATE_WAIT).min(RATE_WAIT)).await?;
        }
        Err(Failed::Skipped("the gateway goes on saying that it was asked too often".to_owned()))
    }

    async fn send_once(&self, request: Request) -> Result<Reply, Failed> {
        self.count(&request)?;
        let asked = request.clone();
        let reply = self.wire.send(request).await.map_err(|e| Failed::Wrong(e.to_string()))?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.got = short(&format!("{} {}", reply.status, String::from_utf8_lossy(&reply.bytes)));
        for deviation in forms::deviations(&self.declared, &asked, &reply) {
            if state.deviations.len() < MAX_DEVIATIONS {
                state.deviations.insert(deviation);
            }
        }
        Ok(reply)
    }

    /// Whether a request that must not be answered is; `None` where this wire cannot ask so.
    ///
    /// # Errors
    /// [`Failed::Skipped`] when the run has used up its requests or its time.
    pub async fn answered(&self, way: Forbidden, request: Request) -> Result<Option<bool>, Failed> {
        self.count(&request)?;
        Ok(match self.wire.forbidden(way, request).await {
            Ok(reply) => reply.map(|reply| reply.status < 300),
            Err(_) => Some(false),
        })
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// [`Failed::Skipped`] when the wire cannot.
    pub async fn wait(&self, time: Duration) -> Result<(), Failed> {
        self.wire.wait(time).await.map_err(|e| Failed::Skipped(e.to_string()))
    }

    /// Lets time pass that the run does not count, where clocks can be set; whether they can.
    ///
    /// # Errors
    /// [`Failed::Skipped`] when the wire cannot.
    pub async fn advance(&self, time: Duration) -> Result<bool, Failed> {
        if !self.wire.sets_clock() {
            return Ok(false);
        }
        self.wait(time).await?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.until = state.until.map(|until| until.plus(time));
        Ok(true)
    }

    /// A request whose answer means nothing.
    pub(super) async fn nonsense(&self) {
        let word = self.word();
        let path = format!("/oap/memory/{word}");
        // Nobody waits for it.
        let _ = self.send_once(post(&path, &[], &format!("{{\"{word}\": [1, "))).await;
    }

    /// GET, with JSON back.
    ///
    /// # Errors
    /// As [`Context::send`]; another status than 200.
    pub async fn get(&self, path: &str) -> Result<Value, Failed> {
        let reply = self.send(Request { method: "GET", path: path.to_owned(), ..Request::default() }).await?;
        expect(reply.status == 200, || format!("{path}: status {} instead of 200", reply.status))?;
        Ok(reply.json())
    }

    /// Runs a command on the owner's side.
    ///
    /// # Errors
    /// [`Failed::Skipped`] without an owner's side, or where it fails.
    pub async fn owner(&self, command: Value) -> Result<Value, Failed> {
        let done = self.try_owner(command).await?;
        done.map_err(|Refused(why)| Failed::Skipped(format!("the owner's side: {why}")))
    }

    /// The same, where a refusal is what is looked for.
    ///
    /// # Errors
    /// [`Failed::Skipped`] without an owner's side, or where it is broken: what it did not ask the gateway was not refused.
    pub async fn try_owner(&self, command: Value) -> Result<Result<Value, Refused>, Failed> {
        let setup = self.setup.ok_or_else(|| Failed::Skipped("needs the owner's side".to_owned()))?;
        let sent = short(&format!("the owner's {command}"));
        let done = setup.call(command).await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sent = sent;
        state.got = short(&done.as_ref().map_or_else(|why| format!("refused: {why}"), Value::to_string));
        drop(state);
        match done {
            Ok(done) => Ok(Ok(done)),
            Err(SetupError::Refused(why)) => Ok(Err(Refused(why))),
            Err(SetupError::Broken(why)) => Err(Failed::Skipped(format!("the owner's side: {why}"))),
        }
    }

    /// Puts items in, each with the [`TAG`] of a run; their ids.
    ///
    /// # Errors
    /// As [`Context::owner`].
    pub async fn capture(&self, items: &[Value]) -> Result<Vec<String>, Failed> {
        let items: Vec<Value> = items.iter().map(tagged).collect();
        let done = self.owner(json!({"do": "capture", "items": items})).await?;
        let ids = done["item_ids"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
    }

    /// A draft of a grant over one label, as probes want it: a month, fifty items, or what the manifest allows; the default profile.
    #[must_use]
    pub fn draft(&self, grantee: &Signer, label: &str, level: u8) -> Value {
        json!({
            "grantee": grantee.did(), "purpose": PURPOSE, "filter": {"labels_any": [label]},
            "max_items": self.declared.max_items.min(50), "expires_at": self.clock.now().plus(self.declared.life()),
            "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": level,
        })
    }

    /// The gateway's clock is taken to be this one, give or take five minutes.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Issues a grant, with the [`PURPOSE`] of a run, and exchanges it.
    ///
    /// # Errors
    /// As [`Context::owner`]; [`Failed::Wrong`] when a good grant is refused, or is not as it was drafted.
    pub async fn session(&self, grantee: Signer, mut draft: Value) -> Result<Session, Failed> {
        draft["purpose"] = json!(PURPOSE);
        let profile = draft["redaction_profile"].as_str().unwrap_or_default();
        if !self.declared.has_profile(profile) {
            return Err(Failed::Skipped(format!("the manifest does not name the profile {profile}")));
        }
        let grant = self.owner(json!({"do": "grant", "draft": draft})).await?["grant"].clone();
        let departs = departures_of_grant(&draft, &grant);
        expect(departs.is_empty(), || format!("a grant is not as it was drafted: {}", departs.join("; ")))?;
        let reply = self.exchange(&grantee, &grant).await?;
        expect(reply.status == 200, || format!("a grant in force was not exchanged: {}", reply.status))?;
        let answer = reply.json();
        let token = answer["memory_grant_jwt"].as_str().unwrap_or_default().to_owned();
        expect(!token.is_empty(), || "the answer has no memory_grant_jwt".to_owned())?;
        Ok(Session { grantee, grant, token, bearer: answer["token_type"] == "Bearer" })
    }

    /// A fresh grantee with a token for a grant over one label.
    ///
    /// # Errors
    /// As [`Context::session`].
    pub async fn granted(&self, label: &str, level: u8) -> Result<Session, Failed> {
        let grantee = self.stranger();
        let draft = self.draft(&grantee, label, level);
        self.session(grantee, draft).await
    }

    /// Presents a grant with a proof of its grantee's key.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn exchange(&self, grantee: &Signer, grant: &Value) -> Result<Reply, Failed> {
        self.exchange_with_proof_for(grantee, grant, grant).await
    }

    /// Exchanges a grant that was made from others; `above` are those, first one first.
    ///
    /// # Errors
    /// As [`Context::session`].
    pub async fn session_below(
        &self,
        grantee: Signer,
        grant: Value,
        above: &[Value],
    ) -> Result<Session, Failed> {
        let reply = self.present(&grantee, &grant, &grant, above).await?;
        expect(reply.status == 200, || {
            format!(
                "a grant that was passed on was not exchanged: {} {}",
                reply.status,
                reply.json()["message"]
            )
        })?;
        let answer = reply.json();
        let token = answer["memory_grant_jwt"].as_str().unwrap_or_default().to_owned();
        expect(!token.is_empty(), || "the answer has no memory_grant_jwt".to_owned())?;
        Ok(Session { grantee, grant, token, bearer: answer["token_type"] == "Bearer" })
    }

    /// A proof of a grantee's key, made for a grant, as it is shown at a path.
    fn grant_proof(&self, grantee: &Signer, grant: &Value, path: &str) -> Result<String, Failed> {
        let endpoint = format!("{}{path}", self.origin);
        let hash = Hash::of_canonical(grant).map_err(|e| Failed::Skipped(e.to_string()))?;
        exchange::prove(grantee, &endpoint, hash, self.now(), self.random)
            .map_err(|e| Failed::Skipped(e.to_string()))
    }

    /// The same, with the proof made for another grant.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn exchange_with_proof_for(
        &self,
        grantee: &Signer,
        grant: &Value,
        proved: &Value,
    ) -> Result<Reply, Failed> {
        self.present(grantee, grant, proved, &[]).await
    }

    /// Presents a grant with those above it, and a proof made for one of them.
    pub(super) async fn present(
        &self,
        grantee: &Signer,
        grant: &Value,
        proved: &Value,
        above: &[Value],
    ) -> Result<Reply, Failed> {
        let path = self.at(Place::Grant);
        self.send_each(|| {
            let body = self.handed_in(grant, above, self.grant_proof(grantee, proved, path)?);
            Ok(post(path, &[], &body.to_string()))
        })
        .await
    }

    /// The same as the action `memory.grant`.
    pub(super) async fn present_by_action(
        &self,
        grantee: &Signer,
        grant: &Value,
        above: &[Value],
    ) -> Result<Reply, Failed> {
        self.send_each(|| {
            let input = self.handed_in(grant, above, self.grant_proof(grantee, grant, INVOKE)?);
            Ok(post(INVOKE, &[], &self.envelope(grantee, "memory.grant", &input)?.to_string()))
        })
        .await
    }

    /// Presents a grant with another member beside it, at the endpoint or as the action `memory.grant`.
    pub(super) async fn present_with(
        &self,
        grantee: &Signer,
        grant: &Value,
        by_action: bool,
        (name, value): (&str, &Value),
    ) -> Result<Reply, Failed> {
        let path = if by_action { INVOKE } else { self.at(Place::Grant) };
        self.send_each(|| {
            let mut body = self.handed_in(grant, &[], self.grant_proof(grantee, grant, path)?);
            body[name] = value.clone();
            if by_action {
                body = self.envelope(grantee, "memory.grant", &body)?;
            }
            Ok(post(path, &[], &body.to_string()))
        })
        .await
    }

    /// What is sent to exchange a grant.
    fn handed_in(&self, grant: &Value, above: &[Value], proof: String) -> Value {
        let mut body = json!({"grant": grant, "proof": proof});
        if !above.is_empty() {
            body["chain"] = json!(above);
        }
        body
    }

    /// POST of a document.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn post(&self, path: &str, headers: &[(&str, String)], body: &Value) -> Result<Reply, Failed> {
        self.post_text(path, headers, &body.to_string()).await
    }

    async fn post_text(&self, path: &str, headers: &[(&str, String)], body: &str) -> Result<Reply, Failed> {
        self.send(post(path, headers, body)).await
    }

    /// The headers of a request under a session, its proof made with a key.
    ///
    /// # Errors
    /// [`Failed::Skipped`]; none in practice.
    pub fn credentials(
        &self,
        session: &Session,
        key: &Signer,
        method: &str,
        path: &str,
    ) -> Result<Vec<(&'static str, String)>, Failed> {
        if session.bearer {
            return Ok(vec![("authorization", format!("Bearer {}", session.token))]);
        }
        let url = format!("{}{}", self.origin, path.split('?').next().unwrap_or_default());
        let target = dpop::Request { method, url: &url };
        let proof = dpop::prove(key, target, &session.token, self.now(), self.random)
            .map_err(|e| Failed::Skipped(e.to_string()))?;
        Ok(vec![("authorization", format!("DPoP {}", session.token)), ("dpop", proof)])
    }

    /// A query under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn query(&self, session: &Session, query: &Value) -> Result<Reply, Failed> {
        self.query_text(session, &query.to_string()).await
    }

    /// The same, of a body that need not be JSON.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn query_text(&self, session: &Session, body: &str) -> Result<Reply, Failed> {
        let path = self.at(Place::Query);
        let made = || Ok(post(path, &self.credentials(session, &session.grantee, "POST", path)?, body));
        self.send_each(made).await
    }

    /// An envelope for [`INVOKE`], signed by its agent (protocol section 12, bytes 8).
    ///
    /// # Errors
    /// [`Failed::Skipped`]; none in practice.
    pub fn envelope(&self, agent: &Signer, action: &str, input: &Value) -> Result<Value, Failed> {
        let mut envelope = json!({
            "oap_version": "1.0", "request_id": RequestId::new(self.now(), self.random), "timestamp": self.now(),
            "principal_did": agent.did(), "agent_did": agent.did(), "action": action, "input": input,
            "context": {"locale": "en-US", "currency": "EUR", "jurisdiction_user": "DE", "jurisdiction_agent": "DE"},
        });
        seal(&mut envelope, agent, agent)?;
        Ok(envelope)
    }

    /// A query under a session as the action `memory.query`. The reply is that of the query: what the envelope holds.
    ///
    /// # Errors
    /// As [`Context::send`]; [`Failed::Wrong`] where the envelope answers another one.
    pub async fn query_by_envelope(&self, session: &Session, query: &Value) -> Result<Reply, Failed> {
        // Where it is waited for it is made anew: its time is that of the request.
        let last = Mutex::new(Value::Null);
        let made = || {
            let envelope = self.envelope(&session.grantee, "memory.query", query)?;
            last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&envelope);
            let headers = self.credentials(session, &session.grantee, "POST", INVOKE)?;
            Ok(post(INVOKE, &headers, &envelope.to_string()))
        };
        let reply = self.send_each(made).await?;
        let envelope = last.into_inner().unwrap_or_else(PoisonError::into_inner);
        let answer = reply.json();
        expect(answer["request_id"] == envelope["request_id"], || {
            format!("{INVOKE}: request_id is {}, must be that of the request", answer["request_id"])
        })?;
        let inner = if reply.status == 200 {
            expect(answer["receipt_id"] == answer["output"]["receipt"]["receipt_id"], || {
                format!(
                    "{INVOKE}: receipt_id is {}, must be that of the answer's receipt",
                    answer["receipt_id"]
                )
            })?;
            answer["output"].clone()
        } else {
            let error = &answer["error"];
            json!({"error": error["code"], "message": error["message"], "request_id": answer["request_id"]})
        };
        Ok(Reply { bytes: inner.to_string().into_bytes(), ..reply })
    }

    /// An export under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn export(&self, session: &Session) -> Result<Reply, Failed> {
        self.export_beside(session, None).await
    }

    /// The same, with a body that nobody asked for.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn export_beside(&self, session: &Session, body: Option<&str>) -> Result<Reply, Failed> {
        let path = self.at(Place::Export);
        let made = || {
            let headers = owned(self.credentials(session, &session.grantee, "POST", path)?);
            let body = body.map(|body| body.as_bytes().to_vec());
            Ok(Request { method: "POST", path: path.to_owned(), headers, body })
        };
        self.send_each(made).await
    }

    /// A query that must be answered.
    ///
    /// # Errors
    /// As [`Context::query`]; another status than 200.
    pub async fn answer(&self, session: &Session, query: &Value) -> Result<Value, Failed> {
        let reply = self.query(session, query).await?;
        expect(reply.status == 200, || format!("a query under a grant in force: status {}", reply.status))?;
        Ok(reply.json())
    }

    /// GET under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn get_as(&self, session: &Session, path: &str) -> Result<Reply, Failed> {
        let made = || {
            let headers = owned(self.credentials(session, &session.grantee, "GET", path)?);
            Ok(Request { method: "GET", path: path.to_owned(), headers, body: None })
        };
        self.send_each(made).await
    }

    /// The principal's document, as published.
    ///
    /// # Errors
    /// As [`Context::get`]; a document that is none.
    pub async fn document(&self) -> Result<DidDocument, Failed> {
        let raw = self.get("/.well-known/did.json").await?;
        let did: Did = raw["id"]
            .as_str()
            .and_then(|did| did.parse().ok())
            .ok_or_else(|| Failed::Wrong("did.json: no id".to_owned()))?;
        DidDocument::parse(raw.to_string().as_bytes(), &did)
            .map_err(|e| Failed::Wrong(format!("did.json: {e}")))
    }

    /// The worlds of the run, by their seeds.
    ///
    /// # Errors
    /// [`Failed::Skipped`] where the run has none.
    pub fn worlds(&self) -> Result<std::ops::Range<u64>, Failed> {
        if self.limits.worlds == 0 {
            return Err(Failed::Skipped("the run has no worlds".to_owned()));
        }
        // Far below the end, so that there are so many behind it.
        let first = u64::from(u32::from_le_bytes(random::bytes(self.random)));
        Ok(first..first + self.limits.worlds)
    }

    /// Where the gateway is.
    #[must_use]
    pub const fn origin(&self) -> &str {
        self.origin
    }

    /// Randomness of the run.
    #[must_use]
    pub fn random(&self) -> &dyn Random {
        self.random
    }
}

/// That something is as it must be.
///
/// # Errors
/// [`Failed::Wrong`], with why.
pub fn expect(is: bool, why: impl FnOnce() -> String) -> Result<(), Failed> {
    if is { Ok(()) } else { Err(Failed::Wrong(why())) }
}

/// Where actions are called by envelopes (protocol section 12).
pub const INVOKE: &str = "/oap/invoke";

/// Signs an envelope anew: the key of one signs, under the name of another.
///
/// # Errors
/// [`Failed::Skipped`] where it has no canonical form.
pub(super) fn seal(envelope: &mut Value, by: &Signer, named: &Signer) -> Result<(), Failed> {
    envelope.as_object_mut().map(|members| members.remove("signature"));
    let bytes = strict::canonical(&envelope).map_err(|e| Failed::Skipped(e.to_string()))?;
    envelope["signature"] = json!({"alg": "EdDSA", "kid": named.kid(), "value": by.sign(&bytes)});
    Ok(())
}

/// A POST of a document.
pub(super) fn post(path: &str, headers: &[(&str, String)], body: &str) -> Request {
    let mut headers = owned(headers.iter().map(|(name, value)| (*name, value.clone())));
    headers.push(("content-type".to_owned(), "application/oap+json".to_owned()));
    Request { method: "POST", path: path.to_owned(), headers, body: Some(body.as_bytes().to_vec()) }
}

fn owned<'h>(headers: impl IntoIterator<Item = (&'h str, String)>) -> Vec<(String, String)> {
    headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn short(text: &str) -> String {
    let flat: String = text.chars().take(SHOWN).collect();
    if flat.len() < text.len() { format!("{flat}…") } else { flat }
}

//! What a probe works with: the wire, the owner's side, keys of its own.

use super::declared::{Declared, Place};
use super::forms;
use super::{Failed, Limits};
use crate::model::Model;
use oap_grants::{dpop, exchange};
use oap_identity::{Clock, Did, DidDocument, Hash, Random, Signer, Timestamp, json as strict, random};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// GET, POST.
    pub method: &'static str,
    /// The path, with its query.
    pub path: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Headers, their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
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
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

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
///
/// A command that is refused gives an error whose text says why.
pub trait Setup: Send + Sync {
    /// Runs a command.
    fn call(&self, command: Value) -> Pending<'_, Value>;
}

/// What a probe works with.
pub struct Context<'a> {
    origin: &'a str,
    wire: &'a dyn Wire,
    setup: Option<&'a dyn Setup>,
    clock: &'a dyn Clock,
    random: &'a dyn Random,
    limits: Limits,
    until: Timestamp,
    declared: Declared,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: usize,
    sent: String,
    got: String,
    /// What replies lacked of the form that every reply has.
    deviations: BTreeSet<String>,
    /// How often each rule of the model and each condition decided something.
    decided: BTreeMap<String, u64>,
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
pub struct Session {
    /// Its keys.
    pub grantee: Signer,
    /// The grant.
    pub grant: Value,
    /// The token.
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
        let until = clock.now().plus(limits.time);
        let declared = Declared::default();
        Self { origin, wire, setup, clock, random, limits, until, declared, state: Mutex::default() }
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
        if self.clock.now() >= self.until {
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
            let code = reply.json()["error"].clone();
            let busy = (reply.status == 429 && code == "rate_limited") || reply.status == 503;
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
        let reply = self.wire.send(request).await.map_err(Failed::Wrong)?;
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
        self.wire.wait(time).await.map_err(Failed::Skipped)
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
        self.try_owner(command).await?.map_err(|why| Failed::Skipped(format!("the owner's side: {why}")))
    }

    /// The same, where a refusal is what is looked for.
    ///
    /// # Errors
    /// [`Failed::Skipped`] without an owner's side.
    pub async fn try_owner(&self, command: Value) -> Result<Result<Value, String>, Failed> {
        let setup = self.setup.ok_or_else(|| Failed::Skipped("needs the owner's side".to_owned()))?;
        let sent = short(&format!("the owner's {command}"));
        let done = setup.call(command).await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sent = sent;
        state.got = short(&done.as_ref().map_or_else(|why| format!("refused: {why}"), Value::to_string));
        drop(state);
        Ok(done)
    }

    /// Puts items in; their ids.
    ///
    /// # Errors
    /// As [`Context::owner`].
    pub async fn capture(&self, items: &[Value]) -> Result<Vec<String>, Failed> {
        let done = self.owner(json!({"do": "capture", "items": items})).await?;
        let ids = done["item_ids"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
    }

    /// A draft of a grant over one label, as probes want it: a month, fifty items, or what the manifest allows; the default profile.
    #[must_use]
    pub fn draft(&self, grantee: &Signer, label: &str, level: u8) -> Value {
        json!({
            "grantee": grantee.did(), "purpose": "help with letters and appointments", "filter": {"labels_any": [label]},
            "max_items": self.declared.max_items.min(50), "expires_at": self.clock.now().plus(self.declared.life()),
            "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": level,
        })
    }

    /// The gateway's clock is taken to be this one, give or take five minutes.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Issues a grant and exchanges it.
    ///
    /// # Errors
    /// As [`Context::owner`]; [`Failed::Wrong`] when a good grant is refused.
    pub async fn session(&self, grantee: Signer, draft: Value) -> Result<Session, Failed> {
        let profile = draft["redaction_profile"].as_str().unwrap_or_default();
        if !self.declared.has_profile(profile) {
            return Err(Failed::Skipped(format!("the manifest does not name the profile {profile}")));
        }
        let grant = self.owner(json!({"do": "grant", "draft": draft})).await?["grant"].clone();
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

    /// A proof of a grantee's key, made for a grant.
    fn grant_proof(&self, grantee: &Signer, grant: &Value) -> Result<String, Failed> {
        let endpoint = format!("{}{}", self.origin, self.at(Place::Grant));
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
        self.send_each(|| {
            let mut body = json!({"grant": grant, "proof": self.grant_proof(grantee, proved)?});
            if !above.is_empty() {
                body["chain"] = json!(above);
            }
            Ok(post(self.at(Place::Grant), &[], &body.to_string()))
        })
        .await
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

    /// An export under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn export(&self, session: &Session) -> Result<Reply, Failed> {
        let path = self.at(Place::Export);
        let made = || {
            let headers = owned(self.credentials(session, &session.grantee, "POST", path)?);
            Ok(Request { method: "POST", path: path.to_owned(), headers, body: None })
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

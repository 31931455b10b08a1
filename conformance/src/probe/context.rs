//! What a probe works with: the wire, the owner's side, keys of its own.

pub(in crate::probe) mod mcp;
mod session;

pub use session::{INVOKE, Session};

pub(in crate::probe) use session::seal;

use super::declared::{Declared, Place};
use super::forms;
use super::refusals::Condition;
use super::report::Rules;
use super::wire::{Forbidden, OPTIONAL, Refused, Reply, Request, Setup, SetupError, Wire, WireError};
use super::{Failed, Limits, judged};
use crate::model::Model;
use crate::world::whole_name;
use oap_identity::{Clock, Did, DidDocument, Random, Signer, Timestamp, random};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a probe works with.
pub struct Context<'a> {
    origin: &'a str,
    wire: &'a dyn Wire,
    setup: Option<&'a dyn Setup>,
    clock: &'a dyn Clock,
    random: &'a dyn Random,
    limits: Limits,
    declared: Declared,
    /// Of the whole run.
    state: Arc<Mutex<State>>,
    /// Of the probe under way.
    under_way: Mutex<UnderWay>,
}

/// What is said of the probe under way.
#[derive(Default)]
struct UnderWay {
    requests: usize,
    sent: String,
    got: String,
    /// Commands that the owner's side did or refused: it has them.
    commands: BTreeSet<String>,
}

#[derive(Default)]
struct State {
    requests: usize,
    /// When the run has used up its time; the beginning of it where nothing is said.
    until: Option<Timestamp>,
    /// Why it is over all the same, where it is: the owner's side cannot be asked any more.
    ended: Option<String>,
    /// What replies lacked of the form that every reply has.
    deviations: BTreeSet<String>,
    /// How often each rule of the model and each condition decided something.
    decided: BTreeMap<String, u64>,
    /// Profiles that the owner's side put there since the manifest was read.
    profiles: BTreeSet<String>,
    /// The conditions that did, and how often, by the door that they were brought to.
    at_doors: BTreeMap<String, BTreeMap<String, u64>>,
}

/// How far a reply is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Whole,
    /// As far as the first event of a stream.
    FirstEvent,
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
/// How long one request is waited for so, in all: probes that are made beside each other take what an address may do from each other, so that one that
/// is told to come again in a second may be told so again.
const RATE_WAITED: Duration = Duration::from_secs(3 * RATE_WAIT.as_secs());
/// Deviations that are kept; more say little more.
const MAX_DEVIATIONS: usize = 20;

/// What is not made any more.
fn over(why: &str) -> Failed {
    Failed::Skipped(format!("the run is over: {why}"))
}

/// Longest text of a request or reply in a report.
const SHOWN: usize = 600;

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
        let (state, under_way) = (Arc::new(Mutex::new(state)), Mutex::default());
        Self { origin, wire, setup, clock, random, limits, declared, state, under_way }
    }

    /// The same run, for probes that are made beside others: with randomness of their own, so that theirs does not hang on who is faster.
    pub(super) fn beside<'b>(&self, random: &'b dyn Random) -> Context<'b>
    where
        'a: 'b,
    {
        Context {
            origin: self.origin,
            wire: self.wire,
            setup: self.setup,
            clock: self.clock,
            random,
            limits: self.limits,
            declared: self.declared.clone(),
            state: Arc::clone(&self.state),
            under_way: Mutex::default(),
        }
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

    /// Whether a grant may name this profile.
    #[must_use]
    pub fn has_profile(&self, name: &str) -> bool {
        let more = || self.state.lock().unwrap_or_else(PoisonError::into_inner).profiles.contains(name);
        self.declared.has_profile(name) || more()
    }

    /// The manifest names this profile now.
    pub fn found_profile(&self, name: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.profiles.insert(name.to_owned());
    }

    /// The path of an endpoint, as the manifest has it.
    #[must_use]
    pub fn at(&self, place: Place) -> &str {
        self.declared.at(place)
    }

    /// A rule decided something.
    pub fn note(&self, rule: &dyn fmt::Display) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.decided.entry(rule.to_string()).or_default() += 1;
    }

    /// What breaks a condition alone, or what it alone permits, was brought to a door, and what came back was as it must be.
    pub fn note_at(&self, condition: &Condition, door: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.decided.entry(condition.to_string()).or_default() += 1;
        let at_door = state.at_doors.entry(door.to_owned()).or_default();
        *at_door.entry(condition.to_string()).or_default() += 1;
    }

    /// The same for all that a model counted.
    pub fn decided(&self, model: &Model) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (rule, times) in model.decided() {
            *state.decided.entry(rule.to_string()).or_default() += times;
        }
    }

    /// What decided something, and how often.
    pub(super) fn coverage(&self) -> Rules {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Rules { decided: state.decided.clone(), at_doors: state.at_doors.clone() }
    }

    /// Whether time that is waited for costs none: then a run asks at every door, and at the very limits of time.
    pub(super) fn sets_clock(&self) -> bool {
        self.wire.sets_clock()
    }

    /// Whether every condition is brought to every door.
    pub(super) fn asks_everywhere(&self) -> bool {
        self.sets_clock() || self.limits.every_door
    }

    /// What replies lacked so far of the form that every reply has.
    #[must_use]
    pub fn deviations(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).deviations.iter().cloned().collect()
    }

    /// A probe begins.
    pub(super) fn begin(&self) {
        *self.under_way() = UnderWay::default();
    }

    /// What the probe under way sent last, and what came back; how many requests it made.
    pub(super) fn last(&self) -> (String, String, usize) {
        let under_way = self.under_way();
        (under_way.sent.clone(), under_way.got.clone(), under_way.requests)
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests of the whole run.
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

    /// The owner's side cannot be asked any more.
    fn end(&self, why: String) -> Failed {
        let failed = over(&why);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended.get_or_insert(why);
        failed
    }

    /// Why the run was over before all was asked, where the owner's side could be asked no more.
    pub(super) fn ended(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended.clone()
    }

    /// Whether the run may do more.
    fn goes_on(&self) -> Result<(), Failed> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let used_up = match &state.ended {
            Some(why) => return Err(over(why)),
            None if state.requests >= self.limits.requests => {
                "the run has used up its requests: --max-requests gives it more"
            }
            None if state.until.is_some_and(|until| self.clock.now() >= until) => {
                "the run has used up its time: --max-seconds gives it more"
            }
            None => return Ok(()),
        };
        Err(Failed::Skipped(used_up.to_owned()))
    }

    /// How much time the run has left.
    fn left(&self) -> Duration {
        let until = self.state.lock().unwrap_or_else(PoisonError::into_inner).until;
        let millis = until.map(|until| until.millis().saturating_sub(self.clock.now().millis()));
        millis.map_or(Duration::MAX, |millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }

    /// Counts a request, and notes it for the report.
    fn count(&self, request: &Request) -> Result<(), Failed> {
        self.goes_on()?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).requests += 1;
        let body = String::from_utf8_lossy(request.body.as_deref().unwrap_or_default()).into_owned();
        let mut under_way = self.under_way();
        under_way.requests += 1;
        under_way.sent = short(&format!("{} {} {body}", request.method, request.path));
        Ok(())
    }

    /// Sends a request. A gateway that says that it was asked too often, or that it is busy, is waited for.
    ///
    /// # Errors
    /// [`Failed::Skipped`] when the run has used up its requests or its time, or the gateway goes on saying so; [`Failed::Wrong`] when nothing
    /// comes back; [`Failed::Fault`] for a status of a fault.
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
        self.send_as(Reading::Whole, make).await
    }

    /// The same, with the reply read in one of two ways.
    async fn send_as(
        &self,
        reading: Reading,
        make: impl Fn() -> Result<Request, Failed> + Send,
    ) -> Result<Reply, Failed> {
        let mut waited = Duration::ZERO;
        loop {
            let request = make()?;
            let asked = format!("{} {}", request.method, request.path);
            let reply = self.send_once(reading, request).await?;
            let body = reply.json();
            let limited =
                [&body["error"], &body["error"]["code"]].iter().any(|code| **code == "rate_limited");
            let busy = (reply.status == 429 && limited) || reply.status == 503;
            if reply.status >= 500 && !busy {
                return Err(Failed::Fault(format!(
                    "{asked}: a fault of the gateway, status {}",
                    reply.status
                )));
            }
            if !busy {
                return Ok(reply);
            }
            if waited >= RATE_WAITED {
                let why = "the gateway goes on saying that it was asked too often";
                return Err(Failed::Skipped(why.to_owned()));
            }
            let time = reply.retry_after().unwrap_or(RATE_WAIT).clamp(Duration::from_secs(1), RATE_WAIT);
            let time = time.min(RATE_WAITED - waited);
            self.wait(time.min(self.left())).await?;
            waited += time;
        }
    }

    async fn send_once(&self, reading: Reading, request: Request) -> Result<Reply, Failed> {
        self.count(&request)?;
        let asked = request.clone();
        let sent = match reading {
            Reading::Whole => self.wire.send(request),
            Reading::FirstEvent => self.wire.first_event(request),
        };
        let reply = sent.await.map_err(|e| Failed::Wrong(e.to_string()))?;
        self.under_way().got = short(&format!("{} {}", reply.status, String::from_utf8_lossy(&reply.bytes)));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
            Ok(Some(reply)) if reply.status >= 500 => {
                return Err(Failed::Fault(format!("a fault of the gateway, status {}", reply.status)));
            }
            Ok(reply) => reply.map(|reply| reply.status < 300),
            Err(_) => Some(false),
        })
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// [`Failed::Skipped`] when the wire cannot.
    pub async fn wait(&self, time: Duration) -> Result<(), Failed> {
        self.wire.wait(time).await.map_err(|error| match error {
            WireError::Ended(why) => self.end(why),
            error => Failed::Skipped(error.to_string()),
        })
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
        let _ = self.send_once(Reading::Whole, post(&path, &[], &format!("{{\"{word}\": [1, "))).await;
    }

    /// GET, with JSON back.
    ///
    /// # Errors
    /// As [`Context::send`]; another status than 200.
    pub async fn get(&self, path: &str) -> Result<Value, Failed> {
        let reply = self.send(Request { method: "GET", path: path.to_owned(), ..Request::default() }).await?;
        needed(reply.status == 200, || format!("{path}: status {} instead of 200", reply.status))?;
        Ok(reply.json())
    }

    /// Runs a command on the owner's side.
    ///
    /// # Errors
    /// As [`Context::try_owner`]; [`Failed::Skipped`] where it is refused.
    pub async fn owner(&self, command: Value) -> Result<Value, Failed> {
        let done = self.try_owner(command).await?;
        done.map_err(|Refused(why)| Failed::Skipped(format!("the owner's side: {why}")))
    }

    /// The same, where a refusal is what is looked for.
    ///
    /// # Errors
    /// [`Failed::Skipped`] without an owner's side, or where it is broken: what it did not ask the gateway was not refused; where it can be asked no more
    /// that ends the run. Where the run is over, of what would put more there. [`Failed::NotCovered`]
    /// where it has no such command and need not, [`Failed::Skipped`] where it must, or had it in this probe. [`Failed::Fault`] for a fault of the gateway.
    pub async fn try_owner(&self, command: Value) -> Result<Result<Value, Refused>, Failed> {
        let setup = self.setup.ok_or_else(|| Failed::Skipped("needs the owner's side".to_owned()))?;
        let sent = short(&format!("the owner's {command}"));
        let name = command["do"].as_str().unwrap_or_default().to_owned();
        // What takes something back is done all the same.
        if ["capture", "grant", "context", "bridge"].contains(&name.as_str()) {
            self.goes_on()?;
        }
        let done = setup.call(command).await;
        let mut under_way = self.under_way();
        under_way.sent = sent;
        under_way.got = short(&done.as_ref().map_or_else(SetupError::told, Value::to_string));
        if matches!(done, Ok(_) | Err(SetupError::Refused(_))) {
            under_way.commands.insert(name.clone());
        }
        let need_not_be = OPTIONAL.contains(&name.as_str()) && !under_way.commands.contains(&name);
        drop(under_way);
        match done {
            Ok(done) => Ok(Ok(done)),
            Err(SetupError::Refused(why)) => Ok(Err(Refused(why))),
            Err(SetupError::Lacks(why)) if need_not_be => {
                Err(Failed::NotCovered(format!("the owner's side has no such command: {why}")))
            }
            Err(SetupError::Lacks(why)) => Err(Failed::Skipped(format!(
                "the owner's side lacks what it must have, or had before: {why}"
            ))),
            Err(SetupError::Broken(why)) => Err(Failed::Skipped(format!("the owner's side: {why}"))),
            Err(SetupError::Ended(why)) => Err(self.end(why)),
            Err(SetupError::Fault(why)) => Err(Failed::Fault(format!("a fault of the gateway: {why}"))),
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

    /// A draft of a grant over one label, as probes want it: a month, fifty items, or what the manifest allows; a profile that it names.
    #[must_use]
    pub fn draft(&self, grantee: &Signer, label: &str, level: u8) -> Value {
        json!({
            "grantee": grantee.did(), "purpose": PURPOSE, "filter": {"labels_any": [label]},
            "max_items": self.declared.max_items.min(50), "expires_at": self.clock.now().plus(self.declared.life()),
            "redaction_profile": self.profile(), "trust_level": level,
        })
    }

    /// The profile of such a draft. Where the manifest names none that will do it is one that it does not name, and nobody issues that.
    #[must_use]
    pub fn profile(&self) -> String {
        self.declared.general().unwrap_or_else(|| whole_name("memory"))
    }

    /// The gateway's clock is taken to be this one, give or take five minutes.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
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
    /// [`Failed::Skipped`] where the run has none, or none of the profiles that its grants have.
    pub fn worlds(&self) -> Result<std::ops::Range<u64>, Failed> {
        if self.limits.worlds == 0 {
            return Err(Failed::Skipped("the run has no worlds".to_owned()));
        }
        if self.declared.general().is_none() && !self.declared.has_profile(&whole_name("full")) {
            return Err(Failed::Skipped("the manifest names none of the protocol's profiles".to_owned()));
        }
        // Far below the end, so that there are so many behind it.
        let first = u64::from(u32::from_le_bytes(random::bytes(self.random)));
        Ok(first..first + self.limits.worlds)
    }

    /// Whether there is an owner's side.
    pub(super) const fn has_setup(&self) -> bool {
        self.setup.is_some()
    }

    /// Whether the owner's side lets a probe lock the gateway down.
    #[must_use]
    pub fn may_lock_down(&self) -> bool {
        self.setup.is_some_and(|setup| setup.may_lock_down())
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

/// That something is as it must be before anything can be judged.
fn needed(is: bool, why: impl FnOnce() -> String) -> Result<(), Failed> {
    if is { Ok(()) } else { Err(Failed::Wrong(why())) }
}

/// That something is as it must be: whatever a probe is about is judged by it.
///
/// # Errors
/// [`Failed::Wrong`], with why.
pub fn expect(is: bool, why: impl FnOnce() -> String) -> Result<(), Failed> {
    judged::note();
    needed(is, why)
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

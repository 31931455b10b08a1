//! The conditions on envelopes, brought to every action (protocol section 12).

use super::cases::{Case, Cases};
use super::doors::dealt;
use super::jws::{changed, lifted, resign};
use super::rules::{Condition, EnvelopeRule};
use super::scene::Ahead;
use crate::probe::Failed;
use crate::probe::context::{Context, INVOKE, Session, expect, post, seal};
use crate::probe::wire::{Reply, Request};
use oap_identity::json::JsonError;
use oap_identity::signed::SignedError;
use oap_identity::{DetachedSignature, DidDocument, Hash, Signer, Timestamp, json as strict};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What a case is made with.
struct Around<'a> {
    agent: &'a Signer,
    stranger: &'a Signer,
    /// The gateway's clock.
    now: Timestamp,
    /// How far from it a time is that is forgiven, and one that is not: five minutes are (protocol section 1). Where the clock stands they are a
    /// millisecond apart, and else ten seconds from the limit: requests take time.
    within: Duration,
    beyond: Duration,
    /// What is sent beside it.
    headers: Vec<(&'static str, String)>,
}

impl<'a> Around<'a> {
    fn of(context: &Context<'_>, ahead: Ahead, agent: &'a Signer, stranger: &'a Signer) -> Self {
        const SKEW: Duration = Duration::from_secs(300);
        const MARGIN: Duration = Duration::from_secs(10);
        let (within, beyond) = match ahead.is_exact(context) {
            true => (SKEW, SKEW + Duration::from_millis(1)),
            false => (SKEW - MARGIN, SKEW + MARGIN),
        };
        Self { agent, stranger, now: ahead.now(context), within, beyond, headers: Vec::new() }
    }

    /// So long ago.
    fn ago(&self, long: Duration) -> Value {
        let millis = i64::try_from(long.as_millis()).unwrap_or_default();
        json!(Timestamp::from_millis(self.now.millis() - millis))
    }
}

/// What makes a signed envelope another one. It is signed anew, unless its signature is what is changed.
type Change = fn(&mut Value, &mut Around<'_>);

fn broken(what: &'static str, change: Change) -> Cases<Change> {
    Cases::breaking(what, change)
}

fn without(value: &mut Value, member: &str) {
    value.as_object_mut().map(|members| members.remove(member));
}

fn of(bytes: usize) -> Value {
    json!("x".repeat(bytes))
}

/// `policy_assertions` of so many bytes.
fn asserting(bytes: usize) -> Value {
    json!({"a": of(bytes - r#"{"a":""}"#.len())})
}

/// The cases of a condition; those of the input by the action's name.
fn cases(rule: EnvelopeRule, action: &str) -> Cases<Change> {
    match rule {
        EnvelopeRule::Action => broken("another", |e, _| e["action"] = json!("memory.forget"))
            .broken("none of that name", |e, _| e["action"] = json!("")),
        EnvelopeRule::Members => broken("an unknown one", |e, _| e["colour"] = json!("red"))
            .broken("no input", |e, _| without(e, "input"))
            .broken("no context", |e, _| without(e, "context"))
            .broken("no timestamp", |e, _| without(e, "timestamp"))
            .broken("no agent_did", |e, _| without(e, "agent_did"))
            .broken("no principal_did", |e, _| without(e, "principal_did"))
            .broken("no oap_version", |e, _| without(e, "oap_version"))
            .broken("no signature", |e, _| without(e, "signature"))
            .broken("a signature that is a text", |e, _| e["signature"] = json!("probe"))
            .broken("a signature without kid", |e, _| without(&mut e["signature"], "kid")),
        EnvelopeRule::Version => broken("2.0", |e, _| e["oap_version"] = json!("2.0"))
            .broken("a number", |e, _| e["oap_version"] = json!(1)),
        EnvelopeRule::RequestId => {
            broken("25 characters", |e, _| e["request_id"] = json!("01J9V8B7H1ZK4D2A0M9R8F0KQ"))
                .broken("a letter that is none", |e, _| e["request_id"] = json!("01J9V8B7H1ZK4D2A0M9R8F0KQI"))
        }
        EnvelopeRule::Headers => broken("another OAP-Request-Id", |_, a| {
            a.headers.push(("oap-request-id", "01J9V8B7H1ZK4D2A0M9R8F0KQX".to_owned()));
        })
        .broken("another OAP-Version", |_, a| a.headers.push(("oap-version", "2.0".to_owned())))
        .right("the same", |e, a| {
            let name = e["request_id"].as_str().unwrap_or_default().to_owned();
            a.headers.extend([("oap-request-id", name), ("oap-version", "1.0".to_owned())]);
        }),
        EnvelopeRule::Time => broken("too old", |e, a| e["timestamp"] = a.ago(a.beyond))
            .right("old", |e, a| e["timestamp"] = a.ago(a.within))
            .broken("too far ahead", |e, a| e["timestamp"] = json!(a.now.plus(a.beyond)))
            .right("ahead", |e, a| e["timestamp"] = json!(a.now.plus(a.within)))
            .broken("no time", |e, _| e["timestamp"] = json!("now")),
        EnvelopeRule::Parties => {
            broken("a principal that is none", |e, _| e["principal_did"] = json!("somebody"))
                .broken("an agent that is none", |e, _| e["agent_did"] = json!("somebody"))
        }
        EnvelopeRule::Context => {
            broken("a currency of two letters", |e, _| e["context"]["currency"] = json!("EU"))
                .broken("a currency with one capital", |e, _| e["context"]["currency"] = json!("Eur"))
                .broken("a user's country in small letters", |e, _| {
                    e["context"]["jurisdiction_user"] = json!("de")
                })
                .broken("an agent's country of three letters", |e, _| {
                    e["context"]["jurisdiction_agent"] = json!("DEU")
                })
                .broken("no locale", |e, _| without(&mut e["context"], "locale"))
        }
        EnvelopeRule::Texts => broken("an idempotency_key of 1025", |e, _| e["idempotency_key"] = of(1025))
            .right("1024 bytes", |e, _| e["idempotency_key"] = of(1024))
            .broken("a scope_id of 1025", |e, _| e["scope_id"] = of(1025))
            .broken("a consent_receipt of 1025", |e, _| e["consent_receipt"] = of(1025))
            .broken("a subscription_token of 1025", |e, _| e["subscription_token"] = of(1025)),
        EnvelopeRule::Assertions => broken("16385 bytes", |e, _| e["policy_assertions"] = asserting(16_385))
            .right("16384 bytes", |e, _| e["policy_assertions"] = asserting(16_384)),
        EnvelopeRule::Input => match action {
            "memory.describe" => broken("something", |e, _| e["input"] = json!({"query": ""})),
            _ => broken("a text", |e, _| e["input"] = json!("tea"))
                .broken("an unknown member", |e, _| e["input"]["colour"] = json!("red")),
        },
        EnvelopeRule::Signature => broken("another", |e, _| resign(&mut e["signature"]["value"], changed))
            .broken("S + L", |e, _| resign(&mut e["signature"]["value"], lifted))
            .broken("none", |e, _| e["signature"]["value"] = json!(""))
            .broken("of an envelope with another member", |e, _| e["idempotency_key"] = json!("another"))
            .broken("by somebody else under the agent's name", |e, a| drop(seal(e, a.stranger, a.agent))),
    }
}

/// What refuses it: the action is looked up first.
const fn refuses(rule: EnvelopeRule) -> u16 {
    match rule {
        EnvelopeRule::Action => 404,
        EnvelopeRule::Signature => 401,
        _ => 400,
    }
}

/// The actions, in both spellings.
const ACTIONS: [&str; 6] =
    ["memory.describe", "memory_describe", "memory.query", "memory_query", "memory.grant", "memory_grant"];

/// What an action is called with. A proof is good once, so it is made anew each time.
pub(in super::super) fn called(
    context: &Context<'_>,
    session: &Session,
    action: &str,
) -> Result<Value, Failed> {
    let input = match action {
        "memory.grant" | "memory_grant" => {
            let hash = Hash::of_canonical(&session.grant).map_err(|e| Failed::Skipped(e.to_string()))?;
            let endpoint = format!("{}{INVOKE}", context.origin());
            let proof = oap_grants::exchange::prove(
                &session.grantee,
                &endpoint,
                hash,
                context.now(),
                context.random(),
            );
            json!({"grant": session.grant, "proof": proof.map_err(|e| Failed::Skipped(e.to_string()))?})
        }
        _ => json!({}),
    };
    context.envelope(&session.grantee, action, &input)
}

/// A request with an envelope, and with a token where the action wants one.
pub(in super::super) fn request(
    context: &Context<'_>,
    session: &Session,
    action: &str,
    envelope: &Value,
) -> Result<Request, Failed> {
    let headers = match action {
        "memory.query" | "memory_query" => context.credentials(session, &session.grantee, "POST", INVOKE)?,
        _ => Vec::new(),
    };
    Ok(post(INVOKE, &headers, &envelope.to_string()))
}

/// Every condition on envelopes, at every action.
pub(in super::super) async fn envelopes(context: &Context<'_>) -> Result<(), Failed> {
    let document = context.document().await?;
    let stranger = context.stranger();
    let least = EnvelopeRule::ALL.len().div_ceil(ACTIONS.len());
    let hands = dealt(context, EnvelopeRule::ALL, ACTIONS.len(), least);
    for (action, rules) in ACTIONS.into_iter().zip(hands) {
        let session = context.granted(&context.word(), 2).await?;
        let ahead = Ahead::told(context, &session).await?;
        for rule in rules {
            let cases = cases(rule, action);
            let control = Case { what: "nothing wrong", holds: true, change: (|_, _| {}) as Change };
            for Case { what, holds, change } in std::iter::once(control).chain(cases) {
                // Where it is waited for it is made anew: its times are those of the request.
                let last = Mutex::new(Value::Null);
                let made = || {
                    let mut envelope = called(context, &session, action)?;
                    let signature = envelope["signature"].clone();
                    let mut around = Around::of(context, ahead, &session.grantee, &stranger);
                    change(&mut envelope, &mut around);
                    if rule != EnvelopeRule::Signature && envelope["signature"] == signature {
                        seal(&mut envelope, &session.grantee, &session.grantee)?;
                    }
                    last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&envelope);
                    let mut request = request(context, &session, action, &envelope)?;
                    let named = around.headers.into_iter().map(|(name, value)| (name.to_owned(), value));
                    request.headers.extend(named);
                    Ok(request)
                };
                let reply = context.send_each(made).await?;
                let envelope = last.into_inner().unwrap_or_else(PoisonError::into_inner);
                let must = if holds { 200 } else { refuses(rule) };
                expect(reply.status == must, || {
                    format!("{action}, envelope: {rule}: {what}: status {}, must be {must}", reply.status)
                })?;
                answers(context, &document, &envelope, &reply)
                    .map_err(|why| Failed::Wrong(format!("{action}, envelope: {rule}: {what}: {why}")))?;
                if !holds {
                    context.note_at(&Condition::Envelope(rule), action);
                }
            }
        }
    }
    Ok(())
}

/// Why a reply does not answer an envelope.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("request_id is {0}, must be that of the request")]
    OtherRequest(Value),
    #[error("status in the envelope is {0}, must be {1}")]
    Status(Value, &'static str),
    #[error("signature: {0}")]
    Unsigned(JsonError),
    #[error(transparent)]
    Canonical(#[from] JsonError),
    #[error("signature: {0}")]
    Signature(#[from] SignedError),
}

/// That a reply answers an envelope, signed by the principal.
fn answers(
    context: &Context<'_>,
    document: &DidDocument,
    envelope: &Value,
    reply: &Reply,
) -> Result<(), NoAnswer> {
    let mut answer = reply.json();
    let named = envelope["request_id"].as_str().is_some_and(|id| id.len() == 26 && !id.contains('I'));
    if named && answer["request_id"] != envelope["request_id"] {
        return Err(NoAnswer::OtherRequest(answer["request_id"].clone()));
    }
    let status = if reply.status == 200 { "ok" } else { "error" };
    if answer["status"] != status {
        return Err(NoAnswer::Status(answer["status"].clone(), status));
    }
    let signature: DetachedSignature =
        strict::from_value(answer["signature"].clone()).map_err(NoAnswer::Unsigned)?;
    answer.as_object_mut().map(|members| members.remove("signature"));
    let bytes = strict::canonical(&answer)?;
    signature.verify(&bytes, document, context.now())?;
    Ok(())
}

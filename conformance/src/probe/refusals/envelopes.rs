//! The conditions on envelopes, brought to every action (protocol section 12).

use super::rules::{Condition, EnvelopeRule};
use crate::probe::Failed;
use crate::probe::context::{Context, INVOKE, Session, expect, post, seal};
use crate::probe::wire::{Reply, Request};
use oap_identity::json::JsonError;
use oap_identity::signed::SignedError;
use oap_identity::{DetachedSignature, DidDocument, Hash, Signer, json as strict};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How far clocks may be apart (protocol section 1), and how far from that a case is: requests take time.
const SKEW: Duration = Duration::from_secs(300);
const MARGIN: Duration = Duration::from_secs(10);

/// What a violation is made with.
struct Around<'a> {
    context: &'a Context<'a>,
    agent: &'a Signer,
    stranger: &'a Signer,
}

/// A violation, or what is right at a boundary: of the envelope before it is signed, or of the signed one.
struct Case {
    what: &'static str,
    holds: bool,
    signed: bool,
    change: fn(&mut Value, &Around<'_>),
}

const fn bad(what: &'static str, change: fn(&mut Value, &Around<'_>)) -> Case {
    Case { what, holds: false, signed: true, change }
}

const fn good(what: &'static str, change: fn(&mut Value, &Around<'_>)) -> Case {
    Case { what, holds: true, signed: true, change }
}

/// One whose signature is as it is then.
const fn unsigned(what: &'static str, change: fn(&mut Value, &Around<'_>)) -> Case {
    Case { what, holds: false, signed: false, change }
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
fn cases(rule: EnvelopeRule, action: &str) -> Vec<Case> {
    match rule {
        EnvelopeRule::Action => vec![
            bad("another", |e, _| e["action"] = json!("memory.forget")),
            bad("none of that name", |e, _| e["action"] = json!("")),
        ],
        EnvelopeRule::Members => vec![
            bad("an unknown one", |e, _| e["colour"] = json!("red")),
            bad("no input", |e, _| without(e, "input")),
            bad("no context", |e, _| without(e, "context")),
            bad("no timestamp", |e, _| without(e, "timestamp")),
            bad("no agent_did", |e, _| without(e, "agent_did")),
            bad("no principal_did", |e, _| without(e, "principal_did")),
            bad("no oap_version", |e, _| without(e, "oap_version")),
            unsigned("no signature", |e, _| without(e, "signature")),
            unsigned("a signature that is a text", |e, _| e["signature"] = json!("probe")),
            unsigned("a signature without kid", |e, _| without(&mut e["signature"], "kid")),
        ],
        EnvelopeRule::Version => vec![
            bad("2.0", |e, _| e["oap_version"] = json!("2.0")),
            bad("a number", |e, _| e["oap_version"] = json!(1)),
        ],
        EnvelopeRule::RequestId => vec![
            bad("25 characters", |e, _| e["request_id"] = json!("01J9V8B7H1ZK4D2A0M9R8F0KQ")),
            bad("a letter that is none", |e, _| e["request_id"] = json!("01J9V8B7H1ZK4D2A0M9R8F0KQI")),
        ],
        EnvelopeRule::Time => vec![
            bad("too old", |e, a| {
                let long = (SKEW + MARGIN).as_millis() as i64;
                e["timestamp"] = json!(oap_identity::Timestamp::from_millis(a.context.now().millis() - long));
            }),
            good("old", |e, a| {
                let long = (SKEW - MARGIN).as_millis() as i64;
                e["timestamp"] = json!(oap_identity::Timestamp::from_millis(a.context.now().millis() - long));
            }),
            bad("too far ahead", |e, a| e["timestamp"] = json!(a.context.now().plus(SKEW + MARGIN))),
            good("ahead", |e, a| e["timestamp"] = json!(a.context.now().plus(SKEW - MARGIN))),
            bad("no time", |e, _| e["timestamp"] = json!("now")),
        ],
        EnvelopeRule::Parties => vec![
            bad("a principal that is none", |e, _| e["principal_did"] = json!("somebody")),
            bad("an agent that is none", |e, _| e["agent_did"] = json!("somebody")),
        ],
        EnvelopeRule::Context => vec![
            bad("a currency of two letters", |e, _| e["context"]["currency"] = json!("EU")),
            bad("a user's country in small letters", |e, _| e["context"]["jurisdiction_user"] = json!("de")),
            bad("an agent's country of three letters", |e, _| {
                e["context"]["jurisdiction_agent"] = json!("DEU")
            }),
            bad("no locale", |e, _| without(&mut e["context"], "locale")),
        ],
        EnvelopeRule::Texts => vec![
            good("1024 bytes", |e, _| e["idempotency_key"] = of(1024)),
            bad("an idempotency_key of 1025", |e, _| e["idempotency_key"] = of(1025)),
            bad("a scope_id of 1025", |e, _| e["scope_id"] = of(1025)),
            bad("a consent_receipt of 1025", |e, _| e["consent_receipt"] = of(1025)),
            bad("a subscription_token of 1025", |e, _| e["subscription_token"] = of(1025)),
        ],
        EnvelopeRule::Assertions => vec![
            good("16384 bytes", |e, _| e["policy_assertions"] = asserting(16_384)),
            bad("16385 bytes", |e, _| e["policy_assertions"] = asserting(16_385)),
        ],
        EnvelopeRule::Input => match action {
            "memory.describe" => vec![bad("something", |e, _| e["input"] = json!({"query": ""}))],
            _ => vec![
                bad("a text", |e, _| e["input"] = json!("tea")),
                bad("an unknown member", |e, _| e["input"]["colour"] = json!("red")),
            ],
        },
        EnvelopeRule::Signature => vec![
            unsigned("another", |e, _| {
                let value = e["signature"]["value"].as_str().unwrap_or_default();
                e["signature"]["value"] = json!(super::jws::changed(value));
            }),
            unsigned("none", |e, _| e["signature"]["value"] = json!("")),
            unsigned("of an envelope with another member", |e, _| e["idempotency_key"] = json!("another")),
            unsigned("by somebody else under the agent's name", |e, a| drop(seal(e, a.stranger, a.agent))),
        ],
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
const ACTIONS: [&str; 4] = ["memory.describe", "memory_describe", "memory.query", "memory.grant"];

/// What an action is called with. A proof is good once, so it is made anew each time.
fn called(context: &Context<'_>, session: &Session, action: &str) -> Result<Value, Failed> {
    let input = match action {
        "memory.grant" => {
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
fn request(
    context: &Context<'_>,
    session: &Session,
    action: &str,
    envelope: &Value,
) -> Result<Request, Failed> {
    let headers = match action {
        "memory.query" => context.credentials(session, &session.grantee, "POST", INVOKE)?,
        _ => Vec::new(),
    };
    Ok(post(INVOKE, &headers, &envelope.to_string()))
}

/// Every condition on envelopes, at every action.
pub(in super::super) async fn envelopes(context: &Context<'_>) -> Result<(), Failed> {
    let document = context.document().await?;
    let stranger = context.stranger();
    for action in ACTIONS {
        let session = context.granted(&context.word(), 2).await?;
        let around = Around { context, agent: &session.grantee, stranger: &stranger };
        for rule in EnvelopeRule::ALL.iter().copied() {
            let mut cases = cases(rule, action);
            cases.insert(0, good("nothing wrong", |_, _| {}));
            for Case { what, holds, signed, change } in cases {
                // Where it is waited for it is made anew: its times are those of the request.
                let last = Mutex::new(Value::Null);
                let made = || {
                    let mut envelope = called(context, &session, action)?;
                    change(&mut envelope, &around);
                    if signed {
                        seal(&mut envelope, &session.grantee, &session.grantee)?;
                    }
                    last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&envelope);
                    request(context, &session, action, &envelope)
                };
                let reply = context.send_each(made).await?;
                let envelope = last.into_inner().unwrap_or_else(PoisonError::into_inner);
                let must = if holds { 200 } else { refuses(rule) };
                expect(reply.status == must, || {
                    format!("{action}, envelope: {rule}: {what}: status {}, must be {must}", reply.status)
                })?;
                answers(context, &document, &envelope, &reply)
                    .map_err(|why| Failed::Wrong(format!("{action}, envelope: {rule}: {what}: {why}")))?;
            }
            context.note(&Condition::Envelope(rule));
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

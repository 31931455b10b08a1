//! `POST /oap/invoke` (OAP-CORE 8, protocol section 12).
//!
//! The action is looked up before the envelope is checked in full. A signature that cannot be verified makes the
//! caller anonymous, never somebody; one that can be and does not verify is refused. Anonymous callers get
//! `memory_describe`. No document is fetched for an envelope whose sender presented no token.

use super::App;
use super::credential::as_grantee;
use super::error::{Refusal, retry_after};
use super::request::{Incoming, oap_bytes};
use crate::error::MemberError;
use crate::error::{Error, Unproved};
use crate::service::{Audit, Exchange, Grants};
use crate::state::commits::ANONYMOUS;
use crate::state::gateway::Gateway;
use crate::state::refusals::Refusals;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use oap_identity::time::MAX_SKEW;
use oap_identity::{DetachedSignature, Did, Hash, Kid, RequestId, Timestamp, json as strict};
use oap_manifest::actions::Action;
use oap_memory::answer::envelope_bytes;
use oap_memory::receipt;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Longest text of an envelope's member, in bytes. The input has bounds of its own.
pub const MAX_ENVELOPE_TEXT: usize = 1024;
/// Largest `policy_assertions`, in bytes of JSON.
pub const MAX_ASSERTIONS: usize = 16 << 10;

/// The request envelope of `oap-request-envelope.schema.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    oap_version: String,
    request_id: RequestId,
    timestamp: String,
    principal_did: Did,
    agent_did: Did,
    scope_id: Option<String>,
    action: String,
    input: Value,
    context: Context,
    consent_receipt: Option<String>,
    subscription_token: Option<String>,
    idempotency_key: Option<String>,
    policy_assertions: Option<Value>,
    signature: Signature,
}

#[derive(Debug, Clone, Deserialize)]
struct Context {
    locale: String,
    currency: String,
    jurisdiction_user: String,
    jurisdiction_agent: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Signature {
    alg: String,
    kid: String,
    value: String,
}

impl Envelope {
    /// Its texts that no type bounds.
    fn texts(&self) -> [(&'static str, Option<&str>); 9] {
        [
            ("scope_id", self.scope_id.as_deref()),
            ("action", Some(&self.action)),
            ("consent_receipt", self.consent_receipt.as_deref()),
            ("subscription_token", self.subscription_token.as_deref()),
            ("idempotency_key", self.idempotency_key.as_deref()),
            ("context.locale", Some(&self.context.locale)),
            ("signature.alg", Some(&self.signature.alg)),
            ("signature.kid", Some(&self.signature.kid)),
            ("signature.value", Some(&self.signature.value)),
        ]
    }
}

/// The handler.
pub async fn invoke(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let document = request.json().await?;
    let name = document["action"].as_str().ok_or(Error::Member("action", MemberError::NotText))?;
    let request_id = document["request_id"].as_str().and_then(|id| id.parse().ok());
    let request_id: RequestId = request_id.unwrap_or_else(|| request.name().clone());
    let outcome = match Action::of(name) {
        None => Err(Error::NotFound),
        Some(action) => run(&app, &mut request, &document, action).await,
    };
    let (status, headers, body) = match outcome {
        Ok((output, receipt_id)) => (
            axum::http::StatusCode::OK,
            axum::http::HeaderMap::new(),
            json!({
                "status": "ok", "output": output,
                "receipt": {"id": receipt_id}, "receipt_id": receipt_id, "warnings": [],
            }),
        ),
        Err(error) => {
            let refusal = Refusal::from(&error);
            if refusal.status.is_server_error() {
                return Err(error);
            }
            let body = json!({
                "status": "error", "error": {"code": refusal.code, "message": refusal.message},
            });
            (refusal.status, retry_after(&error), body)
        }
    };
    let response = seal(&app.gateway, body, &request_id)?;
    Ok((status, headers, oap_bytes(response)).into_response())
}

/// The response envelope, signed.
fn seal(gateway: &Gateway, mut body: Value, request_id: &RequestId) -> Result<Vec<u8>, Error> {
    let now = gateway.clock.now();
    body["oap_version"] = json!("1.0");
    body["request_id"] = json!(request_id);
    body["response_id"] = json!(RequestId::new(now, &*gateway.random));
    body["timestamp"] = json!(now);
    let keys = gateway.keys();
    let signer = keys.current();
    body["signature"] = json!(DetachedSignature::sign(&envelope_bytes(&body)?, signer));
    Ok(strict::canonical(&body)?)
}

async fn run(
    app: &App,
    request: &mut Incoming,
    document: &Value,
    action: Action,
) -> Result<(Value, String), Error> {
    let envelope: Envelope =
        strict::from_value(document.clone()).map_err(|e| Error::Member("envelope", e.into()))?;
    check(&envelope, request, app.gateway.clock.now())?;
    match action {
        Action::Describe => {
            let signed_by = verify(&app.gateway, &envelope, document, Lookup::AtHand).await?;
            describe(&app.gateway, &envelope, signed_by).await
        }
        Action::Query => {
            let answer = as_grantee(request, async |_, caller| {
                verify(&app.gateway, &envelope, document, Lookup::Fetched).await?;
                let mut query: oap_exchange::Query = input(&envelope)?;
                query.request_id.get_or_insert_with(|| envelope.request_id.clone());
                Exchange(&app.gateway).query(caller, query).await
            });
            let answer = strict::parse(&answer.await?)?;
            let receipt = answer["receipt"]["receipt_id"].as_str().unwrap_or_default().to_owned();
            Ok((answer, receipt))
        }
        Action::Grant => {
            verify(&app.gateway, &envelope, document, Lookup::AtHand).await?;
            let (_, endpoint) = request.target();
            let answer = Grants(&app.gateway).exchange(input(&envelope)?, &endpoint).await?;
            let receipt = answer.receipt_id.clone();
            Ok((serde_json::to_value(answer)?, receipt))
        }
    }
}

fn input<T: serde::de::DeserializeOwned>(envelope: &Envelope) -> Result<T, Error> {
    strict::from_value(envelope.input.clone()).map_err(|e| Error::Member("input", e.into()))
}

/// What the schema asks and the types do not, the time, and that headers and envelope say the same.
fn check(envelope: &Envelope, request: &Incoming, now: Timestamp) -> Result<(), Error> {
    let wrong = |member: &'static str, why: MemberError| Err(Error::Member(member, why));
    for (member, text) in envelope.texts() {
        if text.is_some_and(|text| text.len() > MAX_ENVELOPE_TEXT) {
            return Err(Error::Member(member, MemberError::TooLong(MAX_ENVELOPE_TEXT)));
        }
    }
    let assertions = envelope.policy_assertions.as_ref().map_or(0, |value| value.to_string().len());
    if assertions > MAX_ASSERTIONS {
        return Err(Error::Member("policy_assertions", MemberError::TooLong(MAX_ASSERTIONS)));
    }
    if envelope.oap_version != "1.0" {
        return wrong("oap_version", MemberError::Version);
    }
    let capitals = |text: &str, n: usize| text.len() == n && text.bytes().all(|c| c.is_ascii_uppercase());
    if !capitals(&envelope.context.currency, 3) {
        return wrong("context.currency", MemberError::ThreeCapitals);
    }
    if !capitals(&envelope.context.jurisdiction_user, 2) {
        return wrong("context.jurisdiction_user", MemberError::TwoCapitals);
    }
    if !capitals(&envelope.context.jurisdiction_agent, 2) {
        return wrong("context.jurisdiction_agent", MemberError::TwoCapitals);
    }
    // The protocol writes times with any offset; the wire of this gateway wants UTC.
    let Ok(at) = envelope.timestamp.parse::<Timestamp>() else {
        return wrong("timestamp", MemberError::Time);
    };
    if at.millis().abs_diff(now.millis()) > MAX_SKEW.as_millis() as u64 {
        return wrong("timestamp", MemberError::Skew);
    }
    let agrees = |header: &str, said: &str| request.header(header).iter().all(|value| value == said);
    if !agrees("oap-request-id", envelope.request_id.as_str()) {
        return wrong("request_id", MemberError::OtherHeader("OAP-Request-Id"));
    }
    if !agrees("oap-version", &envelope.oap_version) {
        return wrong("oap_version", MemberError::OtherHeader("OAP-Version"));
    }
    Ok(())
}

/// Where the document of an envelope's signer may come from.
#[derive(Clone, Copy)]
enum Lookup {
    /// From here alone: nothing is fetched for who proved nothing.
    AtHand,
    /// From anywhere: the caller presented a token with its proof.
    Fetched,
}

/// Who signed the envelope: `None` for anybody whose key cannot be found.
async fn verify(
    gateway: &Arc<Gateway>,
    envelope: &Envelope,
    document: &Value,
    lookup: Lookup,
) -> Result<Option<Did>, Error> {
    let Ok(kid) = envelope.signature.kid.parse::<Kid>() else { return Ok(None) };
    let Signature { alg, value, .. } = envelope.signature.clone();
    let signature = DetachedSignature { alg, kid, value };
    if *signature.kid.did() != envelope.agent_did || !signature.is_eddsa() {
        return Ok(None);
    }
    let signer = match lookup {
        Lookup::AtHand => gateway.document_at_hand(signature.kid.did()).await,
        Lookup::Fetched => gateway.document(signature.kid.did()).await.ok(),
    };
    let Some(signer) = signer else { return Ok(None) };
    let refused = |_| Error::Owner(Unproved::Envelope);
    signature.verify(&envelope_bytes(document)?, &signer, gateway.clock.now()).map_err(refused)?;
    Ok(Some(envelope.agent_did.clone()))
}

async fn describe(
    gateway: &Arc<Gateway>,
    envelope: &Envelope,
    signed_by: Option<Did>,
) -> Result<(Value, String), Error> {
    if envelope.input.as_object().is_none_or(|input| !input.is_empty()) {
        return Err(Error::Member("input", MemberError::NotEmptyObject));
    }
    if !gateway.refusals.admit_anonymous(gateway.clock.now()) {
        return Err(Error::RateLimited(Refusals::anew(gateway.clock.now())));
    }
    let published = gateway.published();
    let mut output = json!({});
    for member in ["principal", "kinds_supported", "memory_exchange", "projections", "belief_threshold"] {
        output[member] = published.memory[member].clone();
    }
    // An asserted DID that nobody proved is not written down: its keyed hash is.
    let agent = match &signed_by {
        Some(agent) => agent.to_string(),
        None => Audit(gateway).pseudonym(envelope.agent_did.as_str()),
    };
    let mut draft = gateway.draft(receipt::Action::Describe, &agent);
    draft.rules = vec!["anonymous.free_read".to_owned()];
    let claimed = Audit(gateway).pseudonym(envelope.principal_did.as_str());
    draft.more.insert("asserted_principal".to_owned(), json!(claimed));
    draft.output_hash = Some(Hash::of_canonical(&output)?);
    let (receipt, ()) = gateway.record(move |w| Ok((w.receipt(ANONYMOUS, draft)?, ()))).await?;
    Ok((output, receipt.receipt_id.to_string()))
}

//! Grants and tokens: who is let in.

use super::super::context::{Context, Session, expect, post};
use super::super::declared::Place;
use super::super::{Failed, Probe, Severity};
use super::{note, owned, probe};
use oap_identity::signed::sign_document;
use oap_identity::{Signer, Timestamp};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("grant-altered", &["ME-08", "SP-05"], Critical, probe!(altered)),
        owned("grant-unsigned", &["ME-08"], Critical, probe!(unsigned)),
        owned("grant-foreign", &["ME-08"], Critical, probe!(foreign)),
        owned("grant-revoked", &["ME-08", "SP-04", "CH-01"], Critical, probe!(revoked)),
        owned("grant-not-yet-valid", &["ME-08"], Critical, probe!(not_yet_valid)),
        owned("grant-of-another-grantee", &["ME-08"], Critical, probe!(another_grantee)),
        owned("grant-limits", &["ME-10"], Major, probe!(limits)),
        owned("grant-unknown-filter-field", &["ME-08", "ME-09"], Critical, probe!(unknown_filter)),
        owned("token-algorithms", &["ME-04"], Critical, probe!(algorithms)),
        owned("forged-signatures", &["ME-04"], Critical, probe!(signatures)),
        owned("token-bound", &["ME-04"], Critical, probe!(bound)),
        owned("token-short-lived", &["ME-04"], Major, probe!(short_lived)),
        owned("proof-replayed", &["ME-04", "CO-34"], Critical, probe!(replayed)),
        owned("proof-of-another-request", &["ME-04"], Critical, probe!(another_request)),
    ]
}

async fn granted(context: &Context<'_>) -> Result<Session, Failed> {
    let label = context.word();
    context.capture(&[note("a probe's note", &[&label])]).await?;
    context.granted(&label, 2).await
}

fn refused(status: u16, what: &str) -> Result<(), Failed> {
    expect((400..500).contains(&status), || format!("{what}: status {status} instead of a refusal"))
}

async fn altered(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    for (member, value) in [
        ("max_items", json!(10_000)),
        ("trust_level", json!(4)),
        ("filter", json!({})),
        ("expires_at", json!("2099-01-01T00:00:00.000Z")),
        ("redaction_profile", json!("oap.profile.projection.full.v1")),
        ("grantee", json!(context.stranger().did())),
    ] {
        let mut forged = session.grant.clone();
        forged[member] = value;
        for proved in [&forged, &session.grant] {
            let reply = context.exchange_with_proof_for(&session.grantee, &forged, proved).await?;
            refused(reply.status, &format!("a grant whose {member} was changed"))?;
        }
    }
    Ok(())
}

async fn unsigned(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    let mut bare = session.grant.clone();
    bare.as_object_mut().map(|members| members.remove("signature"));
    refused(context.exchange(&session.grantee, &bare).await?.status, "a grant without signature")?;
    let mut none = session.grant.clone();
    none["signature"] = json!("eyJhbGciOiJub25lIn0..");
    refused(context.exchange(&session.grantee, &none).await?.status, "a grant signed with alg none")
}

/// That a draft comes to nothing: it is refused at issue, or what was issued is at its exchange (the protocol leaves open where).
pub(super) async fn comes_to_nothing(
    context: &Context<'_>,
    grantee: &Signer,
    draft: Value,
    what: &str,
) -> Result<(), Failed> {
    let status = match context.try_owner(json!({"do": "grant", "draft": draft})).await? {
        Err(_) => None,
        Ok(issued) => Some(context.exchange(grantee, &issued["grant"]).await?.status),
    };
    expect(status.is_none_or(|status| (400..500).contains(&status)), || {
        format!("{what} was issued, and its exchange: status {}", status.unwrap_or_default())
    })
}

/// A grant that names the principal and is signed by somebody else.
async fn foreign(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    let stranger = context.stranger();
    let mut forged = session.grant.clone();
    forged.as_object_mut().map(|members| members.remove("signature"));
    forged["grantee"] = json!(stranger.did());
    sign_document(&mut forged, &stranger).map_err(|e| Failed::Skipped(e.to_string()))?;
    refused(context.exchange(&stranger, &forged).await?.status, "a grant that its grantee signed for itself")
}

async fn revoked(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    context.answer(&session, &json!({"query": ""})).await?;
    context.owner(json!({"do": "revoke", "grant_id": session.grant["grant_id"]})).await?;
    let reply = context.query(&session, &json!({"query": ""})).await?;
    refused(reply.status, "the first query after a revocation")?;
    refused(
        context.exchange(&session.grantee, &session.grant).await?.status,
        "the exchange of a revoked grant",
    )
}

async fn not_yet_valid(context: &Context<'_>) -> Result<(), Failed> {
    const UNTIL: Duration = Duration::from_secs(3_600);
    // By how much clocks may differ, in milliseconds.
    const SKEW: i64 = 300_000;
    let (label, grantee) = (context.word(), context.stranger());
    let mut draft = context.draft(&grantee, &label, 2);
    draft["not_before"] = json!(context.now().plus(UNTIL));
    let grant = context.owner(json!({"do": "grant", "draft": draft})).await?["grant"].clone();
    refused(context.exchange(&grantee, &grant).await?.status, "a grant that begins in an hour")?;
    // Once it begins it is exchanged. Where no clock can be set the run does not wait so long: one that has begun is.
    let begun = if context.advance(UNTIL + Duration::from_secs(1)).await? {
        grant
    } else {
        draft["not_before"] = json!(Timestamp::from_millis(context.now().millis() - SKEW));
        context.owner(json!({"do": "grant", "draft": draft})).await?["grant"].clone()
    };
    let status = context.exchange(&grantee, &begun).await?.status;
    expect(status == 200, || format!("a grant that has begun: status {status}, must be 200"))
}

async fn another_grantee(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    let thief = context.stranger();
    refused(context.exchange(&thief, &session.grant).await?.status, "a grant presented by somebody else")
}

async fn limits(context: &Context<'_>) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let most = manifest["max_grant_size_items"].as_u64().unwrap_or(context.declared().max_items);
    let days = context.declared().max_days;
    let (grantee, label) = (context.stranger(), context.word());
    context.granted(&label, 2).await?;
    let end = |days: u64| json!(context.now().plus(Duration::from_secs(days * 86_400)));
    for (what, member, value) in [
        ("more items than the manifest allows", "max_items", json!(most + 1)),
        ("no items", "max_items", json!(0)),
        ("a longer time than the manifest allows", "expires_at", end(days + 2)),
        ("an end in the past", "expires_at", json!("2020-01-01T00:00:00Z")),
        ("an unknown profile", "redaction_profile", json!("oap.profile.projection.nonsense.v9")),
    ] {
        let mut draft = context.draft(&grantee, &label, 2);
        draft[member] = value;
        comes_to_nothing(context, &grantee, draft, &format!("a grant with {what}")).await?;
    }
    Ok(())
}

async fn unknown_filter(context: &Context<'_>) -> Result<(), Failed> {
    let (grantee, label) = (context.stranger(), context.word());
    context.granted(&label, 2).await?;
    let mut draft = context.draft(&grantee, &label, 2);
    draft["filter"][context.word()] = json!(["x"]);
    comes_to_nothing(context, &grantee, draft, "a grant with an unknown filter field").await
}

fn part(value: &Value) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string())
}

async fn algorithms(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    context.answer(&session, &json!({"query": ""})).await?;
    let claims = session.token.split('.').nth(1).unwrap_or_default().to_owned();
    for algorithm in ["none", "HS256", "RS256"] {
        let header = part(&json!({"alg": algorithm, "typ": "oap-memory-grant+jwt"}));
        let signature = if algorithm == "none" { String::new() } else { part(&json!("signature")) };
        let token = format!("{header}.{claims}.{signature}");
        let forged = Session {
            token,
            grantee: context.stranger(),
            grant: session.grant.clone(),
            bearer: session.bearer,
        };
        let headers = context.credentials(&forged, &session.grantee, "POST", context.at(Place::Query))?;
        let reply = context.post(context.at(Place::Query), &headers, &json!({"query": ""})).await?;
        expect(reply.status == 401, || format!("a token with alg {algorithm}: status {}", reply.status))?;
    }
    Ok(())
}

/// A JWT that says the same under a signature that is none.
fn resigned(jwt: &str) -> String {
    let (signed, signature) = jwt.rsplit_once('.').unwrap_or((jwt, ""));
    // The last character of a signature in base64url holds four of its bits; the first holds six.
    let other = if signature.starts_with('A') { "B" } else { "A" };
    format!("{signed}.{other}{}", signature.get(1..).unwrap_or_default())
}

/// Token and proof as they must be, but for one signature: of the token, of the proof, of the proof of an exchange.
async fn signatures(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    let ask = json!({"query": ""});
    context.answer(&session, &ask).await?;
    let forged = Session {
        token: resigned(&session.token),
        grantee: context.stranger(),
        grant: session.grant.clone(),
        bearer: session.bearer,
    };
    let headers = context.credentials(&forged, &session.grantee, "POST", context.at(Place::Query))?;
    let reply = context.post(context.at(Place::Query), &headers, &ask).await?;
    expect(reply.status == 401, || format!("a token with another signature: status {}", reply.status))?;
    if session.bearer {
        return Ok(());
    }
    let mut headers = context.credentials(&session, &session.grantee, "POST", context.at(Place::Query))?;
    for (name, value) in &mut headers {
        if *name == "dpop" {
            *value = resigned(value);
        }
    }
    let reply = context.post(context.at(Place::Query), &headers, &ask).await?;
    expect(reply.status == 401, || format!("a proof with another signature: status {}", reply.status))?;
    let mut forged = session.grant.clone();
    forged["signature"] = json!(resigned(session.grant["signature"].as_str().unwrap_or_default()));
    refused(context.exchange(&session.grantee, &forged).await?.status, "a grant with another signature")
}

async fn bound(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    if session.bearer {
        return Err(Failed::Wrong(
            "the grant allows no bearer token, and a bearer token was given".to_owned(),
        ));
    }
    context.answer(&session, &json!({"query": ""})).await?;
    let thief = context.stranger();
    let headers = context.credentials(&session, &thief, "POST", context.at(Place::Query))?;
    let reply = context.post(context.at(Place::Query), &headers, &json!({"query": ""})).await?;
    expect(reply.status == 401, || format!("a token with another key's proof: status {}", reply.status))?;
    let bearer = [("authorization", format!("Bearer {}", session.token))];
    let reply = context.post(context.at(Place::Query), &bearer, &json!({"query": ""})).await?;
    expect(reply.status == 401, || format!("a bound token without a proof: status {}", reply.status))
}

async fn short_lived(context: &Context<'_>) -> Result<(), Failed> {
    use base64::Engine;
    let session = granted(context).await?;
    let claims = session.token.split('.').nth(1).unwrap_or_default();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
    let times = claims["exp"].as_i64().zip(claims["iat"].as_i64());
    let (exp, iat) = times.ok_or_else(|| Failed::Wrong("the token is no JWT with exp and iat".to_owned()))?;
    let life = exp.saturating_sub(iat);
    expect((1..=600).contains(&life), || format!("the token lives {life} seconds; at most 600"))
}

async fn replayed(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    let path = context.at(Place::Query);
    // Where it is waited for it is made anew: its time is that of the request.
    let last = Mutex::new(Vec::new());
    let made = || {
        let headers = context.credentials(&session, &session.grantee, "POST", path)?;
        last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&headers);
        Ok(post(path, &headers, &json!({"query": ""}).to_string()))
    };
    let first = context.send_each(made).await?;
    let headers = last.into_inner().unwrap_or_else(PoisonError::into_inner);
    expect(first.status == 200, || format!("a query under a grant in force: status {}", first.status))?;
    let second = context.post(path, &headers, &json!({"query": ""})).await?;
    expect(second.status == 401, || format!("the same proof again: status {}", second.status))
}

async fn another_request(context: &Context<'_>) -> Result<(), Failed> {
    let session = granted(context).await?;
    context.answer(&session, &json!({"query": ""})).await?;
    for (method, path) in [("GET", context.at(Place::Query)), ("POST", context.at(Place::Export))] {
        let headers = context.credentials(&session, &session.grantee, method, path)?;
        let reply = context.post(context.at(Place::Query), &headers, &json!({"query": ""})).await?;
        expect(reply.status == 401, || format!("a proof made for {method} {path}: status {}", reply.status))?;
    }
    Ok(())
}

//! What a gateway publishes for others like it, and what ends at once: agent card, handovers of keys, status list, lockdown.

use super::super::context::{Context, Session, expect};
use super::super::declared::Place;
use super::super::refusals::{child, signed};
use super::super::wire::Request;
use super::super::{Failed, Probe, Severity};
use super::{note, owned, probe, public};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_grants::status;
use oap_identity::jwk::PublicKey;
use oap_identity::signed::UnverifiedSignature;
use oap_identity::{DidDocument, Kid, Timestamp, json as strict};
use serde_json::{Value, json};

/// The extension of an agent card that names a gateway's manifests.
const EXTENSION: &str = "urn:oap-memory-gateway:a2a:manifests:1";
const CARD: &str = "/.well-known/agent-card.json";
const HANDOVERS: &str = "/.well-known/oap-key-handovers.json";

/// The probe that ends every grant that there is.
pub(super) const LOCKDOWN: &str = "lockdown";

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        public("agent-card", &["FE-6"], Major, probe!(agent_card)),
        owned("key-handovers", &["FE-7"], Major, probe!(handovers)),
        owned("status-list", &["ME-08", "SP-04"], Critical, probe!(status_list)),
        owned(LOCKDOWN, &["CO-30"], Critical, probe!(lockdown)),
    ]
}

/// A document that need not be there.
async fn optional(context: &Context<'_>, path: &str) -> Result<Value, Failed> {
    let reply = context.send(Request { method: "GET", path: path.to_owned(), ..Request::default() }).await?;
    if reply.status == 404 {
        return Err(Failed::NotDeclared(format!("there is no {path}")));
    }
    expect(reply.status == 200, || format!("{path}: status {} instead of 200", reply.status))?;
    Ok(reply.json())
}

/// Whether one of the signatures of a card is by a key that is in force (A2A 1.0, RFC 7515 with a payload that is not repeated).
fn is_signed(card: &Value, document: &DidDocument, now: Timestamp) -> bool {
    let mut unsigned = card.clone();
    let signatures = unsigned.as_object_mut().and_then(|members| members.remove("signatures"));
    let Ok(payload) = strict::canonical(&unsigned) else { return false };
    let holds = |signature: &Value| -> Option<()> {
        let (protected, value) = (signature["protected"].as_str()?, signature["signature"].as_str()?);
        let header = strict::parse(&URL_SAFE_NO_PAD.decode(protected).ok()?).ok()?;
        let kid: Kid = header["kid"].as_str()?.parse().ok()?;
        if header["alg"] != "EdDSA" {
            return None;
        }
        let signed = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(&payload));
        let value = URL_SAFE_NO_PAD.decode(value).ok()?;
        document.key(&kid)?.verify(signed.as_bytes(), &value, now).ok()
    };
    let signatures = signatures.as_ref().and_then(Value::as_array);
    signatures.is_some_and(|all| all.iter().any(|signature| holds(signature).is_some()))
}

/// The card names whose gateway it is and where its manifests are, and the principal signed that.
async fn agent_card(context: &Context<'_>) -> Result<(), Failed> {
    let card = optional(context, CARD).await?;
    let extensions = card["capabilities"]["extensions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = extensions.iter().find(|extension| extension["uri"] == EXTENSION);
    let none = || Failed::NotDeclared("the agent card does not name a memory gateway".to_owned());
    let params = &named.ok_or_else(none)?["params"];
    let document = context.document().await?;
    let expected = [
        ("principal", document.id().to_string()),
        ("memory_manifest", format!("{}/.well-known/oap-memory.json", context.origin())),
        ("tool_manifest", format!("{}/.well-known/oap-tool.json", context.origin())),
    ];
    for (member, is) in expected {
        expect(params[member] == is, || {
            format!("agent-card.json: {member} is {}, must be {is}", params[member])
        })?;
    }
    expect(is_signed(&card, &document, context.now()), || {
        "agent-card.json: no key of the principal that is in force signed it".to_owned()
    })
}

/// A key that comes into use was named by the one before it: whoever pinned that one can go on.
async fn handovers(context: &Context<'_>) -> Result<(), Failed> {
    optional(context, HANDOVERS).await?;
    let before = context.document().await?;
    let get =
        |headers| Request { method: "GET", path: "/.well-known/did.json".to_owned(), headers, body: None };
    let tag = context.send(get(Vec::new())).await?.header("etag").unwrap_or_default().to_owned();
    context.owner(json!({"do": "rotate"})).await?;
    let status = context.send(get(vec![("if-none-match".to_owned(), tag)])).await?.status;
    expect(status == 200, || format!("did.json by its tag of before a rotation: status {status}"))?;
    let (after, list) = (context.document().await?, optional(context, HANDOVERS).await?);
    expect(list["principal"] == after.id().as_str(), || {
        "oap-key-handovers.json is of another principal".to_owned()
    })?;
    let new = after.keys().iter().find(|key| before.key(key.kid()).is_none());
    let new = new.ok_or_else(|| Failed::Wrong("did.json: no new key after a rotation".to_owned()))?;
    let names_it = |handover: &&Value| -> Option<()> {
        let issued_at: Timestamp = handover["issued_at"].as_str()?.parse().ok()?;
        let signature = UnverifiedSignature::of(handover).ok()?;
        // By the key as it was, and as it is published from now on: with its end.
        signature.verify(before.key(signature.kid())?, issued_at).ok()?;
        signature.verify(after.key(signature.kid())?, issued_at).ok()?;
        let is_named = handover["type"] == "key_handover"
            && handover["principal"] == after.id().as_str()
            && handover["kid"] == new.kid().to_string()
            && PublicKey::from_jwk(&handover["jwk"]).ok()? == *new.public();
        is_named.then_some(())
    };
    let named =
        list["handovers"].as_array().is_some_and(|all| all.iter().any(|one| names_it(&one).is_some()));
    expect(named, || {
        "oap-key-handovers.json: no key of before the rotation says which key follows it".to_owned()
    })
}

/// The place of a session's grant in the status list: index, and where the list is.
fn place(session: &Session) -> Option<(u32, String)> {
    let list = &session.grant["status"]["status_list"];
    Some((u32::try_from(list["idx"].as_u64()?).ok()?, list["uri"].as_str()?.to_owned()))
}

/// Whether the list says that a grant is revoked.
async fn is_revoked(context: &Context<'_>, (idx, uri): &(u32, String)) -> Result<bool, Failed> {
    let path = context.at(Place::Status).to_owned();
    expect(*uri == format!("{}{path}", context.origin()), || {
        format!("a grant's status list is at {uri:?}, not where the manifest says")
    })?;
    let reply = context.send(Request { method: "GET", path, ..Request::default() }).await?;
    expect(reply.status == 200, || format!("the status list: status {} instead of 200", reply.status))?;
    let (list, document) = (String::from_utf8_lossy(&reply.bytes).into_owned(), context.document().await?);
    status::is_revoked(list.trim(), *idx, uri, &document, context.now())
        .map_err(|e| Failed::Wrong(format!("the status list: {e}")))
}

/// A revocation is in the list at once, and no grant but that.
async fn status_list(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let (ended, stays) = (context.granted(&label, 2).await?, context.granted(&label, 2).await?);
    let (Some(of_ended), Some(of_stays)) = (place(&ended), place(&stays)) else {
        return Err(Failed::NotDeclared("grants name no status list".to_owned()));
    };
    for place in [&of_ended, &of_stays] {
        expect(!is_revoked(context, place).await?, || {
            "the status list says of a grant in force that it is revoked".to_owned()
        })?;
    }
    context.owner(json!({"do": "revoke", "grant_id": ended.grant["grant_id"]})).await?;
    expect(is_revoked(context, &of_ended).await?, || {
        "the status list does not say of a revoked grant that it is".to_owned()
    })?;
    expect(!is_revoked(context, &of_stays).await?, || {
        "the status list says of another grant than the revoked one that it is".to_owned()
    })?;
    passed_on(context, &label, [of_ended, of_stays]).await
}

/// A grant that is made from another has a place of its own, always the same, and is revoked with that.
async fn passed_on(context: &Context<'_>, label: &str, others: [(u32, String); 2]) -> Result<(), Failed> {
    let delegator = context.stranger();
    let mut draft = context.draft(&delegator, label, 2);
    draft["delegable"] = json!({"max_depth": 1});
    let above = context.session(delegator, draft).await?;
    let mut places: Vec<(u32, String)> = others.into_iter().chain(place(&above)).collect();
    for _ in 0..2 {
        let grantee = context.stranger();
        let mut grant = child(context, &above.grant, &grantee)?;
        signed(&mut grant, &above.grantee)?;
        let given = async || {
            let reply = context.present(&grantee, &grant, &grant, std::slice::from_ref(&above.grant)).await?;
            let list = &reply.json()["status"]["status_list"];
            let idx = list["idx"].as_u64().and_then(|idx| u32::try_from(idx).ok());
            let uri = list["uri"].as_str().map(str::to_owned);
            idx.zip(uri).ok_or_else(|| {
                Failed::Wrong(format!("a grant that was passed on has no place: status {}", reply.status))
            })
        };
        let (first, again) = (given().await?, given().await?);
        expect(first == again, || {
            "exchanged again, a grant that was passed on has another place".to_owned()
        })?;
        expect(!places.contains(&first), || "two grants have one place in the status list".to_owned())?;
        expect(!is_revoked(context, &first).await?, || {
            "the status list says of a grant that was passed on that it is revoked".to_owned()
        })?;
        places.push(first);
    }
    context.owner(json!({"do": "revoke", "grant_id": above.grant["grant_id"]})).await?;
    for place in places.iter().skip(2) {
        expect(is_revoked(context, place).await?, || {
            "the status list does not say of a grant that it ended with the one that it was made from"
                .to_owned()
        })?;
    }
    Ok(())
}

/// One word of the owner's, and nobody is answered; what it ended does not come back.
async fn lockdown(context: &Context<'_>) -> Result<(), Failed> {
    if !context.may_lock_down() {
        let why = "this owner's side does not have its gateway locked down for a probe, which ends every grant that there is";
        return Err(Failed::NotCovered(why.to_owned()));
    }
    let label = context.word();
    context.capture(&[note("it is there", &[&label])]).await?;
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &label, 2);
    draft["operations"] = json!(["query", "export"]);
    let session = context.session(grantee, draft).await?;
    context.answer(&session, &json!({"query": ""})).await?;
    let export = context.export(&session).await?.status;
    expect(export == 200, || format!("an export under a grant for exports: status {export}"))?;
    context.owner(json!({"do": "lockdown"})).await?;
    let locked = shut(context, &session).await;
    // Whatever was seen, others are to be answered again.
    let lifted = context.owner(json!({"do": "unlock"})).await;
    locked?;
    lifted?;
    let status = context.query(&session, &json!({"query": ""})).await?.status;
    expect([401, 403].contains(&status), || {
        format!("a query under what a lockdown ended, once it is lifted: status {status}")
    })?;
    let status = context.exchange(&session.grantee, &session.grant).await?.status;
    expect((400..500).contains(&status), || {
        format!("an exchange of a grant that a lockdown ended, once it is lifted: status {status}")
    })?;
    let anew = context.granted(&label, 2).await?;
    context.answer(&anew, &json!({"query": ""})).await.map(drop)
}

/// What others see while a lockdown lasts.
async fn shut(context: &Context<'_>, session: &Session) -> Result<(), Failed> {
    let query = context.query(session, &json!({"query": ""})).await?.status;
    let exchange = context.exchange(&session.grantee, &session.grant).await?.status;
    let export = context.export(session).await?.status;
    for (what, status) in [("a query", query), ("an exchange", exchange), ("an export", export)] {
        expect([401, 403].contains(&status), || {
            format!("{what} during a lockdown: status {status} instead of 401 or 403")
        })?;
    }
    match place(session) {
        Some(place) => expect(is_revoked(context, &place).await?, || {
            "the status list does not say that a lockdown ended a grant".to_owned()
        }),
        None => Ok(()),
    }
}

//! What only the owner may do, and whose a receipt is: asked by everybody else.

use super::cases::OneOrMore;
use super::doors::is_absent;
use super::jws::{Jws, changed, doubled};
use super::rules::{Condition, OwnerRule, VerifyRule};
use super::scene::{Scene, everything, noted};
use crate::probe::Failed;
use crate::probe::context::{Context, expect, post};
use crate::probe::wire::Request;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::Hash;
use serde_json::{Value, json};

/// Where items are deleted, unless the tool manifest says otherwise, and where receipts are verified.
const DELETE: &str = "/oap/data/delete";
const VERIFY: &str = "/oap/receipt/verify";

/// A credential that is none of the owner's.
struct Credential {
    what: &'static str,
    headers: Vec<(&'static str, String)>,
}

const fn credential(what: &'static str, headers: Vec<(&'static str, String)>) -> Credential {
    Credential { what, headers }
}

/// A proof of possession for a token, by a key of the scene's.
fn proof(context: &Context<'_>, scene: &Scene, path: &str, token: &str, by_stranger: bool) -> String {
    let key = if by_stranger { &scene.stranger } else { &scene.session.grantee };
    let ath = URL_SAFE_NO_PAD.encode(Hash::of(token.as_bytes()).as_bytes());
    let (url, now) = (format!("{}{path}", context.origin()), scene.ahead.now(context).seconds());
    let jws = Jws::new(
        json!({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": key.public().jwk()}),
        json!({"jti": context.word(), "htm": "POST", "htu": url, "iat": now, "ath": ath}),
    );
    jws.made(key, key)
}

/// A trust token of somebody's own (protocol section 10), for another principal or in the principal's name.
fn forged(context: &Context<'_>, scene: &Scene, named: &str) -> String {
    let (stranger, now) = (&scene.stranger, scene.ahead.now(context).seconds());
    let jws = Jws::new(
        json!({"typ": "oap-trust-token+jwt", "alg": "EdDSA", "kid": stranger.kid()}),
        json!({
            "iss": named, "sub": named, "aud": context.origin(), "agent": stranger.did(), "scope": "memory.admin",
            "nonce": context.word(), "iat": now, "exp": now + 3_600, "cnf": {"jkt": stranger.public().thumbprint()},
        }),
    );
    jws.made(stranger, stranger)
}

/// The credentials that break a condition.
fn of_owner(
    rule: OwnerRule,
    context: &Context<'_>,
    scene: &Scene,
    path: &str,
    principal: &str,
) -> OneOrMore<Credential> {
    let one = OneOrMore::one;
    let bound = |token: &str, by_stranger: bool| {
        vec![
            ("authorization", format!("DPoP {token}")),
            ("dpop", proof(context, scene, path, token, by_stranger)),
        ]
    };
    match rule {
        OwnerRule::Present => one(credential("none", Vec::new()))
            .and(credential("a word", vec![("authorization", format!("Bearer {}", context.word()))])),
        OwnerRule::Principal => {
            let own = forged(context, scene, scene.stranger.did().as_str());
            let in_its_name = forged(context, scene, principal);
            one(credential("a stranger's trust token", bound(&own, true)))
                .and(credential("one in the principal's name by a stranger", bound(&in_its_name, true)))
        }
        OwnerRule::Grantee => {
            let token = &scene.session.token;
            let grant_proof = scene.grant_proof(context, &format!("{}{path}", context.origin()));
            let shown = grant_proof.map(|jws| scene.made(&jws)).unwrap_or_default();
            one(credential("a grantee's token with its proof", bound(token, false)))
                .and(credential(
                    "a grantee's token as a bearer's",
                    vec![("authorization", format!("Bearer {token}"))],
                ))
                .and(credential("a grantee's proof", vec![("authorization", format!("OAP-Proof {shown}"))]))
        }
    }
}

/// Nobody but the owner deletes.
pub(in super::super) async fn deletion(context: &Context<'_>) -> Result<(), Failed> {
    let tool = context.get("/.well-known/oap-tool.json").await?;
    let named = tool["endpoints"]["data_delete"].as_str().and_then(|url| url.strip_prefix(context.origin()));
    let path = named.filter(|path| path.starts_with('/')).unwrap_or(DELETE);
    let principal = context.document().await?.id().to_string();
    let (label, item) = noted(context).await?;
    let grantee = context.stranger();
    let draft = everything(context, &grantee, &label, false);
    let session = context.session(grantee, draft).await?;
    let scene = Scene::of(context, session, Vec::new(), &item).await?;
    let selected = json!({"items": [item]});
    let anonymous = context.post(path, &[], &selected).await?.status;
    // What the tool manifest names is there, whatever strangers are told.
    if named.is_none() && is_absent(anonymous) {
        return Err(Failed::NotDeclared(format!("there is no {path}")));
    }
    for rule in OwnerRule::ALL.iter().copied() {
        for Credential { what, headers } in of_owner(rule, context, &scene, path, &principal) {
            let status = context.post(path, &headers, &selected).await?.status;
            expect([401, 403].contains(&status), || {
                format!("a deletion with {what}: {rule}: status {status}, must be 401 or 403")
            })?;
            context.note_at(&Condition::Owner(rule), "deletion");
        }
    }
    let shown = context.answer(&scene.session, &json!({})).await?;
    expect(shown["items"][0]["item_id"] == item, || {
        "an item that only strangers and a grantee wanted to delete is not there any more".to_owned()
    })?;
    // Its owner can.
    context.owner(json!({"do": "delete", "item_ids": [item]})).await?;
    let shown = context.answer(&scene.session, &json!({})).await?;
    expect(shown["items"].as_array().is_some_and(Vec::is_empty), || {
        "an item that its owner deleted is there still".to_owned()
    })
}

/// What is shown in place of a receipt, and the statuses, one of which it must have.
struct Shown {
    what: &'static str,
    statuses: &'static [u16],
    receipt: Value,
}

const NO_RECEIPT: &[u16] = &[400];
const UNKNOWN: &[u16] = &[404];
/// What is another receipt may be none by its form as well.
const EITHER: &[u16] = &[400, 404];

fn of_verify(rule: VerifyRule, receipt: &Value) -> OneOrMore<Shown> {
    let one = OneOrMore::one;
    let is = |what, statuses, receipt| Shown { what, statuses, receipt };
    let with = |what, statuses, change: fn(&mut Value)| {
        let mut other = receipt.clone();
        change(&mut other);
        Shown { what, statuses, receipt: other }
    };
    match rule {
        VerifyRule::Shape => one(is("an empty object", NO_RECEIPT, json!({})))
            .and(is("a list", NO_RECEIPT, json!([receipt])))
            .and(is("a text", NO_RECEIPT, json!("receipt"))),
        VerifyRule::Known => one(with("one of another name", UNKNOWN, |receipt| {
            receipt["receipt_id"] = json!("urn:oap:receipt:01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
        })),
        VerifyRule::Bytes => one(with("with another time", UNKNOWN, |receipt| {
            receipt["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        }))
        .and(with("of another agent", UNKNOWN, |receipt| {
            receipt["agent_did"] = json!("did:web:somebody.example");
        }))
        .and(with("of nothing", UNKNOWN, |receipt| receipt["provenance_tags_out"] = json!([])))
        .and(with("of another decision", UNKNOWN, |receipt| {
            receipt["policy_decisions"][0]["trust_level"] = json!(0);
        }))
        .and(with("under another signature", EITHER, |receipt| {
            let value = receipt["signatures"][0]["value"].as_str().unwrap_or_default();
            receipt["signatures"][0]["value"] = json!(changed(value));
        }))
        .and(with("without a signature", EITHER, |receipt| receipt["signatures"] = json!([])))
        .and(with("with one member more", EITHER, |receipt| receipt["colour"] = json!("red"))),
    }
}

/// A receipt is said to be this gateway's where it is, to the byte, and nothing else is.
pub(in super::super) async fn receipts(context: &Context<'_>) -> Result<(), Failed> {
    let request = Request { method: "GET", path: VERIFY.to_owned(), ..Request::default() };
    // What is no receipt is 400 where there is somebody to say so.
    let is_there = context.send(request).await?.status != 404
        || !is_absent(context.post(VERIFY, &[], &json!({})).await?.status);
    if !is_there {
        return Err(Failed::NotDeclared(format!("there is no {VERIFY}")));
    }
    let (label, _) = noted(context).await?;
    let session = context.granted(&label, 2).await?;
    let receipt = context.answer(&session, &json!({})).await?["receipt"].clone();
    let own = async |when: &str| {
        let reply = context.post(VERIFY, &[], &receipt).await?;
        let said = reply.json();
        let is_so =
            reply.status == 200 && said["valid"] == true && said["receipt_id"] == receipt["receipt_id"];
        expect(is_so, || format!("{VERIFY}: a receipt of its own, {when}: status {}, {said}", reply.status))
    };
    own("before").await?;
    for rule in VerifyRule::ALL.iter().copied() {
        for Shown { what, statuses, receipt } in of_verify(rule, &receipt) {
            let status = context.post(VERIFY, &[], &receipt).await?.status;
            expect(statuses.contains(&status), || {
                format!("{VERIFY}: a receipt {what}: {rule}: status {status}, must be one of {statuses:?}")
            })?;
            context.note_at(&Condition::Verify(rule), "receipts");
        }
    }
    // As it is written does not count.
    let pretty = serde_json::to_string_pretty(&receipt).map_err(|e| Failed::Skipped(e.to_string()))?;
    let status = context.send(post(VERIFY, &[], &pretty)).await?.status;
    expect(status == 200, || format!("{VERIFY}: a receipt of its own with spaces: status {status}"))?;
    let doubled = doubled(receipt.to_string());
    let status = context.send(post(VERIFY, &[], &doubled)).await?.status;
    expect(status == 400, || {
        format!("{VERIFY}: a receipt with a member twice: status {status}, must be 400")
    })?;
    own("after").await
}

//! Possession soundness (RFC 0010 A.3, P1) against the real gateway: what it gives holds, and every way to forge, cut,
//! reorder or substitute it is told apart.

#[path = "../../gateway/tests/common/mod.rs"]
mod common;
mod support;

use common::*;
use oap_client::grantee::CheckedAnswer;
use oap_conformance::possession::{Unsound, of_all, of_answer};
use serde_json::{Value, json};

struct Held {
    world: World,
    grant: Value,
    answers: Vec<Value>,
    audit: Vec<Value>,
}

async fn held() -> Held {
    let world = World::new().await;
    let ids = world
        .capture(&[
            note("Tea at four", &["shared"]),
            note("Coffee at five", &["shared"]),
            note("Private", &["own"]),
        ])
        .await;
    let correct = json!({"item": {"content": {"text": "Tea at half past four"}}});
    world.owner("POST", &format!("/oap/owner/items/{}/correct", ids[0]), Some(&correct)).await.ok();
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["filter"] = json!({"labels_any": ["shared"]});
    let grant = world.issue(&draft).await;
    let token = world.token(&grantee, &grant).await;
    let mut answers = Vec::new();
    for query in ["tea", "coffee", ""] {
        answers.push(world.query(&grantee, &token, &json!({"query": query})).await.ok());
    }
    let audit = world.as_agent(&grantee, &token, "GET", "/oap/audit", None).await.ok();
    let audit = audit["receipts"].as_array().unwrap().clone();
    Held { world, grant, answers, audit }
}

#[tokio::test]
async fn what_the_gateway_gives_is_sound() {
    let held = held().await;
    let grantee = agent(2);
    let document = held.world.document();
    let all = of_all(&held.answers, &held.audit, &held.grant, &[], grantee.did(), &document).unwrap();
    assert_eq!(all.iter().map(|p| p.items.len()).collect::<Vec<_>>(), [1, 1, 2]);
}

/// Chains without SD-JWT prove no content.
#[tokio::test]
async fn content_without_proof_is_no_possession() {
    let held = held().await;
    let grantee = agent(2);
    let token = held.world.token(&grantee, &held.grant).await;
    let query = json!({"query": "tea", "integrity": "chain"});
    let answer = held.world.query(&grantee, &token, &query).await.ok();
    let found = of_answer(&answer, &held.grant, &[], grantee.did(), &held.world.document());
    assert!(
        matches!(found, Err(Unsound::Evidence(oap_memory::evidence::EvidenceError::Unproved))),
        "{found:?}"
    );
}

/// The gateway itself forges, and signs it: its own signature and receipt hold, and still every forgery is told apart, each
/// by what is wrong with it.
#[tokio::test]
async fn every_forgery_is_told_apart() {
    let held = held().await;
    let grantee = agent(2);
    let document = held.world.document();
    let check = |answer: &Value| of_answer(answer, &held.grant, &[], grantee.did(), &document);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut answer = held.answers[0].clone();
        change(&mut answer);
        support::lies::reseal(&held.world, &held.answers[0], &mut answer);
        check(&answer)
    };
    let unsealed = |change: &dyn Fn(&mut Value)| {
        let mut answer = held.answers[0].clone();
        change(&mut answer);
        check(&answer)
    };
    check(&held.answers[0]).unwrap();
    changed(&|_| ()).unwrap();
    let chain = |answer: &mut Value, change: &dyn Fn(&mut Vec<Value>)| {
        change(answer["items"][0]["integrity"]["chain"].as_array_mut().unwrap());
    };
    let forgeries: Vec<(&str, &str, Result<_, Unsound>)> = vec![
        (
            "a word",
            "not what its disclosures show",
            changed(&|a| a["items"][0]["content"]["text"] = json!("Tea at five")),
        ),
        ("a cut tail", "another version", changed(&|a| chain(a, &|links| drop(links.pop())))),
        ("a cut head", "chain:", changed(&|a| chain(a, &|links| drop(links.remove(0))))),
        ("another order", "chain:", changed(&|a| chain(a, &|links| links.reverse()))),
        (
            "a stripped signature",
            "chain:",
            changed(&|a| chain(a, &|links| drop(links[1].as_object_mut().unwrap().remove("signature")))),
        ),
        (
            "another actor",
            "chain:",
            changed(&|a| chain(a, &|links| links[1]["actor"] = json!("did:web:else.example"))),
        ),
        (
            "a substituted chain",
            "capture receipt does not belong",
            changed(&|a| {
                let other = held.answers[1]["items"][0]["integrity"]["chain"].clone();
                a["items"][0]["integrity"]["chain"] = other;
            }),
        ),
        (
            "another capture receipt",
            "capture receipt does not belong",
            changed(&|a| {
                let other = held.answers[1]["items"][0]["integrity"]["capture_receipt"].clone();
                a["items"][0]["integrity"]["capture_receipt"] = other;
            }),
        ),
        (
            "proof taken away",
            "nothing proves",
            changed(&|a| drop(a["items"][0]["integrity"].as_object_mut().unwrap().remove("sd_jwt"))),
        ),
        (
            "a receipt of something else",
            "output_hash",
            changed(&|a| a["receipt"]["output_hash"] = json!(oap_identity::Hash::of(b"else"))),
        ),
        (
            "a receipt for another",
            "names",
            changed(&|a| a["receipt"]["agent_did"] = json!("did:web:else.example")),
        ),
        (
            "a receipt under another grant",
            "another grant",
            changed(&|a| {
                a["receipt"]["policy_decisions"][0]["consumed_grant_id"] =
                    json!("mgr_01KQHPHXG0DS1TGWW4FJ6XZRRG");
            }),
        ),
        ("a changed answer", "output_hash", unsealed(&|a| drop(a["items"].as_array_mut().unwrap().pop()))),
        (
            "the receipt of another answer",
            "the answer",
            unsealed(&|a| a["receipt"] = held.answers[1]["receipt"].clone()),
        ),
        ("a receipt without signature", "receipt", unsealed(&|a| a["receipt"]["signatures"] = json!([]))),
        (
            "an answer without signature",
            "signature",
            unsealed(&|a| drop(a.as_object_mut().unwrap().remove("signature"))),
        ),
    ];
    for (name, why, result) in forgeries {
        let found = result.map(drop).expect_err(name).to_string();
        assert!(found.contains(why), "{name}: {found}");
    }
}

#[tokio::test]
async fn the_grant_must_be_the_one() {
    let held = held().await;
    let (grantee, document) = (agent(2), held.world.document());
    let answer = &held.answers[2];
    let check =
        |grant: &Value, grantee: &oap_identity::Did| of_answer(answer, grant, &[], grantee, &document).err();
    let other = held.world.issue(&held.world.draft(&grantee)).await;
    assert!(matches!(check(&other, grantee.did()), Some(Unsound::OtherGrant)));
    assert!(matches!(check(&held.grant, agent(3).did()), Some(Unsound::Grantee("the grant", ..))));
    for (member, value) in [
        ("max_items", json!(501)),
        ("expires_at", json!("2027-01-01T00:00:00.000Z")),
        ("filter", json!({})),
        ("grantee", json!(agent(3).did())),
    ] {
        let mut forged = held.grant.clone();
        forged[member] = value;
        assert!(matches!(check(&forged, grantee.did()), Some(Unsound::Grant(_))), "{member}");
    }
}

#[tokio::test]
async fn the_log_must_have_the_receipts_as_they_were_given() {
    let held = held().await;
    let (grantee, document) = (agent(2), held.world.document());
    let check =
        |audit: &[Value]| of_all(&held.answers, audit, &held.grant, &[], grantee.did(), &document).err();
    let without: Vec<Value> = held
        .audit
        .iter()
        .filter(|receipt| receipt["receipt_id"] != held.answers[1]["receipt"]["receipt_id"])
        .cloned()
        .collect();
    assert!(matches!(check(&without), Some(Unsound::Missing)));
    let mut changed = held.audit.clone();
    changed[0]["timestamp"] = json!("2026-05-01T12:00:01.000Z");
    assert!(matches!(check(&changed), Some(Unsound::Receipt(_))));
    let mut stripped = held.audit.clone();
    stripped[0]["signatures"] = json!([]);
    assert!(matches!(check(&stripped), Some(Unsound::Receipt(_))));
}

/// The grantee's client believes no more than the probe does: not the word of a gateway that takes the proof away, or whose
/// receipt is for somebody else.
#[tokio::test]
async fn the_client_asks_for_the_same_proof() {
    let held = held().await;
    let (grantee, document) = (agent(2), held.world.document());
    let check = |change: &dyn Fn(&mut Value)| {
        let mut answer = held.answers[0].clone();
        change(&mut answer);
        support::lies::reseal(&held.world, &held.answers[0], &mut answer);
        CheckedAnswer::of(answer, &document, grantee.did()).map(drop).map_err(|e| e.to_string())
    };
    check(&|_| ()).unwrap();
    let unproved =
        check(&|a| drop(a["items"][0]["integrity"].as_object_mut().unwrap().remove("sd_jwt"))).unwrap_err();
    assert!(unproved.contains("nothing proves"), "{unproved}");
    let elsewhere = check(&|a| a["receipt"]["agent_did"] = json!("did:web:else.example")).unwrap_err();
    assert!(elsewhere.contains("another grantee"), "{elsewhere}");
    let rewritten = check(&|a| a["items"][0]["content"]["text"] = json!("Tea at five")).unwrap_err();
    assert!(rewritten.contains("not what its disclosures show"), "{rewritten}");
}

/// What was passed on is possession too, with the grants that it was made from.
#[tokio::test]
async fn a_delegated_grant_is_sound() {
    let world = World::new().await;
    world.capture(&[note("tea at nine", &["shared"])]).await;
    let (first, second) = (agent(2), agent(3));
    let mut draft = world.draft(&first);
    draft["delegable"] = json!({"max_depth": 1});
    let parent = world.issue(&draft).await;
    let mut child = parent.clone();
    child["grant_id"] = json!("mgr_01KQHPHXG0DS1TGWW4FJ6XZRRG");
    child["parent"] = json!(oap_identity::Hash::of_canonical(&parent).unwrap());
    child["grantee"] = json!(second.did());
    for member in ["delegable", "status", "signature"] {
        child.as_object_mut().unwrap().remove(member);
    }
    oap_identity::signed::sign_document(&mut child, &first).unwrap();
    let endpoint = format!("{ORIGIN}/oap/memory/grant");
    let hash = oap_identity::Hash::of_canonical(&child).unwrap();
    let random = oap_identity::random::Seeded::new(77);
    let proof = oap_grants::exchange::prove(&second, &endpoint, hash, world.now(), &random).unwrap();
    let request = json!({"grant": child, "chain": [parent], "proof": proof});
    let token = world.raw("POST", "/oap/memory/grant", &[], Some(&request)).await.ok();
    let token = token["memory_grant_jwt"].as_str().unwrap().to_owned();
    let answer = world.query(&second, &token, &json!({})).await.ok();
    let own = |signer: &oap_identity::Signer| {
        let key = oap_identity::VerificationKey::new(signer.kid().clone(), *signer.public());
        oap_identity::DidDocument::new(signer.did().clone(), vec![key])
    };
    let documents: std::collections::BTreeMap<_, _> = [world.document(), own(&first), own(&second)]
        .into_iter()
        .map(|document| (document.id().clone(), std::sync::Arc::new(document)))
        .collect();
    let ancestors = [parent.clone()];
    of_answer(&answer, &child, &ancestors, second.did(), &documents).unwrap();
    assert!(of_answer(&answer, &child, &[], second.did(), &documents).is_err());
    assert!(of_answer(&answer, &parent, &[], second.did(), &documents).is_err());
    let mut wider = child.clone();
    wider["max_items"] = json!(501);
    let found = of_answer(&answer, &wider, &ancestors, second.did(), &documents);
    assert!(matches!(found, Err(Unsound::Terms(_))), "{found:?}");
}

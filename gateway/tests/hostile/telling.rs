//! What grantees answer to a notice of a deletion: only what their own gateway signed, after the deletion and of every item, confirms it.

use super::*;
use oap_identity::{Did, ItemId};
use oap_memory::deletion::{Cascade, DeletionReceipt, DeletionScope, Exception, HoldReason, Method};

/// A Deletion Receipt, signed.
fn receipt(signer: &Signer, at: Timestamp, cascade: Cascade) -> Value {
    let did: Did = signer.did().clone();
    let exceptions = cascade
        .held
        .iter()
        .take(1)
        .map(|_| Exception { reason: HoldReason::LegalHold, retention_until: "2030-01-01".to_owned() });
    let exceptions = exceptions.collect();
    let receipt = DeletionReceipt {
        receipt_id: oap_identity::DeletionId::from_bytes([4; 16]),
        tool_did: did.clone(),
        principal_did: did,
        scope_id: None,
        request_received_at: at,
        completed_at: at,
        method: Method::CryptographicErasure,
        scope: DeletionScope {
            data_classes: vec!["memory_item".to_owned()],
            provenance_tags: Vec::new(),
            subprocessors_propagated_to: Vec::new(),
            items: Vec::new(),
            cascade,
        },
        exceptions,
    };
    receipt.sign(signer).unwrap()
}

/// The attack: to have it said that something is gone that is kept, or that the notice came which never did.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_acknowledges_what_is_not_so_confirms_nothing() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let texts = [note("Tea at four", &["tea"]), note("Tea at five", &["tea"])];
    let mut ids: Vec<ItemId> = world.capture(&texts).await.iter().map(|id| id.parse().unwrap()).collect();
    ids.sort_unstable();
    let none = |items: &[ItemId]| Cascade { not_found: items.to_vec(), ..Cascade::default() };
    let taken = |receipt: Value| LetterResult { deletion_receipt: Some(receipt), ..LetterResult::taken() };
    let now = world.now();
    let mut peers = Vec::new();
    for (case, state, failure) in [
        ("nothing is signed", "refused", ""),
        ("one item of two", "refused", ""),
        ("one is held", "refused", ""),
        ("one is to come", "refused", ""),
        ("of before the deletion", "refused", ""),
        ("taken and refused at once", "refused", ""),
        ("another's receipt", "waiting", "no_reply"),
        ("changed after it was signed", "waiting", "no_reply"),
        ("of ten minutes from now", "waiting", "no_reply"),
        ("the reply to an earlier letter", "waiting", "no_reply"),
        ("as it should be", "confirmed", ""),
    ] {
        let peer = peer(&world, &trust).await;
        let signer = peer.signer(1);
        world.ask(&signer, &world.draft(&signer), &json!({"query": "tea"})).await;
        let good = receipt(&signer, now, none(&ids));
        let said = match case {
            "nothing is signed" => LetterResult::taken(),
            "one item of two" => taken(receipt(&signer, now, none(&ids[..1]))),
            "one is held" => {
                let cascade = Cascade { held: vec![ids[1]], ..none(&ids) };
                taken(receipt(&signer, now, cascade))
            }
            "one is to come" => taken(receipt(&signer, now, Cascade { remaining: 1, ..none(&ids) })),
            "of before the deletion" => {
                taken(receipt(&signer, now.minus(Duration::from_secs(301)), none(&ids)))
            }
            "taken and refused at once" => {
                let outcome = oap_federation::Outcome::Refused;
                LetterResult { outcome, ..taken(good) }
            }
            "another's receipt" => taken(receipt(&agent(7), now, none(&ids))),
            "changed after it was signed" => {
                let mut changed = receipt(&signer, now, none(&ids[..1]));
                changed["scope"]["cascade"]["not_found"] = json!(ids);
                taken(changed)
            }
            "of ten minutes from now" => {
                taken(receipt(&signer, now.plus(Duration::from_secs(600)), none(&ids)))
            }
            _ => taken(good),
        };
        let reply = match case {
            "the reply to an earlier letter" => {
                let earlier = json!({"id": "ltr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1", "issued_at": now});
                Reply::Raw(reply_to(&earlier, said, &signer))
            }
            _ => says(peer.signer(1), said),
        };
        peer.reply(path::LETTER, reply);
        peers.push((peer, case, state, failure));
    }
    let gone = world.owner("POST", "/oap/data/delete", Some(&json!({"items": ids}))).await.ok();
    let id = gone["deletion_receipt"]["receipt_id"].as_str().unwrap();
    assert_eq!(gone["cascade_report"]["told"].as_array().unwrap().len(), peers.len(), "{gone}");
    assert_eq!(send_due(&world).await, peers.len());
    let report = get(&world, &format!("deletions/{id}")).await;
    for (peer, case, state, failure) in &peers {
        let told = report["grantees"].as_array().unwrap();
        let told = told.iter().find(|told| told["grantee"] == peer.did.as_str()).unwrap();
        let said = (told["state"].as_str().unwrap(), told["failure"].as_str().unwrap_or_default());
        assert_eq!(said, (*state, *failure), "{case}: {told}");
        assert_eq!(told["deletion_receipt"].is_object(), *state == "confirmed", "{case}: {told}");
    }
    world.chains_hold().await;
}

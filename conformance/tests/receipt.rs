//! Conformance Receipts: what is attested, what is refused, and every way in which one can be no evidence.

#[path = "../../gateway/tests/common/protocol_schemas.rs"]
mod protocol_schemas;

use oap_conformance::receipt::{AttestError, Attestation, ReceiptError, attest, check, witness};
use oap_identity::random::Seeded;
use oap_identity::{DidDocument, Hash, Signer, Timestamp, VerificationKey, random};
use serde_json::{Value, json};
use std::time::Duration;

const TARGET: &str = "https://memory.example";

fn now() -> Timestamp {
    "2026-05-01T00:00:00Z".parse().unwrap()
}

fn later(days: u64) -> Timestamp {
    now().plus(Duration::from_secs(days * 86_400))
}

fn somebody(seed: u64) -> (Signer, DidDocument) {
    let signer = Signer::did_key(&random::bytes(&Seeded::new(seed))).unwrap();
    let key = VerificationKey::new(signer.kid().clone(), *signer.public());
    let document = DidDocument::new(signer.did().clone(), vec![key]);
    (signer, document)
}

/// A report as the suite's runner writes it, with everything that L1 and L1-NC need.
fn report() -> Value {
    let result =
        |name: &str, file: &str| json!({"name": name, "file": file, "passed": true, "category": "behavior"});
    json!({
        "suite": "oap-conformance-test-suite", "suite_version": "1.0.0", "target": TARGET,
        "summary": {"total": 900, "passed": 900, "failed": 0},
        "fixtures_hash": Hash::of(b"fixtures"),
        "results": [
            result("manifest-discovery", "lifecycle.test.js"),
            result("discover-manifest-served", "discover.test.js"),
            result("invoke-success-200", "invoke.test.js"),
            result("audit-endpoint-declared", "audit.test.js"),
            result("nc-all-actions-free", "non-commercial-pricing.test.js"),
            result("nc-conformance-receipt-served", "non-commercial-pricing.test.js"),
            result("adversarial-receipt-forgery-rejected", "adversarial/receipt-forgery.test.js"),
            result("adversarial-signature-stripping-rejected", "adversarial/signature-stripping.test.js"),
            result("adversarial-sybil-creation-cap-declared", "adversarial/sybil-creation.test.js"),
            result("wallet-not-applicable", "wallet.test.js"),
        ],
    })
}

fn made(levels: &[&str], report: Option<&Value>, signer: &Signer) -> Result<Value, AttestError> {
    let levels: Vec<String> = levels.iter().map(|&level| level.to_owned()).collect();
    let manifest = Hash::of(b"manifest");
    let attestation =
        Attestation { target: TARGET, version: "0.1.0", manifest, levels: &levels, report, previous: None };
    attest(&attestation, signer, now(), &Seeded::new(9)).map(|receipt| serde_json::to_value(receipt).unwrap())
}

#[track_caller]
fn valid(receipt: &Value) {
    protocol_schemas::compare("oap-conformance-receipt.schema.json", receipt);
}

#[test]
fn a_receipt_holds_for_ninety_days_and_counts_for_itself() {
    let (signer, document) = somebody(1);
    let receipt = made(&["L0", "L1"], Some(&report()), &signer).unwrap();
    valid(&receipt);
    let held = check(&receipt, &document, &[], now()).unwrap();
    assert_eq!(
        (held.levels, held.not_after, held.witnesses),
        (vec!["L0".to_owned(), "L1".to_owned()], later(90), 0)
    );
    assert_eq!(receipt["results_summary"], json!({"total": 10, "passed": 10, "failed": 0, "skipped": 1}));
    assert_eq!(check(&receipt, &document, &[], later(90)), Err(ReceiptError::Late(later(90))));
    let before = "2026-04-30T23:59:59Z".parse().unwrap();
    assert_eq!(check(&receipt, &document, &[], before), Err(ReceiptError::Early(now())));
    let non_commercial = made(&["L1-NC"], Some(&report()), &signer).unwrap();
    valid(&non_commercial);
    assert_eq!(non_commercial["revenue"]["source"], "self-hosted");
    check(&non_commercial, &document, &[], now()).unwrap();
}

#[test]
fn a_level_is_attested_only_when_all_it_needs_ran_and_passed() {
    let (signer, document) = somebody(1);
    let without = |change: &dyn Fn(&mut Value)| {
        let mut changed = report();
        change(&mut changed);
        made(&["L1"], Some(&changed), &signer)
    };
    let unmet = |what| Err(AttestError::Unmet { level: "L1", what });
    assert_eq!(without(&|r| r["results"][3]["passed"] = json!(false)), unmet("audit.test.js"));
    assert_eq!(
        without(&|r| r["results"][2]["name"] = json!("invoke-not-applicable")),
        unmet("invoke.test.js")
    );
    assert_eq!(
        without(&|r| r["results"][6]["name"] = json!("adversarial-receipt-forgery-not-applicable")),
        unmet("adversarial-receipt-forgery-rejected")
    );
    assert_eq!(
        without(&|r| r["target"] = json!("https://other.example")),
        Err(AttestError::OtherTarget("https://other.example".to_owned()))
    );
    assert_eq!(without(&|r| r["suite"] = json!("another")), Err(AttestError::NoReport));
    assert_eq!(without(&|r| *r = json!([])), Err(AttestError::NoReport));
    assert_eq!(made(&["L3"], Some(&report()), &signer), Err(AttestError::Level("L3".to_owned())));
    assert_eq!(made(&["L4"], None, &signer), Err(AttestError::Level("L4".to_owned())));
    // A candidate may ask for its probes, and is no evidence.
    let asked = made(&["L1", "L3"], None, &signer).unwrap();
    assert!(matches!(check(&asked, &document, &[], now()), Err(ReceiptError::Results(_))));
    assert_eq!(made(&[], Some(&report()), &signer), Err(AttestError::NoLevel));
}

#[test]
fn a_candidate_is_no_evidence() {
    let (signer, document) = somebody(1);
    let candidate = made(&["L1"], None, &signer).unwrap();
    valid(&candidate);
    assert!(matches!(check(&candidate, &document, &[], now()), Err(ReceiptError::Results(_))));
    let end = now().plus(Duration::from_secs(3_600));
    assert_eq!(check(&candidate, &document, &[], end), Err(ReceiptError::Late(end)));
}

/// Whatever is changed, it is refused; and what is signed anew by the implementation, but is no evidence, too.
#[test]
fn forged_receipts_are_told() {
    let (signer, document) = somebody(1);
    let (mallory, _) = somebody(2);
    let good = made(&["L1"], Some(&report()), &signer).unwrap();
    for (pointer, value) in [
        ("/claimed_levels/0", json!("L5")),
        ("/results_summary/failed", json!(1)),
        ("/validity/not_after", json!(later(91))),
        ("/target/uri", json!("https://other.example")),
        ("/timestamp", json!(later(1))),
        ("/signatures/0/value", json!("AAAA")),
        ("/signatures/0/by", json!(mallory.kid())),
        ("/signatures/0/alg", json!("none")),
    ] {
        let mut forged = good.clone();
        *forged.pointer_mut(pointer).unwrap() = value;
        assert!(
            matches!(check(&forged, &document, &[], now()), Err(ReceiptError::Signature(_))),
            "{pointer}"
        );
    }
    for placeholder in ["PLACEHOLDER_NOT_FOR_PRODUCTION", "unsigned-reference", "placeholder:x"] {
        let mut forged = good.clone();
        forged["signatures"][0]["value"] = json!(placeholder);
        assert_eq!(check(&forged, &document, &[], now()), Err(ReceiptError::Placeholder));
    }
    let mut two = good.clone();
    two["signatures"]
        .as_array_mut()
        .unwrap()
        .push(json!({"by": mallory.kid(), "alg": "EdDSA", "value": "AAAA"}));
    assert!(check(&two, &document, &[], now()).is_err(), "one good signature does not cover for a bad one");
    let mut none = good.clone();
    none["signatures"] = json!([]);
    assert_eq!(check(&none, &document, &[], now()), Err(ReceiptError::Member("/signatures")));
    let anew = |change: &dyn Fn(&mut Value)| {
        let mut receipt = good.clone();
        change(&mut receipt);
        receipt.as_object_mut().unwrap().remove("signatures");
        let bytes = oap_identity::json::canonical(&receipt).unwrap();
        receipt["signatures"] = json!([{"by": signer.kid(), "alg": "EdDSA", "value": signer.sign(&bytes)}]);
        check(&receipt, &document, &[], now())
    };
    assert!(anew(&|_| ()).is_ok());
    assert_eq!(anew(&|r| r["validity"]["not_after"] = json!(later(91))), Err(ReceiptError::TooLong));
    assert!(matches!(anew(&|r| r["results_summary"]["passed"] = json!(11)), Err(ReceiptError::Results(_))));
    assert_eq!(anew(&|r| r["claimed_levels"] = json!(["L1-NC"])), Err(ReceiptError::Profile));
    assert_eq!(anew(&|r| r["claimed_levels"] = json!([])), Err(ReceiptError::Member("/claimed_levels")));
    assert!(matches!(check(&json!([]), &document, &[], now()), Err(ReceiptError::Shape(_))));
    let mut other = good.clone();
    other["type"] = json!("invocation");
    assert!(matches!(check(&other, &document, &[], now()), Err(ReceiptError::Shape(_))));
}

#[test]
fn witnesses_sign_the_receipt_and_count_once() {
    let (signer, document) = somebody(1);
    let (one, one_document) = somebody(2);
    let (two, two_document) = somebody(3);
    let known = [one_document, two_document];
    let mut receipt = made(&["L1"], Some(&report()), &signer).unwrap();
    for who in [&one, &two] {
        witness(&mut receipt, who, "https://witness.example/receipt.json", now()).unwrap();
    }
    valid(&receipt);
    assert_eq!(check(&receipt, &document, &known, now()).unwrap().witnesses, 2);
    assert!(matches!(check(&receipt, &document, &known[..1], now()), Err(ReceiptError::Witness(_))));
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut changed = receipt.clone();
        change(&mut changed);
        assert!(
            matches!(check(&changed, &document, &known, now()), Err(ReceiptError::Witness(_))),
            "{changed}"
        );
    };
    refused(&|r| r["peer_witnesses"][1] = r["peer_witnesses"][0].clone());
    refused(&|r| r["peer_witnesses"][1]["witness_did"] = json!(one.did()));
    refused(&|r| r["peer_witnesses"][0]["signature"] = json!("AAAA"));
    let mut own = made(&["L1"], Some(&report()), &signer).unwrap();
    witness(&mut own, &signer, "https://memory.example/receipt.json", now()).unwrap();
    assert!(matches!(check(&own, &document, &known, now()), Err(ReceiptError::Witness(_))));
}

//! What is published is valid and holds together.

#[path = "../../gateway/tests/common/protocol_schemas.rs"]
mod protocol_schemas;

use oap_identity::document::{self, DidDocument};
use oap_identity::{AgreementKey, Signer, Timestamp, VerificationKey};
use oap_manifest::check::{self, ManifestError};
use oap_manifest::{Publication, actions, memory, scopes, tool};
use oap_memory::Profile;
use serde_json::{Value, json};

const ORIGIN: &str = "https://user.example";

fn signer() -> Signer {
    Signer::from_seed("did:web:user.example#key-1".parse().unwrap(), &[1; 32]).unwrap()
}

fn documents() -> (Value, Value, Value, DidDocument) {
    let (signer, profiles) = (signer(), Profile::built_in());
    let publication = Publication {
        principal: signer.did(),
        origin: ORIGIN,
        public_scopes: &[],
        max_items: 10_000,
        max_duration_days: 180,
        belief_threshold: 0.5.try_into().unwrap(),
        profiles: &profiles,
        embedding: Some(("minilm", 384)),
        memorization_audit: None,
        publisher: "Alice",
        contact_email: "alice@user.example",
        jurisdiction: "DE",
        retention_days: 30,
        conformance: None,
        suite: false,
        version: "0.1.0",
        now: Timestamp::from_seconds(1_777_636_800),
    };
    let tool = tool::build(&publication);
    let memory = memory::build(&publication, &tool, &signer).unwrap();
    let scopes = scopes::build(&publication, &signer).unwrap();
    let key = VerificationKey::new(signer.kid().clone(), *signer.public());
    let did = document::publish(signer.did(), &[key], &AgreementKey::from_secret([2; 32]), ORIGIN);
    let did = DidDocument::parse(did.to_string().as_bytes(), signer.did()).unwrap();
    (tool, memory, scopes, did)
}

#[test]
fn documents_hold_together() {
    let (tool, memory, scopes, did) = documents();
    let endpoints = check::memory(&memory, &did, ORIGIN).unwrap();
    assert_eq!(endpoints.query, "https://user.example/oap/memory/query");
    check::tool(&tool, &memory, &did).unwrap();
    assert_eq!(scopes["scopes"], json!([]), "no scope is shown without consent");
    assert_eq!(memory["scopes"], json!([]));
}

#[test]
fn a_changed_manifest_is_refused() {
    let (tool, memory, _, did) = documents();
    for (pointer, value) in [
        ("/endpoints/query", json!("https://evil.example/oap/memory/query")),
        ("/max_grant_size_items", json!(1)),
        ("/belief_threshold", json!(0)),
    ] {
        let mut changed = memory.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(
            matches!(check::memory(&changed, &did, ORIGIN), Err(ManifestError::Signature(..))),
            "{pointer}"
        );
    }
    assert_eq!(
        check::memory(&memory, &did, "https://other.example"),
        Err(ManifestError::Endpoint("query")),
        "a manifest copied to another host"
    );
    let mut changed = tool;
    changed["risk_class"] = json!("high");
    assert!(check::tool(&changed, &memory, &did).is_err());
}

#[test]
#[ignore = "needs the protocol's own schemas (OAP_SHARED or ../shared): oap-manifest.schema.json"]
fn the_tool_manifest_is_valid_against_its_schema() {
    protocol_schemas::documents_are_compared_with_the_protocols_own_schemas();
    let (tool, ..) = documents();
    protocol_schemas::compare("oap-manifest.schema.json", &tool);
}

#[test]
fn the_free_read_action_stands_first_and_needs_nothing() {
    let first = &actions::descriptors()[0];
    assert_eq!((&first["cost"]["type"], &first["side_effects"]), (&json!("free"), &json!("read")));
    assert_eq!(first["input_schema"]["properties"], json!({}));
    assert_eq!(actions::Action::of("memory.describe"), Some(actions::Action::Describe));
    assert_eq!(actions::Action::of("memory_describe"), Some(actions::Action::Describe));
    assert_eq!(actions::Action::of("memory.describe.x"), None);
}

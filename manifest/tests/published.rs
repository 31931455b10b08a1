//! What is published is valid and holds together.

#[path = "../../gateway/tests/common/protocol_schemas.rs"]
mod protocol_schemas;

use oap_identity::document::{self, DidDocument};
use oap_identity::{AgreementKey, Signer, Timestamp, VerificationKey};
use oap_manifest::card::{self, CardError, UnverifiedCard};
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

#[test]
fn the_agent_card_is_signed_and_names_the_manifests() {
    let (signer, profiles) = (signer(), Profile::built_in());
    let publication = Publication {
        principal: signer.did(),
        origin: ORIGIN,
        public_scopes: &[],
        max_items: 10_000,
        max_duration_days: 180,
        belief_threshold: 0.5.try_into().unwrap(),
        profiles: &profiles,
        embedding: None,
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
    let built = card::build(&publication, &signer).unwrap();
    // What A2A 1.0 asks for, and what readers of 0.3 do.
    for member in ["name", "description", "version", "supportedInterfaces", "capabilities", "skills", "url"] {
        assert!(built.get(member).is_some(), "{member}");
    }
    let (_, _, _, did) = documents();
    let read = UnverifiedCard::read(built.clone()).unwrap();
    assert_eq!(read.principal(), signer.did());
    assert_eq!(read.memory_manifest(), "https://user.example/.well-known/oap-memory.json");
    assert_eq!(read.verify(&did, publication.now), Ok(()));
    // Not by a key that was retired, not of another, and not after a change.
    let key = VerificationKey::new(signer.kid().clone(), *signer.public());
    let retired = DidDocument::new(signer.did().clone(), vec![key.clone().retired(publication.now)]);
    assert_eq!(read.verify(&retired, publication.now), Err(CardError::Unsigned));
    let other = DidDocument::new("did:web:other.example".parse().unwrap(), vec![key]);
    assert_eq!(read.verify(&other, publication.now), Err(CardError::Unsigned));
    let mut changed = built.clone();
    changed["skills"][0]["name"] = json!("Anything");
    assert_eq!(
        UnverifiedCard::read(changed).unwrap().verify(&did, publication.now),
        Err(CardError::Unsigned)
    );
    for (pointer, value, error) in [
        ("/capabilities", json!({}), CardError::NoExtension),
        ("/capabilities/extensions/0/params/principal", json!("nobody"), CardError::NoExtension),
        ("/capabilities/extensions/0/params", json!([]), CardError::NoExtension),
    ] {
        let mut bad = built.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert_eq!(UnverifiedCard::read(bad), Err(error), "{pointer}");
    }
    let mut bad = built;
    bad["signature"] = json!("x");
    assert_eq!(UnverifiedCard::read(bad), Err(CardError::Uncovered));
    assert_eq!(UnverifiedCard::read(json!([1])), Err(CardError::NoExtension));
}

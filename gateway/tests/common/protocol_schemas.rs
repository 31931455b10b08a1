//! The protocol's own JSON Schemas. They are not ours to copy: what is made here is compared with them where a checkout is at hand
//! (`OAP_SHARED`, or `../shared`), and a test says by its name whether it was. With our own, in `schemas/`, it is compared always.

#[path = "../../../crates/identity/tests/support/beside.rs"]
mod beside;

use serde_json::Value;

/// Schemas that others refer to.
const REFERRED: [&str; 2] = ["oap-action.schema.json", "oap-commerce-primitive.schema.json"];

fn schema(name: &str) -> Value {
    beside::json(&format!("schemas/{name}"))
}

/// Compares a document with a schema of the protocol, where these are at hand.
#[track_caller]
pub fn compare(name: &str, document: &Value) {
    if !beside::place("schemas").is_dir() {
        return;
    }
    let others = REFERRED.map(schema);
    let mut registry = jsonschema::Registry::new();
    for other in &others {
        registry = registry.add(other["$id"].as_str().unwrap(), other).unwrap();
    }
    let registry = registry.prepare().unwrap();
    let options = jsonschema::options().with_registry(&registry).should_validate_formats(true);
    let validator = options.build(&schema(name)).unwrap();
    let wrong: Vec<String> =
        validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:?}: {document}");
}

/// Whether the comparisons of this file were made at all.
#[test]
#[ignore = "needs the protocol's own schemas (OAP_SHARED or ../shared): documents of this file are not compared without"]
pub fn documents_are_compared_with_the_protocols_own_schemas() {
    let folder = beside::place("schemas");
    assert!(folder.is_dir(), "{} is not there: set OAP_SHARED", folder.display());
    for name in REFERRED {
        assert!(schema(name)["$id"].is_string(), "{name}");
    }
}

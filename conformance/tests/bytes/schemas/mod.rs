//! `schemas/`: a JSON Schema (2020-12) of every document on the wire, generated from our own types.
//!
//! What a gateway makes is valid; what is spoiled in any of its closed places is not; and what a schema takes, our readers can
//! read. `OAP_WRITE_DOCS=1` writes the files anew.

mod cases;
mod documents;
mod parts;
mod tokens;

use super::{common, formula, maker};
use cases::{cases, of_a_gateway, spoiled};
use common::World;
use oap_identity::json as strict;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../schemas")
}

/// The names of the parts that a schema refers to, in itself.
fn referred(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(Value::as_str) {
                found.insert(name.trim_start_matches("#/$defs/").to_owned());
            }
            members.values().for_each(|value| referred(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| referred(value, found)),
        _ => {}
    }
}

/// A schema that stands for itself: with its parts, theirs, and so on.
fn whole(name: &str, title: &str, root: Value) -> Value {
    let all = parts::all();
    let mut wanted = BTreeSet::new();
    referred(&root, &mut wanted);
    let mut defs = Map::new();
    while let Some(name) = wanted.pop_first() {
        if !defs.contains_key(&name) {
            let part = all.get(&name).unwrap_or_else(|| panic!("there is no part {name}")).clone();
            referred(&part, &mut wanted);
            defs.insert(name, part);
        }
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:oap-memory-gateway:schema:{name}:1"),
        "title": title,
    });
    let members = schema.as_object_mut().unwrap();
    members.extend(root.as_object().unwrap().clone());
    members.insert("$defs".to_owned(), Value::Object(defs));
    schema
}

fn generated() -> BTreeMap<String, Value> {
    let all = documents::all().into_iter();
    all.map(|(name, title, root)| (name.to_owned(), whole(name, title, root))).collect()
}

#[test]
fn the_files_are_what_is_generated() {
    let mut names = BTreeSet::from(["README.md".to_owned()]);
    for (name, schema) in generated() {
        let file = format!("{name}.schema.json");
        // Members in one order, whatever order the crates of this build keep them in.
        let sorted = strict::parse(&strict::canonical(&schema).unwrap()).unwrap();
        let text = serde_json::to_string_pretty(&sorted).unwrap() + "\n";
        let path = folder().join(&file);
        if std::env::var_os("OAP_WRITE_DOCS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{file}: OAP_WRITE_DOCS=1 writes it anew");
        let page = std::fs::read_to_string(folder().join("README.md")).unwrap();
        assert!(page.contains(&format!("`{file}`")), "schemas/README.md names {file}");
        names.insert(file);
    }
    let there =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), names);
}

#[tokio::test]
async fn what_a_gateway_makes_is_valid_and_what_is_spoiled_is_not() {
    let schemas = generated();
    let validators: BTreeMap<&str, jsonschema::Validator> = schemas
        .iter()
        .map(|(name, schema)| (name.as_str(), jsonschema::validator_for(schema).unwrap()))
        .collect();
    let cases = cases(&maker::blocks().await, of_a_gateway().await);
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    let mut refused = 0;
    for case in &cases {
        let validator = &validators[case.schema];
        used.insert(case.schema);
        let errors: Vec<String> =
            validator.iter_errors(&case.document).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:?}: {}", case.schema, case.document);
        assert!(case.reads.is_none_or(|reads| reads(&case.document)), "{}: {}", case.schema, case.document);
        for (what, document, may_stand) in spoiled(case) {
            let valid = validator.is_valid(&document);
            refused += usize::from(!valid);
            if valid && !may_stand {
                wrong.push(format!("{} takes {what}", case.schema));
            }
            if valid && case.reads.is_some_and(|reads| !reads(&document)) {
                wrong.push(format!("{} takes what is not read: {what}", case.schema));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused > 1000, "{refused}");
    assert_eq!(used, validators.keys().copied().collect(), "a schema that nothing is compared with");
}

/// Each refusal that a stranger can provoke has the form of an error, and one of its codes.
#[tokio::test]
async fn refusals_are_errors_of_the_schema() {
    let world = World::new().await;
    let validator = jsonschema::validator_for(&generated()["error"]).unwrap();
    for (method, path, code) in [
        ("POST", "/oap/memory/grant", "invalid_input"),
        ("POST", "/oap/memory/query", "auth_required"),
        ("GET", "/oap/memory/grant/x", "not_found"),
        ("PUT", "/oap/memory/query", "method_not_allowed"),
        ("GET", "/nowhere", "not_found"),
    ] {
        let body = (method == "POST").then(|| json!({}));
        let answer = world.raw(method, path, &[], body.as_ref()).await;
        assert_eq!(answer.body["error"], code, "{path}");
        assert!(validator.is_valid(&answer.body), "{}", answer.body);
    }
}

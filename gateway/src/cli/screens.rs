//! The screens at 80 columns, as they stand in `tests/screens/`. `OAP_WRITE_SCREENS=1` writes them anew.

use super::grant::words;
use super::names::Names;
use super::{audit, gates, grant, hold, item, keys, query, screen, status};
use crate::state::keyring::KeyInfo;
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::path::PathBuf;

const AGENT: &str = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

const HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

fn now() -> Timestamp {
    "2026-06-15T12:00:00Z".parse().unwrap()
}

#[track_caller]
fn same(name: &str, text: &str) {
    for line in text.lines() {
        assert!(screen::columns(line) <= screen::USUAL_WIDTH, "{name}: {line}");
    }
    assert_eq!(screen::plain(text), text, "{name}");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("{name}.txt"));
    let text = format!("{}\n", text.trim_end());
    if std::env::var_os("OAP_WRITE_SCREENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        return;
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        text,
        "{name}: OAP_WRITE_SCREENS=1 writes it anew"
    );
}

/// An answer, of what stands in it.
fn read<T: serde::de::DeserializeOwned>(answer: Value) -> T {
    serde_json::from_value(answer).unwrap()
}

fn items() -> Value {
    let item = |id: &str, kind: &str, labels: &[&str], text: &str| {
        json!({"item_id": id, "status": "current", "kind": kind, "scope_id": "personal", "labels": labels, "content": {"text": text},
            "relevance": 0.5, "epistemic": "belief"})
    };
    json!({"items": [
        item("mem_01J9V8B7H1ZK4D2A0M9R8F0KQX", "preference", &["website", "scheduling"], "Prefers meetings on Tuesday mornings, and none at all after four in the afternoon"),
        item("mem_01J9V8B7H1ZK5D2A0M9R8F0KQX", "conversation_turn", &[], "東京の天気は今日もとても良いので、みんなで公園へ行きましょう。お弁当も持って行きましょう。"),
        item("mem_01J9V8B7J1ZK4D2A0M9R8F0KQX", "fact", &["e\u{301}te\u{301}"], "\u{1b}[2J\u{1b}[31mred\u{202e}desrever\u{202c}\r\nsecond line\u{7}"),
    ], "next": "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX"})
}

fn grant_info(id: &str, state: &str, grantee: &str, more: Value) -> Value {
    let mut grant = json!({
        "version": 1, "grant_id": id, "granter": "did:web:memory.example.org#personal", "grantee": grantee,
        "purpose": "Website redesign with the contractor", "filter": {"labels_any": ["website"], "kinds": ["fact", "preference"]},
        "max_items": 500, "issued_at": "2026-06-01T09:30:00.000Z", "expires_at": "2026-06-30T23:59:59.000Z",
        "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 2, "lawful_basis": "consent",
        "operations": ["query"],
    });
    for (name, value) in more.as_object().unwrap() {
        grant[name] = value.clone();
    }
    json!({"grant": grant, "hash": HASH, "state": state, "disclosed": 12, "revoked_at": null, "delegated": false})
}

fn grants() -> Value {
    json!({"grants": [
        grant_info("mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX", "active", "did:web:contractor.example", json!({})),
        grant_info("mgr_01J9V8B7H2ZK4D2A0M9R8F0KQX", "revoked", AGENT, json!({
            "trust_level": 4, "redaction_profile": "oap.profile.projection.contact.v1"})),
    ]})
}

#[test]
fn lists() {
    same("item-list", &item::table(&read(items()), &Names::default()));
    same("query", &query::answer(&items()));
    same("grant-list", &grant::table(&read(grants()), now()));
    let receipt = |action: &str, agent: &str, id: &str| {
        json!({"timestamp": "2026-06-15T12:00:00.000Z", "action_id": action, "agent_did": agent, "receipt_id": id,
            "type": "invocation", "principal_did": "did:web:memory.example.org", "previous_receipt_hash": "genesis",
            "policy_decisions": [{"id": "pol_01J9V8B7H1ZK4D2A0M9R8F0KQX", "outcome": "allow_with_conditions", "rules": []}], "provenance_tags_out": ["a", "b"]})
    };
    same(
        "audit",
        &audit::table(
            &read(json!({"receipts": [
                receipt("memory.query", AGENT, "urn:oap:receipt:01J9V8B7H1ZK4D2A0M9R8F0KQX"),
                receipt("memory.capture", "did:web:memory.example.org", "urn:oap:receipt:01J9V8B7H1ZK4D2A0M9R8F0KQY"),
            ]})),
            &Names::default(),
        ),
    );
    same(
        "keys-list",
        &keys::table(&read::<Vec<KeyInfo>>(json!([
            {"kid": "did:web:memory.example.org#key-2", "thumbprint": "x", "state": "current", "created_at": "2026-06-15T12:00:00.000Z"},
            {"kid": "did:web:memory.example.org#key-1", "thumbprint": "x", "state": "compromised", "created_at": "2026-05-15T12:00:00.000Z",
                "retired_at": "2026-06-15T12:00:00.000Z", "revoked_at": "2026-06-01T00:00:00.000Z"},
        ]))),
    );
    same(
        "hold-list",
        &hold::table(&read(json!({"holds": [
            {"item_id": "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX", "reason": "ongoing_dispute", "until": "2027-01-01T23:59:59.000Z", "erase_after": true},
        ]}))),
    );
    same(
        "bridge-list",
        &gates::table(&read(json!({"bridges": [
            {"state": "active", "revoked_at": null, "bridge": {"bridge_id": "brg_01J9V8B7H1ZK4D2A0M9R8F0KQX", "principal": "did:web:memory.example.org",
                "issued_at": "2026-06-15T12:00:00.000Z", "revocable": true, "from_scope": "work", "to_scope": "personal",
                "data_categories": ["scheduling", "preference", "fact"], "valid_until": "2026-09-13T12:00:00.000Z"}},
        ]}))),
    );
}

#[test]
fn one_grant() {
    let info =
        grant_info("mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX", "active", "did:web:contractor.example", json!({}));
    same("grant-show", &words::shown(&read(info), now()));
    let mut much = grant_info(
        "mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX",
        "revoked",
        AGENT,
        json!({
            "filter": {"captured_after": "2026-01-01T00:00:00.000Z"}, "operations": ["query", "export"], "embedding_access": true,
            "delegable": {"max_depth": 2}, "budget": {"queries": 9, "epsilon": 0.5}, "bearer": true, "purpose_codes": ["service_provision"],
            "lawful_basis": "legitimate_interests", "redaction_profile": "oap.profile.projection.contact.v1",
        }),
    );
    much["revoked_at"] = json!("2026-06-10T08:00:00.000Z");
    much["delegated"] = json!(true);
    same("grant-show-much", &words::shown(&read(much), now()));
    let preview = json!({
        "selected": 3, "max_items": 500, "kinds": {"fact": 1, "preference": 2}, "withheld": 1, "rules": {"ccc.embargo": 1},
        "hidden": {"provenance.confidence": 3}, "warnings": ["Some items are withheld by a gate: see the rules."],
        "items": items()["items"].as_array().unwrap().iter().map(|item| json!({"visible": item, "hidden": ["a", "b"]})).collect::<Vec<_>>(),
    });
    same("grant-preview", &grant::preview(&read(preview)));
}

#[test]
fn the_status() {
    let finding = |part: &str, wrong: Value, soon: Value| json!({"part": part, "looked_at": 1, "wrong": wrong, "soon": soon, "fix": "do something about it"});
    let mut standing = json!({
        "principal": "did:web:memory.example.org", "origin": "https://memory.example.org", "listen": "127.0.0.1:8443",
        "home": "/home/user/.oap-memory", "open_by": {"command": "serve", "pid": 4711},
        "items": {"kinds": {"fact": 120, "preference": 8, "conversation_turn": 2000}, "live": 2128, "held": 1, "expired": 2, "retracted": 3},
        "grants": {"states": {"active": 2, "draft": 0, "expired": 1, "revoked": 4},
            "next": {"grant_id": "mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX", "expires_at": "2026-06-15T14:30:00.000Z"}},
        "last_query": {"at": "2026-06-15T11:59:00.000Z", "agent": "did:web:contractor.example", "items": 3},
        "store_bytes": 734_003_200, "disk_free_bytes": 104_857_600, "certificate_end": "2026-07-01T00:00:00.000Z",
        "findings": [
            finding("clock", json!([]), json!([])),
            finding("active grants", json!([]), json!(["mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX ends 2026-06-15T14:30:00.000Z"])),
            finding("disk", json!(["it is full"]), json!(["100 MiB are free"])),
        ],
    });
    same("status", &status::screen(&read(standing.clone()), now()));
    standing["open_by"] = Value::Null;
    standing["items"] = json!({"kinds": {}, "live": 0, "held": 0, "expired": 0, "retracted": 0});
    standing["grants"] = json!({"states": {"active": 0}, "next": null});
    standing["last_query"] = Value::Null;
    standing["certificate_end"] = Value::Null;
    standing["findings"] = json!([]);
    same("status-new", &status::screen(&read(standing.clone()), now()));
}

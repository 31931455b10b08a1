//! `docs/limits.md` says what the constants say. `OAP_WRITE_LIMITS=1` writes it anew.

use oap_identity::limits::Limit;
use std::collections::BTreeSet;
use std::fmt::Write;

const HEAD: &str = "# Limits

What foreign data may take, by room. Generated from the constants that the code enforces:
`OAP_WRITE_LIMITS=1 cargo test -p oap-gateway --test alone limits::page::the_page`.
Each value is inclusive: so much is accepted, one more is not.
";

const ROOMS: &[(&str, &[Limit])] = &[
    ("identity", oap_identity::limits::LIMITS),
    ("memory", oap_memory::limits::LIMITS),
    ("formats", oap_formats::limits::LIMITS),
    ("grants", oap_grants::limits::LIMITS),
    ("exchange", oap_exchange::limits::LIMITS),
    ("agents", oap_agents::limits::LIMITS),
    ("brain", oap_brain::limits::LIMITS),
    ("soundness", oap_soundness::limits::LIMITS),
    ("manifest", oap_manifest::limits::LIMITS),
    ("federation", oap_federation::limits::LIMITS),
    ("client", oap_client::limits::LIMITS),
    ("gateway", oap_gateway::limits::LIMITS),
    ("gateway, among gateways", oap_gateway::limits::AMONG_GATEWAYS),
];

#[test]
fn the_page_says_what_the_constants_say() {
    let mut page = HEAD.to_owned();
    for (room, limits) in ROOMS {
        let names: BTreeSet<&str> = limits.iter().map(|limit| limit.name).collect();
        assert_eq!(names.len(), limits.len(), "{room} names a bound twice");
        write!(page, "\n## {room}\n\n| bound | value | unit | of |\n|---|---|---|---|\n").unwrap();
        for Limit { name, value, unit, applies_to } in *limits {
            writeln!(page, "| `{name}` | {value} | {unit} | {applies_to} |").unwrap();
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/limits.md");
    if std::env::var_os("OAP_WRITE_LIMITS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/limits.md is out of date: run this test with OAP_WRITE_LIMITS=1");
}

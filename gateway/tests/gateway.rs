//! The gateway's tests, in one program: what they share is compiled and linked once, and where one waits, another runs.
//! `cargo test --workspace --test gateway protocol::` runs those of one file.
//!
//! What changes its process or measures time is in `alone.rs`, what needs no harness in `full_disk.rs`.

mod agents;
mod attacks;
mod binary;
mod brain;
mod carried;
mod chain;
mod clocks;
mod command_line;
mod common;
mod coordination;
mod crash;
mod deleted_in_steps;
mod deletion;
mod demo;
mod devices;
mod door;
mod echo;
mod embeddings;
mod endorsed;
mod every_command;
mod exchange;
mod federated;
mod federation_model;
mod former_stores;
mod found;
mod gates;
mod granted;
mod hostile;
mod import_findings;
mod interleavings;
mod jobs;
mod letters;
mod living;
mod lockdown;
mod mcp;
mod memory_tools;
mod mended;
mod moving;
mod non_interference;
mod notices;
mod oauth;
mod openapi;
mod openintent;
mod overtaken;
mod owner;
mod passed_on;
mod peers;
mod played;
mod program;
mod projection;
mod protocol;
#[path = "common/protocol_schemas.rs"]
mod protocol_schemas;
mod proxies;
mod restored;
mod rooms;
mod selecting;
mod soak;
mod soundness;
mod standing;
mod subscriptions;
mod tool_attacks;
mod trails;
mod transfer;
#[path = "common/twins.rs"]
mod twins;
mod webvh;
mod witnesses;

/// A file that is named neither here, nor in `alone.rs`, nor in `Cargo.toml` is never run.
#[test]
fn every_file_of_tests_is_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let roots = [include_str!("gateway.rs"), include_str!("alone.rs")];
    let manifest = include_str!("../Cargo.toml");
    let is_run = |name: &str| {
        let module = format!("mod {name};");
        roots.iter().any(|root| root.lines().any(|line| line == module))
            || manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"))
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let names = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let names: Vec<String> =
        names.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert!(names.len() > 40, "{names:?}");
    let forgotten: Vec<&String> = names.iter().filter(|name| !is_run(name)).collect();
    assert!(forgotten.is_empty(), "named nowhere: {forgotten:?}");
}

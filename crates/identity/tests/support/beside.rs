//! What is not ours to copy, where a checkout of it is: in `OAP_SHARED`, or beside the project in `../shared`.
//!
//! Tests that need it are `#[ignore = "needs ..."]`: a run names them, and `-- --include-ignored` fails where it is missing.

#![allow(dead_code, reason = "no package uses all of it")]

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The folder of a package's own values of public vectors.
pub fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

/// A place in that checkout, whether it is there or not.
pub fn place(name: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).unwrap_or(package);
    std::env::var_os("OAP_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from).join(name)
}

/// The bytes of a file of that checkout.
#[track_caller]
pub fn read(name: &str) -> Vec<u8> {
    let path = place(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; set OAP_SHARED", path.display()))
}

/// A JSON file of that checkout.
#[track_caller]
pub fn json(name: &str) -> Value {
    serde_json::from_slice(&read(name)).unwrap()
}

/// Our values are those of their source; `OAP_WRITE_VECTORS=1` writes them anew, an element of the list a line.
pub fn same_as_source(name: &str, made: &[Value]) {
    let lines: Vec<String> = made.iter().map(Value::to_string).collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    if std::env::var_os("OAP_WRITE_VECTORS").is_some() {
        std::fs::write(own(name), &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(own(name)).unwrap() == text,
        "{name}: OAP_WRITE_VECTORS=1 writes it anew"
    );
}

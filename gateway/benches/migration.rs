//! What moving house costs, with the real program on a store on disk: `cargo bench -p oap-gateway --bench migration`.
//!
//! Conversations of LoCoMo (`OAP_LOCOMO`, or `data/locomo-dev` of `OAP_SHARED`, `../shared`; else the one of `examples/demo`: the output
//! says which) are written again and again under new names until there are `OAP_TURNS` turns (100,000). Then:
//! import, export, verification of the bundle, import into a second house. Memory is the peak of the process.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

#[path = "../../crates/identity/tests/support/beside.rs"]
mod beside;

use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_oap-memory");

/// What a run of the program took.
struct Took {
    seconds: f64,
    peak_mb: f64,
    output: Value,
}

/// Runs the program, and watches its memory.
fn run(home: &Path, arguments: &[&str]) -> Took {
    let start = Instant::now();
    let mut child = Command::new(BINARY)
        .args(["--json", "--home", &home.to_string_lossy()])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(stdout).unwrap());
    let mut peak: f64 = 0.0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        peak = peak.max(kilobytes.unwrap_or_default() / 1000.0);
        std::thread::sleep(Duration::from_millis(20));
    }
    let seconds = start.elapsed().as_secs_f64();
    let text = reader.join().unwrap();
    assert!(child.wait().unwrap().success(), "{arguments:?}: {text}");
    Took { seconds, peak_mb: peak, output: serde_json::from_str(&text).unwrap_or_default() }
}

/// A list of conversations with so many turns.
fn source(path: &Path, turns: usize) {
    let folder = std::env::var_os("OAP_LOCOMO").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| beside::place("data/locomo-dev"));
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/demo/conversation.json");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_else(|_| vec![PathBuf::from(own)]);
    files.sort();
    println!("{} conversation(s): {}, ...", files.len(), files[0].display());
    let conversations: Vec<Value> =
        files.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect();
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let (mut written, mut number) = (0, 0);
    write!(file, "[").unwrap();
    while written < turns {
        let mut conversation = conversations[number % conversations.len()].clone();
        conversation.as_object_mut().unwrap().remove("qa");
        for session in 1..200 {
            let Some(said) = conversation[format!("session_{session}")].as_array_mut() else { continue };
            said.truncate(turns - written);
            written += said.len();
        }
        let comma = if number > 0 { "," } else { "" };
        let named = json!({"sample_id": format!("conv-{number}"), "conversation": conversation});
        write!(file, "{comma}{named}").unwrap();
        number += 1;
    }
    write!(file, "]").unwrap();
    file.flush().unwrap();
}

fn main() {
    let turns: usize = std::env::var("OAP_TURNS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let folder = match std::env::var_os("OAP_BENCH_DIR") {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let folder = folder.unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_string_lossy().into_owned();
    let size = |name: &str| std::fs::metadata(path(name)).unwrap().len() as f64 / 1e6;
    for house in ["a", "b"] {
        run(&path(house), &["init", "--did", "did:key", "--key-file", &text(&format!("{house}.key"))]);
    }
    println!("{:<40} {:>9} {:>12} {:>10}", "what", "seconds", "items/s", "peak MB");
    let row = |what: &str, items: f64, took: &Took| {
        println!("{what:<40} {:>9.1} {:>12.0} {:>10.0}", took.seconds, items / took.seconds, took.peak_mb);
    };
    for part in [turns / 4, turns] {
        source(&path("turns.json"), part);
        let took = run(&path("a"), &["import", &text("turns.json")]);
        let imported = took.output["imported"].as_f64().unwrap();
        row(&format!("import up to {part} turns"), imported, &took);
    }
    let items = turns as f64;
    row("import of the same again", items, &run(&path("a"), &["import", &text("turns.json")]));
    row("export", items, &run(&path("a"), &["export", &text("plain.bundle")]));
    row("export, zstd", items, &run(&path("a"), &["export", &text("small.bundle"), "--zstd"]));
    row("verify", items, &run(&path("a"), &["verify", &text("small.bundle")]));
    let header = std::fs::read(path("plain.bundle")).unwrap();
    let header: Value = serde_json::from_slice(header.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    let former = header["principal"].as_str().unwrap();
    let took = run(&path("b"), &["import", &text("small.bundle"), "--former-did", former]);
    row("import of the bundle, next house", items, &took);
    println!(
        "source {:.1} MB, bundle {:.1} MB ({:.1} times), compressed {:.1} MB ({:.1} times)",
        size("turns.json"),
        size("plain.bundle"),
        size("plain.bundle") / size("turns.json"),
        size("small.bundle"),
        size("small.bundle") / size("turns.json"),
    );
}

//! The program on a disk that is full: nothing hangs, the owner is told how much is missing, what was acknowledged is there,
//! deleting and revoking go on, a server starts and ends, and a disk that grew takes everything.
//!
//! The disk is a tmpfs, see `mount`. The two hundred levels are in `crates/store/tests/full_disk.rs`.

#[path = "../../crates/store/tests/mount/mod.rs"]
mod mount;
mod program;

use mount::{Mount, on_a_disk};
use program::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const NAME: &str = "the_program_on_full_disks";
/// Longest time of a command, in seconds.
const LONGEST: &str = "60";

/// A home on a disk. Every command ends, or is ended.
struct OnDisk<'a> {
    home: PathBuf,
    key: &'a Path,
}

impl OnDisk<'_> {
    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new("timeout");
        command.args([LONGEST, BINARY, "--json", "--home"]).arg(&self.home).args(arguments);
        let ran = Home::finish(command.stdin(Stdio::null()).env_remove("RUST_LOG"));
        assert_ne!(ran.status, 124, "{arguments:?} hangs: {}", ran.stderr);
        ran
    }

    fn add(&self, text: &str) -> Result<String, Ran> {
        let ran = self.run(&["item", "add", "--kind", "fact", "--text", text]);
        if ran.status != 0 {
            return Err(ran);
        }
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        Ok(answer["items"][0]["item_id"].as_str().unwrap().to_owned())
    }

    fn ids(&self) -> Vec<String> {
        let answer = self.run(&["item", "list", "--limit", "500"]).json();
        let id = |item: &Value| item["item_id"].as_str().unwrap().to_owned();
        let mut ids: Vec<String> = answer["items"].as_array().unwrap().iter().map(id).collect();
        ids.sort();
        ids
    }
}

#[track_caller]
fn refused(ran: Ran) {
    ran.failed(1, "the disk is full: free ");
}

fn level(round: u64, key: &Path) {
    let mount = Mount::new(7_000_000 + round * 1_500_000).unwrap();
    let on = OnDisk { home: mount.0.join("home"), key };
    let listen = format!("127.0.0.1:{}", free_port());
    let did = format!("did:web:localhost%3A{}", listen.split(':').nth(1).unwrap());
    on.run(&["init", "--did", &did, "--key-file", &on.key.to_string_lossy(), "--listen", &listen]).ok();
    let text = "a note of some length. ".repeat(200);
    let mut kept: Vec<String> = (0..3).map(|_| on.add(&text).unwrap()).collect();
    mount.leave(500_000 + round * 100_000);
    let refusal = loop {
        match on.add(&text) {
            Ok(id) => kept.push(id),
            Err(ran) => break ran,
        }
        assert!(kept.len() < 200, "never refused");
    };
    refused(refusal);

    // To the last block: read, erase, no more.
    mount.leave(0);
    kept.sort();
    assert_eq!(on.ids(), kept);
    refused(on.add("no room").unwrap_err());
    let gone = kept.remove(0);
    on.run(&["delete", "--item", &gone, "--yes"]).ok();
    assert_eq!(on.ids(), kept);
    on.run(&["doctor"]).ok();

    // The server, too; and it ends when it is told to.
    mount.leave(0);
    let mut command = Command::new(BINARY);
    command.arg("--home").arg(&on.home).arg("serve");
    let server = Server::start(command);
    refused(on.add("no room").unwrap_err());
    let gone = kept.remove(0);
    on.run(&["delete", "--item", &gone, "--yes"]).ok();
    assert_eq!(on.ids(), kept);
    if round == 0 {
        let (status, log) = server.stop();
        assert_eq!(status, 0, "{log}");
    } else {
        server.kill();
    }
    assert_eq!(on.ids(), kept);

    mount.grow(64 << 20);
    kept.push(on.add("after").unwrap());
    kept.sort();
    assert_eq!(on.ids(), kept);
    on.run(&["doctor"]).ok();
    on.run(&["delete", "--all", "--yes"]).ok();
    assert_eq!(on.ids(), [""; 0]);
}

fn main() -> ExitCode {
    on_a_disk(NAME, || {
        let keys = tempfile::tempdir().unwrap();
        for round in 0..3 {
            level(round, &keys.path().join(round.to_string()));
        }
        String::new()
    })
}

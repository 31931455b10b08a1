//! A test on a disk of its own, a tmpfs, which takes the right to mount. Where that is missing the test says by its name that it was
//! ignored; with `OAP_FULL_DISK=must` that is a failure. The harness is our own, because whether the test can run is known only here.

#![allow(dead_code, reason = "shared by tests that each use a part")]

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// A tmpfs that goes with the value.
pub struct Mount(pub PathBuf);

impl Mount {
    pub fn new(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap().keep();
        let size = format!("size={bytes}");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).output();
        let mount = Self(folder);
        done.is_ok_and(|done| done.status.success()).then_some(mount)
    }

    /// Makes it so large.
    pub fn grow(&self, bytes: u64) {
        let size = format!("remount,size={bytes}");
        assert!(Command::new("mount").args(["-o", &size]).arg(&self.0).status().unwrap().success());
    }

    /// Leaves so many bytes free.
    pub fn leave(&self, bytes: u64) {
        let path = self.0.join("ballast");
        let ballast = File::options().create(true).append(true).open(&path).unwrap();
        let free = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(&path).output().unwrap().stdout;
        let free: u64 =
            String::from_utf8(free).unwrap().split_whitespace().map(|n| n.parse::<u64>().unwrap()).product();
        let length = ballast.metadata().unwrap().len();
        if free > bytes {
            let more = format!("{}", free - bytes);
            let done =
                Command::new("fallocate").args(["-o", &length.to_string(), "-l", &more]).arg(&path).status();
            assert!(done.unwrap().success());
        } else {
            ballast.set_len(length.saturating_sub(bytes - free)).unwrap();
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The `main` of the test of this name; what it gives back is printed behind its "ok".
pub fn on_a_disk(name: &str, test: impl FnOnce() -> String) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--list") {
        println!("{name}: test");
        return ExitCode::SUCCESS;
    }
    let mut filters = arguments.iter().filter(|a| !a.starts_with('-')).peekable();
    if filters.peek().is_some() && !filters.any(|filter| name.contains(filter.as_str())) {
        return ExitCode::SUCCESS;
    }
    if Mount::new(1 << 20).is_none() {
        println!("test {name} ... ignored, a tmpfs cannot be mounted here");
        println!("\ntest result: ok. 0 passed; 0 failed; 1 ignored");
        let must = std::env::var("OAP_FULL_DISK").is_ok_and(|v| v == "must");
        return if must { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    println!("test {name} ... ok{}", test());
    ExitCode::SUCCESS
}

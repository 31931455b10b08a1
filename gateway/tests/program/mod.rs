//! The real binary, in homes of its own.

#![allow(dead_code, reason = "each test binary uses its part")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;

pub const BINARY: &str = env!("CARGO_BIN_EXE_oap-memory");

/// What a finished run left.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.status, 0, "{} {}", self.stdout, self.stderr);
        self.stdout
    }

    #[track_caller]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// It ended with this status and said this.
    #[track_caller]
    pub fn failed(self, status: i32, says: &str) {
        assert_eq!(self.status, status, "{} {}", self.stdout, self.stderr);
        assert!(self.stderr.contains(says), "{} instead of {says}", self.stderr);
    }
}

/// A gateway's home and the file of its master key, which are gone with the value.
pub struct Home {
    folder: tempfile::TempDir,
    pub port: u16,
    /// Flags of every call.
    pub flags: Vec<String>,
}

impl Home {
    /// A home for a did:web on a free port of loopback.
    pub fn web() -> Self {
        let home = Self::empty();
        let did = format!("did:web:localhost%3A{}", home.port);
        let listen = format!("127.0.0.1:{}", home.port);
        home.run(&["init", "--did", &did, "--key-file", &home.path("key"), "--listen", &listen]).ok();
        home
    }

    /// A home for a did:key.
    pub fn key() -> Self {
        let home = Self::empty();
        home.run(&["init", "--did", "did:key", "--key-file", &home.path("key")]).ok();
        home
    }

    pub fn empty() -> Self {
        let port = free_port();
        Self { folder: tempfile::tempdir().unwrap(), port, flags: Vec::new() }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn origin(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(["--home", &self.home().to_string_lossy()]).args(&self.flags).args(arguments);
        command.env_remove("RUST_LOG").stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Self::finish(&mut self.command(arguments))
    }

    pub fn finish(command: &mut Command) -> Ran {
        let output = command.output().unwrap();
        Ran {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts the server and waits until it says that it serves.
    pub fn serve(&self, arguments: &[&str]) -> Server {
        let mut command = self.command(&["serve"]);
        command.args(arguments);
        self.serve_as(command)
    }

    /// The same, by a command of the caller's.
    pub fn serve_as(&self, command: Command) -> Server {
        Server::start(command)
    }
}

/// A port of loopback that no other test of this process was given. It lies below those that the system gives to connections of its own,
/// so that none of them takes it before the server does.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        // Another test program begins elsewhere.
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 12_000 + (std::process::id() % 300 * 61 + u32::from(step)) % 20_000;
        let port = u16::try_from(port).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// A running server; killed with the value.
pub struct Server {
    child: Child,
    log: mpsc::Receiver<String>,
}

impl Server {
    /// Starts a command that serves, and waits until it says so.
    pub fn start(mut command: Command) -> Self {
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut before = String::new();
        while log.read_line(&mut before).unwrap() > 0 && !before.contains("serving") {}
        assert!(before.contains("serving"), "{before}");
        let (send, rest) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = before;
            let _ = log.read_to_string(&mut text);
            let _ = send.send(text);
        });
        Self { child, log: rest }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGTERM; its exit status and everything that it logged.
    pub fn stop(mut self) -> (i32, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let status = self.child.wait().unwrap().code().unwrap_or(-1);
        (status, self.log.recv().unwrap())
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn read(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub fn write(path: impl AsRef<Path>, value: &Value) {
    std::fs::write(path, value.to_string()).unwrap();
}

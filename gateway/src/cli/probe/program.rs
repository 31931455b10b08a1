//! A program that does the owner's side (docs/probes.md).

use crate::cli::CliError;
use oap_conformance::probe::wire::Pending;
use oap_conformance::probe::{Setup, SetupError};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a command may take: a program may wait for a minute or two where the gateway says that it was asked too often.
const PATIENCE: Duration = Duration::from_secs(180);
/// Longest answer, in bytes.
const MAX_LINE: u64 = 64 << 20;
/// How long the program may take to end where no command comes any more.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether it did.
const TURN: Duration = Duration::from_millis(20);
/// Longest text of an answer in an error, in characters.
const SHOWN: usize = 200;

/// A program that does the owner's side: one command a line in, one answer a line out.
pub(super) struct Program(Arc<Mutex<Lines>>);

struct Lines {
    child: Child,
    /// None once no further command comes.
    commands: Option<SyncSender<String>>,
    answers: Receiver<io::Result<String>>,
    patience: Duration,
    /// Why no further command reaches it.
    broke: Option<String>,
}

impl Lines {
    /// Sends a line and reads one; the program is never asked again once that fails, for nobody knows then what its next line answers.
    fn exchange(&mut self, command: &Value) -> Result<Value, SetupError> {
        if let Some(why) = &self.broke {
            return Err(SetupError::Ended(why.clone()));
        }
        self.asked(command).and_then(|line| said(command, &line)).inspect_err(|error| {
            if let SetupError::Ended(why) = error {
                self.broke = Some(why.clone());
            }
        })
    }

    fn asked(&mut self, command: &Value) -> Result<String, SetupError> {
        let broke = |why: &str| SetupError::Ended(format!("the setup program {why}"));
        let gone = || broke("ended in the middle of the run");
        match self.answers.try_recv() {
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(gone()),
            Ok(Err(e)) => return Err(broke(&format!("cannot be read any more: {e}"))),
            Ok(Ok(line)) => {
                let line = short(&line);
                return Err(broke(&format!("said {line} where nothing was asked: a command has one line")));
            }
        }
        let commands = self.commands.as_ref().ok_or_else(gone)?;
        // The line before was taken before it was answered, by whoever reads what is asked.
        commands.try_send(format!("{command}\n")).map_err(|error| match error {
            TrySendError::Full(_) => broke("answers what it did not read yet: a command has one line"),
            TrySendError::Disconnected(_) => gone(),
        })?;
        match self.answers.recv_timeout(self.patience) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(e)) => Err(broke(&format!("cannot be read any more: {e}"))),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
            Err(RecvTimeoutError::Timeout) => {
                let name = command["do"].as_str().unwrap_or_default();
                Err(broke(&format!("did not answer {name} within {:?}", self.patience)))
            }
        }
    }
}

/// Hands each command to a program, as long as it takes them. Not by whoever waits for the answer: a program that does not read takes none.
fn write(mut program: ChildStdin, commands: &Receiver<String>) {
    while let Ok(command) = commands.recv() {
        if program.write_all(command.as_bytes()).and_then(|()| program.flush()).is_err() {
            return;
        }
    }
}

/// Hands on each line of a program, until it ends.
fn read(out: ChildStdout, lines: &SyncSender<io::Result<String>>) {
    let mut out = BufReader::new(out);
    loop {
        let mut line = String::new();
        let read = match out.by_ref().take(MAX_LINE).read_line(&mut line) {
            Ok(0) => return,
            Ok(_) if line.len() as u64 == MAX_LINE => {
                Err(io::Error::new(ErrorKind::FileTooLarge, format!("a line of more than {MAX_LINE} bytes")))
            }
            read => read.map(|_| line),
        };
        let is_last = read.is_err();
        if lines.send(read).is_err() || is_last {
            return;
        }
    }
}

impl Program {
    /// Starts it, in the folder that this one runs in. What it writes to its standard error is shown as it comes.
    pub(super) fn start(path: &Path) -> Result<Self, CliError> {
        Self::waiting(path, PATIENCE)
    }

    fn waiting(path: &Path, patience: Duration) -> Result<Self, CliError> {
        let failed = |why: String| CliError::Other(format!("--setup {}: {why}", path.display()));
        // A file that lies here is meant, and not one of its name on the PATH.
        let is_bare = path.components().count() == 1 && path.is_file();
        let program = if is_bare { Path::new(".").join(path) } else { path.to_owned() };
        let mut child = std::process::Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(format!("{e}; it names a program that can be run, without arguments")))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (program, out) = pipes.ok_or_else(|| failed("it has no pipes".to_owned()))?;
        let (lines, answers) = sync_channel(1);
        let (commands, asked) = sync_channel(1);
        std::thread::spawn(move || read(out, &lines));
        std::thread::spawn(move || write(program, &asked));
        let lines = Lines { child, commands: Some(commands), answers, patience, broke: None };
        Ok(Self(Arc::new(Mutex::new(lines))))
    }

    /// Why the program could not be asked to the end, if so: what was skipped then says nothing of the gateway.
    pub(super) fn broke(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).broke.clone()
    }

    /// Runs a command.
    pub(super) fn done(&self, command: &Value) -> Result<Value, SetupError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).exchange(command)
    }
}

fn short(line: &str) -> String {
    let line = line.trim_end();
    let shown: String = line.chars().take(SHOWN).collect();
    format!("{shown:?}{}", if shown.len() < line.len() { "..." } else { "" })
}

/// Whether an answer has what its command must be answered with, where it is done; else the name of that.
fn answers(command: &Value, answer: &Value) -> Result<(), &'static str> {
    let (needed, is_so) = match command["do"].as_str().unwrap_or_default() {
        "capture" => {
            let ids = answer["item_ids"].as_array();
            let items = command["items"].as_array().map_or(0, Vec::len);
            ("item_ids", ids.is_some_and(|ids| ids.len() == items && ids.iter().all(Value::is_string)))
        }
        "grant" => ("grant", answer["grant"].is_object()),
        "bridge" => ("bridge", answer["bridge"].is_object()),
        "delete" | "delete_selected" => ("deletion_receipt", answer["deletion_receipt"].is_object()),
        "audit" => ("receipts", answer["receipts"].is_array()),
        _ => return Ok(()),
    };
    if is_so { Ok(()) } else { Err(needed) }
}

/// What a line of a setup program says.
fn said(command: &Value, line: &str) -> Result<Value, SetupError> {
    let name = command["do"].as_str().unwrap_or_default();
    let odd =
        |why: &str| SetupError::Ended(format!("the setup program answered {} to {name}: {why}", short(line)));
    let answer: Value = serde_json::from_str(line).map_err(|e| odd(&format!("no JSON ({e})")))?;
    if !answer.is_object() {
        return Err(odd("no object"));
    }
    let member = |name: &str| answer.get(name).filter(|said| !said.is_null());
    let is_fault = match member("fault") {
        None => false,
        Some(Value::Bool(fault)) => *fault,
        Some(_) => return Err(odd("fault is true or false")),
    };
    match (member("lacks"), member("error")) {
        (Some(Value::String(what)), None) => Err(SetupError::Lacks(what.clone())),
        (None, Some(Value::String(why))) if is_fault => Err(SetupError::Fault(why.clone())),
        (None, Some(Value::String(why))) => Err(SetupError::Refused(why.clone())),
        (None, None) => match answers(command, &answer) {
            // What it says in there is the probes' to read.
            Ok(()) => Ok(answer),
            Err(needed) => Err(odd(&format!("{needed} is missing, or not what docs/probes.md says"))),
        },
        _ => Err(odd("lacks and error are texts, and one of them is there")),
    }
}

impl Setup for Program {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        let lines = Arc::clone(&self.0);
        let done = move || lines.lock().unwrap_or_else(PoisonError::into_inner).exchange(&command);
        // Other probes go on meanwhile: the time that their requests have is not the program's.
        Box::pin(async {
            let done = tokio::task::spawn_blocking(done).await;
            done.unwrap_or_else(|e| Err(SetupError::Ended(e.to_string())))
        })
    }

    /// The program says whether.
    fn may_lock_down(&self) -> bool {
        true
    }
}

impl Drop for Lines {
    /// It sees the end of its input, and may end by itself.
    fn drop(&mut self) {
        self.commands = None;
        for _ in 0..GRACE.as_millis() / TURN.as_millis() {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            // What it still says nobody waits for.
            while self.answers.try_recv().is_ok() {}
            std::thread::sleep(TURN);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn of(name: &str, line: &str) -> Result<Value, SetupError> {
        said(&json!({"do": name, "items": [{}]}), line)
    }

    #[test]
    fn what_a_program_lacks_is_no_refusal() {
        assert!(
            matches!(of("audit", r#"{"lacks": "audit"}"#), Err(SetupError::Lacks(what)) if what == "audit")
        );
        assert!(matches!(of("grant", r#"{"error": "no"}"#), Err(SetupError::Refused(_))));
        assert!(matches!(of("grant", r#"{"error": "no", "fault": true}"#), Err(SetupError::Fault(_))));
        for done in ["{}", r#"{"error": null, "lacks": null}"#, r#"{"more": 1}"#] {
            assert!(of("revoke", done).is_ok(), "{done}");
        }
    }

    /// What is no answer to the command says nothing of the gateway.
    #[test]
    fn an_answer_has_what_its_command_asks_for() {
        for (name, line) in [
            ("capture", r#"{"item_ids": ["a"]}"#),
            ("grant", r#"{"grant": {}}"#),
            ("bridge", r#"{"bridge": {}}"#),
            ("delete", r#"{"deletion_receipt": {}}"#),
            ("audit", r#"{"receipts": []}"#),
        ] {
            assert!(of(name, line).is_ok(), "{name}");
            for odd in [
                "{}",
                r#"{"item_ids": [1], "grant": [], "bridge": "", "deletion_receipt": 1, "receipts": {}}"#,
            ] {
                assert!(matches!(of(name, odd), Err(SetupError::Ended(_))), "{name} {odd}");
            }
        }
        let both = r#"{"lacks": "a", "error": "b"}"#;
        let odd_fault = r#"{"error": "no", "fault": "yes"}"#;
        for odd in [r#"{"lacks": true}"#, r#"{"error": {}}"#, both, odd_fault, "", "audit", "[]", "null"] {
            assert!(matches!(of("revoke", odd), Err(SetupError::Ended(_))), "{odd}");
        }
    }

    /// A program of these lines of shell, and the folder that it lies in.
    fn program(lines: &str, patience: Duration) -> (tempfile::TempDir, Program) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("setup.sh");
        std::fs::write(&path, format!("#!/bin/sh\ncd {}\n{lines}\n", folder.path().display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        // Another test's process may have the file open for a moment: then it is busy.
        let started = |_| Program::waiting(&path, patience).ok();
        let program = (0..1000).find_map(started).unwrap();
        (folder, program)
    }

    /// One that hangs, says more than an answer, or nothing that is one, is not asked again: its next line may answer anything.
    #[test]
    fn a_program_that_is_out_of_step_is_not_asked_again() {
        let long = Duration::from_secs(60);
        for (lines, patience, why) in [
            ("exec sleep 1000", Duration::from_millis(50), "did not answer revoke within 50ms"),
            ("read -r line; echo starting; echo '{}'; read -r line", long, "no JSON"),
            ("read -r line", long, "ended in the middle"),
            ("while read -r line; do printf '{}\\n{}\\n'; done", long, "a command has one line"),
        ] {
            let (_folder, program) = program(lines, patience);
            // More than a pipe takes: whoever does not read must not stop who asks.
            let command = json!({"do": "revoke", "grant_id": "x".repeat(1 << 17)});
            // When a line that nobody asked for is there hangs on who is faster.
            let asked = (0..10_000).map(|_| program.done(&command)).find_map(Result::err).unwrap();
            assert!(matches!(&asked, SetupError::Ended(said) if said.contains(why)), "{lines}: {asked:?}");
            assert_eq!(program.broke().as_deref(), Some(asked.to_string().as_str()));
            assert!(matches!(program.done(&command), Err(SetupError::Ended(_))), "{lines}");
        }
    }

    /// What is asked of the gateway meanwhile goes on.
    #[tokio::test]
    async fn who_waits_for_a_program_holds_nobody_up() {
        let lines = "while read -r line; do until [ -e go ]; do :; done; echo '{}'; done";
        let (folder, program) = program(lines, Duration::from_secs(60));
        let meanwhile = async { std::fs::write(folder.path().join("go"), "").is_ok() };
        let (answer, is_there) = tokio::join!(program.call(json!({"do": "revoke"})), meanwhile);
        assert!(answer.is_ok() && is_there, "{answer:?}");
    }

    #[test]
    fn a_program_sees_the_end_of_its_input() {
        let (folder, program) = program("while read -r line; do echo '{}'; done; touch over", PATIENCE);
        assert!(program.done(&json!({"do": "revoke"})).is_ok());
        drop(program);
        assert!(folder.path().join("over").is_file());
    }
}

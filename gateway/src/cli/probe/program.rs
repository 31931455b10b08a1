//! A program that does the owner's side (docs/probes.md).

use crate::cli::CliError;
use oap_conformance::probe::wire::Pending;
use oap_conformance::probe::{Setup, SetupError};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

/// A program that does the owner's side: one command a line in, one answer a line out.
pub(super) struct Program(Mutex<Lines>);

struct Lines {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Why no further command reaches it.
    broke: Option<String>,
}

impl Lines {
    /// Sends a line and reads one; the program is never asked again once that fails.
    fn exchange(&mut self, command: &Value) -> Result<String, SetupError> {
        if let Some(why) = &self.broke {
            return Err(SetupError::Broken(why.clone()));
        }
        let sent = writeln!(self.commands, "{command}").and_then(|()| self.commands.flush());
        let mut line = String::new();
        let read = sent.and_then(|()| self.answers.read_line(&mut line));
        let why = match read {
            Ok(0) => "the setup program ended in the middle of the run".to_owned(),
            Ok(_) => return Ok(line),
            Err(e) => format!("the setup program cannot be asked any more: {e}"),
        };
        self.broke = Some(why.clone());
        Err(SetupError::Broken(why))
    }
}

impl Program {
    pub(super) fn start(path: &PathBuf) -> Result<Self, CliError> {
        let failed = |e: String| CliError::File(path.clone(), e);
        let mut command = std::process::Command::new(path);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, answers) = pipes.ok_or_else(|| failed("it has no pipes".to_owned()))?;
        Ok(Self(Mutex::new(Lines { child, commands, answers: BufReader::new(answers), broke: None })))
    }

    /// Why the program could not be asked to the end, if so: what was skipped then says nothing of the gateway.
    pub(super) fn broke(self) -> Option<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).broke.take()
    }

    /// Runs a command.
    pub(super) fn done(&self, command: &Value) -> Result<Value, SetupError> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.exchange(command)?;
        drop(lines);
        said(&line)
    }
}

/// What a line of a setup program says.
fn said(line: &str) -> Result<Value, SetupError> {
    let answer: Value = serde_json::from_str(line)
        .map_err(|e| SetupError::Broken(format!("the setup program answered {line:?}: {e}")))?;
    let member = |name: &str| answer.get(name).filter(|said| !said.is_null());
    match (member("lacks"), member("error")) {
        // What a command answers with is the probes' to read.
        (None, None) => Ok(answer),
        (Some(Value::String(what)), _) => Err(SetupError::Lacks(what.clone())),
        (None, Some(Value::String(why))) if answer["fault"] == true => Err(SetupError::Fault(why.clone())),
        (None, Some(Value::String(why))) => Err(SetupError::Refused(why.clone())),
        _ => Err(SetupError::Broken(format!("the setup program answered {answer}, where a text says why"))),
    }
}

impl Setup for Program {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        Box::pin(std::future::ready(self.done(&command)))
    }

    /// The program says whether.
    fn may_lock_down(&self) -> bool {
        true
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_lacks_is_no_refusal() {
        assert!(matches!(said(r#"{"lacks": "audit"}"#), Err(SetupError::Lacks(what)) if what == "audit"));
        assert!(matches!(said(r#"{"error": "no"}"#), Err(SetupError::Refused(_))));
        assert!(matches!(said(r#"{"error": "no", "fault": true}"#), Err(SetupError::Fault(_))));
        for done in ["{}", r#"{"error": null, "lacks": null}"#, "[]", "null"] {
            assert!(said(done).is_ok(), "{done}");
        }
        for odd in [r#"{"lacks": true}"#, r#"{"error": {}}"#, "", "audit"] {
            assert!(matches!(said(odd), Err(SetupError::Broken(_))), "{odd}");
        }
    }
}

//! Who has a home open: one process at a time.
//!
//! The lock is the system's, on the file `lock` of the home, and ends with the process whatever way that ends. What stands in
//! the file says who holds it, for those who wait.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// The file in the home.
pub const NAME: &str = "lock";
/// How long a command waits for another to end.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// After how long it says so.
pub const WORD_AFTER: Duration = Duration::from_secs(1);
/// How often the lock is asked for meanwhile.
pub const POLL: Duration = Duration::from_millis(20);
/// Longest text that is read from the file, in bytes.
const MAX_HOLDER: u64 = 1024;

/// The lock of a home, until it is dropped.
#[derive(Debug)]
pub struct HomeLock(#[expect(dead_code, reason = "held until it is dropped")] File);

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Holder {
    pub pid: u32,
    /// Its command, such as `item add`; never its arguments.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`oap-memory {}` (process {})", self.command, self.pid)
    }
}

/// Somebody else has the lock. Who, unless they did not get around to saying so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held(pub Option<Holder>);

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(holder) => holder.fmt(f),
            None => f.write_str("another process"),
        }
    }
}

impl HomeLock {
    /// Takes the lock of a home, or says who has it.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn take(home: &Path, command: &str) -> io::Result<Result<Self, Held>> {
        let path = home.join(NAME);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Err(Held(holder(file)))),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let holder = Holder { pid: std::process::id(), command: command.to_owned() };
        // A full disk keeps the name out, not the lock away.
        let told = file.set_len(0).and_then(|()| file.write_all(&serde_json::to_vec(&holder)?));
        if let Err(error) = told {
            tracing::debug!(%error, "the lock does not say who holds it");
        }
        Ok(Ok(Self(file)))
    }
}

fn holder(file: File) -> Option<Holder> {
    let mut text = Vec::new();
    file.take(MAX_HOLDER).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A wait that ends: counted in polls, so that nobody has to look at a clock.
pub struct Wait<'a> {
    polls: u128,
    patience: Duration,
    word: &'a (dyn Fn(&Held) + Sync),
}

impl<'a> Wait<'a> {
    /// For at most so long; `word` is called once it takes longer than [`WORD_AFTER`].
    #[must_use]
    pub fn new(patience: Duration, word: &'a (dyn Fn(&Held) + Sync)) -> Self {
        Self { polls: 0, patience, word }
    }

    /// Waits for a moment.
    ///
    /// # Errors
    /// The holder again, once patience is over.
    pub async fn a_moment(&mut self, held: Held) -> Result<(), Held> {
        self.count(held)?;
        tokio::time::sleep(POLL).await;
        Ok(())
    }

    fn count(&mut self, held: Held) -> Result<(), Held> {
        if self.polls >= self.patience.as_millis() / POLL.as_millis() {
            return Err(held);
        }
        self.polls += 1;
        if self.polls == WORD_AFTER.as_millis() / POLL.as_millis() {
            (self.word)(&held);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_its_name() {
        let home = tempfile::tempdir().unwrap();
        let held = HomeLock::take(home.path(), "item add").unwrap().unwrap();
        let who = HomeLock::take(home.path(), "item list").unwrap().unwrap_err();
        assert_eq!(who, Held(Some(Holder { pid: std::process::id(), command: "item add".into() })));
        assert_eq!(who.to_string(), format!("`oap-memory item add` (process {})", std::process::id()));
        drop(held);
        // A longer name stood there before.
        let again = HomeLock::take(home.path(), "x").unwrap().unwrap();
        let who = HomeLock::take(home.path(), "y").unwrap().unwrap_err();
        assert_eq!(who.0.unwrap().command, "x");
        drop(again);
        std::fs::write(home.path().join(NAME), vec![b'{'; 1 << 20]).unwrap();
        let file = File::open(home.path().join(NAME)).unwrap();
        assert_eq!(holder(file), None);
    }

    #[test]
    fn waiting_says_a_word_and_ends() {
        let words = std::sync::Mutex::new(0);
        let word = |_: &Held| *words.lock().unwrap() += 1;
        let mut wait = Wait::new(PATIENCE, &word);
        let (mut polls, mut before_word) = (0, 0);
        while wait.count(Held(None)).is_ok() {
            polls += 1;
            before_word += u32::from(*words.lock().unwrap() == 0);
        }
        assert_eq!(*words.lock().unwrap(), 1);
        assert_eq!((POLL * polls, POLL * (before_word + 1)), (PATIENCE, WORD_AFTER));
        assert!(Wait::new(Duration::ZERO, &word).count(Held(None)).is_err());
    }
}

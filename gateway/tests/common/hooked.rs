//! An engine that tests hold up and reach into: snapshots wait at a gate, and reads run something first.

use super::gate::Gate;
use oap_store::{Engine, MemoryEngine, Op, OwnedPairs, Pairs, StoreError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

type Hook = Box<dyn FnOnce() + Send>;

/// What writes to a store, whose reads a hook does not stop: it would wait for itself.
const WRITER: &str = "store-writer";

/// Where something is to happen.
struct Armed {
    /// Whose reads count; all but the writer's where it is nobody's.
    thread: Option<ThreadId>,
    /// Reads that pass before.
    reads: usize,
    hook: Option<Hook>,
}

impl Armed {
    /// Whether this thread's reads count.
    fn counts(&self) -> bool {
        let current = std::thread::current();
        self.thread.map_or(current.name() != Some(WRITER), |thread| thread == current.id())
    }
}

/// An engine in memory.
#[derive(Default)]
pub struct Hooked {
    pub memory: MemoryEngine,
    /// What reads a snapshot waits here before each pair.
    pub gate: Arc<Gate>,
    /// What writes waits here, once its batch is applied and before anybody is told.
    pub applying: Arc<Gate>,
    armed: Mutex<Option<Armed>>,
    applied: AtomicUsize,
}

impl Hooked {
    /// Runs `hook` before the read that this thread does after so many.
    pub fn arm(&self, reads: usize, hook: impl FnOnce() + Send + 'static) {
        let thread = Some(std::thread::current().id());
        *self.armed.lock().unwrap() = Some(Armed { thread, reads, hook: Some(Box::new(hook)) });
    }

    /// The same before the read that any thread does after so many, but for the writer.
    pub fn arm_all(&self, reads: usize, hook: impl FnOnce() + Send + 'static) {
        *self.armed.lock().unwrap() = Some(Armed { thread: None, reads, hook: Some(Box::new(hook)) });
    }

    /// Whether the hook has run, which is not to run any more.
    pub fn disarm(&self) -> bool {
        self.armed.lock().unwrap().take().is_some_and(|armed| armed.hook.is_none())
    }

    /// How many batches were applied.
    pub fn applied(&self) -> usize {
        self.applied.load(Ordering::SeqCst)
    }

    fn read(&self) {
        let hook = {
            let mut armed = self.armed.lock().unwrap();
            match &mut *armed {
                Some(armed) if armed.counts() => {
                    armed.reads = armed.reads.wrapping_sub(1);
                    if armed.reads == usize::MAX { armed.hook.take() } else { None }
                }
                _ => None,
            }
        };
        if let Some(hook) = hook {
            hook();
        }
    }
}

impl Engine for Hooked {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.read();
        self.memory.get(key)
    }

    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        self.read();
        self.memory.scan(prefix, from, descending)
    }

    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
        let applied = self.memory.apply(batch);
        self.applied.fetch_add(1, Ordering::SeqCst);
        self.applying.pass();
        applied
    }

    fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        let gate = self.gate.clone();
        Ok(Box::new(self.memory.snapshot()?.inspect(move |_| gate.pass())))
    }
}

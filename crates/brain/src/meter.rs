//! What a query has used up, and the one way in which it is stopped.
//!
//! The evaluator looks at its own cancellation token only where triples are read; a join of what was read before, or of VALUES, goes on
//! for as long as it likes. But no solution is made without a copy of a term, and the terms are ours: each copy is counted, and one
//! beyond a bound unwinds to where the evaluation began ([`std::panic::resume_unwind`], as `salsa` cancels), past code that has no
//! other way out. Nothing is printed, nothing outlives it, and no panic of anybody else is taken for it.

use crate::bounds::{BETWEEN_LOOKS, Bounds, MAX_VALUE, MAX_VALUES};
use crate::error::Error;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of a solution beside its places.
const AROUND_SOLUTION: usize = 40;
/// Bytes of text that are one step.
const BYTES_A_STEP: usize = 16;
/// Bytes of a place of a solution.
const PLACE: usize = 16;

/// The meter of one query. It is used by one thread; what is atomic in it is so because the evaluator asks for it.
pub(crate) struct Meter {
    over: Arc<dyn Fn() -> bool + Send + Sync>,
    steps: AtomicU64,
    allowed: u64,
    look: AtomicU64,
    /// Terms that may be held at once: a solution holds one at least.
    held: usize,
    made: AtomicU64,
}

/// Why a query was stopped.
struct Stopped(Error);

/// Ends the query.
pub(crate) fn stop(reason: Error) -> ! {
    resume_unwind(Box::new(Stopped(reason)))
}

/// Does something that a meter may stop.
pub(crate) fn stoppable<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // What is dropped on the way out was made within, and nothing of it is seen again.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(payload) => match payload.downcast::<Stopped>() {
            Ok(stopped) => Err(stopped.0),
            Err(panic) => resume_unwind(panic),
        },
    }
}

impl Meter {
    /// A meter for a query whose solutions have this many places.
    pub fn new(bounds: &Bounds, width: usize) -> Arc<Self> {
        Arc::new(Self {
            over: Arc::clone(&bounds.over),
            steps: AtomicU64::new(0),
            allowed: bounds.steps,
            look: AtomicU64::new(0),
            held: bounds.held / (AROUND_SOLUTION + PLACE * width.max(1)),
            made: AtomicU64::new(0),
        })
    }

    /// Counts one step, and one more for each 16 bytes of text that are worked on.
    pub fn step(&self, bytes: usize) {
        let steps = self.steps.load(Relaxed) + 1 + (bytes / BYTES_A_STEP) as u64;
        self.steps.store(steps, Relaxed);
        if steps > self.allowed {
            stop(Error::Steps);
        }
        if steps >= self.look.load(Relaxed) {
            self.look.store(steps + BETWEEN_LOOKS, Relaxed);
            if (self.over)() {
                stop(Error::Time);
            }
        }
    }

    /// Counts a text that the query makes, before it is made.
    pub fn making(&self, bytes: usize) {
        self.fits(bytes);
        self.step(bytes);
    }

    /// Refuses a text of this length.
    pub fn fits(&self, bytes: usize) {
        if bytes > MAX_VALUE {
            stop(Error::Value);
        }
    }

    /// Counts a text that is kept until the query's end.
    pub fn keeping(&self, bytes: usize) {
        self.making(bytes);
        let made = self.made.load(Relaxed) + bytes as u64;
        self.made.store(made, Relaxed);
        if made > MAX_VALUES as u64 {
            stop(Error::Value);
        }
    }
}

/// The number of a term, whose every copy is counted. The references to the meter are the terms that are held.
pub(crate) struct Counted {
    number: u32,
    meter: Arc<Meter>,
}

impl Counted {
    pub fn new(number: u32, meter: &Arc<Meter>) -> Self {
        meter.step(0);
        Self { number, meter: Arc::clone(meter) }
    }

    pub const fn number(&self) -> u32 {
        self.number
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        if Arc::strong_count(&self.meter) > self.meter.held {
            stop(Error::Held);
        }
        Self::new(self.number, &self.meter)
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

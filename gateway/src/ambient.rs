//! The one place where time and randomness come from outside (architecture, rule 3).

use oap_identity::{Clock, Random, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

/// The system's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the clock that is passed in everywhere else")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[expect(
        clippy::disallowed_methods,
        clippy::panic,
        reason = "there is no safe way on without randomness"
    )]
    fn fill(&self, buffer: &mut [u8]) {
        if let Err(error) = getrandom::fill(buffer) {
            panic!("the operating system gives no randomness: {error}");
        }
    }
}

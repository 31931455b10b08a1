//! The one place where time and randomness come from outside (architecture, rule 3).

use oap_identity::{Clock, Random, Timestamp};
use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};
use zeroize::{Zeroize, Zeroizing};

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

/// The operating system's randomness, fetched in blocks: an item has some forty salts, and a call to the system for each is
/// a tenth of the time of a capture.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandom;

/// Bytes fetched at once, per thread.
const BLOCK: usize = 4096;

/// Fetched and not given out yet: what follows `used`. Bytes that were given out are zero.
struct Block {
    bytes: Zeroizing<[u8; BLOCK]>,
    used: usize,
}

thread_local! {
    static FETCHED: RefCell<Block> = RefCell::new(Block { bytes: Zeroizing::new([0; BLOCK]), used: BLOCK });
}

impl Random for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) {
        if buffer.len() > BLOCK / 8 {
            return fetch(buffer);
        }
        FETCHED.with_borrow_mut(|block| {
            if BLOCK - block.used < buffer.len() {
                fetch(&mut block.bytes[..]);
                block.used = 0;
            }
            let end = block.used + buffer.len();
            buffer.copy_from_slice(&block.bytes[block.used..end]);
            block.bytes[block.used..end].zeroize();
            block.used = end;
        });
    }
}

#[expect(clippy::disallowed_methods, clippy::panic, reason = "there is no safe way on without randomness")]
fn fetch(buffer: &mut [u8]) {
    if let Err(error) = getrandom::fill(buffer) {
        panic!("the operating system gives no randomness: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_bytes_are_given_out_twice() {
        let mut seen = BTreeSet::new();
        for _ in 0..2_000 {
            let mut salt = [0; 16];
            SystemRandom.fill(&mut salt);
            assert!(salt != [0; 16] && seen.insert(salt));
        }
        let mut large = vec![0; 10_000];
        SystemRandom.fill(&mut large);
        assert!(large.chunks(16).all(|chunk| chunk.iter().any(|byte| *byte != 0)));
    }
}

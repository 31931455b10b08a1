//! Randomness as an argument.

/// A source of random bytes. The program passes the operating system's; tests pass a seeded one.
pub trait Random: Send + Sync {
    /// Fills the buffer. A source that cannot deliver must not return.
    fn fill(&self, buffer: &mut [u8]);
}

impl<R: Random + ?Sized> Random for &R {
    fn fill(&self, buffer: &mut [u8]) {
        (**self).fill(buffer);
    }
}

/// `N` random bytes.
#[must_use]
pub fn bytes<const N: usize>(random: &dyn Random) -> [u8; N] {
    let mut buffer = [0; N];
    random.fill(&mut buffer);
    buffer
}

/// A seeded source: the same seed gives the same bytes. For tests and demonstrations only.
pub struct Seeded {
    seed: u64,
    counter: std::sync::atomic::AtomicU64,
}

impl Seeded {
    /// A source that depends on the seed alone.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, counter: std::sync::atomic::AtomicU64::new(0) }
    }
}

impl Random for Seeded {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(32) {
            let n = self.counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let block = crate::Hash::of(&[self.seed.to_le_bytes(), n.to_le_bytes()].concat());
            chunk.copy_from_slice(&block.as_bytes()[..chunk.len()]);
        }
    }
}

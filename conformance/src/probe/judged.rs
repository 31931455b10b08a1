//! How often a probe decided something: whether what came back is what it must be.

use super::{Failed, Running};
use std::cell::Cell;
use std::future::poll_fn;

thread_local! {
    /// By whatever is polled on this thread now.
    static JUDGED: Cell<usize> = const { Cell::new(0) };
}

/// Something that came back is judged.
pub(super) fn note() {
    JUDGED.set(JUDGED.get() + 1);
}

/// Runs a probe; with how often it judged something. Others may be under way beside it.
pub(super) async fn counted(mut probe: Running<'_>) -> (Result<(), Failed>, usize) {
    let mut judged = 0;
    let done = poll_fn(|waker| {
        JUDGED.set(0);
        let polled = probe.as_mut().poll(waker);
        judged += JUDGED.take();
        polled
    })
    .await;
    (done, judged)
}

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

/// Runs a probe; with how often it judged something. One that came to nothing that it could judge has not passed. Others may be under way beside it.
pub(super) async fn counted(mut probe: Running<'_>) -> (Result<(), Failed>, usize) {
    let mut judged = 0;
    let done = poll_fn(|waker| {
        JUDGED.set(0);
        let polled = probe.as_mut().poll(waker);
        judged += JUDGED.take();
        polled
    })
    .await;
    match done {
        Ok(()) if judged == 0 => {
            (Err(Failed::Skipped("it came to nothing that it could judge".to_owned())), 0)
        }
        done => (done, judged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    /// Something that is not ready at first.
    async fn later() {
        let mut is_later = false;
        poll_fn(|_| if std::mem::replace(&mut is_later, true) { Poll::Ready(()) } else { Poll::Pending })
            .await;
    }

    async fn judging(times: usize) -> Result<(), Failed> {
        for _ in 0..times {
            note();
            later().await;
        }
        Ok(())
    }

    /// Each counts its own, whoever is polled in between.
    #[test]
    fn probes_beside_each_other_count_apart() {
        let mut all = [3, 1, 0].map(|times| Some(Box::pin(counted(Box::pin(judging(times))))));
        let mut ended = [None, None, None];
        while ended.iter().any(Option::is_none) {
            for (probe, end) in all.iter_mut().zip(&mut ended) {
                let Some(running) = probe else { continue };
                if let Poll::Ready(done) = running.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    (*end, *probe) = (Some(done), None);
                }
            }
        }
        let [three, one, none] = ended.map(Option::unwrap);
        assert_eq!((three, one), ((Ok(()), 3), (Ok(()), 1)));
        assert!(matches!(none, (Err(Failed::Skipped(_)), 0)));
    }
}

//! Several things on their way at once, in one task.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// One of them.
pub(super) type Running<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Goes on with all of them until the last one ends.
pub(super) async fn all(mut running: Vec<Running<'_>>) {
    std::future::poll_fn(|context| {
        running.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::{Running, all};
    use std::future::poll_fn;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    /// Notes its name each time that it is asked, and is not done before it was asked so often.
    fn noted<'a>(name: &'static str, times: usize, notes: &'a Mutex<Vec<&'static str>>) -> Running<'a> {
        let mut left = times;
        Box::pin(poll_fn(move |_| {
            notes.lock().unwrap().push(name);
            left -= 1;
            if left == 0 { Poll::Ready(()) } else { Poll::Pending }
        }))
    }

    #[test]
    fn what_waits_holds_up_nothing_and_what_ended_is_not_asked_again() {
        let notes = Mutex::default();
        let mut both = Box::pin(all(vec![noted("long", 3, &notes), noted("short", 1, &notes)]));
        let mut context = Context::from_waker(Waker::noop());
        let asked: Vec<bool> = (0..3).map(|_| both.as_mut().poll(&mut context).is_ready()).collect();
        assert_eq!(asked, [false, false, true]);
        assert_eq!(*notes.lock().unwrap(), ["long", "short", "long", "long"]);
    }
}

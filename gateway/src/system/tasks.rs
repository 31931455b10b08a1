//! Work in a task of its own. A panic there is an error of whoever waits for it.

use crate::error::Error;
use std::future::Future;
use tokio::task::{JoinHandle, spawn_blocking};

/// Work in a task of its own panicked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panicked;

impl From<Panicked> for Error {
    fn from(_: Panicked) -> Self {
        Self::Panicked
    }
}

/// What work in a task of its own came to.
///
/// # Errors
/// Its own; [`Panicked`].
pub(crate) async fn joined<T, E: From<Panicked>>(work: JoinHandle<Result<T, E>>) -> Result<T, E> {
    work.await.unwrap_or_else(|_| Err(Panicked.into()))
}

/// Begins work that takes long where waiting is allowed; what it comes to.
///
/// # Errors
/// Its own; [`Panicked`].
pub(crate) fn blocking<T: Send + 'static, E: From<Panicked> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> impl Future<Output = Result<T, E>> {
    joined(spawn_blocking(work))
}

//! Several gateways at once, and each one thing at a time: who takes their time, or says nothing at all, holds up nobody else for long.

use crate::error::Error;
use oap_identity::Did;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Gateways that are written to at once, or asked; to each one thing at a time.
pub const AT_ONCE: usize = 4;
/// How long one gateway is written to in a pass, or asked, before the rest is left to the next: who takes their time with each thing holds
/// up nobody else's for longer.
pub const TURN: Duration = Duration::from_secs(20);

/// Does what there is to do at each gateway, at [`AT_ONCE`] of them at a time; how many things were done. What breaks at one holds up no
/// other.
///
/// # Errors
/// One of those at which it broke; [`Error::Panicked`].
pub(super) async fn by_turns<T, W>(
    work: BTreeMap<Did, Vec<T>>,
    at_one: impl Fn(Vec<T>) -> W,
) -> Result<usize, Error>
where
    W: Future<Output = Result<usize, Error>> + Send + 'static,
{
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut working = JoinSet::new();
    for things in work.into_values() {
        let (turns, work) = (turns.clone(), at_one(things));
        working.spawn(async move {
            // Never closed.
            let _turn = turns.acquire_owned().await;
            work.await
        });
    }
    let (mut count, mut broken) = (0, None);
    while let Some(done) = working.join_next().await {
        match done.unwrap_or(Err(Error::Panicked)) {
            Ok(things) => count += things,
            Err(error) => broken = Some(error),
        }
    }
    broken.map_or(Ok(count), Err)
}

//! Federation against a model (issue 17): random histories of requests, grants, deliveries, recalls, revocations, deletions, lockdowns, cut
//! and lossy connections, kills and time, over three gateways that all grant and are granted to. After each step every gateway has to stand
//! as the model says; and at the end, when everybody reaches everybody again, every receipt has its counterpart.
//!
//! `OAP_HISTORIES` sets how many histories are run, `OAP_HISTORY_SEED` where they begin; `OAP_LONG=1` runs many.

mod agree;
mod found;
mod hearing;
mod house;
mod model;
mod play;
mod real;
mod steps;
mod wire;

use play::Play;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use steps::{Step, history, shorter};
use wire::Fault;

/// Steps of one history.
const LENGTH: usize = 40;
/// How often a history that fails is played again to find a shorter one.
const TRIES: usize = 60;

/// Plays a history; whether everything was as the model says.
fn holds(seed: u64, steps: &[Step], fault: Fault) -> bool {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let played = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async { Play::new(seed, fault).await.play(steps).await });
    }));
    runtime.shutdown_background();
    played.is_ok()
}

#[test]
fn three_gateways_do_what_the_model_says() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let long = std::env::var("OAP_LONG").is_ok_and(|value| value == "1");
    let histories = number("OAP_HISTORIES").unwrap_or(if long { 600 } else { 40 });
    let first = number("OAP_HISTORY_SEED").unwrap_or(0);
    let left = Mutex::new(first..first + histories);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while failed.lock().unwrap().is_none() {
                    let Some(seed) = left.lock().unwrap().next() else { break };
                    let steps = history(seed, LENGTH);
                    if !holds(seed, &steps, Fault::None) {
                        *failed.lock().unwrap() = Some((seed, steps));
                    }
                }
            });
        }
    });
    if let Some((seed, steps)) = failed.into_inner().unwrap() {
        let steps = shorter(steps, TRIES, |steps| !holds(seed, steps, Fault::None));
        panic!("OAP_HISTORY_SEED={seed} OAP_HISTORIES=1: {steps:#?}");
    }
}

//! Time as an oracle: what a request costs depends on the view and the request alone.
//!
//! A thousand pairs, in random order, compared by rank: how often is the one of a pair slower than the other? Half
//! the time, if time tells nothing. The bound is on that share, which does not depend on the machine's speed.

#![expect(clippy::disallowed_methods, reason = "time is what is measured")]

use crate::Target;
use crate::common::*;
use serde_json::{Value, json};
use std::time::Instant;

const PAIRS: usize = 1000;
/// Six standard errors of a share of a thousand.
const BOUND: f64 = 0.095;

/// The share of pairs in which the first takes longer than the second.
async fn slower(one: (&Target, Value), other: (&Target, Value)) -> f64 {
    let time = async |(target, query): (&Target, &Value)| {
        let began = Instant::now();
        target.query(query.clone()).await.ok();
        began.elapsed()
    };
    let mut slower = 0.0;
    for pair in 0..PAIRS + 50 {
        // Who goes first changes, so that warming up favours neither.
        let (first, second) = if pair % 2 == 0 {
            let first = time((one.0, &one.1)).await;
            (first, time((other.0, &other.1)).await)
        } else {
            let second = time((other.0, &other.1)).await;
            (time((one.0, &one.1)).await, second)
        };
        if pair >= 50 {
            slower += if first > second { 1.0 } else { 0.0 };
        }
    }
    slower / PAIRS as f64
}

/// That time does not tell two queries apart: in one of three rounds at least, for a busy machine may disturb one. A
/// leak is there in all of them.
async fn tells_nothing(target: &Target, one: Value, other: Value) {
    let mut shares = Vec::new();
    for _ in 0..3 {
        let share = slower((target, one.clone()), (target, other.clone())).await;
        if (share - 0.5).abs() < BOUND {
            return;
        }
        shares.push(share);
    }
    panic!("slower in these shares of the pairs: {shares:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_word_and_an_absent_one() {
    let target = Target::at(2).await;
    tells_nothing(&target, json!({"query": "zanzibar"}), json!({"query": "zanzibat"})).await;
}

/// One of the words stands in a thousand items outside the view, the other nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_that_many_items_outside_have() {
    let target = Target::at(2).await;
    let items: Vec<Value> = (0..1000).map(|_| note("wombat", &["private"])).collect();
    for batch in items.chunks(250) {
        target.world.capture(batch).await;
    }
    tells_nothing(&target, json!({"query": "wombat tea"}), json!({"query": "numbat tea"})).await;
}

/// Whether a label exists outside the view.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_that_exists_and_one_that_does_not() {
    let target = Target::at(2).await;
    let ask = |label: &str| json!({"query": "", "labels_any": [label]});
    tells_nothing(&target, ask("private"), ask("privets")).await;
}

/// The measure itself must see a difference where there is one: more items take longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_measure_sees_what_there_is() {
    let target = Target::at(2).await;
    let share = slower((&target, json!({"query": ""})), (&target, json!({"query": "zanzibar"}))).await;
    assert!(share > 0.5 + BOUND, "slower in {share} of the pairs");
}

//! Time as an oracle: what a request costs depends on the view and the request alone.
//!
//! A thousand pairs, taking turns in who goes first, compared with Wilcoxon's signed-rank test. The bound is on the share
//! of ranks, which does not depend on the machine's speed.

#![expect(clippy::disallowed_methods, reason = "time is what is measured")]

use crate::common::*;
use crate::target::Target;
use serde_json::{Value, json};
use std::time::Instant;

const PAIRS: usize = 1000;
/// Six standard errors of the share of a thousand ranks.
const BOUND: f64 = 0.11;

/// Wilcoxon's signed-rank statistic over the pairs, as the share of all ranks in which the first queries take longer: 0.5 if time
/// tells nothing, 1 if the first always takes longer.
async fn slower(target: &Target, one: &[Value], other: &[Value]) -> f64 {
    let time = async |queries: &[Value]| {
        let began = Instant::now();
        for query in queries {
            target.query(query.clone()).await.ok();
        }
        began.elapsed().as_nanos() as f64
    };
    let mut differences = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS + 50 {
        // Who goes first changes, so that warming up favours neither.
        let (first, second) = if pair % 2 == 0 {
            let first = time(one).await;
            (first, time(other).await)
        } else {
            let second = time(other).await;
            (time(one).await, second)
        };
        if pair >= 50 {
            differences.push(first - second);
        }
    }
    differences.sort_by(|a: &f64, b| a.abs().total_cmp(&b.abs()));
    let ranked =
        differences.iter().enumerate().map(|(rank, difference)| (rank as f64 + 1.0, *difference > 0.0));
    let (longer, all) = ranked.fold((0.0, 0.0), |(longer, all), (rank, is_longer)| {
        (longer + if is_longer { rank } else { 0.0 }, all + rank)
    });
    longer / all
}

/// That time does not tell two queries apart: in one of three rounds at least, for a busy machine may disturb one. A
/// leak is there in all of them.
async fn tells_nothing(target: &Target, one: Value, other: Value) {
    let mut shares = Vec::new();
    for _ in 0..3 {
        let share = slower(target, std::slice::from_ref(&one), std::slice::from_ref(&other)).await;
        if (share - 0.5).abs() < BOUND {
            return;
        }
        shares.push(share);
    }
    panic!("slower by these shares of the ranks: {shares:?}");
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

/// The measure itself must see a difference where there is one: asking twice takes longer than asking once, on any machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_measure_sees_what_there_is() {
    let target = Target::at(2).await;
    let query = json!({"query": "zanzibar"});
    let share = slower(&target, &[query.clone(), query.clone()], &[query]).await;
    assert!(share > 0.5 + BOUND, "slower by {share} of the ranks");
}

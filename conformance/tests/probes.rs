//! The probes against the real gateway in memory: the honest one fails none, whatever the seed.

#[path = "../../gateway/tests/common/mod.rs"]
mod common;
mod support;

use common::*;
use oap_conformance::probe::{self, Limits, Outcome};
use oap_identity::random::Seeded;
use std::time::Duration;
use support::inside::{Inside, run};

#[tokio::test]
async fn the_honest_gateway_fails_no_probe() {
    // CI asks for a hundred.
    let seeds = std::env::var("OAP_PROBE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    for seed in 0..seeds {
        let world = World::with(seed + 1, oap_gateway::Config::default()).await;
        let report = run(&world, seed, true).await;
        assert!(report.failures().is_empty(), "seed {seed}:\n{}", report.text());
        let skipped: Vec<_> = report
            .results
            .iter()
            .filter(|r| matches!(r.outcome, Outcome::Skipped(_)))
            .map(|r| (&r.id, &r.outcome, &r.sent))
            .collect();
        assert!(skipped.is_empty(), "seed {seed}: {skipped:?}");
    }
}

#[tokio::test]
async fn without_the_owners_side_the_public_probes_are_made() {
    let world = World::new().await;
    let report = run(&world, 1, false).await;
    assert!(report.failures().is_empty(), "{}", report.text());
    let passed = report.results.iter().filter(|r| r.outcome == Outcome::Passed).count();
    assert!(passed >= 9 && passed < report.results.len());
}

#[tokio::test]
async fn orders_differ_with_the_seed_and_repeat_with_it() {
    let world = World::new().await;
    let order =
        async |seed| run(&world, seed, false).await.results.into_iter().map(|r| r.id).collect::<Vec<_>>();
    assert_eq!(order(1).await, order(1).await);
    assert_ne!(order(1).await, order(2).await);
}

#[tokio::test]
async fn a_run_is_bounded() {
    let run = async |limits| {
        // A seed is run once against a gateway: it would find the items and proofs of the first time.
        let world = World::new().await;
        let inside = Inside(&world);
        let random = Seeded::new(1);
        probe::run(ORIGIN, &inside, Some(&inside), &*world.clock, &random, limits, &mut |_| {}).await
    };
    let report = run(Limits { requests: 10, ..Limits::default() }).await;
    assert_eq!(report.requests, 10);
    assert!(report.failures().is_empty(), "{}", report.text());
    // Eleven seconds are waited for in one of the probes; no request is sent after five.
    let report = run(Limits { time: Duration::from_secs(5), ..Limits::default() }).await;
    assert!(report.failures().is_empty(), "{}", report.text());
    let late =
        |r: &&probe::report::Result| matches!(&r.outcome, Outcome::Skipped(why) if why.contains("time"));
    assert!(report.results.iter().filter(late).count() > 0);
}

/// Every requirement that can be seen from outside has a probe, and no probe checks what is none.
#[test]
fn coverage_is_whole() {
    let probes = probe::all();
    for requirement in probe::requirements::ALL {
        let covered = probes.iter().any(|p| p.checks.contains(&requirement.id));
        assert_eq!(covered, requirement.unseen.is_none(), "{}", requirement.id);
    }
    for probe in &probes {
        assert!(probe.checks.iter().all(|id| probe::requirements::of(id).is_some()), "{}", probe.id);
    }
    let ids: std::collections::BTreeSet<_> = probes.iter().map(|p| p.id).collect();
    assert_eq!(ids.len(), probes.len());
}

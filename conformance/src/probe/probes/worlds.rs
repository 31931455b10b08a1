//! Whole worlds: everything that every grantee asks, beside what the reference model says.

use super::super::context::Context;
use super::super::worlds::{
    Lived, ask_all, behind_gates, canaries_of, exports, judge, live, over_time, pair, setting, steps,
    strangers, vectors,
};
use super::super::{Failed, Probe, Severity};
use super::{owned, probe, waiting};
use crate::world::{Canaries, History, Setting, Size, World, gated};
use std::time::Duration;

pub(super) fn all() -> Vec<Probe> {
    use Severity::Critical;
    vec![
        owned(
            "worlds",
            &[
                "ME-01", "ME-09", "ME-13", "ME-14", "PR-1", "ME-11", "CO-14", "CO-16", "CO-22", "CO-26",
                "SP-02", "SP-06", "SP-07", "DE-02", "PS-02", "PS-03", "PS-07", "PJ-03", "PJ-04", "PJ-07",
            ],
            Critical,
            probe!(worlds),
        ),
        owned(
            "every-table",
            &["ME-01", "PR-1", "PS-03", "PS-05", "ST-03", "ST-07"],
            Critical,
            probe!(tables),
        ),
        waiting(owned(
            "gates",
            &["ME-14", "CO-18", "CO-19", "CO-20", "SP-01", "PS-03", "PS-04", "IF-02"],
            Critical,
            probe!(gates),
        )),
        waiting(owned("worlds-over-time", &["ME-09", "ME-14"], Critical, probe!(time))),
        owned("paired-fillings", &["ME-13", "ME-14", "PJ-07"], Critical, probe!(paired)),
        owned(
            "histories",
            &["ME-03", "ME-06", "ME-08", "ME-09", "ME-14", "ID-1", "RC-2", "SP-04", "ST-07"],
            Critical,
            probe!(histories),
        ),
    ]
}

/// When items of a world end that are to end while it is looked at.
const SOON: [Duration; 2] = [Duration::from_millis(8_000), Duration::from_millis(9_000)];

async fn worlds(context: &Context<'_>) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let (mut canaries, mut findings) = (Canaries::default(), Vec::new());
    for seed in context.worlds()? {
        let world = World::new(seed, &Setting::of(&manifest, context.now()), Size::default());
        // What was planted in the worlds before must not come back either.
        canaries_of(&world, &mut canaries);
        let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
        ask_all(&mut lived, &mut findings).await?;
        exports(&mut lived, &mut findings).await?;
        strangers(&lived, &mut findings).await?;
        judge(&findings)?;
    }
    Ok(())
}

/// Items that have everything, at every level of every profile; and every case of every field of a filter.
async fn tables(context: &Context<'_>) -> Result<(), Failed> {
    let seed = context.worlds()?.start;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let (world, done) = World::whole(seed, &Setting::of(&manifest, context.now()));
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
    let mut findings = Vec::new();
    ask_all(&mut lived, &mut findings).await?;
    for grant in 0..world.grants.len() {
        vectors(&mut lived, grant, &mut findings).await?;
    }
    steps(&mut lived, &done, &mut findings).await?;
    // Of what is gone by now, too: under the last one it was seen.
    vectors(&mut lived, world.grants.len().saturating_sub(1), &mut findings).await?;
    judge(&findings)
}

/// What an owner owes to others, each of it alone.
async fn gates(context: &Context<'_>) -> Result<(), Failed> {
    let seed = context.worlds()?.start;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    for gated in gated::worlds(seed, &Setting::of(&manifest, context.now())) {
        behind_gates(context, &manifest, &gated).await?;
    }
    Ok(())
}

/// How long before the first end a world must be there: all grantees list what they see.
const READY: Duration = Duration::from_secs(2);
/// How often one is brought to a gateway that takes too long for the end of the one before.
const TRIES: u32 = 3;

/// A world some of whose items end while it is asked: before, at and after their end.
async fn time(context: &Context<'_>) -> Result<(), Failed> {
    let first = context.worlds()?.start;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    for (tried, seed) in (1..=TRIES).zip(first..) {
        let mut setting = Setting::of(&manifest, context.now());
        setting.soon = SOON.map(|after| setting.now.plus(after * tried)).to_vec();
        let world = World::new(seed, &setting, Size { items: 30, queries: 1 });
        let mut canaries = Canaries::default();
        canaries_of(&world, &mut canaries);
        let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
        let ready = context.now().plus(READY);
        if tried < TRIES && setting.soon.iter().any(|end| *end <= ready) {
            continue;
        }
        let mut findings = Vec::new();
        over_time(&mut lived, &setting.soon, &mut findings).await?;
        return judge(&findings);
    }
    Ok(())
}

/// Steps of a history.
const STEPS: usize = 60;

/// What owner and grantees do in random order, compared after each step.
async fn histories(context: &Context<'_>) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    // What was left out of one makes the run incomplete, but the others may still show something.
    let mut left_out = Ok(());
    for seed in context.worlds()? {
        let history = History::new(seed, STEPS, &setting(context, &manifest));
        match live(context, &manifest, &history).await {
            Err(Failed::Skipped(why)) => left_out = Err(Failed::Skipped(why)),
            lived => lived?,
        }
    }
    left_out
}

/// For each world a grant over it, and over a twin that differs only in what the grant hides.
async fn paired(context: &Context<'_>) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let mut findings = Vec::new();
    for seed in context.worlds()? {
        let setting = Setting::of(&manifest, context.now());
        let world = World::new(seed, &setting, Size { items: 24, queries: 8 });
        pair(context, &manifest, &world, &setting, &mut findings).await?;
        judge(&findings)?;
    }
    Ok(())
}

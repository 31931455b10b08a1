//! Whole worlds: everything that every grantee asks, beside what the reference model says.

use super::super::context::Context;
use super::super::worlds::{
    Lived, ask_all, canaries_of, exports, judge, live, over_time, pair, setting, strangers,
};
use super::super::{Failed, Probe, Severity};
use super::{owned, probe};
use crate::world::{Canaries, History, Setting, Size, World};
use std::time::Duration;

pub(super) fn all() -> Vec<Probe> {
    use Severity::Critical;
    vec![
        owned("worlds", &["ME-01", "ME-09", "ME-13", "ME-14", "PR-1"], Critical, probe!(worlds)),
        owned("worlds-over-time", &["ME-09", "ME-14"], Critical, probe!(time)),
        owned("paired-fillings", &["ME-13", "ME-14"], Critical, probe!(paired)),
        owned(
            "histories",
            &["ME-03", "ME-06", "ME-08", "ME-09", "ME-14", "RC-2"],
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

/// A world some of whose items end while it is asked: before, at and after their end.
async fn time(context: &Context<'_>) -> Result<(), Failed> {
    let seed = context.worlds()?.start;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let mut setting = Setting::of(&manifest, context.now());
    setting.soon = SOON.map(|after| setting.now.plus(after)).to_vec();
    let world = World::new(seed, &setting, Size { items: 30, queries: 1 });
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
    let mut findings = Vec::new();
    over_time(&mut lived, &setting.soon, &mut findings).await?;
    judge(&findings)
}

/// Steps of a history.
const STEPS: usize = 60;

/// What owner and grantees do in random order, compared after each step.
async fn histories(context: &Context<'_>) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    for seed in context.worlds()? {
        let history = History::new(seed, STEPS, &setting(context, &manifest));
        live(context, &manifest, &history).await?;
    }
    Ok(())
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

//! Whole worlds: everything that every grantee asks, beside what the reference model says.

use super::super::context::{Context, expect};
use super::super::refusals::Family;
use super::super::worlds::{
    Lived, Through, ask_all, at_bounds, behind_gates, canaries_of, export, exports, judge, live, over_time,
    owner_reads, pair, setting, steps, strangers, vectors,
};
use super::super::{Failed, Probe, Severity};
use super::credentials::comes_to_nothing;
use super::{note, owned, probe, waiting};
use crate::world::{Canaries, Grant, History, OWN, Setting, Size, World, gated, read_profile};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned(
            "worlds",
            &[
                "ME-01", "ME-09", "ME-13", "ME-14", "PR-1", "ME-11", "CO-16", "CO-22", "CO-26", "SP-02",
                "SP-06", "SP-07", "DE-02", "PS-02", "PS-03", "PS-07", "PJ-03", "PJ-04", "PJ-07",
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
        waiting(owned("worlds-over-time", &["ME-08", "ME-09", "ME-14", "SP-04"], Critical, probe!(time))),
        owned("own-profiles", &["ME-01"], Critical, probe!(own_profiles)),
        owned("sanctions", &["CO-18"], Critical, probe!(sanctions)),
        owned("owners-log", &["CO-22", "ST-02"], Major, probe!(owners_log)),
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
        let done = async {
            ask_all(&mut lived, &mut findings).await?;
            exports(&mut lived, &mut findings).await?;
            strangers(&lived, &mut findings).await
        };
        let done = done.await;
        // What was found is told, whatever ended it then; so everywhere.
        judge(&findings).and(done)?;
    }
    Ok(())
}

/// Of so many tables one is exported.
const FEW: u64 = 6;

/// Items that have everything, at every level of every profile; and every case of every field of a filter.
async fn tables(context: &Context<'_>) -> Result<(), Failed> {
    let seed = context.worlds()?.start;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let (world, done) = World::whole(seed, &Setting::of(&manifest, context.now()));
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
    let mut findings = Vec::new();
    let done = async {
        ask_all(&mut lived, &mut findings).await?;
        // A bundle shows what an answer does: some of the tables, by the seed.
        let exported = |(_, grant): &(usize, &Grant)| grant.draft["operations"] != Value::Null;
        let every = world.grants.iter().enumerate().filter(exported).map(|(number, _)| number);
        for grant in every.skip(usize::try_from(seed % FEW).unwrap_or(0)).step_by(FEW as usize) {
            export(&mut lived, grant, &mut findings).await?;
        }
        for grant in 0..world.grants.len() {
            vectors(&mut lived, grant, &mut findings).await?;
        }
        steps(&mut lived, &done, &mut findings).await?;
        judge(&findings)?;
        // Of what is gone by now, too: under the last one it was seen.
        vectors(&mut lived, world.grants.len().saturating_sub(1), &mut findings).await
    };
    let done = done.await;
    judge(&findings).and(done)
}

/// The ways to ask beside the query endpoint.
async fn ways(context: &Context<'_>) -> Result<Vec<Through>, Failed> {
    match Family::Mcp.offered(context).await {
        Ok(()) => Ok(vec![Through::Action, Through::Mcp]),
        Err(Failed::NotDeclared(_)) => Ok(vec![Through::Action]),
        Err(other) => Err(other),
    }
}

/// What an owner owes to others, each of it alone.
async fn gates(context: &Context<'_>) -> Result<(), Failed> {
    let seed = context.worlds()?.start;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let ways = ways(context).await?;
    for (number, gated) in gated::worlds(seed, &Setting::of(&manifest, context.now())).iter().enumerate() {
        // Most are asked a few times only: each begins with another way.
        let begun = number % ways.len();
        behind_gates(context, &manifest, gated, &[&ways[begun..], &ways[..begun]].concat()).await?;
    }
    Ok(())
}

/// What profiles of the owner's own show, at each of their levels.
async fn own_profiles(context: &Context<'_>) -> Result<(), Failed> {
    let seed = context.worlds()?.start;
    for document in OWN.map(read_profile) {
        context.owner(json!({"do": "profile", "profile": document})).await?;
    }
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    for document in OWN.map(read_profile) {
        let name = document["name"].as_str().unwrap_or_default();
        let all = manifest["memory_exchange"]["supported_redaction_profiles"].as_array();
        expect(all.is_some_and(|all| all.iter().any(|one| one == name)), || {
            format!("oap-memory.json: supported_redaction_profiles does not name {name}")
        })?;
        context.found_profile(name);
        // Nobody names it below its least level.
        if let Some(least) = document["minimum_level"].as_u64() {
            let grantee = context.stranger();
            let mut draft = context.draft(&grantee, "l0", 0);
            (draft["redaction_profile"], draft["trust_level"]) =
                (json!(name), json!(least.saturating_sub(1)));
            comes_to_nothing(context, &grantee, draft, "a grant below the least level of its profile")
                .await?;
        }
    }
    let world = World::of_own_profiles(seed, &Setting::of(&manifest, context.now()));
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
    let mut findings = Vec::new();
    let done = ask_all(&mut lived, &mut findings).await;
    judge(&findings).and(done)
}

/// What sanctions lists stop, and what is stopped where one is not at hand.
async fn sanctions(context: &Context<'_>) -> Result<(), Failed> {
    let seed = context.worlds()?.start;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let none = || context.owner(json!({"do": "sanctions", "list": gated::LIST, "named": null}));
    none().await?;
    let mut lived = Ok(());
    for gated in gated::screened(seed, &Setting::of(&manifest, context.now())) {
        if lived.is_ok() {
            lived = behind_gates(context, &manifest, &gated, &[]).await;
        }
    }
    // Whatever was found, what the probes put there is no list.
    let end = none().await;
    lived.and(end.map(drop))
}

/// What the owner reads in the log, by each parameter; and there is a receipt of each thing that was done with an item.
async fn owners_log(context: &Context<'_>) -> Result<(), Failed> {
    let seed = context.worlds()?.start;
    context.owner(json!({"do": "audit", "asked": {"limit": 1}})).await?;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let world = World::new(seed, &Setting::of(&manifest, context.now()), Size { items: 8, queries: 1 });
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
    let mut findings = Vec::new();
    let done = async {
        ask_all(&mut lived, &mut findings).await?;
        owner_reads(&lived, &mut findings).await
    };
    let done = done.await;
    judge(&findings).and(done)?;
    // More than the log tells at once where nobody asks for more.
    context.capture(&vec![note("one of many", &[&context.word()]); 101]).await?;
    let read = async |asked: Value| {
        let log = context.owner(json!({"do": "audit", "asked": asked})).await?;
        Ok::<_, Failed>(log["receipts"].as_array().cloned().unwrap_or_default())
    };
    let (usual, all) = (read(json!({})).await?, read(json!({"limit": 1000})).await?);
    let is_head = |receipt: &&Value| receipt["action_id"] == "memory.chain_head";
    expect(!all.iter().any(|receipt| is_head(&receipt)), || {
        "the owner's log has heads, which belong to the entries of one chain".to_owned()
    })?;
    // What others did between the two is newer than both.
    let newer = all.iter().position(|receipt| usual.first() == Some(receipt)).unwrap_or(all.len());
    let same = all.iter().skip(newer).take(100);
    expect(!usual.is_empty() && same.eq(&usual), || {
        format!(
            "the owner's log without a limit has {} receipts, of {}: must have the newest 100",
            usual.len(),
            all.len()
        )
    })?;
    changes_are_in_the_log(context).await
}

/// Each link of an item's chain names a receipt, and the owner's log has all of them.
async fn changes_are_in_the_log(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let id = context.capture(&[note("as it was", &[&label])]).await?.into_iter().next().unwrap_or_default();
    let session = context.granted(&label, 2).await?;
    for command in [
        json!({"do": "confirm"}),
        json!({"do": "relabel", "labels": [label, "more"]}),
        json!({"do": "correct", "item": {"content": {"text": "as it is"}}}),
        json!({"do": "retract"}),
        json!({"do": "restore"}),
    ] {
        let mut command = command;
        command["item_id"] = json!(id);
        context.owner(command).await?;
    }
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    let links = answer["items"][0]["integrity"]["chain"].as_array().cloned().unwrap_or_default();
    expect(links.len() == 6, || format!("a chain has {} links, must have 6", links.len()))?;
    let log = context.owner(json!({"do": "audit", "asked": {"item_id": id}})).await?;
    let known = log["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
    for link in links {
        expect(known.iter().any(|receipt| receipt["receipt_id"] == link["receipt"]), || {
            format!("the owner's log does not have the receipt of the link {}", link["event"])
        })?;
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
        let done = over_time(&mut lived, &setting.soon, &mut findings).await;
        judge(&findings).and(done)?;
        return at_bounds(context, &manifest).await;
    }
    Ok(())
}

/// Steps of a history.
const STEPS: usize = 45;

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
    pairs([context, context]).await
}

/// The same over two gateways, where these are contexts of two: each is asked by the same randomness.
pub(in super::super) async fn pairs(sides: [&Context<'_>; 2]) -> Result<(), Failed> {
    let [context, beside] = sides;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let mut findings = Vec::new();
    let seeds = context.worlds()?;
    if !std::ptr::eq(context, beside) {
        let (other, of_other) = (beside.get("/.well-known/oap-memory.json").await?, beside.worlds()?);
        expect(other["principal"] == manifest["principal"] && of_other == seeds, || {
            "the two gateways are not of one principal, or not asked by one seed".to_owned()
        })?;
    }
    let mut is_shown = false;
    // Where no grant shows anything a gateway that finds nothing looks honest: there are more worlds then.
    for seed in seeds.start..seeds.end + MORE {
        if is_shown && seed >= seeds.end {
            break;
        }
        let setting = Setting::of(&manifest, context.now());
        let world = World::new(seed, &setting, Size { items: 24, queries: 8 });
        let done = pair(sides, &manifest, &world, &setting, &mut findings).await;
        judge(&findings)?;
        is_shown |= done?;
    }
    // Two that show nothing look the same.
    if is_shown { Ok(()) } else { Err(Failed::Skipped("no grant of these worlds shows anything".to_owned())) }
}

/// Most worlds that are made beside those of the run.
const MORE: u64 = 8;

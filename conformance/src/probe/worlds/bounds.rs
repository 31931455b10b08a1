//! Grants at their bounds: before they begin, from their beginning to their end, and behind it; taken back; for whoever has the token.

use super::super::Failed;
use super::ask::ask;
use super::exchanged::state;
use super::fill::{Lived, canaries_of};
use super::live::{exchange, revoke};
use super::{Finding, judge};
use crate::probe::Context;
use crate::probe::refusals::bearer;
use crate::world::{Canaries, Item, Setting, World};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// How long after now a grant begins, and how long it holds: time enough where some requests are waited for, and less than a token lives.
const BEGINS: Duration = Duration::from_secs(300);
const HOLDS: Duration = Duration::from_secs(300);
const LEAST: Duration = Duration::from_millis(1);

/// Brings grants to a gateway that begin and end. Where its clock can be set each is asked a millisecond before, at and after both.
///
/// # Errors
/// What was found; when the run is over.
pub(in super::super) async fn at_bounds(context: &Context<'_>, manifest: &Value) -> Result<(), Failed> {
    let setting = Setting::of(manifest, context.now());
    // Tokens end at whole seconds.
    let begins = Timestamp::from_seconds(setting.now.plus(BEGINS).seconds());
    let ends = begins.plus(HOLDS);
    let world = World::brief(context.worlds()?.start, &setting, [begins, ends]);
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::new(context, &world, manifest, &canaries)?;
    let items: Vec<(usize, &Item)> = world.items().enumerate().collect();
    lived.capture(&items).await?;
    let mut findings = Vec::new();
    let done = around(&mut lived, [begins, ends], &mut findings).await;
    judge(&findings).and(done)?;
    as_deep_as_may_be(context, manifest).await
}

/// A grant that is passed on as far as it can be: each below it shows what it may, until one in the middle is taken back, and then the first one.
async fn as_deep_as_may_be(context: &Context<'_>, manifest: &Value) -> Result<(), Failed> {
    let setting = Setting::of(manifest, context.now());
    let world = World::deep(context.worlds()?.start, &setting);
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::fill(context, &world, manifest, &canaries).await?;
    let mut findings = Vec::new();
    // Later than they begin, on a clock that stands.
    context.advance(LEAST).await?;
    let done = async {
        for taken_back in [None, Some(3), Some(0)] {
            if let Some(grant) = taken_back {
                revoke(&mut lived, grant).await?;
            }
            for grant in 0..world.grants.len() {
                ask(&mut lived, grant, &json!({"integrity": "chain"}), &mut findings).await?;
                state(&lived, grant, false, &mut findings).await?;
            }
        }
        Ok(())
    };
    let done = done.await;
    judge(&findings).and(done)
}

async fn around(
    lived: &mut Lived<'_>,
    [begins, ends]: [Timestamp; 2],
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let context = lived.context;
    // Taken back with what was made from it.
    for grant in [2, 3] {
        lived.grant(grant, findings).await?;
    }
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &context.word(), 2);
    match bearer(context, grantee, draft).await {
        Ok(_) => lived.grant(4, findings).await?,
        // Nobody need give such tokens.
        Err(Failed::NotDeclared(_)) => {}
        Err(why) => return Err(why),
    }
    state(lived, 3, false, findings).await?;
    revoke(lived, 2).await?;
    state(lived, 3, false, findings).await?;
    state(lived, 2, true, findings).await?;
    judge(findings)?;
    // On a clock that goes on nobody asks at a millisecond.
    if !context.advance(LEAST).await? {
        return Ok(());
    }
    lived.model.clock_is_exact();
    lived.issue(0).await?;
    looked(lived, &[0], findings).await?;
    for at in [before(begins), begins, before(ends), ends, ends.plus(LEAST)] {
        until(lived, at).await?;
        if at == begins {
            lived.grant(1, findings).await?;
        }
        let grants: &[usize] = if at < begins { &[0] } else { &[0, 1] };
        looked(lived, grants, findings).await?;
        judge(findings)?;
    }
    Ok(())
}

const fn before(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.millis() - 1)
}

async fn until(lived: &Lived<'_>, at: Timestamp) -> Result<(), Failed> {
    let left = u64::try_from(at.millis() - lived.context.now().millis()).unwrap_or(0);
    lived.context.advance(Duration::from_millis(left)).await.map(drop)
}

/// The state of grants, their exchange, and what they show, where there is a token.
async fn looked(lived: &mut Lived<'_>, grants: &[usize], findings: &mut Vec<Finding>) -> Result<(), Failed> {
    for grant in grants.iter().copied() {
        state(lived, grant, false, findings).await?;
        // A token of before is not taken for one of now.
        let had = lived.grants.get(&grant).is_some_and(|live| !live.session.token.is_empty());
        if had {
            ask(lived, grant, &json!({"integrity": "chain"}), findings).await?;
        }
        exchange(lived, grant, findings).await?;
    }
    Ok(())
}

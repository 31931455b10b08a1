//! The conditions on queries, cursors and exports, brought by each way that a query has, and compared with the reference model.

use super::doors::{Family, of_way};
use super::queries::{Step, Violation, granting, violations};
use super::rules::{Condition, Door};
use crate::model::rule::{Refusal, Rule};
use crate::probe::Failed;
use crate::probe::context::Context;
use crate::probe::worlds::{
    Finding, Lived, Through, ask, ask_all, canaries_of, explain, export, judge, revoke,
};
use crate::world::{Canaries, Setting, Size, World};
use oap_identity::random;
use serde_json::json;

/// Every condition on queries, cursors and exports, compared with the reference model.
pub(in super::super) async fn of_queries(context: &Context<'_>) -> Result<(), Failed> {
    brought(context, Through::Query).await
}

/// The same of what is asked as the action `memory.query`.
pub(in super::super) async fn of_actions(context: &Context<'_>) -> Result<(), Failed> {
    brought(context, Through::Action).await
}

/// The same of what is asked of the tools at `/mcp`, and a world asked there.
pub(in super::super) async fn of_tools(context: &Context<'_>) -> Result<(), Failed> {
    Family::Mcp.offered(context).await?;
    brought(context, Through::Mcp).await?;
    asked_of_tools(context).await
}

async fn brought(context: &Context<'_>, through: Through) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let setting = Setting::of(&manifest, context.now());
    let seed = u64::from_le_bytes(random::bytes(context.random()));
    let world = World::new(seed, &setting, Size { items: 8, queries: 0 });
    let declared = context.declared();
    let world = granting(world, &context.profile(), context.now().plus(declared.life()), declared.max_items);
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
    lived.through = through;
    let mut findings: Vec<Finding> = Vec::new();
    for refusal in of_way(context, Refusal::ALL, through == Through::Query) {
        let (Violation::Asked(steps) | Violation::UnderGrant(steps, _)) = violations(refusal) else {
            continue;
        };
        for step in steps {
            let refused = lived.model.decided().get(&Rule::Refusal(refusal)).copied();
            let door = if matches!(step, Step::Export(_)) { Door::Export } else { through.door() };
            let done = done(&mut lived, step, &mut findings).await;
            judge(&findings).and(done)?;
            // It was brought where the model refused for it.
            if lived.model.decided().get(&Rule::Refusal(refusal)).copied() > refused {
                context.note_at(&Condition::Refusal(refusal), door.as_str());
            }
        }
    }
    Ok(())
}

async fn done(lived: &mut Lived<'_>, step: Step, findings: &mut Vec<Finding>) -> Result<(), Failed> {
    match step {
        Step::Ask(grant, query) => {
            if lived.through.takes(&query) {
                ask(lived, grant, &query, findings).await?;
            }
        }
        Step::Export(grant) => export(lived, grant, findings).await?,
        Step::Revoke(grant) => revoke(lived, grant).await?,
        Step::Page { of, under, change } => {
            let mut query = json!({"query": "", "max_results": 1});
            let Some(first) = ask(lived, of, &query, findings).await? else { return Ok(()) };
            query["cursor"] = first["next_cursor"].clone();
            change(&mut query);
            if lived.through.takes(&query) {
                ask(lived, under, &query, findings).await?;
            }
        }
    }
    Ok(())
}

/// A world asked of the tools at `/mcp`: each answer is that of the query endpoint.
async fn asked_of_tools(context: &Context<'_>) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let setting = Setting::of(&manifest, context.now());
    let seed = u64::from_le_bytes(random::bytes(context.random()));
    let mut world = World::new(seed, &setting, Size { items: 12, queries: 3 });
    for query in world.grants.iter_mut().flat_map(|grant| &mut grant.queries) {
        query.as_object_mut().map(|members| members.remove("include_embeddings"));
    }
    let mut canaries = Canaries::default();
    canaries_of(&world, &mut canaries);
    let mut lived = Lived::fill(context, &world, &manifest, &canaries).await?;
    lived.through = Through::Mcp;
    let mut findings: Vec<Finding> = Vec::new();
    let done = async {
        ask_all(&mut lived, &mut findings).await?;
        for grant in 0..world.grants.len() {
            explain(&mut lived, grant, &mut findings).await?;
        }
        Ok(())
    };
    let done = done.await;
    judge(&findings).and(done)
}

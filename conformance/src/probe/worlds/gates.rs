//! What an owner owes to others, brought to a gateway: each of it alone, asked before and after.

use super::super::Failed;
use super::super::context::{Context, expect};
use super::super::drafted::departures;
use super::fill::{Lived, Through, canaries_of};
use super::{Finding, ask, export, judge, vectors};
use crate::world::gated::{FIRST_GRANTEE, Gated, SECOND_GRANTEE, Step};
use crate::world::{Canaries, Item};
use oap_identity::Timestamp;
use oap_identity::signed::UnverifiedSignature;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// The grantees of these worlds, by what stands for their DIDs.
const GRANTEES: [(&str, usize); 2] = [(FIRST_GRANTEE, 0), (SECOND_GRANTEE, 1)];

/// What one goes on with.
#[derive(Default)]
struct Last<'w> {
    /// The other ways to ask, and how often one was gone.
    ways: &'w [Through],
    gone: usize,
    /// The bridge that was signed last.
    bridge: Value,
    /// When that bridge, or the last item that ends, does.
    end: Option<Timestamp>,
    /// The cursor of the last listing.
    cursor: Value,
}

/// Lives through one of these worlds, with queries made by these other ways as well, in turns.
///
/// # Errors
/// What was found; where the owner's side sets no contexts and bridges; when the run is over.
pub(in super::super) async fn behind_gates(
    context: &Context<'_>,
    manifest: &Value,
    gated: &Gated,
    ways: &[Through],
) -> Result<(), Failed> {
    let mut canaries = Canaries::default();
    canaries_of(&gated.world, &mut canaries);
    let mut lived = Lived::new(context, &gated.world, manifest, &canaries)?;
    let items: Vec<(usize, &Item)> = gated.first().collect();
    lived.capture(&items).await?;
    let (mut last, mut findings) = (Last { ways, ..Last::default() }, Vec::new());
    for next in &gated.steps {
        let done = step(&mut lived, next, &mut last, &mut findings).await;
        judge(&findings).and(done).map_err(|failed| match failed {
            Failed::Wrong(why) => Failed::Wrong(format!("{}: {why}", gated.what)),
            Failed::Fault(why) => Failed::Fault(format!("{}: {why}", gated.what)),
            not_made @ (Failed::Skipped(_) | Failed::NotDeclared(_) | Failed::NotCovered(_)) => not_made,
        })?;
    }
    Ok(())
}

async fn step(
    lived: &mut Lived<'_>,
    step: &Step,
    last: &mut Last<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let context = lived.context;
    match step {
        Step::Context(document) => {
            let document = actual(lived, document, GRANTEES)?;
            context.owner(json!({"do": "context", "context": document})).await?;
            lived.model.context(&document);
        }
        Step::Bridge { draft, life } => {
            let mut draft = draft.clone();
            last.end = Some(lived.now().plus(*life));
            draft["valid_until"] = json!(last.end);
            last.bridge = bridge(context, &draft).await?;
            lived.model.bridged(&last.bridge);
        }
        Step::Unbridge => {
            context.owner(json!({"do": "unbridge", "bridge_id": last.bridge["bridge_id"]})).await?;
            lived.model.unbridged(last.bridge["bridge_id"].as_str().unwrap_or_default());
        }
        Step::End { before } => {
            let end = last.end.map_or(0, Timestamp::millis) - before.as_millis() as i64;
            let left = Duration::from_millis(u64::try_from(end - lived.now().millis()).unwrap_or(0));
            // On a clock that goes on nobody asks at a millisecond.
            if !context.advance(left).await? && before.is_zero() {
                context.wait(left + Duration::from_secs(1)).await?;
            }
        }
        Step::Grant(grant) => lived.grant(*grant, findings).await?,
        Step::Consent(grant) => {
            let id = lived.grants.get(grant).map(|live| live.id().to_owned()).unwrap_or_default();
            context.owner(json!({"do": "consent", "grant_id": id})).await?;
            lived.model.consented(&id);
        }
        Step::Capture { item: number, life } => {
            let Some(mut item) = lived.world.items().nth(*number).cloned() else { return Ok(()) };
            if let Some(life) = life {
                last.end = Some(lived.now().plus(*life));
                item.draft["expires_at"] = json!(last.end);
            }
            lived.capture(&[(*number, &item)]).await?;
        }
        Step::Ask(grant) => {
            let query = json!({"query": "", "max_results": 100, "integrity": "chain"});
            ask(lived, *grant, &query, findings).await?;
            export(lived, *grant, findings).await?;
            // The same gates stand before each way to ask.
            if let Some(way) = last.ways.iter().cycle().nth(last.gone) {
                last.gone += 1;
                lived.through = *way;
                let asked = ask(lived, *grant, &query, findings).await;
                lived.through = Through::Query;
                asked?;
            }
        }
        Step::First(grant) => {
            let answer = ask(lived, *grant, &json!({"query": "", "max_results": 1}), findings).await?;
            last.cursor = answer.map(|answer| answer["next_cursor"].clone()).unwrap_or_default();
        }
        Step::Page(grant) => {
            let query = json!({"query": "", "max_results": 1, "cursor": last.cursor});
            ask(lived, *grant, &query, findings).await?;
        }
        Step::Sanctions { list, named } => {
            let named = match named {
                Some(named) => Some(actual(lived, named, GRANTEES)?),
                None => None,
            };
            context.owner(json!({"do": "sanctions", "list": list, "named": named})).await?;
            match &named {
                Some(named) => lived.model.screened(list, named),
                None => lived.model.unscreened(list),
            }
        }
        Step::Vectors(grant) => vectors(lived, *grant, findings).await?,
    }
    Ok(())
}

/// A value with the DIDs of grantees of a world, each by its number, in place of what stands for them.
pub(super) fn actual<T: Serialize + DeserializeOwned + Default, const N: usize>(
    lived: &Lived<'_>,
    value: &T,
    grantees: [(&str, usize); N],
) -> Result<T, Failed> {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    for (stands, number) in grantees {
        text = text.replace(stands, lived.grantee(number)?.did().as_str());
    }
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// A bridge that the owner signs.
async fn bridge(context: &Context<'_>, draft: &Value) -> Result<Value, Failed> {
    let done = context.owner(json!({"do": "bridge", "draft": draft})).await?;
    signed_as_drafted(context, draft, &done["bridge"]).await
}

/// A bridge that the owner signed: as it was drafted, by the principal's key.
pub(super) async fn signed_as_drafted(
    context: &Context<'_>,
    draft: &Value,
    bridge: &Value,
) -> Result<Value, Failed> {
    let document = context.document().await?;
    let signed = UnverifiedSignature::of(bridge)
        .ok()
        .and_then(|signature| signature.is_by(document.key(signature.kid())?).ok());
    expect(signed.is_some(), || "a bridge is not signed by its principal (protocol 7)".to_owned())?;
    let departs = departures(draft, bridge);
    expect(departs.is_empty(), || format!("a bridge is not as it was drafted: {}", departs.join("; ")))?;
    Ok(bridge.clone())
}

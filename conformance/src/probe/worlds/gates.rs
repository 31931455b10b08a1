//! What an owner owes to others, brought to a gateway: each of it alone, asked before and after.

use super::super::Failed;
use super::super::context::{Context, expect};
use super::fill::{Lived, canaries_of};
use super::{Finding, ask, judge};
use crate::world::{Canaries, FIRST_GRANTEE, Gated, Item, Owed};
use oap_identity::signed::UnverifiedSignature;
use serde_json::{Value, json};

/// Lives through one of these worlds.
///
/// # Errors
/// What was found; where the owner's side sets no contexts and bridges; when the run is over.
pub(in super::super) async fn gated(
    context: &Context<'_>,
    manifest: &Value,
    gated: &Gated,
) -> Result<(), Failed> {
    let mut canaries = Canaries::default();
    canaries_of(&gated.world, &mut canaries);
    let mut lived = Lived::new(context, &gated.world, manifest, &canaries)?;
    let items: Vec<(usize, &Item)> = gated.world.items().enumerate().collect();
    lived.capture(&items).await?;
    let (mut bridge, mut findings) = (Value::Null, Vec::new());
    for owed in &gated.steps {
        step(&mut lived, owed, &mut bridge, &mut findings).await?;
        let named = |why| Failed::Wrong(format!("{}: {why}", gated.what));
        judge(&findings).map_err(|failed| match failed {
            Failed::Wrong(why) => named(why),
            skipped => skipped,
        })?;
    }
    Ok(())
}

async fn step(
    lived: &mut Lived<'_>,
    owed: &Owed,
    bridge: &mut Value,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let context = lived.context;
    match owed {
        Owed::Context(document) => {
            let first = lived.grants.get(&0).map(|live| live.session.grantee.did().to_string());
            let text = document.to_string().replace(FIRST_GRANTEE, &first.unwrap_or_default());
            let document: Value = serde_json::from_str(&text).unwrap_or_default();
            context.owner(json!({"do": "context", "context": document})).await?;
            lived.model.context(&document);
        }
        Owed::Bridge { draft, life } => {
            let mut draft = draft.clone();
            draft["valid_until"] = json!(context.now().plus(*life));
            *bridge = context.owner(json!({"do": "bridge", "draft": draft})).await?["bridge"].clone();
            let document = context.document().await?;
            let signed = UnverifiedSignature::of(bridge)
                .ok()
                .and_then(|signature| signature.is_by(document.key(signature.kid())?).ok());
            expect(signed.is_some(), || "a bridge is not signed by its principal (protocol 7)".to_owned())?;
            lived.model.bridged(bridge);
        }
        Owed::Unbridge => {
            context.owner(json!({"do": "unbridge", "bridge_id": bridge["bridge_id"]})).await?;
            lived.model.unbridged(bridge["bridge_id"].as_str().unwrap_or_default());
        }
        Owed::Grant(grant) => lived.grant(*grant).await?,
        Owed::Consent(grant) => {
            let id = lived.grants.get(grant).map(|live| live.id().to_owned()).unwrap_or_default();
            context.owner(json!({"do": "consent", "grant_id": id})).await?;
            lived.model.consented(&id);
        }
        Owed::Wait(time) => context.wait(*time).await?,
        Owed::Ask(grant) => {
            let query = json!({"query": "", "max_results": 100, "integrity": "chain"});
            ask(lived, *grant, &query, findings).await?;
        }
    }
    Ok(())
}

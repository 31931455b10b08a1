//! What an agent concludes again: believed as since it was said first ([`oap_soundness::again`]).

use super::believing::words_at;
use crate::error::Error;
use crate::service::items::{InForce, whole};
use crate::state::gateway::Gateway;
use crate::state::policy::policy;
use crate::state::schema::{self, AUTHORS};
use oap_agents::Level;
use oap_agents::arguments::{MAX_FACTS, Source};
use oap_agents::level::EXTENSION;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::item::Confidence;
use oap_memory::{Head, Status};
use oap_soundness::again::{Before, repeats, words};
use oap_soundness::trust::{Known, trust};
use oap_store::StoreError;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Under what name of its extension an item has since when it is believed, where that is longer than since it was written.
pub(super) const SAID_AT: &str = "said_at";

/// Where an agent concluded the same before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub item: ItemId,
    /// When that became known: by now, whatever a clock said that stood ahead.
    pub captured_at: Timestamp,
}

/// An item, and what it says.
type Conclusion = (Arc<Head>, Map<String, Value>);

/// What an agent concluded, as far as it decays: words of its own that it claims to be no more than a conclusion, and no entry.
fn conclusion(gateway: &Gateway, item: ItemId) -> Result<Option<Conclusion>, Error> {
    let Some(head) = gateway.heads.get(item) else { return Ok(None) };
    if !may_conclude(gateway, &head) {
        return Ok(None);
    }
    let says = match schema::version(&gateway.store, item, head.version_seq) {
        Ok(version) => whole(&version)?,
        Err(Error::NotFound | Error::Store(StoreError::Erased)) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok((Level::of(&says, false) == Level::AgentInferred).then_some((head, says)))
}

/// Whether an item can be an agent's conclusion, as far as its head says.
fn may_conclude(gateway: &Gateway, head: &Head) -> bool {
    *head.meta.author != gateway.principal
        && head.meta.key.is_none()
        && matches!(head.status, Status::Current | Status::Retracted)
}

fn text(says: &Map<String, Value>) -> Option<&str> {
    says.get("content")?.get("text")?.as_str()
}

fn source(says: &Map<String, Value>) -> Option<Source> {
    serde_json::from_value(says.get("extensions")?.get(EXTENSION)?.get("source")?.clone()).ok()
}

/// Where an agent concluded the same in another item or this one, as they are now, and in former versions of `within`.
///
/// # Errors
/// [`Error::Overtaken`]; [`Error::Store`], [`Error::Corrupt`].
pub(super) fn said_before(
    gateway: &Arc<Gateway>,
    agent: &Did,
    content: &str,
    from: Option<&Source>,
    within: Option<&InForce>,
) -> Result<Option<Before<Place>>, Error> {
    let (said, now) = (words(content), gateway.clock.now());
    let own = || {
        let heads = gateway.heads.all();
        let own = heads.iter().filter(|head| *head.meta.author == *agent && may_conclude(gateway, head));
        own.map(|head| head.item_id).collect()
    };
    let read = |item| {
        let concluded = conclusion(gateway, item)?;
        let said = |(head, says): Conclusion| Some((Did::clone(&head.meta.author), words(text(&says)?)));
        Ok(concluded.and_then(said))
    };
    let mut before = Vec::new();
    for item in gateway.concluded.find(agent, &said, own, read)? {
        let Some((head, says)) = conclusion(gateway, item)? else { continue };
        // A hash finds, and the words decide.
        let is_same = *head.meta.author == *agent && text(&says).is_some_and(|text| words(text) == said);
        let at = words_at(&gateway.store, item, head.version_seq, &says)?.filter(|_| is_same);
        let place = Place { item, captured_at: head.captured_at.min(now) };
        before.extend(at.map(|since| Before { place, since, source: source(&says) }));
    }
    for (seq, _) in within.iter().flat_map(|of| of.head.replaced.iter().rev().take(MAX_FACTS)) {
        let Some(head) = within.map(|of| &of.head) else { continue };
        if AUTHORS.get(&gateway.store, &(head.item_id, *seq))?.as_ref() != Some(agent) {
            continue;
        }
        let says = match schema::version(&gateway.store, head.item_id, *seq) {
            Ok(version) => whole(&version)?,
            Err(Error::NotFound | Error::Store(StoreError::Erased)) => continue,
            Err(error) => return Err(error),
        };
        let is_same = Level::of(&says, false) == Level::AgentInferred
            && text(&says).is_some_and(|text| words(text) == said);
        let at = words_at(&gateway.store, head.item_id, *seq, &says)?.filter(|_| is_same);
        let place = Place { item: head.item_id, captured_at: head.captured_at.min(now) };
        before.extend(at.map(|since| Before { place, since, source: source(&says) }));
    }
    Ok(repeats(from, before))
}

/// How sure a conclusion is now that is believed since then.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(super) fn believed(gateway: &Gateway, confidence: f64, since: Timestamp) -> Result<f64, Error> {
    let Ok(sure) = Confidence::try_from(confidence) else { return Ok(confidence) };
    let known = Known { level: Level::AgentInferred, confidence: sure, written_at: since, confirmed: false };
    let trust = trust(&known, &policy(&gateway.store)?.decay, gateway.clock.now());
    Ok(if trust.periods == 0 { confidence } else { trust.confidence() })
}

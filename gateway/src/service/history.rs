//! An item's history for its owner: each version with what it changed, and to whom which version was shown.

use crate::api::agents::AgentName;
use crate::api::disclosures::{Changes, GivenTo, History, HistoryEvent, Kept, ShownTo, TextChange};
use crate::error::Error;
use crate::service::agents::hands_items;
use crate::service::items::whole;
use crate::service::tools::then::author_of;
use crate::service::who::{MAX_RECEIPTS, Times};
use crate::service::{Audit, Items};
use crate::state::agents;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::{schema, views};
use oap_agents::level::EXTENSION;
use oap_identity::{Did, Hash, ItemId};
use oap_memory::chain::{Event, Link};
use oap_memory::receipt::read_tag;
use oap_memory::record::Status;
use oap_store::StoreError;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

impl Items<'_> {
    /// The links of an item with what each changed, oldest first, and its disclosures by version and grantee. Of content that is not kept
    /// any more it is said that it is not.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an item that never was; [`Error::Store`], [`Error::Corrupt`].
    pub fn history(self, _: &Owner<impl Permits<Admin>>, item: ItemId) -> Result<History, Error> {
        let links: Vec<Link> = views::links(&self.0.store, item)?
            .into_iter()
            .map(|link| Ok(serde_json::from_value(link)?))
            .collect::<Result<_, Error>>()?;
        if links.is_empty() {
            return Err(Error::NotFound);
        }
        let known: BTreeMap<Did, AgentName> =
            agents::all(&self.0.store)?.into_iter().map(|(did, agent)| (did, agent.name)).collect();
        let head = self.0.heads.get(item);
        let mut events = Vec::with_capacity(links.len());
        let (mut before, mut version) = (None::<Map<String, Value>>, 0);
        for link in &links {
            let (mut changed, mut content, mut by_agent, mut agent_did) = (None, None, false, None);
            if link.event.commits() {
                version = link.seq.saturating_add(1);
                let says = self.version_said(item, link.seq)?;
                content = Some(if says.is_some() { Kept::Kept } else { Kept::Gone });
                by_agent = matches!(link.event, Event::Capture | Event::Correct)
                    && says.as_ref().is_some_and(said_by_agent);
                if by_agent && let Some(says) = &says {
                    let in_force = head.as_ref().filter(|head| head.version_seq == link.seq);
                    let author = match in_force {
                        Some(head) => Some(Did::clone(&head.meta.author)),
                        None => author_of(&self.0.store, &self.0.principal, item, link.seq, says)?,
                    };
                    // What came by an import is in the owner's name.
                    agent_did = author.filter(|did| *did != self.0.principal);
                }
                changed = before.as_ref().zip(says.as_ref()).map(|(former, says)| changes(former, says));
                before = says;
            }
            events.push(HistoryEvent {
                actor: link.actor.clone(),
                by_agent,
                agent: agent_did.as_ref().and_then(|did| known.get(did).cloned()),
                agent_did,
                at: link.at,
                changes: changed,
                content,
                event: link.event,
                receipt: link.receipt,
                seq: link.seq,
                version,
            });
        }
        let status = head.map_or(Status::Erased, |head| head.status);
        let mut room = MAX_RECEIPTS;
        let (disclosed, complete) = self.disclosures(item, &links, &mut room)?;
        let (given, all) = self.given(item, &links, &mut room)?;
        Ok(History { complete: complete && all, disclosed, given, events, item_id: item, status })
    }

    /// What a version said; `None` where it is not kept.
    fn version_said(self, item: ItemId, seq: u32) -> Result<Option<Map<String, Value>>, Error> {
        match schema::version(&self.0.store, item, seq) {
            Ok(committed) => Ok(Some(whole(&committed)?)),
            Err(Error::NotFound | Error::Store(StoreError::Erased)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// To whom which version was shown, and whether all receipts were looked at.
    fn disclosures(
        self,
        item: ItemId,
        links: &[Link],
        room: &mut usize,
    ) -> Result<(Vec<ShownTo>, bool), Error> {
        let versions = versions(links);
        let grantees: BTreeSet<Did> = self
            .0
            .grant_book
            .all()
            .iter()
            .filter(|entry| entry.has_disclosed(item))
            .map(|entry| entry.record.grant.grant().grantee.clone())
            .collect();
        let (mut found, mut complete) = (Vec::new(), true);
        for grantee in grantees {
            let mut shown: BTreeMap<Option<u32>, Times> = BTreeMap::new();
            complete &= Audit(self.0).asked_by(&grantee, room, |asked| {
                for (_, commitment) in asked.shown().filter(|(shown, _)| *shown == item) {
                    let version = versions.get(&commitment).copied();
                    let known = shown.remove(&version);
                    shown.insert(version, Times::count(known, asked.receipt.timestamp, asked.disclosed_as()));
                }
            })?;
            for (version, times) in shown {
                let Times { times, first, last, seen_at } = times;
                found.push(ShownTo { first, grantee: grantee.clone(), last, seen_at, times, version });
            }
        }
        Ok((found, complete))
    }

    /// To which of the owner's agents which version was given, and whether all receipts were looked at.
    fn given(self, item: ItemId, links: &[Link], room: &mut usize) -> Result<(Vec<GivenTo>, bool), Error> {
        let versions = versions(links);
        let (mut found, mut complete) = (Vec::new(), true);
        for (did, agent) in agents::all(&self.0.store)? {
            let mut given: BTreeMap<Option<u32>, Times> = BTreeMap::new();
            complete &= Audit(self.0).asked_by(&did, room, |asked| {
                // What a grant showed it is told with the grantees.
                if !hands_items(&asked.receipt) || asked.shown().next().is_some() {
                    return;
                }
                let tags = asked.receipt.provenance_tags_out.iter().filter_map(|tag| read_tag(tag));
                for (_, commitment) in tags.filter(|(given, _)| *given == item) {
                    let version = versions.get(&commitment).copied();
                    let known = given.remove(&version);
                    given.insert(version, Times::count(known, asked.receipt.timestamp, None));
                }
            })?;
            for (version, Times { times, first, last, .. }) in given {
                found.push(GivenTo {
                    agent: agent.name.clone(),
                    did: did.clone(),
                    first,
                    last,
                    times,
                    version,
                });
            }
        }
        Ok((found, complete))
    }
}

/// The versions of an item by their commitments.
fn versions(links: &[Link]) -> BTreeMap<Hash, u32> {
    let commits = links.iter().filter(|link| link.event.commits());
    commits.map(|link| (link.commitment, link.seq.saturating_add(1))).collect()
}

/// Whether an agent wrote a version: the owner's word has no level.
fn said_by_agent(says: &Map<String, Value>) -> bool {
    says.get("extensions").and_then(|extensions| extensions.get(EXTENSION)).is_some()
}

/// What one version changed of another: labels that came and went, the text before and after, the names of other members.
fn changes(before: &Map<String, Value>, after: &Map<String, Value>) -> Changes {
    let labels = |of: &Map<String, Value>| -> BTreeSet<String> {
        let labels = of.get("labels").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        labels.iter().filter_map(|label| label.as_str().map(str::to_owned)).collect()
    };
    let inner = |of: &Map<String, Value>, member: &str| {
        of.get(member).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (had, has) = (labels(before), labels(after));
    let (said, says) = (inner(before, "content"), inner(after, "content"));
    let text = |of: &Map<String, Value>| of.get("text").and_then(Value::as_str).map(str::to_owned);
    let text = (said.get("text") != says.get("text"))
        .then(|| TextChange { after: text(&says), before: text(&said) });
    let mut others = BTreeSet::new();
    // Made with each version, and no change that anybody made.
    let made = |path: &str| ["version", "provenance.source_receipt"].contains(&path);
    let mut differ = |of: &str, one: &Map<String, Value>, other: &Map<String, Value>| {
        let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for name in names.into_iter().filter(|name| one.get(*name) != other.get(*name)) {
            let path = if of.is_empty() { name.clone() } else { format!("{of}.{name}") };
            if !["labels", "content", "provenance", "content.text"].contains(&path.as_str()) && !made(&path) {
                others.insert(path);
            }
        }
    };
    differ("", before, after);
    differ("content", &said, &says);
    differ("provenance", &inner(before, "provenance"), &inner(after, "provenance"));
    Changes {
        labels_added: has.difference(&had).cloned().collect(),
        labels_removed: had.difference(&has).cloned().collect(),
        other: others,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_name_what_changed_and_nothing_else() {
        let map = |value: Value| value.as_object().cloned().unwrap_or_default();
        let before = map(json!({
            "version": 1, "labels": ["a", "b"], "content": {"text": "x", "structured": {"n": 1}}, "kind": "fact",
            "provenance": {"confidence": 1, "source_receipt": "r"},
        }));
        let after = map(json!({
            "version": 2, "labels": ["b", "c"], "content": {"text": "y", "structured": {"n": 2}}, "kind": "fact",
            "provenance": {"confidence": 0.5, "source_receipt": "r"}, "ttl_days": 3,
        }));
        assert_eq!(
            json!(changes(&before, &after)),
            json!({
                "labels_added": ["c"], "labels_removed": ["a"], "text": {"before": "x", "after": "y"},
                "other": ["content.structured", "provenance.confidence", "ttl_days"],
            })
        );
        let none = json!({"labels_added": [], "labels_removed": [], "other": []});
        assert_eq!(json!(changes(&before, &before)), none);
    }
}

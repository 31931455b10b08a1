//! Entries, erased; and whose word an agent does not erase.

use super::writing::may_change;
use crate::error::{Conflict, Error};
use crate::service::items::whole;
use crate::service::{Entries, Tools};
use crate::state::agents::Agent;
use crate::state::commits::{AGENTS, Writing, until_it_holds};
use crate::state::gateway::Gateway;
use crate::state::owner::mark::{Read, Write};
use crate::state::schema::{self, LINKS, VERSIONS};
use oap_agents::entry::{Filter, MAX_ENTRIES};
use oap_agents::level::EXTENSION;
use oap_identity::{Hash, ItemId};
use oap_memory::chain::{Event, Link};
use oap_memory::commitment::Committed;
use oap_memory::receipt::item_tag;
use oap_memory::record::Head;
use oap_store::{Rows, StoreError};
use std::sync::Arc;

/// What a receipt of a deletion says was used. It names what went, and gives nobody anything.
pub(crate) const DELETE: &str = "openintent.delete";

impl Entries<'_> {
    /// Erases an entry: what it said is gone when this returns, and nothing puts it back.
    ///
    /// # Errors
    /// [`Error::NotFound`] of one that the agent may not see; [`Error::Permission`] of another's; [`Error::OwnersWord`];
    /// [`Error::Conflict`] under a legal hold.
    pub async fn delete(self, agent: &Agent<Read>, item: ItemId) -> Result<(), Error> {
        let writer = agent.permitted::<Write>()?;
        let eraser = writer.clone();
        let input = Hash::of_canonical(&[item])?;
        let deleted = self
            .0
            .commit_for(writer.acting(), move |w| {
                let (_, head) = schema::head(w.tx, item)?;
                may_change(&eraser, &head, w.now)?;
                if holds_owners_word(w.tx, w.gateway, &head)? {
                    return Err(Error::OwnersWord);
                }
                w.erase_entries(&eraser, input, &[head])
            })
            .await;
        match deleted {
            Err(error) => Err(self.why(agent, item, error).await?),
            done => done,
        }
    }

    /// Erases the entries that a filter admits, of those that the agent may erase: at most [`MAX_ENTRIES`], all or none. Which ones,
    /// and how many are left.
    ///
    /// # Errors
    /// As [`Entries::delete`].
    pub async fn delete_all(
        self,
        agent: &Agent<Read>,
        filter: Filter,
    ) -> Result<(Vec<ItemId>, usize), Error> {
        let writer = agent.permitted::<Write>()?;
        let filter = Arc::new(filter);
        until_it_holds(|| async {
            let (filter, eraser) = (filter.clone(), writer.clone());
            let found = Tools(self.0).look(agent, move |mut looking| {
                let mut own = Vec::new();
                for head in looking.matching(&filter.of)? {
                    if may_change(&eraser, &head, looking.now).is_ok()
                        && !holds_owners_word(&looking.gateway.store, looking.gateway, &head)?
                    {
                        own.push(head);
                    }
                }
                let left = own.len().saturating_sub(MAX_ENTRIES);
                own.truncate(MAX_ENTRIES);
                Ok((own, left))
            });
            let (found, left) = found.await?;
            let eraser = writer.clone();
            self.0
                .commit_for(writer.acting(), move |w| {
                    let mut heads = Vec::new();
                    for head in found {
                        w.ends_with(head.item_id, head.seq)?;
                        if !head.is_live(w.now) {
                            return Err(Error::Overtaken);
                        }
                        // The version is the one that was looked at, and of former ones there are no more than then.
                        heads.push((*head).clone());
                    }
                    let items: Vec<ItemId> = heads.iter().map(|head| head.item_id).collect();
                    if !items.is_empty() {
                        w.erase_entries(&eraser, Hash::of_canonical(&items)?, &heads)?;
                    }
                    Ok((items, left))
                })
                .await
        })
        .await
    }
}

impl Writing<'_, '_> {
    /// Erases entries, with a receipt that names the agent.
    fn erase_entries(&mut self, agent: &Agent<Write>, input: Hash, heads: &[Head]) -> Result<(), Error> {
        let mut tags = Vec::new();
        for head in heads {
            if self.is_held(head.item_id)? {
                return Err(Error::Conflict(Conflict::Held));
            }
            tags.push(item_tag(head.item_id, self.last_link(head)?.commitment));
            self.erase_for_agent(head.item_id, Event::Erase)?;
        }
        let gateway = self.gateway.clone();
        let receipt = Tools(&gateway).handing(agent, DELETE, input, tags)?;
        self.receipt(AGENTS, receipt).map(drop)
    }
}

/// Whether an agent wrote a version: it says so itself.
fn is_agents(version: &Committed) -> Result<bool, Error> {
    Ok(whole(version)?.get("extensions").and_then(|extensions| extensions.get(EXTENSION)).is_some())
}

/// Whether the owner wrote what an entry says, or confirmed it.
pub(super) fn is_owners_word(gateway: &Gateway, head: &Head) -> bool {
    head.meta.human_verified || *head.meta.author == gateway.principal
}

/// Whether a version that is kept is the owner's word, or one that the owner confirmed or put back: such a one the owner alone erases.
pub(crate) fn holds_owners_word(rows: &impl Rows, gateway: &Gateway, head: &Head) -> Result<bool, Error> {
    let oldest = head.replaced.first().map_or(head.version_seq, |(seq, _)| *seq);
    let said = said_in(rows, head.item_id, oldest)?.map_or(oldest, |link| link.seq);
    if is_owners_word(gateway, head) || owner_decided(rows, head, said)? {
        return Ok(true);
    }
    for (seq, _) in &head.replaced {
        match VERSIONS.get(rows, &(head.item_id, *seq)) {
            Ok(Some(former)) if !is_agents(&former)? => return Ok(true),
            Ok(_) | Err(StoreError::Erased) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// The link by which what a version says was said: other labels and a reseal make a version of the same words.
pub(crate) fn said_in(rows: &impl Rows, item: ItemId, version_seq: u32) -> Result<Option<Link>, Error> {
    for seq in (0..=version_seq).rev() {
        let Some(link) = LINKS.get(rows, &(item, seq))? else { return Ok(None) };
        let link: Link = serde_json::from_slice(&link)?;
        if seq == 0 || link.event == Event::Correct || link.event.begins() {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

/// Whether the owner confirmed an item, or put it back, in that link of its chain or after it. A correction takes the mark of a
/// confirmation from the head, and never its link.
pub(crate) fn owner_decided(rows: &impl Rows, head: &Head, from: u32) -> Result<bool, Error> {
    for seq in (from..=head.seq).rev() {
        let Some(link) = LINKS.get(rows, &(head.item_id, seq))? else { continue };
        let link: Link = serde_json::from_slice(&link)?;
        if matches!(link.event, Event::Confirm | Event::Restore) {
            return Ok(true);
        }
    }
    Ok(false)
}

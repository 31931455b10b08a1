//! Links: made, and told of where both ends are seen.

use super::judging::{Words, stopped};
use super::looking::Looking;
use super::writing::may_change;
use super::{ToolAnswer, members};
use crate::error::{Conflict, Error};
use crate::service::Tools;
use crate::state::agents::Agent;
use crate::state::commits::{AGENTS as CHAIN, Writing};
use crate::state::edges::{self, Edge, EdgePlace};
use crate::state::gateway::blocking;
use crate::state::owner::mark::Write;
use crate::state::schema::{self, AGENTS};
use oap_agents::Level;
use oap_agents::answers::{Linked, MAX_LINKS, MAX_LINKS_TOLD};
use oap_agents::arguments::{Link, LinkEnd};
use oap_identity::{Did, Hash, ItemId, ReceiptId, Timestamp};
use oap_memory::receipt::item_tag;
use oap_memory::record::Head;
use oap_soundness::guard::Kind;
use oap_store::Rows;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Tools<'_> {
    /// Links an item that the agent wrote to another that it sees, or to an address elsewhere. The same link again is the one that is
    /// there.
    pub(super) async fn link(self, agent: &Agent<Write>, asked: Link) -> Result<ToolAnswer, Error> {
        let end = asked.end()?;
        let (asked, kinds) = blocking(move || {
            let kinds = stopped_for(&asked);
            Ok::<_, Error>((asked, kinds))
        })
        .await?;
        // Its words are told to other agents.
        if !kinds.is_empty() {
            return Err(Error::GuardedLink(kinds));
        }
        let linker = agent.clone();
        let gateway = self.0.clone();
        let (place, edge) = self
            .0
            .commit_for(agent.acting(), move |w| {
                let (_, from) = schema::head(w.tx, asked.item_id)?;
                may_link(&linker, &from, w.now)?;
                w.may_link(&linker, &from)?;
                let mut ends = vec![from];
                if let LinkEnd::Item(item) = end {
                    let (_, to) = schema::head(w.tx, item)?;
                    if !(to.is_live(w.now) && linker.sight().sees(&to)) {
                        return Err(Error::NotFound);
                    }
                    // It is told there, too.
                    w.may_link(&linker, &to)?;
                    ends.push(to);
                }
                let edge = Edge {
                    to: asked.to,
                    relationship: asked.relationship,
                    author: linker.did().clone(),
                    source: asked.source,
                    at: w.now,
                };
                // An agent's own links alone are counted: another's may be hidden from it.
                let own = w.own_edges(asked.item_id, true, &edge.author)?;
                let says = |edge: &Edge| (edge.to.clone(), edge.relationship.clone(), edge.source.clone());
                if let Some(known) = own.iter().find(|(_, known)| says(known) == says(&edge)) {
                    return Ok(known.clone());
                }
                let end = match edge.other() {
                    Some(to) => w.own_edges(to, false, &edge.author)?.len(),
                    None => 0,
                };
                if own.len().max(end) >= MAX_LINKS {
                    return Err(Error::Conflict(Conflict::ManyLinks));
                }
                let place = (asked.item_id, ReceiptId::new(w.now, &*gateway.random));
                w.put_edge(place, &edge)?;
                let ids: Vec<ItemId> = ends.iter().map(|head| head.item_id).collect();
                w.announce_link(ids.clone());
                let tags = ends.iter().map(|head| w.tag_of(head)).collect::<Result<_, _>>()?;
                // Of which items, and not in what words: these are gone with the first of the items.
                let mut receipt =
                    Tools(&gateway).handing(&linker, "memory_link", Hash::of_canonical(&ids)?, tags)?;
                receipt.id = Some(place.1);
                w.receipt(CHAIN, receipt)?;
                Ok((place, edge))
            })
            .await?;
        let linked = Linked {
            link_id: place.1,
            item_id: place.0,
            to: edge.to,
            relationship: edge.relationship,
            agent: agent.name().to_string(),
            source: edge.source,
            linked_at: edge.at,
        };
        Ok(ToolAnswer { structured: members(&linked)?, text: linked.text() })
    }
}

/// Whether an agent may link an item: what it wrote, so that the owner ends a link with an item of that agent's, or by a correction of it,
/// and never with one of the owner's own.
fn may_link(agent: &Agent<Write>, head: &Head, now: Timestamp) -> Result<(), Error> {
    let sight = agent.sight();
    if sight.sees(head) && head.is_live(now) && !sight.wrote(head) {
        return Err(Error::NotLinker);
    }
    may_change(agent, head, now)
}

/// Whether an agent is there whose links are told: those of one that was removed are not.
pub(super) fn is_there(rows: &impl Rows, author: &Did) -> Result<bool, Error> {
    Ok(AGENTS.get(rows, author)?.is_some_and(|agent| agent.is_there()))
}

/// For what the guard stops a link: an id says nothing.
fn stopped_for(asked: &Link) -> Vec<Kind> {
    let to = match LinkEnd::read(&asked.to) {
        Some(LinkEnd::Iri(iri)) => iri,
        _ => String::new(),
    };
    let words =
        Words { content: &to, topic: Some(&asked.relationship), tags: &[], source: asked.source.as_ref() };
    stopped(&words.findings(), Level::AgentInferred)
}

impl Writing<'_, '_> {
    /// The links that an agent made and that begin at an item, or end there. Those of another's items are not opened.
    fn own_edges(&self, item: ItemId, begin: bool, by: &Did) -> Result<Vec<(EdgePlace, Edge)>, Error> {
        let mut own = Vec::new();
        for place in self.edges_at(item)? {
            let others = self.gateway.heads.get(place.0).is_some_and(|head| *head.meta.author != *by);
            if (place.0 == item) != begin || others {
                continue;
            }
            let known = edges::edge(self.tx, place)?.filter(|known| known.author == *by);
            own.extend(known.map(|known| (place, known)));
        }
        Ok(own)
    }

    /// The tag of an item as it is now.
    pub(super) fn tag_of(&self, head: &Head) -> Result<String, Error> {
        Ok(item_tag(head.item_id, self.last_link(head)?.commitment))
    }

    /// That the links which an answer tells of are still there, and who made them. Whose word the items are says the end of their chains,
    /// which the answer rests on, too.
    ///
    /// # Errors
    /// [`Error::Overtaken`].
    pub(super) fn still_linked(&self, links: &[EdgePlace]) -> Result<(), Error> {
        for place in links {
            let edge = edges::edge(self.tx, *place)?.ok_or(Error::Overtaken)?;
            if !is_there(self.tx, &edge.author)? {
                return Err(Error::Overtaken);
            }
        }
        Ok(())
    }
}

impl Looking<'_> {
    /// The links at an item whose other end the agent may see and which is in force, of agents that are there, and whose word the item is
    /// that they are of: the newest first, as many as may be and have room, of each author in turn; and whether some are left. Of a time,
    /// those that were there by then.
    pub(super) fn links(
        &mut self,
        item: ItemId,
        by: Option<Timestamp>,
    ) -> Result<(Vec<Linked>, bool), Error> {
        let gateway = self.gateway.clone();
        // What is said of what the agent may not see is not opened, and takes no turn.
        let (mut found, mut turns) = (Vec::new(), BTreeMap::new());
        for place in edges::places(&gateway.store, item) {
            let place = place?;
            let Some(of) = self.in_sight(place.0) else { continue };
            let is_from = place.0 == item;
            let turn: &mut usize = turns.entry((is_from, of.meta.author.clone())).or_default();
            *turn += 1;
            found.push((*turn, is_from, place, of));
        }
        // Whoever links much pushes nobody else's out.
        found.sort_by_key(|(turn, ..)| *turn);
        let (mut links, mut more, mut from_here, mut to_here) = (Vec::new(), false, 0_usize, 0_usize);
        for (_, is_from, place, of) in found {
            let told = if is_from { &mut from_here } else { &mut to_here };
            if more && *told == MAX_LINKS_TOLD {
                continue;
            }
            let Some(edge) = edges::edge(&gateway.store, place)? else { continue };
            // Said of what is another's word by now, the owner's above all, it is not told.
            if edge.author != *of.meta.author || !is_there(&gateway.store, &edge.author)? {
                continue;
            }
            if by.is_some_and(|by| edge.at > by) {
                continue;
            }
            let other = if is_from { edge.other().map(|other| self.in_sight(other)) } else { Some(Some(of)) };
            let Some(head) = other.map_or(Some(None), |head| head.map(Some)) else { continue };
            let link = Linked {
                link_id: place.1,
                item_id: place.0,
                agent: self.name(&edge.author),
                to: edge.to,
                relationship: edge.relationship,
                source: edge.source,
                linked_at: edge.at,
            };
            let room = self.room_for_link(&link).filter(|_| *told < MAX_LINKS_TOLD);
            let Some(bytes) = room else {
                more = true;
                continue;
            };
            *told += 1;
            self.tell_link(place, head.as_deref(), bytes);
            links.push(link);
        }
        links.sort_by_key(|link| (link.item_id != item, Reverse(link.link_id)));
        Ok((links, more))
    }

    /// An item that is in force and that the agent may see.
    pub(super) fn in_sight(&self, item: ItemId) -> Option<Arc<Head>> {
        self.gateway.heads.get(item).filter(|head| self.is_seen(head))
    }
}

//! `memory_recall`: what words find and links lead to, ranked by five parts ([`oap_agents::scoring`]).

use super::Unhanded;
use super::looking::{Looking, VisibleItem, Wanted};
use crate::error::Error;
use crate::state::corpora::{AgentView, Said};
use crate::state::edges::{self, EdgePlace};
use oap_agents::answers::Recalled;
use oap_agents::arguments::{Recall, USUAL_FACTS, topic_of};
use oap_agents::scoring::{MAX_FOLLOWED, MAX_STEPS, ScoreParts, Signals, TopicAsked, proximity, recency};
use oap_exchange::item::visible_text;
use oap_identity::{ItemId, Timestamp};
use oap_memory::Head;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something that was found.
pub(crate) struct Ranked {
    pub head: Arc<Head>,
    pub parts: ScoreParts,
    /// What makes it near, where something does.
    way: Option<Way>,
}

/// How an item is reached from what is named as near.
#[derive(Debug, Clone, Default)]
pub(crate) struct Way {
    steps: u32,
    /// The links on the way.
    pub links: Vec<EdgePlace>,
    /// The items on the way but for the last, with the last link of each chain.
    pub through: Vec<(ItemId, u32)>,
    /// When the first of these ends.
    pub ends: Option<Timestamp>,
}

impl Ranked {
    /// What makes it near, where that made a difference.
    pub fn way(&self) -> Option<&Way> {
        self.way.as_ref().filter(|_| self.parts.graph > 0.0)
    }
}

impl Looking<'_> {
    /// What words find of what the agent sees, whichever dialect it asks in: the best first.
    pub fn found(&self, words: &str) -> Result<Vec<(ItemId, f32)>, Error> {
        let read = |item| {
            let head = self.gateway.heads.get(item).filter(|head| self.is_seen(head));
            let Some(seen) = head.map(|head| self.seen(head)).transpose()?.flatten() else { return Ok(None) };
            let end = self.end_of(&seen)?;
            let VisibleItem { head, whole, .. } = seen;
            let (kind, captured_at) = (head.kind, head.captured_at);
            Ok(Some(Said { text: visible_text(&whole), kind, captured_at, end }))
        };
        let everything = || self.all().iter().map(|head| head.item_id).collect();
        let language = self.gateway.config.language.into();
        let (by, decay) = (self.agent.sees_by(), self.policy.decay);
        let view = AgentView { by, decay, everything: &everything, read: &read, language, now: self.now };
        self.gateway.corpora.find(self.agent.did(), words, &view)
    }

    /// What matches words, or is linked to what is named as near: the best first, of equals the newest. It is ranked with what the agent
    /// may see, and with nothing else.
    pub(super) fn ranked(&self, asked: &Recall) -> Result<Vec<Ranked>, Error> {
        let wanted = Wanted::new(asked.topic.as_deref(), &asked.tags, &asked.kinds, asked.min_confidence);
        let oldest = asked.max_age.map(|age| self.now.minus(age.duration()));
        let mut found: BTreeMap<ItemId, f64> =
            self.found(&asked.query)?.into_iter().map(|(item, score)| (item, f64::from(score))).collect();
        found.retain(|item, _| self.in_sight(*item).is_some());
        let best = found.values().copied().fold(0.0, f64::max);
        let mut ways = self.ways(&asked.near)?;
        let linked = ways.iter().filter(|(_, way)| way.steps > 0).map(|(item, _)| *item);
        let items: BTreeSet<ItemId> = found.keys().copied().chain(linked).collect();
        let topics =
            TopicAsked::new(asked.topic.as_deref(), &asked.query, self.gateway.config.language.into());
        let mut fits: BTreeMap<String, f64> = BTreeMap::new();
        let mut ranked = Vec::new();
        for item in items {
            let Some(head) = self.in_sight(item) else { continue };
            if !wanted.admits(&head, self) || oldest.is_some_and(|oldest| head.captured_at < oldest) {
                continue;
            }
            let topic = head.labels.iter().find_map(|label| topic_of(label));
            let topic = match topic {
                None => 0.0,
                // Many have the same one.
                Some(topic) => match fits.get(topic) {
                    Some(fit) => *fit,
                    None => *fits.entry(topic.to_owned()).or_insert(topics.fits(Some(topic))),
                },
            };
            let way = ways.remove(&item);
            let parts = self.gateway.config.recall_weights.weigh(Signals {
                text: found.get(&item).map_or(0.0, |score| score / best),
                topic,
                recency: recency(head.captured_at, self.now),
                confidence: self.confidence(&head),
                graph: proximity(way.as_ref().map(|way| way.steps)),
            });
            ranked.push(Ranked { head, parts, way });
        }
        ranked.sort_by(|a, b| {
            b.parts.score().total_cmp(&a.parts.score()).then(b.head.item_id.cmp(&a.head.item_id))
        });
        Ok(ranked)
    }

    /// What is near to items that the agent names, by the links that it may be told of: the shortest way to each. What it does not see is as
    /// what never was.
    fn ways(&self, named: &[ItemId]) -> Result<BTreeMap<ItemId, Way>, Error> {
        let store = &self.gateway.store;
        let mut round: Vec<Arc<Head>> = named.iter().filter_map(|item| self.in_sight(*item)).collect();
        let mut ways: BTreeMap<ItemId, Way> =
            round.iter().map(|head| (head.item_id, Way::default())).collect();
        let mut followed = 0;
        for steps in 1..=MAX_STEPS {
            let mut next = Vec::new();
            for head in round {
                let way = ways.get(&head.item_id).cloned().unwrap_or_default();
                for place in edges::places(store, head.item_id) {
                    let place = place?;
                    // What is said of what the agent may not see is not opened, and not counted.
                    let Some(of) = self.in_sight(place.0) else { continue };
                    let Some(edge) = edges::edge(store, place)? else { continue };
                    if edge.author != *of.meta.author || !super::linking::is_there(store, &edge.author)? {
                        continue;
                    }
                    let is_from = place.0 == head.item_id;
                    let other =
                        if is_from { edge.other().and_then(|item| self.in_sight(item)) } else { Some(of) };
                    let Some(other) = other else { continue };
                    if followed == MAX_FOLLOWED {
                        return Ok(ways);
                    }
                    followed += 1;
                    if ways.contains_key(&other.item_id) {
                        continue;
                    }
                    let mut further = way.clone();
                    further.steps = steps;
                    further.links.push(place);
                    further.through.push((head.item_id, head.seq));
                    further.ends = further.ends.into_iter().chain(head.end_of_life).min();
                    ways.insert(other.item_id, further);
                    next.push(other);
                }
            }
            round = next;
        }
        Ok(ways)
    }

    /// In the own memory.
    pub fn recall(mut self, asked: &Recall) -> Result<Unhanded, Error> {
        let ranked = self.ranked(asked)?;
        let matched = ranked.len();
        let mut facts = Vec::new();
        for found in ranked.into_iter().take(asked.limit.unwrap_or(USUAL_FACTS)) {
            let Some(seen) = self.seen(found.head.clone())? else { continue };
            if !self.has_room(&seen) {
                break;
            }
            facts.push(self.show(&seen, Some(&found)));
        }
        let recalled = Recalled { facts, matched, from_peers: None };
        Unhanded::of(&recalled, recalled.text(), self)
    }
}

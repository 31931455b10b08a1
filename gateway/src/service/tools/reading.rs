//! The tools that change nothing.

use super::Unhanded;
use super::looking::{Looking, VisibleItem, Wanted};
use crate::error::Error;
use crate::state::corpora::{Said, Seen};
use crate::state::views;
use oap_agents::answers::{Differs, Explained, Fact, MAX_TOPICS, Queried, Recalled, Replaced, State, Step};
use oap_agents::arguments::{Diff, Explain, MAX_FACTS, Query, Recall, USUAL_FACTS, topic_of};
use oap_exchange::item::visible_text;
use oap_identity::{ItemId, Timestamp};
use oap_memory::{Head, Status};
use std::collections::BTreeMap;
use std::sync::Arc;

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
        let seen = Seen { by, decay, everything: &everything, read: &read, language, now: self.now };
        self.gateway.corpora.find(self.agent.did(), words, &seen)
    }

    /// By words: the best first, of equals the newest. It is ranked with what the agent may see, and with nothing else.
    pub fn recall(mut self, asked: &Recall) -> Result<Unhanded, Error> {
        let wanted = Wanted::new(asked.topic.as_deref(), &asked.tags, &asked.kinds, asked.min_confidence);
        let found = self.found(&asked.query)?;
        let ranked = found.into_iter().filter_map(|(item, score)| {
            let head = self.gateway.heads.get(item)?;
            (self.is_seen(&head) && wanted.admits(&head, &self)).then_some((score, head))
        });
        let ranked: Vec<(f32, Arc<Head>)> = ranked.collect();
        let matched = ranked.len();
        let mut facts = Vec::new();
        for (score, head) in ranked.into_iter().take(asked.limit.unwrap_or(USUAL_FACTS)) {
            let Some(seen) = self.seen(head)? else { continue };
            if !self.has_room(&seen) {
                break;
            }
            facts.push(self.show(&seen, Some(score)));
        }
        let recalled = Recalled { facts, matched };
        Unhanded::of(&recalled, recalled.text(), self)
    }

    /// By what items are: the newest first.
    pub fn query(mut self, asked: &Query) -> Result<Unhanded, Error> {
        let wanted = Wanted::new(asked.topic.as_deref(), &asked.tags, &asked.kinds, asked.min_confidence);
        let mut heads = self.all();
        heads.reverse();
        heads.retain(|head| {
            wanted.admits(head, &self)
                && asked.before.is_none_or(|before| head.item_id < before)
                && asked.needs_verification.is_none_or(|waits| head.meta.needs_verification == waits)
                && asked.since.is_none_or(|since| head.captured_at >= since)
                && asked.until.is_none_or(|until| head.captured_at < until)
                && asked
                    .agent
                    .as_ref()
                    .is_none_or(|by| *by == self.author(head) || *by == head.meta.author.to_string())
        });
        let mut found = Vec::new();
        for head in heads {
            // A head does not say where an item comes from. Else what is not shown is not opened.
            if let Some(sort) = &asked.source {
                let Some(seen) = self.seen(head.clone())? else { continue };
                if seen.source().is_none_or(|source| source.sort != *sort) {
                    continue;
                }
            }
            found.push(head);
        }
        let matched = found.len();
        let (facts, left) = self.fill(&found, asked.limit)?;
        let next = facts.last().map(|fact: &Fact| fact.item_id).filter(|_| left);
        let queried = Queried { facts, matched, next, sparql: None };
        Unhanded::of(&queried, queried.text(), self)
    }

    /// As many as may be and have room; and whether some are left.
    fn fill(&mut self, found: &[Arc<Head>], limit: Option<usize>) -> Result<(Vec<Fact>, bool), Error> {
        let mut facts = Vec::new();
        let mut left = found.iter();
        while facts.len() < limit.unwrap_or(USUAL_FACTS) {
            let Some(head) = left.next() else { return Ok((facts, false)) };
            let Some(seen) = self.seen(head.clone())? else { continue };
            if !self.has_room(&seen) {
                return Ok((facts, true));
            }
            facts.push(self.show(&seen, None));
        }
        Ok((facts, left.next().is_some()))
    }

    /// Where an item comes from. What was taken back is explained to its author alone.
    pub fn explain(mut self, asked: Explain) -> Result<Unhanded, Error> {
        let seen = self.one(asked.item_id)?;
        let head = seen.head.clone();
        let own = self.agent.sight().wrote(&head);
        if !(head.is_live(self.now) || (own && head.status == Status::Retracted)) {
            return Err(Error::NotFound);
        }
        let links = views::latest_links(&self.gateway.store, head.item_id, MAX_FACTS)?;
        let more_links = links.first().is_some_and(|link| link.seq > 0);
        let (mut fact, mut more_to_link) = (self.show(&seen, None), false);
        // What was taken back has no links: they are told where both ends are in force.
        if head.is_live(self.now) {
            (fact.links, more_to_link) = self.links(head.item_id)?;
        }
        let chain = links
            .iter()
            .map(|link| Step { seq: link.seq, event: link.event, at: link.at, commitment: link.commitment })
            .collect();
        let (corrections, more_corrections) = self.corrections(&head)?;
        let derived_from =
            head.derived_from.iter().copied().filter(|origin| self.is_there(*origin)).collect();
        let more = more_links || more_to_link || more_corrections;
        let explained =
            Explained { fact, retracted_at: head.ended_at, chain, corrections, derived_from, more };
        Unhanded::of(&explained, explained.text(), self)
    }

    /// Whether the agent may see an item that is in force.
    fn is_there(&self, item: ItemId) -> bool {
        let head = self.gateway.heads.get(item);
        head.is_some_and(|head| self.is_seen(&head))
    }

    /// The former versions that are kept and told ([`Looking::former`]), the newest first. As many as may be and have room; and whether
    /// some are left.
    fn corrections(&mut self, head: &Head) -> Result<(Vec<Replaced>, bool), Error> {
        let mut corrections = Vec::new();
        for (seq, replaced_at) in head.replaced.iter().rev() {
            let Some((commitment, says)) = self.former(head, *seq)? else { continue };
            let text = says.get("content").and_then(|content| content.get("text")?.as_str());
            let bytes = text.map_or(0, str::len);
            if corrections.len() == MAX_FACTS || !self.has_room_for(bytes) {
                return Ok((corrections, true));
            }
            self.show_former(head.item_id, commitment, bytes);
            corrections.push(Replaced {
                version: seq.saturating_add(1),
                content: text.map(str::to_owned),
                replaced_at: *replaced_at,
            });
        }
        Ok((corrections, false))
    }

    /// What changed in a time, as far as it is kept.
    pub fn diff(mut self, asked: &Diff) -> Result<Unhanded, Error> {
        let wanted = Wanted::new(asked.topic.as_deref(), &[], &[], None);
        let until = asked.until.unwrap_or(self.now);
        let within = |at: Timestamp| at >= asked.since && at < until;
        let (mut learned, mut corrected) = (Vec::new(), Vec::new());
        for head in self.all().into_iter().rev().filter(|head| wanted.admits(head, &self)) {
            let list = if within(written_at(head.item_id)) {
                &mut learned
            } else if head.replaced.last().is_some_and(|(_, at)| within(*at)) {
                &mut corrected
            } else {
                continue;
            };
            list.push(head);
        }
        let limit = asked.limit.unwrap_or(USUAL_FACTS);
        let (learned, more_learned) = self.fill(&learned, asked.limit)?;
        let (corrected, more_corrected) = self.fill(&corrected, asked.limit)?;
        let sight = self.agent.sight();
        let mut retracted: Vec<Arc<Head>> = self.gateway.heads.all();
        retracted.retain(|head| {
            sight.wrote(head)
                && head.status == Status::Retracted
                && wanted.admits(head, &self)
                && head.ended_at.is_some_and(within)
        });
        let more = more_learned || more_corrected || retracted.len() > limit;
        let retracted = retracted.iter().rev().take(limit).map(|head| head.item_id).collect();
        let differs = Differs { since: asked.since, until, learned, corrected, retracted, more };
        Unhanded::of(&differs, differs.text(), self)
    }

    /// What there is.
    pub fn status(self) -> Result<Unhanded, Error> {
        let all = self.all();
        let sight = self.agent.sight();
        let (mut topics, mut kinds, mut agents) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for head in &all {
            *kinds.entry(head.kind.to_string()).or_default() += 1;
            *agents.entry(self.author(head)).or_default() += 1;
            for topic in head.labels.iter().filter_map(|label| topic_of(label)) {
                *topics.entry(topic.to_owned()).or_default() += 1;
            }
        }
        let mut most: Vec<(String, usize)> = topics.into_iter().collect();
        most.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        most.truncate(MAX_TOPICS);
        let state = State {
            agent: self.agent.name().to_string(),
            did: self.agent.did().to_string(),
            permission: self.agent.permission().as_str().to_owned(),
            facts: all.len(),
            own: all.iter().filter(|head| sight.wrote(head)).count(),
            needs_verification: all.iter().filter(|head| head.meta.needs_verification).count(),
            topics: most.into_iter().collect(),
            kinds,
            agents,
        };
        Unhanded::of(&state, state.text(), self)
    }
}

/// When an item was written, as its id says.
fn written_at(item: ItemId) -> Timestamp {
    let mut millis = [0; 8];
    millis[2..].copy_from_slice(&item.to_bytes()[..6]);
    Timestamp::from_millis(i64::from_be_bytes(millis))
}

//! The tools that change nothing.

use super::Unhanded;
use super::looking::{Looking, Wanted, reason_of};
use crate::error::Error;
use crate::state::schema::REASONS;
use crate::state::views;
use oap_agents::answers::{Differs, Explained, Fact, MAX_TOPICS, Queried, State, Step};
use oap_agents::arguments::{Diff, Explain, MAX_FACTS, Query, USUAL_FACTS, topic_of};
use oap_identity::{ItemId, Timestamp};
use oap_memory::{Head, Status};
use oap_store::StoreError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parts that confidences are counted in.
const TENTHS: usize = 10;

impl Looking<'_> {
    /// By what items are: the newest first.
    pub fn query(mut self, asked: &Query) -> Result<Unhanded, Error> {
        if let Some(at) = asked.as_of {
            return self.query_then(asked, at);
        }
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
        let queried = Queried { facts, matched, next, sparql: None, as_of: None, not_kept: 0 };
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
        if let Some(at) = asked.as_of {
            return self.explain_then(asked, at);
        }
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
            (fact.links, more_to_link) = self.links(head.item_id, None)?;
        }
        let chain = links
            .iter()
            .map(|link| Step { seq: link.seq, event: link.event, at: link.at, commitment: link.commitment })
            .collect();
        let (corrections, more_corrections) = self.corrections(&head, None)?;
        let derived_from =
            head.few.derived_from().iter().copied().filter(|origin| self.is_there(*origin)).collect();
        let more = more_links || more_to_link || more_corrections;
        let (retracted_at, as_of) = (head.ended_at, None);
        let reason = match head.status {
            Status::Retracted => match REASONS.get(&self.gateway.store, &head.item_id) {
                Err(StoreError::Erased) => None,
                reason => reason?,
            },
            _ => reason_of(&seen.whole, *head.meta.author == self.gateway.principal),
        };
        let explained =
            Explained { fact, retracted_at, reason, chain, corrections, derived_from, as_of, more };
        Unhanded::of(&explained, explained.text(), self)
    }

    /// Whether the agent may see an item that is in force.
    pub(super) fn is_there(&self, item: ItemId) -> bool {
        let head = self.gateway.heads.get(item);
        head.is_some_and(|head| self.is_seen(&head))
    }

    /// What changed in a time, as far as it is kept.
    pub fn diff(mut self, asked: &Diff) -> Result<Unhanded, Error> {
        if let Some(at) = asked.as_of {
            return self.diff_then(asked, at);
        }
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
                && sight.sees(head)
                && head.status == Status::Retracted
                && wanted.admits(head, &self)
                && head.ended_at.is_some_and(within)
        });
        let more = more_learned || more_corrected || retracted.len() > limit;
        let retracted = retracted.iter().rev().take(limit).map(|head| head.item_id).collect();
        let (since, as_of, not_kept) = (asked.since, None, 0);
        let differs = Differs { since, until, learned, corrected, retracted, more, as_of, not_kept };
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
        let mut confidence_histogram = vec![0; TENTHS];
        for head in &all {
            let tenth = ((self.confidence(head) * 10.0) as usize).min(TENTHS - 1);
            if let Some(count) = confidence_histogram.get_mut(tenth) {
                *count += 1;
            }
        }
        let taken_back =
            |head: &&Arc<Head>| head.status == Status::Retracted && sight.wrote(head) && sight.sees(head);
        let retracted = self.gateway.heads.all().iter().filter(taken_back).count();
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
            brain: self.gateway.config.brain_name.as_ref().map(ToString::to_string),
            max_facts: self.gateway.config.brain_max_facts,
            over_limit: all.len() > self.gateway.config.brain_max_facts,
            retracted,
            confidence_histogram,
        };
        Unhanded::of(&state, state.text(), self)
    }
}

/// When an item was written, as its id says.
pub(super) fn written_at(item: ItemId) -> Timestamp {
    let mut millis = [0; 8];
    millis[2..].copy_from_slice(&item.to_bytes()[..6]);
    Timestamp::from_millis(i64::from_be_bytes(millis))
}

//! What an agent may see now, as it was at a time (docs/brain.md): the version in force then, believed as it was believed then.
//!
//! Nothing becomes visible by looking back: the record must be one that `memory_explain` would tell this agent now, and a former version
//! one that it would tell. What was erased is not there, and what others took back is not either.

use super::Unhanded;
use super::believing::words_at;
use super::looking::{Looking, VisibleItem, Wanted, reason_of};
use super::reading::written_at;
use crate::error::{Error, MemberError};
use crate::service::Items;
use crate::service::entries::said_in;
use crate::state::schema::{self, AUTHORS};
use crate::state::views;
use oap_agents::Level;
use oap_agents::answers::{Differs, Explained, Fact, Queried, Replaced, Step};
use oap_agents::arguments::{ArgumentError, Diff, Explain, MAX_FACTS, Must, Query, USUAL_FACTS};
use oap_agents::level::{EXTENSION, waits};
use oap_agents::staleness::Staleness;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::chain::{Event, Link};
use oap_memory::{Head, Status};
use oap_soundness::trust::{Known, Trust, trust};
use oap_store::{Rows, StoreError};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Most links of an item's chain that are looked back through.
pub const MAX_LOOKED_BACK: usize = 1000;

/// What an item was at a time.
pub(super) enum Then {
    /// It was in force, or taken back, and said this.
    Said(Box<Said>),
    /// It was not there yet.
    Absent,
    /// What it said is not kept any more, or not told.
    NotKept,
}

/// What an item said at a time.
pub(super) struct Said {
    /// The item with its head as it was; its place in the chain is that of now.
    pub seen: VisibleItem,
    /// The head as it is.
    pub now: Arc<Head>,
    /// Since when its words are believed.
    pub written_at: Timestamp,
    /// When that version came, where it was not the first one.
    pub corrected_at: Option<Timestamp>,
    /// When it had been taken back, where it had.
    pub retracted_at: Option<Timestamp>,
}

/// What a chain says of an item at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stood {
    /// The number of the link whose version was in force, and when it came.
    version: (u32, Timestamp),
    retracted_at: Option<Timestamp>,
    /// Whether the owner had confirmed what it said.
    confirmed: bool,
    /// Whether the owner confirmed something of it later.
    confirmed_later: bool,
}

/// Where an item stood after the last of its links that is not later than `at`; `None` where there was none. `links` are its last ones, the
/// oldest first.
fn stood(links: &[Link], at: Timestamp) -> Option<Stood> {
    let mut stood: Option<Stood> = None;
    for link in links {
        if link.at > at {
            if let Some(stood) = &mut stood {
                stood.confirmed_later |= link.event == Event::Confirm;
            }
            continue;
        }
        let begins = link.seq == 0 || link.event.commits();
        let before = stood;
        let mut now = match (before, begins) {
            (_, true) => Stood {
                version: (link.seq, link.at),
                retracted_at: before.and_then(|before| before.retracted_at),
                confirmed: link.event != Event::Correct && before.is_some_and(|before| before.confirmed),
                confirmed_later: false,
            },
            (Some(before), false) => before,
            // What is known of it begins later.
            (None, false) => continue,
        };
        match link.event {
            Event::Retract => now.retracted_at = Some(link.at),
            Event::Restore => now.retracted_at = None,
            Event::Confirm => now.confirmed = true,
            _ => {}
        }
        stood = Some(now);
    }
    stood
}

/// Who wrote a former version, where that is known: its words of their own where an agent wrote them, and the owner's have none.
pub(crate) fn author_of(
    rows: &impl Rows,
    owner: &Did,
    item: ItemId,
    seq: u32,
    says: &Map<String, Value>,
) -> Result<Option<Did>, Error> {
    if let Some(author) = AUTHORS.get(rows, &(item, seq))? {
        return Ok(Some(author));
    }
    let by_agent = says.get("extensions").is_some_and(|extensions| extensions.get(EXTENSION).is_some());
    Ok((!by_agent).then(|| owner.clone()))
}

impl Looking<'_> {
    /// That a time is not ahead.
    pub(super) fn may_look_back(&self, at: Timestamp) -> Result<(), Error> {
        if at > self.now { Err(ArgumentError::Field("as_of", Must::NotAhead).into()) } else { Ok(()) }
    }

    /// What the agent may look back on: what it sees, and what it took back or wrote and was taken back.
    pub(super) fn seen_or_taken_back(&self) -> Vec<Arc<Head>> {
        let sight = self.agent.sight();
        let mut heads = self.gateway.heads.all();
        heads.retain(|head| {
            self.is_seen(head)
                || (head.status == Status::Retracted
                    && sight.wrote(head)
                    && sight.sees(head)
                    && head.end_of_life.is_none_or(|end| self.now < end))
        });
        heads
    }

    /// Whether its head alone says that an item is not of what is asked for: one that nothing happened to came too late, or one that never had
    /// other words or labels has not those.
    fn is_out(&self, head: &Head, wanted: &Wanted, at: Timestamp) -> bool {
        let came_later = head.seq == 0 && written_at(head.item_id) > at;
        came_later || (head.version_seq == 0 && !wanted.admits(head, self))
    }

    /// What an item that the agent may look back on was at a time.
    pub(super) fn then(&self, head: &Arc<Head>, at: Timestamp) -> Result<Then, Error> {
        let store = &self.gateway.store;
        let links = views::latest_links(store, head.item_id, MAX_LOOKED_BACK)?;
        let Some(stood) = stood(&links, at) else {
            let is_whole = links.first().is_none_or(|link| link.seq == 0);
            return Ok(if is_whole { Then::Absent } else { Then::NotKept });
        };
        let (seq, came_at) = stood.version;
        let (commitment, whole) = if seq == head.version_seq {
            match schema::version(store, head.item_id, seq) {
                Ok(version) => (version.commitment(), schema::whole(&version)?),
                Err(Error::NotFound | Error::Store(StoreError::Erased)) => return Ok(Then::NotKept),
                Err(error) => return Err(error),
            }
        } else {
            match self.former(head, seq)? {
                Some(former) => former,
                None => return Ok(Then::NotKept),
            }
        };
        let (Some(said), Some(written_at)) =
            (said_in(store, head.item_id, seq)?, words_at(store, head.item_id, seq, &whole)?)
        else {
            return Ok(Then::NotKept);
        };
        let then = self.head_then(head, &whole, &stood)?;
        let staleness = Staleness::of(&whole).map(|staleness| (staleness, staleness.is_past(said.at, at)));
        let seen = VisibleItem::new(Arc::new(then), whole, commitment, staleness);
        Ok(Then::Said(Box::new(Said {
            seen,
            now: head.clone(),
            written_at,
            corrected_at: (seq > 0).then_some(came_at),
            retracted_at: stood.retracted_at,
        })))
    }

    /// The head of an item as it was, but for its place in the chain and its visibility, which are those of now.
    fn head_then(&self, head: &Head, whole: &Map<String, Value>, stood: &Stood) -> Result<Head, Error> {
        let (seq, _) = stood.version;
        let mut then = head.clone();
        let owner = &self.gateway.principal;
        if seq != head.version_seq {
            let body = Items(self.gateway).body_said(whole, self.now)?;
            then.take(&body);
            then.version_seq = seq;
            let author = author_of(&self.gateway.store, owner, head.item_id, seq, whole)?;
            let is_owners = author.as_ref() == Some(owner);
            if let Some(author) = author {
                then.write_as(author, owner);
            }
            then.meta.needs_verification = !is_owners && waits(then.confidence.get(), then.meta.visibility);
            then.meta.human_verified = false;
        } else if stood.confirmed_later && !stood.confirmed {
            then.meta.human_verified = false;
            then.meta.needs_verification = *then.meta.author != *owner;
        }
        if stood.confirmed {
            then.meta.human_verified = true;
            then.meta.needs_verification = false;
        }
        then.status = if stood.retracted_at.is_some() { Status::Retracted } else { Status::Current };
        then.ended_at = stood.retracted_at;
        Ok(then)
    }

    /// How far it was believed then, by how the owner lets decay now.
    fn trust_then(&self, said: &Said, at: Timestamp) -> Trust {
        let head = &said.seen.head;
        let level = Level::of(&said.seen.whole, *head.meta.author == self.gateway.principal);
        let confirmed = head.meta.human_verified;
        let known = Known { level, confidence: head.confidence, written_at: said.written_at, confirmed };
        trust(&known, &self.decay_of(head), at)
    }

    /// How sure it was then, 0 to 1.
    pub(super) fn confidence_then(&self, said: &Said, at: Timestamp) -> f64 {
        let trust = self.trust_then(said, at);
        if trust.periods == 0 { said.seen.head.confidence.get() } else { trust.confidence() }
    }

    /// Whether it was in force and believed then.
    pub(super) fn was_told(&self, said: &Said, at: Timestamp) -> bool {
        said.seen.head.is_live(at) && !self.trust_then(said, at).is_gone
    }

    /// Shows what an item said then: it is part of the answer and of its receipt, which rests on the item as it is now.
    fn show_then(&mut self, said: &Said, at: Timestamp) -> Result<Fact, Error> {
        let ends = self.end_of_head(&said.now);
        self.count_then(&said.seen, ends);
        let stale_warning = self.trust_then(said, at).is_stale;
        let fact = self.fact(&said.seen, self.confidence_then(said, at), stale_warning);
        Ok(Fact { agent: self.author_then(said)?, ..fact })
    }

    /// Who wrote it, where that is known.
    pub(super) fn wrote_then(&self, said: &Said) -> Result<Option<Did>, Error> {
        let head = &said.seen.head;
        if head.version_seq == said.now.version_seq {
            return Ok(Some(Did::clone(&head.meta.author)));
        }
        let (owner, store) = (&self.gateway.principal, &self.gateway.store);
        author_of(store, owner, head.item_id, head.version_seq, &said.seen.whole)
    }

    /// The same, as facts have it.
    fn author_then(&self, said: &Said) -> Result<String, Error> {
        Ok(self.wrote_then(said)?.map_or_else(|| UNKNOWN.to_owned(), |author| self.name(&author)))
    }

    /// `memory_query` of a time: the newest first.
    pub fn query_then(mut self, asked: &Query, at: Timestamp) -> Result<Unhanded, Error> {
        self.may_look_back(at)?;
        let wanted = Wanted::new(asked.topic.as_deref(), &asked.tags, &asked.kinds, None);
        let (mut found, mut not_kept) = (Vec::new(), 0);
        for head in self.seen_or_taken_back().into_iter().rev() {
            if asked.before.is_some_and(|before| head.item_id >= before) || self.is_out(&head, &wanted, at) {
                continue;
            }
            let said = match self.then(&head, at)? {
                Then::Said(said) => said,
                Then::Absent => continue,
                Then::NotKept => {
                    not_kept += 1;
                    continue;
                }
            };
            let of = &said.seen.head;
            let fits = self.was_told(&said, at)
                && wanted.admits(of, &self)
                && asked.min_confidence.is_none_or(|least| self.confidence_then(&said, at) >= least.get())
                && asked.needs_verification.is_none_or(|waits| of.meta.needs_verification == waits)
                && asked.since.is_none_or(|since| of.captured_at >= since)
                && asked.until.is_none_or(|until| of.captured_at < until)
                && asked
                    .source
                    .as_ref()
                    .is_none_or(|sort| said.seen.source().is_some_and(|source| source.sort == *sort));
            let by = match &asked.agent {
                Some(by) if fits => *by == self.author_then(&said)? || *by == of.meta.author.to_string(),
                _ => fits,
            };
            if by {
                found.push(head);
            }
        }
        let matched = found.len();
        let (facts, left) = self.fill_then(&found, asked.limit, at)?;
        let next = facts.last().map(|fact: &Fact| fact.item_id).filter(|_| left);
        let queried = Queried { facts, matched, next, sparql: None, as_of: Some(at), not_kept };
        Unhanded::of(&queried, queried.text(), self)
    }

    /// As many as may be and have room; and whether some are left.
    fn fill_then(
        &mut self,
        found: &[Arc<Head>],
        limit: Option<usize>,
        at: Timestamp,
    ) -> Result<(Vec<Fact>, bool), Error> {
        let mut facts = Vec::new();
        let mut left = found.iter();
        while facts.len() < limit.unwrap_or(USUAL_FACTS) {
            let Some(head) = left.next() else { return Ok((facts, false)) };
            let Then::Said(said) = self.then(head, at)? else { continue };
            if !self.has_room(&said.seen) {
                return Ok((facts, true));
            }
            facts.push(self.show_then(&said, at)?);
        }
        Ok((facts, left.next().is_some()))
    }

    /// `memory_explain` of a time.
    pub fn explain_then(mut self, asked: Explain, at: Timestamp) -> Result<Unhanded, Error> {
        self.may_look_back(at)?;
        let now = self.one(asked.item_id)?.head;
        let own = self.agent.sight().wrote(&now);
        let is_over = now.end_of_life.is_some_and(|end| end <= self.now);
        if is_over || !(now.is_live(self.now) || (own && now.status == Status::Retracted)) {
            return Err(Error::NotFound);
        }
        let said = match self.then(&now, at)? {
            Then::Said(said) if own || said.retracted_at.is_none() => said,
            Then::Said(_) | Then::Absent => return Err(Error::Member("as_of", MemberError::NotThen)),
            Then::NotKept => return Err(Error::Member("as_of", MemberError::NotKept)),
        };
        let mut fact = self.show_then(&said, at)?;
        let mut more = false;
        if now.is_live(self.now) && said.retracted_at.is_none() {
            (fact.links, more) = self.links(now.item_id, Some(at))?;
        }
        let mut links = views::latest_links(&self.gateway.store, now.item_id, MAX_LOOKED_BACK)?;
        links.retain(|link| link.at <= at);
        let untold = links.len().saturating_sub(MAX_FACTS);
        more |= untold > 0 || links.first().is_some_and(|link| link.seq > 0);
        let chain = links
            .iter()
            .skip(untold)
            .map(|link| Step { seq: link.seq, event: link.event, at: link.at, commitment: link.commitment })
            .collect();
        let (corrections, more_corrections) = self.corrections(&now, Some(said.seen.head.version_seq))?;
        let few = &said.seen.head.few;
        let derived_from =
            few.derived_from().iter().copied().filter(|origin| self.is_there(*origin)).collect();
        let explained = Explained {
            fact,
            retracted_at: said.retracted_at,
            reason: match said.retracted_at {
                None => reason_of(&said.seen.whole, *said.seen.head.meta.author == self.gateway.principal),
                // Why it is taken back now; of a time before it was put back nothing is kept.
                Some(_) if now.status == Status::Retracted && now.ended_at.is_some_and(|end| end <= at) => {
                    match schema::REASONS.get(&self.gateway.store, &now.item_id) {
                        Err(StoreError::Erased) => None,
                        reason => reason?,
                    }
                }
                Some(_) => None,
            },
            chain,
            corrections,
            derived_from,
            as_of: Some(at),
            more: more || more_corrections,
        };
        Unhanded::of(&explained, explained.text(), self)
    }

    /// `memory_diff` as it would have been told then.
    pub fn diff_then(mut self, asked: &Diff, at: Timestamp) -> Result<Unhanded, Error> {
        self.may_look_back(at)?;
        let wanted = Wanted::new(asked.topic.as_deref(), &[], &[], None);
        let until = asked.until.unwrap_or(at);
        let within = |time: Timestamp| time >= asked.since && time < until;
        let sight_of = self.agent.clone();
        let (mut learned, mut corrected, mut retracted, mut not_kept) =
            (Vec::new(), Vec::new(), Vec::new(), 0);
        for head in self.seen_or_taken_back().into_iter().rev() {
            if self.is_out(&head, &wanted, at) {
                continue;
            }
            let said = match self.then(&head, at)? {
                Then::Said(said) if wanted.admits(&said.seen.head, &self) => said,
                Then::Said(_) | Then::Absent => continue,
                Then::NotKept => {
                    not_kept += 1;
                    continue;
                }
            };
            if let Some(taken_back) = said.retracted_at {
                if within(taken_back) && sight_of.sight().wrote(&head) {
                    retracted.push(head.item_id);
                }
                continue;
            }
            if !self.was_told(&said, at) {
                continue;
            }
            if within(written_at(head.item_id)) {
                learned.push(head);
            } else if said.corrected_at.is_some_and(within) {
                corrected.push(head);
            }
        }
        let limit = asked.limit.unwrap_or(USUAL_FACTS);
        let (learned, more_learned) = self.fill_then(&learned, asked.limit, at)?;
        let (corrected, more_corrected) = self.fill_then(&corrected, asked.limit, at)?;
        let more = more_learned || more_corrected || retracted.len() > limit;
        retracted.truncate(limit);
        let since = asked.since;
        let differs =
            Differs { since, until, learned, corrected, retracted, more, as_of: Some(at), not_kept };
        Unhanded::of(&differs, differs.text(), self)
    }

    /// The former versions that are kept and told ([`Looking::former`]), the newest first, of those before that link where one is
    /// named. As many as may be and have room; and whether some are left.
    pub(super) fn corrections(
        &mut self,
        head: &Head,
        before: Option<u32>,
    ) -> Result<(Vec<Replaced>, bool), Error> {
        let mut corrections = Vec::new();
        for (seq, replaced_at) in head.replaced.iter().rev() {
            if before.is_some_and(|before| *seq >= before) {
                continue;
            }
            let Some((commitment, says)) = self.former(head, *seq)? else { continue };
            let text = says.get("content").and_then(|content| content.get("text")?.as_str());
            let bytes = text.map_or(0, str::len);
            if corrections.len() == MAX_FACTS || !self.has_room_for(bytes) {
                return Ok((corrections, true));
            }
            let (owner, store) = (&self.gateway.principal, &self.gateway.store);
            let author = author_of(store, owner, head.item_id, *seq, &says)?;
            self.show_former(head.item_id, commitment, bytes);
            let reason = reason_of(&says, author.as_ref() == Some(owner));
            corrections.push(Replaced {
                reason,
                version: seq.saturating_add(1),
                content: text.map(str::to_owned),
                agent: author.map(|author| self.name(&author)),
                replaced_at: *replaced_at,
            });
        }
        Ok((corrections, false))
    }
}

/// Whose word it is where nothing says so any more: of a version that was replaced before that was kept, or came in a bundle.
const UNKNOWN: &str = "unknown";

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::{Hash, ReceiptId};

    fn links(events: &[(Event, i64)]) -> Vec<Link> {
        let link = |(seq, (event, at)): (u32, &(Event, i64))| Link {
            item_id: ItemId::from_bytes([1; 16]),
            seq,
            event: *event,
            at: Timestamp::from_seconds(*at),
            actor: "did:web:owner.example".parse().unwrap(),
            commitment: Hash::from_bytes([0; 32]),
            prev: Link::write_prev(None),
            receipt: ReceiptId::from_bytes([1; 16]),
            signature: String::new(),
        };
        (0..).zip(events).map(link).collect()
    }

    #[test]
    fn a_chain_says_where_an_item_stood() {
        use Event::{Capture, Confirm, Correct, Relabel, Restore, Retract};
        let chain = links(&[
            (Capture, 10),
            (Confirm, 20),
            (Relabel, 30),
            (Correct, 40),
            (Retract, 50),
            (Restore, 60),
            (Confirm, 70),
        ]);
        let at = |seconds: i64| stood(&chain, Timestamp::from_seconds(seconds));
        let told = |seconds: i64| {
            at(seconds).map(|stood| (stood.version.0, stood.confirmed, stood.retracted_at.is_some()))
        };
        assert_eq!(at(9), None);
        assert_eq!((told(10), told(19)), (Some((0, false, false)), Some((0, false, false))));
        assert_eq!(told(20), Some((0, true, false)));
        // Other labels take no confirmation, other words do.
        assert_eq!((told(30), told(40)), (Some((2, true, false)), Some((3, false, false))));
        assert_eq!((told(55), told(60)), (Some((3, false, true)), Some((3, false, false))));
        assert!(at(60).unwrap().confirmed_later && !at(70).unwrap().confirmed_later);
        assert_eq!(at(55).unwrap().retracted_at, Some(Timestamp::from_seconds(50)));
    }

    /// Where the beginning of a long chain was not read, nothing is made up of what came before.
    #[test]
    fn what_was_not_read_is_not_guessed() {
        let chain =
            links(&[(Event::Capture, 10), (Event::Retract, 20), (Event::Restore, 30), (Event::Correct, 40)]);
        let read = &chain[1..];
        assert_eq!(stood(read, Timestamp::from_seconds(35)), None);
        assert_eq!(stood(read, Timestamp::from_seconds(40)).unwrap().version.0, 3);
    }
}

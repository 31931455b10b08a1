//! Events, and what is known after them (RFC 0010 A.5 to A.8; van Ditmarsch et al. 2008, chapter 6).
//!
//! An event may happen in several ways; each agent tells some of the ways apart and not others, and some ways show an
//! agent whether propositions hold. After the event there is a world for every world before and every way that could
//! happen in it.

use super::model::{Agent, Model, Partition, Proposition};
use std::collections::BTreeMap;

/// One way in which an event may happen.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// Where it can: only where this proposition holds; everywhere if absent.
    pub only_if: Option<Proposition>,
    /// What it shows to whom.
    pub shows: BTreeMap<Agent, Vec<Proposition>>,
    /// Propositions that hold after it and nowhere else: that it happened.
    pub leaves: Option<Proposition>,
}

/// An event.
#[derive(Debug, Clone)]
pub struct Event {
    /// The ways, the actual one first.
    pub ways: Vec<Way>,
    /// What each agent tells apart of the ways; an agent that is not named tells nothing apart.
    pub sees: BTreeMap<Agent, Partition>,
}

impl Model {
    /// The model after an event, and for every world before the one after it in which the first way happened, where it
    /// could.
    #[must_use]
    pub fn after(&self, event: &Event) -> (Self, Vec<Option<usize>>) {
        let mut pairs = Vec::new();
        for world in 0..self.worlds() {
            for (number, way) in event.ways.iter().enumerate() {
                if way.only_if.as_ref().is_none_or(|p| self.holds(p, world)) {
                    pairs.push((world, number));
                }
            }
        }
        let relations =
            self.agents().map(|agent| (agent.clone(), self.sees_after(agent, event, &pairs))).collect();
        let mut extra: BTreeMap<Proposition, Vec<bool>> = BTreeMap::new();
        for (number, way) in event.ways.iter().enumerate() {
            if let Some(left) = &way.leaves {
                let holds = extra.entry(left.clone()).or_insert_with(|| vec![false; pairs.len()]);
                pairs
                    .iter()
                    .enumerate()
                    .filter(|(_, pair)| pair.1 == number)
                    .for_each(|(i, _)| holds[i] = true);
            }
        }
        let origin: Vec<usize> = pairs.iter().map(|pair| pair.0).collect();
        let extra: Vec<_> = extra.into_iter().collect();
        let after = self.with_parts(pairs.len().max(1), &origin, relations, &extra);
        let actual = (0..self.worlds()).map(|w| pairs.iter().position(|pair| *pair == (w, 0))).collect();
        (after, actual)
    }

    fn sees_after(&self, agent: &str, event: &Event, pairs: &[(usize, usize)]) -> Partition {
        let before = self.relation(agent);
        let ways = event.sees.get(agent).cloned().unwrap_or_else(|| Partition::blind(event.ways.len()));
        let mut firsts: Vec<usize> = Vec::new();
        let classes = (0..pairs.len()).map(|i| {
            let alike = |first: &usize| {
                let ((w, e), (v, f)) = (pairs[i], pairs[*first]);
                let shown = event.ways[e].shows.get(agent).map(Vec::as_slice).unwrap_or_default();
                before.joins(w, v)
                    && ways.joins(e, f)
                    && shown.iter().all(|p| self.holds(p, w) == self.holds(p, v))
            };
            firsts.iter().position(alike).unwrap_or_else(|| {
                firsts.push(i);
                firsts.len() - 1
            })
        });
        Partition::new(classes.collect())
    }
}

/// A grant that arrives or does not (A.5, A.8): the grantee sees which, and if it does, whether the disclosed
/// propositions hold. The granter cannot tell. `leaves` names that it arrived.
#[must_use]
pub fn grant(grantee: &str, disclosed: &[&str], leaves: &str) -> Event {
    let shows = disclosed.iter().map(|&p| p.to_owned()).collect();
    let arrived = Way {
        shows: BTreeMap::from([(grantee.to_owned(), shows)]),
        leaves: Some(leaves.to_owned()),
        ..Way::default()
    };
    Event {
        ways: vec![arrived, Way::default()],
        sees: BTreeMap::from([(grantee.to_owned(), Partition::seeing(2))]),
    }
}

/// An acknowledgement that arrives or does not: it can only be sent where `of` happened, and its receiver alone sees
/// that it arrived.
#[must_use]
pub fn acknowledge(receiver: &str, of: &str, leaves: &str) -> Event {
    let arrived = Way { only_if: Some(of.to_owned()), leaves: Some(leaves.to_owned()), ..Way::default() };
    Event {
        ways: vec![arrived, Way::default()],
        sees: BTreeMap::from([(receiver.to_owned(), Partition::seeing(2))]),
    }
}

/// A joint receipt (A.7.1): both sign at once, and both see it: whether the propositions hold is open to all of them.
#[must_use]
pub fn joint_receipt(coalition: &[&str], attested: &[&str]) -> Event {
    let shown: Vec<Proposition> = attested.iter().map(|&p| p.to_owned()).collect();
    let shows = coalition.iter().map(|&agent| (agent.to_owned(), shown.clone())).collect();
    Event { ways: vec![Way { shows, ..Way::default() }], sees: BTreeMap::new() }
}

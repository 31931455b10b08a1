//! Kripke models (RFC 0010 A.1): finitely many worlds, an equivalence relation for each agent, a valuation.

use std::collections::{BTreeMap, BTreeSet};

/// An agent, by its DID or any other name.
pub type Agent = String;
/// An atomic proposition: `subject has property with value`.
pub type Proposition = String;

/// An equivalence relation on worlds: the class of each. Reflexive, symmetric and transitive by construction, which makes
/// knowledge S5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition(Vec<usize>);

impl Partition {
    /// From the class of each world.
    #[must_use]
    pub fn new(classes: Vec<usize>) -> Self {
        Self(classes)
    }

    /// Of so many worlds, none told apart.
    #[must_use]
    pub fn blind(worlds: usize) -> Self {
        Self(vec![0; worlds])
    }

    /// Of so many worlds, each told apart.
    #[must_use]
    pub fn seeing(worlds: usize) -> Self {
        Self((0..worlds).collect())
    }

    /// Whether two worlds are not told apart.
    #[must_use]
    pub fn joins(&self, one: usize, other: usize) -> bool {
        self.0[one] == self.0[other]
    }

    /// Whether this tells apart whatever the other tells apart.
    #[must_use]
    pub fn refines(&self, other: &Self) -> bool {
        let worlds = 0..self.0.len();
        worlds.clone().all(|w| worlds.clone().all(|v| !self.joins(w, v) || other.joins(w, v)))
    }
}

/// A model.
#[derive(Debug, Clone)]
pub struct Model {
    worlds: usize,
    relations: BTreeMap<Agent, Partition>,
    valuation: BTreeMap<Proposition, Vec<bool>>,
    /// How sure an agent is of a world among those that it considers possible, 0 to 1; 1 where nothing is said.
    confidence: BTreeMap<Agent, Vec<f64>>,
    possessed: BTreeSet<(Agent, Proposition)>,
    /// From which confidence on an agent believes (A.2), 0.5 by default.
    pub threshold: f64,
}

impl Model {
    /// A model of so many worlds, at least one, with nobody in it.
    #[must_use]
    pub fn new(worlds: usize) -> Self {
        Self {
            worlds: worlds.max(1),
            relations: BTreeMap::new(),
            valuation: BTreeMap::new(),
            confidence: BTreeMap::new(),
            possessed: BTreeSet::new(),
            threshold: 0.5,
        }
    }

    /// Puts an agent in. A partition of another number of worlds is the blind one.
    #[must_use]
    pub fn agent(mut self, agent: &str, sees: Partition) -> Self {
        let sees = if sees.0.len() == self.worlds { sees } else { Partition::blind(self.worlds) };
        self.relations.insert(agent.to_owned(), sees);
        self
    }

    /// Says where a proposition holds; nowhere beyond what is given.
    #[must_use]
    pub fn proposition(mut self, proposition: &str, mut holds: Vec<bool>) -> Self {
        holds.resize(self.worlds, false);
        self.valuation.insert(proposition.to_owned(), holds);
        self
    }

    /// The worlds.
    #[must_use]
    pub const fn worlds(&self) -> usize {
        self.worlds
    }

    /// The agents.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.relations.keys()
    }

    /// What an agent tells apart; nothing, for one that is not there.
    #[must_use]
    pub fn relation(&self, agent: &str) -> Partition {
        self.relations.get(agent).cloned().unwrap_or_else(|| Partition::blind(self.worlds))
    }

    /// Whether a proposition holds at a world.
    #[must_use]
    pub fn holds(&self, proposition: &str, world: usize) -> bool {
        self.valuation.get(proposition).is_some_and(|holds| holds[world])
    }

    /// How sure an agent is of a world among those that it considers possible.
    #[must_use]
    pub fn confidence(&self, agent: &str, world: usize) -> f64 {
        self.confidence.get(agent).map_or(1.0, |of| of[world])
    }

    /// Whether an agent has an item that states a proposition (A.3).
    #[must_use]
    pub fn possesses(&self, agent: &str, proposition: &str) -> bool {
        self.possessed.contains(&(agent.to_owned(), proposition.to_owned()))
    }

    /// An agent receives an item that states a proposition, with a confidence (A.3, A.6.2). Certainty tells worlds
    /// apart; anything less makes those in which the proposition holds more believable, and tells nothing apart.
    #[must_use]
    pub fn deliver(mut self, agent: &str, proposition: &str, confidence: f64) -> Self {
        self.possessed.insert((agent.to_owned(), proposition.to_owned()));
        if confidence >= 1.0 {
            return self.discriminate(agent, &[proposition]);
        }
        let sure = (0..self.worlds)
            .map(|w| {
                let weight = if self.holds(proposition, w) { confidence } else { 1.0 - confidence };
                weight.min(self.confidence(agent, w))
            })
            .collect();
        self.confidence.insert(agent.to_owned(), sure);
        self
    }

    /// The update as A.5 writes it down: an agent tells worlds apart that differ in one of these propositions; everybody
    /// else as before.
    #[must_use]
    pub fn discriminate(mut self, agent: &str, propositions: &[&str]) -> Self {
        let before = self.relation(agent);
        let mut classes: BTreeMap<(usize, Vec<bool>), usize> = BTreeMap::new();
        let refined = (0..self.worlds)
            .map(|w| {
                let values = propositions.iter().map(|p| self.holds(p, w)).collect();
                let next = classes.len();
                *classes.entry((before.0[w], values)).or_insert(next)
            })
            .collect();
        self.relations.insert(agent.to_owned(), Partition(refined));
        self
    }

    pub(super) fn with_parts(
        &self,
        worlds: usize,
        origin: &[usize],
        relations: BTreeMap<Agent, Partition>,
        extra: &[(Proposition, Vec<bool>)],
    ) -> Self {
        let taken = |values: &Vec<bool>| origin.iter().map(|w| values[*w]).collect::<Vec<bool>>();
        let mut valuation: BTreeMap<_, _> =
            self.valuation.iter().map(|(name, holds)| (name.clone(), taken(holds))).collect();
        valuation.extend(extra.iter().cloned());
        let confidence = self
            .confidence
            .iter()
            .map(|(agent, sure)| (agent.clone(), origin.iter().map(|w| sure[*w]).collect()));
        Self {
            worlds,
            relations,
            valuation,
            confidence: confidence.collect(),
            possessed: self.possessed.clone(),
            threshold: self.threshold,
        }
    }
}

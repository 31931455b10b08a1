//! Formulas, and where they are true (RFC 0010 A.2 to A.4).

use super::model::{Agent, Model, Proposition};

/// A formula.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Formula {
    Holds(Proposition),
    /// True where the other is not.
    Not(Box<Formula>),
    /// True where both are.
    And(Box<Formula>, Box<Formula>),
    /// An agent knows: true at every world that it considers possible.
    Knows(Agent, Box<Formula>),
    /// An agent believes: true at every world that it considers possible and is sure enough of, and there is one.
    Believes(Agent, Box<Formula>),
    /// An agent has an item that states an atom.
    Possesses(Agent, Proposition),
    /// Everyone of a coalition knows that everyone knows …, so many times.
    Everyone(Vec<Agent>, usize, Box<Formula>),
    /// Common knowledge of a coalition: true at every world that a chain of their relations reaches.
    Common(Vec<Agent>, Box<Formula>),
}

impl Formula {
    /// An atom.
    #[must_use]
    pub fn holds(proposition: &str) -> Self {
        Self::Holds(proposition.to_owned())
    }

    /// The formula that is true where this one is not.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// An agent knows it.
    #[must_use]
    pub fn known_by(self, agent: &str) -> Self {
        Self::Knows(agent.to_owned(), Box::new(self))
    }

    /// An agent believes it.
    #[must_use]
    pub fn believed_by(self, agent: &str) -> Self {
        Self::Believes(agent.to_owned(), Box::new(self))
    }

    /// Everyone of a coalition knows it, so many times over.
    #[must_use]
    pub fn known_by_all(self, coalition: &[&str], times: usize) -> Self {
        Self::Everyone(coalition.iter().map(|&a| a.to_owned()).collect(), times, Box::new(self))
    }

    /// It is common knowledge of a coalition.
    #[must_use]
    pub fn common_to(self, coalition: &[&str]) -> Self {
        Self::Common(coalition.iter().map(|&a| a.to_owned()).collect(), Box::new(self))
    }
}

impl Model {
    /// Whether a formula is true at a world.
    #[must_use]
    pub fn is_true(&self, formula: &Formula, world: usize) -> bool {
        self.truth(formula)[world]
    }

    /// Where a formula is true.
    #[must_use]
    pub fn truth(&self, formula: &Formula) -> Vec<bool> {
        let all = 0..self.worlds();
        match formula {
            Formula::Holds(p) => all.map(|w| self.holds(p, w)).collect(),
            Formula::Not(inner) => self.truth(inner).into_iter().map(|t| !t).collect(),
            Formula::And(one, other) => {
                self.truth(one).into_iter().zip(self.truth(other)).map(|(a, b)| a && b).collect()
            }
            Formula::Knows(agent, inner) => self.known(agent, &self.truth(inner)),
            Formula::Believes(agent, inner) => self.believed(agent, &self.truth(inner)),
            Formula::Possesses(agent, p) => vec![self.possesses(agent, p); self.worlds()],
            Formula::Everyone(coalition, times, inner) => {
                (0..*times).fold(self.truth(inner), |true_at, _| self.everyone(coalition, &true_at))
            }
            Formula::Common(coalition, inner) => {
                // The greatest set of worlds within the formula that no relation leads out of.
                let mut true_at = self.everyone(coalition, &self.truth(inner));
                loop {
                    let both = self.everyone(coalition, &true_at);
                    let next: Vec<bool> = true_at.iter().zip(both).map(|(a, b)| *a && b).collect();
                    if next == true_at {
                        return true_at;
                    }
                    true_at = next;
                }
            }
        }
    }

    fn everyone(&self, coalition: &[Agent], true_at: &[bool]) -> Vec<bool> {
        let each: Vec<Vec<bool>> = coalition.iter().map(|agent| self.known(agent, true_at)).collect();
        (0..self.worlds()).map(|w| each.iter().all(|known| known[w])).collect()
    }

    fn known(&self, agent: &str, true_at: &[bool]) -> Vec<bool> {
        let sees = self.relation(agent);
        let all = 0..self.worlds();
        all.clone().map(|w| all.clone().all(|v| !sees.joins(w, v) || true_at[v])).collect()
    }

    /// Belief is defined on the worlds of a class that the agent is sure enough of: the same for all of the class, so
    /// that it is transitive and Euclidean; where there is none, the agent believes nothing.
    fn believed(&self, agent: &str, true_at: &[bool]) -> Vec<bool> {
        let sees = self.relation(agent);
        let all = 0..self.worlds();
        all.clone()
            .map(|w| {
                let mut sure =
                    all.clone().filter(|v| sees.joins(w, *v) && self.confidence(agent, *v) >= self.threshold);
                let first = sure.next();
                first.is_some_and(|v| true_at[v]) && sure.all(|v| true_at[v])
            })
            .collect()
    }
}

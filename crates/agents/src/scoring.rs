//! How well a fact answers what is asked (Trails ADR-0051 4): five parts, each 0 to 1, by weights that sum to 1.
//!
//! | part | what it is |
//! |---|---|
//! | text | how well its words match, beside the best match of what its caller sees |
//! | topic | 1 of the topic that is asked for; else how many of its topic's words are asked for |
//! | recency | a half for every 30 days since it became known, by whole hours |
//! | confidence | how sure it is now |
//! | graph | a half for every link that lies between it and what is named as near |
//!
//! All of them are of what the caller sees: what it does not see makes no part greater or smaller.

use oap_identity::Timestamp;
use oap_memory::text::{Language, terms};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// After so many days what became known counts half for its recency.
pub const HALF_LIFE_DAYS: f64 = 30.0;
/// Most links between an item and what is named as near: beyond them it is not near.
pub const MAX_STEPS: u32 = 2;
/// Most links that one recall follows; what lies behind further ones is not near.
pub const MAX_FOLLOWED: usize = 1000;
/// By how much the weights may miss 1, for fractions are binary.
const SUM_WITHIN: f64 = 1e-6;
/// An hour, in milliseconds.
const HOUR: i64 = 3_600_000;

/// What each part counts: 0 to 1 each, 1 together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Given")]
pub struct Weights {
    text: f64,
    topic: f64,
    recency: f64,
    confidence: f64,
    graph: f64,
}

/// Weights as they are given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "text, topic, recency, confidence and graph, a number each")]
struct Given {
    text: f64,
    topic: f64,
    recency: f64,
    confidence: f64,
    graph: f64,
}

/// Why weights were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightError {
    /// One that is out of its bounds.
    #[error("{0} must be 0 to 1")]
    Range(&'static str),
    /// Together they are not all.
    #[error("text, topic, recency, confidence and graph must sum to 1")]
    Sum,
}

impl TryFrom<Given> for Weights {
    type Error = WeightError;

    fn try_from(given: Given) -> Result<Self, WeightError> {
        let Given { text, topic, recency, confidence, graph } = given;
        let all = [
            ("text", text),
            ("topic", topic),
            ("recency", recency),
            ("confidence", confidence),
            ("graph", graph),
        ];
        // What is no number is in no range.
        if let Some((name, _)) = all.iter().find(|(_, weight)| !(0.0..=1.0).contains(weight)) {
            return Err(WeightError::Range(name));
        }
        let sum: f64 = all.iter().map(|(_, weight)| weight).sum();
        if (sum - 1.0).abs() > SUM_WITHIN {
            return Err(WeightError::Sum);
        }
        Ok(Self { text, topic, recency, confidence, graph })
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self { text: 0.7, topic: 0.1, recency: 0.05, confidence: 0.05, graph: 0.1 }
    }
}

/// What is known of a fact, each 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the names are those of the table above")]
pub struct Signals {
    pub text: f64,
    pub topic: f64,
    pub recency: f64,
    pub confidence: f64,
    pub graph: f64,
}

/// What each part adds to the score; their sum is the score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreParts {
    /// By its words.
    pub text: f64,
    /// By its topic.
    pub topic: f64,
    /// By when it became known.
    pub recency: f64,
    /// By how sure it is.
    pub confidence: f64,
    /// By its links to what was named as near.
    pub graph: f64,
}

impl ScoreParts {
    /// The score, 0 to 1.
    #[must_use]
    pub fn score(self) -> f64 {
        self.text + self.topic + self.recency + self.confidence + self.graph
    }
}

impl Weights {
    /// What each part of a fact adds to its score.
    #[must_use]
    pub fn weigh(self, signals: Signals) -> ScoreParts {
        let part =
            |weight: f64, signal: f64| if signal.is_finite() { weight * signal.clamp(0.0, 1.0) } else { 0.0 };
        ScoreParts {
            text: part(self.text, signals.text),
            topic: part(self.topic, signals.topic),
            recency: part(self.recency, signals.recency),
            confidence: part(self.confidence, signals.confidence),
            graph: part(self.graph, signals.graph),
        }
    }
}

/// How recent something is that became known then; 1 where that lies ahead. Within an hour it is the same, so that who asks twice is answered
/// alike.
#[must_use]
pub fn recency(known_at: Timestamp, now: Timestamp) -> f64 {
    let hours = now.millis().saturating_sub(known_at.millis()).max(0) / HOUR;
    let days = hours as f64 / 24.0;
    0.5_f64.powf(days / HALF_LIFE_DAYS)
}

/// How near something is that so many links lie between; 0 where it is not near.
#[must_use]
pub fn proximity(steps: Option<u32>) -> f64 {
    steps.filter(|steps| *steps <= MAX_STEPS).map_or(0.0, |steps| 0.5_f64.powi(steps.cast_signed()))
}

/// What topics are compared with.
#[derive(Debug, Clone)]
pub struct TopicAsked<'a> {
    topic: Option<&'a str>,
    words: BTreeSet<String>,
    language: Language,
}

impl<'a> TopicAsked<'a> {
    /// The topic that is asked for, if one is, and the words that are looked for.
    #[must_use]
    pub fn new(topic: Option<&'a str>, words: &str, language: Language) -> Self {
        Self { topic, words: meaning(words, language).collect(), language }
    }

    /// How well a topic fits.
    #[must_use]
    pub fn fits(&self, topic: Option<&str>) -> f64 {
        let Some(topic) = topic else { return 0.0 };
        if self.topic == Some(topic) {
            return 1.0;
        }
        let own: BTreeSet<String> = meaning(topic, self.language).collect();
        if own.is_empty() {
            return 0.0;
        }
        own.intersection(&self.words).count() as f64 / own.len() as f64
    }
}

/// The words of a text that mean something.
fn meaning(text: &str, language: Language) -> impl Iterator<Item = String> + use<> {
    terms(text, language).into_iter().filter(|term| !term.stop).map(|term| term.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::time::Duration;

    fn given(weights: [f64; 5]) -> serde_json::Result<Weights> {
        let [text, topic, recency, confidence, graph] = weights;
        let given = json!({"text": text, "topic": topic, "recency": recency, "confidence": confidence, "graph": graph});
        serde_json::from_value(given)
    }

    #[test]
    fn weights_are_0_to_1_and_sum_to_1() {
        assert!(given([0.2, 0.2, 0.2, 0.2, 0.2]).is_ok() && given([1.0, 0.0, 0.0, 0.0, 0.0]).is_ok());
        // Tenths have no exact sum in binary.
        assert!(given([0.1, 0.2, 0.3, 0.3, 0.1]).is_ok());
        assert!(given([0.5, 0.5, 0.5, 0.0, 0.0]).unwrap_err().to_string().contains("must sum to 1"));
        assert!(given([1.5, -0.5, 0.0, 0.0, 0.0]).unwrap_err().to_string().contains("text must be 0 to 1"));
        assert!(given([0.5, 0.7, 0.0, 0.0, -0.2]).unwrap_err().to_string().contains("graph must be 0 to 1"));
        let unknown = json!({"text": 1, "topic": 0, "recency": 0, "confidence": 0, "graph": 0, "luck": 0});
        assert!(serde_json::from_value::<Weights>(unknown).unwrap_err().to_string().contains("luck"));
        // What is usual is what would be taken.
        let usual = serde_json::to_value(Weights::default()).unwrap();
        assert_eq!(serde_json::from_value::<Weights>(usual).unwrap(), Weights::default());
    }

    #[test]
    fn what_is_older_is_less_recent_and_what_lies_ahead_is_as_new_as_now() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let days = |days: u64| Duration::from_secs(days * 86_400);
        assert!((recency(now, now) - 1.0).abs() < 1e-9);
        assert!((recency(now.plus(days(1)), now) - 1.0).abs() < 1e-9);
        assert!((recency(now.minus(days(30)), now) - 0.5).abs() < 1e-9);
        assert!((recency(now.minus(days(60)), now) - 0.25).abs() < 1e-9);
        let minutes = |minutes: u64| recency(now.minus(Duration::from_secs(minutes * 60)), now);
        assert!(minutes(0).total_cmp(&minutes(59)).is_eq() && minutes(60) < minutes(59));
        assert!(recency(Timestamp::from_millis(i64::MIN), now) >= 0.0);
    }

    #[test]
    fn each_link_between_halves_what_is_near() {
        let near: Vec<f64> = [Some(0), Some(1), Some(2), Some(3), None].map(proximity).to_vec();
        assert_eq!(near, [1.0, 0.5, 0.25, 0.0, 0.0]);
    }

    #[test]
    fn a_topic_fits_by_name_or_by_its_words() {
        let english = Language::English;
        let asked = TopicAsked::new(None, "Which trains run in winter?", english);
        assert_eq!(asked.fits(Some("train")), 1.0);
        assert_eq!(asked.fits(Some("winter coats")), 0.5);
        assert_eq!((asked.fits(Some("tea")), asked.fits(None), asked.fits(Some("the"))), (0.0, 0.0, 0.0));
        assert_eq!(TopicAsked::new(Some("tea"), "x", english).fits(Some("tea")), 1.0);
    }

    proptest! {
        /// Whatever is weighed: no part is negative or more than its weight, and together they are no more than 1.
        #[test]
        fn parts_are_bounded_by_their_weights(
            raw in prop::array::uniform5(0.0_f64..1.0), signals in prop::array::uniform5(-2.0_f64..2.0),
        ) {
            let sum: f64 = raw.iter().sum();
            prop_assume!(sum > 0.01);
            let weights = given(raw.map(|weight| weight / sum)).unwrap();
            let [text, topic, recency, confidence, graph] = signals;
            let parts = weights.weigh(Signals { text, topic, recency, confidence, graph });
            let pairs = [
                (parts.text, weights.text), (parts.topic, weights.topic), (parts.recency, weights.recency),
                (parts.confidence, weights.confidence), (parts.graph, weights.graph),
            ];
            prop_assert!(pairs.iter().all(|(part, weight)| (0.0..=*weight).contains(part)));
            prop_assert!((0.0..=1.0 + 1e-6).contains(&parts.score()));
        }

        /// What is no number adds nothing.
        #[test]
        fn what_is_no_number_adds_nothing(which in 0..3_usize) {
            let no = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][which];
            let signals = Signals { text: no, topic: no, recency: no, confidence: no, graph: no };
            prop_assert_eq!(Weights::default().weigh(signals).score(), 0.0);
        }
    }
}

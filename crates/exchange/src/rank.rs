//! Ranking over one view: BM25 with the view's own statistics (protocol sections 0 and 6).
//!
//! Turns of a conversation are matched in their context: the words of the turns before and after count a little
//! towards a turn, because the answer to a question often stands one turn below it and does not repeat it.

use oap_identity::Timestamp;
use oap_memory::Kind;
use oap_memory::text::{Language, Term, terms};
use std::collections::BTreeMap;
use std::time::Duration;

const K1: f32 = 1.2;
const B: f32 = 0.75;
/// What the words of the next turn and of the one after it count.
const CONTEXT: [f32; 2] = [0.5, 0.2];
/// Turns further apart than this belong to different conversations.
const CONVERSATION_GAP: Duration = Duration::from_secs(30 * 60);

/// What is matched of one item: what its grantee sees of it, nothing else.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Document<'a> {
    /// Everything visible as text.
    pub text: &'a str,
    pub kind: Kind,
    /// When it was captured.
    pub captured_at: Timestamp,
}

/// An inverted index over the documents of one view.
#[derive(Debug, Clone, Default)]
pub struct Index {
    language: Language,
    postings: BTreeMap<String, Postings>,
    lengths: Vec<f32>,
    average: f32,
}

#[derive(Debug, Clone, Default)]
struct Postings {
    /// How many documents hold the word themselves.
    holders: u32,
    /// Document and weighted frequency, ascending by document.
    entries: Vec<(u32, f32)>,
}

impl Index {
    /// Indexes documents, numbered as they come.
    #[must_use]
    pub fn build(documents: &[Document], language: Language) -> Self {
        let words: Vec<BTreeMap<Term, f32>> = documents.iter().map(|d| counts(d.text, language)).collect();
        let context = contexts(documents);
        let mut index = Self { language, lengths: Vec::with_capacity(documents.len()), ..Self::default() };
        for (number, own) in words.iter().enumerate() {
            let mut weighted = own.clone();
            for (neighbour, weight) in &context[number] {
                for (term, count) in &words[*neighbour] {
                    *weighted.entry(term.clone()).or_default() += weight * count;
                }
            }
            index.lengths.push(weighted.iter().filter(|(t, _)| !t.stop).map(|(_, c)| c).sum());
            for (term, frequency) in weighted {
                let holds = own.contains_key(&term);
                let postings = index.postings.entry(term.text).or_default();
                postings.holders += u32::from(holds);
                postings.entries.push((u32::try_from(number).unwrap_or(u32::MAX), frequency));
            }
        }
        let total: f32 = index.lengths.iter().sum();
        index.average = (total / index.lengths.len().max(1) as f32).max(1.0);
        index
    }

    /// How much memory it takes, in bytes, about: nodes of the tree count as if they were full.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        let word = |(word, postings): (&String, &Postings)| {
            word.len()
                + size_of::<String>()
                + size_of::<Postings>()
                + postings.entries.capacity() * size_of::<(u32, f32)>()
        };
        self.postings.iter().map(word).sum::<usize>() + self.lengths.capacity() * size_of::<f32>()
    }

    /// The score of every document for a query, 0 where nothing matches. Depends on the documents and the query
    /// alone; each word of the query counts once.
    #[must_use]
    pub fn score(&self, query: &str) -> Vec<f32> {
        let mut asked = terms(query, self.language);
        if asked.iter().any(|term| !term.stop) {
            asked.retain(|term| !term.stop);
        }
        asked.sort_unstable();
        asked.dedup();
        let mut scores = vec![0.0; self.lengths.len()];
        let total = self.lengths.len() as f32;
        for term in asked {
            let Some(postings) = self.postings.get(&term.text) else { continue };
            let holders = postings.holders as f32;
            let rarity = (1.0 + (total - holders + 0.5) / (holders + 0.5)).ln();
            for (document, frequency) in &postings.entries {
                let length = self.lengths[*document as usize] / self.average;
                scores[*document as usize] +=
                    rarity * frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length));
            }
        }
        scores
    }
}

fn counts(text: &str, language: Language) -> BTreeMap<Term, f32> {
    let mut counts = BTreeMap::new();
    for term in terms(text, language) {
        *counts.entry(term).or_default() += 1.0;
    }
    counts
}

/// For each document, the turns around it in its conversation and what their words count.
fn contexts(documents: &[Document]) -> Vec<Vec<(usize, f32)>> {
    let mut turns: Vec<usize> =
        (0..documents.len()).filter(|i| documents[*i].kind == Kind::ConversationTurn).collect();
    turns.sort_by_key(|i| (documents[*i].captured_at, *i));
    let mut contexts = vec![Vec::new(); documents.len()];
    for (place, turn) in turns.iter().enumerate() {
        for (distance, weight) in (1..).zip(CONTEXT) {
            if let Some(next) = turns.get(place + distance)
                && documents[*next].captured_at <= documents[*turn].captured_at.plus(CONVERSATION_GAP)
            {
                contexts[*turn].push((*next, weight));
                contexts[*next].push((*turn, weight));
            }
        }
    }
    contexts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[(&str, Kind, i64)]) -> Index {
        let documents: Vec<Document> = texts
            .iter()
            .map(|(text, kind, at)| Document { text, kind: *kind, captured_at: Timestamp::from_seconds(*at) })
            .collect();
        Index::build(&documents, Language::English)
    }

    #[test]
    fn rare_words_weigh_more() {
        let index = index(&[
            ("meeting about the budget", Kind::Fact, 0),
            ("meeting about the garden", Kind::Fact, 0),
            ("meeting about nothing", Kind::Fact, 0),
        ]);
        let scores = index.score("a meeting on the budget");
        assert!(scores[0] > scores[1] && scores[1] > 0.0);
        assert_eq!(index.score("zeppelin"), [0.0; 3]);
        assert!(index.score("the").iter().any(|s| *s > 0.0));
    }

    #[test]
    fn a_turn_is_found_by_the_question_before_it() {
        let turn = Kind::ConversationTurn;
        let index = index(&[
            ("Where did you go on holiday?", turn, 0),
            ("To Lisbon, with my sister.", turn, 60),
            ("I bought a bicycle.", turn, 90_000),
        ]);
        let scores = index.score("holiday");
        assert!(scores[0] > scores[1] && scores[1] > 0.0);
        assert_eq!(scores[2], 0.0);
    }

    #[test]
    fn facts_have_no_neighbours() {
        let scores = index(&[("holiday", Kind::Fact, 0), ("Lisbon", Kind::Fact, 1)]).score("holiday");
        assert_eq!(scores[1], 0.0);
    }
}

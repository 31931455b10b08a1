//! What somebody may see, by words: for the owner's agents, who are shown items as they are.

use crate::rank::{Document, Index};
use oap_identity::{ItemId, Timestamp};
use oap_memory::text::Language;
use std::collections::{BTreeMap, BTreeSet};

/// Documents by item, ranked by the words of a query. Documents come and go one by one; what is found is what an index
/// would find that was built of the same documents.
#[derive(Debug)]
pub struct Corpus {
    index: Index,
    documents: BTreeMap<ItemId, Placed>,
    /// The items by place.
    items: Vec<Option<ItemId>>,
    free: Vec<u32>,
    ends: BTreeSet<(Timestamp, ItemId)>,
}

#[derive(Debug)]
struct Placed {
    place: u32,
    captured_at: Timestamp,
    end: Option<Timestamp>,
}

impl Corpus {
    /// Of no document.
    #[must_use]
    pub fn new(language: Language) -> Self {
        Self {
            index: Index::new(language),
            documents: BTreeMap::new(),
            items: Vec::new(),
            free: Vec::new(),
            ends: BTreeSet::new(),
        }
    }

    /// Adds a document until its end, in place of what the item said before.
    pub fn insert(&mut self, document: &Document, end: Option<Timestamp>) {
        let Document { item, captured_at, .. } = *document;
        self.remove(item);
        let place = self.free.pop().unwrap_or_else(|| {
            self.items.push(None);
            self.items.len() as u32 - 1
        });
        if let Some(empty) = self.items.get_mut(place as usize) {
            *empty = Some(item);
        }
        self.index.insert(place, document);
        self.ends.extend(end.map(|end| (end, item)));
        self.documents.insert(item, Placed { place, captured_at, end });
    }

    /// Takes an item out, where it is there.
    pub fn remove(&mut self, item: ItemId) {
        let Some(Placed { place, captured_at, end }) = self.documents.remove(&item) else { return };
        self.index.remove(place, item, captured_at);
        if let Some(held) = self.items.get_mut(place as usize) {
            *held = None;
        }
        self.free.push(place);
        if let Some(end) = end {
            self.ends.remove(&(end, item));
        }
    }

    /// Takes out the documents whose end has come.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some((end, item)) = self.ends.first().copied()
            && end <= now
        {
            self.remove(item);
        }
    }

    /// What a query finds, with its score: the best first, of equals the newest.
    #[must_use]
    pub fn find(&self, query: &str) -> Vec<(ItemId, f32)> {
        let matches = self.index.matches(query);
        let item = |place: u32| self.items.get(place as usize).copied().flatten();
        let mut found: Vec<(ItemId, f32)> =
            matches.iter().filter_map(|(place, score)| Some((item(place)?, score))).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        found
    }

    /// How much memory it takes, in bytes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // In nodes that are half full.
        let one = 2 * size_of::<(ItemId, Placed)>() + size_of::<Option<ItemId>>();
        self.index.bytes()
            + self.documents.len() * one
            + self.ends.len() * 2 * size_of::<(Timestamp, ItemId)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_memory::Kind;
    use proptest::prelude::*;

    const TEXTS: [&str; 5] =
        ["holiday in Lisbon", "my sister", "the holiday bicycle", "Lisbon again", "sister"];

    fn document(n: u8, text: usize) -> Document<'static> {
        Document {
            item: ItemId::from_bytes([n; 16]),
            text: TEXTS[text],
            kind: if n.is_multiple_of(4) { Kind::Fact } else { Kind::ConversationTurn },
            captured_at: Timestamp::from_seconds(i64::from(n) * 7 % 20 * 600 + i64::from(n % 3) * 86_400),
        }
    }

    proptest! {
        /// Whatever came and went, the same is found as in an index of what is there.
        #[test]
        fn a_corpus_that_was_maintained_finds_what_one_finds_that_is_built(
            steps in prop::collection::vec((0..12_u8, prop::option::of((0..TEXTS.len(), prop::option::of(1..6_i64)))), 0..40),
            now in 0..6_i64,
        ) {
            let mut maintained = Corpus::new(Language::English);
            let mut there = BTreeMap::new();
            for (n, said) in steps {
                match said {
                    Some((text, end)) => {
                        maintained.insert(&document(n, text), end.map(Timestamp::from_seconds));
                        there.insert(n, (text, end));
                    }
                    None => {
                        maintained.remove(ItemId::from_bytes([n; 16]));
                        there.remove(&n);
                    }
                }
            }
            maintained.expire(Timestamp::from_seconds(now));
            let mut built = Corpus::new(Language::English);
            for (n, (text, end)) in there {
                if end.is_none_or(|end| end > now) {
                    built.insert(&document(n, text), None);
                }
            }
            for query in ["holiday", "the sister in Lisbon", "bicycle", "zeppelin", "Lisbon on 2 January", "1970"] {
                prop_assert_eq!(maintained.find(query), built.find(query));
            }
            prop_assert_eq!(maintained.documents.len(), built.documents.len());
        }
    }
}

//! What says the same, nearly the same, or the opposite: proposals for the owner, never done by themselves.
//!
//! Words are compared and nothing is understood: two texts are alike by how many words and pairs of words they share (Jaccard, over a bounded
//! sketch of the smallest hashes). What is alike and differs in a denial, in a number or in one word is offered as a contradiction, and never
//! as one to merge.

use oap_agents::Level;
use oap_identity::{ItemId, Timestamp};
use oap_memory::text::{Language, terms};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most hashes of a text's sketch.
pub const MAX_SKETCH: usize = 256;
/// Most words of a text that are compared, from its beginning.
pub const MAX_WORDS: usize = 2048;
/// Most records that one is compared with.
pub const MAX_COMPARED: usize = 20_000;
/// From this likeness on, in hundredths, two records are proposed to be merged.
pub const MERGE_FROM: u32 = 70;
/// From this likeness on, in hundredths, two records are looked at for contradictions.
pub const COMPARE_FROM: u32 = 30;

/// Words that deny.
const DENIALS: &[&str] = &[
    "not", "no", "never", "without", "nicht", "kein", "keine", "keinen", "keiner", "nie", "niemals", "ohne",
    "nunca", "jamás", "sin", "tampoco", "不", "没", "没有", "无", "勿", "别", "未", "cannot", "don", "doesn",
    "didn", "isn", "won", "nor", "neither",
];
/// Words of which somebody may have many: another one contradicts nothing.
const MANY: &[&str] = &[
    "like", "love", "enjoy", "visit", "read", "own", "know", "speak", "mag", "liebt", "kennt", "spricht",
    "besitzt", "gusta", "gustan", "conoce", "habla", "喜", "欢", "喜欢", "会", "爱",
];

/// What of a text is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    /// The smallest hashes of its words and pairs of words.
    hashes: BTreeSet<u64>,
    /// Its words that carry a meaning, as they are compared.
    words: BTreeSet<String>,
    numbers: BTreeSet<String>,
    denies: bool,
}

impl Sketch {
    /// The sketch of a text; linear in its length.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut sketch =
            Self { hashes: BTreeSet::new(), words: BTreeSet::new(), numbers: BTreeSet::new(), denies: false };
        let mut before: Option<String> = None;
        for term in terms(text, Language::English).into_iter().take(MAX_WORDS) {
            if DENIALS.contains(&term.text.as_str()) {
                sketch.denies = !sketch.denies;
                continue;
            }
            if term.stop {
                continue;
            }
            if term.text.chars().any(char::is_numeric) {
                sketch.numbers.insert(term.text.clone());
            }
            sketch.add(&term.text);
            if let Some(before) = &before {
                sketch.add(&(before, &term.text));
            }
            sketch.words.insert(term.text.clone());
            before = Some(term.text);
        }
        sketch
    }

    fn add(&mut self, part: &impl Hash) {
        // Its keys are fixed: the sketch is the same everywhere.
        let mut hasher = DefaultHasher::new();
        part.hash(&mut hasher);
        self.hashes.insert(hasher.finish());
        if self.hashes.len() > MAX_SKETCH {
            self.hashes.pop_last();
        }
    }

    /// How much two texts share, in hundredths: an estimate where either has more than [`MAX_SKETCH`] parts.
    #[must_use]
    pub fn likeness(&self, other: &Self) -> u32 {
        let all: BTreeSet<u64> = self.hashes.union(&other.hashes).copied().take(MAX_SKETCH).collect();
        let both =
            all.iter().filter(|hash| self.hashes.contains(hash) && other.hashes.contains(hash)).count();
        match all.len() {
            0 => 0,
            all => u32::try_from(both * 100 / all).unwrap_or(100),
        }
    }
}

/// How two texts stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// They have little in common.
    Apart,
    /// They share much, and nothing says more.
    Related,
    /// They say the same, or nearly.
    Alike {
        /// How much they share, in hundredths.
        likeness: u32,
    },
    /// They may contradict each other.
    Contradicts(Clash),
}

/// In what two texts may contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clash {
    /// One denies what the other says.
    Denial,
    /// They have other numbers.
    Number,
    /// They differ in a word.
    Value,
}

impl Clash {
    /// The reason as a sentence.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::Denial => "One denies what the other says.",
            Self::Number => "They say the same of other numbers.",
            Self::Value => "They say the same but for a word.",
        }
    }
}

/// How two texts stand to each other.
#[must_use]
pub fn compare(a: &Sketch, b: &Sketch) -> Relation {
    let likeness = a.likeness(b);
    if likeness < COMPARE_FROM {
        return Relation::Apart;
    }
    let only_a = a.words.difference(&b.words).count();
    let only_b = b.words.difference(&a.words).count();
    if a.denies != b.denies {
        // A denial of something else in a longer text is none of this.
        return if only_a.max(only_b) <= 2 {
            Relation::Contradicts(Clash::Denial)
        } else {
            Relation::Related
        };
    }
    let plain = |sketch: &Sketch, other: &Sketch| {
        sketch.words.difference(&other.words).filter(|word| !sketch.numbers.contains(*word)).count()
    };
    if a.numbers != b.numbers && !a.numbers.is_empty() && !b.numbers.is_empty() {
        let same_else = plain(a, b) == 0 && plain(b, a) == 0;
        return if same_else { Relation::Contradicts(Clash::Number) } else { Relation::Related };
    }
    let of_many = MANY.iter().any(|word| a.words.contains(*word) && b.words.contains(*word));
    let shared = a.words.intersection(&b.words).count();
    if only_a == 1 && only_b == 1 && shared >= 2 {
        return if of_many { Relation::Related } else { Relation::Contradicts(Clash::Value) };
    }
    if likeness >= MERGE_FROM { Relation::Alike { likeness } } else { Relation::Related }
}

/// A record that another one is compared with.
#[derive(Debug, Clone)]
pub struct Record {
    /// Which one it is.
    pub item: ItemId,
    /// What it says.
    pub sketch: Sketch,
    /// Whose word it is.
    pub level: Level,
    /// Whether the owner confirmed it.
    pub confirmed: bool,
    /// When what it says was written.
    pub written_at: Timestamp,
}

/// Something that the owner is asked of two records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// To keep one, and take the other one back.
    Merge {
        /// The one that is kept.
        keep: ItemId,
        /// The one that goes.
        drop: ItemId,
        /// How much they share, in hundredths.
        likeness: u32,
        /// Why it is this one that is kept.
        why: Kept,
    },
    /// To say which holds.
    Decide {
        /// The one that was written last.
        later: ItemId,
        /// The other one.
        earlier: ItemId,
        /// In what they clash.
        clash: Clash,
    },
}

/// Why one of two is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The owner confirmed it.
    Confirmed,
    /// Its level is higher.
    Level,
    /// It is the first one: others may refer to it.
    First,
}

/// What the owner is asked of a record and those that are there: the nearest first, [`MAX_COMPARED`] are looked at.
#[must_use]
pub fn proposals(new: &Record, known: &[Record]) -> Vec<Proposal> {
    let others = known.iter().take(MAX_COMPARED).filter(|other| other.item != new.item);
    let mut found: Vec<(u32, Proposal)> = others
        .filter_map(|other| match compare(&new.sketch, &other.sketch) {
            Relation::Apart | Relation::Related => None,
            Relation::Alike { likeness } => Some((likeness, merge(new, other, likeness))),
            Relation::Contradicts(clash) => {
                let order = |record: &Record| (record.written_at, record.item);
                let (later, earlier) =
                    if order(new) >= order(other) { (new.item, other.item) } else { (other.item, new.item) };
                Some((new.sketch.likeness(&other.sketch), Proposal::Decide { later, earlier, clash }))
            }
        })
        .collect();
    found.sort_by_key(|(likeness, _)| std::cmp::Reverse(*likeness));
    found.into_iter().map(|(_, proposal)| proposal).collect()
}

fn merge(a: &Record, b: &Record, likeness: u32) -> Proposal {
    let (keep, drop, why) = if a.confirmed != b.confirmed {
        let (keep, drop) = if a.confirmed { (a, b) } else { (b, a) };
        (keep, drop, Kept::Confirmed)
    } else if a.level.most().total_cmp(&b.level.most()).is_ne() {
        let (keep, drop) = if a.level.most() > b.level.most() { (a, b) } else { (b, a) };
        (keep, drop, Kept::Level)
    } else {
        let order = |record: &Record| (record.written_at, record.item);
        let (keep, drop) = if order(a) <= order(b) { (a, b) } else { (b, a) };
        (keep, drop, Kept::First)
    };
    Proposal::Merge { keep: keep.item, drop: drop.item, likeness, why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn relation(a: &str, b: &str) -> Relation {
        compare(&Sketch::of(a), &Sketch::of(b))
    }

    #[test]
    fn what_says_the_same_is_alike() {
        for (a, b) in [
            ("Sam lives in Berlin", "sam LIVES in berlin."),
            ("The dentist's office closes on Fridays at noon", "The dentist office closes Fridays at noon"),
            ("Sam trinkt Tee ohne Zucker", "Sam trinkt Tee, ohne Zucker!"),
            ("用户喜欢喝绿茶", "用户喜欢喝绿茶。"),
        ] {
            assert!(matches!(relation(a, b), Relation::Alike { .. }), "{a}: {:?}", relation(a, b));
        }
        assert_eq!(relation("Sam lives in Berlin", "The museum opens at ten"), Relation::Apart);
        assert_eq!(relation("", ""), Relation::Apart);
    }

    #[test]
    fn what_clashes_is_never_merged() {
        for (a, b, clash) in [
            ("Sam likes cilantro", "Sam does not like cilantro", Clash::Denial),
            ("Sam isst Fleisch", "Sam isst kein Fleisch", Clash::Denial),
            ("A Sam le gusta el café", "A Sam no le gusta el café", Clash::Denial),
            ("Rent is 900 euros a month", "Rent is 950 euros a month", Clash::Number),
            ("Sam lives in Berlin today", "Sam lives in Hamburg today", Clash::Value),
        ] {
            assert_eq!(relation(a, b), Relation::Contradicts(clash), "{a}");
        }
        assert_eq!(relation("Sam likes green tea", "Sam likes green apples"), Relation::Related);
    }

    fn record(n: u8, text: &str, level: Level, confirmed: bool) -> Record {
        let written_at = Timestamp::from_millis(i64::from(n) * 1000);
        Record { item: ItemId::from_bytes([n; 16]), sketch: Sketch::of(text), level, confirmed, written_at }
    }

    #[test]
    fn the_better_word_is_kept() {
        let text = "The office closes on Fridays at noon";
        let kept = |a: &Record, b: &Record| match proposals(a, std::slice::from_ref(b)).pop() {
            Some(Proposal::Merge { keep, why, .. }) => (keep, why),
            other => panic!("{other:?}"),
        };
        let first = record(1, text, Level::AgentInferred, false);
        assert_eq!(kept(&record(2, text, Level::AgentInferred, false), &first), (first.item, Kept::First));
        let verified = record(3, text, Level::ToolVerified, false);
        assert_eq!(kept(&verified, &first), (verified.item, Kept::Level));
        let confirmed = record(4, text, Level::External, true);
        assert_eq!(kept(&verified, &confirmed), (confirmed.item, Kept::Confirmed));
        let owner = record(5, text, Level::UserStated, false);
        assert_eq!(kept(&verified, &owner), (owner.item, Kept::Level));
    }

    #[test]
    fn a_record_is_not_compared_with_itself() {
        let one = record(1, "Sam lives in Berlin", Level::External, false);
        assert!(proposals(&one, std::slice::from_ref(&one)).is_empty());
    }

    proptest! {
        /// Likeness goes both ways, is whole of itself, and a text and its denial are never proposed to be merged.
        #[test]
        fn likeness_goes_both_ways(a in "([a-z]{1,6} ){0,40}", b in "([a-z]{1,6} ){0,40}") {
            let (sketch, other) = (Sketch::of(&a), Sketch::of(&b));
            prop_assert_eq!(sketch.likeness(&other), other.likeness(&sketch));
            prop_assert_eq!(compare(&sketch, &other), compare(&other, &sketch));
            if !sketch.hashes.is_empty() {
                prop_assert_eq!(sketch.likeness(&sketch), 100);
            }
            let denied = Sketch::of(&format!("{a} never"));
            let is_alike = matches!(compare(&sketch, &denied), Relation::Alike { .. });
            prop_assert!(!is_alike);
        }

        /// Of two records one is kept and the other goes, and it does not matter which one came up.
        #[test]
        fn a_merge_is_the_same_both_ways(
            a in prop::sample::select(Level::ALL), b in prop::sample::select(Level::ALL), x: bool, y: bool,
        ) {
            let text = "The office closes on Fridays at noon";
            let (a, b) = (record(1, text, a, x), record(2, text, b, y));
            let one = proposals(&a, std::slice::from_ref(&b));
            prop_assert_eq!(&one, &proposals(&b, std::slice::from_ref(&a)));
            prop_assert_eq!(one.len(), 1);
        }
    }
}

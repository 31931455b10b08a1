//! Chance from a seed: numbers, decks that are dealt to their end, and words that stand nowhere else.

use oap_identity::random::Seeded;
use oap_identity::{Random as _, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Letters of canaries. Without vowels no stemmer changes a word, and no language has it.
const LETTERS: &[u8; 15] = b"bcfghjkmpqtvwxz";
/// Letters of a canary.
pub const WORD: usize = 11;

/// Draws of a world, all from its seed.
pub(super) struct Chance {
    random: Seeded,
    /// What is drawn beside, so that all else stays what it was.
    beside: Seeded,
    /// What numbers and times are drawn from that are canaries.
    digits: Seeded,
    decks: BTreeMap<&'static str, Vec<usize>>,
    made: BTreeSet<String>,
    /// Canaries since they were last taken.
    fresh: Vec<String>,
    /// Whether nothing is left out that may be left out.
    whole: bool,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Seeded::new(seed),
            beside: Seeded::new(seed.rotate_left(17) ^ !0),
            digits: Seeded::new(seed.rotate_left(41) ^ !0),
            decks: BTreeMap::new(),
            made: BTreeSet::new(),
            fresh: Vec::new(),
            whole: false,
        }
    }

    /// The same, where nothing is left out that may be left out.
    pub(super) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Draws something beside: what is drawn later does not hang on it.
    pub(super) fn beside<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> T {
        std::mem::swap(&mut self.random, &mut self.beside);
        let drawn = draw(self);
        std::mem::swap(&mut self.random, &mut self.beside);
        drawn
    }

    /// How many there are of what may be none: one at least where nothing is left out.
    pub(super) fn count(&mut self, end: usize) -> usize {
        let drawn = self.below(end);
        if self.whole { end.saturating_sub(1) } else { drawn }
    }

    /// Whether something is left out, once in `n` draws.
    pub(super) fn leaves_out(&mut self, n: usize) -> bool {
        self.once_in(n) && !self.whole
    }

    /// A number below `end`; 0 where that is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        let number = u64::from_le_bytes(bytes) % (end.max(1) as u64);
        usize::try_from(number).unwrap_or(0)
    }

    /// True once in `n` draws.
    pub(super) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of some values.
    pub(super) fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Some of the values, in their order, each with even odds.
    pub(super) fn some<T: Clone>(&mut self, all: &[T]) -> Vec<T> {
        all.iter().filter(|_| self.once_in(2)).cloned().collect()
    }

    /// A card of a deck of `cards`, which is dealt to its end before it is shuffled again: nothing is left out for long.
    pub(super) fn deal(&mut self, deck: &'static str, cards: usize) -> usize {
        let mut left = self.decks.remove(deck).unwrap_or_default();
        if left.is_empty() {
            left = (0..cards).collect();
        }
        let card = left.swap_remove(self.below(left.len()));
        self.decks.insert(deck, left);
        card
    }

    /// The same, for a list.
    pub(super) fn dealt<T: Clone>(&mut self, deck: &'static str, all: &[T]) -> T {
        all[self.deal(deck, all.len())].clone()
    }

    /// Digits.
    pub(super) fn digits(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b'0' + self.below(10) as u8)).collect()
    }

    /// A canary: a word of small letters that this world has in one place alone.
    pub(super) fn canary(&mut self) -> String {
        let word: String = (0..WORD).map(|_| char::from(LETTERS[self.below(LETTERS.len())])).collect();
        self.planted(word)
    }

    /// A number that is a canary: of fifteen digits, which no count, time in seconds or milliseconds, or other number has.
    pub(super) fn number(&mut self) -> u64 {
        loop {
            // None of them ends with a zero, which a fraction would not be written with.
            let number =
                10 * (10_000_000_000_000 + self.digits_below(90_000_000_000_000)) + 1 + self.digits_below(9);
            if !self.is_made(&number.to_string()) {
                self.planted(number.to_string());
                return number;
            }
        }
    }

    /// A number between 0.1 and 1, whose digits are a canary.
    pub(super) fn fraction(&mut self) -> f64 {
        self.number() as f64 / 1e15
    }

    /// A time that is a canary: a millisecond of some that no other time of the world has.
    pub(super) fn moment(&mut self, from: i64, millis: u64) -> Timestamp {
        loop {
            let after = self.digits_below(millis).cast_signed();
            let at = Timestamp::from_millis(from + after);
            if !self.is_made(&at.to_string()) {
                self.planted(at.to_string());
                return at;
            }
        }
    }

    /// The same, on a day: `2026-06-12`.
    pub(super) fn moment_of(&mut self, day: &str) -> Timestamp {
        let begins = format!("{day}T00:00:00Z").parse().unwrap_or(Timestamp::from_millis(0));
        self.moment(begins.millis(), 86_400_000)
    }

    fn digits_below(&mut self, end: u64) -> u64 {
        let mut bytes = [0; 8];
        self.digits.fill(&mut bytes);
        u64::from_le_bytes(bytes) % end.max(1)
    }

    /// Something made elsewhere becomes a canary, once.
    pub(super) fn planted(&mut self, text: String) -> String {
        if self.made.insert(text.clone()) {
            self.fresh.push(text.clone());
        }
        text
    }

    /// Whether something of that text was made before.
    pub(super) fn is_made(&self, text: &str) -> bool {
        self.made.contains(text)
    }

    /// The canaries made since the last time.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh)
    }
}

/// A word with a capital letter.
pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

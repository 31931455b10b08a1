//! The days on which there were conversations, and which of them a question is about.
//!
//! What somebody asks for was mostly talked about more than once on its day: a turn gains by the words of all turns of its
//! day (UTC). A day is a property of a turn alone, so that a turn which comes or goes changes no other turn's day. All
//! that is kept are whole numbers.

use crate::rank::{rarity, weight};
use oap_identity::Timestamp;
use std::collections::BTreeMap;

const MILLIS: i64 = 86_400_000;

/// Days by number, each at a place of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Days {
    places: BTreeMap<i64, u32>,
    days: Vec<Day>,
    free: Vec<u32>,
    /// How many words of all of them mean something.
    total: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Day {
    turns: u32,
    /// How many of its words mean something.
    words: u64,
}

impl Days {
    /// Adds a turn with so many words that mean something. The place of its day.
    pub(crate) fn insert(&mut self, at: Timestamp, words: u32) -> u32 {
        let place = *self.places.entry(number(at)).or_insert_with(|| {
            self.free.pop().unwrap_or_else(|| {
                self.days.push(Day::default());
                self.days.len() as u32 - 1
            })
        });
        if let Some(day) = self.days.get_mut(place as usize) {
            day.turns += 1;
            day.words += u64::from(words);
        }
        self.total += u64::from(words);
        place
    }

    /// Takes out a turn that was added.
    pub(crate) fn remove(&mut self, at: Timestamp, words: u32) {
        let Some(place) = self.places.get(&number(at)).copied() else { return };
        let Some(day) = self.days.get_mut(place as usize) else { return };
        day.turns -= 1;
        day.words -= u64::from(words);
        self.total -= u64::from(words);
        if day.turns == 0 {
            self.places.remove(&number(at));
            self.free.push(place);
        }
    }

    /// How much memory they take, in bytes, about: in nodes that are half full.
    pub(crate) fn bytes(&self) -> usize {
        self.places.len() * (2 * size_of::<(i64, u32)>() + size_of::<Day>())
    }

    /// For the words of one query.
    pub(crate) fn tally(&self) -> Tally<'_> {
        let average = (self.total as f64 / self.places.len().max(1) as f64).max(1.0) as f32;
        Tally {
            days: self,
            average,
            frequencies: vec![0; self.days.len()],
            touched: Vec::new(),
            scores: vec![0.0; self.days.len()],
        }
    }
}

/// The number of a day, since 1970.
const fn number(at: Timestamp) -> i64 {
    at.millis().div_euclid(MILLIS)
}

/// How well each day matches a query, word by word.
pub(crate) struct Tally<'d> {
    days: &'d Days,
    average: f32,
    /// Of one word, by place.
    frequencies: Vec<u32>,
    touched: Vec<u32>,
    scores: Vec<f32>,
}

impl Tally<'_> {
    /// A turn of a day has the word, so many times.
    pub(crate) fn add(&mut self, day: u32, times: u32) {
        let Some(frequency) = self.frequencies.get_mut(day as usize) else { return };
        if *frequency == 0 {
            self.touched.push(day);
        }
        *frequency += times;
    }

    /// There is no more of this word: what it says of the days that have it.
    pub(crate) fn next_word(&mut self) {
        let rarity = rarity(self.days.places.len(), self.touched.len());
        for day in self.touched.drain(..) {
            let day = day as usize;
            let frequency = std::mem::take(&mut self.frequencies[day]) as f32;
            self.scores[day] += rarity * weight(frequency, self.days.days[day].words as f32 / self.average);
        }
    }

    /// The score of a day.
    pub(crate) fn score(&self, day: u32) -> f32 {
        self.scores.get(day as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_come_and_go() {
        let at = |hour: i64| Timestamp::from_seconds(hour * 3600);
        let mut days = Days::default();
        let first = days.insert(at(1), 3);
        assert_eq!(days.insert(at(23), 2), first);
        let second = days.insert(at(24), 4);
        assert_ne!(second, first);
        // Before 1970 there are days, too.
        assert_ne!(days.insert(at(-1), 1), first);
        days.remove(at(23), 2);
        assert_eq!((days.places.len(), days.total), (3, 8));
        days.remove(at(1), 3);
        // Its place is another day's now.
        assert_eq!(days.insert(at(48), 1), first);
        for (hour, words) in [(24, 4), (48, 1), (-1, 1)] {
            days.remove(at(hour), words);
        }
        assert_eq!((days.bytes(), days.total), (0, 0));
        // What was never there is not taken out.
        days.remove(at(1), 3);
        assert_eq!(days.total, 0);
    }

    #[test]
    fn a_day_gains_by_the_words_that_are_its_own() {
        let mut days = Days::default();
        let places: Vec<u32> =
            (0..3).map(|day| days.insert(Timestamp::from_seconds(day * 86_400), 5)).collect();
        let mut tally = days.tally();
        tally.add(places[0], 1);
        tally.add(places[0], 1);
        tally.add(places[1], 1);
        tally.next_word();
        assert!(tally.score(places[0]) > tally.score(places[1]));
        assert!(tally.score(places[1]) > 0.0);
        assert_eq!(tally.score(places[2]), 0.0);
    }
}

//! Ranking over one view: BM25 with the view's own statistics (protocol sections 0 and 6).
//!
//! Turns of a conversation are matched in their context: the words of the turns before and after count a little
//! towards a turn, because the answer to a question often stands one turn below it and does not repeat it. A turn that
//! matches gains by how well its day does. A question that names a date finds what was captured then.
//!
//! Documents come and go one by one. All statistics are whole numbers, so that they are the same whatever came before: an
//! index that was maintained scores as one that is built of the same documents.

use crate::dates::{Date, Dates};
use crate::days::Days;
use crate::turns::{Near, Turns};
use oap_identity::{ItemId, Timestamp};
use oap_memory::Kind;
use oap_memory::text::{Language, Term, terms};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const K1: f32 = 1.2;
const B: f32 = 0.75;
/// What a word of a document itself counts. Frequencies and lengths are in tenths.
const OWN: u32 = 10;
/// Sums of no more numbers than one for so many places are made of pairs: about there sorting them takes as long as an array of all.
const SPARSE: usize = 4;
/// What the score of its day counts for a turn.
const DAY: f32 = 0.5;
/// A word that more documents hold than one in so many, such as a name that everybody is called by, says nothing of the
/// turns around them.
const COMMON: usize = 5;
/// A word that no more documents hold than so many is not common, however few there are.
const FEW: usize = 16;
/// Most years, months and days of a query that are looked for; what it names more are words alone.
pub const MAX_DATES: usize = 8;

/// What is matched of one item: what its grantee sees of it, nothing else.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Document<'a> {
    pub item: ItemId,
    /// Everything visible as text.
    pub text: &'a str,
    pub kind: Kind,
    /// When it was captured.
    pub captured_at: Timestamp,
}

/// An inverted index over the documents of one view. Each document has a place, a small number that its owner chooses.
#[derive(Debug, Clone, Default)]
pub struct Index {
    language: Language,
    numbers: BTreeMap<Arc<str>, u32>,
    /// Words by number.
    words: Vec<Word>,
    /// Numbers of no word.
    free: Vec<u32>,
    /// Documents by place.
    documents: Vec<Option<Indexed>>,
    count: usize,
    turns: Turns,
    days: Days,
    /// The places of what was captured on a date, in their order.
    dates: BTreeMap<Date, Vec<u32>>,
    /// The sum of the lengths.
    total: u64,
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct Word {
    text: Arc<str>,
    /// The documents that hold it themselves, by place, and how often.
    holders: Vec<(u32, u32)>,
}

#[derive(Debug, Clone)]
struct Indexed {
    /// The numbers of its words.
    words: Box<[u32]>,
    /// How many words it has that mean something.
    own: u32,
    /// Its words that mean something, and those of its context, weighted.
    length: u32,
    near: Near,
    /// The place of its day, of a turn.
    day: Option<u32>,
}

/// The words of a text, and how many of them mean something: what is counted before a document enters an index.
#[derive(Debug)]
pub(crate) struct Words {
    counts: BTreeMap<String, u32>,
    own: u32,
}

impl Words {
    pub(crate) fn of(text: &str, language: Language) -> Self {
        let mut words = Self { counts: BTreeMap::new(), own: 0 };
        for Term { text, stop } in terms(text, language) {
            *words.counts.entry(text).or_default() += 1;
            words.own += u32::from(!stop);
        }
        words
    }
}

/// What a word is worth that so many of so many have.
pub(crate) fn rarity(count: usize, held: usize) -> f32 {
    let (count, held) = (count as f32, held as f32);
    (1.0 + (count - held + 0.5) / (held + 0.5)).ln()
}

/// How well something matches a word that has it so often, and so many times the average length.
pub(crate) fn weight(frequency: f32, length: f32) -> f32 {
    frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length))
}

/// What the words of a query find: the places that match, each once, with their scores.
#[derive(Debug, Clone)]
pub(crate) struct Matches(Vec<(u32, f32)>);

impl Matches {
    /// The places that match, with their scores, which are above 0.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        self.0.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The highest score, 0 where nothing matches.
    pub(crate) fn best(&self) -> f32 {
        self.iter().map(|(_, score)| score).fold(0.0, f32::max)
    }

    /// Keeps what may be among the first so many, whatever decides between equals; where an answer ended with the score `last`, of what
    /// comes behind it.
    pub(crate) fn keep_first(&mut self, mut most: usize, last: Option<f32>) {
        if let Some(last) = last {
            self.0.retain(|(_, score)| *score <= last);
            // Of those some came before.
            most += self.iter().filter(|(_, score)| *score == last).count();
        }
        if most < self.0.len() {
            let (_, (_, least), _) = self.0.select_nth_unstable_by(most, |a, b| b.1.total_cmp(&a.1));
            let least = *least;
            self.0.retain(|(_, score)| *score >= least);
        }
    }

    /// The score at every one of so many places, 0 where nothing matches.
    pub(crate) fn by_place(&self, places: usize) -> Vec<f32> {
        let mut scores = vec![0.0; places];
        for (place, score) in &self.0 {
            if let Some(at) = scores.get_mut(*place as usize) {
                *at = *score;
            }
        }
        scores
    }
}

/// Sums by place, in the order in which what is added comes. Of what few places have, pairs that are sorted at the end; otherwise an array
/// with a number for every place. Both add the same numbers in the same order.
struct Sums<N> {
    /// A pair for each number that was added; beside an array, one for each place that has a sum.
    pairs: Vec<(u32, N)>,
    all: Option<Vec<N>>,
}

impl<N: Copy + Default + PartialEq + std::ops::AddAssign> Sums<N> {
    /// To so many places; by an array, or by pairs alone.
    fn of(by_array: bool, places: usize) -> Self {
        Self { pairs: Vec::new(), all: by_array.then(|| vec![N::default(); places]) }
    }

    fn add(&mut self, place: u32, number: N) {
        let Some(sum) = self.all.as_mut().and_then(|all| all.get_mut(place as usize)) else {
            return self.pairs.push((place, number));
        };
        if *sum == N::default() {
            self.pairs.push((place, number));
        }
        *sum += number;
    }

    /// Each place with its sum, once. Nothing is left.
    fn take(&mut self) -> impl Iterator<Item = (u32, N)> {
        if self.all.is_none() {
            self.pairs.sort_by_key(|(place, _)| *place);
            self.pairs.dedup_by(|next, first| {
                let same = next.0 == first.0;
                if same {
                    first.1 += next.1;
                }
                same
            });
        }
        let all = &mut self.all;
        self.pairs.drain(..).map(move |(place, number)| {
            let sum = all.as_mut().and_then(|all| all.get_mut(place as usize));
            (place, sum.map_or(number, std::mem::take))
        })
    }
}

impl Index {
    /// Of no document.
    #[must_use]
    pub fn new(language: Language) -> Self {
        Self { language, ..Self::default() }
    }

    /// Indexes documents, at places numbered as they come.
    #[must_use]
    pub fn build(documents: &[Document], language: Language) -> Self {
        let mut index = Self::new(language);
        for (place, document) in (0..).zip(documents) {
            index.insert(place, document);
        }
        index
    }

    /// Adds a document at a place that none is at.
    pub(crate) fn insert(&mut self, place: u32, document: &Document) {
        self.insert_words(place, document, Words::of(document.text, self.language));
    }

    /// The same, of a document whose words were counted.
    pub(crate) fn insert_words(&mut self, place: u32, document: &Document, Words { counts, own }: Words) {
        let mut words = Vec::with_capacity(counts.len());
        for (text, count) in counts {
            let number = self.number(text);
            let holders = &mut self.words[number as usize].holders;
            if let Err(at) = holders.binary_search_by_key(&place, |(holder, _)| *holder) {
                if holders.len() == holders.capacity() {
                    holders.reserve_exact(holders.len() / 8 + 1);
                }
                holders.insert(at, (place, count));
            }
            words.push(number);
        }
        self.bytes += words.len() * (HOLDER + size_of::<u32>()) + size_of::<Option<Indexed>>();
        let length = own * OWN;
        let is_turn = document.kind == Kind::ConversationTurn;
        let indexed = Indexed {
            words: words.into(),
            own,
            length,
            near: Near::default(),
            day: is_turn.then(|| self.days.insert(document.captured_at, own)),
        };
        if let Some(date) = Date::of(document.captured_at) {
            let places = self.dates.entry(date).or_insert_with(|| {
                self.bytes += DATE;
                Vec::new()
            });
            if let Err(at) = places.binary_search(&place) {
                places.insert(at, place);
                self.bytes += DATED;
            }
        }
        let at = place as usize;
        if self.documents.len() <= at {
            self.documents.resize(at + 1, None);
        }
        self.documents[at] = Some(indexed);
        self.count += 1;
        self.total += u64::from(length);
        if is_turn {
            let near = self.turns.insert((document.captured_at, document.item), place);
            self.relate(near);
        }
    }

    /// Takes out the document at a place.
    pub(crate) fn remove(&mut self, place: u32, item: ItemId, captured_at: Timestamp) {
        let Some(document) = self.documents.get_mut(place as usize).and_then(Option::take) else { return };
        self.count -= 1;
        self.total -= u64::from(document.length);
        self.bytes -= document.words.len() * (HOLDER + size_of::<u32>()) + size_of::<Option<Indexed>>();
        for number in document.words {
            let word = &mut self.words[number as usize];
            if let Ok(at) = word.holders.binary_search_by_key(&place, |(holder, _)| *holder) {
                word.holders.remove(at);
            }
            if word.holders.is_empty() {
                self.bytes -= word.text.len() + WORD;
                self.numbers.remove(&word.text);
                *word = Word::default();
                self.free.push(number);
            }
        }
        if let Some(date) = Date::of(captured_at)
            && let Some(places) = self.dates.get_mut(&date)
            && let Ok(at) = places.binary_search(&place)
        {
            places.remove(at);
            self.bytes -= DATED;
            if places.is_empty() {
                self.dates.remove(&date);
                self.bytes -= DATE;
            }
        }
        if document.day.is_some() {
            self.days.remove(captured_at, document.own);
            let near = self.turns.remove(&(captured_at, item));
            self.relate(near);
        }
    }

    /// Gives documents their context, and their length in it.
    fn relate(&mut self, turns: Vec<(u32, Near)>) {
        for (place, near) in turns {
            let own = |place: u32| self.document(place).map_or(0, |document| document.own);
            let length =
                own(place) * OWN + near.context().map(|(near, weight)| own(near) * weight).sum::<u32>();
            if let Some(document) = self.documents.get_mut(place as usize).and_then(Option::as_mut) {
                self.total = self.total - u64::from(document.length) + u64::from(length);
                document.length = length;
                document.near = near;
            }
        }
    }

    fn document(&self, place: u32) -> Option<&Indexed> {
        self.documents.get(place as usize)?.as_ref()
    }

    /// The number of a word, a new one where it has none.
    fn number(&mut self, text: String) -> u32 {
        if let Some(number) = self.numbers.get(text.as_str()) {
            return *number;
        }
        let text: Arc<str> = text.into();
        self.bytes += text.len() + WORD;
        let word = Word { text: text.clone(), holders: Vec::new() };
        let number = match self.free.pop() {
            Some(number) => {
                self.words[number as usize] = word;
                number
            }
            None => {
                self.words.push(word);
                self.words.len() as u32 - 1
            }
        };
        self.numbers.insert(text, number);
        number
    }

    /// Gives back what it took for growing.
    pub(crate) fn shrink(&mut self) {
        self.words.iter_mut().for_each(|word| word.holders.shrink_to_fit());
        self.dates.values_mut().for_each(Vec::shrink_to_fit);
        self.words.shrink_to_fit();
        self.documents.shrink_to_fit();
    }

    /// How much memory it takes, in bytes, about.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.days.bytes()
    }

    /// The score of the document at every place for a query, 0 where nothing matches. Depends on the documents and the
    /// query alone; each word of the query counts once.
    #[must_use]
    pub fn score(&self, query: &str) -> Vec<f32> {
        self.matches(query).by_place(self.documents.len())
    }

    /// The documents that hold a word themselves.
    fn holders(&self, word: &str) -> Option<&[(u32, u32)]> {
        Some(&self.words.get(*self.numbers.get(word)? as usize)?.holders)
    }

    /// The places of what was captured on dates that are wanted, day by day.
    fn captured(&self, wanted: impl Fn(Date) -> bool) -> Vec<&[u32]> {
        self.dates.iter().filter(|(date, _)| wanted(**date)).map(|(_, places)| places.as_slice()).collect()
    }

    /// What a query finds. Where that is little, it costs what its words and dates find, and a look at each day and date; otherwise a
    /// number for every place, too.
    pub(crate) fn matches(&self, query: &str) -> Matches {
        self.summed(query, |additions, places| additions > places / SPARSE)
    }

    /// The same, summed by an array where that is said of so many additions to so many places.
    fn summed(&self, query: &str, by_array: impl Fn(usize, usize) -> bool) -> Matches {
        let mut asked = terms(query, self.language);
        if asked.iter().any(|term| !term.stop) {
            asked.retain(|term| !term.stop);
        }
        let asked: BTreeSet<String> = asked.into_iter().map(|term| term.text).collect();
        let asked: Vec<&[(u32, u32)]> = asked.iter().filter_map(|word| self.holders(word)).collect();
        let spreads = |holders: &[_]| holders.len() <= FEW || holders.len() * COMMON <= self.count;
        let reach = |holders: &&[_]| holders.len() * if spreads(holders) { 1 + Near::MOST } else { 1 };
        let dates = Dates::of(query, MAX_DATES);
        let dated: Vec<Vec<&[u32]>> = dates.each().map(|finds| self.captured(finds)).collect();
        let additions = asked.iter().map(reach).sum::<usize>()
            + dated.iter().flatten().map(|places| places.len()).sum::<usize>();
        let places = self.documents.len();
        let by_array = by_array(additions, places);
        let mut gains: Sums<f32> = Sums::of(by_array, places);
        // In tenths, of one word.
        let mut frequencies: Sums<u32> = Sums::of(by_array, places);
        let mut days = self.days.tally();
        let average = (self.total as f64 / f64::from(OWN) / self.count.max(1) as f64).max(1.0) as f32;
        for holders in asked {
            let spreads = spreads(holders);
            for (place, times) in holders {
                frequencies.add(*place, times * OWN);
                let Some((day, holder)) =
                    self.document(*place).and_then(|holder| Some((holder.day?, holder)))
                else {
                    continue;
                };
                days.add(day, *times);
                if spreads {
                    holder.near.reach().for_each(|(near, weight)| frequencies.add(near, times * weight));
                }
            }
            let rarity = rarity(self.count, holders.len());
            for (place, tenths) in frequencies.take() {
                let frequency = tenths as f32 / OWN as f32;
                let length = self.document(place).map_or(0, |document| document.length) as f32 / OWN as f32;
                gains.add(place, rarity * weight(frequency, length / average));
            }
            days.next_word();
        }
        for places in dated {
            let rarity = rarity(self.count, places.iter().map(|places| places.len()).sum());
            places.into_iter().flatten().for_each(|place| gains.add(*place, rarity));
        }
        let day = |place: u32| self.document(place).and_then(|document| document.day);
        let score = |(place, sum)| (place, day(place).map_or(sum, |day| sum + DAY * days.score(day)));
        Matches(gains.take().map(score).filter(|(_, score)| *score > 0.0).collect())
    }
}

/// What a document takes for each of its words, in bytes: its place among the holders, with room to grow.
const HOLDER: usize = size_of::<(u32, u32)>() * 9 / 8;
/// What a document takes for its date, in bytes, about: its place among those of that day, with room to grow.
const DATED: usize = size_of::<u32>() * 3 / 2;
/// What a date takes beside them: a list, in nodes that are half full.
const DATE: usize = 2 * size_of::<(Date, Vec<u32>)>();
/// What a word takes beside its text and its holders, in bytes, about: its places in the tables, half full.
const WORD: usize = size_of::<Word>() + 2 * (size_of::<Arc<str>>() + size_of::<u32>()) + 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[(&str, Kind, i64)]) -> Index {
        let documents: Vec<Document> = texts
            .iter()
            .zip(1..)
            .map(|((text, kind, at), number)| Document {
                item: ItemId::from_bytes([number; 16]),
                text,
                kind: *kind,
                captured_at: Timestamp::from_seconds(*at),
            })
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
    fn a_question_counts_more_for_its_answer_than_an_answer_for_its_question() {
        let turn = Kind::ConversationTurn;
        let index = index(&[("What is new?", turn, 0), ("The holiday", turn, 60), ("In Lisbon", turn, 120)]);
        let scores = index.score("holiday");
        assert!(scores[1] > scores[2] && scores[2] > scores[0] && scores[0] > 0.0);
    }

    #[test]
    fn a_common_word_says_nothing_of_the_turns_around_it() {
        let turn = Kind::ConversationTurn;
        let talk: Vec<(&str, Kind, i64)> = (0..40)
            .map(|n| {
                let text = if n % 2 == 0 { "Ada: the garden" } else { "Bob: the kitchen" };
                (text, turn, n * 60)
            })
            .collect();
        let scores = index(&talk).score("Ada");
        assert!((0..40).all(|n| (scores[n] > 0.0) == (n % 2 == 0)), "{scores:?}");
        // Of a few turns no word is common.
        assert!(index(&talk[..4]).score("Ada").iter().all(|score| *score > 0.0));
    }

    #[test]
    fn a_turn_gains_by_its_day_and_a_fact_does_not() {
        const DAY: i64 = 86_400;
        for (kind, gains) in [(Kind::ConversationTurn, true), (Kind::Fact, false)] {
            let index = index(&[
                ("the holiday", kind, DAY),
                // Hours apart, so that no turn is another one's context.
                ("the holiday", kind, 5 * DAY),
                ("Lisbon by train", kind, 5 * DAY + 20_000),
                ("a bicycle", kind, 9 * DAY),
            ]);
            let scores = index.score("holiday in Lisbon");
            assert_eq!(scores[1] > scores[0], gains, "{scores:?}");
            // What does not match is not found, whatever its day.
            assert_eq!(scores[3], 0.0);
            assert_eq!(index.score("Lisbon")[1], 0.0);
        }
    }

    #[test]
    fn a_date_finds_what_was_captured_then() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap().seconds();
        let index = index(&[
            ("tea", Kind::Fact, at("2023-05-08T12:00:00Z")),
            ("tea", Kind::Fact, at("2023-06-08T12:00:00Z")),
            ("tea", Kind::ConversationTurn, at("2022-05-09T12:00:00Z")),
            // A time that is hidden.
            ("tea", Kind::Fact, 0),
        ]);
        let found = |question: &str| -> Vec<usize> {
            let scores = index.score(question);
            (0..4).filter(|n| scores[*n] > 0.0).collect()
        };
        assert_eq!(found("in May"), [0, 2]);
        assert_eq!(found("the 8th of June"), [1]);
        assert_eq!(found("2023"), [0, 1]);
        assert_eq!(found("in May 2022"), [2]);
        assert_eq!(found("on 1970-01-01"), [0; 0]);
        assert_eq!(found("last week"), [0; 0]);
        let scores = index.score("tea in May 2023");
        assert!(scores[0] > scores[1] && scores[0] > scores[2] && scores[1] > scores[3] && scores[3] > 0.0);
    }

    #[test]
    fn facts_have_no_neighbours() {
        let scores = index(&[("holiday", Kind::Fact, 0), ("Lisbon", Kind::Fact, 1)]).score("holiday");
        assert_eq!(scores[1], 0.0);
    }

    #[test]
    fn what_may_be_among_the_first_is_kept_whatever_decides_between_equals() {
        let all: Vec<(u32, f32)> = (0_u32..).zip([5.0, 3.0, 3.0, 3.0, 2.0, 2.0, 1.0, 0.5]).collect();
        for (most, came) in (0_usize..9).flat_map(|most| (0_usize..9).map(move |came| (most, came))) {
            let mut kept = Matches(all.iter().copied().rev().collect());
            kept.keep_first(most, came.checked_sub(1).map(|last| all[last].1));
            // Equals may be in any order: those that come next are among what is kept.
            for next in all.iter().skip(came).take(most) {
                assert!(kept.0.contains(next), "{most} behind {came}: {kept:?}");
            }
            let ties = if came == 0 { 0 } else { 3 };
            assert!(kept.len() <= most + 1 + 2 + ties, "{most} behind {came}: {kept:?}");
        }
        assert_eq!(Matches(all.clone()).best(), 5.0);
    }

    /// The same scores as by an array with a number for every document, which is what is meant.
    fn dense(index: &Index, query: &str) -> Vec<f32> {
        let mut asked = terms(query, index.language);
        let says_something = asked.iter().any(|term| !term.stop);
        asked.retain(|term| !(says_something && term.stop));
        let asked: BTreeSet<String> = asked.into_iter().map(|term| term.text).collect();
        let mut scores = vec![0.0; index.documents.len()];
        let mut days = index.days.tally();
        let average = (index.total as f64 / f64::from(OWN) / index.count.max(1) as f64).max(1.0) as f32;
        for number in asked.iter().filter_map(|word| index.numbers.get(word.as_str())) {
            let holders = &index.words[*number as usize].holders;
            let mut tenths = vec![0; scores.len()];
            for (place, times) in holders {
                tenths[*place as usize] += times * OWN;
                let holder = index.document(*place).unwrap();
                let Some(day) = holder.day else { continue };
                days.add(day, *times);
                if holders.len() <= FEW || holders.len() * COMMON <= index.count {
                    holder.near.reach().for_each(|(near, weight)| tenths[near as usize] += times * weight);
                }
            }
            for (at, tenths) in tenths.into_iter().enumerate().filter(|(_, tenths)| *tenths > 0) {
                let length = index.document(at as u32).unwrap().length as f32 / OWN as f32;
                scores[at] +=
                    rarity(index.count, holders.len()) * weight(tenths as f32 / OWN as f32, length / average);
            }
            days.next_word();
        }
        for finds in Dates::of(query, MAX_DATES).each() {
            let found: Vec<u32> = index.captured(finds).into_iter().flatten().copied().collect();
            for place in &found {
                scores[*place as usize] += rarity(index.count, found.len());
            }
        }
        for (at, score) in scores.iter_mut().enumerate().filter(|(_, score)| **score > 0.0) {
            *score += index.document(at as u32).unwrap().day.map_or(0.0, |day| DAY * days.score(day));
        }
        scores
    }

    /// Documents that came and went leave no trace, whatever was between them. "Holiday" and "sister" are common among them.
    #[test]
    fn what_is_taken_out_was_never_there() {
        let text = ["holiday in Lisbon", "my sister", "the holiday bicycle", "Lisbon again", "sister"];
        let documents: Vec<Document> = (0..120_u8)
            .map(|n| Document {
                item: ItemId::from_bytes([n; 16]),
                text: text[usize::from(n) % text.len()],
                kind: if n % 4 == 0 { Kind::Fact } else { Kind::ConversationTurn },
                // Some at the same time, some in other conversations, and on two days.
                captured_at: Timestamp::from_seconds(i64::from(n) * 7 % 20 * 600 + i64::from(n % 2) * 86_400),
            })
            .collect();
        let keeps = |n: u32| n % 3 != 1;
        let mut maintained = Index::build(&documents, Language::English);
        for (place, document) in (0..).zip(&documents).filter(|(place, _)| !keeps(*place)) {
            maintained.remove(place, document.item, document.captured_at);
        }
        // What is left, at other places and in another order.
        let mut built = Index::new(Language::English);
        for (place, document) in (0..).zip(documents.iter().rev()) {
            if keeps(119 - place) {
                built.insert(place, document);
            }
        }
        for query in
            ["holiday", "sister Lisbon", "the", "again bicycle my", "bicycle on 2 January", "2 January 1970"]
        {
            let (one, other) = (maintained.score(query), built.score(query));
            for place in (0..120).filter(|place| keeps(*place)) {
                let (one, other) = (one[place as usize], other[119 - place as usize]);
                assert_eq!(one.to_bits(), other.to_bits(), "{query}: {place}");
            }
            // By an array or by pairs.
            for by_array in [true, false] {
                let summed = maintained.summed(query, |_, _| by_array).by_place(120);
                assert_eq!(summed, dense(&maintained, query), "{query}: {by_array}");
            }
        }
        for (place, document) in (0..).zip(&documents).filter(|(place, _)| keeps(*place)) {
            maintained.remove(place, document.item, document.captured_at);
        }
        assert!(maintained.numbers.is_empty() && maintained.dates.is_empty());
        assert!(maintained.total == 0 && maintained.bytes() == 0);
    }
}

//! The years, months and days that a question names, by which items are found that were captured then.
//!
//! Months have their English names, or their numbers in a date of ISO 8601. "Last week" is no date: what it means depends on
//! when it is asked, and an answer is a function of the view and the question. Where a question names a year, a month is one
//! of that year: "in May 2023" does not find what was captured in May 2022.

use oap_identity::Timestamp;

/// When an item was captured, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// The date of a time. The beginning of 1970 stands for a time that is hidden, and has none.
    pub(crate) fn of(at: Timestamp) -> Option<Self> {
        if at.millis() == 0 {
            return None;
        }
        let date = at.date();
        let mut parts = date.split('-');
        Some(Self {
            year: parts.next()?.parse().ok()?,
            month: parts.next()?.parse().ok()?,
            day: parts.next()?.parse().ok()?,
        })
    }
}

/// What a question names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Year(u16),
    /// From 1.
    Month(u8),
    /// A month and a day of it.
    Day(u8, u8),
}

impl Named {
    /// Whether a date is in it, of whatever year.
    const fn holds(self, date: Date) -> bool {
        match self {
            Self::Year(year) => date.year == year,
            Self::Month(month) => date.month == month,
            Self::Day(month, day) => date.month == month && date.day == day,
        }
    }
}

/// All that a question names.
#[derive(Debug)]
pub(crate) struct Dates(Vec<Named>);

impl Dates {
    /// What a question names, each once, in its order; no more than `most`.
    pub(crate) fn of(question: &str, most: usize) -> Self {
        Self(named(question, most))
    }

    /// For each, whether it finds what was captured on a date.
    pub(crate) fn each(&self) -> impl Iterator<Item = impl Fn(Date) -> bool> {
        let years = || self.0.iter().filter(|named| matches!(named, Named::Year(_)));
        self.0.iter().map(move |named| {
            move |date| {
                named.holds(date) && (years().next().is_none() || years().any(|year| year.holds(date)))
            }
        })
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Words before the name of a month. Without one of them, a day or a year beside it, it may be somebody's name, or a verb.
const LEADS: [&str; 18] = [
    "in", "of", "since", "until", "till", "by", "during", "before", "after", "last", "next", "this", "early",
    "mid", "late", "every", "between", "through",
];

fn named(question: &str, most: usize) -> Vec<Named> {
    let question = question.to_lowercase();
    let mut found = Vec::new();
    let mut name = |named: Named| {
        if found.len() < most && !found.contains(&named) {
            found.push(named);
        }
    };
    for token in question.split_whitespace() {
        let parts: Vec<&str> = token.trim_matches(|c: char| !c.is_alphanumeric()).splitn(4, '-').collect();
        let of = |at: usize, most: u8| parts.get(at).and_then(|part| two_digits(part, most));
        let dated = parts.first().is_some_and(|first| year(first).is_some()) && parts.len() <= 3;
        if let Some(month) = of(1, 12).filter(|_| dated) {
            name(Named::Month(month));
            if let Some(day) = of(2, 31) {
                name(Named::Day(month, day));
            }
        }
    }
    let words: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    for (at, word) in words.iter().enumerate() {
        if let Some(year) = year(word) {
            name(Named::Year(year));
        }
        let Some(month) = month(word) else { continue };
        let before = |by: usize| at.checked_sub(by).and_then(|at| words.get(at)).copied();
        let next = words.get(at + 1).copied();
        // "8 May", "8th of May", "May 8".
        let first = if before(1) == Some("of") { before(2) } else { before(1) };
        let day = first.and_then(day).or_else(|| next.and_then(day));
        if let Some(day) = day {
            name(Named::Day(month, day));
        }
        let led = before(1).is_some_and(|word| LEADS.contains(&word));
        if led || day.is_some() || next.and_then(year).is_some() {
            name(Named::Month(month));
        }
    }
    found
}

/// From 1, of a month's name or its first letters.
fn month(word: &str) -> Option<u8> {
    let is = |name: &&str| word == *name || name.get(..3) == Some(word);
    let at = MONTHS.iter().position(is).or((word == "sept").then_some(8))?;
    u8::try_from(at + 1).ok()
}

fn year(word: &str) -> Option<u16> {
    let digits = word.len() == 4 && word.bytes().all(|c| c.is_ascii_digit());
    word.parse().ok().filter(|year| digits && (1900..2200).contains(year))
}

/// "8" or "8th".
fn day(word: &str) -> Option<u8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

fn two_digits(part: &str, most: u8) -> Option<u8> {
    let digits = part.len() == 2 && part.bytes().all(|c| c.is_ascii_digit());
    part.parse().ok().filter(|number| digits && (1..=most).contains(number))
}

#[cfg(test)]
mod tests {
    use super::Named::{Day, Month, Year};
    use super::*;

    #[test]
    fn dates_of_questions() {
        for (question, dates) in [
            ("What happened on 8 May, 2023?", vec![Day(5, 8), Month(5), Year(2023)]),
            ("on the 8th of May", vec![Day(5, 8), Month(5)]),
            ("December 24th", vec![Day(12, 24), Month(12)]),
            ("Who came in Sept?", vec![Month(9)]),
            ("notes of 2023-05-08.", vec![Month(5), Day(5, 8), Year(2023)]),
            ("all of 2023-05", vec![Month(5), Year(2023)]),
            ("May 2023", vec![Month(5), Year(2023)]),
            // Names, verbs and numbers of something else.
            ("What may June march for?", vec![]),
            ("5 people, 1,000 euros, 4711, 2023-99", vec![Year(2023)]),
            ("in 2023 10 people", vec![Year(2023)]),
            ("last week", vec![]),
            ("", vec![]),
            ("---", vec![]),
        ] {
            assert_eq!(named(question, 8), dates, "{question}");
        }
    }

    #[test]
    fn a_question_names_so_many_and_no_more() {
        let many: String = (1900..2200).map(|year| format!("{year} ")).collect();
        assert_eq!(named(&many, 8).len(), 8);
    }

    #[test]
    fn a_month_is_one_of_the_year_that_is_named() {
        let date = |text: &str| Date::of(text.parse().unwrap()).unwrap();
        let (one, other) = (date("2023-05-08T12:00:00Z"), date("2022-05-08T12:00:00Z"));
        let finds =
            |question: &str, date: Date| Dates::of(question, 8).each().filter(|finds| finds(date)).count();
        assert_eq!((finds("8 May", one), finds("8 May", other)), (2, 2));
        assert_eq!((finds("8 May 2023", one), finds("8 May 2023", other)), (3, 0));
        assert_eq!((finds("2022-05, 2023-06", one), finds("2022-05, 2023-06", other)), (2, 2));
        assert_eq!(finds("born on 1984-05-08", one), 0);
    }

    #[test]
    fn dates_of_items() {
        let date = |text: &str| Date::of(text.parse().unwrap());
        let may = date("2023-05-08T23:59:59Z").unwrap();
        assert_eq!(may, Date { year: 2023, month: 5, day: 8 });
        assert!(Year(2023).holds(may) && Month(5).holds(may) && Day(5, 8).holds(may));
        assert!(!Year(2022).holds(may) && !Month(6).holds(may) && !Day(5, 9).holds(may));
        assert_eq!(date("1970-01-01T00:00:00Z"), None);
    }
}

//! Texts with spans that can be read in one way only: every class at the start, in the middle, at the end and beside another.

use super::Span;
use super::chance::{Chance, capital};

/// Classes of spans that are planted: all of protocol section 7 but `mixed`, which a gateway makes of too many.
pub const CLASSES: [&str; 11] = [
    "url_credentials",
    "secret",
    "iban",
    "card",
    "national_id",
    "email",
    "ip",
    "phone",
    "date_of_birth",
    "street_address",
    "third_party",
];

/// Words that several items share, so that a question finds more than one of them. None announces a span.
pub const VOCABULARY: [&str; 12] = [
    "garden", "bicycle", "lantern", "harvest", "violin", "kettle", "meadow", "copper", "walnut", "ribbon",
    "glacier", "pepper",
];

/// Spans of a text that has very many.
const MANY: usize = 66;

/// What an owner's contacts are called in texts.
#[derive(Debug, Clone, Default)]
pub(super) struct People {
    /// Given and family name.
    pub(super) names: Vec<(String, String)>,
    /// Addresses.
    pub(super) emails: Vec<String>,
    /// Numbers.
    pub(super) phones: Vec<String>,
}

/// A text as it grows.
#[derive(Default)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) spans: Vec<Span>,
}

/// How a text is built.
#[derive(Clone, Copy)]
enum Part {
    Plain,
    Span,
    /// Two spans with nothing but a separator between them.
    Pair,
}

const SHAPES: [&[Part]; 9] = [
    &[Part::Plain],
    &[Part::Span],
    &[Part::Span, Part::Plain],
    &[Part::Plain, Part::Span],
    &[Part::Plain, Part::Span, Part::Plain],
    &[Part::Pair],
    &[Part::Plain, Part::Pair, Part::Plain],
    &[Part::Span, Part::Plain, Part::Span, Part::Plain, Part::Span],
    &[Part::Plain, Part::Span, Part::Plain, Part::Pair, Part::Plain, Part::Span],
];

impl Text {
    /// A text of a shape that is dealt, with classes that are dealt.
    pub(super) fn make(chance: &mut Chance, people: &People) -> Self {
        let mut text = Self::default();
        for part in SHAPES[chance.deal("text", SHAPES.len())] {
            match part {
                Part::Plain => text.plain(chance),
                Part::Span => {
                    let class = class(chance, people, "");
                    text.span(chance, people, class);
                }
                Part::Pair => {
                    let first = class(chance, people, "");
                    text.span(chance, people, first);
                    text.text.push_str(if tight(first) && chance.once_in(2) { " " } else { "; " });
                    let second = class(chance, people, first);
                    text.span(chance, people, second);
                }
            }
        }
        text
    }

    /// A text with a span of every class, and two with nothing but a separator between them.
    pub(super) fn every(chance: &mut Chance, people: &People) -> Self {
        let mut text = Self::default();
        for class in CLASSES {
            text.plain(chance);
            text.span(chance, people, class);
        }
        text.plain(chance);
        text.span(chance, people, "email");
        text.text.push_str("; ");
        text.span(chance, people, "iban");
        text.plain(chance);
        text
    }

    /// A text with so many spans that a gateway joins some of them.
    pub(super) fn many(chance: &mut Chance, people: &People) -> Self {
        let mut text = Self::default();
        text.plain(chance);
        for n in 0..MANY {
            match n % 4 {
                0 => text.plain(chance),
                _ => text.text.push_str("; "),
            }
            text.span(chance, people, CLASSES[n % CLASSES.len()]);
        }
        text.plain(chance);
        text
    }

    /// A plain run with a canary.
    fn plain(&mut self, chance: &mut Chance) {
        if !self.text.is_empty() {
            let after = [" ", ", ", "; ", "\n", " \t"];
            self.text.push_str(chance.dealt("after a span", &after));
        }
        let canary = chance.canary();
        let (one, other) = (chance.dealt("vocabulary", &VOCABULARY), chance.of(&VOCABULARY));
        self.text.push_str(&match chance.deal("plain", 6) {
            0 => format!("{one} {canary}"),
            1 => format!("{canary} {one} {other}"),
            2 => format!("the {one} \"{canary}\" of the {other}"),
            3 => format!("{one} <b>{canary}</b> & \\{other}\\"),
            4 => format!("café {one} {canary} 東京 {other} 🎻"),
            _ => format!("{one} {one} {canary}, {other}"),
        });
    }

    fn span(&mut self, chance: &mut Chance, people: &People, class: &'static str) {
        let (announced, span) = one(chance, people, class, self.text.is_empty());
        if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
        self.text.push_str(&announced);
        let start = self.text.len();
        self.text.push_str(&span);
        self.spans.push(Span { class: class.to_owned(), start, end: self.text.len(), text: span });
    }
}

/// Whether a space ends a span of that class, whatever comes next.
fn tight(class: &str) -> bool {
    ["url_credentials", "secret", "email"].contains(&class)
}

fn class(chance: &mut Chance, people: &People, before: &str) -> &'static str {
    loop {
        let class = chance.dealt("class", &CLASSES);
        if class != before && (class != "third_party" || !people.names.is_empty()) {
            return class;
        }
    }
}

/// What announces a span, and the span.
fn one(chance: &mut Chance, people: &People, class: &'static str, first: bool) -> (String, String) {
    let announced = |text: &str| text.to_owned();
    match class {
        "url_credentials" => {
            let (user, secret) = (chance.canary(), chance.canary());
            let url = match chance.deal(class, 3) {
                0 => format!("https://{user}:{secret}@db.example.com/prod"),
                1 => format!("https://api.example.com/{user}?token={secret}"),
                _ => format!("postgres://{user}:{secret}@localhost:5432/main"),
            };
            (String::new(), url)
        }
        "secret" => {
            let word = chance.canary();
            match chance.deal(class, if first { 2 } else { 4 }) {
                0 => (String::new(), format!("sk_live_{word}{}", chance.digits(8))),
                1 => (String::new(), format!("glpat-{word}{}", chance.digits(10))),
                2 => (announced("password: "), word),
                _ => (announced("api_key="), format!("{word}-{}", chance.digits(3))),
            }
        }
        "email" => (String::new(), email(chance)),
        "street_address" => {
            let street = capital(&chance.canary());
            let number = 1 + chance.below(99);
            match chance.deal(class, 3) {
                0 => (String::new(), format!("{street}straße {number}")),
                1 => (String::new(), format!("{number} {street} Street")),
                _ => (String::new(), format!("{street}weg {number}, 10115 Berlin")),
            }
        }
        "third_party" => (String::new(), third_party(chance, people)),
        _ => loop {
            let (announced, span) = numbers(chance, class);
            if !chance.is_made(&span) {
                return (announced, chance.planted(span));
            }
        },
    }
}

pub(super) fn email(chance: &mut Chance) -> String {
    let (local, domain) = (chance.canary(), chance.canary());
    match chance.deal("email", 3) {
        0 => format!("{local}@{domain}.example"),
        1 => format!("{local}+news@{domain}.example.org"),
        _ => format!("{}.{local}@mail.{domain}.example", chance.of(&["a", "jo", "m"])),
    }
}

fn third_party(chance: &mut Chance, people: &People) -> String {
    let (given, family) = chance.of(&people.names);
    match chance.deal("third_party", 6) {
        0 if !people.emails.is_empty() => chance.of(&people.emails),
        1 if !people.phones.is_empty() => chance.of(&people.phones),
        2 => family,
        3 => format!("{given} {family}"),
        4 => given.to_uppercase(),
        _ => given,
    }
}

/// Spans of digits, which are their own canaries.
fn numbers(chance: &mut Chance, class: &str) -> (String, String) {
    match class {
        "iban" => (String::new(), iban(chance)),
        "card" => (String::new(), card(chance)),
        "national_id" => {
            let (area, group) = (100 + chance.below(500), 10 + chance.below(90));
            (String::new(), format!("{area}-{group}-{}", 1000 + chance.below(9000)))
        }
        "ip" => match chance.deal("ip", 2) {
            0 => {
                let mut part = |least: usize| least + chance.below(250 - least);
                (String::new(), format!("{}.{}.{}.{}", part(11), part(10), part(10), part(10)))
            }
            _ => {
                let mut part = || 0x1000 + chance.below(0xE000);
                (String::new(), format!("2001:db8:{:x}:{:x}::{:x}", part(), part(), part()))
            }
        },
        "phone" => (String::new(), phone(chance)),
        _ => {
            let months = ["January", "March", "May", "June", "August", "October"];
            let (day, year) = (1 + chance.below(28), 1920 + chance.below(90));
            let announced = chance.dealt("birth", &["born on ", "date of birth: ", "geboren am "]);
            let date = match announced {
                "geboren am " => format!("{day}.{}.{year}", 1 + chance.below(12)),
                _ => format!("{day} {} {year}", chance.of(&months)),
            };
            (announced.to_owned(), date)
        }
    }
}

pub(super) fn phone(chance: &mut Chance) -> String {
    match chance.deal("phone", 3) {
        0 => format!("+1 212-{}{}-{}", 2 + chance.below(8), 20 + chance.below(70), chance.digits(4)),
        1 => format!("+44 20 7{} {}", 100 + chance.below(900), chance.digits(4)),
        _ => format!("+49 30 {}{}", 2 + chance.below(7), chance.digits(7)),
    }
}

fn card(chance: &mut Chance) -> String {
    let number = format!("4{}", chance.digits(14));
    let sum: u32 = number
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let digit = u32::from(digit - b'0') * if place % 2 == 0 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    let number = format!("{number}{}", (10 - sum % 10) % 10);
    if chance.once_in(2) { number } else { in_fours(&number) }
}

fn iban(chance: &mut Chance) -> String {
    let account = format!("{}{}", 1 + chance.below(9), chance.digits(17));
    // DE is 1314; the remainder of the number with 00 in the place of the check digits.
    let remainder =
        format!("{account}131400").bytes().fold(0, |r, digit| (r * 10 + u32::from(digit - b'0')) % 97);
    let number = format!("DE{:02}{account}", 98 - remainder);
    if chance.once_in(2) { number } else { in_fours(&number) }
}

fn in_fours(number: &str) -> String {
    let letters: Vec<char> = number.chars().collect();
    letters.chunks(4).map(String::from_iter).collect::<Vec<_>>().join(" ")
}

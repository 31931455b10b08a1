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
    /// Streets with their numbers.
    pub(super) streets: Vec<String>,
    /// Middle names, nicknames and names that are shown.
    pub(super) others: Vec<String>,
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
    /// A text of a shape that is dealt, with classes that are dealt for each place in it.
    pub(super) fn make(chance: &mut Chance, people: &People) -> Self {
        let mut text = Self::default();
        let shape = SHAPES[chance.deal("text", SHAPES.len())];
        for (number, part) in shape.iter().enumerate() {
            match part {
                Part::Plain => text.plain(chance),
                Part::Span => {
                    let place = match (number == 0, number + 1 == shape.len()) {
                        (true, true) => "class as the whole",
                        (true, false) => "class at the start",
                        (false, true) => "class at the end",
                        (false, false) => "class in the middle",
                    };
                    let class = class(chance, people, place);
                    text.span(chance, people, class);
                }
                Part::Pair => {
                    let classes = pair(chance, people);
                    text.pair(chance, people, classes);
                }
            }
        }
        text
    }

    /// A text that is a span of a class.
    pub(super) fn alone(chance: &mut Chance, people: &People, class: &'static str) -> Self {
        let mut text = Self::default();
        text.span(chance, people, class);
        text
    }

    /// A text with a span of a class at each place, next to one of its own class, and next to one of another.
    pub(super) fn places(
        chance: &mut Chance,
        people: &People,
        class: &'static str,
        other: &'static str,
    ) -> Self {
        let mut text = Self::default();
        text.span(chance, people, class);
        text.plain(chance);
        text.span(chance, people, class);
        for classes in [(class, class), (class, other)] {
            text.plain(chance);
            text.pair(chance, people, classes);
        }
        text.plain(chance);
        text.span(chance, people, class);
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
        text.pair(chance, people, ("email", "iban"));
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

    /// Two spans with nothing but a separator between them.
    fn pair(&mut self, chance: &mut Chance, people: &People, (first, second): (&'static str, &'static str)) {
        self.span(chance, people, first);
        self.text.push_str(if tight(first) && chance.once_in(2) { " " } else { "; " });
        let separated = self.text.len();
        self.span_at(chance, people, second, Some(separated));
    }

    fn span(&mut self, chance: &mut Chance, people: &People, class: &'static str) {
        self.span_at(chance, people, class, None);
    }

    /// A span; where nothing must stand before it but what is there, no word announces it, if it can do without.
    fn span_at(
        &mut self,
        chance: &mut Chance,
        people: &People,
        class: &'static str,
        separated: Option<usize>,
    ) {
        let bare = self.text.is_empty() || separated == Some(self.text.len());
        let (announced, span) = one(chance, people, class, bare);
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

/// A class, dealt from a deck of its own for each place.
fn class(chance: &mut Chance, people: &People, place: &'static str) -> &'static str {
    loop {
        let class = chance.dealt(place, &CLASSES);
        if class != "third_party" || !people.names.is_empty() {
            return class;
        }
    }
}

/// Two classes for two spans that are next to each other, maybe one class twice.
fn pair(chance: &mut Chance, people: &People) -> (&'static str, &'static str) {
    loop {
        let number = chance.deal("pair of classes", CLASSES.len() * CLASSES.len());
        let (first, second) = (CLASSES[number / CLASSES.len()], CLASSES[number % CLASSES.len()]);
        if ![first, second].contains(&"third_party") || !people.names.is_empty() {
            return (first, second);
        }
    }
}

/// What announces a span, and the span; nothing does where it is bare, but a date of birth.
fn one(chance: &mut Chance, people: &People, class: &'static str, bare: bool) -> (String, String) {
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
            match chance.deal(if bare { "bare secret" } else { class }, if bare { 2 } else { 4 }) {
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

/// How many forms a span of a contact has.
const OF_CONTACTS: usize = 12;

fn third_party(chance: &mut Chance, people: &People) -> String {
    let (given, family) = chance.of(&people.names);
    let of = |chance: &mut Chance, all: &[String], else_: &String| match all {
        [] => else_.clone(),
        all => chance.of(all),
    };
    match chance.deal("third_party", OF_CONTACTS) {
        0 => of(chance, &people.emails, &given),
        1 => of(chance, &people.phones, &given),
        2 => family,
        3 => format!("{given} {family}"),
        4 => given.to_uppercase(),
        5 | 6 => of(chance, &people.others, &given),
        7 => of(chance, &people.streets, &given),
        8 if !people.streets.is_empty() => format!("{}, 10115 Berlin", chance.of(&people.streets)),
        // Another span that holds a name is a third party's as a whole.
        9 => format!("{}.{}@{}.example", given.to_lowercase(), chance.canary(), chance.canary()),
        10 => format!("{} {family} Street", 1 + chance.below(99)),
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

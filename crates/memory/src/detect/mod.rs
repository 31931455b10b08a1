//! Spans of personal data in text (protocol section 7): one small detector a class.
//!
//! A detector only proposes; [`segments`] settles overlaps and cuts the text. What a detector misses stays in a
//! plain run and is shown to whoever may see text at all: detection is a help, the trust level is the boundary.
//!
//! Text is foreign: nothing here indexes or slices it, and a text has a bounded number of spans ([`max_spans`]).

#![deny(clippy::indexing_slicing, clippy::string_slice)]

mod address;
mod card;
mod date;
mod email;
mod fold;
mod iban;
mod ip;
mod national_id;
mod overlap;
mod people;
mod phone;
mod secret;
mod spans;
mod url;

use crate::item::closed_enum;
use fold::Folded;
pub use people::{People, of_contact};
pub use phone::MAX_NUMBERS;
use spans::Span;
use std::ops::Range;

closed_enum! {
    /// What a span is. The placeholder of a hidden span is the class in brackets.
    SpanClass {
        /// A URL with user and password, or with a token in its query.
        UrlCredentials = "url_credentials",
        /// An API key, a token, a password after its name, a private key.
        Secret = "secret",
        /// An international bank account number with a valid checksum.
        Iban = "iban",
        /// A payment card number of a known issuer with a valid checksum.
        Card = "card",
        /// A tax, insurance or identity number of a person.
        NationalId = "national_id",
        /// An e-mail address.
        Email = "email",
        /// An IP address.
        Ip = "ip",
        /// A telephone number that exists in its country's plan.
        Phone = "phone",
        /// A date that a word of birth announces.
        BirthDate = "date_of_birth",
        /// A street address.
        Address = "street_address",
        /// The name, e-mail address, telephone number or street address of one of the owner's contacts.
        ThirdParty = "third_party",
        /// A stretch of a text that has too many spans of several classes to tell them apart. Shown only where a text is
        /// shown whole.
        Mixed = "mixed",
    }
}

impl SpanClass {
    /// Which class a stretch gets that several spans share: the lowest, the one that profiles hide longest.
    const fn rank(self) -> u8 {
        match self {
            Self::UrlCredentials => 0,
            Self::Secret => 1,
            Self::ThirdParty => 2,
            Self::Iban => 3,
            Self::Card => 4,
            Self::NationalId => 5,
            Self::Email => 6,
            Self::Ip => 7,
            Self::Phone => 8,
            Self::BirthDate => 9,
            Self::Address => 10,
            Self::Mixed => 11,
        }
    }

    /// What stands in the text where the span is hidden: `[email]`.
    #[must_use]
    pub fn placeholder(self) -> String {
        format!("[{self}]")
    }
}

/// A stretch of text: a plain run, or a span of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// `None` for a plain run.
    pub class: Option<SpanClass>,
    /// The text, never empty.
    pub text: String,
}

impl SpanClass {
    /// Whether a span of this class that holds somebody's name is about that person: it is a third-party span as
    /// a whole, so that hiding the name does not show the rest.
    const fn about_people(self) -> bool {
        matches!(self, Self::Email | Self::Phone | Self::Address | Self::BirthDate | Self::ThirdParty)
    }
}

/// Spans that a text of any length may have.
pub const FREE_SPANS: usize = 32;
/// Beyond [`FREE_SPANS`], a text has at most one span for so many of its bytes.
pub const BYTES_PER_SPAN: usize = 96;

/// Most spans of a text of that length, in bytes. Where there are more, those nearest to each other become one, with what
/// stands between them: a span of their class, or [`SpanClass::Mixed`].
#[must_use]
pub const fn max_spans(length: usize) -> usize {
    FREE_SPANS + length / BYTES_PER_SPAN
}

/// Cuts a text into plain runs and spans. Together the segments are the text.
///
/// What any detector found is in a span. Where spans of several classes overlap, what they share has the class that is
/// hidden longest: URLs with credentials, secrets, third parties, then the order of [`SpanClass::ALL`]; the rest of the
/// weaker span is a span beside it. An e-mail address inside a password is part of the password. An address or a date
/// that holds the name of one of `people`, and their own e-mail addresses, telephone numbers and street addresses, are third-party spans.
#[must_use]
pub fn segments(text: &str, people: &People) -> Vec<Segment> {
    let mut found = find(text, people);
    if let Some(folded) = Folded::of(text) {
        let place = |span: Span| Some(Span { range: folded.place(&span.range)?, ..span });
        found.extend(find(folded.text(), people).into_iter().filter_map(place));
    }
    let spans = spans::bounded(spans::settle(text, found), max_spans(text.len()));
    let mut segments = Vec::with_capacity(2 * spans.len() + 1);
    let mut end = 0;
    let mut push = |class, range: Range<usize>| {
        if let Some(text) = text.get(range).filter(|text| !text.is_empty()) {
            segments.push(Segment { class, text: text.to_owned() });
        }
    };
    for Span { class, range } in spans {
        push(None, end..range.start);
        end = range.end;
        push(Some(class), range);
    }
    push(None, end..text.len());
    segments
}

/// Everything that the detectors propose in a text.
fn find(text: &str, people: &People) -> Vec<Span> {
    let mut found = Vec::new();
    for (by, detector) in DETECTORS {
        found.extend(detector(text).into_iter().map(|range| {
            let said = text.get(range.clone()).unwrap_or_default();
            let class = match by {
                SpanClass::Email if people.has_email(said) => SpanClass::ThirdParty,
                SpanClass::Phone if people.has_phone(said) => SpanClass::ThirdParty,
                SpanClass::Address if people.has_street(said) => SpanClass::ThirdParty,
                by => *by,
            };
            Span { class, range }
        }));
    }
    let name = |range| Span { class: SpanClass::ThirdParty, range };
    found.extend(people.find(text).into_iter().map(name));
    found
}

/// The text before a range, and the text after it.
fn around<'t>(text: &'t str, range: &Range<usize>) -> (&'t str, &'t str) {
    (text.get(..range.start).unwrap_or_default(), text.get(range.end..).unwrap_or_default())
}

type Detector = fn(&str) -> Vec<Range<usize>>;

const DETECTORS: &[(SpanClass, Detector)] = &[
    (SpanClass::UrlCredentials, url::find),
    (SpanClass::Secret, secret::find),
    (SpanClass::Iban, iban::find),
    (SpanClass::Card, card::find),
    (SpanClass::NationalId, national_id::find),
    (SpanClass::Email, email::find),
    (SpanClass::Ip, ip::find),
    (SpanClass::Phone, phone::find),
    (SpanClass::BirthDate, date::find),
    (SpanClass::Address, address::find),
];

/// A pattern that is part of the program.
fn pattern(text: &str) -> regex::Regex {
    regex::Regex::new(text).unwrap_or_else(|e| unreachable!("a constant pattern: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str) -> Vec<(SpanClass, String)> {
        let segments = segments(text, &People::none());
        assert_eq!(segments.iter().map(|s| s.text.as_str()).collect::<String>(), text);
        segments.into_iter().filter_map(|s| Some((s.class?, s.text))).collect()
    }

    fn one(class: SpanClass, text: &str, span: &str) {
        assert_eq!(spans(text), [(class, span.to_owned())], "{text}");
    }

    #[test]
    fn finds_each_class() {
        one(SpanClass::Email, "write to alice.b+x@mail.example.com, please", "alice.b+x@mail.example.com");
        one(SpanClass::Email, "Mail: Jürgen@müller.example.", "Jürgen@müller.example");
        one(SpanClass::Phone, "call +49 30 901820 tomorrow", "+49 30 901820");
        one(SpanClass::Phone, "call (212) 555-2368 now", "(212) 555-2368");
        one(SpanClass::Phone, "Tel. 030 901820.", "030 901820");
        one(SpanClass::Iban, "pay to DE89 3704 0044 0532 0130 00 today", "DE89 3704 0044 0532 0130 00");
        one(SpanClass::Iban, "GB82WEST12345698765432", "GB82WEST12345698765432");
        one(SpanClass::Card, "card 4111 1111 1111 1111, exp 12/27", "4111 1111 1111 1111");
        one(SpanClass::Card, "5500-0000-0000-0004", "5500-0000-0000-0004");
        one(SpanClass::Secret, "key AKIAIOSFODNN7EXAMPLE here", "AKIAIOSFODNN7EXAMPLE");
        one(SpanClass::Secret, "password: hunter2-and-more!", "hunter2-and-more!");
        one(
            SpanClass::Secret,
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        );
    }

    #[test]
    fn leaves_the_rest_alone() {
        for text in [
            "",
            "version 10.4.2 of 2026-05-01",
            "ISBN 978-3-16-148410-0",
            "order 4111111111111112",
            "DE89 3704 1044 1532 1130 11",
            "meet at 14:30 on 12.05.2026",
            "user @ home",
            "the password is on the fridge",
            "I paid 1,250.00 for 3 nights",
        ] {
            assert_eq!(spans(text), [], "{text}");
        }
    }

    /// What is no account number may end with a telephone number.
    #[test]
    fn a_number_may_begin_within_another() {
        assert_eq!(spans("DE89 3704 0044 0532 0130 01"), [(SpanClass::Phone, "0532 0130 01".to_owned())]);
    }

    #[test]
    fn overlaps_go_to_the_stronger_class() {
        one(SpanClass::Secret, "password=alice@example.com", "alice@example.com");
    }
}

//! Text of all scripts: detectors find numbers in any digits, never panic, and cut without loss.

use oap_memory::detect::{BYTES_PER_SPAN, FREE_SPANS, People, Segment, SpanClass, max_spans, segments};
use oap_memory::text::{Language, MAX_WORD, terms};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// The digits of a text in another script.
fn digits_in(text: &str, zero: char) -> String {
    let digit = |d: char| d.to_digit(10).and_then(|d| char::from_u32(zero as u32 + d)).unwrap_or(d);
    text.chars().map(digit).collect()
}

fn full_width(text: &str) -> String {
    let wide = |c: char| match c {
        ' ' => '\u{3000}',
        '!'..='~' => char::from_u32(c as u32 - 0x20 + 0xff00).unwrap(),
        c => c,
    };
    text.chars().map(wide).collect()
}

/// Each detector of numbers, with something that it finds.
const NUMBERS: [(SpanClass, &str); 14] = [
    (SpanClass::NationalId, "536-90-4399"),
    (SpanClass::NationalId, "86095742719"),
    (SpanClass::NationalId, "15070649C103"),
    (SpanClass::NationalId, "12345678Z"),
    (SpanClass::NationalId, "255081416802538"),
    (SpanClass::NationalId, "756.9217.0769.85"),
    (SpanClass::Card, "4111 1111 1111 1111"),
    (SpanClass::Iban, "DE89 3704 0044 0532 0130 00"),
    (SpanClass::Ip, "192.0.2.17"),
    (SpanClass::Phone, "+49 30 901820"),
    (SpanClass::Phone, "(212) 555-2368"),
    (SpanClass::BirthDate, "1984-03-17"),
    (SpanClass::Email, "alice7@mail.example"),
    (SpanClass::Address, "221 Baker Street"),
];

fn hidden(text: &str) -> Vec<(SpanClass, String)> {
    cut(text, &People::none()).into_iter().filter_map(|s| Some((s.class?, s.text))).collect()
}

/// The segments, with what must hold of all of them.
fn cut(text: &str, people: &People) -> Vec<Segment> {
    let segments = segments(text, people);
    let whole: String = segments.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(whole, text);
    assert!(segments.iter().all(|s| !s.text.is_empty()), "an empty segment");
    assert!(segments.windows(2).all(|pair| pair.iter().any(|s| s.class.is_some())), "two runs in a row");
    assert!(segments.iter().filter(|s| s.class.is_some()).count() <= max_spans(text.len()));
    segments
}

#[test]
fn numbers_are_found_in_the_digits_of_any_script() {
    for (class, number) in NUMBERS {
        let before = if class == SpanClass::BirthDate { "born on " } else { "it is " };
        let forms = [
            number.to_owned(),
            full_width(number),
            digits_in(number, '٠'),
            digits_in(number, '۰'),
            digits_in(number, '०'),
            digits_in(number, '𝟎'),
            number.replace('-', "\u{2011}").replace(' ', "\u{a0}"),
            // Invisible characters between the digits, a mark on the first of them.
            number.replacen('1', "1\u{200d}\u{301}", 1).replacen('2', "2\u{ad}", 1),
        ];
        for form in forms {
            let text = format!("{before}{form}.");
            assert_eq!(hidden(&text), [(class, form)], "{text}");
        }
    }
}

#[test]
fn an_owners_contact_is_found_in_any_digits() {
    for words in ["+49 171 9876543", "+٤٩ ١٧١ ٩٨٧٦٥٤٣"] {
        let people = People::new([words]);
        for text in ["call +49 171 9876543 now", "call +４９ １７１ ９８７６５４３ now"] {
            assert_eq!(cut(text, &people)[1].class, Some(SpanClass::ThirdParty), "{text}");
        }
    }
}

#[test]
fn an_invisible_character_never_hides_less() {
    // Between a word and a number it is no boundary in the plain form, but is one as the text stands.
    for unseen in ['\u{200b}', '\u{200f}', '\u{202a}', '\u{feff}', '\u{2060}'] {
        let text = format!("tel{unseen}030 901820, mail{unseen}anna@home.example{unseen}");
        assert_eq!(hidden(&text).len(), 2, "{unseen:?}");
        let people = People::new(["anna@home.example"]);
        assert!(cut(&text, &people).iter().any(|s| s.class == Some(SpanClass::ThirdParty)), "{unseen:?}");
    }
}

#[test]
fn spans_beyond_the_bound_become_larger_ones() {
    let dense = |separators: &[&str]| -> String {
        (0..2_000).map(|n| format!("a{n}@b.example{}", separators[n % separators.len()])).collect()
    };
    // Of one class: the class stays.
    let text = dense(&[" ", " and then "]);
    let segments = cut(&text, &People::none());
    let spans: Vec<&Segment> = segments.iter().filter(|s| s.class.is_some()).collect();
    assert_eq!(spans.len(), FREE_SPANS + text.len() / BYTES_PER_SPAN);
    assert!(spans.iter().all(|s| s.class == Some(SpanClass::Email)));
    // Nothing that was hidden alone is shown: no plain run has an address.
    assert!(segments.iter().all(|s| s.class.is_some() || !s.text.contains('@')));
    // Of several: none of them.
    let mixed = dense(&[" 192.0.2.1 ", " DE89370400440532013000 "]);
    let classes: Vec<_> = cut(&mixed, &People::none()).iter().filter_map(|s| s.class).collect();
    assert!(classes.contains(&SpanClass::Mixed));
    // One below the bound nothing is joined.
    let few: String = (0..FREE_SPANS).map(|n| format!("a{n}@b.example ")).collect();
    assert_eq!(hidden(&few).len(), FREE_SPANS);
}

#[test]
fn work_grows_with_the_text_alone() {
    const LENGTH: usize = 64 * 1024;
    let fill = |unit: &str| unit.repeat(LENGTH / unit.len());
    let texts = [
        "a",
        "1",
        "@",
        "a@",
        "a@b.",
        "a@b.cd ",
        ":",
        "f:",
        "1.",
        "192.0.2.1 ",
        "+",
        "+49 30 901820 ",
        "0",
        "030 901820 ",
        "212-555-2368 ",
        "DE89",
        "DE89 ",
        "DE89-",
        "4111-",
        "+49 ",
        "0171 ",
        "86 095 ",
        "86 095 742 719 ",
        "12 Main Street, ",
        "1 A-A-",
        "A-",
        "A' ",
        "passport ",
        "passport AB12345 ",
        "password:",
        "password is ",
        "password=a@b.cd ",
        "DE89370400440532013000 ",
        "4111 ",
        "4111 1111 1111 1111 ",
        "-----BEGIN PRIVATE KEY-----",
        "password:aaaa ",
        "password ",
        "https://a",
        "https://a?key=aaaa",
        "Am ",
        "Unter den Linden 77 ",
        "A B C D ",
        "born ",
        "geb. 1.1.1980 ",
        "*",
        "é",
        "１",
        "٣",
        "\u{301}",
        "\u{200d}",
        "\u{1f1e6}",
        "ﷺ",
        "Ж",
        "Ж ",
        "東",
        "が",
        "\u{d55c}",
        "Anna ",
        "Anna-",
        "ſ",
        "'",
        "a'",
        "_",
        "1_",
        "\u{202e}",
        "e\u{301}",
    ];
    let people = People::new(["Anna Müller", "anna@mail.example"]);
    for unit in texts {
        let text = fill(unit);
        #[expect(clippy::disallowed_methods, reason = "this measures")]
        let start = Instant::now();
        cut(&text, &people);
        #[expect(clippy::disallowed_methods, reason = "this measures")]
        let middle = Instant::now();
        let words = terms(&text, Language::English);
        let (cutting, matching) = (middle - start, middle.elapsed());
        println!("{:>8} ms {:>8} ms  {unit:?}", cutting.as_millis(), matching.as_millis());
        assert!(words.iter().all(|term| term.text.chars().count() <= MAX_WORD));
        // Quadratic work on 64 KiB takes many times as long, on whatever machine.
        assert!(cutting < Duration::from_secs(10), "{unit:?} takes {cutting:?}");
        assert!(matching < Duration::from_secs(5), "{unit:?} takes {matching:?}");
    }
}

/// Pieces that detectors care about, in many scripts.
fn piece() -> impl Strategy<Value = String> {
    let alphabet = "0123456789٠٣٩۰۵०९๑๙０９𝟎𝟗௧①½²ⅣABXYZabZſKßéüЖ東アم\u{301}\u{308}\u{20dd}\u{fe0f}\u{200b}\u{200c}\u{200d}\u{200f}\
        \u{202a}\u{202e}\u{2066}\u{2069}\u{ad}\u{feff} \t\n\u{a0}\u{2009}\u{3000}-‐–−./:@+()[]{}#?&=*_'\"،٫٬。．＠－";
    let chars: Vec<char> = alphabet.chars().collect();
    let known = [
        "ssn",
        "passport no. ",
        "geboren am ",
        "password: ",
        "https://u:p@",
        "DE",
        "XY",
        "v",
        "@b.example",
        "+49",
        "::1",
        "Hauptstraße ",
        "Anna",
        "Müller",
        "756.",
        "25508",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "ﷺ",
    ];
    let of_number = prop::sample::select(NUMBERS.map(|(_, number)| number).to_vec());
    let zero = prop::sample::select(vec!['0', '٠', '۰', '０', '𝟎', '०', '𑜰']);
    prop_oneof![
        6 => prop::collection::vec(prop::sample::select(chars), 1..12).prop_map(|chars| chars.into_iter().collect()),
        2 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        2 => (of_number, zero).prop_map(|(number, zero)| digits_in(number, zero)),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("OAP_TEXT_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_text_is_cut_without_loss(pieces in prop::collection::vec(piece(), 0..12)) {
        let text = pieces.concat();
        cut(&text, &People::new(["Anna Müller", "anna@b.example", "+49 30 901820"]));
        People::new([text.as_str()]);
        let _ = terms(&text, Language::English);
    }
}

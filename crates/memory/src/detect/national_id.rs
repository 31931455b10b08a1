//! Numbers that a state or its insurance gives a person, where their form or check digit tells them apart.

use super::overlap::{at_each_group, is_separator};
use std::ops::Range;
use std::sync::LazyLock;

/// A form, and the check that its characters (letters and digits alone) must pass.
type Form = (regex::Regex, fn(&str) -> bool);

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    vec![
        // US social security number
        (super::pattern(r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b"), ssn),
        // UK national insurance number
        (
            super::pattern(r"\b[ABCEGHJ-PRSTW-Z][ABCEGHJ-NPRSTW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]\b"),
            |_| true,
        ),
        // German tax id
        (super::pattern(r"\b[1-9][0-9](?: ?[0-9]{3}){3}\b"), steuer_id),
        // German pension insurance number
        (super::pattern(r"\b[0-9]{2} ?[0-9]{6} ?[A-Z] ?[0-9]{3}\b"), pension),
        // Italian tax code
        (super::pattern(r"\b[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]\b"), |_| true),
        // Spanish DNI and NIE
        (super::pattern(r"\b(?:[0-9]{8}|[XYZ][0-9]{7})-?[A-HJ-NP-TV-Z]\b"), dni),
        // French NIR
        (
            super::pattern(
                r"\b[12] ?[0-9]{2} ?(?:0[1-9]|1[0-2]) ?(?:[0-9]{2}|2[AB]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}\b",
            ),
            nir,
        ),
        // Swiss AHV number
        (super::pattern(r"\b756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}\b"), ahv),
    ]
});

/// A number that a word announces: identity card, passport, driving licence, and the like.
static NAMED: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r"(?x)
        \b(?i:passport|reisepass|personalausweis|ausweis|identity\ card|id\ card|driving\ licen[cs]e|driver'?s\ licen[cs]e|führerschein
          |ssn|social\ security|steuer-?id(?:nr\.?)?|sozialversicherungsnummer|svnr|bsn|national\ id|tax\ id)
        (?i:\s*(?:number|no\.?|nr\.?|nummer|is|ist|lautet|[:\#]))*\s*
        (?<number>[A-Z0-9][A-Z0-9\ -]{5,14}[A-Z0-9])\b",
    )
});

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let by_form = FORMS.iter().flat_map(|(form, check)| {
        at_each_group(form, text, is_separator).filter(|range| {
            let said = text.get(range.clone()).unwrap_or_default();
            let plain: String = said.chars().filter(char::is_ascii_alphanumeric).collect();
            let (before, after) = super::around(text, range);
            let glued = before.ends_with(['-', '.', '+']) || after.starts_with('-');
            !glued && check(&plain)
        })
    });
    by_form.chain(named(text)).collect()
}

/// Announced numbers. The next search begins where the number does: it may hold the next announcement.
fn named(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    let all = std::iter::from_fn(move || {
        let number = NAMED.captures_at(text, at)?.name("number")?;
        at = number.start();
        Some(number)
    });
    all.filter(|m| m.as_str().bytes().filter(u8::is_ascii_digit).count() >= 5).map(|m| m.range())
}

/// The digits of a text that is exactly so many of them.
fn digits<const N: usize>(text: &str) -> Option<[u32; N]> {
    let mut digits = [0; N];
    let mut chars = text.chars();
    for digit in &mut digits {
        *digit = chars.next()?.to_digit(10)?;
    }
    chars.next().is_none().then_some(digits)
}

fn ssn(id: &str) -> bool {
    let Some([a, b, c, d, e, serial @ ..]) = digits::<9>(id) else { return false };
    let area = a * 100 + b * 10 + c;
    area != 0 && area != 666 && area < 900 && (d, e) != (0, 0) && serial != [0; 4]
}

/// ISO 7064 MOD 11,10; and of the first ten digits one or two are there more than once.
fn steuer_id(id: &str) -> bool {
    let Some([first @ .., check]) = digits::<11>(id) else { return false };
    let times = |digit: u32| first.iter().filter(|other| **other == digit).count();
    let repeated = (0..10).filter(|digit| times(*digit) > 1).count();
    let product = first.iter().fold(10, |product, digit| match (digit + product) % 10 {
        0 => 20 % 11,
        sum => sum * 2 % 11,
    });
    repeated == 1 && (11 - product) % 10 == check
}

fn pension(id: &str) -> bool {
    let parts = id.split_at_checked(8).and_then(|(start, rest)| {
        let letter = rest.chars().next().filter(char::is_ascii_uppercase)?;
        Some((digits::<8>(start)?, u32::from(letter) - u32::from('A') + 1, digits::<3>(rest.get(1..)?)?))
    });
    let Some((start, number, [serial, last, check])) = parts else { return false };
    let expanded = start.into_iter().chain([number / 10, number % 10, serial, last]);
    let weights = [2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1];
    let sum: u32 = expanded.zip(weights).map(|(d, w)| d * w / 10 + d * w % 10).sum();
    check == sum % 10
}

fn dni(id: &str) -> bool {
    let Some((number, letter)) = id.split_at_checked(8) else { return false };
    let number = match number.as_bytes() {
        [b'X', ..] => number.replacen('X', "0", 1),
        [b'Y', ..] => number.replacen('Y', "1", 1),
        [b'Z', ..] => number.replacen('Z', "2", 1),
        _ => number.to_owned(),
    };
    let letters = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let wanted = number.parse::<usize>().ok().and_then(|n| letters.get(n % letters.len()));
    wanted.is_some_and(|wanted| letter.as_bytes() == [*wanted])
}

fn nir(id: &str) -> bool {
    let Some((body, key)) = id.split_at_checked(13) else { return false };
    let body = body.replace("2A", "19").replace("2B", "18");
    let number = body.parse::<u64>().ok().zip(key.parse::<u64>().ok());
    number.is_some_and(|(body, key)| 97 - body % 97 == key)
}

fn ahv(id: &str) -> bool {
    let Some([first @ .., check]) = digits::<13>(id) else { return false };
    let sum: u32 = first.iter().zip([1, 3].iter().cycle()).map(|(d, w)| d * w).sum();
    (10 - sum % 10) % 10 == check
}

//! Numbers that a state or its insurance gives a person, where their form or check digit tells them apart.

use std::ops::Range;
use std::sync::LazyLock;

/// A form, and the check that its characters (letters and digits alone) must pass.
type Form = (regex::Regex, fn(&str) -> bool);

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    vec![
        // US social security number
        (super::pattern(r"\b\d{3}-\d{2}-\d{4}\b"), ssn),
        // UK national insurance number
        (super::pattern(r"\b[ABCEGHJ-PRSTW-Z][ABCEGHJ-NPRSTW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b"), |_| true),
        // German tax id
        (super::pattern(r"\b[1-9]\d(?: ?\d{3}){3}\b"), steuer_id),
        // German pension insurance number
        (super::pattern(r"\b\d{2} ?\d{6} ?[A-Z] ?\d{3}\b"), pension),
        // Italian tax code
        (super::pattern(r"\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b"), |_| true),
        // Spanish DNI and NIE
        (super::pattern(r"\b(?:\d{8}|[XYZ]\d{7})-?[A-HJ-NP-TV-Z]\b"), dni),
        // French NIR
        (super::pattern(r"\b[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}\b"), nir),
        // Swiss AHV number
        (super::pattern(r"\b756\.\d{4}\.\d{4}\.\d{2}\b"), ahv),
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
        form.find_iter(text).filter(|m| {
            let plain: String = m.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
            let glued =
                text[..m.start()].ends_with(['-', '.', '+', '/']) || text[m.end()..].starts_with(['-', '/']);
            !glued && check(&plain)
        })
    });
    let named = NAMED
        .captures_iter(text)
        .filter_map(|c| c.name("number"))
        .filter(|m| m.as_str().bytes().filter(u8::is_ascii_digit).count() >= 5);
    by_form.map(|m| m.range()).chain(named.map(|m| m.range())).collect()
}

fn digits(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.bytes().filter(u8::is_ascii_digit).map(|c| u32::from(c - b'0'))
}

fn ssn(id: &str) -> bool {
    let (area, group, serial) = (&id[..3], &id[3..5], &id[5..]);
    area != "000" && area != "666" && !area.starts_with('9') && group != "00" && serial != "0000"
}

/// ISO 7064 MOD 11,10; and of the first ten digits one or two are there more than once.
fn steuer_id(id: &str) -> bool {
    let all: Vec<u32> = digits(id).collect();
    let mut seen = [0; 10];
    all[..10].iter().for_each(|d| seen[*d as usize] += 1);
    let repeated = seen.iter().filter(|n| **n > 1).count();
    let mut product = 10;
    for digit in &all[..10] {
        let sum = match (digit + product) % 10 {
            0 => 10,
            sum => sum,
        };
        product = sum * 2 % 11;
    }
    repeated == 1 && (11 - product) % 10 == all[10]
}

fn pension(id: &str) -> bool {
    let Some(letter) = id.as_bytes().get(8).copied().filter(u8::is_ascii_uppercase) else { return false };
    let number = u32::from(letter - b'A') + 1;
    let expanded = format!("{}{number:02}{}", &id[..8], &id[9..11]);
    let weights = [2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1];
    let sum: u32 = digits(&expanded).zip(weights).map(|(d, w)| d * w / 10 + d * w % 10).sum();
    digits(&id[11..]).next() == Some(sum % 10)
}

fn dni(id: &str) -> bool {
    let (number, letter) = id.split_at(8);
    let number = match number.as_bytes()[0] {
        b'X' => format!("0{}", &number[1..]),
        b'Y' => format!("1{}", &number[1..]),
        b'Z' => format!("2{}", &number[1..]),
        _ => number.to_owned(),
    };
    let letters = b"TRWAGMYFPDXBNJZSQVHLCKE";
    number.parse::<usize>().is_ok_and(|n| letter.as_bytes() == [letters[n % 23]])
}

fn nir(id: &str) -> bool {
    let body = id[..13].replace("2A", "19").replace("2B", "18");
    let number = body.parse::<u64>().ok().zip(id[13..].parse::<u64>().ok());
    number.is_some_and(|(body, key)| 97 - body % 97 == key)
}

fn ahv(id: &str) -> bool {
    let all: Vec<u32> = digits(id).collect();
    let sum: u32 = all[..12].iter().zip([1, 3].iter().cycle()).map(|(d, w)| d * w).sum();
    (10 - sum % 10) % 10 == all[12]
}

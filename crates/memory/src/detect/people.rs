//! Third parties: the names, e-mail addresses, telephone numbers and street addresses of the owner's own contacts.
//!
//! Words are compared without case and accents, and with the endings that names take in English and German
//! (`Anna's`, `Annas`, `Müllers`, `Jonasen`). `ä` is also `ae`.

use super::address;
use super::fold::Folded;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Shortest part of a name that is looked for, in characters.
const MIN_NAME: usize = 3;
/// Names of at most so many characters are looked for with a capital only: `Will`, `May`, `Rose`.
const SHORT_NAME: usize = 5;
/// Digits at the end in which two telephone numbers must agree.
const PHONE_DIGITS: usize = 8;
const ENDINGS: [&str; 10] = ["", "s", "es", "ns", "n", "en", "ens", "sche", "schen", "scher"];

static WORD: LazyLock<regex::Regex> = LazyLock::new(|| super::pattern(r"\p{L}[\p{L}\p{M}]*"));

/// Whose names, addresses and numbers are third-party spans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct People {
    names: BTreeSet<String>,
    emails: BTreeSet<String>,
    phones: BTreeSet<String>,
    /// Street addresses, word by word.
    streets: BTreeSet<String>,
}

impl People {
    /// Nobody.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The people behind these names, addresses and numbers, as [`of_contact`] finds them in an entity.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut people = Self::default();
        for word in words {
            people.add(word);
            if let Some(folded) = Folded::of(word) {
                people.add(folded.text());
            }
        }
        people
    }

    fn add(&mut self, word: &str) {
        if word.contains('@') {
            self.emails.insert(word.trim().to_lowercase());
        } else if is_street(word) {
            let found = address::find(word);
            self.streets.extend(found.into_iter().filter_map(|range| word.get(range)).map(words_of));
        } else if word.bytes().filter(u8::is_ascii_digit).count() >= PHONE_DIGITS {
            self.phones.extend(tail(word));
        } else {
            for part in WORD.find_iter(word).filter(|part| part.as_str().chars().count() >= MIN_NAME) {
                self.names.insert(fold(part.as_str()));
                self.names.insert(fold(&umlauts(part.as_str())));
            }
        }
    }

    /// Whether that e-mail address is one of theirs.
    pub(super) fn has_email(&self, email: &str) -> bool {
        self.emails.contains(&email.to_lowercase())
    }

    /// Whether that telephone number is one of theirs, or begins with one: what follows may be another number.
    pub(super) fn has_phone(&self, phone: &str) -> bool {
        super::overlap::starts(phone).filter_map(tail).any(|tail| self.phones.contains(&tail))
    }

    /// Whether that street address is one of theirs, as a whole or as far as either goes: one may go on with town or flat.
    pub(super) fn has_street(&self, street: &str) -> bool {
        let said = words_of(street);
        let mut begins =
            said.match_indices(' ').filter_map(|(end, _)| said.get(..end)).chain([said.as_str()]);
        let goes_on = format!("{said} ");
        let longer =
            || self.streets.range(goes_on.clone()..).next().is_some_and(|known| known.starts_with(&goes_on));
        begins.any(|begin| self.streets.contains(begin)) || longer()
    }

    /// Names in a text, word by word.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let is_name = |word: &regex::Match| {
            // In the middle of an address names are written small.
            let (before, after) = super::around(text, &word.range());
            let glued = before.ends_with(['@', '.', '_', '-', '+'])
                || after.starts_with(['@', '_', '+'])
                || after.strip_prefix(['.', '-']).is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
            self.is_name(word.as_str(), glued)
        };
        WORD.find_iter(text).filter(is_name).map(|word| word.range()).collect()
    }

    fn is_name(&self, word: &str, small: bool) -> bool {
        let capital = small || word.chars().next().is_some_and(char::is_uppercase);
        let folded = fold(word);
        ENDINGS.iter().any(|ending| {
            folded.strip_suffix(ending).is_some_and(|name| {
                self.names.contains(name) && (capital || name.chars().count() > SHORT_NAME)
            })
        })
    }
}

/// The names, e-mail addresses, numbers and street addresses of a contact entity (RFC 0005 section 3.4), as they are written
/// there. Of `addresses`, only what is read as a street address: a town alone is nobody's.
#[must_use]
pub fn of_contact(structured: &Map<String, Value>) -> Vec<String> {
    let member = |name: &str| structured.get(name).unwrap_or(&Value::Null);
    if member("entity_type") != "oap.entity.contact" {
        return Vec::new();
    }
    let mut words = Vec::new();
    let names = member("names");
    for name in ["given", "family", "middle", "display", "full", "nickname", "nicknames", "maiden", "former"]
    {
        match &names[name] {
            Value::String(text) => words.push(text.clone()),
            Value::Array(texts) => {
                words.extend(texts.iter().filter_map(|t| t.as_str().map(str::to_owned)));
            }
            _ => {}
        }
    }
    for channel in member("channels").as_array().into_iter().flatten() {
        let told = matches!(channel["type"].as_str(), Some("email" | "phone" | "mobile" | "tel" | "fax"));
        if let Some(value) = channel["value"].as_str().filter(|_| told) {
            words.push(value.to_owned());
        }
    }
    for entry in member("addresses").as_array().into_iter().flatten() {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let mut lines: Vec<String> = match entry {
            Value::String(line) => vec![line.clone()],
            entry => entry
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(_, v)| Some(v.as_str()?.to_owned()))
                .collect(),
        };
        for number in ["number", "house_number", "street_number"] {
            lines.push(format!("{} {}", text("street"), text(number)));
            lines.push(format!("{} {}", text(number), text("street")));
        }
        words.extend(lines.into_iter().filter(|line| is_street(line)));
    }
    words
}

fn is_street(text: &str) -> bool {
    !address::find(text).is_empty()
}

/// The words and numbers of a text, folded, with a space between.
fn words_of(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(fold).collect::<Vec<_>>().join(" ")
}

fn tail(phone: &str) -> Option<String> {
    let digits: String = phone.chars().filter(char::is_ascii_digit).collect();
    let start = digits.len().checked_sub(PHONE_DIGITS)?;
    digits.get(start..).map(str::to_owned)
}

/// Without case, accents and compatibility forms.
fn fold(word: &str) -> String {
    word.nfkd()
        .filter(|c| !is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .collect::<String>()
        .replace('ß', "ss")
}

fn umlauts(word: &str) -> String {
    word.nfc()
        .map(|c| match c {
            'ä' | 'Ä' => "ae".to_owned(),
            'ö' | 'Ö' => "oe".to_owned(),
            'ü' | 'Ü' => "ue".to_owned(),
            c => c.to_string(),
        })
        .collect()
}

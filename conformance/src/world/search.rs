//! Finding canaries in bytes, however they are written: as they are, escaped, percent-encoded, base64url within base64url.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How deep encodings are opened.
const DEPTH: usize = 5;
/// Shortest text that is tried as base64.
const ENCODED: usize = 12;
/// Bytes by which a canary is looked up.
const HEAD: usize = 4;
/// How many bits of a hash of those first bytes are looked at before all of them are.
const BITS: u32 = 16;

/// Words that are looked for.
#[derive(Debug, Clone, Default)]
pub struct Canaries {
    /// By their first bytes: the word in small letters, and where it was planted.
    by_head: HashMap<[u8; HEAD], Vec<(String, String)>>,
    begins: Begins,
}

/// A bit for each [`slot`]: whether a word may begin so. Nearly all of what is looked through begins none. Empty as long as there are no words.
#[derive(Debug, Clone, Default)]
struct Begins(Vec<u64>);

impl Begins {
    fn add(&mut self, head: [u8; HEAD]) {
        let slot = slot(head);
        self.0.resize(1 << (BITS - u64::BITS.ilog2()), 0);
        if let Some(bits) = self.0.get_mut(slot / u64::BITS as usize) {
            *bits |= 1 << (slot % u64::BITS as usize);
        }
    }

    fn may(&self, head: [u8; HEAD]) -> bool {
        let slot = slot(head);
        self.0.get(slot / u64::BITS as usize).is_some_and(|bits| bits >> (slot % u64::BITS as usize) & 1 == 1)
    }
}

/// A canary in some bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Found {
    pub word: String,
    /// Where it was planted.
    pub planted: String,
    /// How it was written, from the outside in: `text`, `base64 in text`.
    pub written: String,
}

impl Canaries {
    /// Looks for a word too. `planted` says of what item and where in it. Words of fewer than four bytes are not looked for.
    pub fn add(&mut self, word: &str, planted: impl Into<String>) {
        let small = small(word);
        if let Some(head) = small.as_bytes().first_chunk::<HEAD>() {
            self.begins.add(*head);
            let same = self.by_head.entry(*head).or_default();
            if same.iter().all(|(known, _)| *known != small) {
                same.push((small, planted.into()));
            }
        }
    }

    /// Every canary in some bytes, each once.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Vec<Found> {
        let mut found = BTreeMap::new();
        self.look(bytes, "", 0, &mut found);
        found.into_values().collect()
    }

    /// The words that stand in a text: as they are, where those that are asked for do, else however they are written.
    #[must_use]
    pub fn among(&self, words: &BTreeSet<&str>, text: &str) -> BTreeSet<String> {
        let mut found = BTreeMap::new();
        self.plain(small(text).as_bytes(), "", &mut found);
        if !words.iter().all(|word| found.contains_key(*word)) {
            self.look(text.as_bytes(), "", 0, &mut found);
        }
        found.into_keys().collect()
    }

    fn look(&self, bytes: &[u8], written: &str, depth: usize, found: &mut BTreeMap<String, Found>) {
        let text = String::from_utf8_lossy(bytes);
        self.plain(small(&text).as_bytes(), written, found);
        if depth == DEPTH {
            return;
        }
        // No word stands across a quotation mark.
        for escaped in quoted(&text).filter(|part| part.contains('\\')) {
            let inner = unescaped(escaped);
            if inner != escaped {
                self.look(inner.as_bytes(), &format!("{written}/escaped"), depth + 1, found);
            }
        }
        if text.contains('%') {
            let inner = decoded(text.as_bytes());
            if inner != text.as_bytes() {
                self.look(&inner, &format!("{written}/percent"), depth + 1, found);
            }
        }
        for run in text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_+/".contains(c))) {
            if run.len() < ENCODED {
                continue;
            }
            let inner = URL_SAFE_NO_PAD.decode(run).or_else(|_| STANDARD_NO_PAD.decode(run));
            // Signatures and hashes are noise, but for a word that stands in them as it is.
            if let Ok(inner) = inner {
                let written = format!("{written}/base64");
                match std::str::from_utf8(&inner) {
                    Ok(_) => self.look(&inner, &written, depth + 1, found),
                    Err(_) => self.plain(&inner.to_ascii_lowercase(), &written, found),
                }
            }
            if let Some(inner) = of_hex(run) {
                self.plain(&inner.to_ascii_lowercase(), &format!("{written}/hex"), found);
            }
        }
    }

    fn plain(&self, bytes: &[u8], written: &str, found: &mut BTreeMap<String, Found>) {
        for (at, head) in bytes.windows(HEAD).enumerate() {
            let Some(head) = head.first_chunk::<HEAD>().filter(|head| self.begins.may(**head)) else {
                continue;
            };
            let Some(known) = self.by_head.get(head) else { continue };
            let rest = bytes.get(at..).unwrap_or_default();
            for (word, planted) in known {
                if rest.starts_with(word.as_bytes()) && !found.contains_key(word) {
                    let written = if written.is_empty() { "as it is".to_owned() } else { written.to_owned() };
                    found.insert(
                        word.clone(),
                        Found { word: word.clone(), planted: planted.clone(), written },
                    );
                }
            }
        }
    }
}

/// The bytes that a run of hexadecimal digits stands for.
fn of_hex(run: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = run.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).filter_map(|two| Some((two.first()? << 4) | two.last()?)).collect())
}

/// A text in small letters. Nearly all of it is ASCII.
fn small(text: &str) -> String {
    let mut small = String::with_capacity(text.len());
    for part in text.split_inclusive(|c: char| !c.is_ascii()) {
        let other = part.chars().next_back().filter(|c| !c.is_ascii());
        let ascii = part.len() - other.map_or(0, char::len_utf8);
        small.push_str(&part.get(..ascii).unwrap_or_default().to_ascii_lowercase());
        small.extend(other.into_iter().flat_map(char::to_lowercase));
    }
    small
}

/// The parts of a text between quotation marks that are not escaped.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    text.split(move |c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    })
}

/// A hash of first bytes that costs next to nothing (Knuth's, multiplicative).
const fn slot(head: [u8; HEAD]) -> usize {
    (u32::from_le_bytes(head).wrapping_mul(0x9e37_79b1) >> (u32::BITS - BITS)) as usize
}

/// A text without the escapes of JSON.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match rest.next() {
            Some('u') => {
                let digits: String = rest.clone().take(4).collect();
                match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                    Some(c) => {
                        plain.push(c);
                        rest.nth(3);
                    }
                    None => plain.push_str("\\u"),
                }
            }
            Some('n' | 't' | 'r') => plain.push(' '),
            Some(c) => plain.push(c),
            None => plain.push('\\'),
        }
    }
    plain
}

/// Bytes without percent-encoding.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, more)) = rest.split_first() {
        let encoded = (*first == b'%').then(|| more.first_chunk::<2>()).flatten();
        let byte = encoded.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        plain.push(byte.unwrap_or(*first));
        rest = more.get(if byte.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    plain
}

//! A text in the plain form that detectors know: digits of all scripts, full-width letters, the many dashes and spaces
//! become their ASCII forms; marks on letters are composed; marks elsewhere and invisible characters go.
//!
//! Detectors read the text as it stands and, where it differs, in this form too. So nothing is missed that was found
//! without it.

use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{compose, is_combining_mark};

/// Most characters that one character becomes. Those that become more are words of their own and stay as they are.
const MAX_EXPANSION: usize = 4;

/// A text in its plain form, and where each byte of it comes from.
pub(super) struct Folded {
    text: String,
    /// For each byte of `text` the bytes of the source that it stands for.
    places: Vec<Range<usize>>,
}

impl Folded {
    /// The plain form of a text; `None` where that is the text itself.
    pub(super) fn of(source: &str) -> Option<Self> {
        if source.is_ascii() {
            return None;
        }
        let mut folded = Self { text: String::with_capacity(source.len()), places: Vec::new() };
        folded.places.reserve(source.len());
        let mut rest = source.char_indices().peekable();
        while let Some((start, base)) = rest.next() {
            if is_unseen(base) {
                continue;
            }
            let mut plain = Plain::of(base);
            while let Some((_, mark)) = rest.next_if(|(_, next)| is_unseen(*next)) {
                plain.add(mark);
            }
            let end = rest.peek().map_or(source.len(), |(at, _)| *at);
            for char in plain.0 {
                folded.text.push(char);
                folded.places.resize(folded.text.len(), start..end);
            }
        }
        (folded.text != source).then_some(folded)
    }

    /// The plain form.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of the source that a range of the plain form stands for; whole characters with their marks.
    pub(super) fn place(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let (first, last) = (self.places.get(range.start)?, self.places.get(range.end.checked_sub(1)?)?);
        Some(first.start..last.end)
    }
}

/// What a character becomes.
struct Plain(Vec<char>);

impl Plain {
    fn of(base: char) -> Self {
        if let Some(char) = simple(base) {
            return Self(vec![char]);
        }
        let compatible: Vec<char> = std::iter::once(base).nfkc().take(MAX_EXPANSION + 1).collect();
        if compatible.len() > MAX_EXPANSION {
            return Self(vec![base]);
        }
        let simple = |char: char| simple(char).unwrap_or(char);
        Self(compatible.into_iter().filter(|char| !is_combining_mark(*char)).map(simple).collect())
    }

    /// Puts a mark on the letter that it follows, if there is such a letter.
    fn add(&mut self, mark: char) {
        if let Some(last) = self.0.last_mut().filter(|last| last.is_alphabetic())
            && let Some(composed) = compose(*last, mark)
        {
            *last = composed;
        }
    }
}

/// The ASCII form of a digit, a dash, a space, a stop; of other characters there is none here.
fn simple(char: char) -> Option<char> {
    match char {
        '\0'..='\x7f' => Some(char),
        '\u{58a}'
        | '\u{5be}'
        | '\u{1806}'
        | '\u{2010}'..='\u{2015}'
        | '\u{2043}'
        | '\u{2212}'
        | '\u{2e3a}'..='\u{2e3b}'
        | '\u{301c}'
        | '\u{3030}'
        | '\u{fe58}' => Some('-'),
        '\u{b7}' | '\u{6d4}' | '\u{66b}' | '\u{3002}' | '\u{ff61}' => Some('.'),
        '\u{66c}' | '\u{60c}' | '\u{3001}' => Some(','),
        '\u{2044}' | '\u{2215}' => Some('/'),
        '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        _ if char.is_whitespace() => Some(' '),
        _ => digit(char),
    }
}

/// Marks, and characters that show nothing: directions, joiners, soft hyphens, tags.
fn is_unseen(char: char) -> bool {
    match char {
        '\0'..='\x7f' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => is_combining_mark(char),
    }
}

/// The value of a decimal digit of any script, as ASCII.
fn digit(char: char) -> Option<char> {
    let code = u32::from(char);
    let zero = ZEROS.get(ZEROS.partition_point(|zero| *zero <= code).checked_sub(1)?)?;
    char::from_digit(code.checked_sub(*zero)?, 10)
}

/// The zero of each run of ten decimal digits (general category Nd), sorted.
const ZEROS: [u32; 76] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50,
    0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40,
    0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x10d40,
    0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da,
    0x11730, 0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50, 0x11da0, 0x11f50, 0x16130, 0x16a60, 0x16ac0,
    0x16b50, 0x16d70, 0x1ccf0, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0,
    0x1e5f1, 0x1e950, 0x1fbf0,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decimal_digit_is_known() {
        assert!(ZEROS.is_sorted());
        let digits = regex::Regex::new(r"^\p{Nd}$").unwrap();
        for char in '\0'..=char::MAX {
            let is = digits.is_match(char.encode_utf8(&mut [0; 4]));
            assert!(!is || digit(char).is_some(), "{char:?} is a digit");
        }
        assert_eq!(['٠', '９', '५', '𝟡', 'a'].map(digit), [Some('0'), Some('9'), Some('5'), Some('9'), None]);
    }

    #[test]
    fn a_place_is_whole_characters() {
        let source = "\u{202e}Te\u{301}l ４\u{308}１ ½ ﷺ!";
        let folded = Folded::of(source).unwrap();
        assert_eq!(folded.text(), "Tél 41 1/2 ﷺ!");
        let place = |text: &str| {
            let at = folded.text().find(text).unwrap();
            source.get(folded.place(&(at..at + text.len())).unwrap()).unwrap()
        };
        assert_eq!(place("é"), "e\u{301}");
        assert_eq!(place("41"), "４\u{308}１");
        assert_eq!(place("1/"), "½");
        assert_eq!(place("!"), "!");
        assert!(Folded::of("plain, and Müller").is_none());
    }
}

//! Terminals: how wide a line may be, how wide a text is on it, and what never reaches one.

use std::io::IsTerminal;
use std::sync::OnceLock;
use terminal_size::{Width, terminal_size_of};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The width where a terminal does not say its own, in columns.
pub(super) const USUAL_WIDTH: usize = 80;
/// Narrowest and widest screen that a table is laid out for, in columns.
const WIDTHS: std::ops::RangeInclusive<usize> = 20..=1000;
/// Characters for each column that a cell is read for: what takes no room ends somewhere too.
const MARKS: usize = 8;

static WIDTH: OnceLock<Option<usize>> = OnceLock::new();

/// Looks at the terminal, once, at start.
pub(super) fn look() {
    let terminal = std::io::stdout()
        .is_terminal()
        .then(|| terminal_size_of(std::io::stdout()).map(|(Width(columns), _)| usize::from(columns)));
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    // Set twice is set the same.
    let _ = WIDTH.set(width_of(terminal, columns));
}

/// How wide lines may be; `None`: as they come, for a program or a file reads them.
pub(super) fn width() -> Option<usize> {
    WIDTH.get().copied().unwrap_or(Some(USUAL_WIDTH))
}

/// The width: a terminal's own, or the usual one; else what `COLUMNS` says.
fn width_of(terminal: Option<Option<usize>>, columns: Option<usize>) -> Option<usize> {
    let width = match terminal {
        Some(width) => Some(width.or(columns).unwrap_or(USUAL_WIDTH)),
        None => columns,
    };
    width.map(|width| width.clamp(*WIDTHS.start(), *WIDTHS.end()))
}

/// Whether a character would act on a terminal or on the order of what stands around it, or is not seen at all, instead of being shown:
/// control characters, bidirectional marks, line and paragraph separators, and whatever Unicode lets a screen leave out
/// (`Default_Ignorable_Code_Point`), in which a text could say what its reader does not see.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Text of several lines with nothing in it that acts: only line ends stay.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c != '\n' && acts(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The same JSON with everything that acts as an escape. It can stand within strings alone, line ends aside.
pub(super) fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && acts(c) {
            // Beyond the first plane as the two halves that JSON writes.
            for unit in c.encode_utf16(&mut [0; 2]) {
                plain.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Text of one line: white space as single spaces, and nothing in it that acts.
pub(super) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    plain(&words.join(" "))
}

/// How many columns a line takes: wide characters count two, combining marks none.
pub(super) fn columns(line: &str) -> usize {
    line.width()
}

/// A line cut to so many columns, between what people see as characters; `…` says so.
pub(super) fn cut(line: &str, most: usize) -> String {
    if columns(line) <= most {
        return line.to_owned();
    }
    let (mut taken, mut text) = (1, String::new());
    // A character of many marks is as long as somebody wants.
    let read: String = line.chars().take(most.saturating_mul(MARKS)).collect();
    for character in read.graphemes(true) {
        taken += columns(character);
        if taken > most {
            break;
        }
        text.push_str(character);
    }
    if most > 0 {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_width_counts() {
        assert_eq!(width_of(Some(Some(120)), Some(60)), Some(120));
        assert_eq!(width_of(Some(None), None), Some(80));
        assert_eq!(width_of(None, Some(60)), Some(60));
        assert_eq!(width_of(None, None), None);
        assert_eq!(width_of(Some(Some(0)), None), Some(20));
        assert_eq!(width_of(None, Some(usize::MAX)), Some(1000));
    }

    #[test]
    fn nothing_that_acts_reaches_a_terminal() {
        let foreign = "\u{e0049}\u{fe0f}\u{200b}\u{feff}\u{ad}\u{2060}\u{e01ef}a\u{1b}[31m\u{7}b\r\u{9b}2J\u{202e}c\u{2066}\u{200f}\u{7f}\td\u{2028}\u{85}e";
        for text in [plain(foreign), line(foreign), plain_json(foreign)] {
            assert!(!text.contains(acts), "{text:?}");
        }
        assert_eq!(line(" a \n\n b\tc "), "a b c");
        assert_eq!(plain("a\nb"), "a\nb");
        let json = serde_json::json!({"a\u{202e}": foreign});
        let again: serde_json::Value =
            serde_json::from_str(&plain_json(&serde_json::to_string_pretty(&json).unwrap())).unwrap();
        assert_eq!(again, json);
    }

    #[test]
    fn wide_and_combining_characters_are_counted() {
        assert_eq!(columns("東京"), 4);
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(cut("東京都", 5), "東京…");
        assert_eq!(cut("東京都", 4), "東…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!((cut("ab", 1).as_str(), cut("ab", 0).as_str()), ("…", ""));
        let marks = format!("a{}bc", "\u{301}".repeat(100_000));
        assert!(cut(&marks, 2).chars().count() <= 2 * MARKS + 1);
    }
}

//! Characters that a reader does not see, and a model reads.

use super::fold::{is_invisible, is_tag};
use super::{Finding, Kind, Severity};

/// What stands in a text without being seen, and where.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    pub findings: Vec<Finding>,
    /// What tag characters and long rows of variation selectors spell.
    pub spelled: Vec<(std::ops::Range<usize>, String)>,
}

/// Variation selectors in a row from which on they spell something: an emoji has one.
const ROW: usize = 4;
/// Invisible characters between Latin letters from which on they hide something.
const SPLIT: usize = 3;
/// Rows that are looked at.
const MOST: usize = 16;

/// Looks at each character once.
pub(super) fn hidden(text: &str) -> Hidden {
    let mut hidden = Hidden::default();
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    let mut splits = 0_usize;
    let mut first_split = None;
    while let Some((at, c)) = chars.next() {
        if is_tag(c) || is_selector(c) {
            let same: fn(char) -> bool = if is_tag(c) { is_tag } else { is_selector };
            let mut row = String::from(c);
            let mut end = at + c.len_utf8();
            while let Some((next, d)) = chars.next_if(|(_, d)| same(*d)) {
                row.push(d);
                end = next + d.len_utf8();
            }
            // A black flag with the tags of a region is an emoji.
            let is_flag =
                is_tag(c) && before == '\u{1f3f4}' && row.ends_with('\u{e007f}') && row.chars().count() <= 7;
            let is_row = is_tag(c) || row.chars().count() >= ROW;
            if is_row && !is_flag && hidden.findings.len() < MOST {
                hidden.findings.push(Finding {
                    kind: Kind::Invisible,
                    range: at..end,
                    severity: Severity::Hostile,
                    says: "Characters that no screen shows spell something.",
                });
                hidden.spelled.push((at..end, spelled(&row)));
            }
            before = c;
            continue;
        }
        if is_override(c) && hidden.findings.len() < MOST {
            hidden.findings.push(Finding {
                kind: Kind::Invisible,
                range: at..at + c.len_utf8(),
                severity: Severity::Suspect,
                says: "It turns the direction of writing around, so that it shows something else than it says.",
            });
        }
        if is_invisible(c) && c != '\u{ad}' {
            let next = chars.peek().map_or(' ', |(_, c)| *c);
            if before.is_ascii_alphanumeric() && (next.is_ascii_alphanumeric() || is_invisible(next)) {
                splits += 1;
                first_split.get_or_insert(at..at + c.len_utf8());
            }
        } else {
            before = c;
        }
    }
    if let (Some(range), true) = (first_split, splits >= SPLIT) {
        let says = "Invisible characters split its words.";
        hidden.findings.push(Finding { kind: Kind::Invisible, range, severity: Severity::Suspect, says });
    }
    hidden
}

const fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

const fn is_override(c: char) -> bool {
    matches!(c, '\u{202d}' | '\u{202e}')
}

/// What a row spells: tags are ASCII, selectors are bytes.
fn spelled(row: &str) -> String {
    let bytes: Vec<u8> = row
        .chars()
        .filter_map(|c| match c {
            '\u{e0020}'..='\u{e007e}' => u8::try_from(u32::from(c) - 0xe_0000).ok(),
            '\u{fe00}'..='\u{fe0f}' => u8::try_from(u32::from(c) - 0xfe00).ok(),
            '\u{e0100}'..='\u{e01ef}' => u8::try_from(u32::from(c) - 0xe_0100 + 16).ok(),
            _ => None,
        })
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

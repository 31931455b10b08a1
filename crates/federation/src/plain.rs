//! Text of strangers that people read: one line, bounded, with nothing in it that a screen obeys.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest plain text, in characters.
pub const MAX_PLAIN: usize = 1000;

/// Text of 1 to [`MAX_PLAIN`] characters on one line, without control characters, marks of direction and characters that
/// are not seen. Whoever shows it still quotes it: it is a stranger's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Plain(String);

/// Why a text is not plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {MAX_PLAIN} characters on one line, without control characters and marks of direction")]
pub struct NotPlain;

/// Whether a screen obeys a character, or does not show it.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

impl Plain {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Plain {
    type Err = NotPlain;
    fn from_str(text: &str) -> Result<Self, NotPlain> {
        let text = text.trim();
        let fits = (1..=MAX_PLAIN).contains(&text.chars().count());
        if fits && !text.chars().any(is_hidden) { Ok(Self(text.to_owned())) } else { Err(NotPlain) }
    }
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_screen_obeys_is_refused() {
        for text in
            ["", "  ", "a\nb", "a\u{1b}[31mb", "a\u{202e}b", "a\u{200b}b", "a\u{e0041}b", "\u{7}a\u{7}b"]
        {
            assert_eq!(text.parse::<Plain>(), Err(NotPlain), "{text:?}");
        }
        assert!("x".repeat(MAX_PLAIN + 1).parse::<Plain>().is_err());
        assert_eq!(
            " Website redesign, für Zoë ".parse::<Plain>().unwrap().as_str(),
            "Website redesign, für Zoë"
        );
        assert!("x".repeat(MAX_PLAIN).parse::<Plain>().is_ok());
    }
}

//! What is concluded again: an agent does not keep its own conclusion alive by repeating it (docs/soundness.md).
//!
//! The same words are the same conclusion, whatever stands between them. It is believed as since it was said first, unless another source
//! says it now than any that said it before.

use oap_agents::arguments::Source;
use oap_identity::Timestamp;
use oap_memory::text::{Language, terms};

/// What a text says, word for word: case, signs and gaps make no difference. Small words do: "not" is one.
#[must_use]
pub fn words(text: &str) -> String {
    let words: Vec<String> = terms(text, Language::Neutral).into_iter().map(|term| term.text).collect();
    if words.is_empty() { text.trim().to_owned() } else { words.join(" ") }
}

/// The same conclusion of the same agent, as it was said before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before<T> {
    /// Where.
    pub place: T,
    /// Since when it is believed.
    pub since: Timestamp,
    /// Where it came from, as the agent said.
    pub source: Option<Source>,
}

/// Which of what was said before it repeats: the one that is believed since latest. `None` where there is none, or where its source is
/// another one than each of theirs.
#[must_use]
pub fn repeats<T>(source: Option<&Source>, before: Vec<Before<T>>) -> Option<Before<T>> {
    let is_new = source.is_some_and(|source| before.iter().all(|said| said.source.as_ref() != Some(source)));
    if is_new { None } else { before.into_iter().max_by_key(|said| said.since) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(reference: &str) -> Source {
        Source { sort: "web".to_owned(), reference: Some(reference.to_owned()), hash: None }
    }

    fn said(place: u8, seconds: i64, source: Option<Source>) -> Before<u8> {
        Before { place, since: Timestamp::from_seconds(seconds), source }
    }

    #[test]
    fn signs_make_no_other_words_and_a_denial_does() {
        assert_eq!(words("The lake is deep."), words("the  LAKE is\tdeep!"));
        assert_ne!(words("The lake is deep"), words("The lake is not deep"));
        assert_ne!(words("The lake is 3 m deep"), words("The lake is 4 m deep"));
        // Where there are no words, the signs say it.
        assert_ne!(words("\u{1f600}"), words("\u{1f622}"));
    }

    #[test]
    fn another_source_renews_and_nothing_else_does() {
        let (page, map) = (source("page"), source("map"));
        let place = |source: Option<&Source>, before: &[Before<u8>]| {
            repeats(source, before.to_vec()).map(|said| said.place)
        };
        assert_eq!((place(None, &[]), place(Some(&page), &[])), (None, None));
        let once = [said(1, 10, None)];
        assert_eq!((place(None, &once), place(Some(&page), &once)), (Some(1), None));
        // After the page said it, it is believed since then; the page again is nothing new, the map is.
        let twice = [said(1, 10, None), said(2, 20, Some(page.clone()))];
        assert_eq!(
            (place(None, &twice), place(Some(&page), &twice), place(Some(&map), &twice)),
            (Some(2), Some(2), None)
        );
    }
}

//! Words of a text, for matching.
//!
//! Unicode words, NFKC, lower case; words of Latin letters are stemmed as English, irregular forms among them, all
//! others are taken as they are, so that other languages match by whole words. Words that carry no meaning are kept
//! apart: they count only when a query has nothing else.

mod irregular;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// Longest word that is matched, in characters; of a longer one the beginning stands for all of it.
pub const MAX_WORD: usize = 64;

/// How words are brought to a common form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English stemming for ASCII words.
    #[default]
    English,
    /// No stemming.
    Neutral,
}

/// A word in its common form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Term {
    pub text: String,
    /// Whether it carries no meaning, such as "the".
    pub stop: bool,
}

/// The words of a text, in order.
#[must_use]
pub fn terms(text: &str, language: Language) -> Vec<Term> {
    let normal: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let stemmer = Stemmer::create(Algorithm::English);
    normal
        .unicode_words()
        .flat_map(|word| {
            // "won't" is no form of "win".
            let denied = word.ends_with("n't") || word.ends_with("n\u{2019}t");
            word.split(['\'', '\u{2019}', '_', '.', ':']).map(move |part| (part, denied))
        })
        .filter(|(word, _)| !word.is_empty())
        .map(|(word, denied)| {
            let word = word.char_indices().nth(MAX_WORD).and_then(|(end, _)| word.get(..end)).unwrap_or(word);
            let stop = STOP.binary_search(&word).is_ok();
            let stemmed = language == Language::English && word.bytes().all(|c| c.is_ascii_lowercase());
            let base = if denied { word } else { irregular::base(word) };
            let text = if stemmed { stemmer.stem(base).into_owned() } else { word.to_owned() };
            Term { text, stop }
        })
        .collect()
}

/// English words without meaning of their own, sorted.
const STOP: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "d", "did",
    "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if", "in",
    "into", "is", "it", "its", "ll", "m", "me", "my", "no", "not", "of", "on", "or", "our", "re", "s", "she",
    "so", "such", "t", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "us",
    "ve", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "would", "you",
    "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        terms(text, Language::English).into_iter().filter(|t| !t.stop).map(|t| t.text).collect()
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP.is_sorted());
    }

    #[test]
    fn forms_of_a_word_meet() {
        assert_eq!(words("She was painting sunrises"), words("the painted sunrise"));
        assert_eq!(words("Ｆｕｌｌ width"), words("full width"));
        assert_eq!(words("Caroline's group"), words("CAROLINE group"));
        assert_eq!(words("She bought and wrote children people"), words("buying write child person"));
        assert_eq!((words("She won"), words("She won't")), (words("winning"), vec!["won".to_owned()]));
    }

    #[test]
    fn other_languages_match_by_whole_words() {
        assert_eq!(words("Größe Straße"), ["größe", "straße"]);
        assert_eq!(words("東京 タワー").len(), 3);
        assert_eq!(terms("running", Language::Neutral)[0].text, "running");
        assert_eq!(terms("bought", Language::Neutral)[0].text, "bought");
    }

    #[test]
    fn hidden_spans_are_words_like_others() {
        assert_eq!(words("write to [email]"), ["write", "email"]);
    }
}

//! The owner's search of their own memory: everything in the clear, ranked by the words. It changes nothing and leaves no receipt.

use crate::api::items::Brief;
use crate::api::selections::FoundItems;
pub use crate::api::selections::SearchQuery;
use crate::error::{Error, MemberError};
use crate::service::Items;
use crate::service::brief::{MAX_GIST, brief, cut};
use crate::service::selection::Matcher;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Permits, Read};
use oap_exchange::item::visible_text;
use oap_exchange::query::MAX_QUERY;
use oap_exchange::rank::{Document, Index};
use oap_identity::ItemId;
use oap_memory::Head;
use oap_memory::text::{Language, terms};
use oap_store::StoreError;
use serde_json::Map;
use std::collections::BTreeSet;

/// Most items that are found, whatever is asked for.
pub const MAX_FOUND: usize = 1000;
/// Words that stand before the one that was found.
const BEFORE: usize = 6;

impl Items<'_> {
    /// The items that hold words, the best first; of equals the newest. The index is made of the items that are selected.
    ///
    /// # Errors
    /// [`Error::Member`], [`Error::Store`], [`Error::Corrupt`].
    pub fn search(self, _: &Owner<impl Permits<Read>>, wanted: &SearchQuery) -> Result<FoundItems, Error> {
        if wanted.text.trim().is_empty() || wanted.text.len() > MAX_QUERY {
            return Err(Error::Member("text", MemberError::Words(MAX_QUERY)));
        }
        let language: Language = self.0.config.language.into();
        let (matcher, now) = (Matcher::new(&wanted.selection), self.0.clock.now());
        let mut heads = self.0.heads.all();
        heads.retain(|head| {
            head.is_live(now)
                && (wanted.kinds.is_empty() || wanted.kinds.contains(&head.kind))
                && matcher.admits(head)
        });
        let (mut found, mut texts) = (Vec::new(), Vec::new());
        for head in heads {
            let version = match crate::state::schema::version(&self.0.store, head.item_id, head.version_seq) {
                Ok(version) => version,
                // Erased since its head was read.
                Err(Error::NotFound | Error::Store(StoreError::Erased)) => continue,
                Err(error) => return Err(error),
            };
            if matcher.admits_version(head.item_id, &version) {
                texts.push(visible_text(&crate::service::items::whole(&version)?));
                found.push(head);
            }
        }
        let documents: Vec<Document> = found
            .iter()
            .zip(&texts)
            .map(|(head, text)| Document {
                item: head.item_id,
                text,
                kind: head.kind,
                captured_at: head.captured_at,
            })
            .collect();
        let scores = Index::build(&documents, language).score(&wanted.text);
        let mut ranked: Vec<(f32, ItemId, usize)> = scores
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0.0)
            .filter_map(|(number, score)| Some((score, found.get(number)?.item_id, number)))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let matched = ranked.len();
        ranked.truncate(wanted.limit.unwrap_or(20).clamp(1, MAX_FOUND));
        let asked = asked(&wanted.text, language);
        let mut items = Vec::with_capacity(ranked.len());
        for (_, _, number) in ranked {
            let (Some(head), Some(text)) = (found.get(number), texts.get(number)) else { continue };
            let snippet = Some(snippet(&self.content_of(head, text)?, &asked, language));
            items.push(Brief { gist: None, snippet, ..brief(self.0, head)? });
        }
        Ok(FoundItems { items, matched })
    }

    /// What an item says, without its labels and subject, which stand beside it; everything where it was erased meanwhile.
    fn content_of(self, head: &Head, everything: &str) -> Result<String, Error> {
        match self.owner_item(head) {
            Ok(mut item) => {
                Ok(visible_text(&Map::from_iter([("content".to_owned(), item["content"].take())])))
            }
            Err(Error::NotFound | Error::Store(StoreError::Erased)) => Ok(everything.to_owned()),
            Err(error) => Err(error),
        }
    }
}

/// The words that were asked for, in their common form.
fn asked(text: &str, language: Language) -> BTreeSet<String> {
    let all = terms(text, language);
    let meant = all.iter().any(|term| !term.stop);
    all.into_iter().filter(|term| !(meant && term.stop)).map(|term| term.text).collect()
}

/// The place of a text where the first of the words stands; its beginning where none does.
fn snippet(text: &str, asked: &BTreeSet<String>, language: Language) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let holds = |word: &&str| terms(word, language).iter().any(|term| asked.contains(&term.text));
    let at = words.iter().position(holds).unwrap_or(0);
    let from = at.saturating_sub(BEFORE);
    let shown = words.get(from..).unwrap_or_default();
    let shown = shown.iter().take(MAX_GIST).copied().collect::<Vec<_>>().join(" ");
    if from > 0 { cut(&format!("… {shown}")) } else { cut(&shown) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_shows_the_word() {
        let english = Language::English;
        let text = format!("{} The painted sunrise hangs there.", "word ".repeat(300));
        let shown = snippet(&text, &asked("the sunrises", english), english);
        assert!(shown.starts_with("… ") && shown.contains("sunrise"), "{shown}");
        assert_eq!(snippet("Tea at four", &asked("tea", english), english), "Tea at four");
        assert_eq!(snippet("", &asked("tea", english), english), "");
        // A question of nothing but such words is meant as it stands.
        assert_eq!(asked("to be", english).len(), 2);
        assert_eq!(asked("the tea", english).len(), 1);
    }
}

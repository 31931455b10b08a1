//! Entries by their place: the routes of OpenIntent's MCP bridge, and a search by words beside the filters (RFC-0015 4.3).

use super::{Changed, Current, is_seen};
use crate::error::Error;
use crate::service::Entries;
use crate::service::tools::looking::Looking;
use crate::state::agents::Agent;
use crate::state::owner::mark::Read;
use oap_agents::entry::{Entry, MAX_VALUES, New};
use oap_identity::{Hash, ItemId};
use oap_memory::record::Tier;
use serde::Serialize;
use serde_json::json;

/// An entry that words found, and how well.
#[derive(Debug, Serialize)]
struct Found {
    #[serde(flatten)]
    entry: Entry,
    score: f32,
}

/// What words found, the best first.
#[derive(Debug, Serialize)]
struct Search {
    entries: Vec<Found>,
    /// How many entries have a word of it, of those that the agent may see.
    total: usize,
    limit: usize,
}

impl Entries<'_> {
    /// The entry of a namespace and a key that somebody wrote: of several the one that is not semantic.
    ///
    /// # Errors
    /// [`Error::NotFound`] of one that the agent may not read.
    pub async fn at(
        self,
        agent: &Agent<Read>,
        whose: String,
        namespace: String,
        key: String,
    ) -> Result<Current, Error> {
        // Of what was found: the hash of a name would tell it to whoever guesses, once the entry is erased.
        let input = |(item, version): &(ItemId, u32)| -> Result<Hash, Error> {
            Ok(Hash::of_canonical(&json!([item, version]))?)
        };
        self.read_of(agent, "openintent.get", input, move |looking| {
            let mut there = looking.gateway.heads.at(&namespace, &key);
            there.sort_by_key(|head| (head.meta.tier == Tier::Semantic, head.item_id));
            for head in there {
                if looking.is_by(&head, &whose) && looking.may_read(&head)? {
                    let seen = looking.seen(head)?.ok_or(Error::NotFound)?;
                    let entry = looking.show_entry(&seen)?;
                    return Ok(((entry.id, entry.version), entry));
                }
            }
            Err(Error::NotFound)
        })
        .await
        .map(|((_, version), entry)| Current { version, entry })
    }

    /// Writes the agent's own entry of a namespace and a key, whether there is one or not: working, or episodic.
    ///
    /// # Errors
    /// As [`Entries::create`]; [`Error::NotSelf`] for another agent's.
    pub async fn put(
        self,
        agent: &Agent<Read>,
        whose: &str,
        new: New,
        says_tier: bool,
    ) -> Result<Changed, Error> {
        if !agent.is(whose) {
            return Err(Error::NotSelf("agent"));
        }
        self.put_one(agent, new, says_tier).await
    }

    /// The entries in which words stand that the agent may see by itself: the best first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn search(self, agent: &Agent<Read>, words: String, limit: usize) -> Result<Vec<u8>, Error> {
        // The hash of a word would tell it to whoever guesses.
        let input = Hash::of_canonical(&json!([words.len(), limit]))?;
        let told = self
            .read(agent, "openintent.search", input, move |looking| Ok(((), looking.search(&words, limit)?)));
        Ok(told.await?.1)
    }
}

impl Looking<'_> {
    fn search(&mut self, words: &str, limit: usize) -> Result<Search, Error> {
        let found = self.found(words)?;
        let found: Vec<_> = found
            .into_iter()
            .filter_map(|(item, score)| Some((score, self.gateway.heads.get(item)?)))
            .filter(|(_, head)| is_seen(self.agent, head, self.now))
            .collect();
        let total = found.len();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for (score, head) in found.into_iter().take(limit) {
            let Some(seen) = self.seen(head)? else { continue };
            bytes += super::value_of(&seen.whole).as_str().len();
            if !entries.is_empty() && bytes > MAX_VALUES {
                break;
            }
            entries.push(Found { entry: self.show_entry(&seen)?, score });
        }
        Ok(Search { entries, total, limit })
    }
}

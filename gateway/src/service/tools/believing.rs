//! How far what an agent may see is believed now (docs/soundness.md): computed where it is read, never stored.

use super::again::SAID_AT;
use super::looking::{Looking, VisibleItem};
use crate::error::Error;
use crate::service::entries::said_in;
use crate::service::items::whole;
use crate::state::believed::Words;
use crate::state::schema;
use oap_agents::Level;
use oap_agents::level::EXTENSION;
use oap_identity::{ItemId, Timestamp};
use oap_memory::Head;
use oap_soundness::trust::{Decay, Known, Trust, trust};
use oap_store::Rows;
use serde_json::{Map, Value};

/// Since when the words of a version are believed: since they were written, or since their writer concluded the same before.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(super) fn words_at(
    rows: &impl Rows,
    item: ItemId,
    version_seq: u32,
    says: &Map<String, Value>,
) -> Result<Option<Timestamp>, Error> {
    let before = says.get("extensions").and_then(|all| all.get(EXTENSION)?.get(SAID_AT)?.as_str());
    let before: Option<Timestamp> = before.and_then(|at| at.parse().ok());
    let written = said_in(rows, item, version_seq)?.map(|link| link.at);
    // Nothing is believed since later than it was written.
    Ok(written.map(|written| before.map_or(written, |before| before.min(written))))
}

impl Looking<'_> {
    /// What decays of records: nothing of the owner's word or of what the owner confirmed; an entry lives as long as its own dialect says; and
    /// what has an end of its own is told until then, less and less sure.
    pub(super) fn decay_of(&self, head: &Head) -> Decay {
        let stays = *head.meta.author == self.gateway.principal
            || head.meta.human_verified
            || head.meta.key.is_some();
        match (stays, head.end_of_life) {
            (true, _) => Decay::NONE,
            (false, Some(_)) => Decay { least: 0, ..self.policy.decay },
            (false, None) => self.policy.decay,
        }
    }

    /// How far a record is believed whose words are known.
    fn trust_in(&self, head: &Head, words: Words) -> Trust {
        let Words { level, at } = words;
        let confirmed = head.meta.human_verified;
        let known = Known { level, confidence: head.confidence, written_at: at, confirmed };
        trust(&known, &self.decay_of(head), self.now)
    }

    /// The least that a record can be believed by now, whatever it says: its words are no older than what it became known with.
    fn least(&self, head: &Head) -> Trust {
        self.trust_in(head, Words { level: Level::AgentInferred, at: head.captured_at })
    }

    /// How far a record is believed now.
    ///
    /// # Errors
    /// [`Error::NotFound`] where it was erased since its head was read; [`Error::Store`], [`Error::Corrupt`].
    pub fn trust(&self, head: &Head) -> Result<Trust, Error> {
        let store = &self.gateway.store;
        self.trust_by(head, || whole(&schema::version(store, head.item_id, head.version_seq)?))
    }

    /// The same, of an item that was read.
    ///
    /// # Errors
    /// As [`Looking::trust`].
    pub fn trust_of(&self, seen: &VisibleItem) -> Result<Trust, Error> {
        self.trust_by(&seen.head, || Ok(seen.whole.clone()))
    }

    fn trust_by(
        &self,
        head: &Head,
        read: impl FnOnce() -> Result<Map<String, Value>, Error>,
    ) -> Result<Trust, Error> {
        let by_owner = *head.meta.author == self.gateway.principal;
        let words = self.gateway.believed.words(head.item_id, head.version_seq, || {
            let says = read()?;
            let at = words_at(&self.gateway.store, head.item_id, head.version_seq, &says)?;
            Ok(Words { level: Level::of(&says, by_owner), at: at.ok_or(Error::NotFound)? })
        })?;
        Ok(self.trust_in(head, words))
    }

    /// From when on an item is in no answer: its end, or when it is believed no more.
    ///
    /// # Errors
    /// As [`Looking::trust`].
    pub fn end_of(&self, seen: &VisibleItem) -> Result<Option<Timestamp>, Error> {
        let decays = !self.decay_of(&seen.head).period().is_zero();
        let gone_at = if decays { self.trust_of(seen)?.gone_at } else { None };
        Ok(seen.head.end_of_life.into_iter().chain(gone_at).min())
    }

    /// The same, by what is known of an item in force; of what was taken back, its end.
    pub(super) fn end_of_head(&self, head: &Head) -> Option<Timestamp> {
        let decays = self.is_seen(head) && !self.decay_of(head).period().is_zero();
        let gone_at = if decays { self.trust(head).ok().and_then(|trust| trust.gone_at) } else { None };
        head.end_of_life.into_iter().chain(gone_at).min()
    }

    /// From when on an item is told of otherwise, or not at all: its end, or when it is less sure than now.
    ///
    /// # Errors
    /// As [`Looking::trust`].
    pub fn changes_at(&self, seen: &VisibleItem) -> Result<Option<Timestamp>, Error> {
        let decays = !self.decay_of(&seen.head).period().is_zero();
        let less_at = if decays { self.trust_of(seen)?.less_at } else { None };
        Ok(self.end_of(seen)?.into_iter().chain(less_at).min())
    }

    /// Whether a record is believed no more. One that cannot be read is not.
    pub fn is_gone(&self, head: &Head) -> bool {
        self.least(head).is_gone && self.trust(head).map_or(true, |trust| trust.is_gone)
    }

    /// How sure a record is now, 0 to 1. Of one that cannot be read, nothing is.
    pub fn confidence(&self, head: &Head) -> f64 {
        if self.least(head).periods == 0 {
            return head.confidence.get();
        }
        match self.trust(head) {
            Ok(trust) if trust.periods == 0 => head.confidence.get(),
            Ok(trust) => trust.confidence(),
            Err(_) => 0.0,
        }
    }
}

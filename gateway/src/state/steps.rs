//! What the owner's devices need of items to stay in step: when each part of an item was said, and a journal of what changed.
//!
//! The journal begins with the first device, and has one entry an item: its last change. Nobody is told of an item for standing in it; it
//! says where to look.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::{GONE, GONE_COUNT, JOURNAL, JOURNAL_END, JOURNALED, LINKS, STEPS};
use oap_federation::step::{LocalState, Part, Stamp, Stamps};
use oap_identity::{Did, ItemId};
use oap_memory::chain::{Event, Link};
use oap_store::Rows;

/// Most items that are remembered as erased on another device before they were known here. Beyond it the next are not.
pub const MAX_GONE: u64 = 100_000;

/// When each part of an item was said, as it is known here: as it is noted, or, where nothing was since the journal began, as its chain
/// says. `None` of an item that never was here.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(crate) fn of(rows: &impl Rows, item: ItemId, here: &Did) -> Result<Option<LocalState>, Error> {
    if let Some(own) = STEPS.get(rows, &item)? {
        return Ok(Some(own));
    }
    let (mut words, mut labels, mut standing) = (None, None, None);
    for seq in 0_u32.. {
        let Some(bytes) = LINKS.get(rows, &(item, seq))? else { break };
        let link: Link = serde_json::from_slice(&bytes)?;
        let at = Some(link.at);
        match link.event {
            Event::Capture | Event::Import | Event::Merge => (words, labels, standing) = (at, at, at),
            Event::Correct => (words, labels) = (at, at),
            // The owner said it once more.
            Event::Confirm => words = at,
            Event::Relabel => labels = at,
            Event::Retract | Event::Restore => standing = at,
            Event::Reseal | Event::Migrate | Event::Expire | Event::Erase => {}
        }
    }
    let (Some(words), Some(labels), Some(standing)) = (words, labels, standing) else { return Ok(None) };
    let stamp = |at| Stamp { at, device: here.clone() };
    Ok(Some(LocalState::of(Stamps { words: stamp(words), labels: stamp(labels), standing: stamp(standing) })))
}

/// Whether words of an item came from a device.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(crate) fn came(rows: &impl Rows, item: ItemId, here: &Did) -> Result<bool, Error> {
    Ok(STEPS.get(rows, &item)?.is_some_and(|own| own.seen.keys().any(|device| device != here)))
}

impl Writing<'_, '_> {
    /// Notes that a part of an item is said anew here, before its link is stored. Without devices nothing is noted: the chain says it.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn say(&mut self, item: ItemId, parts: &[Part]) -> Result<(), Error> {
        if JOURNAL_END.get(self.tx)?.is_none() {
            return Ok(());
        }
        let here = self.gateway.principal.clone();
        let Some(mut own) = of(self.tx, item, &here)? else { return Ok(()) };
        for part in parts {
            own.say(*part, &here, self.now);
        }
        Ok(STEPS.put(self.tx, &item, &own)?)
    }

    /// Notes when each part of an item was said, and where, in place of what its links were noted as.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn put_own(&mut self, item: ItemId, own: &LocalState) -> Result<(), Error> {
        Ok(STEPS.put(self.tx, &item, own)?)
    }

    /// Begins the journal, where there is none.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn begin_journal(&mut self) -> Result<(), Error> {
        if JOURNAL_END.get(self.tx)?.is_none() {
            JOURNAL_END.put(self.tx, &0)?;
        }
        Ok(())
    }

    /// Notes that an item changed: its entry is the last one of the journal. Without devices there is none.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn journal(&mut self, item: ItemId) -> Result<(), Error> {
        let Some(end) = JOURNAL_END.get(self.tx)? else { return Ok(()) };
        let next = end.saturating_add(1);
        if let Some(before) = JOURNALED.get(self.tx, &item)? {
            JOURNAL.delete(self.tx, &before);
        }
        JOURNAL.put(self.tx, &next, &item)?;
        JOURNALED.put(self.tx, &item, &next)?;
        Ok(JOURNAL_END.put(self.tx, &next)?)
    }

    /// Remembers that an item was erased on another device that never was here: it does not come from a third.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn is_gone_elsewhere(&mut self, item: ItemId) -> Result<(), Error> {
        let count = GONE_COUNT.get(self.tx)?.unwrap_or_default();
        if count >= MAX_GONE {
            tracing::warn!("so many items were erased on other devices that no more are remembered");
            return Ok(());
        }
        if !GONE.contains(self.tx, &item)? {
            GONE.put(self.tx, &item, &self.now)?;
            GONE_COUNT.put(self.tx, &count.saturating_add(1))?;
        }
        Ok(())
    }
}

//! Peers as they are stored: what is pinned of each, what waits for the owner, and what was noticed (protocol section 15).

use crate::error::{Error, PeerError};
use oap_federation::change::{self, Change};
use oap_federation::due;
use oap_federation::pin::{CheckedDocuments, Pin};
use oap_identity::{Hash, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most peers of a gateway.
pub const MAX_PEERS: usize = 256;
/// Changes of a peer that are remembered, the newest.
pub const MAX_NOTICES: usize = 50;
/// Longest reason that is kept of why a peer could not be read, in bytes.
const MAX_WHY: usize = 500;

/// A peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPeer {
    pub(crate) pin: Pin,
    pub(crate) added_at: Timestamp,
    /// When it was last read and believed.
    pub(crate) checked_at: Timestamp,
    /// When it is looked at again.
    pub(crate) due_at: Timestamp,
    /// What it shows now and the owner has not said yes to.
    pub(crate) pending: Option<Pending>,
    /// Why it could not be read or believed when it was last looked at.
    pub(crate) trouble: Option<Trouble>,
    /// What was taken over, oldest first.
    pub(crate) notices: Vec<Notice>,
}

/// What a peer shows, and what of it differs from what is pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) since: Timestamp,
    pub(crate) pin: Pin,
    pub(crate) changes: Vec<Change>,
}

/// Why a peer was looked at in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) since: Timestamp,
    /// Whether it answered, with what does not hold.
    pub(crate) disbelieved: bool,
    pub(crate) why: String,
    /// How often in a row.
    pub(crate) times: u32,
}

/// A change, and when it was noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notice {
    pub(crate) at: Timestamp,
    pub(crate) change: Change,
}

/// What was read of a peer, for the next time that it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// `None` of a DID that is its own key.
    pub(crate) document: Option<Copy>,
    pub(crate) memory: Copy,
    pub(crate) tool: Copy,
}

/// A document as it came, and by what it is asked for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copy {
    pub(crate) url: String,
    pub(crate) etag: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

impl Copies {
    /// These, without the bytes of what cannot be asked for again by a tag.
    pub(crate) fn of_use(mut self) -> Self {
        for copy in self.document.iter_mut().chain([&mut self.memory, &mut self.tool]) {
            if copy.etag.is_none() {
                copy.bytes.clear();
            }
        }
        self
    }
}

/// What looking at a peer came to, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    /// As before.
    Same,
    /// Something was taken over.
    Taken,
    /// The owner is asked.
    Asks,
    /// It could not be read or believed.
    Failed,
}

impl StoredPeer {
    /// One that was just read.
    pub(crate) fn new(pin: Pin, kept: Option<Duration>, now: Timestamp) -> Self {
        Self {
            pin,
            added_at: now,
            checked_at: now,
            due_at: now.plus(due::after(kept)),
            pending: None,
            trouble: None,
            notices: Vec::new(),
        }
    }

    /// Whether nothing of it waits for the owner, and it was read and believed when it was last looked at.
    pub(crate) const fn is_sound(&self) -> bool {
        self.pending.is_none() && self.trouble.is_none()
    }

    /// Takes over what it shows, as far as that is believed without the owner: all of it or nothing.
    pub(crate) fn learn(
        &mut self,
        seen: CheckedDocuments,
        kept: Option<Duration>,
        now: Timestamp,
    ) -> CheckOutcome {
        let changes = change::compare(&self.pin, &seen);
        self.trouble = None;
        self.checked_at = now;
        self.due_at = now.plus(due::after(kept));
        if changes.iter().any(Change::asks_the_owner) {
            let before = self.pending.take();
            // Published anew with the same in it, it waits since it first did.
            let again =
                |before: &Pin| Pin { published_at: seen.pin.published_at, ..before.clone() } == seen.pin;
            let same = before.filter(|before| again(&before.pin) && before.changes == changes);
            let is_new = same.is_none();
            let since = same.map_or(now, |before| before.since);
            self.pending = Some(Pending { since, pin: seen.pin, changes });
            return if is_new { CheckOutcome::Asks } else { CheckOutcome::Same };
        }
        self.pending = None;
        self.pin = seen.pin;
        let outcome = if changes.is_empty() { CheckOutcome::Same } else { CheckOutcome::Taken };
        self.note(changes, now);
        outcome
    }

    /// Notes that it could not be read or believed. What is pinned stays, and what waits for the owner too.
    pub(crate) fn failed(&mut self, error: &PeerError, now: Timestamp) -> CheckOutcome {
        let disbelieved = matches!(error, PeerError::Disbelieved(_));
        let before = self.trouble.take().filter(|before| before.disbelieved == disbelieved);
        let is_new = before.is_none();
        let (since, times) = before.map_or((now, 1), |before| (before.since, before.times.saturating_add(1)));
        let mut why = error.to_string();
        why.truncate(why.floor_char_boundary(MAX_WHY));
        self.trouble = Some(Trouble { since, disbelieved, why, times });
        self.due_at = now.plus(due::after_failures(times));
        if is_new { CheckOutcome::Failed } else { CheckOutcome::Same }
    }

    /// Pins what waits for the owner, where that is what the owner saw; whether it was.
    pub(crate) fn accept(&mut self, seen: Hash, now: Timestamp) -> Result<bool, Error> {
        let is_it = match &self.pending {
            Some(pending) => pending.pin.hash()? == seen,
            None => false,
        };
        if let Some(pending) = self.pending.take_if(|_| is_it) {
            self.pin = pending.pin;
            self.note(pending.changes, now);
        }
        Ok(is_it)
    }

    fn note(&mut self, changes: Vec<Change>, at: Timestamp) {
        self.notices.extend(changes.into_iter().map(|change| Notice { at, change }));
        let old = self.notices.len().saturating_sub(MAX_NOTICES);
        self.notices.drain(..old);
    }
}

//! Logs as they are stored: the own one, those whose witness this gateway is, and what is asked of the logs of peers (protocol section 16).

pub use crate::api::witnesses::Trouble;
use oap_identity::{Did, Hash, Timestamp};
use oap_memory::log::checkpoint::{Checkpoint, MAX_DELAY};
use oap_memory::log::inclusion::Known;
use oap_memory::log::merkle;
use serde::{Deserialize, Serialize};

/// Witnesses of the own log; beyond it 409.
pub const MAX_WITNESSES: usize = 16;
/// Principals whose witness this gateway is; beyond it 409.
pub const MAX_WITNESSED: usize = 256;
/// Receipts of one tick; what is more waits for the next one.
pub const MAX_TICK: usize = 32_768;
/// Receipts of a grant that are remembered to be asked for in the log; one more takes the place of any other.
pub const MAX_OWED: usize = 16;
/// Seconds from one tick to the next.
pub const TICK: i64 = 60;

/// The own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredLog {
    pub(crate) began_at: Timestamp,
    /// How many leaves it has.
    pub(crate) size: u64,
    /// The root of its tree.
    pub(crate) root: Hash,
    /// Which minute the last leaf is of, since 1970. There is one leaf of a minute at most, but for minutes that a clock used up which stood ahead.
    pub(crate) minute: i64,
}

impl StoredLog {
    /// One without leaves.
    pub(crate) fn begin(now: Timestamp) -> Self {
        Self { began_at: now, size: 0, root: merkle::empty(), minute: now.seconds().div_euclid(TICK) }
    }

    /// What it says of itself.
    pub(crate) fn checkpoint(&self, principal: &Did) -> Checkpoint {
        Checkpoint { origin: principal.to_string(), size: self.size, root: self.root }
    }
}

/// Which receipts of a chain a tick has: those from the number in the row's key on, up to this one, which is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stretch {
    pub(crate) tick: u64,
    pub(crate) end: u64,
}

/// A witness of the own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredWitness {
    pub(crate) added_at: Timestamp,
    /// The size that it signed last, as far as is known.
    pub(crate) size: u64,
    pub(crate) signed_at: Option<Timestamp>,
    /// Why it did not sign when it was last asked.
    pub(crate) trouble: Option<(Timestamp, Trouble)>,
}

/// A log whose witness this gateway is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredOrigin {
    pub(crate) since: Timestamp,
    /// What credentials are of when the owner said so: a restore and a lockdown draw it anew, and what was signed after the backup was made is
    /// not known any more.
    pub(crate) epoch: Option<Hash>,
    /// What was signed last; none where nothing was.
    pub(crate) signed: Option<Cosigned>,
    /// What its key signed of the same size with another root: the last of it.
    pub(crate) other: Option<Cosigned>,
}

/// A checkpoint of another's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cosigned {
    pub(crate) at: Timestamp,
    pub(crate) size: u64,
    pub(crate) root: Hash,
    /// The signed note: a proof of what its principal's key signed.
    pub(crate) note: String,
}

impl StoredOrigin {
    /// Size and root of what was signed last: those of the log without leaves, where nothing was.
    pub(crate) fn last(&self) -> (u64, Hash) {
        self.signed.as_ref().map_or((0, merkle::empty()), |signed| (signed.size, signed.root))
    }
}

/// How many witnesses, and which, must have signed a peer's log before it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Demand {
    pub(crate) need: u8,
    /// Peers, each once.
    pub(crate) of: Vec<Did>,
}

/// Receipts that a peer gave under a grant and that must be in its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owed {
    pub(crate) peer: Did,
    /// At most [`MAX_OWED`].
    pub(crate) receipts: Vec<Known>,
}

impl Owed {
    /// Nothing of a peer yet.
    pub(crate) const fn none_of(peer: Did) -> Self {
        Self { peer, receipts: Vec::new() }
    }

    /// One that must be in the log by now, the first of those. All that are remembered have their turn, so that the peer cannot know of any
    /// answer that nobody will ask for its receipt.
    pub(crate) fn due(&self, now: Timestamp) -> Option<&Known> {
        self.receipts.iter().find(|receipt| receipt.at.plus(MAX_DELAY) <= now)
    }

    /// One is there; it is not asked for again.
    pub(crate) fn is_met(&mut self, receipt: &Known) {
        self.receipts.retain(|known| known != receipt);
    }

    /// Remembers one more. Where there is no room it takes the place of another, which `random` says.
    pub(crate) fn add(&mut self, receipt: Known, random: u64) {
        if self.receipts.len() < MAX_OWED {
            self.receipts.push(receipt);
            return;
        }
        let place = usize::try_from(random % MAX_OWED as u64).unwrap_or_default();
        if let Some(known) = self.receipts.get_mut(place) {
            *known = receipt;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::ReceiptId;
    use std::time::Duration;

    fn receipt(number: u8) -> Known {
        let at = Timestamp::from_seconds(1_777_636_800).plus(Duration::from_secs(u64::from(number)));
        let hash = Hash::of(&[number]);
        Known { receipt_id: ReceiptId::from_bytes([number; 16]), hash, previous: Hash::of(b"before"), at }
    }

    /// However many there are, no more are kept, and which go nobody knows who does not draw.
    #[test]
    fn receipts_wait_for_their_turn_and_have_bounds() {
        let mut owed = Owed::none_of("did:web:granter.example".parse().unwrap());
        for number in 0..MAX_OWED {
            owed.add(receipt(u8::try_from(number).unwrap()), u64::MAX);
        }
        let (first, end) = (receipt(0), receipt(0).at.plus(MAX_DELAY));
        assert_eq!(owed.due(end.minus(Duration::from_millis(1))), None);
        assert_eq!(owed.due(end), Some(&first));
        for (random, gone) in [(3, 3), (MAX_OWED as u64, 0)] {
            owed.add(receipt(200 + gone), random);
            assert_eq!(owed.receipts.len(), MAX_OWED);
            assert!(!owed.receipts.contains(&receipt(gone)) && owed.receipts.contains(&receipt(200 + gone)));
        }
        let next = owed.due(end.plus(Duration::from_secs(1))).unwrap().clone();
        assert_eq!(next, receipt(1));
        owed.is_met(&next);
        assert_eq!((owed.receipts.len(), owed.due(end.plus(Duration::from_secs(1)))), (MAX_OWED - 1, None));
    }
}

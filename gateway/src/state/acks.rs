//! What was acknowledged of answers (protocol section 8.1): of this gateway's own, by whom they were given to; and of those that others gave to it.
//!
//! Each peer has room of its own, in which what is oldest goes first: nobody drives out what others acknowledged.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::{ACK_AUTO, ACKS, ACKS_COUNT, ACKS_PLACES, AgentKey, agent};
use oap_federation::ack::Chain;
use oap_identity::{Did, Hash, LetterId, Timestamp};
use oap_store::Rows;
use serde::{Deserialize, Serialize};

/// Most answers of one peer, and to it, of which this is kept.
pub const MAX_ACKS_PER_PEER: u64 = 500;
/// Most of all peers together; of who is new nothing is kept beyond it.
pub const MAX_ACKS: u64 = 5_000;
/// What the setting for all grants stands under: no document has this hash.
const ALL: Hash = Hash::from_bytes([0; 32]);
/// The account of all peers together; no DID has it, for it is no hash.
const EVERYBODY: AgentKey = [0; 16];

/// What was acknowledged of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredAck {
    pub(crate) chain: Chain,
    /// Who is at the other end.
    pub(crate) peer: Did,
    /// The grant, by the hash of its document.
    pub(crate) grant: Hash,
    /// When the answer came, or its first acknowledgement.
    pub(crate) since: Timestamp,
    /// The receipt in canonical form, where it is of somebody else's answer.
    pub(crate) receipt: Option<String>,
    /// The last letter of this gateway's about it.
    pub(crate) letter: Option<LetterId>,
}

/// Whether one more is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    There,
    /// Where the peer's own oldest goes for it.
    OfTheOldest,
    None,
}

/// Whether one more is kept of a peer of whom so many are, of so many of all.
const fn room(of_peer: u64, of_all: u64) -> Room {
    if of_peer < MAX_ACKS_PER_PEER && of_all < MAX_ACKS {
        Room::There
    } else if of_peer > 0 {
        Room::OfTheOldest
    } else {
        Room::None
    }
}

impl Writing<'_, '_> {
    /// Keeps what was acknowledged of an answer for the first time; whether there was room. Where this peer has no room left, what is its oldest goes.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn keep_ack(&mut self, ack: &StoredAck) -> Result<bool, Error> {
        let peer = agent(ack.peer.as_str());
        let (mut first, next) = ACKS_COUNT.get(self.tx, &peer)?.unwrap_or_default();
        let (_, mut all) = ACKS_COUNT.get(self.tx, &EVERYBODY)?.unwrap_or_default();
        match room(next.saturating_sub(first), all) {
            Room::None => return Ok(false),
            Room::There => {}
            Room::OfTheOldest => {
                if let Some(oldest) = ACKS_PLACES.get(self.tx, &(peer, first))? {
                    ACKS.delete(self.tx, &oldest);
                    ACKS_PLACES.delete(self.tx, &(peer, first));
                }
                (first, all) = (first + 1, all.saturating_sub(1));
            }
        }
        ACKS_PLACES.put(self.tx, &(peer, next), &ack.chain.receipt_hash)?;
        ACKS.put(self.tx, &ack.chain.receipt_hash, ack)?;
        ACKS_COUNT.put(self.tx, &peer, &(first, next + 1))?;
        ACKS_COUNT.put(self.tx, &EVERYBODY, &(0, all + 1))?;
        Ok(true)
    }

    /// Says whether this gateway acknowledges by itself: under one grant, or under all that nothing is said of.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn set_ack(&mut self, grant: Option<Hash>, automatic: bool) -> Result<(), Error> {
        Ok(ACK_AUTO.put(self.tx, &grant.unwrap_or(ALL), &automatic)?)
    }
}

/// Whether this gateway acknowledges by itself under a grant; under all that nothing is said of, where none is named. It does not unless the owner said so.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn is_automatic(rows: &impl Rows, grant: Option<Hash>) -> Result<bool, Error> {
    let said = match grant {
        Some(grant) => ACK_AUTO.get(rows, &grant)?,
        None => None,
    };
    Ok(said.or(ACK_AUTO.get(rows, &ALL)?).unwrap_or_default())
}

/// The grants that the owner said something of, and what.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn said(store: &oap_store::Store) -> Result<Vec<(Hash, bool)>, Error> {
    let mut said = Vec::new();
    for row in ACK_AUTO.scan(store) {
        let (grant, automatic) = row?;
        if grant != ALL {
            said.push((grant, automatic));
        }
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many answers one peer acknowledges, it takes the room of nobody else.
    #[test]
    fn a_peer_takes_its_own_room_alone() {
        let peers = (MAX_ACKS / MAX_ACKS_PER_PEER) as usize;
        let mut kept = vec![0_u64; peers + 1];
        for turn in 0..3 * MAX_ACKS as usize {
            let peer = turn % peers;
            let all = kept.iter().sum();
            match room(kept[peer], all) {
                Room::There => kept[peer] += 1,
                // One goes, one comes: of the same peer.
                Room::OfTheOldest => assert!(kept[peer] == MAX_ACKS_PER_PEER),
                Room::None => panic!("{peer}: {kept:?}"),
            }
            assert!(kept.iter().sum::<u64>() <= MAX_ACKS && kept[peer] <= MAX_ACKS_PER_PEER);
        }
        // Of who is new nothing is kept where there is no room; of who has some its own goes.
        assert_eq!(room(0, MAX_ACKS), Room::None);
        assert_eq!(room(1, MAX_ACKS), Room::OfTheOldest);
        assert_eq!(room(MAX_ACKS_PER_PEER, 600), Room::OfTheOldest);
        assert_eq!(room(0, 0), Room::There);
    }
}

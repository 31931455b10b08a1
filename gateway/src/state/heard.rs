//! Letters that were taken, for as long as they could come again: in the store for what each came to, in memory for how many there are.
//!
//! Whom this gateway asked or gave something is known; everybody else shares a part of the room, so that strangers never use up that of the
//! known, and strangers of one site a part of that. Whether somebody is known is nobody's business but theirs: what depends on it is looked at
//! once they are proved.

use crate::error::Error;
use crate::state::schema::{HEARD, LETTERS, WALLET};
use crate::system::address::site;
use oap_federation::LetterKind;
use oap_identity::{Did, Hash, LetterId, Timestamp};
use oap_store::Store;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most letters that are remembered at once.
pub const MAX_HEARD: usize = 20_000;
/// Most of them that are of strangers.
pub const MAX_HEARD_OF_STRANGERS: usize = 10_000;
/// Most of those that came from one site.
pub const MAX_HEARD_OF_STRANGERS_PER_SITE: usize = 500;

/// What a letter came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardLetter {
    /// The hash of the letter, signature included.
    pub(crate) letter: Hash,
    /// The hash of its type and body.
    pub(crate) says: Hash,
    /// Until when it could come again.
    pub(crate) until: Timestamp,
    /// When it was answered.
    pub(crate) at: Timestamp,
    /// The reply, without its signature, in canonical form.
    pub(crate) reply: String,
    /// The site that it came from, where its sender was a stranger.
    pub(crate) stranger: Option<IpAddr>,
}

/// How many letters are remembered, and whom this gateway wrote to.
#[derive(Debug, Default)]
pub struct Heard(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The site of each that is a stranger's, by its end.
    letters: BTreeMap<(Timestamp, Hash), Option<IpAddr>>,
    /// How many are of strangers: in all, and by their sites.
    strangers: usize,
    sites: HashMap<IpAddr, usize>,
    dids: HashSet<Hash>,
}

/// What a letter is remembered under.
#[must_use]
pub fn heard_key(from: &Did, id: LetterId) -> Hash {
    let mut bytes = id.to_bytes().to_vec();
    bytes.extend_from_slice(from.as_str().as_bytes());
    Hash::of(&bytes)
}

/// Whether a letter of this gateway's makes its receiver known. What answers a stranger does not: who was told no is as strange as before.
#[must_use]
pub const fn makes_known(kind: LetterKind) -> bool {
    match kind {
        LetterKind::AccessRequest
        | LetterKind::AccessWithdrawal
        | LetterKind::GrantDelivery
        | LetterKind::RevocationNotice
        | LetterKind::DeletionNotice
        | LetterKind::Countersignature
        | LetterKind::Acknowledgement
        | LetterKind::DevicePairing => true,
        LetterKind::AccessStatus => false,
    }
}

fn name(did: &Did) -> Hash {
    Hash::of(did.as_str().as_bytes())
}

impl Heard {
    /// Reads what a store remembers.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        let heard = Self::default();
        for row in HEARD.scan(store) {
            let (key, letter) = row?;
            heard.note(key, letter.until, letter.stranger);
        }
        for row in LETTERS.scan(store) {
            let (_, letter) = row?;
            if makes_known(letter.kind) {
                heard.note_known(&letter.to);
            }
        }
        for row in WALLET.scan(store) {
            heard.note_known(&row?.1.granter);
        }
        Ok(heard)
    }

    /// Whether this gateway asked somebody or gave them something, or has a grant of theirs.
    #[must_use]
    pub fn knows(&self, did: &Did) -> bool {
        self.known().dids.contains(&name(did))
    }

    /// Notes that somebody is known.
    pub fn note_known(&self, did: &Did) {
        self.known().dids.insert(name(did));
    }

    /// Whether no letter of anybody's could be remembered.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.known().letters.len() >= MAX_HEARD
    }

    /// Whether a letter of somebody's could be remembered. Asked of whoever is not proved, it would tell whom this gateway knows.
    #[must_use]
    pub fn has_room(&self, from: &Did, network: IpAddr) -> bool {
        let known = self.known();
        let of_site = || known.sites.get(&site(network)).copied().unwrap_or_default();
        let has_stranger_room =
            || known.strangers < MAX_HEARD_OF_STRANGERS && of_site() < MAX_HEARD_OF_STRANGERS_PER_SITE;
        known.letters.len() < MAX_HEARD && (known.dids.contains(&name(from)) || has_stranger_room())
    }

    /// Notes that a letter is remembered; of a stranger's, the site that it came from.
    pub fn note(&self, key: Hash, until: Timestamp, stranger: Option<IpAddr>) {
        let mut known = self.known();
        if known.letters.insert((until, key), stranger).is_none()
            && let Some(site) = stranger
        {
            known.strangers += 1;
            *known.sites.entry(site).or_default() += 1;
        }
    }

    /// Forgets the letters that cannot come again, so many at most; what they were remembered under.
    pub fn forget(&self, now: Timestamp, most: usize) -> Vec<Hash> {
        let mut known = self.known();
        let mut over = Vec::new();
        while over.len() < most
            && let Some(first) = known.letters.first_entry()
            && first.key().0 <= now
        {
            let ((_, key), stranger) = first.remove_entry();
            if let Some(site) = stranger {
                known.strangers = known.strangers.saturating_sub(1);
                let left = known.sites.get(&site).map_or(0, |count| count.saturating_sub(1));
                if left == 0 {
                    known.sites.remove(&site);
                } else {
                    known.sites.insert(site, left);
                }
            }
            over.push(key);
        }
        over
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(name: &str) -> Did {
        format!("did:web:{name}.example").parse().unwrap()
    }

    fn place(n: usize) -> IpAddr {
        IpAddr::from(u32::try_from(n).unwrap().to_be_bytes())
    }

    /// However many strangers write, who is known is heard; and strangers of one site leave room for those of others.
    #[test]
    fn strangers_share_a_part_of_the_room() {
        let (heard, until) = (Heard::default(), Timestamp::from_seconds(1_777_636_800));
        heard.note_known(&did("friend"));
        for n in 0..MAX_HEARD_OF_STRANGERS {
            let at = place(n / MAX_HEARD_OF_STRANGERS_PER_SITE);
            assert!(heard.has_room(&did("a"), at));
            heard.note(Hash::of(&n.to_be_bytes()), until, Some(at));
            let is_last = n % MAX_HEARD_OF_STRANGERS_PER_SITE == MAX_HEARD_OF_STRANGERS_PER_SITE - 1;
            assert_eq!(heard.has_room(&did("a"), at), !is_last);
            assert!(heard.has_room(&did("friend"), at));
        }
        let elsewhere = place(usize::from(u16::MAX));
        assert!(!heard.has_room(&did("a"), elsewhere) && heard.has_room(&did("friend"), elsewhere));
        assert!(!heard.is_full());
        // The same one again counts once, and what is over makes room.
        heard.note(Hash::of(&0_usize.to_be_bytes()), until, Some(place(0)));
        assert!(heard.forget(until.minus(std::time::Duration::from_secs(1)), 10).is_empty());
        assert_eq!(heard.forget(until, usize::MAX).len(), MAX_HEARD_OF_STRANGERS);
        assert!(heard.has_room(&did("a"), place(0)) && heard.known().sites.is_empty());
    }

    /// Of one IPv6 site there are very many networks.
    #[test]
    fn the_networks_of_a_site_are_one() {
        let (heard, until) = (Heard::default(), Timestamp::from_seconds(1_777_636_800));
        let (one, two): (IpAddr, IpAddr) =
            ("2001:db8:1:1::".parse().unwrap(), "2001:db8:1:2::".parse().unwrap());
        for n in 0..MAX_HEARD_OF_STRANGERS_PER_SITE {
            heard.note(Hash::of(&n.to_be_bytes()), until, Some(site(one)));
        }
        assert!(!heard.has_room(&did("a"), two));
        assert!(heard.has_room(&did("a"), "2001:db8:2:1::".parse().unwrap()));
    }

    #[test]
    fn one_id_of_two_senders_is_two_letters() {
        let id = LetterId::from_bytes([1; 16]);
        assert_ne!(heard_key(&did("a"), id), heard_key(&did("b"), id));
    }
}

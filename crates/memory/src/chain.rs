//! The chain of an item (RFC 0010 section 3.6, protocol section 4.2): its append-only provenance log.
//!
//! Each link is signed, and says its number: a link is also a signed statement of how long the chain was and
//! what it ended with when it was made. Dropping links from the end therefore leaves a chain that no longer
//! fits the SD-JWT of the version in force; dropping a signature leaves no chain at all.

use crate::item::closed_enum;
use crate::record::Status;
use crate::vouch::Vouching;
use oap_identity::json::{self, JsonError};
use oap_identity::signed::{SignedError, UnverifiedSignature, sign_detached};
use oap_identity::{Did, Documents, Hash, ItemId, Kid, ReceiptId, Signer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

closed_enum! {
    /// What happened to an item (protocol sections 4.2 and 11).
    Event {
        /// It was written.
        Capture = "capture",
        /// Its content was corrected.
        Correct = "correct",
        /// Its labels changed.
        Relabel = "relabel",
        /// It was committed anew, by better detectors or a newer key.
        Reseal = "reseal",
        /// The owner verified it.
        Confirm = "confirm",
        /// It was made from several others.
        Merge = "merge",
        /// It was taken back.
        Retract = "retract",
        /// It was put back.
        Restore = "restore",
        /// It came in a bundle.
        Import = "import",
        /// It changed house.
        Migrate = "migrate",
        /// Its life ended.
        Expire = "expire",
        /// Its content was destroyed.
        Erase = "erase",
    }
}

impl Event {
    /// Whether a chain may begin so.
    #[must_use]
    pub const fn begins(self) -> bool {
        matches!(self, Self::Capture | Self::Import | Self::Merge)
    }

    /// Whether nothing may follow.
    #[must_use]
    pub const fn ends(self) -> bool {
        matches!(self, Self::Erase | Self::Expire)
    }

    /// Whether the event commits a new version.
    #[must_use]
    pub const fn commits(self) -> bool {
        matches!(self, Self::Capture | Self::Correct | Self::Relabel | Self::Reseal | Self::Merge)
    }

    /// Where the item stands after the event; `None` when the event cannot follow in that state.
    #[must_use]
    pub const fn leads(self, from: Status) -> Option<Status> {
        match (self, from) {
            (Self::Erase | Self::Expire, Status::Current | Status::Retracted) => Some(Status::Erased),
            (Self::Retract, Status::Current) => Some(Status::Retracted),
            (Self::Restore, Status::Retracted) => Some(Status::Current),
            (Self::Correct | Self::Relabel | Self::Merge | Self::Confirm, Status::Current) => Some(from),
            (Self::Reseal | Self::Migrate | Self::Import, Status::Current | Status::Retracted) => Some(from),
            _ => None,
        }
    }
}

crate::reasons! {
    /// Why a chain was refused. The numbers are those of the offending links.
    #[allow(missing_docs, reason = "the names say it")]
    ChainError {
        /// No links.
        #[error("the chain is empty")]
        Empty = "chain.empty",
        /// Too many links.
        #[error("the chain has more than {MAX_LINKS} links")]
        TooLong = "chain.too_long",
        /// A link that is not one.
        #[error("link {0} is malformed: {1}")]
        Malformed(usize, String) = "chain.malformed",
        /// A link of another actor that is no `migrate`.
        #[error("link {0} is of another actor, and only a migrate link changes house")]
        Actor(usize) = "chain.actor",
        /// A link of another item.
        #[error("link {0} belongs to another item")]
        OtherItem(usize) = "chain.other_item",
        /// A link out of place, or one missing.
        #[error("link {0} has the wrong number: links are missing or out of order")]
        Number(usize) = "chain.number",
        /// `prev` is not the hash of the link before.
        #[error("link {0} does not follow the one before it")]
        Broken(usize) = "chain.broken",
        /// A time earlier than that of the link before.
        #[error("link {0} is older than the one before it")]
        Time(usize) = "chain.time",
        /// An event that cannot stand there.
        #[error("link {0}: {1} cannot stand there")]
        Event(usize, Event) = "chain.event",
        /// An event that the state of the item does not allow.
        #[error("link {0}: {1} cannot follow, for the item was {2} by then")]
        State(usize, Event, Status) = "chain.state",
        /// A new version whose commitment the chain has already.
        #[error("link {0}: {1} commits a new version, and repeats a commitment")]
        Repeated(usize, Event) = "chain.repeated_commitment",
        /// A commitment that changes without a new version.
        #[error("link {0}: {1} commits no new version, and changes the commitment")]
        Changed(usize, Event) = "chain.changed_commitment",
        /// A signature by another than the actor.
        #[error("link {0} is not signed by its actor")]
        Signer(usize) = "chain.signer",
        #[error("link {0}: {1}")]
        Signature(usize, SignedError) = "chain.signature",
        /// A signature of a compromised key that no later `reseal` vouches for.
        #[error("link {0} is signed with a key that is compromised since {1}, and no reseal by a key in force vouches for it")]
        Compromised(usize, Timestamp) = "chain.compromised",
        /// No canonical form.
        #[error("{0}")]
        Json(#[from] JsonError) = "chain.json",
    }
}

/// Most links of a chain that is read.
pub const MAX_LINKS: usize = 10_000;
/// Links after which an item has no more versions: the rest of [`MAX_LINKS`] is for what ends it, moves it or vouches for it.
pub const MAX_CHANGES: usize = MAX_LINKS - 1000;

/// One entry of an item's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Link {
    pub item_id: ItemId,
    /// The number of the link, from 0.
    pub seq: u32,
    /// What happened.
    pub event: Event,
    /// When it happened.
    pub at: Timestamp,
    /// Who did it.
    pub actor: Did,
    /// The commitment in force after the event.
    pub commitment: Hash,
    /// `genesis`, or the hash of the link before.
    pub prev: String,
    /// The receipt of the event.
    pub receipt: ReceiptId,
    /// The principal's signature over the link without it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
}

impl Link {
    /// `prev` as it is written.
    #[must_use]
    pub fn write_prev(prev: Option<Hash>) -> String {
        prev.map_or_else(|| "genesis".to_owned(), |hash| hash.to_string())
    }

    /// `prev` as it is read: `Some(None)` is `genesis`.
    #[must_use]
    pub fn parse_prev(text: &str) -> Option<Option<Hash>> {
        if text == "genesis" { Some(None) } else { text.parse().ok().map(Some) }
    }

    /// The link with the principal's signature.
    ///
    /// # Errors
    /// [`SignedError`] when the link has no canonical form.
    pub fn signed(self, signer: &Signer) -> Result<Self, SignedError> {
        Ok(self.signed_written(signer)?.0)
    }

    /// The same, with its canonical form, signature included.
    ///
    /// # Errors
    /// As [`Link::signed`].
    pub fn signed_written(mut self, signer: &Signer) -> Result<(Self, Vec<u8>), SignedError> {
        self.signature.clear();
        let mut written = json::canonical(&self).map_err(|e| SignedError::Claims(e.to_string()))?;
        self.signature = sign_detached(&written, signer);
        // Behind all other members, and nothing in it is escaped.
        written.pop();
        written.extend(format!(r#","signature":"{}"}}"#, self.signature).into_bytes());
        Ok((self, written))
    }

    /// The link after this one that says what happened to the item and leaves its version in force; not signed yet. Its `at` is no
    /// earlier than this one's.
    ///
    /// # Errors
    /// When this link has no canonical form.
    pub fn followed_by(
        &self,
        event: Event,
        at: Timestamp,
        actor: &Did,
        receipt: ReceiptId,
    ) -> Result<Self, JsonError> {
        Ok(Self {
            item_id: self.item_id,
            seq: self.seq + 1,
            event,
            at: at.max(self.at),
            actor: actor.clone(),
            commitment: self.commitment,
            prev: Self::write_prev(Some(self.hash()?)),
            receipt,
            signature: String::new(),
        })
    }

    /// The hash that the next link's `prev` is: of the link as written, signature included.
    ///
    /// # Errors
    /// When the link has no canonical form.
    pub fn hash(&self) -> Result<Hash, JsonError> {
        Hash::of_canonical(self)
    }
}

/// A chain whose every link was checked. Only [`verify`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedChain {
    links: Vec<Link>,
    tip: Hash,
    status: Status,
    version: u32,
    vouching: Vouching,
}

impl VerifiedChain {
    /// The links, oldest first; never empty.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The hash of the last link.
    #[must_use]
    pub const fn tip(&self) -> Hash {
        self.tip
    }

    /// Where the item stands after the last link.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// The number of the link whose version is in force.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The first link.
    #[must_use]
    pub fn first(&self) -> &Link {
        &self.links[0]
    }

    /// The last link; its actor holds the item.
    #[must_use]
    pub fn last(&self) -> &Link {
        &self.links[self.links.len() - 1]
    }

    /// The numbers of the links that a compromised key signed, each with that of the `reseal` link that vouches for it.
    #[must_use]
    pub fn vouched(&self) -> &[(u32, u32)] {
        self.vouching.vouched()
    }

    /// The compromised keys whose links count only because they are dated before that time, and which nobody vouched for.
    #[must_use]
    pub fn dated(&self) -> &[(Kid, Timestamp)] {
        self.vouching.dated()
    }

    /// Whether the owner confirmed the item.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.links.iter().any(|link| link.event == Event::Confirm)
    }

    /// The moves: the number of each `migrate` link that changed the actor, the former one and the new one.
    pub fn moves(&self) -> impl Iterator<Item = (u32, &Did, &Did)> {
        let pairs = self.links.iter().zip(self.links.iter().skip(1));
        pairs.filter(|(a, b)| a.actor != b.actor).map(|(a, b)| (b.seq, &a.actor, &b.actor))
    }
}

/// Checks a whole chain against the documents of those who wrote it: numbers, hashes, times, events, what they commit,
/// and a signature on every link by a key of its actor that was in force, or that a later `reseal` vouches for
/// ([`Vouching`]). Only a `migrate` link hands a chain to another actor. What comes out says where the item stands.
///
/// # Errors
/// [`ChainError`], with the number of the offending link.
pub fn verify(links: &[Value], documents: &dyn Documents) -> Result<VerifiedChain, ChainError> {
    if links.len() > MAX_LINKS {
        return Err(ChainError::TooLong);
    }
    let mut checked: Vec<Link> = Vec::with_capacity(links.len());
    let mut commitments = BTreeSet::new();
    let (mut tip, mut status, mut version) = (None, Status::Current, 0);
    let mut vouching = Vouching::default();
    let unvouched = |vouching: &Vouching| {
        vouching.missing().map_or(Ok(()), |(seq, since)| Err(ChainError::Compromised(seq as usize, since)))
    };
    for (index, value) in links.iter().enumerate() {
        let link: Link =
            json::from_value(value.clone()).map_err(|e| ChainError::Malformed(index, e.to_string()))?;
        let before = checked.last();
        if checked.first().is_some_and(|first| first.item_id != link.item_id) {
            return Err(ChainError::OtherItem(index));
        }
        if link.seq as usize != index {
            return Err(ChainError::Number(index));
        }
        if Link::parse_prev(&link.prev) != Some(tip) {
            return Err(ChainError::Broken(index));
        }
        if before.is_some_and(|before| before.at > link.at) {
            return Err(ChainError::Time(index));
        }
        if before.map_or(!link.event.begins(), |before| before.event.ends() || link.event == Event::Capture) {
            return Err(ChainError::Event(index, link.event));
        }
        if before.is_some() {
            let next = link.event.leads(status);
            status = next.ok_or(ChainError::State(index, link.event, status))?;
        }
        match before {
            Some(before) if !link.event.commits() => {
                if link.commitment != before.commitment {
                    return Err(ChainError::Changed(index, link.event));
                }
            }
            _ => {
                if !commitments.insert(link.commitment) {
                    return Err(ChainError::Repeated(index, link.event));
                }
                version = link.seq;
            }
        }
        let signature = UnverifiedSignature::of(value).map_err(|e| ChainError::Signature(index, e))?;
        if *signature.kid().did() != link.actor {
            return Err(ChainError::Signer(index));
        }
        if before.is_some_and(|before| before.actor != link.actor) {
            if link.event != Event::Migrate {
                return Err(ChainError::Actor(index));
            }
            // Nobody vouches for the signatures of another.
            unvouched(&vouching)?;
        }
        let key =
            documents.key_of(signature.kid()).ok_or(ChainError::Signature(index, SignedError::OtherKey))?;
        signature.is_by(key).map_err(|e| ChainError::Signature(index, e))?;
        vouching.read(&link, key).map_err(|e| ChainError::Signature(index, e))?;
        tip = Some(Hash::of_canonical(value)?);
        checked.push(link);
    }
    unvouched(&vouching)?;
    match tip {
        Some(tip) => Ok(VerifiedChain { links: checked, tip, status, version, vouching }),
        None => Err(ChainError::Empty),
    }
}

//! The list of what was ended for good, kept apart from backups: whoever restores one replays it, so that nothing comes back that was
//! erased, revoked or taken back since (protocol section 11).
//!
//! One line a transaction, written once it is durable; what a crash kept from it is added at the next start. A line of version 3 is
//! `{"v": 3, "at", "items", "marks", "waiting", "grants", "bridges", "consents", "agents", "subscriptions", "keys", "chains", "previous", "mac"}`, what is empty left out: `previous` is
//! the hash of the line before, `mac` an HMAC-SHA256 over the canonical rest under a key of the gateway's that no rotation changes, so
//! that every backup can check it. `keys` is the state of all signing keys, `chains` the receipt chains that grew since the line before.
//! `marks` are retractions and what undid them, `waiting` the items that are erased when their hold ends. A line of version 2 has neither. A
//! line of version 1 is `{"at", "items", "previous", "signature"}`; such a list is read, and written anew when a gateway opens it.

mod complete;
mod list;
mod listed;

pub(crate) use complete::retracts;
pub use list::Erasures;
pub use listed::{Listed, read};

use crate::api::holds::HoldReason;
use crate::state::commits::Chain;
use hmac::{Hmac, Mac};
use oap_identity::{BridgeId, Did, GrantId, Hash, ItemId, SubscriptionId, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// A consent that was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Withdrawn {
    /// The grant, by [`crate::state::grant_book::GrantKey::id`].
    pub grant: GrantId,
    pub at: Timestamp,
}

/// An item that was taken back, or put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Mark {
    pub item: ItemId,
    /// The number of the link that says so.
    pub link: u32,
    pub retracted: bool,
}

/// A subscription that the owner ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Unsubscribed {
    pub subscription: SubscriptionId,
    /// The hash of the grant that it was under; none for one of the owner's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Hash>,
}

/// A deletion that waits for the end of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Waiting {
    pub item: ItemId,
    pub reason: HoldReason,
    /// When the hold ends.
    pub until: Timestamp,
}

/// Where a signing key stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyState {
    /// Its name in the DID document.
    pub fragment: String,
    /// Since when it is compromised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// How far a receipt chain had come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ChainEnd {
    pub chain: String,
    /// Its entries, heads included.
    pub length: u64,
    /// The hash of its last entry.
    pub tip: Option<Hash>,
}

impl From<(String, Chain)> for ChainEnd {
    fn from((chain, Chain { length, tip, .. }): (String, Chain)) -> Self {
        Self { chain, length, tip }
    }
}

/// What a transaction ended for good.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Items that were erased.
    pub items: Vec<ItemId>,
    /// Items that were taken back, or put back.
    pub marks: Vec<Mark>,
    /// Items that are erased when their hold ends.
    pub waiting: Vec<Waiting>,
    /// Grants that were revoked, by [`crate::state::grant_book::GrantKey::id`].
    pub grants: Vec<GrantId>,
    /// Bridges that were taken back.
    pub bridges: Vec<BridgeId>,
    /// Consents that were taken back.
    pub consents: Vec<Withdrawn>,
    /// Agents of the owner's that were removed.
    pub agents: Vec<Did>,
    /// Subscriptions that the owner ended: a grantee's, or one of the owner's own. What else ends one is known without the list: its
    /// grant, the grantee's own gateway, a time.
    pub subscriptions: Vec<Unsubscribed>,
    /// Whether signing keys were changed.
    pub keys: bool,
    /// Whether replaced versions were erased: nothing that a list has to know, for a backup's item is as it was then.
    pub versions: bool,
}

impl Ended {
    /// Whether it is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The MAC of a text, to be written or compared.
pub(crate) fn authenticator(key: &[u8; 32], text: &[u8]) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
    mac.update(text);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::keyring::{Keyring, StoredKeys};
    use oap_identity::json::canonical;
    use oap_identity::random::Seeded;
    use oap_identity::signed::sign_document;
    use oap_memory::receipt::GENESIS;
    use oap_store::Space;
    use serde_json::json;

    fn keys() -> Keyring {
        let stored = StoredKeys::generate(&Seeded::new(1), Timestamp::from_millis(0));
        Keyring::new(&"did:web:user.example".parse().unwrap(), stored).unwrap()
    }

    fn item(n: u8) -> ItemId {
        ItemId::from_bytes([n; 16])
    }

    fn erased(n: u8) -> Ended {
        Ended { items: vec![item(n)], ..Ended::default() }
    }

    const AT: Timestamp = Timestamp::from_millis(1_000_000);

    #[test]
    fn what_is_added_is_read_back_and_a_rotation_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, keys) = (folder.path().join("list"), keys());
        let (list, _) = Erasures::open(&path, &keys, AT).unwrap();
        let chain = |length| vec![ChainEnd { chain: "personal".into(), length, tip: None }];
        list.add(erased(1), &keys, chain(2), AT, &Space::endless()).unwrap();
        let consents = vec![Withdrawn { grant: GrantId::from_bytes([3; 16]), at: AT }];
        let more = Ended { grants: vec![GrantId::from_bytes([2; 16])], consents, ..Ended::default() };
        list.add(more, &keys, chain(4), AT.plus(std::time::Duration::from_secs(1)), &Space::endless())
            .unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        list.add(Ended::default(), &keys, chain(4), AT, &Space::endless()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length, "nothing is no line");
        // The keys of a backup that was made before a rotation, and of one after a revocation.
        let after = keys.revoked("key-1", AT, AT, &Seeded::new(2)).unwrap();
        for keys in [&keys, &after] {
            let listed = read(&path, keys).unwrap();
            assert_eq!((listed.items.len(), listed.grants.len(), listed.consents.len()), (1, 1, 1));
            assert_eq!((listed.chains["personal"].length, listed.since), (4, Some(AT)));
            assert_eq!(listed.keys, [KeyState { fragment: "key-1".into(), revoked_at: None }]);
        }
        // Any change of it is seen; half a line that a crash left is none.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.clone() + "{\"v\":2,").unwrap();
        let (list, listed) = Erasures::open(&path, &keys, AT).unwrap();
        assert_eq!(listed.items.len(), 1);
        list.add(erased(9), &keys, Vec::new(), AT, &Space::endless()).unwrap();
        assert_eq!(read(&path, &keys).unwrap().items.len(), 2);
        let lines: Vec<&str> = text.lines().collect();
        let changed = text.replace(&item(1).to_string(), &item(7).to_string());
        for forged in [changed, format!("{}\n", lines[1]), format!("{}\n{}\n", lines[0], lines[0])] {
            std::fs::write(&path, forged).unwrap();
            assert!(read(&path, &keys).is_err());
        }
    }

    #[test]
    fn a_list_of_version_1_is_read_and_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, keys) = (folder.path().join("list"), keys());
        let (mut text, mut last) = (Vec::new(), GENESIS.to_owned());
        for n in [1, 2] {
            let mut line = json!({"at": AT, "items": [item(n)], "previous": last});
            sign_document(&mut line, keys.current()).unwrap();
            let line = canonical(&line).unwrap();
            last = Hash::of(&line).to_string();
            text.extend([line.as_slice(), b"\n"].concat());
        }
        std::fs::write(&path, &text).unwrap();
        let listed = read(&path, &keys).unwrap();
        assert_eq!((listed.items.len(), listed.since, listed.at), (2, None, Some(AT)));
        let (list, listed) = Erasures::open(&path, &keys, AT).unwrap();
        assert_eq!((listed.items.len(), listed.since), (2, None));
        // It does not say that it covers more before it does.
        assert_eq!(read(&path, &keys).unwrap().since, None);
        list.add(Ended { keys: true, ..erased(3) }, &keys, Vec::new(), AT, &Space::endless()).unwrap();
        // The key that signed the former form is not needed any more.
        let after = keys.revoked("key-1", Timestamp::from_millis(0), AT, &Seeded::new(2)).unwrap();
        let listed = read(&path, &after).unwrap();
        assert_eq!((listed.items.len(), listed.since), (3, Some(AT)));
        // No line of version 1 follows one of version 2.
        let mixed = [std::fs::read(&path).unwrap(), text].concat();
        std::fs::write(&path, mixed).unwrap();
        assert!(read(&path, &keys).is_err());
    }
}

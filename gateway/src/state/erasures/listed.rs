//! A list of erasures, read: every line of it is checked.

use super::{ChainEnd, KeyState, Mark, Unsubscribed, Waiting, Withdrawn, authenticator};
use crate::error::{LineError, ListError};
use crate::state::keyring::Keyring;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::Mac;
use oap_identity::json::{self, canonical};
use oap_identity::{
    BridgeId, Did, DidDocument, Documents, GrantId, Hash, ItemId, Timestamp, UnverifiedDocument,
};
use oap_memory::lines::lines;
use oap_memory::receipt::GENESIS;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// Longest line, in bytes.
const MAX_LINE: usize = 4 << 20;
/// The version that is written, the first that tells of retractions and of deletions that wait.
pub(super) const VERSION: u32 = 3;
/// The first version that has a MAC.
const FIRST_WITH_MAC: u32 = 2;

/// One line of version 2 or 3, but for its `mac`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) v: u32,
    pub(super) at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) items: Vec<ItemId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) marks: Vec<Mark>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) waiting: Vec<Waiting>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) grants: Vec<GrantId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) bridges: Vec<BridgeId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) consents: Vec<Withdrawn>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<Did>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) subscriptions: Vec<Unsubscribed>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) keys: Vec<KeyState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) chains: Vec<ChainEnd>,
    pub(super) previous: String,
}

/// One line of version 1, but for its signature.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormerEntry {
    at: Timestamp,
    items: Vec<ItemId>,
    previous: String,
}

/// What a list says.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// Every item that was erased.
    pub items: BTreeSet<ItemId>,
    /// The last mark of each item.
    pub marks: BTreeMap<ItemId, Mark>,
    /// Every item whose deletion waited for the end of a hold, as last told.
    pub waiting: BTreeMap<ItemId, Waiting>,
    /// Every grant that was revoked.
    pub grants: BTreeSet<GrantId>,
    /// Every bridge that was taken back.
    pub bridges: BTreeSet<BridgeId>,
    /// When a consent was last taken back, by grant.
    pub consents: BTreeMap<GrantId, Timestamp>,
    /// Every agent of the owner's that was removed.
    pub agents: BTreeSet<Did>,
    /// Every subscription that the owner ended.
    pub subscriptions: BTreeSet<Unsubscribed>,
    /// The signing keys, as last told.
    pub keys: Vec<KeyState>,
    /// The chains, as last told.
    pub chains: BTreeMap<String, ChainEnd>,
    /// Since when more than erasures is listed: the first line that tells of keys.
    pub since: Option<Timestamp>,
    /// Since when retractions are listed, too: the first line of version 3 that tells of keys.
    pub marks_since: Option<Timestamp>,
    /// When the last line was written.
    pub at: Option<Timestamp>,
    /// Whether there are lines of version 1.
    pub(super) is_former: bool,
    pub(super) last: Option<String>,
    /// Bytes up to the last line that is whole: what a crash left after it was never promised.
    pub(super) whole: u64,
}

impl Listed {
    fn take(&mut self, entry: Entry) {
        if !entry.keys.is_empty() {
            self.since = self.since.or(entry.at);
            if entry.v == VERSION {
                self.marks_since = self.marks_since.or(entry.at);
            }
        }
        self.at = entry.at;
        self.items.extend(entry.items);
        self.marks.extend(entry.marks.into_iter().map(|mark| (mark.item, mark)));
        self.waiting.extend(entry.waiting.into_iter().map(|waiting| (waiting.item, waiting)));
        self.grants.extend(entry.grants);
        self.bridges.extend(entry.bridges);
        self.agents.extend(entry.agents);
        self.subscriptions.extend(entry.subscriptions);
        for Withdrawn { grant, at } in entry.consents {
            let known = self.consents.entry(grant).or_insert(at);
            *known = at.max(*known);
        }
        if !entry.keys.is_empty() {
            self.keys = entry.keys;
        }
        self.chains.extend(entry.chains.into_iter().map(|end| (end.chain.clone(), end)));
    }
}

/// Reads a list and checks every line of it.
///
/// # Errors
/// The line, and what is wrong with it.
pub fn read(path: &Path, keys: &Keyring) -> Result<Listed, ListError> {
    let mut listed = Listed::default();
    if !path.exists() {
        return Ok(listed);
    }
    listed.whole = whole(File::open(path)?)?;
    let file = File::open(path)?.take(listed.whole);
    let mut wrong = None;
    let mac_key = keys.list_key();
    let read = lines(file, MAX_LINE, |number, line| {
        let checked = line
            .ok_or(LineError::TooLong)
            .and_then(|line| check(line, &mut listed, &mac_key, keys.document()));
        match checked {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => {
                wrong = Some(ListError::Line(number, why));
                ControlFlow::Break(())
            }
        }
    });
    read?;
    wrong.map_or(Ok(listed), Err)
}

/// Bytes up to the last line feed.
fn whole(mut file: File) -> io::Result<u64> {
    let (mut read, mut whole) = (0, 0);
    let mut buffer = [0; 8192];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok(whole);
        }
        if let Some(at) = buffer[..length].iter().rposition(|byte| *byte == b'\n') {
            whole = read + at as u64 + 1;
        }
        read += length as u64;
    }
}

fn check(line: &[u8], listed: &mut Listed, mac_key: &[u8; 32], owner: &DidDocument) -> Result<(), LineError> {
    let document = json::parse(line)?;
    let mut members = document.clone();
    let mut take = |name: &str| members.as_object_mut().and_then(|members| members.remove(name));
    let (mac, signature) = (take("mac"), take("signature"));
    let follows = |previous: &str| {
        let expected = listed.last.as_deref().unwrap_or(GENESIS);
        if previous == expected { Ok(()) } else { Err(LineError::Order) }
    };
    if let Some(mac) = mac {
        let text = canonical(&members)?;
        let given = mac.as_str().and_then(|mac| URL_SAFE_NO_PAD.decode(mac).ok()).unwrap_or_default();
        authenticator(mac_key, &text).verify_slice(&given).map_err(|_| LineError::Mac)?;
        let entry: Entry = json::from_value(members)?;
        if !(FIRST_WITH_MAC..=VERSION).contains(&entry.v) {
            return Err(LineError::Version(entry.v, VERSION));
        }
        follows(&entry.previous)?;
        listed.take(entry);
    } else {
        // Only at the beginning, where an older program wrote it.
        if signature.is_none() || listed.since.is_some() {
            return Err(LineError::NoMac);
        }
        let parsed = UnverifiedDocument::<FormerEntry>::parse(document)?;
        follows(&parsed.unverified().previous)?;
        owner.key_of(&parsed.kid()?).ok_or(LineError::UnknownKey)?;
        let at = parsed.unverified().at;
        let (_, entry) = parsed.verify(owner, at)?;
        listed.items.extend(entry.items);
        listed.at = Some(entry.at);
        listed.is_former = true;
    }
    listed.last = Some(Hash::of(line).to_string());
    Ok(())
}

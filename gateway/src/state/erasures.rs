//! The list of what was ended for good, kept apart from backups: whoever restores one replays it, so that nothing comes back that was
//! erased, revoked or taken back since (protocol section 11).
//!
//! One line a transaction, written once it is durable; what a crash kept from it is added at the next start. A line of version 3 is
//! `{"v": 3, "at", "items", "marks", "waiting", "grants", "bridges", "consents", "agents", "keys", "chains", "previous", "mac"}`, what is empty left out: `previous` is
//! the hash of the line before, `mac` an HMAC-SHA256 over the canonical rest under a key of the gateway's that no rotation changes, so
//! that every backup can check it. `keys` is the state of all signing keys, `chains` the receipt chains that grew since the line before.
//! `marks` are retractions and what undid them, `waiting` the items that are erased when their hold ends. A line of version 2 has neither. A
//! line of version 1 is `{"at", "items", "previous", "signature"}`; such a list is read, and written anew when a gateway opens it.

use crate::api::holds::HoldReason;
use crate::error::{Corrupt, Error, LineError, ListError};
use crate::state::commits::Chain;
use crate::state::gateway::Gateway;
use crate::state::grant_book::GrantKey;
use crate::state::holds::Hold;
use crate::state::keyring::Keyring;
use crate::state::schema::{AGENTS, BRIDGES, HOLDS, LINKS, REVOKED, TOMBSTONES, WITHDRAWN};
use crate::system::files;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use oap_identity::json::{self, canonical};
use oap_identity::{
    BridgeId, Did, DidDocument, Documents, GrantId, Hash, ItemId, Timestamp, UnverifiedDocument,
};
use oap_memory::chain::{Event, Link};
use oap_memory::lines::lines;
use oap_memory::receipt::GENESIS;
use oap_memory::record::Status;
use oap_store::{Range, Rows, Space};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Longest line, in bytes.
const MAX_LINE: usize = 4 << 20;
/// Most ids of one sort in a line.
const MAX_IDS: usize = 10_000;
/// The version that is written, the first that tells of retractions and of deletions that wait.
const VERSION: u32 = 3;
/// The first version that has a MAC.
const FIRST_WITH_MAC: u32 = 2;

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

/// One line of version 2 or 3, but for its `mac`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    v: u32,
    at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    items: Vec<ItemId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<Mark>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<Waiting>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grants: Vec<GrantId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bridges: Vec<BridgeId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    consents: Vec<Withdrawn>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agents: Vec<Did>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<KeyState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chains: Vec<ChainEnd>,
    previous: String,
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
    is_former: bool,
    last: Option<String>,
    /// Bytes up to the last line that is whole: what a crash left after it was never promised.
    whole: u64,
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

/// The MAC of a text, to be written or compared.
pub(crate) fn authenticator(key: &[u8; 32], text: &[u8]) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
    mac.update(text);
    mac
}

/// The list, open for more.
pub struct Erasures {
    path: PathBuf,
    key: zeroize::Zeroizing<[u8; 32]>,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    last: String,
    /// The lengths of the chains as last told.
    chains: BTreeMap<String, u64>,
    /// When the last line was written.
    at: Option<Timestamp>,
}

impl Erasures {
    /// Opens the list of a gateway. One that does not hold is put aside and written anew from what the store knows; one of an
    /// older version is written anew from what it says.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it cannot be put aside or written.
    pub fn open(path: &Path, keys: &Keyring, now: Timestamp) -> Result<(Self, Listed), Error> {
        let mut listed = match read(path, keys) {
            Ok(listed) => listed,
            Err(why) => {
                tracing::error!(%why, "the list of erasures does not hold: it is put aside and written anew");
                std::fs::rename(path, path.with_extension("broken"))
                    .map_err(|e| Corrupt::ListNotPutAside(why, e))?;
                Listed::default()
            }
        };
        let list = Self {
            path: path.to_owned(),
            key: keys.list_key(),
            state: Mutex::new(State {
                last: listed.last.clone().unwrap_or_else(|| GENESIS.to_owned()),
                chains: listed.chains.iter().map(|(name, end)| (name.clone(), end.length)).collect(),
                at: listed.at,
            }),
        };
        if listed.is_former {
            // It says nothing of revocations yet: `since` stays unset until the gateway has told of them.
            let mut state = list.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.last = GENESIS.to_owned();
            let (all, mut text) = (listed.items.iter().copied().collect::<Vec<_>>(), Vec::new());
            for items in all.chunks(MAX_IDS) {
                let entry = Entry { items: items.to_vec(), ..Entry::default() };
                text.extend(
                    list.line(&mut state, entry, listed.at.unwrap_or(now)).map_err(Corrupt::ListFile)?,
                );
            }
            files::write(path, &text).map_err(Corrupt::ListFile)?;
            listed.last = Some(state.last.clone());
            drop(state);
        } else if listed.last.is_some() {
            // What a crash left after the last whole line.
            let file = OpenOptions::new().write(true).open(path).map_err(Corrupt::ListFile)?;
            file.set_len(listed.whole).map_err(Corrupt::ListFile)?;
        }
        Ok((list, listed))
    }

    /// A line, and the state after it.
    fn line(&self, state: &mut State, entry: Entry, at: Timestamp) -> io::Result<Vec<u8>> {
        let entry = Entry { v: VERSION, at: Some(at), previous: state.last.clone(), ..entry };
        let text = canonical(&entry).map_err(io::Error::other)?;
        let mut document: Value = json::parse(&text).map_err(io::Error::other)?;
        let mac = authenticator(&self.key, &text).finalize().into_bytes();
        document["mac"] = Value::String(URL_SAFE_NO_PAD.encode(mac));
        let mut line = canonical(&document).map_err(io::Error::other)?;
        state.last = Hash::of(&line).to_string();
        state.chains.extend(entry.chains.into_iter().map(|end| (end.chain, end.length)));
        state.at = Some(at);
        line.push(b'\n');
        Ok(line)
    }

    /// Adds what was ended and the chains that grew, and waits until it is on disk. Nothing where neither is.
    fn add(
        &self,
        ended: Ended,
        keys: &Keyring,
        chains: Vec<ChainEnd>,
        at: Timestamp,
        space: &Space,
    ) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = state.last == GENESIS;
        let Ended {
            mut items,
            mut marks,
            mut waiting,
            mut grants,
            mut bridges,
            mut consents,
            mut agents,
            keys: changed,
            versions: _,
        } = ended;
        let grown = chains.into_iter().filter(|end| state.chains.get(&end.chain) != Some(&end.length));
        let mut chains: Vec<ChainEnd> = grown.collect();
        let mut states = if changed || is_new { keys.states() } else { Vec::new() };
        let (mut text, mut after) = (Vec::new(), state.clone());
        while !(items.is_empty()
            && marks.is_empty()
            && waiting.is_empty()
            && grants.is_empty()
            && bridges.is_empty()
            && consents.is_empty()
            && agents.is_empty()
            && states.is_empty()
            && chains.is_empty())
        {
            let entry = Entry {
                items: some(&mut items),
                marks: some(&mut marks),
                waiting: some(&mut waiting),
                grants: some(&mut grants),
                bridges: some(&mut bridges),
                consents: some(&mut consents),
                agents: some(&mut agents),
                keys: std::mem::take(&mut states),
                chains: some(&mut chains),
                ..Entry::default()
            };
            text.extend(self.line(&mut after, entry, at)?);
        }
        if text.is_empty() {
            return Ok(());
        }
        let mut file = files::append(&self.path)?;
        let before = file.metadata()?.len();
        space.finish(|| {
            let written = file.write_all(&text).and_then(|()| file.sync_data());
            // Half a line would break the list for all that follow.
            written.inspect_err(|_| drop(file.set_len(before)))
        })?;
        *state = after;
        Ok(())
    }

    /// When the last line was written.
    pub(crate) fn told_at(&self) -> Option<Timestamp> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).at
    }
}

/// Most links of an item that are looked at for its retraction: few follow one.
const MAX_LINKS: usize = 64;

/// Whether a link of an item is there and says that the item is taken back.
pub(crate) fn retracts(rows: &impl Rows, item: ItemId, link: u32) -> Result<bool, Error> {
    let Some(bytes) = LINKS.get(rows, &(item, link))? else { return Ok(false) };
    Ok(serde_json::from_slice::<Link>(&bytes)?.event == Event::Retract)
}

/// The first ids of a list, taken out.
fn some<T>(all: &mut Vec<T>) -> Vec<T> {
    let rest = all.split_off(all.len().min(MAX_IDS));
    std::mem::replace(all, rest)
}

impl Gateway {
    /// Tells the list of what a transaction ended, and the caches; a list that cannot be written is told of in the log, and made up for at the
    /// next start.
    pub(crate) fn record_ended(&self, ended: Ended, at: Timestamp) {
        if (ended.versions || !ended.items.is_empty())
            && let Some(embeddings) = &self.embeddings
        {
            embeddings.clear();
        }
        self.tell(ended, at);
    }

    fn tell(&self, ended: Ended, at: Timestamp) {
        let Some(erasures) = &self.erasures else { return };
        let chains = self.chains().unwrap_or_default().into_iter().map(ChainEnd::from).collect();
        if let Err(error) = erasures.add(ended, &self.keys(), chains, at, self.store.space()) {
            tracing::error!(%error, "the list of erasures cannot be written");
        }
    }

    /// Tells the list how far the receipt chains have come.
    pub fn tell_chains(&self) {
        self.tell(Ended::default(), self.clock.now());
    }

    /// Adds to the list what a crash, or an older program, kept from it. A list that does not tell of keys yet is begun: whoever
    /// restores a backup of a home that never ended anything has one too.
    pub(crate) fn complete_erasures(&self, listed: &Listed) -> Result<(), Error> {
        let now = self.clock.now();
        let mut missing = Ended {
            items: TOMBSTONES.keys(&self.store, Range::all()).collect::<Result<_, _>>()?,
            grants: REVOKED
                .keys(&self.store, Range::all())
                .map(|key| key.map(GrantKey::id))
                .collect::<Result<_, _>>()?,
            ..Ended::default()
        };
        missing.items.retain(|item| !listed.items.contains(item));
        missing.grants.retain(|grant| !listed.grants.contains(grant));
        for row in BRIDGES.scan(&self.store) {
            let (id, stored) = row?;
            if stored.revoked_at.is_some() && !listed.bridges.contains(&id) {
                missing.bridges.push(id);
            }
        }
        for row in AGENTS.scan(&self.store) {
            let (did, agent) = row?;
            if !agent.is_there() && !listed.agents.contains(&did) {
                missing.agents.push(did);
            }
        }
        for row in WITHDRAWN.scan(&self.store) {
            let (key, at) = row?;
            let grant = key.id();
            if listed.consents.get(&grant).is_none_or(|known| *known < at) {
                missing.consents.push(Withdrawn { grant, at });
            }
        }
        for head in self.heads.all().into_iter().filter(|head| head.status == Status::Retracted) {
            // One that is current here and retracted there stays so there: the list may be newer than the store, in a restore.
            if !listed.marks.get(&head.item_id).is_some_and(|mark| mark.retracted) {
                let links = (0..=head.seq).rev();
                let is_retraction = |link: &u32| retracts(&self.store, head.item_id, *link).unwrap_or(false);
                let link = links.take(MAX_LINKS).find(is_retraction).unwrap_or(head.seq);
                missing.marks.push(Mark { item: head.item_id, link, retracted: true });
            }
        }
        for row in HOLDS.scan(&self.store) {
            let (item, Hold { reason, until, erase_after }) = row?;
            if erase_after && !listed.waiting.contains_key(&item) {
                missing.waiting.push(Waiting { item, reason, until });
            }
        }
        missing.keys = listed.keys != self.keys().states() || listed.marks_since.is_none();
        if !missing.is_empty() || listed.since.is_none() {
            self.tell(missing, now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::keyring::StoredKeys;
    use oap_identity::random::Seeded;
    use oap_identity::signed::sign_document;
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

//! The list of erasures of a running gateway, open for more.

use super::listed::{Entry, Listed, VERSION, read};
use super::{ChainEnd, Ended, authenticator};
use crate::error::{Corrupt, Error};
use crate::state::keyring::Keyring;
use crate::system::files;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::Mac;
use oap_identity::json::{self, canonical};
use oap_identity::{Hash, Timestamp};
use oap_memory::receipt::GENESIS;
use oap_store::Space;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Most ids of one sort in a line.
const MAX_IDS: usize = 10_000;

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
    pub(super) fn add(
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
            mut subscriptions,
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
            && subscriptions.is_empty()
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
                subscriptions: some(&mut subscriptions),
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

/// The first ids of a list, taken out.
fn some<T>(all: &mut Vec<T>) -> Vec<T> {
    let rest = all.split_off(all.len().min(MAX_IDS));
    std::mem::replace(all, rest)
}

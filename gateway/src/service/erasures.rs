//! The list of what was erased, kept apart from backups: whoever restores one replays it, so that nothing comes back
//! that was erased since (protocol section 11).
//!
//! One line a transaction: `{"at", "items", "previous", "signature"}`, where `previous` is the hash of the line before. It
//! is written once the erasure is durable; what a crash kept from it is added at the next start.

use crate::error::Error;
use crate::gateway::Gateway;
use crate::tables::TOMBSTONES;
use oap_identity::json::{self, canonical};
use oap_identity::signed::{UnverifiedSignature, sign_document};
use oap_identity::{DidDocument, Hash, ItemId, Signer, Timestamp};
use oap_memory::lines::lines;
use oap_memory::receipt::GENESIS;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Longest line, in bytes.
const MAX_LINE: usize = 4 << 20;

/// One line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    at: Timestamp,
    items: Vec<ItemId>,
    previous: String,
}

/// The list, open for more.
pub struct Erasures {
    path: PathBuf,
    last: Mutex<String>,
}

/// What a list says.
#[derive(Debug, Default)]
pub struct Listed {
    /// Every item that was erased.
    pub items: BTreeSet<ItemId>,
    last: Option<String>,
}

/// Reads a list and checks every line of it.
///
/// # Errors
/// The line, and what is wrong with it.
pub fn read(path: &Path, owner: &DidDocument) -> Result<Listed, String> {
    let mut listed = Listed::default();
    if !path.exists() {
        return Ok(listed);
    }
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    let mut wrong = None;
    let read = lines(file, MAX_LINE, |number, line| {
        let checked = line.ok_or("too long".to_owned()).and_then(|line| entry(line, &mut listed, owner));
        match checked {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => {
                wrong = Some(format!("line {number}: {why}"));
                ControlFlow::Break(())
            }
        }
    });
    read.map_err(|e| e.to_string())?;
    wrong.map_or(Ok(listed), Err)
}

fn entry(line: &[u8], listed: &mut Listed, owner: &DidDocument) -> Result<(), String> {
    let document = json::parse(line).map_err(|e| e.to_string())?;
    let mut members = document.clone();
    if let Some(members) = members.as_object_mut() {
        members.remove("signature");
    }
    let entry: Entry = json::from_value(members).map_err(|e| e.to_string())?;
    if entry.previous != listed.last.clone().unwrap_or_else(|| GENESIS.to_owned()) {
        return Err("it does not follow the line before it".into());
    }
    let signature = UnverifiedSignature::of(&document).map_err(|e| e.to_string())?;
    let key = owner.key(signature.kid()).ok_or("it is signed by an unknown key")?;
    signature.verify(key, entry.at).map_err(|e| e.to_string())?;
    listed.items.extend(entry.items);
    listed.last = Some(Hash::of(line).to_string());
    Ok(())
}

impl Erasures {
    /// Opens the list of a gateway. One that does not hold, because it was changed or its key was revoked, is put aside
    /// and written anew from what the store knows.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it cannot be put aside.
    pub fn open(path: &Path, owner: &DidDocument) -> Result<(Self, Listed), Error> {
        let listed = match read(path, owner) {
            Ok(listed) => listed,
            Err(why) => {
                tracing::error!(%why, "the list of erasures does not hold: it is put aside and written anew");
                let aside = path.with_extension("broken");
                std::fs::rename(path, &aside)
                    .map_err(|e| Error::Corrupt(format!("the list of erasures: {why}; {e}")))?;
                Listed::default()
            }
        };
        let last = listed.last.clone().unwrap_or_else(|| GENESIS.to_owned());
        Ok((Self { path: path.to_owned(), last: Mutex::new(last) }, listed))
    }

    /// Adds items, and waits until they are on disk.
    pub(crate) fn add(&self, items: Vec<ItemId>, at: Timestamp, signer: &Signer) -> std::io::Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut document = json!({"at": at, "items": items, "previous": *last});
        sign_document(&mut document, signer).map_err(std::io::Error::other)?;
        let line = canonical(&document).map_err(std::io::Error::other)?;
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        file.write_all(&[line.as_slice(), b"\n"].concat())?;
        file.sync_data()?;
        *last = Hash::of(&line).to_string();
        Ok(())
    }
}

impl Gateway {
    /// Tells the list of erased items; a list that cannot be written is told of in the log, and made up for at the next
    /// start.
    pub(crate) fn list_erased(&self, items: Vec<ItemId>, at: Timestamp) {
        let Some(erasures) = &self.erasures else { return };
        if let Err(error) = erasures.add(items, at, self.keys().current()) {
            tracing::error!(%error, "the list of erasures cannot be written");
        }
    }

    fn tombstones(&self) -> Result<Vec<ItemId>, Error> {
        let mut items = Vec::new();
        for pair in self.store.scan(TOMBSTONES, &[], None, false) {
            let (key, _) = pair?;
            items.extend(key.first_chunk::<16>().map(|bytes| ItemId::from_bytes(*bytes)));
        }
        Ok(items)
    }

    /// Adds to the list what a crash kept from it. A list without a line is begun: whoever restores a backup of a home that
    /// never erased anything has one too.
    pub(crate) fn make_up(&self, listed: &Listed) -> Result<(), Error> {
        let mut missing = self.tombstones()?;
        missing.retain(|item| !listed.items.contains(item));
        if !missing.is_empty() || listed.last.is_none() {
            self.list_erased(missing, self.clock.now());
        }
        Ok(())
    }

    /// Erases what a list says was erased and what is here nevertheless; how many items that were.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn replay(self: &std::sync::Arc<Self>, listed: &Listed) -> Result<usize, Error> {
        let back: Vec<ItemId> =
            listed.items.iter().copied().filter(|item| self.catalog.get(*item).is_some()).collect();
        let count = back.len();
        for batch in back.chunks(500) {
            let batch = batch.to_vec();
            self.commit(move |w| {
                for item in batch {
                    w.erase(item, oap_memory::chain::Event::Erase)?;
                }
                Ok(())
            })
            .await?;
        }
        // Those that are not here stay on the list, for older backups.
        let known: BTreeSet<ItemId> = self.tombstones()?.into_iter().collect();
        let others: Vec<ItemId> = listed.items.difference(&known).copied().collect();
        if !others.is_empty() {
            self.list_erased(others, self.clock.now());
        }
        Ok(count)
    }
}

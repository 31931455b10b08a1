//! The keys of all versions of a DID, each with its beginning and its end: from a log that holds.

use crate::did::Did;
use crate::document::{DidDocument, VerificationKey};
use crate::time::Timestamp;

/// A version of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Its number and hash.
    pub(super) id: String,
    /// Since when it is the one that counts.
    pub(super) time: Timestamp,
    /// The DID that it is of; a portable one had others before.
    pub(super) did: Did,
    pub(super) state: DidDocument,
}

/// A history whose log, and whose witnesses where it asks for any, were checked. [`Log::proven`](super::Log::proven) alone makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    versions: Vec<Version>,
    document: DidDocument,
    deactivated: bool,
}

/// A key while versions are gone through.
struct Listed {
    key: VerificationKey,
    /// When the first version came that did not list it.
    until: Option<Timestamp>,
}

impl History {
    pub(super) fn new(did: Did, versions: Vec<Version>, deactivated: bool) -> Self {
        let mut listed: Vec<Listed> = Vec::new();
        // Under its former names a DID had other key ids.
        for version in versions.iter().filter(|version| version.did == did) {
            for known in listed.iter_mut().filter(|known| known.until.is_none()) {
                let now = version.state.key(known.key.kid());
                if now.is_none_or(|now| now.public() != known.key.public()) {
                    known.until = Some(version.time);
                }
            }
            for key in version.state.keys() {
                let since = match listed.iter().position(|known| known.key.kid() == key.kid()) {
                    // What the version says of its end counts from here on.
                    Some(place) => {
                        let known = listed.remove(place);
                        let stays = known.until.is_none().then(|| known.key.good_since()).flatten();
                        stays.unwrap_or(version.time)
                    }
                    None => version.time,
                };
                listed.push(Listed { key: key.clone().since(since), until: None });
            }
        }
        let end = versions.last().filter(|_| deactivated).map(|last| last.time);
        let all = versions.iter().flat_map(|version| version.state.keys());
        let revoked: Vec<_> = all.filter_map(|key| Some((*key.public(), key.revoked_at()?))).collect();
        let ended = |Listed { key, until }: Listed| {
            let ends = [key.retired_at(), until, end];
            let key = match ends.into_iter().flatten().min() {
                Some(at) => key.retired(at),
                None => key,
            };
            let times = revoked.iter().filter(|(public, _)| public == key.public()).map(|(_, at)| *at);
            match times.min() {
                Some(at) => key.revoked(at),
                None => key,
            }
        };
        let keys = listed.into_iter().map(ended).collect();
        let last = versions.last().filter(|_| !deactivated);
        let document = last.map_or_else(|| DidDocument::new(did, Vec::new()), |last| last.state.clone());
        Self { document: document.with_keys(keys), versions, deactivated }
    }

    /// The document as it is now, with the keys of all versions: a former one has the time of its end, and each the time of its beginning. Of a
    /// DID that was deactivated every key has ended, and there are no services.
    ///
    /// A key that was taken out and put in again counts since it was put in again. One that any version calls compromised is so since the
    /// first time that any of them says, under whatever name it is listed again.
    #[must_use]
    pub const fn document(&self) -> &DidDocument {
        &self.document
    }

    /// Whether the DID is over.
    #[must_use]
    pub const fn is_deactivated(&self) -> bool {
        self.deactivated
    }

    /// How many versions there are.
    #[must_use]
    pub fn length(&self) -> usize {
        self.versions.len()
    }

    /// The id of the last version: its number and its hash, which holds all versions before it.
    #[must_use]
    pub fn tip(&self) -> &str {
        self.versions.last().map_or("", |last| last.id.as_str())
    }

    /// Whether a version of that number (from 1 on) has that id here: a later log of the same DID has all versions of an earlier one.
    #[must_use]
    pub fn has(&self, number: usize, id: &str) -> bool {
        number
            .checked_sub(1)
            .and_then(|place| self.versions.get(place))
            .is_some_and(|version| version.id == id)
    }
}

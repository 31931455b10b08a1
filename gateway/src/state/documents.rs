//! The metadata documents of clients that were fetched, for a while: a client that is asked for again costs no request.
//!
//! What is no document is not remembered (draft-ietf-oauth-client-id-metadata-document, 4.4). So that nobody makes the gateway fetch for
//! ever, or keeps others from being fetched for, fetches are bounded for each network, too.

use crate::oauth::{Client, DocumentUrl};
use crate::system::address::site;
use lru::LruCache;
use oap_identity::Timestamp;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Documents that are remembered at once; the one that was not asked for longest is forgotten.
pub const MAX_DOCUMENTS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");
/// Documents that are fetched at once; beyond it the client is told to try again. Of one IPv4 address or IPv6 /48: one.
pub const MAX_FETCHING: usize = 16;
/// Documents that are fetched in a minute, for all callers together; beyond it the client is told to try again.
pub const MAX_FETCHED: usize = 120;
/// The same, for one IPv4 address or IPv6 /48.
pub const MAX_FETCHED_PER_SITE: usize = 10;
/// How long a document counts.
const KEPT: Duration = Duration::from_secs(600);

/// What was fetched.
pub struct Documents {
    known: Mutex<LruCache<DocumentUrl, (Timestamp, Arc<Client>)>>,
    fetches: Mutex<Fetches>,
}

#[derive(Default)]
struct Fetches {
    /// For whom one is under way.
    running: HashSet<IpAddr>,
    /// The running minute.
    minute: i64,
    /// How many were begun in it, by for whom.
    begun: HashMap<IpAddr, usize>,
}

/// A place to fetch one, while it is held.
pub(crate) struct Place<'a> {
    documents: &'a Documents,
    site: IpAddr,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.documents.fetches().running.remove(&self.site);
    }
}

impl Default for Documents {
    fn default() -> Self {
        Self { known: Mutex::new(LruCache::new(MAX_DOCUMENTS)), fetches: Mutex::default() }
    }
}

impl Documents {
    fn fetches(&self) -> MutexGuard<'_, Fetches> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a client.
    pub(crate) fn get(&self, url: &DocumentUrl, now: Timestamp) -> Option<Arc<Client>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, client) = known.get(url)?;
        (now < *until).then(|| client.clone())
    }

    /// Remembers who a client is.
    pub(crate) fn put(&self, url: DocumentUrl, client: Arc<Client>, now: Timestamp) {
        let entry = (now.plus(KEPT), client);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).put(url, entry);
    }

    /// A place to fetch one for a network, where there is one.
    pub(crate) fn place(&self, network: IpAddr, now: Timestamp) -> Option<Place<'_>> {
        let site = site(network);
        let mut fetches = self.fetches();
        let minute = now.seconds().div_euclid(60);
        if fetches.minute != minute {
            fetches.minute = minute;
            fetches.begun.clear();
        }
        let (all, own) = (fetches.begun.values().sum::<usize>(), fetches.begun.get(&site).copied());
        let is_full = fetches.running.len() >= MAX_FETCHING || all >= MAX_FETCHED;
        let own = own.unwrap_or(0);
        if is_full || own >= MAX_FETCHED_PER_SITE || fetches.running.contains(&site) {
            return None;
        }
        fetches.running.insert(site);
        fetches.begun.insert(site, own + 1);
        Some(Place { documents: self, site })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::ClientId;
    use crate::oauth::client::ShownName;

    #[test]
    fn so_many_are_fetched() {
        let (documents, now) = (Documents::default(), Timestamp::from_seconds(1_777_636_800));
        let of = |n: usize| IpAddr::from([192, 0, 2, u8::try_from(n).unwrap()]);
        let places: Vec<_> = (0..MAX_FETCHING).map(|n| documents.place(of(n), now).unwrap()).collect();
        assert!(documents.place(of(MAX_FETCHING), now).is_none());
        drop(places);
        // One network holds up itself alone.
        let held = documents.place(of(0), now);
        assert!(held.is_some() && documents.place(of(0), now).is_none());
        assert!(documents.place(of(1), now).is_some());
        drop(held);
        for _ in 2..MAX_FETCHED_PER_SITE {
            assert!(documents.place(of(0), now).is_some());
        }
        assert!(documents.place(of(0), now).is_none() && documents.place(of(2), now).is_some());
        let left = (0..200).map(of).flat_map(|network| std::iter::repeat_n(network, MAX_FETCHED_PER_SITE));
        for network in left {
            let _ = documents.place(network, now);
        }
        assert!(documents.place(of(201), now).is_none());
        assert!(documents.place(of(0), now.plus(Duration::from_secs(60))).is_some());
        // Of one IPv6 site there are very many networks.
        let (one, two) = ("2001:db8:1:1::".parse().unwrap(), "2001:db8:1:2::".parse().unwrap());
        let later = now.plus(Duration::from_secs(120));
        let held = documents.place(one, later);
        assert!(held.is_some() && documents.place(two, later).is_none());
        assert!(documents.place("2001:db8:2:1::".parse().unwrap(), later).is_some());
    }

    #[test]
    fn a_document_is_forgotten() {
        let (documents, now) = (Documents::default(), Timestamp::from_seconds(1_777_636_800));
        let url: DocumentUrl = "https://app.example/c".parse().unwrap();
        let name = ShownName::from("App".to_owned());
        let client = Arc::new(Client { id: ClientId::Document(url.clone()), name, redirects: Vec::new() });
        documents.put(url.clone(), client.clone(), now);
        assert_eq!(documents.get(&url, now), Some(client));
        assert_eq!(documents.get(&url, now.plus(KEPT)), None);
    }
}

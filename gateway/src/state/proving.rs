//! How many letters are having their senders proved at once: for each of them a stranger can have a document fetched, from a host that takes
//! its time.
//!
//! A place is taken for every letter, whether its sender's document is at hand or not: else a refusal would say which documents are.

use crate::system::address::site;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Letters whose senders are being proved at once; beyond it 503.
pub const MAX_PROVING: usize = 64;
/// The same, from one IPv4 address or IPv6 /48.
pub const MAX_PROVING_PER_SITE: usize = 4;

/// The letters whose senders are being proved, by the sites that they came from.
#[derive(Debug, Default)]
pub struct Proving(Mutex<HashMap<IpAddr, usize>>);

/// A letter that has its sender proved, while it is held.
#[derive(Debug)]
pub(crate) struct Place<'a>(&'a Proving, IpAddr);

impl Proving {
    /// A place for a letter from a network, where there is one.
    pub(crate) fn place(&self, network: IpAddr) -> Option<Place<'_>> {
        let site = site(network);
        let mut running = self.running();
        let (all, own) = (running.values().sum::<usize>(), running.get(&site).copied().unwrap_or_default());
        if all >= MAX_PROVING || own >= MAX_PROVING_PER_SITE {
            return None;
        }
        running.insert(site, own + 1);
        Some(Place(self, site))
    }

    fn running(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut running = self.0.running();
        let left = running.get(&self.1).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            running.remove(&self.1);
        } else {
            running.insert(self.1, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_site_holds_up_itself_alone() {
        let proving = Proving::default();
        let of = |n: usize| IpAddr::from([192, 0, 2, u8::try_from(n).unwrap()]);
        let mut held: Vec<_> = (0..MAX_PROVING_PER_SITE).map(|_| proving.place(of(0)).unwrap()).collect();
        assert!(proving.place(of(0)).is_none());
        for n in MAX_PROVING_PER_SITE..MAX_PROVING {
            held.push(proving.place(of(n / MAX_PROVING_PER_SITE)).unwrap());
        }
        assert!(proving.place(of(200)).is_none());
        drop(held);
        assert!(proving.running().is_empty());
        assert!(proving.place(of(0)).is_some());
        // Of one IPv6 site there are very many networks.
        let network = |n: usize| format!("2001:db8:1:{n}::").parse::<IpAddr>().unwrap();
        let held: Vec<_> = (0..MAX_PROVING_PER_SITE).map(|n| proving.place(network(n)).unwrap()).collect();
        assert!(proving.place(network(9)).is_none() && held.len() == MAX_PROVING_PER_SITE);
    }
}

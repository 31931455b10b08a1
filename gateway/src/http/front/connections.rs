//! How many connections there are: in all, and from one network.
//!
//! A newcomer for whom there is no room takes the place of the oldest connection that waits for its caller: one in its
//! handshake, or without a request. Connections whose request is worked on, or whose answer is being taken, keep their place.
//! So whoever holds connections open and says nothing displaces his own.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Most connections in all. Fewer where the process may open fewer files: see [`RESERVED_DESCRIPTORS`].
pub const MAX_CONNECTIONS: usize = 512;
/// Most connections from one network: an IPv4 address, or the /64 of an IPv6 address. At most a quarter of all.
pub const MAX_PER_NETWORK: usize = 128;
/// File descriptors that are kept for everything that is not a caller's connection: store, log, outgoing requests.
pub const RESERVED_DESCRIPTORS: usize = 64;
/// The least connections that a server takes, however few descriptors it has.
pub const MIN_CONNECTIONS: usize = 8;

/// The connections of a server.
#[derive(Debug)]
pub struct Connections {
    most: usize,
    per_network: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// In the order of their arrival.
    all: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Place {
    /// `None` for a trusted proxy, which brings callers of many.
    network: Option<IpAddr>,
    state: Arc<State>,
}

impl Connections {
    /// At most so many in all, and a quarter of them from one network.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        let per_network = (most / 4).clamp(1, MAX_PER_NETWORK);
        Arc::new(Self { most, per_network, open: Mutex::default() })
    }

    /// As many as the process has file descriptors for.
    #[must_use]
    pub fn of_process() -> Arc<Self> {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
        let spare = files.saturating_sub(RESERVED_DESCRIPTORS);
        Self::new(spare.clamp(MIN_CONNECTIONS, MAX_CONNECTIONS))
    }

    /// A place for a newcomer, who counts for the bound of its network if it has one; `None` when all others are at work.
    pub(super) fn admit(self: &Arc<Self>, network: Option<IpAddr>) -> Option<Admitted> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let kin = open.all.values().filter(|place| place.network == network).count();
        if network.is_some() && kin >= self.per_network {
            open.displace(|place| place.network == network)?;
        }
        if open.all.len() >= self.most {
            open.displace(|_| true)?;
        }
        let number = open.next;
        open.next += 1;
        let state = Arc::new(State::default());
        open.all.insert(number, Place { network, state: state.clone() });
        Some(Admitted { connections: self.clone(), number, state })
    }

    /// Closes every connection that waits for its caller.
    pub(super) fn close_quiet(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for place in open.all.values().filter(|place| place.state.is_quiet()) {
            place.state.displaced.notify_one();
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).all.len()
    }
}

impl Open {
    /// Closes the oldest quiet connection of these.
    fn displace(&mut self, among: impl Fn(&Place) -> bool) -> Option<()> {
        let mut quiet = self.all.iter().filter(|(_, place)| among(place) && place.state.is_quiet());
        let number = *quiet.next()?.0;
        self.all.remove(&number)?.state.displaced.notify_one();
        Some(())
    }
}

/// What a connection is doing.
#[derive(Debug, Default)]
pub(super) struct State {
    doing: AtomicU8,
    displaced: Notify,
}

/// It waits for its caller.
const QUIET: u8 = 0;
/// A request is worked on.
const WORKING: u8 = 1;
/// An answer is being taken.
const ANSWERING: u8 = 2;

impl State {
    pub(super) fn working(&self) {
        self.doing.store(WORKING, Ordering::Relaxed);
    }

    pub(super) fn answering(&self) {
        self.doing.store(ANSWERING, Ordering::Relaxed);
    }

    /// Everything that was written has left: an answer that was being taken is taken.
    pub(super) fn flushed(&self) {
        let _ = self.doing.compare_exchange(ANSWERING, QUIET, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn is_quiet(&self) -> bool {
        self.doing.load(Ordering::Relaxed) == QUIET
    }
}

/// The connection on which a request came, for who reads its body.
#[derive(Debug, Clone)]
pub struct Seat(pub(super) Arc<State>);

impl Seat {
    /// Says that the caller is waited for: until then the place may go to another.
    pub fn wait(&self) {
        self.0.doing.store(QUIET, Ordering::Relaxed);
    }

    /// Says that the request is worked on again.
    pub fn work(&self) {
        self.0.working();
    }
}

/// A connection's place, given back with the value.
pub(super) struct Admitted {
    connections: Arc<Connections>,
    number: u64,
    state: Arc<State>,
}

impl Admitted {
    pub(super) const fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Resolves when the place goes to another.
    pub(super) async fn displaced(&self) {
        self.state.displaced.notified().await;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.connections.open.lock().unwrap_or_else(PoisonError::into_inner).all.remove(&self.number);
    }
}

/// An address as far as it tells callers apart: IPv6 by its /64.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(network(text.parse().unwrap()))
    }

    async fn is_displaced(place: &Admitted) -> bool {
        tokio::select! {
            biased;
            () = place.displaced() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_oldest_quiet_one_of_a_network_makes_room() {
        let connections = Connections::new(16);
        let mine: Vec<Admitted> = (0..4).map(|_| connections.admit(address("192.0.2.1")).unwrap()).collect();
        let other = connections.admit(address("192.0.2.2")).unwrap();
        mine[0].state().working();
        let fifth = connections.admit(address("192.0.2.1")).unwrap();
        assert!(is_displaced(&mine[1]).await);
        for place in [&mine[0], &mine[2], &mine[3], &fifth, &other] {
            assert!(!is_displaced(place).await);
        }
        assert_eq!(connections.count(), 5);
        drop(mine);
        assert_eq!(connections.count(), 2);
    }

    #[test]
    fn those_at_work_keep_their_place() {
        let connections = Connections::new(8);
        let mine: Vec<Admitted> = (0..2).map(|_| connections.admit(address("::1")).unwrap()).collect();
        mine.iter().for_each(|place| place.state().working());
        assert!(connections.admit(address("::1")).is_none());
        mine[0].state().answering();
        assert!(connections.admit(address("::1")).is_none());
        mine[0].state().flushed();
        assert!(connections.admit(address("::1")).is_some());
    }

    #[test]
    fn there_is_a_bound_in_all() {
        let connections = Connections::new(4);
        let place = |last: u8| {
            let place = connections.admit(Some(IpAddr::from([192, 0, 2, last])));
            if let Some(place) = &place {
                place.state().working();
            }
            place
        };
        let held: Vec<_> = (0..4).filter_map(place).collect();
        assert_eq!(held.len(), 4);
        assert!(place(9).is_none());
    }

    #[test]
    fn a_trusted_proxy_has_the_bound_of_all_alone() {
        let connections = Connections::new(8);
        let place = |network| {
            let place = connections.admit(network);
            place.inspect(|place| place.state().working())
        };
        let proxied: Vec<Admitted> = (0..6).filter_map(|_| place(None)).collect();
        assert_eq!(proxied.len(), 6);
        let others: Vec<Admitted> = (0..3).filter_map(|_| place(address("192.0.2.1"))).collect();
        assert_eq!(others.len(), 2);
        assert!(place(None).is_none());
    }

    #[test]
    fn a_network_is_an_address_or_its_64() {
        assert_eq!(address("2001:db8:1:2:3::4"), address("2001:db8:1:2:ffff::"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
    }
}

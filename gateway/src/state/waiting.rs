//! Clients of OAuth that wait for the owner's yes, and the codes that were handed out for one: in memory alone, bounded, for minutes.
//!
//! What a stranger's request leaves here is all that it leaves. A restart forgets it, and every code with it.

use crate::api::oauth::{ConsentCode, WaitingId, WaitingInfo};
use crate::oauth::client::ShownName;
use crate::oauth::{ApprovalKey, Asked, ClientId, OAuthError, Secret};
use crate::system::address::site;
use oap_identity::{Hash, Random, Timestamp};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests that wait for the owner at once, of all networks together.
pub const MAX_WAITING: usize = 512;
/// Requests that wait for the owner at once, of one IPv4 address or IPv6 /64. One more takes the place of one that was
/// refused, or of the oldest that has no answer.
pub const MAX_WAITING_PER_NETWORK: usize = 8;
/// The same, of one IPv6 /48.
pub const MAX_WAITING_PER_SITE: usize = 32;
/// How long a request waits for the owner, and a yes for the browser to fetch it.
pub const WAITS: Duration = Duration::from_secs(600);
/// How long a code may be used.
pub const CODE_LIFE: Duration = Duration::from_secs(60);
/// How long a used code is remembered, so that who uses it again ends what it gave.
const REMEMBERED: Duration = Duration::from_secs(900);

/// What waits.
#[derive(Default)]
pub struct Waiting(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// By the hash of the address of its page.
    requests: HashMap<Hash, Request>,
    /// How many ever were.
    begun: u64,
    /// By the hash of the code.
    codes: HashMap<Hash, Handed>,
}

struct Request {
    /// The hash of the cookie of the browser that opened it. No other one is shown its page.
    browser: Hash,
    asked: Asked,
    name: ShownName,
    code: ConsentCode,
    id: WaitingId,
    network: IpAddr,
    at: Timestamp,
    /// Which one it is: of one time there may be many.
    number: u64,
    said: Option<Said>,
}

impl Request {
    const fn has_yes(&self) -> bool {
        matches!(self.said, Some(Said::Yes(_)))
    }

    /// What the owner is told of it.
    fn info(&self) -> WaitingInfo {
        WaitingInfo {
            waiting: self.id,
            client_id: self.asked.client.to_string(),
            client_name: self.name.to_string(),
            redirect_host: self.asked.redirect.host(),
            loopback: self.asked.redirect.is_loopback(),
            permission: self.asked.permission,
            network: self.network.to_string(),
            asked_at: self.at,
        }
    }
}

/// What the owner said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Yes(ApprovalKey),
    No,
}

/// A code that was handed out.
#[derive(Clone)]
pub(crate) struct Handed {
    pub(crate) approval: ApprovalKey,
    pub(crate) asked: Asked,
    at: Timestamp,
    used: bool,
}

/// A request that waits, as its browser knows it.
pub struct Begun {
    /// The last part of the address of its page.
    pub page: Secret,
    /// The cookie, without which the page shows nothing.
    pub browser: Secret,
}

/// What the page of a request shows.
pub enum Page {
    /// It waits still.
    #[allow(missing_docs, reason = "the names say it")]
    Waits { asked: Asked, name: ShownName, code: ConsentCode },
    /// The owner said yes: the browser goes back to the client with the code, which is told this once.
    #[allow(missing_docs, reason = "the names say it")]
    Yes { asked: Asked, code: Secret },
    /// The owner said no.
    No(Asked),
    /// There is none, or none any more, or it is another browser's.
    Over,
}

/// What a code is worth.
pub(crate) enum Taken {
    /// It was handed out and is used now.
    Fresh(Box<Handed>),
    /// It was used before: whoever has it now is another one, or has it from another one.
    Again(ApprovalKey),
    Unknown,
}

impl Known {
    fn forget(&mut self, now: Timestamp) {
        self.requests.retain(|_, request| request.at.plus(WAITS) > now);
        self.codes.retain(|_, handed| handed.at.plus(REMEMBERED) > now);
    }

    /// Makes room for one more where there are so many of those that are `own`: one that was refused gives way, or the oldest that has no
    /// answer, but none that has a yes.
    fn make_room(&mut self, most: usize, own: impl Fn(&Request) -> bool) -> Result<(), OAuthError> {
        if self.requests.values().filter(|request| own(request)).count() < most {
            return Ok(());
        }
        let without = self.requests.iter().filter(|(_, request)| own(request) && !request.has_yes());
        let oldest = without.min_by_key(|(_, request)| (request.said.is_none(), request.number));
        let oldest = oldest.map(|(page, _)| *page);
        oldest.and_then(|page| self.requests.remove(&page)).map(|_| ()).ok_or(OAuthError::Full)
    }
}

impl Waiting {
    /// What waits at a time.
    fn known(&self, now: Timestamp) -> MutexGuard<'_, Known> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.forget(now);
        known
    }

    /// Lets a client wait whose address was checked.
    ///
    /// # Errors
    /// [`OAuthError::Full`].
    pub(crate) fn begin(
        &self,
        asked: Asked,
        name: ShownName,
        network: IpAddr,
        now: Timestamp,
        random: &dyn Random,
    ) -> Result<Begun, OAuthError> {
        let mut known = self.known(now);
        // Who asks too often takes places from nobody but those who share the network, which may be a proxy's.
        known.make_room(MAX_WAITING_PER_NETWORK, |request| request.network == network)?;
        known.make_room(MAX_WAITING_PER_SITE, |request| site(request.network) == site(network))?;
        // Of all networks together, only what was refused gives way: nobody else is pushed out by a flood.
        if known.requests.len() >= MAX_WAITING {
            known.make_room(1, |request| request.said == Some(Said::No))?;
        }
        if known.requests.len() >= MAX_WAITING {
            return Err(OAuthError::Full);
        }
        known.begun += 1;
        let number = known.begun;
        let mut code = ConsentCode::new(random);
        while known.requests.values().any(|request| request.code == code) {
            code = ConsentCode::new(random);
        }
        let mut id = WaitingId::new(random);
        while known.requests.values().any(|request| request.id == id) {
            id = WaitingId::new(random);
        }
        let (page, browser) = (Secret::plain(random), Secret::plain(random));
        let request =
            Request { browser: browser.hash, asked, name, code, id, network, at: now, number, said: None };
        known.requests.insert(page.hash, request);
        Ok(Begun { page, browser })
    }

    /// What the owner is told of: those that were not answered yet, the oldest first.
    pub(crate) fn list(&self, now: Timestamp) -> Vec<WaitingInfo> {
        let known = self.known(now);
        let unanswered = known.requests.values().filter(|request| request.said.is_none());
        let mut list: Vec<WaitingInfo> = unanswered.map(Request::info).collect();
        list.sort_by_key(|info| (info.asked_at, info.waiting));
        list
    }

    /// The request whose page shows a code, where nobody answered it yet.
    pub(crate) fn find(&self, code: ConsentCode, now: Timestamp) -> Option<(Asked, ShownName)> {
        let known = self.known(now);
        let found = known.requests.values().find(|request| request.code == code && request.said.is_none())?;
        Some((found.asked.clone(), found.name.clone()))
    }

    /// What the owner is shown of it before the yes.
    pub(crate) fn shown(&self, code: ConsentCode, now: Timestamp) -> Option<WaitingInfo> {
        let known = self.known(now);
        let found = known.requests.values().find(|request| request.code == code && request.said.is_none());
        found.map(Request::info)
    }

    /// Refuses one by its id, once; whether it was there to be refused.
    pub(crate) fn refuse(&self, id: WaitingId, now: Timestamp) -> bool {
        let mut known = self.known(now);
        let found = known.requests.values_mut().find(|request| request.id == id && request.said.is_none());
        found.map(|request| request.said = Some(Said::No)).is_some()
    }

    /// Answers it, once; whether it was there to be answered.
    pub(crate) fn answer(&self, code: ConsentCode, said: Said, now: Timestamp) -> bool {
        let mut known = self.known(now);
        let found =
            known.requests.values_mut().find(|request| request.code == code && request.said.is_none());
        found.map(|request| request.said = Some(said)).is_some()
    }

    /// Forgets the requests of a client that was removed.
    pub(crate) fn drop_client(&self, client: &ClientId) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.requests.retain(|_, request| request.asked.client != *client);
    }

    /// What the page of a request shows to the browser that opened it, which has one of these cookies. What the owner said is shown once,
    /// and to no other browser: whoever is led to the page, or has its address, gets nothing and uses nothing up.
    pub(crate) fn look(&self, page: &str, cookies: &[&str], now: Timestamp, random: &dyn Random) -> Page {
        let hash = Hash::of(page.as_bytes());
        let mut known = self.known(now);
        let Some(request) = known.requests.get(&hash) else { return Page::Over };
        if !cookies.iter().any(|cookie| Hash::of(cookie.as_bytes()) == request.browser) {
            return Page::Over;
        }
        let Some(said) = request.said else {
            let Request { asked, name, code, .. } = request;
            return Page::Waits { asked: asked.clone(), name: name.clone(), code: *code };
        };
        let Some(Request { asked, .. }) = known.requests.remove(&hash) else { return Page::Over };
        match said {
            Said::No => Page::No(asked),
            Said::Yes(approval) => {
                let code = Secret::plain(random);
                let handed = Handed { approval, asked: asked.clone(), at: now, used: false };
                known.codes.insert(code.hash, handed);
                Page::Yes { asked, code }
            }
        }
    }

    /// Uses a code. Whatever comes of it, it is used.
    pub(crate) fn take(&self, code: Hash, now: Timestamp) -> Taken {
        let mut known = self.known(now);
        let Some(handed) = known.codes.get_mut(&code) else { return Taken::Unknown };
        if handed.used || handed.at.plus(CODE_LIFE) <= now {
            return Taken::Again(handed.approval);
        }
        handed.used = true;
        Taken::Fresh(Box::new(handed.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_client::Permission;
    use oap_identity::random::Seeded;

    impl Waiting {
        fn numbers(&self) -> Vec<u64> {
            let known = self.0.lock().unwrap();
            let mut numbers: Vec<u64> = known.requests.values().map(|request| request.number).collect();
            numbers.sort_unstable();
            numbers
        }
    }

    fn asked() -> Asked {
        Asked {
            client: "desk".parse().unwrap(),
            redirect: "http://localhost/cb".parse().unwrap(),
            permission: Permission::Read,
            state: None,
            challenge: crate::oauth::Challenge::read(&"A".repeat(43)).unwrap(),
            jkt: None,
        }
    }

    #[test]
    fn a_flood_ends_at_its_network() {
        let (waiting, random) = (Waiting::default(), Seeded::new(1));
        let now = Timestamp::from_seconds(1_777_636_800);
        let name = || ShownName::from("x".to_owned());
        let from =
            |network: [u8; 4], at| waiting.begin(asked(), name(), network.into(), at, &random).map(|_| ());
        for _ in 0..MAX_WAITING_PER_NETWORK {
            assert_eq!(from([192, 0, 2, 1], now), Ok(()));
        }
        // One more takes the place of the oldest, and of nobody else's.
        let oldest = waiting.numbers()[0];
        assert_eq!(from([192, 0, 2, 1], now), Ok(()));
        assert!(waiting.list(now).len() == MAX_WAITING_PER_NETWORK && !waiting.numbers().contains(&oldest));
        assert_eq!(from([192, 0, 2, 2], now), Ok(()));
        // What the owner refused gives way first, and what has a yes keeps its place.
        let id = waiting.list(now).iter().map(|info| info.waiting).max().unwrap();
        assert!(waiting.refuse(id, now) && !waiting.refuse(id, now));
        for request in waiting.0.lock().unwrap().requests.values_mut() {
            request.said = Some(Said::Yes(ApprovalKey::new(&random)));
        }
        assert_eq!(from([192, 0, 2, 1], now), Err(OAuthError::Full));
        assert_eq!(from([192, 0, 2, 2], now), Ok(()));
        let now = now.plus(WAITS);
        // Of an IPv6 site there are very many networks.
        for network in 0..512 {
            let network = std::net::Ipv6Addr::new(0x2001, 0xdb8, 1, network, 0, 0, 0, 0);
            let begun = waiting.begin(asked(), name(), network.into(), now, &random);
            assert!(begun.is_ok(), "{network}");
        }
        assert_eq!(waiting.list(now).len(), MAX_WAITING_PER_SITE);
        let now = now.plus(WAITS);
        for network in 0..=u8::MAX {
            for _ in 0..MAX_WAITING_PER_NETWORK {
                let _ = from([198, 51, 100, network], now);
            }
        }
        assert_eq!(waiting.list(now).len(), MAX_WAITING);
        assert_eq!(from([203, 0, 113, 1], now), Err(OAuthError::Full));
        let refused = waiting.list(now)[0].waiting;
        assert!(waiting.refuse(refused, now));
        assert_eq!(from([203, 0, 113, 1], now), Ok(()));
        assert_eq!(from([203, 0, 113, 2], now), Err(OAuthError::Full));
        assert_eq!(from([203, 0, 113, 1], now.plus(WAITS)), Ok(()));
    }

    #[test]
    fn an_answer_and_a_code_are_used_once() {
        let (waiting, random) = (Waiting::default(), Seeded::new(1));
        let now = Timestamp::from_seconds(1_777_636_800);
        let begin =
            || waiting.begin(asked(), ShownName::from("x".to_owned()), [192, 0, 2, 1].into(), now, &random);
        let Begun { page, browser } = begin().unwrap();
        let look = |cookies: &[&str]| waiting.look(&page.text, cookies, now, &random);
        let Page::Waits { code, .. } = look(&[&browser.text]) else { panic!("it waits") };
        assert!(matches!(look(&[]), Page::Over) && matches!(look(&["", &page.text]), Page::Over));
        let key = ApprovalKey::new(&random);
        assert!(waiting.find(code, now).is_some());
        assert!(waiting.answer(code, Said::Yes(key), now) && !waiting.answer(code, Said::No, now));
        assert!(waiting.find(code, now).is_none() && waiting.list(now).is_empty());
        // Another browser neither sees the yes nor uses it up.
        assert!(matches!(look(&[]), Page::Over) && matches!(look(&["x"]), Page::Over));
        let Page::Yes { code, .. } = look(&["x", &browser.text]) else { panic!("yes") };
        assert!(matches!(look(&[&browser.text]), Page::Over));
        assert!(matches!(waiting.take(code.hash, now), Taken::Fresh(_)));
        assert!(matches!(waiting.take(code.hash, now), Taken::Again(again) if again == key));
        assert!(matches!(waiting.take(page.hash, now), Taken::Unknown));

        let Begun { page, browser } = begin().unwrap();
        let look = || waiting.look(&page.text, &[&browser.text], now, &random);
        let Page::Waits { code, .. } = look() else { panic!("it waits") };
        assert!(waiting.answer(code, Said::Yes(key), now));
        let Page::Yes { code, .. } = look() else { panic!("yes") };
        assert!(!matches!(waiting.take(code.hash, now.plus(CODE_LIFE)), Taken::Fresh(_)));
    }
}

//! Where a stranger may lead us: https to public addresses. Every address of a name is checked, and the connection goes to one that was.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use url::{Host, Url};

/// Where a client may go whose addresses strangers choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebPolicy {
    /// https to public addresses. The rule.
    #[default]
    Public,
    /// Also private and loopback addresses, and plain http on loopback: `--allow-local-dids`, for development.
    AllowLocal,
}

impl WebPolicy {
    /// Whether a request may go to this address, as far as can be told before its name is looked up.
    #[must_use]
    pub fn allows(self, url: &Url) -> bool {
        self == Self::AllowLocal
            || url.scheme() == "https"
                && match url.host() {
                    Some(Host::Domain(name)) => !is_loopback_name(name),
                    Some(Host::Ipv4(v4)) => is_public(v4.into()),
                    Some(Host::Ipv6(v6)) => is_public(v6.into()),
                    None => false,
                }
    }
}

pub(crate) fn is_loopback_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// The addresses of a name, on their way.
type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Name resolution, with every address checked before it can be connected to. A name is looked up once for a connection, which goes to what
/// was checked: whoever answers something else the next time is checked the next time.
pub(super) struct CheckedNames {
    policy: WebPolicy,
    look_up: Arc<dyn Fn(Name) -> Found + Send + Sync>,
}

impl CheckedNames {
    /// As the system resolves names.
    pub(super) fn of_system(policy: WebPolicy) -> Self {
        let look_up = |name: Name| -> Found {
            Box::pin(async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) })
        };
        Self { policy, look_up: Arc::new(look_up) }
    }
}

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, found) = (self.policy, (self.look_up)(name));
        Box::pin(async move {
            let found = found.await?.into_iter();
            let allowed: Vec<SocketAddr> =
                found.filter(|a| policy == WebPolicy::AllowLocal || is_public(a.ip())).collect();
            if allowed.is_empty() {
                return Err("no public address".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is one that anybody's server may have: none of the special-purpose ranges of RFC 6890.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_unspecified()
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let s = address.segments();
    // An IPv4 address in another dress: mapped, translated (64:ff9b::/96), 6to4.
    let embedded = match s {
        [0, 0, 0, 0, 0, 0xffff, h, l] | [0x64, 0xff9b, 0, 0, 0, 0, h, l] | [0x2002, h, l, ..] => Some((h, l)),
        _ => None,
    };
    if let Some((h, l)) = embedded {
        return is_public_v4(Ipv4Addr::from(u32::from(h) << 16 | u32::from(l)));
    }
    // Global unicast is 2000::/3; of it 2001::/23 (protocol assignments) and 2001:db8::/32, 3fff::/20
    // (documentation) are not.
    s[0] & 0xe000 == 0x2000
        && !(s[0] == 0x2001 && s[1] < 0x0200)
        && !(s[0] == 0x2001 && s[1] == 0x0db8)
        && !(s[0] == 0x3fff && s[1] < 0x1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::{Allowance, HttpClient, Request};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn what_a_stranger_may_name() {
        let allowed = |policy: WebPolicy, url: &str| policy.allows(&Url::parse(url).unwrap());
        for url in ["https://user.example", "https://user.example:8443", "https://1.1.1.1"] {
            assert!(allowed(WebPolicy::Public, url), "{url}");
        }
        for url in [
            "http://user.example",
            "https://localhost",
            "https://a.localhost.",
            "https://127.0.0.1",
            "https://2130706433",
            "https://10.0.0.1:8443",
            "https://169.254.169.254",
            "https://[::1]",
            "https://[::ffff:10.0.0.1]",
        ] {
            assert!(!allowed(WebPolicy::Public, url) && allowed(WebPolicy::AllowLocal, url), "{url}");
        }
    }

    #[test]
    fn only_public_addresses_are_public() {
        for text in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::1.1.1.1", "::ffff:8.8.8.8"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "2001::1",
            "::127.0.0.1",
            "100::1",
            "5f00::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    /// What a name leads to is looked at, whatever the name: `localhost` stands for any name of a private address.
    #[tokio::test]
    async fn a_name_of_a_private_address_is_not_resolved() {
        let resolve =
            async |policy| CheckedNames::of_system(policy).resolve("localhost".parse().unwrap()).await;
        assert!(resolve(WebPolicy::Public).await.is_err());
        assert!(resolve(WebPolicy::AllowLocal).await.unwrap().all(|found| found.ip().is_loopback()));
    }

    /// A resolver that gives one of these answers after the other, and how often it was asked.
    fn playing(answers: &'static [&'static [&'static str]]) -> (CheckedNames, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let look_up = move |_: Name| -> Found {
            let turn = count.fetch_add(1, Ordering::SeqCst);
            let found = answers[turn.min(answers.len() - 1)].iter();
            let found = found.map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect();
            Box::pin(std::future::ready(Ok(found)))
        };
        (CheckedNames { policy: WebPolicy::Public, look_up: Arc::new(look_up) }, asked)
    }

    /// The attack: a name whose address is public when it is looked at, and the house's own when it is connected to.
    #[tokio::test]
    async fn a_name_that_is_rebound_is_checked_each_time() {
        let (names, asked) = playing(&[&["93.184.216.34"], &["127.0.0.1"], &["10.0.0.1", "1.1.1.1", "::1"]]);
        let mut said = Vec::new();
        for turn in 1..=3 {
            let found = names.resolve("evil.example".parse().unwrap()).await;
            said.push(found.map(|found| found.map(|at| at.ip().to_string()).collect::<Vec<_>>()).ok());
            // Nothing is looked up between the check and the connection.
            assert_eq!(asked.load(Ordering::SeqCst), turn);
        }
        let one = |address: &str| Some(vec![address.to_owned()]);
        assert_eq!(said, [one("93.184.216.34"), None, one("1.1.1.1")]);
    }

    /// The client has no other way from a name to an address: it never comes to the one that listens here.
    #[tokio::test]
    async fn a_client_connects_to_what_was_checked_alone() {
        // Cheap to call again.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (names, asked) = playing(&[&["127.0.0.1"]]);
        let client = super::super::bare().dns_resolver(names).build().unwrap();
        let client = HttpClient { client, policy: Some(WebPolicy::Public) };
        let url = format!("https://evil.example:{}/", listener.local_addr().unwrap().port());
        let allowed = Allowance { bytes: 1, time: Duration::from_secs(20) };
        for turn in 1..=2 {
            assert!(client.send(Request::get(&url), allowed).await.unwrap_err().is_connect());
            assert_eq!(asked.load(Ordering::SeqCst), turn);
        }
        assert_eq!(listener.accept().map(drop).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}

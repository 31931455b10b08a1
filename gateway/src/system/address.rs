//! Addresses as the configuration names them: where the gateway is reached, and whose word about callers counts.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

pub use oap_identity::origin::{Origin, is_loopback};

/// Why an address of a proxy was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Neither an address nor a network.
    #[error("must be an IP address or a network such as 10.0.0.0/8")]
    Network,
    /// Every address there is.
    #[error("a network of length 0 would trust everybody")]
    Everybody,
}

/// An address as far as it tells sites apart: IPv6 by its /48, of which whoever has it has 65536 networks of /64.
#[must_use]
pub fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

/// An `Origin` as callers send it: a scheme and an authority, at most 256 bytes, compared as it is written. Never `null`, which anybody can
/// send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallerOrigin(String);

/// Not an `Origin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an Origin as it is sent, such as https://app.example or vscode-file://vscode-app")]
pub struct NotCallerOrigin;

impl CallerOrigin {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CallerOrigin {
    type Error = NotCallerOrigin;
    fn try_from(text: String) -> Result<Self, NotCallerOrigin> {
        let fits = text.len() <= 256
            && text.bytes().all(|c| c.is_ascii_graphic() && c != b'*')
            && text.split_once("://").is_some_and(|(scheme, host)| !scheme.is_empty() && !host.contains('/'));
        if fits { Ok(Self(text)) } else { Err(NotCallerOrigin) }
    }
}

impl From<CallerOrigin> for String {
    fn from(origin: CallerOrigin) -> Self {
        origin.0
    }
}

/// Addresses of proxies: one, or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(IpNet);

impl Network {
    /// Whether an address is in it. An IPv4 address in IPv6 dress counts as the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let one = || text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
        let network = text.parse::<IpNet>().or_else(|_| one()).map_err(|_| AddressError::Network)?;
        if network.prefix_len() == 0 { Err(AddressError::Everybody) } else { Ok(Self(network)) }
    }
}

impl TryFrom<String> for Network {
    type Error = AddressError;
    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_single_addresses() {
        let holds = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(holds("10.0.0.0/8", "10.1.2.3") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("127.0.0.1", "127.0.0.1") && !holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("127.0.0.1", "::ffff:127.0.0.1") && holds("fd00::/8", "fd12::1"));
        assert_eq!("0.0.0.0/0".parse::<Network>(), Err(AddressError::Everybody));
        assert_eq!("::/0".parse::<Network>(), Err(AddressError::Everybody));
        for bad in ["", "proxy.example", "10.0.0.0/33", "10.0.0.1:80"] {
            assert_eq!(bad.parse::<Network>(), Err(AddressError::Network), "{bad}");
        }
    }
}

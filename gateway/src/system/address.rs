//! Addresses as the configuration names them: where the gateway is reached, and whose word about callers counts.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use url::{Host, Url};

/// Why an address of the configuration was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an origin.
    #[error("must be https://HOST or https://HOST:PORT, without path, query or user")]
    Origin,
    /// http where others can listen.
    #[error("must be https:// (http:// is for loopback only)")]
    PlainHttp,
    /// Neither an address nor a network.
    #[error("must be an IP address or a network such as 10.0.0.0/8")]
    Network,
    /// Every address there is.
    #[error("a network of length 0 would trust everybody")]
    Everybody,
}

/// Where a gateway is reached from outside: scheme, host and port, without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origin(String);

impl Origin {
    /// The text, such as `https://memory.example.org`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Origin {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let url = Url::parse(text).map_err(|_| AddressError::Origin)?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !bare || !url.username().is_empty() || url.password().is_some() || url.host().is_none() {
            return Err(AddressError::Origin);
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&url) => {}
            "http" => return Err(AddressError::PlainHttp),
            _ => return Err(AddressError::Origin),
        }
        Ok(Self(url.origin().ascii_serialization()))
    }
}

/// Whether an address is one of this machine alone.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(v4)) => v4.is_loopback(),
        Some(Host::Ipv6(v6)) => v6.is_loopback(),
        None => false,
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

macro_rules! text_form {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = AddressError;
            fn try_from(text: String) -> Result<Self, AddressError> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(it: $name) -> Self {
                it.to_string()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

text_form!(Origin);
text_form!(Network);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_bare_and_https() {
        let origin = |text: &str| text.parse::<Origin>().map(|origin| origin.to_string());
        assert_eq!(origin("https://memory.example.org/"), Ok("https://memory.example.org".into()));
        assert_eq!(origin("https://memory.example.org:443"), Ok("https://memory.example.org".into()));
        assert_eq!(origin("https://Memory.Example.org:8443"), Ok("https://memory.example.org:8443".into()));
        assert_eq!(origin("http://127.0.0.1:8080"), Ok("http://127.0.0.1:8080".into()));
        assert_eq!(origin("http://memory.example.org"), Err(AddressError::PlainHttp));
        for bad in [
            "memory.example.org",
            "ftp://a.example",
            "https://a.example/x",
            "https://a.example?x",
            "https://u@a.example",
        ] {
            assert_eq!(origin(bad), Err(AddressError::Origin), "{bad}");
        }
    }

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

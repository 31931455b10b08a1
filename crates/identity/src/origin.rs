//! Origins: where a gateway is reached from outside.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use url::{Host, Url};

/// Why a text is no origin of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// Not an origin.
    #[error("must be https://HOST or https://HOST:PORT, without path, query or user")]
    Form,
    /// http where others can listen.
    #[error("must be https:// (http:// is for loopback only)")]
    PlainHttp,
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
    type Err = OriginError;
    fn from_str(text: &str) -> Result<Self, OriginError> {
        let url = Url::parse(text).map_err(|_| OriginError::Form)?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !bare || !url.username().is_empty() || url.password().is_some() || url.host().is_none() {
            return Err(OriginError::Form);
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&url) => {}
            "http" => return Err(OriginError::PlainHttp),
            _ => return Err(OriginError::Form),
        }
        Ok(Self(url.origin().ascii_serialization()))
    }
}

impl TryFrom<String> for Origin {
    type Error = OriginError;
    fn try_from(text: String) -> Result<Self, OriginError> {
        text.parse()
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
        assert_eq!(origin("http://memory.example.org"), Err(OriginError::PlainHttp));
        for bad in [
            "memory.example.org",
            "ftp://a.example",
            "https://a.example/x",
            "https://a.example?x",
            "https://u@a.example",
        ] {
            assert_eq!(origin(bad), Err(OriginError::Form), "{bad}");
        }
    }
}

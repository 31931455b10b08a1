//! Decentralized identifiers, and the two things a fragment can mean: a scope or a key (protocol section 2).

use crate::webvh::log::is_hash;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use url::Url;

/// Longest DID that is read, in bytes.
pub const MAX_DID: usize = 512;

/// Why a text is not the DID, key id or scope that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DidError {
    /// Not `did:<method>:<identifier>`, or longer than 512 bytes.
    #[error("a DID is did:<method>:<identifier>, at most 512 characters")]
    Syntax,
    /// A did:webvh without the hash of its first entry, or without a domain behind it.
    #[error(
        "a did:webvh is did:webvh:<SCID>:<domain>, with a SCID of 46 characters, optionally with %3A<port> and a path"
    )]
    Webvh,
    /// A did:web whose host is not a domain name with an optional `%3A<port>`.
    #[error("a did:web names a domain, optionally with %3A<port> and a path; no IP address, no query")]
    Web,
    /// A key id is `<did>#<fragment>`.
    #[error("a key id is <did>#<fragment>")]
    KeyId,
    /// A scope is 1 to 64 of `A-Z a-z 0-9 . _ ~ -`, and never starts like a key id.
    #[error("a scope is 1 to 64 characters of A-Z a-z 0-9 . _ ~ - and does not start with \"key-\"")]
    Scope,
}

/// A DID, without path, query or fragment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Did(String);

impl Did {
    /// The method, such as `web` or `key`.
    #[must_use]
    pub fn method(&self) -> &str {
        self.0[4..].split(':').next().unwrap_or_default()
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The did:web of a host and port, such as `localhost:8443`.
    ///
    /// # Errors
    /// [`DidError::Web`] when the host is not a domain name.
    pub fn web(host_and_port: &str) -> Result<Self, DidError> {
        format!("did:web:{}", host_and_port.replace(':', "%3A")).parse()
    }

    /// Where a did:web document is: `https://<domain>/.well-known/did.json`, or `…/<path>/did.json`.
    /// `None` for other methods.
    #[must_use]
    pub fn document_url(&self) -> Option<Url> {
        url_of(self.0.strip_prefix("did:web:")?, "did.json")
    }

    /// Where the log of a did:webvh is: beside where the document of a did:web would be. `None` for other methods.
    #[must_use]
    pub fn log_url(&self) -> Option<Url> {
        let (_, place) = self.0.strip_prefix("did:webvh:")?.split_once(':')?;
        url_of(place, "did.jsonl")
    }

    /// The hash of the first entry of a did:webvh. `None` for other methods.
    #[must_use]
    pub fn scid(&self) -> Option<&str> {
        Some(self.0.strip_prefix("did:webvh:")?.split_once(':')?.0)
    }

    /// The origin that a did:web controls, such as `https://user.example`. `None` for other methods.
    #[must_use]
    pub fn origin(&self) -> Option<String> {
        Some(self.document_url()?.origin().ascii_serialization())
    }

    /// The key id of this DID with that fragment.
    ///
    /// # Errors
    /// [`DidError::KeyId`] when the fragment has other than letters, digits and `. _ ~ -`.
    pub fn key(&self, fragment: &str) -> Result<Kid, DidError> {
        format!("{self}#{fragment}").parse()
    }
}

impl FromStr for Did {
    type Err = DidError;
    fn from_str(text: &str) -> Result<Self, DidError> {
        let (method, id) =
            text.strip_prefix("did:").and_then(|rest| rest.split_once(':')).ok_or(DidError::Syntax)?;
        let method_ok =
            !method.is_empty() && method.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !method_ok || text.len() > MAX_DID || id.ends_with(':') || !idstring(id) {
            return Err(DidError::Syntax);
        }
        match method {
            "web" => check_web(id)?,
            "webvh" => check_webvh(id)?,
            _ => {}
        }
        Ok(Self(text.to_owned()))
    }
}

/// `method-specific-id` of DID Core 3.1: `idchar`s, colons, and percent-encoded bytes.
fn idstring(id: &str) -> bool {
    let mut bytes = id.bytes();
    while let Some(c) = bytes.next() {
        let ok = match c {
            b'%' => {
                bytes.next().is_some_and(|h| h.is_ascii_hexdigit())
                    && bytes.next().is_some_and(|h| h.is_ascii_hexdigit())
            }
            _ => c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b':'),
        };
        if !ok {
            return false;
        }
    }
    !id.is_empty()
}

/// Where a file of a DID is: on its domain, in its path or else among what is well known.
fn url_of(place: &str, file: &str) -> Option<Url> {
    let mut parts = place.split(':');
    let host = parts.next()?.replace("%3A", ":").replace("%3a", ":");
    let path: Vec<&str> = parts.collect();
    let path = if path.is_empty() { ".well-known".to_owned() } else { path.join("/") };
    Url::parse(&format!("https://{host}/{path}/{file}")).ok()
}

fn check_webvh(id: &str) -> Result<(), DidError> {
    let (scid, place) = id.split_once(':').ok_or(DidError::Webvh)?;
    if !is_hash(scid) {
        return Err(DidError::Webvh);
    }
    check_web(place).map_err(|_| DidError::Webvh)
}

fn check_web(id: &str) -> Result<(), DidError> {
    let mut parts = id.split(':');
    let authority = parts.next().unwrap_or_default().to_ascii_uppercase();
    let (host, port) = match authority.split_once("%3A") {
        Some((host, port)) => (host, Some(port)),
        None => (authority.as_str(), None),
    };
    let label = |l: &str| {
        (1..=63).contains(&l.len())
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
    };
    // A last label of digits is how a URL spells an IP address, in whatever base.
    let numeric =
        host.rsplit('.').next().is_some_and(|l| l.bytes().all(|c| c.is_ascii_digit()) || l.starts_with("0X"));
    let port_ok = port.is_none_or(|p| p.parse::<u16>().is_ok_and(|n| n > 0 && n.to_string() == p));
    let path_ok = parts.all(|p| !p.is_empty() && p != "." && p != ".." && !p.contains('%'));
    if host.len() <= 253
        && host.split('.').all(label)
        && !numeric
        && host.parse::<IpAddr>().is_err()
        && port_ok
        && path_ok
    {
        Ok(())
    } else {
        Err(DidError::Web)
    }
}

/// A key id: a DID and the fragment of one of its verification methods.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kid {
    did: Did,
    fragment: String,
}

impl Kid {
    /// The DID whose document holds the key.
    #[must_use]
    pub const fn did(&self) -> &Did {
        &self.did
    }

    /// The fragment, without `#`.
    #[must_use]
    pub fn fragment(&self) -> &str {
        &self.fragment
    }
}

impl FromStr for Kid {
    type Err = DidError;
    fn from_str(text: &str) -> Result<Self, DidError> {
        let (did, fragment) = text.split_once('#').ok_or(DidError::KeyId)?;
        if !(1..=128).contains(&fragment.len()) || !fragment.bytes().all(plain) {
            return Err(DidError::KeyId);
        }
        Ok(Self { did: did.parse()?, fragment: fragment.to_owned() })
    }
}

/// A scope: a bounded context of a principal, opaque to others (RFC 0006 section 3.2).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(String);

impl ScopeId {
    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ScopeId {
    type Err = DidError;
    fn from_str(text: &str) -> Result<Self, DidError> {
        // A key id has the same syntax; the two never mix (protocol section 2).
        let reserved = text.starts_with("key-") || text.starts_with("agree-");
        if (1..=64).contains(&text.len()) && text.bytes().all(plain) && !reserved {
            Ok(Self(text.to_owned()))
        } else {
            Err(DidError::Scope)
        }
    }
}

/// A principal in one of its scopes, `did:web:user.example#personal`: the form of a grant's granter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ScopedDid {
    pub principal: Did,
    pub scope: ScopeId,
}

impl FromStr for ScopedDid {
    type Err = DidError;
    fn from_str(text: &str) -> Result<Self, DidError> {
        let (did, scope) = text.split_once('#').ok_or(DidError::Scope)?;
        Ok(Self { principal: did.parse()?, scope: scope.parse()? })
    }
}

fn plain(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'~' | b'-')
}

macro_rules! text_form {
    ($name:ident, |$it:ident, $f:ident| $write:expr) => {
        impl fmt::Display for $name {
            fn fmt(&self, $f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $it = self;
                $write
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(D::Error::custom)
            }
        }
    };
}

text_form!(Did, |it, f| f.write_str(&it.0));
text_form!(ScopeId, |it, f| f.write_str(&it.0));
text_form!(Kid, |it, f| write!(f, "{}#{}", it.did, it.fragment));
text_form!(ScopedDid, |it, f| write!(f, "{}#{}", it.principal, it.scope));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_did_has_a_longest_form() {
        let of = |bytes: usize| format!("did:plc:{}", "a".repeat(bytes - 8)).parse::<Did>();
        assert!(of(MAX_DID).is_ok());
        assert!(of(MAX_DID + 1).is_err());
    }

    #[test]
    fn did_web_takes_domains_only() {
        for text in [
            "did:web:user.example",
            "did:web:localhost%3A8443",
            "did:web:w3c-ccg.github.io:user:alice",
            "did:web:example.com%3A3000:user:alice",
        ] {
            assert!(text.parse::<Did>().is_ok(), "{text}");
        }
        for text in [
            "did:web:127.0.0.1",
            "did:web:127.0.0.1%3A80",
            "did:web:2130706433",
            "did:web:0x7f000001",
            "did:web:0x7f.1",
            "did:web:example.com%2Fpath",
            "did:web:example.com%3A0",
            "did:web:example.com%3A99999",
            "did:web:example.com%3A080",
            "did:web:user%40example.com",
            "did:web:example.com:..",
            "did:web:example.com:a%2e%2e",
            "did:web:example.com:",
            "did:web:-a.example",
            "did:web:[::1]",
            "did:web:",
            "did:web:a..b",
            "did:web:example.com#key-1",
            "did:web:example.com?x=1",
            "did:web:example.com/path",
        ] {
            assert!(text.parse::<Did>().is_err(), "{text}");
        }
    }

    #[test]
    fn did_web_document_urls() {
        let url = |t: &str| t.parse::<Did>().unwrap().document_url().unwrap().to_string();
        assert_eq!(url("did:web:user.example"), "https://user.example/.well-known/did.json");
        assert_eq!(url("did:web:example.com%3A3000:u:a"), "https://example.com:3000/u/a/did.json");
        assert_eq!("did:key:z6Mk".parse::<Did>().unwrap().document_url(), None);
    }

    #[test]
    fn did_webvh_takes_a_hash_and_a_domain() {
        let scid = "QmTYXE8TR3uLUWWrefCtFCLhdFWDBk7Eyq5DQRmiHFVAEL";
        let url = |t: &str| t.parse::<Did>().unwrap().log_url().unwrap().to_string();
        let did = format!("did:webvh:{scid}:example.com%3A3000:dids:issuer");
        assert_eq!(url(&did), "https://example.com:3000/dids/issuer/did.jsonl");
        assert_eq!(url(&format!("did:webvh:{scid}:a.example")), "https://a.example/.well-known/did.jsonl");
        assert_eq!(did.parse::<Did>().unwrap().scid(), Some(scid));
        // It is no did:web, wherever one asks.
        assert!(did.parse::<Did>().unwrap().document_url().is_none());
        assert!("did:web:user.example".parse::<Did>().unwrap().log_url().is_none());
        for text in [
            format!("did:webvh:{scid}"),
            format!("did:webvh:{scid}:"),
            "did:webvh:{SCID}:a.example".to_owned(),
            "did:webvh:a.example".to_owned(),
            format!("did:webvh:{}:a.example", &scid[1..]),
            format!("did:webvh:{}0:a.example", &scid[..45]),
            format!("did:webvh:{scid}:127.0.0.1"),
            format!("did:webvh:{scid}:127%2E0%2E0%2E1"),
            format!("did:webvh:{scid}:169.254.169.254%3a80"),
            format!("did:webvh:{scid}:example.com:..:..:etc"),
            format!("did:webvh:{scid}:example.com:%2E%2E:admin"),
            format!("did:webvh:{scid}:example.com#@evil.example"),
        ] {
            assert!(text.parse::<Did>().is_err(), "{text}");
        }
    }

    #[test]
    fn scopes_and_keys_never_mix() {
        assert!("did:web:user.example#personal".parse::<ScopedDid>().is_ok());
        assert!("did:web:user.example#key-1".parse::<ScopedDid>().is_err());
        assert!("did:web:user.example".parse::<ScopedDid>().is_err());
        assert!("did:web:user.example#".parse::<ScopedDid>().is_err());
        assert!("did:web:user.example#a b".parse::<ScopedDid>().is_err());
        assert_eq!("did:web:user.example#key-1".parse::<Kid>().unwrap().fragment(), "key-1");
    }
}

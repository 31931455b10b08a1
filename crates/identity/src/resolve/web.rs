//! did:web over a guarded client.
//!
//! The DID was chosen by a stranger, so the request is too. https only; no redirects; no proxy; 64 KiB; five
//! seconds in all; and only public addresses: the name is resolved once, every address is checked, and the
//! connection goes to one of the checked addresses. `ssi`'s own did:web does none of this.

use crate::did::Did;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Certificate, Client, ClientBuilder, redirect};
use ssi_dids_core::DIDMethod;
use ssi_dids_core::document::{Metadata as DocumentMetadata, representation::MediaType};
use ssi_dids_core::resolution::{DIDMethodResolver, Error, Metadata, Options, Output};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use url::{Host, Url};

/// Largest document that is read, in bytes.
pub const MAX_DOCUMENT: usize = 64 * 1024;
/// Time for name, connection and document together.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What the client may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebPolicy {
    /// https to public addresses. The rule.
    #[default]
    Public,
    /// Also private and loopback addresses, and plain http on loopback: `--allow-local-dids`, for development.
    AllowLocal,
}

impl WebPolicy {
    /// Holds a client to this policy, for requests to addresses that a stranger chose: the names that it looks up, and https.
    /// An address in figures is never looked up: ask [`WebPolicy::allows`] as well.
    pub fn guard(self, client: ClientBuilder) -> ClientBuilder {
        client.https_only(self == Self::Public).dns_resolver(CheckedNames { policy: self })
    }

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

fn is_loopback_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// Resolves did:web, and reads other documents of foreign gateways, within the limits of this module.
pub struct GuardedWeb {
    client: Client,
    policy: WebPolicy,
}

impl GuardedWeb {
    /// A client with that policy, trusting the system's authorities and these.
    ///
    /// # Errors
    /// When an authority is not a certificate in DER, or no TLS backend is installed.
    pub fn new(policy: WebPolicy, authorities: &[Vec<u8>]) -> Result<Self, reqwest::Error> {
        let authorities =
            authorities.iter().map(|der| Certificate::from_der(der)).collect::<Result<Vec<_>, _>>()?;
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .timeout(TIMEOUT)
            .connect_timeout(TIMEOUT)
            .tls_certs_merge(authorities);
        Ok(Self { client: policy.guard(client).build()?, policy })
    }

    async fn document(&self, did: &Did) -> Result<Vec<u8>, Error> {
        let url = did.document_url().ok_or_else(|| Error::InvalidMethodSpecificId(did.to_string()))?;
        let loopback = is_loopback_name(url.host_str().unwrap_or_default());
        if loopback && self.policy == WebPolicy::Public {
            return Err(Error::internal("loopback is not a public address"));
        }
        let mut response = self.client.get(url.clone()).send().await;
        if loopback && response.as_ref().is_err_and(reqwest::Error::is_connect) {
            // Development: a gateway that serves plain http on loopback.
            let mut plain = url;
            if plain.set_scheme("http").is_ok() {
                response = self.client.get(plain).send().await;
            }
        }
        let mut response = response.map_err(describe)?;
        if response.status() == reqwest::StatusCode::NOT_FOUND {
            return Err(Error::NotFound);
        }
        if response.status() != reqwest::StatusCode::OK {
            return Err(Error::internal(format!("the host answered {}", response.status())));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(describe)? {
            if body.len() + chunk.len() > MAX_DOCUMENT {
                return Err(Error::internal("the document is larger than 64 KiB"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// Why, without the address that was refused or reached: the caller may be a stranger who maps our network.
fn describe(error: reqwest::Error) -> Error {
    let sources = std::iter::successors(std::error::Error::source(&error), |inner| inner.source());
    let why = if error.is_timeout() {
        "no answer within five seconds"
    } else if sources.map(ToString::to_string).any(|why| why.contains("invalid peer certificate")) {
        // rustls says which; the text is the only thing that comes through the layers between.
        "the host's certificate is not trusted: it is expired, of another name, or of an unknown authority"
    } else if error.is_connect() {
        "the host is not reachable over https at a public address"
    } else {
        "the answer broke off"
    };
    Error::internal(why)
}

impl DIDMethod for GuardedWeb {
    const DID_METHOD_NAME: &'static str = "web";
}

impl DIDMethodResolver for GuardedWeb {
    async fn resolve_method_representation<'a>(
        &'a self,
        id: &'a str,
        _options: Options,
    ) -> Result<Output<Vec<u8>>, Error> {
        let did: Did =
            format!("did:web:{id}").parse().map_err(|_| Error::InvalidMethodSpecificId(id.to_owned()))?;
        let document = self.document(&did).await?;
        let metadata = Metadata::from_content_type(Some(MediaType::Json.to_string()));
        Ok(Output::new(document, DocumentMetadata::default(), metadata))
    }
}

/// The system's name resolution, with every address checked before it can be connected to.
struct CheckedNames {
    policy: WebPolicy,
}

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.policy;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
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
}

//! Peers: other principals' gateways whose keys and addresses are pinned.

use super::{Done, endpoints};
use oap_identity::{Did, Hash, Kid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

endpoints! {
    /// The peers.
    ListPeers: GET "/oap/owner/peers" needs Admin answers(PeerList);
    /// Reads what a gateway publishes, checks that it holds together, and pins it.
    AddPeer: POST "/oap/owner/peers" needs Admin body(NewPeer) answers(PeerInfo);
    /// Reads what the gateway of a host publishes, and keeps nothing.
    FindPeer: POST "/oap/owner/peers/find" needs Admin body(FoundAt) answers(FoundPeer);
    /// A peer, with what changed.
    ShowPeer: POST "/oap/owner/peers/show" needs Admin body(PeerName) answers(PeerInfo);
    /// Looks at a peer now.
    CheckPeer: POST "/oap/owner/peers/check" needs Admin body(PeerName) answers(PeerInfo);
    /// Says yes to what a peer shows now, and pins that.
    AcceptPeer: POST "/oap/owner/peers/accept" needs Admin body(AcceptedPeer) answers(PeerInfo);
    /// Forgets a peer.
    RemovePeer: POST "/oap/owner/peers/remove" needs Admin body(PeerName) answers(Done);
}

/// A host where a gateway may be: a domain name, with a port where it is not 443.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Host(String);

/// Not such a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a domain name, such as memory.example.org or memory.example.org:8443")]
pub struct NotHost;

impl Host {
    /// The address of a path there.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.0)
    }

    /// Whether an address is at this host.
    #[must_use]
    pub fn has(&self, url: &str) -> bool {
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
        rest.split('/').next().is_some_and(|authority| authority.eq_ignore_ascii_case(&self.0))
    }
}

impl FromStr for Host {
    type Err = NotHost;

    fn from_str(text: &str) -> Result<Self, NotHost> {
        // What a did:web may name, and nothing else: no address in figures, no user, no path.
        let name = text.split(':').next().unwrap_or_default();
        // A single word is a slip, or a machine of the local network.
        let is_name = name.contains('.') || name == "localhost";
        let is_host = is_name && !text.contains(['%', '/']) && text.matches(':').count() <= 1;
        Did::web(text).ok().filter(|_| is_host).map(|_| Self(text.to_ascii_lowercase())).ok_or(NotHost)
    }
}

impl TryFrom<String> for Host {
    type Error = NotHost;

    fn try_from(text: String) -> Result<Self, NotHost> {
        text.parse()
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.0
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A gateway by its principal's DID, or by the host that it is at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
#[allow(missing_docs, reason = "the names say it")]
pub enum PeerRef {
    Did(Did),
    Host(Host),
}

/// Neither a DID nor a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a DID, or a domain name such as memory.example.org")]
pub struct NotPeerRef;

impl FromStr for PeerRef {
    type Err = NotPeerRef;

    fn from_str(text: &str) -> Result<Self, NotPeerRef> {
        if text.starts_with("did:") {
            return text.parse().map(Self::Did).map_err(|_| NotPeerRef);
        }
        text.parse().map(Self::Host).map_err(|_| NotPeerRef)
    }
}

impl TryFrom<String> for PeerRef {
    type Error = NotPeerRef;

    fn try_from(text: String) -> Result<Self, NotPeerRef> {
        text.parse()
    }
}

impl From<PeerRef> for String {
    fn from(peer: PeerRef) -> Self {
        match peer {
            PeerRef::Did(did) => did.to_string(),
            PeerRef::Host(host) => host.0,
        }
    }
}

/// Whom to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPeer {
    /// A DID, or the host of its gateway.
    pub peer: PeerRef,
}

/// Where to look for a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FoundAt {
    /// The host.
    pub host: Host,
}

/// Which peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerName {
    /// Its DID.
    pub did: Did,
}

/// What the owner says yes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedPeer {
    /// Whose.
    pub did: Did,
    /// `pending.seen` as the owner saw it: what the peer shows later is not meant.
    pub seen: Hash,
}

/// How a peer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// What it shows is what is pinned.
    Sound,
    /// It shows something that waits for the owner.
    Changed,
    /// It did not answer when it was last asked.
    Unreachable,
    /// It answered with what does not hold.
    Disbelieved,
}

impl PeerState {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Changed => "changed",
            Self::Unreachable => "unreachable",
            Self::Disbelieved => "disbelieved",
        }
    }
}

/// A key of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PeerKey {
    pub kid: Kid,
    /// The RFC 7638 thumbprint, base64url.
    pub thumbprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// What a gateway publishes, as far as it is pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PeerPapers {
    pub did: Did,
    /// Where its gateway is.
    pub origin: String,
    pub keys: Vec<PeerKey>,
    /// Addresses by what is asked for there.
    pub endpoints: BTreeMap<String, String>,
    /// The conformance levels that it claims, by its own word.
    pub claims: Vec<String>,
    /// When it published this, by its own word.
    pub published_at: Timestamp,
}

/// A change of what a peer shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeerChange {
    /// Its kind, such as `key_added`.
    pub change: String,
    /// What changed, in a sentence.
    pub says: String,
    /// Whether the owner is asked.
    pub asks: bool,
    /// Why it was taken over without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// What waits for the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeerPending {
    /// When it was noticed.
    pub since: Timestamp,
    /// By what the owner says yes to it.
    pub seen: Hash,
    /// What is different.
    pub changes: Vec<PeerChange>,
}

/// Why a peer could not be read or believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PeerTrouble {
    pub since: Timestamp,
    /// Whether it answered, with what does not hold.
    pub disbelieved: bool,
    pub why: String,
    /// How often in a row.
    pub times: u32,
}

/// A change that was taken over, or that the owner said yes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PeerNotice {
    pub at: Timestamp,
    #[serde(flatten)]
    pub change: PeerChange,
}

/// A peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PeerInfo {
    pub state: PeerState,
    pub pinned: PeerPapers,
    pub added_at: Timestamp,
    /// When it was last read and believed.
    pub checked_at: Timestamp,
    /// When it is looked at again.
    pub due_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PeerPending>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<PeerTrouble>,
    /// What changed before, oldest first.
    pub notices: Vec<PeerNotice>,
}

/// Every peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeerList {
    /// By DID.
    pub peers: Vec<PeerInfo>,
}

/// What was found at a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundPeer {
    /// `agent_card` or `memory_manifest`: what led there.
    pub through: Through,
    /// Whether it is a peer already.
    pub is_peer: bool,
    /// What it publishes.
    pub papers: PeerPapers,
}

/// What led to a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Through {
    /// Its signed A2A agent card.
    AgentCard,
    /// Its memory manifest at the usual place.
    MemoryManifest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_did_or_a_host() {
        for text in ["memory.example.org", "memory.example.org:8443", "localhost:8443"] {
            assert_eq!(text.parse::<PeerRef>(), Ok(PeerRef::Host(text.parse().unwrap())), "{text}");
        }
        assert!(matches!("did:web:a.example".parse(), Ok(PeerRef::Did(_))));
        for text in [
            "",
            "did:",
            "did:web:127.0.0.1",
            "127.0.0.1",
            "169.254.169.254:80",
            "https://a.example",
            "a.example/x",
            "u@a.example",
            "a.example:8443:x",
            "a.example%3A8443",
            "[::1]",
            "contractor",
            "a.example:99999",
            "0x7f.1",
        ] {
            assert_eq!(text.parse::<PeerRef>(), Err(NotPeerRef), "{text}");
        }
    }

    #[test]
    fn an_address_is_at_a_host_or_not() {
        let host: Host = "Memory.Example.org:8443".parse().unwrap();
        assert_eq!(host.url("/x"), "https://memory.example.org:8443/x");
        assert!(host.has("https://memory.example.org:8443/x"));
        for url in [
            "https://memory.example.org/x",
            "https://evil.example/memory.example.org:8443",
            "memory.example.org:8443",
        ] {
            assert!(!host.has(url), "{url}");
        }
    }
}

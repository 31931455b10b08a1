//! What a principal publishes of its gateway (RFC 0010 sections 3.3 and 3.7, OAP-CORE 6, protocol section 3).
//!
//! The memory manifest is signed. The tool manifest cannot be (its schema is closed), so the memory manifest
//! names it by hash; [`check`] verifies that all four documents say the same.
//!
//! ```
//! use oap_identity::document::{self, DidDocument};
//! use oap_identity::{AgreementKey, Signer, VerificationKey};
//! use oap_manifest::{Publication, check, memory, tool};
//! use oap_memory::Profile;
//!
//! const ORIGIN: &str = "https://user.example";
//! let signer = Signer::from_seed("did:web:user.example#key-1".parse()?, &[7; 32])?;
//! let profiles = Profile::built_in();
//! let publication = Publication {
//!     principal: signer.did(), origin: ORIGIN, public_scopes: &[], profiles: &profiles,
//!     max_items: 10_000, max_duration_days: 180, belief_threshold: 0.5.try_into()?, retention_days: 30,
//!     publisher: "Alice", contact_email: "alice@user.example", jurisdiction: "DE", version: "0.1.0",
//!     now: "2026-05-01T12:00:00Z".parse()?,
//!     embedding: None, memorization_audit: None, conformance: None, suite: false,
//! };
//! let tool = tool::build(&publication);
//! let memory = memory::build(&publication, &tool, &signer)?;
//!
//! // A stranger has the DID document, and checks that all three say the same.
//! let key = VerificationKey::new(signer.kid().clone(), *signer.public());
//! let did = document::publish(signer.did(), &[key], &AgreementKey::from_secret([2; 32]), ORIGIN);
//! let did = DidDocument::parse(did.to_string().as_bytes(), signer.did())?;
//! assert_eq!(check::memory(&memory, &did, ORIGIN)?.query, "https://user.example/oap/memory/query");
//! check::tool(&tool, &memory, &did)?;
//! assert!(check::memory(&memory, &did, "https://other.example").is_err(), "a copy on another host");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used)]

pub mod actions;
pub mod card;
pub mod check;
pub mod handover;
pub mod limits;
pub mod memory;
pub mod scopes;
pub mod tool;

use oap_identity::{Did, ScopeId, Timestamp};
use oap_memory::{Confidence, Profile};
use serde_json::Value;

/// The paths of a gateway's endpoints.
#[allow(missing_docs, reason = "a path says what is there")]
pub mod path {
    pub const MEMORY_MANIFEST: &str = "/.well-known/oap-memory.json";
    pub const TOOL_MANIFEST: &str = "/.well-known/oap-tool.json";
    pub const SCOPES: &str = "/.well-known/oap-scopes.json";
    pub const DID: &str = "/.well-known/did.json";
    /// What each key said of its successor.
    pub const HANDOVERS: &str = "/.well-known/oap-key-handovers.json";
    /// The card of the A2A protocol.
    pub const AGENT_CARD: &str = "/.well-known/agent-card.json";
    pub const QUERY: &str = "/oap/memory/query";
    /// From grant to token; the state of a grant below it.
    pub const GRANT: &str = "/oap/memory/grant";
    pub const EXPORT: &str = "/oap/memory/export";
    /// Vectors, by item.
    pub const VECTORS: &str = "/oap/memory/vec/";
    /// The grantee's countersignature.
    pub const ACK: &str = "/oap/memory/ack";
    pub const STATUS: &str = "/oap/memory/status";
    pub const INVOKE: &str = "/oap/invoke";
    pub const AUDIT: &str = "/oap/audit";
    pub const DATA_DELETE: &str = "/oap/data/delete";
    /// The Conformance Receipt, where the protocol's suite looks for it.
    pub const CONFORMANCE: &str = "/oap-conformance-receipt.json";
    /// Whether a receipt is one of this gateway's.
    pub const RECEIPT_VERIFY: &str = "/oap/receipt/verify";
    /// The owner's endpoints, for whoever writes a client.
    pub const OPENAPI: &str = "/oap/openapi.json";
    pub const INCIDENT: &str = "/oap/incident";
    /// Letters of other gateways.
    pub const LETTER: &str = "/oap/peer/letter";
    /// What witnesses signed last of the log.
    pub const CHECKPOINT: &str = "/.well-known/oap-checkpoint";
    /// That the log goes on from an earlier size.
    pub const CONSISTENCY: &str = "/oap/log/consistency";
    /// That a receipt is in the log, by its id.
    pub const WITNESSED: &str = "/oap/memory/witnessed/";
    /// Where the logs of others are witnessed: the prefix of C2SP tlog-witness, for submitting and for monitoring.
    pub const WITNESS: &str = "/oap/witness";
    /// Subscriptions; each is below it.
    pub const SUBSCRIBE: &str = "/oap/memory/subscribe";
    /// Pushes of other gateways; each subscription has its own below it.
    pub const PUSH: &str = "/oap/peer/push";
    /// What changed, for the owner's other devices.
    pub const CHANGES: &str = "/oap/memory/changes";
    /// What changed items say, by name.
    pub const CHANGED: &str = "/oap/memory/changes/items";
    /// Actions by intent.
    pub const DISCOVER: &str = "/oap/discover";
}

/// Everything that the published documents depend on.
#[derive(Debug, Clone)]
pub struct Publication<'a> {
    /// The principal, and the gateway's own DID.
    pub principal: &'a Did,
    /// Where the gateway is reached, such as `https://user.example`, without a trailing slash.
    pub origin: &'a str,
    /// The scopes whose publication the owner consented to (RFC 0006 section 6).
    pub public_scopes: &'a [ScopeId],
    /// Most items of a grant.
    pub max_items: u32,
    /// Longest duration of a grant, in days.
    pub max_duration_days: u32,
    /// The threshold of belief (RFC 0010 A.2).
    pub belief_threshold: Confidence,
    /// The projection profiles.
    pub profiles: &'a [Profile],
    /// The model of embeddings and its dimensions, where one is set up.
    pub embedding: Option<(&'a str, usize)>,
    /// The result of the last memorization audit (RFC 0010 A.11).
    pub memorization_audit: Option<Value>,
    /// The Conformance Receipt in force (RFC 0019 section 7).
    pub conformance: Option<Value>,
    /// The name of the publisher.
    pub publisher: &'a str,
    /// Where to complain.
    pub contact_email: &'a str,
    /// ISO 3166 country code, `ZZ` where the owner did not say.
    pub jurisdiction: &'a str,
    /// Days for which retracted content is kept before its key is destroyed.
    pub retention_days: u32,
    /// Whether the tool manifest goes beyond its schema by what the protocol's own suite asks for (protocol section 12).
    pub suite: bool,
    /// Version of the program.
    pub version: &'a str,
    /// When the documents were made.
    pub now: Timestamp,
}

impl Publication<'_> {
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    fn profile_names(&self) -> Vec<&str> {
        self.profiles.iter().map(Profile::name).collect()
    }
}

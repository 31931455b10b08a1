//! What the principal publishes: manifests, scopes and DID document, and what the manifest declares of the last audits.

use crate::embedding::Embeddings;
use crate::error::Error;
use crate::state::keyring::Keyring;
use crate::state::schema::{CONFORMANCE, MEMORIZATION};
use crate::system::config::{Config, ToolManifest};
use oap_identity::{Clock, Did, Timestamp, json as strict};
use oap_manifest::{Publication, card, handover, memory, scopes, tool};
use oap_memory::Profile;
use oap_store::Store;
use serde_json::Value;

/// The published documents, as they are served.
pub struct Published {
    /// `oap-memory.json`.
    pub memory: Value,
    /// `oap-tool.json`.
    pub tool: Value,
    /// `oap-scopes.json`.
    pub scopes: Value,
    /// `did.json`.
    pub did: Value,
    /// `oap-key-handovers.json`.
    pub handovers: Value,
    /// `agent-card.json`.
    pub card: Value,
}

/// The last Conformance Receipt, whether or not it is in force.
///
/// # Errors
/// [`Error::Store`], [`Error::Json`].
fn last_conformance(store: &Store) -> Result<Option<Value>, Error> {
    Ok(CONFORMANCE.get(store)?.map(|bytes| strict::parse(&bytes)).transpose()?)
}

fn end(receipt: &Value) -> Option<Timestamp> {
    receipt["validity"]["not_after"].as_str().and_then(|end| end.parse().ok())
}

/// The last Conformance Receipt, while it is in force.
///
/// # Errors
/// [`Error::Store`], [`Error::Json`].
pub(crate) fn conformance_in_force(store: &Store, now: Timestamp) -> Result<Option<Value>, Error> {
    Ok(last_conformance(store)?.filter(|receipt| end(receipt).is_some_and(|end| now < end)))
}

/// The result of the last audit of memorization, as the manifest declares it.
///
/// # Errors
/// [`Error::Store`], [`Error::Json`].
pub(crate) fn last_memorization_audit(store: &Store) -> Result<Option<Value>, Error> {
    let stored = MEMORIZATION.get(store)?;
    Ok(stored.map(|bytes| strict::parse(&bytes)).transpose()?)
}

#[expect(clippy::too_many_arguments, reason = "everything that is published")]
pub(crate) fn publish(
    config: &Config,
    principal: &Did,
    origin: &str,
    profiles: &[Profile],
    embeddings: Option<&Embeddings>,
    memorization_audit: Option<Value>,
    conformance: Option<Value>,
    keys: &Keyring,
    clock: &dyn Clock,
) -> Result<Published, Error> {
    let contact_email = config.contact_email();
    let publication = Publication {
        principal,
        origin,
        public_scopes: &config.public_scopes,
        max_items: config.max_grant_items,
        max_duration_days: config.max_grant_days,
        belief_threshold: config.belief_threshold,
        profiles,
        embedding: embeddings.map(|e| (e.model().name(), e.model().dimensions())),
        memorization_audit,
        conformance,
        publisher: &config.publisher,
        contact_email: &contact_email,
        jurisdiction: &config.jurisdiction,
        retention_days: config.retention_days,
        suite: config.tool_manifest == ToolManifest::Suite,
        version: env!("CARGO_PKG_VERSION"),
        now: clock.now(),
    };
    let tool = tool::build(&publication);
    Ok(Published {
        memory: memory::build(&publication, &tool, keys.current())?,
        scopes: scopes::build(&publication, keys.current())?,
        did: keys.did_json(origin),
        handovers: handover::list(principal, &keys.handovers()?),
        card: card::build(&publication, keys.current())?,
        tool,
    })
}

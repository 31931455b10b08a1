//! `GET /.well-known/oap-memory.json` (RFC 0010 section 3.3).

use crate::{Publication, path};
use oap_identity::signed::{SignedError, sign_document};
use oap_identity::{Hash, Signer};
use oap_memory::Kind;
use serde_json::{Value, json};

/// The memory manifest, signed. It names the tool manifest by hash.
///
/// # Errors
/// [`SignedError`] when a value has no canonical form.
pub fn build(publication: &Publication, tool: &Value, signer: &Signer) -> Result<Value, SignedError> {
    let tool_hash = Hash::of_canonical(tool).map_err(|e| SignedError::Claims(e.to_string()))?;
    let embeddings: Vec<Value> = publication
        .embedding
        .iter()
        .map(|(model, dimensions)| json!({"model": model, "dimensions": dimensions}))
        .collect();
    let audit = publication.memorization_audit.clone();
    let audit = audit.unwrap_or_else(|| json!({"status": "not_performed"}));
    let mut manifest = json!({
        "principal": publication.principal,
        "scopes": publication.public_scopes,
        "embedding_profiles": embeddings,
        "kinds_supported": Kind::ALL,
        "endpoints": {
            "query": publication.url(path::QUERY),
            "grant": publication.url(path::GRANT),
            "export": publication.url(path::EXPORT),
            "revocation": publication.url(path::STATUS),
            "peer": publication.url(path::LETTER),
            "checkpoint": publication.url(path::CHECKPOINT),
            "witness": publication.url(path::WITNESS),
        },
        "max_grant_size_items": publication.max_items,
        "belief_threshold": f64::from(publication.belief_threshold),
        "memory_exchange": exchange(publication),
        "projections": projections(publication),
        "confidentiality": {"memorization_audit": audit},
        "formats": [oap_memory::bundle::FORMAT],
        "tool_manifest": {"uri": publication.url(path::TOOL_MANIFEST), "hash": tool_hash},
        "published_at": publication.now,
    });
    sign_document(&mut manifest, signer)?;
    Ok(manifest)
}

/// RFC 0010 section 3.7.
pub(crate) fn exchange(publication: &Publication) -> Value {
    json!({
        "supported": true,
        "max_grant_duration_days": publication.max_duration_days,
        "max_grant_size_items": publication.max_items,
        "supported_redaction_profiles": publication.profile_names(),
    })
}

/// RFC 0007 section 3.7. Trust levels are set by the owner in the grant; evidence is not evaluated.
pub(crate) fn projections(publication: &Publication) -> Value {
    json!({
        "supported": true,
        "default_trust_level_for_unknown_did": 0,
        "supported_profiles": publication.profile_names(),
        "trust_evidence_accepted": [],
    })
}

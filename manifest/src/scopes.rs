//! `GET /.well-known/oap-scopes.json` (RFC 0006 section 3.3): only the scopes that the owner consented to show.
//!
//! RFC 0006 section 6 forbids showing a counterparty more than it needs, and outranks the example of section 3.3.

use crate::Publication;
use oap_identity::Signer;
use oap_identity::signed::{SignedError, sign_document};
use serde_json::{Value, json};

/// The scope manifest, signed.
///
/// # Errors
/// [`SignedError`] when a value has no canonical form.
pub fn build(publication: &Publication, signer: &Signer) -> Result<Value, SignedError> {
    let scopes: Vec<Value> = publication.public_scopes.iter().map(|id| json!({"id": id})).collect();
    let mut manifest = json!({
        "principal": publication.principal,
        "scopes": scopes,
        "published_at": publication.now,
    });
    sign_document(&mut manifest, signer)?;
    Ok(manifest)
}

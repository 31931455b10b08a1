//! From an answer and its receipt to the bytes that leave (protocol section 6).

use oap_identity::json::{JsonError, canonical_text};
use oap_identity::{RequestId, Signer};
use oap_memory::TrustLevel;
use oap_memory::receipt::Receipt;
use serde_json::json;

/// What the whole answer says beside its items.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    /// The caller's name for the request, or the gateway's.
    pub request_id: &'a RequestId,
    /// The gateway's name for the answer; fresh, so that it salts the output hash.
    pub response_id: &'a RequestId,
    /// The trust level applied.
    pub level: TrustLevel,
    /// The profile applied.
    pub profile: &'a str,
    /// The profile's count of withheld fields at that level.
    pub redacted_field_count: usize,
    /// The lawful basis.
    pub lawful_basis: &'a str,
    /// Where to go on, as the caller gets it.
    pub next_cursor: Option<String>,
}

/// The whole answer, signed: bytes in canonical form. It takes the receipt as it was stored, so that there is no
/// answer without one.
///
/// # Errors
/// When the receipt has no canonical form.
pub fn respond(
    items_json: &str,
    frame: &Frame,
    receipt: &Receipt,
    signer: &Signer,
) -> Result<String, JsonError> {
    let projection = json!({
        "trust_level": frame.level, "profile": frame.profile,
        "redacted_field_count": frame.redacted_field_count, "lawful_basis": frame.lawful_basis,
    });
    let mut frame_json = String::with_capacity(2048);
    frame_json.push_str(r#""next_cursor":"#);
    frame_json.push_str(&canonical_text(&frame.next_cursor)?);
    frame_json.push_str(r#","projection_applied":"#);
    frame_json.push_str(&canonical_text(&projection)?);
    frame_json.push_str(r#","receipt":"#);
    frame_json.push_str(&canonical_text(receipt)?);
    let (request, response) = (frame.request_id, frame.response_id);
    frame_json.push_str(&format!(r#","request_id":"{request}","response_id":"{response}""#));
    let signed = format!("{{{frame_json}}}");
    let signature = json!({"alg": "EdDSA", "kid": signer.kid(), "value": signer.sign(signed.as_bytes())});
    let signature = canonical_text(&signature)?;
    Ok(format!(r#"{{"items":{items_json},{frame_json},"signature":{signature}}}"#))
}

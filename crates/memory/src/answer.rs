//! The form of an answer on the wire: how much it holds, and the bytes that its hash and its signature are of. Whoever answers and
//! whoever verifies use the same.

use oap_identity::json::{self, JsonError};
use oap_identity::{Hash, RequestId};
use serde_json::Value;

/// Most items of one answer.
pub const MAX_RESULTS: u16 = 100;

/// The hash in the receipt: of `response_id` and the items (protocol section 8).
#[must_use]
pub fn output_hash(items_json: &str, response_id: &RequestId) -> Hash {
    let response = format!(r#","response_id":"{response_id}"}}"#);
    Hash::of_parts(&[br#"{"items":"#, items_json.as_bytes(), response.as_bytes()])
}

/// The bytes that an answer's `signature` signs (protocol section 6): its canonical form without `items` and `signature`.
/// The receipt in it binds the items.
///
/// # Errors
/// When the answer has no canonical form.
pub fn answer_bytes(answer: &Value) -> Result<Vec<u8>, JsonError> {
    let mut unsigned = answer.clone();
    if let Some(members) = unsigned.as_object_mut() {
        members.remove("items");
    }
    envelope_bytes(&unsigned)
}

/// The bytes that an envelope's `signature` object signs: its canonical form without `signature`.
///
/// # Errors
/// When the envelope has no canonical form.
pub fn envelope_bytes(envelope: &Value) -> Result<Vec<u8>, JsonError> {
    let mut unsigned = envelope.clone();
    if let Some(members) = unsigned.as_object_mut() {
        members.remove("signature");
    }
    json::canonical(&unsigned)
}

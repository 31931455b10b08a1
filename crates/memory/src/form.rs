//! The form of an item's SD-JWT (protocol section 4.1): more than RFC 9901 asks for, so that two versions differ in
//! nothing but what they say, and so that no form hides or shows what another does not.

use crate::sd_jwt::{DECOY_STEP, Presentation, ROOT_DIGESTS, SdJwtError};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::json::quoted;
use serde_json::{Map, Value};

/// The claims in the clear, all of them required.
pub const CLEAR: [&str; 7] = ["iss", "iat", "item_id", "seq", "event", "prev", "receipt"];
/// The claims that are concealed; there are no others. They are the members of an item that its owner writes: what a projection shows
/// or hides.
pub const CONCEALED: [&str; 13] = [
    "scope_id",
    "kind",
    "subject_entity_id",
    "content",
    "embedding",
    "provenance",
    "labels",
    "ttl_days",
    "expires_at",
    "exportable",
    "sensitivity",
    "derived_from",
    "extensions",
];
/// Members of an item that no claim carries: derived from the proof, or outside it.
pub const NEVER_CLAIMED: [&str; 8] =
    ["owner_did", "version", "status", "updated_at", "relevance", "epistemic", "embedding_ref", "integrity"];
/// Bytes of a salt.
pub const SALT: usize = 16;
/// Bytes of a digest.
pub const DIGEST: usize = 32;

crate::reasons! {
    /// What is wrong with the form of an item's SD-JWT.
    FormError {
        /// A claim that must stand in the clear.
        #[error("claim {0:?} must stand in the clear")]
        NotInTheClear(&'static str) = "form.not_in_the_clear",
        /// A claim in the clear that must be concealed.
        #[error("claim {0:?} must be concealed")]
        InTheClear(String) = "form.in_the_clear",
        /// A claim by the name of a member that is derived from the proof or stands outside it.
        #[error("claim {0:?}: no claim carries this member; it is derived, or stands outside the proof")]
        NeverClaimed(String) = "form.never_claimed",
        /// A claim that an item does not have.
        #[error("claim{0}: an item has no such member")]
        UnknownClaim(String) = "form.unknown_claim",
        /// A salt of another length.
        #[error("disclosure {0}: a salt is 16 bytes in base64url")]
        Salt(usize) = "form.salt",
        /// A digest of another length.
        #[error("a digest is 32 bytes in base64url")]
        Digest = "form.digest",
        /// Digests that do not ascend.
        #[error("_sd: digests must ascend")]
        Unsorted = "form.unsorted",
        /// Too few decoys.
        #[error("digests: filled up with decoys to a multiple of {DECOY_STEP}, and to {ROOT_DIGESTS} at the root")]
        Padding = "form.padding",
        /// A part that is not concealed by itself.
        #[error("disclosure {0}: every member and every element must be concealed by itself")]
        Plain(usize) = "form.plain",
    }
    within {
        /// Not an SD-JWT.
        #[error("{0}")]
        SdJwt(#[from] SdJwtError),
    }
}

/// Checks the form of what was received; its signature and its digests are checked elsewhere.
///
/// # Errors
/// [`FormError`].
pub fn check(presentation: &Presentation) -> Result<(), FormError> {
    root(&presentation.payload()?)?;
    for (index, parts) in presentation.disclosures()?.iter().enumerate() {
        let salt = parts.first().and_then(Value::as_str).unwrap_or_default();
        if !is_bytes(salt, SALT) {
            return Err(FormError::Salt(index));
        }
        let is_element = parts.len() == 2;
        disclosed(index, parts.last().unwrap_or(&Value::Null), is_element)?;
    }
    Ok(())
}

/// Checks the names of the claims that came out.
///
/// # Errors
/// [`FormError::NeverClaimed`], [`FormError::UnknownClaim`].
pub fn names(claims: &Map<String, Value>) -> Result<(), FormError> {
    let known = |name: &str| CLEAR.contains(&name) || CONCEALED.contains(&name);
    match claims.keys().find(|name| !known(name)) {
        Some(name) => Err(unknown(name)),
        None => Ok(()),
    }
}

fn unknown(name: &str) -> FormError {
    if NEVER_CLAIMED.contains(&name) {
        FormError::NeverClaimed(name.to_owned())
    } else {
        FormError::UnknownClaim(quoted(name))
    }
}

fn root(payload: &Map<String, Value>) -> Result<(), FormError> {
    for name in CLEAR {
        if !payload.contains_key(name) {
            return Err(FormError::NotInTheClear(name));
        }
    }
    for name in payload.keys() {
        match name.as_str() {
            "_sd" | "_sd_alg" => {}
            name if CLEAR.contains(&name) => {}
            name if CONCEALED.contains(&name) => return Err(FormError::InTheClear(name.to_owned())),
            name => return Err(unknown(name)),
        }
    }
    digests(payload.get("_sd").unwrap_or(&Value::Null), ROOT_DIGESTS)
}

fn disclosed(index: usize, value: &Value, is_element: bool) -> Result<(), FormError> {
    match value {
        Value::Object(members) if !members.is_empty() => {
            // A span of a text shows its class with its place.
            let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
            names.sort_unstable();
            let span = is_element && names == ["_sd", "t"] && members.get("t").is_some_and(Value::is_string);
            if names != ["_sd"] && !span {
                return Err(FormError::Plain(index));
            }
            digests(members.get("_sd").unwrap_or(&Value::Null), DECOY_STEP)
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                let digest = element.as_object().filter(|members| members.len() == 1);
                let digest = digest.and_then(|members| members.get("...")).and_then(Value::as_str);
                if !is_bytes(digest.ok_or(FormError::Plain(index))?, DIGEST) {
                    return Err(FormError::Digest);
                }
            }
            if elements.len().is_multiple_of(DECOY_STEP) { Ok(()) } else { Err(FormError::Padding) }
        }
        _ => Ok(()),
    }
}

fn digests(array: &Value, least: usize) -> Result<(), FormError> {
    let array = array.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut before = "";
    for digest in array {
        let digest = digest.as_str().filter(|digest| is_bytes(digest, DIGEST)).ok_or(FormError::Digest)?;
        if digest <= before {
            return Err(FormError::Unsorted);
        }
        before = digest;
    }
    if array.len() >= least && array.len().is_multiple_of(DECOY_STEP) {
        Ok(())
    } else {
        Err(FormError::Padding)
    }
}

fn is_bytes(text: &str, length: usize) -> bool {
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == length)
}

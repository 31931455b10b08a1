//! A Data Integrity proof of the suite `eddsa-jcs-2022` (<https://www.w3.org/TR/vc-di-eddsa/#eddsa-jcs-2022>), by a did:key.

use crate::document::multibase_key;
use crate::json;
use multibase::Base;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The members of a proof.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    #[serde(rename = "id")]
    _id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    cryptosuite: String,
    #[serde(rename = "verificationMethod")]
    method: String,
    #[serde(rename = "created")]
    _created: Option<String>,
    #[serde(rename = "proofPurpose")]
    purpose: String,
    #[serde(rename = "proofValue")]
    value: String,
}

/// The key of a did:key that a proof names, in multibase form: the key in the DID and the fragment must be the same, so that nobody signs
/// with one key in the name of another.
#[must_use]
pub fn named_key(proof: &Value) -> Option<&str> {
    let (key, fragment) = proof["verificationMethod"].as_str()?.strip_prefix("did:key:")?.split_once('#')?;
    (key == fragment).then_some(key)
}

/// Checks a proof of a document, which is without its proofs; the key that signed it, in multibase form. `None` for one that does not hold,
/// whatever is wrong with it.
#[must_use]
pub fn verify<'p>(proof: &'p Value, document: &Value) -> Option<&'p str> {
    let members: Members = json::from_value(proof.clone()).ok()?;
    let is_known = members.kind == "DataIntegrityProof"
        && members.cryptosuite == "eddsa-jcs-2022"
        && members.purpose == "assertionMethod";
    let named = named_key(proof).filter(|_| is_known && members.method.starts_with("did:key:"))?;
    let key = multibase_key(named)?;
    let (base, signature) = multibase::decode(&members.value).ok()?;
    let mut options = proof.clone();
    options.as_object_mut()?.remove("proofValue");
    let mut signed = Sha256::digest(json::canonical(&options).ok()?).to_vec();
    signed.extend_from_slice(&Sha256::digest(json::canonical(document).ok()?));
    (base == Base::Base58Btc && key.verify(&signed, &signature).is_ok()).then_some(named)
}

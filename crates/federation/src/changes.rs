//! What a device is asked for, and tells: what changed since, and how it stands (protocol section 18).
//!
//! The list says which items changed and when each part of them was said. What they say is asked for by name, and comes in an answer as any
//! grantee gets, with every proof.

use crate::step::StepEntry;
use oap_identity::json::{self, JsonError};
use oap_identity::signed::SignedError;
use oap_identity::{
    DetachedSignature, Did, DidDocument, Hash, ItemId, ReceiptId, RequestId, Signer, Timestamp,
};
use serde::{Deserialize, Serialize};

/// Most items of which one list tells, and that one request names.
pub const MAX_TOLD: usize = 100;
/// Longest cursor, in bytes.
pub const MAX_CURSOR: usize = 256;
/// The `type` of a list.
const TYPE: &str = "changes";
/// Its version.
const VERSION: &str = "1.0";

/// What changed since: the body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Since {
    /// Where the list before ended; absent at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The name of the request, fresh each time: an old list answers no new request.
    pub request_id: RequestId,
}

/// What these items say: the body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// 1 to [`MAX_TOLD`] items.
    pub items: Vec<ItemId>,
    /// The name of the request.
    pub request_id: RequestId,
}

/// A list of what changed, without its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// The version of the document.
    pub oap: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who tells.
    pub from: Did,
    /// Who is told.
    pub to: Did,
    /// The request that it answers.
    pub request_id: RequestId,
    /// When it was signed.
    pub at: Timestamp,
    /// How each item stands, each once; [`MAX_TOLD`] at most.
    pub told: Vec<StepEntry>,
    /// Where the next list begins.
    pub next: String,
    /// Whether there is more to tell now.
    pub more: bool,
    /// Whether the grant is used up, so that new items are left out.
    pub full: bool,
    /// The receipt of the teller's; there is none where nothing is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<ReceiptId>,
}

/// Why a list is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangesError {
    /// Not such a document.
    #[error("the list of changes: {0}")]
    Json(#[from] JsonError),
    /// Another document, or another version.
    #[error("the list of changes: must be of type {TYPE}, version {VERSION}")]
    Type,
    /// Another's, for another, or of another request.
    #[error("the list of changes answers another request")]
    OtherRequest,
    /// More than a list has, or an item twice.
    #[error("the list of changes: tells of at most {MAX_TOLD} items, each once")]
    Told,
    /// A cursor that is too long, or that leads nowhere.
    #[error(
        "the list of changes: next must have 1 to {MAX_CURSOR} bytes, and more needs something told or another cursor"
    )]
    Cursor,
    /// The signature does not hold.
    #[error("the signature of the list of changes: {0}")]
    Signature(#[from] SignedError),
}

impl Changes {
    /// A list that tells of nothing yet.
    #[must_use]
    pub fn new(from: Did, to: Did, request_id: RequestId, at: Timestamp, next: String) -> Self {
        let (oap, kind) = (VERSION.to_owned(), TYPE.to_owned());
        let (told, more, full, receipt_id) = (Vec::new(), false, false, None);
        Self { oap, kind, from, to, request_id, at, told, next, more, full, receipt_id }
    }

    /// The hash of what is told, for receipts.
    ///
    /// # Errors
    /// [`ChangesError::Json`]; none in practice.
    pub fn hash(&self) -> Result<Hash, ChangesError> {
        Ok(Hash::of_canonical(&(&self.request_id, &self.told))?)
    }

    /// Its RFC 8785 form, signed.
    ///
    /// # Errors
    /// [`ChangesError::Json`]; none in practice.
    pub fn sign(&self, signer: &Signer) -> Result<Vec<u8>, ChangesError> {
        let value = |e: serde_json::Error| JsonError::NotCanonical(e.to_string());
        let mut document = serde_json::to_value(self).map_err(value)?;
        let signature = DetachedSignature::sign(&json::canonical(&document)?, signer);
        document["signature"] = serde_json::to_value(&signature).map_err(value)?;
        Ok(json::canonical(&document)?)
    }

    /// Reads a list, and checks that this is what `by` told `to` in answer to this request.
    ///
    /// # Errors
    /// [`ChangesError`].
    pub fn verify(
        bytes: &[u8],
        by: &DidDocument,
        to: &Did,
        asked: &Since,
        now: Timestamp,
    ) -> Result<Self, ChangesError> {
        let mut document = json::parse(bytes)?;
        let signature = document.as_object_mut().and_then(|members| members.remove("signature"));
        let signature: DetachedSignature = json::from_value(signature.ok_or(SignedError::Missing)?)?;
        let signed = json::canonical(&document)?;
        let list: Self = json::from_value(document)?;
        if *signature.kid.did() != *by.id() {
            return Err(SignedError::OtherKey.into());
        }
        if let Some(at) = by.key(&signature.kid).and_then(|key| key.revoked_at()) {
            return Err(SignedError::Revoked(at).into());
        }
        signature.verify(&signed, by, now)?;
        list.check(by.id(), to, asked)?;
        Ok(list)
    }

    fn check(&self, by: &Did, to: &Did, asked: &Since) -> Result<(), ChangesError> {
        if self.oap != VERSION || self.kind != TYPE {
            return Err(ChangesError::Type);
        }
        if self.from != *by || self.to != *to || self.request_id != asked.request_id {
            return Err(ChangesError::OtherRequest);
        }
        let mut items: Vec<ItemId> = self.told.iter().map(|told| told.item_id).collect();
        items.sort_unstable();
        items.dedup();
        if self.told.len() > MAX_TOLD || items.len() != self.told.len() {
            return Err(ChangesError::Told);
        }
        // Whoever says that there is more and leads nowhere would be asked for ever.
        let stays = asked.cursor.as_ref() == Some(&self.next);
        if self.next.is_empty()
            || self.next.len() > MAX_CURSOR
            || (stays && (self.more || !self.told.is_empty()))
        {
            return Err(ChangesError::Cursor);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::VerificationKey;
    use oap_identity::random::Seeded;

    fn asked(cursor: Option<&str>) -> Since {
        let now = Timestamp::from_seconds(1_777_636_800);
        Since { cursor: cursor.map(str::to_owned), request_id: RequestId::new(now, &Seeded::new(1)) }
    }

    #[test]
    fn a_list_answers_one_request_of_one_device() {
        let now = Timestamp::from_seconds(1_777_636_800);
        let (teller, other) = (Signer::did_key(&[1; 32]).unwrap(), Signer::did_key(&[2; 32]).unwrap());
        let document = |signer: &Signer| {
            let key = VerificationKey::new(signer.kid().clone(), *signer.public());
            DidDocument::new(signer.did().clone(), vec![key])
        };
        let (by, to) = (document(&teller), other.did().clone());
        let asked = asked(None);
        let told = vec![StepEntry { item_id: ItemId::from_bytes([1; 16]), stands: None }];
        let new = || {
            Changes::new(teller.did().clone(), to.clone(), asked.request_id.clone(), now, "j.1".to_owned())
        };
        let list = Changes { told: told.clone(), ..new() };
        let bytes = list.sign(&teller).unwrap();
        assert_eq!(Changes::verify(&bytes, &by, &to, &asked, now), Ok(list.clone()));
        // For another, to another request, by another, changed.
        let later = Since { request_id: RequestId::new(now, &Seeded::new(2)), ..asked.clone() };
        assert_eq!(Changes::verify(&bytes, &by, teller.did(), &asked, now), Err(ChangesError::OtherRequest));
        assert_eq!(Changes::verify(&bytes, &by, &to, &later, now), Err(ChangesError::OtherRequest));
        assert!(Changes::verify(&bytes, &document(&other), &to, &asked, now).is_err());
        let forged = list.sign(&other).unwrap();
        assert!(Changes::verify(&forged, &by, &to, &asked, now).is_err());
        let text = String::from_utf8(bytes).unwrap().replace("\"full\":false", "\"full\":true");
        assert!(matches!(
            Changes::verify(text.as_bytes(), &by, &to, &asked, now),
            Err(ChangesError::Signature(_))
        ));
        // What is signed and cannot be.
        let twice = Changes { told: vec![told[0].clone(), told[0].clone()], ..new() }.sign(&teller).unwrap();
        assert_eq!(Changes::verify(&twice, &by, &to, &asked, now), Err(ChangesError::Told));
        let at = Since { cursor: Some("j.1".to_owned()), ..asked.clone() };
        let nowhere = Changes { more: true, ..new() }.sign(&teller).unwrap();
        assert_eq!(Changes::verify(&nowhere, &by, &to, &at, now), Err(ChangesError::Cursor));
        let quiet = new().sign(&teller).unwrap();
        assert!(Changes::verify(&quiet, &by, &to, &at, now).is_ok());
    }
}

//! Acknowledgements (RFC 0010 A.7, A.8; protocol section 8.1): what a grantee and a granter sign in turn, each over what the other signed last.
//!
//! The first is the grantee's countersignature under the receipt of an answer. Each of the others is a signed statement over the one before
//! it. So a chain of them proves mutual knowledge of as many orders as it has links, and one more: *k* of them, however many, are never common knowledge.

mod proof;

use crate::letter::VERSION;
use oap_identity::json::{self, JsonError};
use oap_identity::signed::SignedError;
use oap_identity::time::MAX_SKEW;
use oap_identity::{DetachedSignature, Did, DidDocument, Hash, ReceiptId, Signer, Timestamp};
use oap_memory::receipt::{Receipt, ReceiptSignature};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most links of a chain.
pub const MAX_LINKS: usize = 16;
/// How far gateways go on by themselves, where their owners let them: the grantee's countersignature, and the granter's answer to it.
pub const AUTOMATIC: usize = 2;
/// The `type` of a statement.
const TYPE: &str = "acknowledgement";

/// Why an acknowledgement is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// Not of the shape of a statement.
    #[error("the acknowledgement: {0}")]
    Json(#[from] JsonError),
    /// Another version, type or number.
    #[error(
        "body.acknowledgement: must be of version {VERSION}, of type {TYPE}, with a number from 2 to {MAX_LINKS}"
    )]
    Form,
    /// Of another receipt, or of one that does not name this grantee.
    #[error("the receipt is another's, or another one")]
    OtherReceipt,
    /// Signed by somebody who does not say it.
    #[error("the key is not of whoever acknowledges")]
    OtherKey,
    /// From later than now.
    #[error("at: must not be later than now")]
    Early,
    /// The signature does not hold.
    #[error("the acknowledgement's signature: {0}")]
    Signature(#[from] SignedError),
    /// It is not the next one, or not over the one before; by its place.
    #[error("signature {0} is not over the one before it, or not by whoever has to give it")]
    DoesNotFollow(usize),
    /// Nobody says with which keys one of the two signs.
    #[error("the DID document of one of the two is missing")]
    NoDocument,
}

/// The body of a `countersignature`: the first acknowledgement of the answer that a receipt is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Countersignature {
    /// The granter's receipt, which names the grantee.
    pub receipt: ReceiptId,
    /// Its hash, which covers no signatures.
    pub receipt_hash: Hash,
    /// The grantee's signature over the bytes of that hash.
    pub signature: ReceiptSignature,
}

/// The body of an `acknowledgement`: a signed statement of one link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acknowledgement {
    /// The statement, with its `signature`.
    pub acknowledgement: Value,
}

/// "I have what you signed last": the second and every further acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    oap: String,
    #[serde(rename = "type")]
    kind: String,
    receipt: ReceiptId,
    receipt_hash: Hash,
    /// Its place in the chain; the countersignature is the first.
    number: usize,
    /// The hash of the link before it, signature included.
    of: Hash,
    by: Did,
    at: Timestamp,
}

/// A link whose signature was checked. [`Countersignature::verify`] and [`Acknowledgement::verify`] alone make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedLink {
    receipt: ReceiptId,
    receipt_hash: Hash,
    number: usize,
    of: Hash,
    by: Did,
    /// The signature or statement as it was signed, in canonical form.
    document: String,
}

impl VerifiedLink {
    /// The hash of the receipt.
    #[must_use]
    pub const fn receipt_hash(&self) -> Hash {
        self.receipt_hash
    }

    /// Its place in the chain, from 1 on.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }
}

impl Countersignature {
    /// Countersigns a receipt.
    ///
    /// # Errors
    /// [`AckError::Json`] for a receipt without canonical form; none of one that was verified.
    pub fn sign(receipt: &Receipt, signer: &Signer) -> Result<Self, AckError> {
        let bytes = receipt.signed_bytes()?;
        let signature = ReceiptSignature {
            by: signer.kid().clone(),
            alg: "EdDSA".to_owned(),
            value: signer.sign(&bytes),
        };
        Ok(Self { receipt: receipt.receipt_id, receipt_hash: Hash::of(&bytes), signature })
    }

    /// Checks it against the receipt that it names, with the document of the grantee whom the receipt names: by a key that was in force at the
    /// receipt's time, which is what whoever verifies the receipt asks, and that is not marked compromised, since whenever.
    ///
    /// # Errors
    /// [`AckError`].
    pub fn verify(&self, receipt: &Receipt, grantee: &DidDocument) -> Result<VerifiedLink, AckError> {
        let bytes = receipt.signed_bytes()?;
        let is_theirs = receipt.agent_did == grantee.id().as_str();
        if !is_theirs || receipt.receipt_id != self.receipt || Hash::of(&bytes) != self.receipt_hash {
            return Err(AckError::OtherReceipt);
        }
        if self.signature.by.did() != grantee.id() {
            return Err(AckError::OtherKey);
        }
        let key = self.signature.verify(&bytes, grantee, receipt.timestamp)?;
        if let Some(at) = key.revoked_at() {
            return Err(SignedError::Revoked(at).into());
        }
        self.link()
    }

    fn link(&self) -> Result<VerifiedLink, AckError> {
        Ok(VerifiedLink {
            receipt: self.receipt,
            receipt_hash: self.receipt_hash,
            number: 1,
            of: self.receipt_hash,
            by: self.signature.by.did().clone(),
            document: json::canonical_text(&self.signature)?,
        })
    }
}

impl Acknowledgement {
    /// Checks the form of the statement, and nothing that needs a key.
    ///
    /// # Errors
    /// [`AckError::Json`], [`AckError::Form`].
    pub fn check(&self) -> Result<(), AckError> {
        self.read().map(drop)
    }

    fn read(&self) -> Result<(Statement, DetachedSignature, Vec<u8>), AckError> {
        let mut document = self.acknowledgement.clone();
        let signature = document.as_object_mut().and_then(|members| members.remove("signature"));
        let signature: DetachedSignature = json::from_value(signature.ok_or(SignedError::Missing)?)?;
        let bytes = json::canonical(&document)?;
        let statement: Statement = json::from_value(document)?;
        let is_number = (2..=MAX_LINKS).contains(&statement.number);
        if statement.oap != VERSION || statement.kind != TYPE || !is_number || !signature.is_eddsa() {
            return Err(AckError::Form);
        }
        Ok((statement, signature, bytes))
    }

    /// Checks it with the document of whoever says it. Whether it follows what was said before is the [`Chain`]'s to say.
    ///
    /// # Errors
    /// [`AckError`].
    pub fn verify(&self, by: &DidDocument, now: Timestamp) -> Result<VerifiedLink, AckError> {
        let (statement, signature, bytes) = self.read()?;
        if statement.by != *by.id() || signature.kid.did() != by.id() {
            return Err(AckError::OtherKey);
        }
        if statement.at > now.plus(MAX_SKEW) {
            return Err(AckError::Early);
        }
        if let Some(at) = by.key(&signature.kid).and_then(|key| key.revoked_at()) {
            return Err(SignedError::Revoked(at).into());
        }
        signature.verify(&bytes, by, now)?;
        self.link(statement)
    }

    fn link(&self, statement: Statement) -> Result<VerifiedLink, AckError> {
        let Statement { receipt, receipt_hash, number, of, by, .. } = statement;
        let document = json::canonical_text(&self.acknowledgement)?;
        Ok(VerifiedLink { receipt, receipt_hash, number, of, by, document })
    }
}

/// A link as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The countersignature, or the statement, in canonical form: what the next link is over.
    pub document: String,
    /// When it was made here, or came.
    pub at: Timestamp,
}

/// What a link came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is the last one now.
    Next,
    /// It was there already.
    Before,
    /// It does not follow: out of order, over something else, or of somebody whose turn it is not.
    DoesNotFollow,
}

/// What granter and grantee acknowledged of one answer. Links take turns: the odd ones are the grantee's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The receipt of the answer.
    pub receipt: ReceiptId,
    /// Its hash.
    pub receipt_hash: Hash,
    /// Who answered.
    pub granter: Did,
    /// Who was answered.
    pub grantee: Did,
    links: Vec<Link>,
}

impl Chain {
    /// A chain without links.
    #[must_use]
    pub const fn new(receipt: ReceiptId, receipt_hash: Hash, granter: Did, grantee: Did) -> Self {
        Self { receipt, receipt_hash, granter, grantee, links: Vec::new() }
    }

    /// The links, the first one first.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Whose link is the one of a number, from 1 on.
    #[must_use]
    pub const fn whose(&self, number: usize) -> &Did {
        if number % 2 == 1 { &self.grantee } else { &self.granter }
    }

    /// Whether somebody may sign the next link.
    #[must_use]
    pub fn is_turn_of(&self, did: &Did) -> bool {
        self.links.len() < MAX_LINKS && self.whose(self.links.len() + 1) == did
    }

    /// The hash of the last link; of the receipt where there is none.
    fn last(&self) -> Hash {
        self.links.last().map_or(self.receipt_hash, |last| Hash::of(last.document.as_bytes()))
    }

    /// The order of mutual knowledge that is proved to one of the two: that the answer was given is known to both, that this is known to
    /// both, and so on, so many times. What one signed oneself proves nothing to oneself before the other signs over it. To whoever answered and heard nothing it is 0.
    #[must_use]
    pub fn order(&self, to: &Did) -> usize {
        let others = (1..=self.links.len()).rev().find(|number| self.whose(*number) != to);
        let given = usize::from(*to == self.grantee);
        others.map_or(given, |number| number + 1)
    }

    /// Takes a link.
    pub fn take(&mut self, link: &VerifiedLink, at: Timestamp) -> Taken {
        let is_here = link.receipt == self.receipt && link.receipt_hash == self.receipt_hash;
        let place = link.number.checked_sub(1);
        if let Some(known) = place.and_then(|place| self.links.get(place)) {
            let same = is_here && known.document == link.document;
            return if same { Taken::Before } else { Taken::DoesNotFollow };
        }
        let follows = link.number == self.links.len() + 1 && link.of == self.last();
        if !(is_here && follows && self.is_turn_of(&link.by)) {
            return Taken::DoesNotFollow;
        }
        self.links.push(Link { document: link.document.clone(), at });
        Taken::Next
    }

    /// Signs the next link but the first, where it is the signer's turn.
    ///
    /// # Errors
    /// [`AckError::OtherKey`] where it is not.
    pub fn sign_next(&mut self, signer: &Signer, at: Timestamp) -> Result<Acknowledgement, AckError> {
        let number = self.links.len() + 1;
        if number == 1 || !self.is_turn_of(signer.did()) {
            return Err(AckError::OtherKey);
        }
        let statement = Statement {
            oap: VERSION.to_owned(),
            kind: TYPE.to_owned(),
            receipt: self.receipt,
            receipt_hash: self.receipt_hash,
            number,
            of: self.last(),
            by: signer.did().clone(),
            at,
        };
        let not_canonical = |e: serde_json::Error| JsonError::NotCanonical(e.to_string());
        let mut document = serde_json::to_value(&statement).map_err(not_canonical)?;
        let signature = DetachedSignature::sign(&json::canonical(&document)?, signer);
        document["signature"] = serde_json::to_value(&signature).map_err(not_canonical)?;
        let signed = Acknowledgement { acknowledgement: document };
        self.links.push(Link { document: signed.link(statement)?.document, at });
        Ok(signed)
    }

    /// Countersigns the receipt, where nobody did: the first link.
    ///
    /// # Errors
    /// [`AckError::OtherReceipt`] for another one; [`AckError::OtherKey`] where it is not the signer's turn.
    pub fn countersign(
        &mut self,
        receipt: &Receipt,
        signer: &Signer,
        at: Timestamp,
    ) -> Result<Countersignature, AckError> {
        let signed = Countersignature::sign(receipt, signer)?;
        if signed.receipt_hash != self.receipt_hash || receipt.receipt_id != self.receipt {
            return Err(AckError::OtherReceipt);
        }
        if !self.links.is_empty() || !self.is_turn_of(signer.did()) {
            return Err(AckError::OtherKey);
        }
        self.links.push(Link { document: signed.link()?.document, at });
        Ok(signed)
    }
}

#[cfg(test)]
mod tests;

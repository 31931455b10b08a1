//! What the receiver checks (protocol section 4.2), offline, with the owner's DID document alone.

use crate::answer::{envelope_bytes, output_hash};
use crate::chain::{self, ChainError, Event, Link, VerifiedChain};
use crate::commitment::{self, CommitmentError, VerifiedClaims};
use crate::receipt::{self, Receipt, ReceiptError, item_tag};
use crate::view::text;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::json::JsonError;
use oap_identity::signed::SignedError;
use oap_identity::{Documents, ItemId, Kid, RequestId};
use serde_json::{Map, Value};

/// Why an item or an answer was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// A member that must be there.
    #[error("member {0:?} is missing or has the wrong shape")]
    Member(&'static str),
    /// The SD-JWT.
    #[error("sd_jwt: {0}")]
    SdJwt(#[from] CommitmentError),
    /// The chain.
    #[error("chain: {0}")]
    Chain(#[from] ChainError),
    /// The capture receipt, or the answer's.
    #[error("receipt: {0}")]
    Receipt(#[from] ReceiptError),
    /// The visible item says something that was not disclosed, or not all that was.
    #[error("the visible item is not what its disclosures show; member {0:?} differs")]
    Visible(String),
    /// The chain does not end with this version.
    #[error("the last link commits to another version than the SD-JWT")]
    Commitment,
    /// The SD-JWT stands at another place of the chain than it says.
    #[error("the SD-JWT and its link disagree on {0}")]
    Place(&'static str),
    /// The capture receipt is of another item, or not the one that the chain names.
    #[error("the capture receipt does not belong to this chain: {0}")]
    Capture(&'static str),
    /// The answer's signature.
    #[error("the answer's signature: {0}")]
    Signature(SignedError),
    /// The receipt does not cover the items.
    #[error("the receipt does not cover these items: {0}")]
    Output(&'static str),
    /// No SD-JWT: the chain holds, and nothing ties the content to it.
    #[error(
        "member \"integrity.sd_jwt\" is missing: nothing proves what the item shows; query with full integrity"
    )]
    Unproved,
    /// No canonical form.
    #[error(transparent)]
    Json(#[from] JsonError),
}

/// An item whose proof was checked. Only [`item`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedItem {
    /// The item.
    pub item_id: ItemId,
    /// The chain.
    pub chain: VerifiedChain,
    /// The receipt of its capture.
    pub capture: Receipt,
    /// The disclosed claims; `None` where only the chain was asked for, and the content is not proved.
    pub claims: Option<VerifiedClaims>,
}

impl VerifiedItem {
    /// The same item, where its content is proved as well as its chain.
    ///
    /// # Errors
    /// [`EvidenceError::Unproved`].
    pub fn proved(self) -> Result<Self, EvidenceError> {
        if self.claims.is_some() { Ok(self) } else { Err(EvidenceError::Unproved) }
    }
}

/// Checks one item of an answer or a bundle against its owner's document:
/// issuer signature, disclosures against digests, visible item against disclosures, links, last commitment,
/// capture receipt.
///
/// # Errors
/// [`EvidenceError`], saying what failed.
pub fn item(item: &Value, documents: &dyn Documents) -> Result<VerifiedItem, EvidenceError> {
    let members = item.as_object().ok_or(EvidenceError::Member("item"))?;
    let integrity = members.get("integrity").ok_or(EvidenceError::Member("integrity"))?;
    let links = integrity["chain"].as_array().ok_or(EvidenceError::Member("integrity.chain"))?;
    let chain = chain::verify(links, documents)?;
    let (capture, _) = receipt::verify(&integrity["capture_receipt"], documents)?;
    let first = &chain.links()[0];
    check_capture(&capture, first)?;
    if members.get("item_id").is_none_or(|id| *id != first.item_id.to_string()) {
        return Err(EvidenceError::Member("item_id"));
    }
    let claims = match integrity.get("sd_jwt") {
        None => None,
        Some(sd_jwt) => {
            let sd_jwt = sd_jwt.as_str().ok_or(EvidenceError::Member("integrity.sd_jwt"))?;
            let claims = commitment::verify(sd_jwt, documents)?;
            check_place(&claims, &chain)?;
            check_visible(members, claims.claims())?;
            Some(claims)
        }
    };
    Ok(VerifiedItem { item_id: first.item_id, chain, capture, claims })
}

fn check_capture(capture: &Receipt, first: &Link) -> Result<(), EvidenceError> {
    if capture.principal_did != first.actor {
        return Err(EvidenceError::Capture("it is of another principal than the first link"));
    }
    if capture.receipt_id != first.receipt {
        return Err(EvidenceError::Capture("the first link names another receipt"));
    }
    let tag = item_tag(first.item_id, first.commitment);
    if capture.provenance_tags_out != [tag] {
        return Err(EvidenceError::Capture("it is about something else"));
    }
    if capture.action_id.as_deref() != Some(&format!("memory.{}", first.event)) {
        return Err(EvidenceError::Capture("it is no capture receipt"));
    }
    Ok(())
}

fn check_place(claims: &VerifiedClaims, chain: &VerifiedChain) -> Result<(), EvidenceError> {
    let place = claims.place();
    let links = chain.links();
    let last = &links[links.len() - 1];
    if last.commitment != claims.commitment() {
        return Err(EvidenceError::Commitment);
    }
    let link = links.get(place.seq as usize).ok_or(EvidenceError::Place("seq"))?;
    let differs = if link.item_id != place.item_id {
        Some("item_id")
    } else if link.actor.as_str() != claims.claims().get("iss").and_then(Value::as_str).unwrap_or_default() {
        Some("the issuer")
    } else if link.event != place.event || !link.event.commits() {
        Some("event")
    } else if link.at.seconds() != place.at.seconds() {
        Some("the time")
    } else if Link::parse_prev(&link.prev) != Some(place.prev) {
        Some("prev")
    } else if link.commitment != claims.commitment() {
        Some("the commitment")
    } else if links[0].receipt != place.receipt {
        Some("the capture receipt")
    } else {
        None
    };
    differs.map_or(Ok(()), |what| Err(EvidenceError::Place(what)))
}

/// The members of an answered item that say something about it in the answer, not in the capture.
const ANSWERED: [&str; 4] = ["integrity", "relevance", "epistemic", "embedding_ref"];

fn check_visible(item: &Map<String, Value>, claims: &Map<String, Value>) -> Result<(), EvidenceError> {
    let shown = commitment::wire(claims)?;
    let said = item.iter().filter(|(name, _)| !ANSWERED.contains(&name.as_str()));
    for (name, value) in said.clone() {
        if shown.get(name) != Some(value) {
            return Err(EvidenceError::Visible(name.clone()));
        }
    }
    match shown.keys().find(|name| !item.contains_key(*name)) {
        Some(missing) => Err(EvidenceError::Visible(missing.clone())),
        None => Ok(()),
    }
}

/// A whole answer whose proof was checked. Only [`answer`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedAnswer {
    /// Its items, in order.
    pub items: Vec<VerifiedItem>,
    /// Its receipt.
    pub receipt: Receipt,
}

/// Checks a whole answer: the gateway's signature, its receipt, that the receipt covers exactly these items, and
/// every item.
///
/// # Errors
/// [`EvidenceError`].
pub fn answer(answer: &Value, documents: &dyn Documents) -> Result<VerifiedAnswer, EvidenceError> {
    let (receipt, _) = receipt::verify(&answer["receipt"], documents)?;
    check_envelope(answer, documents, &receipt)?;
    let items = answer["items"].as_array().ok_or(EvidenceError::Member("items"))?;
    let response_id: RequestId = answer["response_id"]
        .as_str()
        .and_then(|id| id.parse().ok())
        .ok_or(EvidenceError::Member("response_id"))?;
    if receipt.output_hash != Some(output_hash(&text(items)?, &response_id)) {
        return Err(EvidenceError::Output("output_hash differs"));
    }
    let verified = items.iter().map(|i| item(i, documents)).collect::<Result<Vec<_>, _>>()?;
    let tags: Vec<String> = verified
        .iter()
        .map(|v| item_tag(v.item_id, v.chain.links()[v.chain.links().len() - 1].commitment))
        .collect();
    if receipt.provenance_tags_out != tags {
        return Err(EvidenceError::Output("provenance_tags_out differs"));
    }
    Ok(VerifiedAnswer { items: verified, receipt })
}

fn check_envelope(answer: &Value, documents: &dyn Documents, receipt: &Receipt) -> Result<(), EvidenceError> {
    let signature = &answer["signature"];
    let kid: Kid = signature["kid"]
        .as_str()
        .and_then(|kid| kid.parse().ok())
        .ok_or(EvidenceError::Member("signature.kid"))?;
    let value = signature["value"]
        .as_str()
        .filter(|_| signature["alg"] == "EdDSA")
        .and_then(|value| URL_SAFE_NO_PAD.decode(value).ok())
        .ok_or(EvidenceError::Member("signature.value"))?;
    let key = documents
        .key_of(&kid)
        .filter(|_| *kid.did() == receipt.principal_did)
        .ok_or(EvidenceError::Signature(SignedError::OtherKey))?;
    key.verify(&envelope_bytes(answer)?, &value, receipt.timestamp).map_err(EvidenceError::Signature)
}

/// The story of an item in one sentence a line, for people.
#[must_use]
pub fn explain(verified: &VerifiedItem) -> Vec<String> {
    let links = verified.chain.links();
    let (first, last) = (&links[0], &links[links.len() - 1]);
    let mut lines = vec![format!(
        "{} was captured on {} by {}, receipt {}.",
        verified.item_id,
        first.at,
        first.actor,
        first.receipt.short()
    )];
    let corrections = links.iter().filter(|l| l.event == Event::Correct).count();
    lines.push(match corrections {
        0 => "It was never corrected.".to_owned(),
        1 => format!("It was corrected once; this version is of {}.", last.at),
        n => format!("It was corrected {n} times; this version is of {}.", last.at),
    });
    lines.push(format!(
        "Its chain has {} link{}, each signed and following the one before.",
        links.len(),
        if links.len() == 1 { "" } else { "s" }
    ));
    match &verified.claims {
        Some(claims) => {
            let shown: Vec<&str> = claims
                .claims()
                .keys()
                .map(String::as_str)
                .filter(|name| !["iss", "iat", "item_id", "seq", "event", "prev", "receipt"].contains(name))
                .collect();
            lines.push(format!(
                "Shown: {}. Everything else was committed to and is hidden.",
                if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }
            ));
        }
        None => lines.push("Only the chain was asked for: the content shown is not proved.".to_owned()),
    }
    lines
}

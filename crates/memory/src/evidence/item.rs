//! One item: its SD-JWT, its chain, its capture receipt, and the visible item against them.

use super::EvidenceError;
use crate::chain::{self, Link, VerifiedChain};
use crate::commitment::{self, VerifiedClaims};
use crate::epistemic::Epistemic;
use crate::item::Confidence;
use crate::receipt::{self, Action, Receipt, VerifiedReceipt, item_tag};
use crate::record::Status;
use crate::unchecked::Unchecked;
use oap_identity::json::quoted;
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, Documents, ItemId, Timestamp, json};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

crate::reasons! {
    /// Why a receipt is not the capture receipt of a chain.
    CaptureError {
        /// Another principal's.
        #[error("it is of another principal than the first link")]
        Principal = "capture.principal",
        /// Another receipt than the first link names.
        #[error("the first link names another receipt")]
        Receipt = "capture.receipt",
        /// Of another item or version, or of more than one.
        #[error("it is about something else")]
        Item = "capture.item",
        /// Of another action.
        #[error("it is no capture receipt: action_id differs")]
        Action = "capture.action",
        /// By an agent: a capture receipt names the principal alone.
        #[error("agent_did: must be the principal")]
        Agent = "capture.agent",
        /// By another gateway.
        #[error("tool_did: must be the principal")]
        Tool = "capture.tool",
        /// Something came in.
        #[error("input_hash: a capture has none")]
        InputHash = "capture.input_hash",
        /// Older than what it attests.
        #[error("it is older than the capture")]
        Time = "capture.time",
    }
}

/// An item whose proof was checked. Only [`item()`] makes one.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct VerifiedItem {
    pub item_id: ItemId,
    /// Who holds it: the actor of its last link. After a move that is not who captured it.
    pub holder: Did,
    /// Where it stands after the last link.
    pub status: Status,
    /// The version in force: the number of its link, counted from 1.
    pub version: u32,
    pub chain: VerifiedChain,
    /// The receipt of its capture.
    pub capture: Receipt,
    /// The disclosed claims; `None` where only the chain was asked for, and the content is not proved.
    pub claims: Option<VerifiedClaims>,
    /// The visible members that the disclosures prove.
    pub proved: Vec<String>,
    /// The visible members that follow from the proof.
    pub derived: Vec<&'static str>,
    /// The visible members that no proof of the item covers; an answer's signature covers them.
    pub outside: Vec<&'static str>,
    /// What was not checked.
    pub unchecked: Vec<Unchecked>,
}

impl VerifiedItem {
    /// The same item, where its content is proved as well as its chain.
    ///
    /// # Errors
    /// [`EvidenceError::Unproved`].
    pub fn proved(self) -> Result<Self, EvidenceError> {
        if self.claims.is_some() { Ok(self) } else { Err(EvidenceError::Unproved) }
    }

    /// From when on the item is in no view, as far as that is shown: `expires_at`, else `captured_at` and `ttl_days`.
    #[must_use]
    pub fn end_of_life(&self) -> Option<Timestamp> {
        let claims = self.claims.as_ref()?.claims();
        let time = |value: Option<&Value>| value?.as_str()?.parse::<Timestamp>().ok();
        time(claims.get("expires_at")).or_else(|| {
            let days = claims.get("ttl_days")?.as_u64()?;
            let captured = time(claims.get("provenance")?.get("captured_at"))?;
            Some(captured.plus(Duration::from_secs(days.saturating_mul(86_400))))
        })
    }

    /// The same item, where nothing in it is later than that time, 5 minutes of skew aside.
    ///
    /// # Errors
    /// [`EvidenceError::Future`].
    pub fn as_of(self, now: Timestamp) -> Result<Self, EvidenceError> {
        let captured = self.claims.as_ref().and_then(|claims| {
            claims.claims().get("provenance")?.get("captured_at")?.as_str()?.parse::<Timestamp>().ok()
        });
        let latest = self.chain.last().at.max(self.capture.timestamp);
        let latest = captured.map_or(latest, |at| latest.max(at));
        if latest > now.plus(MAX_SKEW) { Err(EvidenceError::Future(latest)) } else { Ok(self) }
    }
}

/// Checks one item of an answer or a bundle against the documents of those who signed something in it: issuer signature,
/// disclosures against digests, visible item against disclosures, links, last commitment, state, capture receipt.
///
/// # Errors
/// [`EvidenceError`], saying what failed.
pub fn item(item: &Value, documents: &dyn Documents) -> Result<VerifiedItem, EvidenceError> {
    let members = item.as_object().ok_or(EvidenceError::Member("item"))?;
    let integrity = members.get("integrity").and_then(Value::as_object);
    let integrity = integrity.ok_or(EvidenceError::Member("integrity"))?;
    let known = ["sd_jwt", "chain", "capture_receipt"];
    if let Some(name) = integrity.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(EvidenceError::UnknownMember(quoted(name)));
    }
    let links = integrity.get("chain").and_then(Value::as_array);
    let links = links.ok_or(EvidenceError::Member("integrity.chain"))?;
    let chain = chain::verify(links, documents)?;
    if chain.status() == Status::Erased {
        return Err(EvidenceError::Ended);
    }
    let capture =
        integrity.get("capture_receipt").ok_or(EvidenceError::Member("integrity.capture_receipt"))?;
    let capture = receipt::verify(capture, documents)?;
    check_capture(&capture, chain.first())?;
    let item_id = chain.first().item_id;
    if members.get("item_id").is_none_or(|id| *id != item_id.to_string()) {
        return Err(EvidenceError::Member("item_id"));
    }
    let claims = match integrity.get("sd_jwt") {
        None => None,
        Some(sd_jwt) => {
            let sd_jwt = sd_jwt.as_str().ok_or(EvidenceError::Member("integrity.sd_jwt"))?;
            let claims = commitment::verify(sd_jwt, documents)?;
            if chain.last().commitment != claims.commitment() {
                return Err(EvidenceError::Commitment);
            }
            check_place(&claims, chain.links())?;
            Some(claims)
        }
    };
    let version = chain.version() + 1;
    let mut verified = VerifiedItem {
        item_id,
        holder: chain.last().actor.clone(),
        status: chain.status(),
        version,
        proved: Vec::new(),
        derived: check_derived(members, &chain, claims.as_ref())?,
        outside: check_outside(members, &chain)?,
        unchecked: unchecked(&chain, capture.unchecked),
        chain,
        capture: capture.receipt,
        claims,
    };
    if let Some(claims) = &verified.claims {
        verified.proved = check_visible(members, claims.claims())?;
    }
    Ok(verified)
}

fn unchecked(chain: &VerifiedChain, of_capture: Vec<Unchecked>) -> Vec<Unchecked> {
    let mut unchecked = of_capture;
    for (kid, since) in chain.dated() {
        let dated = Unchecked::DatedByCompromisedKey { kid: kid.clone(), since: *since };
        if !unchecked.contains(&dated) {
            unchecked.push(dated);
        }
    }
    let moves = chain.moves();
    unchecked.extend(moves.map(|(seq, from, to)| Unchecked::Move {
        seq,
        from: from.clone(),
        to: to.clone(),
    }));
    if chain.links().len() > 1 {
        unchecked.push(Unchecked::LinkReceipts(chain.links().len() - 1));
    }
    unchecked
}

/// That a receipt is the first link's. Its type, outcome and output_hash are those of its action.
fn check_capture(capture: &VerifiedReceipt, first: &Link) -> Result<(), CaptureError> {
    use CaptureError as Refused;
    let capture = &capture.receipt;
    let differs = if capture.principal_did != first.actor {
        Some(Refused::Principal)
    } else if capture.receipt_id != first.receipt {
        Some(Refused::Receipt)
    } else if capture.provenance_tags_out != [item_tag(first.item_id, first.commitment)] {
        Some(Refused::Item)
    } else if capture.action_id.as_deref() != Some(Action::from(first.event).as_str()) {
        Some(Refused::Action)
    } else if capture.agent_did != first.actor.as_str() {
        Some(Refused::Agent)
    } else if capture.tool_did.as_ref().is_some_and(|tool| *tool != first.actor) {
        Some(Refused::Tool)
    } else if capture.input_hash.is_some() {
        Some(Refused::InputHash)
    } else if capture.timestamp.plus(MAX_SKEW) < first.at {
        Some(Refused::Time)
    } else {
        None
    };
    differs.map_or(Ok(()), Err)
}

/// Checks that a version stands where its claims say, in a chain: of replaced versions, which a bundle brings along.
///
/// # Errors
/// [`EvidenceError::Place`].
pub fn check_place(claims: &VerifiedClaims, links: &[Link]) -> Result<(), EvidenceError> {
    let place = claims.place();
    let first = links.first().ok_or(EvidenceError::Place("seq"))?;
    let link = links.get(place.seq as usize).ok_or(EvidenceError::Place("seq"))?;
    let issuer = claims.claims().get("iss").and_then(Value::as_str).unwrap_or_default();
    let differs = if link.item_id != place.item_id {
        Some("item_id")
    } else if link.actor.as_str() != issuer {
        Some("the issuer")
    } else if link.event != place.event || !(link.event.commits() || place.seq == 0) {
        Some("event")
    } else if link.at.seconds() != place.at.seconds() {
        Some("the time")
    } else if Link::parse_prev(&link.prev) != Some(place.prev) {
        Some("prev")
    } else if link.commitment != claims.commitment() {
        Some("the commitment")
    } else if first.receipt != place.receipt {
        Some("the capture receipt")
    } else {
        None
    };
    differs.map_or(Ok(()), |what| Err(EvidenceError::Place(what)))
}

/// The members that follow from the proof: said as it says them, or not at all.
const DERIVED: [&str; 3] = ["owner_did", "version", "status"];
/// The members of an answered item that say something about it in the answer, not in the capture.
const OUTSIDE: [&str; 3] = ["embedding_ref", "epistemic", "relevance"];

fn check_derived(
    item: &Map<String, Value>,
    chain: &VerifiedChain,
    claims: Option<&VerifiedClaims>,
) -> Result<Vec<&'static str>, EvidenceError> {
    let issuer = &chain.links()[chain.version() as usize].actor;
    if claims.is_some() && DERIVED.iter().any(|name| !item.contains_key(*name)) {
        return Err(EvidenceError::Member("owner_did, version and status"));
    }
    let said = |name: &str| item.get(name);
    if said("owner_did").is_some_and(|owner| owner != issuer.as_str()) {
        return Err(EvidenceError::Owner);
    }
    let version = chain.version() + 1;
    if said("version").is_some_and(|said| *said != version) {
        return Err(EvidenceError::Version(version));
    }
    if said("status").is_some_and(|status| status != chain.status().as_str()) {
        return Err(EvidenceError::Status(chain.status()));
    }
    Ok(DERIVED.into_iter().filter(|name| item.contains_key(*name)).collect())
}

fn check_outside(
    item: &Map<String, Value>,
    chain: &VerifiedChain,
) -> Result<Vec<&'static str>, EvidenceError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct EmbeddingRef {
        #[serde(rename = "model")]
        _model: String,
        #[serde(rename = "dimensions")]
        _dimensions: u32,
        #[serde(rename = "vector_url")]
        _vector_url: String,
    }
    if let Some(relevance) = item.get("relevance")
        && !relevance.as_f64().is_some_and(|relevance| (0.0..=1.0).contains(&relevance))
    {
        return Err(EvidenceError::Member("relevance"));
    }
    if let Some(attitude) = item.get("epistemic") {
        let attitude = attitude.as_str().and_then(|text| text.parse::<Epistemic>().ok());
        let attitude = attitude.ok_or(EvidenceError::Member("epistemic"))?;
        let confidence = item.get("provenance").and_then(|provenance| provenance.get("confidence"));
        let certain = confidence.is_none_or(|c| c.as_f64() == Some(Confidence::CERTAIN.get()));
        if attitude == Epistemic::Knowledge && !(certain && chain.is_confirmed()) {
            return Err(EvidenceError::Epistemic(attitude));
        }
    }
    if let Some(reference) = item.get("embedding_ref")
        && json::from_value::<EmbeddingRef>(reference.clone()).is_err()
    {
        return Err(EvidenceError::Member("embedding_ref"));
    }
    Ok(OUTSIDE.into_iter().filter(|name| item.contains_key(*name)).collect())
}

fn check_visible(
    item: &Map<String, Value>,
    claims: &Map<String, Value>,
) -> Result<Vec<String>, EvidenceError> {
    let shown = commitment::wire(claims)?;
    let elsewhere = |name: &str| name == "integrity" || DERIVED.contains(&name) || OUTSIDE.contains(&name);
    for (name, value) in item.iter().filter(|(name, _)| !elsewhere(name)) {
        if shown.get(name) != Some(value) {
            return Err(EvidenceError::Visible(quoted(name)));
        }
    }
    match shown.keys().find(|name| !item.contains_key(*name)) {
        Some(missing) => Err(EvidenceError::Visible(quoted(missing))),
        None => Ok(shown.keys().filter(|name| !DERIVED.contains(&name.as_str())).cloned().collect()),
    }
}

//! Receipts and their chains (OAP-CORE 19, protocol section 8).
//!
//! Every receipt is followed in its chain by a *head*: a receipt of the chain itself that says how long the
//! chain is. A head does two things. It makes a cut tail visible: a chain must end with one, and the newest one
//! can be asked for. And it stands between any two receipts that a counterparty may see, so that the
//! `previous_receipt_hash` of one never tells whether something that they may not see came before it. The last one of a
//! chain is signed; another need not be, since the receipt after it is signed and names its hash.

mod action;
mod chain;
mod content;
mod verified;

pub use action::{Action, Covers};
pub use chain::{UnverifiedChain, VerifiedReceipts, verify_chain};
pub use verified::{VerifiedReceipt, verify};

use crate::item::closed_enum;
use oap_identity::document::VerificationKey;
use oap_identity::json::{self, JsonError};
use oap_identity::random::Random;
use oap_identity::signed::SignedError;
use oap_identity::{
    DecisionId, DetachedSignature, Did, Documents, Hash, ItemId, Kid, ReceiptId, Signer, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::ops::Range;

/// The first `previous_receipt_hash` of a chain.
pub const GENESIS: &str = "genesis";

closed_enum! {
    /// The receipt types in use here (of `oap-receipt.schema.json`).
    ReceiptType {
        /// Something was done for a caller.
        Invocation = "invocation",
        /// A grant was given or taken back.
        Consent = "consent",
        /// Memory was deleted.
        Deletion = "deletion",
        /// Something went wrong.
        Incident = "incident",
        /// Everything was revoked.
        KillSwitch = "kill_switch",
    }
}

closed_enum! {
    /// The outcome of a policy decision (OAP-CORE 18.3).
    #[allow(missing_docs, reason = "the names say it")]
    Outcome {
        /// Go ahead.
        Allow = "allow",
        /// Go ahead within limits.
        AllowWithConditions = "allow_with_conditions",
        /// Ask the principal first.
        RequireConsent = "require_consent",
        /// Only without what identifies.
        RequireAnonymization = "require_anonymization",
        Block = "block",
    }
}

/// A decision in a receipt: the one open place of its schema, where trust level, profile, lawful basis, grant
/// and scope go (protocol section 12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Decision {
    pub id: DecisionId,
    pub outcome: Outcome,
    /// The rules that it rests on.
    pub rules: Vec<String>,
    /// What else it says.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A signature of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ReceiptSignature {
    /// The key: `<did>#<key>`.
    pub by: Kid,
    pub alg: String,
    /// base64url of the signature over the hashed bytes ([`Receipt::signed_bytes`]).
    pub value: String,
}

impl ReceiptSignature {
    /// Checks it with the key that it names, as that stood at that time; the key. Whose key it may be is the caller's to say, before.
    ///
    /// # Errors
    /// Those of [`DetachedSignature::verify`].
    pub fn verify<'k>(
        &self,
        bytes: &[u8],
        documents: &'k dyn Documents,
        signed_at: Timestamp,
    ) -> Result<&'k VerificationKey, SignedError> {
        let Self { by, alg, value } = self.clone();
        DetachedSignature { alg, kid: by, value }.verify(bytes, documents, signed_at)
    }
}

/// A receipt of `oap-receipt.schema.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Receipt {
    pub receipt_id: ReceiptId,
    #[serde(rename = "type")]
    pub kind: ReceiptType,
    /// When it was made.
    pub timestamp: Timestamp,
    /// In whose chain it stands.
    pub principal_did: Did,
    /// Who acted.
    pub agent_did: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_did: Option<Did>,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// The hash of what came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<Hash>,
    /// The hash of what went out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<Hash>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_decisions: Vec<Decision>,
    /// What was disclosed or captured: `<item_id>@<commitment>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provenance_tags_out: Vec<String>,
    /// `genesis`, or the hash of the receipt before.
    pub previous_receipt_hash: String,
    /// The principal's signature first; a grantee's countersignature may follow.
    #[serde(default)]
    pub signatures: Vec<ReceiptSignature>,
}

/// The name of the member `signatures`, as it is written.
const SIGNATURES: &[u8] = br#""signatures":"#;

/// A receipt in canonical form that has no signature yet.
#[derive(Debug, Clone)]
pub struct UnsignedReceipt {
    /// Without the member `signatures`.
    signed: Vec<u8>,
    /// Where that goes.
    at: usize,
}

impl UnsignedReceipt {
    /// The hash that the next receipt names: no signature changes it.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(&self.signed)
    }

    fn signature(&self, signer: &Signer) -> ReceiptSignature {
        let value = signer.sign(&self.signed);
        ReceiptSignature { by: signer.kid().clone(), alg: "EdDSA".to_owned(), value }
    }

    fn with(&self, signatures: &[u8]) -> Vec<u8> {
        let (before, after) = self.signed.split_at(self.at);
        [before, SIGNATURES, signatures, b",", after].concat()
    }

    /// Its canonical form as it is: with an empty list of signatures.
    #[must_use]
    pub fn written(&self) -> Vec<u8> {
        self.with(b"[]")
    }

    /// Its canonical form with a signature.
    #[must_use]
    pub fn signed(&self, signer: &Signer) -> Vec<u8> {
        let ReceiptSignature { by, alg, value } = self.signature(signer);
        // Letters, digits and punctuation alone, members in their order: canonical as it is.
        self.with(json!([{"alg": alg, "by": by, "value": value}]).to_string().as_bytes())
    }
}

crate::reasons! {
    /// Why a receipt or a chain of them was refused. The numbers are those of the offending entries.
    ReceiptError {
        /// Not a receipt.
        #[error("receipt {0} is malformed: {1}")]
        Malformed(usize, String) = "receipt.malformed",
        /// A member that the schema does not have.
        #[error("receipt {0} has an unknown member{1}")]
        UnknownMember(usize, String) = "receipt.unknown_member",
        /// `previous_receipt_hash` is neither `genesis` nor a hash.
        #[error("receipt {0}: previous_receipt_hash is neither \"genesis\" nor a hash")]
        Previous(usize) = "receipt.previous",
        /// It follows something else.
        #[error("receipt {0} does not follow the one before it")]
        Broken(usize) = "receipt.broken",
        /// A time earlier than that of the receipt before.
        #[error("receipt {0} is older than the one before it")]
        Time(usize) = "receipt.time",
        /// No signature of the principal.
        #[error("receipt {0} is not signed by its principal")]
        Unsigned(usize) = "receipt.unsigned",
        /// A signature of another algorithm.
        #[error("receipt {0}: alg must be EdDSA")]
        Algorithm(usize) = "receipt.algorithm",
        /// Two signatures of one DID.
        #[error("receipt {0}: {1} signed twice")]
        RepeatedSigner(usize, Did) = "receipt.repeated_signer",
        /// A signature of somebody who has no part in it.
        #[error("receipt {0}: {1} is neither its principal nor its agent")]
        Stranger(usize, Did) = "receipt.stranger",
        /// More signatures than a receipt can have.
        #[error("receipt {0}: its principal and its agent sign it, and nobody else")]
        Signatures(usize) = "receipt.signatures",
        /// Anchors of another shape.
        #[error("receipt {0}: an anchor has log_id, log_index and inclusion_proof")]
        Anchors(usize) = "receipt.anchors",
        /// A signature of the principal that does not count.
        #[error("receipt {0}: {1}")]
        Signature(usize, SignedError) = "receipt.signature",
        /// A countersignature that does not count.
        #[error("receipt {0}: the countersignature: {1}")]
        Countersignature(usize, SignedError) = "receipt.countersignature",
        /// A chain that begins with something else.
        #[error("receipt {0}: a chain begins with memory.boot")]
        Boot(usize) = "receipt.boot",
        /// Receipts and heads do not take turns, or a head names no chain or another length.
        #[error("receipt {0}: every receipt is followed by a head that says the chain and its length")]
        Head(usize) = "receipt.head",
        /// The chain does not end with a head.
        #[error("the chain does not end with a head: its tail was cut")]
        Cut = "receipt.cut",
        /// A receipt of another principal or chain.
        #[error("receipt {0} belongs to another chain")]
        OtherChain(usize) = "receipt.other_chain",
        /// Of another type than its action's.
        #[error("receipt {0}: type must be {2} for {1}")]
        Type(usize, Action, ReceiptType) = "receipt.type",
        /// No decision.
        #[error("receipt {0}: policy_decisions must hold a decision")]
        Decision(usize) = "receipt.decision",
        /// An outcome under which the action is not done.
        #[error("receipt {0}: the outcome of {1} must be allow; block where a caller was refused")]
        Outcome(usize, Action) = "receipt.outcome",
        /// A tag that names no version of an item.
        #[error("receipt {0}: a tag of provenance_tags_out must be <item_id>@<commitment>")]
        Tag(usize) = "receipt.tag",
        /// Tags that the action does not have, or none of one item.
        #[error("receipt {0}: provenance_tags_out is not that of {1}: one of an item's event, those of what was handed out, else none")]
        Tags(usize, Action) = "receipt.tags",
        /// `output_hash` is missing, another than the commitment, or of nothing.
        #[error("receipt {0}: output_hash is not that of {1}: the commitment of an item's event, else the hash of what it is about")]
        OutputHash(usize, Action) = "receipt.output_hash",
        /// A Migration Receipt that does not say of which bundle.
        #[error("receipt {0}: input_hash of a Migration Receipt must be the hash of the bundle")]
        InputHash(usize) = "receipt.input_hash",
        /// From the future.
        #[error("receipt {0} is from the future: {1}")]
        Future(usize, Timestamp) = "receipt.future",
        /// No canonical form.
        #[error("{0}")]
        Json(#[from] JsonError) = "receipt.json",
    }
}

impl Receipt {
    /// The bytes that are hashed and signed: the RFC 8785 form without `signatures` and `anchors`.
    ///
    /// # Errors
    /// When a decision holds a value without canonical form.
    pub fn signed_bytes(&self) -> Result<Vec<u8>, JsonError> {
        let (mut written, signatures) = self.written()?;
        written.drain(signatures);
        Ok(written)
    }

    /// The RFC 8785 form, and where in it the member `signatures` stands, with the comma behind it: what is not signed.
    fn written(&self) -> Result<(Vec<u8>, Range<usize>), JsonError> {
        let written = json::canonical(self)?;
        // A member of that name within another one stands before it: behind it are three texts.
        let start = written.windows(SIGNATURES.len()).rposition(|part| part == SIGNATURES);
        let start = start.ok_or_else(|| JsonError::NotCanonical("no signatures".to_owned()))?;
        let end = start + SIGNATURES.len() + json::canonical(&self.signatures)?.len() + 1;
        Ok((written, start..end))
    }

    /// The hash that the next receipt names.
    ///
    /// # Errors
    /// As [`Receipt::signed_bytes`].
    pub fn hash(&self) -> Result<Hash, JsonError> {
        Ok(Hash::of(&self.signed_bytes()?))
    }

    /// Signs it, in place of the signatures that it has. Returns its hash.
    ///
    /// # Errors
    /// As [`Receipt::signed_bytes`].
    pub fn sign(&mut self, signer: &Signer) -> Result<Hash, JsonError> {
        let unsigned = self.unsigned()?;
        self.signatures = vec![unsigned.signature(signer)];
        Ok(unsigned.hash())
    }

    /// It without signatures, in the form in which it is signed.
    ///
    /// # Errors
    /// As [`Receipt::signed_bytes`].
    pub fn unsigned(&mut self) -> Result<UnsignedReceipt, JsonError> {
        self.signatures.clear();
        let (written, at) = self.written()?;
        let signed = [&written[..at.start], &written[at.end..]].concat();
        Ok(UnsignedReceipt { signed, at: at.start })
    }

    /// The head that follows this receipt: the `length`-th entry of the chain is the one before the head.
    #[must_use]
    pub fn head(&self, hash: Hash, chain: &str, length: u64, random: &dyn Random) -> Self {
        let decision = Decision {
            id: DecisionId::new(self.timestamp, random),
            outcome: Outcome::Allow,
            rules: vec!["chain.head".to_owned()],
            more: Map::from_iter([("chain".to_owned(), json!(chain)), ("length".to_owned(), json!(length))]),
        };
        Self {
            receipt_id: ReceiptId::new(self.timestamp, random),
            kind: Action::ChainHead.kind(),
            timestamp: self.timestamp,
            principal_did: self.principal_did.clone(),
            agent_did: self.principal_did.to_string(),
            tool_did: self.tool_did.clone(),
            action_id: Some(Action::ChainHead.to_string()),
            input_hash: None,
            output_hash: None,
            policy_decisions: vec![decision],
            provenance_tags_out: Vec::new(),
            previous_receipt_hash: hash.to_string(),
            signatures: Vec::new(),
        }
    }

    /// Whether it is a head, and the length that it states.
    #[must_use]
    pub fn head_length(&self) -> Option<u64> {
        if self.action_id.as_deref() != Some(Action::ChainHead.as_str()) {
            return None;
        }
        self.policy_decisions.first()?.more.get("length")?.as_u64()
    }
}

/// How a receipt names a version of an item.
#[must_use]
pub fn item_tag(item: ItemId, commitment: Hash) -> String {
    format!("{item}@{commitment}")
}

/// The version of an item that a receipt names; `None` where the text is no such name.
#[must_use]
pub fn read_tag(tag: &str) -> Option<(ItemId, Hash)> {
    let (item, commitment) = tag.split_once('@')?;
    Some((item.parse().ok()?, commitment.parse().ok()?))
}

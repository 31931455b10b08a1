//! Conformance Receipts (RFC 0019 section 7, `oap-conformance-receipt.schema.json`): signed from a report of the
//! protocol's own suite, and checked.
//!
//! The suite decides by the receipt that a target publishes which of its adversarial probes apply. So a first run needs a
//! *candidate*: a receipt of no results, valid for an hour, that [`check`] never takes for evidence.

mod document;

pub use document::*;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::did::DidError;
use oap_identity::json::{self as strict, JsonError};
use oap_identity::signed::SignedError;
use oap_identity::{Did, DidDocument, Hash, Kid, Random, Signer, Timestamp, random};
use oap_memory::receipt::ReceiptSignature;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest validity (RFC 0019 section 7.2, OAP-CORE 31).
pub const LONGEST: Duration = Duration::from_secs(90 * 86_400);
/// Validity of a candidate.
pub const CANDIDATE: Duration = Duration::from_secs(3_600);

const PLACEHOLDERS: [&str; 3] = ["PLACEHOLDER_NOT_FOR_PRODUCTION", "unsigned-reference", "placeholder:"];

/// What a level asks of a report: probes of the suite that ran and passed. A probe that did not apply is no evidence.
struct Level {
    name: &'static str,
    /// Files of which at least one result must have passed, and none failed (`levels/levels.json`).
    files: &'static [&'static str],
    /// Results that must be there and have passed.
    results: &'static [&'static str],
}

const LIFECYCLE: &str = "lifecycle.test.js";
const L1: [&str; 4] = [LIFECYCLE, "discover.test.js", "invoke.test.js", "audit.test.js"];
const LEVELS: [Level; 3] = [
    Level { name: "L0", files: &[LIFECYCLE], results: &[] },
    Level {
        name: "L1",
        files: &L1,
        results: &[
            "adversarial-receipt-forgery-rejected",
            "adversarial-signature-stripping-rejected",
            "adversarial-sybil-creation-cap-declared",
        ],
    },
    Level {
        name: "L1-NC",
        files: &[L1[0], L1[1], L1[2], L1[3], "non-commercial-pricing.test.js"],
        results: &["nc-conformance-receipt-served"],
    },
];

const ALG: &str = "EdDSA";

/// A level whose probes a candidate may ask for, as evidence, and that no receipt claims.
const PROBED: &str = "L3";

/// What is attested.
#[derive(Debug, Clone, Copy)]
pub struct Attestation<'a> {
    /// Where the gateway is reached.
    pub target: &'a str,
    /// The version of the program.
    pub version: &'a str,
    /// The hash of its tool manifest.
    pub manifest: Hash,
    /// The levels: `L0`, `L1`, `L1-NC`; for a candidate `L3` too.
    pub levels: &'a [String],
    /// The suite's report (`OAP_REPORT=json`); none for a candidate.
    pub report: Option<&'a Value>,
    /// The hash of the receipt before this one.
    pub previous: Option<Hash>,
}

/// Why a receipt was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum AttestError {
    /// A level that this gateway does not claim.
    #[error("levels: one cannot be claimed; L0, L1 and L1-NC can")]
    Level(String),
    /// Not one level.
    #[error("levels: name at least one")]
    NoLevel,
    /// A report of another program, or another shape.
    #[error("report: not a report of the protocol's suite; run it with OAP_REPORT=json")]
    NoReport,
    /// A report of another target.
    #[error("report: it is of another target than this gateway")]
    OtherTarget(String),
    /// A result that is missing or failed.
    #[error("report: {level} needs {what}, which failed or did not run")]
    Unmet {
        level: &'static str,
        /// The file or result.
        what: &'static str,
    },
    /// Numbers that have no canonical form.
    #[error("report: {0}")]
    Canonical(String),
}

/// Makes a receipt, valid for ninety days; a candidate for an hour.
///
/// # Errors
/// [`AttestError`]: a level whose probes did not all run and pass is not attested.
pub fn attest(
    attestation: &Attestation<'_>,
    signer: &Signer,
    now: Timestamp,
    random: &dyn Random,
) -> Result<ConformanceReceipt, AttestError> {
    let canonical = |e: JsonError| AttestError::Canonical(e.to_string());
    let mut claimed = Vec::with_capacity(attestation.levels.len());
    for name in attestation.levels {
        match LEVELS.iter().find(|level| level.name == name) {
            Some(level) => claimed.push(level),
            None if name == PROBED && attestation.report.is_none() => {}
            None => return Err(AttestError::Level(name.clone())),
        }
    }
    if attestation.levels.is_empty() {
        return Err(AttestError::NoLevel);
    }
    let none = Summary { total: 0, passed: 0, failed: 0, skipped: None };
    let (results_summary, fixtures_hash, results_hash) = match attestation.report {
        Some(whole) => {
            let report = SuiteReport::read(whole, attestation.target)?;
            for level in &claimed {
                level.met_by(&report)?;
            }
            (report.count(), report.fixtures_hash, Hash::of_canonical(whole).map_err(canonical)?)
        }
        None => (none, Hash::of(b""), Hash::of(b"")),
    };
    let non_commercial = attestation.levels.iter().any(|level| level.ends_with("-NC"));
    let id: [u8; 16] = random::bytes(random);
    let validity = if attestation.report.is_some() { LONGEST } else { CANDIDATE };
    let did = signer.did().clone();
    let mut receipt = ConformanceReceipt {
        receipt_id: format!("urn:oap:conformance:{}", URL_SAFE_NO_PAD.encode(id)),
        kind: ConformanceType::Conformance,
        timestamp: now,
        implementation: Implementation {
            did: did.clone(),
            name: "oap-memory".to_owned(),
            version: attestation.version.to_owned(),
        },
        suite: Suite {
            name: SuiteName::Protocol,
            version: "1.0.0".to_owned(),
            spec_version: "1.0".to_owned(),
        },
        target: Target {
            uri: attestation.target.to_owned(),
            manifest_hash: Some(attestation.manifest.to_string()),
        },
        claimed_levels: attestation.levels.to_vec(),
        profile: if non_commercial { ReceiptProfile::NonCommercial } else { ReceiptProfile::Standard },
        results_summary,
        fixtures_hash,
        results_hash,
        attestor: Some(Attestor { did: Some(did), method: Some("self".to_owned()) }),
        validity: Validity { not_before: now, not_after: now.plus(validity) },
        previous_receipt_hash: Some(
            attestation.previous.map_or_else(|| "genesis".to_owned(), |hash| hash.to_string()),
        ),
        revenue: non_commercial.then(|| Revenue { source: "self-hosted".to_owned() }),
        signatures: Vec::new(),
        peer_witnesses: Vec::new(),
    };
    let bytes = strict::canonical(&receipt).map_err(canonical)?;
    let by = signer.kid().to_string();
    receipt.signatures = vec![Signature { by, alg: ALG.to_owned(), value: signer.sign(&bytes) }];
    Ok(receipt)
}

impl SuiteReport {
    /// Reads a report of a run against a gateway.
    fn read(report: &Value, target: &str) -> Result<Self, AttestError> {
        let report: Self = strict::from_value(report.clone()).map_err(|_| AttestError::NoReport)?;
        if report.target.trim_end_matches('/') != target {
            return Err(AttestError::OtherTarget(report.target));
        }
        Ok(report)
    }

    /// Counted from the results: a summary is not believed.
    fn count(&self) -> Summary {
        let number =
            |of: &dyn Fn(&ProbeResult) -> bool| self.results.iter().filter(|one| of(one)).count() as u64;
        let (total, passed) = (number(&|_| true), number(&|one| one.passed));
        let skipped = Some(number(&|one| !one.applied()));
        Summary { total, passed, failed: total - passed, skipped }
    }
}

impl ProbeResult {
    fn applied(&self) -> bool {
        !self.name.ends_with("-not-applicable")
    }
}

impl Level {
    fn met_by(&self, report: &SuiteReport) -> Result<(), AttestError> {
        for &what in self.files {
            let of = || report.results.iter().filter(move |one| one.file == what);
            let ran = of().any(|one| one.passed && one.applied());
            if !ran || of().any(|one| !one.passed) {
                return Err(AttestError::Unmet { level: self.name, what });
            }
        }
        for &what in self.results {
            if !report.results.iter().any(|one| one.passed && one.name == what) {
                return Err(AttestError::Unmet { level: self.name, what });
            }
        }
        Ok(())
    }
}

/// A receipt that holds: only [`check`] makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conformant {
    /// The levels that it evidences.
    pub levels: Vec<String>,
    /// Until when.
    pub not_after: Timestamp,
    /// How many of its witnesses' signatures were verified.
    pub witnesses: usize,
}

/// Why a receipt is no evidence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// Not a receipt of the schema.
    #[error("not a Conformance Receipt: {0}")]
    Shape(#[from] JsonError),
    /// A list that must not be empty.
    #[error("{0}: missing, or not what the schema says")]
    Member(&'static str),
    /// A placeholder stands for a signature.
    #[error("signatures: a placeholder is no signature (RFC 0019 section 7.3)")]
    Placeholder,
    /// A signature of another, or one that does not verify.
    #[error("signatures: {0}")]
    Signature(#[from] SignatureError),
    /// Before its time.
    #[error("validity: begins at {0}")]
    Early(Timestamp),
    /// After its time.
    #[error("validity: ended at {0}")]
    Late(Timestamp),
    /// Valid for longer than ninety days.
    #[error("validity: longer than ninety days")]
    TooLong,
    /// A candidate, or one of a run that failed.
    #[error("results_summary: {0}")]
    Results(&'static str),
    /// A level with the suffix and the standard profile.
    #[error("profile: a level with the suffix -NC needs the profile non-commercial")]
    Profile,
    /// A witness whose signature does not verify.
    #[error("peer_witnesses: {0}")]
    Witness(#[from] WitnessError),
}

/// Why a signature is none of the implementation's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The receipt names another implementation than the document's.
    #[error("the receipt is of another implementation")]
    OtherImplementation,
    /// What names the key names none.
    #[error("`by` is no key id: {0}")]
    KeyId(#[from] DidError),
    /// A key that the implementation does not have.
    #[error("`by` is no key of the implementation")]
    OtherKey,
    /// Its bytes cannot be read.
    #[error("not base64url")]
    Encoding,
    /// It does not verify.
    #[error(transparent)]
    Signed(SignedError),
}

impl From<SignedError> for SignatureError {
    fn from(error: SignedError) -> Self {
        match error {
            SignedError::OtherKey => Self::OtherKey,
            SignedError::Malformed => Self::Encoding,
            error => Self::Signed(error),
        }
    }
}

/// Why a witness does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WitnessError {
    /// A witness that is named twice, or the implementation itself.
    #[error("{0} counts once, and not for itself")]
    Repeated(Did),
    /// Its keys are not known.
    #[error("no DID document of {0}")]
    NoDocument(Did),
    /// No key of the witness made it.
    #[error("the signature of {0} does not verify")]
    Unverified(Did),
}

/// Checks a receipt against the DID document of the implementation that it names, and those of its witnesses.
///
/// # Errors
/// [`ReceiptError`], the first that applies. Every signature must be the implementation's and hold.
pub fn check(
    receipt: &Value,
    document: &DidDocument,
    witnesses: &[DidDocument],
    now: Timestamp,
) -> Result<Conformant, ReceiptError> {
    let read: ConformanceReceipt = strict::from_value(receipt.clone())?;
    if read.implementation.did != *document.id() {
        return Err(SignatureError::OtherImplementation.into());
    }
    let mut unsigned = receipt.clone();
    let members = unsigned.as_object_mut().ok_or(ReceiptError::Member("/"))?;
    members.remove("peer_witnesses");
    // A witness signs what the implementation signed, and its signatures with it.
    let witnessed = strict::canonical(&*members)?;
    members.remove("signatures");
    let bytes = strict::canonical(&*members)?;
    if read.signatures.is_empty() {
        return Err(ReceiptError::Member("/signatures"));
    }
    for signature in &read.signatures {
        verify(document, signature, &bytes, read.timestamp)?;
    }
    let Validity { not_before, not_after } = read.validity;
    if not_before.plus(LONGEST) < not_after {
        return Err(ReceiptError::TooLong);
    }
    if now < not_before {
        return Err(ReceiptError::Early(not_before));
    }
    if now >= not_after {
        return Err(ReceiptError::Late(not_after));
    }
    let Summary { total, passed, failed, .. } = read.results_summary;
    if total == 0 {
        return Err(ReceiptError::Results("a candidate has none: it is no evidence"));
    }
    if passed.checked_add(failed) != Some(total) {
        return Err(ReceiptError::Results("the numbers do not add up"));
    }
    let levels = read.claimed_levels;
    if levels.is_empty() {
        return Err(ReceiptError::Member("/claimed_levels"));
    }
    let non_commercial = read.profile == ReceiptProfile::NonCommercial;
    if levels.iter().any(|level| level.ends_with("-NC")) && !non_commercial {
        return Err(ReceiptError::Profile);
    }
    let mut seen = BTreeSet::new();
    for peer in &read.peer_witnesses {
        let did = &peer.witness_did;
        if did == document.id() || !seen.insert(did) {
            return Err(WitnessError::Repeated(did.clone()).into());
        }
        let witness = witnesses.iter().find(|witness| witness.id() == did);
        let witness = witness.ok_or_else(|| WitnessError::NoDocument(did.clone()))?;
        let held = witness.keys().iter().any(|key| {
            let (by, alg, value) = (key.kid().clone(), peer.alg.clone(), peer.signature.clone());
            ReceiptSignature { by, alg, value }.verify(&witnessed, witness, peer.witnessed_at).is_ok()
        });
        if !held {
            return Err(WitnessError::Unverified(did.clone()).into());
        }
    }
    Ok(Conformant { levels, not_after, witnesses: seen.len() })
}

/// Checks a signature of the implementation's.
fn verify(
    document: &DidDocument,
    signature: &Signature,
    bytes: &[u8],
    at: Timestamp,
) -> Result<(), ReceiptError> {
    let Signature { by, alg, value } = signature.clone();
    if PLACEHOLDERS.iter().any(|placeholder| value.starts_with(placeholder)) {
        return Err(ReceiptError::Placeholder);
    }
    let by: Kid = by.parse().map_err(SignatureError::KeyId)?;
    let signature = ReceiptSignature { by, alg, value };
    signature.verify(bytes, document, at).map_err(SignatureError::from)?;
    Ok(())
}

/// Adds a witness's signature: one who checked the receipt, and ran the suite against the gateway (RFC 0019 section 7.1).
///
/// # Errors
/// [`ReceiptError::Shape`] for what is no receipt.
pub fn witness(
    receipt: &mut Value,
    signer: &Signer,
    receipt_uri: &str,
    now: Timestamp,
) -> Result<(), ReceiptError> {
    strict::from_value::<ConformanceReceipt>(receipt.clone())?;
    let mut body = receipt.clone();
    body.as_object_mut().ok_or(ReceiptError::Member("/"))?.remove("peer_witnesses");
    let bytes = strict::canonical(&body)?;
    let signed = json!({
        "witness_did": signer.did(), "witness_receipt_uri": receipt_uri, "alg": ALG,
        "signature": signer.sign(&bytes), "witnessed_at": now,
    });
    match &mut receipt["peer_witnesses"] {
        Value::Array(peers) => peers.push(signed),
        none => *none = json!([signed]),
    }
    Ok(())
}

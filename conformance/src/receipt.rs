//! Conformance Receipts (RFC 0019 section 7, `oap-conformance-receipt.schema.json`): signed from a report of the
//! protocol's own suite, and checked.
//!
//! The suite decides by the receipt that a target publishes which of its adversarial probes apply. So a first run needs a
//! *candidate*: a receipt of no results, valid for an hour, that [`check`] never takes for evidence.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::{DidDocument, Hash, Kid, Random, Signer, Timestamp, json as strict, random};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Longest validity (RFC 0019 section 7.2, OAP-CORE 31).
pub const LONGEST: Duration = Duration::from_secs(90 * 86_400);
/// Validity of a candidate.
pub const CANDIDATE: Duration = Duration::from_secs(3_600);

const SUITE: &str = "oap-conformance-test-suite";
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
        /// The level.
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
) -> Result<Value, AttestError> {
    let canonical = |e: strict::JsonError| AttestError::Canonical(e.to_string());
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
    let (summary, fixtures, results) = match attestation.report {
        Some(report) => {
            read(report, attestation.target)?;
            for level in &claimed {
                level.met_by(report)?;
            }
            (count(report), report["fixtures_hash"].clone(), Hash::of_canonical(report).map_err(canonical)?)
        }
        None => (json!({"total": 0, "passed": 0, "failed": 0}), json!(Hash::of(b"")), Hash::of(b"")),
    };
    let non_commercial = attestation.levels.iter().any(|level| level.ends_with("-NC"));
    let id: [u8; 16] = random::bytes(random);
    let validity = if attestation.report.is_some() { LONGEST } else { CANDIDATE };
    let mut receipt = json!({
        "receipt_id": format!("urn:oap:conformance:{}", URL_SAFE_NO_PAD.encode(id)),
        "type": "conformance",
        "timestamp": now,
        "implementation": {"did": signer.did(), "name": "oap-memory", "version": attestation.version},
        "suite": {"name": SUITE, "version": "1.0.0", "spec_version": "1.0"},
        "target": {"uri": attestation.target, "manifest_hash": attestation.manifest},
        "claimed_levels": attestation.levels,
        "profile": if non_commercial { "non-commercial" } else { "standard" },
        "results_summary": summary,
        "fixtures_hash": fixtures,
        "results_hash": results,
        "attestor": {"did": signer.did(), "method": "self"},
        "validity": {"not_before": now, "not_after": now.plus(validity)},
        "previous_receipt_hash":
            attestation.previous.map_or_else(|| "genesis".to_owned(), |hash| hash.to_string()),
    });
    if non_commercial {
        receipt["revenue"] = json!({"source": "self-hosted"});
    }
    let bytes = strict::canonical(&receipt).map_err(canonical)?;
    let signature = json!({"by": signer.kid(), "alg": "EdDSA", "value": signer.sign(&bytes)});
    receipt["signatures"] = json!([signature]);
    Ok(receipt)
}

fn read(report: &Value, target: &str) -> Result<(), AttestError> {
    let hash = report["fixtures_hash"].as_str().and_then(|hash| hash.parse::<Hash>().ok());
    if report["suite"] != SUITE || hash.is_none() || !report["results"].is_array() {
        return Err(AttestError::NoReport);
    }
    let of = report["target"].as_str().unwrap_or_default();
    if of.trim_end_matches('/') == target { Ok(()) } else { Err(AttestError::OtherTarget(of.to_owned())) }
}

fn results(report: &Value) -> impl Iterator<Item = (&str, &str, bool)> {
    report["results"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(|result| {
        let text = |member: &str| result[member].as_str().unwrap_or_default();
        (text("name"), text("file"), result["passed"] == true)
    })
}

/// Counted from the results: a summary is not believed.
fn count(report: &Value) -> Value {
    let total = results(report).count();
    let passed = results(report).filter(|(.., passed)| *passed).count();
    let skipped = results(report).filter(|(name, ..)| name.ends_with("-not-applicable")).count();
    json!({"total": total, "passed": passed, "failed": total - passed, "skipped": skipped})
}

impl Level {
    fn met_by(&self, report: &Value) -> Result<(), AttestError> {
        for &what in self.files {
            let of = || results(report).filter(move |(_, file, _)| *file == what);
            let ran = of().any(|(name, _, passed)| passed && !name.ends_with("-not-applicable"));
            if !ran || of().any(|(.., passed)| !passed) {
                return Err(AttestError::Unmet { level: self.name, what });
            }
        }
        for &what in self.results {
            if !results(report).any(|(name, _, passed)| passed && name == what) {
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
    /// A member that is missing or of another shape.
    #[error("{0}: missing, or not what the schema says")]
    Member(&'static str),
    /// A placeholder stands for a signature.
    #[error("signatures: a placeholder is no signature (RFC 0019 section 7.3)")]
    Placeholder,
    /// A signature of another, or one that does not verify.
    #[error("signatures: {0}")]
    Signature(String),
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
    Witness(String),
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
    let text = |pointer: &'static str| {
        receipt.pointer(pointer).and_then(Value::as_str).ok_or(ReceiptError::Member(pointer))
    };
    let time = |pointer: &'static str| -> Result<Timestamp, ReceiptError> {
        text(pointer)?.parse().map_err(|_| ReceiptError::Member(pointer))
    };
    if text("/type")? != "conformance" || text("/suite/name")? != SUITE {
        return Err(ReceiptError::Member("/type"));
    }
    if text("/implementation/did")? != document.id().as_str() {
        return Err(ReceiptError::Signature("the receipt is of another implementation".to_owned()));
    }
    for pointer in ["/fixtures_hash", "/results_hash"] {
        text(pointer)?.parse::<Hash>().map_err(|_| ReceiptError::Member(pointer))?;
    }
    let made = time("/timestamp")?;
    let mut unsigned = receipt.clone();
    let members = unsigned.as_object_mut().ok_or(ReceiptError::Member("/"))?;
    let peers = members.remove("peer_witnesses");
    // A witness signs what the implementation signed, and its signatures with it.
    let witnessed = strict::canonical(&*members).map_err(|_| ReceiptError::Member("/"))?;
    let signatures = members.remove("signatures");
    let bytes = strict::canonical(&*members).map_err(|_| ReceiptError::Member("/"))?;
    let signatures = signatures.as_ref().and_then(Value::as_array).filter(|all| !all.is_empty());
    for signature in signatures.ok_or(ReceiptError::Member("/signatures"))? {
        let kid = signature["by"].as_str().unwrap_or_default();
        verify(document, kid, &signature["alg"], &signature["value"], &bytes, made)?;
    }
    let (from, to) = (time("/validity/not_before")?, time("/validity/not_after")?);
    if from.plus(LONGEST) < to {
        return Err(ReceiptError::TooLong);
    }
    if now < from {
        return Err(ReceiptError::Early(from));
    }
    if now >= to {
        return Err(ReceiptError::Late(to));
    }
    let number = |member: &str| receipt["results_summary"][member].as_u64();
    match (number("total"), number("passed"), number("failed")) {
        (Some(0), ..) => return Err(ReceiptError::Results("a candidate has none: it is no evidence")),
        (Some(total), Some(passed), Some(failed)) if passed.checked_add(failed) == Some(total) => {}
        _ => return Err(ReceiptError::Results("the numbers do not add up")),
    }
    let levels: Option<Vec<String>> = receipt["claimed_levels"]
        .as_array()
        .and_then(|all| all.iter().map(|level| level.as_str().map(str::to_owned)).collect());
    let levels = levels.filter(|all| !all.is_empty()).ok_or(ReceiptError::Member("/claimed_levels"))?;
    if levels.iter().any(|level| level.ends_with("-NC")) && receipt["profile"] != "non-commercial" {
        return Err(ReceiptError::Profile);
    }
    let peers = match peers {
        None => Vec::new(),
        Some(Value::Array(peers)) => peers,
        Some(_) => return Err(ReceiptError::Member("/peer_witnesses")),
    };
    let mut seen = std::collections::BTreeSet::new();
    for peer in &peers {
        let did = peer["witness_did"].as_str().unwrap_or_default();
        if did == document.id().as_str() || !seen.insert(did) {
            return Err(ReceiptError::Witness(format!("{did} counts once, and not for itself")));
        }
        let witness = witnesses.iter().find(|witness| witness.id().as_str() == did);
        let witness = witness.ok_or_else(|| ReceiptError::Witness(format!("no DID document of {did}")))?;
        let at = peer["witnessed_at"].as_str().and_then(|at| at.parse().ok());
        let at = at.ok_or_else(|| ReceiptError::Witness(format!("{did}: witnessed_at is no time")))?;
        let held = witness.keys().iter().any(|key| {
            verify(witness, &key.kid().to_string(), &peer["alg"], &peer["signature"], &witnessed, at).is_ok()
        });
        if !held {
            return Err(ReceiptError::Witness(format!("the signature of {did} does not verify")));
        }
    }
    Ok(Conformant { levels, not_after: to, witnesses: peers.len() })
}

fn verify(
    document: &DidDocument,
    kid: &str,
    algorithm: &Value,
    value: &Value,
    bytes: &[u8],
    at: Timestamp,
) -> Result<(), ReceiptError> {
    let value = value.as_str().unwrap_or_default();
    if PLACEHOLDERS.iter().any(|placeholder| value.starts_with(placeholder)) {
        return Err(ReceiptError::Placeholder);
    }
    let refused = |why: &str| ReceiptError::Signature(why.to_owned());
    if algorithm != "EdDSA" {
        return Err(refused("only EdDSA is verified here"));
    }
    let kid: Kid = kid.parse().map_err(|_| refused("`by` is no key id"))?;
    let key = document.key(&kid).ok_or_else(|| refused("`by` is no key of the implementation"))?;
    let signature = URL_SAFE_NO_PAD.decode(value).map_err(|_| refused("not base64url"))?;
    key.verify(bytes, &signature, at).map_err(|e| ReceiptError::Signature(e.to_string()))
}

/// Adds a witness's signature: one who checked the receipt, and ran the suite against the gateway (RFC 0019 section 7.1).
///
/// # Errors
/// [`ReceiptError::Member`] for what is no receipt.
pub fn witness(
    receipt: &mut Value,
    signer: &Signer,
    receipt_uri: &str,
    now: Timestamp,
) -> Result<(), ReceiptError> {
    let mut body = receipt.clone();
    body.as_object_mut().ok_or(ReceiptError::Member("/"))?.remove("peer_witnesses");
    let bytes = strict::canonical(&body).map_err(|_| ReceiptError::Member("/"))?;
    let signed = json!({
        "witness_did": signer.did(), "witness_receipt_uri": receipt_uri, "alg": "EdDSA",
        "signature": signer.sign(&bytes), "witnessed_at": now,
    });
    match &mut receipt["peer_witnesses"] {
        Value::Array(peers) => peers.push(signed),
        none => *none = json!([signed]),
    }
    Ok(())
}

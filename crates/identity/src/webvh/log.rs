//! The log, `did.jsonl`: read from its first entry to its last, each checked before the next one is looked at.

use super::history::{History, Version};
use super::parameters::{Given, Parameters, Witnesses};
use super::{LogError, MAX_ENTRIES, MAX_LOG, MAX_PROOFS, multihash, proof, witness};
use crate::did::Did;
use crate::document::DidDocument;
use crate::json;
use crate::time::{MAX_SKEW, Timestamp};
use serde::Deserialize;
use serde_json::Value;

/// What stands for the SCID where the SCID is computed.
const PLACEHOLDER: &str = "{SCID}";

/// An entry as it came.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(rename = "versionId")]
    id: String,
    #[serde(rename = "versionTime")]
    time: String,
    parameters: Value,
    state: Value,
    proof: Vec<Value>,
}

/// A log whose entries hold, each behind the one before it. What witnesses say of it is not looked at yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    did: Did,
    versions: Vec<Version>,
    /// Who must approve of each version.
    witnesses: Vec<Option<Witnesses>>,
    deactivated: bool,
}

impl Log {
    /// Reads and checks the log that was fetched for a DID: SCID, hashes, times, proofs, promised keys, documents.
    ///
    /// # Errors
    /// [`LogError`], with the number of the first entry that does not hold. Then nothing of the log counts.
    pub fn read(bytes: &[u8], asked: &Did, now: Timestamp) -> Result<Self, LogError> {
        if bytes.len() > MAX_LOG {
            return Err(LogError::TooLong);
        }
        let scid = asked.scid().ok_or(LogError::OtherDid)?;
        let mut log =
            Self { did: asked.clone(), versions: Vec::new(), witnesses: Vec::new(), deactivated: false };
        let mut parameters = Parameters::default();
        for line in bytes.split(|c| *c == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            if log.versions.len() == MAX_ENTRIES {
                return Err(LogError::Entries);
            }
            parameters = log.next(line, scid, &parameters, now)?;
        }
        let last = log.versions.last().ok_or(LogError::Entries)?;
        if last.did != *asked {
            return Err(LogError::OtherDid);
        }
        log.deactivated = parameters.deactivated;
        Ok(log)
    }

    /// Checks the next entry; the parameters behind it.
    fn next(
        &mut self,
        line: &[u8],
        scid: &str,
        before: &Parameters,
        now: Timestamp,
    ) -> Result<Parameters, LogError> {
        let number = self.versions.len() + 1;
        let json = |e| LogError::Json(number, e);
        let mut document = json::parse(line).map_err(json)?;
        let entry: Entry = json::from_value(document.clone()).map_err(json)?;
        if let Some(members) = document.as_object_mut() {
            members.remove("proof");
        }
        let given = Given::read(&entry.parameters, number)?;
        if number == 1 && given.scid.as_deref() != Some(scid) {
            return Err(LogError::Scid);
        }
        let step = before.step(given, number)?;
        let last = self.versions.last();
        self.check_hash(document.clone(), &entry.id, scid)?;
        if !(1..=MAX_PROOFS).contains(&entry.proof.len()) {
            return Err(LogError::Proofs(number));
        }
        for given in &entry.proof {
            let named = proof::named_key(given).ok_or(LogError::Proof(number))?;
            if !step.authorized.iter().any(|key| key == named) {
                return Err(LogError::NotAuthorized(number));
            }
            proof::verify(given, &document).ok_or(LogError::Proof(number))?;
        }
        // With `+00:00` for `Z`, too; whatever is not UTC is refused.
        let time = entry.time.strip_suffix("+00:00").map_or(entry.time.clone(), |time| format!("{time}Z"));
        let time: Timestamp = time.parse().map_err(|_| LogError::Time(number))?;
        if time > now.plus(MAX_SKEW) || last.is_some_and(|last| time <= last.time) {
            return Err(LogError::Time(number));
        }
        let did = entry.state["id"].as_str().and_then(|id| id.parse::<Did>().ok());
        let did = did.filter(|did| did.scid() == Some(scid)).ok_or(LogError::State(number))?;
        if let Some(last) = last.filter(|last| last.did != did) {
            let also = entry.state["alsoKnownAs"].as_array();
            let names = also.is_some_and(|also| also.iter().any(|name| *name == last.did.as_str()));
            if !(step.parameters.portable && names) {
                return Err(LogError::State(number));
            }
        }
        let state =
            DidDocument::of_value(&entry.state, &did).map_err(|e| LogError::Document(number, Box::new(e)))?;
        self.versions.push(Version { id: entry.id, time, did, state });
        self.witnesses.push(step.witness);
        Ok(step.parameters)
    }

    /// Checks the version's id: its number, and the hash of the entry with the id of the version before it (of the first: the SCID), which
    /// for the first one gives the SCID as well.
    fn check_hash(&self, mut entry: Value, id: &str, scid: &str) -> Result<(), LogError> {
        let number = self.versions.len() + 1;
        let json = |e| LogError::Json(number, e);
        let hash = id.strip_prefix(&format!("{number}-")).filter(|hash| is_hash(hash));
        let hash = hash.ok_or(LogError::VersionId(number))?;
        let before = self.versions.last().map_or(scid, |last| last.id.as_str());
        entry["versionId"] = before.into();
        if multihash(&json::canonical(&entry).map_err(json)?) != hash {
            return Err(LogError::Hash(number));
        }
        if number == 1 {
            let text = json::canonical_text(&entry).map_err(json)?;
            // With the placeholder itself in it, two entries would have one SCID.
            if text.contains(PLACEHOLDER) {
                return Err(LogError::Scid);
            }
            let text = text.replace(scid, PLACEHOLDER);
            let preliminary = json::parse(text.as_bytes()).map_err(json)?;
            if multihash(&json::canonical(&preliminary).map_err(json)?) != scid {
                return Err(LogError::Scid);
            }
        }
        Ok(())
    }

    /// Whether witnesses must have approved of it: then their list is needed.
    #[must_use]
    pub fn is_witnessed(&self) -> bool {
        self.witnesses.iter().any(Option::is_some)
    }

    /// The history that it proves. `witnesses` is `did-witness.json`, where there is one.
    ///
    /// # Errors
    /// [`LogError::WitnessFile`], [`LogError::Witnesses`].
    pub fn proven(self, witnesses: Option<&[u8]>) -> Result<History, LogError> {
        if self.is_witnessed() {
            let asked = self.witnesses.iter().map(Option::as_ref);
            let versions: Vec<_> =
                self.versions.iter().map(|version| version.id.as_str()).zip(asked).collect();
            witness::verify(witnesses.ok_or(LogError::WitnessFile)?, &versions)?;
        }
        Ok(History::new(self.did, self.versions, self.deactivated))
    }
}

/// A hash in the one form of 1.0: 46 letters and digits of base58btc that begin with `Qm`.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    let is_base58 = |c: u8| c.is_ascii_alphanumeric() && !matches!(c, b'0' | b'O' | b'I' | b'l');
    text.len() == 46 && text.starts_with("Qm") && text.bytes().all(is_base58)
}

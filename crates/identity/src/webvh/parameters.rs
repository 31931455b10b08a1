//! What an entry of a log says of itself and of those that follow: who may sign, who must witness, whether the DID may move or is over.

use super::{LogError, MAX_UPDATE_KEYS, MAX_WITNESSES, multihash};
use crate::document::multibase_key;
use crate::json;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The one version of the method that is read.
pub const METHOD: &str = "did:webvh:1.0";

/// The parameters as an entry has them; what is absent stays as it was.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Given {
    method: Option<String>,
    pub(super) scid: Option<String>,
    update_keys: Option<Vec<String>>,
    next_key_hashes: Option<Vec<String>>,
    witness: Option<GivenWitness>,
    #[serde(rename = "watchers")]
    _watchers: Option<Vec<String>>,
    portable: Option<bool>,
    deactivated: Option<bool>,
    #[serde(rename = "ttl")]
    _ttl: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenWitness {
    threshold: Option<usize>,
    witnesses: Option<Vec<GivenWitnessId>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenWitnessId {
    id: String,
}

/// Who must approve of an entry: so many of these keys, in multibase form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witnesses {
    /// How many of them, at least one and at most all.
    pub threshold: usize,
    /// Ed25519 keys.
    pub keys: BTreeSet<String>,
}

/// The parameters that are in force behind an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The keys that may sign, in multibase form.
    pub(super) update_keys: Vec<String>,
    /// The hashes of the keys that may sign the next entry; empty where nothing was promised.
    pub(super) next_key_hashes: Vec<String>,
    pub(super) witness: Option<Witnesses>,
    pub(super) portable: bool,
    pub(super) deactivated: bool,
}

/// What an entry changes: the parameters behind it, who may sign it, and who must witness it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) parameters: Parameters,
    pub(super) authorized: Vec<String>,
    pub(super) witness: Option<Witnesses>,
}

impl Given {
    pub(super) fn read(value: &Value, number: usize) -> Result<Self, LogError> {
        // Absence means that what was said before stays. `null` would be read as absence, and was once written for "none".
        let has_null =
            |value: &Value| value.as_object().into_iter().flatten().any(|(_, value)| value.is_null());
        if has_null(value) || value.get("witness").is_some_and(has_null) {
            return Err(LogError::Parameter(number, "*"));
        }
        json::from_value(value.clone()).map_err(|e| LogError::Json(number, e))
    }
}

impl Parameters {
    /// Goes on with what the entry of a number says, which is checked against what was in force before it.
    pub(super) fn step(&self, given: Given, number: usize) -> Result<Step, LogError> {
        let wrong = |name| Err(LogError::Parameter(number, name));
        let is_first = number == 1;
        if self.deactivated {
            return Err(LogError::Over(number));
        }
        if given.method.as_deref().map_or(is_first, |method| method != METHOD) {
            return wrong("method");
        }
        if given.scid.is_some() != is_first {
            return wrong("scid");
        }
        if !is_first && given.portable == Some(true) {
            return wrong("portable");
        }
        let is_short =
            |list: &Option<Vec<String>>| list.as_ref().is_none_or(|list| list.len() <= MAX_UPDATE_KEYS);
        if !is_short(&given.update_keys) || is_first && given.update_keys.is_none() {
            return wrong("updateKeys");
        }
        if !is_short(&given.next_key_hashes) {
            return wrong("nextKeyHashes");
        }
        let was_promised = !self.next_key_hashes.is_empty();
        if was_promised {
            // Nothing is inherited where the next keys were promised: whoever has the former ones alone must not go on.
            let Some(keys) = &given.update_keys else { return wrong("updateKeys") };
            if given.next_key_hashes.is_none() {
                return wrong("nextKeyHashes");
            }
            if !keys.iter().all(|key| self.next_key_hashes.contains(&multihash(key.as_bytes()))) {
                return wrong("updateKeys");
            }
        }
        let mut now = self.clone();
        if let Some(keys) = given.update_keys {
            now.update_keys = keys;
        }
        if let Some(hashes) = given.next_key_hashes {
            now.next_key_hashes = hashes;
        }
        if let Some(witness) = given.witness {
            now.witness = witness.read(number)?;
        }
        now.portable = given.portable.unwrap_or(self.portable);
        now.deactivated = given.deactivated.unwrap_or(false);
        // Keys that are named here sign here only where they were promised, or nothing was before.
        let signs = if is_first || was_promised { &now } else { self };
        let authorized = signs.update_keys.clone();
        // Witnesses that are replaced must approve of that; the first ones of their own beginning.
        let witness = self.witness.clone().or_else(|| now.witness.clone());
        Ok(Step { parameters: now, authorized, witness })
    }
}

impl GivenWitness {
    fn read(self, number: usize) -> Result<Option<Witnesses>, LogError> {
        let wrong = LogError::Parameter(number, "witness");
        let (threshold, listed) = match (self.threshold, self.witnesses) {
            (None, None) => return Ok(None),
            (Some(threshold), Some(listed)) => (threshold, listed),
            _ => return Err(wrong),
        };
        if listed.len() > MAX_WITNESSES {
            return Err(wrong);
        }
        let mut keys = BTreeSet::new();
        for GivenWitnessId { id } in listed {
            let key = id.strip_prefix("did:key:").filter(|key| multibase_key(key).is_some());
            if !key.is_some_and(|key| keys.insert(key.to_owned())) {
                return Err(wrong);
            }
        }
        if !(1..=keys.len()).contains(&threshold) {
            return Err(wrong);
        }
        Ok(Some(Witnesses { threshold, keys }))
    }
}

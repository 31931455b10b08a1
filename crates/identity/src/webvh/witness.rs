//! The proofs of witnesses, `did-witness.json`: each is over the id of a version, and stands for all versions before it.

use super::parameters::Witnesses;
use super::{LogError, MAX_WITNESS_FILE, MAX_WITNESS_PROOFS, proof};
use crate::json;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
struct Approved {
    #[serde(rename = "versionId")]
    version: String,
    #[serde(default)]
    proof: Vec<Value>,
}

/// Checks that enough witnesses approved of each version that must be witnessed. `versions` are the ids of all versions, the first one first, each with
/// those who must approve of it.
///
/// What is of no version of this log proves nothing: one of another DID's or one that is to come. A proof that does not hold is passed over.
///
/// # Errors
/// [`LogError::WitnessFile`], [`LogError::Witnesses`].
pub fn verify(file: &[u8], versions: &[(&str, Option<&Witnesses>)]) -> Result<(), LogError> {
    let wrong = |_| LogError::WitnessFile;
    if file.len() > MAX_WITNESS_FILE {
        return Err(LogError::WitnessFile);
    }
    let listed: Vec<Approved> = json::parse(file).and_then(json::from_value).map_err(wrong)?;
    if listed.iter().map(|one| one.proof.len()).sum::<usize>() > MAX_WITNESS_PROOFS {
        return Err(LogError::WitnessFile);
    }
    let asked: BTreeSet<&str> = versions
        .iter()
        .filter_map(|(_, witnesses)| *witnesses)
        .flat_map(|w| w.keys.iter().map(String::as_str))
        .collect();
    // The last version that each approved of.
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &listed {
        let Some(place) = versions.iter().position(|(id, _)| *id == one.version) else { continue };
        let approved = json!({"versionId": one.version});
        for given in &one.proof {
            // Nobody's signature is checked who is not asked for.
            if !proof::named_key(given).is_some_and(|key| asked.contains(key)) {
                continue;
            }
            if let Some(key) = proof::verify(given, &approved) {
                let known = last.entry(key).or_insert(place);
                *known = place.max(*known);
            }
        }
    }
    for (place, (_, witnesses)) in versions.iter().enumerate() {
        let Some(witnesses) = witnesses else { continue };
        let count = witnesses
            .keys
            .iter()
            .filter(|key| last.get(key.as_str()).is_some_and(|last| *last >= place))
            .count();
        if count < witnesses.threshold {
            return Err(LogError::Witnesses(place + 1));
        }
    }
    Ok(())
}

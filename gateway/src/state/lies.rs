//! What other gateways said that is not so, for the owner: durable, and bounded so that a liar hides nobody's lies but its own.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::LIES;
use oap_federation::verdict::Lie;
use oap_identity::ids::IncidentId;
use oap_identity::{Did, Hash, Timestamp};
use oap_store::Range;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Incidents with other gateways that are kept; beyond it the oldest goes of whoever has the most.
pub const MAX_LIES: usize = 200;
/// Those of one gateway; beyond it its oldest goes.
pub const MAX_LIES_OF_PEER: usize = 20;
/// How much of an answer is kept as evidence, in bytes.
pub const MAX_EVIDENCE: usize = 1024;
/// How much is kept of why it does not hold, in bytes.
pub const MAX_SAYS: usize = 512;

/// What a gateway said that is not so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerIncident {
    pub(crate) peer: Did,
    /// Under which grant it was asked.
    pub(crate) grant: Hash,
    pub(crate) lie: Lie,
    /// The check that failed, by its stable name, where it is one of the evidence.
    pub(crate) check: Option<String>,
    /// Why it does not hold.
    pub(crate) says: String,
    /// The answer, where one came.
    pub(crate) answer: Option<AnswerEvidence>,
}

/// What is kept of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnswerEvidence {
    pub(crate) hash: Hash,
    pub(crate) bytes: u64,
    /// Its first bytes.
    pub(crate) beginning: Vec<u8>,
}

impl AnswerEvidence {
    /// What is kept of these bytes; none of nothing.
    pub(crate) fn of(answer: &[u8]) -> Option<Self> {
        let beginning = answer.get(..MAX_EVIDENCE).unwrap_or(answer).to_vec();
        let bytes = u64::try_from(answer.len()).unwrap_or(u64::MAX);
        (!answer.is_empty()).then(|| Self { hash: Hash::of(answer), bytes, beginning })
    }
}

/// An incident, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredLie {
    pub(crate) at: Timestamp,
    /// When the same came last.
    pub(crate) last_at: Timestamp,
    /// How often the same came.
    pub(crate) times: u32,
    pub(crate) peer: Did,
    pub(crate) grant: Hash,
    pub(crate) lie: Lie,
    pub(crate) check: Option<String>,
    pub(crate) says: String,
    pub(crate) answer: Option<AnswerEvidence>,
}

impl StoredLie {
    fn is_same(&self, incident: &PeerIncident) -> bool {
        let hash = |answer: &Option<AnswerEvidence>| answer.as_ref().map(|evidence| evidence.hash);
        (&self.peer, self.grant, self.lie, &self.check)
            == (&incident.peer, incident.grant, incident.lie, &incident.check)
            && hash(&self.answer) == hash(&incident.answer)
    }
}

/// Writes down what was not so.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn note(w: &mut Writing<'_, '_>, incidents: Vec<PeerIncident>) -> Result<(), Error> {
    let mut keys: BTreeSet<IncidentId> =
        LIES.keys(&w.gateway.store, Range::all()).collect::<Result<_, _>>()?;
    // Those of earlier transactions of the batch.
    keys.extend(LIES.written(w.tx));
    let mut known: BTreeMap<IncidentId, StoredLie> = BTreeMap::new();
    for key in keys {
        if let Some(lie) = LIES.get(w.tx, &key)? {
            known.insert(key, lie);
        }
    }
    for incident in incidents {
        if let Some((id, lie)) = known.iter_mut().find(|(_, lie)| lie.is_same(&incident)) {
            lie.times = lie.times.saturating_add(1);
            lie.last_at = w.now;
            LIES.put(w.tx, id, lie)?;
            continue;
        }
        while let Some(oldest) = in_the_way(&known, &incident.peer) {
            known.remove(&oldest);
            LIES.delete(w.tx, &oldest);
        }
        let PeerIncident { peer, grant, lie, check, says, answer } = incident;
        let says = says.chars().scan(0, |bytes, c| {
            *bytes += c.len_utf8();
            (*bytes <= MAX_SAYS).then_some(c)
        });
        let says = says.collect();
        let lie = StoredLie { at: w.now, last_at: w.now, times: 1, peer, grant, lie, check, says, answer };
        let id = IncidentId::new(w.now, &*w.gateway.random);
        LIES.put(w.tx, &id, &lie)?;
        known.insert(id, lie);
    }
    Ok(())
}

/// The incident that goes before one more of a peer is kept, if one has to.
fn in_the_way(known: &BTreeMap<IncidentId, StoredLie>, peer: &Did) -> Option<IncidentId> {
    let mut of: BTreeMap<&Did, Vec<IncidentId>> = BTreeMap::new();
    known.iter().for_each(|(id, lie)| of.entry(&lie.peer).or_default().push(*id));
    let first = |ids: &Vec<IncidentId>| ids.first().copied();
    match of.get(peer) {
        Some(ids) if ids.len() >= MAX_LIES_OF_PEER => first(ids),
        _ if known.len() >= MAX_LIES => of.values().max_by_key(|ids| ids.len()).and_then(first),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lie(peer: &str) -> StoredLie {
        let at = Timestamp::from_millis(0);
        let (peer, grant) = (peer.parse().unwrap(), Hash::of(b"grant"));
        StoredLie {
            at,
            last_at: at,
            times: 1,
            peer,
            grant,
            lie: Lie::Proof,
            check: None,
            says: String::new(),
            answer: None,
        }
    }

    fn id(number: usize) -> IncidentId {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&(number as u64).to_be_bytes());
        IncidentId::from_bytes(bytes)
    }

    /// Whoever lies often takes the place of its own lies alone, and where there is no room at all that of whoever lies most.
    #[test]
    fn a_liar_hides_its_own_lies_alone() {
        let (liar, other): (Did, Did) =
            ("did:web:liar.example".parse().unwrap(), "did:web:other.example".parse().unwrap());
        let mut known = BTreeMap::from([(id(0), lie(other.as_str()))]);
        known.extend((1..=MAX_LIES_OF_PEER).map(|number| (id(number), lie(liar.as_str()))));
        assert_eq!(in_the_way(&known, &liar), Some(id(1)));
        assert_eq!(in_the_way(&known, &other), None);
        known.extend(
            (known.len()..MAX_LIES)
                .map(|number| (id(number), lie(&format!("did:web:p{}.example", number / 10)))),
        );
        assert_eq!(known.len(), MAX_LIES);
        assert_eq!(in_the_way(&known, &other), Some(id(1)));
    }

    #[test]
    fn the_evidence_has_a_bound() {
        let evidence = AnswerEvidence::of(&vec![b'x'; 10 * MAX_EVIDENCE]).unwrap();
        assert_eq!((evidence.beginning.len(), evidence.bytes), (MAX_EVIDENCE, 10 * MAX_EVIDENCE as u64));
        assert_eq!(AnswerEvidence::of(b""), None);
    }
}

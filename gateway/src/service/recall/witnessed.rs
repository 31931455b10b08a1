//! Whether the log of a peer has as many signatures of witnesses as the owner demands (protocol section 16.4).

use super::Grant;
use super::asking::OwnKey;
use crate::error::Error;
use crate::service::witnesses::pinned;
use crate::state::commits::Writing;
use crate::state::gateway::Gateway;
use crate::state::lies::AnswerEvidence;
use crate::state::remotes::Session;
use crate::state::schema::{DEMANDS, OWED, PEERS, WALLET};
use crate::state::witnessing::{Demand, Owed};
use data_encoding::HEXLOWER;
use oap_client::ClientError;
use oap_client::grantee::witnessed::Signed;
use oap_federation::verdict::{Lie, Verdict, Why};
use oap_identity::outgoing::{Allowance, StatusCode};
use oap_identity::{DidDocument, Timestamp, random};
use oap_memory::log::checkpoint::{cosigned_at, witnesses};
use oap_memory::log::inclusion::{InclusionError, Known};
use oap_memory::log::merkle;
use oap_memory::log::note::MAX_NOTE;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// What a witness may answer to who asks what it signed last.
const MONITORED: Allowance = Allowance { bytes: MAX_NOTE, time: Duration::from_secs(5) };

/// Why an answer that is proved is not believed all the same.
pub(super) struct Unwitnessed {
    pub(super) verdict: Verdict,
    pub(super) says: String,
    /// What its key signed.
    pub(super) evidence: Option<AnswerEvidence>,
}

impl Unwitnessed {
    /// Nobody can say whether others are shown the same.
    fn unsigned(says: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unreachable(Why::Unwitnessed), says: says.into(), evidence: None }
    }

    /// Others are shown another history, or what it promised is not in the one that it shows.
    fn history(says: impl Into<String>, evidence: &str) -> Self {
        let evidence = AnswerEvidence::of(evidence.as_bytes());
        Self { verdict: Verdict::Lied(Lie::History), says: says.into(), evidence }
    }
}

/// Asks what the owner's demand asks for, and remembers the receipt of this answer: it must be in the log after a while ([`Owed::due`]).
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(super) async fn hold(
    gateway: &Arc<Gateway>,
    session: &Session,
    grant: &Grant,
    given: Option<Known>,
) -> Result<Result<(), Unwitnessed>, Error> {
    let Some(demand) = DEMANDS.get(&gateway.store, &grant.granter)? else { return Ok(Ok(())) };
    let now = gateway.clock.now();
    let documents = documents(gateway, &demand)?;
    let signed = match session.remote.checkpoint().await {
        Ok(Some(signed)) => signed,
        Ok(None) => return Ok(Err(Unwitnessed::unsigned("it publishes no checkpoint of a log"))),
        Err(error) => return Ok(Err(Unwitnessed::unsigned(error.to_string()))),
    };
    if witnesses(&signed.note, &documents, now).len() < usize::from(demand.need) {
        return other_history(gateway, session, grant, &demand, &signed, now).await.map(Err);
    }
    let given = match to_be_owed(given) {
        Ok(given) => given,
        Err(unwitnessed) => return Ok(Err(unwitnessed)),
    };
    let owed = OWED.get(&gateway.store, &grant.hash)?;
    let due = owed.as_ref().and_then(|owed| owed.due(now)).cloned();
    if let Some(receipt) = &due {
        let shown = session.remote.resume(session.ticket.clone()).witnessed(&OwnKey(gateway), receipt).await;
        let missing = || format!("the receipt {} of an earlier answer is not in its log", receipt.receipt_id);
        match shown {
            Ok(Some(shown)) => {
                if witnesses(&shown.note, &documents, now).len() < usize::from(demand.need) {
                    return other_history(gateway, session, grant, &demand, &shown, now).await.map(Err);
                }
            }
            // A checkpoint that cannot be read, or whose key is another by now, is nobody's lie.
            Ok(None) | Err(ClientError::Log(InclusionError::Path(_) | InclusionError::Siblings)) => {
                return Ok(Err(Unwitnessed::history(missing(), &signed.note.to_string())));
            }
            Err(error) => return Ok(Err(Unwitnessed::unsigned(error.to_string()))),
        }
    }
    let (hash, peer) = (grant.hash, grant.granter.clone());
    let draw = u64::from_be_bytes(random::bytes(&*gateway.random));
    let owes = move |w: &mut Writing<'_, '_>| {
        // A demand that ended meanwhile leaves nothing behind, and neither does a grant that was removed.
        if DEMANDS.get(w.tx, &peer)?.is_none() || !WALLET.contains(w.tx, &hash)? {
            OWED.delete(w.tx, &hash);
            return Ok(());
        }
        let mut owed = OWED.get(w.tx, &hash)?.unwrap_or_else(|| Owed::none_of(peer));
        if let Some(met) = &due {
            owed.is_met(met);
        }
        owed.add(given, draw);
        Ok(OWED.put(w.tx, &hash, &owed)?)
    };
    // It is no answer to anybody: who may be answered is judged where what was read is counted.
    gateway.commit_own(owes).await?;
    Ok(Ok(()))
}

/// The receipt of an answer, by which it can be asked for in the log. Every chain begins with an entry that is no answer: a receipt that
/// begins one is never in a log, and whoever gives it could say whatever they want to.
fn to_be_owed(given: Option<Known>) -> Result<Known, Unwitnessed> {
    given.ok_or_else(|| {
        Unwitnessed::unsigned("the receipt of its answer could be in no log: it begins a chain")
    })
}

/// The pinned keys of the witnesses that count. One that is no peer any more signs for nobody.
fn documents(gateway: &Gateway, demand: &Demand) -> Result<Vec<Arc<DidDocument>>, Error> {
    let mut documents = Vec::new();
    for did in &demand.of {
        documents.extend(PEERS.get(&gateway.store, did)?.map(|peer| Arc::new(pinned(&peer))));
    }
    Ok(documents)
}

/// A log has too few signatures: what the witnesses signed last of it says whether it is another one.
async fn other_history(
    gateway: &Gateway,
    session: &Session,
    grant: &Grant,
    demand: &Demand,
    shown: &Signed,
    now: Timestamp,
) -> Result<Unwitnessed, Error> {
    let origin = HEXLOWER.encode(&Sha256::digest(grant.granter.as_str()));
    for did in &demand.of {
        let Some(peer) = PEERS.get(&gateway.store, did)? else { continue };
        let Some(prefix) = peer.pin.endpoints.get("witness") else { continue };
        let answer = gateway.resolver.get(&format!("{prefix}/{origin}/checkpoint"), MONITORED).await;
        let Some(answer) = answer.ok().filter(|answer| answer.status == StatusCode::OK) else { continue };
        let Ok(seen) = Signed::read(&answer.body, session.remote.document(), now) else { continue };
        if cosigned_at(&seen.note, &pinned(&peer), now).is_some() && !goes_on(session, shown, &seen).await {
            let says = format!(
                "a log of {} ticks, which its key signed and {} witness(es) out of {} signed too, is not the one that {did} signed",
                shown.checkpoint.size,
                witnesses(&shown.note, &documents(gateway, demand)?, now).len(),
                demand.need,
            );
            return Ok(Unwitnessed::history(says, &format!("{}\n{}", shown.note, seen.note)));
        }
    }
    Ok(Unwitnessed::unsigned("its log has not as many signatures of witnesses as you demand"))
}

/// Whether the longer one of two logs goes on from the other, as far as its gateway shows. Nobody is accused for an answer that did not come.
async fn goes_on(session: &Session, one: &Signed, other: &Signed) -> bool {
    let (one, other) = (&one.checkpoint, &other.checkpoint);
    let (before, after) = if one.size <= other.size { (one, other) } else { (other, one) };
    if before.size == after.size {
        return before.root == after.root;
    }
    match session.remote.consistency(before.size, after.size).await {
        Ok(Some(proof)) => {
            merkle::check_consistency(before.size, &before.root, after.size, &after.root, &proof).is_ok()
        }
        // Its key signed a log of that size, and it says that it has none.
        Ok(None) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::Hash;
    use serde_json::json;

    /// The attack: each answer begins a chain of its own, which is in no log, so that nothing is ever asked for.
    #[test]
    fn a_receipt_that_could_be_in_no_log_is_not_believed() {
        let receipt = |previous: &str| {
            let id = oap_identity::ReceiptId::from_bytes([1; 16]);
            json!({"receipt_id": id, "timestamp": "2026-05-01T12:00:00Z", "previous_receipt_hash": previous})
        };
        let follows = receipt(&Hash::of(b"before").to_string());
        assert!(to_be_owed(Known::of(&follows)).is_ok());
        let refused = to_be_owed(Known::of(&receipt("genesis"))).err().unwrap();
        assert_eq!(refused.verdict, Verdict::Unreachable(Why::Unwitnessed));
        assert!(refused.evidence.is_none());
    }
}

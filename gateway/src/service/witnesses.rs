//! The own log and its witnesses, and the logs whose witness this gateway is (protocol section 16).

mod cosigning;
mod showing;
mod submitting;
mod ticking;

pub use cosigning::Answered;
pub use submitting::SUBMIT_TIME;

use crate::api::witnesses::{
    DemandList, LogInfo, PeerDemand, SeenCheckpoint, WitnessInfo, WitnessList, WitnessTrouble, WitnessedInfo,
    WitnessedList,
};
use crate::error::{Conflict, Error, MemberError};
use crate::service::Witnesses;
use crate::service::doctor::Finding;
use crate::state::commits::Writing;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::peers::StoredPeer;
use crate::state::schema::{CHAINS, DEMANDS, EPOCH, LOG, LOGGED, OWED, PEERS, WITNESSED, WITNESSES};
use crate::state::witnessing::{
    Cosigned, Demand, MAX_WITNESSED, MAX_WITNESSES, StoredLog, StoredOrigin, StoredWitness,
};
use oap_identity::{Did, DidDocument, Hash};
use oap_store::{Codec, Range, Table};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often the server asks whether a tick is over.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// The keys of a peer, as they are pinned.
pub(crate) fn pinned(peer: &StoredPeer) -> DidDocument {
    let keys = peer.pin.keys.iter().map(|key| key.key().clone()).collect();
    DidDocument::new(peer.pin.did.clone(), keys)
}

/// The keys of a table's rows, those of earlier transactions of the batch included.
fn keys_in<V, C>(w: &Writing<'_, '_>, table: Table<Did, V, C>) -> Result<BTreeSet<Did>, Error>
where
    C: Codec<V>,
{
    let mut keys = table.keys(&w.gateway.store, Range::all()).collect::<Result<BTreeSet<Did>, _>>()?;
    for written in table.written(w.tx) {
        if table.contains(w.tx, &written)? {
            keys.insert(written);
        } else {
            keys.remove(&written);
        }
    }
    Ok(keys)
}

impl Witnesses<'_> {
    /// The own log and its witnesses.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn list(self, _: &Owner<impl Permits<Admin>>) -> Result<WitnessList, Error> {
        let log = LOG.get(&self.0.store)?;
        let log = log.map(|StoredLog { began_at, size, root, .. }| LogInfo { began_at, size, root });
        let witnesses = WITNESSES.scan(&self.0.store).map(|row| row.map(|(did, row)| witness_info(did, row)));
        Ok(WitnessList { log, witnesses: witnesses.collect::<Result<_, _>>()? })
    }

    /// Submits the log to a peer from now on. The first one begins the log: what is in the chains by then is in it only as what later
    /// receipts name by hash.
    ///
    /// # Errors
    /// [`Error::NotFound`] for who is no peer; [`Error::Conflict`].
    pub async fn add(self, owner: &Owner<impl Permits<Admin>>, did: Did) -> Result<WitnessInfo, Error> {
        let added = move |w: &mut Writing<'_, '_>| {
            PEERS.get(w.tx, &did)?.ok_or(Error::NotFound)?;
            let known = keys_in(w, WITNESSES)?;
            if known.contains(&did) {
                return Err(Error::Conflict(Conflict::WitnessKnown));
            }
            if known.len() >= MAX_WITNESSES {
                return Err(Error::Conflict(Conflict::ManyWitnesses));
            }
            if LOG.get(w.tx)?.is_none() {
                begin(w)?;
            }
            let witness = StoredWitness { added_at: w.now, size: 0, signed_at: None, trouble: None };
            WITNESSES.put(w.tx, &did, &witness)?;
            Ok(witness_info(did, witness))
        };
        self.0.commit_as(owner, added).await
    }

    /// Submits the log to it no more.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn remove(self, owner: &Owner<impl Permits<Admin>>, did: Did) -> Result<(), Error> {
        let removed = move |w: &mut Writing<'_, '_>| {
            WITNESSES.get(w.tx, &did)?.ok_or(Error::NotFound)?;
            WITNESSES.delete(w.tx, &did);
            Ok(())
        };
        self.0.commit_as(owner, removed).await
    }

    /// The logs whose witness this gateway is.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn witnessed(self, _: &Owner<impl Permits<Admin>>) -> Result<WitnessedList, Error> {
        let epoch = EPOCH.get(&self.0.store)?;
        let rows = WITNESSED.scan(&self.0.store);
        let witnessed = rows.map(|row| row.map(|(did, row)| witnessed_info(did, row, epoch)));
        Ok(WitnessedList { witnessed: witnessed.collect::<Result<_, _>>()? })
    }

    /// Signs the log of a peer from now on, from where it stood here.
    ///
    /// # Errors
    /// [`Error::NotFound`] for who is no peer; [`Error::Conflict`].
    pub async fn witness_for(
        self,
        owner: &Owner<impl Permits<Admin>>,
        did: Did,
    ) -> Result<WitnessedInfo, Error> {
        let begun = move |w: &mut Writing<'_, '_>| {
            PEERS.get(w.tx, &did)?.ok_or(Error::NotFound)?;
            let epoch = EPOCH.get(w.tx)?;
            let origin = match WITNESSED.get(w.tx, &did)? {
                Some(known) => StoredOrigin { epoch, ..known },
                None if keys_in(w, WITNESSED)?.len() >= MAX_WITNESSED => {
                    return Err(Error::Conflict(Conflict::ManyWitnessed));
                }
                None => StoredOrigin { since: w.now, epoch, signed: None, other: None },
            };
            WITNESSED.put(w.tx, &did, &origin)?;
            Ok(witnessed_info(did, origin, epoch))
        };
        self.0.commit_as(owner, begun).await
    }

    /// Signs its log no more, and forgets how far it was: who is begun with anew is believed anew.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn end_witnessing(self, owner: &Owner<impl Permits<Admin>>, did: Did) -> Result<(), Error> {
        let ended = move |w: &mut Writing<'_, '_>| {
            WITNESSED.get(w.tx, &did)?.ok_or(Error::NotFound)?;
            WITNESSED.delete(w.tx, &did);
            Ok(())
        };
        self.0.commit_as(owner, ended).await
    }

    /// Whose signatures the logs of peers must have.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn demands(self, _: &Owner<impl Permits<Admin>>) -> Result<DemandList, Error> {
        let rows = DEMANDS.scan(&self.0.store);
        let demands = rows.map(|row| row.map(|(did, Demand { need, of })| PeerDemand { did, need, of }));
        Ok(DemandList { demands: demands.collect::<Result<_, _>>()? })
    }

    /// Says whose signatures the log of a peer must have. What it owed until then is forgotten.
    ///
    /// # Errors
    /// [`Error::NotFound`] for who is no peer; [`Error::Member`].
    pub async fn demand(
        self,
        owner: &Owner<impl Permits<Admin>>,
        demand: PeerDemand,
    ) -> Result<DemandList, Error> {
        let PeerDemand { did, need, of } = demand;
        let distinct: BTreeSet<Did> = of.into_iter().collect();
        if need > 0 && (distinct.len() < usize::from(need) || distinct.len() > MAX_WITNESSES) {
            let most = MAX_WITNESSES.min(distinct.len());
            return Err(Error::Member("need", MemberError::Number { most, of: "witnesses" }));
        }
        if distinct.contains(&did) {
            return Err(Error::Member("of", MemberError::OwnWitness));
        }
        let set = move |w: &mut Writing<'_, '_>| {
            if need == 0 {
                DEMANDS.delete(w.tx, &did);
            } else {
                for peer in distinct.iter().chain([&did]) {
                    PEERS.get(w.tx, peer)?.ok_or(Error::NotFound)?;
                }
                DEMANDS.put(w.tx, &did, &Demand { need, of: distinct.into_iter().collect() })?;
            }
            let mut owed =
                OWED.keys(&w.gateway.store, Range::all()).collect::<Result<BTreeSet<Hash>, _>>()?;
            owed.extend(OWED.written(w.tx));
            for grant in owed {
                if OWED.get(w.tx, &grant)?.is_some_and(|owed| owed.peer == did) {
                    OWED.delete(w.tx, &grant);
                }
            }
            Ok(())
        };
        self.0.commit_as(owner, set).await?;
        self.demands(owner)
    }
}

impl Witnesses<'_> {
    /// What the owner has to look at, of all witnesses and of all logs that are signed here; `None` where there are none.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn finding(self) -> Result<Option<Finding>, Error> {
        let (mut soon, mut looked_at) = (Vec::new(), 0);
        for row in WITNESSES.scan(&self.0.store) {
            let (did, witness) = row?;
            looked_at += 1;
            if let Some((at, why)) = witness.trouble {
                soon.push(format!("{did} did not sign your log at {at}: {}", why.as_str()));
            }
        }
        let epoch = EPOCH.get(&self.0.store)?;
        for row in WITNESSED.scan(&self.0.store) {
            let (did, origin) = row?;
            looked_at += 1;
            if let Some(other) = &origin.other {
                soon.push(format!(
                    "the key of {did} signed another history than yours of it, at {}",
                    other.at
                ));
            }
            if origin.epoch != epoch {
                soon.push(format!("the log of {did} is not signed since a restore or a lockdown"));
            }
        }
        let finding = Finding {
            part: "witnesses".into(),
            looked_at,
            wrong: Vec::new(),
            soon,
            fix: "`oap-memory witness list` says how each stands; `witness for` signs on after a restore or a lockdown; of another history ask \
                  the log's owner by another way"
                .into(),
            note: None,
        };
        Ok((looked_at > 0).then_some(finding))
    }
}

/// Begins the log behind everything that is in the chains.
fn begin(w: &mut Writing<'_, '_>) -> Result<(), Error> {
    let mut names = CHAINS.keys(&w.gateway.store, Range::all()).collect::<Result<BTreeSet<String>, _>>()?;
    names.extend(CHAINS.written(w.tx));
    for name in names {
        if let Some(chain) = CHAINS.get(w.tx, &name)? {
            LOGGED.put(w.tx, &chain.index, &chain.length)?;
        }
    }
    Ok(LOG.put(w.tx, &StoredLog::begin(w.now))?)
}

fn witness_info(did: Did, witness: StoredWitness) -> WitnessInfo {
    let StoredWitness { added_at, size, signed_at, trouble } = witness;
    let trouble = trouble.map(|(at, why)| WitnessTrouble { at, why });
    WitnessInfo { did, added_at, size, signed_at, trouble }
}

fn witnessed_info(did: Did, origin: StoredOrigin, epoch: Option<Hash>) -> WitnessedInfo {
    let seen = |Cosigned { at, size, root, note }: Cosigned| SeenCheckpoint { at, size, root, note };
    WitnessedInfo {
        did,
        since: origin.since,
        signs: origin.epoch == epoch,
        signed: origin.signed.map(seen),
        other: origin.other.map(seen),
    }
}

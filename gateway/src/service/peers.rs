//! Peers: other principals' gateways whose keys and addresses are pinned, and what changes at them (protocol section 15).

mod fetching;
mod telling;

use crate::api::peers::{AcceptedPeer, FoundPeer, Host, PeerInfo, PeerRef, PeerState};
use crate::error::{Conflict, Error, MemberError, PeerError};
use crate::service::Peers;
use crate::service::doctor::Finding;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::owner::{Acting, Owner};
use crate::state::peers::{CheckOutcome, MAX_PEERS, StoredPeer};
use crate::state::schema::{PEER_COPIES, PEERS};
use crate::state::tips;
pub use fetching::DOCUMENT_TIME;
use fetching::{Found, Way};
use oap_federation::{change, due};
use oap_identity::{Did, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// How often the server asks which peers are due.
pub const INTERVAL: Duration = Duration::from_secs(60);
/// Peers that are looked at at once.
pub const MAX_LOOKS: usize = 4;

impl Peers<'_> {
    /// The peers, by DID.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn list(self, _: &Owner<impl Permits<Admin>>) -> Result<Vec<PeerInfo>, Error> {
        PEERS.scan(&self.0.store).map(|row| telling::info(&row?.1)).collect()
    }

    /// A peer.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn show(self, _: &Owner<impl Permits<Admin>>, did: &Did) -> Result<PeerInfo, Error> {
        telling::info(&PEERS.get(&self.0.store, did)?.ok_or(Error::NotFound)?)
    }

    /// Reads what a gateway publishes, checks that it holds together, and pins it.
    ///
    /// # Errors
    /// [`Error::Member`] saying why nothing is pinned; [`Error::Conflict`].
    pub async fn add(self, owner: &Owner<impl Permits<Admin>>, peer: PeerRef) -> Result<PeerInfo, Error> {
        let found = match &peer {
            PeerRef::Did(did) => {
                self.is_other(did)?;
                if PEERS.get(&self.0.store, did)?.is_some() {
                    return Err(Error::Conflict(Conflict::PeerKnown));
                }
                self.read(did, Way::Document).await
            }
            PeerRef::Host(host) => fetching::at_host(self.0, host).await.map(|(_, found)| found),
        };
        let Found { seen, copies, kept, .. } = found.map_err(|error| not_read("peer", error))?;
        let did = seen.pin.did.clone();
        self.is_other(&did)?;
        self.0
            .commit_as(owner, move |w| {
                let mut known = PEERS
                    .keys(&w.gateway.store, oap_store::Range::all())
                    .collect::<Result<BTreeSet<Did>, _>>()?;
                for changed in PEERS.written(w.tx) {
                    match PEERS.get(w.tx, &changed)? {
                        Some(_) => known.insert(changed),
                        None => known.remove(&changed),
                    };
                }
                if known.contains(&did) {
                    return Err(Error::Conflict(Conflict::PeerKnown));
                }
                if known.len() >= MAX_PEERS {
                    return Err(Error::Conflict(Conflict::ManyPeers));
                }
                let peer = StoredPeer::new(seen.pin, kept, w.now);
                PEERS.put(w.tx, &did, &peer)?;
                PEER_COPIES.put(w.tx, &did, &copies.of_use())?;
                tips::hold(w, &did)?;
                telling::info(&peer)
            })
            .await
    }

    /// That a DID is not the gateway's own.
    fn is_other(self, did: &Did) -> Result<(), Error> {
        if *did == self.0.principal { Err(Error::Member("peer", MemberError::OwnPeer)) } else { Ok(()) }
    }

    /// Reads what the gateway of a host publishes, and keeps nothing.
    ///
    /// # Errors
    /// [`Error::Member`] saying why there is none.
    pub async fn find(self, _: &Owner<impl Permits<Admin>>, host: &Host) -> Result<FoundPeer, Error> {
        let found = fetching::at_host(self.0, host).await;
        let (through, found) = found.map_err(|error| not_read("host", error))?;
        let is_peer = PEERS.get(&self.0.store, &found.seen.pin.did)?.is_some();
        Ok(FoundPeer { through, is_peer, papers: telling::papers(&found.seen.pin) })
    }

    /// Looks at a peer now.
    ///
    /// # Errors
    /// [`Error::NotFound`]. That it could not be read is in its state, and no error.
    pub async fn check(self, owner: &Owner<impl Permits<Admin>>, did: &Did) -> Result<PeerInfo, Error> {
        telling::info(&self.look(did, owner.into()).await?)
    }

    /// Says yes to what a peer shows.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] where nothing waits, or something else than the owner saw.
    pub async fn accept(
        self,
        owner: &Owner<impl Permits<Admin>>,
        accepted: AcceptedPeer,
    ) -> Result<PeerInfo, Error> {
        let AcceptedPeer { did, seen } = accepted;
        self.0
            .commit_as(owner, move |w| {
                let mut peer = PEERS.get(w.tx, &did)?.ok_or(Error::NotFound)?;
                if !peer.accept(seen, w.now)? {
                    return Err(Error::Conflict(Conflict::PeerShowsOther));
                }
                PEERS.put(w.tx, &did, &peer)?;
                telling::info(&peer)
            })
            .await
    }

    /// Forgets a peer.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn remove(self, owner: &Owner<impl Permits<Admin>>, did: Did) -> Result<(), Error> {
        self.0
            .commit_as(owner, move |w| {
                PEERS.get(w.tx, &did)?.ok_or(Error::NotFound)?;
                PEERS.delete(w.tx, &did);
                PEER_COPIES.delete(w.tx, &did);
                Ok(())
            })
            .await
    }

    /// Looks at the peers that are due, [`MAX_LOOKS`] at once; how many there were.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`]; [`Error::Unavailable`] while the clock is not believed.
    pub async fn check_due(self) -> Result<usize, Error> {
        self.0.clock.believe()?;
        let due = self.due(self.0.clock.now())?;
        let count = due.len();
        let mut looks = JoinSet::new();
        for did in due {
            if looks.len() >= MAX_LOOKS {
                tell(looks.join_next().await);
            }
            let gateway = self.0.clone();
            looks.spawn(async move { Peers(&gateway).look(&did, Acting::House).await.map(drop) });
        }
        while let Some(look) = looks.join_next().await {
            tell(Some(look));
        }
        Ok(count)
    }

    fn due(self, now: Timestamp) -> Result<Vec<Did>, Error> {
        let mut due = Vec::new();
        for row in PEERS.scan(&self.0.store) {
            let (did, peer) = row?;
            // What a clock that stood ahead has put off is due by the one that is right.
            if peer.due_at <= now || peer.due_at > now.plus(due::LONGEST) {
                due.push(did);
            }
        }
        Ok(due)
    }

    /// Reads what a peer shows now, and takes over what is believed of it without the owner.
    async fn look(self, did: &Did, acting: Acting) -> Result<StoredPeer, Error> {
        let known = PEERS.get(&self.0.store, did)?.ok_or(Error::NotFound)?;
        let began = self.0.clock.now();
        let mut found = self.read(did, Way::Known(&known.pin.origin)).await;
        if let Ok(found) = &mut found
            && change::compare(&known.pin, &found.seen).iter().any(change::Change::wants_a_handover)
        {
            match fetching::handovers(self.0, &found.seen.pin).await {
                Ok(handovers) => found.seen.handovers = handovers,
                // Without them the owner is asked.
                Err(error) => {
                    tracing::warn!(peer = %did, %error, "a peer has a new key and no list of handovers")
                }
            }
        }
        let (did, name) = (did.clone(), did.clone());
        let (peer, came) = self
            .0
            .commit_for(acting, move |w| {
                let mut peer = PEERS.get(w.tx, &did)?.ok_or(Error::NotFound)?;
                // Somebody else looked meanwhile, and later: what was read before says nothing. Not so by a clock that stood ahead.
                if peer.checked_at > began && peer.checked_at <= w.now {
                    return Ok((peer, CheckOutcome::Same));
                }
                let came = match found {
                    Ok(Found { seen, copies, is_new, kept }) => {
                        if is_new {
                            PEER_COPIES.put(w.tx, &did, &copies.of_use())?;
                        }
                        peer.learn(seen, kept, w.now)
                    }
                    Err(error) => peer.failed(&error, w.now),
                };
                PEERS.put(w.tx, &did, &peer)?;
                Ok((peer, came))
            })
            .await?;
        match came {
            CheckOutcome::Same => tracing::debug!(peer = %name, "a peer was looked at"),
            CheckOutcome::Taken => {
                tracing::info!(peer = %name, "a peer changed, and the change is signed for")
            }
            CheckOutcome::Asks => {
                tracing::warn!(peer = %name, "a peer changed: `oap-memory peer show` says how, and asks you")
            }
            CheckOutcome::Failed => {
                tracing::warn!(peer = %name, "a peer could not be read, or is not believed")
            }
        }
        Ok(peer)
    }

    async fn read(self, did: &Did, way: Way<'_>) -> Result<Found, PeerError> {
        // Copies that cannot be read are none.
        let copies = PEER_COPIES.get(&self.0.store, did).ok().flatten();
        fetching::papers(self.0, did, way, copies.as_ref()).await
    }

    /// What the owner has to look at, of all peers; `None` where there are none.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn finding(self) -> Result<Option<Finding>, Error> {
        let (mut soon, mut states) = (Vec::new(), BTreeSet::new());
        let mut looked_at = 0;
        for row in PEERS.scan(&self.0.store) {
            let (did, peer) = row?;
            looked_at += 1;
            if !peer.is_sound() {
                let since =
                    peer.pending.as_ref().map(|of| of.since).or(peer.trouble.as_ref().map(|of| of.since));
                let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
                let state = telling::state(&peer);
                soon.push(format!("{did} is {}{since}", state.as_str()));
                states.insert(state);
            }
        }
        if states.is_empty() {
            states.insert(PeerState::Sound);
        }
        let finding = Finding {
            part: "peers".into(),
            looked_at,
            wrong: Vec::new(),
            soon,
            fix: states.into_iter().map(telling::fix).collect::<Vec<_>>().join("; ").into(),
            note: None,
        };
        Ok((looked_at > 0).then_some(finding))
    }
}

/// Says of a look by itself what went wrong with it.
fn tell(look: Option<Result<Result<(), Error>, tokio::task::JoinError>>) {
    match look {
        // Removed meanwhile.
        None | Some(Ok(Ok(()) | Err(Error::NotFound))) => {}
        Some(Ok(Err(error))) => tracing::error!(%error, "looking at a peer failed"),
        Some(Err(error)) => tracing::error!(%error, "looking at a peer panicked"),
    }
}

fn not_read(member: &'static str, error: PeerError) -> Error {
    Error::Member(member, MemberError::NotPeer(Box::new(error)))
}

//! Where the grants of the wallet stand: looked up in their granters' status lists, by the owner's word or by the house itself.

use super::place_of;
use crate::api::access::ReceivedInfo;
use crate::error::{Error, Unavailable};
use crate::service::Wallet;
use crate::service::letters::FRESH;
use crate::service::turns::{TURN, by_turns};
use crate::state::commits::Writing;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::put_off::is_recent;
use crate::state::schema::WALLET;
use crate::state::wallet::{self as rows, CHECKED_EVERY, MAX_CHECKED, MAX_LISTS, StoredReceived};
use oap_grants::status::{self, VerifiedList};
use oap_identity::outgoing::{Allowance, StatusCode};
use oap_identity::{Did, Hash, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What a status list may take: that of every grant there can be, not compressed at all.
const STATUS_LIST: Allowance = Allowance { bytes: 64 << 10, time: Duration::from_secs(10) };

/// A status list that is due, and the grants of the wallet in it.
struct DueList {
    granter: Did,
    uri: String,
    /// When the one of them was looked up that was for longest; none where one never was.
    checked_at: Option<Timestamp>,
    /// Each with its place.
    grants: Vec<(Hash, u32)>,
}

impl Wallet<'_> {
    /// Looks up the state of a grant in its granter's status list, and notes it.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Resolve`]; [`Error::Unavailable`] where there is no list that holds.
    pub async fn check(self, owner: &Owner<impl Permits<Admin>>, hash: Hash) -> Result<ReceivedInfo, Error> {
        let (_, grant) = WALLET.get(&self.0.store, &hash)?.ok_or(Error::NotFound)?.document()?;
        let place = place_of(&grant, &rows::above(&self.0.store, &hash)?)?.ok_or_else(no_list)?;
        // The owner is here to ask for a key that is newer than what is remembered.
        let list = self.list_at(&place.uri, &grant.granter.principal, Duration::ZERO).await?;
        let revoked = list.is_revoked(place.idx).map_err(|_| no_list())?;
        self.0.commit_as(owner, move |w| note(w, hash, revoked)).await?;
        self.show(owner, hash)
    }

    /// Looks up the grants of the wallet that nobody revoked yet and that were not looked up for [`CHECKED_EVERY`]: of at most
    /// [`MAX_CHECKED`] granters, those that wait for longest first, and each of them once in that time, whatever comes of it. How many lists
    /// were asked for. Where one cannot be had or does not hold, everything stays as it was.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn check_due(self) -> Result<usize, Error> {
        // What is due by a clock that is not believed may not be due at all.
        if self.0.clock.believe().is_err() {
            return Ok(0);
        }
        let of_one = |lists| {
            let gateway = self.0.clone();
            async move { Wallet(&gateway).look_up_all(lists).await }
        };
        by_turns(self.take_due(self.0.clock.now())?, of_one).await
    }

    /// The lists of the granters that are due, the one that waits for longest first; these granters are put off.
    fn take_due(self, now: Timestamp) -> Result<BTreeMap<Did, Vec<DueList>>, Error> {
        let mut live: BTreeMap<Did, Vec<(Hash, StoredReceived)>> = BTreeMap::new();
        for row in WALLET.scan(&self.0.store) {
            let (hash, received) = row?;
            if received.revoked_at.is_none() {
                live.entry(received.granter.clone()).or_default().push((hash, received));
            }
        }
        self.0.status_lists.retain(|granter| live.contains_key(granter));
        let mut due = Vec::new();
        for (granter, grants) in live {
            if self.0.status_lists.is_due(&granter, now) {
                let lists = self.lists_of(&granter, grants, now)?;
                if let Some(first) = lists.first() {
                    due.push((first.checked_at, granter, lists));
                }
            }
        }
        due.sort_by_key(|(since, ..)| *since);
        due.truncate(MAX_CHECKED);
        for (_, granter, _) in &due {
            self.0.status_lists.put_off(granter.clone(), now, CHECKED_EVERY);
        }
        Ok(due.into_iter().map(|(_, granter, lists)| (granter, lists)).collect())
    }

    /// Those lists of a granter's that are due, with all of its grants in them; at most [`MAX_LISTS`].
    fn lists_of(
        self,
        granter: &Did,
        grants: Vec<(Hash, StoredReceived)>,
        now: Timestamp,
    ) -> Result<Vec<DueList>, Error> {
        let mut lists: BTreeMap<String, DueList> = BTreeMap::new();
        for (hash, received) in grants {
            let (_, grant) = received.document()?;
            if grant.expires_at <= now {
                continue;
            }
            let Some(place) = place_of(&grant, &rows::above(&self.0.store, &hash)?)? else { continue };
            // What a clock wrote down that stood ahead is no time of a look.
            let checked_at = received.checked_at.filter(|at| *at <= now);
            let list = lists.entry(place.uri).or_insert_with_key(|uri| DueList {
                granter: granter.clone(),
                uri: uri.clone(),
                checked_at,
                grants: Vec::new(),
            });
            list.checked_at = list.checked_at.min(checked_at);
            list.grants.push((hash, place.idx));
        }
        let is_fresh = |list: &DueList| list.checked_at.is_some_and(|at| is_recent(at, CHECKED_EVERY, now));
        let mut due: Vec<DueList> = lists.into_values().filter(|list| !is_fresh(list)).collect();
        due.sort_by_key(|list| list.checked_at);
        due.truncate(MAX_LISTS);
        // What takes the whole turn must not take every one: every other hour what waits for longest is asked for last.
        if now.seconds().rem_euclid(7_200) >= 3_600 {
            due.reverse();
        }
        Ok(due)
    }

    /// Looks at the lists of one granter, one after the other, until its turn is over; how many were asked for.
    async fn look_up_all(self, lists: Vec<DueList>) -> Result<usize, Error> {
        let (mut asked, begun) = (0, Instant::now());
        for list in lists {
            if begun.elapsed() >= TURN {
                break;
            }
            asked += 1;
            self.look_up(list).await?;
        }
        Ok(asked)
    }

    /// Notes where the grants in a list stand, where it can be had and holds.
    async fn look_up(self, list: DueList) -> Result<(), Error> {
        let DueList { granter, uri, grants, .. } = list;
        let list = match self.list_at(&uri, &granter, FRESH).await {
            Ok(list) => list,
            Err(error) => {
                tracing::info!(%granter, %error, "where a granter's grants stand could not be looked up");
                return Ok(());
            }
        };
        let noted = move |w: &mut Writing<'_, '_>| {
            for (hash, place) in grants {
                // Of a place that the list does not have it says nothing.
                let Ok(revoked) = list.is_revoked(place) else { continue };
                match note(w, hash, revoked) {
                    // Removed meanwhile.
                    Ok(()) | Err(Error::NotFound) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        self.0.commit_own(noted).await
    }

    /// The status list at an address, where it is its granter's and holds now. A key that is newer than what is remembered of the granter is
    /// asked for, where that is older than `age`.
    async fn list_at(self, uri: &str, granter: &Did, age: Duration) -> Result<VerifiedList, Error> {
        let answer = self.0.resolver.get(uri, STATUS_LIST).await.map_err(|_| no_list())?;
        if answer.status != StatusCode::OK {
            return Err(no_list());
        }
        let list = String::from_utf8(answer.body).map_err(|_| no_list())?;
        let kid = status::claimed_key(list.trim()).map_err(|_| no_list())?;
        let granter = self.0.document_with(granter, &kid, age).await?;
        status::read_at(list.trim(), uri, &granter, self.0.clock.now()).map_err(|_| no_list())
    }
}

/// Notes what a status list says of a grant. What was revoked stays so.
fn note(w: &mut Writing<'_, '_>, hash: Hash, is_revoked: bool) -> Result<(), Error> {
    let mut received = WALLET.get(w.tx, &hash)?.ok_or(Error::NotFound)?;
    received.checked_at = Some(w.now);
    if is_revoked {
        received.revoked_at.get_or_insert(w.now);
    }
    Ok(WALLET.put(w.tx, &hash, &received)?)
}

const fn no_list() -> Error {
    Error::Unavailable(Unavailable::StatusList)
}

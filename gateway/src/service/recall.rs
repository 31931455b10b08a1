//! The memories of others, asked at once under the grants of the wallet (docs/federation-recall.md).
//!
//! What they show is checked whole before anything of it is believed, judged by the guard, and handed on once: nothing of it is kept.
//! Whoever is slow, refuses or lies is named, and costs the others nothing.

pub(crate) mod asking;
pub(crate) mod merging;
mod showing;
mod witnessed;

use crate::api::recall::{LieEvidence, LieInfo, LieList, RecallQuery, Recollection};
use crate::api::selections::{FoundItems, SearchQuery};
use crate::error::{Error, MemberError};
use crate::service::{Items, Recalls, acks};
use crate::state::commits::Writing;
use crate::state::gateway::{Gateway, blocking};
use crate::state::lies::{self, PeerIncident};
use crate::state::owner::mark::{Admin, Permits};
use crate::state::owner::{Acting, Owner};
use crate::state::schema::{self, HEADS, LIES, WALLET};
use crate::state::wallet::{self, StoredReceived};
use oap_agents::foreign::{AlsoShown, Foreign, Via};
use oap_exchange::query::MAX_QUERY;
use oap_federation::verdict::{AT_ONCE, Code, MAX_ASKED, MAX_DEADLINE, USUAL_DEADLINE, Verdict, budget};
use oap_grants::grant::Operation;
use oap_identity::{Did, Hash, Timestamp};
use oap_memory::Kind;
use oap_memory::answer::MAX_RESULTS;
use oap_memory::receipt::Receipt;
use oap_store::{Range, Rows};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

pub use asking::MAX_PEER_ANSWER;

/// Items of a recall of the owner's whose caller does not say.
const USUAL: usize = 20;

/// What is asked of others.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) words: String,
    pub(crate) kinds: Vec<Kind>,
    /// Only with all of these labels.
    pub(crate) labels: Vec<String>,
    /// Only at least so sure, after the cut at what is external.
    pub(crate) least: Option<f64>,
    /// How many items at most, of each.
    pub(crate) most: usize,
    /// How long all others together are waited for.
    pub(crate) deadline: Duration,
}

/// A grant under which is asked.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) hash: Hash,
    pub(crate) granter: Did,
    pub(crate) document: Value,
    /// The grants that it was made from, first one first.
    pub(crate) above: Vec<Value>,
}

/// What came of asking under one grant.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) via: Via,
    pub(crate) verdict: Verdict,
    /// What it shows and may be handed on, the best first; with how many bytes each says.
    pub(crate) found: Vec<(Foreign, usize)>,
    /// How many items it showed that were proved.
    pub(crate) items: usize,
    /// How many of them the guard stopped.
    pub(crate) stopped: usize,
    /// The receipt of the answer that was proved.
    receipt: Option<Box<Receipt>>,
    /// The incident that the owner is shown, where it is one.
    incident: Option<PeerIncident>,
}

impl Source {
    fn new(grant: &Grant, verdict: Verdict) -> Self {
        let via = Via { peer: grant.granter.clone(), grant: grant.hash };
        Self { via, verdict, found: Vec::new(), items: 0, stopped: 0, receipt: None, incident: None }
    }

    /// Believes nothing of it.
    fn dismiss(&mut self, verdict: Verdict) {
        self.verdict = verdict;
        self.found.clear();
        self.receipt = None;
        (self.items, self.stopped) = (0, 0);
    }
}

/// What came of asking everybody.
#[derive(Debug, Clone)]
pub(crate) struct Gathered {
    pub(crate) sources: Vec<Source>,
    /// How many live grants were not asked under.
    pub(crate) not_asked: usize,
}

impl Gathered {
    /// The same, without what was shown under grants that do not hold any more.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn without_ended(mut self, gateway: &Gateway) -> Result<Self, Error> {
        let now = gateway.clock.now();
        for source in self.sources.iter_mut().filter(|source| source.verdict == Verdict::Answered) {
            if !holds(&gateway.store, &source.via.grant, now)? {
                source.dismiss(Verdict::Refused(Code::grant()));
            }
        }
        Ok(self)
    }
}

/// Whether a grant is in the wallet, and may be used, as far as is known here.
pub(crate) fn holds(rows: &impl Rows, grant: &Hash, now: Timestamp) -> Result<bool, Error> {
    let Some(received) = WALLET.get(rows, grant)? else { return Ok(false) };
    is_live(&received, now)
}

fn is_live(received: &StoredReceived, now: Timestamp) -> Result<bool, Error> {
    if received.revoked_at.is_some() {
        return Ok(false);
    }
    let (_, grant) = received.document()?;
    Ok(grant.begins() <= now && now < grant.expires_at && grant.operations.contains(&Operation::Query))
}

impl Recalls<'_> {
    /// Asks everybody who granted to be asked, at once: [`AT_ONCE`] at a time, each for its part of the deadline. What was read is
    /// counted as whoever acts may: the owner during a lockdown, too.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where as many recalls are under way as may be; [`Error::Store`], [`Error::Corrupt`]; as
    /// [`Gateway::commit_for`].
    pub(crate) async fn gather(self, acting: Acting, wanted: Wanted) -> Result<Gathered, Error> {
        let turn = Arc::new(self.0.remotes.turn()?);
        let end = Instant::now() + wanted.deadline;
        let (gateway, words) = (self.0.clone(), wanted.words.clone());
        let (grants, not_asked) = blocking(move || Recalls(&gateway).live(&words)).await?;
        let each = budget(wanted.deadline, grants.len());
        let (wanted, places) = (Arc::new(wanted), Arc::new(Semaphore::new(AT_ONCE)));
        let mut sources: Vec<Source> = grants.iter().map(|grant| Source::new(grant, Verdict::Slow)).collect();
        let mut asked = JoinSet::new();
        for (number, grant) in grants.into_iter().enumerate() {
            let (gateway, wanted, places, turn) =
                (self.0.clone(), wanted.clone(), places.clone(), turn.clone());
            asked.spawn(async move {
                // Never closed.
                let _place = places.acquire().await;
                (number, asking::ask(&gateway, &wanted, &grant, each, turn).await)
            });
        }
        // Who is not done by then is slow.
        while let Ok(Some(done)) = timeout_at(end, asked.join_next()).await {
            let Ok((number, source)) = done else { return Err(Error::Panicked) };
            if let Some(place) = sources.get_mut(number) {
                *place = source?;
            }
        }
        drop(asked);
        self.settle(acting, Gathered { sources, not_asked }).await
    }

    /// The grants under which is asked, in the order in which their granters have their turn; and how many more there are.
    ///
    /// Which they are does not depend on what is asked. In which order does: nobody knows beforehand whether they come first.
    fn live(self, words: &str) -> Result<(Vec<Grant>, usize), Error> {
        let now = self.0.clock.now();
        let mut live = Vec::new();
        for row in WALLET.scan(&self.0.store) {
            let (hash, received) = row?;
            if is_live(&received, now)? {
                live.push((Reverse(received.received_at), hash, received));
            }
        }
        live.sort_by_key(|(received_at, hash, _)| (*received_at, *hash));
        let not_asked = live.len().saturating_sub(MAX_ASKED);
        let mut grants = Vec::new();
        for (_, hash, received) in live.into_iter().take(MAX_ASKED) {
            let (document, _) = received.document()?;
            let above = wallet::above(&self.0.store, &hash)?;
            grants.push(Grant { hash, granter: received.granter, document, above });
        }
        grants.sort_by_cached_key(|grant| Hash::of(format!("{words}\n{}", grant.granter).as_bytes()));
        Ok((grants, not_asked))
    }

    /// Counts what was read, and writes down who lied. What came under a grant that was revoked or removed meanwhile is not handed on.
    async fn settle(self, acting: Acting, mut gathered: Gathered) -> Result<Gathered, Error> {
        let answered = gathered.sources.iter_mut().filter(|source| source.verdict == Verdict::Answered);
        let answered: Vec<(Hash, u64, Option<Box<Receipt>>)> = answered
            .map(|source| {
                (source.via.grant, u64::try_from(source.items).unwrap_or(u64::MAX), source.receipt.take())
            })
            .collect();
        let incidents: Vec<PeerIncident> =
            gathered.sources.iter_mut().filter_map(|source| source.incident.take()).collect();
        if answered.is_empty() && incidents.is_empty() {
            return Ok(gathered);
        }
        let noted = move |w: &mut Writing<'_, '_>| {
            let mut gone = BTreeSet::new();
            for (grant, items, receipt) in answered {
                let received = WALLET.get(w.tx, &grant)?;
                let now = w.now;
                let live = received
                    .map(|received| Ok::<_, Error>((is_live(&received, now)?, received)))
                    .transpose()?;
                let Some((true, mut received)) = live else {
                    gone.insert(grant);
                    continue;
                };
                received.reading.answers = received.reading.answers.saturating_add(1);
                received.reading.items = received.reading.items.saturating_add(items);
                received.reading.last_at = Some(now);
                WALLET.put(w.tx, &grant, &received)?;
                if let Some(receipt) = receipt {
                    acks::got(w, grant, &receipt)?;
                }
            }
            lies::note(w, incidents)?;
            Ok(gone)
        };
        let gone = self.0.commit_for(acting, noted).await?;
        for source in gathered.sources.iter_mut().filter(|source| gone.contains(&source.via.grant)) {
            source.dismiss(Verdict::Refused(Code::grant()));
        }
        Ok(gathered)
    }

    /// The owner's own memory and that of others, in one list.
    ///
    /// # Errors
    /// [`Error::Member`]; as [`Recalls::gather`].
    pub async fn recall(self, owner: Owner<Admin>, query: RecallQuery) -> Result<Recollection, Error> {
        if query.text.trim().is_empty() || query.text.len() > MAX_QUERY {
            return Err(Error::Member("text", MemberError::Words(MAX_QUERY)));
        }
        let (limit, most) = (query.limit.unwrap_or(USUAL), usize::from(MAX_RESULTS));
        if !(1..=most).contains(&limit) {
            return Err(Error::Member("limit", MemberError::Number { most, of: "items" }));
        }
        let deadline = query.deadline.map_or(USUAL_DEADLINE, Duration::from_secs);
        if !(Duration::from_secs(1)..=MAX_DEADLINE).contains(&deadline) {
            let most = usize::try_from(MAX_DEADLINE.as_secs()).unwrap_or(usize::MAX);
            return Err(Error::Member("deadline", MemberError::Number { most, of: "seconds" }));
        }
        let gathered = if query.own_only {
            None
        } else {
            let (words, kinds) = (query.text.clone(), query.kinds.clone());
            let wanted = Wanted { words, kinds, labels: Vec::new(), least: None, most: limit, deadline };
            Some(self.gather((&owner).into(), wanted).await?)
        };
        let search = SearchQuery {
            text: query.text,
            kinds: query.kinds,
            limit: Some(limit),
            ..SearchQuery::default()
        };
        let gateway = self.0.clone();
        blocking(move || {
            let FoundItems { items, matched } = Items(&gateway).search(&owner, &search)?;
            let Some(gathered) = gathered else {
                return Ok(Recollection { items, matched, from_peers: None });
            };
            let mut own = Vec::with_capacity(items.len());
            for item in items {
                let Some(head) = HEADS.get(&gateway.store, &item.item_id)? else { continue };
                match schema::version(&gateway.store, head.item_id, head.version_seq) {
                    Ok(version) => own.push((version.commitment(), item)),
                    // Erased since it was found.
                    Err(Error::NotFound | Error::Store(oap_store::StoreError::Erased)) => {}
                    Err(error) => return Err(error),
                }
            }
            let (own, mut from_peers) = merging::merged(own, gathered.without_ended(&gateway)?, limit);
            let shown = own.iter().filter(|(_, shown_by)| !shown_by.is_empty());
            from_peers.also_shown = shown
                .map(|(item, shown_by)| AlsoShown { item_id: item.item_id, shown_by: shown_by.clone() })
                .collect();
            let items = own.into_iter().map(|(item, _)| item).collect();
            Ok(Recollection { items, matched, from_peers: Some(from_peers) })
        })
        .await
    }

    /// What others said that is not so, newest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn lies(self, _: &Owner<impl Permits<Admin>>) -> Result<LieList, Error> {
        let mut found = Vec::new();
        for row in LIES.range(&self.0.store, Range::all().descending()) {
            let (incident, lie) = row?;
            let answer = lie.answer.map(|evidence| LieEvidence {
                hash: evidence.hash,
                bytes: evidence.bytes,
                beginning: String::from_utf8_lossy(&evidence.beginning).into_owned(),
            });
            found.push(LieInfo {
                incident,
                at: lie.at,
                last_at: lie.last_at,
                times: lie.times,
                peer: lie.peer,
                grant: lie.grant,
                lie: lie.lie,
                check: lie.check,
                says: lie.says,
                answer,
            });
        }
        Ok(LieList { lies: found })
    }
}

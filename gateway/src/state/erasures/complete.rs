//! What the list of erasures is told, and what a crash kept from it.

use super::listed::Listed;
use super::{ChainEnd, Ended, Mark, Waiting, Withdrawn};
use crate::error::Error;
use crate::state::gateway::Gateway;
use crate::state::grant_book::GrantKey;
use crate::state::holds::Hold;
use crate::state::schema::{AGENTS, BRIDGES, HOLDS, LINKS, REVOKED, TOMBSTONES, WITHDRAWN};
use crate::state::subscriptions;
use oap_identity::{ItemId, Timestamp};
use oap_memory::chain::{Event, Link};
use oap_memory::record::Status;
use oap_store::{Range, Rows};

/// Most links of an item that are looked at for its retraction: few follow one.
const MAX_LINKS: usize = 64;

/// Whether a link of an item is there and says that the item is taken back.
pub(crate) fn retracts(rows: &impl Rows, item: ItemId, link: u32) -> Result<bool, Error> {
    let Some(bytes) = LINKS.get(rows, &(item, link))? else { return Ok(false) };
    Ok(serde_json::from_slice::<Link>(&bytes)?.event == Event::Retract)
}

impl Gateway {
    /// Tells the list of what a transaction ended, and the caches; a list that cannot be written is told of in the log, and made up for at the
    /// next start.
    pub(crate) fn record_ended(&self, ended: Ended, at: Timestamp) {
        if (ended.versions || !ended.items.is_empty())
            && let Some(embeddings) = &self.embeddings
        {
            embeddings.clear();
        }
        self.tell(ended, at);
    }

    fn tell(&self, ended: Ended, at: Timestamp) {
        let Some(erasures) = &self.erasures else { return };
        let chains = self.chains().unwrap_or_default().into_iter().map(ChainEnd::from).collect();
        if let Err(error) = erasures.add(ended, &self.keys(), chains, at, self.store.space()) {
            tracing::error!(%error, "the list of erasures cannot be written");
        }
    }

    /// Tells the list how far the receipt chains have come.
    pub fn tell_chains(&self) {
        self.tell(Ended::default(), self.clock.now());
    }

    /// Adds to the list what a crash, or an older program, kept from it. A list that does not tell of keys yet is begun: whoever
    /// restores a backup of a home that never ended anything has one too.
    pub(crate) fn complete_erasures(&self, listed: &Listed) -> Result<(), Error> {
        let now = self.clock.now();
        let mut missing = Ended {
            items: TOMBSTONES.keys(&self.store, Range::all()).collect::<Result<_, _>>()?,
            grants: REVOKED
                .keys(&self.store, Range::all())
                .map(|key| key.map(GrantKey::id))
                .collect::<Result<_, _>>()?,
            ..Ended::default()
        };
        missing.items.retain(|item| !listed.items.contains(item));
        missing.grants.retain(|grant| !listed.grants.contains(grant));
        for row in BRIDGES.scan(&self.store) {
            let (id, stored) = row?;
            if stored.revoked_at.is_some() && !listed.bridges.contains(&id) {
                missing.bridges.push(id);
            }
        }
        for row in AGENTS.scan(&self.store) {
            let (did, agent) = row?;
            if !agent.is_there() && !listed.agents.contains(&did) {
                missing.agents.push(did);
            }
        }
        let mut ended = subscriptions::ended_by_owner(&self.store)?;
        ended.retain(|ended| !listed.subscriptions.contains(ended));
        missing.subscriptions = ended;
        for row in WITHDRAWN.scan(&self.store) {
            let (key, at) = row?;
            let grant = key.id();
            if listed.consents.get(&grant).is_none_or(|known| *known < at) {
                missing.consents.push(Withdrawn { grant, at });
            }
        }
        for head in self.heads.all().into_iter().filter(|head| head.status == Status::Retracted) {
            // One that is current here and retracted there stays so there: the list may be newer than the store, in a restore.
            if !listed.marks.get(&head.item_id).is_some_and(|mark| mark.retracted) {
                let links = (0..=head.seq).rev();
                let is_retraction = |link: &u32| retracts(&self.store, head.item_id, *link).unwrap_or(false);
                let link = links.take(MAX_LINKS).find(is_retraction).unwrap_or(head.seq);
                missing.marks.push(Mark { item: head.item_id, link, retracted: true });
            }
        }
        for row in HOLDS.scan(&self.store) {
            let (item, Hold { reason, until, erase_after }) = row?;
            if erase_after && !listed.waiting.contains_key(&item) {
                missing.waiting.push(Waiting { item, reason, until });
            }
        }
        missing.keys = listed.keys != self.keys().states() || listed.marks_since.is_none();
        if !missing.is_empty() || listed.since.is_none() {
            self.tell(missing, now);
        }
        Ok(())
    }
}

//! Legal holds: the one reason for which a deletion does not erase (protocol section 11).
//!
//! A held item whose deletion is asked for is in no view from then on, and is erased when its hold ends.

use crate::api::holds::HoldInfo;
pub use crate::api::holds::{HoldReason, HoldRequest};
use crate::error::{Error, MemberError};
use crate::service::Deletions;
use crate::service::deletion_plan::sources_last;
use crate::state::commits::{Writing, chain_of};
use crate::state::erasures::{Mark, Waiting};
pub use crate::state::holds::Hold;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{self, HEADS, HOLDS};
use oap_federation::step::Part;
use oap_identity::ItemId;
use oap_memory::chain::Event;
use oap_memory::receipt::Action;
use oap_memory::record::Status;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

impl Deletions<'_> {
    /// Every hold.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn hold_list(self, _: &Owner<impl Permits<Admin>>) -> Result<Vec<HoldInfo>, Error> {
        let info = |(item_id, hold): (ItemId, Hold)| HoldInfo {
            erase_after: hold.erase_after,
            item_id,
            reason: hold.reason,
            until: hold.until,
        };
        Ok(self.holds()?.into_iter().map(info).collect())
    }

    /// Every hold, as last committed.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn holds(self) -> Result<BTreeMap<ItemId, Hold>, Error> {
        HOLDS.scan(&self.0.store).map(|row| Ok(row?)).collect()
    }

    /// Puts items under a hold, all or none.
    ///
    /// # Errors
    /// [`Error::Member`] for a hold that has ended; [`Error::NotFound`] for an item that is not there.
    pub async fn hold(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: HoldRequest,
    ) -> Result<usize, Error> {
        if request.items.is_empty() {
            return Err(Error::Member("items", MemberError::NoItems));
        }
        let count = request.items.len();
        self.0
            .commit_as(owner, move |w| {
                if request.until <= w.now {
                    return Err(Error::Member("until", MemberError::Passed));
                }
                for item in &request.items {
                    let (_, head) = schema::head(w.tx, *item)?;
                    let before = w.hold_of(*item)?;
                    let hold = Hold {
                        reason: request.reason,
                        until: request.until,
                        erase_after: before.is_some_and(|hold| hold.erase_after),
                    };
                    w.put_hold(*item, &hold)?;
                    let gateway = w.gateway;
                    let mut draft = gateway.draft(Action::Hold, gateway.principal.as_str());
                    draft.rules = vec!["principal".to_owned()];
                    draft.more.insert("reason".to_owned(), json!(hold.reason));
                    draft.more.insert("until".to_owned(), json!(hold.until));
                    draft.more.insert("item_id".to_owned(), json!(item));
                    w.receipt(&chain_of(&head.scope_id), draft)?;
                }
                Ok(())
            })
            .await?;
        Ok(count)
    }

    /// Ends holds now. What waited for its end is erased.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an item that is not held.
    pub async fn release(
        self,
        owner: &Owner<impl Permits<Admin>>,
        items: Vec<ItemId>,
    ) -> Result<usize, Error> {
        let count = items.len();
        self.0
            .commit_as(owner, move |w| {
                let mut over = BTreeSet::new();
                for item in items {
                    let hold = w.hold_of(item)?.ok_or(Error::NotFound)?;
                    HOLDS.delete(w.tx, &item);
                    over.extend(hold.erase_after.then_some(item));
                }
                w.erase_with_what_follows(&over)
            })
            .await?;
        Ok(count)
    }

    /// Ends the holds whose time is over; how many.
    pub(crate) async fn end_holds(self) -> Result<usize, Error> {
        let now = self.0.clock.now();
        if !self.holds()?.values().any(|hold| hold.until <= now) {
            return Ok(0);
        }
        let ended = self
            .0
            .commit_own(move |w| {
                let mut holds = w.holds()?;
                // One that was set anew meanwhile goes on.
                holds.retain(|_, hold| hold.until <= w.now);
                holds.keys().for_each(|item| HOLDS.delete(w.tx, item));
                let over = holds.iter().filter(|(_, hold)| hold.erase_after).map(|(item, _)| *item);
                w.erase_with_what_follows(&over.collect())?;
                Ok(holds.len())
            })
            .await?;
        Ok(ended)
    }
}

impl Writing<'_, '_> {
    /// Whether an item is held at this point.
    pub(crate) fn is_held(&self, item: ItemId) -> Result<bool, Error> {
        Ok(HOLDS.get(self.tx, &item)?.is_some())
    }

    /// The hold of an item at this point.
    pub(crate) fn hold_of(&self, item: ItemId) -> Result<Option<Hold>, Error> {
        Ok(HOLDS.get(self.tx, &item)?)
    }

    /// Every hold at this point.
    pub(crate) fn holds(&self) -> Result<BTreeMap<ItemId, Hold>, Error> {
        let mut holds = Deletions(self.gateway).holds()?;
        for item in HOLDS.written(self.tx) {
            match self.hold_of(item)? {
                Some(hold) => holds.insert(item, hold),
                None => holds.remove(&item),
            };
        }
        Ok(holds)
    }

    /// Erases items whose hold has ended, and what was made from them; what is held of that waits for its own end.
    fn erase_with_what_follows(&mut self, items: &BTreeSet<ItemId>) -> Result<(), Error> {
        if items.is_empty() {
            return Ok(());
        }
        let heads = self.heads()?;
        for item in sources_last(items, &heads).into_iter().filter(|item| heads.contains_key(item)) {
            if self.is_held(item)? {
                self.await_end(item)?;
            } else {
                self.erase(item, Event::Erase)?;
            }
        }
        Ok(())
    }

    /// Puts an item under a hold.
    pub(crate) fn put_hold(&mut self, item: ItemId, hold: &Hold) -> Result<(), Error> {
        HOLDS.put(self.tx, &item, hold)?;
        if hold.erase_after {
            self.ended.waiting.push(Waiting { item, reason: hold.reason, until: hold.until });
        }
        Ok(())
    }

    /// Takes a held item out of every view, to be erased when its hold ends.
    pub(crate) fn await_end(&mut self, item: ItemId) -> Result<(), Error> {
        let Some(mut hold) = self.hold_of(item)? else { return Ok(()) };
        hold.erase_after = true;
        self.put_hold(item, &hold)?;
        let (slot, mut head) = schema::head(self.tx, item)?;
        if head.status == Status::Current {
            head.status = Status::Retracted;
            head.ended_at = Some(self.now);
            self.say(item, &[Part::Standing])?;
            let last = self.last_link(&head)?;
            self.append_link(&mut head, &last, Event::Retract)?;
            self.ended.marks.push(Mark { item, link: head.seq, retracted: true });
            HEADS.put_in(self.tx, slot, &item, &head)?;
            self.announce(item, Some((head, Event::Retract)));
        }
        Ok(())
    }
}

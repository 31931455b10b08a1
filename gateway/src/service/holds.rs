//! Legal holds: the one reason for which a deletion does not erase (protocol section 11).
//!
//! A held item whose deletion is asked for is in no view from then on, and is erased when its hold ends.

use crate::error::Error;
use crate::gateway::Gateway;
use crate::ledger::{Writing, chain_of};
use crate::tables::{self, HEADS, HOLDS, decode, encode};
use oap_identity::{ItemId, Timestamp};
use oap_memory::chain::Event;
use oap_memory::receipt::ReceiptType;
use oap_memory::record::Status;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why an item is held (`oap-deletion-receipt.schema.json`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// A court or an authority asks for it.
    LegalHold,
    /// A law says how long it is kept.
    RegulatoryRetention,
    /// It is evidence in a dispute.
    OngoingDispute,
}

/// A hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Why.
    pub reason: HoldReason,
    /// Until when.
    pub until: Timestamp,
    /// Whether its deletion was asked for meanwhile.
    pub erase_after: bool,
}

/// What to hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldRequest {
    /// These items.
    pub items: Vec<ItemId>,
    /// Why.
    pub reason: HoldReason,
    /// Until when.
    pub until: Timestamp,
}

impl Gateway {
    /// Every hold.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn holds(&self) -> Result<BTreeMap<ItemId, Hold>, Error> {
        let mut holds = BTreeMap::new();
        for pair in self.store.scan(HOLDS, &[], None, false) {
            let (key, bytes) = pair?;
            if let Some(item) = key.first_chunk::<16>() {
                holds.insert(ItemId::from_bytes(*item), decode(&bytes)?);
            }
        }
        Ok(holds)
    }

    /// Puts items under a hold, all or none.
    ///
    /// # Errors
    /// [`Error::Member`] for a hold that has ended; [`Error::NotFound`] for an item that is not there.
    pub async fn hold(self: &Arc<Self>, request: HoldRequest) -> Result<usize, Error> {
        if request.items.is_empty() {
            return Err(Error::Member("items", "name one at least".into()));
        }
        if request.until <= self.clock.now() {
            return Err(Error::Member("until", "must be later than now".into()));
        }
        let count = request.items.len();
        self.commit(move |w| {
            for item in &request.items {
                let (_, head) = tables::head(w.tx, *item)?;
                let before: Option<Hold> =
                    w.tx.get(HOLDS, &item.to_bytes())?.map(|bytes| decode(&bytes)).transpose()?;
                let hold = Hold {
                    reason: request.reason,
                    until: request.until,
                    erase_after: before.is_some_and(|hold| hold.erase_after),
                };
                w.tx.put(HOLDS, &item.to_bytes(), &encode(&hold)?)?;
                let gateway = w.gateway;
                let mut draft =
                    gateway.draft(ReceiptType::Consent, "memory.hold", gateway.principal.as_str());
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
    pub async fn release(self: &Arc<Self>, items: Vec<ItemId>) -> Result<usize, Error> {
        let count = items.len();
        self.commit(move |w| {
            for item in items {
                w.end_hold(item)?;
            }
            Ok(())
        })
        .await?;
        Ok(count)
    }

    /// Ends the holds whose time is over; how many.
    pub(crate) async fn end_holds(self: &Arc<Self>) -> Result<usize, Error> {
        let now = self.clock.now();
        let over: Vec<ItemId> =
            self.holds()?.into_iter().filter(|(_, hold)| hold.until <= now).map(|(item, _)| item).collect();
        if over.is_empty() { Ok(0) } else { self.release(over).await }
    }
}

impl Writing<'_, '_> {
    /// Whether an item is held at this point.
    pub(crate) fn is_held(&self, item: ItemId) -> Result<bool, Error> {
        Ok(self.tx.get(HOLDS, &item.to_bytes())?.is_some())
    }

    /// Takes a held item out of every view, to be erased when its hold ends.
    pub(crate) fn await_end(&mut self, item: ItemId) -> Result<(), Error> {
        let Some(bytes) = self.tx.get(HOLDS, &item.to_bytes())? else { return Ok(()) };
        let mut hold: Hold = decode(&bytes)?;
        hold.erase_after = true;
        self.tx.put(HOLDS, &item.to_bytes(), &encode(&hold)?)?;
        let (slot, mut head) = tables::head(self.tx, item)?;
        if head.status == Status::Current {
            head.status = Status::Retracted;
            head.ended_at = Some(self.now);
            let last = self.last_link(&head)?;
            self.append_link(&mut head, &last, Event::Retract, last.commitment)?;
            self.tx.put_in(slot, HEADS, &item.to_bytes(), &encode(&head)?)?;
            self.announce(item, Some(Arc::new(head)));
        }
        Ok(())
    }

    fn end_hold(&mut self, item: ItemId) -> Result<(), Error> {
        let bytes = self.tx.get(HOLDS, &item.to_bytes())?.ok_or(Error::NotFound)?;
        let hold: Hold = decode(&bytes)?;
        self.tx.delete(HOLDS, &item.to_bytes());
        if hold.erase_after {
            self.erase(item, Event::Erase)?;
        }
        Ok(())
    }
}

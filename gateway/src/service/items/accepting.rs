//! Items, confirmed by their owner.

use super::{Prepared, Written};
use crate::api::items::Rejection;
use crate::error::{Conflict, Error, MemberError};
use crate::service::Items;
use crate::service::items::whole;
use crate::state::commits::{Writing, until_it_holds};
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Permits, Write};
use crate::state::schema;
use oap_agents::quarantine::{self, is_quarantined, lifted};
use oap_identity::ItemId;
use oap_memory::chain::Event;
use oap_memory::record::Status;
use oap_store::StoreError;
use serde_json::{Map, Value, json};

/// Takes the mark of what the guard stopped from what an item says.
pub(super) fn unmark(said: &mut Map<String, Value>) {
    if let Some(labels) = said.get_mut("labels").and_then(Value::as_array_mut) {
        labels.retain(|label| label != quarantine::LABEL);
    }
}

impl Items<'_> {
    /// Confirms what an item says in a version; without one, whatever it says. What an agent wrote is confirmed by its version alone: it may
    /// write another one between the owner's look and the owner's word. What the guard stopped loses its mark with that, by another version
    /// that says the same.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Member`](crate::Error::Member) where the version is missing; [`Error::Conflict`] when it is not the one
    /// in force, the item is not current, or another entry took its key.
    pub async fn confirm(
        self,
        owner: &Owner<impl Permits<Write>>,
        item: ItemId,
        version: Option<u32>,
    ) -> Result<Written, Error> {
        until_it_holds(|| async move {
            let gateway = self.0.clone();
            let unmarked = blocking(move || Items(&gateway).unmarked(item)).await?;
            self.0.commit_as(owner, move |w| w.confirm_as_read(item, version, unmarked)).await
        })
        .await
    }

    /// Takes back an item that waits for the owner, of the version that the owner read; where another one is to stay in its place, as long as
    /// that is in force.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] where it does not wait, says something else by now, or the other one is not in force;
    /// [`Error::Member`] where both are one.
    pub async fn reject(
        self,
        owner: &Owner<impl Permits<Write>>,
        item: ItemId,
        rejection: Rejection,
    ) -> Result<Written, Error> {
        let Rejection { version, into } = rejection;
        if into == Some(item) {
            return Err(Error::Member("into", MemberError::OtherItem));
        }
        self.0
            .commit_as(owner, move |w| {
                let (_, head) = schema::head(w.tx, item)?;
                if head.status != Status::Current || !head.meta.needs_verification {
                    return Err(Error::Conflict(Conflict::NotWaiting));
                }
                let there = head.version_seq.saturating_add(1);
                if version != there {
                    return Err(Error::Conflict(Conflict::NewerVersion(there)));
                }
                if let Some(stays) = into {
                    let stays = match schema::head(w.tx, stays) {
                        Ok((_, stays)) => stays.is_live(w.now),
                        Err(Error::NotFound | Error::Store(StoreError::Erased)) => false,
                        Err(error) => return Err(error),
                    };
                    if !stays {
                        return Err(Error::Conflict(Conflict::NotStaying));
                    }
                }
                w.mark(item, Event::Retract)
            })
            .await
    }

    /// A version without the mark of the guard; none of an item that does not wait with it.
    fn unmarked(self, item: ItemId) -> Result<Option<Prepared>, Error> {
        let before = self.in_force(item)?;
        if before.head.status != Status::Current || !is_quarantined(&before.head) {
            return Ok(None);
        }
        let Some(labels) = lifted(&before.head.labels) else { return Ok(None) };
        let body = self.corrected(&before, &whole(&before.committed)?, &json!({"labels": labels}))?;
        let contacts = self.0.contact_names.of(&self.0.heads);
        self.prepare_version(&before, body, Event::Relabel, &contacts).map(Some)
    }
}

impl Writing<'_, '_> {
    /// The owner's confirmation, of what the guard stopped by way of a version without its mark.
    fn confirm_as_read(
        &mut self,
        item: ItemId,
        version: Option<u32>,
        unmarked: Option<Prepared>,
    ) -> Result<Written, Error> {
        let (_, head) = schema::head(self.tx, item)?;
        let Some(unmarked) = unmarked else { return self.mark_at(item, Event::Confirm, version) };
        if head.status != Status::Current {
            return Err(Error::Conflict(Conflict::NotCurrent));
        }
        if !is_quarantined(&head) {
            return Err(Error::Overtaken);
        }
        self.is_confirmed_as(&head, version)?;
        // What nobody saw took no key from others.
        self.keeps_its_key(&head)?;
        let written = self.store_version(unmarked, Event::Relabel)?;
        self.mark_at(item, Event::Confirm, Some(written.version))
    }
}

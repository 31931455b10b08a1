//! Versions and their links, concealed and signed beside the writer.

use super::{InForce, Prepared};
use crate::error::Error;
use crate::service::Items;
use crate::state::contacts::Contacts;
use crate::state::schema::{LINKS, VERSIONS};
use oap_identity::{ItemId, ReceiptId, Timestamp};
use oap_memory::chain::{Event, Link};
use oap_memory::commitment::{Committed, Place};
use oap_memory::detect::segments;
use oap_memory::item::Body;

impl Items<'_> {
    pub(crate) fn prepare_capture(
        self,
        body: Body,
        contacts: &Contacts,
        now: Timestamp,
    ) -> Result<Prepared, Error> {
        let receipt = ReceiptId::new(now, &*self.0.random);
        self.prepare_first(ItemId::new(now, &*self.0.random), receipt, body, contacts, now)
    }

    /// The same, of an item whose id another device of the owner's made.
    pub(crate) fn prepare_capture_as(
        self,
        item_id: ItemId,
        body: Body,
        contacts: &Contacts,
        now: Timestamp,
    ) -> Result<Prepared, Error> {
        self.prepare_first(item_id, ReceiptId::new(now, &*self.0.random), body, contacts, now)
    }

    fn prepare_first(
        self,
        item_id: ItemId,
        receipt: ReceiptId,
        body: Body,
        contacts: &Contacts,
        now: Timestamp,
    ) -> Result<Prepared, Error> {
        let place = Place { item_id, seq: 0, event: Event::Capture, at: now, prev: None, receipt };
        self.prepare(body, &place, receipt, contacts)
    }

    pub(crate) fn prepare_version(
        self,
        before: &InForce,
        body: Body,
        event: Event,
        contacts: &Contacts,
    ) -> Result<Prepared, Error> {
        self.prepare_version_at(before, body, event, contacts, self.0.clock.now())
    }

    /// The same, dated at that time: one that is not later than now.
    pub(crate) fn prepare_version_at(
        self,
        before: &InForce,
        body: Body,
        event: Event,
        contacts: &Contacts,
        now: Timestamp,
    ) -> Result<Prepared, Error> {
        let (head, last) = (&before.head, &before.last);
        let place = Place {
            item_id: head.item_id,
            seq: head.seq + 1,
            event,
            at: now.max(last.at),
            prev: Some(last.hash()?),
            receipt: before.capture,
        };
        self.prepare(body, &place, ReceiptId::new(now, &*self.0.random), contacts)
    }

    /// Another version behind one that is stored with it.
    pub(crate) fn prepare_after(
        self,
        before: &InForce,
        first: &Prepared,
        body: Body,
        event: Event,
        contacts: &Contacts,
    ) -> Result<Prepared, Error> {
        let now = self.0.clock.now();
        let place = Place {
            item_id: before.head.item_id,
            seq: first.link.seq + 1,
            event,
            at: now.max(first.link.at),
            prev: Some(first.link.hash()?),
            receipt: before.capture,
        };
        self.prepare(body, &place, ReceiptId::new(now, &*self.0.random), contacts)
    }

    /// Conceals and signs a version, and the link that will name its receipt.
    fn prepare(
        self,
        body: Body,
        place: &Place,
        receipt: ReceiptId,
        contacts: &Contacts,
    ) -> Result<Prepared, Error> {
        let cut = segments(body.text.as_deref().unwrap_or_default(), &contacts.people);
        let keys = self.0.keys();
        let committed = Committed::sign(&body, &cut, place, keys.current(), &*self.0.random)?;
        let link = Link {
            item_id: place.item_id,
            seq: place.seq,
            event: place.event,
            at: place.at,
            actor: self.0.principal.clone(),
            commitment: committed.commitment(),
            prev: Link::write_prev(place.prev),
            receipt,
            signature: String::new(),
        };
        let (link, written) = link.signed_written(keys.current())?;
        let (row, link_row) = (VERSIONS.encode(&committed)?, LINKS.encode(&written)?);
        Ok(Prepared { body, committed, row, link, link_row, contacts: contacts.changes })
    }
}

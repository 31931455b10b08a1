//! How versions and links are stored: what every change of an item writes, in its transaction.

use super::{Author, Prepared};
use crate::api::items::Written;
use crate::error::{Conflict, Error, MemberError};
use crate::state::commits::{Draft, Writing, chain_of};
use crate::state::erasures::Mark;
use crate::state::events::{Happened, Marked, context_of};
use crate::state::living::Change;
use crate::state::schema::{
    self, ACCESSED, AUTHORS, HEADS, HOLDS, LINKS, PEOPLE, REASONS, SAID, TOMBSTONES, VERSIONS,
};
use oap_agents::quarantine::is_quarantined;
use oap_federation::step::Part;
use oap_identity::{Did, Hash, ItemId, ReceiptId, ScopeId, Timestamp};
use oap_memory::chain::{Event, Link, MAX_CHANGES};
use oap_memory::commitment::Committed;
use oap_memory::receipt::item_tag;
use oap_memory::record::{Head, Meta, Status, Tier};
use oap_store::{Encoded, StoreError};
use std::sync::Arc;

impl Writing<'_, '_> {
    /// That a version can be stored as it was prepared: with the keys in use, and cut with the contacts of now.
    fn still_prepared(&self, prepared: &Prepared) -> Result<(), Error> {
        let contacts = PEOPLE.get(self.tx)?;
        let holds =
            prepared.committed.is_signed_by(self.keys.current().kid()) && prepared.contacts == contacts;
        if holds { Ok(()) } else { Err(Error::Overtaken) }
    }

    /// Stores a new item, with this record behind it.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when keys or contacts changed since it was prepared.
    pub(crate) fn store_capture_as(&mut self, prepared: Prepared, record: Meta) -> Result<Written, Error> {
        self.still_prepared(&prepared)?;
        let head = Head::new(prepared.link.item_id, &prepared.body, record);
        self.contacts_changed |= !head.few.people().is_empty();
        self.store_prepared(head, None, prepared)
    }

    /// Stores a version of an item that is still what it was when the version was prepared.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it was erased; [`Error::Overtaken`].
    pub(crate) fn store_version(&mut self, prepared: Prepared, event: Event) -> Result<Written, Error> {
        self.store_version_as(prepared, event, None)
    }

    /// The same, of which somebody else than before may be the author. A correction that names none is the owner's.
    ///
    /// # Errors
    /// As [`Writing::store_version`].
    pub(crate) fn store_version_as(
        &mut self,
        prepared: Prepared,
        event: Event,
        by: Option<Author>,
    ) -> Result<Written, Error> {
        let (_, mut head) = schema::head(self.tx, prepared.link.item_id)?;
        if head.seq + 1 != prepared.link.seq || event != prepared.link.event {
            return Err(Error::Overtaken);
        }
        if event != Event::Reseal && prepared.link.seq as usize >= MAX_CHANGES {
            return Err(Error::Conflict(Conflict::ManyVersions));
        }
        self.still_prepared(&prepared)?;
        let relabelled = *head.labels != prepared.body.labels;
        match event {
            Event::Correct if relabelled => self.say(prepared.link.item_id, &[Part::Words, Part::Labels])?,
            Event::Correct => self.say(prepared.link.item_id, &[Part::Words])?,
            Event::Relabel => self.say(prepared.link.item_id, &[Part::Labels])?,
            _ => {}
        }
        let seq = prepared.link.seq;
        let before = std::mem::take(&mut head.few);
        head.take(&prepared.body);
        self.contacts_changed |= head.few.people() != before.people();
        head.replaced.push((head.version_seq, self.now));
        AUTHORS.put(self.tx, &(head.item_id, head.version_seq), &head.meta.author)?;
        head.seq = seq;
        head.version_seq = seq;
        let former = head.meta.whose().clone();
        let owner =
            || Author { did: self.gateway.principal.clone(), needs_verification: false, admitted: None };
        if let Some(Author { did, needs_verification, admitted }) =
            by.or_else(|| (event == Event::Correct).then(owner))
        {
            admitted.iter().try_for_each(|admitted| admitted.holds(self.tx))?;
            // What the owner confirmed was what an agent said before.
            head.meta.human_verified &= *head.meta.author == did && did == self.gateway.principal;
            head.write_as(did, &self.gateway.principal);
            head.meta.needs_verification = needs_verification;
        }
        let is_pad = head.meta.tier == Tier::Working;
        let written = self.store_prepared(head, Some(former), prepared)?;
        // A scratch pad has no past.
        if is_pad {
            self.trim(written.item_id, |_| true)?;
        }
        Ok(written)
    }

    /// Stores a version, of which somebody may have been the author before.
    fn store_prepared(
        &mut self,
        head: Head,
        former: Option<Arc<Did>>,
        prepared: Prepared,
    ) -> Result<Written, Error> {
        let Prepared { committed, row, link, link_row, .. } = prepared;
        let (item, commitment) = (link.item_id, link.commitment);
        if head.meta.key.is_some() && link.event != Event::Reseal {
            let is_new = link.event.begins();
            let happened = if is_new { Happened::Created } else { Happened::Updated };
            let previous =
                (!is_new).then(|| head.replaced.last().map_or(0, |(seq, _)| *seq).saturating_add(1));
            let context = context_of(&committed)?;
            self.tell_of(happened, &head, head.meta.whose(), &context, previous, None)?;
            // Whose words they were is told that they are another's now.
            if let Some(former) = former.filter(|former| former != head.meta.whose()) {
                self.tell_of(happened, &head, &former, &context, previous, None)?;
            }
        }
        let draft = self.item_draft(link.event, item, commitment);
        self.append_signed(&head.scope_id, &link, link_row, draft)?;
        let written =
            Written { item_id: item, receipt_id: link.receipt, commitment, version: head.version_seq + 1 };
        self.put_version(head, row, link.event)?;
        Ok(written)
    }

    /// Stores head and version under a fresh key, after the event that is the last of the item's chain.
    pub(crate) fn put_version(
        &mut self,
        head: Head,
        version: Encoded<Committed>,
        event: Event,
    ) -> Result<(), Error> {
        let said = SAID.get(self.tx, &head.item_id)?;
        let reason = REASONS.get(self.tx, &head.item_id)?;
        let slot = self.tx.new_slot()?;
        VERSIONS.put_encoded_in(self.tx, slot, &(head.item_id, head.version_seq), version)?;
        if let Some(said) = said {
            SAID.put_in(self.tx, slot, &head.item_id, &said)?;
        }
        if let Some(reason) = reason {
            REASONS.put_in(self.tx, slot, &head.item_id, &reason)?;
        }
        HEADS.put_in(self.tx, slot, &head.item_id, &head)?;
        self.announce(head.item_id, Some((head, event)));
        Ok(())
    }

    /// Appends a link without a new version: `retract`, `restore`, or `confirm` of what the owner wrote.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when the item is not in a state for it.
    pub(crate) fn mark(&mut self, item: ItemId, event: Event) -> Result<Written, Error> {
        self.mark_at(item, event, None)
    }

    /// The same, of what the item says in that version.
    pub(super) fn mark_at(
        &mut self,
        item: ItemId,
        event: Event,
        version: Option<u32>,
    ) -> Result<Written, Error> {
        let (slot, mut head) = schema::head(self.tx, item)?;
        match (event, head.status) {
            (Event::Retract, Status::Current) => {
                head.status = Status::Retracted;
                head.ended_at = Some(self.now);
            }
            (Event::Restore, Status::Retracted)
                if self.hold_of(item)?.is_some_and(|hold| hold.erase_after) =>
            {
                return Err(Error::Conflict(Conflict::ErasedAfterHold));
            }
            (Event::Restore, Status::Retracted) => {
                self.keeps_its_key(&head)?;
                head.status = Status::Current;
                head.ended_at = None;
            }
            // Accepting that takes the mark away, too ([`Writing::confirm_as_read`]).
            (Event::Confirm, Status::Current) if is_quarantined(&head) => return Err(Error::Overtaken),
            (Event::Confirm, Status::Current) => {
                self.is_confirmed_as(&head, version)?;
                head.meta.human_verified = true;
                head.meta.needs_verification = false;
            }
            (Event::Restore, Status::Current) => return Err(Error::Conflict(Conflict::InForce)),
            (Event::Retract, Status::Retracted) => return Err(Error::Conflict(Conflict::TakenBack)),
            _ => return Err(Error::Conflict(Conflict::NotCurrent)),
        }
        let part = if event == Event::Confirm { Part::Words } else { Part::Standing };
        self.say(item, &[part])?;
        let last = self.last_link(&head)?;
        let written = self.append_link(&mut head, &last, event)?;
        if matches!(event, Event::Retract | Event::Restore) {
            REASONS.delete(self.tx, &item);
            self.ended.marks.push(Mark { item, link: head.seq, retracted: event == Event::Retract });
            let marked = if event == Event::Retract { Marked::Retracted } else { Marked::Restored };
            self.tell_of_stored(Happened::Updated, &head, Some(marked))?;
        }
        HEADS.put_in(self.tx, slot, &item, &head)?;
        self.announce(item, Some((head, event)));
        Ok(written)
    }

    /// The entry in force that took an entry's key, if one did (docs/openintent.md).
    pub(crate) fn rival(&self, head: &Head) -> Result<Option<ItemId>, Error> {
        let (Some(namespace), Some(key)) = (&head.meta.namespace, &head.meta.key) else { return Ok(None) };
        let mut there = self.gateway.heads.at(namespace, key);
        let written = HEADS.written(self.tx);
        there.retain(|other| !written.contains(&other.item_id));
        for item in written {
            match HEADS.get(self.tx, &item) {
                Ok(other) => there.extend(other.map(Arc::new)),
                Err(StoreError::Erased) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let is_shared = |head: &Head| head.meta.tier == Tier::Semantic;
        let rival = there.iter().find(|other| {
            other.item_id != head.item_id
                && other.is_live(self.now)
                && (&other.meta.namespace, &other.meta.key) == (&head.meta.namespace, &head.meta.key)
                && is_shared(other) == is_shared(head)
                && (is_shared(head) || other.meta.whose() == head.meta.whose())
        });
        Ok(rival.map(|other| other.item_id))
    }

    /// That no other entry took an entry's key.
    pub(super) fn keeps_its_key(&self, head: &Head) -> Result<(), Error> {
        match self.rival(head)? {
            Some(other) => Err(Error::Conflict(Conflict::KeyTaken(other))),
            None => Ok(()),
        }
    }

    /// That a confirmation is of what the item says: what an agent wrote is confirmed by its version alone.
    pub(super) fn is_confirmed_as(&self, head: &Head, version: Option<u32>) -> Result<(), Error> {
        let there = head.version_seq.saturating_add(1);
        match version {
            None if *head.meta.author != self.gateway.principal => {
                Err(Error::Member("version", MemberError::NoVersion))
            }
            Some(version) if version != there => Err(Error::Conflict(Conflict::NewerVersion(there))),
            _ => Ok(()),
        }
    }

    /// Appends a link and its receipt, and counts it in the head.
    pub(crate) fn append_link(
        &mut self,
        head: &mut Head,
        last: &Link,
        event: Event,
    ) -> Result<Written, Error> {
        let draft = self.item_draft(event, head.item_id, last.commitment);
        let receipt = ReceiptId::new(self.now.max(last.at), &*self.gateway.random);
        let link = last.followed_by(event, self.now, &self.gateway.principal, receipt)?;
        let (link, written) = link.signed_written(self.keys.current())?;
        head.seq = link.seq;
        self.append_signed(&head.scope_id, &link, LINKS.encode(&written)?, draft)?;
        Ok(Written {
            item_id: head.item_id,
            receipt_id: receipt,
            commitment: link.commitment,
            version: head.version_seq + 1,
        })
    }

    /// Appends a link that is signed, and its receipt, which gets the id that the link names.
    pub(crate) fn append_signed(
        &mut self,
        scope: &ScopeId,
        link: &Link,
        row: Encoded<Vec<u8>>,
        mut draft: Draft,
    ) -> Result<(), Error> {
        draft.id = Some(link.receipt);
        self.receipt_beside(&chain_of(scope), draft)?;
        LINKS.put_encoded_in(self.tx, 0, &(link.item_id, link.seq), row)?;
        self.journal(link.item_id)
    }

    fn link(&self, item: ItemId, seq: u32) -> Result<Link, Error> {
        let bytes = LINKS.get(self.tx, &(item, seq))?.ok_or(Error::NotFound)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// The last link of an item.
    pub(crate) fn last_link(&self, head: &Head) -> Result<Link, Error> {
        self.link(head.item_id, head.seq)
    }

    /// The draft of the receipt of an item's event. It names the principal and never which of its agents wrote;
    /// its scope is bound by the commitment and not in the clear, because grantees see capture receipts.
    pub(crate) fn item_draft(&self, event: Event, item: ItemId, commitment: Hash) -> Draft {
        let gateway = self.gateway;
        let mut draft = gateway.draft(event.into(), gateway.principal.as_str());
        draft.rules = vec!["principal".to_owned()];
        draft.output_hash = Some(commitment);
        draft.tags = vec![item_tag(item, commitment)];
        draft
    }

    /// Destroys an item's content: every key of it, and everything but its links. On a full disk too.
    pub(crate) fn erase(&mut self, item: ItemId, event: Event) -> Result<Written, Error> {
        self.tx.use_reserve();
        self.erase_for_agent(item, event)
    }

    /// The same where an agent asks for it: never with what is kept back for a full disk. With that the owner alone erases, and the sweep.
    pub(crate) fn erase_for_agent(&mut self, item: ItemId, event: Event) -> Result<Written, Error> {
        let happened = if event == Event::Expire { Happened::Expired } else { Happened::Deleted };
        self.destroy(item, event, happened)
    }

    /// The same, to make room for what the same transaction writes: never with what is kept back for a full disk.
    pub(crate) fn evict(&mut self, item: ItemId) -> Result<Written, Error> {
        self.destroy(item, Event::Erase, Happened::Evicted)
    }

    /// The same of an item whose life is over, as the sweep would.
    pub(crate) fn expire(&mut self, item: ItemId) -> Result<Written, Error> {
        self.destroy(item, Event::Expire, Happened::Expired)
    }

    fn destroy(&mut self, item: ItemId, event: Event, happened: Happened) -> Result<Written, Error> {
        let (slot, mut head) = schema::head(self.tx, item)?;
        // Of what was taken back it was told then.
        if head.status == Status::Current {
            self.tell_of_stored(happened, &head, None)?;
        }
        let last = self.last_link(&head)?;
        let versions: Vec<u32> =
            head.replaced.iter().map(|(seq, _)| *seq).chain([head.version_seq]).collect();
        let written = self.append_link(&mut head, &last, event)?;
        for seq in versions {
            self.drop_version(item, seq)?;
        }
        self.forget_source(item)?;
        self.tx.wipe(slot);
        HEADS.delete(self.tx, &item);
        TOMBSTONES.put(self.tx, &item, &(head.seq, self.now))?;
        HOLDS.delete(self.tx, &item);
        ACCESSED.delete(self.tx, &item);
        REASONS.delete(self.tx, &item);
        self.drop_edges(item)?;
        self.drop_answer(item)?;
        self.ended.items.push(item);
        self.contacts_changed |= !head.few.people().is_empty();
        self.announce(item, None);
        Ok(written)
    }

    /// Destroys the replaced versions of an item that are old by the time at which they were replaced, unless it is held. How many.
    pub(crate) fn trim(&mut self, item: ItemId, is_old: impl Fn(Timestamp) -> bool) -> Result<usize, Error> {
        if self.is_held(item)? {
            return Ok(0);
        }
        let (slot, mut head) = schema::head(self.tx, item)?;
        let (old, young): (Vec<(u32, _)>, Vec<_>) =
            head.replaced.iter().copied().partition(|(_, at)| is_old(*at));
        if old.is_empty() {
            return Ok(0);
        }
        self.announce_destroyed(item);
        for (seq, _) in &old {
            self.drop_version(item, *seq)?;
        }
        head.replaced = young.into();
        HEADS.put_in(self.tx, slot, &item, &head)?;
        let event = self.last_link(&head)?.event;
        self.announce(item, Some((head, event)));
        Ok(old.len())
    }

    /// Destroys one version.
    pub(crate) fn drop_version(&mut self, item: ItemId, seq: u32) -> Result<(), Error> {
        let key = (item, seq);
        if let Some((slot, _)) = VERSIONS.get_with_slot(self.tx, &key)? {
            VERSIONS.delete(self.tx, &key);
            self.tx.wipe(slot);
        }
        AUTHORS.delete(self.tx, &key);
        // What its author was answered has a hash of what it said.
        if seq == 0 {
            self.drop_answer(item)?;
        }
        Ok(())
    }

    /// Tells the caches, once it is durable, that a version of an item was destroyed which still has others. A version that was in
    /// force until now is told of after the change that replaces it, so that the views that hold it have noted that.
    pub(crate) fn announce_destroyed(&mut self, item: ItemId) {
        let gateway = self.gateway.clone();
        self.ended.versions = true;
        self.tx.on_commit(move || gateway.views.version_destroyed(item));
    }

    /// Tells heads and views of an item's change, once it is durable: of its head, and the last event of its chain, or that it is gone.
    pub(crate) fn announce(&mut self, item: ItemId, head: Option<(Head, Event)>) {
        let (gateway, at) = (self.gateway.clone(), self.now);
        let vouches = head.as_ref().is_none_or(|(_, event)| matches!(event, Event::Reseal | Event::Migrate));
        let head = head.map(|(head, _)| head);
        self.tx.on_commit(move || {
            let before = gateway.heads.get(item);
            let after = gateway.heads.set(item, head);
            gateway.corpora.changed(item);
            gateway.concluded.changed(item);
            gateway.brains.changed(&[before, after.clone()]);
            gateway.views.changed(Change { item, after, vouches, at });
        });
    }
}

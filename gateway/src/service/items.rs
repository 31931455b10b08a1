//! Items: written, corrected, taken back, put back (protocol sections 4 and 11).
//!
//! One transaction per user-visible fact: item, link, receipt and indexes are there together or not at all.

use crate::api::Document;
pub use crate::api::items::{ExplainQuery, ListQuery, Written};
use crate::api::items::{Explanation, Item, ItemPage, WholeItem};
use crate::error::{Conflict, Error, MemberError};
use crate::service::{Imports, Items, Keys};
use crate::state::commits::{Draft, Writing, chain_of, until_it_holds};
use crate::state::contacts::Contacts;
use crate::state::gateway::{Gateway, blocking};
use crate::state::owner::mark::{Permits, Read, Write};
use crate::state::owner::{Acting, Owner};
use crate::state::schema::{self, HEADS, HOLDS, LINKS, PEOPLE, SAID, TOMBSTONES, VERSIONS};
use crate::state::views;
use oap_identity::json::canonical;
use oap_identity::{Hash, ItemId, ReceiptId, Timestamp};
use oap_memory::chain::{Event, Link};
use oap_memory::commitment::{self, Committed, Place};
use oap_memory::detect::segments;
use oap_memory::item::{Body, Defaults};
use oap_memory::project::{explain, project};
use oap_memory::receipt::item_tag;
use oap_memory::record::{Head, Meta, Status, Whole};
use oap_store::StoreError;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Most items of one write.
pub const MAX_BATCH: usize = 1000;

/// A version that was concealed and signed, and is about to be stored.
pub(crate) struct Prepared {
    body: Body,
    committed: Committed,
    /// The link, signed. It names the receipt that will be made.
    pub link: Link,
    /// The contacts that the text was cut with, by how often they had changed.
    contacts: u64,
}

impl Items<'_> {
    /// Writes new items, all or none. The receipts are one per item: a receipt for a batch would tell a grantee
    /// about its neighbours.
    ///
    /// # Errors
    /// [`Error::Item`] naming the member of the first item that is refused.
    pub async fn capture(
        self,
        owner: &Owner<impl Permits<Write>>,
        items: &[Value],
    ) -> Result<Vec<Written>, Error> {
        self.capture_for(owner.into(), items).await
    }

    /// The same, for whoever acts.
    ///
    /// # Errors
    /// As [`Items::capture`].
    pub(crate) async fn capture_for(self, acting: Acting, items: &[Value]) -> Result<Vec<Written>, Error> {
        if items.is_empty() || items.len() > MAX_BATCH {
            return Err(Error::Member("items", MemberError::Number { most: MAX_BATCH, of: "items" }));
        }
        let now = self.0.clock.now();
        let bodies = items.iter().map(|item| self.parse_item(item, now)).collect::<Result<Vec<_>, _>>()?;
        let bodies = Arc::new(bodies);
        let stored = until_it_holds(|| self.capture_once(&acting, bodies.clone())).await?;
        metrics::counter!("oap_items_captured_total").increment(stored.len() as u64);
        Ok(stored)
    }

    async fn capture_once(self, acting: &Acting, bodies: Arc<Vec<Body>>) -> Result<Vec<Written>, Error> {
        let gateway = self.0.clone();
        let prepared = blocking(move || {
            // Contacts of the same write are people of its texts already.
            let words: Vec<String> = bodies.iter().flat_map(Body::people).collect();
            let contacts = gateway.contact_names.of_and(&gateway.heads, &words);
            let now = gateway.clock.now();
            let prepare = |body: &Body| Items(&gateway).prepare_capture(body.clone(), &contacts, now);
            bodies.iter().map(prepare).collect::<Result<Vec<_>, _>>()
        });
        let prepared = prepared.await?;
        let stored = self
            .0
            .commit_for(acting.clone(), move |w| {
                prepared.into_iter().map(|item| w.store_capture(item)).collect::<Result<Vec<_>, _>>()
            })
            .await?;
        Ok(stored)
    }

    /// Replaces what an item says; members that are not named stay. The former version is kept for the retention
    /// time and is in no view.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Item`], [`Error::Conflict`] when `version` is not the one in force.
    pub async fn correct(
        self,
        owner: &Owner<impl Permits<Write>>,
        item: ItemId,
        changes: Value,
        version: Option<u32>,
        event: Event,
    ) -> Result<Written, Error> {
        let changes = Arc::new(changes);
        until_it_holds(|| {
            let changes = changes.clone();
            self.rewrite(owner, item, event, None, move |gateway, before| {
                if version.is_some_and(|version| version != before.head.version_seq + 1) {
                    return Err(Error::Conflict(Conflict::NewerVersion));
                }
                let merged = merge(&whole(&before.committed)?, &changes)?;
                let body = Items(gateway).parse_item(&merged, gateway.clock.now())?;
                if body.scope_id != before.head.scope_id {
                    return Err(Error::Member("scope_id", MemberError::OtherScope));
                }
                Ok(Some(body))
            })
        })
        .await?
        .ok_or(Error::NotFound)
    }

    /// Cuts an item's text anew with the detectors and the contacts of today. `None` when nothing changes; else
    /// there is a version more, that says the same. With `always` there is one whether or not something changes: for
    /// all items at once, so that who sees one of them learns nothing of what it mentions; and of such a job all links are
    /// dated `at`, its beginning, so that who sees two learns nothing of how many came between. A later time is now.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when the item is not current, or its chain does not hold.
    pub async fn reseal(
        self,
        owner: &Owner<impl Permits<Write>>,
        item: ItemId,
        always: bool,
        at: Option<Timestamp>,
    ) -> Result<Option<Written>, Error> {
        until_it_holds(|| {
            self.rewrite(owner, item, Event::Reseal, at, move |gateway, before| {
                // A reseal vouches for what a compromised key signed: never for what was not written here.
                Keys(gateway).wrote(item)?;
                let (body, changes) = Items(gateway).cut_anew(before)?;
                Ok((always || changes).then_some(body))
            })
        })
        .await
    }

    /// Whether resealing an item would change how its text is cut.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`], [`Error::Corrupt`].
    pub async fn would_reseal(self, _: &Owner<impl Permits<Write>>, item: ItemId) -> Result<bool, Error> {
        let gateway = self.0.clone();
        blocking(move || {
            let before = Items(&gateway).in_force(item)?;
            Ok(before.head.status == Status::Current && Items(&gateway).cut_anew(&before)?.1)
        })
        .await
    }

    /// What an item says, and whether its text would be cut in another way today.
    pub(crate) fn cut_anew(self, before: &InForce) -> Result<(Body, bool), Error> {
        let body = Imports(self.0).body_of(&before.committed, self.0.clock.now())?;
        let cut = segments(
            body.text.as_deref().unwrap_or_default(),
            &self.0.contact_names.of(&self.0.heads).people,
        );
        let changes = !before.committed.is_cut_as(&cut)?;
        Ok((body, changes))
    }

    /// Gives a current item another version, which `change` makes of the one in force: prepared beside the writer, and
    /// stored where the item is still what it was.
    async fn rewrite(
        self,
        owner: &Owner<impl Permits<Write>>,
        item: ItemId,
        event: Event,
        at: Option<Timestamp>,
        change: impl FnOnce(&Arc<Gateway>, &InForce) -> Result<Option<Body>, Error> + Send + 'static,
    ) -> Result<Option<Written>, Error> {
        let gateway = self.0.clone();
        let prepared = blocking(move || {
            let before = Items(&gateway).in_force(item)?;
            if before.head.status != Status::Current {
                return Err(Error::Conflict(Conflict::NotCurrent));
            }
            let contacts = gateway.contact_names.of(&gateway.heads);
            let body = change(&gateway, &before)?;
            let Some(body) = body else { return Ok(None) };
            let now = gateway.clock.now();
            let at = at.map_or(now, |at| at.min(now));
            let prepared = Items(&gateway).prepare_version_at(&before, body, event, &contacts, at)?;
            if event == Event::Reseal {
                Keys(&gateway).holds_with(item, &prepared.link)?;
            }
            Ok::<_, Error>(Some(prepared))
        });
        let Some(prepared) = prepared.await? else { return Ok(None) };
        let stored = self.0.commit_as(owner, move |w| w.store_version(prepared, event).map(Some)).await?;
        Ok(stored)
    }

    /// An item as it is stored, with the version in force.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn in_force(self, item: ItemId) -> Result<InForce, Error> {
        fn found<V>(value: Result<Option<V>, StoreError>) -> Result<V, Error> {
            match value {
                Err(StoreError::Erased) => Err(Error::NotFound),
                value => value?.ok_or(Error::NotFound),
            }
        }
        let head = found(HEADS.get(&self.0.store, &item))?;
        let link =
            |seq| Ok::<Link, Error>(serde_json::from_slice(&found(LINKS.get(&self.0.store, &(item, seq)))?)?);
        Ok(InForce {
            committed: found(VERSIONS.get(&self.0.store, &(item, head.version_seq)))?,
            last: link(head.seq)?,
            capture: link(0)?.receipt,
            head,
        })
    }

    /// Appends a link without a new version: `retract`, `restore` or `confirm`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when the item is not in a state for it.
    pub async fn mark(
        self,
        owner: &Owner<impl Permits<Write>>,
        item: ItemId,
        event: Event,
    ) -> Result<Written, Error> {
        self.0.commit_as(owner, move |w| w.mark(item, event)).await
    }

    /// An item as its owner sees it: wire form, record, chain.
    ///
    /// # Errors
    /// [`Error::NotFound`]; an erased item has its chain alone.
    pub fn item(self, _: &Owner<impl Permits<Read>>, item: ItemId) -> Result<WholeItem, Error> {
        let links = views::links(&self.0.store, item)?;
        if links.is_empty() {
            return Err(Error::NotFound);
        }
        let chain = links.into_iter().map(Document::read).collect::<Result<_, _>>()?;
        let Some(head) = self.0.heads.get(item) else {
            let item = Document::read(json!({"item_id": item, "status": Status::Erased}))?;
            return Ok(WholeItem { chain, item, record: None, superseded: None });
        };
        let mut versions = Vec::new();
        for (seq, _) in &head.replaced {
            if let Ok(committed) = schema::version(&self.0.store, item, *seq) {
                let mut version = whole(&committed)?;
                version.insert("status".into(), json!(Status::Superseded));
                versions.push(Value::Object(version));
            }
        }
        Ok(WholeItem {
            chain,
            item: Document::read(self.owner_item(&head)?)?,
            record: Some(Document::of(serde_json::to_value(&head.meta)?, head.meta.clone())),
            superseded: Some(versions),
        })
    }

    /// What each rule of a profile does to an item at a level.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an item that is not there, [`Error::Limit`] for an unknown profile.
    pub fn explain(
        self,
        _: &Owner<impl Permits<Read>>,
        item: ItemId,
        wanted: &ExplainQuery,
    ) -> Result<Explanation, Error> {
        let head = self.0.heads.get(item).ok_or(Error::NotFound)?;
        let unknown = || oap_grants::limits::LimitError::UnknownProfile(wanted.profile.clone());
        let profile = self.0.profile(&wanted.profile).ok_or_else(unknown)?;
        let committed = schema::version(&self.0.store, item, head.version_seq)?;
        let shown = project(&committed, profile, wanted.level, false)?;
        Ok(Explanation {
            item_id: item,
            level: wanted.level,
            profile: profile.name().to_owned(),
            rules: explain(&committed, profile, wanted.level)?,
            visible: serde_json::to_value(shown.item())?,
        })
    }

    /// The wire form of an item with everything shown.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Corrupt`].
    pub(crate) fn owner_item(self, head: &Head) -> Result<Value, Error> {
        let committed = schema::version(&self.0.store, head.item_id, head.version_seq)?;
        let mut item = whole(&committed)?;
        item.insert("status".into(), json!(head.status));
        item.insert("version".into(), json!(head.version_seq + 1));
        Ok(Value::Object(item))
    }

    /// Items newest first, as their owner sees them; and where to go on.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn list(self, _: &Owner<impl Permits<Read>>, wanted: &ListQuery) -> Result<ItemPage, Error> {
        let limit = wanted.limit.unwrap_or(50).clamp(1, 1000);
        let mut heads = self.0.heads.all();
        heads.retain(|head| wanted.admits(head));
        heads.reverse();
        let next = heads.get(limit - 1).map(|head| head.item_id).filter(|_| heads.len() > limit);
        let read = |head: &Arc<Head>| Ok(Document::<Item>::read(self.owner_item(head)?)?);
        let items = heads.iter().take(limit).map(read).collect::<Result<_, Error>>()?;
        Ok(ItemPage { items, next })
    }

    pub(crate) fn parse_item(self, item: &Value, now: Timestamp) -> Result<Body, Error> {
        let defaults = Defaults { principal: &self.0.principal, scope: &self.0.config.default_scope, now };
        Ok(Body::parse(item, &defaults)?)
    }

    pub(crate) fn prepare_capture(
        self,
        body: Body,
        contacts: &Contacts,
        now: Timestamp,
    ) -> Result<Prepared, Error> {
        let receipt = ReceiptId::new(now, &*self.0.random);
        let item_id = ItemId::new(now, &*self.0.random);
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
        let link = link.signed(keys.current())?;
        Ok(Prepared { body, committed, link, contacts: contacts.changes })
    }
}

/// An item as it is stored.
pub(crate) struct InForce {
    pub head: Head,
    /// The version in force.
    pub committed: Committed,
    /// The last link of its chain.
    last: Link,
    /// The receipt of its capture.
    capture: ReceiptId,
}

impl ListQuery {
    fn admits(&self, head: &Head) -> bool {
        head.status == self.status.unwrap_or(Status::Current)
            && self.before.is_none_or(|before| head.item_id < before)
            && self.kind.is_none_or(|kind| head.kind == kind)
            && self.label.as_ref().is_none_or(|label| head.labels.contains(label))
            && self.scope.as_ref().is_none_or(|scope| head.scope_id == *scope)
            && self.subject.as_ref().is_none_or(|subject| head.subject_entity_id.as_ref() == Some(subject))
    }
}

/// A version with everything shown.
pub(crate) fn whole(committed: &Committed) -> Result<Map<String, Value>, Error> {
    Ok(commitment::wire(&committed.claims(committed.disclosures().iter())?)?)
}

/// An item with everything shown and everything that proves it, as bundles carry it.
pub(crate) fn proved(whole_item: &Whole, status: Status) -> Result<Map<String, Value>, Error> {
    let mut item = whole(&whole_item.committed)?;
    let chain: Vec<Value> =
        whole_item.chain.iter().map(|link| serde_json::from_str(link)).collect::<Result<_, _>>()?;
    let capture: Value = serde_json::from_str(&whole_item.capture_receipt)?;
    let all = whole_item.committed.disclosures().iter();
    item.insert("status".to_owned(), json!(status));
    item.insert(
        "integrity".to_owned(),
        json!({"sd_jwt": whole_item.committed.present(all), "chain": chain, "capture_receipt": capture}),
    );
    Ok(item)
}

/// An item with some members replaced, in the form in which items are written. Of `content` and `provenance` the
/// named members are replaced, of everything else the whole.
pub(crate) fn merge(current: &Map<String, Value>, changes: &Value) -> Result<Value, Error> {
    let Value::Object(changes) = changes else {
        return Err(Error::Member("item", MemberError::NotObject));
    };
    let mut merged = current.clone();
    for made in ["item_id", "owner_did", "version", "status"] {
        merged.remove(made);
    }
    if let Some(provenance) = merged.get_mut("provenance").and_then(Value::as_object_mut) {
        provenance.remove("source_receipt");
    }
    for (name, value) in changes {
        match (name.as_str(), merged.get_mut(name), value) {
            ("content" | "provenance", Some(Value::Object(members)), Value::Object(new)) => {
                members.extend(new.clone());
                members.retain(|_, value| !value.is_null());
            }
            (_, _, value) => drop(merged.insert(name.clone(), value.clone())),
        }
    }
    Ok(Value::Object(merged))
}

impl Writing<'_, '_> {
    /// That a version can be stored as it was prepared: with the keys in use, and cut with the contacts of now.
    fn still_prepared(&self, prepared: &Prepared) -> Result<(), Error> {
        let contacts = PEOPLE.get(self.tx)?;
        let holds =
            prepared.committed.is_signed_by(self.keys.current().kid()) && prepared.contacts == contacts;
        if holds { Ok(()) } else { Err(Error::Overtaken) }
    }

    /// Stores a new item.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when keys or contacts changed since it was prepared.
    pub(crate) fn store_capture(&mut self, prepared: Prepared) -> Result<Written, Error> {
        self.still_prepared(&prepared)?;
        let Prepared { body, committed, link, .. } = prepared;
        let head = Head::new(link.item_id, &body, Meta::owner(self.gateway.principal.clone(), false));
        self.contacts_changed |= !head.people.is_empty();
        self.store_prepared(head, &committed, &link)
    }

    /// Stores a version of an item that is still what it was when the version was prepared.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it was erased; [`Error::Overtaken`].
    pub(crate) fn store_version(&mut self, prepared: Prepared, event: Event) -> Result<Written, Error> {
        let (_, mut head) = schema::head(self.tx, prepared.link.item_id)?;
        if head.seq + 1 != prepared.link.seq || event != prepared.link.event {
            return Err(Error::Overtaken);
        }
        self.still_prepared(&prepared)?;
        let Prepared { body, committed, link, .. } = prepared;
        let people = std::mem::take(&mut head.people);
        head.take(&body);
        self.contacts_changed |= head.people != people;
        head.replaced.push((head.version_seq, self.now));
        head.seq = link.seq;
        head.version_seq = link.seq;
        self.store_prepared(head, &committed, &link)
    }

    fn store_prepared(&mut self, head: Head, committed: &Committed, link: &Link) -> Result<Written, Error> {
        let (item, commitment) = (link.item_id, link.commitment);
        let mut draft = self.item_draft(link.event, item, commitment);
        draft.id = Some(link.receipt);
        self.receipt(&chain_of(&head.scope_id), draft)?;
        LINKS.put(self.tx, &(item, link.seq), &canonical(link)?)?;
        let written =
            Written { item_id: item, receipt_id: link.receipt, commitment, version: head.version_seq + 1 };
        self.put_version(head, committed)?;
        Ok(written)
    }

    /// Stores head and version under a fresh key.
    pub(crate) fn put_version(&mut self, head: Head, committed: &Committed) -> Result<(), Error> {
        let said = SAID.get(self.tx, &head.item_id)?;
        let slot = self.tx.new_slot()?;
        VERSIONS.put_in(self.tx, slot, &(head.item_id, head.version_seq), committed)?;
        if let Some(said) = said {
            SAID.put_in(self.tx, slot, &head.item_id, &said)?;
        }
        HEADS.put_in(self.tx, slot, &head.item_id, &head)?;
        self.announce(head.item_id, Some(Arc::new(head)));
        Ok(())
    }

    /// Appends a link without a new version: `retract`, `restore` or `confirm`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when the item is not in a state for it.
    pub(crate) fn mark(&mut self, item: ItemId, event: Event) -> Result<Written, Error> {
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
                head.status = Status::Current;
                head.ended_at = None;
            }
            (Event::Confirm, Status::Current) => {
                head.meta.human_verified = true;
                head.meta.needs_verification = false;
            }
            _ => return Err(Error::Conflict(Conflict::ItemState)),
        }
        let last = self.last_link(&head)?;
        let written = self.append_link(&mut head, &last, event, last.commitment)?;
        HEADS.put_in(self.tx, slot, &item, &head)?;
        self.announce(item, Some(Arc::new(head)));
        Ok(written)
    }

    /// Appends a link and its receipt, and counts it in the head.
    pub(crate) fn append_link(
        &mut self,
        head: &mut Head,
        last: &Link,
        event: Event,
        commitment: Hash,
    ) -> Result<Written, Error> {
        let draft = self.item_draft(event, head.item_id, commitment);
        self.append_link_as(head, last, event, draft)
    }

    /// The same, with a receipt that says more.
    pub(crate) fn append_link_as(
        &mut self,
        head: &mut Head,
        last: &Link,
        event: Event,
        draft: Draft,
    ) -> Result<Written, Error> {
        let commitment = draft.output_hash.unwrap_or(last.commitment);
        let receipt = self.receipt(&chain_of(&head.scope_id), draft)?;
        let link = Link {
            item_id: head.item_id,
            seq: last.seq + 1,
            event,
            at: self.now.max(last.at),
            actor: self.gateway.principal.clone(),
            commitment,
            prev: Link::write_prev(Some(last.hash()?)),
            receipt: receipt.receipt_id,
            signature: String::new(),
        };
        head.seq = link.seq;
        self.put_link(link)?;
        let version = if event.commits() { head.seq + 1 } else { head.version_seq + 1 };
        Ok(Written { item_id: head.item_id, receipt_id: receipt.receipt_id, commitment, version })
    }

    fn put_link(&mut self, link: Link) -> Result<(), Error> {
        let (item, seq) = (link.item_id, link.seq);
        let link = link.signed(self.keys.current())?;
        Ok(LINKS.put(self.tx, &(item, seq), &canonical(&link)?)?)
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

    /// Destroys an item's content: every key of it, and everything but its links.
    pub(crate) fn erase(&mut self, item: ItemId, event: Event) -> Result<Written, Error> {
        self.tx.use_reserve();
        let (slot, mut head) = schema::head(self.tx, item)?;
        let last = self.last_link(&head)?;
        let versions: Vec<u32> =
            head.replaced.iter().map(|(seq, _)| *seq).chain([head.version_seq]).collect();
        let written = self.append_link(&mut head, &last, event, last.commitment)?;
        for seq in versions {
            self.drop_version(item, seq)?;
        }
        self.forget_source(item)?;
        self.tx.wipe(slot);
        HEADS.delete(self.tx, &item);
        TOMBSTONES.put(self.tx, &item, &(head.seq, self.now))?;
        HOLDS.delete(self.tx, &item);
        self.ended.items.push(item);
        self.contacts_changed |= !head.people.is_empty();
        self.announce(item, None);
        Ok(written)
    }

    /// Destroys one version.
    pub(crate) fn drop_version(&mut self, item: ItemId, seq: u32) -> Result<(), Error> {
        let key = (item, seq);
        if let Some((slot, _)) = VERSIONS.get_with_slot(self.tx, &key)? {
            VERSIONS.delete(self.tx, &key);
            self.tx.wipe(slot);
        }
        Ok(())
    }

    /// Tells heads and views of an item's change, once it is durable.
    pub(crate) fn announce(&mut self, item: ItemId, head: Option<Arc<Head>>) {
        let (gateway, now) = (self.gateway.clone(), self.now);
        self.tx.on_commit(move || {
            let before = gateway.heads.set(item, head.clone());
            gateway.views.changed(item, before, head, now);
        });
    }
}

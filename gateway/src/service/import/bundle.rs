//! Items of a bundle, with the history that they have.

use super::{BundleChunk, ImportRefusal, MAX_CHUNK};
use crate::api::transfer::ImportOutcome;
use crate::error::{Error, MemberError};
use crate::service::{Imports, Items, former};
use crate::state::commits::{Writing, until_it_holds};
use crate::state::gateway::{blocking, on_all_cores};
use crate::state::keyring::Keyring;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{
    self, FOREIGN_RECEIPTS, FORMER, GONE, LINKS, RECEIPT_PLACES, RECEIPTS, TOMBSTONES, VERSIONS,
};
use oap_federation::step::Part;
use oap_identity::json::{self, JsonError, canonical};
use oap_identity::{BundleId, Did, DidDocument, Hash, ItemId, ReceiptId, Timestamp};
use oap_memory::bundle::ItemLine;
use oap_memory::chain::{Event, Link, VerifiedChain};
use oap_memory::commitment::{self, Committed};
use oap_memory::evidence::{self, VerifiedItem};
use oap_memory::item::{ALWAYS, Body};
use oap_memory::receipt::Receipt;
use oap_memory::record::{Head, Meta, Status};
use oap_store::Encoded;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A bundle's item whose every proof was checked, as it will be stored.
struct Arrived {
    links: Vec<Link>,
    link_rows: Vec<Encoded<Vec<u8>>>,
    capture_id: ReceiptId,
    /// The hash of the capture receipt, which its signatures are not part of.
    capture_hash: Hash,
    capture_row: Encoded<Vec<u8>>,
    commitment: Hash,
    current: Encoded<Committed>,
    superseded: Vec<(u32, Encoded<Committed>)>,
    head: Head,
    /// The link that says that it came.
    migrated: Link,
    migrated_row: Encoded<Vec<u8>>,
}

type Known = BTreeMap<Did, Arc<DidDocument>>;

/// What is known of a former house once a bundle has said what it knows: a house's own bundle says what its keys are.
fn former_after(before: Option<Vec<u8>>, brought: &Value, is_its_own: bool) -> Result<Value, Error> {
    match before {
        Some(before) if !is_its_own => former::join(&json::parse(&before)?, brought),
        _ => Ok(brought.clone()),
    }
}

impl Imports<'_> {
    /// Takes in a chunk of a bundle.
    ///
    /// # Errors
    /// [`Error::Member`] for a chunk that is none; [`Error::Store`]. What is wrong with one item refuses that item.
    pub async fn import_bundle(
        self,
        owner: &Owner<impl Permits<Admin>>,
        chunk: BundleChunk,
    ) -> Result<Vec<ImportOutcome>, Error> {
        if chunk.items.is_empty() || chunk.items.len() > MAX_CHUNK {
            return Err(Error::Member("items", MemberError::Number { most: MAX_CHUNK, of: "items" }));
        }
        let chunk = Arc::new(chunk);
        until_it_holds(|| self.import_bundle_once(owner, &chunk)).await
    }

    async fn import_bundle_once(
        self,
        owner: &Owner<impl Permits<Admin>>,
        chunk: &Arc<BundleChunk>,
    ) -> Result<Vec<ImportOutcome>, Error> {
        let former = self.former_after(chunk)?;
        let mut known = former
            .iter()
            .map(|(did, document)| Ok((did.clone(), Arc::new(former::read(document, did)?))))
            .collect::<Result<Known, Error>>()?;
        // What this gateway signed is checked with its own keys, whatever a bundle says they are.
        let keys = self.0.keys();
        known.insert(self.0.principal.clone(), Arc::new(keys.document().clone()));
        let check = {
            let (gateway, chunk, keys) = (self.0.clone(), chunk.clone(), keys.clone());
            move || {
                let now = gateway.clock.now();
                let arrive = |line: &Result<ItemLine, JsonError>| {
                    let line = line.as_ref().map_err(|error| ImportRefusal::Json(error.clone()))?;
                    Imports(&gateway).arrive(line, &chunk.principal, &known, &keys, now)
                };
                Ok(on_all_cores(chunk.items.iter().collect(), arrive))
            }
        };
        let arrived = blocking(check).await?;
        let chunk = chunk.clone();
        let stored = self
            .0
            .commit_as(owner, move |w| {
                let BundleChunk { bundle_id, principal, dry_run, .. } = &*chunk;
                // What was checked and signed with others is checked and signed anew.
                if !w.keys.are(&keys) {
                    return Err(Error::Overtaken);
                }
                w.take_former(&former, principal, *dry_run)?;
                let mut outcomes = Vec::with_capacity(arrived.len());
                for item in arrived {
                    outcomes.push(match item {
                        Err(why) => ImportOutcome::Refused(why.to_string()),
                        Ok(item) => w.take_in(item, *bundle_id, principal, *dry_run)?,
                    });
                }
                Ok(outcomes)
            })
            .await?;
        Ok(stored)
    }

    /// What is known of each former house with what a bundle says of it.
    fn former_after(self, chunk: &BundleChunk) -> Result<BTreeMap<Did, Value>, Error> {
        let mut former = BTreeMap::new();
        for document in &chunk.documents {
            let did = former::did_of(document)?;
            if did == self.0.principal {
                continue;
            }
            let before = FORMER.get(&self.0.store, &did)?;
            let after = former_after(before, document, did == chunk.principal)?;
            if former.insert(did, after).is_some() {
                return Err(Error::Member("documents", MemberError::Twice));
            }
        }
        Ok(former)
    }

    /// Checks one item of a bundle; why it is refused otherwise.
    fn arrive(
        self,
        line: &ItemLine,
        principal: &Did,
        known: &Known,
        keys: &Keyring,
        now: Timestamp,
    ) -> Result<Arrived, ImportRefusal> {
        let verified = evidence::item(&line.item, known)
            .and_then(VerifiedItem::proved)
            .and_then(|item| item.as_of(now))?;
        if verified.holder != *principal {
            return Err(ImportRefusal::OtherOwner);
        }
        let current = line.item["integrity"]["sd_jwt"].as_str().unwrap_or_default();
        let current = Committed::read(current)?;
        let body = self.whole_body(&current, now)?;
        let links = verified.chain.links().to_vec();
        let superseded = self
            .superseded(&line.superseded, &links, known, now)
            .map_err(|why| ImportRefusal::Superseded(Box::new(why)))?;
        let mut record = line.record.clone();
        // What the owner wrote in the former house is the owner's own here.
        for record in record.iter_mut().filter(|record| *record.author == *principal) {
            record.author = Arc::new(self.0.principal.clone());
        }
        let head = head_of(&verified.chain, &body, &superseded, record, &self.0.principal, now);
        let evidence = &line.item["integrity"];
        let stored = || -> Result<Arrived, Error> {
            let receipt = ReceiptId::new(now, &*self.0.random);
            let migrated =
                verified.chain.last().followed_by(Event::Migrate, now, &self.0.principal, receipt)?;
            let (migrated, migrated_link) = migrated.signed_written(keys.current())?;
            let written = evidence["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
            let row = |link: &Value| Ok(LINKS.encode(&canonical(link)?)?);
            let version = |(seq, version): (u32, Committed)| Ok((seq, VERSIONS.encode(&version)?));
            Ok(Arrived {
                link_rows: written.iter().map(row).collect::<Result<_, Error>>()?,
                capture_row: FOREIGN_RECEIPTS.encode(&canonical(&evidence["capture_receipt"])?)?,
                capture_id: verified.capture.receipt_id,
                capture_hash: verified.capture.hash()?,
                links,
                commitment: current.commitment(),
                current: VERSIONS.encode(&current)?,
                superseded: superseded.into_iter().map(version).collect::<Result<_, Error>>()?,
                head,
                migrated,
                migrated_row: LINKS.encode(&migrated_link)?,
            })
        };
        Ok(stored()?)
    }

    /// What a version says, with nothing held back that every version has: reading would take it for what its writer left open.
    fn whole_body(self, version: &Committed, now: Timestamp) -> Result<Body, ImportRefusal> {
        let claims = version.claims()?;
        let said = commitment::wire(&claims)?;
        let claims = Value::Object(claims);
        if let Some(place) = ALWAYS.iter().find(|place| claims.pointer(place).is_none()) {
            return Err(ImportRefusal::HeldBack(place));
        }
        let segments = claims.pointer("/content/text").and_then(Value::as_array);
        if segments.into_iter().flatten().any(|segment| segment.is_object() && segment.get("v").is_none()) {
            return Err(ImportRefusal::HeldBack("the words of a span in /content/text"));
        }
        Ok(Items(self.0).body_said(&said, now)?)
    }

    /// The replaced versions that came along, each in its place of the chain.
    fn superseded(
        self,
        texts: &[String],
        links: &[Link],
        known: &Known,
        now: Timestamp,
    ) -> Result<Vec<(u32, Committed)>, ImportRefusal> {
        let mut versions = Vec::new();
        for text in texts {
            let claims = commitment::verify(text, known)?;
            evidence::check_place(&claims, links)?;
            let version = Committed::read(text)?;
            self.whole_body(&version, now)?;
            versions.push((claims.place().seq, version));
        }
        versions.sort_by_key(|(seq, _)| *seq);
        versions.dedup_by_key(|(seq, _)| *seq);
        Ok(versions)
    }
}

/// The head that a chain leads to.
fn head_of(
    chain: &VerifiedChain,
    body: &Body,
    superseded: &[(u32, Committed)],
    record: Option<Meta>,
    principal: &Did,
    now: Timestamp,
) -> Head {
    let meta = record.unwrap_or_else(|| Meta::owner(principal.clone(), false));
    let mut head = Head::new(chain.first().item_id, body, meta);
    head.seq = chain.last().seq;
    head.version_seq = chain.version();
    head.status = chain.status();
    head.meta.human_verified &= chain.is_confirmed();
    if head.status == Status::Retracted {
        let retracted = chain.links().iter().rfind(|link| link.event == Event::Retract);
        head.ended_at = retracted.map(|link| link.at.min(now));
    }
    let current = head.version_seq;
    head.replaced =
        superseded.iter().map(|(seq, _)| *seq).filter(|seq| *seq != current).map(|seq| (seq, now)).collect();
    head
}

impl Writing<'_, '_> {
    /// Keeps the documents of former houses that a chunk was checked with.
    ///
    /// # Errors
    /// [`Error::Overtaken`] where another bundle said something else of one meanwhile.
    fn take_former(
        &mut self,
        former: &BTreeMap<Did, Value>,
        principal: &Did,
        dry_run: bool,
    ) -> Result<(), Error> {
        let mut others = false;
        for (did, document) in former {
            let before = FORMER.get(self.tx, did)?;
            let bytes = canonical(document)?;
            others |= before.as_ref().is_some_and(|before| *before != bytes);
            if former_after(before, document, did == principal)? != *document {
                return Err(Error::Overtaken);
            }
            if !dry_run {
                FORMER.put(self.tx, did, &bytes)?;
            }
        }
        if others && !dry_run {
            // What a former house's keys signed may count no more.
            self.signatures_changed()?;
        }
        Ok(())
    }

    fn take_in(
        &mut self,
        arrived: Arrived,
        bundle_id: BundleId,
        from: &Did,
        dry_run: bool,
    ) -> Result<ImportOutcome, Error> {
        let item = arrived.head.item_id;
        if TOMBSTONES.contains(self.tx, &item)? || GONE.contains(self.tx, &item)? {
            return Ok(ImportOutcome::Refused(ImportRefusal::Erased.to_string()));
        }
        if self.is_another_receipt(arrived.capture_id, arrived.capture_hash)? {
            return Ok(ImportOutcome::Refused(ImportRefusal::OtherReceipt.to_string()));
        }
        if arrived.head.is_live(self.now) && self.rival(&arrived.head)?.is_some() {
            return Ok(ImportOutcome::Refused(ImportRefusal::EntryKey.to_string()));
        }
        let held = self.links_of(item)?;
        let mut slot = None;
        if !held.is_empty() {
            if self.is_held(item)? {
                return Ok(ImportOutcome::Refused(ImportRefusal::Held.to_string()));
            }
            let (head_slot, head) = schema::head(self.tx, item)?;
            let commitment = held[held.len() - 1].commitment;
            if arrived.commitment == commitment || held.iter().any(|l| l.commitment == arrived.commitment) {
                return Ok(ImportOutcome::Unchanged(item));
            }
            let known: Vec<Hash> = held.iter().map(Link::hash).collect::<Result<_, _>>()?;
            let theirs: Vec<Hash> = arrived.links.iter().map(Link::hash).collect::<Result<_, _>>()?;
            if !theirs.starts_with(&known) {
                return Ok(ImportOutcome::Refused(ImportRefusal::OtherHistory.to_string()));
            }
            if dry_run {
                return Ok(ImportOutcome::Updated(item));
            }
            for seq in head.replaced.iter().map(|(seq, _)| *seq).chain([head.version_seq]) {
                self.drop_version(item, seq)?;
            }
            slot = Some(head_slot);
        }
        if dry_run {
            return Ok(ImportOutcome::Imported(item));
        }
        if !held.is_empty() {
            self.say(item, &[Part::Words, Part::Labels])?;
        }
        for (seq, link) in arrived.link_rows.into_iter().enumerate().skip(held.len()) {
            LINKS.put_encoded_in(self.tx, 0, &(item, u32::try_from(seq).unwrap_or(u32::MAX)), link)?;
        }
        FOREIGN_RECEIPTS.put_encoded_in(self.tx, 0, &arrived.capture_id, arrived.capture_row)?;
        let mut head = arrived.head;
        let current = head.version_seq;
        for (seq, version) in arrived.superseded.into_iter().filter(|(seq, _)| *seq != current) {
            let slot = self.tx.new_slot()?;
            VERSIONS.put_encoded_in(self.tx, slot, &(item, seq), version)?;
        }
        self.contacts_changed |= !head.few.people().is_empty() || !held.is_empty();
        let mut draft = self.item_draft(Event::Migrate, item, arrived.migrated.commitment);
        draft.more.insert("bundle_id".to_owned(), json!(bundle_id));
        draft.more.insert("from".to_owned(), json!(from));
        head.seq = arrived.migrated.seq;
        self.append_signed(&head.scope_id, &arrived.migrated, arrived.migrated_row, draft)?;
        if let Some(slot) = slot {
            self.tx.wipe(slot);
        }
        self.put_version(head, arrived.current, Event::Migrate)?;
        if !held.is_empty() {
            self.announce_destroyed(item);
        }
        Ok(if held.is_empty() { ImportOutcome::Imported(item) } else { ImportOutcome::Updated(item) })
    }

    /// Whether another receipt has that id here: this gateway's own, or one that came with an item. Signatures may differ: a receipt is
    /// countersigned, and signed anew.
    fn is_another_receipt(&self, id: ReceiptId, hash: Hash) -> Result<bool, Error> {
        let own = match RECEIPT_PLACES.get(self.tx, &id)? {
            Some(place) => RECEIPTS.get(self.tx, &place)?,
            None => None,
        };
        for known in own.into_iter().chain(FOREIGN_RECEIPTS.get(self.tx, &id)?) {
            let known: Receipt = serde_json::from_slice(&known)?;
            if known.hash()? != hash {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn links_of(&self, item: ItemId) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        while let Some(bytes) = LINKS.get(self.tx, &(item, u32::try_from(links.len()).unwrap_or(u32::MAX)))? {
            links.push(serde_json::from_slice(&bytes)?);
        }
        Ok(links)
    }
}

//! Memory on its way in: items of a bundle with their history, and records of other vendors (protocol section 8).
//!
//! An import is hostile ground: every item is verified on its own, what is wrong is refused with its reason, and the
//! rest of the chunk goes in with one transaction. Importing again changes nothing.

use crate::error::Error;
use crate::gateway::Gateway;
use crate::ledger::{Writing, chain_of};
use crate::service::align::{self, Incoming};
use crate::service::items::{Prepared, merge, whole};
use crate::tables::{
    self, FOREIGN_RECEIPTS, FORMER, HEADS, LINKS, LISTS, SOURCES, TOMBSTONES, decode, encode, entry,
};
use oap_identity::json::{self, canonical};
use oap_identity::time::MAX_SKEW;
use oap_identity::{BundleId, Did, DidDocument, Hash, ItemId, Timestamp};
use oap_memory::bundle::{Counts, ItemLine};
use oap_memory::chain::{Event, Link};
use oap_memory::commitment::{self, Committed};
use oap_memory::evidence::{self, VerifiedItem};
use oap_memory::item::Body;
use oap_memory::receipt::{Receipt, ReceiptType};
use oap_memory::record::{Head, Meta, Status};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most items of one chunk.
pub const MAX_CHUNK: usize = 1000;

/// A chunk of a bundle.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleChunk {
    /// Of which bundle.
    pub bundle_id: BundleId,
    /// Whose memory it was: this principal, or a DID of the owner's own at the former house.
    pub principal: Did,
    /// The documents of all who signed something, as the owner trusts them.
    pub documents: Vec<Value>,
    /// Items.
    pub items: Vec<ItemLine>,
    /// Whether nothing is to be written.
    #[serde(default)]
    pub dry_run: bool,
}

/// A chunk of records that an importer made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordChunk {
    /// The records.
    pub records: Vec<Record>,
    /// Items that were erased here and are asked back: their records come in anew, as other items.
    #[serde(default)]
    pub again: Vec<ItemId>,
    /// Whether nothing is to be written.
    #[serde(default)]
    pub dry_run: bool,
}

/// A record of another vendor, as an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// What it is told apart by, over all imports: format, account or file, thread and id.
    pub source: String,
    /// Of a record without an id of its own: the list that it stands in. All records of a list are in one chunk, in
    /// their order.
    #[serde(default)]
    pub group: Option<String>,
    /// The item, as its owner would write it.
    pub item: Value,
}

/// What became of one item or record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is here now.
    Imported(ItemId),
    /// It was here, and has a version more now.
    Updated(ItemId),
    /// It was here.
    Unchanged(ItemId),
    /// It is not here, and why.
    Refused(String),
}

/// What a finished import is recorded as.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// The bundle.
    pub bundle_id: BundleId,
    /// Whose memory it was.
    pub principal: Did,
    /// The hash in its trailer.
    pub hash: Hash,
    /// What it held.
    pub counts: Counts,
    /// Items that came in.
    pub imported: u64,
    /// Items that were here.
    pub unchanged: u64,
    /// Items that were refused.
    pub refused: u64,
}

/// A bundle's item whose every proof was checked.
struct Arrived {
    links: Vec<Link>,
    canonical_links: Vec<Vec<u8>>,
    capture_receipt: Vec<u8>,
    receipt_key: [u8; 16],
    current: Committed,
    superseded: Vec<(u32, Committed)>,
    head: Head,
}

type Known = BTreeMap<Did, Arc<DidDocument>>;

impl Gateway {
    /// Takes in a chunk of a bundle.
    ///
    /// # Errors
    /// [`Error::Member`] for a chunk that is none; [`Error::Store`]. What is wrong with one item refuses that item.
    pub async fn import_bundle(self: &Arc<Self>, chunk: BundleChunk) -> Result<Vec<Fate>, Error> {
        if chunk.items.is_empty() || chunk.items.len() > MAX_CHUNK {
            return Err(Error::Member("items", format!("must be 1 to {MAX_CHUNK} items")));
        }
        let known = self.documents_of(&chunk.documents)?;
        let gateway = self.clone();
        let BundleChunk { bundle_id, principal, documents, items, dry_run } = chunk;
        let check = {
            let principal = principal.clone();
            move || {
                let now = gateway.clock.now();
                let arrive = |line: &ItemLine| gateway.arrive(line, &principal, &known, now);
                items.iter().map(arrive).collect::<Vec<_>>()
            }
        };
        let arrived = tokio::task::spawn_blocking(check);
        let arrived = arrived.await.map_err(|_| Error::Corrupt("checking items failed".into()))?;
        let former: Vec<(Did, Vec<u8>)> = documents
            .iter()
            .filter_map(|document| {
                let did: Did = document["id"].as_str()?.parse().ok()?;
                (did != self.principal).then(|| Some((did, canonical(document).ok()?)))?
            })
            .collect();
        let stored = self
            .commit(move |w| {
                let mut fates = Vec::with_capacity(arrived.len());
                for item in arrived {
                    fates.push(match item {
                        Err(why) => Fate::Refused(why),
                        Ok(item) => w.take_in(item, bundle_id, &principal, dry_run)?,
                    });
                }
                if !dry_run {
                    for (did, document) in &former {
                        w.tx.put(FORMER, did.as_str().as_bytes(), document)?;
                    }
                }
                Ok(fates)
            })
            .await?;
        Ok(stored.into_inner())
    }

    fn documents_of(&self, documents: &[Value]) -> Result<Known, Error> {
        let mut known = Known::new();
        for document in documents {
            let refused = |why: String| Error::Member("documents", why);
            let did: Did = document["id"]
                .as_str()
                .and_then(|did| did.parse().ok())
                .ok_or_else(|| refused("one has no id".into()))?;
            let parsed = DidDocument::parse(document.to_string().as_bytes(), &did);
            known.insert(did, Arc::new(parsed.map_err(|e| refused(e.to_string()))?));
        }
        // What this gateway signed is checked with its own keys, whatever a bundle says they are.
        known.insert(self.principal.clone(), Arc::new(self.keys().document().clone()));
        Ok(known)
    }

    /// Checks one item of a bundle; why it is refused otherwise.
    fn arrive(
        &self,
        line: &ItemLine,
        principal: &Did,
        known: &Known,
        now: Timestamp,
    ) -> Result<Arrived, String> {
        let verified = evidence::item(&line.item, known).and_then(VerifiedItem::proved);
        let verified = verified.map_err(|e| e.to_string())?;
        let links = verified.chain.links().to_vec();
        let last = links.last().ok_or("the chain is empty")?;
        if last.actor != *principal {
            return Err(format!(
                "owner: its chain ends with {}, not with the bundle's principal",
                last.actor
            ));
        }
        if last.at > now.plus(MAX_SKEW) {
            return Err("its chain is from the future".into());
        }
        let current = line.item["integrity"]["sd_jwt"].as_str().unwrap_or_default();
        let current = Committed::read(current).map_err(|e| e.to_string())?;
        let body = self.body_of(&current, now).map_err(|e| e.to_string())?;
        if body.captured_at > now.plus(MAX_SKEW) {
            return Err("provenance.captured_at: is in the future".into());
        }
        let superseded = superseded(&line.superseded, &links, known)?;
        let head = head_of(&links, &body, &superseded, line.record.clone(), &self.principal, now)?;
        let capture = &line.item["integrity"]["capture_receipt"];
        let receipt: Receipt = json::from_value(capture.clone()).map_err(|e| e.to_string())?;
        let written = line.item["integrity"]["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Arrived {
            canonical_links: written
                .iter()
                .map(|link| canonical(link).map_err(|e| e.to_string()))
                .collect::<Result<_, _>>()?,
            capture_receipt: canonical(capture).map_err(|e| e.to_string())?,
            receipt_key: tables::receipt_id(receipt.receipt_id),
            links,
            current,
            superseded,
            head,
        })
    }

    /// What a version says, as this gateway would read it.
    fn body_of(&self, committed: &Committed, now: Timestamp) -> Result<Body, Error> {
        self.parse_item(&merge(&whole(committed)?, json!({}))?, now)
    }

    /// Records a finished import: the Migration Receipt (RFC 0023 section 3.6), which cites the export and names the
    /// new head of the chain.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn import_finish(self: &Arc<Self>, finish: Finish) -> Result<Receipt, Error> {
        let gateway = self.clone();
        let stored = self
            .commit(move |w| {
                let chain = chain_of(&gateway.config.default_scope);
                let head = w.chain(&chain)?;
                let agent = gateway.principal.as_str();
                let mut draft = gateway.draft(ReceiptType::Invocation, "memory.migrate", agent);
                draft.rules = vec!["principal".to_owned()];
                draft.input_hash = Some(finish.hash);
                draft.more = Map::from_iter([
                    ("bundle_id".to_owned(), json!(finish.bundle_id)),
                    ("from".to_owned(), json!(finish.principal)),
                    ("export_hash".to_owned(), json!(finish.hash)),
                    ("counts".to_owned(), json!(finish.counts)),
                    ("imported".to_owned(), json!(finish.imported)),
                    ("unchanged".to_owned(), json!(finish.unchanged)),
                    ("refused".to_owned(), json!(finish.refused)),
                    ("chain_head".to_owned(), json!({"length": head.length, "tip": head.tip})),
                ]);
                w.receipt(&chain, draft)
            })
            .await?;
        Ok(stored.into_inner())
    }

    /// Takes in a chunk of records. A record that was imported before and says something else by now corrects its item.
    ///
    /// # Errors
    /// [`Error::Member`] for a chunk that is none; [`Error::Store`]. What is wrong with one record refuses that record.
    pub async fn import_records(self: &Arc<Self>, chunk: RecordChunk) -> Result<Vec<Fate>, Error> {
        if chunk.records.is_empty() || chunk.records.len() > MAX_CHUNK {
            return Err(Error::Member("records", format!("must be 1 to {MAX_CHUNK} records")));
        }
        if chunk.again.len() > MAX_CHUNK {
            return Err(Error::Member("again", format!("at most {MAX_CHUNK} items")));
        }
        let now = self.clock.now();
        let gateway = self.clone();
        let RecordChunk { records, again, dry_run } = chunk;
        let prepare = move || {
            let mut arriving = Vec::with_capacity(records.len());
            for record in records {
                let body = gateway.record_body(&record, now);
                let key = source_key(&record.source);
                let says = Hash::of_canonical(&record.item)?;
                let known = gateway.store.get(SOURCES, &key)?;
                let known: Option<(ItemId, Hash)> = known.map(|bytes| decode(&bytes)).transpose()?;
                let (group, edits, ready) = (record.group.map(|group| source_key(&group)), None, None);
                arriving.push(Arriving {
                    key,
                    says,
                    body,
                    group,
                    known: known.map(|(item, _)| item),
                    edits,
                    ready,
                });
            }
            gateway.find_edits(&mut arriving)?;
            let words: Vec<String> =
                arriving.iter().flat_map(|one| &one.body).flat_map(Body::people).collect();
            let people = gateway.catalog.people_and(&words);
            for one in &mut arriving {
                // What is here already needs no signatures.
                if let (None, None, Ok(body), false) = (&one.known, &one.edits, &one.body, dry_run) {
                    one.ready = Some(gateway.prepare_capture(body.clone(), &people, now)?);
                }
            }
            Ok::<_, Error>(arriving)
        };
        let arriving = tokio::task::spawn_blocking(prepare).await;
        let arriving = arriving.map_err(|_| Error::Corrupt("preparing records failed".into()))??;
        let stored = self
            .commit(move |w| {
                let mut fates = Vec::with_capacity(arriving.len());
                let mut groups: BTreeMap<Vec<u8>, Group> = BTreeMap::new();
                for one in arriving {
                    let (key, group) = (one.key.clone(), one.group.clone());
                    let fate = w.take_record(one, &again, dry_run)?;
                    if let (Fate::Imported(item) | Fate::Updated(item) | Fate::Unchanged(item), Some(group)) =
                        (&fate, group)
                    {
                        groups.entry(group).or_default().push((*item, key));
                    }
                    fates.push(fate);
                }
                for (key, group) in groups.iter().filter(|_| !dry_run) {
                    let bytes = encode(group)?;
                    if w.tx.get(LISTS, key)?.is_none_or(|known| known != bytes) {
                        w.tx.put(LISTS, key, &bytes)?;
                    }
                }
                Ok(fates)
            })
            .await?;
        Ok(stored.into_inner())
    }

    /// Marks the new records that are edits of items which stood in the same list before and do not any more.
    fn find_edits(&self, arriving: &mut [Arriving]) -> Result<(), Error> {
        let mut groups: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for (number, one) in arriving.iter().enumerate() {
            if let Some(group) = &one.group {
                groups.entry(group.clone()).or_default().push(number);
            }
        }
        for (key, numbers) in groups {
            let Some(bytes) = self.store.get(LISTS, &key)? else { continue };
            let former: Group = decode(&bytes)?;
            let current = |item: ItemId| self.catalog.get(item).filter(|head| head.status == Status::Current);
            let listed: Vec<(ItemId, bool)> =
                former.iter().map(|(item, _)| (*item, current(*item).is_some())).collect();
            let incoming: Vec<Incoming> = numbers
                .iter()
                .map(|number| match arriving.get(*number) {
                    Some(Arriving { known: Some(item), .. }) => Incoming::Known(*item),
                    Some(Arriving { body: Ok(_), .. }) => Incoming::New(*number),
                    _ => Incoming::Other,
                })
                .collect();
            let item_text = |item: ItemId| {
                let version =
                    current(item).and_then(|head| tables::version(&self.store, item, head.version_seq).ok());
                let whole = version.and_then(|version| whole(&version).ok()).unwrap_or_default();
                whole["content"]["text"].as_str().unwrap_or_default().to_owned()
            };
            let text = |number: usize| {
                let body = arriving.get(number).and_then(|one| one.body.as_ref().ok());
                body.and_then(|body| body.text.clone()).unwrap_or_default()
            };
            for (number, item) in align::edits(&listed, &incoming, item_text, text) {
                let former = former.iter().find(|(known, _)| *known == item);
                if let (Some(one), Some((item, key))) = (arriving.get_mut(number), former) {
                    one.edits = Some((*item, key.clone()));
                }
            }
        }
        Ok(())
    }

    fn record_body(&self, record: &Record, now: Timestamp) -> Result<Body, String> {
        if record.source.is_empty() || record.source.len() > 4096 {
            return Err("source: must be 1 to 4096 bytes".into());
        }
        let body = self.parse_item(&record.item, now).map_err(|e| e.to_string())?;
        if body.captured_at > now.plus(MAX_SKEW) {
            return Err("provenance.captured_at: is in the future".into());
        }
        Ok(body)
    }
}

fn source_key(source: &str) -> Vec<u8> {
    Hash::of(source.as_bytes()).as_bytes()[..20].to_vec()
}

/// The items of a list of records without ids, in order, each with the key of its source.
type Group = Vec<(ItemId, Vec<u8>)>;

/// A record on its way in.
struct Arriving {
    /// Its key in the table of sources.
    key: Vec<u8>,
    says: Hash,
    body: Result<Body, String>,
    /// The key of the list that it stands in.
    group: Option<Vec<u8>>,
    /// The item that it was before.
    known: Option<ItemId>,
    /// The item that it is an edit of, and the key of what that said.
    edits: Option<(ItemId, Vec<u8>)>,
    ready: Option<Prepared>,
}

/// The replaced versions that came along, each in its place of the chain.
fn superseded(texts: &[String], links: &[Link], known: &Known) -> Result<Vec<(u32, Committed)>, String> {
    let mut versions = Vec::new();
    for text in texts {
        let claims = commitment::verify(text, known).map_err(|e| format!("superseded: {e}"))?;
        let place = claims.place();
        let fits = links.get(place.seq as usize).is_some_and(|link| {
            link.commitment == claims.commitment() && link.event.commits() && link.item_id == place.item_id
        });
        if !fits {
            return Err("superseded: a version that its chain does not have".into());
        }
        versions.push((place.seq, Committed::read(text).map_err(|e| e.to_string())?));
    }
    versions.sort_by_key(|(seq, _)| *seq);
    versions.dedup_by_key(|(seq, _)| *seq);
    Ok(versions)
}

/// The head that a chain leads to.
fn head_of(
    links: &[Link],
    body: &Body,
    superseded: &[(u32, Committed)],
    record: Option<Meta>,
    principal: &Did,
    now: Timestamp,
) -> Result<Head, String> {
    let (first, last) = (&links[0], &links[links.len() - 1]);
    let meta = record.unwrap_or_else(|| Meta::owner(principal.clone(), false));
    let mut head = Head::new(first.item_id, body, meta);
    head.seq = last.seq;
    head.meta.human_verified &= links.iter().any(|link| link.event == Event::Confirm);
    for link in links {
        match link.event {
            Event::Retract => {
                head.status = Status::Retracted;
                head.ended_at = Some(link.at.min(now));
            }
            Event::Restore => {
                head.status = Status::Current;
                head.ended_at = None;
            }
            Event::Erase | Event::Expire => return Err("its chain says that it was erased".into()),
            event if event.commits() => head.version_seq = link.seq,
            _ => {}
        }
    }
    let current = head.version_seq;
    head.replaced =
        superseded.iter().map(|(seq, _)| *seq).filter(|seq| *seq != current).map(|seq| (seq, now)).collect();
    Ok(head)
}

impl Writing<'_, '_> {
    fn take_in(
        &mut self,
        arrived: Arrived,
        bundle_id: BundleId,
        from: &Did,
        dry_run: bool,
    ) -> Result<Fate, Error> {
        let item = arrived.head.item_id;
        if self.tx.get(TOMBSTONES, &item.to_bytes())?.is_some() {
            return Ok(Fate::Refused("it was erased here, and an import does not bring it back".into()));
        }
        let held = self.links_of(item)?;
        let mut slot = None;
        if !held.is_empty() {
            let (head_slot, head) = tables::head(self.tx, item)?;
            let commitment = held[held.len() - 1].commitment;
            if arrived.current.commitment() == commitment
                || held.iter().any(|l| l.commitment == arrived.current.commitment())
            {
                return Ok(Fate::Unchanged(item));
            }
            let known: Vec<Hash> = held.iter().map(Link::hash).collect::<Result<_, _>>()?;
            let theirs: Vec<Hash> = arrived.links.iter().map(Link::hash).collect::<Result<_, _>>()?;
            if !theirs.starts_with(&known) {
                return Ok(Fate::Refused(
                    "another item of the same id, or another history of it, is here".into(),
                ));
            }
            if dry_run {
                return Ok(Fate::Updated(item));
            }
            for seq in head.replaced.iter().map(|(seq, _)| *seq).chain([head.version_seq]) {
                self.drop_version(item, seq)?;
            }
            slot = Some(head_slot);
        }
        if dry_run {
            return Ok(Fate::Imported(item));
        }
        for (seq, link) in arrived.canonical_links.iter().enumerate().skip(held.len()) {
            self.tx.put(LINKS, &entry(item, u32::try_from(seq).unwrap_or(u32::MAX)), link)?;
        }
        self.tx.put(FOREIGN_RECEIPTS, &arrived.receipt_key, &arrived.capture_receipt)?;
        let mut head = arrived.head;
        for (seq, version) in arrived.superseded.iter().filter(|(seq, _)| *seq != head.version_seq) {
            let slot = self.tx.new_slot()?;
            self.tx.put_in(slot, tables::VERSIONS, &entry(item, *seq), &encode(version)?)?;
        }
        let last = arrived.links.last().ok_or(Error::NotFound)?;
        let mut draft = self.item_draft(Event::Migrate, item, last.commitment);
        draft.more.insert("bundle_id".to_owned(), json!(bundle_id));
        draft.more.insert("from".to_owned(), json!(from));
        self.append_link_as(&mut head, last, Event::Migrate, draft)?;
        if let Some(slot) = slot {
            self.tx.wipe(slot);
        }
        self.put_version(head, &arrived.current)?;
        Ok(if held.is_empty() { Fate::Imported(item) } else { Fate::Updated(item) })
    }

    fn links_of(&self, item: ItemId) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        while let Some(bytes) =
            self.tx.get(LINKS, &entry(item, u32::try_from(links.len()).unwrap_or(u32::MAX)))?
        {
            links.push(serde_json::from_slice(&bytes)?);
        }
        Ok(links)
    }

    fn take_record(&mut self, one: Arriving, again: &[ItemId], dry_run: bool) -> Result<Fate, Error> {
        let Arriving { key, says, body, edits, ready, .. } = one;
        let body = match body {
            Ok(body) => body,
            Err(why) => return Ok(Fate::Refused(why)),
        };
        let known: Option<(ItemId, Hash)> =
            self.tx.get(SOURCES, &key)?.map(|bytes| decode(&bytes)).transpose()?;
        if let Some((item, said)) = known {
            if let Some(bytes) = self.tx.get(HEADS, &item.to_bytes())? {
                if said == says {
                    return Ok(Fate::Unchanged(item));
                }
                return self.correct_record(decode(&bytes)?, key, says, body, dry_run);
            }
            if !again.contains(&item) {
                return Ok(Fate::Refused(format!(
                    "it was erased here, and an import does not bring it back: say --again {item}, if you want it"
                )));
            }
        } else if let Some((item, former)) = edits
            && let Some(bytes) = self.tx.get(HEADS, &item.to_bytes())?
        {
            let fate = self.correct_record(decode(&bytes)?, key, says, body, dry_run)?;
            if matches!(fate, Fate::Updated(_)) && !dry_run {
                // What it said before is no record of it any more.
                self.tx.delete(SOURCES, &former);
            }
            return Ok(fate);
        }
        if dry_run {
            return Ok(Fate::Imported(ItemId::new(self.now, &*self.gateway.random)));
        }
        let ready = match ready {
            Some(ready) => ready,
            // Erased, or erased between preparing and writing: prepared now.
            None => {
                let people = self.gateway.catalog.people();
                self.gateway.prepare_capture(body, &people, self.now)?
            }
        };
        let written = self.store_capture(ready)?;
        self.tx.put(SOURCES, &key, &encode(&(written.item_id, says))?)?;
        Ok(Fate::Imported(written.item_id))
    }

    /// Makes a further version of the item that a record was before.
    fn correct_record(
        &mut self,
        head: Head,
        key: Vec<u8>,
        says: Hash,
        body: Body,
        dry_run: bool,
    ) -> Result<Fate, Error> {
        let item = head.item_id;
        if head.status != Status::Current {
            return Ok(Fate::Refused("it was taken back here".into()));
        }
        if body.scope_id != head.scope_id {
            return Ok(Fate::Refused("scope_id: it was imported into another scope before".into()));
        }
        if !dry_run {
            let segments = self.gateway.segments(&body);
            self.store_version(head, body, &segments, Event::Correct)?;
            self.tx.put(SOURCES, &key, &encode(&(item, says))?)?;
        }
        Ok(Fate::Updated(item))
    }
}

//! Memory on its way in: items of a bundle with their history, and records of other vendors (protocol section 8).
//!
//! An import is hostile ground: every item is verified on its own, what is wrong is refused with its reason, and the
//! rest of the chunk goes in with one transaction. Importing again changes nothing.

mod refusal;

use crate::service::{Imports, Items};
pub use refusal::ImportRefusal;

use crate::api::Document;
pub use crate::api::transfer::{Finish, ImportOutcome, Migration, Record};
use crate::error::{Error, MemberError};
use crate::service::former;
use crate::service::items::{Prepared, merge, whole};
use crate::service::lists::{Edits, Row};
use crate::state::commits::{Writing, chain_of, until_it_holds};
use crate::state::contacts::Contacts;
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{self, FOREIGN_RECEIPTS, FORMER, LINKS, TOMBSTONES, VERSIONS};
use crate::state::sources::{Said, Tag};
use oap_identity::json::{self, JsonError, canonical};
use oap_identity::time::MAX_SKEW;
use oap_identity::{BundleId, Did, DidDocument, Hash, ItemId, ReceiptId, Timestamp};
use oap_memory::bundle::ItemLine;
use oap_memory::chain::{Event, Link, VerifiedChain};
use oap_memory::commitment::{self, Committed};
use oap_memory::evidence::{self, VerifiedItem};
use oap_memory::item::Body;
use oap_memory::receipt::Action;
use oap_memory::record::{Head, Meta, Status};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most items of one chunk.
pub const MAX_CHUNK: usize = 1000;

/// Longest source or group of a record, in bytes.
pub const MAX_SOURCE: usize = 4096;

/// A chunk of a bundle.
#[derive(Debug, Clone)]
pub struct BundleChunk {
    /// Of which bundle.
    pub bundle_id: BundleId,
    /// Whose memory it was: this principal, or a DID of the owner's own at the former house.
    pub principal: Did,
    /// The documents of all who signed something, as the owner trusts them.
    pub documents: Vec<Value>,
    /// Items, each read on its own: what is wrong with one refuses that one.
    pub items: Vec<Result<ItemLine, JsonError>>,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

/// A chunk of records that an importer made.
#[derive(Debug, Clone)]
pub struct RecordChunk {
    /// The records, each read on its own: what is wrong with one refuses that one.
    pub records: Vec<Result<Record, JsonError>>,
    /// Items that were erased here and are asked back: their records come in anew, as other items. At most [`MAX_CHUNK`].
    pub again: Vec<ItemId>,
    /// Whether all that were erased here are asked back.
    pub again_all: bool,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

impl BundleChunk {
    /// Reads a chunk.
    ///
    /// # Errors
    /// [`JsonError`] for what stands around the items.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw<'a> {
            bundle_id: BundleId,
            principal: Did,
            #[serde(borrow)]
            documents: Vec<&'a RawValue>,
            #[serde(borrow)]
            items: Vec<&'a RawValue>,
            #[serde(default)]
            dry_run: bool,
        }
        let Raw { bundle_id, principal, documents, items, dry_run } = around(bytes)?;
        let documents =
            documents.iter().map(|raw| json::parse(raw.get().as_bytes())).collect::<Result<_, _>>()?;
        let items = items.iter().map(|raw| json::parse_as(raw.get().as_bytes())).collect();
        Ok(Self { bundle_id, principal, documents, items, dry_run })
    }
}

impl RecordChunk {
    /// Reads a chunk.
    ///
    /// # Errors
    /// [`JsonError`] for what stands around the records.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw<'a> {
            #[serde(borrow)]
            records: Vec<&'a RawValue>,
            #[serde(default)]
            again: Vec<ItemId>,
            #[serde(default)]
            again_all: bool,
            #[serde(default)]
            dry_run: bool,
        }
        let Raw { records, again, again_all, dry_run } = around(bytes)?;
        let records = records.iter().map(|raw| json::parse_as(raw.get().as_bytes())).collect();
        Ok(Self { records, again, again_all, dry_run })
    }
}

/// What stands around the raw elements of a chunk.
fn around<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, JsonError> {
    // `serde` alone would take an array's elements for the members in order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(JsonError::Invalid("a chunk is an object".to_owned()));
    }
    // What serde says may quote what was sent.
    serde_json::from_slice(bytes).map_err(|e| {
        let (line, column) = (e.line(), e.column());
        JsonError::Invalid(format!("a chunk that is none: see line {line}, column {column}"))
    })
}

/// A bundle's item whose every proof was checked.
struct Arrived {
    links: Vec<Link>,
    canonical_links: Vec<Vec<u8>>,
    capture_receipt: Vec<u8>,
    capture_id: ReceiptId,
    current: Committed,
    superseded: Vec<(u32, Committed)>,
    head: Head,
}

/// Records of a chunk that are written together, each of another source.
struct Turn {
    /// All records of the chunk.
    records: Arc<Vec<Record>>,
    /// The numbers of those that are written.
    numbers: Vec<usize>,
    /// The items that the records of earlier turns are by now.
    became: Vec<Option<ItemId>>,
    /// Erased items that are asked back.
    again: Arc<BTreeSet<ItemId>>,
    again_all: bool,
    is_first: bool,
    is_last: bool,
    dry_run: bool,
}

/// A record of a turn, and what is known of it.
pub(crate) struct Looked {
    /// What it comes from and says.
    pub(crate) said: Said,
    /// What its source is known as.
    pub(crate) known: Option<(ItemId, Said)>,
    /// The item of its source that was erased, if none is known.
    pub(crate) erased: Option<ItemId>,
    /// The item that it says.
    pub(crate) body: Body,
}

/// The lists that a turn rests on, the list of each record of the chunk, and the turn's own records.
type PreparedTurn = (Vec<Row>, Vec<Option<Tag>>, Vec<Result<PreparedRecord, ImportRefusal>>);

/// A record that was looked up, and what is to become of it.
struct PreparedRecord {
    said: Said,
    /// What its source was known as.
    known: Option<(ItemId, Said)>,
    /// The item that it is an edit of, and what that came from.
    edits: Option<(ItemId, Said)>,
    /// The item of its source that was erased.
    erased: Option<ItemId>,
    dry_run: bool,
    to_do: ToDo,
}

/// What a record asks for.
enum ToDo {
    Capture(Prepared),
    Correct(Prepared),
    WouldCapture,
    WouldCorrect,
    Nothing,
    LeaveDeleted(ImportRefusal),
    Refuse(ImportRefusal),
}

/// The numbers of the records, in turns in which no source is named twice.
fn turns(records: &[Record]) -> Vec<Vec<usize>> {
    let mut turns: Vec<Vec<usize>> = Vec::new();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, record) in records.iter().enumerate() {
        let turn = named.entry(&record.source).or_default();
        if turns.len() <= *turn {
            turns.push(Vec::new());
        }
        turns[*turn].push(number);
        *turn += 1;
    }
    turns
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
        known.insert(self.0.principal.clone(), Arc::new(self.0.keys().document().clone()));
        let check = {
            let (gateway, chunk) = (self.0.clone(), chunk.clone());
            move || {
                let now = gateway.clock.now();
                let arrive = |line: &Result<ItemLine, JsonError>| {
                    let line = line.as_ref().map_err(|error| ImportRefusal::Json(error.clone()))?;
                    Imports(&gateway).arrive(line, &chunk.principal, &known, now)
                };
                Ok(chunk.items.iter().map(arrive).collect::<Vec<_>>())
            }
        };
        let arrived = blocking(check).await?;
        let chunk = chunk.clone();
        let stored = self
            .0
            .commit_as(owner, move |w| {
                let BundleChunk { bundle_id, principal, dry_run, .. } = &*chunk;
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
        let body = self.body_of(&current, now)?;
        let links = verified.chain.links().to_vec();
        let superseded = superseded(&line.superseded, &links, known)?;
        let head = head_of(&verified.chain, &body, &superseded, line.record.clone(), &self.0.principal, now);
        let capture = &line.item["integrity"]["capture_receipt"];
        let written = line.item["integrity"]["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Arrived {
            canonical_links: written.iter().map(canonical).collect::<Result<_, _>>()?,
            capture_receipt: canonical(capture)?,
            capture_id: verified.capture.receipt_id,
            links,
            current,
            superseded,
            head,
        })
    }

    /// What a version says, as this gateway would read it.
    pub(crate) fn body_of(self, committed: &Committed, now: Timestamp) -> Result<Body, Error> {
        Items(self.0).parse_item(&merge(&whole(committed)?, &json!({}))?, now)
    }

    /// Records a finished import: the Migration Receipt (RFC 0023 section 3.6), which cites the export and names the
    /// new head of the chain.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn import_finish(
        self,
        owner: &Owner<impl Permits<Admin>>,
        finish: Finish,
    ) -> Result<Migration, Error> {
        let gateway = self.0.clone();
        let (receipt, ()) = self
            .0
            .record_as(owner, move |w| {
                let chain = chain_of(&gateway.config.default_scope);
                let head = w.chain(&chain)?;
                let agent = gateway.principal.as_str();
                let mut draft = gateway.draft(Action::Migrate, agent);
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
                Ok((w.receipt(&chain, draft)?, ()))
            })
            .await?;
        let receipt = receipt.into_inner();
        Ok(Migration { receipt: Document::of(serde_json::to_value(&receipt)?, receipt) })
    }

    /// Takes in a chunk of records. A record that was imported before and says something else by now corrects its item.
    ///
    /// # Errors
    /// [`Error::Member`] for a chunk that is none; [`Error::Store`]. What is wrong with one record refuses that record.
    pub async fn import_records(
        self,
        owner: &Owner<impl Permits<Admin>>,
        chunk: RecordChunk,
    ) -> Result<Vec<ImportOutcome>, Error> {
        if chunk.records.is_empty() || chunk.records.len() > MAX_CHUNK {
            return Err(Error::Member("records", MemberError::Number { most: MAX_CHUNK, of: "records" }));
        }
        if chunk.again.len() > MAX_CHUNK {
            return Err(Error::Member("again", MemberError::TooMany { most: MAX_CHUNK, of: "items" }));
        }
        let mut outcomes: Vec<Option<ImportOutcome>> = vec![None; chunk.records.len()];
        // Where each record that could be read stands in the chunk.
        let (mut records, mut places) =
            (Vec::with_capacity(outcomes.len()), Vec::with_capacity(outcomes.len()));
        for (place, record) in chunk.records.into_iter().enumerate() {
            match record {
                Ok(record) => {
                    records.push(record);
                    places.push(place);
                }
                Err(error) => outcomes[place] = Some(ImportOutcome::Refused(error.to_string())),
            }
        }
        let (records, dry_run, again_all) = (Arc::new(records), chunk.dry_run, chunk.again_all);
        let again: Arc<BTreeSet<ItemId>> = Arc::new(chunk.again.into_iter().collect());
        let mut became = vec![None; records.len()];
        // A source that is named twice is written twice, one after the other.
        let turns = turns(&records);
        let last = turns.len().saturating_sub(1);
        for (place, numbers) in turns.into_iter().enumerate() {
            let turn = Arc::new(Turn {
                records: records.clone(),
                numbers,
                became: became.clone(),
                again: again.clone(),
                again_all,
                is_first: place == 0,
                is_last: place == last,
                dry_run,
            });
            let done = until_it_holds(|| self.import_turn(owner, turn.clone())).await?;
            for (number, outcome) in turn.numbers.iter().zip(done) {
                became[*number] = outcome.item();
                outcomes[places[*number]] = Some(outcome);
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Takes in the records of a turn with one transaction.
    async fn import_turn(
        self,
        owner: &Owner<impl Permits<Admin>>,
        turn: Arc<Turn>,
    ) -> Result<Vec<ImportOutcome>, Error> {
        let (gateway, taken) = (self.0.clone(), turn.clone());
        let prepare = move || Imports(&gateway).prepare_turn(&taken);
        let (edits, lists, prepared) = blocking(prepare).await?;
        let stored = self
            .0
            .commit_as(owner, move |w| {
                w.still_listed(&edits)?;
                let mut outcomes = Vec::with_capacity(prepared.len());
                for record in prepared {
                    outcomes.push(match record {
                        Err(why) => ImportOutcome::Refused(why.to_string()),
                        Ok(record) => w.take_record(record)?,
                    });
                }
                if turn.is_last && !turn.dry_run {
                    let mut became = turn.became.clone();
                    for (number, outcome) in turn.numbers.iter().zip(&outcomes) {
                        if let Some(item) = became.get_mut(*number) {
                            *item = outcome.item();
                        }
                    }
                    w.put_lists(lists.into_iter().zip(became))?;
                }
                Ok(outcomes)
            })
            .await?;
        Ok(stored)
    }

    /// What is to become of the records of a turn, as things stand; with the lists that this rests on, and the list of each
    /// record of the chunk.
    fn prepare_turn(self, turn: &Turn) -> Result<PreparedTurn, Error> {
        let now = self.0.clock.now();
        let list_of = |record: &Record| record.group.as_deref().map(|group| self.0.list_tag(group));
        let lists: Vec<Option<Tag>> = turn.records.iter().map(list_of).collect();
        let mut looked = Vec::with_capacity(turn.numbers.len());
        for record in turn.numbers.iter().filter_map(|number| turn.records.get(*number)) {
            looked.push(match self.record_body(record, now) {
                Err(why) => Err(why),
                Ok(body) => Ok(self.look_up(record, body)?),
            });
        }
        // What a later turn has was written, or refused, in the first.
        let mut edits = if turn.is_first {
            let lists: Vec<Option<Tag>> =
                turn.numbers.iter().map(|number| lists.get(*number).copied().flatten()).collect();
            self.find_edits(&looked, &lists)?
        } else {
            Edits::default()
        };
        let words: Vec<String> = looked.iter().flatten().flat_map(|record| record.body.people()).collect();
        let contacts = self.0.contact_names.of_and(&self.0.heads, &words);
        let mut prepared = Vec::with_capacity(looked.len());
        for (place, record) in looked.into_iter().enumerate() {
            prepared.push(match record {
                Err(why) => Err(why),
                Ok(record) => {
                    Ok(self.prepare_record(record, edits.of.remove(&place), turn, &contacts, now)?)
                }
            });
        }
        Ok((edits.rows, lists, prepared))
    }

    /// What is known of a record.
    fn look_up(self, record: &Record, body: Body) -> Result<Looked, Error> {
        let source = self.0.source_tag(&record.source);
        let said = Said { source, says: Hash::of_canonical(&record.item)? };
        let known = self.0.known_source(&source)?;
        let erased = if known.is_none() { self.0.was_erased(&source)? } else { None };
        Ok(Looked { said, known, erased, body })
    }

    /// What is to become of a record, as things stand: signed already, where it is to be written.
    fn prepare_record(
        self,
        record: Looked,
        edits: Option<(ItemId, Said)>,
        turn: &Turn,
        contacts: &Contacts,
        now: Timestamp,
    ) -> Result<PreparedRecord, Error> {
        let Looked { said, known, erased, body } = record;
        let to_do = match (known.or(edits), erased) {
            (None, Some(item)) if !turn.again_all && !turn.again.contains(&item) => {
                let exact = said.source.is_exact;
                ToDo::LeaveDeleted(if exact {
                    ImportRefusal::ErasedRecord(item)
                } else {
                    ImportRefusal::ErasedPlace(item)
                })
            }
            (None, _) if turn.dry_run => ToDo::WouldCapture,
            (None, _) => ToDo::Capture(Items(self.0).prepare_capture(body, contacts, now)?),
            (Some((_, before)), _) if before.says == said.says => ToDo::Nothing,
            (Some((item, _)), _) => match Items(self.0).in_force(item) {
                Err(Error::NotFound) => ToDo::Refuse(ImportRefusal::ErasedRecord(item)),
                Err(error) => return Err(error),
                Ok(before) if before.head.status != Status::Current => ToDo::Refuse(ImportRefusal::Retracted),
                Ok(before) if before.head.scope_id != body.scope_id => {
                    ToDo::Refuse(ImportRefusal::OtherScope)
                }
                Ok(_) if turn.dry_run => ToDo::WouldCorrect,
                Ok(before) => {
                    ToDo::Correct(Items(self.0).prepare_version(&before, body, Event::Correct, contacts)?)
                }
            },
        };
        Ok(PreparedRecord { said, known, edits, erased, dry_run: turn.dry_run, to_do })
    }

    fn record_body(self, record: &Record, now: Timestamp) -> Result<Body, ImportRefusal> {
        if record.source.is_empty() || record.source.len() > MAX_SOURCE {
            return Err(ImportRefusal::Source);
        }
        if record.group.as_ref().is_some_and(|group| group.len() > MAX_SOURCE) {
            return Err(ImportRefusal::Group);
        }
        let body = Items(self.0).parse_item(&record.item, now)?;
        if body.captured_at > now.plus(MAX_SKEW) {
            return Err(ImportRefusal::Future);
        }
        Ok(body)
    }
}

/// The replaced versions that came along, each in its place of the chain.
fn superseded(
    texts: &[String],
    links: &[Link],
    known: &Known,
) -> Result<Vec<(u32, Committed)>, ImportRefusal> {
    let mut versions = Vec::new();
    for text in texts {
        let claims = commitment::verify(text, known).map_err(ImportRefusal::Superseded)?;
        evidence::check_place(&claims, links).map_err(ImportRefusal::SupersededPlace)?;
        versions.push((claims.place().seq, Committed::read(text)?));
    }
    versions.sort_by_key(|(seq, _)| *seq);
    versions.dedup_by_key(|(seq, _)| *seq);
    Ok(versions)
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
            self.obligations_changed()?;
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
        if TOMBSTONES.contains(self.tx, &item)? {
            return Ok(ImportOutcome::Refused(ImportRefusal::Erased.to_string()));
        }
        let held = self.links_of(item)?;
        let mut slot = None;
        if !held.is_empty() {
            if self.is_held(item)? {
                return Ok(ImportOutcome::Refused(ImportRefusal::Held.to_string()));
            }
            let (head_slot, head) = schema::head(self.tx, item)?;
            let commitment = held[held.len() - 1].commitment;
            if arrived.current.commitment() == commitment
                || held.iter().any(|l| l.commitment == arrived.current.commitment())
            {
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
        for (seq, link) in arrived.canonical_links.iter().enumerate().skip(held.len()) {
            LINKS.put(self.tx, &(item, u32::try_from(seq).unwrap_or(u32::MAX)), link)?;
        }
        FOREIGN_RECEIPTS.put(self.tx, &arrived.capture_id, &arrived.capture_receipt)?;
        let mut head = arrived.head;
        for (seq, version) in arrived.superseded.iter().filter(|(seq, _)| *seq != head.version_seq) {
            let slot = self.tx.new_slot()?;
            VERSIONS.put_in(self.tx, slot, &(item, *seq), version)?;
        }
        self.contacts_changed |= !head.people.is_empty() || !held.is_empty();
        let last = arrived.links.last().ok_or(Error::NotFound)?;
        let mut draft = self.item_draft(Event::Migrate, item, last.commitment);
        draft.more.insert("bundle_id".to_owned(), json!(bundle_id));
        draft.more.insert("from".to_owned(), json!(from));
        self.append_link_as(&mut head, last, Event::Migrate, draft)?;
        if let Some(slot) = slot {
            self.tx.wipe(slot);
        }
        self.put_version(head, &arrived.current)?;
        Ok(if held.is_empty() { ImportOutcome::Imported(item) } else { ImportOutcome::Updated(item) })
    }

    fn links_of(&self, item: ItemId) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        while let Some(bytes) = LINKS.get(self.tx, &(item, u32::try_from(links.len()).unwrap_or(u32::MAX)))? {
            links.push(serde_json::from_slice(&bytes)?);
        }
        Ok(links)
    }

    fn take_record(&mut self, record: PreparedRecord) -> Result<ImportOutcome, Error> {
        let PreparedRecord { said, known, edits, erased, dry_run, to_do } = record;
        let stored = self.imported_from(&said.source)?;
        if stored != known || (known.is_none() && self.was_erased(&said.source)? != erased) {
            return Err(Error::Overtaken);
        }
        if let Some((item, before)) = edits
            && self.said(item)? != Some(before)
        {
            return Err(Error::Overtaken);
        }
        let former = known.or(edits);
        let (written, outcome): (_, fn(ItemId) -> ImportOutcome) = match (to_do, former) {
            (ToDo::LeaveDeleted(why), _) => return Ok(ImportOutcome::Deleted(why.to_string())),
            (ToDo::Refuse(why), _) => return Ok(ImportOutcome::Refused(why.to_string())),
            (ToDo::WouldCapture, _) => {
                return Ok(ImportOutcome::Imported(ItemId::new(self.now, &*self.gateway.random)));
            }
            (ToDo::WouldCorrect, Some((item, _))) => return Ok(ImportOutcome::Updated(item)),
            (ToDo::Nothing, Some((item, before))) => {
                if before.source != said.source && !dry_run {
                    self.put_source(item, said, Some(before))?;
                }
                return Ok(ImportOutcome::Unchanged(item));
            }
            (ToDo::Nothing | ToDo::WouldCorrect, None) => {
                return Ok(ImportOutcome::Refused(ImportRefusal::Erased.to_string()));
            }
            (ToDo::Correct(prepared), _) => {
                (self.store_version(prepared, Event::Correct)?, ImportOutcome::Updated)
            }
            (ToDo::Capture(prepared), _) => (self.store_capture(prepared)?, ImportOutcome::Imported),
        };
        self.put_source(written.item_id, said, former.map(|(_, before)| before))?;
        Ok(outcome(written.item_id))
    }

    /// Remembers what an item came from. What an edited one said before is no record of it any more.
    fn put_source(&mut self, item: ItemId, said: Said, before: Option<Said>) -> Result<(), Error> {
        self.put_said(item, said)?;
        if let Some(before) = before.filter(|before| before.source.whole != said.source.whole) {
            self.leave_source(item, &before.source);
        }
        Ok(())
    }
}

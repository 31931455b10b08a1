//! Records of other vendors: written, or what they say now.

use super::judging::judged;
use super::{ImportRefusal, MAX_CHUNK, MAX_SOURCE, RecordChunk};
use crate::api::transfer::{ImportOutcome, Record};
use crate::error::{Error, MemberError};
use crate::service::items::{Author, Prepared};
use crate::service::lists::{Edits, Row};
use crate::service::{Imports, Items};
use crate::state::commits::{Writing, until_it_holds};
use crate::state::contacts::Contacts;
use crate::state::gateway::{blocking, on_all_cores};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::sources::{Said, Tag};
use oap_agents::level::owners_own;
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::chain::Event;
use oap_memory::item::Body;
use oap_memory::record::{Meta, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    /// Whether it waits for the owner: it is foreign, and the guard stopped it.
    pub(crate) is_stopped: bool,
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
    is_stopped: bool,
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

impl Imports<'_> {
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
        let records: Vec<&Record> =
            turn.numbers.iter().filter_map(|number| turn.records.get(*number)).collect();
        let bodies = on_all_cores(records.clone(), |record| self.record_body(record, now));
        for (record, body) in records.into_iter().zip(bodies) {
            looked.push(match body {
                Err(why) => Err(why),
                Ok((body, is_stopped)) => Ok(self.look_up(record, body, is_stopped)?),
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
        let looked = looked.into_iter().enumerate();
        let looked: Vec<_> = looked.map(|(place, record)| (record, edits.of.remove(&place))).collect();
        let prepare = |(record, edit): (Result<Looked, ImportRefusal>, _)| match record {
            Err(why) => Ok(Err(why)),
            Ok(record) => self.prepare_record(record, edit, turn, &contacts, now).map(Ok),
        };
        let prepared = on_all_cores(looked, prepare).into_iter().collect::<Result<_, Error>>()?;
        Ok((edits.rows, lists, prepared))
    }

    /// What is known of a record.
    fn look_up(self, record: &Record, body: Body, is_stopped: bool) -> Result<Looked, Error> {
        let source = self.0.source_tag(&record.source);
        let said = Said { source, says: Hash::of_canonical(&record.item)? };
        let known = self.0.known_source(&source)?;
        let erased = if known.is_none() { self.0.was_erased(&source)? } else { None };
        Ok(Looked { said, known, erased, body, is_stopped })
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
        let Looked { said, known, erased, body, is_stopped } = record;
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
                Ok(before) if *before.head.scope_id != body.scope_id => {
                    ToDo::Refuse(ImportRefusal::OtherScope)
                }
                Ok(_) if turn.dry_run => ToDo::WouldCorrect,
                Ok(before) => {
                    ToDo::Correct(Items(self.0).prepare_version(&before, body, Event::Correct, contacts)?)
                }
            },
        };
        Ok(PreparedRecord { said, known, edits, erased, dry_run: turn.dry_run, is_stopped, to_do })
    }

    /// What a record says, and whether it waits for the owner.
    fn record_body(self, record: &Record, now: Timestamp) -> Result<(Body, bool), ImportRefusal> {
        if record.source.is_empty() || record.source.len() > MAX_SOURCE {
            return Err(ImportRefusal::Source);
        }
        if record.group.as_ref().is_some_and(|group| group.len() > MAX_SOURCE) {
            return Err(ImportRefusal::Group);
        }
        let (item, is_stopped) = judged(owners_own(&record.item).into_owned());
        Ok((Items(self.0).parse_new(&item, now)?, is_stopped))
    }
}

impl Writing<'_, '_> {
    fn take_record(&mut self, record: PreparedRecord) -> Result<ImportOutcome, Error> {
        let PreparedRecord { said, known, edits, erased, dry_run, is_stopped, to_do } = record;
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
                let by = Author {
                    did: self.gateway.principal.clone(),
                    needs_verification: is_stopped,
                    admitted: None,
                };
                (self.store_version_as(prepared, Event::Correct, Some(by))?, ImportOutcome::Updated)
            }
            (ToDo::Capture(prepared), _) => {
                let owners = Meta::owner(self.gateway.principal.clone(), false);
                let record = Meta { needs_verification: is_stopped, ..owners };
                (self.store_capture_as(prepared, record)?, ImportOutcome::Imported)
            }
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

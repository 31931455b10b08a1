//! A device is asked what changed, and what the changed items say; nothing of it is believed before it is proved. In pages, each with its
//! own commit of how far it went: what breaks off goes on there, after however long.

use super::taking::MergeOutcome;
use crate::api::devices::{LeftChange, SyncReport};
use crate::error::Error;
use crate::service::Devices;
use crate::service::recall::Grant;
use crate::service::recall::asking::{OwnKey, incident, may_be_stale, open, verdict};
use crate::state::commits::{Writing, chain_of};
use crate::state::devices::{StoredDevice, Trouble, active};
use crate::state::gateway::blocking;
use crate::state::lies::{self, AnswerEvidence};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::remotes::Session;
use crate::state::schema::DEVICES;
use oap_client::ClientError;
use oap_exchange::answer::MAX_ANSWER;
use oap_federation::changes::{Changes, ChangesError, Named, Since};
use oap_federation::due;
use oap_federation::verdict::Verdict;
use oap_identity::outgoing::Allowance;
use oap_identity::signed::SignedError;
use oap_identity::{Did, ItemId, RequestId, Timestamp};
use oap_memory::receipt::Action;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How often the server asks which devices are due.
pub const INTERVAL: Duration = Duration::from_secs(60);
/// The longest time between two attempts while a device does not answer.
const LONGEST: Duration = Duration::from_secs(900);
/// Most pages of one request of the owner's, or one turn of the server's.
pub const MAX_PAGES: usize = 10;
/// Time for a page.
pub const PAGE_TIME: Duration = Duration::from_secs(20);
/// Time after which a request of the owner's takes no page more.
const REQUEST_TIME: Duration = Duration::from_secs(8);
/// How often a page is asked for anew where its items changed between the list and what they say.
const ATTEMPTS: usize = 3;
/// Items that are asked for at once.
const AT_ONCE: usize = 25;
/// What an answer of a device's may take: one more than the largest that a gateway gives.
const ANSWER: Allowance = Allowance { bytes: MAX_ANSWER + (2 << 20), time: PAGE_TIME };
/// How long the owner waits while the device is being asked already.
const WAITS: Duration = Duration::from_secs(5);
/// Most changes that were left, as a report names them.
const MAX_LEFT: usize = 100;

/// A list that does not hold: by its teller, or by what is remembered of its keys.
const LIST: &str = "its list of changes does not hold";

/// What the items of a page say, each with the number of its last link.
pub(super) type Said = BTreeMap<ItemId, (Value, u32)>;

/// Why a page came to nothing.
enum Stopped {
    /// By what the device did, or did not.
    Failed(ClientError, Option<AnswerEvidence>),
    /// Something of it is from later than now.
    Early(ItemId),
    /// Its items change faster than they are read.
    Moving,
    /// It did not answer in time.
    Slow,
    /// By what this program did.
    Broken(Error),
}

impl From<ClientError> for Stopped {
    fn from(error: ClientError) -> Self {
        Self::Failed(error, None)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

/// A page that was proved.
struct Page {
    list: Changes,
    said: Said,
}

impl Devices<'_> {
    /// Asks a device what changed, and takes it over; the owner waits for it. Where there is much, a part of it.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::LockedDown`]; [`Error::Store`].
    pub async fn sync(self, owner: &Owner<impl Permits<Admin>>, did: &Did) -> Result<SyncReport, Error> {
        self.0.commit_as(owner, |_| Ok(())).await?;
        let mut report = SyncReport::default();
        let trouble = self.pull(did, REQUEST_TIME, &mut report).await?;
        Ok(SyncReport { trouble, ..report })
    }

    /// Asks the devices that are due; how many changes were taken over. What was given to devices and ends soon is renewed before.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn sync_due(self) -> Result<usize, Error> {
        if self.0.clock.believe().is_err() || self.0.is_locked_down() {
            return Ok(0);
        }
        self.renew_due().await?;
        let mut due = Vec::new();
        let now = self.0.clock.now();
        for row in DEVICES.scan(&self.0.store) {
            let (did, device) = row?;
            if device.is_active() && is_due(device.trouble.as_ref(), now) {
                due.push(did);
            }
        }
        let mut taken = 0;
        for did in due {
            let mut report = SyncReport::default();
            match self.pull(&did, INTERVAL, &mut report).await {
                // Removed, or locked down, meanwhile.
                Ok(_) | Err(Error::NotFound | Error::LockedDown) => {}
                Err(error) => tracing::error!(%error, device = %did, "a device could not be asked"),
            }
            taken += report.taken;
        }
        Ok(taken)
    }

    /// Pages of a device, one after the other, until it has no more to tell, or as many as one turn takes; why it ended before.
    async fn pull(self, did: &Did, time: Duration, report: &mut SyncReport) -> Result<Option<String>, Error> {
        // One after the other: two would ask for the same.
        let Ok(_turn) = timeout(WAITS, self.0.pulling.lock()).await else {
            return Ok(Some("busy: a device is being asked already; try again later".to_owned()));
        };
        self.0.clock.believe()?;
        let begun = tokio::time::Instant::now();
        for _ in 0..MAX_PAGES {
            let device = active(&self.0.store, did)?.ok_or(Error::NotFound)?;
            let page = match timeout(PAGE_TIME, self.page(&device)).await {
                Err(_) => Err(Stopped::Slow),
                Ok(page) => page,
            };
            let page = match page {
                Ok(page) => page,
                Err(Stopped::Broken(error)) => return Err(error),
                Err(stopped) => return self.note_trouble(did, &device, stopped).await.map(Some),
            };
            report.more = page.list.more;
            self.take_page(did, &device, page, report).await?;
            if !report.more || begun.elapsed() >= time {
                break;
            }
        }
        Ok(None)
    }

    /// The next page, proved.
    async fn page(self, device: &StoredDevice) -> Result<Page, Stopped> {
        let (document, grant, hash) = device.grant()?.ok_or(Error::NotFound)?;
        // A device's grant is given to it and passed on by nobody.
        let grant = Grant { hash, granter: grant.granter.principal, document, above: Vec::new() };
        for _ in 0..ATTEMPTS {
            let known = self.0.remotes.session(&hash, self.0.clock.now());
            let had_token = known.is_some();
            let page = match self.once(device, &grant, known).await {
                Err(Stopped::Failed(error, _))
                    if may_be_stale(&error, had_token)
                        || matches!(&error, ClientError::Mismatch(why) if *why == LIST) =>
                {
                    self.0.remotes.forget(&hash);
                    self.0.resolver.forget(&grant.granter);
                    self.once(device, &grant, None).await
                }
                page => page,
            };
            match page {
                // The list is older than what the items say: it is asked for anew.
                Err(Stopped::Moving) => {}
                page => return page,
            }
        }
        Err(Stopped::Moving)
    }

    async fn once(
        self,
        device: &StoredDevice,
        grant: &Grant,
        known: Option<Arc<Session>>,
    ) -> Result<Page, Stopped> {
        let session = match known {
            Some(session) => session,
            None => open(self.0, grant, ANSWER).await?,
        };
        let remote = session.remote.resume(session.ticket.clone());
        let prover = OwnKey(self.0);
        let request_id = RequestId::new(self.0.clock.now(), &*self.0.random);
        let since = Since { cursor: device.cursor.clone(), request_id };
        let bytes = remote.changes(&prover, body(&since)?).await?;
        let (by, now) = (session.remote.document(), self.0.clock.now());
        let list = Changes::verify(&bytes, by, &self.0.principal, &since, now).map_err(|error| {
            tracing::info!(%error, "a list of changes is not believed");
            match error {
                // Signed by nobody: no lie.
                ChangesError::Json(_) | ChangesError::Signature(SignedError::Missing) => {
                    let malformed = ClientError::Malformed(grant.granter.to_string(), error.to_string());
                    Stopped::Failed(malformed, None)
                }
                _ => Stopped::Failed(ClientError::Mismatch(LIST), AnswerEvidence::of(&bytes)),
            }
        })?;
        if let Some(early) = list.told.iter().find(|told| told.is_early(now)) {
            return Err(Stopped::Early(early.item_id));
        }
        let (gateway, told) = (self.0.clone(), list.told.clone());
        let items = blocking(move || Devices(&gateway).wanted(&told)).await?;
        let said = self.said(&session, items.clone()).await?;
        let told = list.told.iter().filter_map(|told| Some((told.item_id, told.stands.as_ref()?.last_link)));
        let last: BTreeMap<ItemId, u32> = told.collect();
        // Each that was asked for, as it stood when the list was made; or the list is old by now.
        let is_whole = |item: &ItemId| said.get(item).map(|(_, link)| link) == last.get(item);
        if !items.iter().all(is_whole) {
            return Err(Stopped::Moving);
        }
        Ok(Page { list, said })
    }

    /// What these items say, proved; without those that are not shown any more.
    async fn said(self, session: &Arc<Session>, mut wanted: Vec<ItemId>) -> Result<Said, Stopped> {
        let (remote, prover) = (session.remote.resume(session.ticket.clone()), OwnKey(self.0));
        let mut said = Said::new();
        while !wanted.is_empty() {
            let request_id = RequestId::new(self.0.clock.now(), &*self.0.random);
            let named = Named { items: wanted.iter().take(AT_ONCE).copied().collect(), request_id };
            let given = remote.changed(&prover, body(&named)?).await?;
            let answer = AnswerEvidence::of(&given.bytes);
            let documents = session.remote.documents(&given).await;
            let documents = documents.map_err(|error| Stopped::Failed(error, answer.clone()))?;
            let (session, grantee) = (session.clone(), self.0.principal.clone());
            let judged = blocking(move || {
                let remote = session.remote.resume(session.ticket.clone());
                Ok(remote.judge_named(given, &documents, &grantee, &named.items, &named.request_id))
            });
            let checked = judged.await?.map_err(|error| Stopped::Failed(error, answer))?;
            // A large answer is cut: what is left comes with the next one.
            let came = said_of(&checked.answer);
            if came.is_empty() {
                break;
            }
            wanted.retain(|item| !came.contains_key(item));
            said.extend(came);
        }
        Ok(said)
    }

    /// Takes over a page, and notes how far that went.
    async fn take_page(
        self,
        did: &Did,
        asked: &StoredDevice,
        page: Page,
        report: &mut SyncReport,
    ) -> Result<(), Error> {
        let Page { list, mut said } = page;
        let (mut taken, mut left) = (0_u64, Vec::new());
        for told in &list.told {
            let item_id = told.item_id;
            match self.take(did, told, said.remove(&item_id).map(|(item, _)| item)).await? {
                MergeOutcome::Nothing => {}
                MergeOutcome::Change => taken += 1,
                MergeOutcome::Left(why) => {
                    tracing::info!(device = %did, item = %item_id, why = why.as_str(), "a change was left");
                    left.push(LeftChange { item_id, why });
                }
            }
        }
        report.told += list.told.len();
        report.taken += usize::try_from(taken).unwrap_or(usize::MAX);
        let count = u64::try_from(left.len()).unwrap_or(u64::MAX);
        report.left.extend(left);
        let over = report.left.len().saturating_sub(MAX_LEFT);
        report.left.drain(..over);
        let (did, hash) = (did.clone(), list.hash().map_err(|_| Error::Panicked)?);
        let (pairing, under) = (asked.value, asked.received.clone());
        let noted = move |w: &mut Writing<'_, '_>| {
            let mut device = w.device(&did)?;
            // Removed and added anew meanwhile, it begins from the start.
            if device.value != pairing {
                return Err(Error::NotFound);
            }
            let gateway = w.gateway.clone();
            if taken > 0 {
                let mut draft = gateway.draft(Action::SyncDevice, gateway.principal.as_str());
                draft.rules = vec!["device".to_owned()];
                draft.more.insert("device".to_owned(), json!(did));
                draft.more.insert("told".to_owned(), json!(list.told.len()));
                draft.more.insert("taken".to_owned(), json!(taken));
                draft.more.insert("told_by".to_owned(), json!(list.receipt_id));
                draft.output_hash = Some(hash);
                w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
            }
            // Where its grant was renewed meanwhile, how far to ask was decided with that.
            if device.received == under {
                device.cursor = Some(list.next);
                device.full = list.full;
            }
            device.trouble = None;
            device.counts.taken = device.counts.taken.saturating_add(taken);
            device.counts.left = device.counts.left.saturating_add(count);
            if !list.more {
                device.synced_at = Some(w.now);
            }
            Ok(DEVICES.put(w.tx, &did, &device)?)
        };
        self.0.commit(noted).await
    }

    /// Notes why a device gave nothing, and what it said that is not so; the reason.
    async fn note_trouble(self, did: &Did, device: &StoredDevice, stopped: Stopped) -> Result<String, Error> {
        let mut lie = None;
        let why = match stopped {
            Stopped::Broken(error) => return Err(error),
            Stopped::Slow => "slow: it did not answer in time".to_owned(),
            Stopped::Moving => {
                "moving: its items change faster than they are read; it is asked again".to_owned()
            }
            Stopped::Early(item) => format!(
                "clock: its change of {item} is from the future; set the clock of that device right, or remove it"
            ),
            Stopped::Failed(error, answer) => {
                let (document, grant, hash) = device.grant()?.ok_or(Error::NotFound)?;
                // A device's grant is given to it and passed on by nobody.
                let grant = Grant { hash, granter: grant.granter.principal, document, above: Vec::new() };
                let verdict = verdict(&error, did);
                self.0.remotes.forget(&hash);
                lie = incident(&error, &verdict, &grant, answer);
                said_by(&verdict)
            }
        };
        let (did, noted) = (did.clone(), why.clone());
        let trouble = move |w: &mut Writing<'_, '_>| {
            let mut device = w.device(&did)?;
            lies::note(w, lie.into_iter().collect())?;
            let before = device.trouble.take();
            device.trouble = Some(Trouble {
                since: before.as_ref().map_or(w.now, |trouble| trouble.since),
                last_at: w.now,
                times: before.map_or(0, |trouble| trouble.times).saturating_add(1),
                why: noted,
            });
            Ok(DEVICES.put(w.tx, &did, &device)?)
        };
        self.0.commit(trouble).await?;
        Ok(why)
    }
}

/// Whether a device is asked again by now: later each time that it did not answer.
fn is_due(trouble: Option<&Trouble>, now: Timestamp) -> bool {
    trouble.is_none_or(|trouble| {
        let wait = due::after_failures(trouble.times).min(LONGEST).saturating_sub(INTERVAL);
        // What a clock that stood ahead has put off is due by the one that is right.
        trouble.last_at > now || trouble.last_at.plus(wait) <= now
    })
}

/// Why a device gave nothing, in a line; what it says itself is a code of plain letters.
fn said_by(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Answered => "answered".to_owned(),
        Verdict::Slow => "slow: it did not answer in time".to_owned(),
        Verdict::Refused(code) => format!("refused: {code}"),
        Verdict::Lied(lie) => {
            format!("lied: {}; `oap-memory incidents` has the evidence", lie.as_str())
        }
        Verdict::Unreachable(why) => format!("unreachable: {}", why.as_str()),
    }
}

fn body<T: serde::Serialize>(request: &T) -> Result<String, Error> {
    Ok(oap_identity::json::canonical_text(request)?)
}

/// What the items of an answer that was proved say, each with the number of its last link.
fn said_of(answer: &Value) -> Said {
    let items = answer.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let said = items.iter().filter_map(|item| {
        let id = item.get("item_id")?.as_str()?.parse().ok()?;
        let links = item.get("integrity")?.get("chain")?.as_array()?.len();
        Some((id, (item.clone(), u32::try_from(links.checked_sub(1)?).ok()?)))
    });
    said.collect()
}

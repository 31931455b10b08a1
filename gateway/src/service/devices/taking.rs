//! What a device says is taken over: by the rule of [`oap_federation::step`], once in effect, with the link, the receipt and the note of who
//! said it in one transaction. Nothing that is not kept in step here is touched: whether it is, that transaction reads again.

use super::in_step::{is_kept_in_step, is_of_both};
use crate::api::devices::Left;
use crate::error::{Error, MemberError};
use crate::service::deletion::DeleteRequest;
use crate::service::items::{InForce, Prepared, merge, whole};
use crate::service::{Deletions, Devices, Items};
use crate::state::commits::{Writing, until_it_holds};
use crate::state::gateway::{Gateway, blocking};
use crate::state::owner::Acting;
use crate::state::schema::{GONE, HEADS, LINKS, TOMBSTONES};
use crate::state::steps;
use oap_agents::level::owners_own;
use oap_federation::step::{ItemState, LocalState, MergePlan, StepEntry, WordsOutcome};
use oap_identity::{Did, ItemId};
use oap_memory::chain::Event;
use oap_memory::item::Body;
use oap_memory::record::{Head, Meta, Status};
use oap_store::{Rows, StoreError};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Under what name of an item's `extensions` it stands where it came from.
pub(crate) const EXTENSION: &str = "dev.oap-memory.device";

/// What became of something that a device said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeOutcome {
    /// It was so already.
    Nothing,
    /// It had an effect.
    Change,
    /// It was left.
    Left(Left),
}

/// What is here of an item.
enum LocalItem {
    /// It was erased, here or elsewhere.
    Gone,
    /// It never was here.
    Unknown,
    There(Box<(Head, LocalState)>),
}

fn local_item(gateway: &Gateway, rows: &impl Rows, item: ItemId) -> Result<LocalItem, Error> {
    let head = match HEADS.get(rows, &item) {
        Err(StoreError::Erased) => None,
        head => head?,
    };
    let Some(head) = head else {
        let is_gone = was_erased(rows, item)?;
        return Ok(if is_gone { LocalItem::Gone } else { LocalItem::Unknown });
    };
    Ok(match steps::of(rows, item, &gateway.principal)? {
        Some(own) => LocalItem::There(Box::new((head, own))),
        None => LocalItem::Unknown,
    })
}

fn was_erased(rows: &impl Rows, item: ItemId) -> Result<bool, Error> {
    let was = TOMBSTONES.get(rows, &item)?.is_some() || GONE.get(rows, &item)?.is_some();
    // Links stay when an item goes.
    Ok(was || LINKS.get(rows, &(item, 0))?.is_some())
}

impl Devices<'_> {
    /// The items of a list whose content is needed.
    pub(super) fn wanted(self, told: &[StepEntry]) -> Result<Vec<ItemId>, Error> {
        let mut wanted = Vec::new();
        for StepEntry { item_id, stands } in told {
            let Some(stands) = stands else { continue };
            let needs = match local_item(self.0, &self.0.store, *item_id)? {
                LocalItem::Gone => false,
                LocalItem::Unknown => !stands.retracted,
                LocalItem::There(there) => {
                    let (head, own) = *there;
                    is_kept_in_step(&head, &self.0.config.default_scope)
                        && own.judge(head.status == Status::Retracted, stands).needs_content()
                }
            };
            if needs {
                wanted.push(*item_id);
            }
        }
        Ok(wanted)
    }

    /// Takes over what a device says of an item, as far as the rule says.
    ///
    /// # Errors
    /// [`Error::NotFound`] where it is no device any more; [`Error::LockedDown`]; [`Error::Store`].
    pub(super) async fn take(
        self,
        did: &Did,
        told: &StepEntry,
        said: Option<Value>,
    ) -> Result<MergeOutcome, Error> {
        let outcome = match &told.stands {
            None => until_it_holds(|| self.take_erasure(did, told.item_id)).await,
            Some(stands) => self.take_standing(did, told.item_id, stands, said).await,
        };
        match outcome {
            Err(Error::Conflict(_)) => Ok(MergeOutcome::Left(Left::Conflict)),
            Err(Error::Item(_) | Error::Member(..) | Error::Json(_)) => {
                Ok(MergeOutcome::Left(Left::Unreadable))
            }
            outcome => outcome,
        }
    }

    /// What was erased there is erased here, with what was made of it.
    async fn take_erasure(self, did: &Did, item: ItemId) -> Result<MergeOutcome, Error> {
        match local_item(self.0, &self.0.store, item)? {
            LocalItem::Gone => return Ok(MergeOutcome::Nothing),
            LocalItem::Unknown => {
                let did = did.clone();
                let noted = move |w: &mut Writing<'_, '_>| {
                    w.device(&did)?;
                    // It came meanwhile, as by an import.
                    if matches!(local_item(w.gateway, w.tx, item)?, LocalItem::There(_)) {
                        return Err(Error::Overtaken);
                    }
                    w.is_gone_elsewhere(item)
                };
                self.0.commit(noted).await?;
                return Ok(MergeOutcome::Nothing);
            }
            LocalItem::There(there) => {
                let (head, _) = *there;
                if !is_kept_in_step(&head, &self.0.config.default_scope)
                    || !is_of_both(self.0, &self.0.store, did, item)?
                {
                    return Ok(MergeOutcome::Left(Left::NotInStep));
                }
            }
        }
        let request = DeleteRequest { items: vec![item], ..DeleteRequest::default() };
        let (acting, did) = (Acting::Device(did.clone()), did.clone());
        let still = move |w: &Writing<'_, '_>| {
            let may = w.kept_in_step(item)?.is_some() && is_of_both(w.gateway, w.tx, &did, item)?;
            if may { Ok(()) } else { Err(Error::Overtaken) }
        };
        let deleted = Deletions(self.0).delete_while(acting, request, still).await?;
        Ok(if deleted.cascade_report.held.is_empty() {
            MergeOutcome::Change
        } else {
            MergeOutcome::Left(Left::Conflict)
        })
    }

    async fn take_standing(
        self,
        did: &Did,
        item: ItemId,
        told: &ItemState,
        said: Option<Value>,
    ) -> Result<MergeOutcome, Error> {
        let mut outcome = MergeOutcome::Nothing;
        match local_item(self.0, &self.0.store, item)? {
            LocalItem::Gone => return Ok(MergeOutcome::Nothing),
            LocalItem::Unknown => {
                let Some(said) = said.filter(|_| !told.retracted) else { return Ok(MergeOutcome::Nothing) };
                let body = self.body(item, told, &said)?;
                return until_it_holds(|| self.capture(did, item, told, body.clone())).await;
            }
            LocalItem::There(there) => {
                let (head, own) = *there;
                if !is_kept_in_step(&head, &self.0.config.default_scope) {
                    let take = own.judge(head.status == Status::Retracted, told);
                    return Ok(if take.is_nothing() {
                        MergeOutcome::Nothing
                    } else {
                        MergeOutcome::Left(Left::NotInStep)
                    });
                }
                if !is_of_both(self.0, &self.0.store, did, item)? {
                    self.note_holder(did, item).await?;
                }
                if own.judge(head.status == Status::Retracted, told).standing {
                    outcome = self.mark(did, item, told).await?;
                }
            }
        }
        let Some(said) = said else { return Ok(outcome) };
        let body = self.body(item, told, &said)?;
        Ok(match until_it_holds(|| self.rewrite(did, item, told, body.clone())).await? {
            MergeOutcome::Nothing => outcome,
            rewritten => rewritten,
        })
    }

    /// Notes that an item is on a device that was never shown it here: it came there by way of another one, or what was shown is
    /// forgotten since a backup was restored. What is erased on either is erased on the other all the same.
    async fn note_holder(self, did: &Did, item: ItemId) -> Result<(), Error> {
        let did = did.clone();
        let noted = move |w: &mut Writing<'_, '_>| {
            w.device(&did)?;
            if w.kept_in_step(item)?.is_none() {
                return Ok(());
            }
            let Some(mut own) = steps::of(w.tx, item, &w.gateway.principal)? else { return Ok(()) };
            own.note_holder(&did);
            w.put_own(item, &own)
        };
        self.0.commit(noted).await
    }

    /// Takes an item back, or puts it back, as it was there.
    async fn mark(self, did: &Did, item: ItemId, told: &ItemState) -> Result<MergeOutcome, Error> {
        let (did, told) = (did.clone(), told.clone());
        let marked = move |w: &mut Writing<'_, '_>| {
            w.device(&did)?;
            let Some(head) = w.kept_in_step(item)? else { return Ok(MergeOutcome::Left(Left::NotInStep)) };
            let Some(mut own) = steps::of(w.tx, item, &w.gateway.principal)? else {
                return Ok(MergeOutcome::Nothing);
            };
            if told.stamps.standing <= own.stamps.standing {
                return Ok(MergeOutcome::Nothing);
            }
            match (told.retracted, head.status) {
                (true, Status::Current) => {
                    w.mark(item, Event::Retract)?;
                }
                (false, Status::Retracted) => {
                    w.mark(item, Event::Restore)?;
                }
                // It stands so already: it was said there later.
                _ => w.journal(item)?,
            }
            own.take_standing(&told);
            w.put_own(item, &own)?;
            Ok(MergeOutcome::Change)
        };
        self.0.commit(marked).await
    }

    /// What an item of a device says, as an item of this gateway's, with where it comes from.
    fn body(self, item: ItemId, told: &ItemState, said: &Value) -> Result<Arc<Body>, Error> {
        let Value::Object(members) = said else { return Err(Error::Member("item", MemberError::NotObject)) };
        let mut written = merge(members, &json!({}))?;
        if let Some(members) = written.as_object_mut() {
            for beside in ["relevance", "epistemic", "integrity", "embedding_ref", "embedding", "updated_at"]
            {
                members.remove(beside);
            }
            members.insert("scope_id".to_owned(), json!(self.0.config.default_scope));
            let extensions = members.entry("extensions").or_insert_with(|| json!({}));
            let extensions = extensions.as_object_mut();
            let extensions = extensions.ok_or(Error::Member("extensions", MemberError::NotObject))?;
            let device = &told.stamps.words.device;
            extensions.insert(EXTENSION.to_owned(), json!({"device": device, "item_id": item}));
        }
        let now = self.0.clock.now();
        Ok(Arc::new(Items(self.0).parse_new(&owners_own(&written), now)?))
    }

    /// Writes an item that was never here, under the id that it has there.
    async fn capture(
        self,
        did: &Did,
        item: ItemId,
        told: &ItemState,
        body: Arc<Body>,
    ) -> Result<MergeOutcome, Error> {
        let gateway = self.0.clone();
        let prepared = blocking(move || {
            let contacts = gateway.contact_names.of_and(&gateway.heads, &body.people());
            Items(&gateway).prepare_capture_as(item, (*body).clone(), &contacts, gateway.clock.now())
        });
        let (prepared, did, mut own) = (prepared.await?, did.clone(), LocalState::of(told.stamps.clone()));
        // Its words may be this gateway's own, of before a backup was restored.
        own.note_holder(&did);
        let captured = move |w: &mut Writing<'_, '_>| {
            w.device(&did)?;
            if was_erased(w.tx, item)? {
                return Ok(MergeOutcome::Nothing);
            }
            w.store_capture_as(prepared, Meta::owner(w.gateway.principal.clone(), false))?;
            w.put_own(item, &own)?;
            Ok(MergeOutcome::Change)
        };
        self.0.commit(captured).await
    }

    /// Gives an item the words and labels of a device, as far as they are in force from now on; words that are not are kept in the chain
    /// all the same.
    async fn rewrite(
        self,
        did: &Did,
        item: ItemId,
        told: &ItemState,
        theirs: Arc<Body>,
    ) -> Result<MergeOutcome, Error> {
        let (gateway, told) = (self.0.clone(), told.clone());
        let prepared = blocking(move || prepare(&gateway, item, &told, &theirs)).await?;
        let (prepared, before, after) = match prepared {
            ControlFlow::Continue(rewritten) => rewritten,
            ControlFlow::Break(outcome) => return Ok(outcome),
        };
        let did = did.clone();
        let written = move |w: &mut Writing<'_, '_>| {
            w.device(&did)?;
            let own = steps::of(w.tx, item, &w.gateway.principal)?;
            if w.kept_in_step(item)?.is_none() || own.as_ref() != Some(&before) {
                return Err(Error::Overtaken);
            }
            for version in prepared {
                let event = version.link.event;
                w.store_version(version, event)?;
            }
            // Its own devices learn of it, though it may say what it said.
            w.journal(item)?;
            w.put_own(item, &after)?;
            Ok(MergeOutcome::Change)
        };
        self.0.commit(written).await
    }
}

/// The versions that an item gets, with what is noted of it before and after.
type Rewritten = (Vec<Prepared>, LocalState, LocalState);

/// What is to be written of what a device says; or what came of it, where that is nothing.
fn prepare(
    gateway: &Arc<Gateway>,
    item: ItemId,
    told: &ItemState,
    theirs: &Body,
) -> Result<ControlFlow<MergeOutcome, Rewritten>, Error> {
    let items = Items(gateway);
    let nothing = Ok(ControlFlow::Break(MergeOutcome::Nothing));
    let before = match items.in_force(item) {
        Err(Error::NotFound) => return nothing,
        before => before?,
    };
    let Some(own) = steps::of(&gateway.store, item, &gateway.principal)? else { return nothing };
    let take = own.judge(before.head.status == Status::Retracted, told);
    if !take.needs_content() {
        return nothing;
    }
    if !is_kept_in_step(&before.head, &gateway.config.default_scope) {
        return Ok(ControlFlow::Break(MergeOutcome::Left(Left::NotInStep)));
    }
    let mut after = own.clone();
    after.take_content(told, take);
    let versions = versions(items, &before, take, theirs)?;
    Ok(ControlFlow::Continue((versions, own, after)))
}

/// The versions, one after the other.
fn versions(
    items: Items<'_>,
    before: &InForce,
    take: MergePlan,
    theirs: &Body,
) -> Result<Vec<Prepared>, Error> {
    let gateway = items.0;
    let contacts = gateway.contact_names.of_and(&gateway.heads, &theirs.people());
    let now = gateway.clock.now();
    let mine = items.parse_item(&merge(&whole(&before.committed)?, &json!({}))?, now)?;
    let labels = if take.labels { &theirs.labels } else { &mine.labels };
    let says_same = say_the_same(&mine, theirs);
    let in_force = match take.words {
        WordsOutcome::Win if !says_same => Body { labels: labels.clone(), ..theirs.clone() },
        _ => Body { labels: labels.clone(), ..mine.clone() },
    };
    let mut versions = Vec::new();
    match take.words {
        WordsOutcome::Win if !says_same => {
            versions.push(items.prepare_version(before, in_force, Event::Correct, &contacts)?);
        }
        WordsOutcome::Lose if !says_same => {
            let lost = items.prepare_version(before, theirs.clone(), Event::Correct, &contacts)?;
            let again = items.prepare_after(before, &lost, in_force, Event::Correct, &contacts)?;
            versions.extend([lost, again]);
        }
        _ if in_force.labels != mine.labels => {
            versions.push(items.prepare_version(before, in_force, Event::Relabel, &contacts)?);
        }
        _ => {}
    }
    Ok(versions)
}

/// Whether two bodies say the same, but for their labels and where they come from. An embedding does not travel.
fn say_the_same(one: &Body, two: &Body) -> bool {
    let bare = |body: &Body| {
        let mut body = Body { labels: Vec::new(), embedding: None, ..body.clone() };
        body.extensions.remove(EXTENSION);
        body
    };
    bare(one) == bare(two)
}

/// Takes from an item where it came from: what the owner says here from now on comes from here.
pub(crate) fn at_home(said: &mut Map<String, Value>) {
    if let Some(extensions) = said.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.remove(EXTENSION);
    }
}

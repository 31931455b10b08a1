//! Items: written, corrected, taken back, put back (protocol sections 4 and 11).
//!
//! One transaction per user-visible fact: item, link, receipt and indexes are there together or not at all.

mod accepting;
mod preparing;
mod reading;
mod repeating;
mod storing;

pub use crate::api::items::{ExplainQuery, ListQuery, Written};
pub(crate) use crate::state::schema::whole;
pub(crate) use reading::proved;

use crate::error::{Conflict, Error, MemberError};
use crate::service::devices::at_home;
use crate::service::{Items, Keys};
use crate::state::commits::{Writing, until_it_holds};
use crate::state::gateway::{Gateway, blocking, on_all_cores};
use crate::state::owner::mark::{Permits, Write};
use crate::state::owner::{Acting, Owner};
use crate::state::policy::Admitted;
use crate::state::schema::{HEADS, LINKS, VERSIONS};
use oap_agents::level::{disown, owners_own};
use oap_agents::quarantine::{self, is_quarantined};
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, ItemId, ReceiptId, Timestamp};
use oap_memory::chain::{Event, Link};
use oap_memory::commitment::Committed;
use oap_memory::detect::segments;
use oap_memory::item::{Body, Defaults};
use oap_memory::record::{Head, Meta, Status};
use oap_store::{Encoded, StoreError};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Most items of one write.
pub const MAX_BATCH: usize = 1000;

/// A version that was concealed and signed, and is about to be stored.
pub(crate) struct Prepared {
    body: Body,
    committed: Committed,
    /// The version as it is stored.
    row: Encoded<Committed>,
    /// The link, signed. It names the receipt that will be made.
    pub link: Link,
    /// The link as it is stored.
    link_row: Encoded<Vec<u8>>,
    /// The contacts that the text was cut with, by how often they had changed.
    contacts: u64,
}

impl Prepared {
    /// What it says.
    pub const fn body(&self) -> &Body {
        &self.body
    }

    /// The same, concealed.
    pub const fn committed(&self) -> &Committed {
        &self.committed
    }
}

/// An agent that writes a version, and whether that waits for the owner's confirmation.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    pub did: Did,
    pub needs_verification: bool,
    /// What the owner's policy let it write, where that was asked.
    pub admitted: Option<Admitted>,
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
        self.capture_as(acting, items, Meta::owner(self.0.principal.clone(), false), None).await
    }

    /// The same, with this record behind each item, where the policy lets an agent write them still.
    ///
    /// # Errors
    /// As [`Items::capture`]; [`Error::NotKept`].
    pub(crate) async fn capture_as(
        self,
        acting: Acting,
        items: &[Value],
        record: Meta,
        admitted: Option<Admitted>,
    ) -> Result<Vec<Written>, Error> {
        if items.is_empty() || items.len() > MAX_BATCH {
            return Err(Error::Member("items", MemberError::Number { most: MAX_BATCH, of: "items" }));
        }
        let now = self.0.clock.now();
        let is_owners = *record.author == self.0.principal;
        let bodies = items.iter().map(|item| {
            let own = if is_owners { owners_own(item) } else { Cow::Borrowed(item) };
            self.parse_new(&own, now)
        });
        let bodies = Arc::new(bodies.collect::<Result<Vec<_>, _>>()?);
        let once = || self.capture_once(&acting, bodies.clone(), record.clone(), admitted.clone());
        let stored = until_it_holds(once).await?;
        metrics::counter!("oap_items_captured_total").increment(stored.len() as u64);
        Ok(stored)
    }

    async fn capture_once(
        self,
        acting: &Acting,
        bodies: Arc<Vec<Body>>,
        record: Meta,
        admitted: Option<Admitted>,
    ) -> Result<Vec<Written>, Error> {
        let gateway = self.0.clone();
        let prepared = blocking(move || {
            // Contacts of the same write are people of its texts already.
            let words: Vec<String> = bodies.iter().flat_map(Body::people).collect();
            let contacts = gateway.contact_names.of_and(&gateway.heads, &words);
            let now = gateway.clock.now();
            let prepare = |body: &Body| Items(&gateway).prepare_capture(body.clone(), &contacts, now);
            on_all_cores(bodies.iter().collect(), prepare).into_iter().collect::<Result<Vec<_>, _>>()
        });
        let prepared = prepared.await?;
        let store = move |w: &mut Writing<'_, '_>| {
            admitted.iter().try_for_each(|admitted| admitted.holds(w.tx))?;
            prepared.into_iter().map(|item| w.store_capture_as(item, record.clone())).collect()
        };
        self.0.commit_for(acting.clone(), store).await
    }

    /// Replaces what an item says; members that are not named stay. The former version is kept for the retention
    /// time and is in no view. What is corrected so is the owner's word from then on, whoever wrote it.
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
            self.rewrite(owner.into(), item, event, None, move |gateway, before| {
                is_current(before)?;
                if version.is_some_and(|version| version != before.head.version_seq + 1) {
                    return Err(Error::Conflict(Conflict::NewerVersion(before.head.version_seq + 1)));
                }
                let (mut said, mut changes) = (whole(&before.committed)?, changes.as_ref().clone());
                if event == Event::Correct {
                    // What an agent said of its own word is not said of the owner's, not where it comes back with the item either.
                    changes = owners_own(&changes).into_owned();
                    disown(&mut said);
                    at_home(&mut said);
                    accepting::unmark(&mut said);
                    if *before.head.meta.author != gateway.principal {
                        forget_confidence(&mut said);
                    }
                }
                if event == Event::Relabel && is_quarantined(&before.head) {
                    // Other labels accept nothing.
                    still_stopped(&mut changes);
                }
                Ok(Some((Items(gateway).corrected(before, &said, &changes)?, None)))
            })
        })
        .await?
        .map(|(written, _)| written)
        .ok_or(Error::NotFound)
    }

    /// The same for one of the owner's agents, which is the author of the new version. `change` says what it may change of the
    /// item that is there, what it changes, and as whom.
    ///
    /// # Errors
    /// As [`Items::correct`], and those of `change`.
    pub(crate) async fn correct_as(
        self,
        acting: &Acting,
        item: ItemId,
        change: impl Fn(&InForce) -> Result<(Value, Author), Error> + Clone + Send + 'static,
    ) -> Result<(Written, Author), Error> {
        let corrected = until_it_holds(|| {
            let change = change.clone();
            self.rewrite(acting.clone(), item, Event::Correct, None, move |gateway, before| {
                // What the agent may not see is judged first: its state is nothing that it is told.
                let (changes, by) = change(before)?;
                is_current(before)?;
                let body = Items(gateway).corrected(before, &whole(&before.committed)?, &changes)?;
                Ok(Some((body, Some(by))))
            })
        });
        match corrected.await? {
            Some((written, Some(by))) => Ok((written, by)),
            _ => Err(Error::NotFound),
        }
    }

    /// What an item says with some members replaced.
    pub(crate) fn corrected(
        self,
        before: &InForce,
        said: &Map<String, Value>,
        changes: &Value,
    ) -> Result<Body, Error> {
        let merged = merge(said, changes)?;
        let now = self.0.clock.now();
        let body = self.parse_item(&merged, now)?;
        if body.captured_at != before.head.captured_at {
            has_come(&body, now)?;
        }
        if body.scope_id != *before.head.scope_id {
            return Err(Error::Member("scope_id", MemberError::OtherScope));
        }
        Ok(body)
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
        self.reseal_by(owner.into(), item, always, at).await
    }

    pub(crate) async fn reseal_by(
        self,
        acting: Acting,
        item: ItemId,
        always: bool,
        at: Option<Timestamp>,
    ) -> Result<Option<Written>, Error> {
        let resealed = until_it_holds(|| {
            self.rewrite(acting.clone(), item, Event::Reseal, at, move |gateway, before| {
                is_current(before)?;
                // A reseal vouches for what a compromised key signed: never for what was not written here.
                Keys(gateway).wrote(item)?;
                let (body, changes) = Items(gateway).cut_anew(before)?;
                Ok((always || changes).then_some((body, None)))
            })
        });
        Ok(resealed.await?.map(|(written, _)| written))
    }

    /// Whether resealing an item would change how its text is cut.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`], [`Error::Corrupt`].
    pub async fn would_reseal(self, _: &Owner<impl Permits<Write>>, item: ItemId) -> Result<bool, Error> {
        self.would_change(item).await
    }

    pub(crate) async fn would_change(self, item: ItemId) -> Result<bool, Error> {
        let gateway = self.0.clone();
        blocking(move || {
            let before = Items(&gateway).in_force(item)?;
            Ok(before.head.status == Status::Current && Items(&gateway).cut_anew(&before)?.1)
        })
        .await
    }

    /// What an item says, and whether its text would be cut in another way today.
    pub(crate) fn cut_anew(self, before: &InForce) -> Result<(Body, bool), Error> {
        let body = self.body_said(&whole(&before.committed)?, self.0.clock.now())?;
        let cut = segments(
            body.text.as_deref().unwrap_or_default(),
            &self.0.contact_names.of(&self.0.heads).people,
        );
        let changes = !before.committed.is_cut_as(&cut)?;
        Ok((body, changes))
    }

    /// Gives a current item another version, which `change` makes of the one in force, with its author where that is an agent:
    /// prepared beside the writer, and stored where the item is still what it was.
    async fn rewrite(
        self,
        acting: Acting,
        item: ItemId,
        event: Event,
        at: Option<Timestamp>,
        change: impl FnOnce(&Arc<Gateway>, &InForce) -> Result<Option<(Body, Option<Author>)>, Error>
        + Send
        + 'static,
    ) -> Result<Option<(Written, Option<Author>)>, Error> {
        let gateway = self.0.clone();
        let prepared = blocking(move || {
            let before = Items(&gateway).in_force(item)?;
            let contacts = gateway.contact_names.of(&gateway.heads);
            let Some((body, by)) = change(&gateway, &before)? else { return Ok(None) };
            let now = gateway.clock.now();
            let at = at.map_or(now, |at| at.min(now));
            let prepared = Items(&gateway).prepare_version_at(&before, body, event, &contacts, at)?;
            if event == Event::Reseal {
                Keys(&gateway).holds_with(item, &prepared.link)?;
            }
            Ok::<_, Error>(Some((prepared, by)))
        });
        let Some((prepared, by)) = prepared.await? else { return Ok(None) };
        let author = by.clone();
        let written = self.0.commit_for(acting, move |w| w.store_version_as(prepared, event, author)).await?;
        Ok(Some((written, by)))
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

    /// Appends a link without a new version: `retract`, `restore`, or `confirm` of what the owner wrote.
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

    pub(crate) fn parse_item(self, item: &Value, now: Timestamp) -> Result<Body, Error> {
        let defaults = Defaults { principal: &self.0.principal, scope: &self.0.config.default_scope, now };
        Ok(Body::parse(item, &defaults)?)
    }

    /// What is said for the first time. A verifier refuses what became known in the future, and everything that is answered with it.
    pub(crate) fn parse_new(self, item: &Value, now: Timestamp) -> Result<Body, Error> {
        let body = self.parse_item(item, now)?;
        has_come(&body, now)?;
        Ok(body)
    }

    /// What a version said, which stands whole in `said`.
    pub(crate) fn body_said(self, said: &Map<String, Value>, now: Timestamp) -> Result<Body, Error> {
        self.parse_item(&merge(said, &Value::Object(Map::new()))?, now)
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

/// That an item became known by now, five minutes of skew aside.
fn has_come(body: &Body, now: Timestamp) -> Result<(), Error> {
    if body.captured_at > now.plus(MAX_SKEW) {
        return Err(Error::Member("provenance.captured_at", MemberError::Future));
    }
    Ok(())
}

/// That an item can get another version.
fn is_current(before: &InForce) -> Result<(), Error> {
    if before.head.status == Status::Current { Ok(()) } else { Err(Error::Conflict(Conflict::NotCurrent)) }
}

/// Keeps the label of what the guard stopped among other labels.
fn still_stopped(changes: &mut Value) {
    if let Some(labels) = changes.get_mut("labels").and_then(Value::as_array_mut) {
        labels.retain(|label| label != quarantine::LABEL);
        labels.push(Value::from(quarantine::LABEL));
    }
}

/// Takes away how sure an agent was of what it wrote.
fn forget_confidence(said: &mut Map<String, Value>) {
    if let Some(provenance) = said.get_mut("provenance").and_then(Value::as_object_mut) {
        provenance.remove("confidence");
    }
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

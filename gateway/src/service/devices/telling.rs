//! A device asks what changed here. It is told of what its grant shows, and of what it was shown before and is taken back or gone: of
//! anything else nothing, not even that it is there.

use super::in_step::is_kept_in_step;
use crate::error::{Error, MemberError};
use crate::service::query::Caller;
use crate::service::{Devices, Exchange};
use crate::state::commits::{Writing, chain_of, until_it_holds};
use crate::state::devices::has_given;
use crate::state::gateway::{Gateway, blocking};
use crate::state::grant_book::GrantEntry;
use crate::state::living::BuiltView;
use crate::state::schema::{EPOCH, HEADS, JOURNAL, JOURNAL_END, TOMBSTONES};
use crate::state::{obligations, steps};
use oap_exchange::Query;
use oap_federation::changes::{Changes, ChangesError, MAX_CURSOR, MAX_TOLD, Named, Since};
use oap_federation::step::{ItemState, StepEntry};
use oap_grants::{Operation, VerifiedGrant};
use oap_identity::ItemId;
use oap_memory::receipt::Action;
use oap_memory::record::Status;
use oap_store::{Range, StoreError};
use serde_json::json;
use std::collections::BTreeSet;

/// Most items that are looked at for one list, told of or not.
pub const MAX_LOOKED: usize = 5_000;

/// How far a device was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the items that there are, by their ids: behind this one.
    Items(Option<ItemId>),
    /// In the journal: behind this entry.
    Journal(u64),
}

/// A place, and what it is of: a restored gateway begins anew.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cursor {
    epoch: String,
    at: At,
}

impl Cursor {
    fn beginning(epoch: String) -> Self {
        Self { epoch, at: At::Items(None) }
    }

    fn read(text: &str) -> Option<Self> {
        let (epoch, place) = text.split_once('.')?;
        let (kind, place) = place.split_once('.')?;
        let at = match kind {
            "items" if place.is_empty() => At::Items(None),
            "items" => At::Items(Some(place.parse().ok()?)),
            "journal" => At::Journal(place.parse().ok()?),
            _ => return None,
        };
        Some(Self { epoch: epoch.to_owned(), at })
    }

    fn write(&self) -> String {
        match self.at {
            At::Items(item) => {
                format!("{}.items.{}", self.epoch, item.map(|item| item.to_string()).unwrap_or_default())
            }
            At::Journal(entry) => format!("{}.journal.{entry}", self.epoch),
        }
    }
}

/// A part of what is told.
struct Page {
    told: Vec<StepEntry>,
    next: Cursor,
    more: bool,
    full: bool,
    /// The revision of what the owner owed.
    obligations: u64,
}

impl Devices<'_> {
    /// Tells a device what changed since: the signed list, whose receipt is durable where it tells of something.
    ///
    /// # Errors
    /// [`Error::Permission`] for whoever is no device; [`Error::Member`], [`Error::Cursor`]; [`Error::Refused`] with a receipt.
    pub async fn tell(self, caller: &Caller, since: Since) -> Result<Vec<u8>, Error> {
        if since.cursor.as_ref().is_some_and(|cursor| cursor.len() > MAX_CURSOR) {
            return Err(Error::Member("cursor", MemberError::TooLong(MAX_CURSOR)));
        }
        let grant = Exchange(self.0).judge(caller, Operation::Query, Action::Query).await?;
        self.is_device(caller)?;
        until_it_holds(|| self.tell_once(caller, &grant, &since)).await
    }

    async fn tell_once(
        self,
        caller: &Caller,
        grant: &VerifiedGrant,
        since: &Since,
    ) -> Result<Vec<u8>, Error> {
        // What comes after it may not be in the view yet: it is told of next time.
        let end = JOURNAL_END.get(&self.0.store)?.unwrap_or_default();
        self.0.caught_up().await?;
        let allowance = self.0.grant_book.allowance(grant.hash());
        let view = self.0.view(grant, false, &allowance).await?;
        let (gateway, device) = (self.0.clone(), caller.grantee().clone());
        let cursor = since.cursor.clone();
        let page = blocking(move || {
            let shown: Vec<GrantEntry> = gateway.grant_book.all();
            let shown =
                shown.into_iter().filter(|entry| entry.record.grant.grant().grantee == device).collect();
            let teller = Teller { gateway: &gateway, view: &view, end, shown };
            teller.page(cursor.as_deref(), &allowance)
        });
        let page = page.await?;
        let (to, request) = (caller.grantee().clone(), since.request_id.clone());
        let entry = self.0.grant_book.chain(grant.hash());
        let scope = grant.grant().granter.scope.clone();
        let obligations = page.obligations;
        let (caller_in, is_empty) = (caller.clone(), page.told.is_empty());
        let committed = self.0.commit(move |w: &mut Writing<'_, '_>| {
            let gateway = w.gateway.clone();
            caller_in.holds_in(w, entry, Operation::Query)?;
            if !has_given(w.tx, &to, caller_in.grant_hash())? {
                return Err(no_device());
            }
            // Each item as it was when it was looked at: one that was made private since is not told of.
            if obligations::revision(w.tx)? != obligations {
                return Err(Error::Overtaken);
            }
            for told in &page.told {
                if let Some(stands) = &told.stands {
                    w.ends_with(told.item_id, stands.last_link)?;
                }
            }
            let mut list =
                Changes::new(gateway.principal.clone(), to.clone(), request, w.now, page.next.write());
            (list.told, list.more, list.full) = (page.told, page.more, page.full);
            if !is_empty {
                let mut draft = gateway.draft(Action::SyncDevice, to.as_str());
                draft.rules = ["grant.active", "grant.filter", "device"].map(str::to_owned).to_vec();
                draft.more.insert("told".to_owned(), json!(list.told.len()));
                draft.more.insert("grant_hash".to_owned(), json!(caller_in.grant_hash()));
                draft.output_hash = Some(list.hash().map_err(unwritten)?);
                list.receipt_id = Some(w.receipt(&chain_of(&scope), draft)?.receipt_id);
            }
            Ok((list, w.keys.clone()))
        });
        let (list, keys) = Exchange(self.0).judged(caller, Action::Query, committed.await).await?;
        list.sign(keys.current()).map_err(unwritten)
    }

    /// Tells a device what these items say: an answer as any grantee's, with every proof.
    ///
    /// # Errors
    /// As [`Devices::tell`].
    pub async fn tell_named(self, caller: &Caller, named: Named) -> Result<Vec<u8>, Error> {
        if named.items.is_empty() || named.items.len() > MAX_TOLD {
            return Err(Error::Member("items", MemberError::Number { most: MAX_TOLD, of: "items" }));
        }
        self.is_device(caller)?;
        Exchange(self.0).named(caller, Query::naming(named.request_id), &named.items).await
    }

    /// That a caller uses the grant that was given to it as a device.
    fn is_device(self, caller: &Caller) -> Result<(), Error> {
        if has_given(&self.0.store, caller.grantee(), caller.grant_hash())? {
            Ok(())
        } else {
            Err(no_device())
        }
    }
}

/// What whoever is no device is answered.
const fn no_device() -> Error {
    Error::Permission("of a device of the owner's")
}

fn unwritten(error: ChangesError) -> Error {
    tracing::error!(%error, "a list of changes cannot be written");
    Error::Panicked
}

/// Where it is looked for what changed.
struct Teller<'a> {
    gateway: &'a Gateway,
    view: &'a BuiltView,
    /// The last entry of the journal whose item the view is sure to know.
    end: u64,
    /// The grants that the device has and had.
    shown: Vec<GrantEntry>,
}

impl Teller<'_> {
    fn page(&self, cursor: Option<&str>, allowance: &oap_exchange::Allowance) -> Result<Page, Error> {
        let epoch = EPOCH.get(&self.gateway.store)?;
        let epoch = epoch.map_or_else(|| "0".to_owned(), |epoch| epoch.to_string()[7..23].to_owned());
        let cursor = cursor.map(|text| Cursor::read(text).ok_or(Error::Cursor)).transpose()?;
        let cursor = cursor.filter(|cursor| cursor.epoch == epoch);
        let cursor = cursor.unwrap_or_else(|| Cursor::beginning(epoch));
        let ((), basis) = self.view.find(|_| ());
        let obligations = basis.obligations;
        // What is used up already says so on every page: no new item is told of.
        let full = allowance.exhausted().contains(&true);
        let mut page = Page { told: Vec::new(), next: cursor.clone(), more: false, full, obligations };
        let mut room = allowance.room();
        let mut looked = 0;
        let mut tell = |page: &mut Page, item: ItemId| -> Result<(), Error> {
            let Some(told) = self.look(item)? else { return Ok(()) };
            let is_shown = told.stands.as_ref().is_some_and(|stands| !stands.retracted);
            // What could not be shown any more is not told of: the device would ask for it in vain.
            if is_shown && !room.take(item) {
                page.full = true;
                return Ok(());
            }
            page.told.push(told);
            Ok(())
        };
        if let At::Items(after) = cursor.at {
            let range = after.map_or_else(Range::all, |after| Range::all().from(&after));
            for item in HEADS.keys(&self.gateway.store, range) {
                let item = item?;
                if Some(item) == after {
                    continue;
                }
                if page.told.len() == MAX_TOLD || looked == MAX_LOOKED {
                    page.more = true;
                    return Ok(page);
                }
                looked += 1;
                tell(&mut page, item)?;
                page.next.at = At::Items(Some(item));
            }
            // From the first entry of the journal on: what changed meanwhile, and what went before.
            page.next.at = At::Journal(0);
        }
        let At::Journal(after) = page.next.at else { return Ok(page) };
        let mut told: BTreeSet<ItemId> = page.told.iter().map(|told| told.item_id).collect();
        for row in JOURNAL.range(&self.gateway.store, Range::all().from(&after.saturating_add(1))) {
            let (entry, item) = row?;
            if entry > self.end {
                break;
            }
            if page.told.len() == MAX_TOLD || looked == MAX_LOOKED {
                page.more = true;
                return Ok(page);
            }
            looked += 1;
            if told.insert(item) {
                tell(&mut page, item)?;
            }
            page.next.at = At::Journal(entry);
        }
        Ok(page)
    }

    /// What the device is told of an item; `None` of what it was never shown and is not to see.
    fn look(&self, item: ItemId) -> Result<Option<StepEntry>, Error> {
        let store = &self.gateway.store;
        let head = match HEADS.get(store, &item) {
            Err(StoreError::Erased) => None,
            head => head?,
        };
        let Some(head) = head else {
            let is_erased = TOMBSTONES.get(store, &item)?.is_some();
            return Ok(
                (is_erased && self.was_shown(item)?).then_some(StepEntry { item_id: item, stands: None })
            );
        };
        // The view may be of before its last change.
        let in_view = self.view.contains(item) && is_kept_in_step(&head, &self.gateway.config.default_scope);
        let is_taken_back = head.status == Status::Retracted;
        let is_told = in_view || (is_taken_back && self.was_shown(item)?);
        if !is_told {
            return Ok(None);
        }
        let Some(own) = steps::of(store, item, &self.gateway.principal)? else { return Ok(None) };
        let stands = ItemState { stamps: own.stamps, retracted: is_taken_back, last_link: head.seq };
        Ok(Some(StepEntry { item_id: item, stands: Some(stands) }))
    }

    /// Whether the device was shown an item, or could have shown it.
    fn was_shown(&self, item: ItemId) -> Result<bool, Error> {
        let was_shown = self.shown.iter().any(|entry| entry.has_disclosed(item));
        Ok(was_shown || steps::came(&self.gateway.store, item, &self.gateway.principal)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let item = ItemId::from_bytes([3; 16]);
        for at in [At::Items(None), At::Items(Some(item)), At::Journal(0), At::Journal(u64::MAX)] {
            let cursor = Cursor { epoch: "00ff".to_owned(), at };
            assert!(cursor.write().len() <= MAX_CURSOR);
            assert_eq!(Cursor::read(&cursor.write()), Some(cursor));
        }
        for wrong in
            ["", "0", "0.items", "0.journal.", "0.journal.-1", "0.items.x", "0.other.1", "0.journal.1.2"]
        {
            assert_eq!(Cursor::read(wrong), None, "{wrong}");
        }
    }
}

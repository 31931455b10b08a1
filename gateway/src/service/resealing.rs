//! After a key was compromised: what is the owner's still is signed anew (`docs/bytes.md`, section 4).
//!
//! Receipts are signed anew where they stand, for their hash leaves the signatures out. Items get a `reseal` link, which
//! vouches for the links before it. What no receipt in the log knows of was not written here, and stays held back:
//! whoever had the key could have made it, and it came in with a bundle.

use crate::api::items::AllResealed;
use crate::error::{Conflict, Error};
use crate::service::items::{Prepared, Written};
use crate::service::{Items, Keys};
use crate::state::commits::{Writing, until_it_holds};
use crate::state::gateway::blocking;
use crate::state::jobs::Progress;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{RECEIPT_PLACES, RECEIPTS, ReceiptPlace};
use crate::state::views;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::{Hash, ItemId, Random, Timestamp, json, random};
use oap_memory::chain::{self, Event, Link};
use oap_memory::receipt::{Receipt, item_tag};
use oap_memory::record::Status;
use oap_store::Range;

/// Most receipts that one transaction signs anew.
pub const MAX_SIGNED: usize = 500;
/// Most receipts that are looked at for one transaction.
pub const MAX_LOOKED_AT: usize = 20_000;

/// The items that are held back, and what a job that reseals them goes by.
#[derive(Debug)]
pub struct HeldBack {
    /// The time of the job. All its links are dated so: who sees two of them learns nothing of how many came between.
    pub at: Timestamp,
    /// The items, in a random order.
    pub items: Vec<ItemId>,
}

/// How far the receipts were signed anew.
#[derive(Debug)]
pub struct SignedAnew {
    /// How many were.
    pub signed: usize,
    /// Where to go on; `None` at the end.
    pub next: Option<ReceiptPlace>,
}

/// Brings items into a random order.
fn shuffle(items: &mut [ItemId], random: &dyn Random) {
    let salt: [u8; 32] = random::bytes(random);
    items.sort_by_cached_key(|item| Hash::of(&[&salt[..], &item.to_bytes()].concat()));
}

impl Items<'_> {
    /// Reseals every current item or, where the text of none would be cut in another way, none: a grantee who saw that some items got a
    /// version more would learn which ones mention a contact. For the same reason their order is a random one, and all links bear one
    /// time. What was done stands in `done`, also where the work ends early.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Owner`], [`Error::Store`].
    pub(crate) async fn reseal_all(
        self,
        owner: &Owner<impl Permits<Admin>>,
        progress: &Progress,
        done: &mut AllResealed,
    ) -> Result<(), Error> {
        let at = self.0.clock.now();
        let heads = self.0.heads.all();
        let current = heads.iter().filter(|head| head.status == Status::Current);
        let mut items: Vec<ItemId> = current.map(|head| head.item_id).collect();
        done.seen = items.len();
        progress.expect(items.len());
        let mut changes = false;
        for item in &items {
            progress.step()?;
            changes = match self.would_change(*item).await {
                Err(Error::NotFound) => false,
                looked => looked?,
            };
            if changes {
                break;
            }
        }
        if !changes {
            return Ok(());
        }
        shuffle(&mut items, &*self.0.random);
        progress.expect(items.len());
        for item in items {
            // Asked before each: one that is cancelled during its last has done all.
            progress.go_on()?;
            match self.reseal_by(owner.into(), item, true, Some(at)).await {
                Ok(_) => done.resealed.push(item),
                // Erased or taken back meanwhile, or not written here.
                Err(Error::NotFound | Error::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
            progress.count();
        }
        Ok(())
    }
}

impl Keys<'_> {
    /// The items that are held back, for a compromised key signed something of them and nobody vouches for it.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn held_back(self, _: &Owner<impl Permits<Admin>>) -> Result<HeldBack, Error> {
        let gateway = self.0.clone();
        let look = move || {
            let endorsed = gateway.endorsed()?;
            let mut items = Vec::new();
            if !endorsed.are_all() {
                let heads = gateway.heads.all();
                let held =
                    |item| views::load(&gateway.store, item).is_ok_and(|whole| !endorsed.stands(&whole));
                items.extend(heads.iter().filter(|head| held(head)).map(|head| head.item_id));
            }
            shuffle(&mut items, &*gateway.random);
            Ok(HeldBack { at: gateway.clock.now(), items })
        };
        blocking(look).await
    }

    /// Gives an item that is held back a version more, which says the same and vouches for the links before it. `None`
    /// when it is not held back.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when something of it was not written by this gateway.
    pub async fn reseal_held(
        self,
        owner: &Owner<impl Permits<Admin>>,
        item: ItemId,
        at: Timestamp,
    ) -> Result<Option<Written>, Error> {
        until_it_holds(|| async {
            let gateway = self.0.clone();
            let Some(prepared) = blocking(move || Keys(&gateway).prepare_vouching(item, at)).await? else {
                return Ok(None);
            };
            let stored =
                self.0.commit_as(owner, move |w| w.store_version(prepared, Event::Reseal).map(Some)).await?;
            Ok(stored)
        })
        .await
    }

    fn prepare_vouching(self, item: ItemId, at: Timestamp) -> Result<Option<Prepared>, Error> {
        let before = Items(self.0).in_force(item)?;
        let whole = views::load(&self.0.store, &before.head)?;
        let endorsed = self.0.endorsed()?;
        if endorsed.stands(&whole) {
            return Ok(None);
        }
        if endorsed.chain(&whole.chain) {
            return Err(Error::Conflict(Conflict::CaptureReceipt));
        }
        if !matches!(before.head.status, Status::Current | Status::Retracted) {
            return Err(Error::Conflict(Conflict::NeitherCurrentNorRetracted));
        }
        self.wrote(item)?;
        let contacts = self.0.contact_names.of(&self.0.heads);
        let (body, _) = Items(self.0).cut_anew(&before)?;
        let at = at.min(self.0.clock.now());
        let prepared = Items(self.0).prepare_version_at(&before, body, Event::Reseal, &contacts, at)?;
        self.holds_with(item, &prepared.link)?;
        Ok(Some(prepared))
    }

    /// That the chain of an item holds with a link more, as its reader will check it: what is about to be vouched for.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it does not; [`Error::Store`].
    pub(crate) fn holds_with(self, item: ItemId, link: &Link) -> Result<(), Error> {
        let mut links = views::links(&self.0.store, item)?;
        links.push(serde_json::to_value(link)?);
        let held = chain::verify(&links, &self.0.houses()?);
        held.map(drop).map_err(|_| Error::Conflict(Conflict::BrokenChain))
    }

    /// That this gateway wrote every link of an item that a compromised key signed.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it did not; [`Error::Store`].
    pub(crate) fn wrote(self, item: ItemId) -> Result<(), Error> {
        // What another house signed, its own reseal vouches for, or nothing.
        let doubtful = self.0.endorsed()?.doubtful(&views::stored_links(&self.0.store, item)?);
        for link in doubtful.iter().filter(|link| link.actor == self.0.principal) {
            if !self.recorded(link)? {
                return Err(Error::Conflict(Conflict::UnrecordedLink));
            }
        }
        Ok(())
    }

    /// Whether the receipt of a link is in the log, and is of this link.
    fn recorded(self, link: &Link) -> Result<bool, Error> {
        let Some(place) = RECEIPT_PLACES.get(&self.0.store, &link.receipt)? else {
            return Ok(false);
        };
        let Some(bytes) = RECEIPTS.get(&self.0.store, &place)? else { return Ok(false) };
        let receipt: Receipt = serde_json::from_slice(&bytes)?;
        Ok(receipt.action_id.as_deref() == Some(&format!("memory.{}", link.event))
            && receipt.output_hash == Some(link.commitment)
            && receipt.provenance_tags_out.contains(&item_tag(link.item_id, link.commitment)))
    }

    /// Signs the receipts anew that a compromised key signed too late, from a place on: some of them.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn sign_receipts_anew(
        self,
        owner: &Owner<impl Permits<Admin>>,
        from: Option<ReceiptPlace>,
    ) -> Result<SignedAnew, Error> {
        let gateway = self.0.clone();
        let (places, next) = blocking(move || Keys(&gateway).signed_too_late(from)).await?;
        let mut signed = 0;
        if !places.is_empty() {
            let sign = move |w: &mut Writing| {
                let gateway = w.gateway.clone();
                // Items that no grantee would take may stand by it, and no change of theirs tells of that.
                w.tx.on_commit(move || gateway.views.clear());
                w.sign_anew(&places)
            };
            signed = self.0.commit_as(owner, sign).await?;
        }
        Ok(SignedAnew { signed, next })
    }

    /// The places of receipts whose signature does not count, and where to go on.
    fn signed_too_late(
        self,
        from: Option<ReceiptPlace>,
    ) -> Result<(Vec<ReceiptPlace>, Option<ReceiptPlace>), Error> {
        let endorsed = self.0.endorsed()?;
        let mut places = Vec::new();
        if endorsed.are_all() {
            return Ok((places, None));
        }
        let range = from.map_or_else(Range::all, |from| Range::all().from(&from));
        for (number, pair) in RECEIPTS.range(&self.0.store, range).enumerate() {
            let (place, bytes) = pair?;
            if number == MAX_LOOKED_AT || places.len() == MAX_SIGNED {
                return Ok((places, Some(place)));
            }
            if std::str::from_utf8(&bytes).is_ok_and(|receipt| !endorsed.receipt(receipt)) {
                places.push(place);
            }
        }
        Ok((places, None))
    }
}

impl Writing<'_, '_> {
    fn sign_anew(&mut self, places: &[ReceiptPlace]) -> Result<usize, Error> {
        let keys = self.keys.clone();
        let endorsed = self.gateway.endorsed()?;
        let mut signed = 0;
        for place in places {
            let Some(bytes) = RECEIPTS.get(self.tx, place)? else { continue };
            let mut receipt: Receipt = serde_json::from_slice(&bytes)?;
            let unsigned = receipt.signed_bytes()?;
            let own = receipt.signatures.iter().position(|one| one.by.did() == &self.gateway.principal);
            let Some(own) = own.map(|place| receipt.signatures.remove(place)) else { continue };
            let value = URL_SAFE_NO_PAD.decode(&own.value).unwrap_or_default();
            // What the former key did not sign was changed from outside, and `doctor` says so.
            let is_genuine = keys
                .document()
                .key(&own.by)
                .is_some_and(|key| key.public().verify(&unsigned, &value).is_ok());
            if !is_genuine || endorsed.counts(&own.by, receipt.timestamp) {
                continue;
            }
            let others = std::mem::take(&mut receipt.signatures);
            receipt.sign(keys.current())?;
            receipt.signatures.extend(others);
            RECEIPTS.put(self.tx, place, &json::canonical(&receipt)?)?;
            signed += 1;
        }
        if signed > 0 {
            // Views hold capture receipts.
            self.signatures_changed()?;
        }
        Ok(signed)
    }
}

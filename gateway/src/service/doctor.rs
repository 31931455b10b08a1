//! What is wrong with a gateway, and what to do about it.

pub use crate::api::health::Finding;
use crate::error::Error;
use crate::service::items::proved;
use crate::service::{Audit, Grants, Health, Lockdowns, Peers, Wallet, Witnesses};
use crate::state::clock::{ClockInfo, Standing};
use crate::state::endorsed::Endorsed;
use crate::state::gateway::Gateway;
use crate::state::jobs::Progress;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{FORWARD, HEADS, LINKS, RECEIPT_PLACES, RECEIPTS, TOMBSTONES, VERSIONS};
use crate::state::upgrade::Forward;
use crate::state::views;
use oap_exchange::ccc::Ccc;
use oap_identity::{Did, DidDocument, ItemId};
use oap_memory::evidence;
use oap_memory::receipt::Receipt;
use oap_memory::record::Head;
use oap_store::{Range, StoreError};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Findings of one sort that are told one by one.
const MAX_LISTED: usize = 20;

/// The documents of all who signed what is kept here.
type Signers = BTreeMap<Did, Arc<DidDocument>>;

/// How much was looked at, and what is wrong with it.
type Looked = (usize, Vec<String>);

/// What is wrong with an item.
#[derive(Debug, thiserror::Error)]
enum ItemFault {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Error),
    /// A proof of it does not hold.
    #[error(transparent)]
    Evidence(#[from] evidence::EvidenceError),
    /// Its head is not stored.
    #[error("its head is gone, and nothing says that it was erased")]
    NoHead,
    /// A signature of it does not count, and nobody vouches for it.
    #[error("signed with a compromised key")]
    HeldBack,
    /// Head and chain do not fit.
    #[error("its head says another length of its chain")]
    Length,
}

impl Health<'_> {
    /// Looks at everything: store and vault, receipt chains, items with their chains and proofs, indexes.
    ///
    /// # Errors
    /// [`Error::Store`] when the store cannot be read at all; [`Error::Cancelled`].
    pub fn examine(self, _: &Owner<impl Permits<Admin>>, progress: &Progress) -> Result<Vec<Finding>, Error> {
        self.findings(progress)
    }

    /// The same, for a restore.
    ///
    /// # Errors
    /// As [`Health::examine`].
    pub(crate) fn findings(self, progress: &Progress) -> Result<Vec<Finding>, Error> {
        let finding = |part, looked_at, mut wrong: Vec<String>, fix| {
            let more = wrong.len().saturating_sub(MAX_LISTED);
            wrong.truncate(MAX_LISTED);
            if more > 0 {
                wrong.push(format!("and {more} more"));
            }
            Finding {
                part: Cow::Borrowed(part),
                looked_at,
                wrong,
                soon: Vec::new(),
                fix: Cow::Borrowed(fix),
                note: None,
            }
        };
        let heads = self.0.heads.all();
        progress.expect(heads.len());
        let (proofs, versions) = self.examine_items(&heads, progress)?;
        let chains = match Audit(self.0).verified_chains(progress) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Ok(chains) => (chains.len(), Vec::new()),
            Err(error) => (0, vec![error.to_string()]),
        };
        let (receipts, places) = self.examine_receipts(progress)?;
        let mut findings = vec![
            finding(
                "store and vault",
                1,
                self.0.store.examine(|| progress.go_on())?,
                "values or keys were changed from outside or lost: restore the last backup with the list of erasures",
            ),
            finding(
                "receipt chains",
                chains.0,
                chains.1,
                "the log was changed or cut: restore the last backup, and compare with receipts that grantees hold",
            ),
            finding(
                "items and their proofs",
                heads.len(),
                proofs,
                "first `oap-memory keys reseal` where a key was compromised; then export what verifies with `export`, erase what \
                 does not with `delete --item`, and import it again",
            ),
            finding(
                "signatures of compromised keys",
                heads.len(),
                self.examine_endorsed(&heads, progress)?,
                "no grantee could verify these items, so that they are in no view: `oap-memory keys reseal`; for what it leaves \
                 nobody here can vouch, as this gateway did not write it or another house signed it: look at it, add what \
                 is yours anew, and delete it",
            ),
            finding(
                "versions without an item",
                versions.0,
                versions.1,
                "content that nothing points to: restore the last backup, or report it as a fault of this program",
            ),
            finding(
                "index of receipts",
                receipts,
                places,
                "the index does not fit the log: restore the last backup, or report it as a fault of this program",
            ),
            self.clock_finding(),
            self.forward_finding()?,
            Grants(self.0).grants_finding(),
        ];
        findings.extend(Wallet(self.0).finding()?);
        findings.extend(Peers(self.0).finding()?);
        findings.extend(Witnesses(self.0).finding()?);
        let contexts = self.0.contexts()?;
        let wrong: Vec<String> = contexts
            .iter()
            .filter_map(|(scope, (_, document))| {
                Some(format!("{scope}: {}", Ccc::written(document.clone()).err()?))
            })
            .collect();
        if !wrong.is_empty() {
            findings.push(finding(
                "contexts",
                contexts.len(),
                wrong,
                "set before every form of them was asked for, and what is null restricts nothing: set each anew with `oap-memory ccc set`",
            ));
        }
        findings.extend(Lockdowns(self.0).finding()?);
        if let Some(store) = findings.first_mut() {
            store.note = Some(format!("engine {}", self.0.store.engine()));
        }
        Ok(findings)
    }

    /// Items that are held back from every view, for a compromised key signed something of them.
    fn examine_endorsed(self, heads: &[Arc<Head>], progress: &Progress) -> Result<Vec<String>, Error> {
        let endorsed = self.0.endorsed()?;
        let mut wrong = Vec::new();
        if endorsed.are_all() {
            return Ok(wrong);
        }
        // What cannot be read is told of with the items.
        let stands = |head: &Head, endorsed: &Endorsed| match views::load(&self.0.store, head) {
            Ok(whole) if !endorsed.stands(&whole) => Err(ItemFault::HeldBack),
            _ => Ok(()),
        };
        for head in heads {
            progress.go_on()?;
            if stands(head, &endorsed).is_err()
                && let Some(why) =
                    self.confirmed(head, progress, |head, known| stands(head, &Endorsed::by(known)))?
            {
                wrong.push(format!("{}: {why}", head.item_id));
            }
        }
        Ok(wrong)
    }

    /// Whether the clock is believed.
    pub(crate) fn clock_finding(self) -> Finding {
        Finding {
            part: "clock".into(),
            looked_at: 1,
            wrong: self.examine_clock(),
            soon: Vec::new(),
            fix: "set the system's clock right; where it is right already, `oap-memory clock accept`".into(),
            note: None,
        }
    }

    /// What was brought forward of a store that an earlier version made.
    fn forward_finding(self) -> Result<Finding, Error> {
        let done = FORWARD.scan(&self.0.store).collect::<Result<Vec<_>, _>>()?;
        let said = done.iter().filter(|(_, step)| step.changed > 0);
        let said: Vec<String> =
            said.map(|(name, Forward { at, changed })| format!("{name}: {changed} rows, {at}")).collect();
        let note = if said.is_empty() { "nothing was to be done".to_owned() } else { said.join("; ") };
        Ok(Finding {
            part: "earlier version".into(),
            looked_at: done.len(),
            wrong: Vec::new(),
            soon: Vec::new(),
            fix: "nothing is to be done: what a store of an earlier version lacks is brought forward when it is opened".into(),
            note: Some(note),
        })
    }

    fn examine_clock(self) -> Vec<String> {
        let ClockInfo { clock, mark, standing } = self.0.clock.info();
        let how = match standing {
            Standing::Believed => return Vec::new(),
            Standing::Behind => "behind",
            Standing::Ahead => "far ahead of",
        };
        vec![format!(
            "it says {clock}, {how} the latest time known, {mark}: grants are not served and nothing is swept"
        )]
    }

    fn examine_items(self, heads: &[Arc<Head>], progress: &Progress) -> Result<(Vec<String>, Looked), Error> {
        let known = self.0.houses()?;
        let mut wrong = Vec::new();
        let mut expected: BTreeSet<(ItemId, u32)> = BTreeSet::new();
        for head in heads {
            progress.step()?;
            expected.extend(versions(head));
            if self.examine_item(head, &known).is_err()
                && let Some(why) =
                    self.confirmed(head, progress, |head, known| self.examine_item(head, &known))?
            {
                wrong.push(format!("{}: {why}", head.item_id));
            }
        }
        let (mut seen, mut stray) = (0, Vec::new());
        for key in VERSIONS.keys(&self.0.store, Range::all()) {
            progress.go_on()?;
            seen += 1;
            match key {
                Ok(key) if !expected.contains(&key) && self.is_stray(key)? => stray.push(key.0.to_string()),
                Ok(_) => {}
                Err(error) => stray.push(error.to_string()),
            }
        }
        Ok((wrong, (seen, stray)))
    }

    fn examine_item(self, head: &Head, known: &Signers) -> Result<(), ItemFault> {
        let whole = views::load(&self.0.store, head)?;
        let item = proved(&whole, head.status)?;
        evidence::item(&Value::Object(item), known)?;
        if head.seq as usize + 1 != whole.chain.len() {
            return Err(ItemFault::Length);
        }
        Ok(())
    }

    /// A fault that was found of an item, where it is one. Requests are served meanwhile: the item may have been written or
    /// erased, and its receipt signed anew, between what was read of it. So it is looked at again by what is stored, until neither
    /// its head nor the keys change the while.
    fn confirmed(
        self,
        found: &Head,
        progress: &Progress,
        look: impl Fn(&Head, Signers) -> Result<(), ItemFault>,
    ) -> Result<Option<ItemFault>, Error> {
        let (store, item) = (&self.0.store, found.item_id);
        let head_now = || match HEADS.get(store, &item) {
            // Erased between the row and its key.
            Err(StoreError::Erased) => HEADS.get(store, &item),
            head => head,
        };
        loop {
            progress.go_on()?;
            let head = match head_now() {
                Ok(Some(head)) => head,
                Ok(None) if TOMBSTONES.get(store, &item)?.is_some() => return Ok(None),
                Ok(None) => return Ok(Some(ItemFault::NoHead)),
                Err(error) => return Ok(Some(ItemFault::Unreadable(error.into()))),
            };
            let keys = Gateway::stored_keys(store, &self.0.principal)?;
            let Err(fault) = look(&head, self.0.houses_with(&keys)?) else { return Ok(None) };
            let is_so_still = head_now().is_ok_and(|now| now.as_ref() == Some(&head));
            if is_so_still && Gateway::stored_keys(store, &self.0.principal)?.encoded() == keys.encoded() {
                return Ok(Some(fault));
            }
        }
    }

    /// Whether a version that was found is of no item. The item may be new, or have another version by now; the version may be
    /// erased since.
    fn is_stray(self, key: (ItemId, u32)) -> Result<bool, Error> {
        // What no head has at this point and is there after it was there at this point, too: no version comes back.
        let head = HEADS.get(&self.0.store, &key.0).ok().flatten();
        let is_known = head.is_some_and(|head| versions(&head).any(|version| version == key));
        Ok(!is_known && !matches!(VERSIONS.get(&self.0.store, &key), Ok(None)))
    }

    fn examine_receipts(self, progress: &Progress) -> Result<Looked, Error> {
        let store = &self.0.store;
        let (mut seen, mut wrong) = (0, Vec::new());
        for row in RECEIPT_PLACES.scan(store) {
            progress.go_on()?;
            let (id, place) = row?;
            seen += 1;
            let fits = RECEIPTS.get(store, &place).ok().flatten().is_some_and(|bytes| {
                serde_json::from_slice::<Receipt>(&bytes).is_ok_and(|receipt| receipt.receipt_id == id)
            });
            if !fits {
                wrong.push("a receipt is not where the index says".to_owned());
            }
        }
        // A tombstone is written in the commit that takes the head away, and stays: what is read after it is without the head.
        for item in TOMBSTONES.keys(store, Range::all()) {
            progress.go_on()?;
            let item = item?;
            if matches!(HEADS.get(store, &item), Ok(Some(_))) {
                wrong.push(format!("{item} is erased and here"));
            }
            if LINKS.keys(store, Range::under(&item)).next().is_none() {
                wrong.push(format!("{item} is erased and its chain is gone"));
            }
        }
        Ok((seen, wrong))
    }
}

/// The versions whose content an item has: the one in force, and those that were replaced and are still kept.
fn versions(head: &Head) -> impl Iterator<Item = (ItemId, u32)> {
    let replaced = head.replaced.iter().map(|(seq, _)| *seq);
    std::iter::once(head.version_seq).chain(replaced).map(|seq| (head.item_id, seq))
}

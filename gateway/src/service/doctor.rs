//! What is wrong with a gateway, and what to do about it.

pub use crate::api::health::Finding;
use crate::error::Error;
use crate::service::items::proved;
use crate::service::{Audit, Grants, Health};
use crate::state::clock::{ClockInfo, Standing};
use crate::state::endorsed::Endorsed;
use crate::state::jobs::Progress;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{LINKS, RECEIPT_PLACES, RECEIPTS, TOMBSTONES, VERSIONS};
use crate::state::views;
use oap_identity::{Did, DidDocument, ItemId};
use oap_memory::evidence;
use oap_memory::receipt::Receipt;
use oap_memory::record::Head;
use oap_store::Range;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Findings of one sort that are told one by one.
const TOLD: usize = 20;

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
            let more = wrong.len().saturating_sub(TOLD);
            wrong.truncate(TOLD);
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
        let (receipts, places) = self.examine_receipts()?;
        let mut findings = vec![
            finding(
                "store and vault",
                1,
                self.0.store.examine()?,
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
                self.examine_endorsed(&heads, &self.0.endorsed()?),
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
            Grants(self.0).grants_finding(),
        ];
        if let Some(store) = findings.first_mut() {
            store.note = Some(format!("engine {}", self.0.store.engine()));
        }
        Ok(findings)
    }

    /// Items that are held back from every view, for a compromised key signed something of them.
    fn examine_endorsed(self, heads: &[Arc<Head>], endorsed: &Endorsed) -> Vec<String> {
        if endorsed.are_all() {
            return Vec::new();
        }
        // What cannot be read is told of with the items.
        let held_back =
            |head: &&Arc<Head>| views::load(&self.0.store, head).is_ok_and(|whole| !endorsed.stands(&whole));
        heads
            .iter()
            .filter(held_back)
            .map(|head| format!("{}: signed with a compromised key", head.item_id))
            .collect()
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
            expected.insert((head.item_id, head.version_seq));
            expected.extend(head.replaced.iter().map(|(seq, _)| (head.item_id, *seq)));
            if let Err(why) = self.examine_item(head, &known) {
                wrong.push(format!("{}: {why}", head.item_id));
            }
        }
        let (mut seen, mut stray) = (0, Vec::new());
        for key in VERSIONS.keys(&self.0.store, Range::all()) {
            seen += 1;
            match key {
                Ok(key) if !expected.contains(&key) => stray.push(key.0.to_string()),
                Ok(_) => {}
                Err(error) => stray.push(error.to_string()),
            }
        }
        Ok((wrong, (seen, stray)))
    }

    fn examine_item(self, head: &Head, known: &BTreeMap<Did, Arc<DidDocument>>) -> Result<(), ItemFault> {
        let whole = views::load(&self.0.store, head)?;
        let item = proved(&whole, head.status)?;
        evidence::item(&Value::Object(item), known)?;
        if head.seq as usize + 1 != whole.chain.len() {
            return Err(ItemFault::Length);
        }
        Ok(())
    }

    fn examine_receipts(self) -> Result<Looked, Error> {
        let (mut seen, mut wrong) = (0, Vec::new());
        for row in RECEIPT_PLACES.scan(&self.0.store) {
            let (id, place) = row?;
            seen += 1;
            let fits = RECEIPTS.get(&self.0.store, &place).ok().flatten().is_some_and(|bytes| {
                serde_json::from_slice::<Receipt>(&bytes).is_ok_and(|receipt| receipt.receipt_id == id)
            });
            if !fits {
                wrong.push("a receipt is not where the index says".to_owned());
            }
        }
        for item in TOMBSTONES.keys(&self.0.store, Range::all()) {
            let item = item?;
            if self.0.heads.get(item).is_some() {
                wrong.push(format!("{item} is erased and here"));
            }
            if LINKS.keys(&self.0.store, Range::under(&item)).next().is_none() {
                wrong.push(format!("{item} is erased and its chain is gone"));
            }
        }
        Ok((seen, wrong))
    }
}

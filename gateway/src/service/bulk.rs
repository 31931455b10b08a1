//! The same change of many items: as few transactions as can be, each all or none.
//!
//! A call names at most [`MAX_BULK`] items, which is one transaction. Beyond that the caller goes on with the next; one that is stopped
//! between two calls is taken up by asking for the same again, for an item that is already as it should be is left alone.

pub use crate::api::selections::{BulkRelabel, BulkRetract, Changed, NewLabels};
use crate::error::{Error, MemberError};
use crate::service::items::{MAX_BATCH, Prepared, merge, whole};
use crate::service::selection::{Matcher, Selection, Tagged};
use crate::service::{Items, Selections};
use crate::state::commits::until_it_holds;
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Permits, Write};
use crate::state::schema;
use oap_agents::quarantine::{self, is_quarantined};
use oap_identity::ItemId;
use oap_memory::chain::Event;
use oap_memory::item::MAX_LABELS;
use oap_memory::record::Status;
use oap_store::StoreError;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most items of one bulk change.
pub const MAX_BULK: usize = MAX_BATCH;

impl NewLabels {
    /// The labels of an item that has these, sorted.
    fn of(&self, labels: &[String]) -> Vec<String> {
        let mut new: BTreeSet<&String> = self.set.as_deref().unwrap_or(labels).iter().collect();
        new.extend(&self.add);
        new.retain(|label| !self.remove.contains(label));
        new.into_iter().cloned().collect()
    }

    fn check(&self) -> Result<(), Error> {
        if self.set.is_none() && self.add.is_empty() && self.remove.is_empty() {
            return Err(Error::Member("labels", MemberError::NoLabels));
        }
        Ok(())
    }
}

impl Changed {
    fn of(named: &Selection, changed: Vec<ItemId>) -> Self {
        let named: BTreeSet<&ItemId> = named.items.iter().collect();
        Self { left: named.len().saturating_sub(changed.len()), changed }
    }
}

fn check(selection: &Selection) -> Result<(), Error> {
    selection.check()?;
    if selection.items.is_empty() || selection.items.len() > MAX_BULK {
        return Err(Error::Member("selection.items", MemberError::Number { most: MAX_BULK, of: "items" }));
    }
    Ok(())
}

impl Selections<'_> {
    /// Gives items other labels, all or none.
    ///
    /// # Errors
    /// [`Error::Member`], [`Error::Item`] for labels that an item cannot have.
    pub async fn relabel_all(
        self,
        owner: &Owner<impl Permits<Write>>,
        what: BulkRelabel,
    ) -> Result<Changed, Error> {
        check(&what.selection)?;
        what.labels.check()?;
        let what = Arc::new(what);
        let changed = until_it_holds(|| self.relabel_once(owner, what.clone())).await?;
        Ok(Changed::of(&what.selection, changed))
    }

    async fn relabel_once(
        self,
        owner: &Owner<impl Permits<Write>>,
        what: Arc<BulkRelabel>,
    ) -> Result<Vec<ItemId>, Error> {
        let gateway = self.0.clone();
        let prepared = blocking(move || Selections(&gateway).prepare_relabelled(&what)).await?;
        if prepared.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self.0.commit_as(owner, move |w| {
            let mut changed = Vec::with_capacity(prepared.len());
            for version in prepared {
                match w.store_version(version, Event::Relabel) {
                    Ok(written) => changed.push(written.item_id),
                    // Erased since it was prepared.
                    Err(Error::NotFound) => return Err(Error::Overtaken),
                    Err(error) => return Err(error),
                }
            }
            Ok(changed)
        });
        stored.await
    }

    /// The versions with other labels, of those items whose labels are not so already.
    fn prepare_relabelled(self, what: &BulkRelabel) -> Result<Vec<Prepared>, Error> {
        let matcher = Matcher::new(&what.selection);
        let contacts = self.0.contact_names.of(&self.0.heads);
        // All links bear one time: the time between two would tell how many others were changed.
        let now = self.0.clock.now();
        let mut prepared = Vec::new();
        for item in matcher.items() {
            let before = match Items(self.0).in_force(*item) {
                Ok(before) => before,
                Err(Error::NotFound | Error::Store(StoreError::Erased)) => continue,
                Err(error) => return Err(error),
            };
            let head = &before.head;
            let mut labels = what.labels.of(&head.labels);
            if is_quarantined(head) {
                // Other labels accept nothing.
                quarantine::mark(&mut labels, true);
                labels.sort_unstable();
            }
            // One that has no room for the mark beside them keeps its labels, and stops no other.
            if labels.len() > MAX_LABELS && is_quarantined(head) {
                continue;
            }
            if head.status != Status::Current
                || labels == *head.labels
                || !matcher.admits(head)
                || !matcher.admits_version(*item, &before.committed)
            {
                continue;
            }
            let merged = merge(&whole(&before.committed)?, &json!({"labels": labels}))?;
            let body = Items(self.0).parse_item(&merged, now)?;
            prepared.push(Items(self.0).prepare_version_at(&before, body, Event::Relabel, &contacts, now)?);
        }
        Ok(prepared)
    }

    /// Takes items back, all or none.
    ///
    /// # Errors
    /// [`Error::Member`].
    pub async fn retract_all(
        self,
        owner: &Owner<impl Permits<Write>>,
        what: BulkRetract,
    ) -> Result<Changed, Error> {
        check(&what.selection)?;
        let tagged = Tagged::look(self.0, &what.selection).await?;
        let selection = what.selection.clone();
        let changed = self
            .0
            .commit_as(owner, move |w| {
                let matcher = Matcher::new(&selection);
                let mut changed = Vec::new();
                for item in matcher.items() {
                    let head = match schema::head(w.tx, *item) {
                        Ok((_, head)) => head,
                        Err(Error::NotFound | Error::Store(StoreError::Erased)) => continue,
                        Err(error) => return Err(error),
                    };
                    if head.status == Status::Current && w.selects(&head, &matcher, &tagged)? {
                        w.mark(*item, Event::Retract)?;
                        changed.push(*item);
                    }
                }
                Ok(changed)
            })
            .await?;
        Ok(Changed::of(&what.selection, changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_set_added_and_removed() {
        let texts = |of: &[&str]| of.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>();
        let has = texts(&["b", "c"]);
        let new = |set: Option<&[&str]>, add: &[&str], remove: &[&str]| {
            NewLabels { set: set.map(texts), add: texts(add), remove: texts(remove) }.of(&has)
        };
        assert_eq!(new(None, &["a", "b"], &[]), ["a", "b", "c"]);
        assert_eq!(new(None, &["a"], &["c", "x"]), ["a", "b"]);
        assert_eq!(new(Some(&["z"]), &["y"], &[]), ["y", "z"]);
        assert!(new(Some(&[]), &[], &[]).is_empty());
        assert!(NewLabels::default().check().is_err());
    }
}

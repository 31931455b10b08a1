//! Which of the owner's items are meant. Selectors of different kinds intersect; the values of one kind are alternatives.
//!
//! A deletion, a relabelling, a retraction and a search all select by it. What is selected is shown and confirmed first, by id: a
//! change takes the ids that were confirmed *and* the selectors, so that it touches nothing that came or changed since.

use crate::api::holds::HeldItem;
use crate::api::items::Brief;
pub use crate::api::selections::{SelectQuery, Selected, Selection};
use crate::error::{Error, MemberError};
use crate::service::brief::brief;
use crate::service::deletion_plan::{Heads, sources_last};
use crate::service::items::whole;
use crate::service::{Deletions, Selections};
use crate::state::commits::Writing;
use crate::state::gateway::{Gateway, blocking};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{self, VERSIONS};
use oap_identity::ItemId;
use oap_memory::commitment::Committed;
use oap_memory::receipt::item_tag;
use oap_memory::{Head, Status};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many of the selected items, of those made from them and of those held are described before anything is done.
pub const SAMPLES: usize = 5;

impl Selection {
    /// Whether no selector but times is given.
    fn is_unnamed(&self) -> bool {
        self.items.is_empty()
            && self.labels.is_empty()
            && self.subjects.is_empty()
            && self.scopes.is_empty()
            && self.provenance_tags.is_empty()
    }

    const fn is_timed(&self) -> bool {
        self.captured_after.is_some() || self.captured_before.is_some()
    }

    /// That it names something, and nothing contradictory.
    ///
    /// # Errors
    /// [`Error::Member`].
    pub fn check(&self) -> Result<(), Error> {
        if self.is_unnamed() && !self.is_timed() && !self.all {
            return Err(Error::Member("items", MemberError::NoSelector));
        }
        if self.all && !self.is_unnamed() {
            return Err(Error::Member("all", MemberError::AllAndMore));
        }
        if self.captured_after.zip(self.captured_before).is_some_and(|(after, before)| before <= after) {
            return Err(Error::Member("captured_before", MemberError::BeforeAfter));
        }
        Ok(())
    }
}

/// A selection that is asked of many items.
pub(crate) struct Matcher<'a> {
    of: &'a Selection,
    items: BTreeSet<ItemId>,
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(of: &'a Selection) -> Self {
        Self { of, items: of.items.iter().copied().collect() }
    }

    /// The items that are named.
    pub(crate) const fn items(&self) -> &BTreeSet<ItemId> {
        &self.items
    }

    /// Whether an item fits every selector but the provenance tags, which its head does not know.
    pub(crate) fn admits(&self, head: &Head) -> bool {
        let Selection { items, labels, subjects, scopes, captured_after, captured_before, .. } = self.of;
        let subject = || head.subject_entity_id.as_deref();
        (items.is_empty() || self.items.contains(&head.item_id))
            && (labels.is_empty() || head.labels.iter().any(|label| labels.contains(label)))
            && (subjects.is_empty() || subject().is_some_and(|subject| subjects.contains(subject)))
            && (scopes.is_empty() || scopes.contains(&head.scope_id))
            && captured_after.is_none_or(|after| head.captured_at >= after)
            && captured_before.is_none_or(|before| head.captured_at < before)
    }

    /// Whether an item's version has to be read as well.
    pub(crate) fn asks_for_tags(&self) -> bool {
        !self.of.provenance_tags.is_empty()
    }

    /// Whether a version has one of the provenance tags.
    pub(crate) fn admits_version(&self, item: ItemId, version: &Committed) -> bool {
        !self.asks_for_tags() || is_tagged(item, version, &self.of.provenance_tags)
    }
}

/// Which versions have a wanted provenance tag. Opening every version takes long, so it is done before the transaction, which opens
/// those alone that are newer.
#[derive(Debug, Default)]
pub(crate) struct Tagged(BTreeMap<ItemId, (u32, bool)>);

impl Tagged {
    /// Looks at every item that fits otherwise; at none where no tag is asked for.
    pub(crate) async fn look(gateway: &Arc<Gateway>, selection: &Selection) -> Result<Self, Error> {
        if selection.provenance_tags.is_empty() {
            return Ok(Self::default());
        }
        let (gateway, selection) = (gateway.clone(), selection.clone());
        blocking(move || {
            let matcher = Matcher::new(&selection);
            let look = |head: Arc<Head>| {
                let version = schema::version(&gateway.store, head.item_id, head.version_seq).ok()?;
                Some((head.item_id, (head.version_seq, matcher.admits_version(head.item_id, &version))))
            };
            let heads = gateway.heads.all().into_iter().filter(|head| matcher.admits(head));
            Ok(Self(heads.filter_map(look).collect()))
        })
        .await
    }
}

impl Writing<'_, '_> {
    /// Whether an item is selected as it stands in this transaction.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn selects(&self, head: &Head, matcher: &Matcher, tagged: &Tagged) -> Result<bool, Error> {
        if !matcher.admits(head) {
            return Ok(false);
        }
        if !matcher.asks_for_tags() {
            return Ok(true);
        }
        match tagged.0.get(&head.item_id) {
            Some((seq, is)) if *seq == head.version_seq => Ok(*is),
            _ => {
                let version = VERSIONS.get(self.tx, &(head.item_id, head.version_seq))?;
                Ok(version.is_some_and(|version| matcher.admits_version(head.item_id, &version)))
            }
        }
    }
}

/// Whether a version has one of these provenance tags.
fn is_tagged(id: ItemId, version: &Committed, tags: &[String]) -> bool {
    let own = item_tag(id, version.commitment());
    let Ok(item) = whole(version) else { return false };
    let provenance = item.get("provenance");
    tags.iter().any(|tag| {
        *tag == own
            || tag.split_once('=').is_some_and(|(member, value)| {
                match provenance.and_then(|p| p.get(member)) {
                    Some(Value::String(text)) => text == value,
                    Some(other) => serde_json::from_str::<Value>(value).is_ok_and(|value| value == *other),
                    None => false,
                }
            })
    })
}

impl Selections<'_> {
    /// What a selection selects at the moment.
    ///
    /// # Errors
    /// [`Error::Member`] for a selection that names nothing.
    pub fn select(self, _: &Owner<impl Permits<Admin>>, wanted: &SelectQuery) -> Result<Selected, Error> {
        wanted.selection.check()?;
        let heads: Heads = self.0.heads.all().into_iter().map(|head| (head.item_id, head)).collect();
        let chosen = self.chosen(&heads, &wanted.selection, wanted.current)?;
        let taken: BTreeSet<ItemId> = sources_last(&chosen, &heads).into_iter().collect();
        let derived: Vec<ItemId> = taken.difference(&chosen).copied().collect();
        let mut holds = Deletions(self.0).holds()?;
        holds.retain(|item, _| taken.contains(item));
        let all: Vec<Arc<Head>> = taken.iter().filter_map(|item| heads.get(item).cloned()).collect();
        let describe = |items: Vec<ItemId>| -> Result<Vec<Brief>, Error> {
            items
                .iter()
                .rev()
                .take(SAMPLES)
                .filter_map(|item| heads.get(item))
                .map(|h| brief(self.0, h))
                .collect()
        };
        let held = holds.iter().take(SAMPLES);
        Ok(Selected {
            count: chosen.len(),
            samples: describe(chosen.iter().copied().collect())?,
            derived_count: derived.len(),
            derived: describe(derived)?,
            held_count: holds.len(),
            held: held
                .map(|(item, hold)| HeldItem { item_id: *item, reason: hold.reason, until: hold.until })
                .collect(),
            grants_shrunk: Deletions(self.0).shrunk(&all).len(),
            items: chosen.into_iter().collect(),
        })
    }

    /// The items that a selection selects, of all or of the current ones.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn chosen(
        self,
        heads: &Heads,
        selection: &Selection,
        current: bool,
    ) -> Result<BTreeSet<ItemId>, Error> {
        let matcher = Matcher::new(selection);
        let mut chosen = BTreeSet::new();
        for head in heads.values().filter(|head| matcher.admits(head)) {
            if (!current || head.status == Status::Current) && self.has_tags(head, &matcher)? {
                chosen.insert(head.item_id);
            }
        }
        Ok(chosen)
    }

    fn has_tags(self, head: &Head, matcher: &Matcher) -> Result<bool, Error> {
        if !matcher.asks_for_tags() {
            return Ok(true);
        }
        match schema::version(&self.0.store, head.item_id, head.version_seq) {
            Ok(version) => Ok(matcher.admits_version(head.item_id, &version)),
            // Erased since its head was read.
            Err(Error::NotFound | Error::Store(oap_store::StoreError::Erased)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::deletion_plan::tests::head;
    use oap_identity::Timestamp;
    use proptest::prelude::*;

    fn selection() -> impl Strategy<Value = Selection> {
        let some = |of: &'static [&'static str]| {
            proptest::collection::vec(proptest::sample::select(of).prop_map(str::to_owned), 0..3)
        };
        let time = || proptest::option::of((0i64..6).prop_map(Timestamp::from_seconds));
        (some(&["a", "b", "c"]), some(&["p", "q"]), time(), time(), proptest::collection::vec(0u8..8, 0..4))
            .prop_map(|(labels, subjects, captured_after, captured_before, items)| Selection {
                items: items.into_iter().map(|n| ItemId::from_bytes([n; 16])).collect(),
                labels,
                subjects,
                captured_after,
                captured_before,
                ..Selection::default()
            })
    }

    proptest! {
        /// What both of two selections admit is what the one with the selectors of both admits, where they name different kinds.
        #[test]
        fn selectors_of_different_kinds_intersect(
            selection in selection(),
            labels in proptest::collection::btree_set(proptest::sample::select(vec!["a", "b", "c"]), 0..3),
            subject in proptest::option::of(proptest::sample::select(vec!["p", "q"])),
            at in 0i64..6,
            n in 0u8..8,
        ) {
            let labels: Vec<&str> = labels.into_iter().collect();
            let head = head(n, &[], &labels, subject, at);
            let only = |part: Selection| Matcher::new(&part).admits(&head);
            let Selection { items, labels, subjects, captured_after, captured_before, .. } = selection.clone();
            let none = Selection::default;
            let parts = [
                only(Selection { items, ..none() }),
                only(Selection { labels, ..none() }),
                only(Selection { subjects, ..none() }),
                only(Selection { captured_after, ..none() }),
                only(Selection { captured_before, ..none() }),
            ];
            prop_assert_eq!(Matcher::new(&selection).admits(&head), parts.into_iter().all(|fits| fits));
        }

        /// The values of one selector are alternatives.
        #[test]
        fn values_of_one_selector_unite(one in 0u8..8, other in 0u8..8, n in 0u8..8) {
            let head = head(n, &[], &[], None, 0);
            let of = |items: &[u8]| {
                let items = items.iter().map(|n| ItemId::from_bytes([*n; 16])).collect();
                Matcher::new(&Selection { items, ..Selection::default() }).admits(&head)
            };
            prop_assert_eq!(of(&[one, other]), of(&[one]) || of(&[other]));
        }
    }

    #[test]
    fn a_selection_names_something_and_no_contradiction() {
        let none = Selection::default;
        assert!(none().check().is_err());
        assert!(Selection { all: true, ..none() }.check().is_ok());
        let at = |seconds| Some(Timestamp::from_seconds(seconds));
        assert!(Selection { all: true, captured_after: at(1), ..none() }.check().is_ok());
        assert!(Selection { all: true, labels: vec!["a".into()], ..none() }.check().is_err());
        assert!(Selection { captured_after: at(2), captured_before: at(1), ..none() }.check().is_err());
    }
}

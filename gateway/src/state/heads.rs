//! What selection needs of every item, in memory.

use crate::error::Error;
use crate::state::schema::HEADS;
use crate::state::standing::Standing;
use oap_identity::{Did, ItemId, ScopeId, Timestamp};
use oap_memory::Head;
use oap_memory::record::Tier;
use oap_store::{Store, StoreError};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::iter;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// How many heads are read at a time where one goes through them: meanwhile none is changed.
const AT_ONCE: usize = 512;

/// The heads of all items that are not erased.
#[derive(Debug, Default)]
pub struct Heads(RwLock<Kept>);

#[derive(Debug, Default)]
struct Kept {
    heads: BTreeSet<ById>,
    shared: Shared,
    /// The items whose records have a key.
    keyed: BTreeMap<Place, BTreeSet<ItemId>>,
    /// The items that name people.
    peopled: BTreeSet<ItemId>,
    standing: Standing,
}

/// A namespace, and a key in it.
type Place = (String, String);

/// Where a record stands, if it has a key. It keeps its place.
fn place(head: &Head) -> Option<Place> {
    Some((head.meta.namespace.as_deref()?.clone(), head.meta.key.as_deref()?.clone()))
}

/// A head in its place: what the set needs of it is its id.
#[derive(Debug)]
struct ById(Arc<Head>);

impl Borrow<ItemId> for ById {
    fn borrow(&self) -> &ItemId {
        &self.0.item_id
    }
}

impl Ord for ById {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.item_id.cmp(&other.0.item_id)
    }
}

impl PartialOrd for ById {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.item_id == other.0.item_id
    }
}

impl Eq for ById {}

/// What many heads have in common, once.
#[derive(Debug, Default)]
struct Shared {
    scopes: Pool<ScopeId>,
    authors: Pool<Did>,
    subjects: Pool<String>,
    namespaces: Pool<String>,
    labels: Pool<Vec<String>>,
}

impl Shared {
    fn take(&mut self, head: &mut Head) {
        self.scopes.take(&mut head.scope_id);
        self.authors.take(&mut head.meta.author);
        head.meta.private_to.iter_mut().for_each(|whose| self.authors.take(whose));
        self.labels.take(&mut head.labels);
        head.subject_entity_id.iter_mut().for_each(|subject| self.subjects.take(subject));
        head.meta.namespace.iter_mut().for_each(|namespace| self.namespaces.take(namespace));
    }

    /// Forgets what only this head had.
    fn release(&mut self, head: &Head) {
        self.scopes.release(&head.scope_id);
        self.authors.release(&head.meta.author);
        head.meta.private_to.iter().for_each(|whose| self.authors.release(whose));
        self.labels.release(&head.labels);
        head.subject_entity_id.iter().for_each(|subject| self.subjects.release(subject));
        head.meta.namespace.iter().for_each(|namespace| self.namespaces.release(namespace));
    }
}

/// Values of which there is one each, with how many heads have it.
#[derive(Debug)]
struct Pool<T>(HashMap<Arc<T>, usize>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Eq + Hash> Pool<T> {
    /// Puts the one that is kept in the place of an equal one.
    fn take(&mut self, value: &mut Arc<T>) {
        match self.0.get_key_value(value) {
            Some((kept, _)) => *value = kept.clone(),
            None => drop(self.0.insert(value.clone(), 0)),
        }
        self.0.entry(value.clone()).and_modify(|heads| *heads += 1);
    }

    fn release(&mut self, value: &Arc<T>) {
        if let Some(heads) = self.0.get_mut(value) {
            *heads -= 1;
            if *heads == 0 {
                self.0.remove(value);
            }
        }
    }
}

impl Kept {
    fn put(&mut self, mut head: Head) -> Arc<Head> {
        self.shared.take(&mut head);
        let head = Arc::new(head);
        if let Some(place) = place(&head) {
            self.keyed.entry(place).or_default().insert(head.item_id);
        }
        if let Some(ById(before)) = self.heads.replace(ById(head.clone())) {
            self.standing.leave(&before);
            if place(&before) != place(&head) {
                self.leave(&before);
            }
            self.shared.release(&before);
        }
        if head.few.people().is_empty() {
            self.peopled.remove(&head.item_id);
        } else {
            self.peopled.insert(head.item_id);
        }
        self.standing.enter(&head);
        head
    }

    /// Takes an entry from where it was.
    fn leave(&mut self, before: &Head) {
        if let Some(place) = place(before)
            && let Some(items) = self.keyed.get_mut(&place)
        {
            items.remove(&before.item_id);
            if items.is_empty() {
                self.keyed.remove(&place);
            }
        }
    }

    fn remove(&mut self, item: ItemId) {
        if let Some(ById(before)) = self.heads.take(&item) {
            self.leave(&before);
            self.peopled.remove(&item);
            self.standing.leave(&before);
            self.shared.release(&before);
        }
    }
}

impl Heads {
    /// Reads the heads of a store.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        let mut kept = Kept::default();
        for row in HEADS.scan_on_all_cores(store) {
            match row {
                Ok((_, head)) => drop(kept.put(head)),
                // Destroyed by a sweep that finished a deletion after a crash; the sweep of items clears the rest.
                Err(StoreError::Erased) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self(RwLock::new(kept)))
    }

    fn kept(&self) -> RwLockReadGuard<'_, Kept> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head of an item.
    #[must_use]
    pub fn get(&self, item: ItemId) -> Option<Arc<Head>> {
        self.kept().heads.get(&item).map(|ById(head)| head.clone())
    }

    /// Every head, in the order of ids.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Head>> {
        self.kept().heads.iter().map(|ById(head)| head.clone()).collect()
    }

    /// The heads behind an id, in the order of ids: so many at a time, as they stand when their turn comes.
    pub fn after(&self, mut last: Option<ItemId>) -> impl Iterator<Item = Arc<Head>> {
        iter::from_fn(move || {
            let from = last.map_or(Bound::Unbounded, Bound::Excluded);
            let kept = self.kept();
            let range = kept.heads.range::<ItemId, _>((from, Bound::Unbounded));
            let heads: Vec<Arc<Head>> = range.take(AT_ONCE).map(|ById(head)| head.clone()).collect();
            last = Some(heads.last()?.item_id);
            Some(heads)
        })
        .flatten()
    }

    /// Whether so many heads pass. No more are looked at than that takes.
    #[must_use]
    pub fn has(&self, most: usize, passes: impl Fn(&Head) -> bool) -> bool {
        let kept = self.kept();
        kept.heads.iter().filter(|ById(head)| passes(head)).take(most).count() >= most
    }

    /// The heads that name people, in the order of ids.
    #[must_use]
    pub fn peopled(&self) -> Vec<Arc<Head>> {
        let kept = self.kept();
        kept.peopled.iter().filter_map(|item| kept.heads.get(item)).map(|ById(head)| head.clone()).collect()
    }

    /// The heads whose records have this key in this namespace, whoever wrote them.
    #[must_use]
    pub fn at(&self, namespace: &str, key: &str) -> Vec<Arc<Head>> {
        let kept = self.kept();
        let items = kept.keyed.get(&(namespace.to_owned(), key.to_owned()));
        items
            .into_iter()
            .flatten()
            .filter_map(|item| kept.heads.get(item))
            .map(|ById(head)| head.clone())
            .collect()
    }

    /// The heads whose records have a key.
    #[must_use]
    pub fn keyed(&self) -> Vec<Arc<Head>> {
        let kept = self.kept();
        let items = kept.keyed.values().flatten();
        items.filter_map(|item| kept.heads.get(item)).map(|ById(head)| head.clone()).collect()
    }

    /// How many entries of an agent are in force in a tier.
    #[must_use]
    pub fn count_own(&self, author: &Did, tier: Tier, now: Timestamp) -> usize {
        self.kept().standing.count(author, tier, now)
    }

    /// The entries of an agent in a tier that nobody took back; some may have ended.
    #[must_use]
    pub fn own(&self, author: &Did, tier: Tier) -> Vec<Arc<Head>> {
        let kept = self.kept();
        let items = kept.standing.items(author, tier);
        items.filter_map(|item| kept.heads.get(&item)).map(|ById(head)| head.clone()).collect()
    }

    /// The items from one id to another, at most so many.
    #[must_use]
    pub fn between(&self, first: ItemId, last: ItemId, most: usize) -> Vec<ItemId> {
        self.kept().heads.range(first..=last).take(most).map(|ById(head)| head.item_id).collect()
    }

    /// Puts the head of an item, or takes it out.
    pub fn set(&self, item: ItemId, head: Option<Head>) -> Option<Arc<Head>> {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match head {
            Some(head) => Some(kept.put(head)),
            None => {
                kept.remove(item);
                None
            }
        }
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept().heads.len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_memory::record::Meta;
    use oap_memory::{Body, item::Defaults};
    use serde_json::json;

    fn head(n: u8, label: &str) -> Head {
        let principal: Did = "did:web:user.example".parse().unwrap();
        let scope = "personal".parse().unwrap();
        let defaults = Defaults { principal: &principal, scope: &scope, now: Timestamp::from_seconds(0) };
        let item =
            json!({"kind": "fact", "content": {"text": "x"}, "labels": [label], "subject_entity_id": label});
        let body = Body::parse(&item, &defaults).unwrap();
        Head::new(ItemId::from_bytes([n; 16]), &body, Meta::owner(principal.clone(), false))
    }

    /// With its two counts a head fills one of the allocator's sizes, 160 bytes: the next is 192, 32 MB more of a million items.
    #[test]
    fn a_head_is_small() {
        assert!(2 * size_of::<usize>() + size_of::<Head>() <= 160, "{}", size_of::<Head>());
    }

    #[test]
    fn what_is_behind_an_id_is_found_across_the_ends_of_what_is_read_at_a_time() {
        let heads = Heads::default();
        let id = |n: usize| ItemId::from_bytes([n.to_be_bytes(); 2].concat().try_into().unwrap());
        let all: Vec<ItemId> = (0..2 * AT_ONCE + 1).map(id).collect();
        for item in &all {
            heads.set(*item, Some(Head { item_id: *item, ..head(0, "a") }));
        }
        let after = |last| heads.after(last).map(|head| head.item_id).collect::<Vec<ItemId>>();
        assert_eq!(after(None), all);
        assert_eq!(after(Some(all[AT_ONCE])), all[AT_ONCE + 1..]);
        assert_eq!(after(all.last().copied()), []);
    }

    #[test]
    fn an_entry_that_has_another_key_is_not_where_it_was() {
        let heads = Heads::default();
        let of = |n: u8, key: &str| {
            let mut head = head(n, "a");
            (head.meta.namespace, head.meta.key) =
                (Some(Arc::new("n".to_owned())), Some(Box::new(key.to_owned())));
            head
        };
        let [item, other] = [1, 2].map(|n| ItemId::from_bytes([n; 16]));
        let at = |key: &str| heads.at("n", key).iter().map(|head| head.item_id).collect::<Vec<ItemId>>();
        heads.set(item, Some(of(1, "one")));
        heads.set(item, Some(of(1, "two")));
        assert_eq!((at("one"), at("two")), (vec![], vec![item]));
        assert_eq!(heads.keyed().len(), 1);
        // A version more with the same key stays where it is.
        heads.set(item, Some(of(1, "two")));
        assert_eq!(at("two"), [item]);
        // Another's entry of the key stays when one leaves.
        heads.set(other, Some(of(2, "two")));
        heads.set(item, Some(head(1, "a")));
        assert_eq!((at("two"), heads.keyed().len()), (vec![other], 1));
        heads.set(item, None);
        heads.set(other, None);
        assert!(heads.kept().keyed.is_empty());
    }

    #[test]
    fn what_heads_have_in_common_is_there_once_and_goes_with_the_last() {
        let heads = Heads::default();
        let [one, two] = [1, 2].map(|n| heads.set(ItemId::from_bytes([n; 16]), Some(head(n, "a"))).unwrap());
        assert!(Arc::ptr_eq(&one.labels, &two.labels) && Arc::ptr_eq(&one.scope_id, &two.scope_id));
        assert!(Arc::ptr_eq(&one.meta.author, &two.meta.author));
        let known = || {
            let shared = &heads.kept().shared;
            (shared.labels.0.len(), shared.subjects.0.len(), shared.scopes.0.len(), shared.authors.0.len())
        };
        assert_eq!(known(), (1, 1, 1, 1));
        heads.set(one.item_id, Some(head(1, "b")));
        assert_eq!(known(), (2, 2, 1, 1));
        heads.set(two.item_id, None);
        assert_eq!(known(), (1, 1, 1, 1));
        heads.set(two.item_id, None);
        heads.set(one.item_id, None);
        assert_eq!(known(), (0, 0, 0, 0));
        assert!(heads.is_empty());
    }
}

//! What a deletion takes, as it stands in the deletion's own transaction.
//!
//! The heads are behind by what the same batch has written before: that is read through the transaction. So a deletion sees what
//! those before it in the order of commits did, and what it erases is there when it erases it.

use crate::error::Error;
use crate::service::deletion::DeleteRequest;
use crate::service::holds::Hold;
use crate::service::selection::{Matcher, Tagged};
use crate::state::commits::Writing;
use crate::state::schema::HEADS;
use oap_identity::ItemId;
use oap_memory::Head;
use oap_store::StoreError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Heads by item.
pub(crate) type Heads = BTreeMap<ItemId, Arc<Head>>;

/// What one deletion does.
#[derive(Debug, Default)]
pub(crate) struct DeletionPlan {
    /// Items to erase that the request selects.
    pub(crate) erased: BTreeSet<ItemId>,
    /// Items to erase that were made from those.
    pub(crate) derived: BTreeSet<ItemId>,
    /// Items under a hold, and the hold.
    pub(crate) held: BTreeMap<ItemId, Hold>,
    /// The order to erase in: what was made from an item goes before it, so that a deletion that takes several requests never leaves
    /// something whose source is gone.
    pub(crate) order: Vec<ItemId>,
    /// Named items that are not there.
    pub(crate) not_found: Vec<ItemId>,
    /// Items that are left for the next request.
    pub(crate) remaining: usize,
    /// The heads of all that is erased or held.
    pub(crate) heads: Vec<Arc<Head>>,
}

impl DeletionPlan {
    /// Whether nothing is selected, and no named item is gone.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.held.is_empty() && self.not_found.is_empty()
    }
}

impl Writing<'_, '_> {
    /// Every head as it stands in this transaction.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn heads(&self) -> Result<Heads, Error> {
        let mut heads: Heads =
            self.gateway.heads.all().into_iter().map(|head| (head.item_id, head)).collect();
        for item in HEADS.written(self.tx) {
            match HEADS.get(self.tx, &item) {
                Ok(Some(head)) => drop(heads.insert(item, Arc::new(head))),
                Ok(None) | Err(StoreError::Erased) => drop(heads.remove(&item)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(heads)
    }

    /// What a request takes, at most so many items of it.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn deletion_plan(
        &self,
        request: &DeleteRequest,
        tagged: &Tagged,
        most: usize,
    ) -> Result<DeletionPlan, Error> {
        let heads = self.heads()?;
        let holds = self.holds()?;
        let matcher = Matcher::new(request);
        let mut chosen = BTreeSet::new();
        for head in heads.values() {
            if self.selects(head, &matcher, tagged)? {
                chosen.insert(head.item_id);
            }
        }
        let gone = matcher.items().iter().filter(|item| !heads.contains_key(item));
        let mut plan = DeletionPlan { not_found: gone.copied().collect(), ..DeletionPlan::default() };
        let mut work = 0;
        for item in sources_last(&chosen, &heads) {
            let hold = holds.get(&item);
            let waits = hold.is_some_and(|hold| hold.erase_after);
            if work == most && !waits {
                plan.remaining += 1;
                continue;
            }
            work += usize::from(!waits);
            plan.heads.extend(heads.get(&item).cloned());
            match hold {
                Some(hold) => drop(plan.held.insert(item, hold.clone())),
                None if chosen.contains(&item) => drop(plan.erased.insert(item)),
                None => drop(plan.derived.insert(item)),
            }
            if hold.is_none() {
                plan.order.push(item);
            }
        }
        Ok(plan)
    }
}

/// Items and everything that was made from them, what was made before its source.
pub(crate) fn sources_last(chosen: &BTreeSet<ItemId>, heads: &Heads) -> Vec<ItemId> {
    let mut made_from: BTreeMap<ItemId, Vec<ItemId>> = BTreeMap::new();
    for head in heads.values() {
        for source in head.few.derived_from() {
            made_from.entry(*source).or_default().push(head.item_id);
        }
    }
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for first in chosen {
        let mut open = vec![(*first, false)];
        while let Some((item, is_done)) = open.pop() {
            if is_done {
                order.push(item);
            } else if seen.insert(item) {
                open.push((item, true));
                open.extend(made_from.get(&item).into_iter().flatten().map(|made| (*made, false)));
            }
        }
    }
    order
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use oap_identity::{Clock, Timestamp};
    use oap_memory::item::{Body, Defaults};
    use oap_memory::record::Meta;
    use serde_json::json;

    struct Epoch;

    impl Clock for Epoch {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_777_636_800_000)
        }
    }

    fn id(n: u8) -> ItemId {
        ItemId::from_bytes([n; 16])
    }

    /// A head of an item.
    pub(crate) fn head(n: u8, sources: &[u8], labels: &[&str], subject: Option<&str>, seconds: i64) -> Head {
        let principal = "did:web:user.example".parse().unwrap();
        let scope = "personal".parse().unwrap();
        let defaults = Defaults { principal: &principal, scope: &scope, now: Epoch.now() };
        let sources: Vec<ItemId> = sources.iter().map(|n| id(*n)).collect();
        let mut item = json!({
            "kind": "fact", "content": {"text": "x"}, "derived_from": sources, "labels": labels,
            "provenance": {"captured_at": Timestamp::from_seconds(seconds)},
        });
        if let Some(subject) = subject {
            item["subject_entity_id"] = json!(subject);
        }
        let body = Body::parse(&item, &defaults).unwrap();
        Head::new(id(n), &body, Meta::owner(principal.clone(), false))
    }

    fn heads(made: &[(u8, &[u8])]) -> Heads {
        made.iter().map(|(n, sources)| (id(*n), Arc::new(head(*n, sources, &[], None, 0)))).collect()
    }

    fn order(chosen: &[u8], made: &[(u8, &[u8])]) -> Vec<ItemId> {
        sources_last(&chosen.iter().map(|n| id(*n)).collect(), &heads(made))
    }

    #[test]
    fn what_was_made_goes_before_its_source() {
        let found = order(&[1], &[(1, &[]), (2, &[1]), (3, &[2]), (4, &[]), (5, &[3, 4])]);
        assert_eq!(found, [id(5), id(3), id(2), id(1)]);
        // Made of two chosen ones, and round in a ring: each once.
        assert_eq!(order(&[1, 2], &[(1, &[]), (2, &[]), (3, &[1, 2])]).len(), 3);
        assert_eq!(order(&[1], &[(1, &[2]), (2, &[1])]).len(), 2);
        // As long a line as there is memory for.
        let long: Vec<(u8, Vec<u8>)> = (1..=250).map(|n| (n, vec![n - 1])).collect();
        let long: Vec<(u8, &[u8])> = long.iter().map(|(n, sources)| (*n, sources.as_slice())).collect();
        assert_eq!(order(&[1], &long).len(), 250);
    }
}

//! Lists of records without ids of their own, such as the lines of a note: the items that stood in each when it was last
//! imported, in order.
//!
//! Such a record is told apart by what it says. One that says something new may be an edit of one that stood in its list:
//! [`align`](super::align) tells which.

use crate::error::Error;
use crate::service::align::{self, Incoming};
use crate::service::import::{ImportRefusal, Looked};
use crate::service::items::whole;
use crate::service::{Imports, Items};
use crate::state::commits::Writing;
use crate::state::schema::LISTS;
use crate::state::sources::{Said, Tag};
use oap_identity::ItemId;
use oap_memory::record::Status;
use std::collections::{BTreeMap, BTreeSet};

/// A list as it is stored; none where it was never imported.
pub(crate) type Row = (Tag, Option<Vec<ItemId>>);

/// What edits were found in, and the items that records are edits of, by place of the record.
#[derive(Default)]
pub(crate) struct Edits {
    /// The rows that this rests on.
    pub(crate) rows: Vec<Row>,
    /// The items, with what they came from and said until now.
    pub(crate) of: BTreeMap<usize, (ItemId, Said)>,
}

impl Imports<'_> {
    /// Finds the new records that are edits of items which stood in the same list before and do not any more. An item is
    /// taken for one record at most, and never from a record that it still is; a record of where something was erased is
    /// no edit, because it may be what was erased.
    pub(crate) fn find_edits(
        self,
        records: &[Result<Looked, ImportRefusal>],
        lists: &[Option<Tag>],
    ) -> Result<Edits, Error> {
        let mut by_list: BTreeMap<Tag, Vec<usize>> = BTreeMap::new();
        for (place, list) in lists.iter().enumerate() {
            if let Some(list) = list {
                by_list.entry(*list).or_default().push(place);
            }
        }
        let mut taken: BTreeSet<ItemId> =
            records.iter().flatten().filter_map(|record| Some(record.known?.0)).collect();
        let mut edits = Edits::default();
        for (list, places) in by_list {
            let row = LISTS.get(&self.0.store, &list)?;
            let former = row.clone().unwrap_or_default();
            edits.rows.push((list, row));
            if former.is_empty() {
                continue;
            }
            let current =
                |item: ItemId| self.0.heads.get(item).is_some_and(|head| head.status == Status::Current);
            let listed: Vec<(ItemId, bool)> =
                former.into_iter().map(|item| (item, current(item) && !taken.contains(&item))).collect();
            let incoming: Vec<Incoming> = places
                .iter()
                .map(|place| match records.get(*place) {
                    Some(Ok(Looked { known: Some((item, _)), .. })) => Incoming::Known(*item),
                    Some(Ok(Looked { erased: None, .. })) => Incoming::New(*place),
                    _ => Incoming::Other,
                })
                .collect();
            let item_text = |item: ItemId| {
                let whole = Items(self.0).in_force(item).ok().and_then(|found| whole(&found.committed).ok());
                let text = whole.as_ref().and_then(|whole| whole.get("content")?.get("text")?.as_str());
                text.unwrap_or_default().to_owned()
            };
            let text = |place: usize| {
                let found = records.get(place).and_then(|record| record.as_ref().ok());
                found.and_then(|record| record.body.text.clone()).unwrap_or_default()
            };
            for (place, item) in align::edits(&listed, &incoming, item_text, text) {
                if let Some(said) = self.0.said(item)?
                    && taken.insert(item)
                {
                    edits.of.insert(place, (item, said));
                }
            }
        }
        Ok(edits)
    }
}

impl Writing<'_, '_> {
    /// Sees that lists are what they were when edits were found in them.
    ///
    /// # Errors
    /// [`Error::Overtaken`].
    pub(crate) fn still_listed(&self, rows: &[Row]) -> Result<(), Error> {
        for (list, row) in rows {
            if LISTS.get(self.tx, list)? != *row {
                return Err(Error::Overtaken);
            }
        }
        Ok(())
    }

    /// Stores which items stand in each list by now: of each record, in order, its list and the item that it is.
    pub(crate) fn put_lists(
        &mut self,
        records: impl Iterator<Item = (Option<Tag>, Option<ItemId>)>,
    ) -> Result<(), Error> {
        let mut lists: BTreeMap<Tag, Vec<ItemId>> = BTreeMap::new();
        let mut listed = BTreeSet::new();
        for (list, item) in records {
            if let (Some(list), Some(item)) = (list, item)
                && listed.insert((list, item))
            {
                lists.entry(list).or_default().push(item);
            }
        }
        for (list, items) in lists {
            if LISTS.get(self.tx, &list)?.is_none_or(|known| known != items) {
                LISTS.put(self.tx, &list, &items)?;
            }
        }
        Ok(())
    }
}

//! Links between items, and from items to addresses elsewhere (protocol section 11). Each is sealed with a key of its own, which is
//! destroyed with the first of its ends.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::{EDGES, EDGES_TO};
use oap_agents::arguments::{LinkEnd, Source};
use oap_identity::{Did, ItemId, ReceiptId, Timestamp};
use oap_store::{Range, Rows, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where a link is: the item that it is of, and the receipt that recorded it.
pub type EdgePlace = (ItemId, ReceiptId);

/// A link as it is stored, in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// What the item is linked to: an item's id, or an IRI.
    pub to: String,
    /// How the one relates to the other.
    pub relationship: String,
    /// Which agent says so.
    pub author: Did,
    /// Where that comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Since when.
    pub at: Timestamp,
}

impl Edge {
    /// The item at its other end, if it is one.
    #[must_use]
    pub fn other(&self) -> Option<ItemId> {
        match LinkEnd::read(&self.to)? {
            LinkEnd::Item(item) => Some(item),
            LinkEnd::Iri(_) => None,
        }
    }
}

/// A link; `None` where it is not there any more.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub fn edge(rows: &impl Rows, place: EdgePlace) -> Result<Option<Edge>, Error> {
    match EDGES.get(rows, &place) {
        Ok(Some(edge)) => Ok(Some(serde_json::from_slice(&edge)?)),
        Ok(None) | Err(StoreError::Erased) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The places of the links that begin at an item, and of those that end there, as last committed, the newest first. Rows whose key was
/// destroyed are left out.
///
/// # Errors
/// [`Error::Store`].
pub fn places(store: &Store, item: ItemId) -> impl Iterator<Item = Result<EdgePlace, Error>> + use<'_> {
    let from = EDGES.keys(store, Range::under(&item).descending());
    let to = EDGES_TO.range(store, Range::under(&item).descending());
    let to = to.map(|row| row.map(|((_, link), from)| (from, link)));
    from.chain(to).filter(|row| !matches!(row, Err(StoreError::Erased))).map(|row| Ok(row?))
}

impl Writing<'_, '_> {
    /// The places of the links at an item, as they stand in this transaction.
    pub(crate) fn edges_at(&self, item: ItemId) -> Result<BTreeSet<EdgePlace>, Error> {
        let mut found: BTreeSet<EdgePlace> = places(&self.gateway.store, item).collect::<Result<_, _>>()?;
        // What the same batch wrote before is not where the others are.
        found.extend(EDGES.written(self.tx).into_iter().filter(|(from, _)| *from == item));
        for (to, link) in EDGES_TO.written(self.tx).into_iter().filter(|(to, _)| *to == item) {
            if let Some(from) = EDGES_TO.get(self.tx, &(to, link))? {
                found.insert((from, link));
            }
        }
        let mut there = BTreeSet::new();
        for place in found {
            if EDGES.contains(self.tx, &place)? {
                there.insert(place);
            }
        }
        Ok(there)
    }

    /// Stores a link.
    pub(crate) fn put_edge(&mut self, place: EdgePlace, edge: &Edge) -> Result<(), Error> {
        let slot = self.tx.new_slot()?;
        EDGES.put_in(self.tx, slot, &place, &serde_json::to_vec(edge)?)?;
        if let Some(to) = edge.other() {
            EDGES_TO.put(self.tx, &(to, place.1), &place.0)?;
        }
        Ok(())
    }

    /// Destroys the links at an item.
    pub(crate) fn drop_edges(&mut self, item: ItemId) -> Result<(), Error> {
        for place in self.edges_at(item)? {
            let stored = match EDGES.get_with_slot(self.tx, &place) {
                Ok(stored) => stored,
                Err(StoreError::Erased) => None,
                Err(error) => return Err(error.into()),
            };
            EDGES.delete(self.tx, &place);
            EDGES_TO.delete(self.tx, &(item, place.1));
            if let Some((slot, edge)) = stored {
                if let Some(to) = serde_json::from_slice::<Edge>(&edge)?.other() {
                    EDGES_TO.delete(self.tx, &(to, place.1));
                }
                self.tx.wipe(slot);
            }
        }
        Ok(())
    }
}

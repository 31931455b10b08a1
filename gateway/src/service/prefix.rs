//! Which items ids begin so.

use crate::api::prefix::{ItemPrefix, MAX_CANDIDATES, MAX_PREFIXES, PrefixError};
pub use crate::api::selections::{ResolveQuery, Resolved};
use crate::error::{Error, MemberError};
use crate::service::Items;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Permits, Read};
use crate::state::schema::TOMBSTONES;
use oap_identity::ItemId;
use oap_store::Range;

impl Items<'_> {
    /// Which items ids begin so.
    ///
    /// # Errors
    /// [`Error::Member`] for what is no beginning of an id.
    pub fn resolve(
        self,
        _: &Owner<impl Permits<Read>>,
        wanted: &ResolveQuery,
    ) -> Result<Vec<Resolved>, Error> {
        if wanted.ids.len() > MAX_PREFIXES {
            return Err(Error::Member("ids", MemberError::AtMost(MAX_PREFIXES)));
        }
        let resolve = |given: &String| {
            let prefix: ItemPrefix =
                given.parse().map_err(|e: PrefixError| Error::Member("ids", e.into()))?;
            let mut found = Vec::new();
            if !wanted.erased {
                found = self.0.heads.between(prefix.first, prefix.last, MAX_CANDIDATES + 1);
            }
            if found.is_empty() {
                found = self.erased_between(&prefix)?;
            }
            let more = found.len() > MAX_CANDIDATES;
            found.truncate(MAX_CANDIDATES);
            Ok(Resolved { given: given.clone(), found, more })
        };
        wanted.ids.iter().map(resolve).collect()
    }

    fn erased_between(self, prefix: &ItemPrefix) -> Result<Vec<ItemId>, Error> {
        let mut found = Vec::new();
        for item in TOMBSTONES.keys(&self.0.store, Range::all().from(&prefix.first)) {
            let item = item?;
            if item > prefix.last || found.len() > MAX_CANDIDATES {
                break;
            }
            found.push(item);
        }
        Ok(found)
    }
}

//! An item by the beginning of its id.
//!
//! An id begins with its time: ten characters for the millisecond, then sixteen random ones. Items of one write share the first ten.

pub use crate::api::selections::{ResolveQuery, Resolved};
use crate::error::{Error, MemberError};
use crate::service::Items;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Permits, Read};
use crate::state::schema::TOMBSTONES;
use oap_identity::ItemId;
use oap_store::Range;
use std::fmt;
use std::str::FromStr;

/// Fewest characters after `mem_`.
pub const MIN_PREFIX: usize = 4;
/// Most items that are named of those that begin so.
pub const MAX_CANDIDATES: usize = 10;
/// Most beginnings of one question.
pub const MAX_PREFIXES: usize = 1000;

/// Characters of an id behind its prefix.
const LENGTH: usize = 26;

/// The text is no beginning of an item's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected \"mem_\" and a ULID of {LENGTH} Crockford characters, or the first {MIN_PREFIX} or more of them"
)]
pub struct PrefixError;

/// The beginning of an item's id, or all of it: `mem_` and 4 to 26 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPrefix {
    text: String,
    first: ItemId,
    last: ItemId,
}

impl ItemPrefix {
    /// The item, where the id is whole.
    #[must_use]
    pub fn whole(&self) -> Option<ItemId> {
        (self.first == self.last).then_some(self.first)
    }
}

impl fmt::Display for ItemPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ItemPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let rest = text.strip_prefix("mem_").ok_or(PrefixError)?;
        if !(MIN_PREFIX..=LENGTH).contains(&rest.len()) {
            return Err(PrefixError);
        }
        let filled = |with: &str| {
            let missing = LENGTH.saturating_sub(rest.len());
            format!("mem_{rest}{}", with.repeat(missing)).parse::<ItemId>().map_err(|_| PrefixError)
        };
        Ok(Self { text: text.to_owned(), first: filled("0")?, last: filled("Z")? })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id() {
        let prefix: ItemPrefix = "mem_01HX".parse().unwrap();
        let id: ItemId = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1".parse().unwrap();
        assert!(prefix.first < id && id < prefix.last && prefix.whole().is_none());
        let other: ItemId = "mem_01HY0000000000000000000000".parse().unwrap();
        assert!(other > prefix.last);
        assert_eq!(id.to_string().parse::<ItemPrefix>().unwrap().whole(), Some(id));
        for bad in [
            "",
            "mem_",
            "mem_01H",
            "01HX2Q",
            "mgr_01HX",
            "mem_01hx",
            "mem_01H\u{e9}",
            "mem_91HX",
            "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1A",
        ] {
            assert!(bad.parse::<ItemPrefix>().is_err(), "{bad}");
        }
    }
}

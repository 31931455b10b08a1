//! An item by the beginning of its id.
//!
//! An id begins with its time: ten characters for the millisecond, then sixteen random ones. Items of one write share the first ten.

use oap_identity::ItemId;
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
    /// The first item that may be meant.
    pub first: ItemId,
    /// The last one.
    pub last: ItemId,
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

//! Whose word the words of old records are, and since when: what decay needs, read once (docs/soundness.md).

use crate::error::Error;
use oap_agents::Level;
use oap_identity::{ItemId, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Most records that are known at once. Where there are more, all are read anew.
pub const MAX_BELIEVED: usize = 1 << 16;

/// What decay needs of a version beside its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    /// Whose word they are.
    pub level: Level,
    /// When they were written: other labels and a reseal write none.
    pub at: Timestamp,
}

/// The words of versions that were looked at. It holds nothing of what they say.
#[derive(Debug, Default)]
pub(crate) struct Believed(Mutex<HashMap<ItemId, (u32, Words)>>);

impl Believed {
    /// Those of a version, read where they are not known.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn words(
        &self,
        item: ItemId,
        version_seq: u32,
        read: impl FnOnce() -> Result<Words, Error>,
    ) -> Result<Words, Error> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&item).copied();
        if let Some((seq, words)) = known
            && seq == version_seq
        {
            return Ok(words);
        }
        let words = read()?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_BELIEVED {
            known.clear();
        }
        known.insert(item, (version_seq, words));
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_once_and_another_one_anew() {
        let believed = Believed::default();
        let item = ItemId::from_bytes([1; 16]);
        let words = |millis: i64| Words { level: Level::AgentInferred, at: Timestamp::from_millis(millis) };
        assert_eq!(believed.words(item, 0, || Ok(words(1))).unwrap(), words(1));
        assert_eq!(believed.words(item, 0, || Err(Error::NotFound)).unwrap(), words(1));
        assert_eq!(believed.words(item, 1, || Ok(words(2))).unwrap(), words(2));
        assert!(believed.words(ItemId::from_bytes([2; 16]), 0, || Err(Error::NotFound)).is_err());
    }

    #[test]
    fn it_is_bounded() {
        let believed = Believed::default();
        let words = Words { level: Level::External, at: Timestamp::from_millis(0) };
        for n in 0..=MAX_BELIEVED as u128 {
            believed.words(ItemId::from_bytes(n.to_be_bytes()), 0, || Ok(words)).unwrap();
        }
        assert_eq!(believed.0.lock().unwrap().len(), 1);
    }
}

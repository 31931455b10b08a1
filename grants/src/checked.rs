//! Tokens whose signature was checked before. A token is presented with every request; its signature stays what it is while
//! the key is the same.

use crate::token::{self, Signed, TokenClaims, TokenError};
use oap_identity::{DidDocument, Hash, Kid, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Most tokens that are remembered; beyond it those that end first go.
pub const MAX_CHECKED: usize = 4096;

/// Tokens by their hash, each until it ends or its key changes.
#[derive(Debug, Default)]
pub struct CheckedTokens(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    tokens: BTreeMap<Hash, Arc<Signed>>,
    /// By when they end.
    ends: BTreeSet<(i64, Hash)>,
}

impl CheckedTokens {
    /// Checks a token as [`token::check`] does, all but the signature of one that was checked before with the same key.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn check(
        &self,
        token: &str,
        own: &DidDocument,
        audience: &str,
        now: Timestamp,
    ) -> Result<(TokenClaims, Kid), TokenError> {
        let hash = Hash::of(token.as_bytes());
        let kept = self.with(|kept| kept.tokens.get(&hash).cloned());
        if let Some(kept) = kept.filter(|kept| kept.counts(own, audience, now).is_ok()) {
            return Ok(kept.says());
        }
        self.with(|kept| kept.forget(&hash));
        let signed = token::verify(token, own)?;
        signed.counts(own, audience, now)?;
        let says = signed.says();
        self.with(|kept| kept.keep(hash, signed));
        Ok(says)
    }

    /// How many are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.with(|kept| kept.tokens.len())
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn with<T>(&self, with: impl FnOnce(&mut Kept) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn keep(&mut self, hash: Hash, token: Signed) {
        self.ends.insert((token.ends(), hash));
        self.tokens.insert(hash, Arc::new(token));
        while self.tokens.len() > MAX_CHECKED
            && let Some((_, first)) = self.ends.pop_first()
        {
            self.tokens.remove(&first);
        }
    }

    fn forget(&mut self, hash: &Hash) {
        if let Some(token) = self.tokens.remove(hash) {
            self.ends.remove(&(token.ends(), *hash));
        }
    }
}

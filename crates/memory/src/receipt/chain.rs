//! A chain of receipts, checked entry by entry.

use super::verified::{VerifiedReceipt, verify_at};
use super::{Action, GENESIS, ReceiptError};
use oap_identity::{Did, Documents, Hash, Timestamp};
use serde_json::Value;

/// A chain whose every entry was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedReceipts {
    /// Its name, as its heads say it.
    pub chain: String,
    /// Entries, heads included.
    pub length: u64,
    /// The hash of the last entry, which is a head.
    pub tip: Hash,
    /// When it was made.
    pub at: Timestamp,
}

/// Checks a whole chain, from `genesis` to its last head.
///
/// # Errors
/// [`ReceiptError`], with the number of the offending entry.
pub fn verify_chain(
    entries: impl IntoIterator<Item = Value>,
    documents: &dyn Documents,
) -> Result<VerifiedReceipts, ReceiptError> {
    let mut chain = UnverifiedChain::default();
    for entry in entries {
        chain.push(&entry, documents)?;
    }
    chain.finish()
}

/// A chain that is read entry by entry.
#[derive(Debug, Default)]
pub struct UnverifiedChain {
    index: usize,
    principal: Option<Did>,
    name: Option<String>,
    state: Option<VerifiedReceipts>,
    /// Whether the last entry is a head without a signature: only one that more comes after may be.
    is_open: bool,
}

impl UnverifiedChain {
    /// Reads the next entry.
    ///
    /// # Errors
    /// [`ReceiptError`], with the number of the entry in its chain.
    pub fn push(
        &mut self,
        entry: &Value,
        documents: &dyn Documents,
    ) -> Result<VerifiedReceipt, ReceiptError> {
        let index = self.index;
        let verified = verify_at(entry, documents, index, true)?;
        let receipt = &verified.receipt;
        if *self.principal.get_or_insert_with(|| receipt.principal_did.clone()) != receipt.principal_did {
            return Err(ReceiptError::OtherChain(index));
        }
        let previous =
            self.state.as_ref().map_or_else(|| GENESIS.to_owned(), |before| before.tip.to_string());
        if receipt.previous_receipt_hash != previous {
            return Err(ReceiptError::Broken(index));
        }
        if index == 0 && receipt.action_id.as_deref() != Some(Action::Boot.as_str()) {
            return Err(ReceiptError::Boot(index));
        }
        // By that one the owner sets the clock right.
        let is_corrected = receipt.action_id.as_deref() == Some(Action::ClockAccept.as_str());
        if self.state.as_ref().is_some_and(|before| before.at > receipt.timestamp) && !is_corrected {
            return Err(ReceiptError::Time(index));
        }
        let head = receipt.head_length();
        if head != (index % 2 == 1).then_some(index as u64) {
            return Err(ReceiptError::Head(index));
        }
        if head.is_some() {
            let chain = receipt.policy_decisions.first().and_then(|d| d.more.get("chain")?.as_str());
            let chain = chain.ok_or(ReceiptError::Head(index))?;
            if *self.name.get_or_insert_with(|| chain.to_owned()) != chain {
                return Err(ReceiptError::OtherChain(index));
            }
        }
        self.state = Some(VerifiedReceipts {
            chain: String::new(),
            length: index as u64 + 1,
            tip: verified.hash,
            at: receipt.timestamp,
        });
        self.is_open = receipt.signatures.is_empty();
        self.index += 1;
        Ok(verified)
    }

    /// The chain, where it ends with a signed head.
    ///
    /// # Errors
    /// [`ReceiptError::Cut`], [`ReceiptError::Unsigned`].
    pub fn finish(self) -> Result<VerifiedReceipts, ReceiptError> {
        if self.is_open {
            return Err(ReceiptError::Unsigned(self.index.saturating_sub(1)));
        }
        match self.state {
            Some(verified) if verified.length % 2 == 0 => {
                Ok(VerifiedReceipts { chain: self.name.unwrap_or_default(), ..verified })
            }
            // A chain has its boot entry at least.
            Some(_) | None => Err(ReceiptError::Cut),
        }
    }
}

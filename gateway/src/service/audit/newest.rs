//! The receipts of several chains as one list, newest first, from a place on.
//!
//! Times do not go back within a chain, so that the place in each is found by halving. At one time the chains stand in the order of their names.

use crate::error::{Error, MemberError};
use crate::service::Audit;
use crate::state::commits::Chain;
use crate::state::schema::RECEIPT_PLACES;
use oap_identity::{ReceiptId, Timestamp};
use oap_memory::receipt::Receipt;
use std::cmp::Reverse;
use std::mem;

/// Where a list goes on: behind a receipt.
struct Behind {
    at: Timestamp,
    chain: String,
    number: u64,
}

/// The receipts of chains, newest first, heads left out.
pub(super) struct Newest<'a> {
    /// In the order of their names.
    tails: Vec<Tail<'a>>,
}

/// What is left of one chain.
struct Tail<'a> {
    next: Option<Receipt>,
    rest: Box<dyn Iterator<Item = Result<Receipt, Error>> + 'a>,
}

impl<'a> Newest<'a> {
    /// The receipts of the chains that are `wanted`, behind the one that is named.
    ///
    /// # Errors
    /// [`Error::Member`] for one that is not there; [`Error::Store`], [`Error::Corrupt`].
    pub(super) fn new(
        audit: Audit<'a>,
        wanted: impl Fn(&str) -> bool,
        before: Option<ReceiptId>,
    ) -> Result<Self, Error> {
        let chains = audit.0.chains()?;
        let behind = before.map(|receipt| Behind::new(audit, &chains, receipt)).transpose()?;
        let wanted = chains.iter().filter(|(name, _)| wanted(name));
        let tails = wanted.map(|(name, chain)| {
            let entries = behind.as_ref().map(|behind| behind.entries(audit, name, chain)).transpose()?;
            let mut rest = audit.newest(chain, entries);
            Ok(Tail { next: rest.next().transpose()?, rest: Box::new(rest) })
        });
        let mut tails: Vec<Tail<'a>> = tails.collect::<Result<_, Error>>()?;
        tails.retain(|tail| tail.next.is_some());
        Ok(Self { tails })
    }
}

impl Iterator for Newest<'_> {
    type Item = Result<Receipt, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let tails = self.tails.iter_mut().enumerate();
        let (_, tail) = tails.max_by_key(|(place, tail)| {
            (tail.next.as_ref().map(|receipt| receipt.timestamp), Reverse(*place))
        })?;
        match tail.rest.next().transpose() {
            Ok(next) => mem::replace(&mut tail.next, next).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Behind {
    fn new(audit: Audit<'_>, chains: &[(String, Chain)], receipt: ReceiptId) -> Result<Self, Error> {
        let unknown = || Error::Member("before", MemberError::NotPageEnd);
        let (index, number) = RECEIPT_PLACES.get(&audit.0.store, &receipt)?.ok_or_else(unknown)?;
        let (chain, _) = chains.iter().find(|(_, chain)| chain.index == index).ok_or_else(unknown)?;
        Ok(Self { at: audit.receipt_at((index, number))?.timestamp, chain: chain.clone(), number })
    }

    /// How many entries of a chain are behind, from its first one on.
    fn entries(&self, audit: Audit<'_>, name: &str, chain: &Chain) -> Result<u64, Error> {
        if name == self.chain {
            return Ok(self.number);
        }
        let (mut from, mut to) = (0, chain.length);
        while from < to {
            let middle = from + (to - from) / 2;
            let at = audit.receipt_at((chain.index, middle))?.timestamp;
            if at < self.at || (at == self.at && name > self.chain.as_str()) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        Ok(from)
    }
}

//! Inference budgets (RFC 0007 section 6.1): how much a grantee may learn by asking again and again.
//!
//! **The rule.** An answer costs [`BASE`], and as much again for every [`OVERLAP`] items in it that the grantee got
//! before under the same grant: what is asked for a second time tells nothing new but what the answer leaves out. Costs
//! add up (sequential composition) per grantee over all their grants, and per grant, where the grant has a budget
//! of its own. A delegated grant spends the budgets of the grants that it was made from too, and the accounts of
//! everybody through whose hands it came. When the next answer
//! would go beyond a limit it is refused with 429 `budget_exhausted`, until the owner refills. A refusal costs
//! nothing.
//!
//! **Its limits.** Nothing here is noisy: an answer is exact, and the accumulator bounds how many exact answers
//! there are. ε is therefore a price, not a proven bound of differential privacy. Grantees that share what they
//! learn have a budget each. The sum over all grantees is kept and shown to the owner, and refuses nobody: a grantee
//! would learn from such a refusal that others had asked.

pub use crate::api::budgets::{Account, Accounts, Refill};
use crate::error::{Corrupt, Error};
use crate::service::Budgets;
use crate::state::commits::{Writing, chain_of};
use crate::state::grant_book::GrantEntry;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{BUDGETS, SPENT};
use crate::state::spent::{Spent, UNIT};
use oap_grants::VerifiedGrant;
use oap_identity::Did;
use oap_memory::receipt::Action;
use serde_json::json;
use std::collections::BTreeSet;

/// The cost of an answer, in millionths of ε: 0.01.
const BASE: u64 = 10_000;
/// Items of an answer that were got before, for which it costs [`BASE`] once more.
const OVERLAP: u64 = 10;

/// What an answer costs, in millionths of ε, when so many of its items were got before.
#[must_use]
pub const fn cost(got_before: usize) -> u64 {
    BASE + BASE * got_before as u64 / OVERLAP
}

impl Writing<'_, '_> {
    /// Charges an answer to everybody through whose hands its grant came, to the grant and to those that it was made
    /// from: who passes a grant on does not multiply what was given once.
    ///
    /// # Errors
    /// [`Error::Spent`] when it would go beyond a limit; then nothing is charged.
    pub fn charge(&mut self, grant: &VerifiedGrant, cost: u64) -> Result<(), Error> {
        let limit = self.gateway.config.epsilon_per_grantee;
        for grantee in grant.grantees().cloned().collect::<BTreeSet<Did>>() {
            let account = account_key(&grantee);
            let spent = spent_in(BUDGETS.get(self.tx, &account)?).plus(cost);
            if spent.exceeds(None, Some(limit)) {
                return Err(Error::Spent);
            }
            BUDGETS.put(self.tx, &account, &(grantee.to_string(), spent))?;
        }
        for signed in grant.chain() {
            let Some(budget) = &signed.grant().budget else { continue };
            let hash = signed.hash();
            let spent = spent_in(SPENT.get(self.tx, &hash)?).plus(cost);
            if spent.exceeds(budget.queries, budget.epsilon) {
                return Err(Error::Spent);
            }
            SPENT.put(self.tx, &hash, &(String::new(), spent))?;
        }
        Ok(())
    }
}

fn spent_in(row: Option<(String, Spent)>) -> Spent {
    row.map(|(_, spent)| spent).unwrap_or_default()
}

fn account_key(grantee: &Did) -> [u8; 16] {
    crate::state::schema::agent(grantee.as_str())
}

impl Budgets<'_> {
    /// Whether not even the cheapest answer under a grant can be paid for, as far as is known: nothing is computed then. The
    /// transaction that records an answer decides.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn is_spent(self, grant: &VerifiedGrant) -> Result<bool, Error> {
        for grantee in grant.grantees() {
            let spent = spent_in(BUDGETS.get(&self.0.store, &account_key(grantee))?).plus(cost(0));
            if spent.exceeds(None, Some(self.0.config.epsilon_per_grantee)) {
                return Ok(true);
            }
        }
        for signed in grant.chain() {
            let Some(budget) = &signed.grant().budget else { continue };
            let spent = spent_in(SPENT.get(&self.0.store, &signed.hash())?).plus(cost(0));
            if spent.exceeds(budget.queries, budget.epsilon) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The accounts of all grantees who have asked, and what they spent together.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn accounts(self, _: &Owner<impl Permits<Admin>>) -> Result<Accounts, Error> {
        let mut accounts = Vec::new();
        for row in BUDGETS.scan(&self.0.store) {
            let (_, (grantee, spent)) = row?;
            accounts.push(Account {
                grantee: grantee.parse().map_err(|_| Corrupt::Account)?,
                queries: spent.queries,
                epsilon_spent: spent.micros as f64 / UNIT,
                epsilon_limit: self.0.config.epsilon_per_grantee,
            });
        }
        accounts.sort_by(|a, b| a.grantee.cmp(&b.grantee));
        let epsilon_spent = accounts.iter().map(|account| account.epsilon_spent).sum();
        Ok(Accounts { accounts, epsilon_spent })
    }

    /// Sets an account back, with a receipt.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a grant that is not there.
    pub async fn refill(self, owner: &Owner<impl Permits<Admin>>, refill: Refill) -> Result<(), Error> {
        let grant = refill.grant.map(|id| self.0.grant_book.one(id)).transpose()?;
        let gateway = self.0.clone();
        self.0
            .commit_as(owner, move |w| {
                BUDGETS.delete(w.tx, &account_key(&refill.grantee));
                let mut draft = gateway.draft(Action::Refill, gateway.principal.as_str());
                draft.rules = vec!["principal".to_owned()];
                draft.more.insert("grantee".to_owned(), json!(refill.grantee));
                if let Some(GrantEntry { record, .. }) = grant {
                    SPENT.delete(w.tx, &record.grant.hash());
                    draft.more.insert("consumed_grant_id".to_owned(), json!(record.grant.grant().grant_id));
                }
                w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
                Ok(())
            })
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_costs_more() {
        assert_eq!((cost(0), cost(10), cost(20)), (10_000, 20_000, 30_000));
        let spent = Spent::default().plus(cost(0));
        assert!(!spent.exceeds(Some(1), Some(0.01)));
        assert!(spent.exceeds(Some(0), None));
        assert!(spent.plus(cost(0)).exceeds(None, Some(0.01)));
    }
}

//! What grantees may still ask.

use super::{Done, endpoints};
use oap_identity::{Did, GrantId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// What each grantee has spent.
    ListBudgets: GET "/oap/owner/budgets" needs Admin answers(Accounts);
    /// Sets a grantee's account back.
    RefillBudget: POST "/oap/owner/budgets/refill" needs Admin body(Refill) answers(Done);
}

/// Every account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accounts {
    /// One a grantee.
    pub accounts: Vec<Account>,
    /// What all of them spent.
    pub epsilon_spent: f64,
}

/// A grantee's account, as the owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Account {
    pub grantee: Did,
    /// Answers so far.
    pub queries: u64,
    /// What they cost.
    pub epsilon_spent: f64,
    /// How much they may cost.
    pub epsilon_limit: f64,
}

/// What to refill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refill {
    /// The grantee whose account is set back.
    pub grantee: Did,
    /// The grant whose own budget is set back too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
}

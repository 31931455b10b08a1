//! The owner's write policy, as it is stored (docs/soundness.md).

use crate::error::Error;
use crate::state::schema::POLICY;
use oap_identity::Did;
use oap_soundness::kept::Policy;
use oap_soundness::policy::Observation;
use oap_store::Rows;

/// The policy, as rows have it.
///
/// # Errors
/// [`Error::Store`], [`Error::Json`] of a row that nobody here wrote.
pub(crate) fn policy(rows: &impl Rows) -> Result<Policy, Error> {
    match POLICY.get(rows)? {
        None => Ok(Policy::default()),
        Some(stored) => Ok(serde_json::from_slice(&stored)?),
    }
}

/// That an agent may write a sort of observation. It was judged so, and holds in the transaction that writes.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub author: Did,
    pub sort: Option<Observation>,
}

impl Admitted {
    /// # Errors
    /// [`Error::NotKept`] where the owner said otherwise meanwhile.
    pub(crate) fn holds(&self, rows: &impl Rows) -> Result<(), Error> {
        policy(rows)?.admits(self.sort, &self.author).map(drop).map_err(Error::NotKept)
    }
}

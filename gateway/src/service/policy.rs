//! The owner's write policy: what agents may write, for how long it is kept, and how it is believed (docs/soundness.md).

use crate::error::{Error, MemberError};
use crate::service::Policies;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits, Read};
use crate::state::policy::policy;
use crate::state::schema::POLICY;
use oap_soundness::kept::{Change, Policy};

impl Policies<'_> {
    /// The policy, with every rule spelled out.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn show(self, _: &Owner<impl Permits<Read>>) -> Result<Policy, Error> {
        Ok(policy(&self.0.store)?.spelled_out())
    }

    /// Changes what a change names. It holds for what is written and read from then on; what was written keeps its end.
    ///
    /// # Errors
    /// [`Error::Member`] for what is out of bounds.
    pub async fn set(self, owner: &Owner<impl Permits<Admin>>, change: Change) -> Result<Policy, Error> {
        self.0
            .commit_as(owner, move |w| {
                let policy = policy(w.tx)?.changed(change);
                policy.check().map_err(|not| Error::Member("policy", MemberError::Policy(not)))?;
                POLICY.put(w.tx, &serde_json::to_vec(&policy)?)?;
                Ok(policy.spelled_out())
            })
            .await
    }
}

//! Where a gateway stands, on one screen.

use crate::api::health;
pub use crate::api::health::{Ending, LastQuery, Status};
use crate::error::Error;
use crate::service::{Audit, Deletions, Grants, Health, Lockdowns, Wallet};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use oap_memory::record::Status as ItemStatus;

impl Health<'_> {
    /// Where the gateway stands.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn status(self, _: &Owner<impl Permits<Admin>>) -> Result<Status, Error> {
        let now = self.0.clock.now();
        let mut items = health::Items { held: Deletions(self.0).holds()?.len(), ..health::Items::default() };
        for head in self.0.heads.all() {
            if head.is_live(now) {
                *items.kinds.entry(head.kind.as_str().to_owned()).or_default() += 1;
                items.live += 1;
                items.waiting += usize::from(head.meta.needs_verification);
            } else if head.status == ItemStatus::Current {
                items.expired += 1;
            } else {
                items.retracted += 1;
            }
        }
        let grants = Grants(self.0).grants_outlook();
        let next = grants
            .ends
            .first()
            .map(|(expires_at, grant_id)| Ending { grant_id: *grant_id, expires_at: *expires_at });
        let last_query = Audit(self.0).last_query()?.map(|receipt| LastQuery {
            at: receipt.timestamp,
            items: receipt.provenance_tags_out.len(),
            agent: receipt.agent_did,
        });
        Ok(Status {
            principal: self.0.principal.clone(),
            origin: self.0.origin().to_owned(),
            listen: self.0.config.listen,
            items,
            grants: health::Grants {
                states: grants.states.into_iter().map(|(state, n)| (state.to_owned(), n)).collect(),
                next,
            },
            last_query,
            lockdown: Lockdowns(self.0).lasting()?,
            findings: [
                Some(self.clock_finding()),
                Some(Grants(self.0).grants_finding()),
                Wallet(self.0).finding()?,
                Lockdowns(self.0).finding()?,
            ]
            .into_iter()
            .flatten()
            .collect(),
        })
    }
}

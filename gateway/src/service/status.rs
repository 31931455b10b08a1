//! Where a gateway stands, on one screen.

pub use crate::api::health::{Ending, Grants, Items, LastQuery, Status};
use crate::error::Error;
use crate::state::gateway::Gateway;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use oap_memory::record::Status as ItemStatus;

impl Gateway {
    /// Where the gateway stands.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn status(&self, _: &Owner<impl Permits<Admin>>) -> Result<Status, Error> {
        let now = self.clock.now();
        let mut items = Items { held: self.holds()?.len(), ..Items::default() };
        for head in self.heads.all() {
            if head.is_live(now) {
                *items.kinds.entry(head.kind.as_str().to_owned()).or_default() += 1;
                items.live += 1;
            } else if head.status == ItemStatus::Current {
                items.expired += 1;
            } else {
                items.retracted += 1;
            }
        }
        let grants = self.grants_outlook();
        let next = grants
            .ends
            .first()
            .map(|(expires_at, grant_id)| Ending { grant_id: *grant_id, expires_at: *expires_at });
        let last_query = self.last_query()?.map(|receipt| LastQuery {
            at: receipt.timestamp,
            items: receipt.provenance_tags_out.len(),
            agent: receipt.agent_did,
        });
        Ok(Status {
            principal: self.principal.clone(),
            origin: self.origin().to_owned(),
            listen: self.config.listen,
            items,
            grants: Grants {
                states: grants.states.into_iter().map(|(state, n)| (state.to_owned(), n)).collect(),
                next,
            },
            last_query,
            findings: vec![self.clock_finding(), self.grants_finding()],
        })
    }
}

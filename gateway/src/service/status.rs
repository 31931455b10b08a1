//! Where a gateway stands, on one screen.

use crate::error::Error;
use crate::service::doctor::Finding;
use crate::state::gateway::Gateway;
use oap_identity::{Did, GrantId, Timestamp};
use oap_memory::record::Status as ItemStatus;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Where a gateway stands: counts and ends alone, never content.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Whose memory it is.
    pub principal: Did,
    /// Where it is reached.
    pub origin: String,
    /// Where it listens, while it serves.
    pub listen: SocketAddr,
    /// The items.
    pub items: Items,
    /// The grants.
    pub grants: Grants,
    /// The last query of a grantee, where there was one.
    pub last_query: Option<LastQuery>,
    /// What `doctor` would warn of without looking at every item.
    pub findings: Vec<Finding>,
}

/// How many items there are.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Items {
    /// Of each kind, those in force.
    pub kinds: BTreeMap<&'static str, usize>,
    /// Those in force, all together.
    pub live: usize,
    /// Taken back, until they are erased.
    pub retracted: usize,
    /// At the end of their life, until they are erased.
    pub expired: usize,
    /// Under a legal hold; they count above too.
    pub held: usize,
}

/// How the grants stand.
#[derive(Debug, Clone, Serialize)]
pub struct Grants {
    /// How many there are in each state.
    pub states: BTreeMap<&'static str, usize>,
    /// The active one that ends next.
    pub next: Option<Ending>,
}

/// An active grant and its end.
#[derive(Debug, Clone, Serialize)]
pub struct Ending {
    /// The grant.
    pub grant_id: GrantId,
    /// Its end.
    pub expires_at: Timestamp,
}

/// A query, as its receipt has it.
#[derive(Debug, Clone, Serialize)]
pub struct LastQuery {
    /// When.
    pub at: Timestamp,
    /// Who asked.
    pub agent: String,
    /// How many items were shown.
    pub items: usize,
}

impl Gateway {
    /// Where the gateway stands.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn status(&self) -> Result<Status, Error> {
        let now = self.clock.now();
        let mut items = Items { held: self.holds()?.len(), ..Items::default() };
        for head in self.heads.all() {
            if head.is_live(now) {
                *items.kinds.entry(head.kind.as_str()).or_default() += 1;
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
            grants: Grants { states: grants.states, next },
            last_query,
            findings: vec![self.clock_finding(), self.grants_finding()],
        })
    }
}

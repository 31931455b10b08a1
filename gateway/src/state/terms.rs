//! What the owner says of an agent beside its permission. An agent without a row has what every new one has.

use crate::error::Error;
use crate::state::schema::TERMS;
use oap_agents::terms::{Capacities, Role};
use oap_identity::Did;
use oap_memory::record::Head;
use oap_store::Rows;
use serde::{Deserialize, Serialize};

/// The role of an agent, and its room. No request of an agent's changes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    pub(crate) role: Role,
    pub(crate) capacities: Capacities,
    /// Namespaces whose episodic entries are never evicted.
    pub(crate) pinned_namespaces: Vec<String>,
}

impl Terms {
    /// Whether an entry stands in a namespace that is never evicted from.
    pub(crate) fn pins(&self, head: &Head) -> bool {
        head.meta.namespace.as_ref().is_some_and(|namespace| self.pinned_namespaces.contains(namespace))
    }
}

/// The terms of an agent, as rows have them.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn terms(rows: &impl Rows, agent: &Did) -> Result<Terms, Error> {
    Ok(TERMS.get(rows, agent)?.unwrap_or_default())
}

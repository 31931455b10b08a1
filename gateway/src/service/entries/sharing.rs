//! The permissions of namespaces (RFC-0015 2.3): shown, and set by agents with `memory.admin`.

use crate::api::agents::AgentRef;
use crate::error::{Conflict, Error};
use crate::service::Entries;
use crate::service::tools::looking::Looking;
use crate::state::agents::{self, Agent, Shared, StoredAgent};
use crate::state::gateway::{Gateway, blocking};
use crate::state::owner::Permission;
use crate::state::owner::mark::{Admin, Read};
use crate::state::schema::{NAMESPACES, SHARED_TIMES};
use oap_agents::entry::{EntryError, GivenPermissions, Must, Namespace, Permissions, SetPermissions};
use oap_agents::namespaces::{Access, MAX_SHARED, Sharing};
use oap_identity::Did;
use oap_memory::record::Tier;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Entries<'_> {
    /// Sets the permissions of a namespace, or takes them away.
    ///
    /// # Errors
    /// [`Error::Permission`], [`Error::Entry`], [`Error::Conflict`].
    pub async fn share(
        self,
        agent: &Agent<Read>,
        name: String,
        set: SetPermissions,
    ) -> Result<Vec<u8>, Error> {
        let admin = agent.permitted::<Admin>()?;
        let gateway = self.0.clone();
        let named = blocking(move || {
            let sharing = set.permissions.map(|given| sharing(&gateway, given)).transpose()?;
            let permissions = Entries(&gateway).permissions(sharing.as_ref(), true)?;
            Ok((sharing, permissions))
        });
        let (sharing, permissions) = named.await?;
        let namespace = name.clone();
        self.0
            .commit_for(admin.acting(), move |w| {
                let there = NAMESPACES.get(w.tx, &namespace)?;
                // Who sees what is as it was: nobody's request is for nothing, and no words are read anew.
                if there == sharing {
                    return Ok(());
                }
                match &sharing {
                    None => NAMESPACES.delete(w.tx, &namespace),
                    Some(sharing) => {
                        let known =
                            NAMESPACES.scan(&w.gateway.store).count() + NAMESPACES.written(w.tx).len();
                        if known >= MAX_SHARED && there.is_none() {
                            return Err(Error::Conflict(Conflict::ManyNamespaces));
                        }
                        NAMESPACES.put(w.tx, &namespace, sharing)?;
                    }
                }
                SHARED_TIMES.count(w.tx)?;
                // Who sees what it holds is another than before: all words are read anew.
                let gateway = w.gateway.clone();
                w.tx.on_commit(move || {
                    match Shared::load(&gateway.store) {
                        Ok(shared) => gateway.sharing.store(Arc::new(shared)),
                        // No agent's transaction holds by those of before.
                        Err(error) => tracing::error!(%error, "permissions cannot be read anew"),
                    }
                    gateway.corpora.clear();
                    gateway.brains.clear();
                });
                Ok(())
            })
            .await?;
        Ok(serde_json::to_vec(&json!({"namespace": name, "permissions": permissions}))?)
    }

    /// As they are shown: to whom they concern in full.
    fn permissions(self, sharing: Option<&Sharing>, in_full: bool) -> Result<Permissions, Error> {
        let Some(sharing) = sharing else {
            return Ok(Permissions { default: Access::Write, allow: Vec::new() });
        };
        let mut allow = Vec::new();
        for (did, access) in sharing.allow.iter().filter(|_| in_full) {
            allow.push(json!({"agent": super::tasks::name_of(self.0, did)?, "access": access}));
        }
        Ok(Permissions { default: sharing.default, allow })
    }
}

/// Permissions as they are stored, of agents that are there.
fn sharing(gateway: &Gateway, given: GivenPermissions) -> Result<Sharing, Error> {
    let mut there = agents::all(&gateway.store)?;
    there.retain(|(_, agent)| agent.is_there());
    let mut allow = BTreeMap::new();
    for (index, (name, access)) in given.allow.into_iter().enumerate() {
        let nobody =
            || Error::Entry(EntryError::Field("agent", Must::Agent).within("permissions.allow", index));
        let named: AgentRef = name.parse().map_err(|_| nobody())?;
        let is_meant = |(did, agent): &&(Did, StoredAgent)| match &named {
            AgentRef::Did(meant) => did == meant,
            AgentRef::Name(meant) => agent.name == *meant,
        };
        let (did, _) = there.iter().find(is_meant).ok_or_else(nobody)?;
        if allow.insert(did.clone(), access).is_some() {
            return Err(Error::Entry(EntryError::Field("permissions.allow", Must::OneAgent)));
        }
    }
    Ok(Sharing { default: given.default, allow })
}

impl Looking<'_> {
    /// The namespaces of the semantic entries that the agent may see; who sets permissions sees those that have any, too.
    pub(super) fn namespaces(&self) -> Result<Vec<Namespace>, Error> {
        let is_admin = self.agent.permission() >= Permission::Admin;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        if is_admin {
            counts.extend(self.agent.namespaces().names().map(|name| (name.clone(), 0)));
        }
        for head in self.entries().into_iter().filter(|head| head.meta.tier == Tier::Semantic) {
            *counts.entry(head.meta.namespace.as_deref().cloned().unwrap_or_default()).or_default() += 1;
        }
        let writes = self.agent.permission() >= Permission::Write;
        let sight = self.agent.sight();
        let mut found = Vec::new();
        for (namespace, entry_count) in counts {
            let permissions =
                Entries(self.gateway).permissions(self.agent.namespaces().of(&namespace), is_admin)?;
            let access = sight.access(&namespace).min(if writes { Access::Write } else { Access::Read });
            found.push(Namespace { namespace, permissions, access, entry_count });
        }
        Ok(found)
    }
}

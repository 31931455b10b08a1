//! What the owner said yes to: an approval is one client that uses memory as one agent, and its tokens.
//!
//! An approval is bound to the agent's API key as it was, also of an agent that holds its own key beside it: to rotate that key, to remove
//! the agent or to restore the gateway ends every token. That is read again in each transaction that a token's bearer commits. An agent
//! without an API key has none: nothing would tell what it was from what it is.

use crate::api::oauth::{ConsentId, ConsentInfo};
use crate::error::{Error, Unproved};
use crate::oauth::secret::{self, ACCESS_PREFIX};
use crate::oauth::{ApprovalKey, RESOURCE};
use crate::state::agents::{Agent, StoredAgent};
use crate::state::gateway::Gateway;
use crate::state::owner::Permission;
use crate::state::owner::mark::Read;
use crate::state::schema::{AGENTS, APPROVALS, EPOCH};
use oap_identity::{Did, Hash, Timestamp};
use oap_store::Rows;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Approvals that count at once, of all agents together.
pub const MAX_APPROVALS: usize = 200;
/// How long an access token lives.
pub const ACCESS_LIFE: Duration = Duration::from_secs(900);
/// Access tokens of an approval that count at once; the oldest ends before its time.
pub const MAX_ACCESS: usize = 2;
/// How long a client that does not come back keeps its approval.
pub const IDLE: Duration = Duration::from_secs(30 * 86_400);
/// How long an approval counts at most; then the owner is asked again.
pub const WHOLE: Duration = Duration::from_secs(180 * 86_400);
/// How long an approval waits for its first tokens.
const UNUSED: Duration = Duration::from_secs(900);

/// An approval as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredApproval {
    pub(crate) agent: Did,
    /// The hash of the agent's API key when the owner said yes.
    pub(crate) agent_key: Option<Hash>,
    /// What the store was of then; a restore and a lockdown draw another.
    pub(crate) epoch: Option<Hash>,
    /// The address that the tokens are for.
    pub(crate) resource: String,
    pub(crate) client: String,
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) permission: Permission,
    /// The key that the tokens are bound to.
    pub(crate) jkt: Option<String>,
    pub(crate) given_at: Timestamp,
    /// When tokens were last given.
    pub(crate) used_at: Option<Timestamp>,
    /// The hash of the refresh token in force.
    pub(crate) refresh: Option<Hash>,
    pub(crate) access: Vec<Access>,
}

/// An access token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub(crate) hash: Hash,
    pub(crate) until: Timestamp,
    pub(crate) permission: Permission,
}

impl StoredApproval {
    /// Whether a token of this hash is in force.
    pub(crate) fn has(&self, token: Hash, now: Timestamp) -> bool {
        self.refresh == Some(token)
            || self.access.iter().any(|access| access.hash == token && access.until > now)
    }

    /// Until when it counts, where its client does not come back.
    pub(crate) fn until(&self) -> Timestamp {
        let idle = self.used_at.map_or_else(|| self.given_at.plus(UNUSED), |used| used.plus(IDLE));
        idle.min(self.given_at.plus(WHOLE))
    }

    /// The agent, where it is as it was when the owner said yes.
    ///
    /// # Errors
    /// [`Error::Owner`].
    pub(crate) fn agent(&self, rows: &impl Rows) -> Result<StoredAgent, Error> {
        let agent = AGENTS.get(rows, &self.agent)?.filter(StoredAgent::is_there);
        let is_same = |agent: &StoredAgent| agent.key.is_some_and(|(key, _)| Some(key) == self.agent_key);
        agent.filter(is_same).ok_or(Error::Owner(Unproved::TokenEnded))
    }

    /// Whether it counts at a time: for this gateway, with the agent as it was.
    pub(crate) fn counts(&self, rows: &impl Rows, gateway: &Gateway, now: Timestamp) -> Result<bool, Error> {
        let is_ours = self.epoch == EPOCH.get(rows)? && self.resource == gateway.url(RESOURCE);
        if !is_ours || self.until() <= now {
            return Ok(false);
        }
        match self.agent(rows) {
            Ok(_) => Ok(true),
            Err(Error::Owner(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What the owner is told of it.
    pub(crate) fn info(&self, key: ApprovalKey, rows: &impl Rows) -> Result<ConsentInfo, Error> {
        Ok(ConsentInfo {
            consent: key.id(),
            client_id: self.client.clone(),
            client_name: self.name.clone(),
            redirect_host: self.host.clone(),
            agent: AGENTS.get(rows, &self.agent)?.map(|agent| agent.name),
            permission: self.permission,
            bound: self.jkt.is_some(),
            given_at: self.given_at,
            used_at: self.used_at,
            until: self.until(),
        })
    }
}

impl ApprovalKey {
    /// By what the owner names it: of a hash, so that it says nothing of the tokens.
    pub(crate) fn id(self) -> ConsentId {
        let [a, b, c, d, ..] = *Hash::of(&self.0).as_bytes();
        ConsentId([a, b, c, d])
    }
}

/// The access token that an agent acts by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByToken {
    approval: ApprovalKey,
    token: Hash,
    until: Timestamp,
}

impl ByToken {
    /// Of which approval the token is.
    pub(crate) const fn approval(&self) -> ApprovalKey {
        self.approval
    }

    /// Whether its time is over.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now
    }

    /// The agent that the approval is of, and what the token permits, as they are in a transaction.
    ///
    /// # Errors
    /// [`Error::Owner`] where it was ended.
    pub(crate) fn stands(&self, rows: &impl Rows) -> Result<(Did, StoredAgent, Permission), Error> {
        let ended = Error::Owner(Unproved::TokenEnded);
        let Some(approval) = APPROVALS.get(rows, &self.approval.0)? else { return Err(ended) };
        let Some(access) = approval.access.iter().find(|access| access.hash == self.token) else {
            return Err(ended);
        };
        let agent = approval.agent(rows)?;
        let permission = access.permission.min(approval.permission).min(agent.permission);
        Ok((approval.agent, agent, permission))
    }
}

/// An agent by an access token.
pub struct Granted {
    /// The agent, with no more than the owner said yes to.
    pub agent: Agent<Read>,
    /// What the agent itself may do.
    pub whole: Permission,
    /// The thumbprint of the key that the token is bound to.
    pub jkt: Option<String>,
}

impl Gateway {
    /// Whose access token this is. Possession of the key that it may be bound to is not judged here.
    ///
    /// # Errors
    /// [`Error::Owner`].
    pub fn agent_by_token(&self, token: &str) -> Result<Granted, Error> {
        let ended = || Error::Owner(Unproved::TokenEnded);
        let (key, hash) = secret::read(ACCESS_PREFIX, token).ok_or_else(ended)?;
        let now = self.clock.now();
        let approval = APPROVALS.get(&self.store, &key.0)?.ok_or_else(ended)?;
        let access = approval.access.iter().find(|access| access.hash == hash && access.until > now);
        let until = access.ok_or_else(ended)?.until;
        if !approval.counts(&self.store, self, now)? {
            return Err(ended());
        }
        let by = ByToken { approval: key, token: hash, until };
        let (did, agent, permission) = by.stands(&self.store)?;
        let whole = agent.permission;
        let agent = Agent::by_token(self, did, &agent, permission, by);
        Ok(Granted { agent, whole, jkt: approval.jkt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::Seeded;
    use oap_store::Store;
    use std::sync::Arc;

    /// A yes is of one API key, and an absent one is like no other.
    #[tokio::test]
    async fn an_agent_without_a_key_is_never_as_it_was() {
        let store = Store::in_memory(Arc::new(Seeded::new(1))).unwrap();
        let (did, at): (Did, _) = ("did:web:a.example".parse().unwrap(), Timestamp::from_millis(0));
        let approval = |agent_key| StoredApproval {
            agent: did.clone(),
            agent_key,
            epoch: None,
            resource: String::new(),
            client: String::new(),
            name: String::new(),
            host: String::new(),
            permission: Permission::Read,
            jkt: None,
            given_at: at,
            used_at: None,
            refresh: None,
            access: Vec::new(),
        };
        let (key, other) = (Some(Hash::of(b"key")), Some(Hash::of(b"other")));
        for (was, is, counts) in [
            (key, key, true),
            (key, other, false),
            (key, None, false),
            (None, None, false),
            (None, key, false),
        ] {
            let mut agent = StoredAgent::with_own_key("far".parse().unwrap(), Permission::Write, at);
            agent.key = is.map(|key| (key, at));
            let did = did.clone();
            store.transact(move |tx| AGENTS.put(tx, &did, &agent)).await.unwrap();
            assert_eq!(approval(was).agent(&store).is_ok(), counts, "{was:?} {is:?}");
        }
    }
}

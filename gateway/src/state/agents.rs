//! The owner's own agents, proved: by the API key of one, or by the owner who acts as one (protocol section 10).
//!
//! An agent is no owner. What it may call takes an [`Agent`], which nothing else makes; and whether the agent is still there, with
//! that permission and that key, is read again in each transaction that it commits.

use crate::api::agents::{AgentInfo, AgentName, AgentRef};
use crate::error::{Error, Unproved};
use crate::oauth::ApprovalKey;
use crate::state::approvals::ByToken;
use crate::state::gateway::Gateway;
use crate::state::owner::mark::{Admin, Mark, Permits, Read};
use crate::state::owner::{Acting, Credential, Owner, Permission};
use crate::state::schema::AGENTS;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_agents::Sight;
use oap_identity::{Did, Hash, Random, Timestamp, random};
use oap_store::{Rows, Store};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{PoisonError, RwLock};
use zeroize::Zeroizing;

/// Most agents that a gateway remembers, with those that were removed.
pub const MAX_AGENTS: usize = 1000;
/// Memory tools that look at the owner's memory at once, of all agents together; others wait. Each may open every item that its agent sees.
pub const MAX_LOOKING: usize = 4;
/// How an API key begins.
pub const KEY_PREFIX: &str = "oapk_";
/// Bytes of an API key: its beginning, and 32 bytes in base64url.
const KEY_LENGTH: usize = KEY_PREFIX.len() + 43;

/// An agent as it is stored. Its row stays when it is removed: what it wrote and what it was given name it.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredAgent {
    pub(crate) name: AgentName,
    pub(crate) permission: Permission,
    /// The seed of the key that its DID is.
    seed: Zeroizing<[u8; 32]>,
    /// The hash of its API key, and since when it has that.
    pub(crate) key: Option<(Hash, Timestamp)>,
    pub(crate) created_at: Timestamp,
    pub(crate) removed_at: Option<Timestamp>,
}

impl StoredAgent {
    /// A new one without an API key.
    pub(crate) const fn new(
        name: AgentName,
        permission: Permission,
        seed: Zeroizing<[u8; 32]>,
        now: Timestamp,
    ) -> Self {
        Self { name, permission, seed, key: None, created_at: now, removed_at: None }
    }

    /// Whether it was not removed.
    pub(crate) const fn is_there(&self) -> bool {
        self.removed_at.is_none()
    }

    /// Ends it with its API key.
    pub(crate) fn remove(&mut self, now: Timestamp) {
        self.key = None;
        self.removed_at = Some(now);
    }

    /// What is told of it.
    pub(crate) fn info(&self, did: Did) -> AgentInfo {
        AgentInfo {
            name: self.name.clone(),
            did,
            permission: self.permission,
            created_at: self.created_at,
            key_since: self.key.map(|(_, since)| since),
            removed_at: self.removed_at,
        }
    }
}

/// A fresh API key, and its hash. The key is random enough that a plain hash gives nothing away.
pub(crate) fn new_key(random: &dyn Random) -> (Zeroizing<String>, Hash) {
    let secret: Zeroizing<[u8; 32]> = Zeroizing::new(random::bytes(random));
    let key = Zeroizing::new(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(*secret)));
    let hash = Hash::of(key.as_bytes());
    (key, hash)
}

/// Every agent as last committed, those that were removed with them.
pub(crate) fn all(store: &Store) -> Result<Vec<(Did, StoredAgent)>, Error> {
    Ok(AGENTS.scan(store).collect::<Result<_, _>>()?)
}

/// Which agent has which API key, by the hash of the key: where to look, and never who may.
#[derive(Debug, Default)]
pub struct AgentKeys(RwLock<HashMap<Hash, Did>>);

impl AgentKeys {
    /// Reads the keys of a store.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        let keys = all(store)?.into_iter().filter(|(_, agent)| agent.is_there());
        Ok(Self(RwLock::new(keys.filter_map(|(did, agent)| Some((agent.key?.0, did))).collect())))
    }

    /// Reads the keys anew, once agents were changed.
    pub(crate) fn reload(&self, store: &Store) {
        match Self::load(store) {
            Ok(Self(keys)) => {
                let keys = keys.into_inner().unwrap_or_else(PoisonError::into_inner);
                *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
            }
            Err(error) => tracing::error!(%error, "the keys of agents cannot be read anew"),
        }
    }

    fn of(&self, key: &Hash) -> Option<Did> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

/// The agent that is meant: of a name the one that is there, else the last that was.
pub(crate) fn find(store: &Store, agent: &AgentRef) -> Result<(Did, StoredAgent), Error> {
    match agent {
        AgentRef::Did(did) => {
            AGENTS.get(store, did)?.map(|found| (did.clone(), found)).ok_or(Error::NotFound)
        }
        AgentRef::Name(name) => {
            let named = all(store)?.into_iter().filter(|(_, agent)| agent.name == *name);
            named.max_by_key(|(_, agent)| (agent.is_there(), agent.removed_at)).ok_or(Error::NotFound)
        }
    }
}

/// One of the owner's agents, which may do at least `P`.
#[derive(Debug, Clone)]
pub struct Agent<P> {
    did: Did,
    name: AgentName,
    permission: Permission,
    by: By,
    permits: PhantomData<fn() -> P>,
}

/// By what an agent acts.
#[derive(Debug, Clone)]
enum By {
    /// The API key of that hash.
    Key(Hash),
    /// An access token that the owner said yes to.
    Token(ByToken),
    /// The owner, who acts as it.
    Owner(Credential),
}

/// By what an agent commits.
#[derive(Debug, Clone)]
pub(crate) struct AgentCredential {
    did: Did,
    least: Permission,
    by: By,
}

impl AgentCredential {
    /// The owner's, where it is by that one that the agent acts.
    pub(crate) const fn owners(&self) -> Option<&Credential> {
        match &self.by {
            By::Owner(credential) => Some(credential),
            By::Key(_) | By::Token(_) => None,
        }
    }

    /// Whether the time of what it acts by is over.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        matches!(&self.by, By::Token(token) if token.is_over(now))
    }

    /// That the agent is there, with the permission and the key that it acted by.
    ///
    /// # Errors
    /// [`Error::Owner`], [`Error::NotFound`], [`Error::Permission`].
    pub(crate) fn stands(&self, rows: &impl Rows) -> Result<(), Error> {
        if let By::Token(token) = &self.by {
            let (_, _, permission) = token.stands(rows)?;
            return if permission < self.least {
                Err(Error::Permission(self.least.as_str()))
            } else {
                Ok(())
            };
        }
        let agent = AGENTS.get(rows, &self.did)?.filter(StoredAgent::is_there);
        let agent = match (&self.by, agent) {
            (By::Key(hash), Some(agent)) if agent.key.is_some_and(|(key, _)| key == *hash) => agent,
            (By::Key(_) | By::Token(_), _) => return Err(Error::Owner(Unproved::KeyEnded)),
            (By::Owner(_), agent) => agent.ok_or(Error::NotFound)?,
        };
        if agent.permission < self.least { Err(Error::Permission(self.least.as_str())) } else { Ok(()) }
    }
}

#[allow(missing_docs, reason = "the names say it")]
impl<P: Mark> Agent<P> {
    #[must_use]
    pub const fn did(&self) -> &Did {
        &self.did
    }

    #[must_use]
    pub const fn name(&self) -> &AgentName {
        &self.name
    }

    #[must_use]
    pub const fn permission(&self) -> Permission {
        self.permission
    }

    /// Whether a text names it: its name, or its DID.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        *self.name == *text || self.did.as_str() == text
    }

    /// The same agent, where it may do `Q`.
    ///
    /// # Errors
    /// [`Error::Permission`].
    pub fn permitted<Q: Mark>(&self) -> Result<Agent<Q>, Error> {
        if self.permission < Q::PERMISSION {
            return Err(Error::Permission(Q::PERMISSION.as_str()));
        }
        let Self { did, name, permission, by, .. } = self.clone();
        Ok(Agent { did, name, permission, by, permits: PhantomData })
    }

    /// Its view of the owner's memory.
    #[must_use]
    pub fn sight(&self) -> Sight<'_> {
        Sight { agent: &self.did, changes_all: self.permission >= Permission::Admin }
    }

    /// The approval by whose token it acts.
    pub(crate) const fn approval(&self) -> Option<ApprovalKey> {
        match &self.by {
            By::Token(token) => Some(token.approval()),
            By::Key(_) | By::Owner(_) => None,
        }
    }

    /// For whom it commits. What it rests on is its permission for `P`.
    pub(crate) fn acting(&self) -> Acting {
        let Self { did, by, .. } = self.clone();
        Acting::Agent(Box::new(AgentCredential { did, least: P::PERMISSION, by }))
    }
}

impl Gateway {
    /// Which agent presents its API key: `Authorization: Bearer`, or `X-API-Key`.
    ///
    /// # Errors
    /// [`Error::Owner`] for a key that is nobody's.
    pub fn agent_by_key(&self, authorization: &[String], api_key: &[String]) -> Result<Agent<Read>, Error> {
        let bearer = |text: &String| {
            let (scheme, key) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().to_owned())
        };
        let given = match (authorization, api_key) {
            ([one], []) => bearer(one),
            ([], [key]) => Some(key.trim().to_owned()),
            _ => None,
        };
        let key = Zeroizing::new(given.ok_or(Error::Owner(Unproved::NoKey))?);
        // What is no key at all is not looked for.
        if key.len() != KEY_LENGTH || !key.starts_with(KEY_PREFIX) {
            return Err(Error::Owner(Unproved::KeyEnded));
        }
        let hash = Hash::of(key.as_bytes());
        let holds =
            |agent: &StoredAgent| agent.is_there() && agent.key.is_some_and(|(known, _)| known == hash);
        // Whoever tries keys has no row opened.
        let did = self.agent_keys.of(&hash).ok_or(Error::Owner(Unproved::KeyEnded))?;
        let agent = AGENTS.get(&self.store, &did)?.filter(holds).ok_or(Error::Owner(Unproved::KeyEnded))?;
        Ok(Agent::of(did, &agent, By::Key(hash)))
    }

    /// One of the owner's agents, as which the owner acts.
    ///
    /// # Errors
    /// [`Error::NoAgent`].
    pub fn agent_as(
        &self,
        owner: &Owner<impl Permits<Admin>>,
        agent: &AgentRef,
    ) -> Result<Agent<Read>, Error> {
        match find(&self.store, agent) {
            Ok((did, found)) if found.is_there() => Ok(Agent::of(did, &found, By::Owner(owner.into()))),
            Ok(_) | Err(Error::NotFound) => Err(Error::NoAgent(agent.clone())),
            Err(error) => Err(error),
        }
    }
}

impl Agent<Read> {
    fn of(did: Did, agent: &StoredAgent, by: By) -> Self {
        Self { did, name: agent.name.clone(), permission: agent.permission, by, permits: PhantomData }
    }

    /// By an access token, with what that permits.
    pub(crate) fn by_token(did: Did, agent: &StoredAgent, permission: Permission, token: ByToken) -> Self {
        Self { permission, ..Self::of(did, agent, By::Token(token)) }
    }
}

//! The owner's own agents, proved: by the API key of one, or by the owner who acts as one (protocol section 10).
//!
//! An agent is no owner. What it may call takes an [`Agent`], which nothing else makes; and whether the agent is still there, with
//! that permission and that key, is read again in each transaction that it commits.

use crate::api::agents::{AgentInfo, AgentName, AgentRef};
use crate::error::{Error, Unavailable, Unproved};
use crate::oauth::ApprovalKey;
use crate::state::approvals::ByToken;
use crate::state::gateway::Gateway;
use crate::state::owner::mark::{Admin, Mark, Permits, Read};
use crate::state::owner::{Acting, Credential, Owner, Permission};
use crate::state::schema::{AGENTS, NAMESPACES, SHARED_TIMES};
use crate::state::terms::Terms;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_agents::Sight;
use oap_agents::namespaces::Namespaces;
use oap_identity::{Did, Hash, Random, Timestamp, random};
use oap_store::{Rows, Store};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock};
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
    /// The seed of the key that its DID is; zeroes where the agent holds that key itself.
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

    /// A new one that holds its own key.
    pub(crate) fn with_own_key(name: AgentName, permission: Permission, now: Timestamp) -> Self {
        Self::new(name, permission, Zeroizing::new([0; 32]), now)
    }

    /// Whether its key is its own: what it presents counts with a proof by that key alone.
    pub(crate) fn holds_own_key(&self) -> bool {
        *self.seed == [0; 32]
    }

    /// The hash by which an API key of this agent's is known. One that is bound to a key is known by another than it would be by itself: a
    /// program that knows nothing of such keys takes it for nobody's.
    pub(crate) fn hash_of(&self, key: &str) -> Hash {
        if self.holds_own_key() { bound_hash(key) } else { Hash::of(key.as_bytes()) }
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
    pub(crate) fn info(&self, did: Did, terms: &Terms) -> AgentInfo {
        AgentInfo {
            name: self.name.clone(),
            did,
            permission: self.permission,
            role: terms.role,
            capacities: terms.capacities,
            pinned_namespaces: terms.pinned_namespaces.clone(),
            own_key: self.holds_own_key(),
            created_at: self.created_at,
            key_since: self.key.map(|(_, since)| since),
            removed_at: self.removed_at,
        }
    }
}

/// A fresh API key. It is random enough that a plain hash gives nothing away.
pub(crate) fn new_key(random: &dyn Random) -> Zeroizing<String> {
    let secret: Zeroizing<[u8; 32]> = Zeroizing::new(random::bytes(random));
    Zeroizing::new(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(*secret)))
}

/// The hash of an API key that is bound to its agent's own key.
pub(crate) fn bound_hash(key: &str) -> Hash {
    Hash::of(&[b"oap-bound-key\n".as_slice(), key.as_bytes()].concat())
}

/// Every agent as last committed, those that were removed with them.
pub(crate) fn all(store: &Store) -> Result<Vec<(Did, StoredAgent)>, Error> {
    Ok(AGENTS.scan(store).collect::<Result<_, _>>()?)
}

/// Which agent has which API key, by the hash of the key, and which hold their own: where to look, and never who may.
#[derive(Debug, Default)]
pub struct AgentKeys(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Whose API key has which hash.
    keys: HashMap<Hash, Did>,
    /// Those that hold their own key, with an API key or without.
    own: HashSet<Did>,
}

impl AgentKeys {
    /// Reads the keys of a store.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        let mut known = Known::default();
        for (did, agent) in all(store)?.into_iter().filter(|(_, agent)| agent.is_there()) {
            if agent.holds_own_key() {
                known.own.insert(did.clone());
            }
            if let Some((key, _)) = agent.key {
                known.keys.insert(key, did);
            }
        }
        Ok(Self(RwLock::new(known)))
    }

    /// Reads the keys anew, once agents were changed.
    pub(crate) fn reload(&self, store: &Store) {
        match Self::load(store) {
            Ok(Self(known)) => {
                let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
                *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
            }
            Err(error) => tracing::error!(%error, "the keys of agents cannot be read anew"),
        }
    }

    fn of(&self, key: &Hash) -> Option<Did> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys.get(key).cloned()
    }

    /// Whether an agent holds its own key.
    pub(crate) fn is_own(&self, did: &Did) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).own.contains(did)
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
    sharing: Arc<Shared>,
    permits: PhantomData<fn() -> P>,
}

/// The permissions of namespaces, as an agent acts by them.
#[derive(Debug)]
pub(crate) struct Shared {
    /// How often they were changed before.
    times: u64,
    namespaces: Namespaces,
}

impl Shared {
    /// Those of a store.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn load(store: &Store) -> Result<Self, Error> {
        // First how often: what changes meanwhile is seen by the commit.
        let times = SHARED_TIMES.get(store)?;
        Ok(Self { times, namespaces: NAMESPACES.scan(store).collect::<Result<_, _>>()? })
    }
}

/// By what an agent acts.
#[derive(Debug, Clone)]
pub(crate) enum By {
    /// The API key of that hash; of an agent that proved its own key, the token in force.
    Key(Hash),
    /// An access token that the owner said yes to.
    Token(ByToken),
    /// The owner, who acts as it.
    Owner(Credential),
    /// The configuration, which has it done when the gateway starts.
    House,
}

/// By what an agent commits.
#[derive(Debug, Clone)]
pub(crate) struct AgentCredential {
    did: Did,
    least: Permission,
    by: By,
    /// Which permissions of namespaces it acted by.
    shared: u64,
}

impl AgentCredential {
    /// Who it is.
    pub(crate) const fn did(&self) -> &Did {
        &self.did
    }

    /// The owner's, where it is by that one that the agent acts.
    pub(crate) const fn owners(&self) -> Option<&Credential> {
        match &self.by {
            By::Owner(credential) => Some(credential),
            By::Key(_) | By::Token(_) | By::House => None,
        }
    }

    /// Whether the time of what it acts by is over.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        matches!(&self.by, By::Token(token) if token.is_over(now))
    }

    /// That the agent is there, with the permission and the key that it acted by.
    ///
    /// # Errors
    /// [`Error::Owner`], [`Error::NotFound`], [`Error::Permission`]; [`Error::Unavailable`] where permissions of namespaces changed.
    pub(crate) fn stands(&self, rows: &impl Rows) -> Result<(), Error> {
        let there = || Ok::<_, Error>(AGENTS.get(rows, &self.did)?.filter(StoredAgent::is_there));
        let permission = match &self.by {
            By::Token(token) => token.stands(rows)?.2,
            By::Key(hash) => {
                let holds = |agent: &StoredAgent| agent.key.is_some_and(|(key, _)| key == *hash);
                there()?.filter(holds).ok_or(Error::Owner(Unproved::KeyEnded))?.permission
            }
            By::House => there()?.ok_or(Error::NotFound)?.permission,
            By::Owner(credential) => {
                credential.stands(rows)?;
                there()?.ok_or(Error::NotFound)?.permission
            }
        };
        if permission < self.least {
            return Err(Error::Permission(self.least.as_str()));
        }
        // To try again with what it acts by would find the same again.
        let is_same = SHARED_TIMES.get(rows)? == self.shared;
        if is_same { Ok(()) } else { Err(Error::Unavailable(Unavailable::Permissions)) }
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
        let Self { did, name, permission, by, sharing, .. } = self.clone();
        Ok(Agent { did, name, permission, by, sharing, permits: PhantomData })
    }

    /// The permissions of namespaces.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.sharing.namespaces
    }

    /// What its view rests on beside what is remembered: whether it changes all, and how often permissions of namespaces changed.
    pub(crate) fn sees_by(&self) -> (bool, u64) {
        (self.permission >= Permission::Admin, self.sharing.times)
    }

    /// Its view of the owner's memory.
    #[must_use]
    pub fn sight(&self) -> Sight<'_> {
        let changes_all = self.permission >= Permission::Admin;
        Sight { agent: &self.did, changes_all, namespaces: &self.sharing.namespaces }
    }

    /// The approval by whose token it acts.
    pub(crate) const fn approval(&self) -> Option<ApprovalKey> {
        match &self.by {
            By::Token(token) => Some(token.approval()),
            By::Key(_) | By::Owner(_) | By::House => None,
        }
    }

    /// For whom it commits. What it rests on is its permission for `P`.
    pub(crate) fn acting(&self) -> Acting {
        let Self { did, by, sharing, .. } = self.clone();
        let shared = sharing.times;
        Acting::Agent(Box::new(AgentCredential { did, least: P::PERMISSION, by, shared }))
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
        let Some(did) = self.agent_keys.of(&hash) else {
            let is_bound = self.agent_keys.of(&bound_hash(&key)).is_some();
            return Err(Error::Owner(if is_bound { Unproved::BoundKey } else { Unproved::KeyEnded }));
        };
        let agent = AGENTS.get(&self.store, &did)?.filter(holds).ok_or(Error::Owner(Unproved::KeyEnded))?;
        if agent.holds_own_key() {
            return Err(Error::Owner(Unproved::BoundKey));
        }
        Ok(Agent::of(self, did, &agent, By::Key(hash)))
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
            Ok((did, found)) if found.is_there() => Ok(Agent::of(self, did, &found, By::Owner(owner.into()))),
            Ok(_) | Err(Error::NotFound) => Err(Error::NoAgent(agent.clone())),
            Err(error) => Err(error),
        }
    }
}

impl Gateway {
    /// The agents that may change what others wrote, as which the configuration has something done.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn tidying(&self) -> Result<Vec<Agent<Read>>, Error> {
        let there = all(&self.store)?.into_iter();
        let there = there.filter(|(_, agent)| agent.is_there() && agent.permission >= Permission::Admin);
        Ok(there.map(|(did, agent)| Agent::of(self, did, &agent, By::House)).collect())
    }
}

impl Agent<Read> {
    pub(crate) fn of(gateway: &Gateway, did: Did, agent: &StoredAgent, by: By) -> Self {
        let sharing = gateway.sharing.load_full();
        let (name, permission) = (agent.name.clone(), agent.permission);
        Self { did, name, permission, by, sharing, permits: PhantomData }
    }

    /// By an access token, with what that permits.
    pub(crate) fn by_token(
        gateway: &Gateway,
        did: Did,
        agent: &StoredAgent,
        permission: Permission,
        token: ByToken,
    ) -> Self {
        Self { permission, ..Self::of(gateway, did, agent, By::Token(token)) }
    }
}

//! The owner's own agents: made, listed, ended; and what each was given.

use crate::api::agents::{
    AgentChange, AgentInfo, AgentList, AgentRef, Handed, HandedForeign, InjectedAnswer, InjectedList,
    InjectedQuery, KeyedAgent, MAX_INJECTED, NewAgent, ShownUnder,
};
use crate::error::{Conflict, Corrupt, Error, MemberError};
use crate::service::brief::cut;
use crate::service::entries::DELETE;
use crate::service::items::whole;
use crate::service::tools::FOREIGN;
use crate::service::{Agents, Audit};
use crate::state::agents::{self, MAX_AGENTS, StoredAgent, new_key};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{self, AGENTS, RECEIPTS_OF, TERMS, WALLET};
use crate::state::terms::{Terms, terms};
use crate::state::views;
use oap_agents::Tool;
use oap_agents::terms::{Capacities, MAX_PINNED_NAMESPACES};
use oap_identity::{Did, Hash, ItemId, Signer};
use oap_memory::chain::Link;
use oap_memory::item::{MAX_SHORT, short_text};
use oap_memory::receipt::{Action, Outcome, Receipt, read_tag};
use oap_store::{Range, StoreError};
use serde_json::Value;
use std::collections::BTreeSet;

/// Answers that are told of where the owner does not say how many.
const USUAL_INJECTED: usize = 20;

impl Agents<'_> {
    /// Makes an agent with a DID and an API key of its own; where it holds its key itself, the API key is a token bound to that.
    ///
    /// # Errors
    /// [`Error::Conflict`] where the name or the key is taken, or too many were made; [`Error::Member`].
    pub async fn add(self, owner: &Owner<impl Permits<Admin>>, new: NewAgent) -> Result<KeyedAgent, Error> {
        let gateway = self.0.clone();
        if let Some(member) = new.capacities.out_of_bounds() {
            return Err(Error::Member(member, MemberError::Capacity));
        }
        let (did, seed) = match new.did.clone() {
            Some(did) if did.method() == "key" && did.check_method().is_ok() && did != gateway.principal => {
                (did, None)
            }
            Some(_) => return Err(Error::Member("did", MemberError::OwnKey)),
            None => {
                let seed = Signer::seed(&*self.0.random);
                (Signer::did_key(&seed).map_err(Corrupt::Key)?.did().clone(), Some(seed))
            }
        };
        let made = Terms {
            role: new.role,
            capacities: Capacities::default().changed(new.capacities),
            pinned_namespaces: Vec::new(),
        };
        let api_key = new_key(&*self.0.random);
        let key = api_key.clone();
        let agent = self
            .0
            .commit_as(owner, move |w| {
                let mut known: Vec<_> = AGENTS.scan(&gateway.store).collect::<Result<_, _>>()?;
                for did in AGENTS.written(w.tx) {
                    known.retain(|(known, _)| *known != did);
                    known.extend(AGENTS.get(w.tx, &did)?.map(|agent| (did, agent)));
                }
                if known.iter().any(|(_, agent)| agent.is_there() && agent.name == new.name) {
                    return Err(Error::Conflict(Conflict::AgentName));
                }
                if known.len() >= MAX_AGENTS {
                    return Err(Error::Conflict(Conflict::ManyAgents));
                }
                if known.iter().any(|(known, _)| *known == did) {
                    return Err(Error::Conflict(Conflict::AgentKey));
                }
                w.gives_access()?;
                let mut agent = match seed {
                    Some(seed) => StoredAgent::new(new.name, new.permission, seed, w.now),
                    None => StoredAgent::with_own_key(new.name, new.permission, w.now),
                };
                agent.key = Some((agent.hash_of(&key), w.now));
                AGENTS.put(w.tx, &did, &agent)?;
                TERMS.put(w.tx, &did, &made)?;
                Ok(agent.info(did, &made))
            })
            .await?;
        Ok(KeyedAgent { agent, api_key: api_key.to_string() })
    }

    /// Every agent, oldest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn list(self, _: &Owner<impl Permits<Admin>>) -> Result<AgentList, Error> {
        let all = agents::all(&self.0.store)?;
        let info = |(did, agent): (Did, StoredAgent)| {
            let terms = terms(&self.0.store, &did)?;
            Ok(agent.info(did, &terms))
        };
        let mut agents: Vec<AgentInfo> = all.into_iter().map(info).collect::<Result<_, Error>>()?;
        agents.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        Ok(AgentList { agents })
    }

    /// An agent.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn show(self, _: &Owner<impl Permits<Admin>>, agent: &AgentRef) -> Result<AgentInfo, Error> {
        let (did, agent) = agents::find(&self.0.store, agent)?;
        let terms = terms(&self.0.store, &did)?;
        Ok(agent.info(did, &terms))
    }

    /// Sets what an agent may do, and its terms.
    ///
    /// # Errors
    /// As [`Agents::rotate`]; [`Error::Member`].
    pub async fn set(
        self,
        owner: &Owner<impl Permits<Admin>>,
        agent: &AgentRef,
        change: AgentChange,
    ) -> Result<AgentInfo, Error> {
        if let Some(member) = change.capacities.out_of_bounds() {
            return Err(Error::Member(member, MemberError::Capacity));
        }
        let sets_pinned = change.pinned_namespaces.is_some();
        let pinned = change.pinned_namespaces.unwrap_or_default();
        if pinned.len() > MAX_PINNED_NAMESPACES {
            let most = MemberError::TooMany { most: MAX_PINNED_NAMESPACES, of: "namespaces" };
            return Err(Error::Member("pinned_namespaces", most));
        }
        let is_name = |name: &String| short_text(name).is_ok();
        if !pinned.iter().all(is_name) {
            return Err(Error::Member("pinned_namespaces", MemberError::Words(MAX_SHORT)));
        }
        self.change(owner, agent, move |agent, terms, _| {
            agent.permission = change.permission.unwrap_or(agent.permission);
            terms.role = change.role.unwrap_or(terms.role);
            terms.capacities = terms.capacities.changed(change.capacities);
            if sets_pinned {
                terms.pinned_namespaces = pinned;
            }
        })
        .await
    }

    /// Gives an agent another API key; the one before ends with the commit.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] where it was removed.
    pub async fn rotate(
        self,
        owner: &Owner<impl Permits<Admin>>,
        agent: &AgentRef,
    ) -> Result<KeyedAgent, Error> {
        let api_key = new_key(&*self.0.random);
        let key = api_key.clone();
        let given =
            self.change(owner, agent, move |agent, _, now| agent.key = Some((agent.hash_of(&key), now)));
        let agent = given.await?;
        Ok(KeyedAgent { agent, api_key: api_key.to_string() })
    }

    /// Ends an agent with its API key. What it wrote stays.
    ///
    /// # Errors
    /// As [`Agents::rotate`].
    pub async fn remove(
        self,
        owner: &Owner<impl Permits<Admin>>,
        agent: &AgentRef,
    ) -> Result<AgentInfo, Error> {
        let removed = self.change(owner, agent, |agent, _, now| agent.remove(now)).await?;
        self.0.corpora.remove(&removed.did);
        // Its links are told nobody any more.
        self.0.brains.clear();
        Ok(removed)
    }

    async fn change(
        self,
        owner: &Owner<impl Permits<Admin>>,
        agent: &AgentRef,
        change: impl FnOnce(&mut StoredAgent, &mut Terms, oap_identity::Timestamp) + Send + 'static,
    ) -> Result<AgentInfo, Error> {
        let (did, _) = agents::find(&self.0.store, agent)?;
        self.0
            .commit_as(owner, move |w| {
                // What ends a credential is not held up by a full disk.
                w.tx.use_reserve();
                let mut agent = AGENTS.get(w.tx, &did)?.ok_or(Error::NotFound)?;
                if !agent.is_there() {
                    return Err(Error::Conflict(Conflict::AgentRemoved));
                }
                let before = terms(w.tx, &did)?;
                let mut terms = before.clone();
                let key = agent.key;
                change(&mut agent, &mut terms, w.now);
                if agent.key.is_some() && agent.key != key {
                    w.gives_access()?;
                }
                AGENTS.put(w.tx, &did, &agent)?;
                if terms != before {
                    TERMS.put(w.tx, &did, &terms)?;
                }
                if !agent.is_there() {
                    w.ended.agents.push(did.clone());
                }
                Ok(agent.info(did, &terms))
            })
            .await
    }

    /// Whether any agent was not removed.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn are_there(self) -> Result<bool, Error> {
        Ok(agents::all(&self.0.store)?.iter().any(|(_, agent)| agent.is_there()))
    }

    /// What each agent that was not removed may do, by name, for the owner to read.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn rights(self) -> Result<Vec<String>, Error> {
        let mut rights = Vec::new();
        for (did, agent) in agents::all(&self.0.store)?.into_iter().filter(|(_, agent)| agent.is_there()) {
            let role = terms(&self.0.store, &did)?.role;
            rights.push(format!("{} ({}, {})", agent.name, agent.permission.as_str(), role.as_str()));
        }
        rights.sort_unstable();
        Ok(rights)
    }

    /// Removes again, in a restored gateway, the agents that were removed since. How many were there.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) async fn remove_again(self, removed: BTreeSet<Did>) -> Result<usize, Error> {
        self.0
            .commit_own(move |w| {
                let mut ended = 0;
                for did in removed {
                    let Some(mut agent) = AGENTS.get(w.tx, &did)?.filter(StoredAgent::is_there) else {
                        continue;
                    };
                    agent.remove(w.now);
                    AGENTS.put(w.tx, &did, &agent)?;
                    w.ended.agents.push(did);
                    ended += 1;
                }
                Ok(ended)
            })
            .await
    }

    /// Ends the API key of every agent: after a restore, those that were ended since the backup are not known. How many had one.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) async fn end_keys(self) -> Result<usize, Error> {
        let gateway = self.0.clone();
        self.0
            .commit_own(move |w| {
                let mut ended = 0;
                for row in AGENTS.scan(&gateway.store) {
                    let (did, mut agent) = row?;
                    if agent.key.take().is_some() {
                        AGENTS.put(w.tx, &did, &agent)?;
                        ended += 1;
                    }
                }
                Ok(ended)
            })
            .await
    }

    /// What an agent was given until a time: by its receipts, the last one first.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Member`].
    pub fn injected(
        self,
        _: &Owner<impl Permits<Admin>>,
        agent: &AgentRef,
        query: &InjectedQuery,
    ) -> Result<InjectedList, Error> {
        let limit = query.limit.unwrap_or(USUAL_INJECTED);
        if !(1..=MAX_INJECTED).contains(&limit) {
            return Err(Error::Member("limit", MemberError::Number { most: MAX_INJECTED, of: "answers" }));
        }
        let (did, agent) = agents::find(&self.0.store, agent)?;
        let (mut answers, mut more) = (Vec::new(), false);
        let of = Range::under(&schema::agent(did.as_str())).descending();
        for key in RECEIPTS_OF.keys(&self.0.store, of) {
            let (_, place) = key?;
            let receipt = Audit(self.0).receipt_at(place)?;
            let is_answer = receipt.agent_did == did.as_str()
                && receipt.action_id.as_deref() == Some(Action::Query.as_str())
                && hands_items(&receipt);
            if !is_answer || query.at.is_some_and(|at| receipt.timestamp > at) {
                continue;
            }
            if query.since.is_some_and(|since| receipt.timestamp < since) {
                break;
            }
            if answers.len() == limit {
                more = true;
                break;
            }
            answers.push(self.injected_by(&receipt)?);
        }
        let terms = terms(&self.0.store, &did)?;
        let grants = self.shown_under(&answers)?;
        Ok(InjectedList { agent: agent.info(did, &terms), answers, grants, more })
    }

    /// The grants of others that answers name, as far as they are in the wallet.
    fn shown_under(self, answers: &[InjectedAnswer]) -> Result<Vec<ShownUnder>, Error> {
        let foreign = answers.iter().flat_map(|answer| &answer.foreign);
        let named: BTreeSet<Hash> =
            foreign.flat_map(|foreign| &foreign.shown_by).map(|via| via.grant).collect();
        let mut grants = Vec::new();
        for grant in named {
            if let Some(received) = WALLET.get(&self.0.store, &grant)? {
                let (_, terms) = received.document()?;
                let granter = received.granter;
                grants.push(ShownUnder { grant, grant_id: terms.grant_id, granter, purpose: terms.purpose });
            }
        }
        Ok(grants)
    }

    fn injected_by(self, receipt: &Receipt) -> Result<InjectedAnswer, Error> {
        let decision = receipt.policy_decisions.first();
        let links = decision.and_then(|decision| decision.more.get("links"));
        let links = links.map(|links| serde_json::from_value(links.clone())).transpose()?;
        let foreign = decision.and_then(|decision| decision.more.get(FOREIGN));
        let foreign = foreign.map(|foreign| serde_json::from_value::<Vec<HandedForeign>>(foreign.clone()));
        let foreign = foreign.transpose()?.unwrap_or_default();
        let is_foreign = |(item, commitment): &(ItemId, Hash)| {
            foreign.iter().any(|other| other.item_id == *item && other.commitment == *commitment)
        };
        let tags = receipt.provenance_tags_out.iter().filter_map(|tag| read_tag(tag));
        let tags = tags.filter(|tag| !is_foreign(tag));
        let items = tags.map(|(item, commitment)| self.handed(item, commitment)).collect::<Result<_, _>>()?;
        Ok(InjectedAnswer {
            receipt_id: receipt.receipt_id,
            at: receipt.timestamp,
            tool: tool_of(receipt).to_owned(),
            items,
            links: links.unwrap_or_default(),
            foreign,
        })
    }

    /// A version that was given, by its commitment: which one it was, and what it said.
    fn handed(self, item_id: ItemId, commitment: Hash) -> Result<Handed, Error> {
        let mut seq = None;
        for link in views::links(&self.0.store, item_id)? {
            let link: Link = serde_json::from_value(link)?;
            if link.event.commits() && link.commitment == commitment {
                seq = Some(link.seq);
            }
        }
        let said = match seq.map(|seq| schema::version(&self.0.store, item_id, seq)) {
            None | Some(Err(Error::NotFound | Error::Store(StoreError::Erased))) => None,
            Some(version) => whole(&version?)?.get("content").and_then(|content| {
                let text = content.get("text").and_then(Value::as_str).map(cut);
                text.or_else(|| content.get("structured").map(|value| cut(&value.to_string())))
            }),
        };
        Ok(Handed { item_id, commitment, version: seq.map(|seq| seq.saturating_add(1)), said })
    }
}

/// The tool whose answer a receipt is of.
fn tool_of(receipt: &Receipt) -> &str {
    let decision = receipt.policy_decisions.first();
    let tool = decision.and_then(|decision| decision.more.get("tool")).and_then(Value::as_str);
    tool.unwrap_or_default()
}

/// Whether an answer handed items on: a link, a compaction and a deletion name items, and show nothing of them;
/// a query that was refused names none.
pub(crate) fn hands_items(receipt: &Receipt) -> bool {
    let tool = tool_of(receipt);
    let is_refusal = receipt.policy_decisions.iter().any(|decision| decision.outcome == Outcome::Block);
    !is_refusal && tool != DELETE && Tool::of(tool).is_none_or(Tool::is_read_only)
}

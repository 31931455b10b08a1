//! The memory tools of the owner's agents (protocol section 11).
//!
//! An answer that hands items on leaves a receipt in the chain `@agents` before it leaves: which agent was given which version
//! of which items. What it rests on is read again in that receipt's transaction, the agent itself among it.

mod again;
pub(crate) mod among;
pub mod asking;
mod believing;
pub(crate) mod compacting;
mod finding;
pub(crate) mod judging;
mod linking;
pub(crate) mod looking;
mod reading;
pub(crate) mod then;
mod writing;

use crate::api::agents::{ToolAnswer, ToolCall};
use crate::error::{Error, MemberError, Unavailable};
use crate::service::{Tools, recall};
use crate::state::agents::Agent;
use crate::state::commits::{AGENTS, Draft, until_it_holds};
use crate::state::edges::EdgePlace;
use crate::state::gateway::blocking;
use crate::state::owner::mark::{Admin, Mark, Read, Write};
use crate::state::policy::policy;
use crate::state::schema::APPROVALS;
use crate::state::tasks::Reach;
use among::ForeignTag;
use looking::Looking;
use oap_agents::arguments::{Diff, Query};
use oap_agents::{Asked, Tool};
use oap_identity::{Hash, ItemId, ReceiptId, Timestamp};
use oap_memory::receipt::{Action, item_tag};
use oap_soundness::trust::Decay;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Most bytes of what the items of one answer say, unless it is one; the rest is left for a narrower question.
pub const MAX_HANDED: usize = 128 << 10;

/// Under what name a receipt has what was handed on of other principals.
pub(crate) const FOREIGN: &str = "foreign";

/// What an answer shows, and rests on.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Every item, and the last link that it has.
    pub items: Vec<(ItemId, u32)>,
    /// The tags of every version.
    pub tags: Vec<String>,
    /// The links that are told of.
    pub links: Vec<EdgePlace>,
    /// The items at the other ends of those, with the last link that each has: they are named, and not shown.
    pub named: Vec<(ItemId, u32)>,
    /// When the first of the items ends.
    pub ends: Option<Timestamp>,
    /// What let the agent read others' entries, where something did.
    pub reach: Option<Reach>,
    /// How what is shown was believed.
    pub decay: Option<Decay>,
    /// What is of other principals.
    pub foreign: Vec<ForeignTag>,
}

/// An answer that no receipt lets out yet.
pub(crate) struct Unhanded {
    answer: ToolAnswer,
    shown: Shown,
}

impl Unhanded {
    fn of<T: Serialize>(structured: &T, text: String, looking: Looking<'_>) -> Result<Self, Error> {
        Ok(Self { answer: ToolAnswer { structured: members(structured)?, text }, shown: looking.handed() })
    }
}

/// An answer as the object that it is.
fn members<T: Serialize>(structured: &T) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(structured)? {
        Value::Object(members) => Ok(members),
        _ => Ok(Map::new()),
    }
}

impl Tools<'_> {
    /// Does what an agent asks of a tool.
    ///
    /// # Errors
    /// [`Error::Arguments`] naming the field; [`Error::Permission`]; [`Error::Unavailable`] where too many look back or ask in SPARQL;
    /// [`Error::NotFound`] of an item that the agent may not see,
    /// as of one that is not there; [`Error::Conflict`].
    pub async fn call(self, agent: &Agent<Read>, call: ToolCall) -> Result<ToolAnswer, Error> {
        let input = Hash::of_canonical(&call.arguments)?;
        let tool = call.tool;
        let asked = tool.ask(call.arguments)?;
        let answer = match asked {
            Asked::Learn(learn) => self.learn(&agent.permitted::<Write>()?, learn).await?,
            Asked::Correct(correct) => self.correct(&agent.permitted::<Write>()?, correct).await?,
            Asked::Forget(forget) => self.forget(&agent.permitted::<Write>()?, forget).await?,
            Asked::Link(link) => self.link(&agent.permitted::<Write>()?, link).await?,
            Asked::Compact(compact) => self.compact(agent, &agent.permitted::<Admin>()?, compact).await?,
            Asked::Recall(recall) if recall.peers => self.recall_among(agent, input, recall).await?,
            Asked::Query(Query { sparql: Some(query), as_of, .. }) => {
                let answer = self.query_sparql(agent, tool.as_str(), input, query, as_of).await;
                answer.map_err(|error| match error {
                    Error::Brain(error) => Error::Member("sparql", MemberError::Sparql(error)),
                    error => error,
                })?
            }
            reads => self.read(agent, tool, input, reads).await?,
        };
        metrics::counter!("oap_tool_calls_total", "tool" => tool.as_str()).increment(1);
        Ok(answer)
    }

    /// What a tool that changes nothing answers; its receipt is durable.
    async fn read(
        self,
        agent: &Agent<Read>,
        tool: Tool,
        input: Hash,
        asked: Asked,
    ) -> Result<ToolAnswer, Error> {
        until_it_holds(|| async {
            let asked = asked.clone();
            // It may read the chain of everything that the agent sees: one agent that looks back again and again holds up nobody else.
            let turn = match &asked {
                Asked::Query(Query { as_of: Some(_), .. }) | Asked::Diff(Diff { as_of: Some(_), .. }) => {
                    Some(self.0.asking.take(agent.did()).await?)
                }
                _ => None,
            };
            let unhanded = self.look(agent, move |looking| {
                let _turn = turn;
                match &asked {
                    Asked::Recall(recall) => looking.recall(recall),
                    Asked::Query(query) => looking.query(query),
                    Asked::Explain(explain) => looking.explain(*explain),
                    Asked::Diff(diff) => looking.diff(diff),
                    Asked::Status(_) => looking.status(),
                    // Those that write have doors of their own.
                    Asked::Learn(_)
                    | Asked::Correct(_)
                    | Asked::Forget(_)
                    | Asked::Link(_)
                    | Asked::Compact(_) => Err(Error::NotFound),
                }
            });
            let Unhanded { answer, shown } = unhanded.await?;
            self.hand(agent, tool.as_str(), input, shown).await?;
            Ok(answer)
        })
        .await
    }

    /// Looks at the owner's memory as an agent, in its turn.
    pub(crate) async fn look<T: Send + 'static>(
        self,
        agent: &Agent<Read>,
        look: impl FnOnce(Looking<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (gateway, looker) = (self.0.clone(), agent.clone());
        let turn = self.0.looking.clone().acquire_owned().await;
        blocking(move || {
            // Until the work is over, whether anybody waits for it still or not.
            let _turn = turn.map_err(|_| Error::Unavailable(Unavailable::Stopping))?;
            look(Looking::new(&gateway, &looker)?)
        })
        .await
    }

    /// Makes the receipt of an answer durable: with it the answer may leave.
    pub(crate) async fn hand(
        self,
        agent: &Agent<Read>,
        tool: &str,
        input: Hash,
        shown: Shown,
    ) -> Result<(), Error> {
        let Shown { items, mut tags, links, named, ends, reach, decay, foreign } = shown;
        tags.extend(foreign.iter().map(|tag| item_tag(tag.item_id, tag.commitment)));
        let mut draft = self.handing(agent, tool, input, tags)?;
        // Their words are an agent's, and their receipts say whose.
        if !links.is_empty() {
            let told: Vec<ReceiptId> = links.iter().map(|(_, link)| *link).collect();
            draft.more.insert("links".to_owned(), json!(told));
        }
        if !foreign.is_empty() {
            draft.more.insert(FOREIGN.to_owned(), serde_json::to_value(&foreign)?);
        }
        let grants: BTreeSet<Hash> =
            foreign.iter().flat_map(|tag| &tag.shown_by).map(|via| via.grant).collect();
        let reader = agent.did().clone();
        self.0
            .record_for(agent.acting(), move |w| {
                reach.iter().try_for_each(|reach| reach.stands(w.tx))?;
                let rests = items.iter().chain(&named);
                rests.into_iter().try_for_each(|(item, last_link)| w.ends_with(*item, *last_link))?;
                w.still_linked(&links)?;
                for grant in &grants {
                    if !recall::holds(w.tx, grant, w.now)? {
                        return Err(Error::Overtaken);
                    }
                }
                items.iter().try_for_each(|(item, _)| w.looked_at(*item, &reader))?;
                if ends.is_some_and(|end| end <= w.now) {
                    return Err(Error::Overtaken);
                }
                if let Some(decay) = decay
                    && policy(w.tx)?.decay != decay
                {
                    return Err(Error::Overtaken);
                }
                Ok((w.receipt(AGENTS, draft)?, ()))
            })
            .await?;
        Ok(())
    }

    /// The receipt of an answer that an agent is given. Its `output_hash` is of the commitments: one of what items say would tell
    /// it, once they are erased, to whoever guesses.
    pub(crate) fn handing<P: Mark>(
        self,
        agent: &Agent<P>,
        tool: &str,
        input: Hash,
        tags: Vec<String>,
    ) -> Result<Draft, Error> {
        let mut draft = self.0.draft(Action::Query, agent.did().as_str());
        draft.rules = ["agent.active", "agent.sight"].map(str::to_owned).to_vec();
        draft.more.insert("tool".to_owned(), json!(tool));
        // One agent may have several clients: which of them it was, and by which yes.
        if let Some(key) = agent.approval() {
            let client = APPROVALS.get(&self.0.store, &key.0)?.map(|stored| stored.client);
            draft.more.insert("consent".to_owned(), json!(key.id()));
            draft.more.extend(client.map(|client| ("client_id".to_owned(), json!(client))));
        }
        draft.input_hash = Some(input);
        draft.output_hash = Some(Hash::of_canonical(&tags)?);
        draft.tags = tags;
        Ok(draft)
    }
}

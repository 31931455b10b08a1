//! SPARQL over what an agent sees (docs/brain.md).

use super::looking::{Looking, VisibleItem};
use super::then::{Said, Then, author_of};
use super::{MAX_HANDED, Shown, ToolAnswer, members};
use crate::error::Error;
use crate::service::Tools;
use crate::state::agents::Agent;
use crate::state::brains::{Brain, Rests};
use crate::state::clock::WatchedClock;
use crate::state::commits::{AGENTS, until_it_holds};
use crate::state::edges;
use crate::state::gateway::blocking;
use crate::state::owner::mark::Read;
use crate::state::refusals::Counted;
use oap_agents::Level;
use oap_agents::answers::Queried;
use oap_agents::arguments::{MAX_SPARQL, topic_of};
use oap_brain::accept::{Format, negotiate};
use oap_brain::bounds::{MAX_ANSWER, MAX_QUERY, MAX_RECORDS};
use oap_brain::record::{Former, Link, Target};
use oap_brain::{Bounds, Dataset, Error as Refused, Form, Graph, Record, Request, Wanted, evaluate, write};
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::receipt::{Outcome, item_tag};
use oap_memory::{Head, Status};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Longest time of one query, once its graph is there.
pub const MAX_TIME: Duration = Duration::from_secs(5);
/// Most versions and links that one answer may have read: its receipt names each.
pub const MAX_READ: usize = 1000;

/// What receipts call it.
const TOOL: &str = "sparql";

// What the tool takes, the room takes.
const _: () = assert!(MAX_SPARQL <= MAX_QUERY);

/// A query that was read once: nothing is wrong with it that could be told without the memory.
#[derive(Debug, Clone)]
pub(crate) struct Sparql {
    query: String,
    /// What its relative IRIs are of.
    base: Option<String>,
    dataset: Dataset,
    form: Form,
    format: Format,
    /// Most bytes of its answer.
    most: usize,
    /// The time that is looked back to.
    as_of: Option<Timestamp>,
}

/// An answer that was written out, and of how many records nothing is told any more.
type Evaluated = (Vec<u8>, usize);

/// A request of the SPARQL Protocol, as it came.
#[derive(Debug)]
pub(crate) struct SparqlRequest {
    pub method: String,
    /// What stands behind the `?` of its address.
    pub parameters: String,
    pub content_type: Option<String>,
    pub accept: Option<String>,
    pub body: Vec<u8>,
    /// The address as the gateway publishes it.
    pub endpoint: String,
}

/// What such a request is answered.
#[derive(Debug)]
pub(crate) struct SparqlAnswer {
    pub media_type: &'static str,
    pub body: Vec<u8>,
}

impl Sparql {
    /// Of the tool: what is answered is rows, or yes and no. What could be wrong with the text alone is refused here.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn of_tool(query: String, as_of: Option<Timestamp>) -> Result<Self, Refused> {
        let read = oap_brain::Asked::read(&query, "")?;
        read.fetches_nothing()?;
        let form = read.form();
        if form == Form::Triples {
            return Err(Refused::Triples);
        }
        let format = negotiate(None, form)?;
        let (base, dataset, most) = (None, Dataset::default(), MAX_HANDED);
        Ok(Self { query, base, dataset, form, format, most, as_of })
    }

    fn of_request(
        endpoint: &str,
        query: String,
        dataset: Dataset,
        accept: Option<&str>,
    ) -> Result<Self, Error> {
        let form = oap_brain::Asked::read_at(endpoint, &query, "")?.form();
        let format = negotiate(accept, form)?;
        let (base, most) = (Some(endpoint.to_owned()), MAX_ANSWER);
        Ok(Self { query, base, dataset, form, format, most, as_of: None })
    }

    /// Asks a graph: what it answers, written out, and the records that were read for it, by their places. `now` is what `NOW()` says;
    /// the time of the query is over [`MAX_TIME`] from now by this clock.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn over(
        &self,
        graph: &Graph,
        now: Timestamp,
        clock: Arc<WatchedClock>,
    ) -> Result<(Vec<u8>, Vec<usize>), Refused> {
        let end = clock.now().plus(MAX_TIME);
        let bounds = Bounds { answer: self.most, ..Bounds::until(move || clock.now() >= end) };
        let now = now.to_string();
        let query = match &self.base {
            Some(base) => oap_brain::Asked::read_at(base, &self.query, &now)?,
            None => oap_brain::Asked::read(&self.query, &now)?,
        };
        let found = evaluate(graph, &query, &self.dataset, &bounds)?;
        Ok((write::write(&found.outcome, self.format, self.most)?, found.read))
    }

    /// The hash of what is asked.
    fn input(&self) -> Result<Hash, Error> {
        let names = |graphs: &[_]| graphs.iter().map(ToString::to_string).collect::<Vec<String>>();
        let Dataset { default, named } = &self.dataset;
        let mut asked = json!({"query": self.query, "default": names(default), "named": names(named)});
        if let Some(at) = self.as_of {
            asked["as_of"] = json!(at);
        }
        Ok(Hash::of_canonical(&asked)?)
    }
}

impl Tools<'_> {
    /// Answers a request of the SPARQL Protocol.
    ///
    /// # Errors
    /// [`Error::Brain`]; those of [`Tools::call`]; [`Error::Unavailable`] where too many queries are evaluated.
    pub(crate) async fn sparql(
        self,
        agent: &Agent<Read>,
        asked: SparqlRequest,
    ) -> Result<SparqlAnswer, Error> {
        let input =
            Hash::of(&[asked.parameters.as_bytes(), b"\n".as_slice(), asked.body.as_slice()].concat());
        let answer = self.answered(agent, asked).await;
        self.told_if_refused(agent, TOOL, input, answer).await
    }

    async fn answered(self, agent: &Agent<Read>, asked: SparqlRequest) -> Result<SparqlAnswer, Error> {
        let read = blocking(move || {
            let SparqlRequest { method, parameters, content_type, accept, body, endpoint } = &asked;
            let content_type = content_type.as_deref();
            let request = Request { method, parameters, content_type, body };
            match request.read()? {
                Wanted::Answer { query, dataset } => {
                    Ok(Ok(Sparql::of_request(endpoint, query, dataset, accept.as_deref())?))
                }
                // It says the same to everybody, and nothing of the memory.
                Wanted::Description => {
                    let (media_type, body) = oap_brain::describe(endpoint, accept.as_deref())?;
                    Ok(Err(SparqlAnswer { media_type, body }))
                }
            }
        });
        let asked = match read.await? {
            Ok(asked) => asked,
            Err(description) => return Ok(description),
        };
        let media_type = asked.format.media_type();
        let (body, _) = self.evaluated(agent, TOOL, asked).await?;
        Ok(SparqlAnswer { media_type, body })
    }

    /// Answers `memory_query` with `sparql`.
    ///
    /// # Errors
    /// As [`Tools::sparql`].
    pub(super) async fn query_sparql(
        self,
        agent: &Agent<Read>,
        tool: &str,
        input: Hash,
        query: String,
        as_of: Option<Timestamp>,
    ) -> Result<ToolAnswer, Error> {
        let answer = self.rows(agent, tool, query, as_of).await;
        self.told_if_refused(agent, tool, input, answer).await
    }

    /// What was answered. A query that was refused leaves a receipt, which has the hash of what was asked and nothing of the memory: the first
    /// ones of an agent in a minute.
    async fn told_if_refused<T>(
        self,
        agent: &Agent<Read>,
        tool: &str,
        input: Hash,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        if !matches!(answer, Err(Error::Brain(_))) {
            return answer;
        }
        let who = Hash::of(agent.did().as_str().as_bytes());
        if self.0.refusals.admit(Counted::Refusal, who, self.0.clock.now()) {
            let mut draft = self.handing(agent, tool, input, Vec::new())?;
            draft.outcome = Outcome::Block;
            draft.rules = vec!["brain.refused".to_owned()];
            draft.output_hash = None;
            self.0.record_for(agent.acting(), move |w| Ok((w.receipt(AGENTS, draft)?, ()))).await?;
        }
        answer
    }

    async fn rows(
        self,
        agent: &Agent<Read>,
        tool: &str,
        query: String,
        as_of: Option<Timestamp>,
    ) -> Result<ToolAnswer, Error> {
        let asked = blocking(move || Sparql::of_tool(query, as_of).map_err(Error::from)).await?;
        let is_boolean = asked.form == Form::Boolean;
        let (body, not_kept) = self.evaluated(agent, tool, asked).await?;
        let found: Map<String, Value> = serde_json::from_slice(&body)?;
        let rows = found.get("results").and_then(|results| results.get("bindings")?.as_array());
        let is_so = found.get("boolean").and_then(Value::as_bool) == Some(true);
        let matched = if is_boolean { usize::from(is_so) } else { rows.map_or(0, Vec::len) };
        let (facts, sparql) = (Vec::new(), Some(found));
        let queried = Queried { facts, matched, next: None, sparql, as_of, not_kept };
        Ok(ToolAnswer { structured: members(&queried)?, text: queried.text() })
    }

    /// The answer to a query, written out; its receipt is durable, and names whatever was read for it.
    async fn evaluated(self, agent: &Agent<Read>, tool: &str, asked: Sparql) -> Result<Evaluated, Error> {
        let input = asked.input()?;
        until_it_holds(|| async {
            let (gateway, looker, asked) = (self.0.clone(), agent.clone(), asked.clone());
            let turn = self.0.asking.take(agent.did()).await?;
            let (answer, shown) = blocking(move || {
                // Until the work is over, whether anybody waits for it still or not.
                let _turn = turn;
                Looking::new(&gateway, &looker)?.sparql(&asked)
            })
            .await?;
            self.hand(agent, tool, input, shown).await?;
            Ok(answer)
        })
        .await
    }
}

impl Brain {
    /// What an answer shows, and rests on, that read of these records.
    fn shown(&self, read: &[usize]) -> Result<Shown, Error> {
        let mut shown = Shown { ends: self.ends, ..Shown::default() };
        for record in read.iter().filter_map(|at| self.records.get(*at)) {
            shown.items.push((record.item, record.last_link));
            shown.tags.extend_from_slice(&record.tags);
            shown.links.extend_from_slice(&record.links);
            shown.named.extend_from_slice(&record.named);
            if shown.tags.len() + shown.links.len() > MAX_READ {
                return Err(Refused::ReadMuch(MAX_READ).into());
            }
        }
        Ok(shown)
    }
}

impl Looking<'_> {
    /// Evaluates a query over what the agent sees.
    fn sparql(self, asked: &Sparql) -> Result<(Evaluated, Shown), Error> {
        let (brain, not_kept) = match asked.as_of {
            None => (self.gateway.brains.of(self.agent, self.policy.decay, self.now, || self.brain())?, 0),
            // Of a time that nobody asks for again, perhaps: it is not kept.
            Some(at) => {
                let (brain, not_kept) = self.brain_then(at)?;
                (Arc::new(brain), not_kept)
            }
        };
        let (answer, read) = asked.over(&brain.graph, self.now, self.gateway.clock.clone())?;
        let shown = Shown { decay: Some(self.policy.decay), ..brain.shown(&read)? };
        Ok(((answer, not_kept), shown))
    }

    /// Everything that the agent sees, and what it took back itself, as a graph.
    fn brain(&self) -> Result<Brain, Error> {
        let sight = self.agent.sight();
        let mut heads = self.gateway.heads.all();
        heads.retain(|head| {
            self.is_seen(head) || (head.status == Status::Retracted && sight.wrote(head) && sight.sees(head))
        });
        if heads.len() > MAX_RECORDS {
            return Err(Refused::MuchRemembered.into());
        }
        let (mut records, mut rests, mut ends) = (Vec::new(), Vec::new(), None);
        for head in heads {
            let Some(item) = self.seen(head)? else { continue };
            let (record, rest) = self.record(&item, None)?;
            if record.retracted_at.is_none() {
                ends = ends.into_iter().chain(self.changes_at(&item)?).min();
            }
            records.push(record);
            rests.push(rest);
        }
        Ok(Brain { graph: Graph::of(&records)?, records: rests, ends })
    }

    /// The same as it was at a time: what the agent may look back on; and of how many records nothing is told any more.
    fn brain_then(&self, at: Timestamp) -> Result<(Brain, usize), Error> {
        self.may_look_back(at)?;
        let heads = self.seen_or_taken_back();
        if heads.len() > MAX_RECORDS {
            return Err(Refused::MuchRemembered.into());
        }
        let (mut records, mut rests, mut ends, mut not_kept) = (Vec::new(), Vec::new(), None, 0);
        for head in heads {
            let said = match self.then(&head, at)? {
                Then::Said(said) => said,
                Then::Absent => continue,
                Then::NotKept => {
                    not_kept += 1;
                    continue;
                }
            };
            let own = self.agent.sight().wrote(&head);
            let is_told = if said.retracted_at.is_some() { own } else { self.was_told(&said, at) };
            if !is_told {
                continue;
            }
            let (record, rest) = self.record(&said.seen, Some((&said, at)))?;
            ends = ends.into_iter().chain(self.end_of_head(&head)).min();
            records.push(record);
            rests.push(rest);
        }
        Ok((Brain { graph: Graph::of(&records)?, records: rests, ends }, not_kept))
    }

    /// The IRI of an item, or its id where the owner gave the graph no name.
    fn iri_of(&self, item: ItemId) -> String {
        let iri = self.gateway.config.brain_iri.as_ref();
        iri.map_or_else(|| item.to_string(), |iri| iri.fact(item))
    }

    /// An item as a record, as it is or as it was, and what an answer rests on that reads it.
    fn record(&self, item: &VisibleItem, then: Option<(&Said, Timestamp)>) -> Result<(Record, Rests), Error> {
        let head = &item.head;
        let mut rests = Rests {
            item: head.item_id,
            last_link: head.seq,
            tags: vec![item_tag(head.item_id, item.commitment())],
            links: Vec::new(),
            named: Vec::new(),
        };
        let before = then.map(|_| head.version_seq);
        let corrections = self.formers(head, &mut rests, before)?;
        // Versions that are not kept any more say no more when they ended.
        let last = head.replaced.iter().rev().find(|(seq, _)| before.is_none_or(|before| *seq < before));
        let said_at = match last {
            Some((_, replaced_at)) => Some(replaced_at),
            None => (head.version_seq == 0).then_some(&head.captured_at),
        };
        let is_retracted = head.status == Status::Retracted;
        // Links are told where both ends are in force.
        let now = then.map_or(head, |(said, _)| &said.now);
        let links = if is_retracted || now.status == Status::Retracted {
            Vec::new()
        } else {
            self.links_from(now, &mut rests, then.map(|(_, at)| at))?
        };
        let author = match then {
            None => Some(head.meta.author.to_string()),
            Some((said, _)) => self.wrote_then(said)?.map(|author| author.to_string()),
        };
        let structured = || item.content("structured").map(Value::to_string);
        let record = Record {
            id: self.iri_of(head.item_id),
            content: Some(item.text().map(str::to_owned).or_else(structured).unwrap_or_default()),
            topic: head.labels.iter().find_map(|label| topic_of(label)).map(str::to_owned),
            tags: head.labels.iter().filter(|label| topic_of(label).is_none()).cloned().collect(),
            confidence: Some(
                then.map_or_else(|| self.confidence(head), |(said, at)| self.confidence_then(said, at)),
            ),
            level: Some(
                Level::of(&item.whole, *head.meta.author == self.gateway.principal).as_str().to_owned(),
            ),
            author,
            source: item.source().map(|source| source.reference.unwrap_or(source.sort)),
            learned_at: Some(head.captured_at.to_string()),
            said_at: said_at.map(ToString::to_string),
            version: Some(head.version_seq.saturating_add(1)),
            corrections,
            retracted_at: head.ended_at.filter(|_| is_retracted).map(|at| at.to_string()),
            links,
            human_verified: Some(head.meta.human_verified),
            scope: Some(head.meta.visibility.as_str().to_owned()),
        };
        Ok((record, rests))
    }

    /// The former versions that are kept and told ([`Looking::former`]), the oldest first; those before that link, where one is named.
    fn formers(&self, head: &Head, rests: &mut Rests, before: Option<u32>) -> Result<Vec<Former>, Error> {
        let mut formers = Vec::new();
        let mut ended = None;
        for (seq, replaced_at) in &head.replaced {
            let first = (*seq == 0).then_some(&head.captured_at);
            let learned_at = ended.replace(replaced_at).or(first).map(ToString::to_string);
            if before.is_some_and(|before| *seq >= before) {
                continue;
            }
            let Some((commitment, says)) = self.former(head, *seq)? else { continue };
            let content = |member: &str| says.get("content").and_then(|content| content.get(member));
            let text = content("text").and_then(Value::as_str).map(str::to_owned);
            let text = text.or_else(|| content("structured").map(Value::to_string));
            let (owner, store) = (&self.gateway.principal, &self.gateway.store);
            let author = author_of(store, owner, head.item_id, *seq, &says)?;
            rests.tags.push(item_tag(head.item_id, commitment));
            formers.push(Former {
                version: seq.saturating_add(1),
                content: text.unwrap_or_default(),
                author: author.map(|author| author.to_string()),
                learned_at,
                corrected_at: Some(replaced_at.to_string()),
            });
        }
        Ok(formers)
    }

    /// The links that begin at an item which is in force, as the tools tell them: by whoever's word the item is, of agents that are there, to
    /// what the agent sees; of a time, those that were there by then.
    fn links_from(&self, head: &Head, rests: &mut Rests, by: Option<Timestamp>) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        for place in edges::places(&self.gateway.store, head.item_id) {
            let place = place?;
            if place.0 != head.item_id {
                continue;
            }
            let Some(edge) = edges::edge(&self.gateway.store, place)? else { continue };
            if edge.author != *head.meta.author
                || !super::linking::is_there(&self.gateway.store, &edge.author)?
            {
                continue;
            }
            if by.is_some_and(|by| edge.at > by) {
                continue;
            }
            let to = match edge.other() {
                None => Target::Elsewhere(edge.to),
                Some(other) => match self.in_sight(other) {
                    Some(head) => {
                        rests.named.push((head.item_id, head.seq));
                        Target::Record(self.iri_of(other))
                    }
                    None => continue,
                },
            };
            rests.links.push(place);
            let (author, linked_at) = (Some(edge.author.to_string()), Some(edge.at.to_string()));
            links.push(Link { relationship: edge.relationship, to, author, linked_at });
        }
        Ok(links)
    }
}

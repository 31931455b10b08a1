//! SPARQL over what an agent sees (docs/brain.md).

use super::looking::{Looking, VisibleItem};
use super::{MAX_HANDED, Shown, ToolAnswer, members};
use crate::error::Error;
use crate::service::Tools;
use crate::state::agents::Agent;
use crate::state::brains::{Brain, Rests};
use crate::state::commits::until_it_holds;
use crate::state::edges;
use crate::state::gateway::blocking;
use crate::state::owner::mark::Read;
use oap_agents::Level;
use oap_agents::answers::Queried;
use oap_agents::arguments::{MAX_SPARQL, topic_of};
use oap_brain::accept::{Format, negotiate};
use oap_brain::bounds::{MAX_ANSWER, MAX_QUERY, MAX_RECORDS};
use oap_brain::record::{Former, Link, Target};
use oap_brain::{Bounds, Dataset, Error as Refused, Form, Graph, Record, Request, Wanted, evaluate, write};
use oap_identity::Hash;
use oap_memory::receipt::item_tag;
use oap_memory::{Head, Status};
use serde_json::{Map, Value, json};
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
}

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
    /// Of the tool: what is answered is rows, or yes and no.
    fn of_tool(query: String) -> Result<Self, Error> {
        let form = oap_brain::Asked::read(&query, "")?.form();
        if form == Form::Triples {
            return Err(Refused::Triples.into());
        }
        let format = negotiate(None, form)?;
        Ok(Self { query, base: None, dataset: Dataset::default(), form, format, most: MAX_HANDED })
    }

    fn of_request(
        endpoint: &str,
        query: String,
        dataset: Dataset,
        accept: Option<&str>,
    ) -> Result<Self, Error> {
        let form = oap_brain::Asked::read_at(endpoint, &query, "")?.form();
        let format = negotiate(accept, form)?;
        Ok(Self { query, base: Some(endpoint.to_owned()), dataset, form, format, most: MAX_ANSWER })
    }

    /// The hash of what is asked.
    fn input(&self) -> Result<Hash, Error> {
        let names = |graphs: &[_]| graphs.iter().map(ToString::to_string).collect::<Vec<String>>();
        let Dataset { default, named } = &self.dataset;
        let asked = json!({"query": self.query, "default": names(default), "named": names(named)});
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
        Ok(SparqlAnswer { media_type, body: self.evaluated(agent, TOOL, asked).await? })
    }

    /// Answers `memory_query` with `sparql`.
    ///
    /// # Errors
    /// As [`Tools::sparql`].
    pub(super) async fn query_sparql(
        self,
        agent: &Agent<Read>,
        tool: &str,
        query: String,
    ) -> Result<ToolAnswer, Error> {
        let asked = blocking(move || Sparql::of_tool(query)).await?;
        let is_boolean = asked.form == Form::Boolean;
        let body = self.evaluated(agent, tool, asked).await?;
        let found: Map<String, Value> = serde_json::from_slice(&body)?;
        let rows = found.get("results").and_then(|results| results.get("bindings")?.as_array());
        let is_so = found.get("boolean").and_then(Value::as_bool) == Some(true);
        let matched = if is_boolean { usize::from(is_so) } else { rows.map_or(0, Vec::len) };
        let queried = Queried { facts: Vec::new(), matched, next: None, sparql: Some(found) };
        Ok(ToolAnswer { structured: members(&queried)?, text: queried.text() })
    }

    /// The answer to a query, written out; its receipt is durable, and names whatever was read for it.
    async fn evaluated(self, agent: &Agent<Read>, tool: &str, asked: Sparql) -> Result<Vec<u8>, Error> {
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
    fn sparql(self, asked: &Sparql) -> Result<(Vec<u8>, Shown), Error> {
        let brain = self.gateway.brains.of(self.agent, self.policy.decay, self.now, || self.brain())?;
        let clock = self.gateway.clock.clone();
        let end = clock.now().plus(MAX_TIME);
        let bounds = Bounds { answer: asked.most, ..Bounds::until(move || clock.now() >= end) };
        let now = self.now.to_string();
        let query = match &asked.base {
            Some(base) => oap_brain::Asked::read_at(base, &asked.query, &now)?,
            None => oap_brain::Asked::read(&asked.query, &now)?,
        };
        let found = evaluate(&brain.graph, &query, &asked.dataset, &bounds)?;
        let answer = write::write(&found.outcome, asked.format, asked.most)?;
        Ok((answer, Shown { decay: Some(self.policy.decay), ..brain.shown(&found.read)? }))
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
            let (record, rest) = self.record(&item)?;
            if record.retracted_at.is_none() {
                ends = ends.into_iter().chain(self.changes_at(&item)?).min();
            }
            records.push(record);
            rests.push(rest);
        }
        Ok(Brain { graph: Graph::of(&records)?, records: rests, ends })
    }

    /// An item as a record, and what an answer rests on that reads it.
    fn record(&self, item: &VisibleItem) -> Result<(Record, Rests), Error> {
        let head = &item.head;
        let mut rests = Rests {
            item: head.item_id,
            last_link: head.seq,
            tags: vec![item_tag(head.item_id, item.commitment())],
            links: Vec::new(),
            named: Vec::new(),
        };
        let corrections = self.formers(head, &mut rests)?;
        let is_retracted = head.status == Status::Retracted;
        // Links are told where both ends are in force.
        let links = if is_retracted { Vec::new() } else { self.links_from(head, &mut rests)? };
        let structured = || item.content("structured").map(Value::to_string);
        let record = Record {
            id: head.item_id.to_string(),
            content: item.text().map(str::to_owned).or_else(structured).unwrap_or_default(),
            topic: head.labels.iter().find_map(|label| topic_of(label)).map(str::to_owned),
            tags: head.labels.iter().filter(|label| topic_of(label).is_none()).cloned().collect(),
            confidence: Some(self.confidence(head)),
            level: Some(
                Level::of(&item.whole, *head.meta.author == self.gateway.principal).as_str().to_owned(),
            ),
            author: Some(head.meta.author.to_string()),
            source: item.source().map(|source| source.reference.unwrap_or(source.sort)),
            learned_at: Some(head.captured_at.to_string()),
            version: head.version_seq.saturating_add(1),
            corrections,
            retracted_at: head.ended_at.filter(|_| is_retracted).map(|at| at.to_string()),
            links,
            human_verified: head.meta.human_verified,
            scope: Some(head.meta.visibility.as_str().to_owned()),
        };
        Ok((record, rests))
    }

    /// The former versions that are kept and told ([`Looking::former`]), the oldest first.
    fn formers(&self, head: &Head, rests: &mut Rests) -> Result<Vec<Former>, Error> {
        let mut formers = Vec::new();
        for (seq, replaced_at) in &head.replaced {
            let Some((commitment, says)) = self.former(head, *seq)? else { continue };
            let content = |member: &str| says.get("content").and_then(|content| content.get(member));
            let text = content("text").and_then(Value::as_str).map(str::to_owned);
            let text = text.or_else(|| content("structured").map(Value::to_string));
            rests.tags.push(item_tag(head.item_id, commitment));
            formers.push(Former {
                version: seq.saturating_add(1),
                content: text.unwrap_or_default(),
                author: None,
                learned_at: None,
                corrected_at: Some(replaced_at.to_string()),
            });
        }
        Ok(formers)
    }

    /// The links that begin at an item which is in force, as the tools tell them: by whoever's word the item is, of agents that are there, to
    /// what the agent sees.
    fn links_from(&self, head: &Head, rests: &mut Rests) -> Result<Vec<Link>, Error> {
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
            let to = match edge.other() {
                None => Target::Elsewhere(edge.to),
                Some(other) => match self.in_sight(other) {
                    Some(head) => {
                        rests.named.push((head.item_id, head.seq));
                        Target::Record(other.to_string())
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

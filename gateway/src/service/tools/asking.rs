//! SPARQL over what an agent sees (docs/brain.md).
//!
//! NOT COMPILED, and no module of the gateway yet: docs/brain.md, "What the gateway still needs", says what makes it one.

use super::Shown;
use super::looking::{Looking, VisibleItem};
use crate::error::Error;
use crate::service::Tools;
use crate::service::items::whole;
use crate::state::agents::Agent;
use crate::state::commits::until_it_holds;
use crate::state::edges::{self, EdgePlace};
use crate::state::owner::mark::Read;
use crate::state::schema;
use oap_agents::Level;
use oap_agents::arguments::topic_of;
use oap_brain::record::{Former, Link, Target};
use oap_brain::{Answer, Bounds, Graph, Record, Request, Setting, respond};
use oap_identity::{Hash, ItemId};
use oap_memory::item::Sensitivity;
use oap_memory::{Head, Status};
use oap_store::StoreError;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Longest time of one query.
pub const MAX_TIME: Duration = Duration::from_secs(5);

/// What the receipts call it.
const TOOL: &str = "sparql";

/// A request of the SPARQL Protocol, as it came.
#[derive(Debug, Clone)]
pub(crate) struct SparqlRequest {
    pub method: String,
    pub parameters: String,
    pub content_type: Option<String>,
    pub accept: Option<String>,
    pub body: Vec<u8>,
    /// The address as the gateway publishes it.
    pub endpoint: String,
}

impl SparqlRequest {
    fn as_request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            parameters: &self.parameters,
            content_type: self.content_type.as_deref(),
            body: &self.body,
        }
    }
}

/// A record, and what a receipt has to name where the record is read.
struct Named {
    item: VisibleItem,
    formers: Vec<Hash>,
    links: Vec<(EdgePlace, Option<Arc<Head>>)>,
}

impl Tools<'_> {
    /// Answers a request; its receipt is durable, and names whatever was read for it.
    ///
    /// # Errors
    /// [`Error::Brain`]; those of [`Tools::call`].
    pub(crate) async fn sparql(self, agent: &Agent<Read>, asked: SparqlRequest) -> Result<Answer, Error> {
        // What is wrong with the request is told before anything is opened.
        let input = match asked.as_request().read()? {
            oap_brain::Wanted::Description => json!({"description": true}),
            oap_brain::Wanted::Answer { query, dataset } => {
                oap_brain::Asked::read(&query, "")?;
                let names = |graphs: &[_]| graphs.iter().map(ToString::to_string).collect::<Vec<String>>();
                json!({"query": query, "default": names(&dataset.default), "named": names(&dataset.named)})
            }
        };
        let input = Hash::of_canonical(&input)?;
        until_it_holds(|| async {
            let asked = asked.clone();
            let (answer, shown) = self.look(agent, move |looking| looking.sparql(&asked)).await?;
            self.hand(agent, TOOL, input, shown).await?;
            Ok(answer)
        })
        .await
    }
}

impl Looking<'_> {
    /// Answers a request of the SPARQL Protocol over what the agent sees.
    pub fn sparql(mut self, asked: &SparqlRequest) -> Result<(Answer, Shown), Error> {
        let (records, named) = self.records()?;
        let graph = Graph::of(&records)?;
        let (clock, end) = (self.gateway.clock.clone(), self.now.plus(MAX_TIME));
        let bounds = Bounds::until(move || clock.now() >= end);
        let now = self.now.to_string();
        let setting = Setting { endpoint: &asked.endpoint, now: &now, bounds: &bounds };
        let answer = respond(&graph, &asked.as_request(), asked.accept.as_deref(), &setting)?;
        for named in answer.read.iter().filter_map(|at| named.get(*at)) {
            self.count(&named.item);
            named.formers.iter().for_each(|former| self.show_former(named.item.head.item_id, *former, 0));
            named.links.iter().for_each(|(place, other)| self.tell_link(*place, other.as_deref(), 0));
        }
        Ok((answer, self.handed()))
    }

    /// Everything that the agent sees, and what it took back itself, as records.
    fn records(&self) -> Result<(Vec<Record>, Vec<Named>), Error> {
        let sight = self.agent.sight();
        let mut heads = self.gateway.heads.all();
        heads.retain(|head| self.is_seen(head) || (sight.wrote(head) && head.status == Status::Retracted));
        let (mut records, mut named) = (Vec::new(), Vec::new());
        for head in heads {
            let Some(item) = self.seen(head.clone())? else { continue };
            let (corrections, formers) = self.formers(&head)?;
            let (links, told) =
                if head.is_live(self.now) { self.links_from(head.item_id)? } else { Default::default() };
            let topic = head.labels.iter().find_map(|label| topic_of(label)).map(str::to_owned);
            records.push(Record {
                id: head.item_id.to_string(),
                content: item.text().unwrap_or_default().to_owned(),
                topic,
                tags: head.labels.iter().filter(|label| topic_of(label).is_none()).cloned().collect(),
                confidence: Some(head.confidence.get()),
                level: Some(
                    Level::of(&item.whole, *head.meta.author == self.gateway.principal).as_str().to_owned(),
                ),
                author: Some(head.meta.author.to_string()),
                source: item.source().map(|source| source.reference.unwrap_or(source.sort)),
                learned_at: Some(head.captured_at.to_string()),
                version: head.version_seq + 1,
                corrections,
                retracted_at: head
                    .ended_at
                    .filter(|_| head.status == Status::Retracted)
                    .map(|at| at.to_string()),
                links,
                human_verified: head.meta.human_verified,
                scope: Some(head.meta.visibility.as_str().to_owned()),
            });
            named.push(Named { item, formers, links: told });
        }
        Ok((records, named))
    }

    /// The former versions that are kept, the oldest first, without those that were restricted; and their commitments.
    fn formers(&self, head: &Head) -> Result<(Vec<Former>, Vec<Hash>), Error> {
        let (mut formers, mut commitments) = (Vec::new(), Vec::new());
        for (seq, replaced_at) in &head.replaced {
            let version = match schema::version(&self.gateway.store, head.item_id, *seq) {
                Ok(version) => version,
                Err(Error::NotFound | Error::Store(StoreError::Erased)) => continue,
                Err(error) => return Err(error),
            };
            let says = whole(&version)?;
            if says.get("sensitivity").and_then(Value::as_str) == Some(Sensitivity::Restricted.as_str()) {
                continue;
            }
            let text = says.get("content").and_then(|content| content.get("text")?.as_str());
            commitments.push(version.commitment());
            formers.push(Former {
                version: seq.saturating_add(1),
                content: text.unwrap_or_default().to_owned(),
                author: None,
                learned_at: None,
                corrected_at: Some(replaced_at.to_string()),
            });
        }
        Ok((formers, commitments))
    }

    /// The links that begin at an item, as `links` tells them, without its number.
    #[expect(clippy::type_complexity, reason = "links, and what names them")]
    fn links_from(&self, item: ItemId) -> Result<(Vec<Link>, Vec<(EdgePlace, Option<Arc<Head>>)>), Error> {
        let (mut links, mut told) = (Vec::new(), Vec::new());
        for place in edges::places(&self.gateway.store, item) {
            let place = place?;
            if place.0 != item {
                continue;
            }
            let Some(edge) = edges::edge(&self.gateway.store, place)? else { continue };
            // `is_there` of linking.rs: the agent that made it was not removed.
            if !super::linking::is_there(&self.gateway.store, &edge.author)? {
                continue;
            }
            let (to, head) = match edge.other() {
                None => (Target::Elsewhere(edge.to), None),
                Some(other) => match self.gateway.heads.get(other).filter(|head| self.is_seen(head)) {
                    Some(head) => (Target::Record(other.to_string()), Some(head)),
                    None => continue,
                },
            };
            let (author, linked_at) = (Some(edge.author.to_string()), Some(edge.at.to_string()));
            links.push(Link { relationship: edge.relationship, to, author, linked_at });
            told.push((place, head));
        }
        Ok((links, told))
    }
}

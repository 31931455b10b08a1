//! A SPARQL query over the items of one answer under a grant (docs/brain.md, "Under a grant").
//!
//! The graph is made of the items as they left, and of nothing else: what it answers follows from an answer that was judged, projected,
//! recorded, counted and paid for as any other, and tells nothing that this answer does not tell.

use super::{Caller, Exchange};
use crate::error::{Error, MemberError};
use crate::service::tools::asking::Sparql;
use crate::state::clock::WatchedClock;
use crate::state::gateway::blocking;
use oap_agents::Level;
use oap_agents::arguments::{Source, topic_of};
use oap_agents::level::EXTENSION;
use oap_agents::viewed::{Graphed, SPARQL};
use oap_brain::{Graph, Record};
use oap_exchange::Query;
use oap_identity::{ReceiptId, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What an answer says of its receipt.
#[derive(Deserialize)]
struct Recorded {
    receipt_id: ReceiptId,
    timestamp: Timestamp,
}

impl Exchange<'_> {
    /// Answers a query, and a SPARQL query over the items of that answer, which stands in it under [`SPARQL`]. What is wrong with its text is
    /// refused before anything is judged; from there on it is [`Exchange::query`].
    ///
    /// # Errors
    /// [`Error::Member`] for a text that is no query; [`Error::Unavailable`] where too many are evaluated; those of [`Exchange::query`]; [`Error::Unevaluated`], whose receipt
    /// stands.
    pub(crate) async fn graphed(
        self,
        caller: &Caller,
        query: Query,
        sparql: String,
    ) -> Result<Map<String, Value>, Error> {
        let asked = blocking(move || {
            let asked = Sparql::of_tool(sparql, None);
            asked.map_err(|error| Error::Member(SPARQL, MemberError::Sparql(error)))
        })
        .await?;
        // Before anything is disclosed: who gets no turn has paid for nothing.
        let turn = self.0.asking_granted.take_granted(caller.first(), caller.grantee()).await?;
        let answer = self.query(caller, query).await?;
        let clock = self.0.clock.clone();
        blocking(move || {
            // Until the work is over, whether anybody waits for it still or not.
            let _turn = turn;
            let mut answer: Map<String, Value> = serde_json::from_slice(&answer)?;
            let graphed = over(&answer, &asked, clock)?;
            answer.insert(SPARQL.to_owned(), serde_json::to_value(graphed)?);
            Ok(answer)
        })
        .await
    }
}

/// What a query finds in an answer. `NOW()` is the time of its receipt.
fn over(answer: &Map<String, Value>, asked: &Sparql, clock: Arc<WatchedClock>) -> Result<Graphed, Error> {
    let recorded = Recorded::deserialize(answer.get("receipt").unwrap_or(&Value::Null))?;
    let items = answer.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let records: Vec<Record> = items.iter().filter_map(Value::as_object).map(record).collect();
    let found = Graph::of(&records).and_then(|graph| asked.over(&graph, recorded.timestamp, clock));
    let (found, _) = found.map_err(|refused| Error::Unevaluated(refused, recorded.receipt_id))?;
    Ok(Graphed {
        items: records.len(),
        truncated: answer.get("next_cursor").is_some_and(Value::is_string),
        found: serde_json::from_slice(&found)?,
    })
}

/// An item as it stands in an answer, as a record. A member that is not there says nothing: of what was hidden nothing is known here.
fn record(item: &Map<String, Value>) -> Record {
    let text = |member: &str| item.get(member)?.as_str().map(str::to_owned);
    let content = |member: &str| item.get("content")?.get(member);
    let provenance = |member: &str| item.get("provenance")?.get(member);
    let labels = item.get("labels").and_then(Value::as_array).into_iter().flatten();
    let labels: Vec<&str> = labels.filter_map(Value::as_str).collect();
    let source = item.get("extensions").and_then(|all| all.get(EXTENSION)?.get("source"));
    let source = source.and_then(|source| Source::deserialize(source).ok());
    Record {
        id: text("item_id").unwrap_or_default(),
        content: match content("text").and_then(Value::as_str) {
            Some(text) => Some(text.to_owned()),
            None => content("structured").map(Value::to_string),
        },
        topic: labels.iter().find_map(|label| topic_of(label)).map(str::to_owned),
        tags: labels
            .iter()
            .filter(|label| topic_of(label).is_none())
            .map(|label| (*label).to_owned())
            .collect(),
        confidence: provenance("confidence").and_then(Value::as_f64),
        level: Level::shown(item).map(|level| level.as_str().to_owned()),
        source: source.map(|source| source.reference.unwrap_or(source.sort)),
        learned_at: provenance("captured_at").and_then(Value::as_str).map(str::to_owned),
        version: item.get("version").and_then(Value::as_u64).and_then(|version| u32::try_from(version).ok()),
        ..Record::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(item: Value) -> Record {
        record(item.as_object().unwrap())
    }

    #[test]
    fn a_record_has_what_its_item_shows() {
        let item = json!({
            "item_id": "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1", "version": 2, "kind": "fact", "labels": ["a", "topic:tea", "topic:b"],
            "content": {"text": "Tea", "structured": {"x": 1}},
            "provenance": {"captured_at": "2026-04-01T00:00:00Z", "confidence": 0.9},
            "extensions": {EXTENSION: {"level": "tool_verified", "source": {"type": "web", "ref": "https://page.example/"}}},
        });
        let expected = Record {
            id: "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1".to_owned(),
            content: Some("Tea".to_owned()),
            topic: Some("tea".to_owned()),
            tags: vec!["a".to_owned()],
            confidence: Some(0.9),
            level: Some("tool_verified".to_owned()),
            source: Some("https://page.example/".to_owned()),
            learned_at: Some("2026-04-01T00:00:00Z".to_owned()),
            version: Some(2),
            ..Record::default()
        };
        assert_eq!(of(item.clone()), expected);
        // Without its text it is what it says in members.
        let mut structured = item;
        structured["content"].as_object_mut().unwrap().remove("text");
        assert_eq!(of(structured).content.as_deref(), Some("{\"x\":1}"));
    }

    #[test]
    fn what_an_item_does_not_show_its_record_does_not_have() {
        let id = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
        let bare = Record { id: id.to_owned(), version: Some(1), ..Record::default() };
        // What stands beside the content is of the answer, and nothing of it is taken for what the item says.
        let item = json!({
            "item_id": id, "version": 1, "owner_did": "did:web:user.example", "epistemic": "knowledge", "relevance": 1,
            "status": "current", "integrity": {"chain": [{"actor": "did:web:user.example"}], "sd_jwt": "x"},
            "content": {}, "provenance": {"source_receipt": "rec_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"},
        });
        assert_eq!(of(item), bare);
        let wrong = json!({"item_id": id, "version": 1, "labels": "a", "content": "x", "provenance": [], "extensions": 1});
        assert_eq!(of(wrong), bare);
    }
}

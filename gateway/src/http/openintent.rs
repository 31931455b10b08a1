//! `/api/v1`: entries, in the dialect of OpenIntent RFC-0015, for an agent with its API key (docs/openintent.md).

use super::App;
use super::error::Refusal;
use super::mcp;
use super::request::Incoming;
use crate::Error;
use crate::error::{Conflict, MemberError};
use crate::service::Entries;
use crate::service::entries::{Changed, Current, Full};
use crate::state::agents::Agent;
use crate::state::owner::mark::Read;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use oap_agents::entry::{
    Change, EntryError, Filter, MAX_ENTRIES, Must, New, SetPermissions, USUAL_ENTRIES, entries_of,
};
use oap_exchange::query::MAX_QUERY;
use oap_identity::{Hash, ItemId, RequestId};
use oap_memory::item::short_text;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

/// Which agent a request is from. That it says of itself must be so.
pub(super) async fn caller(request: &mut Incoming) -> Result<Agent<Read>, Error> {
    let agent = mcp::agent(request).await?;
    let said = request.header("x-agent-id");
    if said.iter().all(|said| agent.is(said)) { Ok(agent) } else { Err(Error::NotSelf("X-Agent-ID")) }
}

/// Which entry is meant. What is no id is none of an entry.
async fn entry(request: &mut Incoming) -> Result<ItemId, Error> {
    request.place().await?.parse().map_err(|_| Error::NotFound)
}

/// The version that a change is made of (RFC-0015 3.2).
pub(super) fn version(request: &Incoming) -> Result<u32, Error> {
    let given = request.header("if-match");
    let [given] = given.as_slice() else { return Err(Error::NoVersion) };
    given.trim().trim_matches('"').parse().map_err(|_| Error::NoVersion)
}

/// Which entries are meant, and the hash of what that was said by: not of the names, which it would tell to whoever guesses.
fn filter(request: &Incoming) -> Result<(Filter, Hash), Error> {
    let parameters = request.parameters()?;
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let input = Hash::of_canonical(&json!(names))?;
    Ok((Filter::read(parameters)?, input))
}

pub(super) fn told(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// What became of a change. What stands in its way is shown with the refusal, as RFC-0015 3.2 has it.
pub(super) fn changed(changed: Changed, name: &RequestId) -> Result<Response, Error> {
    #[derive(Serialize)]
    struct Conflicting<'a> {
        error: &'a str,
        message: String,
        request_id: &'a RequestId,
        #[serde(skip_serializing_if = "Option::is_none")]
        index: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        current_version: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        current: Option<&'a RawValue>,
    }
    let (conflict, current, index): (Conflict, Option<Current>, Option<usize>) = match changed {
        Changed::Done(body) => return Ok(told(body)),
        Changed::Full(full) => return Ok(full_up(full, name)),
        Changed::Conflict(conflict, None, None) => return Err(Error::Conflict(conflict)),
        Changed::Conflict(conflict, current, index) => (conflict, current, index),
    };
    let Refusal { status, code, message, .. } = Refusal::from(&Error::Conflict(conflict));
    let body = Conflicting {
        error: code,
        message: index.map_or_else(|| message.clone(), |index| format!("entries[{index}]: {message}")),
        request_id: name,
        index,
        current_version: current.as_ref().map(|current| current.version),
        current: current.as_ref().map(|current| serde_json::from_slice(&current.entry)).transpose()?,
    };
    let body = serde_json::to_vec(&body)?;
    Ok((status, [(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// No room, and how much there is (RFC-0015 9.4).
fn full_up(Full { current_count, max_capacity, of, by }: Full, name: &RequestId) -> Response {
    let body = json!({
        "error": "capacity_exceeded",
        "message": format!("{of}: {current_count} of {max_capacity}, and none goes of itself; {}", by.way_out()),
        "request_id": name,
        "current_count": current_count,
        "max_capacity": max_capacity,
    });
    (StatusCode::TOO_MANY_REQUESTS, Json(body)).into_response()
}

/// `POST /api/v1/memory`.
pub(super) async fn create(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let new = request.json_with(|body| Ok(New::read(body)?)).await?;
    changed(Entries(&app.gateway).create(&agent, new).await?, request.name())
}

/// `GET /api/v1/memory`.
pub(super) async fn query(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let (filter, input) = filter(&request)?;
    Ok(told(Entries(&app.gateway).query(&agent, input, filter.says_whose()?).await?))
}

/// `GET /api/v1/memory/{id}`.
pub(super) async fn show(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let item = entry(&mut request).await?;
    Ok(told(Entries(&app.gateway).show(&agent, item).await?.entry))
}

/// `PATCH /api/v1/memory/{id}`.
pub(super) async fn change(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let version = version(&request)?;
    let item = entry(&mut request).await?;
    let change = request.json_with(|body| Ok(Change::read(body)?)).await?;
    // Of what is changed, and not of what it says: see `service::entries`.
    let input = Hash::of_canonical(&json!([item, version]))?;
    changed(Entries(&app.gateway).change(&agent, input, item, version, change).await?, request.name())
}

/// `DELETE /api/v1/memory/{id}`.
pub(super) async fn delete(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let item = entry(&mut request).await?;
    Entries(&app.gateway).delete(&agent, item).await?;
    Ok(told(serde_json::to_vec(&json!({"status": "deleted", "entry_id": item}))?))
}

/// `POST /api/v1/memory/batch`.
pub(super) async fn write_all(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let entries = request.json_with(|body| Ok(entries_of(body)?)).await?;
    let input = Hash::of_canonical(&json!(entries.len()))?;
    changed(Entries(&app.gateway).write_all(&agent, input, entries).await?, request.name())
}

/// `DELETE /api/v1/memory/batch`.
pub(super) async fn delete_all(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let (filter, _) = filter(&request)?;
    let (items, remaining) = Entries(&app.gateway).delete_all(&agent, filter.selects()?).await?;
    let body =
        json!({"status": "deleted", "deleted": items.len(), "entry_ids": items, "remaining": remaining});
    Ok(told(serde_json::to_vec(&body)?))
}

/// `GET /api/v1/memory/namespaces`.
pub(super) async fn namespaces(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    Ok(told(Entries(&app.gateway).namespaces(&agent).await?))
}

/// `GET /api/v1/memory/namespaces/{namespace}`.
pub(super) async fn namespace(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let name = request.place().await?;
    Ok(told(Entries(&app.gateway).namespace(&agent, name).await?))
}

/// `PATCH /api/v1/memory/namespaces/{namespace}`.
pub(super) async fn share(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let name = request.place().await?;
    let named =
        short_text(&name).map_err(|error| Error::Entry(EntryError::Field("namespace", error.into())))?;
    let read = request.json_with(move |body| Ok(SetPermissions::read(body, &named)?));
    let set = read.await?;
    Ok(told(Entries(&app.gateway).share(&agent, name, set).await?))
}

/// `GET /api/v1/agents/{agent}/memory`: the route that OpenIntent's clients list by, an array.
pub(super) async fn list(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let whose = request.place().await?;
    let (mut filter, input) = filter(&request)?;
    let input = Hash::of_canonical(&json!([whose, input]))?;
    if filter.of.agent_id.replace(whose).is_some() {
        return Err(Error::Member("agent_id", MemberError::Twice));
    }
    Ok(told(Entries(&app.gateway).list(&agent, input, filter).await?))
}

/// `GET /api/v1/agents/{agent}/memory/summary`.
pub(super) async fn summary(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let whose = request.place().await?;
    Ok(told(Entries(&app.gateway).summary(&agent, &whose).await?))
}

/// `GET /api/v1/agents/{agent}/memory/{namespace}`: an array, of one namespace.
pub(super) async fn list_in(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let [whose, namespace] = request.places().await?;
    let (mut filter, input) = filter(&request)?;
    let input = Hash::of_canonical(&json!([whose, "namespace", input]))?;
    if filter.of.agent_id.replace(whose).is_some() {
        return Err(Error::Member("agent_id", MemberError::Twice));
    }
    if filter.of.namespace.replace(namespace).is_some() {
        return Err(Error::Member("namespace", MemberError::Twice));
    }
    filter.of.is_whole = true;
    Ok(told(Entries(&app.gateway).list(&agent, input, filter).await?))
}

/// `GET /api/v1/agents/{agent}/memory/{namespace}/{key}`.
pub(super) async fn get(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let [whose, namespace, key] = request.places().await?;
    Ok(told(Entries(&app.gateway).at(&agent, whose, namespace, key).await?.entry))
}

/// `PUT /api/v1/agents/{agent}/memory/{namespace}/{key}`.
pub(super) async fn put(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let [whose, namespace, key] = request.places().await?;
    let read = request.json_with(move |body| Ok(New::read_at(body, &namespace, &key)?));
    let (new, says_tier) = read.await?;
    changed(Entries(&app.gateway).put(&agent, &whose, new, says_tier).await?, request.name())
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    q: Option<String>,
    limit: Option<usize>,
}

/// `GET /api/v1/memory/search`.
pub(super) async fn search(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let Words { q, limit } = request.query()?;
    let words = q.filter(|q| !q.trim().is_empty() && q.len() <= MAX_QUERY);
    let words = words.ok_or(Error::Entry(EntryError::Field("q", Must::Words)))?;
    let limit = limit.unwrap_or(USUAL_ENTRIES);
    if !(1..=MAX_ENTRIES).contains(&limit) {
        return Err(Error::Entry(EntryError::Field("limit", Must::Number)));
    }
    Ok(told(Entries(&app.gateway).search(&agent, words, limit).await?))
}

/// `GET /.well-known/openintent.json`: what of OpenIntent is spoken here.
pub(super) async fn discover() -> Response {
    let body = json!({
        "protocol": "openintent",
        "capabilities": [
            "memory", "memory.batch", "memory.events", "memory.namespaces", "memory.search", "memory.tasks",
        ],
        "rfcs": ["RFC-0015"],
        "extensions": {"memory.search": {
            "method": "GET", "path": "/api/v1/memory/search", "parameters": ["q", "limit"],
        }},
    });
    Json(body).into_response()
}

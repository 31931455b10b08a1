//! `/api/v1/intents`, `/api/v1/tasks` and the events of entries, as far as RFC-0015 needs them (docs/openintent.md).

use super::App;
use super::openintent::{caller, changed, told, version};
use super::request::Incoming;
use crate::Error;
use crate::service::Entries;
use crate::service::entries::events::Wanted;
use crate::state::events::What;
use axum::extract::State;
use axum::response::Response;
use oap_agents::entry::{EntryError, MAX_ENTRIES, Must, USUAL_ENTRIES};
use oap_agents::task::{NewIntent, NewTask, TaskChange, TaskStatus};
use oap_identity::{Hash, Timestamp};
use serde::Deserialize;
use serde_json::json;
use std::str::FromStr;

/// What the path names. What is no id is none of anything.
async fn named<T: FromStr>(request: &mut Incoming) -> Result<T, Error> {
    request.place().await?.parse().map_err(|_| Error::NotFound)
}

fn limit(given: Option<usize>) -> Result<usize, Error> {
    let limit = given.unwrap_or(USUAL_ENTRIES);
    if (1..=MAX_ENTRIES).contains(&limit) {
        Ok(limit)
    } else {
        Err(Error::Entry(EntryError::Field("limit", Must::Number)))
    }
}

/// `POST /api/v1/intents`.
pub(super) async fn make_intent(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let new = request.json_with(|body| Ok(NewIntent::read(body)?)).await?;
    Ok(told(Entries(&app.gateway).make_intent(&agent, new).await?))
}

/// `GET /api/v1/intents/{id}`.
pub(super) async fn show_intent(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let id = named(&mut request).await?;
    Ok(told(Entries(&app.gateway).intent(&agent, id).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskQuery {
    status: Option<TaskStatus>,
    limit: Option<usize>,
    offset: Option<usize>,
}

/// `GET /api/v1/intents/{id}/tasks`.
pub(super) async fn list_tasks(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let id = named(&mut request).await?;
    let TaskQuery { status, limit: most, offset } = request.query()?;
    let page = (offset.unwrap_or(0), limit(most)?);
    Ok(told(Entries(&app.gateway).tasks(&agent, id, status, page).await?))
}

/// `POST /api/v1/tasks`.
pub(super) async fn make_task(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let new = request.json_with(|body| Ok(NewTask::read(body)?)).await?;
    Ok(told(Entries(&app.gateway).make_task(&agent, new).await?))
}

/// `GET /api/v1/tasks/{id}`.
pub(super) async fn show_task(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let id = named(&mut request).await?;
    Ok(told(Entries(&app.gateway).task(&agent, id).await?))
}

/// `PATCH /api/v1/tasks/{id}`.
pub(super) async fn change_task(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let version = version(&request)?;
    let id = named(&mut request).await?;
    let change = request.json_with(|body| Ok(TaskChange::read(body)?)).await?;
    changed(Entries(&app.gateway).change_task(&agent, id, version, change).await?, request.name())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventQuery {
    event_type: Option<String>,
    since: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
}

/// Which events are asked for, and the hash of how that was said.
fn wanted(request: &Incoming) -> Result<(Wanted, Hash), Error> {
    let input = Hash::of_canonical(&json!(request.parameters()?))?;
    let EventQuery { event_type, since, limit: most, offset } = request.query()?;
    let read = |text: String| {
        let time = Timestamp::with_offset(&text);
        time.ok_or(Error::Entry(EntryError::Field("since", Must::Time)))
    };
    if event_type.as_deref().is_some_and(|name| !What::is_name(name)) {
        return Err(Error::Entry(EntryError::Field("event_type", Must::Event)));
    }
    let (since, limit) = (since.map(read).transpose()?, limit(most)?);
    Ok((Wanted { name: event_type, since, limit, offset: offset.unwrap_or(0) }, input))
}

/// `GET /api/v1/intents/{id}/events`.
pub(super) async fn intent_events(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let id = named(&mut request).await?;
    let (wanted, input) = wanted(&request)?;
    Ok(told(Entries(&app.gateway).log(&agent, id, input, wanted).await?))
}

/// `GET /api/v1/agents/{agent}/events`.
pub(super) async fn agent_events(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = caller(&mut request).await?;
    let whose = request.place().await?;
    let (wanted, input) = wanted(&request)?;
    Ok(told(Entries(&app.gateway).events(&agent, &whose, input, wanted).await?))
}

//! The owner's own agents; and their own door, which takes an API key.

use crate::Error;
use crate::api::agents::{
    AddAgent, CallTool, Injected, ListAgents, RemoveAgent, RotateAgent, SetAgent, ShowAgent, ToolAnswer,
    ToolCall,
};
use crate::http::App;
use crate::http::door::{Answer, Call};
use crate::http::mcp;
use crate::http::request::{Incoming, Oap};
use crate::service::{Agents, Tools};
use crate::state::gateway::blocking;
use axum::extract::State;

pub(in crate::http) async fn list(call: Call<ListAgents>) -> Answer<ListAgents> {
    Agents(&call.gateway).list(&call.owner)
}

pub(in crate::http) async fn add(call: Call<AddAgent>) -> Answer<AddAgent> {
    Agents(&call.gateway).add(&call.owner, call.body).await
}

pub(in crate::http) async fn show(call: Call<ShowAgent>) -> Answer<ShowAgent> {
    Agents(&call.gateway).show(&call.owner, &call.place)
}

pub(in crate::http) async fn set(call: Call<SetAgent>) -> Answer<SetAgent> {
    Agents(&call.gateway).set(&call.owner, &call.place, call.body).await
}

pub(in crate::http) async fn rotate(call: Call<RotateAgent>) -> Answer<RotateAgent> {
    Agents(&call.gateway).rotate(&call.owner, &call.place).await
}

pub(in crate::http) async fn remove(call: Call<RemoveAgent>) -> Answer<RemoveAgent> {
    Agents(&call.gateway).remove(&call.owner, &call.place).await
}

pub(in crate::http) async fn call(call: Call<CallTool>) -> Answer<CallTool> {
    let agent = call.gateway.agent_as(&call.owner, &call.place)?;
    mcp::has_room(&call.gateway, &agent)?;
    Tools(&call.gateway).call(&agent, call.body).await
}

pub(in crate::http) async fn injected(call: Call<Injected>) -> Answer<Injected> {
    let Call { owner, gateway, place, query, .. } = call;
    blocking(move || Agents(&gateway).injected(&owner, &place, &query)).await
}

/// `POST /oap/agent/call`: a memory tool, for an agent with its API key.
pub(in crate::http) async fn call_by_key(
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Oap<ToolAnswer>, Error> {
    let agent = mcp::agent(&mut request).await?;
    let call: ToolCall = request.json_as().await?;
    Ok(Oap(Tools(&app.gateway).call(&agent, call).await?))
}

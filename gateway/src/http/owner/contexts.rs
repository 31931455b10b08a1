//! Client Confidentiality Contexts, the bridges between scopes, and what was decided by them.

use crate::api::Done;
use crate::api::gates::{
    Bridges, Contexts, IssueBridge, ListBridges, ListContexts, RemoveContext, RevokeBridge, SetContext,
    ShowDecision,
};
use crate::http::door::{Answer, Call};
use crate::service::Gates;

pub(in crate::http) async fn list(call: Call<ListContexts>) -> Answer<ListContexts> {
    Ok(Contexts { contexts: Gates(&call.gateway).context_list(&call.owner)? })
}

pub(in crate::http) async fn set(call: Call<SetContext>) -> Answer<SetContext> {
    Gates(&call.gateway).set_context(&call.owner, call.body.into_whole()).await.map(|()| Done {})
}

pub(in crate::http) async fn remove(call: Call<RemoveContext>) -> Answer<RemoveContext> {
    Gates(&call.gateway).remove_context(&call.owner, call.place).await.map(|()| Done {})
}

pub(in crate::http) async fn list_bridges(call: Call<ListBridges>) -> Answer<ListBridges> {
    Ok(Bridges { bridges: Gates(&call.gateway).bridge_list(&call.owner)? })
}

pub(in crate::http) async fn issue_bridge(call: Call<IssueBridge>) -> Answer<IssueBridge> {
    Gates(&call.gateway).issue_bridge(&call.owner, call.body).await
}

pub(in crate::http) async fn revoke_bridge(call: Call<RevokeBridge>) -> Answer<RevokeBridge> {
    Gates(&call.gateway).revoke_bridge(&call.owner, call.place).await.map(|()| Done {})
}

pub(in crate::http) async fn decision(call: Call<ShowDecision>) -> Answer<ShowDecision> {
    Gates(&call.gateway).decision(&call.owner, call.place)
}

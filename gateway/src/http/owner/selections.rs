//! Many items at once: found, counted, changed.

use crate::api::selections::{
    RelabelItems, ResolveItems, ResolvedItems, RetractItems, SearchItems, SelectItems,
};
use crate::http::door::{Answer, Call};
use crate::service::{Items, Selections};
use crate::state::gateway::blocking;

pub(in crate::http) async fn resolve(call: Call<ResolveItems>) -> Answer<ResolveItems> {
    blocking(move || Ok(ResolvedItems { resolved: Items(&call.gateway).resolve(&call.owner, &call.body)? }))
        .await
}

pub(in crate::http) async fn search(call: Call<SearchItems>) -> Answer<SearchItems> {
    blocking(move || Items(&call.gateway).search(&call.owner, &call.body)).await
}

/// What a change would take: it names holds and counts grants, so it is the administrator's.
pub(in crate::http) async fn select(call: Call<SelectItems>) -> Answer<SelectItems> {
    blocking(move || Selections(&call.gateway).select(&call.owner, &call.body)).await
}

pub(in crate::http) async fn relabel(call: Call<RelabelItems>) -> Answer<RelabelItems> {
    Selections(&call.gateway).relabel_all(&call.owner, call.body).await
}

pub(in crate::http) async fn retract(call: Call<RetractItems>) -> Answer<RetractItems> {
    Selections(&call.gateway).retract_all(&call.owner, call.body).await
}

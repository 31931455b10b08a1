//! Acknowledgements of answers.

use crate::api::acks::{GiveAck, ListAcks, SetAcks, ShowAck};
use crate::http::door::{Answer, Call};
use crate::service::Acks;
use crate::state::gateway::blocking;

pub(in crate::http) async fn list(call: Call<ListAcks>) -> Answer<ListAcks> {
    let Call { gateway, owner, query, .. } = call;
    blocking(move || Acks(&gateway).list(&owner, &query)).await
}

pub(in crate::http) async fn set(call: Call<SetAcks>) -> Answer<SetAcks> {
    Acks(&call.gateway).set(&call.owner, call.body).await
}

pub(in crate::http) async fn show(call: Call<ShowAck>) -> Answer<ShowAck> {
    Acks(&call.gateway).show(&call.owner, call.place)
}

pub(in crate::http) async fn give(call: Call<GiveAck>) -> Answer<GiveAck> {
    Acks(&call.gateway).give(&call.owner, call.place).await
}

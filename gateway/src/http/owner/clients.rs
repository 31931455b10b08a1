//! Clients of OAuth: what the owner says to them.

use crate::api::Done;
use crate::api::oauth::{
    AddClient, ApproveConsent, DeclineConsent, DeclineWaiting, EndConsent, ListClients, ListConsents,
    RemoveClient, ShowConsent,
};
use crate::http::door::{Answer, Call};
use crate::service::Clients;

pub(in crate::http) async fn list_consents(call: Call<ListConsents>) -> Answer<ListConsents> {
    Clients(&call.gateway).consents(&call.owner)
}

pub(in crate::http) async fn show(call: Call<ShowConsent>) -> Answer<ShowConsent> {
    Clients(&call.gateway).show(&call.owner, call.place)
}

pub(in crate::http) async fn approve(call: Call<ApproveConsent>) -> Answer<ApproveConsent> {
    Clients(&call.gateway).approve(&call.owner, call.place, call.body).await
}

pub(in crate::http) async fn decline(call: Call<DeclineConsent>) -> Answer<DeclineConsent> {
    Clients(&call.gateway).decline(&call.owner, call.place).map(|()| Done {})
}

pub(in crate::http) async fn decline_waiting(call: Call<DeclineWaiting>) -> Answer<DeclineWaiting> {
    Clients(&call.gateway).decline_waiting(&call.owner, call.place).map(|()| Done {})
}

pub(in crate::http) async fn end(call: Call<EndConsent>) -> Answer<EndConsent> {
    Clients(&call.gateway).end(&call.owner, call.place).await.map(|()| Done {})
}

pub(in crate::http) async fn list(call: Call<ListClients>) -> Answer<ListClients> {
    Clients(&call.gateway).list(&call.owner)
}

pub(in crate::http) async fn add(call: Call<AddClient>) -> Answer<AddClient> {
    Clients(&call.gateway).add(&call.owner, call.body).await
}

pub(in crate::http) async fn remove(call: Call<RemoveClient>) -> Answer<RemoveClient> {
    Clients(&call.gateway).remove(&call.owner, &call.place).await.map(|()| Done {})
}

//! Subscriptions: of grantees, and the owner's own.

use crate::api::subscriptions::{EndSubscription, ListSubscriptions, Subscribe};
use crate::http::door::{Answer, Call};
use crate::service::Subscriptions;

pub(in crate::http) async fn list(call: Call<ListSubscriptions>) -> Answer<ListSubscriptions> {
    Subscriptions(&call.gateway).list(&call.owner)
}

pub(in crate::http) async fn subscribe(call: Call<Subscribe>) -> Answer<Subscribe> {
    Subscriptions(&call.gateway).subscribe(&call.owner, call.place, call.body).await
}

pub(in crate::http) async fn end(call: Call<EndSubscription>) -> Answer<EndSubscription> {
    Subscriptions(&call.gateway).end(&call.owner, call.place).await
}

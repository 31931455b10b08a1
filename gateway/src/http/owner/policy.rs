//! The write policy.

use crate::api::policy::{SetPolicy, ShowPolicy};
use crate::http::door::{Answer, Call};
use crate::service::Policies;

pub(in crate::http) async fn show(call: Call<ShowPolicy>) -> Answer<ShowPolicy> {
    Policies(&call.gateway).show(&call.owner)
}

pub(in crate::http) async fn set(call: Call<SetPolicy>) -> Answer<SetPolicy> {
    Policies(&call.gateway).set(&call.owner, call.body).await
}

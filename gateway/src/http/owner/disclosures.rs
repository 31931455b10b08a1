//! Who was shown what.

use crate::api::disclosures::{ItemHistory, Who};
use crate::http::door::{Answer, Call};
use crate::service::{Audit, Items};
use crate::state::gateway::blocking;

pub(in crate::http) async fn history(call: Call<ItemHistory>) -> Answer<ItemHistory> {
    blocking(move || Items(&call.gateway).history(&call.owner, call.place)).await
}

pub(in crate::http) async fn who(call: Call<Who>) -> Answer<Who> {
    blocking(move || Audit(&call.gateway).who(&call.owner, &call.body)).await
}

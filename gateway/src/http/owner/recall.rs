//! The own memory and that of others, asked at once; and what others said that is not so.

use crate::api::recall::{ListLies, RecallItems};
use crate::http::door::{Answer, Call};
use crate::service::Recalls;

pub(in crate::http) async fn recall(call: Call<RecallItems>) -> Answer<RecallItems> {
    Recalls(&call.gateway).recall(call.owner, call.body).await
}

pub(in crate::http) async fn lies(call: Call<ListLies>) -> Answer<ListLies> {
    Recalls(&call.gateway).lies(&call.owner)
}

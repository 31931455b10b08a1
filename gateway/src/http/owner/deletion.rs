//! Deletion, and the holds that stand in its way.

use crate::api::deletion::{Delete, ReportDeletion};
use crate::api::holds::{Held, Holds, ListHolds, ReleaseHolds, Released, SetHolds};
use crate::http::door::{Answer, Call};
use crate::service::Deletions;

/// `POST /oap/data/delete`: OAP-CORE 17.3.
pub(in crate::http) async fn delete(call: Call<Delete>) -> Answer<Delete> {
    Deletions(&call.gateway).delete(&call.owner, call.body).await
}

pub(in crate::http) async fn report(call: Call<ReportDeletion>) -> Answer<ReportDeletion> {
    Deletions(&call.gateway).told(&call.owner, call.place)
}

pub(in crate::http) async fn list_holds(call: Call<ListHolds>) -> Answer<ListHolds> {
    Ok(Holds { holds: Deletions(&call.gateway).hold_list(&call.owner)? })
}

pub(in crate::http) async fn set_holds(call: Call<SetHolds>) -> Answer<SetHolds> {
    Ok(Held { held: Deletions(&call.gateway).hold(&call.owner, call.body).await? })
}

pub(in crate::http) async fn release_holds(call: Call<ReleaseHolds>) -> Answer<ReleaseHolds> {
    Ok(Released { released: Deletions(&call.gateway).release(&call.owner, call.body.items).await? })
}

//! The owner's other devices: added, compared, asked, removed.

use crate::api::Done;
use crate::api::devices::{AddDevice, ConfirmDevice, ListDevices, RemoveDevice, ShowDevice, SyncDevice};
use crate::http::door::{Answer, Call};
use crate::service::Devices;

pub(in crate::http) async fn list(call: Call<ListDevices>) -> Answer<ListDevices> {
    Devices(&call.gateway).list(&call.owner)
}

pub(in crate::http) async fn add(call: Call<AddDevice>) -> Answer<AddDevice> {
    Devices(&call.gateway).add(&call.owner, call.body.did).await
}

pub(in crate::http) async fn confirm(call: Call<ConfirmDevice>) -> Answer<ConfirmDevice> {
    Devices(&call.gateway).confirm(&call.owner, call.body).await
}

pub(in crate::http) async fn show(call: Call<ShowDevice>) -> Answer<ShowDevice> {
    Devices(&call.gateway).show(&call.owner, &call.body.did)
}

pub(in crate::http) async fn remove(call: Call<RemoveDevice>) -> Answer<RemoveDevice> {
    Devices(&call.gateway).remove(&call.owner, call.body.did).await.map(|()| Done {})
}

pub(in crate::http) async fn sync(call: Call<SyncDevice>) -> Answer<SyncDevice> {
    Devices(&call.gateway).sync(&call.owner, &call.body.did).await
}

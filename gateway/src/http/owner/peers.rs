//! Peers: found, added, looked at, accepted, forgotten.

use crate::api::Done;
use crate::api::peers::{
    AcceptPeer, AddPeer, CheckPeer, FindPeer, ListPeers, PeerList, RemovePeer, ShowPeer,
};
use crate::http::door::{Answer, Call};
use crate::service::Peers;

pub(in crate::http) async fn list(call: Call<ListPeers>) -> Answer<ListPeers> {
    Ok(PeerList { peers: Peers(&call.gateway).list(&call.owner)? })
}

pub(in crate::http) async fn add(call: Call<AddPeer>) -> Answer<AddPeer> {
    Peers(&call.gateway).add(&call.owner, call.body.peer).await
}

pub(in crate::http) async fn find(call: Call<FindPeer>) -> Answer<FindPeer> {
    Peers(&call.gateway).find(&call.owner, &call.body.host).await
}

pub(in crate::http) async fn show(call: Call<ShowPeer>) -> Answer<ShowPeer> {
    Peers(&call.gateway).show(&call.owner, &call.body.did)
}

pub(in crate::http) async fn check(call: Call<CheckPeer>) -> Answer<CheckPeer> {
    Peers(&call.gateway).check(&call.owner, &call.body.did).await
}

pub(in crate::http) async fn accept(call: Call<AcceptPeer>) -> Answer<AcceptPeer> {
    Peers(&call.gateway).accept(&call.owner, call.body).await
}

pub(in crate::http) async fn remove(call: Call<RemovePeer>) -> Answer<RemovePeer> {
    Peers(&call.gateway).remove(&call.owner, call.body.did).await.map(|()| Done {})
}

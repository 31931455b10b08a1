//! Witnesses of the own log, logs that are witnessed, and what is asked of the logs of peers.

use crate::api::Done;
use crate::api::witnesses::{
    AddWitness, EndWitness, ListDemands, ListWitnessed, ListWitnesses, RemoveWitness, SetDemand, WitnessFor,
};
use crate::http::door::{Answer, Call};
use crate::service::Witnesses;

pub(in crate::http) async fn list(call: Call<ListWitnesses>) -> Answer<ListWitnesses> {
    Witnesses(&call.gateway).list(&call.owner)
}

pub(in crate::http) async fn add(call: Call<AddWitness>) -> Answer<AddWitness> {
    Witnesses(&call.gateway).add(&call.owner, call.body.did).await
}

pub(in crate::http) async fn remove(call: Call<RemoveWitness>) -> Answer<RemoveWitness> {
    Witnesses(&call.gateway).remove(&call.owner, call.body.did).await.map(|()| Done {})
}

pub(in crate::http) async fn witnessed(call: Call<ListWitnessed>) -> Answer<ListWitnessed> {
    Witnesses(&call.gateway).witnessed(&call.owner)
}

pub(in crate::http) async fn witness_for(call: Call<WitnessFor>) -> Answer<WitnessFor> {
    Witnesses(&call.gateway).witness_for(&call.owner, call.body.did).await
}

pub(in crate::http) async fn end(call: Call<EndWitness>) -> Answer<EndWitness> {
    Witnesses(&call.gateway).end_witnessing(&call.owner, call.body.did).await.map(|()| Done {})
}

pub(in crate::http) async fn demands(call: Call<ListDemands>) -> Answer<ListDemands> {
    Witnesses(&call.gateway).demands(&call.owner)
}

pub(in crate::http) async fn demand(call: Call<SetDemand>) -> Answer<SetDemand> {
    Witnesses(&call.gateway).demand(&call.owner, call.body).await
}

//! Signing keys, and proofs by the key in use.

use crate::api::keys::{KeyList, ListKeys, RevokeKey, RotateKeys};
use crate::api::standing::Prove;
use crate::http::door::{Answer, Call};
use crate::service::Keys;

pub(in crate::http) async fn list(call: Call<ListKeys>) -> Answer<ListKeys> {
    Ok(KeyList { keys: Keys(&call.gateway).key_list(&call.owner) })
}

pub(in crate::http) async fn rotate(call: Call<RotateKeys>) -> Answer<RotateKeys> {
    Keys(&call.gateway).rotate_keys(&call.owner).await
}

pub(in crate::http) async fn revoke(call: Call<RevokeKey>) -> Answer<RevokeKey> {
    Keys(&call.gateway).revoke_key(&call.owner, call.place.into_string(), call.body.since).await
}

pub(in crate::http) async fn prove(call: Call<Prove>) -> Answer<Prove> {
    Keys(&call.gateway).prove(&call.owner, call.body)
}

//! Signing keys, what a compromised one leaves to do, and proofs by the key in use.

use crate::api::keys::{
    KeyList, ListHeldBack, ListKeys, ResealHeldBack, ResealedItem, RevokeKey, RotateKeys, SignReceiptsAnew,
};
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

pub(in crate::http) async fn held_back(call: Call<ListHeldBack>) -> Answer<ListHeldBack> {
    Keys(&call.gateway).held_back(&call.owner).await
}

pub(in crate::http) async fn reseal_held(call: Call<ResealHeldBack>) -> Answer<ResealHeldBack> {
    let resealed = Keys(&call.gateway).reseal_held(&call.owner, call.body.item, call.body.at).await?;
    Ok(ResealedItem { resealed })
}

pub(in crate::http) async fn sign_receipts_anew(call: Call<SignReceiptsAnew>) -> Answer<SignReceiptsAnew> {
    Keys(&call.gateway).sign_receipts_anew(&call.owner, call.body.from).await
}

pub(in crate::http) async fn prove(call: Call<Prove>) -> Answer<Prove> {
    Keys(&call.gateway).prove(&call.owner, call.body)
}

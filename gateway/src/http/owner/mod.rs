//! The owner's side, a file a resource. Every handler takes a [`Call`](super::door::Call) of its endpoint, whose sender was proved by a
//! trust token and its DPoP proof (protocol section 10) before the body was read.

pub(super) mod access;
pub(super) mod acks;
pub(super) mod agents;
pub(super) mod audit;
pub(super) mod clients;
pub(super) mod contexts;
pub(super) mod deletion;
pub(super) mod devices;
pub(super) mod disclosures;
pub(super) mod grants;
pub(super) mod house;
pub(super) mod items;
pub(super) mod keys;
pub(super) mod peers;
pub(super) mod policy;
pub(super) mod recall;
pub(super) mod selections;
pub(super) mod subscriptions;
pub(super) mod transfer;
pub(super) mod witnesses;

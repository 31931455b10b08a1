//! The owner's side, a file a resource. Every handler takes the [`Owner`](crate::state::owner::Owner), which is made of a trust token
//! and its DPoP proof (protocol section 10), before it sees a body.

pub(super) mod audit;
pub(super) mod contexts;
pub(super) mod deletion;
pub(super) mod disclosures;
pub(super) mod grants;
pub(super) mod house;
pub(super) mod items;
pub(super) mod keys;
pub(super) mod selections;
pub(super) mod transfer;

//! Refusals one at a time: for each condition on what a grantee sends a request that breaks it alone and is right in everything else, at its boundary
//! and beyond it, at every endpoint to which it applies; and beside each a request that is right.
//!
//! The conditions are closed lists ([`rules`]); their violations are `match`es over them, of which no arm is empty ([`cases`]).

mod asked;
mod below;
mod beside;
mod cases;
mod children;
mod credentials;
mod documents;
mod doors;
mod envelopes;
mod forms;
mod grants;
mod in_force;
mod jws;
mod made;
mod owners;
mod parts;
mod proofs;
mod queries;
pub mod rules;
mod scene;
mod tokens;

pub(super) use asked::{of_actions, of_queries, of_tools};
pub(super) use children::{child, children, signed};
pub(super) use credentials::{
    bearer_tokens, grant_proofs, of_devices, of_mcp, of_subscriptions, of_witnessed, proofs_of_possession,
    tokens as of_tokens,
};
pub(super) use doors::Family;
pub(super) use envelopes::{called, envelopes, request as by_envelope};
pub(super) use in_force::{ending, under_grants};
pub(super) use jws::{lifted, read, resign};
pub(super) use made::{acknowledgements, drafts, log, of_documents, of_grant_actions};
pub(super) use owners::{deletion, receipts};
pub(in crate::probe) use parts::{of_granting, of_refusal};
pub use rules::Condition;
pub(super) use rules::Door;
pub(super) use scene::bearer;

//! Refusals one at a time: for each condition on what a grantee sends a request that breaks it alone and is right in everything else, at its boundary
//! and beyond it, at every endpoint to which it applies; and beside each a request that is right.
//!
//! The conditions are closed lists ([`rules`]); their violations are `match`es over them.

mod beside;
mod documents;
mod doors;
mod envelopes;
mod grants;
mod jws;
mod made;
mod proofs;
mod queries;
pub mod rules;
mod tokens;

pub(super) use doors::{bearer_tokens, grant_proofs, proofs_of_possession, tokens as of_tokens};
pub(super) use envelopes::envelopes;
pub(super) use jws::read;
pub(super) use made::{
    acknowledgements, children, drafts, log, of_actions, of_documents, of_grant_actions, of_queries,
};
pub use rules::Condition;

//! What a gateway does, for whoever asks: HTTP handlers and the command line call the same functions.

pub mod agents;
mod align;
pub mod audit;
pub mod backup;
pub(crate) mod brief;
pub mod budget;
pub mod bulk;
pub mod carried;
pub mod conformance;
pub(crate) mod cursor;
pub mod deletion;
pub(crate) mod deletion_plan;
pub mod doctor;
pub mod entries;
pub mod export;
pub mod former;
pub mod gates;
pub mod grants;
pub mod history;
pub mod holds;
pub mod import;
pub mod incidents;
pub mod items;
pub mod jobs;
pub mod keys;
pub(crate) mod lists;
pub mod memorization;
pub mod oauth;
pub(crate) mod outlook;
pub mod policy;
pub mod prefix;
mod profiles;
pub mod prove;
pub mod query;
pub mod resealing;
pub mod restored;
pub mod search;
pub mod selection;
pub mod status;
pub mod sweep;
pub mod tools;
pub mod who;

pub use crate::state::owner;

use crate::state::gateway::Gateway;
use std::sync::Arc;

/// Each service is a view of the gateway's state, and nothing else: what it does stands in the files of this folder.
macro_rules! services {
    ($($(#[$doc:meta])+ $name:ident;)+) => {
        $(
            $(#[$doc])+
            #[derive(Clone, Copy)]
            pub struct $name<'a>(pub &'a Arc<Gateway>);
        )+
    };
}

services! {
    /// The owner's own agents: made, ended, and what each was given.
    Agents;
    /// Clients of OAuth, who use memory as those agents.
    Clients;
    /// What those agents may write.
    Policies;
    /// The memory tools of those agents.
    Tools;
    /// Entries: OpenIntent's dialect of the memory, for those agents.
    Entries;
    /// Items: written, read, corrected, taken back, put back, found.
    Items;
    /// Changes of many items at once.
    Selections;
    /// What is deleted, held, and swept when it is due.
    Deletions;
    /// Grants: issued, exchanged, listed, revoked.
    Grants;
    /// What grants have used up, and refills.
    Budgets;
    /// Confidentiality contexts and bridges.
    Gates;
    /// The grantee's side: queries, vectors, refusals.
    Exchange;
    /// The audit log: the owner's, a grantee's, the public's.
    Audit;
    /// Measurements of what a model would give away.
    Memorization;
    /// Incidents and their reports.
    Incidents;
    /// Bundles written.
    Exports;
    /// Bundles and other programs' records taken in.
    Imports;
    /// Keys: rotated, revoked, what is signed anew after it.
    Keys;
    /// Conformance Receipts.
    Attestations;
    /// Whether the gateway is well.
    Health;
    /// Copies of the home.
    Backups;
    /// Work that outlasts a request.
    LongWork;
}

//! What a gateway does, for whoever asks: HTTP handlers and the command line call the same functions.

pub mod acks;
pub mod agents;
mod align;
pub mod asks;
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
pub mod deletion_steps;
pub mod devices;
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
pub mod letters;
pub(crate) mod lists;
pub mod lockdown;
pub mod memorization;
pub(crate) mod notices;
pub mod oauth;
pub(crate) mod outlook;
mod passing_on;
pub mod peers;
pub mod policy;
pub mod prefix;
mod profiles;
pub mod prove;
pub mod query;
pub mod recall;
pub mod resealing;
pub mod restored;
pub mod search;
pub mod selection;
pub mod status;
pub mod subscriptions;
pub mod sweep;
pub mod tools;
pub mod turns;
pub mod wallet;
pub mod who;
pub mod witnesses;

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
    /// Acknowledgements of answers, and which order of mutual knowledge they prove.
    Acks;
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
    /// Everything ended at once, and nobody but the owner answered.
    Lockdowns;
    /// Whether the gateway is well.
    Health;
    /// Copies of the home.
    Backups;
    /// Other principals' gateways whose keys and addresses are pinned.
    Peers;
    /// The own log, and those whose witness this gateway is.
    Witnesses;
    /// The owner's other devices.
    Devices;
    /// Letters of other gateways and to them.
    Letters;
    /// What others ask the owner for.
    Asks;
    /// What the owner asks others for, and the grants that they gave.
    Wallet;
    /// Subscriptions of grantees, and those of the owner's own.
    Subscriptions;
    /// The own memory and that of others, asked at once.
    Recalls;
    /// Work that outlasts a request.
    LongWork;
}

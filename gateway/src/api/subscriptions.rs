//! Subscriptions: those of grantees to the owner's memory, and the owner's own to that of others.

use super::endpoints;
use oap_identity::{Did, GrantId, Hash, SubscriptionId, Timestamp};
use oap_memory::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Who is told of changes, and by whom the owner is; the newest first.
    ListSubscriptions: GET "/oap/owner/subscriptions" needs Admin answers(SubscriptionList);
    /// Subscribes to what a received grant shows: its granter's gateway pushes what changes.
    Subscribe: POST "/oap/owner/received/{hash}/subscribe" at(Hash) needs Admin body(Subscribing) answers(HeldSubscription);
    /// Ends a subscription, of a grantee or one of the owner's own.
    EndSubscription: POST "/oap/owner/subscriptions/{id}/end" at(SubscriptionId) needs Admin answers(SubscriptionEnd);
}

/// How to subscribe.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subscribing {
    /// Seconds between two pushes, from 10 to 86,400.
    pub window: u32,
}

/// All subscriptions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SubscriptionList {
    /// Of grantees, to the owner's memory.
    pub given: Vec<GivenSubscription>,
    /// The owner's own, to the memory of others.
    pub held: Vec<HeldSubscription>,
}

/// A grantee's subscription to what a grant shows.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GivenSubscription {
    pub subscription: SubscriptionId,
    pub grant_id: GrantId,
    /// The hash of the grant.
    pub grant: Hash,
    pub grantee: Did,
    /// Seconds between two pushes.
    pub window: u32,
    /// Where pushes go; none where the grantee reads events.
    pub url: Option<String>,
    pub begun_at: Timestamp,
    /// The number of the last push; 0 where there was none.
    pub sequence: u64,
    /// When one last was acknowledged.
    pub acknowledged_at: Option<Timestamp>,
    /// Attempts in vain since then.
    pub attempts: u32,
    /// Why the last of them was.
    pub failure: Option<PushFailure>,
    /// Why it is over.
    pub ended_by: Option<EndedBy>,
    pub ended_at: Option<Timestamp>,
}

/// A subscription of the owner's to what a received grant shows.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HeldSubscription {
    pub subscription: SubscriptionId,
    /// The hash of the grant.
    pub grant: Hash,
    pub granter: Did,
    /// Seconds between two pushes.
    pub window: u32,
    pub made_at: Timestamp,
    /// When its granter's gateway took it; none where that is asked still.
    pub begun_at: Option<Timestamp>,
    /// The number of the last push that was taken; 0 where there was none.
    pub sequence: u64,
    pub heard_at: Option<Timestamp>,
    /// How many items came, changed and left in all pushes together.
    pub came: u64,
    pub changed: u64,
    pub left: u64,
    /// Why it is over; none of one that ended before reasons were kept.
    pub ended_by: Option<HeldEnd>,
    /// Since when it is over.
    pub ended_at: Option<Timestamp>,
}

/// What became of ending a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubscriptionEnd {
    /// Which one is over.
    pub subscription: SubscriptionId,
    /// Whether the other gateway knows; it is told with its next push where it does not.
    pub told: bool,
}

closed_enum! {
    /// Why a subscription of a grantee's is over.
    EndedBy {
        /// Its grant is not in force any more, or the key that vouched for the grantee is compromised.
        Grant = "grant",
        /// The grantee ended it.
        Grantee = "grantee",
        /// The owner ended it.
        Granter = "granter",
        /// Its receiver did not answer for 30 days.
        Silence = "silence",
    }
}

closed_enum! {
    /// Why a subscription of the owner's own is over.
    HeldEnd {
        /// The owner ended it.
        Owner = "owner",
        /// Its grant has ended.
        Expired = "expired",
        /// Its grant was revoked.
        Revoked = "revoked",
        /// Its grant is not in the wallet any more.
        Removed = "removed",
        /// Its grant is void: the key that signed it is compromised.
        Void = "void",
        /// The granter's gateway refused it.
        Refused = "refused",
        /// The granter's gateway says that it is over there, and not why.
        Ended = "ended",
    }
}

closed_enum! {
    /// Why an attempt to push came to nothing.
    PushFailure {
        /// The grantee's DID has no document that can be found now.
        NoDocument = "no_document",
        /// The address is not at the gateway that the grantee's documents name now.
        NoPlace = "no_place",
        /// Nobody answered, or not in time.
        Unreachable = "unreachable",
        /// Something answered, and not the grantee's gateway with a signed reply.
        NoReply = "no_reply",
        /// The grantee's gateway has taken later pushes than this gateway remembers: it goes on from there.
        Behind = "behind",
        /// The grant is in force and permits no answer now: its budget is spent, or its profile is not here.
        Refused = "refused",
    }
}

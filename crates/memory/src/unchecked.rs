//! What a verifier did not check, and why: said with everything that it did.

use oap_identity::{Did, GrantId, Kid, ReceiptId, Timestamp};

/// Something that no proof at hand covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unchecked {
    /// Of a lone item: later links may have been cut off.
    #[error("the chain may go on: a later correction or retraction cannot be seen in a lone item")]
    ChainMayGoOn,
    /// A member of a lone item that no proof covers.
    #[error("{0}: nobody signed it; only an answer as a whole vouches for it")]
    Member(&'static str),
    /// Of an item that changed house.
    #[error(
        "the move at link {seq}: {to} says that the item came from {from}, and {from} has not signed that"
    )]
    Move {
        /// The number of the `migrate` link.
        seq: u32,
        /// The former house.
        from: Did,
        /// The new house, which alone signed the link.
        to: Did,
    },
    /// Receipts that links name and that did not come along.
    #[error("the receipts of {0} later link(s): they are not part of the document")]
    LinkReceipts(usize),
    /// Transparency log entries of a receipt.
    #[error("anchors of {0}: no transparency log is asked")]
    Anchors(ReceiptId),
    /// A countersignature by a DID whose document is not at hand.
    #[error("the countersignature of {by} under {receipt}: its DID document is not at hand")]
    #[allow(missing_docs, reason = "the names say it")]
    Countersignature {
        receipt: ReceiptId,
        /// Who is said to have signed.
        by: Did,
    },
    /// The agents of receipts, which have not signed them.
    #[error(
        "who asked, in {0} receipt(s): the agent has not signed, the gateway alone says that it was this one"
    )]
    Agents(u64),
    /// Members of a receipt that no gateway of this protocol writes.
    #[error("{members} of {receipt}: signed with the rest, and what they say is judged by nobody here")]
    #[allow(missing_docs, reason = "the names say it")]
    Members { receipt: ReceiptId, members: String },
    /// The action of a receipt, which is not known here.
    #[error("what {0} says beside its signature: its action is not known here")]
    Action(ReceiptId),
    /// A signature that counts only because it is dated before its key was compromised.
    #[error(
        "when {kid}, which is compromised since {since}, signed: the date is its own word, and a thief backdates"
    )]
    #[allow(missing_docs, reason = "the names say it")]
    DatedByCompromisedKey {
        kid: Kid,
        /// Since when it is compromised, as its document says.
        since: Timestamp,
    },
    /// The query that a receipt's `input_hash` is of.
    #[error("input_hash: the query is not part of the document")]
    Query,
    /// The grant that a receipt names.
    #[error("grant {0}: it is not at hand; that of an answer is given with --grant")]
    Grant(GrantId),
    /// What the profile of an answer hid.
    #[error(
        "projection: what is hidden cannot be seen, so that profile {0} was followed is the gateway's word"
    )]
    Projection(String),
    /// A profile of the granter's own.
    #[error(
        "profile {0}: it is none of the built-in ones; that it still says what it said is the granter's word"
    )]
    Profile(String),
    /// Whether a grant was revoked.
    #[error("whether grant {0} is revoked: ask its granter or its status list")]
    State(GrantId),
    /// The record beside an item of a bundle.
    #[error("records: the gateway's own notes beside {0} item(s), signed by the trailer alone")]
    Records(u64),
    /// That what was deleted is gone.
    #[error("that nothing is left: a Deletion Receipt is its gateway's word")]
    Absence,
    /// A DID document is not signed.
    #[error("who made it: nothing signs a DID document but where it was found")]
    Document,
}

impl Unchecked {
    /// A stable name.
    #[must_use]
    pub const fn id(&self) -> &'static str {
        match self {
            Self::ChainMayGoOn => "unchecked.chain_end",
            Self::Member(_) => "unchecked.member",
            Self::Move { .. } => "unchecked.move",
            Self::LinkReceipts(_) => "unchecked.link_receipts",
            Self::Anchors(_) => "unchecked.anchors",
            Self::Countersignature { .. } => "unchecked.countersignature",
            Self::Agents(_) => "unchecked.agent",
            Self::Members { .. } => "unchecked.members",
            Self::Action(_) => "unchecked.action",
            Self::DatedByCompromisedKey { .. } => "unchecked.dated_by_compromised_key",
            Self::Query => "unchecked.query",
            Self::Grant(_) => "unchecked.grant",
            Self::Projection(_) => "unchecked.projection",
            Self::Profile(_) => "unchecked.profile",
            Self::State(_) => "unchecked.state",
            Self::Records(_) => "unchecked.records",
            Self::Absence => "unchecked.absence",
            Self::Document => "unchecked.document",
        }
    }
}

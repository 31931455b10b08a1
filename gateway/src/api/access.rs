//! Access across gateways: what others ask for, what this owner asked others for, the grants that came, and the letters that wait.

use super::document::Signed;
use super::grants::{GrantDraft, GrantInfo};
use super::{Document, Done, endpoints};
pub use oap_federation::ask::AskState;
use oap_federation::plain::Plain;
use oap_federation::{Ask, LetterKind};
use oap_grants::{Grant, GrantState};
use oap_identity::{AskId, Did, GrantId, Hash, LetterId, Timestamp};
use oap_memory::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

endpoints! {
    /// What others ask for, newest first.
    ListAsks: GET "/oap/owner/inbox" needs Admin answers(AskList);
    /// One of these tasks, with the grant that would be what was asked.
    ShowAsk: GET "/oap/owner/inbox/{task}" at(AskId) needs Admin answers(AskInfo);
    /// Signs a grant within what was asked, and delivers it.
    ApproveAsk: POST "/oap/owner/inbox/{task}/approve" at(AskId) needs Admin body(GrantDraft) answers(GrantInfo);
    /// Says no, with a word or without.
    DeclineAsk: POST "/oap/owner/inbox/{task}/decline" at(AskId) needs Admin body(Declining) answers(AskInfo);
    /// What was asked of others, newest first.
    ListAsked: GET "/oap/owner/asked" needs Admin answers(AskedList);
    /// Asks somebody for access to their memory.
    RequestAccess: POST "/oap/owner/asked" needs Admin body(NewAsked) answers(AskedInfo);
    /// A request, and where it stands.
    ShowAsked: GET "/oap/owner/asked/{request}" at(AskId) needs Admin answers(AskedInfo);
    /// Asks the granter's gateway once more where a request stands.
    AskAgain: POST "/oap/owner/asked/{request}/again" at(AskId) needs Admin answers(AskedInfo);
    /// Takes a request back.
    WithdrawAsked: POST "/oap/owner/asked/{request}/withdraw" at(AskId) needs Admin answers(AskedInfo);
    /// The grants of others, newest first.
    ListReceived: GET "/oap/owner/received" needs Admin answers(ReceivedList);
    /// Takes a grant that was handed over as a file.
    AddReceived: POST "/oap/owner/received" needs Admin body(NewReceived) answers(ReceivedInfo);
    /// A grant of somebody's, and where it stands.
    ShowReceived: GET "/oap/owner/received/{hash}" at(Hash) needs Admin answers(ReceivedInfo);
    /// Looks up the state of a grant in its granter's status list.
    CheckReceived: POST "/oap/owner/received/{hash}/check" at(Hash) needs Admin answers(ReceivedInfo);
    /// Signs a grant for a third party that is made from one of somebody's, and narrower.
    DelegateReceived: POST "/oap/owner/received/{hash}/delegate" at(Hash) needs Admin body(GrantDraft) answers(DelegatedInfo);
    /// Notes that an answer under a grant came and held.
    NoteAnswer: POST "/oap/owner/received/{hash}/answer" at(Hash) needs Admin body(AnswerNote) answers(Done);
    /// Removes a grant from those that are kept.
    RemoveReceived: POST "/oap/owner/received/{hash}/remove" at(Hash) needs Admin answers(Done);
    /// The letters to other gateways, newest first.
    ListLetters: GET "/oap/owner/letters" needs Admin answers(LetterList);
}

/// What others ask for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AskList {
    /// Newest first.
    pub asks: Vec<AskInfo>,
}

/// What somebody asks for. Its words are a stranger's.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct AskInfo {
    /// By what this gateway names it.
    pub task: AskId,
    /// The names that whoever asks gave it, the first one first: by these they know it. Strangers choose them, and two may choose one.
    pub requests: Vec<AskId>,
    /// Who asks, proved by their signature.
    pub from: Did,
    /// Whether this gateway asked them for something or gave them something before, or has a grant of theirs. A no does not count.
    pub known: bool,
    pub ask: Ask,
    pub asked_at: Timestamp,
    /// Until when it waits.
    pub until: Timestamp,
    pub state: AskState,
    /// Since when it is over.
    pub over_at: Option<Timestamp>,
    /// What the owner said with a no.
    pub word: Option<Plain>,
    /// The grant that was signed for it.
    pub grant: Option<GrantId>,
    /// The grant that would be what was asked, within what this gateway grants at most: to preview, narrow and approve. What the ask leaves
    /// to the owner is the default scope, the profile memory.v1 and trust level 0.
    pub proposal: GrantDraft,
}

/// A no.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Declining {
    /// A word for whoever asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Plain>,
}

/// A request for access to somebody's memory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAsked {
    /// Whose memory.
    pub from: Did,
    /// What is asked.
    pub ask: Ask,
}

/// What was asked of others.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AskedList {
    /// Newest first.
    pub asked: Vec<AskedInfo>,
}

/// A request of this owner's.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct AskedInfo {
    /// Its name, at the granter's gateway too.
    pub request: AskId,
    /// Who was asked.
    pub to: Did,
    pub ask: Ask,
    pub made_at: Timestamp,
    pub state: AskState,
    /// Since when it is over.
    pub over_at: Option<Timestamp>,
    /// When the granter's gateway last said where it stands; none where it never did.
    pub heard_at: Option<Timestamp>,
    /// A word of the granter's. It is a stranger's.
    pub word: Option<Plain>,
    /// The grant that answers it, by the hash of its document.
    pub grant: Option<Hash>,
    /// Where the last letter about it stands.
    pub letter: Option<LetterState>,
    /// Why the last attempt to send it came to nothing.
    pub failure: Option<Failure>,
}

/// The grants of others.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedList {
    /// Newest first.
    pub received: Vec<ReceivedInfo>,
}

/// A grant of somebody's to this owner.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ReceivedInfo {
    /// The hash of the document: by what it is named here.
    pub hash: Hash,
    pub granter: Did,
    /// Where its state is published.
    pub place: Option<String>,
    /// Where it stands, as far as is known here.
    pub state: GrantState,
    /// Since when it is known to be void.
    pub revoked_at: Option<Timestamp>,
    pub received_at: Timestamp,
    /// The request that it answers.
    pub request: Option<AskId>,
    /// When its state was last looked up.
    pub checked_at: Option<Timestamp>,
    /// What was read under it.
    pub reading: ReadingInfo,
    pub grant: Document<Signed<Grant>>,
    /// The grants that it was made from, first one first; none where its granter gave it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<Document<Signed<Grant>>>,
}

/// A grant that this owner made from one of somebody's. Whoever it is for needs all of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DelegatedInfo {
    /// The hash of the document.
    pub hash: Hash,
    pub grant: Document<Signed<Grant>>,
    /// The grants that it was made from, first one first.
    pub above: Vec<Document<Signed<Grant>>>,
}

/// What was read under a grant of somebody's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadingInfo {
    /// Answers that held.
    pub answers: u64,
    /// Items in them, each time that they came.
    pub items: u64,
    /// When the last one came.
    pub last_at: Option<Timestamp>,
}

/// A grant that was handed over as a file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReceived {
    /// The signed document.
    pub grant: Value,
    /// Of one that was passed on, the grants that it was made from, first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Value>,
}

/// An answer under a grant that was checked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerNote {
    /// How many items it had.
    pub items: u32,
    /// Its receipt, to be acknowledged; it is verified once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Value>,
}

/// Letters to other gateways.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LetterList {
    /// Newest first.
    pub letters: Vec<LetterInfo>,
}

/// A letter to another gateway.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LetterInfo {
    pub letter: LetterId,
    pub to: Did,
    pub kind: LetterKind,
    pub state: LetterState,
    pub made_at: Timestamp,
    /// How often it was tried in vain.
    pub attempts: u32,
    /// When it is sent next, where it waits.
    pub next_at: Option<Timestamp>,
    /// Why the last attempt came to nothing.
    pub failure: Option<Failure>,
    /// Since when it is over.
    pub over_at: Option<Timestamp>,
}

closed_enum! {
    /// Where a letter stands.
    LetterState {
        /// It is to be sent, for the first time or again.
        Waiting = "waiting",
        /// Its receiver said that it had its effect.
        Delivered = "delivered",
        /// Its receiver said that it never will.
        Refused = "refused",
        /// It was tried for as long as letters are, or there was nothing left to tell.
        GivenUp = "given_up",
    }
}

closed_enum! {
    /// Why an attempt came to nothing.
    Failure {
        /// The receiver's DID has no document that can be found now.
        NoDocument = "no_document",
        /// What the receiver publishes names no place for letters.
        NoPlace = "no_place",
        /// What the receiver publishes does not hold together.
        NotSound = "not_sound",
        /// Nobody answered, or not in time.
        Unreachable = "unreachable",
        /// Something answered, and not the receiver's gateway with a signed reply.
        NoReply = "no_reply",
        /// The receiver asked for it to be sent again later.
        Later = "later",
    }
}

//! Every reason for which a service refuses or fails. The one mapping to HTTP is [`crate::http::error`].

mod conflict;
mod corrupt;
mod list;
mod member;
mod peer;
mod unavailable;
mod unproved;
mod witness;

pub use conflict::Conflict;
pub use corrupt::Corrupt;
pub use list::{LineError, ListError};
pub use member::MemberError;
pub use peer::{Disbelief, PeerError};
pub use unavailable::Unavailable;
pub use unproved::Unproved;
pub use witness::WitnessError;

use crate::api::agents::AgentRef;
use oap_agents::arguments::ArgumentError;
use oap_agents::entry::EntryError;
use oap_exchange::bridge::BridgeError;
use oap_exchange::ccc::CccError;
use oap_exchange::query::QueryError;
use oap_exchange::respond::RespondError;
use oap_federation::letter::LetterError;
use oap_federation::push::{PushError, SubscriptionError};
use oap_grants::exchange::ProofError;
use oap_grants::grant::GrantError;
use oap_grants::limits::LimitError;
use oap_grants::verify::{DelegationError, Refused, Unauthenticated};
use oap_identity::http_signature::HttpSignatureError;
use oap_identity::json::JsonError;
use oap_identity::resolve::ResolveError;
use oap_identity::signed::SignedError;
use oap_identity::{DecisionId, JobId, ReceiptId};
use oap_memory::commitment::CommitmentError;
use oap_memory::item::ItemError;
use oap_soundness::guard::Kind;
use oap_soundness::policy::Why;
use oap_store::StoreError;
use std::time::Duration;

/// Why a service did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Error {
    /// Bytes that are not JSON of the expected shape.
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error(transparent)]
    Item(#[from] ItemError),
    /// The arguments of a memory tool.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// A request for entries.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// A change of an entry or a task that does not say of which version.
    #[error("If-Match: must be the version of what is changed, a number from 1")]
    NoVersion,
    /// An agent that says it is another one.
    #[error("{0}: must be this agent's own name or DID, or left out")]
    NotSelf(&'static str),
    /// A task for another, by who gives none.
    #[error(
        "only a coordinator gives a task to another agent; the owner says who is one: `oap-memory agent set NAME --role coordinator`"
    )]
    NoCoordinator,
    /// A change of a task by who does not coordinate it.
    #[error("only the coordinator of the task may do this; who it is assigned to says how far it is")]
    NotItsCoordinator,
    /// A change of an entry that a task lets an agent read.
    #[error("the entry is another agent's: a task lets this one read it, and not change it")]
    NotItsAuthor,
    /// A write that a guardrail of an intent refuses.
    #[error("{0}: a guardrail of an intent that this agent works for refuses this")]
    Guardrail(&'static str),
    /// A namespace that an agent may not write in.
    #[error("the permissions of the namespace do not let this agent write in it")]
    NamespaceAccess,
    /// A change that would put an order in the place of what is remembered; the kinds of it.
    #[error(
        "content: it reads as an order to whoever reads it ({}); what is there stays. Say what it is about in your own words, or learn it as a \
         fact of its own, which waits for the owner",
        .0.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
    )]
    Guarded(Vec<Kind>),
    /// A link of what another wrote.
    #[error("item_id: a link is of an item that you wrote; write one, and link that one to this")]
    NotLinker,
    /// A link whose words would be an order to whoever is told of it; the kinds of it.
    #[error(
        "relationship, to, source: they read as an order to whoever reads them ({}); name the relationship, and where it comes from, in plain words",
        .0.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
    )]
    GuardedLink(Vec<Kind>),
    /// What the write policy does not keep.
    #[error("type: {}", .0.says())]
    NotKept(Why),
    /// What the owner wrote or confirmed, an agent does not erase.
    #[error("the owner wrote or confirmed what is kept of it, and the owner alone erases it")]
    OwnersWord,
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A SPARQL query, or the request that has it.
    #[error(transparent)]
    Brain(#[from] oap_brain::Error),
    /// A SPARQL query over an answer under a grant that was not evaluated to its end. The answer has its receipt.
    #[error("{0}; the items that it was asked of count as disclosed all the same, by the receipt {1}")]
    Unevaluated(#[source] oap_brain::Error, ReceiptId),
    /// A cursor that is none, or of another query or grant.
    #[error("cursor: not one of this query; leave it out to begin anew")]
    Cursor,
    /// A member of a request, and what it must be.
    #[error("{0}: {1}")]
    Member(&'static str, MemberError),
    /// What cannot be attested.
    #[error(transparent)]
    Attest(#[from] oap_conformance::receipt::AttestError),
    /// A confidentiality context.
    #[error(transparent)]
    Ccc(#[from] CccError),
    /// A bridge between scopes.
    #[error(transparent)]
    Bridge(#[from] BridgeError),
    /// A grant document.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// A grant beyond the limits.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A delegated grant.
    #[error(transparent)]
    Delegation(#[from] DelegationError),
    /// A letter of another gateway's, or one that cannot be written.
    #[error(transparent)]
    Letter(#[from] LetterError),
    /// A letter whose sender could not be proved: whatever it was that failed.
    #[error(
        "from: the sender's DID document must be found, and a key of it that is in force must have signed the letter"
    )]
    Sender,
    /// A checkpoint of another's log that is not signed.
    #[error(transparent)]
    Witness(#[from] WitnessError),
    /// What a grantee subscribes with.
    #[error(transparent)]
    Subscription(#[from] SubscriptionError),
    /// A push that cannot be read, or is of something else.
    #[error(transparent)]
    Push(#[from] PushError),
    /// A push that is not signed as one, or whose body is not the one that was signed.
    #[error(transparent)]
    Digest(#[from] HttpSignatureError),
    /// A push whose answer does not hold.
    #[error("answer: its proof must hold, under the grant of the subscription")]
    Unproved,
    /// A push that nobody can be shown to have sent who may.
    #[error(
        "Signature: a push must be signed by the granter of a subscription that has this address, now, and be sent once"
    )]
    Pusher,
    /// What was approved goes beyond what was asked.
    #[error("{0}: must be within what was asked")]
    WiderThanAsked(&'static str),
    /// The grantee's proof.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// A grantee's DID that gives no document.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Nobody, or not who they say.
    #[error(transparent)]
    Unauthenticated(#[from] Unauthenticated),
    /// The owner's credential.
    #[error("{0}")]
    Owner(Unproved),
    /// The owner's credential does not reach so far.
    #[error("the credential lacks the permission {0}")]
    Permission(&'static str),
    /// A page in a browser, or somebody who says that it is one.
    #[error(
        "Origin: callers with an Origin, such as pages in a browser, are not served; leave it out, or the owner lists it in mcp_origins"
    )]
    Origin,
    /// A name by which the gateway is not reached: a name of somebody else's that was made to lead here.
    #[error(
        "Host: must be the gateway's own, localhost or an address in figures; the owner lists others in mcp_hosts, and a proxy in trusted_proxies"
    )]
    Host,
    /// Somebody, but not allowed. The decision is in the owner's log.
    #[error("{0}")]
    Refused(Refused, DecisionId),
    /// The owner locked the gateway down.
    #[error("the owner has locked this gateway down: it answers nobody else until the owner lifts that")]
    LockedDown,
    /// Not there, or not to be seen: the same answer.
    #[error("nothing of that name here")]
    NotFound,
    /// A deletion that never was.
    #[error(
        "no deletion of this gateway's has this receipt; the id stands in the Deletion Receipt that `delete` printed, as receipt_id"
    )]
    NoDeletion,
    /// No agent of the owner's is in force under that name or DID. Only its owner acts as one.
    #[error("there is no agent {0} here: its owner runs `oap-memory agent add NAME`")]
    NoAgent(AgentRef),
    /// The owner's selectors select nothing: nothing is done and nothing recorded.
    #[error("nothing matched")]
    NothingMatched,
    /// It changed meanwhile, or cannot be done as things stand.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// Another commit came between what was read and the commit that rests on it. Whoever sees it starts again; it
    /// never reaches a caller.
    #[error("overtaken by another change; try again")]
    Overtaken,
    /// A grant that is refused by how it stands where its answer was to be recorded. It becomes [`Error::Refused`] once
    /// it has its receipt.
    #[error("{0}")]
    Judged(Refused),
    /// A key that cannot be used any more, or a signature that could not be made.
    #[error(transparent)]
    Signed(#[from] SignedError),
    /// An answer that cannot leave.
    #[error(transparent)]
    Respond(#[from] RespondError),
    /// The answer would go beyond a budget. It becomes [`Error::Refused`] once it has its receipt.
    #[error("the budget is spent")]
    Spent,
    /// Something that is needed does not answer.
    #[error("{0}; try again later")]
    Unavailable(Unavailable),
    /// Too many requests; how long until there is room again.
    #[error("too many requests; try again in {} s", seconds(*.0))]
    RateLimited(Duration),
    /// A body beyond the limit.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// Work panicked: one request's failure.
    #[error("the work on a request failed inside the program")]
    Panicked,
    /// The owner cancelled the job.
    #[error("the job was cancelled")]
    Cancelled,
    /// As many jobs as can run at once are under way.
    #[error("too many jobs are under way: wait for one, or cancel it")]
    ManyJobs,
    /// A job of the kind is under way.
    #[error("{0} does that already: wait for it, or cancel it")]
    JobRuns(JobId),
    /// A body that takes too long.
    #[error("the body did not come in time; send it without pauses")]
    Slow,
    /// No memory is left for another body, or no turn came for a call.
    #[error("too many requests are worked on at the moment; try again later")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored value is not what the program wrote.
    #[error("a stored value cannot be read: {0}")]
    Corrupt(#[from] Corrupt),
}

impl From<CommitmentError> for Error {
    fn from(error: CommitmentError) -> Self {
        Self::Corrupt(error.into())
    }
}

impl From<postcard::Error> for Error {
    fn from(error: postcard::Error) -> Self {
        Self::Corrupt(error.into())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Corrupt(error.into())
    }
}

/// A time to wait in whole seconds, which `Retry-After` takes: never too short.
pub(crate) const fn seconds(time: Duration) -> u64 {
    let whole = time.as_secs();
    if time.subsec_nanos() == 0 { whole } else { whole + 1 }
}

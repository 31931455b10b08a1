//! What a member of a request must be.

use oap_conformance::receipt::ReceiptError;
use oap_identity::Did;
use oap_identity::document::DocumentError;
use oap_identity::json::JsonError;
use oap_identity::method::MethodError;
use std::io;

/// Why a member of a request is refused; a message says what it must be.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// Not of the expected shape.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Not a key that an agent may hold itself.
    #[error("must be a did:key of a whole Ed25519 key, and not the owner's")]
    OwnKey,
    /// Not a number of entries that an agent may have.
    #[error("must be 1 to {}", oap_agents::terms::MAX_CAPACITY)]
    Capacity,
    /// Not a write policy.
    #[error(transparent)]
    Policy(#[from] oap_soundness::kept::NotPolicy),
    /// Not text.
    #[error("must be text")]
    NotText,
    /// Not an address that a client is sent back to.
    #[error(
        "each must be https, or http at 127.0.0.1, [::1] or localhost, without fragment and user, at most 1024 bytes"
    )]
    Redirect,
    /// A token where logs and histories keep it.
    #[error("stands in the Authorization header and never in the address")]
    TokenInAddress,
    /// Not one message of MCP.
    #[error("must be one message of JSON-RPC 2.0, no batch")]
    OneMessage,
    /// Headers of MCP that do not fit.
    #[error("Mcp-Protocol-Version must be a revision of the Model Context Protocol that this gateway speaks")]
    McpHeaders,
    /// Not a chunk of an import.
    #[error("must be a chunk of an import: see line {line}, column {column}")]
    Chunk {
        /// Where it is none.
        line: usize,
        /// The place in that line.
        column: usize,
    },
    /// Not an array.
    #[error("must be an array")]
    NotArray,
    /// Not an object.
    #[error("must be an object")]
    NotObject,
    /// An object with members where it has none.
    #[error("must be an empty object")]
    NotEmptyObject,
    /// Text beyond the bytes that are read.
    #[error("at most {0} bytes")]
    TooLong(usize),
    /// Text without words, or beyond the bytes that are read.
    #[error("must have words, at most {0} bytes")]
    Words(usize),
    /// None, or more than one request takes.
    #[error("must be 1 to {most} {of}")]
    Number {
        /// The most that one request takes.
        most: usize,
        /// Of what.
        of: &'static str,
    },
    /// More than one request takes, of something with a name.
    #[error("at most {most} {of}")]
    TooMany {
        /// The most that one request takes.
        most: usize,
        /// Of what.
        of: &'static str,
    },
    /// Other grants than those above the one that is exchanged.
    #[error(
        "must be the grants that this one was made from, the first one first and its parent last, each once; none for a grant without parent"
    )]
    Chain,
    /// More than one request takes.
    #[error("at most {0}")]
    AtMost(usize),
    /// No item is named.
    #[error("name one at least")]
    NoItems,
    /// Nothing selects.
    #[error("name items, labels, subjects, scopes, provenance tags or times, or say all")]
    NoSelector,
    /// Everything, and a selector.
    #[error("is everything; leave it out, or the other selectors")]
    AllAndMore,
    /// Times the wrong way round.
    #[error("must be later than captured_after")]
    BeforeAfter,
    /// No change of labels.
    #[error("name what to set, add or remove")]
    NoLabels,
    /// One thing named twice.
    #[error("one appears twice")]
    Twice,
    /// A key of a former house with other key material than is known here.
    #[error("{0}: a key is known here by the same id with other key material")]
    OtherKey(Did),
    /// More keys than are kept of a former house.
    #[error("{0}: has more keys than are kept of a former house")]
    ManyKeys(Did),
    /// The item itself where another one is needed.
    #[error("must be another item")]
    OtherItem,
    /// Whoever keeps a log among those who are to sign it.
    #[error("must not name the peer itself: nobody is the witness of their own log")]
    OwnWitness,
    /// A time at which an item was not remembered.
    #[error("the item was not remembered then; memory_explain without as_of says since when it is")]
    NotThen,
    /// A time of which nothing is told.
    #[error(
        "what the item said then is not kept any more, or is not told; leave as_of out, or name a later time"
    )]
    NotKept,
    /// A time that has passed.
    #[error("must be later than now")]
    Passed,
    /// No beginning of an item's id.
    #[error(transparent)]
    Prefix(#[from] crate::api::prefix::PrefixError),
    /// No version, of what an agent wrote.
    #[error("an agent wrote what is in force; name the version that you read")]
    NoVersion,
    /// Another scope than the item's.
    #[error("an item cannot change its scope")]
    OtherScope,
    /// A scope that nothing leads out of.
    #[error("no Cross Scope Bridge leads from one of them to the grant's scope; issue one first")]
    NoBridge,
    /// A DID of no method that works here.
    #[error("{}", .0.rule())]
    Method(MethodError),
    /// A grantee whose DID document cannot be found.
    #[error("{0}; --offline (in the address: ?offline=true) issues the grant all the same")]
    Unresolved(Box<crate::Error>),
    /// A DID document without its DID.
    #[error("one has no id")]
    NoId,
    /// What is no DID document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// What is no Conformance Receipt.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// No receipt of an answer.
    #[error("must be the receipt of an answer to this principal under this grant, signed by its granter")]
    NotAnswered,
    /// What is no grant.
    #[error("must be a signed grant")]
    NotGrant,
    /// A grant that does not hold; the check that failed, for its text may name who the grant names.
    #[error("the grant does not hold: {}", .0.id())]
    Terms(oap_grants::evidence::TermsError),
    /// A query that is not answered.
    #[error(transparent)]
    Sparql(oap_brain::Error),
    /// Whoever passes a grant on, as whom it is for.
    #[error("must be somebody else: this principal has the grant already")]
    OwnGrantee,
    /// A grant to somebody else.
    #[error("is made out to somebody else")]
    OtherGrantee,
    /// No id of a receipt.
    #[error("must be a receipt's id")]
    NoReceiptId,
    /// A receipt without its gateway's signature.
    #[error("must have the gateway's signature")]
    NoSignature,
    /// A path that depends on where the gateway was started.
    #[error("must be an absolute path")]
    RelativePath,
    /// A folder or file that cannot be written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// Not what a page ended with.
    #[error("not where a page ended")]
    NotPageEnd,
    /// A body of another media type.
    #[error("must be {} or application/json", crate::api::MEDIA_TYPE)]
    MediaType,
    /// No parameters of an address.
    #[error("must be parameters, name=value")]
    Parameters,
    /// A body that broke off.
    #[error("must come whole; it broke off")]
    BrokeOff,
    /// Another version of the protocol.
    #[error("must be \"1.0\"")]
    Version,
    /// No code of a currency.
    #[error("must be three capital letters")]
    ThreeCapitals,
    /// No code of a country.
    #[error("must be two capital letters")]
    TwoCapitals,
    /// No time as it is written here.
    #[error("must be RFC 3339 in UTC with Z")]
    Time,
    /// A time of another day.
    #[error("must be within five minutes of the gateway's time")]
    Skew,
    /// A time that has not come.
    #[error("is in the future by the gateway's clock; is that right? (oap-memory clock)")]
    Future,
    /// A peer that could not be read, or is not believed.
    #[error("nothing is pinned: {0}")]
    NotPeer(Box<crate::error::PeerError>),
    /// The gateway itself.
    #[error("is this gateway itself")]
    OwnPeer,
    /// No number of an event.
    #[error("must be the id of the last event that came")]
    EventNumber,
    /// A DID that is its own key, where a gateway is needed.
    #[error("must be the DID of a gateway with an address, a did:web")]
    NoGateway,
    /// Not the code that is shown here.
    #[error(
        "must be the code that this gateway shows too: if the other shows another one, somebody is between the two, so begin anew"
    )]
    OtherCode,
    /// Another than its header says.
    #[error("must be that of the {0} header")]
    OtherHeader(&'static str),
}

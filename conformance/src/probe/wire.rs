//! The two sides of a gateway that is probed: the wire, and the owner's commands.

use oap_identity::json as strict;
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A request.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Request {
    /// GET, POST.
    pub method: &'static str,
    /// The path, with its query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

/// What came back.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Reply {
    pub status: u16,
    /// Headers, their names in small letters.
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
}

impl Reply {
    /// The body as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        strict::parse(&self.bytes).unwrap_or(Value::Null)
    }

    /// A header; the name in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// After how many seconds it may be asked again.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.parse().ok().map(Duration::from_secs)
    }
}

/// Something on its way.
pub type Pending<'a, T, E = WireError> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Why a wire did not do what it was asked. The texts are for the person who reads the report.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Nothing listens, or what came is not HTTP.
    #[error("{0}")]
    Unanswered(String),
    /// The reply is longer than any that a gateway may give.
    #[error("an answer larger than any gateway's")]
    TooLarge,
    /// It cannot let time pass.
    #[error("time cannot pass: {0}")]
    Time(String),
    /// Who sets the clock cannot be asked any more: the run is over.
    #[error("{0}")]
    Ended(String),
}

/// What the gateway said when it refused a command of its owner.
#[derive(Debug)]
pub struct Refused(pub String);

/// Why the owner's side did not run a command.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The gateway refused it: what it says.
    #[error("{0}")]
    Refused(String),
    /// The owner's side says of itself that it has no such command.
    #[error("{0}")]
    Lacks(String),
    /// It never came to the gateway: this says nothing of what the gateway would do.
    #[error("{0}")]
    Broken(String),
    /// The gateway broke down over it: what it says.
    #[error("{0}")]
    Fault(String),
    /// The owner's side cannot be asked any more: the run is over.
    #[error("{0}")]
    Ended(String),
}

impl SetupError {
    /// What a report says came back.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Refused(why) => format!("refused: {why}"),
            Self::Lacks(what) => format!("lacks: {what}"),
            Self::Fault(why) => format!("a fault of the gateway: {why}"),
            Self::Broken(why) | Self::Ended(why) => why.clone(),
        }
    }
}

/// The commands that an owner's side need not have.
pub const OPTIONAL: [&str; 5] = ["delete_selected", "profile", "sanctions", "audit", "lockdown"];

/// A way to ask that a gateway must not answer (OAP-CORE 8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forbidden {
    /// HTTP without TLS.
    Plain,
    /// TLS older than 1.3.
    OldTls,
}

/// The way to the gateway.
pub trait Wire: Send + Sync {
    /// Sends a request to the gateway's origin.
    fn send(&self, request: Request) -> Pending<'_, Reply>;

    /// The same where the answer is a stream of events: it is read as far as the empty line behind the first one. What has none is read whole.
    fn first_event(&self, request: Request) -> Pending<'_, Reply>;

    /// Lets time pass, the gateway's too.
    fn wait(&self, time: Duration) -> Pending<'_, ()>;

    /// Whether time that is waited for costs none: the gateway's clock is set, and this one with it.
    fn sets_clock(&self) -> bool {
        false
    }

    /// Asks in a way that must not be answered: an error when it is not, `None` where this wire cannot ask so.
    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>>;
}

/// The owner's side of the gateway: commands as JSON.
///
/// | `do` | with | gives |
/// |---|---|---|
/// | `capture` | `items`: as their owner writes them | `item_ids` |
/// | `grant` | `draft`: grantee, purpose, filter, max_items, expires_at, redaction_profile, trust_level, operations | `grant` |
/// | `revoke` | `grant_id` | |
/// | `correct` | `item_id`, `item` | |
/// | `relabel` | `item_id`, `labels` | |
/// | `confirm`, `retract`, `restore` | `item_id` | |
/// | `delete` | `item_ids` | `deletion_receipt` |
/// | `delete_selected` | `selection`: `items`, `labels`, `subjects`, `scopes`, `provenance_tags`, `captured_after`, `captured_before` | `deletion_receipt` |
/// | `rotate` | | |
/// | `context` | `context`: a document of `oap-ccc.schema.json` | |
/// | `bridge` | `draft`: from_scope, to_scope, data_categories, valid_until | `bridge` |
/// | `unbridge` | `bridge_id` | |
/// | `consent` | `grant_id` | |
/// | `profile` | `profile`: a document of protocol section 7, which grants can name from now on | |
/// | `sanctions` | `list`; `named`: DIDs, or null where it is not at hand; from the next context on | |
/// | `audit` | `asked`: the parameters of the owner's log by their names; `chain` names a scope | `receipts` |
/// | `lockdown`, `unlock` | | only where [`Setup::may_lock_down`] |
///
/// An owner's side need not have [`OPTIONAL`]: where it says [`SetupError::Lacks`], what is looked at by such a command is not covered. A refusal does not
/// say so.
///
/// A setup program may have `wait` too: that is [`Wire::wait`], where the gateway's clock is set by it.
///
/// A command that the gateway refuses is [`SetupError::Refused`], one that it answers with a fault of its own [`SetupError::Fault`].
pub trait Setup: Send + Sync {
    /// Runs a command.
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError>;

    /// Whether a lockdown may be asked for: it ends every grant that there is, and so is for gateways that were made to be probed.
    fn may_lock_down(&self) -> bool {
        false
    }
}

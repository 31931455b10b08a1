//! The one mapping from reasons to HTTP status and OAP code (OAP-CORE appendix B, protocol section 1).
//!
//! A message never carries content of an item, a key, a token, or a path of the host.

use crate::Error;
use crate::error::WitnessError;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oap_agents::entry::EntryError;
use oap_brain::error::Sort;
use oap_federation::letter::LetterError;
use oap_grants::verify::Refused;
use oap_memory::log::checkpoint::CheckpointError;
use oap_store::StoreError;

/// An error as it is answered; [`super::finish`] writes it out with the request's name.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Refusal {
    pub status: StatusCode,
    /// The code of appendix B.
    pub code: &'static str,
    /// What to do.
    pub message: String,
    /// What the owner is told in its place.
    pub for_owner: Option<String>,
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let (status, code) = status_and_code(error);
        let internal = status == StatusCode::INTERNAL_SERVER_ERROR;
        let message = match error {
            Error::Store(StoreError::Stopped) => "the gateway is stopping; try again later".to_owned(),
            // Without a receipt there is no answer; how full the disk is concerns the owner alone.
            Error::Store(StoreError::Full { .. }) => {
                "the gateway cannot write a receipt; try again later".to_owned()
            }
            _ if internal => "the gateway failed; its owner finds the reason in the log".to_owned(),
            error => error.to_string(),
        };
        let for_owner = match error {
            Error::Store(full @ StoreError::Full { .. }) => Some(full.to_string()),
            _ => None,
        };
        Self { status, code, message, for_owner }
    }
}

impl Refusal {
    /// The refusal that a layer made with a status alone, without a body: another method, a timeout.
    #[must_use]
    pub fn of_bare(response: &Response) -> Option<Self> {
        let status = response.status();
        let has_body = response.headers().contains_key(header::CONTENT_TYPE);
        if has_body || !(status.is_client_error() || status.is_server_error()) {
            return None;
        }
        let (code, message) = match status {
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method_not_allowed", "this address takes other methods; the Allow header names them")
            }
            StatusCode::GATEWAY_TIMEOUT => ("maintenance", "it took too long; try again later"),
            status if status.is_client_error() => ("invalid_input", "the request cannot be read"),
            _ => ("internal_error", "the gateway failed; its owner finds the reason in the log"),
        };
        Some(Self { status, code, message: message.to_owned(), for_owner: None })
    }
}

/// `Retry-After` in whole seconds (RFC 9110, section 10.2.3), for who was asked to wait.
pub fn retry_after(error: &Error) -> HeaderMap {
    match error {
        Error::RateLimited(time) => {
            std::iter::once((header::RETRY_AFTER, crate::error::seconds(*time).into())).collect()
        }
        _ => HeaderMap::new(),
    }
}

const fn status_and_code(error: &Error) -> (StatusCode, &'static str) {
    match error {
        Error::Letter(LetterError::TooLong) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        Error::Entry(EntryError::TooLarge) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        Error::Entry(EntryError::Shape(_) | EntryError::Field(..) | EntryError::At { .. }) => {
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid_input")
        }
        Error::NoVersion => (StatusCode::PRECONDITION_REQUIRED, "precondition_required"),
        Error::Brain(error) | Error::Unevaluated(error, _) => match error.sort() {
            Sort::Wrong | Sort::TooMuch => (StatusCode::BAD_REQUEST, "invalid_input"),
            Sort::Method => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Sort::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_input"),
            Sort::NotAcceptable => (StatusCode::NOT_ACCEPTABLE, "invalid_input"),
        },
        Error::Witness(WitnessError::Inconsistent(_)) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_input"),
        Error::Witness(
            WitnessError::Submission(_)
            | WitnessError::Old
            | WitnessError::Checkpoint(CheckpointError::Shape),
        ) => (StatusCode::BAD_REQUEST, "invalid_input"),
        Error::Json(_)
        | Error::Entry(EntryError::NotJson(_))
        | Error::Item(_)
        | Error::Query(_)
        | Error::Arguments(_)
        | Error::Attest(_)
        | Error::Ccc(_)
        | Error::Bridge(_)
        | Error::Cursor
        | Error::Member(..)
        | Error::Grant(_)
        | Error::Limit(_)
        | Error::Letter(_)
        | Error::Subscription(_)
        | Error::Push(_)
        | Error::Digest(_)
        | Error::Unproved
        | Error::WiderThanAsked(_)
        | Error::Delegation(_) => (StatusCode::BAD_REQUEST, "invalid_input"),
        Error::Proof(_)
        | Error::Resolve(_)
        | Error::Unauthenticated(_)
        | Error::Owner(_)
        | Error::Sender
        | Error::Pusher => (StatusCode::UNAUTHORIZED, "auth_required"),
        Error::Refused(Refused::Budget, _) | Error::Spent => {
            (StatusCode::TOO_MANY_REQUESTS, "budget_exhausted")
        }
        Error::Guardrail(_) => (StatusCode::FORBIDDEN, "guardrail_violation"),
        Error::Permission(_)
        | Error::NoCoordinator
        | Error::NotItsCoordinator
        | Error::NotItsAuthor
        | Error::NamespaceAccess
        | Error::NotSelf(_)
        | Error::OwnersWord
        | Error::Origin
        | Error::Host
        | Error::Guarded(_)
        | Error::GuardedLink(_)
        | Error::NotLinker
        | Error::NotKept(_)
        | Error::Witness(WitnessError::Checkpoint(_) | WitnessError::Forgetful)
        | Error::Refused(..)
        | Error::LockedDown
        | Error::Judged(_) => (StatusCode::FORBIDDEN, "policy_block"),
        Error::NotFound | Error::NoAgent(_) | Error::NoDeletion | Error::NothingMatched => {
            (StatusCode::NOT_FOUND, "not_found")
        }
        Error::Conflict(_) | Error::Cancelled | Error::JobRuns(_) | Error::ManyJobs => {
            (StatusCode::CONFLICT, "conflict")
        }
        Error::RateLimited(_) => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
        Error::Slow => (StatusCode::REQUEST_TIMEOUT, "invalid_input"),
        Error::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        Error::Store(StoreError::Full { .. }) => (StatusCode::INSUFFICIENT_STORAGE, "storage_full"),
        Error::Store(StoreError::Stopped) | Error::Unavailable(_) | Error::Overtaken | Error::Busy => {
            (StatusCode::SERVICE_UNAVAILABLE, "maintenance")
        }
        Error::Store(_) | Error::Corrupt(_) | Error::Signed(_) | Error::Respond(_) | Error::Panicked => {
            (StatusCode::INTERNAL_SERVER_ERROR, "internal_error")
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let refusal = Refusal::from(&self);
        if refusal.status.is_server_error() {
            tracing::error!(error = %self, "failed");
        }
        let mut response = (refusal.status, retry_after(&self)).into_response();
        response.extensions_mut().insert(refusal);
        response
    }
}

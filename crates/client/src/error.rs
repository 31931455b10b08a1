//! Why a request to a gateway failed, and how its answers are read.

use crate::keyfile::KeyFileError;
use oap_identity::json::{self, JsonError};
use oap_identity::outgoing::{SendError, Untrusted};
use serde_json::Value;

/// Why a request to a gateway failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The gateway refused.
    #[error("{message} ({code}, status {status})")]
    #[allow(missing_docs, reason = "the names say it")]
    Refused {
        /// Whether it is the owner's own gateway, asked as its owner.
        own: bool,
        status: u16,
        /// The code of OAP-CORE appendix B.
        code: String,
        /// What to do.
        message: String,
    },
    /// The gateway could not be reached.
    #[error("{0} cannot be reached: {1}")]
    Unreachable(String, String),
    /// The gateway's certificate was signed by an authority that is not known here.
    #[error("{0} cannot be reached: {1}")]
    UnknownAuthority(String, String),
    /// An answer that is no JSON, or not of the expected shape.
    #[error("{0} gave an answer that cannot be read: {1}")]
    Malformed(String, String),
    /// What was to be sent, or what came back, is not JSON of the expected shape.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A prover could not make its proof.
    #[error("the key: {0}")]
    Prover(Box<dyn std::error::Error + Send + Sync>),
    /// A key or a signature.
    #[error(transparent)]
    Signed(#[from] oap_identity::signed::SignedError),
    /// A DID that gives no document.
    #[error("{did}{0}", did = .0.did().map_or_else(String::new, |did| format!("{did}: ")))]
    Resolve(#[from] oap_identity::resolve::ResolveError),
    /// What the gateway publishes does not hold together.
    #[error("what {0} publishes does not hold together: {1}")]
    Manifest(String, oap_manifest::check::ManifestError),
    /// The answer's proof does not hold.
    #[error("the answer's proof does not hold: {0}")]
    Evidence(#[from] oap_memory::evidence::EvidenceError),
    /// The grant does not hold, or the answer was not given under it.
    #[error("the grant: {0}")]
    Terms(#[from] oap_grants::evidence::TermsError),
    /// What a gateway says of its log does not hold.
    #[error("the log: {0}")]
    Log(#[from] oap_memory::log::inclusion::InclusionError),
    /// A grant that does not say where to use it.
    #[error("the grant does not say where its gateway is: name the URL")]
    NoPlace,
    /// A grant that leads where a stranger may not lead us.
    #[error(
        "the grant leads to {0}, which is not https at a public address: if you trust it, name the URL yourself"
    )]
    NotPublic(String),
    /// A gateway of somebody else than the grant's granter.
    #[error("{0} is not the gateway of the grant's granter {1}; nothing was sent to it")]
    OtherGateway(String, oap_identity::Did),
    /// A key file.
    #[error("the key file: {0}")]
    Key(#[from] KeyFileError),
    /// The answer names somebody or something else.
    #[error("the answer is not for this: {0}")]
    Mismatch(&'static str),
}

impl ClientError {
    /// Whether what was asked for is not there any more, or not in a state for it.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 409, .. })
    }

    /// Why an address gave no answer.
    #[must_use]
    pub fn of_send(url: &str, error: &SendError) -> Self {
        match error {
            SendError::TooLarge(_) => Self::Malformed(url.to_owned(), format!("it is {error}")),
            _ if error.untrusted() == Some(Untrusted::Authority) => {
                Self::UnknownAuthority(url.to_owned(), error.root_cause())
            }
            _ => Self::Unreachable(url.to_owned(), error.root_cause()),
        }
    }
}

/// What a gateway answered: JSON, or a refusal.
pub(crate) fn read(from: &str, status: u16, body: &[u8]) -> Result<Value, ClientError> {
    if (200..300).contains(&status) {
        return json::parse(body).map_err(|e| ClientError::Malformed(from.to_owned(), e.to_string()));
    }
    let value = json::parse(body).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let nested = &value["error"];
    let code = text(nested).or_else(|| text(&nested["code"])).unwrap_or_else(|| "unknown".to_owned());
    let message = text(&value["message"]).or_else(|| text(&nested["message"]));
    let message = message.unwrap_or_else(|| "refused".to_owned());
    Err(ClientError::Refused { own: false, status, code, message })
}

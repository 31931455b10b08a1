//! Why a client of OAuth is refused: a code of the protocol, and what to do.

use super::redirect::MAX_REDIRECT;
use super::{DocumentError, MAX_SCOPE};

/// Why a request is refused; a message is what the client's developer reads. None repeats what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OAuthError {
    /// A parameter that stands there twice (RFC 6749 section 3.1).
    #[error("{0}: must stand there once")]
    Twice(&'static str),
    /// A parameter that has to be there.
    #[error("{0}: is missing")]
    Missing(&'static str),
    /// A parameter beyond its bound.
    #[error("{0}: at most {1} bytes")]
    TooLong(&'static str, usize),
    /// Neither the name of a client nor an address of one.
    #[error(
        "client_id: must be the https address of a client metadata document, or the name of a client that the owner added"
    )]
    ClientId,
    /// A name that the owner did not give.
    #[error(
        "client_id: no client of this name here: the owner runs `oap-memory agent client add NAME --redirect URI`"
    )]
    UnknownClient,
    /// A document that does not say who the client is.
    #[error("client_id: {0}")]
    Document(#[from] DocumentError),
    /// A client that wants to prove itself by a secret.
    #[error("the client is public here: no client_secret, no client_assertion and no Authorization header")]
    ClientSecret,
    /// Not an address to go back to.
    #[error(
        "redirect_uri: must be https, or http at 127.0.0.1, [::1] or localhost, without fragment and user, at most {MAX_REDIRECT} bytes"
    )]
    RedirectForm,
    /// An address that the client did not name.
    #[error(
        "redirect_uri: is none of the client's own; they are compared as they are written, but for a port of loopback"
    )]
    Redirect,
    /// Another flow than the one with a code.
    #[error("response_type: must be code")]
    ResponseType,
    /// No PKCE, or not with S256.
    #[error("code_challenge: must be the base64url of a SHA-256, with code_challenge_method S256")]
    Challenge,
    /// No thumbprint of a key.
    #[error("dpop_jkt: must be the base64url of a SHA-256")]
    Thumbprint,
    /// Another resource than this one.
    #[error("resource: must be the address of this gateway's /mcp")]
    Target,
    /// No scope that is known here, or more than was given.
    #[error(
        "scope: must name memory.read, memory.write or memory.admin, no more than was given, at most {MAX_SCOPE} bytes"
    )]
    Scope,
    /// Another way to a token.
    #[error("grant_type: must be authorization_code or refresh_token")]
    GrantType,
    /// A code that gives nothing: unknown, used, too old, of another client, or with a verifier that does not fit.
    #[error("the code is not one of this gateway's for this client and verifier, or was used, or is over")]
    Code,
    /// A refresh token that gives nothing.
    #[error(
        "the refresh token is not one of this gateway's for this client, or was used, or its consent ended: ask the owner again"
    )]
    Refresh,
    /// A proof of possession that does not hold.
    #[error(
        "the DPoP proof does not hold for this request and key, or was used before; it is signed with EdDSA"
    )]
    Proof,
    /// A body that is no form.
    #[error("the body must be application/x-www-form-urlencoded, at most {0} bytes")]
    Form(usize),
    /// A page loads it that the person does not see.
    #[error("this page is for a person: open it in the browser itself, not inside another page")]
    Embedded,
    /// As many wait from this network as may.
    #[error("too many requests wait for the owner: let them answer, or try again in some minutes")]
    Full,
    /// The metadata of as many clients as can be is being fetched.
    #[error("too many documents of clients are being fetched; try again")]
    Busy,
}

impl OAuthError {
    /// The code of RFC 6749, 8707 or 9449.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Twice(_)
            | Self::Missing(_)
            | Self::TooLong(..)
            | Self::RedirectForm
            | Self::Redirect
            | Self::Challenge
            | Self::Thumbprint
            | Self::Form(_)
            | Self::Embedded => "invalid_request",
            Self::ClientId | Self::UnknownClient | Self::Document(_) | Self::ClientSecret => "invalid_client",
            Self::ResponseType => "unsupported_response_type",
            Self::Target => "invalid_target",
            Self::Scope => "invalid_scope",
            Self::GrantType => "unsupported_grant_type",
            Self::Code | Self::Refresh => "invalid_grant",
            Self::Proof => "invalid_dpop_proof",
            Self::Full | Self::Busy => "temporarily_unavailable",
        }
    }

    /// Whether the same request may be served later.
    #[must_use]
    pub const fn is_for_now(self) -> bool {
        matches!(self, Self::Full | Self::Busy)
    }
}

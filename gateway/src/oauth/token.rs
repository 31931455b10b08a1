//! What a client sends to the token endpoint, and what it is given there.

use super::asked::Parameters;
use super::secret::{self, REFRESH_PREFIX};
use super::{ApprovalKey, ClientId, OAuthError, permission};
use oap_client::Permission;
use oap_identity::Hash;
use serde::Serialize;

/// Largest form, in bytes.
pub const MAX_FORM: usize = 8 << 10;

/// A request for tokens, whose client and proof are not judged yet.
pub enum TokenRequest {
    /// With a code of the owner's yes.
    #[allow(missing_docs, reason = "the names say it")]
    Code { client: ClientId, code: Hash, redirect: Option<String>, verifier: String },
    /// With a refresh token.
    #[allow(missing_docs, reason = "the names say it")]
    Refresh { client: ClientId, approval: ApprovalKey, token: Hash, permission: Option<Permission> },
}

impl TokenRequest {
    /// Reads a form for a resource.
    ///
    /// # Errors
    /// [`OAuthError`].
    pub fn read(form: &Parameters, resource: &str) -> Result<Self, OAuthError> {
        for name in ["client_secret", "client_assertion"] {
            if form.get(name)?.is_some() {
                return Err(OAuthError::ClientSecret);
            }
        }
        let kind = form.need("grant_type")?;
        let client = form.need("client_id")?.parse()?;
        form.is_for(resource)?;
        match kind {
            "authorization_code" => Ok(Self::Code {
                client,
                code: Hash::of(form.need("code")?.as_bytes()),
                redirect: form.get("redirect_uri")?.map(ToOwned::to_owned),
                verifier: form.need("code_verifier")?.to_owned(),
            }),
            "refresh_token" => {
                let (approval, token) =
                    secret::read(REFRESH_PREFIX, form.need("refresh_token")?).ok_or(OAuthError::Refresh)?;
                let permission = form.get("scope")?.map(permission).transpose()?;
                Ok(Self::Refresh { client, approval, token, permission })
            }
            _ => Err(OAuthError::GrantType),
        }
    }
}

/// Tokens as a client is given them (RFC 6749 section 5.1). They do not print.
#[derive(Serialize)]
pub struct Tokens {
    /// For `/mcp`.
    pub access_token: String,
    /// `Bearer`, or `DPoP` where they are bound to a key.
    pub token_type: &'static str,
    /// Seconds.
    pub expires_in: u64,
    /// For the next access token, once.
    pub refresh_token: String,
    /// What the owner said yes to.
    pub scope: String,
}

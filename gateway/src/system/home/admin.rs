//! The administrator of a home: the owner's agent that the command line is.

use super::{Home, HomeError, file_error, malformed, write_private};
use crate::api::Permission;
use crate::error::{Corrupt, Error};
use crate::state::gateway::Gateway;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::{Did, Signer};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The administrator's credential in a home.
pub(super) const ADMIN: &str = "admin.json";

/// The administrator's credential, as `admin.json` holds it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdminCredential {
    /// Where the gateway is reached.
    pub origin: String,
    /// Whose gateway it is.
    pub principal: Did,
    /// The agent's key: base64url of its seed.
    agent_key: Zeroizing<String>,
    /// The trust token.
    pub trust_token: Zeroizing<String>,
}

impl AdminCredential {
    /// The agent's key.
    ///
    /// # Errors
    /// [`HomeError::Malformed`].
    pub fn signer(&self) -> Result<Signer, HomeError> {
        let malformed = || HomeError::Malformed(ADMIN.into(), "agent_key is not a key".into());
        let seed = URL_SAFE_NO_PAD.decode(&*self.agent_key).map_err(|_| malformed())?;
        let seed: Zeroizing<[u8; 32]> = Zeroizing::new(seed.try_into().map_err(|_| malformed())?);
        Signer::did_key(&seed).map_err(|_| malformed())
    }
}

impl Home {
    /// The administrator's credential.
    ///
    /// # Errors
    /// [`HomeError::File`], [`HomeError::Malformed`].
    pub fn admin(&self) -> Result<AdminCredential, HomeError> {
        let path = self.file(ADMIN);
        let text = std::fs::read(&path).map_err(|e| file_error(&path, e))?;
        serde_json::from_slice(&text).map_err(|e| malformed(&path, &e))
    }

    /// Writes the credential with a new token for the agent that it has.
    ///
    /// # Errors
    /// [`HomeError::File`].
    pub fn write_token(&self, mut credential: AdminCredential, token: &str) -> Result<(), HomeError> {
        credential.trust_token = Zeroizing::new(token.to_owned());
        let text = Zeroizing::new(serde_json::to_string_pretty(&credential).map_err(Error::from)?);
        write_private(&self.file(ADMIN), text.as_bytes())
    }

    /// Gives the administrator a fresh token, as every start of the server does. On a disk that is full to the last block the
    /// token is good for this process alone.
    ///
    /// # Errors
    /// [`HomeError`].
    pub fn renew_admin(&self, gateway: &Gateway) -> Result<AdminCredential, HomeError> {
        let mut credential = self.admin()?;
        let token = gateway.trust_token(&credential.signer()?, Permission::Admin)?;
        credential.origin = gateway.origin().to_owned();
        let written = self.write_token(credential.clone(), &token);
        if written.as_ref().err().is_some_and(HomeError::is_full) {
            let space = gateway.store.space();
            space.give_back();
            if let Err(error) = self.write_token(credential.clone(), &token) {
                tracing::error!(%error, "the administrator's credential cannot be written");
            }
            space.refill();
        } else {
            written?;
        }
        credential.trust_token = Zeroizing::new(token.to_string());
        Ok(credential)
    }

    /// Writes the credential of an administrator who is new.
    ///
    /// # Errors
    /// [`HomeError::File`].
    pub(crate) fn write_admin(&self, gateway: &Gateway, seed: &[u8; 32]) -> Result<(), HomeError> {
        let agent = Signer::did_key(seed).map_err(Corrupt::Key).map_err(Error::from)?;
        let token = gateway.trust_token(&agent, Permission::Admin)?;
        let credential = AdminCredential {
            origin: gateway.origin().to_owned(),
            principal: gateway.principal().clone(),
            agent_key: Zeroizing::new(URL_SAFE_NO_PAD.encode(seed)),
            trust_token: Zeroizing::new(String::new()),
        };
        self.write_token(credential, &token)
    }
}

//! The owner's side: trust tokens of OAP-CORE 10.1 (protocol section 10).
//!
//! A token is signed by the principal's key in use and bound to an agent's key; rotating the principal's key ends
//! every token.

use crate::error::Error;
use crate::state::gateway::Gateway;
use crate::state::keyring::Keyring;
use oap_grants::dpop::{self, Request};
use oap_grants::token::Confirmation;
use oap_grants::verify::Presented;
use oap_identity::signed::{UnverifiedJwt, sign_jwt};
use oap_identity::{Did, Kid, Signer, random};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::sync::Arc;

/// The `typ` of a trust token.
pub const TYP: &str = "oap-trust-token+jwt";
/// How long the administrator's token lives, in seconds: a year. Every start of the server renews it.
pub const ADMIN_LIFE: i64 = 365 * 86_400;

/// What a trust token permits; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Permission {
    /// Read memory.
    #[serde(rename = "memory.read")]
    Read,
    /// Write memory.
    #[serde(rename = "memory.write")]
    Write,
    /// Grant, revoke, delete, rotate keys, read the audit log.
    #[serde(rename = "memory.admin")]
    Admin,
}

impl Permission {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "memory.read",
            Self::Write => "memory.write",
            Self::Admin => "memory.admin",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Claims {
    iss: Did,
    sub: Did,
    aud: String,
    agent: Did,
    scope: Vec<Permission>,
    nonce: String,
    iat: i64,
    exp: i64,
    cnf: Confirmation,
}

/// One of the owner's own agents, with a permission that was checked.
#[derive(Debug, Clone)]
pub struct OwnerAgent {
    agent: Did,
    jkt: String,
    permissions: Vec<Permission>,
}

tokio::task_local! {
    /// The key that signed the credential of the owner's request that is being answered.
    static ACTS_UNDER: RefCell<Option<Kid>>;
}

/// Answers a request. Once the owner's credential was checked in it, whatever it commits is committed only while the key that
/// signed the credential is the one in use: a rotation ends every credential, those of requests under way with them.
pub(crate) async fn as_request<T>(answering: impl Future<Output = T>) -> T {
    ACTS_UNDER.scope(RefCell::new(None), answering).await
}

/// The key under whose credential the running request acts; `None` where it is not the owner's.
pub(crate) fn acts_under() -> Option<Kid> {
    ACTS_UNDER.try_with(|key| key.borrow().clone()).ok().flatten()
}

/// What a request goes on under: the key that it put into use itself, for instance.
pub(crate) fn act_under(key: &Kid) {
    // Elsewhere than in a request there is no credential.
    let _ = ACTS_UNDER.try_with(|under| *under.borrow_mut() = Some(key.clone()));
}

/// That the credential of the running request, where it has one, is signed by the key in use.
///
/// # Errors
/// [`Error::Owner`].
pub(crate) fn still_owner(under: Option<&Kid>, keys: &Keyring) -> Result<(), Error> {
    match under {
        Some(key) if key != keys.current().kid() => Err(Error::Owner(ENDED)),
        _ => Ok(()),
    }
}

const ENDED: &str = "the trust token is not one of this gateway's, or was ended by a key rotation";

impl OwnerAgent {
    /// The agent.
    #[must_use]
    pub const fn agent(&self) -> &Did {
        &self.agent
    }
}

impl Gateway {
    /// Makes a trust token for an agent's key.
    ///
    /// # Errors
    /// [`Error::Signed`]; none in practice.
    pub fn trust_token(&self, agent: &Signer, permission: Permission) -> Result<String, Error> {
        let agent = OwnerAgent {
            agent: agent.did().clone(),
            jkt: agent.public().thumbprint(),
            permissions: vec![permission],
        };
        self.token_by(&agent, &self.keys())
    }

    /// Makes a trust token for an agent that changed the keys, by the key that its request put into use.
    ///
    /// # Errors
    /// [`Error::Owner`] when the keys were changed again since.
    pub fn renew_token(&self, agent: &OwnerAgent) -> Result<String, Error> {
        let keys = self.keys();
        still_owner(acts_under().as_ref(), &keys)?;
        self.token_by(agent, &keys)
    }

    fn token_by(&self, agent: &OwnerAgent, keys: &Keyring) -> Result<String, Error> {
        // By the clock itself, believed or not: it is the owner's own, and it is they who set it right.
        let now = self.clock.raw().seconds();
        let claims = Claims {
            iss: self.principal.clone(),
            sub: self.principal.clone(),
            aud: self.origin.clone(),
            agent: agent.agent.clone(),
            scope: agent.permissions.clone(),
            nonce: oap_identity::Hash::of(&random::bytes::<16>(&*self.random)).to_string()[7..39].to_owned(),
            iat: now,
            exp: now + ADMIN_LIFE,
            cnf: Confirmation { jkt: agent.jkt.clone() },
        };
        Ok(sign_jwt(keys.current(), TYP, &claims)?)
    }

    /// Which of the owner's agents presents a trust token, with at least that permission. The proof is remembered
    /// before this returns.
    ///
    /// # Errors
    /// [`Error::Owner`], [`Error::Permission`].
    pub async fn owner_agent(
        self: &Arc<Self>,
        authorization: &[String],
        proofs: &[String],
        request: Request<'_>,
        needed: Permission,
    ) -> Result<OwnerAgent, Error> {
        let [authorization] = authorization else {
            return Err(Error::Owner(
                "the owner's credential is needed: \"Authorization: DPoP <trust token>\"",
            ));
        };
        let token = authorization
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("dpop"))
            .map(|(_, token)| token.trim())
            .ok_or(Error::Owner("a trust token is sent as \"Authorization: DPoP\" with a proof"))?;
        let (claims, key) = self.check_trust_token(token)?;
        let headers: Vec<&str> = proofs.iter().map(String::as_str).collect();
        let proof = dpop::check(&headers, request, token, self.clock.raw())
            .map_err(|e| Error::Unauthenticated(e.into()))?;
        if proof.jkt != claims.cnf.jkt {
            return Err(Error::Owner("the proof is signed by another key than the token is bound to"));
        }
        self.use_owner_proof(proof.replay_key).await.map_err(|error| match error {
            Error::Proof(_) => Error::Owner("the DPoP proof was used before"),
            error => error,
        })?;
        if claims.scope.iter().all(|permission| *permission < needed) {
            return Err(Error::Permission(needed.as_str()));
        }
        act_under(&key);
        Ok(OwnerAgent { agent: claims.agent, jkt: claims.cnf.jkt, permissions: claims.scope })
    }

    fn check_trust_token(&self, token: &str) -> Result<(Claims, Kid), Error> {
        let refused = |_| Error::Owner(ENDED);
        let keys = self.keys();
        let jwt = UnverifiedJwt::parse(token, TYP).map_err(refused)?;
        let key = jwt.kid().map_err(refused)?;
        if key != *keys.current().kid() {
            return Err(Error::Owner(ENDED));
        }
        let claims: Claims = jwt.verify_with(keys.current().public()).map_err(refused)?;
        let now = self.clock.raw().seconds();
        let ours = claims.iss == self.principal && claims.sub == self.principal && claims.aud == self.origin;
        // When it was made says nothing more: the gateway made it, and its clock may have been set right since.
        if !ours || claims.exp <= now {
            return Err(Error::Owner(ENDED));
        }
        Ok((claims, key))
    }

    /// Whether a request carries a trust token at all: by its `typ`, before anything is checked.
    #[must_use]
    pub fn presents_trust_token(presented: &Presented) -> bool {
        let [authorization] = presented.authorization else { return false };
        let Some((_, token)) = authorization.split_once(' ') else { return false };
        UnverifiedJwt::parse(token.trim(), TYP).is_ok()
    }
}

//! The owner, proved: trust tokens of OAP-CORE 10.1 (protocol section 10).
//!
//! A token is signed by the principal's key in use and bound to an agent's key; rotating the principal's key ends
//! every token. [`Gateway::owner`] checks a token and its proof, and it alone makes an [`Owner`].

pub use crate::api::permission::{Permission, mark};
use crate::error::Error;
use crate::state::gateway::Gateway;
use crate::state::keyring::Keyring;
use mark::{Admin, Mark};
use oap_grants::dpop::{self, Request};
use oap_grants::token::Confirmation;
use oap_grants::verify::Presented;
use oap_identity::signed::{UnverifiedJwt, sign_jwt};
use oap_identity::{Did, Kid, Signer, random};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// The `typ` of a trust token.
pub const TYP: &str = "oap-trust-token+jwt";
/// How long the administrator's token lives, in seconds: a year. Every start of the server renews it.
pub const ADMIN_LIFE: i64 = 365 * 86_400;

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

/// One of the owner's agents, whose trust token and proof were checked and permit at least `P`.
#[derive(Debug, Clone)]
pub struct Owner<P> {
    agent: Did,
    jkt: String,
    permissions: Vec<Permission>,
    permits: PhantomData<fn() -> P>,
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

impl<P> Owner<P> {
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
        self.token_by(agent.did(), &agent.public().thumbprint(), vec![permission], &self.keys())
    }

    /// Makes a trust token for an agent that changed the keys, by the key that its request put into use.
    ///
    /// # Errors
    /// [`Error::Owner`] when the keys were changed again since.
    pub fn renew_token(&self, owner: &Owner<Admin>) -> Result<String, Error> {
        let keys = self.keys();
        still_owner(acts_under().as_ref(), &keys)?;
        self.token_by(&owner.agent, &owner.jkt, owner.permissions.clone(), &keys)
    }

    fn token_by(
        &self,
        agent: &Did,
        jkt: &str,
        scope: Vec<Permission>,
        keys: &Keyring,
    ) -> Result<String, Error> {
        // By the clock itself, believed or not: it is the owner's own, and it is they who set it right.
        let now = self.clock.raw().seconds();
        let claims = Claims {
            iss: self.principal.clone(),
            sub: self.principal.clone(),
            aud: self.origin.clone(),
            agent: agent.clone(),
            scope,
            nonce: oap_identity::Hash::of(&random::bytes::<16>(&*self.random)).to_string()[7..39].to_owned(),
            iat: now,
            exp: now + ADMIN_LIFE,
            cnf: Confirmation { jkt: jkt.to_owned() },
        };
        Ok(sign_jwt(keys.current(), TYP, &claims)?)
    }

    /// Which of the owner's agents presents a trust token that permits at least `P`. The proof is remembered before this
    /// returns.
    ///
    /// # Errors
    /// [`Error::Owner`], [`Error::Permission`].
    pub async fn owner<P: Mark>(
        self: &Arc<Self>,
        authorization: &[String],
        proofs: &[String],
        request: Request<'_>,
    ) -> Result<Owner<P>, Error> {
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
        if claims.scope.iter().all(|permission| *permission < P::PERMISSION) {
            return Err(Error::Permission(P::PERMISSION.as_str()));
        }
        act_under(&key);
        Ok(Owner {
            agent: claims.agent,
            jkt: claims.cnf.jkt,
            permissions: claims.scope,
            permits: PhantomData,
        })
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

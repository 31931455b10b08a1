//! The owner, proved: trust tokens of OAP-CORE 10.1 (protocol section 10).
//!
//! A token is signed by the principal's key in use and bound to an agent's key; rotating the principal's key ends
//! every token, and so does a lockdown. [`Gateway::owner`] checks a token and its proof, and it alone makes an [`Owner`].

pub use crate::api::permission::{Permission, mark};
use crate::error::{Error, Unproved};
use crate::state::agents::AgentCredential;
use crate::state::devices;
use crate::state::gateway::Gateway;
use crate::state::keyring::Keyring;
use crate::state::lockdown;
use crate::state::schema::EPOCH;
use mark::Mark;
use oap_grants::dpop::{self, Request};
use oap_grants::token::Confirmation;
use oap_grants::verify::Presented;
use oap_identity::signed::{UnverifiedJwt, sign_jwt};
use oap_identity::{Did, Hash, Kid, Signer, Timestamp, random};
use oap_store::Rows;
use serde::{Deserialize, Serialize};
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
    /// What the last restore or lockdown drew; none where there was neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<Hash>,
}

/// One of the owner's agents, whose trust token and proof were checked and permit at least `P`.
///
/// What it commits is committed only while the key that signed the token is the one in use and the token is not over
/// ([`Gateway::commit_as`]), whatever task commits it. The authority of a job is judged when it begins: from there on a rotation or
/// a cancellation ends it, and not the end of the token ([`Owner::for_job`]).
#[derive(Debug, Clone)]
pub struct Owner<P> {
    agent: Did,
    jkt: String,
    permissions: Vec<Permission>,
    /// The key that signed the token.
    key: Kid,
    until: Until,
    /// What the token is of.
    epoch: Option<Hash>,
    permits: PhantomData<fn() -> P>,
}

/// Until when a credential counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The end of the token, in seconds since 1970.
    Seconds(i64),
    /// The end of the job that it began.
    EndOfJob,
}

/// By what the owner acts.
#[derive(Debug, Clone)]
pub(crate) struct Credential {
    key: Kid,
    until: Until,
    epoch: Option<Hash>,
}

impl Credential {
    /// That nothing has ended every token since it was checked.
    ///
    /// # Errors
    /// [`Error::Owner`].
    pub(crate) fn stands(&self, rows: &impl Rows) -> Result<(), Error> {
        if EPOCH.get(rows)? == self.epoch { Ok(()) } else { Err(Error::Owner(Unproved::Ended)) }
    }
}

/// For whom a transaction is made.
#[derive(Debug, Clone)]
pub(crate) enum Acting {
    /// The house itself: its sweeps, its start, a restore.
    House,
    /// Whoever's standing the transaction reads again by itself, as a grantee's.
    Caller,
    /// A device of the owner's, by what it says.
    Device(Did),
    Owner(Credential),
    /// One of the owner's own agents.
    Agent(Box<AgentCredential>),
}

impl Acting {
    /// That the credential that it acts by, where there is one, is signed by the key in use, and is not over: a rotation ends
    /// every credential, those of requests and jobs under way with them. `clock` is what the clock says, believed or not, as when
    /// the token was checked.
    ///
    /// # Errors
    /// [`Error::Owner`].
    pub(crate) fn still_may(&self, keys: &Keyring, clock: Timestamp) -> Result<(), Error> {
        let credential = match self {
            Self::House | Self::Caller | Self::Device(_) => None,
            Self::Owner(credential) => Some(credential),
            Self::Agent(agent) if agent.is_over(clock) => return Err(Error::Owner(Unproved::TokenEnded)),
            Self::Agent(agent) => agent.owners(),
        };
        let Some(Credential { key, until, .. }) = credential else { return Ok(()) };
        let is_over = matches!(until, Until::Seconds(end) if *end <= clock.seconds());
        if key != keys.current().kid() || is_over { Err(Error::Owner(Unproved::Ended)) } else { Ok(()) }
    }

    /// The agent of the owner's that acts, if one does.
    pub(crate) fn agent(&self) -> Option<&Did> {
        match self {
            Self::House | Self::Caller | Self::Device(_) | Self::Owner(_) => None,
            Self::Agent(agent) => Some(agent.did()),
        }
    }

    /// The same for what a transaction alone can say: that no lockdown lasts, or ended the owner's credential, and that an agent is
    /// still there, as it acted.
    ///
    /// # Errors
    /// [`Error::LockedDown`], [`Error::Owner`], [`Error::NotFound`], [`Error::Permission`].
    pub(crate) fn stands(&self, rows: &impl Rows) -> Result<(), Error> {
        match self {
            Self::House => Ok(()),
            Self::Caller => lockdown::is_open(rows),
            Self::Device(device) => {
                lockdown::is_open(rows)?;
                if devices::is_one(rows, device)? { Ok(()) } else { Err(Error::NotFound) }
            }
            Self::Owner(credential) => credential.stands(rows),
            Self::Agent(agent) => {
                lockdown::is_open(rows)?;
                agent.stands(rows)
            }
        }
    }
}

impl<P> From<&Owner<P>> for Credential {
    fn from(owner: &Owner<P>) -> Self {
        Self { key: owner.key.clone(), until: owner.until, epoch: owner.epoch }
    }
}

impl<P> From<&Owner<P>> for Acting {
    fn from(owner: &Owner<P>) -> Self {
        Self::Owner(owner.into())
    }
}

#[allow(missing_docs, reason = "the names say it")]
impl<P> Owner<P> {
    #[must_use]
    pub const fn agent(&self) -> &Did {
        &self.agent
    }

    /// The key that signed the token.
    pub(crate) const fn key(&self) -> &Kid {
        &self.key
    }

    /// The same for a job that begins now. It may take longer than the token lives, and must be able to end: so its authority is
    /// judged here, and a rotation of keys or a cancellation ends it.
    pub(crate) fn for_job(self) -> Self {
        Self { until: Until::EndOfJob, ..self }
    }
}

impl Gateway {
    /// Makes a trust token for an agent's key.
    ///
    /// # Errors
    /// [`Error::Signed`]; none in practice.
    pub fn trust_token(&self, agent: &Signer, permission: Permission) -> Result<String, Error> {
        let epoch = EPOCH.get(&self.store)?;
        self.token_by(agent.did(), &agent.public().thumbprint(), vec![permission], &self.keys(), epoch)
    }

    /// Makes the successor of an agent's trust token, signed by the key in use of `keys` and of what `rows` say that tokens are of.
    ///
    /// # Errors
    /// [`Error::Signed`]; none in practice.
    pub(crate) fn renew_token<P>(
        &self,
        owner: &Owner<P>,
        keys: &Keyring,
        rows: &impl Rows,
    ) -> Result<String, Error> {
        let epoch = EPOCH.get(rows)?;
        self.token_by(&owner.agent, &owner.jkt, owner.permissions.clone(), keys, epoch)
    }

    fn token_by(
        &self,
        agent: &Did,
        jkt: &str,
        scope: Vec<Permission>,
        keys: &Keyring,
        epoch: Option<Hash>,
    ) -> Result<String, Error> {
        // By the clock itself, believed or not: it is the owner's own, and it is they who set it right.
        let now = self.clock.raw().seconds();
        let claims = Claims {
            iss: self.principal.clone(),
            sub: self.principal.clone(),
            aud: self.origin.clone(),
            agent: agent.clone(),
            scope,
            nonce: Hash::of(&random::bytes::<16>(&*self.random)).to_string()[7..39].to_owned(),
            iat: now,
            exp: now + ADMIN_LIFE,
            cnf: Confirmation { jkt: jkt.to_owned() },
            epoch,
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
            return Err(Error::Owner(Unproved::None));
        };
        let token = authorization
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("dpop"))
            .map(|(_, token)| token.trim())
            .ok_or(Error::Owner(Unproved::Scheme))?;
        let (claims, key) = self.check_trust_token(token)?;
        let headers: Vec<&str> = proofs.iter().map(String::as_str).collect();
        let proof = dpop::check(&headers, request, token, self.clock.raw())
            .map_err(|e| Error::Unauthenticated(e.into()))?;
        if proof.jkt != claims.cnf.jkt {
            return Err(Error::Owner(Unproved::OtherKey));
        }
        self.use_owner_proof(proof.replay_key).await.map_err(|error| match error {
            Error::Proof(_) => Error::Owner(Unproved::UsedProof),
            error => error,
        })?;
        if claims.scope.iter().all(|permission| *permission < P::PERMISSION) {
            return Err(Error::Permission(P::PERMISSION.as_str()));
        }
        let Claims { agent, scope: permissions, cnf: Confirmation { jkt }, exp, epoch, .. } = claims;
        Ok(Owner { agent, jkt, permissions, key, until: Until::Seconds(exp), epoch, permits: PhantomData })
    }

    fn check_trust_token(&self, token: &str) -> Result<(Claims, Kid), Error> {
        let refused = |_| Error::Owner(Unproved::Ended);
        let keys = self.keys();
        let jwt = UnverifiedJwt::parse(token, TYP).map_err(refused)?;
        let key = jwt.kid().map_err(refused)?;
        if key != *keys.current().kid() {
            return Err(Error::Owner(Unproved::Ended));
        }
        let claims: Claims = jwt.verify_with(keys.current().public()).map_err(refused)?;
        let now = self.clock.raw().seconds();
        let ours = claims.iss == self.principal && claims.sub == self.principal && claims.aud == self.origin;
        // When it was made says nothing more: the gateway made it, and its clock may have been set right since.
        if !ours || claims.exp <= now || claims.epoch != EPOCH.get(&self.store)? {
            return Err(Error::Owner(Unproved::Ended));
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

//! Agents that hold their own key, made elsewhere: proved by DPoP (RFC 9449), with or without the token that is bound to that key.
//!
//! The token is an API key that counts with a proof alone. A bearer of it is nobody; and who proves the key needs no token, but what
//! ended the token, such as a removal or a restore, ended the agent's standing too.

use crate::error::{Error, Unproved};
use crate::state::agents::{Agent, By, KEY_PREFIX, StoredAgent, bound_hash};
use crate::state::gateway::Gateway;
use crate::state::owner::mark::Read;
use crate::state::schema::AGENTS;
use oap_grants::dpop::{self, DpopError, Request};
use oap_identity::Did;
use oap_identity::jwk::PublicKey;
use oap_identity::key::did_key;
use oap_identity::signed::SignedError;
use std::sync::Arc;

/// An agent that proved its own key, and by what its proof is remembered. It is used up before anything rests on it.
#[derive(Debug)]
pub struct Proving {
    agent: Agent<Read>,
    replay_key: [u8; 32],
}

impl Proving {
    /// Who it is, where the proof is fresh.
    pub(crate) const fn claimed(&self) -> &Agent<Read> {
        &self.agent
    }

    /// Whether its proof was used before: who sends it then may be anybody.
    pub(crate) fn is_used(&self, gateway: &Gateway) -> bool {
        gateway.used_proofs.is_used(&self.replay_key)
    }
}

/// Whether a request is one of an agent with its own key, by its head alone: a proof without a token, or with a token that begins as
/// an API key does.
#[must_use]
pub fn proves_own_key(authorization: &[String], api_key: &[String], proofs: &[String]) -> bool {
    match authorization {
        [] => !proofs.is_empty() && api_key.is_empty(),
        [one] => token(one).is_some_and(|token| token.starts_with(KEY_PREFIX)),
        _ => false,
    }
}

/// The token of `Authorization: DPoP`.
fn token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("dpop").then(|| token.trim())
}

/// The DID that is a key.
///
/// # Errors
/// [`Error::Owner`] for what is no Ed25519 key; none in practice.
fn did_of(key: &PublicKey) -> Result<Did, Error> {
    Ok(did_key(key).map_err(|_| Error::Owner(Unproved::NoOwnKey))?.did().clone())
}

impl Gateway {
    /// Which agent proves its own key for a request.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] for a proof that does not hold; [`Error::Owner`] where the key is no agent's, or the token not its.
    pub fn agent_by_own_key(
        &self,
        authorization: &[String],
        proofs: &[String],
        request: Request<'_>,
    ) -> Result<Proving, Error> {
        let token = authorization.first().and_then(|one| token(one));
        let proofs: Vec<&str> = proofs.iter().map(String::as_str).collect();
        // Whoever tries keys has no signature checked.
        let is_own = |key: &PublicKey| did_of(key).is_ok_and(|did| self.agent_keys.is_own(&did));
        let (key, proof) = dpop::check_key(&proofs, request, token, is_own, self.clock.now()).map_err(
            |error| match error {
                // Whether a key is an agent's is told to who holds it alone.
                DpopError::Unknown | DpopError::Jwt(SignedError::BadSignature) => {
                    Error::Owner(Unproved::NoOwnKey)
                }
                error => Error::Unauthenticated(error.into()),
            },
        )?;
        let did = did_of(&key)?;
        let holds = |agent: &StoredAgent| agent.is_there() && agent.holds_own_key();
        let agent = AGENTS.get(&self.store, &did)?.filter(holds).ok_or(Error::Owner(Unproved::NoOwnKey))?;
        // What a restore ended is ended for the key, too, until the owner gives another token.
        let (standing, since) = agent.key.ok_or(Error::Owner(Unproved::KeyEnded))?;
        match token {
            Some(token) if bound_hash(token) != standing => return Err(Error::Owner(Unproved::KeyEnded)),
            // A restored backup does not know what was used since: what was for another token fails by that, what was for none by its time.
            None if proof.iat < since.seconds() => return Err(Error::Owner(Unproved::OldProof)),
            _ => {}
        }
        let agent = Agent::of(self, did, &agent, By::Key(standing));
        Ok(Proving { agent, replay_key: proof.replay_key })
    }

    /// The agent, once its proof is used up: in memory and in the store.
    ///
    /// # Errors
    /// [`Error::Owner`] for a proof that was used before; [`Error::Store`].
    pub async fn proved(self: &Arc<Self>, proving: Proving) -> Result<Agent<Read>, Error> {
        self.use_proof(proving.replay_key).await.map_err(|error| match error {
            Error::Proof(_) => Error::Owner(Unproved::UsedProof),
            error => error,
        })?;
        Ok(proving.agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_says_which_door_it_is() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        for (authorization, api_key, proofs, is) in [
            (&[][..], &[][..], &["p"][..], true),
            (&[], &[], &["p", "q"], true),
            (&["DPoP oapk_x"], &[], &[], true),
            (&["dpop oapk_x"], &[], &["p"], true),
            (&["DPoP eyJ"], &[], &["p"], false),
            (&["Bearer oapk_x"], &[], &["p"], false),
            (&[], &["oapk_x"], &["p"], false),
            (&["DPoP oapk_x", "DPoP oapk_x"], &[], &["p"], false),
            (&[], &[], &[], false),
        ] {
            let found = proves_own_key(&list(authorization), &list(api_key), &list(proofs));
            assert_eq!(found, is, "{authorization:?} {api_key:?} {proofs:?}");
        }
    }
}

//! Codes and refresh tokens become access tokens; a token that is used twice ends them all.

use super::Refused;
use crate::error::{Error, Unproved};
use crate::oauth::asked::Parameters;
use crate::oauth::secret::{self, ACCESS_PREFIX, REFRESH_PREFIX};
use crate::oauth::token::{TokenRequest, Tokens};
use crate::oauth::{ApprovalKey, ClientId, OAuthError, Secret, scopes};
use crate::service::Clients;
use crate::state::approvals::{ACCESS_LIFE, Access, MAX_ACCESS, StoredApproval};
use crate::state::commits::Writing;
use crate::state::gateway::Gateway;
use crate::state::owner::Permission;
use crate::state::replay::REMEMBERED;
use crate::state::schema::{APPROVALS, PROOFS};
use crate::state::waiting::Taken;
use oap_grants::Replay;
use oap_grants::dpop::Proof;
use oap_identity::{Hash, Timestamp};

/// What a transaction made of a request.
enum Outcome {
    Given(Tokens),
    Refused(OAuthError),
}

impl Clients<'_> {
    /// What a client gets for a code or a refresh token. `proof` is its proof of possession, checked but for its use.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn token(self, form: &Parameters, proof: Option<Proof>) -> Result<Tokens, Refused> {
        match TokenRequest::read(form, &self.resource())? {
            TokenRequest::Code { client, code, redirect, verifier } => {
                self.by_code(client, code, redirect, &verifier, proof).await
            }
            TokenRequest::Refresh { client, approval, token, permission } => {
                self.by_refresh(client, approval, token, permission, proof).await
            }
        }
    }

    async fn by_code(
        self,
        client: ClientId,
        code: Hash,
        redirect: Option<String>,
        verifier: &str,
        proof: Option<Proof>,
    ) -> Result<Tokens, Refused> {
        let handed = match self.0.waiting.take(code, self.0.clock.now()) {
            Taken::Unknown => return Err(OAuthError::Code.into()),
            Taken::Again(approval) => {
                // Two have it: what the first one got ends.
                self.drop_approval(approval).await?;
                return Err(OAuthError::Code.into());
            }
            Taken::Fresh(handed) => handed,
        };
        let asked = &handed.asked;
        let fits = client == asked.client
            && redirect.is_none_or(|redirect| redirect == asked.redirect.as_str())
            && asked.challenge.is_of(verifier);
        let has_key = asked.jkt.is_none() || asked.jkt.as_ref() == proof.as_ref().map(|proof| &proof.jkt);
        let approval = handed.approval;
        if !fits || !has_key {
            // Whoever has the code without its verifier is not the client: the code is gone, and the yes with it.
            self.drop_approval(approval).await?;
            return Err(if fits { OAuthError::Proof } else { OAuthError::Code }.into());
        }
        self.give(approval, proof, OAuthError::Code, move |stored, proof| {
            if stored.refresh.is_some() {
                return Err(OAuthError::Code);
            }
            stored.jkt = proof.map(|proof| proof.jkt.clone());
            Ok(stored.permission)
        })
        .await
    }

    async fn by_refresh(
        self,
        client: ClientId,
        approval: ApprovalKey,
        token: Hash,
        permission: Option<Permission>,
        proof: Option<Proof>,
    ) -> Result<Tokens, Refused> {
        // Who knows nothing of an approval writes nothing.
        if APPROVALS.get(&self.0.store, &approval.0)?.is_none() {
            return Err(OAuthError::Refresh.into());
        }
        let client = client.to_string();
        self.give(approval, proof, OAuthError::Refresh, move |stored, proof| {
            if stored.client != client {
                return Err(OAuthError::Refresh);
            }
            if stored.jkt.as_ref() != proof.map(|proof| &proof.jkt) {
                return Err(OAuthError::Proof);
            }
            if stored.refresh != Some(token) {
                // It was used before: two have it, and nobody knows which of them is the client.
                stored.refresh = None;
                return Err(OAuthError::Refresh);
            }
            let asked = permission.unwrap_or(stored.permission);
            if asked > stored.permission { Err(OAuthError::Scope) } else { Ok(asked) }
        })
        .await
    }

    /// Gives tokens of an approval, as it stands in the transaction that makes them. `judge` says what they permit; where it takes the
    /// refresh token away, the approval ends.
    async fn give(
        self,
        key: ApprovalKey,
        proof: Option<Proof>,
        unknown: OAuthError,
        judge: impl FnOnce(&mut StoredApproval, Option<&Proof>) -> Result<Permission, OAuthError> + Send + 'static,
    ) -> Result<Tokens, Refused> {
        let outcome = self
            .0
            .commit(move |w| {
                let gateway = w.gateway.clone();
                let Some(mut stored) = APPROVALS.get(w.tx, &key.0)? else {
                    return Ok(Outcome::Refused(unknown));
                };
                if !stored.counts(w.tx, &gateway, w.now)? {
                    APPROVALS.delete(w.tx, &key.0);
                    return Ok(Outcome::Refused(unknown));
                }
                let had = stored.refresh;
                let permission = match judge(&mut stored, proof.as_ref()) {
                    Ok(permission) => permission,
                    Err(error) => {
                        if had.is_some() && stored.refresh.is_none() {
                            APPROVALS.delete(w.tx, &key.0);
                        }
                        return Ok(Outcome::Refused(error));
                    }
                };
                if let Some(proof) = &proof {
                    if !gateway.used_proofs.first_use(proof.replay_key, w.now) {
                        return Ok(Outcome::Refused(OAuthError::Proof));
                    }
                    PROOFS.put(w.tx, &proof.replay_key, &w.now.plus(REMEMBERED))?;
                }
                let tokens = renew(w, &gateway, key, &mut stored, permission)?;
                Ok(Outcome::Given(tokens))
            })
            .await?;
        match outcome {
            Outcome::Given(tokens) => Ok(tokens),
            Outcome::Refused(error) => Err(error.into()),
        }
    }

    /// Ends the approval that a token in force of a client's is of (RFC 7009). What is no token, or one no more, is as good as ended: whoever
    /// finds an old one ends nothing. A bound one needs no proof of its key here: whoever stole it may not use it, and may end it.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn revoke(self, form: &Parameters) -> Result<(), Refused> {
        let client: ClientId = form.need("client_id")?.parse()?;
        let token = form.need("token")?;
        let named = secret::read(ACCESS_PREFIX, token).or_else(|| secret::read(REFRESH_PREFIX, token));
        let Some((key, hash)) = named else { return Ok(()) };
        let client = client.to_string();
        // Who knows nothing of an approval writes nothing.
        let is_known = move |stored: &StoredApproval, now| stored.client == client && stored.has(hash, now);
        let now = self.0.clock.now();
        if APPROVALS.get(&self.0.store, &key.0)?.is_none_or(|stored| !is_known(&stored, now)) {
            return Ok(());
        }
        let ended = self.0.commit(move |w| {
            // It may have been used meanwhile.
            if APPROVALS.get(w.tx, &key.0)?.is_some_and(|stored| is_known(&stored, w.now)) {
                APPROVALS.delete(w.tx, &key.0);
            }
            Ok(())
        });
        Ok(ended.await?)
    }
}

/// Makes the next tokens of an approval; the refresh token before ends.
fn renew(
    w: &mut Writing<'_, '_>,
    gateway: &Gateway,
    key: ApprovalKey,
    stored: &mut StoredApproval,
    permission: Permission,
) -> Result<Tokens, Error> {
    let (access, refresh) = (
        Secret::token(ACCESS_PREFIX, key, &*gateway.random),
        Secret::token(REFRESH_PREFIX, key, &*gateway.random),
    );
    // The agent may do less by now than when the owner said yes.
    let permission = permission.min(stored.agent(w.tx)?.permission);
    stored.used_at = Some(w.now);
    stored.refresh = Some(refresh.hash);
    let until = w.now.plus(ACCESS_LIFE).min(stored.until());
    stored.access.retain(|access| access.until > w.now);
    let over = (stored.access.len() + 1).saturating_sub(MAX_ACCESS);
    stored.access.drain(..over);
    stored.access.push(Access { hash: access.hash, until, permission });
    APPROVALS.put(w.tx, &key.0, stored)?;
    Ok(Tokens {
        access_token: access.text.to_string(),
        token_type: if stored.jkt.is_some() { "DPoP" } else { "Bearer" },
        expires_in: lasts(until, w.now).ok_or(Error::Owner(Unproved::TokenEnded))?,
        refresh_token: refresh.text.to_string(),
        scope: scopes(permission),
    })
}

/// Whole seconds until a time.
fn lasts(until: Timestamp, now: Timestamp) -> Option<u64> {
    u64::try_from((until.millis() - now.millis()) / 1000).ok()
}

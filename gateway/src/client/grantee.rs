//! The grantee's client: discovers a gateway, exchanges a grant, queries, and checks every answer before it is
//! believed.

use super::owner::{OwnerClient, send};
use super::{ClientError, read};
use oap_grants::exchange::{ExchangeRequest, ExchangeResponse};
use oap_identity::resolve::Resolver;
use oap_identity::{Did, DidDocument, Hash};
use oap_manifest::check::{self, Endpoints};
use oap_manifest::path;
use oap_memory::evidence::{self, VerifiedAnswer};
use serde_json::{Value, json};
use std::sync::Arc;

/// A gateway whose documents were fetched and checked.
pub struct Remote {
    client: reqwest::Client,
    endpoints: Endpoints,
    document: Arc<DidDocument>,
}

impl Remote {
    /// Fetches and checks what a gateway publishes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn discover(
        client: reqwest::Client,
        resolver: &Resolver,
        origin: &str,
    ) -> Result<Self, ClientError> {
        let origin = origin.trim_end_matches('/');
        let manifest = fetch(&client, &format!("{origin}{}", path::MEMORY_MANIFEST)).await?;
        let principal: Did = manifest["principal"]
            .as_str()
            .and_then(|did| did.parse().ok())
            .ok_or_else(|| ClientError::Malformed(origin.to_owned(), "it names no principal".to_owned()))?;
        let document = resolver.resolve(&principal).await?;
        let endpoints = check::memory(&manifest, &document, origin)
            .map_err(|e| ClientError::Manifest(origin.to_owned(), e))?;
        Ok(Self { client, endpoints, document })
    }

    /// Whose gateway it is.
    #[must_use]
    pub const fn principal(&self) -> &Did {
        &self.endpoints.principal
    }

    /// The principal's DID document.
    #[must_use]
    pub fn document(&self) -> &DidDocument {
        &self.document
    }

    /// Exchanges a grant for a token. The grantee's own gateway signs the proof.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn exchange(
        &self,
        own: &mut OwnerClient,
        grant: &Value,
        chain: &[Value],
    ) -> Result<Session<'_>, ClientError> {
        let hash = Hash::of_canonical(grant)
            .map_err(|e| ClientError::Malformed("the grant".to_owned(), e.to_string()))?;
        let asked = json!({"endpoint": self.endpoints.grant, "grant_hash": hash});
        let proof = own.call("POST", "/oap/owner/prove", &[], Some(&asked)).await?;
        let request = ExchangeRequest {
            grant: grant.clone(),
            chain: chain.to_vec(),
            proof: proof["proof"].as_str().unwrap_or_default().to_owned(),
        };
        let body = serde_json::to_string(&request).map_err(crate::Error::from)?;
        let (status, bytes) = send(&self.client, "POST", &self.endpoints.grant, "", "", Some(body)).await?;
        let answer = read(&self.endpoints.grant, status, &bytes)?;
        let token: ExchangeResponse = oap_identity::json::from_value(answer).map_err(crate::Error::from)?;
        Ok(Session { remote: self, token })
    }
}

/// A token in use.
pub struct Session<'a> {
    remote: &'a Remote,
    token: ExchangeResponse,
}

/// An answer that was checked.
pub struct CheckedAnswer {
    /// The answer as it was received.
    pub answer: Value,
    /// What was verified.
    pub verified: VerifiedAnswer,
}

impl Session<'_> {
    /// The token.
    #[must_use]
    pub const fn token(&self) -> &ExchangeResponse {
        &self.token
    }

    /// Asks, and checks the answer: signature, receipt, every item's SD-JWT, chain and capture receipt; and that
    /// the receipt names this grantee.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Evidence`] when a proof does not hold.
    pub async fn query(
        &self,
        own: &mut OwnerClient,
        query: &Value,
        grantee: &Did,
    ) -> Result<CheckedAnswer, ClientError> {
        let url = &self.remote.endpoints.query;
        let token = &self.token.memory_grant_jwt;
        let (authorization, proof) = if self.token.token_type == "DPoP" {
            let asked = json!({"method": "POST", "url": url, "token": token});
            let proof = own.call("POST", "/oap/owner/prove", &[], Some(&asked)).await?;
            (format!("DPoP {token}"), proof["dpop"].as_str().unwrap_or_default().to_owned())
        } else {
            (format!("Bearer {token}"), String::new())
        };
        let body = Some(query.to_string());
        let (status, bytes) = send(&self.remote.client, "POST", url, &authorization, &proof, body).await?;
        let answer = read(url, status, &bytes)?;
        let verified = evidence::answer(&answer, self.remote.document())?;
        if verified.receipt.agent_did != grantee.as_str() {
            return Err(ClientError::Mismatch("its receipt names another grantee"));
        }
        Ok(CheckedAnswer { answer, verified })
    }
}

async fn fetch(client: &reqwest::Client, url: &str) -> Result<Value, ClientError> {
    let (status, bytes) = send(client, "GET", url, "", "", None).await?;
    read(url, status, &bytes)
}

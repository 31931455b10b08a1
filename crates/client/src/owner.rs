//! The owner's client: calls the endpoints of one's own gateway, each a type.

use crate::endpoint::{self, Endpoint};
use crate::error::{self, ClientError};
use crate::prover::{Claim, Pending, Prover};
use crate::wire::{Ask, OWN, send};
use oap_identity::outgoing::HttpClient;
use serde_json::Value;
use url::Url;
use zeroize::Zeroizing;

/// How the ids in the addresses of the owner's requests begin.
const NAMED: [&str; 4] = ["mem_", "mgr_", "pol_", "job_"];

/// The way that a request of the owner's takes to the gateway.
pub trait Way: Send + Sync {
    /// Sends a request as it is, whatever way the host of its address is reached by; the status and the body of the answer.
    fn send<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, (u16, Vec<u8>)>;
}

/// To where its address says.
impl Way for HttpClient {
    fn send<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, (u16, Vec<u8>)> {
        Box::pin(send(self, ask, OWN))
    }
}

/// What the owner's agent shows to the gateway.
pub struct Credential {
    /// Where the gateway is reached, as its proofs name it; without a trailing slash.
    pub origin: String,
    /// The trust token.
    pub trust_token: Zeroizing<String>,
    /// The agent that the token is bound to.
    pub agent: Box<dyn Prover>,
}

/// A client of one's own gateway.
pub struct OwnerClient {
    credential: Credential,
    way: Box<dyn Way>,
}

impl OwnerClient {
    /// A client with that credential, by that way.
    #[must_use]
    pub const fn new(credential: Credential, way: Box<dyn Way>) -> Self {
        Self { credential, way }
    }

    /// Goes on with another trust token: a change of the keys ends every one.
    pub fn renew(&mut self, trust_token: Zeroizing<String>) {
        self.credential.trust_token = trust_token;
    }

    /// Asks what an endpoint says at a place.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn get<E: Endpoint<Body = ()>>(
        &self,
        place: E::Place,
        query: &E::Query,
    ) -> Result<E::Answer, ClientError> {
        self.ask::<E>(&place, query, &()).await
    }

    /// Has an endpoint do what it does at a place.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn send<E: Endpoint<Query = ()>>(
        &self,
        place: E::Place,
        body: &E::Body,
    ) -> Result<E::Answer, ClientError> {
        self.ask::<E>(&place, &(), body).await
    }

    /// The same, with parameters and a body.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn ask<E: Endpoint>(
        &self,
        place: &E::Place,
        query: &E::Query,
        body: &E::Body,
    ) -> Result<E::Answer, ClientError> {
        let (url, status, bytes) = self.asked::<E>(place, query, body).await?;
        let answer = own(&url, status, &bytes)?;
        serde_json::from_value(answer).map_err(|e| ClientError::Malformed(url, e.to_string()))
    }

    /// The bytes of an endpoint's answer, where that is more than a JSON document.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn bytes<E: Endpoint<Query = ()>>(
        &self,
        place: E::Place,
        body: &E::Body,
    ) -> Result<Vec<u8>, ClientError> {
        let (url, status, bytes) = self.asked::<E>(&place, &(), body).await?;
        if status != 200 {
            own(&url, status, &bytes)?;
        }
        Ok(bytes)
    }

    /// The address, the status and the bytes of an endpoint's answer.
    async fn asked<E: Endpoint>(
        &self,
        place: &E::Place,
        query: &E::Query,
        body: &E::Body,
    ) -> Result<(String, u16, Vec<u8>), ClientError> {
        let path = endpoint::path::<E>(place);
        let malformed = |e: serde_json::Error| ClientError::Malformed(path.clone(), e.to_string());
        let query = endpoint::parameters(query).map_err(malformed)?;
        let query: Vec<(&str, String)> =
            query.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let body = serde_json::to_value(body).map_err(malformed)?;
        self.request(E::METHOD.as_str(), &path, &query, Some(&body).filter(|body| !body.is_null())).await
    }

    /// Sends a request of which no type says what it is, and reads the answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, String)],
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let (url, status, bytes) = self.request(method, path, query, body).await?;
        own(&url, status, &bytes)
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, String)],
        body: Option<&Value>,
    ) -> Result<(String, u16, Vec<u8>), ClientError> {
        let Credential { origin, trust_token, agent } = &self.credential;
        let url = format!("{origin}{path}");
        let token = trust_token.as_str();
        let proof = agent.prove(Claim::Possession { method, url: &url, token }).await?;
        let mut full = Url::parse(&url).map_err(|e| ClientError::Unreachable(url.clone(), e.to_string()))?;
        if !query.is_empty() {
            full.query_pairs_mut().extend_pairs(query.iter().map(|(name, value)| (*name, value.as_str())));
        }
        let authorization = format!("DPoP {token}");
        let ask = Ask {
            method,
            url: full.as_str(),
            authorization: &authorization,
            proof: &proof,
            body: body.map(Value::to_string),
        };
        let (status, bytes) = self.way.send(ask).await?;
        Ok((url, status, bytes))
    }
}

/// What the own gateway answered. It is its owner who is told, so what is not there is named.
fn own(from: &str, status: u16, body: &[u8]) -> Result<Value, ClientError> {
    error::read(from, status, body).map_err(|error| match error {
        ClientError::Refused { status, code, message, .. } => {
            let name =
                from.split(['/', '?']).find(|part| NAMED.iter().any(|prefix| part.starts_with(prefix)));
            let message = match name {
                Some(name) if status == 404 => format!("{name}: {message}"),
                _ => message,
            };
            ClientError::Refused { own: true, status, code, message }
        }
        error => error,
    })
}

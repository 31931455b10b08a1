//! The owner's client: the same requests, over the socket in the home to the gateway that has it open, or straight into the
//! handlers when none has. Never over the gateway's public name, which may not resolve yet, or lead elsewhere.

use super::ClientError;
use super::wire::{self, Allowance, Ask, send};
use crate::api::keys::ChangedKeys;
use crate::api::{self, Endpoint};
use crate::http::App;
use crate::state::keyring::KeyInfo;
use crate::system::clock::{SystemClock, SystemRandom};
use crate::system::config::Config;
use crate::system::home::{AdminCredential, Home, HomeError};
use crate::system::lock::{Held, HomeLock, PATIENCE, Wait};
use crate::system::socket::SocketClient;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use oap_grants::dpop;
use oap_identity::{Clock, Signer};
use oap_store::StoreError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tower::ServiceExt;

/// How the ids in the addresses of the owner's requests begin.
const NAMED: [&str; 3] = ["mem_", "mgr_", "pol_"];

/// A client of one's own gateway.
pub struct OwnerClient {
    home: Home,
    credential: AdminCredential,
    agent: Signer,
    way: Way,
}

enum Way {
    Server(SocketClient),
    // The lock goes last.
    InProcess(Box<Router>, #[expect(dead_code, reason = "held while the store is open")] HomeLock),
}

/// Who asks, and how they wait for somebody else's command to end.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The command, such as `item add`: for those who wait for it.
    pub command: &'a str,
    /// How long to wait for others.
    pub patience: Duration,
    /// Called once when it takes longer than [`crate::system::lock::WORD_AFTER`].
    pub word: &'a (dyn Fn(&Held) + Sync),
}

impl Default for Caller<'_> {
    fn default() -> Self {
        Self { command: "client", patience: PATIENCE, word: &|_| {} }
    }
}

impl OwnerClient {
    /// Connects: to the gateway that has the home open, or to the store if none has. Waits for commands that have it open for
    /// their own sake.
    ///
    /// # Errors
    /// [`ClientError::Home`]; [`HomeError::Held`] within when a command outlasts the patience.
    pub async fn connect(
        home: Home,
        flags: &BTreeMap<String, Value>,
        caller: Caller<'_>,
    ) -> Result<Self, ClientError> {
        // Where there is no gateway, nothing is locked.
        Config::load(home.path(), flags)
            .map_err(HomeError::from)?
            .principal(home.path())
            .map_err(HomeError::from)?;
        let mut wait = Wait::new(caller.patience, caller.word);
        let (way, credential) = loop {
            if let Some(client) = SocketClient::connect(home.path()).await.map_err(HomeError::from)? {
                break (Way::Server(client), home.admin()?);
            }
            let held = match home.lock(caller.command)? {
                Ok(lock) => match home.open(flags).await {
                    Ok(gateway) => {
                        let credential = home.renew_admin(&gateway)?;
                        break (Way::InProcess(Box::new(App::new(gateway).owner_router()), lock), credential);
                    }
                    Err(HomeError::Store(StoreError::Locked)) => Held(None),
                    Err(error) => return Err(error.into()),
                },
                Err(held) => held,
            };
            wait.a_moment(held).await.map_err(HomeError::Held)?;
        };
        Ok(Self { agent: credential.signer()?, home, credential, way })
    }

    /// Whether another process has the home open, and answers.
    #[must_use]
    pub const fn is_served(&self) -> bool {
        matches!(self.way, Way::Server(_))
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

    /// Has an endpoint change the keys. The new trust token takes the place of the one that ended.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_keys<E: Endpoint<Query = (), Answer = ChangedKeys>>(
        &mut self,
        place: E::Place,
        body: &E::Body,
    ) -> Result<Vec<KeyInfo>, ClientError> {
        let ChangedKeys { keys, trust_token } = self.send::<E>(place, body).await?;
        self.home.write_token(self.credential.clone(), &trust_token)?;
        self.credential = self.home.admin()?;
        Ok(keys)
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
        let path = api::path::<E>(place);
        let malformed = |e: serde_json::Error| ClientError::Malformed(path.clone(), e.to_string());
        let query = api::parameters(query).map_err(malformed)?;
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
        let url = format!("{}{path}", self.credential.origin);
        let token = &*self.credential.trust_token;
        let target = dpop::Request { method, url: &url };
        let proof = dpop::prove(&self.agent, target, token, SystemClock.now(), &SystemRandom)?;
        let mut full =
            url::Url::parse(&url).map_err(|e| ClientError::Unreachable(url.clone(), e.to_string()))?;
        if !query.is_empty() {
            full.query_pairs_mut().extend_pairs(query.iter().map(|(name, value)| (*name, value.as_str())));
        }
        let authorization = format!("DPoP {token}");
        let body = body.map(Value::to_string);
        let (status, bytes) = match &self.way {
            Way::Server(client) => {
                // The proof is for the gateway's own address; the socket's has no name.
                let near = format!("http://localhost{}", &full[url::Position::BeforePath..]);
                let (url, authorization, proof) = (near.as_str(), authorization.as_str(), proof.as_str());
                let ask = Ask { method, url, authorization, proof, body };
                send(client.http(), ask, Allowance::OWN).await?
            }
            Way::InProcess(router, _) => {
                let mut request = Request::builder()
                    .method(method)
                    .uri(&full[url::Position::BeforePath..])
                    .header(header::AUTHORIZATION, authorization)
                    .header("DPoP", proof);
                if body.is_some() {
                    request = request.header(header::CONTENT_TYPE, api::MEDIA_TYPE);
                }
                let malformed = |e: String| ClientError::Malformed(url.clone(), e);
                let request = request
                    .body(Body::from(body.unwrap_or_default()))
                    .map_err(|e| malformed(e.to_string()))?;
                let response = (**router).clone().oneshot(request).await;
                let response = response.map_err(|e| malformed(e.to_string()))?;
                let status = response.status().as_u16();
                let bytes = axum::body::to_bytes(response.into_body(), wire::MAX_BUNDLE)
                    .await
                    .map_err(|e| malformed(e.to_string()))?;
                (status, bytes.to_vec())
            }
        };
        Ok((url, status, bytes))
    }
}

/// What the own gateway answered. It is its owner who is told, so what is not there is named.
fn own(from: &str, status: u16, body: &[u8]) -> Result<Value, ClientError> {
    super::read(from, status, body).map_err(|error| match error {
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

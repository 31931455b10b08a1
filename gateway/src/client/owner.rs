//! The owner's client: the same requests, over TLS to the running server or straight into the handlers when
//! no server has the store open.

use super::wire::{self, Allowance, Ask, send};
use super::{ClientError, read};
use crate::ambient::{SystemClock, SystemRandom};
use crate::config::Config;
use crate::home::{AdminCredential, Home, HomeError, read_certificates};
use crate::http::App;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use oap_grants::dpop;
use oap_identity::{Clock, Signer};
use oap_store::StoreError;
use serde_json::Value;
use std::collections::BTreeMap;
use tower::ServiceExt;

/// A client of one's own gateway.
pub struct OwnerClient {
    home: Home,
    credential: AdminCredential,
    agent: Signer,
    way: Way,
}

enum Way {
    Server(reqwest::Client),
    InProcess(Box<Router>),
}

impl OwnerClient {
    /// Connects: to the running server, or to the store if none runs.
    ///
    /// # Errors
    /// [`ClientError::Home`].
    pub async fn connect(home: Home, flags: &BTreeMap<String, Value>) -> Result<Self, ClientError> {
        let (way, credential) = match home.open(flags).await {
            Ok(gateway) => {
                let credential = home.renew_admin(&gateway)?;
                (Way::InProcess(Box::new(App::new(gateway).router())), credential)
            }
            Err(HomeError::Store(StoreError::Locked)) => {
                let config = Config::load(home.path(), flags).map_err(HomeError::from)?;
                (Way::Server(http_client(&config, &home)?), home.admin()?)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { agent: credential.signer()?, home, credential, way })
    }

    /// Sends a request and reads the answer. A new trust token in the answer takes the place of the old one.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn call(
        &mut self,
        method: &str,
        path: &str,
        query: &[(&str, String)],
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let (url, status, bytes) = self.request(method, path, query, body).await?;
        let answer = read(&url, status, &bytes)?;
        if let Some(token) = answer.get("trust_token").and_then(Value::as_str) {
            self.home.write_token(self.credential.clone(), token)?;
            self.credential = self.home.admin()?;
        }
        Ok(answer)
    }

    /// Sends a request whose answer is no JSON document.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn call_for_bytes(&self, path: &str, body: &Value) -> Result<Vec<u8>, ClientError> {
        let (url, status, bytes) = self.request("POST", path, &[], Some(body)).await?;
        if status != 200 {
            read(&url, status, &bytes)?;
        }
        Ok(bytes)
    }

    /// The same as [`OwnerClient::call`], for requests that change no credential and may overlap.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        let (url, status, bytes) = self.request("POST", path, &[], Some(body)).await?;
        read(&url, status, &bytes)
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
                let (url, authorization, proof) = (full.as_str(), authorization.as_str(), proof.as_str());
                send(client, Ask { method, url, authorization, proof, body }, Allowance::ANSWER).await?
            }
            Way::InProcess(router) => {
                let mut request = Request::builder()
                    .method(method)
                    .uri(&full[url::Position::BeforePath..])
                    .header(header::AUTHORIZATION, authorization)
                    .header("DPoP", proof);
                if body.is_some() {
                    request = request.header(header::CONTENT_TYPE, crate::http::request::MEDIA_TYPE);
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

/// A client that trusts the system's authorities, the configured one, and the home's own certificate.
///
/// # Errors
/// [`HomeError`].
pub fn http_client(config: &Config, home: &Home) -> Result<reqwest::Client, HomeError> {
    Ok(http_client_builder(config, home)?.build()?)
}

/// The same, to be narrowed down.
///
/// # Errors
/// [`HomeError`].
pub fn http_client_builder(config: &Config, home: &Home) -> Result<reqwest::ClientBuilder, HomeError> {
    let mut authorities = Vec::new();
    let own = config.tls_cert.clone().unwrap_or_else(|| home.file("tls/cert.pem"));
    for path in config.trust_ca.iter().chain([&own]) {
        if path.exists() {
            for der in read_certificates(path)? {
                authorities.push(reqwest::Certificate::from_der(&der)?);
            }
        }
    }
    Ok(reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(wire::CONNECT)
        .read_timeout(wire::SILENCE)
        .tls_certs_merge(authorities))
}

//! The owner's client of a home: over the socket in the home to the gateway that has it open, or straight into the handlers when none
//! has. Never over the gateway's public name, which may not resolve yet, or lead elsewhere.

use crate::http::App;
use crate::system::clock::{SystemClock, SystemRandom};
use crate::system::config::Config;
use crate::system::home::{Home, HomeError};
use crate::system::lock::{Held, HomeLock, PATIENCE, Wait};
use crate::system::socket::SocketClient;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use oap_client::endpoint::MEDIA_TYPE;
use oap_client::owner::{Credential, Way};
use oap_client::prover::Pending;
use oap_client::wire::{self, Ask};
use oap_client::{ClientError, KeyProver, OwnerClient};
use oap_store::StoreError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;
use url::{Position, Url};
use zeroize::Zeroizing;

/// A client of the gateway of a home.
pub struct HomeClient {
    client: OwnerClient,
    served: bool,
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

impl HomeClient {
    /// Connects: to the gateway that has the home open, or to the store if none has. Waits for commands that have it open for
    /// their own sake.
    ///
    /// # Errors
    /// [`HomeError`]; [`HomeError::Held`] when a command outlasts the patience.
    pub async fn connect(
        home: Home,
        flags: &BTreeMap<String, Value>,
        caller: Caller<'_>,
    ) -> Result<Self, HomeError> {
        // Where there is no gateway, nothing is locked.
        Config::load(home.path(), flags)?.principal(home.path())?;
        let mut wait = Wait::new(caller.patience, caller.word);
        let (way, admin, served): (Box<dyn Way>, _, _) = loop {
            if let Some(client) = SocketClient::connect(home.path()).await? {
                break (Box::new(client), home.admin()?, true);
            }
            let held = match home.lock(caller.command)? {
                Ok(lock) => match home.open(flags).await {
                    Ok(gateway) => {
                        let admin = home.renew_admin(&gateway)?;
                        let router = App::new(gateway).owner_router();
                        break (Box::new(InProcess(router, lock)), admin, false);
                    }
                    Err(HomeError::Store(StoreError::Locked)) => Held(None),
                    Err(error) => return Err(error),
                },
                Err(held) => held,
            };
            wait.a_moment(held).await.map_err(HomeError::Held)?;
        };
        let credential = Credential {
            origin: admin.origin.clone(),
            trust_token: admin.trust_token.clone(),
            agent: Box::new(KeyProver::new(admin.signer()?, Arc::new(SystemClock), Arc::new(SystemRandom))),
        };
        Ok(Self { client: OwnerClient::new(credential, way), served })
    }

    /// Whether another process has the home open, and answers.
    #[must_use]
    pub const fn is_served(&self) -> bool {
        self.served
    }

    /// Goes on with the trust token that takes the place of one that a change of the keys ended. The gateway has put one into the
    /// home already.
    pub fn renew(&mut self, token: &str) {
        self.client.renew(Zeroizing::new(token.to_owned()));
    }
}

impl Deref for HomeClient {
    type Target = OwnerClient;

    fn deref(&self) -> &OwnerClient {
        &self.client
    }
}

/// The part of an address that a gateway sees.
fn path(url: &str) -> Result<String, ClientError> {
    let url = Url::parse(url).map_err(|e| ClientError::Unreachable(url.to_owned(), e.to_string()))?;
    Ok(url[Position::BeforePath..].to_owned())
}

impl Way for SocketClient {
    fn send<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, (u16, Vec<u8>)> {
        Box::pin(async move {
            // The proof is for the gateway's own address; the socket's has no name.
            let near = format!("http://localhost{}", path(ask.url)?);
            wire::send(self.http(), Ask { url: &near, ..ask }, wire::OWN).await
        })
    }
}

/// The handlers in this process. The lock goes last.
struct InProcess(Router, #[expect(dead_code, reason = "held while the store is open")] HomeLock);

impl Way for InProcess {
    fn send<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, (u16, Vec<u8>)> {
        Box::pin(async move {
            let malformed = |e: String| ClientError::Malformed(ask.url.to_owned(), e);
            let mut request = Request::builder()
                .method(ask.method)
                .uri(path(ask.url)?)
                .header(header::AUTHORIZATION, ask.authorization)
                .header("DPoP", ask.proof);
            if ask.body.is_some() {
                request = request.header(header::CONTENT_TYPE, MEDIA_TYPE);
            }
            let request = request
                .body(Body::from(ask.body.unwrap_or_default()))
                .map_err(|e| malformed(e.to_string()))?;
            let response = self.0.clone().oneshot(request).await;
            let response = response.map_err(|e| malformed(e.to_string()))?;
            let status = response.status().as_u16();
            let bytes = axum::body::to_bytes(response.into_body(), wire::MAX_BUNDLE)
                .await
                .map_err(|e| malformed(e.to_string()))?;
            Ok((status, bytes.to_vec()))
        })
    }
}

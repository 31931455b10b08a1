//! Clients of OAuth (docs/oauth.md): who may ask, what the owner says, and the tokens that come of a yes.
//!
//! No client gets a token without the owner's own word, given at the owner's door with the code that the page of the request shows.

mod consents;
mod tokens;

use crate::api::oauth::{ClientInfo, ClientList, NewClient};
use crate::error::{Conflict, Error, MemberError};
use crate::oauth::asked::Parameters;
use crate::oauth::client::{ClientName, MAX_REDIRECTS, StoredClient};
use crate::oauth::document::{self, MAX_DOCUMENT};
use crate::oauth::{Asked, Client, ClientId, DocumentError, DocumentUrl, OAuthError, RESOURCE, RedirectUri};
use crate::service::Clients;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{APPROVALS, CLIENTS};
use crate::state::waiting::{Begun, Page};
use oap_identity::outgoing::{Allowance, Answer, SendError, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Clients that the owner adds.
pub const MAX_CLIENTS: usize = 100;
/// Time for a client's metadata document, name and connection included.
pub const DOCUMENT_TIME: Duration = Duration::from_secs(5);

/// Why a client is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// In the protocol's words.
    #[error(transparent)]
    OAuth(#[from] OAuthError),
    /// The gateway itself does not.
    #[error(transparent)]
    Gateway(#[from] Error),
}

impl From<oap_store::StoreError> for Refused {
    fn from(error: oap_store::StoreError) -> Self {
        Self::Gateway(error.into())
    }
}

impl Clients<'_> {
    /// The address that tokens are for.
    #[must_use]
    pub fn resource(self) -> String {
        self.0.url(RESOURCE)
    }

    /// Lets a client wait for the owner, who is told of it.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn authorize(self, parameters: &Parameters, network: IpAddr) -> Result<Begun, Refused> {
        let asked = Asked::read(parameters, &self.resource())?;
        let client = self.client(&asked.client, network).await?;
        client.owns(&asked.redirect)?;
        let (now, random) = (self.0.clock.now(), &*self.0.random);
        Ok(self.0.waiting.begin(asked, client.name.clone(), network, now, random)?)
    }

    /// What the page of a request shows now to a browser with these cookies.
    #[must_use]
    pub fn look(self, page: &str, cookies: &[&str]) -> Page {
        self.0.waiting.look(page, cookies, self.0.clock.now(), &*self.0.random)
    }

    /// Who a client is; `network` asks.
    async fn client(self, id: &ClientId, network: IpAddr) -> Result<Arc<Client>, Refused> {
        let url = match id {
            ClientId::Named(name) => {
                let stored =
                    CLIENTS.get(&self.0.store, &name.to_string())?.ok_or(OAuthError::UnknownClient)?;
                return Ok(Arc::new(stored.of(name)?));
            }
            ClientId::Document(url) => url,
        };
        if let Some(known) = self.0.documents.get(url, self.0.clock.now()) {
            return Ok(known);
        }
        let _place = self.0.documents.place(network, self.0.clock.now()).ok_or(OAuthError::Busy)?;
        let allowed = Allowance { bytes: MAX_DOCUMENT, time: DOCUMENT_TIME };
        let read = read(url, self.0.resolver.get(url.as_str(), allowed).await);
        let client = read.map(Arc::new).map_err(OAuthError::from)?;
        self.0.documents.put(url.clone(), client.clone(), self.0.clock.now());
        Ok(client)
    }

    /// Adds a client that has no metadata document.
    ///
    /// # Errors
    /// [`Error::Member`] naming the address that is none; [`Error::Conflict`].
    pub async fn add(self, owner: &Owner<impl Permits<Admin>>, new: NewClient) -> Result<ClientInfo, Error> {
        let NewClient { name, redirect_uris } = new;
        if !(1..=MAX_REDIRECTS).contains(&redirect_uris.len()) {
            return Err(Error::Member(
                "redirect_uris",
                MemberError::Number { most: MAX_REDIRECTS, of: "addresses" },
            ));
        }
        if redirect_uris.iter().any(|uri| uri.parse::<RedirectUri>().is_err()) {
            return Err(Error::Member("redirect_uris", MemberError::Redirect));
        }
        let gateway = self.0.clone();
        self.0
            .commit_as(owner, move |w| {
                let key = name.to_string();
                if CLIENTS.get(w.tx, &key)?.is_some() {
                    return Err(Error::Conflict(Conflict::ClientName));
                }
                let mut known =
                    CLIENTS.scan(&gateway.store).map(|row| Ok(row?.0)).collect::<Result<Vec<_>, Error>>()?;
                for name in CLIENTS.written(w.tx) {
                    known.retain(|known| *known != name);
                    known.extend(CLIENTS.get(w.tx, &name)?.map(|_| name));
                }
                if known.len() >= MAX_CLIENTS {
                    return Err(Error::Conflict(Conflict::ManyClients));
                }
                let stored = StoredClient { redirects: redirect_uris, created_at: w.now };
                CLIENTS.put(w.tx, &key, &stored)?;
                Ok(info(name, stored))
            })
            .await
    }

    /// The clients that the owner added, by name.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn list(self, _: &Owner<impl Permits<Admin>>) -> Result<ClientList, Error> {
        let mut clients = Vec::new();
        for row in CLIENTS.scan(&self.0.store) {
            let (name, stored) = row?;
            clients.extend(name.parse().ok().map(|name| info(name, stored)));
        }
        clients.sort_by(|a, b| a.client_id.cmp(&b.client_id));
        Ok(ClientList { clients })
    }

    /// Removes a client that the owner added, with every yes to it.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn remove(self, owner: &Owner<impl Permits<Admin>>, client: &ClientName) -> Result<(), Error> {
        let (gateway, key) = (self.0.clone(), client.to_string());
        let removed = self.0.commit_as(owner, move |w| {
            w.tx.use_reserve();
            CLIENTS.get(w.tx, &key)?.ok_or(Error::NotFound)?;
            CLIENTS.delete(w.tx, &key);
            for (approval, stored) in consents::all(&gateway.store, w.tx)? {
                if stored.client == key {
                    APPROVALS.delete(w.tx, &approval.0);
                }
            }
            Ok(())
        });
        removed.await?;
        // Another client of the name has other addresses.
        self.0.waiting.drop_client(&ClientId::Named(client.clone()));
        Ok(())
    }
}

fn info(name: ClientName, stored: StoredClient) -> ClientInfo {
    ClientInfo { client_id: name, redirect_uris: stored.redirects, created_at: stored.created_at }
}

/// What an answer says of a client.
fn read(url: &DocumentUrl, answer: Result<Answer, SendError>) -> Result<Client, DocumentError> {
    let answer = answer.map_err(|error| match error {
        SendError::TooLarge(_) => DocumentError::TooLarge,
        _ => DocumentError::Unreachable,
    })?;
    if answer.status != StatusCode::OK {
        return Err(DocumentError::Status);
    }
    let mut kinds =
        answer.headers.iter().filter(|(name, _)| name == "content-type").map(|(_, value)| value.as_str());
    let kind =
        kinds.next().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind != "application/json" && !(kind.starts_with("application/") && kind.ends_with("+json")) {
        return Err(DocumentError::Json);
    }
    document::read(url, &answer.body)
}

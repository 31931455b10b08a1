//! A gateway on loopback that is thrown away.

use super::{CliError, other, output};
use crate::client::{Caller, HomeClient};
use crate::state::gateway::Gateway;
use crate::system::config::Config;
use crate::system::home::{Home, Init};
use crate::system::outgoing;
use crate::system::serve;
use crate::system::tls::Authority;
use oap_identity::Did;
use oap_identity::outgoing::Outgoing;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A principal with a running gateway.
pub(super) struct House {
    pub(super) did: Did,
    pub(super) gateway: Arc<Gateway>,
    pub(super) owner: HomeClient,
    home: Home,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

impl House {
    pub(super) async fn start(folder: &Path, authority: &Authority) -> Result<Self, CliError> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(other)?;
        let address = listener.local_addr().map_err(other)?;
        let did = Did::web(&format!("localhost:{}", address.port())).map_err(other)?;
        let path = folder.join("home");
        let home = Home::new(path.clone());
        let settings = BTreeMap::from([
            ("listen".to_owned(), json!(address)),
            ("trust_ca".to_owned(), json!(folder.join("ca.pem"))),
            ("tls_cert".to_owned(), json!(path.join("cert.pem"))),
            ("tls_key".to_owned(), json!(path.join("key.pem"))),
            ("allow_local_dids".to_owned(), json!(true)),
        ]);
        let key_file = Some(folder.join("master.key"));
        let did = home.init(Init { did: Some(did), settings, key_file }).await?;
        let (certificate, key) = authority.issue("localhost").map_err(other)?;
        output::write(&path.join("cert.pem"), &certificate)?;
        crate::system::home::write_private(&path.join("key.pem"), key.as_bytes())?;
        let gateway = home.open(&BTreeMap::new()).await?;
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn({
            let (gateway, home) = (gateway.clone(), home.clone());
            async move {
                let stopped = async { drop(stopped.await) };
                if let Err(error) = serve::serve(gateway, &home, listener, stopped).await {
                    tracing::error!(%error, "the demonstration's server failed");
                }
            }
        });
        // The store is open in this process: the client goes over the socket in the home, as every command does.
        let owner = HomeClient::connect(home.clone(), &BTreeMap::new(), Caller::default()).await?;
        Ok(Self { did, gateway, owner, home, stop: Some(stop), server })
    }

    pub(super) fn config(&self) -> Result<Config, CliError> {
        Ok(Config::load(self.home.path(), &BTreeMap::new())?)
    }

    /// Requests that trust the throw-away authority.
    pub(super) fn outgoing(&self, config: &Config) -> Result<Outgoing, CliError> {
        Ok(outgoing::of_home(config, &self.home)?)
    }

    pub(super) async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.server).await;
    }
}

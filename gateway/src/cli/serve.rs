//! `oap-memory serve`

use super::{CliError, Global};
use crate::system::address::{Network, Origin};
use crate::system::config::{Config, LogFormat};
use crate::system::trails::Trails;
use crate::system::{prometheus, serve};
use metrics_exporter_prometheus::BuildError;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Run the gateway
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory serve
  oap-memory serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem
  oap-memory serve --plain-http --listen 127.0.0.1:8080 --trusted-proxy 127.0.0.1     (behind a reverse proxy)

Without a certificate a self-made one is kept under the home. SIGTERM and Ctrl-C let open requests finish.
While it runs, the other commands reach it over a socket in the home. docs/operate.md has proxies, backups and the
systemd unit. RUST_LOG=debug shows more. Logs carry ids, never content.")]
pub(super) struct Serve {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where the gateway is reached from outside
    #[arg(long, value_name = "URL")]
    origin: Option<Origin>,
    /// The certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve plain http; on loopback only
    #[arg(long)]
    plain_http: bool,
    /// Believe this proxy's X-Forwarded-For or Forwarded: an address or a network; may be given several times
    #[arg(long, value_name = "NETWORK")]
    trusted_proxy: Vec<Network>,
    /// Serve Prometheus metrics on this loopback address
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
}

impl Serve {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let mut flags = global.flags();
        let mut set = |name: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                flags.insert(name.to_owned(), value);
            }
        };
        set("listen", self.listen.map(|v| json!(v)));
        set("origin", self.origin.map(|v| json!(v)));
        set("tls_cert", self.tls_cert.map(|v| json!(v)));
        set("tls_key", self.tls_key.map(|v| json!(v)));
        set("plain_http", self.plain_http.then_some(json!(true)));
        set("trusted_proxies", (!self.trusted_proxy.is_empty()).then(|| json!(self.trusted_proxy)));
        set("metrics_listen", self.metrics_listen.map(|v| json!(v)));
        let home = global.home();
        let config = Config::load(home.path(), &flags)?;
        log(config.log_format);
        for warning in config.trails_file(home.path())?.iter().flat_map(Trails::warnings) {
            tracing::warn!("{warning}");
        }
        let failed = |what: &str, e: &dyn std::fmt::Display| CliError::Other(format!("{what}: {e}"));
        let recorder = config.metrics_listen.map(|address| Ok((address, prometheus::record()?)));
        let recorder = recorder.transpose().map_err(|e: BuildError| failed("metrics", &e))?;
        global.keep(global.lock().await?);
        let gateway = home.open(&flags).await?;
        home.renew_admin(&gateway)?;
        if let Some((address, recorder)) = recorder {
            let served = prometheus::serve(address, recorder, gateway.clone(), home.clone()).await;
            served.map_err(|e| failed("metrics_listen", &e))?;
        }
        let listener = TcpListener::bind(config.listen).map_err(|e| failed("listen", &e))?;
        serve::serve(gateway, &home, listener, serve::stop_signal()).await?;
        tracing::info!("stopped");
        Ok(())
    }
}

fn log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // The library of the assistants' protocol logs their messages, with all that they say. Whatever is asked for, it is not heard.
    let without_content = filter_fn(|about| !about.target().starts_with("rmcp"));
    match format {
        LogFormat::Text => builder.with_ansi(false).finish().with(without_content).init(),
        LogFormat::Json => builder.json().finish().with(without_content).init(),
    }
}

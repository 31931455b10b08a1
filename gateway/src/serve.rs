//! The server: listeners, graceful shutdown, sweeping.

use crate::front::{Connections, Deadlines, Front};
use crate::gateway::Gateway;
use crate::home::{Home, HomeError};
use crate::http::App;
use crate::service::sweep::INTERVAL;
use crate::{panics, tls};
use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// How long open requests may take once the server is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Serves a gateway on a bound listener until `stop` resolves. Plain http only when configured, and then the
/// listener is on loopback.
///
/// # Errors
/// [`HomeError`] of the certificate, or what the system says of the listener.
pub async fn serve(
    gateway: Arc<Gateway>,
    home: &Home,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), HomeError> {
    serve_within(gateway, home, listener, stop, Deadlines::default(), Connections::of_process()).await
}

/// The same, with other deadlines and bounds.
///
/// # Errors
/// As [`serve`].
pub async fn serve_within(
    gateway: Arc<Gateway>,
    home: &Home,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
    deadlines: Deadlines,
    connections: Arc<Connections>,
) -> Result<(), HomeError> {
    let failed = |error| HomeError::File { path: home.path().to_owned(), error };
    panics::install();
    let app = App::within(gateway.clone(), deadlines);
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    let plain = gateway.config.plain_http;
    let tls = if plain { None } else { Some(TlsAcceptor::from(tls::server(&gateway.config, home)?)) };
    tracing::info!(%address, origin = gateway.origin(), principal = %gateway.principal(), "serving");
    let sweeper = tokio::spawn(sweep(gateway.clone(), app.clone()));
    let front = Arc::new(Front::new(app.router(), tls, deadlines, connections));
    front.run(listener, stop, GRACE).await;
    sweeper.abort();
    gateway.tell_chains();
    Ok(())
}

async fn sweep(gateway: Arc<Gateway>, app: App) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        app.forget_addresses();
        match gateway.sweep().await {
            Ok(swept) => tracing::debug!(?swept, "swept"),
            Err(error) => tracing::error!(%error, "sweeping failed"),
        }
    }
}

/// Serves metrics on a loopback address.
///
/// # Errors
/// What the system says of the address.
pub async fn serve_metrics(address: SocketAddr, metrics: PrometheusHandle) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let router = Router::new().route("/metrics", get(move || async move { metrics.render() }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
}

/// Resolves when the process is told to stop.
pub async fn stop_signal() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

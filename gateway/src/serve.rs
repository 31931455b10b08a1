//! The server: listeners, graceful shutdown, sweeping.

use crate::gateway::Gateway;
use crate::home::{Home, HomeError};
use crate::http::App;
use crate::service::sweep::INTERVAL;
use crate::socket::OwnerSocket;
use crate::tls;
use axum_server::Handle;
use hyper_util::rt::TokioTimer;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// How long open requests may take once the server is told to stop.
const GRACE: Duration = Duration::from_secs(10);
/// How long a client may take to send its request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a gateway on a bound listener, and its owner on the socket in the home, until `stop` resolves. Plain http only when configured, and then the
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
    let failed = |error| HomeError::File { path: home.path().to_owned(), error };
    let app = App::new(gateway.clone());
    let owner = OwnerSocket::open(home.path(), app.clone()).map_err(failed)?;
    let sweeper = tokio::spawn(sweep(gateway.clone(), app.clone()));
    let service = app.router().into_make_service_with_connect_info::<SocketAddr>();
    let handle = Handle::new();
    let stopper = handle.clone();
    tokio::spawn(async move {
        stop.await;
        stopper.graceful_shutdown(Some(GRACE));
    });
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let tls = if gateway.config.plain_http { None } else { Some(tls::server(&gateway.config, home)?) };
    tracing::info!(%address, origin = gateway.origin(), principal = %gateway.principal(), "serving");
    let served = if let Some(tls) = tls {
        let mut server = axum_server::from_tcp_rustls(listener, tls).map_err(failed)?.handle(handle);
        limit(server.http_builder());
        server.serve(service).await
    } else {
        let mut server = axum_server::from_tcp(listener).map_err(failed)?.handle(handle);
        limit(server.http_builder());
        server.serve(service).await
    };
    owner.close().await;
    sweeper.abort();
    served.map_err(failed)
}

fn limit(builder: &mut hyper_util::server::conn::auto::Builder<hyper_util::rt::TokioExecutor>) {
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
}

pub(crate) async fn sweep(gateway: Arc<Gateway>, app: App) {
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

//! The server: listeners, graceful shutdown, sweeping.

use crate::http::App;
use crate::http::front::{Connections, Deadlines, Front};
use crate::service::Deletions;
use crate::service::sweep::INTERVAL;
use crate::state::gateway::Gateway;
use crate::system::home::{Home, HomeError};
use crate::system::socket::OwnerSocket;
use crate::system::{panics, tls};
use std::future::Future;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// How long open requests may take once the server is told to stop.
const GRACE: Duration = Duration::from_secs(10);
/// How long jobs may take to end once they are cancelled: a step of each.
pub const JOBS_GRACE: Duration = Duration::from_secs(5);

/// Serves a gateway on a bound listener, and its owner on the socket in the home, until `stop` resolves. Plain http only when
/// configured, and then the listener is on loopback.
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
    let owner = || OwnerSocket::open(home.path(), app.clone());
    let owner = gateway.store.space().finish(owner).map_err(failed)?;
    tracing::info!(%address, origin = gateway.origin(), principal = %gateway.principal(), "serving");
    let sweeper = tokio::spawn(sweep(gateway.clone(), app.clone()));
    let trusted = gateway.config.trusted_proxies.clone();
    let front = Arc::new(Front::new(app.router(), tls, deadlines, connections, trusted));
    front.run(listener, stop, GRACE).await;
    wind_down(&gateway, owner, sweeper).await;
    Ok(())
}

/// Ends what a process does beside its listeners: jobs are cancelled and waited for, as long as [`JOBS_GRACE`] allows.
pub(crate) async fn wind_down(gateway: &Gateway, owner: OwnerSocket, sweeper: JoinHandle<()>) {
    // First: whoever waits for a job at the socket is answered.
    gateway.jobs.close();
    owner.close().await;
    if tokio::time::timeout(JOBS_GRACE, gateway.jobs.ended()).await.is_err() {
        tracing::warn!("a job did not end in time");
    }
    sweeper.abort();
    gateway.tell_chains();
}

pub(crate) async fn sweep(gateway: Arc<Gateway>, app: App) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        app.forget_addresses();
        match Deletions(&gateway).sweep().await {
            Ok(swept) => tracing::debug!(?swept, "swept"),
            Err(error) => tracing::error!(%error, "sweeping failed"),
        }
    }
}

/// Resolves when the process is told to stop; from this call on, and not from when it is first waited for, it does not simply end.
pub fn stop_signal() -> impl Future<Output = ()> + Send + 'static {
    let on = |kind| signal(kind).ok();
    let (terminate, interrupt) = (on(SignalKind::terminate()), on(SignalKind::interrupt()));
    async {
        tokio::select! {
            () = told(terminate) => {}
            () = told(interrupt) => {}
        }
    }
}

async fn told(signal: Option<Signal>) {
    match signal {
        Some(mut signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

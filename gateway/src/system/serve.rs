//! The server: listeners, graceful shutdown, sweeping.

use crate::Error;
use crate::http::App;
use crate::http::front::{Connections, Deadlines, Front};
use crate::service::sweep::INTERVAL;
use crate::service::{
    Deletions, Devices, Letters, Lockdowns, Peers, Subscriptions, Tools, Wallet, Witnesses, devices, peers,
    witnesses,
};

use crate::state::gateway::Gateway;
use crate::system::home::{Home, HomeError};
use crate::system::socket::OwnerSocket;
use crate::system::{panics, tls};
use std::future::Future;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// How often the outbox is looked at for letters whose next attempt is due.
const LETTERS: Duration = Duration::from_secs(1);
/// How often the subscriptions are looked at for those whose tick has come.
const PUSHES: Duration = Duration::from_secs(1);
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

/// What a process does by itself while it has a home open.
pub(crate) async fn sweep(gateway: Arc<Gateway>, app: App) {
    let starting = compact(gateway.clone());
    tokio::join!(
        starting,
        sweep_often(gateway.clone(), app),
        send_letters(gateway.clone()),
        push_changes(gateway.clone()),
        watch_peers(gateway.clone()),
        watch_wallet(gateway.clone()),
        follow_devices(gateway.clone()),
        grow_log(gateway)
    );
}

/// Takes away what is of no use, once, where the configuration says so.
async fn compact(gateway: Arc<Gateway>) {
    if !gateway.config.brain_compact_on_start {
        return;
    }
    match Tools(&gateway).compact_on_start().await {
        Ok(None) => tracing::warn!(
            "brain_compact_on_start: no agent may do that; `oap-memory agent add NAME --permission admin` makes one"
        ),
        Ok(Some(went)) => tracing::info!(went, "compacted"),
        Err(error) => tracing::error!(%error, "compacting failed"),
    }
}

/// Sends letters as they become due.
async fn send_letters(gateway: Arc<Gateway>) {
    loop {
        if let Err(error) = Letters(&gateway).send_due().await {
            tracing::error!(%error, "sending letters failed");
        }
        // One that is put in meanwhile wakes it.
        let _ = tokio::time::timeout(LETTERS, gateway.outbox.woken()).await;
    }
}

/// Pushes what became of views, each at its ticks. A pass waits for no other: who is slow holds up nobody's tick.
async fn push_changes(gateway: Arc<Gateway>) {
    let (mut ticks, mut asks) = (tokio::time::interval(PUSHES), tokio::time::interval(INTERVAL));
    let (mut passes, mut asking) = (JoinSet::new(), JoinSet::new());
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = asks.tick() => {
                let gateway = gateway.clone();
                // One at a time: who is slow has the others wait.
                if asking.is_empty() || asking.try_join_next().is_some() {
                    asking.spawn(async move {
                        if let Err(error) = Subscriptions(&gateway).ask_again().await {
                            tracing::error!(%error, "subscriptions could not be asked for");
                        }
                    });
                }
            }
        }
        while passes.try_join_next().is_some() {}
        let gateway = gateway.clone();
        passes.spawn(async move {
            // What went wrong with one is in the log.
            let _ = Subscriptions(&gateway).push_due().await;
        });
    }
}

async fn sweep_often(gateway: Arc<Gateway>, app: App) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        app.forget_addresses();
        // What a lockdown had left when the process ended.
        if let Err(error) = Lockdowns(&gateway).carry_on().await {
            tracing::error!(%error, "the grants of a lockdown could not be revoked");
        }
        if let Err(error) = Subscriptions(&gateway).end_over().await {
            tracing::error!(%error, "subscriptions whose grant is over could not be ended");
        }
        match Deletions(&gateway).sweep().await {
            Ok(swept) => tracing::debug!(?swept, "swept"),
            Err(error) => tracing::error!(%error, "sweeping failed"),
        }
    }
}

/// Looks at the peers that are due, for ever.
async fn watch_peers(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(peers::INTERVAL);
    loop {
        ticks.tick().await;
        match Peers(&gateway).check_due().await {
            Ok(0) => {}
            Ok(looked_at) => tracing::debug!(looked_at, "peers"),
            Err(error) => tracing::error!(%error, "looking at peers failed"),
        }
    }
}

/// Asks where the grants of the wallet stand that are due, for ever.
async fn watch_wallet(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        match Wallet(&gateway).check_due().await {
            Ok(0) => {}
            Ok(lists) => tracing::debug!(lists, "received grants"),
            Err(error) => tracing::error!(%error, "looking up received grants failed"),
        }
    }
}

/// Has the log grow by a leaf a minute, and has it signed, for ever.
async fn grow_log(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(witnesses::INTERVAL);
    loop {
        ticks.tick().await;
        match Witnesses(&gateway).round().await {
            // A clock that is not believed says no minute.
            Ok(_) | Err(Error::Unavailable(_)) => {}
            Err(error) => tracing::error!(%error, "the log could not be grown or signed"),
        }
    }
}

/// Asks the owner's devices what changed, for ever.
async fn follow_devices(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(devices::INTERVAL);
    loop {
        ticks.tick().await;
        match Devices(&gateway).sync_due().await {
            Ok(0) => {}
            Ok(taken) => tracing::debug!(taken, "devices"),
            Err(error) => tracing::error!(%error, "asking devices failed"),
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

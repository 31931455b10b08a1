//! The network front: accepts connections, bounds how many there are and how long each may take, and hands
//! requests to the router.
//!
//! HTTP/1.1 only. A connection is closed when its TLS handshake, the head of its next request or the taking of an
//! answer takes longer than [`Deadlines`] allows; the body of a request has its deadline in
//! [`crate::http::request`].

mod connections;
mod deadlines;
mod paced;

pub use connections::{
    Connections, MAX_CONNECTIONS, MAX_PER_NETWORK, MIN_CONNECTIONS, RESERVED_DESCRIPTORS, network,
};
pub use deadlines::{BODY, Deadlines, HANDSHAKE, HEAD, MIN_PROGRESS, REQUEST, STALL, TURN};

use crate::system::address::Network;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use connections::Admitted;
pub use connections::Seat;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use paced::Paced;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// Largest head of a request, in bytes: request line and headers. A larger one is answered 431.
pub const MAX_HEAD: usize = 32 << 10;
/// Most headers of a request. More are answered 431.
pub const MAX_HEADERS: usize = 64;
/// Time between two attempts to accept, while the system has no descriptor to spare.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What serves connections.
pub struct Front {
    router: Router,
    tls: Option<TlsAcceptor>,
    deadlines: Deadlines,
    connections: Arc<Connections>,
    trusted: Vec<Network>,
}

impl Front {
    /// A front of a router, plain where there is no `tls`. A trusted proxy brings callers of many networks: its connections are
    /// bounded by the bound of all alone.
    #[must_use]
    pub fn new(
        router: Router,
        tls: Option<TlsAcceptor>,
        deadlines: Deadlines,
        connections: Arc<Connections>,
        trusted: Vec<Network>,
    ) -> Self {
        Self { router, tls, deadlines, connections, trusted }
    }

    /// The network whose bound a peer counts for.
    fn bound(&self, peer: IpAddr) -> Option<IpAddr> {
        (!self.trusted.iter().any(|proxies| proxies.contains(peer))).then(|| network(peer))
    }

    /// Accepts until `stop` resolves, then lets open requests finish for as long as `grace`.
    pub async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        grace: Duration,
    ) {
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    if let Some(admitted) = self.connections.admit(self.bound(peer.ip())) {
                        tokio::spawn(self.clone().connection(stream, peer, admitted, graceful.watcher()));
                    } else {
                        metrics::counter!("oap_connections_refused_total").increment(1);
                    }
                }
                Err(error) if concerns_one(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted at the moment");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        self.connections.close_quiet();
        let _ = tokio::time::timeout(grace, graceful.shutdown()).await;
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        admitted: Admitted,
        watcher: Watcher,
    ) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.exchange(stream, peer, &admitted, watcher).await };
        let handshake = tokio::time::timeout(self.deadlines.handshake, tls.accept(stream));
        let stream = tokio::select! {
            done = handshake => match done {
                Ok(Ok(stream)) => stream,
                Ok(Err(_)) | Err(_) => return,
            },
            () = admitted.displaced() => return,
        };
        self.exchange(stream, peer, &admitted, watcher).await;
    }

    /// Serves the requests of one connection.
    async fn exchange<T: AsyncRead + AsyncWrite + Unpin + 'static>(
        &self,
        stream: T,
        peer: SocketAddr,
        admitted: &Admitted,
        watcher: Watcher,
    ) {
        let (router, state) = (self.router.clone(), admitted.state().clone());
        let stream = Paced::new(stream, self.deadlines.stall, state.clone());
        let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let mut request: Request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(Seat(state.clone()));
            let (router, state) = (router.clone(), state.clone());
            async move {
                state.working();
                let answered = router.oneshot(request).await;
                state.answering();
                answered
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.deadlines.head)
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD)
            .max_buf_size(2 * MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            served = watcher.watch(connection) => {
                if let Err(error) = served {
                    tracing::debug!(%error, "a connection broke off");
                }
            }
            () = admitted.displaced() => {}
        }
    }
}

/// Whether accepting failed because of the one connection that was to be accepted.
fn concerns_one(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

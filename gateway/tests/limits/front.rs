//! The network front, on loopback: whoever says nothing, says it slowly or does not listen loses the connection.

use crate::common::World;
use oap_gateway::http::front::{Connections, Deadlines};
use oap_gateway::system::config::Config;
use oap_gateway::system::home;
use oap_gateway::system::serve;
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// Long enough that only a connection that is never closed meets it.
const NEVER: Duration = Duration::from_secs(60);

/// Deadlines that no test waits for, to be shortened one at a time.
const LONG: Deadlines =
    Deadlines { handshake: NEVER, head: NEVER, body: NEVER, request: NEVER, turn: NEVER, stall: NEVER };
const SHORT: Duration = Duration::from_millis(200);

struct Served {
    address: SocketAddr,
    folder: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

impl Served {
    async fn new(plain_http: bool, deadlines: Deadlines, connections: Arc<Connections>) -> Self {
        let world = World::with(1, Config { plain_http, ..Config::default() }).await;
        let folder = tempfile::tempdir().unwrap();
        let home = home::Home::new(folder.path().to_owned());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async { drop(stopped.await) };
        let server = tokio::spawn(async move {
            let gateway = world.gateway.clone();
            serve::serve_within(gateway, &home, listener, stopped, deadlines, connections).await.unwrap();
        });
        Self { address, folder, stop: Some(stop), server }
    }

    async fn plain(deadlines: Deadlines) -> Self {
        Self::new(true, deadlines, Connections::new(64)).await
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A client that trusts the server's own certificate.
    async fn tls(&self, protocols: &[&[u8]]) -> TlsConnector {
        // The certificate is made before the server accepts anything.
        drop(self.connect().await);
        let path = self.folder.path().join("tls/cert.pem");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(path).unwrap()).unwrap();
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }

    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        within(&mut self.server).await.unwrap();
    }
}

async fn within<T>(waited: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER / 2, waited).await.expect("the connection is never closed")
}

/// Everything until the other side closes.
async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut read = Vec::new();
    let _ = within(stream.read_to_end(&mut read)).await;
    String::from_utf8_lossy(&read).into_owned()
}

fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

#[tokio::test]
async fn a_silent_connection_before_tls() {
    let server = Served::new(false, Deadlines { handshake: SHORT, ..LONG }, Connections::new(64)).await;
    assert_eq!(rest(&mut server.connect().await).await, "");
    let mut garbage = server.connect().await;
    garbage.write_all(b"\x16\x03\x01").await.unwrap();
    rest(&mut garbage).await;
}

#[tokio::test]
async fn a_silent_connection_after_tls() {
    let server = Served::new(false, Deadlines { head: SHORT, ..LONG }, Connections::new(64)).await;
    let connector = server.tls(&[b"http/1.1"]).await;
    let mut stream = connector.connect(name(), server.connect().await).await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test]
async fn half_a_head_and_a_connection_that_idles() {
    let server = Served::plain(Deadlines { head: SHORT, ..LONG }).await;
    for said in ["", "G", "GET /healthz HTTP/1.1\r\nHost: user.exam", "PRI * HT"] {
        let mut stream = server.connect().await;
        stream.write_all(said.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(!answer.contains("200"), "{said:?}: {answer}");
    }
    // One request, and then nothing more.
    let mut stream = server.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: user.example\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.ends_with("ok\n"));
}

#[tokio::test]
async fn http_2_is_not_spoken() {
    let server = Served::plain(LONG).await;
    let mut stream = server.connect().await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    stream.write_all(&settings).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 "), "{answer:?}");
    let server = Served::new(false, LONG, Connections::new(64)).await;
    let connector = server.tls(&[b"h2"]).await;
    assert!(within(connector.connect(name(), server.connect().await)).await.is_err());
}

#[tokio::test]
async fn a_slow_body() {
    let server = Served::plain(Deadlines { body: SHORT, ..LONG }).await;
    let mut stream = server.connect().await;
    let head = "POST /oap/discover HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_head_at_its_bounds() {
    let server = Served::plain(LONG).await;
    let ask = async |headers: String| {
        let mut stream = server.connect().await;
        let head = format!("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        rest(&mut stream).await
    };
    let many = |n: usize| (0..n).map(|i| format!("x-{i}: 1\r\n")).collect::<String>();
    let most = oap_gateway::http::front::MAX_HEADERS - 2;
    assert!(ask(many(most)).await.starts_with("HTTP/1.1 200 "));
    assert!(ask(many(most + 1)).await.starts_with("HTTP/1.1 431 "));
    let long = |bytes: usize| format!("x: {}\r\n", "a".repeat(bytes));
    assert!(ask(long(oap_gateway::http::front::MAX_HEAD / 2)).await.starts_with("HTTP/1.1 200 "));
    assert!(ask(long(oap_gateway::http::front::MAX_HEAD)).await.starts_with("HTTP/1.1 431 "));
}

/// Asks without end and reads nothing: the server leaves.
#[tokio::test]
async fn answers_that_nobody_reads() {
    let server = Served::plain(Deadlines { stall: SHORT, ..LONG }).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let ask = "GET /.well-known/oap-memory.json HTTP/1.1\r\nHost: user.example\r\n\r\n".repeat(64);
    let error = within(async {
        loop {
            if let Err(error) = stream.write_all(ask.as_bytes()).await {
                break error;
            }
        }
    });
    error.await;
}

/// A hundred and fifty who say nothing, at a server that has few descriptors: the door stays open.
#[tokio::test]
async fn silent_connections_do_not_shut_the_door() {
    let connections = Connections::new(16);
    let server = Served::new(true, LONG, connections.clone()).await;
    let mut silent = Vec::new();
    for _ in 0..150 {
        silent.push(server.connect().await);
    }
    let mut honest = server.connect().await;
    honest.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(rest(&mut honest).await.ends_with("ok\n"));
    assert!(connections.count() <= 16);
    // All but the last few were closed to make room.
    for stream in &mut silent[..100] {
        assert_eq!(rest(stream).await, "");
    }
    server.stop().await;
}

/// The real program with 128 file descriptors, and 150 connections that say nothing: its owner gets in.
#[test]
fn a_server_with_few_descriptors() {
    use crate::program::{BINARY, Home};
    let home = Home::web();
    let folder = home.home().to_string_lossy().into_owned();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 128; exec \"$0\" \"$@\"", BINARY, "--home", &folder, "serve"]);
    let server = home.serve_as(command);
    let silent: Vec<std::net::TcpStream> =
        (0..150).map(|_| std::net::TcpStream::connect(("127.0.0.1", home.port)).unwrap()).collect();
    home.run(&["item", "list"]).ok();
    drop(silent);
    assert_eq!(server.stop().0, 0);
}

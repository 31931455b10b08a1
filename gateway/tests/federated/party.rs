//! Gateways that are reached over loopback by TLS, each with a front that can be told to do what no gateway does.

use crate::common::*;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response, StatusCode};
use hyper::body::{Body as HttpBody, Frame};
use oap_exchange::gate::Sanctions;
use oap_gateway::Gateway;
use oap_gateway::http::front::{Connections, Deadlines, Front};
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::system::config::Config;
use oap_gateway::system::home::Home;
use oap_gateway::system::tls::{self, Authority};
use oap_identity::random::Seeded;
use oap_identity::{Hash, Random, Timestamp};
use oap_store::Store;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// What is answered at a path, in place of what would be.
pub type Rewrite = Arc<dyn Fn(&str, Vec<u8>) -> Vec<u8> + Send + Sync>;

/// What a front does in place of what its gateway would.
#[derive(Clone, Default)]
pub enum Mode {
    /// Nothing.
    #[default]
    Honest,
    /// Takes a query and never answers.
    Silent,
    /// Begins an answer and breaks off.
    CutsOff,
    /// Answers without end.
    Endless,
    /// Answers with JSON in 10,000 levels.
    Deep,
    /// Sends queries to a private address.
    Redirects,
    /// Changes a word of what its gateway answers.
    Forges,
    /// Answers what was answered before.
    Replays,
    /// Shows this in place of its DID document.
    Shows(Value),
    /// Has two faces: one answers everything, but for the checkpoint of its log, which is the other's.
    Faces { answers: Router, checkpoint: Router },
    /// Answers nobody anything.
    Away,
    /// Changes what it answers a device of its owner's.
    Rewrites(Rewrite),
}

#[derive(Default)]
struct Played {
    mode: Mode,
    /// The last honest answer to a query.
    last: Vec<u8>,
}

/// The authority of all parties, and where its files are.
pub struct Town {
    folder: tempfile::TempDir,
    authority: Authority,
}

/// A principal with a gateway.
pub struct Party {
    pub world: World,
    pub did: String,
    front: Arc<Mutex<Played>>,
    stop: Option<oneshot::Sender<()>>,
    serves: JoinHandle<()>,
}

impl Town {
    pub fn new() -> Self {
        tls::install();
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new().unwrap());
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        Self { folder, authority }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A gateway that nobody reaches. Its keys are those of the seed.
    pub async fn world(&self, did: &str, seed: u64) -> World {
        self.world_with(did, seed, Config::default()).await
    }

    async fn world_with(&self, did: &str, seed: u64, config: Config) -> World {
        let config = Config { trust_ca: Some(self.path("ca.pem")), allow_local_dids: true, ..config };
        let random: Arc<dyn Random> = Arc::new(Seeded::new(seed));
        let store = Store::in_memory(random.clone()).unwrap();
        let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
        Gateway::init(&store, &keys).await.unwrap();
        World::of(did, store, config, random, Sanctions::new(), None).await
    }

    /// A gateway on a free port of loopback.
    pub async fn party(&self, seed: u64) -> Party {
        self.party_with(seed, Config::default()).await
    }

    /// The same, with settings of its own.
    pub async fn party_with(&self, seed: u64, config: Config) -> Party {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let did = format!("did:web:localhost%3A{port}");
        let world = self.world_with(&did, seed, config).await;

        let (certificate, key) = self.authority.issue("localhost").unwrap();
        let (certificate_file, key_file) =
            (self.path(&format!("{port}.pem")), self.path(&format!("{port}.key")));
        std::fs::write(&certificate_file, certificate).unwrap();
        std::fs::write(&key_file, key).unwrap();
        let config =
            Config { tls_cert: Some(certificate_file), tls_key: Some(key_file), ..Config::default() };
        let tls = tls::server(&config, &Home::new(self.folder.path().to_owned())).unwrap();

        let front = Arc::new(Mutex::new(Played::default()));
        let (inner, shared) = (world.router.clone(), front.clone());
        let handler = move |request: Request<Body>| answer(inner.clone(), shared.clone(), request);
        let router = Router::new().fallback(handler);
        let deadlines = Deadlines { request: Duration::from_secs(600), ..Deadlines::default() };
        let served = Arc::new(Front::new(
            router,
            Some(TlsAcceptor::from(tls)),
            deadlines,
            Connections::new(1000),
            Vec::new(),
        ));
        let (stop, stopped) = oneshot::channel::<()>();
        let serves = tokio::spawn(served.run(
            listener,
            async move {
                let _ = stopped.await;
            },
            Duration::from_secs(30),
        ));
        Party { world, did, front, stop: Some(stop), serves }
    }
}

impl Party {
    pub fn set(&self, mode: Mode) {
        self.front.lock().unwrap().mode = mode;
    }

    /// Ends the server: nobody listens any more.
    pub async fn ends(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.serves).await.unwrap();
    }

    /// Grants another party to read everything, and puts that into its wallet; the grant and its hash.
    pub async fn grants(&self, to: &Self, purpose: &str) -> (Value, String) {
        let draft = json!({
            "grantee": to.did, "purpose": purpose, "filter": {}, "max_items": 500,
            "expires_at": self.world.now().plus(Duration::from_secs(30 * 86_400)),
            "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
        });
        let grant = self.world.issue(&draft).await;
        let received =
            to.world.owner("POST", "/oap/owner/received", Some(&json!({"grant": grant}))).await.ok();
        let hash = Hash::of_canonical(&grant).unwrap().to_string();
        assert_eq!(received["hash"], hash.as_str());
        (grant, hash)
    }

    /// A recall of the owner's.
    pub async fn recall(&self, words: &str, deadline: u64) -> Value {
        let query = json!({"text": words, "deadline": deadline});
        self.world.owner("POST", "/oap/owner/recall", Some(&query)).await.ok()
    }

    /// What others said that is not so.
    pub async fn lies(&self) -> Vec<Value> {
        let lies = self.world.owner("GET", "/oap/owner/lies", None).await.ok();
        lies["lies"].as_array().unwrap().clone()
    }
}

/// What became of asking a peer: verdict and reason.
#[track_caller]
pub fn verdict(found: &Value, peer: &Party) -> (String, String) {
    let peers = found["from_peers"]["peers"].as_array().unwrap();
    let asked = peers.iter().find(|asked| asked["peer"] == peer.did.as_str());
    let asked = asked.unwrap_or_else(|| panic!("{} was not asked: {found}", peer.did));
    let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("reason"))
}

/// What others say, in order.
pub fn theirs(found: &Value) -> Vec<String> {
    let items = found["from_peers"]["items"].as_array().unwrap();
    items.iter().map(|item| item["content"].as_str().unwrap().to_owned()).collect()
}

/// A body without end.
struct Endless;

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 65_536])))))
    }
}

/// A body that breaks off.
struct CutOff(bool);

impl HttpBody for CutOff {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let begun = std::mem::replace(&mut self.0, true);
        Poll::Ready(Some(if begun {
            Err(io::ErrorKind::BrokenPipe.into())
        } else {
            Ok(Frame::data(Bytes::from_static(b"{\"items\": [")))
        }))
    }
}

fn json_body(body: Body) -> Response<Body> {
    Response::builder().header("content-type", "application/oap+json").body(body).unwrap()
}

async fn answer(
    inner: Router,
    front: Arc<Mutex<Played>>,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let (path, mode) = (request.uri().path().to_owned(), front.lock().unwrap().mode.clone());
    if let (Mode::Shows(document), true) = (&mode, path.ends_with("did.json")) {
        return Ok(json_body(Body::from(document.to_string())));
    }
    if let Mode::Faces { answers, checkpoint } = mode {
        let face = if path.ends_with("oap-checkpoint") { checkpoint } else { answers };
        return face.oneshot(request).await;
    }
    if matches!(mode, Mode::Away) {
        let none = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE).body(Body::empty());
        return Ok(none.unwrap());
    }
    if let (Mode::Rewrites(rewrite), true) = (&mode, path.starts_with("/oap/memory/changes")) {
        let answer = inner.oneshot(request).await?;
        let bytes = axum::body::to_bytes(answer.into_body(), 64 << 20).await.unwrap().to_vec();
        return Ok(json_body(Body::from(rewrite(&path, bytes))));
    }
    let is_transport =
        matches!(mode, Mode::Silent | Mode::CutsOff | Mode::Endless | Mode::Deep | Mode::Redirects);
    if path != "/oap/memory/query" && !(is_transport && path == "/oap/memory/changes") {
        return inner.oneshot(request).await;
    }
    Ok(match mode {
        Mode::Silent => std::future::pending().await,
        Mode::CutsOff => json_body(Body::new(CutOff(false))),
        Mode::Endless => json_body(Body::new(Endless)),
        Mode::Deep => json_body(Body::from("[".repeat(10_000) + &"]".repeat(10_000))),
        Mode::Redirects => Response::builder()
            .status(StatusCode::TEMPORARY_REDIRECT)
            .header("location", "http://10.0.0.1/oap/memory/query")
            .body(Body::empty())
            .unwrap(),
        Mode::Replays => json_body(Body::from(front.lock().unwrap().last.clone())),
        Mode::Honest
        | Mode::Forges
        | Mode::Shows(_)
        | Mode::Faces { .. }
        | Mode::Away
        | Mode::Rewrites(_) => {
            let (head, body) = inner.oneshot(request).await?.into_parts();
            let mut bytes = axum::body::to_bytes(body, 64 << 20).await.unwrap().to_vec();
            if matches!(mode, Mode::Forges) {
                let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
                answer["items"][0]["content"]["text"] = "The tea is poisoned.".into();
                bytes = answer.to_string().into_bytes();
                // Its length is another now.
                return Ok(json_body(Body::from(bytes)));
            }
            front.lock().unwrap().last.clone_from(&bytes);
            Response::from_parts(head, Body::from(bytes))
        }
    })
}

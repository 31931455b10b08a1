//! A played peer: a host on loopback that answers by path with whatever it is told to.

#![allow(dead_code, reason = "each test binary uses its part")]

use oap_gateway::system::config::Config;
use oap_gateway::system::home::Home;
use oap_gateway::system::tls::{self, Authority};
use oap_identity::document::{self, DidDocument};
use oap_identity::signed::sign_document;
use oap_identity::{AgreementKey, Did, Hash, Signer, Timestamp, VerificationKey};
use oap_manifest::handover::{self, Handover};
use oap_manifest::{Publication, card, memory, path, tool};
use oap_memory::Profile;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What makes an answer, written out, of the body that came.
pub type Make = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// How a path is answered.
#[derive(Clone)]
pub enum Reply {
    /// 200 with an entity tag and these headers; 304 for whoever has it.
    Paper(Vec<u8>, &'static str),
    /// 200 without an entity tag.
    Bare(Vec<u8>),
    /// These bytes, whatever was asked.
    Raw(Vec<u8>),
    /// Nothing, and the connection stays.
    Silent,
    /// 200, and spaces without end.
    Endless,
    /// What is made of the body that came.
    Made(Make),
    /// The same, by a host that takes so long for each.
    Slow(Duration, Make),
}

/// An authority of a test's own.
pub struct Trust {
    folder: tempfile::TempDir,
    authority: Authority,
}

impl Trust {
    pub fn new() -> Self {
        tls::install();
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new().unwrap());
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        Self { folder, authority }
    }

    /// Its certificate, for `trust_ca`.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// TLS for `localhost`.
    fn acceptor(&self) -> TlsAcceptor {
        let (certificate, key) = self.authority.issue("localhost").unwrap();
        let (certificate_file, key_file) =
            (self.folder.path().join("cert.pem"), self.folder.path().join("key.pem"));
        std::fs::write(&certificate_file, certificate).unwrap();
        std::fs::write(&key_file, key).unwrap();
        let config =
            Config { tls_cert: Some(certificate_file), tls_key: Some(key_file), ..Config::default() };
        TlsAcceptor::from(tls::server(&config, &Home::new(self.folder.path().to_owned())).unwrap())
    }
}

/// What was asked of the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub path: String,
    pub if_none_match: Option<String>,
}

/// A host, and whose it is.
pub struct PlayedPeer {
    pub did: Did,
    pub host: String,
    pub origin: String,
    replies: Arc<Mutex<BTreeMap<String, Reply>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// What a peer publishes.
#[derive(Clone)]
pub struct Shown {
    /// The keys of its document, by their numbers, each with when it was retired.
    pub keys: Vec<(u8, Option<Timestamp>)>,
    /// The key that signs.
    pub signer: u8,
    pub claims: Vec<&'static str>,
    pub published_at: Timestamp,
    /// Endpoints of the memory manifest that are another path, or new.
    pub endpoints: Vec<(&'static str, &'static str)>,
    pub handovers: Vec<Value>,
    /// Caching headers of each document.
    pub caching: &'static str,
}

impl PlayedPeer {
    /// Over plain http.
    pub async fn new() -> Self {
        Self::listening(None).await
    }

    /// Over TLS, with a certificate of that authority's.
    pub async fn over_tls(trust: &Trust) -> Self {
        Self::listening(Some(trust.acceptor())).await
    }

    async fn listening(acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("localhost:{}", listener.local_addr().unwrap().port());
        let did = Did::web(&host).unwrap();
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let (replies, asked) = (Arc::<Mutex<BTreeMap<String, Reply>>>::default(), Arc::default());
        let (answers, noted) = (replies.clone(), Arc::<Mutex<Vec<Asked>>>::clone(&asked));
        tokio::spawn(async move {
            loop {
                let Ok((connection, _)) = listener.accept().await else { return };
                let (acceptor, answers, noted) = (acceptor.clone(), answers.clone(), noted.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => answer(connection, answers, noted).await,
                        Some(acceptor) => {
                            if let Ok(connection) = acceptor.accept(connection).await {
                                answer(connection, answers, noted).await;
                            }
                        }
                    }
                });
            }
        });
        Self { did, origin: format!("{scheme}://{host}"), host, replies, asked }
    }

    /// The key of a number.
    pub fn signer(&self, number: u8) -> Signer {
        Signer::from_seed(self.did.key(&format!("key-{number}")).unwrap(), &[number; 32]).unwrap()
    }

    pub fn key(&self, number: u8) -> VerificationKey {
        let signer = self.signer(number);
        VerificationKey::new(signer.kid().clone(), *signer.public())
    }

    /// What key `by` says of key `next`.
    pub fn handover(&self, by: u8, next: u8, at: Timestamp) -> Value {
        Handover::sign(&self.signer(by), &self.key(next), at).unwrap()
    }

    /// One key, nothing claimed.
    pub fn shown(at: Timestamp) -> Shown {
        Shown {
            keys: vec![(1, None)],
            signer: 1,
            claims: Vec::new(),
            published_at: at,
            endpoints: Vec::new(),
            handovers: Vec::new(),
            caching: "Cache-Control: max-age=600\r\n",
        }
    }

    /// Publishes all of it.
    pub fn publish(&self, shown: &Shown) {
        let signer = self.signer(shown.signer);
        let profiles = Profile::built_in();
        let conformance = json!({
            "results_summary": {"total": 1}, "claimed_levels": shown.claims, "suite": {"version": "1"},
            "timestamp": shown.published_at, "validity": {"not_after": shown.published_at}, "attestor": "x",
        });
        let publication = Publication {
            principal: &self.did,
            origin: &self.origin,
            public_scopes: &[],
            profiles: &profiles,
            max_items: 100,
            max_duration_days: 30,
            belief_threshold: 0.5.try_into().unwrap(),
            retention_days: 30,
            publisher: "Played",
            contact_email: "a@b.example",
            jurisdiction: "DE",
            version: "0",
            now: shown.published_at,
            embedding: None,
            memorization_audit: None,
            conformance: (!shown.claims.is_empty()).then_some(conformance),
            suite: false,
        };
        let keys: Vec<VerificationKey> = shown
            .keys
            .iter()
            .map(|(number, retired)| match retired {
                Some(at) => self.key(*number).retired(*at),
                None => self.key(*number),
            })
            .collect();
        let did = document::publish(&self.did, &keys, &AgreementKey::from_secret([2; 32]), &self.origin);
        let tool = tool::build(&publication);
        let mut memory = memory::build(&publication, &tool, &signer).unwrap();
        for (name, path) in &shown.endpoints {
            memory["endpoints"][name] = json!(format!("{}{path}", self.origin));
        }
        memory.as_object_mut().unwrap().remove("signature");
        sign_document(&mut memory, &signer).unwrap();
        let card = card::build(&publication, &signer).unwrap();
        let handovers = handover::list(&self.did, &shown.handovers);
        for (path, document) in [
            (path::DID, did),
            (path::MEMORY_MANIFEST, memory),
            (path::TOOL_MANIFEST, tool),
            (path::HANDOVERS, handovers),
            (path::AGENT_CARD, card),
        ] {
            self.reply(path, Reply::Paper(document.to_string().into_bytes(), shown.caching));
        }
    }

    /// Answers a path with something else from now on.
    pub fn reply(&self, path: &str, reply: Reply) {
        self.replies.lock().unwrap().insert(path.to_owned(), reply);
    }

    /// What a path is answered with now.
    pub fn body(&self, path: &str) -> Vec<u8> {
        match self.replies.lock().unwrap().get(path) {
            Some(Reply::Paper(body, _) | Reply::Bare(body) | Reply::Raw(body)) => body.clone(),
            _ => Vec::new(),
        }
    }

    /// What was asked since the last time.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// The document as it is shown.
    pub fn document(&self) -> DidDocument {
        DidDocument::parse(&self.body(path::DID), &self.did).unwrap()
    }
}

/// An answer, written out.
pub fn http(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// What came of a request: its head and its body.
async fn read_request(connection: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    let end = loop {
        if let Some(at) = request.windows(4).position(|end| end == b"\r\n\r\n") {
            break at + 4;
        }
        match connection.read(&mut part).await {
            Ok(read) if read > 0 => request.extend_from_slice(&part[..read]),
            _ => return None,
        }
        // The client tries TLS first; a host that speaks plain http alone hangs up.
        if request.len() >= 4 && !request.starts_with(b"GET ") && !request.starts_with(b"POST") {
            return None;
        }
    };
    let mut body = request.split_off(end);
    let head = String::from_utf8_lossy(&request).into_owned();
    let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while body.len() < length {
        match connection.read(&mut part).await {
            Ok(read) if read > 0 => body.extend_from_slice(&part[..read]),
            _ => return None,
        }
    }
    Some((head, body))
}

fn header(head: &str, wanted: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
    })
}

async fn answer(
    mut connection: impl AsyncRead + AsyncWrite + Unpin,
    replies: Arc<Mutex<BTreeMap<String, Reply>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
) {
    let Some((head, body)) = read_request(&mut connection).await else { return };
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let named = header(&head, "if-none-match");
    asked.lock().unwrap().push(Asked { path: path.clone(), if_none_match: named.clone() });
    let reply = replies.lock().unwrap().get(&path).cloned();
    let bytes = match reply {
        None => http("404 Not Found", "", b""),
        Some(Reply::Paper(body, caching)) => {
            let etag = format!("\"{}\"", Hash::of(&body));
            let headers = format!("ETag: {etag}\r\n{caching}");
            if named.as_deref() == Some(etag.as_str()) {
                format!("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n{headers}\r\n").into_bytes()
            } else {
                http("200 OK", &headers, &body)
            }
        }
        Some(Reply::Bare(body)) => http("200 OK", "", &body),
        Some(Reply::Raw(bytes)) => bytes,
        Some(Reply::Made(make)) => make(&body),
        Some(Reply::Slow(time, make)) => {
            tokio::time::sleep(time).await;
            make(&body)
        }
        Some(Reply::Silent) => {
            std::future::pending::<()>().await;
            return;
        }
        Some(Reply::Endless) => {
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await;
            // Until the other side has enough of it.
            while connection.write_all(&[b' '; 65_536]).await.is_ok() {}
            return;
        }
    };
    let _ = connection.write_all(&bytes).await;
    let _ = connection.shutdown().await;
}

//! The guarded did:web client against hosts that misbehave (protocol section 2).

use oap_identity::outgoing::{Allowance, Outgoing, Request};
use oap_identity::resolve::{GuardedWeb, ResolveError, Resolver, WebPolicy};
use oap_identity::{Clock, Did, Signer, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// A host on loopback that answers every request for a document with what `answer` makes of its DID.
struct Host {
    did: Did,
    asked: Arc<AtomicUsize>,
}

impl Host {
    async fn new(answer: impl Fn(&Did) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let did = Did::web(&format!("localhost:{}", listener.local_addr().unwrap().port())).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let (named, count) = (did.clone(), asked.clone());
        tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                let read = connection.read(&mut request).await.unwrap_or(0);
                // The client tries TLS first; this host speaks plain http alone and hangs up.
                if !request[..read].starts_with(b"GET ") {
                    continue;
                }
                count.fetch_add(1, Ordering::SeqCst);
                let answer = answer(&named);
                let _ = connection.write_all(&answer).await;
                if answer.is_empty() {
                    // Says nothing, and never hangs up.
                    tokio::spawn(async move {
                        std::future::pending::<()>().await;
                        drop(connection);
                    });
                }
            }
        });
        Self { did, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn resolver(policy: WebPolicy) -> (Resolver, Arc<TestClock>) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let clock = Arc::new(TestClock(AtomicI64::new(1_777_636_800_000)));
    (Resolver::new(GuardedWeb::new(policy, &[]).unwrap(), clock.clone()), clock)
}

fn http(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn document_of(did: &Did) -> Vec<u8> {
    let signer = Signer::from_seed(did.key("key-1").unwrap(), &[7; 32]).unwrap();
    let key = serde_json::json!({
        "id": signer.kid(), "type": "JsonWebKey2020", "controller": did, "publicKeyJwk": signer.public().jwk(),
    });
    serde_json::json!({"id": did, "verificationMethod": [key]}).to_string().into_bytes()
}

fn unreachable(result: Result<Arc<oap_identity::DidDocument>, ResolveError>, says: &str) {
    match result {
        Err(ResolveError::Unreachable(_, why)) => assert!(why.contains(says), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_document_on_loopback_is_for_development_only() {
    let host = Host::new(|did| http("200 OK", "", &document_of(did))).await;
    let (local, _) = resolver(WebPolicy::AllowLocal);
    assert_eq!(local.resolve(&host.did).await.unwrap().id(), &host.did);
    let (public, _) = resolver(WebPolicy::Public);
    unreachable(public.resolve(&host.did).await, "public");
    assert_eq!(host.asked(), 1);
}

/// A client for other requests to where a stranger leads is held to the same: a name is refused when it is looked up.
#[tokio::test]
async fn a_guarded_client_does_not_look_inside() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let ask = async |policy: WebPolicy| {
        let client = Outgoing::default().guarded(policy).unwrap();
        let allowed = Allowance { bytes: 0, time: std::time::Duration::from_millis(500) };
        assert!(client.send(Request::get(&url), allowed).await.is_err());
        listener.accept().is_ok()
    };
    assert!(!ask(WebPolicy::Public).await);
    assert!(ask(WebPolicy::AllowLocal).await);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Host::new(|did| http("200 OK", "", &document_of(did))).await;
    let location = format!(
        "Location: http://{}/\r\n",
        elsewhere.did.as_str().replace("did:web:", "").replace("%3A", ":")
    );
    let host = Host::new(move |_| http("302 Found", &location, b"")).await;
    let (local, _) = resolver(WebPolicy::AllowLocal);
    unreachable(local.resolve(&host.did).await, "302");
    assert_eq!(elsewhere.asked(), 0);
}

#[tokio::test]
async fn a_large_document_is_cut_off() {
    for announced in [true, false] {
        let host = Host::new(move |did| {
            let mut body = document_of(did);
            body.resize(64 * 1024 + 1, b' ');
            let headers = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
            if announced { http("200 OK", "", &body) } else { [headers.as_bytes(), &body].concat() }
        })
        .await;
        let (local, _) = resolver(WebPolicy::AllowLocal);
        unreachable(local.resolve(&host.did).await, "larger than is read");
    }
}

// Time stands still until everything waits, and then jumps to the next timer.
#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_is_given_five_seconds() {
    let host = Host::new(|_| Vec::new()).await;
    let (local, _) = resolver(WebPolicy::AllowLocal);
    let before = tokio::time::Instant::now();
    unreachable(local.resolve(&host.did).await, "");
    // One attempt over https and one over plain http.
    assert!(before.elapsed() <= std::time::Duration::from_secs(11));
}

#[tokio::test]
async fn another_id_is_refused() {
    let host =
        Host::new(|_| http("200 OK", "", &document_of(&"did:web:other.example".parse().unwrap()))).await;
    let (local, _) = resolver(WebPolicy::AllowLocal);
    assert!(matches!(local.resolve(&host.did).await, Err(ResolveError::Document(..))));
}

#[tokio::test]
async fn malformed_documents_are_refused() {
    for body in ["", "{", "[]", "null", "{\"id\":1}", "{\"id\":\"x\",\"id\":\"x\"}"] {
        let host = Host::new(move |_| http("200 OK", "", body.as_bytes())).await;
        let (local, _) = resolver(WebPolicy::AllowLocal);
        assert!(matches!(local.resolve(&host.did).await, Err(ResolveError::Document(..))), "{body}");
    }
    for status in ["404 Not Found", "500 Internal Server Error", "204 No Content"] {
        let host = Host::new(move |did| http(status, "", &document_of(did))).await;
        let (local, _) = resolver(WebPolicy::AllowLocal);
        unreachable(local.resolve(&host.did).await, "");
    }
}

#[tokio::test]
async fn success_is_cached_ten_minutes_and_failure_thirty_seconds() {
    let host = Host::new(|did| http("200 OK", "", &document_of(did))).await;
    let (local, clock) = resolver(WebPolicy::AllowLocal);
    for (at, asked) in [(0, 1), (599_000, 1), (601_000, 2)] {
        clock.0.store(1_777_636_800_000 + at, Ordering::SeqCst);
        local.resolve(&host.did).await.unwrap();
        assert_eq!(host.asked(), asked, "after {at} ms");
    }
    let broken = Host::new(|_| http("500 Internal Server Error", "", b"")).await;
    let (local, clock) = resolver(WebPolicy::AllowLocal);
    for (at, asked) in [(0, 1), (29_000, 1), (31_000, 2)] {
        clock.0.store(1_777_636_800_000 + at, Ordering::SeqCst);
        assert!(local.resolve(&broken.did).await.is_err());
        assert_eq!(broken.asked(), asked, "after {at} ms");
    }
}

#[tokio::test]
async fn only_known_methods_and_domains() {
    let (public, _) = resolver(WebPolicy::Public);
    let did: Did = "did:example:123".parse().unwrap();
    assert!(matches!(public.resolve(&did).await, Err(ResolveError::Method(_))));
    for address in ["127.0.0.1", "169.254.169.254", "2130706433", "0x7f000001", "[::1]", "user@host", "a..b"]
    {
        assert!(format!("did:web:{address}").parse::<Did>().is_err(), "{address}");
    }
    // A name of the local network, resolved by the system: nothing private is connected to.
    for name in ["localhost", "x.localhost"] {
        let did: Did = format!("did:web:{name}").parse().unwrap();
        unreachable(public.resolve(&did).await, "public");
    }
}

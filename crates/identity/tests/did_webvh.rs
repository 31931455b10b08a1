//! did:webvh over the guarded client, against hosts that misbehave (docs/protocol.md section 2).

#[path = "support/logs.rs"]
mod logs;

use logs::{Made, approved, hours, signer};
use oap_identity::document::DocumentError;
use oap_identity::resolve::webvh::MAX_TIPS;
use oap_identity::resolve::{GuardedWeb, KeepTips, Keeping, NotKept, ResolveError, Resolver, Tip, WebPolicy};
use oap_identity::webvh::{LogError, MAX_LOG};
use oap_identity::{Clock, Did, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LOG: &str = "/u/did.jsonl";
const WITNESS: &str = "/u/did-witness.json";

struct TestClock;

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        hours(1000)
    }
}

/// A host on loopback with files that can be changed; what is not there is 404.
struct Host {
    /// Domain, port and path, as a DID names them.
    place: String,
    files: Arc<Mutex<BTreeMap<&'static str, Vec<u8>>>>,
}

impl Host {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = format!("localhost%3A{}:u", listener.local_addr().unwrap().port());
        let files: Arc<Mutex<BTreeMap<&'static str, Vec<u8>>>> = Arc::default();
        let served = files.clone();
        tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                let read = connection.read(&mut request).await.unwrap_or(0);
                // The client tries TLS first; this host speaks plain http alone and hangs up.
                let Some(rest) = request[..read].strip_prefix(b"GET ") else { continue };
                let path = String::from_utf8_lossy(rest).split(' ').next().unwrap_or_default().to_owned();
                let body = served.lock().unwrap().get(path.as_str()).cloned();
                let (status, body) = body.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = connection.write_all(&[head.as_bytes(), &body].concat()).await;
            }
        });
        Self { place, files }
    }

    fn serve(&self, path: &'static str, body: Vec<u8>) {
        self.files.lock().unwrap().insert(path, body);
    }
}

fn resolver(policy: WebPolicy) -> Resolver {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Resolver::new(GuardedWeb::new(policy, &[]).unwrap(), Arc::new(TestClock))
}

/// Asks anew, whatever is remembered of the last answer.
async fn ask(resolver: &Resolver, made: &Made) -> Result<Arc<oap_identity::DidDocument>, ResolveError> {
    resolver.forget(&made.did);
    resolver.resolve(&made.did).await
}

fn refused(result: Result<Arc<oap_identity::DidDocument>, ResolveError>) -> LogError {
    match result {
        Err(ResolveError::Document(_, DocumentError::Log(error))) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_log_is_fetched_from_where_the_did_says() {
    let (host, resolver) = (Host::new().await, resolver(WebPolicy::AllowLocal));
    let mut made = Made::new(&host.place, &json!({}), &[("key-1", &signer(11))], &signer(1));
    assert!(matches!(ask(&resolver, &made).await, Err(ResolveError::Unreachable(..))));
    host.serve(LOG, made.bytes());
    let document = ask(&resolver, &made).await.unwrap();
    assert!(document.key_at(&made.did.key("key-1").unwrap(), hours(1)).is_some());
    made.update(2, &json!({}), &[], &signer(1));
    host.serve(LOG, made.bytes());
    // What was read lately is not read again before somebody asks for it.
    assert_eq!(resolver.resolve(&made.did).await.unwrap(), document);
    let later = ask(&resolver, &made).await.unwrap();
    assert!(later.key_at(&made.did.key("key-1").unwrap(), hours(3)).is_none());
    host.serve(LOG, vec![b'x'; MAX_LOG + 1]);
    assert!(matches!(ask(&resolver, &made).await, Err(ResolveError::Unreachable(..))));
    host.serve(LOG, b"{}\n".to_vec());
    assert!(matches!(refused(ask(&resolver, &made).await), LogError::Json(1, _)));
}

/// The attack: whoever has the host now shows the log as it was when a stolen key still counted, or another end of it.
#[tokio::test]
async fn a_log_does_not_go_back() {
    let (host, resolver) = (Host::new().await, resolver(WebPolicy::AllowLocal));
    let before = Made::new(&host.place, &json!({}), &[("key-1", &signer(11))], &signer(1));
    let mut after = before.clone();
    after.update(2, &json!({}), &[], &signer(1));
    host.serve(LOG, after.bytes());
    assert!(ask(&resolver, &after).await.is_ok());
    host.serve(LOG, before.bytes());
    assert_eq!(refused(ask(&resolver, &before).await), LogError::Rewritten);
    let mut fork = before.clone();
    fork.update(3, &json!({}), &[("key-1", &signer(11))], &signer(1));
    fork.update(4, &json!({}), &[("key-1", &signer(11))], &signer(1));
    host.serve(LOG, fork.bytes());
    assert_eq!(refused(ask(&resolver, &fork).await), LogError::Rewritten);
    after.update(5, &json!({}), &[("key-2", &signer(12))], &signer(1));
    host.serve(LOG, after.bytes());
    assert_eq!(ask(&resolver, &after).await.unwrap().keys().len(), 2);
}

#[tokio::test]
async fn witnesses_are_asked_for_where_the_log_names_them() {
    let (host, resolver) = (Host::new().await, resolver(WebPolicy::AllowLocal));
    let listed: Vec<Value> = [21, 22].map(|seed| json!({"id": signer(seed).did()})).to_vec();
    let witness = json!({"witness": {"threshold": 2, "witnesses": listed}});
    let made = Made::new(&host.place, &witness, &[], &signer(1));
    host.serve(LOG, made.bytes());
    assert!(matches!(ask(&resolver, &made).await, Err(ResolveError::Unreachable(..))));
    let file = |by: &[&oap_identity::Signer]| json!([approved(made.tip(), by)]).to_string().into_bytes();
    host.serve(WITNESS, file(&[&signer(21)]));
    assert_eq!(refused(ask(&resolver, &made).await), LogError::Witnesses(1));
    host.serve(WITNESS, file(&[&signer(21), &signer(22)]));
    assert!(ask(&resolver, &made).await.is_ok());
}

/// Where no stranger may lead us, no log is read either.
#[tokio::test]
async fn the_address_of_a_log_is_guarded() {
    let host = Host::new().await;
    let made = Made::new(&host.place, &json!({}), &[], &signer(1));
    host.serve(LOG, made.bytes());
    assert!(matches!(ask(&resolver(WebPolicy::Public), &made).await, Err(ResolveError::Unreachable(..))));
}

/// What is written down, while it can be.
#[derive(Default)]
struct Kept {
    tips: Mutex<Vec<(Did, usize)>>,
    is_full: AtomicBool,
}

impl KeepTips for Kept {
    fn keep<'a>(&'a self, did: &'a Did, tip: &'a Tip) -> Keeping<'a> {
        Box::pin(async move {
            if self.is_full.load(Ordering::SeqCst) {
                return Err(NotKept);
            }
            self.tips.lock().unwrap().push((did.clone(), tip.number));
            Ok(())
        })
    }
}

/// The attack: somebody has so many logs read that what was seen of one is forgotten, or waits for the next process.
#[tokio::test]
async fn what_is_held_on_to_is_not_driven_out() {
    let made = |place: &str| Made::new(place, &json!({}), &[("key-1", &signer(11))], &signer(1));
    let read =
        async |resolver: &Resolver, made: &Made| resolver.of_log(&made.did, made.bytes()).await.map(Arc::new);
    let (first, kept) = (resolver(WebPolicy::Public), Arc::new(Kept::default()));
    first.keep_with(kept.clone());
    let one = made("a.example");
    let mut two = one.clone();
    two.update(2, &json!({}), &[], &signer(1));
    let mut three = two.clone();
    three.update(3, &json!({}), &[], &signer(1));
    // Nobody holds on to it yet.
    read(&first, &one).await.unwrap();
    assert!(kept.tips.lock().unwrap().is_empty());
    first.hold(one.did.clone(), None);
    read(&first, &two).await.unwrap();
    read(&first, &two).await.unwrap();
    assert_eq!(*kept.tips.lock().unwrap(), [(one.did.clone(), 2)]);
    let tip = first.tip(&one.did);
    for number in 0..=MAX_TIPS.get() {
        read(&first, &made(&format!("h{number}.example"))).await.unwrap();
    }
    assert_eq!(refused(read(&first, &one).await), LogError::Rewritten);
    assert_eq!(first.tip(&one.did), tip);
    // The next process. What cannot be written down is not believed.
    let next = resolver(WebPolicy::Public);
    next.keep_with(kept.clone());
    next.hold(one.did.clone(), tip);
    assert_eq!(refused(read(&next, &one).await), LogError::Rewritten);
    kept.is_full.store(true, Ordering::SeqCst);
    assert!(matches!(read(&next, &three).await, Err(ResolveError::Unreachable(..))));
    kept.is_full.store(false, Ordering::SeqCst);
    read(&next, &three).await.unwrap();
    assert_eq!(kept.tips.lock().unwrap().last(), Some(&(one.did.clone(), 3)));
    assert_eq!(refused(read(&next, &two).await), LogError::Rewritten);
}

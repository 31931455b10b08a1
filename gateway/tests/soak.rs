//! A soak: the real server over TLS under honest load and fifty clients that misbehave. Memory, descriptors and the median of
//! an honest grantee must stay flat.
//!
//! Runs for `OAP_SOAK_SECONDS` seconds, and not at all without it:
//! `OAP_SOAK_SECONDS=3600 cargo test --release -p oap-gateway --test gateway soak:: -- --nocapture`

use crate::program::*;
use oap_client::wire::{ANSWER, Ask, BUNDLE, send};
use oap_gateway::client::{Caller, HomeClient};
use oap_gateway::system::clock::{SystemClock, SystemRandom};
use oap_gateway::system::home;
use oap_grants::{dpop, exchange};
use oap_identity::outgoing::{HttpClient, Outgoing};
use oap_identity::{Clock, Hash, Signer};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;

/// Clients that misbehave.
const HOSTILE: usize = 50;
/// Grantees that query; the first one's latency is measured.
const GRANTEES: u8 = 4;
/// Items that the owner keeps.
const ITEMS: usize = 300;
/// How much the last third of the samples may be beyond the first.
const GROWTH: f64 = 1.25;
/// A token is fetched anew after so many seconds.
const RENEW: Duration = Duration::from_secs(300);

/// Where everything goes on.
#[derive(Clone)]
struct Scene {
    address: String,
    origin: String,
    client: HttpClient,
    tls: TlsConnector,
}

/// What was measured at one moment.
struct Sample {
    rss: f64,
    descriptors: f64,
    median: f64,
    answers: usize,
}

#[test]
#[ignore = "takes OAP_SOAK_SECONDS"]
fn a_soak() {
    let seconds = std::env::var("OAP_SOAK_SECONDS").ok().and_then(|n| n.parse::<u64>().ok());
    let Some(seconds) = seconds else { panic!("OAP_SOAK_SECONDS says how long") };
    oap_gateway::system::tls::install();
    let home = Home::web();
    let config = home.home().join("config.toml");
    // Everybody here has the same address, and an hour of queries costs more than a grantee is given.
    let text = std::fs::read_to_string(&config).unwrap()
        + "\nanonymous_rpm = 10000000\nepsilon_per_grantee = 1000000.0\n";
    std::fs::write(&config, text).unwrap();
    let server = home.serve(&[]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let samples = runtime.block_on(run(&home, server.id(), Duration::from_secs(seconds)));
    runtime.shutdown_background();
    let third = samples.len() / 3;
    assert!(third > 0, "too short for three samples");
    let judge = |what: &str, of: fn(&Sample) -> f64| {
        let mean = |part: &[Sample]| part.iter().map(of).sum::<f64>() / part.len() as f64;
        let (first, last) = (mean(&samples[..third]), mean(&samples[samples.len() - third..]));
        println!("{what}: {first:.1} in the first third, {last:.1} in the last");
        assert!(last <= first * GROWTH, "{what} grew from {first:.1} to {last:.1}");
    };
    judge("rss", |s| s.rss);
    judge("descriptors", |s| s.descriptors);
    judge("median", |s| s.median);
}

async fn run(home: &Home, server: u32, time: Duration) -> Vec<Sample> {
    let scene = scene(home);
    let latencies: Arc<Mutex<Vec<f64>>> = Arc::default();
    let owner = owner(home).await;
    for number in 1..=GRANTEES {
        let grantee = Signer::did_key(&[number; 32]).unwrap();
        let draft = json!({
            "grantee": grantee.did(), "purpose": "soak", "filter": {"labels_any": ["soak"]}, "max_items": 10_000,
            "expires_at": SystemClock.now().plus(Duration::from_secs(30 * 86_400)), "trust_level": 2,
            "redaction_profile": "oap.profile.projection.memory.v1", "operations": ["query", "export"],
        });
        let grant =
            owner.call("POST", "/oap/owner/grants", &[], Some(&draft)).await.unwrap()["grant"].clone();
        let measured = (number == 1).then(|| latencies.clone());
        tokio::spawn(query(scene.clone(), grantee, grant, measured));
    }
    tokio::spawn(write(owner));
    for number in 0..HOSTILE {
        tokio::spawn(misbehave(scene.clone(), number));
    }
    let period = (time / 9).clamp(Duration::from_secs(1), Duration::from_secs(60));
    let end = Instant::now() + time;
    let mut samples = Vec::new();
    println!("minute  rss MiB  descriptors  median ms  answers");
    while Instant::now() < end {
        sleep(period).await;
        let mut taken = std::mem::take(&mut *latencies.lock().unwrap());
        taken.sort_by(f64::total_cmp);
        let median = taken.get(taken.len() / 2).copied();
        let s = Sample {
            rss: rss(server),
            descriptors: std::fs::read_dir(format!("/proc/{server}/fd")).unwrap().count() as f64,
            median: median.expect("an honest grantee was not answered at all"),
            answers: taken.len(),
        };
        let number = samples.len();
        println!("{number:6}  {:7.1}  {:11}  {:9.1}  {:7}", s.rss, s.descriptors, s.median, s.answers);
        samples.push(s);
    }
    samples
}

fn scene(home: &Home) -> Scene {
    let path = home.home().join("tls/cert.pem");
    let der = CertificateDer::from_pem_file(path).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der.clone()).unwrap();
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Scene {
        address: format!("127.0.0.1:{}", home.port),
        origin: home.origin(),
        client: Outgoing::default().trusting([&*der]).unwrap().unguarded().unwrap(),
        tls: TlsConnector::from(Arc::new(config)),
    }
}

async fn owner(home: &Home) -> HomeClient {
    HomeClient::connect(home::Home::new(home.home()), &BTreeMap::new(), Caller::default()).await.unwrap()
}

/// MiB in memory.
fn rss(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Captures, and deletes what is too much.
async fn write(owner: HomeClient) {
    let mut kept = VecDeque::new();
    for number in 0_u64.. {
        let item =
            json!({"kind": "fact", "content": {"text": format!("Soak note {number}")}, "labels": ["soak"]});
        let body = json!({"items": vec![item; 5]});
        if let Ok(answer) = owner.call("POST", "/oap/owner/items", &[], Some(&body)).await {
            kept.extend(answer["items"].as_array().unwrap().iter().map(|item| item["item_id"].clone()));
        }
        if kept.len() > ITEMS {
            let gone: Vec<Value> = kept.drain(..5).collect();
            let _ = owner.call("POST", "/oap/data/delete", &[], Some(&json!({"items": gone}))).await;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Queries, and now and then exports.
async fn query(scene: Scene, grantee: Signer, grant: Value, measured: Option<Arc<Mutex<Vec<f64>>>>) {
    loop {
        let Some(token) = token(&scene, &grantee, &grant).await else {
            sleep(Duration::from_millis(500)).await;
            continue;
        };
        let renew = Instant::now() + RENEW;
        for number in 0_u64.. {
            let export = measured.is_none() && number % 50 == 49;
            let path = if export { "/oap/memory/export" } else { "/oap/memory/query" };
            let body = if export { json!({}) } else { json!({"query": "soak note", "max_results": 10}) };
            let began = Instant::now();
            let answered = ask(&scene, &grantee, &token, path, &body).await;
            if let (Some(200), Some(measured)) = (answered, &measured) {
                measured.lock().unwrap().push(began.elapsed().as_secs_f64() * 1000.0);
            }
            if answered == Some(401) || Instant::now() > renew {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn token(scene: &Scene, grantee: &Signer, grant: &Value) -> Option<String> {
    let url = format!("{}/oap/memory/grant", scene.origin);
    let hash = Hash::of_canonical(grant).unwrap();
    let proof = exchange::prove(grantee, &url, hash, SystemClock.now(), &SystemRandom).unwrap();
    let body = json!({"grant": grant, "proof": proof}).to_string();
    let ask = Ask { method: "POST", url: &url, body: Some(body), ..Ask::default() };
    let (_, bytes) = send(&scene.client, ask, ANSWER).await.ok()?;
    let answer: Value = serde_json::from_slice(&bytes).ok()?;
    answer["memory_grant_jwt"].as_str().map(str::to_owned)
}

async fn ask(scene: &Scene, grantee: &Signer, token: &str, path: &str, body: &Value) -> Option<u16> {
    let url = format!("{}{path}", scene.origin);
    let target = dpop::Request { method: "POST", url: &url };
    let proof = dpop::prove(grantee, target, token, SystemClock.now(), &SystemRandom).unwrap();
    let authorization = format!("DPoP {token}");
    let body = Some(body.to_string());
    let ask = Ask { method: "POST", url: &url, authorization: &authorization, proof: &proof, body };
    send(&scene.client, ask, BUNDLE).await.ok().map(|(status, _)| status)
}

/// One way of misbehaving, again and again.
async fn misbehave(scene: Scene, number: usize) {
    loop {
        let _ = misbehave_once(&scene, number).await;
        sleep(Duration::from_millis(50)).await;
    }
}

const SLOW: &str = "POST /oap/discover HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
const LARGE: &str = "POST /oap/discover HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
     Transfer-Encoding: chunked\r\n\r\n";
const FLOOD: &str = "POST /oap/memory/query HTTP/1.1\r\nHost: a\r\nAuthorization: DPoP eyJhbGciOiJFZERTQSJ9.e30.c2ln\r\n\
     Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
const MANIFEST: &str = "GET /.well-known/oap-memory.json HTTP/1.1\r\nHost: a\r\n\r\n";

async fn misbehave_once(scene: &Scene, number: usize) -> std::io::Result<()> {
    let mut plain = TcpStream::connect(&scene.address).await?;
    match number % 10 {
        0 => return until_closed(&mut plain).await,
        1 => {
            plain.write_all(b"\x16\x03\x01\x40\x00garbage, not a hello").await?;
            return until_closed(&mut plain).await;
        }
        _ => {}
    }
    let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
    let mut stream = scene.tls.connect(name, plain).await?;
    match number % 10 {
        2 => {}
        3 => stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Ha").await?,
        4 => stream.write_all(b"PRI * HT").await?,
        5 => {
            stream.write_all(SLOW.as_bytes()).await?;
            while stream.write_all(b" ").await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
        }
        6 => {
            stream.write_all(LARGE.as_bytes()).await?;
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
            while stream.write_all(chunk.as_bytes()).await.is_ok() {}
        }
        7 => {
            for _ in 0..50 {
                stream.write_all(FLOOD.as_bytes()).await?;
                stream.flush().await?;
                let mut answer = [0; 4096];
                if stream.read(&mut answer).await? == 0 {
                    break;
                }
            }
            return Ok(());
        }
        8 => while stream.write_all(MANIFEST.repeat(16).as_bytes()).await.is_ok() {},
        _ => {
            stream.write_all(MANIFEST.repeat(200).as_bytes()).await?;
            stream.flush().await?;
            let mut one = [0];
            while stream.read(&mut one).await? > 0 {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    until_closed(&mut stream).await
}

async fn until_closed<T: AsyncRead + AsyncWrite + Unpin>(stream: &mut T) -> std::io::Result<()> {
    stream.flush().await?;
    let mut ignored = [0; 4096];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

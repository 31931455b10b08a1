//! A grant leads to its granter's gateway, and a grantee needs nothing but a key: the real binary, over TLS on loopback. Whoever
//! made the grant may be a stranger who wants our proof elsewhere, or our requests inside our own network.

use crate::program::*;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_client::prover::{Pending, SigningKey};
use oap_client::{ClientError, KeyProver, Prover, Remote, locate};
use oap_gateway::system::clock::{SystemClock, SystemRandom};
use oap_grants::grant::{Grant, SignedGrant, StatusIndex, StatusRef};
use oap_identity::jwk::PublicKey;
use oap_identity::outgoing::{Allowance, Method, Outgoing, Request, WebPolicy};
use oap_identity::resolve::{GuardedWeb, Resolver};
use oap_identity::{Clock, Hash, Kid, Signer};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A granter that serves, with a note, and a grantee that has a key in an empty folder.
struct World {
    granter: Home,
    _server: Server,
    grantee: Home,
    key: String,
}

fn world(granter: Home) -> World {
    let server = granter.serve(&[]);
    granter.run(&["item", "add", "--kind", "fact", "--text", "tea at four", "--label", "food"]).ok();
    let mut grantee = Home::empty();
    let authority = granter.home().join("tls/cert.pem").to_string_lossy().into_owned();
    grantee.flags = vec!["--trust-ca".into(), authority, "--allow-local-dids".into()];
    let key = grantee.path("my.key");
    World { granter, _server: server, grantee, key }
}

impl World {
    fn issue(&self, to: &str, more: &[&str]) -> String {
        let path = self.granter.path("grant.json");
        let terms = ["--purpose", "tea", "--until", "30d", "--trust-level", "2", "--out", &path];
        self.granter.run(&[&["grant", "issue", "--to", to][..], &terms, more].concat()).ok();
        path
    }

    fn ask(&self, grant: &str) -> Ran {
        self.grantee.run(&["query", "--key", &self.key, "--grant", grant, "tea", "--json"])
    }

    /// How many requests the gateway has a receipt of that were for a grant's exchange or a query.
    fn asked(&self) -> usize {
        let log = self.granter.run(&["audit", "--json"]).json();
        let receipts = log["receipts"].as_array().unwrap().clone();
        let of = |action: &str| receipts.iter().filter(|r| r["action_id"] == action).count();
        of("memory.query") + of("memory.grant")
    }
}

fn new_key(home: &Home, file: &str) -> String {
    home.run(&["key", "new", "--out", file]).ok().trim().to_owned()
}

#[track_caller]
fn says_tea(ran: Ran) -> Value {
    let answer = ran.json();
    assert_eq!(answer["items"][0]["content"]["text"], "tea at four");
    answer
}

#[test]
fn a_key_and_a_grant_are_enough() {
    let mut world = world(Home::web());
    let did = new_key(&world.grantee, &world.key);
    assert!(did.starts_with("did:key:z6Mk"), "{did}");
    let mode = std::fs::metadata(&world.key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = std::fs::read(&world.key).unwrap();
    world.grantee.run(&["key", "new", "--out", &world.key]).failed(1, "already");
    assert_eq!(std::fs::read(&world.key).unwrap(), before);

    let grant = world.issue(&did, &["--label", "food", "--allow-export"]);
    says_tea(world.ask(&grant));
    // The former way, with an address.
    let origin = world.granter.origin();
    says_tea(world.grantee.run(&["query", &origin, "tea", "--key", &world.key, "--grant", &grant, "--json"]));
    let bundle = world.grantee.path("slice.bundle");
    world.grantee.run(&["query", "--key", &world.key, "--grant", &grant, "--export", &bundle]).ok();
    assert!(std::fs::read_to_string(&bundle).unwrap().contains("tea at four"));
    assert!(!world.grantee.home().exists(), "a grantee has no home");

    // Another's key, no key, words without quotes: said before anything is sent.
    let asked = world.asked();
    let other = world.grantee.path("other.key");
    new_key(&world.grantee, &other);
    world.grantee.run(&["query", "--key", &other, "--grant", &grant]).failed(2, "made out to");
    world.grantee.run(&["query", "--grant", &grant]).failed(1, "key new");
    world.grantee.run(&["query", "--key", &world.key, "--grant", &grant, "tea", "time"]).failed(2, "quotes");
    assert_eq!(world.asked(), asked);
    world.grantee.flags = vec!["--allow-local-dids".into()];
    world.ask(&grant).failed(1, "certificate is not trusted");
}

/// A did:key publishes no address: its grant carries one that it signed.
#[test]
fn a_granter_without_a_name() {
    let granter = Home::empty();
    let listen = format!("127.0.0.1:{}", granter.port);
    let key = granter.path("key");
    granter.run(&["init", "--did", "did:key", "--key-file", &key, "--listen", &listen]).ok();
    let config = granter.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}origin = \"{}\"\n", granter.origin())).unwrap();
    let mut world = world(granter);
    let did = new_key(&world.grantee, &world.key);
    let grant = world.issue(&did, &[]);
    says_tea(world.ask(&grant));
    // Who does not know the authority that signed its certificate is told what to do.
    world.grantee.flags = vec!["--allow-local-dids".into()];
    world.ask(&grant).failed(1, "--trust-ca FILE names the authority");
}

/// A grant that was passed on has no place of its own: the one that it was made from leads there.
#[test]
fn a_grant_that_was_passed_on() {
    let world = world(Home::web());
    let first = world.grantee.path("first.key");
    let did = new_key(&world.grantee, &first);
    let above = world.issue(&did, &["--delegable", "1"]);
    let mut document = read(&above);
    let hash = Hash::of_canonical(&document).unwrap();
    document.as_object_mut().unwrap().remove("signature");
    let seed = URL_SAFE_NO_PAD.decode(read(&first)["d"].as_str().unwrap()).unwrap();
    let signer = Signer::did_key(&seed.try_into().unwrap()).unwrap();
    let child = Grant {
        grant_id: "mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX".parse().unwrap(),
        grantee: new_key(&world.grantee, &world.key).parse().unwrap(),
        parent: Some(hash),
        delegable: None,
        status: None,
        ..serde_json::from_value(document).unwrap()
    };
    let path = world.grantee.path("child.json");
    write(&path, SignedGrant::sign(child, &signer).unwrap().document());
    let ask = ["query", "tea", "--json", "--key", &world.key, "--grant", &path, "--chain", &above];
    says_tea(world.grantee.run(&ask));
    // Without it nothing leads anywhere.
    world.ask(&path).failed(4, "parent");
    // The list says when the grant that it was made from is taken back; until then nothing of the delegated one's own state.
    let list = world.grantee.path("list.jwt");
    let verify = || {
        std::fs::write(&list, status_list(&world.granter)).unwrap();
        let known = world.granter.home().join("did.json").to_string_lossy().into_owned();
        let flags = ["--chain", &above, "--status-list", &list, "--did-document", &known];
        world.grantee.run(&[&["--json", "verify", &path][..], &flags].concat()).json()
    };
    let said = verify();
    assert!(said["revoked"].is_null() && said["unchecked"][0]["id"] == "unchecked.state", "{said}");
    world.granter.run(&["grant", "revoke", read(&above)["grant_id"].as_str().unwrap()]).ok();
    let said = verify();
    assert_eq!((&said["revoked"], &said["unchecked"]), (&json!(true), &json!([])));
}

/// The status list that a gateway publishes.
fn status_list(granter: &Home) -> Vec<u8> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let authority = CertificateDer::from_pem_file(granter.home().join("tls/cert.pem")).unwrap();
    let outgoing = Outgoing::default().trusting([&*authority]).unwrap();
    let client = outgoing.guarded(WebPolicy::AllowLocal).unwrap();
    let url = format!("{}/oap/memory/status", granter.origin());
    let request = Request { method: Method::GET, url: &url, headers: Vec::new(), body: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let allowed = Allowance { bytes: 1 << 20, time: Duration::from_secs(20) };
    runtime.block_on(client.send(request, allowed)).unwrap().body
}

/// A did:web without a gateway: its document is what `key new` prints, published by hand.
#[test]
fn a_grantee_with_a_name_and_no_gateway() {
    let folder = Home::empty();
    let key = folder.path("web.key");
    let made = folder.run(&["key", "new", "--out", &key, "--did", "did:web:contractor.example"]);
    assert!(made.stderr.contains("https://contractor.example/.well-known/did.json"), "{made:?}");
    let document: Value = serde_json::from_str(&made.ok()).unwrap();
    assert_eq!(document["id"], "did:web:contractor.example");
    assert_eq!(document["verificationMethod"][0]["id"], "did:web:contractor.example#key-1");
    let file: Value = read(&key);
    assert_eq!(document["verificationMethod"][0]["publicKeyJwk"]["x"], file["x"]);
    assert!(document.get("service").is_none() && !document.to_string().contains(file["d"].as_str().unwrap()));
    for bad in ["did:plc:abc", "did:wbe:x", "contractor.example"] {
        let path = folder.path("none.key");
        folder.run(&["key", "new", "--out", &path, "--did", bad]).failed(2, "--did");
        assert!(!std::path::Path::new(&path).exists(), "{bad}");
    }
    folder.run(&["key", "new", "--out", &folder.path("no/such/folder.key")]).failed(1, "No such");
}

/// Somebody on the way changes where the grant leads, or adds what would lead: nothing is asked there.
#[test]
fn a_place_that_nobody_signed() {
    let world = world(Home::web());
    let did = new_key(&world.grantee, &world.key);
    let grant = read(world.issue(&did, &[]));
    let trap = Trap::new();
    let mut changed = grant.clone();
    changed["status"]["status_list"]["uri"] = json!(format!("{}/oap/memory/status", trap.origin()));
    let mut added = grant.clone();
    added["gateway"] = json!(trap.origin());
    let mut other = grant.clone();
    other["granter"] = json!(format!("did:web:localhost%3A{}#personal", trap.port()));
    let asked = world.asked();
    for (name, forged, status) in [("changed", changed, 4), ("added", added, 4)] {
        let path = world.grantee.path("forged.json");
        write(&path, &forged);
        world.ask(&path).failed(status, "grant");
        trap.saw_nobody(name);
    }
    // A granter that the grant does not have: its document is looked for, and no proof is made.
    let path = world.grantee.path("forged.json");
    write(&path, &other);
    drop(trap);
    assert_ne!(world.ask(&path).status, 0);
    assert_eq!(world.asked(), asked);
}

/// A stranger's own grant, soundly signed, that leads into our network.
#[test]
fn a_place_inside_our_network() {
    let grantee = Home::empty();
    let key = grantee.path("my.key");
    let did = new_key(&grantee, &key);
    let trap = Trap::new();
    let port = trap.port();
    let path = grantee.path("grant.json");
    for origin in [
        format!("https://127.0.0.1:{port}"),
        format!("https://localhost:{port}"),
        format!("https://[::1]:{port}"),
        format!("http://127.0.0.1:{port}"),
        "https://169.254.169.254".to_owned(),
        "https://10.0.0.1".to_owned(),
    ] {
        write(&path, &stranger(&did, &origin));
        grantee.run(&["query", "--key", &key, "--grant", &path]).failed(1, "public address");
        trap.saw_nobody(&origin);
    }
    // No place at all.
    let mut none = Grant { status: None, ..unsigned(&did, &Signer::did_key(&[7; 32]).unwrap(), "") };
    none.purpose = "none".to_owned();
    write(&path, SignedGrant::sign(none, &Signer::did_key(&[7; 32]).unwrap()).unwrap().document());
    grantee.run(&["query", "--key", &key, "--grant", &path]).failed(1, "name the URL");
}

/// A stranger's own grant that leads to somebody else's gateway: its owner is not bothered with our proof.
#[test]
fn a_place_that_is_somebody_elses() {
    let world = world(Home::web());
    let did = new_key(&world.grantee, &world.key);
    let asked = world.asked();
    let path = world.grantee.path("grant.json");
    let origin = world.granter.origin();
    write(&path, &stranger(&did, &origin));
    world.ask(&path).failed(4, "not the gateway of the grant's granter");
    // Nor when the address was given.
    let ask = ["query", &origin, "tea", "--key", &world.key, "--grant", &path];
    world.grantee.run(&ask).failed(4, "not the gateway of the grant's granter");
    assert_eq!(world.asked(), asked);
}

/// A grant of a did:key that leads to `origin`.
fn stranger(grantee: &str, origin: &str) -> Value {
    let signer = Signer::did_key(&[7; 32]).unwrap();
    SignedGrant::sign(unsigned(grantee, &signer, origin), &signer).unwrap().document().clone()
}

fn unsigned(grantee: &str, signer: &Signer, origin: &str) -> Grant {
    let mut grant: Grant = serde_json::from_value(json!({
        "grant_id": "mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX", "granter": format!("{}#personal", signer.did()),
        "grantee": grantee, "purpose": "testing", "filter": {}, "max_items": 10,
        "issued_at": "2026-05-01T12:00:00.000Z", "expires_at": "2026-05-31T12:00:00.000Z",
        "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 2,
    }))
    .unwrap();
    let uri = format!("{origin}/oap/memory/status");
    grant.status = Some(StatusRef { status_list: StatusIndex { idx: 0, uri } });
    grant
}

/// A port that nobody should come to.
struct Trap(TcpListener);

impl Trap {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    fn origin(&self) -> String {
        format!("https://localhost:{}", self.port())
    }

    #[track_caller]
    fn saw_nobody(&self, case: &str) {
        let came = self.0.accept();
        assert!(came.as_ref().is_err_and(|e| e.kind() == ErrorKind::WouldBlock), "{case}: {came:?}");
    }
}

/// A message to be signed, and the way back.
type Wanted = (Vec<u8>, oneshot::Sender<[u8; 64]>);

/// A key that an agent holds, who hands out signatures and nothing else.
struct Held {
    kid: Kid,
    public: PublicKey,
    agent: mpsc::Sender<Wanted>,
}

impl SigningKey for Held {
    fn kid(&self) -> &Kid {
        &self.kid
    }

    fn public(&self) -> &PublicKey {
        &self.public
    }

    fn sign<'a>(&'a self, message: &'a [u8]) -> Pending<'a, [u8; 64]> {
        Box::pin(async move {
            let (back, signature) = oneshot::channel();
            let gone = || ClientError::Prover("the agent is gone".into());
            self.agent.send((message.to_vec(), back)).await.map_err(|_| gone())?;
            signature.await.map_err(|_| gone())
        })
    }
}

/// One signature for the exchange and one for each query; without the agent nothing is asked.
#[tokio::test]
async fn a_key_may_live_with_an_agent() {
    oap_gateway::system::tls::install();
    let world = world(Home::web());
    let key = Signer::did_key(&[9; 32]).unwrap();
    let (agent, mut wanted) = mpsc::channel::<Wanted>(1);
    let held = Held { kid: key.kid().clone(), public: *key.public(), agent };
    let clock = Arc::new(SystemClock);
    let grantee = KeyProver::new(held, clock.clone(), Arc::new(SystemRandom));
    let agent = tokio::spawn(async move {
        for _ in 0..2 {
            let (message, back) = wanted.recv().await.unwrap();
            back.send(key.signature(&message)).unwrap();
        }
    });

    let grant = read(world.issue(grantee.did().as_str(), &[]));
    let authority = CertificateDer::from_pem_file(world.granter.home().join("tls/cert.pem")).unwrap();
    let policy = WebPolicy::AllowLocal;
    let web = GuardedWeb::new(policy, &[authority.to_vec()]).unwrap();
    let resolver = Arc::new(Resolver::new(web, clock.clone()));
    let client = Outgoing::default().trusting([&*authority]).unwrap().guarded(policy).unwrap();
    let origin = locate::origin(&grant, &[], &resolver, policy, clock.now()).await.unwrap();
    let granter = locate::granter(&grant).unwrap();
    let remote = Remote::discover(client, resolver, clock, origin.as_str(), &granter).await.unwrap();
    let session = remote.exchange(&grantee, &grant, &[]).await.unwrap();
    let query = json!({"query": "tea"});
    let checked = session.query(&grantee, &query).await.unwrap();
    assert_eq!(checked.verified.items.len(), 1);

    agent.await.unwrap();
    let asked = world.asked();
    assert!(matches!(session.query(&grantee, &query).await, Err(ClientError::Prover(_))));
    assert_eq!(world.asked(), asked);
}

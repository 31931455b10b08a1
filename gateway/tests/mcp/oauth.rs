//! OAuth with the real program over loopback: a client that publishes a metadata document, the owner's commands, and `/mcp`.

use crate::program::*;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::outgoing::{Allowance, Answer, HttpClient, Method, Outgoing, Request};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use url::{Url, form_urlencoded};

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const HOSTILE: &str = "Bank</b><script>alert(1)</script>\u{202e}\u{1b}[2J";

/// A website of clients, over https.
struct Site {
    origin: String,
    authority: String,
    asked: Arc<AtomicUsize>,
}

impl Site {
    fn new(runtime: &Runtime) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (authority, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let certificate = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let tls = rustls::ServerConfig::builder().with_no_client_auth();
        let tls =
            tokio_rustls::TlsAcceptor::from(Arc::new(tls.with_single_cert(vec![certificate], key).unwrap()));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let origin = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let asked = Arc::new(AtomicUsize::new(0));
        let (own, count) = (origin.clone(), asked.clone());
        runtime.spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let Ok(mut connection) = tls.accept(connection).await else { continue };
                let mut head = [0; 4096];
                let read = connection.read(&mut head).await.unwrap_or(0);
                count.fetch_add(1, Ordering::SeqCst);
                let path =
                    String::from_utf8_lossy(&head[..read]).split(' ').nth(1).unwrap_or_default().to_owned();
                let _ = connection.write_all(page(&own, &path).as_bytes()).await;
                let _ = connection.shutdown().await;
            }
        });
        Self { origin, authority, asked }
    }
}

/// What the website answers at a path.
fn page(origin: &str, path: &str) -> String {
    let document = |client: &str| {
        json!({
            "client_id": format!("{origin}{client}"), "client_name": HOSTILE,
            "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none",
        })
    };
    let (status, kind, body) = match path {
        "/client.json" => ("200 OK", "application/json", document(path).to_string()),
        "/other.json" => ("200 OK", "application/json", document("/client.json").to_string()),
        "/page" => ("200 OK", "text/html", document(path).to_string()),
        "/large.json" => {
            let mut large = document(path);
            large["more"] = json!("x".repeat(20_000));
            ("200 OK", "application/json", large.to_string())
        }
        "/moved.json" => {
            ("302 Found\r\nLocation: /client.json", "application/json", document(path).to_string())
        }
        _ => ("404 Not Found", "application/json", document(path).to_string()),
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A browser and a client in one, at a gateway.
struct Way<'a> {
    runtime: &'a Runtime,
    http: HttpClient,
    origin: String,
    jar: RefCell<BTreeMap<String, String>>,
}

impl Way<'_> {
    fn send(&self, method: Method, url: &str, headers: Vec<(&str, &str)>, body: Option<String>) -> Answer {
        let request = Request { method, url, headers, body: body.map(String::into_bytes) };
        let allowed = Allowance { bytes: 1 << 20, time: Duration::from_secs(60) };
        self.runtime.block_on(self.http.send(request, allowed)).unwrap()
    }

    /// The browser opens an address, and keeps the cookie that it is given for another.
    fn get(&self, path: &str) -> Answer {
        let cookie = self.jar.borrow().get(path).cloned();
        let headers = cookie.iter().map(|cookie| ("cookie", cookie.as_str())).collect();
        let answer = self.send(Method::GET, &format!("{}{path}", self.origin), headers, None);
        for (_, cookie) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (pair, rest) = cookie.split_once("; Path=").unwrap();
            let path = rest.split(';').next().unwrap();
            self.jar.borrow_mut().insert(path.to_owned(), pair.to_owned());
        }
        answer
    }

    fn asks(&self, client: &str, redirect: &str) -> Answer {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let resource = format!("{}/mcp", self.origin);
        let query: String = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([
                ("client_id", client),
                ("redirect_uri", redirect),
                ("response_type", "code"),
                ("code_challenge", &challenge),
                ("code_challenge_method", "S256"),
                ("resource", &resource),
                ("scope", "memory.read memory.write"),
                ("state", "s"),
            ])
            .finish();
        self.get(&format!("/oauth/authorize?{query}"))
    }

    fn mcp(&self, bearer: &str, tool: &str, arguments: Value) -> Answer {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let authorization = format!("Bearer {bearer}");
        let headers = vec![
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        self.send(Method::POST, &format!("{}/mcp", self.origin), headers, Some(call.to_string()))
    }
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

fn location(answer: &Answer) -> String {
    let found = answer.headers.iter().find(|(name, _)| name == "location");
    found.unwrap_or_else(|| panic!("{} {}", answer.status, text(answer))).1.clone()
}

#[test]
fn a_client_with_a_document_and_the_owners_commands() {
    oap_gateway::system::tls::install();
    let runtime = Runtime::new().unwrap();
    let site = Site::new(&runtime);
    let mut home = Home::web();
    home.run(&["agent", "add", "scout"]).ok();
    let authority = home.path("site.pem");
    std::fs::write(&authority, &site.authority).unwrap();
    let certificate = || CertificateDer::from_pem_file(home.home().join("tls/cert.pem")).unwrap();
    let client = format!("{}/client.json", site.origin);
    let redirect = "http://127.0.0.1:40123/callback";

    // A private address is none of a client's, unless the gateway is told so for development.
    let server = home.serve(&["--trust-ca", &authority]);
    let http = Outgoing::default().trusting([&*certificate()]).unwrap().unguarded().unwrap();
    let way = Way { runtime: &runtime, http, origin: home.origin(), jar: RefCell::default() };
    let refused = way.asks(&client, redirect);
    assert_eq!((refused.status.as_u16(), site.asked.load(Ordering::SeqCst)), (400, 0), "{}", text(&refused));
    server.stop();

    home.flags = vec!["--allow-local-dids".to_owned(), "--trust-ca".to_owned(), authority.clone()];
    let server = home.serve(&[]);
    for (path, says) in [
        ("/other.json", "another client_id"),
        ("/page", "served as application/json"),
        ("/large.json", "larger than 16384 bytes"),
        ("/moved.json", "without a redirect"),
        ("/nothing.json", "is not there"),
    ] {
        let refused = way.asks(&format!("{}{path}", site.origin), redirect);
        assert!(
            refused.status.as_u16() == 400 && text(&refused).contains(says),
            "{path}: {}",
            text(&refused)
        );
    }
    assert_eq!(way.asks(&client, "http://127.0.0.1:40123/other").status.as_u16(), 400);
    let before = site.asked.load(Ordering::SeqCst);
    let page = location(&way.asks(&client, redirect));
    assert_eq!(site.asked.load(Ordering::SeqCst), before, "the document is remembered");
    let shown = text(&way.get(&page));
    assert!(shown.contains("Bank&lt;/b&gt;&lt;script&gt;alert(1)&lt;/script&gt;[2J"), "{shown}");
    assert!(!shown.contains("<script") && !shown.contains(['\u{202e}', '\u{1b}']), "{shown}");
    let (_, code) = shown.split_once("consent approve ").unwrap();
    let code = &code[..9];

    let listed = home.run(&["agent", "consent", "list"]).ok();
    assert!(
        listed.contains("127.0.0.1:40123")
            && !listed.contains(code)
            && !listed.contains(['\u{202e}', '\u{1b}']),
        "{listed}"
    );
    home.run(&["agent", "consent", "approve", code, "--as", "nobody", "--yes"])
        .failed(1, "there is no agent nobody here");
    home.run(&["agent", "consent", "approve", "AAAA-AAAA", "--as", "scout"])
        .failed(3, "no page waits under this code");
    home.run(&["agent", "consent", "approve", "x", "--as", "scout"]).failed(2, "ABCD-EFGH");
    // Nobody says yes without having been shown to what.
    home.run(&["agent", "consent", "approve", code, "--as", "scout"]).failed(2, "say --yes");
    home.run(&["agent", "consent", "approve", code, "--as", "scout", "--permission", "admin", "--yes"])
        .failed(3, "asked for less");
    let given = home.run(&["agent", "consent", "approve", code, "--as", "scout", "--yes", "--json"]).json();
    assert_eq!((&given["agent"], &given["permission"]), (&json!("scout"), &json!("memory.write")));

    let back: Url = location(&way.get(&page)).parse().unwrap();
    assert!(back.as_str().starts_with("http://127.0.0.1:40123/callback?code="));
    let pairs: BTreeMap<String, String> = back.query_pairs().into_owned().collect();
    assert_eq!((pairs["state"].as_str(), pairs["iss"].as_str()), ("s", home.origin().as_str()));
    let resource = format!("{}/mcp", home.origin());
    let form: String = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([
            ("grant_type", "authorization_code"),
            ("code", &pairs["code"]),
            ("client_id", &client),
            ("redirect_uri", redirect),
            ("code_verifier", VERIFIER),
            ("resource", &resource),
        ])
        .finish();
    let kind = vec![("content-type", "application/x-www-form-urlencoded")];
    let tokens = way.send(Method::POST, &format!("{}/oauth/token", home.origin()), kind, Some(form));
    assert_eq!(tokens.status.as_u16(), 200, "{}", text(&tokens));
    let tokens: Value = serde_json::from_slice(&tokens.body).unwrap();
    let access = tokens["access_token"].as_str().unwrap();
    let learned = way.mcp(access, "memory_learn", json!({"content": "xylophone"}));
    assert!(text(&learned).contains("structuredContent"), "{}", text(&learned));
    let recalled = way.mcp(access, "memory_recall", json!({"query": "xylophone"}));
    assert!(text(&recalled).contains("source=\\\"scout\\\""), "{}", text(&recalled));

    // Over a restart the yes stays; the owner ends it, without the server too.
    server.stop();
    let server = home.serve(&[]);
    assert_eq!(way.mcp(access, "memory_status", json!({})).status.as_u16(), 200);
    let consent = given["consent"].as_str().unwrap();
    home.run(&["agent", "consent", "end", consent]).ok();
    assert_eq!(way.mcp(access, "memory_status", json!({})).status.as_u16(), 401);
    home.run(&["agent", "consent", "end", consent]).failed(1, "no consent of this name");

    // A client by name, and a no.
    home.run(&["agent", "client", "add", "desk", "--redirect", "http://evil.example/cb"])
        .failed(2, "--redirect");
    home.run(&["agent", "client", "add", "desk", "--redirect", "http://127.0.0.1/cb"]).ok();
    home.run(&["agent", "client", "add", "desk", "--redirect", "http://127.0.0.1/cb"])
        .failed(3, "another name");
    assert!(home.run(&["agent", "client", "list"]).ok().contains("http://127.0.0.1/cb"));
    let page = location(&way.asks("desk", "http://127.0.0.1:7/cb"));
    let shown = text(&way.get(&page));
    let (_, code) = shown.split_once("consent decline ").unwrap();
    home.run(&["agent", "consent", "decline", &code[..9].to_lowercase()]).ok();
    let no = text(&way.get(&page));
    assert!(no.contains("http://127.0.0.1:7/cb?error=access_denied"), "{no}");
    // The owner clears what waits, without a code.
    let page = location(&way.asks("desk", "http://127.0.0.1:7/cb"));
    home.run(&["agent", "consent", "decline"]).failed(2, "CLIENT");
    home.run(&["agent", "consent", "decline", "nonsense"]).failed(2, "six hex digits");
    let listed = home.run(&["agent", "consent", "list", "--json"]).json();
    let id = listed["waiting"][0]["waiting"].as_str().unwrap();
    home.run(&["agent", "consent", "decline", id]).ok();
    assert!(text(&way.get(&page)).contains("error=access_denied"));
    home.run(&["agent", "consent", "decline", id]).failed(3, "no page waits");
    let page = location(&way.asks("desk", "http://127.0.0.1:7/cb"));
    assert_eq!(home.run(&["agent", "consent", "decline", "--all", "--json"]).json()["declined"], 1);
    assert!(text(&way.get(&page)).contains("error=access_denied"));
    home.run(&["agent", "client", "remove", "desk"]).ok();
    assert_eq!(way.asks("desk", "http://127.0.0.1:7/cb").status.as_u16(), 400);
    // What a client is given is in no log.
    let (_, log) = server.stop();
    assert!(!log.contains(access) && !log.contains(page.rsplit('/').next().unwrap()), "{log}");
}

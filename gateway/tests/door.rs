//! The owner's way to the gateway: while it serves, without a server, several at once, and with a passphrase.

use crate::program::*;
use oap_gateway::client::{Caller, HomeClient};
use oap_gateway::system::home::{self, HomeError};
use oap_gateway::system::lock::{Held, Holder, HomeLock};
use oap_identity::outgoing::{Allowance, Request};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

const GRANTEE: &str = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";

/// The home of the README: its name resolves nowhere on this machine.
fn unresolved() -> Home {
    let home = Home::empty();
    let listen = format!("127.0.0.1:{}", home.port);
    let did = "did:web:memory.example.org";
    home.run(&["init", "--did", did, "--key-file", &home.path("key"), "--listen", &listen]).ok();
    home
}

fn add(home: &Home, text: &str) {
    home.run(&["item", "add", "--kind", "fact", "--text", text]).ok();
}

fn issue(home: &Home, to: &str, more: &[&str]) -> Ran {
    let mut arguments =
        vec!["grant", "issue", "--to", to, "--purpose", "x", "--until", "30d", "--trust-level", "1"];
    arguments.extend(more);
    home.run(&arguments)
}

fn grants(home: &Home) -> Vec<Value> {
    let list = home.run(&["grant", "list", "--json"]).json();
    list["grants"].as_array().unwrap().clone()
}

#[test]
fn the_owner_gets_in_while_the_name_leads_nowhere() {
    let home = unresolved();
    let server = home.serve(&[]);
    let socket = home.home().join("owner.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    add(&home, "tea");
    assert_eq!(home.run(&["item", "list", "--json"]).json()["items"].as_array().unwrap().len(), 1);
    issue(&home, GRANTEE, &[]).ok();
    let id = grants(&home)[0]["grant"]["grant_id"].as_str().unwrap().to_owned();
    // In an emergency.
    home.run(&["grant", "revoke", &id]).ok();
    assert_eq!(grants(&home)[0]["state"], "revoked");
    home.run(&["audit", "--json"]).ok();
    home.run(&["doctor"]).ok();
    // A new key: the credential that came over the socket is good for the next call.
    home.run(&["keys", "rotate"]).ok();
    home.run(&["backup", &home.path("backup")]).ok();
    home.run(&["delete", "--all", "--yes"]).ok();
    let manifest = home.run(&["config", "show", "--json"]).json();
    assert_eq!(manifest["did"]["value"], "did:web:memory.example.org");
    assert_eq!(server.stop().0, 0);
    assert!(!socket.exists());
}

#[test]
fn the_socket_has_the_owners_side_alone_and_asks_for_the_credential() {
    let home = unresolved();
    let _server = home.serve(&[]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        oap_gateway::system::tls::install();
        let client = oap_gateway::system::socket::SocketClient::connect(&home.home()).await.unwrap().unwrap();
        let status = async |path: &str| {
            let url = format!("http://localhost{path}");
            let allowed = Allowance { bytes: 1 << 20, time: Duration::from_secs(60) };
            client.http().send(Request::get(&url), allowed).await.unwrap().status.as_u16()
        };
        assert_eq!(status("/healthz").await, 200);
        assert_eq!(status("/oap/owner/items").await, 401);
        assert_eq!(status("/.well-known/oap-memory.json").await, 404);
        assert_eq!(status("/oap/owner/lock").await, 404);
    });
    home.run(&["lock"]).failed(1, "server");
}

#[test]
fn a_socket_that_a_killed_server_left_behind_gives_way() {
    let home = unresolved();
    home.serve(&[]).kill();
    assert!(home.home().join("owner.sock").exists());
    add(&home, "without a server");
    let server = home.serve(&[]);
    add(&home, "with one again");
    assert_eq!(server.stop().0, 0);
}

#[test]
fn commands_at_once_wait_for_each_other() {
    let home = unresolved();
    let texts: Vec<String> = (0..6).map(|n| format!("note {n}")).collect();
    let running: Vec<_> = texts
        .iter()
        .map(|text| {
            let mut command = home.command(&["item", "add", "--kind", "fact", "--text", text]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(home.run(&["item", "list", "--json"]).json()["items"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn whoever_waits_in_vain_is_told_for_whom() {
    let home = unresolved();
    let lock = HomeLock::take(&home.home(), "import").unwrap().unwrap();
    oap_gateway::system::tls::install();
    let connect = async || {
        let caller = Caller { patience: Duration::ZERO, ..Caller::default() };
        HomeClient::connect(home::Home::new(home.home()), &BTreeMap::new(), caller).await
    };
    let refused = connect().await.err().unwrap();
    let holder = Holder { pid: std::process::id(), command: "import".to_owned() };
    match &refused {
        HomeError::Held(Held(Some(found))) => assert_eq!(*found, holder),
        other => panic!("{other}"),
    }
    let text = refused.to_string();
    assert!(text.contains("`oap-memory import`") && text.contains(&holder.pid.to_string()), "{text}");
    drop(lock);
    connect().await.map(drop).unwrap();
}

#[test]
fn a_passphrase_is_asked_for_once_in_a_while() {
    let home = Home::empty();
    let with = |passphrase: &str, arguments: &[&str]| {
        Home::finish(home.command(arguments).env("OAP_MEMORY_PASSPHRASE", passphrase))
    };
    // What is refused leaves nothing behind, early or late, and takes nothing away that was there.
    with("", &["init", "--did", "did:key"]).failed(1, "empty passphrase");
    let missing = home.path("missing.pem");
    let late = ["init", "--did", "did:key", "--trust-ca", &missing];
    with("correct horse", &late).failed(1, "missing.pem");
    assert!(!home.home().exists());
    std::fs::create_dir(home.home()).unwrap();
    std::fs::write(home.home().join("notes.txt"), "mine").unwrap();
    with("correct horse", &late).failed(1, "missing.pem");
    let left: Vec<_> =
        std::fs::read_dir(home.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        left.contains(&"notes.txt".into()) && left.iter().all(|name| name == "notes.txt" || name == "lock"),
        "{left:?}"
    );
    with("correct horse", &["init", "--did", "did:key"]).ok();
    home.run(&["item", "list"]).failed(1, "no master key");
    // Wrong: the process in the background says so and ends.
    assert_eq!(with("wrong", &["unlock"]).status, 1);
    home.run(&["item", "list"]).failed(1, "no master key");
    with("correct horse", &["unlock", "--for", "10m"]).ok();
    add(&home, "tea");
    home.run(&["unlock"]).ok();
    assert_eq!(home.run(&["item", "list", "--json"]).json()["items"].as_array().unwrap().len(), 1);
    home.run(&["lock"]).ok();
    home.run(&["item", "list"]).failed(1, "no master key");
    home.run(&["lock"]).ok();
    with("correct horse", &["unlock", "--for", "13h"]).failed(2, "at most 12h");
    // It ends by itself, and then the lock is free.
    with("correct horse", &["unlock", "--for", "1s"]).ok();
    std::fs::File::open(home.home().join("lock")).unwrap().lock().unwrap();
    assert!(!home.home().join("owner.sock").exists());
}

#[test]
fn nothing_is_issued_that_cannot_be_written() {
    let home = unresolved();
    issue(&home, GRANTEE, &["--out", "/nonexistent/g.json"]).failed(1, "/nonexistent/g.json");
    issue(&home, GRANTEE, &["--out", &home.home().to_string_lossy()]).failed(1, "is a folder");
    assert_eq!(grants(&home), Vec::<Value>::new());
    let file = home.path("g.json");
    issue(&home, GRANTEE, &["--out", &file]).ok();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(read(&file)["grantee"], GRANTEE);
    issue(&home, GRANTEE, &["--out", "/dev/null"]).ok();
    // Likewise for what cannot be undone.
    add(&home, "tea");
    home.run(&["delete", "--all", "--yes", "--receipt", "/nonexistent/r.json"]).failed(1, "/nonexistent");
    assert_eq!(home.run(&["item", "list", "--json"]).json()["items"].as_array().unwrap().len(), 1);
    let left = std::fs::read_dir(home.path("")).unwrap();
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().starts_with(".oap-")));
}

#[test]
fn grants_are_made_out_to_somebody_who_can_use_them() {
    let home = unresolved();
    for (did, says) in [
        ("did:key:z6Mkj54rW9", "Ed25519"),
        ("did:wbe:contractor.example", "did:web, did:webvh, did:key or did:jwk"),
        ("did:web:localhost:8444", "did:web:localhost%3A8444"),
        ("did:web:", "--to"),
    ] {
        issue(&home, did, &[]).failed(2, says);
        issue(&home, did, &["--offline"]).failed(2, says);
        let preview =
            ["grant", "preview", "--to", did, "--purpose", "x", "--until", "30d", "--trust-level", "1"];
        home.run(&preview).failed(2, says);
    }
    // Loopback is no public address: nothing is asked, nothing is issued.
    let nobody = format!("did:web:localhost%3A{}", free_port());
    issue(&home, &nobody, &[]).failed(2, "--offline");
    assert_eq!(grants(&home), Vec::<Value>::new());
    issue(&home, &nobody, &["--offline"]).ok();
    assert_eq!(grants(&home).len(), 1);
}

#[test]
fn a_home_that_never_erased_has_a_list_of_erasures() {
    let home = unresolved();
    let list = home.home().join("erasures.jsonl");
    let lines = std::fs::read_to_string(&list).unwrap();
    let line: Value = serde_json::from_str(lines.trim_end()).unwrap();
    assert!(line.get("items").is_none() && line["keys"].is_array(), "{line}");
    assert!(line["mac"].is_string(), "{line}");
    add(&home, "tea");
    // Once, not at each start.
    assert_eq!(std::fs::read_to_string(&list).unwrap(), lines);
    let backup = home.path("backup");
    home.run(&["backup", &backup]).ok();
    let other = Home::empty();
    other.run(&["restore", &backup, "--erasures", &list.to_string_lossy()]).ok();
    assert_eq!(other.run(&["item", "list", "--json"]).json()["items"].as_array().unwrap().len(), 1);
}

fn get(port: u16, path: &str) -> String {
    use std::io::{Read, Write};
    let mut connection = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn behind_a_proxy_the_addresses_are_the_public_ones() {
    let home = unresolved();
    let server = home.serve(&["--plain-http", "--trusted-proxy", "127.0.0.1"]);
    let manifest = get(home.port, "/.well-known/oap-memory.json");
    assert!(manifest.contains("https://memory.example.org/oap/memory/query"), "{manifest}");
    assert!(!manifest.contains("http://"), "{manifest}");
    add(&home, "tea");
    assert_eq!(server.stop().0, 0);
    for (origin, says) in [
        ("http://memory.example.org", "loopback only"),
        ("memory.example.org", "https://HOST"),
        ("https://memory.example.org/oap", "without path"),
    ] {
        home.run(&["serve", "--origin", origin]).failed(2, says);
        let shown = Home::finish(home.command(&["config", "show"]).env("OAP_MEMORY_ORIGIN", origin));
        shown.failed(1, says);
    }
    home.run(&["serve", "--trusted-proxy", "0.0.0.0/0"]).failed(2, "trust everybody");
}

#[test]
fn metrics_explain_themselves() {
    let home = unresolved();
    add(&home, "tea");
    issue(&home, GRANTEE, &[]).ok();
    let metrics = free_port();
    let server = home.serve(&["--metrics-listen", &format!("127.0.0.1:{metrics}")]);
    home.run(&["item", "list"]).ok();
    let text = get(metrics, "/metrics");
    let value = |name: &str| -> f64 {
        let line =
            text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap_or_else(|| panic!("{name}: {text}")).rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(value("oap_items"), 1.0);
    assert_eq!(value("oap_grants{state=\"active\"}"), 1.0);
    assert_eq!(value("oap_grants{state=\"revoked\"}"), 0.0);
    let end = read_end(&home);
    assert!((value("oap_grant_next_expiry_timestamp_seconds") - end).abs() < 1.0);
    assert!(value("oap_certificate_expiry_timestamp_seconds") > end);
    assert!(value("oap_store_bytes") > 0.0 && value("oap_disk_free_bytes") > 0.0);
    assert_eq!(value(&format!("oap_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))), 1.0);
    assert_eq!(value("oap_queries_total"), 0.0);
    assert!(value("oap_writes_waiting") >= 0.0);
    assert!(text.contains("oap_request_seconds_bucket{route=\"/oap/owner/items\",le=\"0.25\"}"), "{text}");
    // Every family has its line of help and its type.
    let families: Vec<&str> =
        text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(families.len() >= 12, "{families:?}");
    for family in families {
        assert!(text.contains(&format!("# HELP {family} ")), "{family}: {text}");
    }
    server.stop();
}

/// When the one grant of a home ends, in seconds.
fn read_end(home: &Home) -> f64 {
    let end = grants(home)[0]["grant"]["expires_at"].as_str().unwrap().to_owned();
    let end: oap_identity::Timestamp = end.parse().unwrap();
    end.millis() as f64 / 1000.0
}

#[test]
fn doctor_warns_of_what_ends_soon() {
    let home = unresolved();
    let soon = |text: &str| -> Vec<String> {
        let findings: Value = serde_json::from_str(text).unwrap();
        let warned = findings["findings"].as_array().unwrap().iter();
        let warned = warned.filter(|f| f["soon"].as_array().is_some_and(|soon| !soon.is_empty()));
        warned.map(|f| f["part"].as_str().unwrap().to_owned()).collect()
    };
    let parts = |text: &str| soon(text).into_iter().filter(|part| part != "disk").collect::<Vec<_>>();
    issue(&home, GRANTEE, &[]).ok();
    assert_eq!(parts(&home.run(&["doctor", "--json"]).ok()), Vec::<String>::new());
    let mut arguments = vec!["grant", "issue", "--to", GRANTEE, "--purpose", "x", "--trust-level", "1"];
    arguments.extend(["--until", "3d"]);
    home.run(&arguments).ok();
    // A certificate that ended, of another maker.
    let certificate = home.path("cert.pem");
    let key = home.path("key.pem");
    let pair = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["memory.example.org".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    std::fs::write(&certificate, params.self_signed(&pair).unwrap().pem()).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    let environment = [("OAP_MEMORY_TLS_CERT", &certificate), ("OAP_MEMORY_TLS_KEY", &key)];
    let text = Home::finish(home.command(&["doctor", "--json"]).envs(environment)).ok();
    assert_eq!(parts(&text), ["active grants", "certificate"]);
    let told = Home::finish(home.command(&["doctor"]).envs(environment)).ok();
    assert!(told.contains("soon   active grants (2)") && told.contains("2021-01-01"), "{told}");
}

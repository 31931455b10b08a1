//! The real binary, over real TLS on loopback.

use crate::program::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

/// A granter that serves, and a grantee that trusts its certificate.
fn pair() -> (Home, Server, Home) {
    let granter = Home::web();
    let server = granter.serve(&[]);
    let mut grantee = Home::key();
    let authority = granter.home().join("tls/cert.pem").to_string_lossy().into_owned();
    grantee.flags = vec!["--trust-ca".into(), authority, "--allow-local-dids".into()];
    (granter, server, grantee)
}

fn did(home: &Home) -> String {
    read(home.home().join("did.json"))["id"].as_str().unwrap().to_owned()
}

fn issue(granter: &Home, grantee: &str, file: &str, more: &[&str]) -> Value {
    let path = granter.path(file);
    let mut arguments =
        vec!["grant", "issue", "--to", grantee, "--purpose", "Website redesign", "--out", &path];
    let defaults: [(&str, &[&str]); 2] = [("--until", &["30d"]), ("--trust-level", &["2"])];
    for (flag, value) in defaults {
        if !more.contains(&flag) {
            arguments.push(flag);
            arguments.extend(value);
        }
    }
    arguments.extend(more);
    granter.run(&arguments).ok();
    read(path)
}

#[test]
fn the_whole_story() {
    let (granter, server, grantee) = pair();
    let contractor = did(&grantee);
    let secret = "anna.miller@private.example";
    let add = |text: &str, label: &str| {
        let arguments = ["item", "add", "--kind", "fact", "--text", text, "--label", label, "--json"];
        granter.run(&arguments).json()["items"][0]["item_id"].as_str().unwrap().to_owned()
    };
    let first = add(&format!("The website launch moves to June, ask {secret}"), "website");
    add("The website budget is 8000", "website");
    add("The doctor said to rest", "health");

    let preview = granter.run(&[
        "grant",
        "preview",
        "--to",
        &contractor,
        "--purpose",
        "Website redesign",
        "--label",
        "website",
        "--until",
        "30d",
        "--trust-level",
        "2",
        "--json",
    ]);
    let preview = preview.json();
    assert_eq!(preview["selected"], 2);
    assert!(!preview["items"].to_string().contains(secret));

    issue(&granter, &contractor, "grant.json", &["--label", "website"]);
    let grant = granter.path("grant.json");
    let answer_file = grantee.path("answer.json");
    let ask = |text: &str| {
        grantee.run(&["query", &granter.origin(), "--grant", &grant, text, "--json", "--save", &answer_file])
    };
    ask("website launch").ok();
    let answer = read(&answer_file);
    assert_eq!(answer["items"][0]["item_id"], json!(first));
    assert_eq!(answer["items"][0]["content"]["text"], "The website launch moves to June, ask [email]");
    assert!(!answer.to_string().contains("doctor"));

    // Offline, with the document alone.
    let document = granter.home().join("did.json").to_string_lossy().into_owned();
    grantee.run(&["verify", &answer_file, "--did-document", &document]).ok();
    let said = grantee.run(&["--json", "verify", &answer_file, "--did-document", &document]).json();
    assert_eq!((&said["disclosed_by"], &said["disclosed_to"]), (&json!(did(&granter)), &json!(contractor)));
    assert_eq!(
        (&said["grant"]["checked"], &said["items"][0]["held_by"]),
        (&json!(false), &json!(did(&granter)))
    );
    assert_eq!(said["items"][0]["outside"], json!(["epistemic", "relevance"]));
    let under = ["--json", "verify", &answer_file, "--did-document", &document, "--grant", &grant];
    assert_eq!(grantee.run(&under).json()["grant"]["checked"], true);
    let mut tampered = answer.clone();
    tampered["items"][0]["content"]["text"] = json!("The website launch moves to July, ask [email]");
    let tampered_file = grantee.path("tampered.json");
    write(&tampered_file, &tampered);
    grantee.run(&["verify", &tampered_file, "--did-document", &document]).failed(4, "does not hold");
    // One item, its proof taken away so that nothing contradicts another text.
    let mut bare = answer["items"][0].clone();
    bare["content"]["text"] = json!("The website launch moves to July");
    bare["integrity"].as_object_mut().unwrap().remove("sd_jwt");
    write(&tampered_file, &bare);
    grantee.run(&["verify", &tampered_file, "--did-document", &document]).failed(4, "nothing proves");

    // A correction shows in the next answer, with its history.
    granter.run(&["item", "correct", &first, "--text", "The website launch moves to August"]).ok();
    ask("website launch").ok();
    let answer = read(&answer_file);
    assert_eq!(answer["items"][0]["content"]["text"], "The website launch moves to August");
    assert_eq!(answer["items"][0]["integrity"]["chain"].as_array().unwrap().len(), 2);

    let audit = granter.run(&["audit", "--grantee", &contractor, "--json"]).json();
    let actions: Vec<&str> =
        audit["receipts"].as_array().unwrap().iter().map(|r| r["action_id"].as_str().unwrap()).collect();
    assert_eq!(actions.iter().filter(|action| **action == "memory.query").count(), 2, "{actions:?}");
    granter.run(&["audit", "verify"]).ok();

    let id = read(&grant)["grant_id"].as_str().unwrap().to_owned();
    granter.run(&["grant", "revoke", &id]).ok();
    ask("website launch").failed(3, "revoked");

    let deletion = granter.path("deletion.json");
    granter.run(&["delete", "--label", "website", "--yes", "--receipt", &deletion]).ok();
    let said = grantee.run(&["--json", "verify", &deletion, "--did-document", &document]).json();
    assert_eq!((&said["what"], said["deleted"].as_array().unwrap().len()), (&json!("deletion_receipt"), 2));
    assert_eq!(said["cascade"]["grants_shrunk"], json!([]));
    let mut less = read(&deletion);
    less["scope"]["items"].as_array_mut().unwrap().pop();
    write(&deletion, &less);
    grantee.run(&["verify", &deletion, "--did-document", &document]).failed(4, "signature");
    let left = granter.run(&["item", "list", "--json"]).json();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);

    let (status, log) = server.stop();
    assert_eq!(status, 0, "{log}");
    assert!(log.contains("stopped"), "{log}");
    for word in [secret, "launch", "doctor", "budget", "eyJ"] {
        assert!(!log.contains(word), "the log holds {word}: {log}");
    }
    // Without a server the same commands work on the store itself.
    let left = granter.run(&["item", "list", "--json"]).json();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

/// Each kind of document is told by its content; what was not checked is said.
#[test]
fn verify_takes_every_kind_of_document() {
    let (granter, _server, grantee) = pair();
    granter.run(&["item", "add", "--kind", "fact", "--text", "tea", "--label", "food"]).ok();
    issue(&granter, &did(&grantee), "grant.json", &["--label", "food"]);
    let (grant, saved) = (granter.path("grant.json"), grantee.path("answer.json"));
    grantee.run(&["query", &granter.origin(), "--grant", &grant, "tea", "--save", &saved]).ok();
    let document = granter.home().join("did.json").to_string_lossy().into_owned();
    let verify = |file: &str, more: &[&str]| {
        grantee.run(&[&["--json", "verify", file, "--did-document", &document][..], more].concat())
    };
    let unchecked = |said: &Value| -> Vec<String> {
        let all = said["unchecked"].as_array().unwrap();
        all.iter().map(|what| what["id"].as_str().unwrap().to_owned()).collect()
    };
    let part = |name: &str, value: &Value| {
        let path = grantee.path(name);
        write(&path, value);
        path
    };
    let answer = read(&saved);
    // A lone item: its chain may go on, and nobody signed its relevance.
    let item = verify(&part("item.json", &answer["items"][0]), &[]).json();
    assert_eq!(unchecked(&item), ["unchecked.chain_end", "unchecked.member", "unchecked.member"]);
    let receipt = verify(&part("receipt.json", &answer["receipt"]), &[]).json();
    // The grantee has not signed it.
    assert_eq!(
        (&receipt["what"], unchecked(&receipt)),
        (&json!("receipt"), vec!["unchecked.agent".to_owned()])
    );
    let said = verify(&grant, &[]).json();
    assert_eq!(
        (&said["granter"], unchecked(&said)),
        (&json!(format!("{}#personal", did(&granter))), vec!["unchecked.state".to_owned()])
    );
    let keys = verify(&document, &[]).json();
    assert_eq!(keys["what"], "did_document");
    // Of a DID document the keys are compared, and nothing else.
    let mut elsewhere = read(&document);
    elsewhere["service"][0]["serviceEndpoint"] = json!("https://mallory.example/oap/invoke");
    let keys = verify(&part("elsewhere.json", &elsewhere), &[]).json();
    let outside = keys["outside"].as_array().unwrap();
    assert!(outside.contains(&json!("service")) && outside.contains(&json!("keyAgreement")), "{outside:?}");
    assert!(!outside.contains(&json!("verificationMethod")), "{outside:?}");
    // Text says the same.
    let text = grantee.run(&["verify", &saved, "--did-document", &document]).ok();
    for said in [
        "disclosed 1 item(s) of its own to",
        "outside the proof: epistemic, relevance",
        "not checked: input_hash",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    verify(&part("nothing.json", &json!({"a": 1})), &[]).failed(4, "it is no answer");
    // What cannot be a document does not hold; what cannot be read, or whose signer cannot be asked, is not judged.
    for (name, text, why) in [
        ("empty.json", "", "empty"),
        ("cut.json", "{\"items\":", "not hold"),
        ("twice.json", "{\"items\":[],\"items\":[]}", "not hold"),
        ("nonsense.jwt", "nonsense", "not hold"),
    ] {
        let path = grantee.path(name);
        std::fs::write(&path, text).unwrap();
        verify(&path, &[]).failed(4, why);
    }
    verify(&grantee.path("missing.json"), &[]).failed(1, "missing.json");
    let stranger = answer.to_string().replace(&did(&granter), "did:web:nobody.invalid");
    let path = grantee.path("stranger.json");
    std::fs::write(&path, stranger).unwrap();
    verify(&path, &[]).failed(1, "nobody.invalid");
    // Whether the grant is revoked is told where its list is given, and said to be unchecked where it is not.
    let said = verify(&saved, &["--grant", &grant]).json();
    assert!(unchecked(&said).contains(&"unchecked.state".to_owned()) && said["revoked"].is_null());
    // What a projection hid cannot be seen; the profile is a built-in one.
    let names = unchecked(&said);
    assert!(names.contains(&"unchecked.projection".to_owned()), "{names:?}");
    assert!(!names.contains(&"unchecked.profile".to_owned()), "{names:?}");
    assert!(unchecked(&verify(&saved, &[]).json()).contains(&"unchecked.state".to_owned()));
    verify(&saved, &["--status-list", &saved]).failed(2, "--grant");
    // What is given and not used is a mistake, and named.
    verify(&saved, &["--chain", &grant]).failed(2, "--chain");
    verify(&grant, &["--grant", &grant]).failed(2, "--grant");
    for file in ["item.json", "receipt.json"] {
        verify(&grantee.path(file), &["--grant", &grant]).failed(2, "--grant");
        verify(&grantee.path(file), &["--status-list", &grant]).failed(2, "--status-list");
    }
    verify(&document, &["--chain", &grant]).failed(2, "--chain");
    let bundle = granter.path("memory.bundle");
    granter.run(&["export", &bundle]).ok();
    verify(&bundle, &["--grant", &grant]).failed(2, "--grant");
    verify(&bundle, &[]).json();
    // Someone else's grant around a genuine answer.
    let other = issue(&granter, "did:web:other.example", "other.json", &["--label", "food", "--offline"]);
    let other = part("other.json", &other);
    verify(&saved, &["--grant", &other]).failed(4, "the grant names");
}

#[test]
fn verify_takes_what_delete_prints_and_keeps() {
    let (granter, _server, grantee) = pair();
    let delete = |label: &str| {
        granter.run(&["item", "add", "--kind", "fact", "--text", label, "--label", label]).ok();
        granter.run(&["--json", "delete", "--label", label, "--yes"]).json()
    };
    let (first, second) = (delete("tea"), delete("coffee"));
    let document = granter.home().join("did.json").to_string_lossy().into_owned();
    let path = grantee.path("deleted.json");
    let verify = |value: &Value| {
        write(&path, value);
        grantee.run(&["--json", "verify", &path, "--did-document", &document])
    };
    // What stands beside the receipt is nobody's word.
    let mut forged = first.clone();
    forged["cascade_report"]["grants_shrunk"] = json!(["mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"]);
    let said = verify(&forged).json();
    assert_eq!(said["what"], "deletion_receipt");
    assert!(said["outside"].as_array().unwrap().contains(&json!("cascade_report")), "{said}");
    let text = grantee.run(&["verify", &path, "--did-document", &document]).ok();
    let outside = text.lines().find(|line| line.starts_with("outside the proof: ")).unwrap();
    assert!(outside.contains("cascade_report") && outside.contains("came_since"), "{text}");
    // Every receipt counts, in what `delete` prints and in the list that it keeps.
    let receipts = json!([first["deletion_receipt"], second["deletion_receipt"]]);
    let said = verify(&receipts).json();
    assert_eq!((&said["what"], said["receipts"].as_array().unwrap().len()), (&json!("deletion_receipts"), 2));
    let mut wrong = receipts.clone();
    wrong[1]["completed_at"] = json!("2020-01-01T00:00:00.000Z");
    verify(&wrong).failed(4, "signature");
    forged["deletion_receipts"] = wrong;
    verify(&forged).failed(4, "signature");
    verify(&json!([first["deletion_receipt"], {"a": 1}])).failed(4, "Deletion Receipts");
    verify(&json!([])).failed(4, "Deletion Receipts");
}

#[test]
fn refusals_reach_the_grantee_as_status_3() {
    let (granter, _server, grantee) = pair();
    let contractor = did(&grantee);
    granter.run(&["item", "add", "--kind", "fact", "--text", "tea", "--label", "food"]).ok();
    let ask = |file: &str, more: &[&str]| {
        let path = granter.path(file);
        let origin = granter.origin();
        let mut arguments = vec!["query", origin.as_str(), "--grant", &path, "tea"];
        arguments.extend(more);
        grantee.run(&arguments)
    };
    issue(&granter, &contractor, "good.json", &[]);
    ask("good.json", &[]).ok();
    ask("good.json", &["--include-embeddings"]).failed(3, "embeddings");

    // For somebody else: the grantee cannot prove to be them, and is told so before anybody is asked.
    issue(&granter, "did:web:other.example", "foreign.json", &["--offline"]);
    ask("foreign.json", &[]).failed(2, "is made out to did:web:other.example");

    issue(&granter, &contractor, "later.json", &["--from", "2099-01-01", "--until", "2099-02-01"]);
    ask("later.json", &[]).failed(3, "draft");

    // One that the grantee made wider by hand.
    let mut wider = read(granter.path("good.json"));
    wider["max_items"] = json!(9_999);
    write(granter.path("wider.json"), &wider);
    ask("wider.json", &[]).failed(3, "not known here");
}

#[test]
fn only_tls_1_3_is_spoken() {
    let (granter, _server, _) = pair();
    // A TLS 1.2 ClientHello with ECDHE-ECDSA-AES128-GCM, P-256 and ecdsa_secp256r1_sha256.
    let extensions: &[u8] = &[
        0x00, 0x0a, 0x00, 0x04, 0x00, 0x02, 0x00, 0x17, 0x00, 0x0b, 0x00, 0x02, 0x01, 0x00, 0x00, 0x0d, 0x00,
        0x04, 0x00, 0x02, 0x04, 0x03, 0x00, 0x17, 0x00, 0x00,
    ];
    let mut hello = vec![0x03, 0x03];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2b, 1, 0]);
    hello.extend((extensions.len() as u16).to_be_bytes());
    hello.extend(extensions);
    let mut message = vec![1, 0];
    message.extend((hello.len() as u16).to_be_bytes());
    message.extend(hello);
    let mut record = vec![22, 3, 1];
    record.extend((message.len() as u16).to_be_bytes());
    record.extend(message);
    let mut connection = TcpStream::connect(("127.0.0.1", granter.port)).unwrap();
    connection.write_all(&record).unwrap();
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    // An alert: fatal, protocol_version.
    assert_eq!((answer.first(), answer.get(5..7)), (Some(&21), Some(&[2, 70][..])), "{answer:?}");

    // Plain http gets no answer at all on that port.
    let mut connection = TcpStream::connect(("127.0.0.1", granter.port)).unwrap();
    connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

fn get(port: u16, path: &str) -> String {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn plain_http_on_loopback_only_and_metrics_apart() {
    let home = Home::web();
    home.run(&["serve", "--plain-http", "--listen", "0.0.0.0:0"]).failed(1, "loopback");
    home.run(&["serve", "--metrics-listen", "0.0.0.0:0"]).failed(1, "loopback");
    let metrics = free_port();
    let server = home.serve(&["--plain-http", "--metrics-listen", &format!("127.0.0.1:{metrics}")]);
    assert!(get(home.port, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(home.port, "/readyz").starts_with("HTTP/1.1 200"));
    assert!(get(home.port, "/metrics").starts_with("HTTP/1.1 404"));
    assert!(get(metrics, "/metrics").contains("oap_requests_total"));
    assert_eq!(server.stop().0, 0);
}

#[test]
fn flags_outrank_environment_and_file() {
    let home = Home::web();
    let shown = |environment: Option<&str>, flags: &[&str]| {
        let mut command = home.command(&["config", "show", "--json"]);
        command.args(flags);
        if let Some(value) = environment {
            command.env("OAP_MEMORY_ALLOW_LOCAL_DIDS", value);
        }
        Home::finish(&mut command).json()["allow_local_dids"].clone()
    };
    let value = |shown: Value| shown.get("value").cloned().unwrap_or(shown);
    assert_eq!(value(shown(None, &[])), false);
    assert_eq!(value(shown(Some("true"), &[])), true);
    let file = home.home().join("config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}allow_local_dids = true\n")).unwrap();
    assert_eq!(value(shown(None, &[])), true);
    assert_eq!(value(shown(Some("false"), &[])), false);
    assert_eq!(value(shown(Some("false"), &["--allow-local-dids"])), true);
    std::fs::write(&file, format!("{text}no_such_setting = 1\n")).unwrap();
    home.run(&["config", "show"]).failed(1, "no_such_setting");
}

#[test]
fn secrets_are_for_the_owner_alone() {
    let home = Home::web();
    for path in ["admin.json", "config.toml", "vault"] {
        let mode = std::fs::metadata(home.home().join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}");
    }
    let mode = std::fs::metadata(home.path("key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
    home.run(&["init", "--did", "did:key", "--key-file", &home.path("key")]).failed(1, "already");
    // Without the master key nothing opens.
    std::fs::write(home.path("key"), "AAAA\n").unwrap();
    home.run(&["item", "list"]).failed(1, "32 bytes");
}

#[test]
fn rotated_and_revoked_keys() {
    let (granter, _server, grantee) = pair();
    let contractor = did(&grantee);
    granter.run(&["item", "add", "--kind", "fact", "--text", "tea"]).ok();
    issue(&granter, &contractor, "grant.json", &[]);
    let grant = granter.path("grant.json");
    let answer = grantee.path("answer.json");
    let origin = granter.origin();
    let ask = || grantee.run(&["query", &origin, "--grant", &grant, "tea", "--save", &answer]);
    granter.run(&["keys", "rotate"]).ok();
    ask().ok();
    let keys = granter.run(&["keys", "list", "--json"]).json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2, "{keys}");
    granter.run(&["keys", "revoke", "key-1"]).ok();
    assert_eq!(ask().status, 3);
}

#[test]
fn usage_help_and_completions() {
    let home = Home::empty();
    home.run(&["no-such-command"]).failed(2, "no-such-command");
    home.run(&["item", "list"]).failed(1, "init");
    home.run(&["init", "--did", "did:example:1"]).failed(2, "--did");
    let help = home.run(&["--help"]).ok();
    let names: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(names.len() >= 12, "{names:?}");
    for name in &names {
        home.run(&[name, "--help"]).ok();
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).ok();
        assert!(names.iter().all(|name| script.contains(name)), "{shell}");
    }
}

#[test]
fn the_demonstration_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::empty();
    let mut command = home.command(&["demo"]);
    command.env("TMPDIR", folder.path());
    let shown = Home::finish(&mut command).ok();
    for step in ["hidden", "takes the grant back", "revoked", "nothing found", "changed", "verified"] {
        assert!(shown.to_lowercase().contains(step), "{step}: {shown}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A certificate that nobody knows is what is said to be wrong, also where plain http would be tried.
#[test]
fn an_untrusted_certificate_is_named_with_the_fix() {
    let granter = Home::web();
    let server = granter.serve(&[]);
    let key = granter.path("my.key");
    let made = granter.run(&["key", "new", "--out", &key, "--json"]).json();
    issue(&granter, made["did"].as_str().unwrap(), "grant.json", &[]);
    let grantee = Home::empty();
    let grant = granter.path("grant.json");
    for ask in [&["query", "--key", &key, "--grant", &grant][..], &["verify", &grant]] {
        let ran = grantee.run(&[&["--allow-local-dids"], ask].concat());
        assert!(ran.stderr.contains("certificate is not trusted"), "{ran:?}");
        ran.failed(1, "--trust-ca FILE names the authority");
    }
    server.stop();
}

#[test]
fn the_probes_over_tls() {
    let home = Home::web();
    let server = home.serve(&[]);
    let run =
        ["--json", "--allow-local-dids", "probe", &home.origin(), "--own", "--seed", "5", "--worlds", "1"];
    let report = home.run(&run).json();
    let results = report["results"].as_array().unwrap();
    let passed = results.iter().filter(|r| r["outcome"] == "passed").count();
    // Without witnesses it has no log. Nobody's own gateway is locked down for a probe, nor given profiles or lists.
    let of = |outcome: &str| -> BTreeSet<&str> {
        results.iter().filter(|r| r["outcome"] == outcome).filter_map(|r| r["id"].as_str()).collect()
    };
    assert_eq!(of("not_declared"), BTreeSet::from(["own-log", "witnessed-receipts"]), "{report}");
    assert_eq!(
        of("not_covered"),
        BTreeSet::from(["lockdown", "own-profiles", "refused-profiles", "sanctions"]),
        "{report}"
    );
    assert_eq!(passed, results.len() - 6, "{report}");
    assert_eq!(
        ["not_declared", "not_covered", "never"].map(|what| &report["requirements"][what]),
        [&json!(["FE-13"]), &json!(["CO-30"]), &json!([])]
    );
    let counts = json!({"passed": passed, "failed": 0, "faults": 0, "skipped": 0, "not_declared": 2, "not_covered": 4});
    assert_eq!(report["counts"], counts);
    assert!(passed > 35 && report["seed"] == 5 && report["verdict"] == "passed");
    // What is made beside it while it waits is not counted as its own.
    let asked = results.iter().find(|r| r["id"] == "grant-expired").and_then(|r| r["requests"].as_u64());
    assert!(asked.is_some_and(|asked| (5..50).contains(&asked)), "{asked:?}");
    // Without the owner's side, and with a fixture program that refuses everything.
    let fixture = home.path("fixture.sh");
    std::fs::write(&fixture, "#!/bin/sh\nwhile read -r line; do echo '{\"error\": \"no\"}'; done\n").unwrap();
    std::fs::set_permissions(&fixture, std::fs::Permissions::from_mode(0o755)).unwrap();
    let junit = home.path("report.xml");
    let refused = home.run(&["--json", "probe", &home.origin(), "--setup", &fixture, "--junit", &junit]);
    assert_eq!(refused.status, 5, "{refused:?}");
    assert!(refused.stderr.contains("probes were not made"), "{refused:?}");
    let report: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(report["verdict"], "incomplete");
    let why = |id: &str| {
        let results = report["results"].as_array().unwrap();
        results.iter().find(|r| r["id"] == id).unwrap()["why"].as_str().unwrap().to_owned()
    };
    assert!(why("projection").contains("the owner's side: no"));
    assert_eq!(report["sets_clock"], false);
    let junit = std::fs::read_to_string(&junit).unwrap();
    assert!(junit.contains("<skipped") && junit.contains("\"verdict\" value=\"incomplete\""), "{junit}");
    // A fault of the gateway that the program tells of is no refusal.
    std::fs::write(
        &fixture,
        "#!/bin/sh\nwhile read -r line; do echo '{\"error\": \"no\", \"fault\": true}'; done\n",
    )
    .unwrap();
    let faulty = home.run(&["--json", "probe", &home.origin(), "--setup", &fixture]);
    assert!(faulty.status == 4 && faulty.stdout.contains("a fault of the gateway: no"), "{faulty:?}");
    let report: Value = serde_json::from_str(&faulty.stdout).unwrap();
    assert!(report["counts"]["faults"].as_u64() > Some(0), "{report}");
    // A program that answers `wait` has a clock that can be set, unless it goes on by itself.
    for (now, is_set) in [
        ("echo '{\"now\": \"2026-05-01T12:00:00Z\"}'", true),
        ("date -u '+{\"now\": \"%Y-%m-%dT%H:%M:%SZ\"}'", false),
    ] {
        let script = format!(
            "#!/bin/sh\nwhile read -r line; do case $line in *'\"wait\"'*) {now};; *) echo '{{\"error\": \"no\"}}';; esac; done\n"
        );
        std::fs::write(&fixture, script).unwrap();
        let set = home.run(&["--json", "probe", &home.origin(), "--setup", &fixture]);
        let report: Value = serde_json::from_str(&set.stdout).unwrap();
        assert_eq!(report["sets_clock"], is_set, "{report}");
    }
    // Nor does a run pass that had no time, or no owner's side.
    home.run(&["probe", &home.origin(), "--own", "--max-seconds", "1"]).failed(5, "incomplete");
    home.run(&["probe", &home.origin()]).failed(5, "incomplete");
    assert!(home.run(&["probe", "--list"]).ok().contains("memory-exchange-possession"));
    // One that ends in the middle: what was skipped then says nothing.
    for script in ["#!/bin/sh\nread -r line; echo '{\"error\": \"no\"}'\n", "#!/bin/sh\nexit 0\n"] {
        std::fs::write(&fixture, script).unwrap();
        let ended = home.run(&["--json", "probe", &home.origin(), "--setup", &fixture]);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(report["ended"], "the setup program ended in the middle of the run", "{report}");
        ended.failed(1, "fixture.sh");
    }
    // All items of the probes go with one selector, and their grants have one purpose, but for those that try what one may be.
    assert_ne!(live(&home), 0);
    home.run(&["delete", "--provenance", "made_by=oap-memory-probe", "--yes"]).ok();
    assert_eq!(live(&home), 0);
    let grants = home.run(&["--json", "grant", "list"]).json();
    let purposes =
        grants["grants"].as_array().unwrap().iter().map(|grant| grant["grant"]["purpose"].as_str().unwrap());
    let others: BTreeSet<&str> = purposes.filter(|purpose| *purpose != "oap-memory probe").collect();
    assert!(others.iter().all(|other| *other == "x" || *other == "ö".repeat(1000)), "{others:?}");
    server.stop();
}

/// Items in force.
fn live(home: &Home) -> u64 {
    home.run(&["--json", "status"]).json()["items"]["live"].as_u64().unwrap()
}

/// The owner's side is that of the home, and the gateway must be, too: else the items of the probes would go into a memory that
/// somebody uses.
#[test]
fn the_probes_of_ones_own_gateway_are_of_that_one() {
    let (home, other) = (Home::web(), Home::web());
    home.run(&["item", "add", "--kind", "fact", "--text", "mine"]).ok();
    let grants =
        |home: &Home| home.run(&["--json", "grant", "list"]).json()["grants"].as_array().unwrap().len();
    let server = other.serve(&[]);
    let ca = other.home().join("tls/cert.pem").to_string_lossy().into_owned();
    let probe = ["--trust-ca", &ca, "probe", &other.origin(), "--own", "--worlds", "0"];
    let ran = home.run(&probe);
    for port in [home.port, other.port] {
        assert!(ran.stderr.contains(&format!("did:web:localhost%3A{port}")), "{ran:?}");
    }
    ran.failed(2, "--own");
    // Whose certificate nobody knows, and where nobody is.
    home.run(&["probe", &other.origin(), "--own"]).failed(2, "--trust-ca FILE");
    home.run(&["probe", &other.origin()]).failed(1, "--trust-ca FILE");
    server.stop();
    home.run(&["probe", &other.origin(), "--own"]).failed(2, &other.origin());
    assert_eq!((live(&home), grants(&home)), (1, 0));
    // Nothing was probed there, so nothing is judged.
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let ran = home.run(&["probe", &nobody]);
    assert!(ran.stdout.is_empty(), "{ran:?}");
    ran.failed(1, "not reached: ");
}

/// A home keeps the engine that it was made with, and a backup goes from one to another.
#[test]
fn a_home_keeps_its_engine_and_a_backup_changes_it() {
    let home = Home::empty();
    let init = ["init", "--did", "did:key", "--key-file", &home.path("key")];
    Home::finish(home.command(&init).env("OAP_MEMORY_ENGINE", "sled")).ok();
    home.run(&["item", "add", "--kind", "fact", "--text", "one"]).ok();
    let engine = |report: &Value| report["findings"][0]["note"].as_str().unwrap().to_owned();
    assert_eq!(engine(&home.run(&["--json", "doctor"]).json()), "engine sled");
    home.run(&["backup", &home.path("backup")]).ok();
    let next = |arguments: &[&str]| {
        let mut command = std::process::Command::new(BINARY);
        Home::finish(command.args(["--json", "--home", &home.path("next")]).args(arguments)).json()
    };
    next(&["restore", &home.path("backup"), "--without-erasures"]);
    assert_eq!(engine(&next(&["doctor"])), "engine redb");
    assert_eq!(next(&["item", "list"])["items"].as_array().unwrap().len(), 1);
}

/// The gateway that has the home open puts the successor of the credential into it: a command that is killed once the keys were
/// changed leaves a home whose next command is the owner's.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_keeps_its_credential_whatever_becomes_of_the_command_that_changed_the_keys() {
    use oap_gateway::client::{Caller, HomeClient};
    oap_gateway::system::tls::install();
    let owner = Home::web();
    let none = std::collections::BTreeMap::new();
    let server = owner.serve(&[]);
    for path in ["/oap/owner/keys/rotate", "/oap/owner/keys/key-2/revoke"] {
        let home = oap_gateway::system::home::Home::new(owner.home());
        let client = HomeClient::connect(home, &none, Caller::default()).await.unwrap();
        // Nobody does anything with the answer.
        drop(client.call("POST", path, &[], Some(&json!({}))).await.unwrap());
        owner.run(&["item", "list"]).ok();
    }
    owner.run(&["keys", "rotate"]).ok();
    owner.run(&["keys", "revoke", "key-1"]).ok();
    owner.run(&["item", "list"]).ok();
    server.stop();
}

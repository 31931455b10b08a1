//! Hosts that misbehave, name somebody else, lead into the own network, or say nothing.

use super::*;

/// What a host that misbehaves shows is not believed, and nothing that is pinned changes.
#[tokio::test]
async fn hosts_that_misbehave() {
    let (world, peer, shown) = pinned().await;
    let pinned = check(&world, &peer).await.pinned;
    let other = PlayedPeer::new().await;
    other.publish(&PlayedPeer::shown(world.now()));
    let elsewhere = format!("Location: {}{}\r\n", other.origin, path::MEMORY_MANIFEST);
    let deep =
        |name: &str| format!("{{\"{name}\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes();
    let large = |bytes: usize| http("200 OK", "", &vec![b' '; bytes]);
    let endless = [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".as_slice(), &vec![b'1'; 1 << 20]].concat();
    let broken = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{\"principal\":".to_vec();
    let mut stolen: Value = serde_json::from_slice(&peer.body(path::MEMORY_MANIFEST)).unwrap();
    stolen["max_grant_size_items"] = json!(5);
    let unreachable = [
        (path::DID, Reply::Raw(http("500 Internal Server Error", "", b"")), "500"),
        (path::DID, Reply::Raw(http("404 Not Found", "", b"")), "404"),
        (path::DID, Reply::Raw(Vec::new()), ""),
        (path::MEMORY_MANIFEST, Reply::Raw(http("302 Found", &elsewhere, b"")), "302"),
        (path::MEMORY_MANIFEST, Reply::Raw(broken.clone()), "broke off"),
        (path::TOOL_MANIFEST, Reply::Raw(b"nonsense\r\n\r\n".to_vec()), ""),
    ];
    let disbelieved = [
        // Another DID's document, and another's manifest.
        (path::DID, Reply::Bare(other.body(path::DID)), "did.json"),
        (path::MEMORY_MANIFEST, Reply::Bare(other.body(path::MEMORY_MANIFEST)), ""),
        // A manifest that was changed; another tool manifest than the one that it names.
        (path::MEMORY_MANIFEST, Reply::Bare(stolen.to_string().into_bytes()), "signature"),
        (path::TOOL_MANIFEST, Reply::Bare(other.body(path::TOOL_MANIFEST)), ""),
        (path::DID, Reply::Raw(large((64 << 10) + 1)), "larger than"),
        (path::MEMORY_MANIFEST, Reply::Raw(large((64 << 10) + 1)), "larger than"),
        (path::TOOL_MANIFEST, Reply::Raw(large((256 << 10) + 1)), "larger than"),
        (path::MEMORY_MANIFEST, Reply::Raw(endless), "larger than"),
        (path::DID, Reply::Bare(deep("id")), "did.json"),
        (path::MEMORY_MANIFEST, Reply::Bare(deep("principal")), "oap-memory.json"),
        (path::TOOL_MANIFEST, Reply::Bare(deep("tool")), "oap-tool.json"),
        (path::MEMORY_MANIFEST, Reply::Bare(b"null".to_vec()), ""),
        (path::DID, Reply::Bare(b"{}".to_vec()), "did.json"),
    ];
    let cases = unreachable.into_iter().map(|case| (PeerState::Unreachable, case));
    let cases = cases.chain(disbelieved.into_iter().map(|case| (PeerState::Disbelieved, case)));
    for (number, (state, (path, reply, says))) in cases.enumerate() {
        peer.publish(&shown);
        peer.reply(path, reply);
        let info = check(&world, &peer).await;
        let why = info.trouble.as_ref().map(|trouble| trouble.why.as_str()).unwrap_or_default();
        assert_eq!(info.state, state, "{number} {path}: {why}");
        assert!(why.contains(says) && !why.contains("evil"), "{number} {path}: {why}");
        assert_eq!(info.pinned, pinned, "{number} {path}");
        // A stranger who shows that is not added either.
        let answer = ask(&world, "", json!({"peer": peer.host})).await;
        assert!(!answer.status.is_success(), "{number} {path}: {}", answer.body);
    }
    assert!(other.asked().is_empty(), "a redirect was followed");
    peer.publish(&shown);
    let info = check(&world, &peer).await;
    assert_eq!((info.state, info.pinned, info.notices), (PeerState::Sound, pinned, Vec::new()));
}

/// A host names whom it likes: the principal has to say that its gateway is there.
#[tokio::test]
async fn a_card_that_names_somebody_else() {
    let (world, victim, evil) = (world().await, PlayedPeer::new().await, PlayedPeer::new().await);
    let shown = PlayedPeer::shown(world.now());
    victim.publish(&shown);
    evil.publish(&shown);
    let find = async || ask(&world, "/find", json!({"host": evil.host})).await;
    find().await.ok();
    // The victim's own card at another host.
    evil.reply(path::AGENT_CARD, Reply::Bare(victim.body(path::AGENT_CARD)));
    find().await.refused(400, "invalid_input");
    // A card of the host's own that nobody signed, or somebody else did, or that was changed.
    evil.publish(&shown);
    let card: Value = serde_json::from_slice(&evil.body(path::AGENT_CARD)).unwrap();
    let change = |pointer: &str, value: Value| {
        let mut changed = card.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        evil.reply(path::AGENT_CARD, Reply::Bare(changed.to_string().into_bytes()));
    };
    for (pointer, value) in [
        ("/signatures", json!([])),
        ("/name", json!("Another")),
        ("/capabilities/extensions/0/description", json!("x")),
        ("/signatures/0/signature", json!("AAAA")),
        ("/signatures/0/protected", json!("e30")),
    ] {
        change(pointer, value);
        let message = find().await.refused(400, "invalid_input")["message"].to_string();
        assert!(message.contains("agent card"), "{pointer}: {message}");
    }
    // A card without the extension is that of an agent of another kind: the manifest is looked for.
    change("/capabilities/extensions/0/uri", json!("urn:other"));
    assert_eq!(find().await.ok()["through"], "memory_manifest");
    // A manifest of the victim's at another host.
    evil.reply(path::AGENT_CARD, Reply::Raw(http("404 Not Found", "", b"")));
    evil.reply(path::MEMORY_MANIFEST, Reply::Bare(victim.body(path::MEMORY_MANIFEST)));
    let message = find().await.refused(400, "invalid_input")["message"].to_string();
    assert!(message.contains("another gateway"), "{message}");
    assert_eq!(world.owner("GET", PEERS, None).await.ok(), json!({"peers": []}));
}

/// Nobody leads the gateway into its own network: nothing is even connected to.
#[tokio::test]
async fn a_private_address_is_not_asked() {
    let world = World::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for peer in [format!("did:web:localhost%3A{port}"), format!("localhost:{port}")] {
        let answer = ask(&world, "", json!({"peer": peer})).await;
        assert!(answer.refused(400, "invalid_input")["message"].as_str().unwrap().contains("public address"));
    }
    for peer in ["127.0.0.1", "did:web:127.0.0.1", "https://a.example", "[::1]", ""] {
        ask(&world, "", json!({"peer": peer})).await.refused(400, "invalid_input");
    }
    assert_eq!(listener.accept().map(|_| ()).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // Nobody is a peer of their own, and nobody is asked for that.
    let message = ask(&world, "", json!({"peer": PRINCIPAL})).await.refused(400, "invalid_input");
    assert!(message["message"].as_str().unwrap().contains("this gateway itself"));
}

/// A host that takes the question and says nothing is given up, and nothing else waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_says_nothing_holds_nothing_up() {
    let (world, peer, _) = pinned().await;
    peer.reply(path::DID, Reply::Silent);
    let gateway = world.gateway.clone();
    let owner = world.proved().await;
    let did = peer.did.clone();
    let look = tokio::spawn(async move { Peers(&gateway).check(&owner, &did).await });
    // Meanwhile the owner goes on.
    world.capture(&[note("tea", &[])]).await;
    let info = tokio::time::timeout(Duration::from_secs(60), look).await.unwrap().unwrap().unwrap();
    assert_eq!(info.state, PeerState::Unreachable);
    assert!(info.trouble.unwrap().why.contains("five seconds"));
}

/// A principal whose document names no gateway, or none any more, has none: whoever got the host of its former one shows an old manifest
/// that the principal did sign.
#[tokio::test]
async fn a_document_that_names_no_gateway() {
    let (world, peer, _) = pinned().await;
    let mut document: Value = serde_json::from_slice(&peer.body(path::DID)).unwrap();
    assert!(document.as_object_mut().unwrap().remove("service").is_some());
    peer.reply(path::DID, Reply::Bare(document.to_string().into_bytes()));
    let info = check(&world, &peer).await;
    assert_eq!(info.state, PeerState::Disbelieved);
    ask(&world, "/find", json!({"host": peer.host})).await.refused(400, "invalid_input");
    ask(&world, "/remove", json!({"did": peer.did})).await.ok();
    ask(&world, "", json!({"peer": peer.host})).await.refused(400, "invalid_input");
    assert_eq!(world.owner("GET", PEERS, None).await.ok(), json!({"peers": []}));
}

/// What was looked at by a clock that stood a hundred days ahead is looked at again once the owner has set it right, and what is seen then
/// counts.
#[tokio::test]
async fn a_clock_that_stood_ahead_puts_no_look_off() {
    let (world, peer, shown) = pinned().await;
    let start = world.now();
    world.clock.set(start.plus(Duration::from_secs(100 * 86_400)));
    assert_eq!(check(&world, &peer).await.state, PeerState::Sound);
    world.clock.set(start);
    world.owner("POST", "/oap/owner/clock/accept", None).await.ok();
    peer.publish(&Shown { claims: vec!["L1"], ..shown });
    assert_eq!(Peers(&world.gateway).check_due().await.unwrap(), 1);
    assert_eq!(state(&world, &peer).await, PeerState::Changed);
    let info = check(&world, &peer).await;
    assert_eq!((info.state, changes(&info).0), (PeerState::Changed, vec!["claim_lowered"]));
    assert_eq!(Peers(&world.gateway).check_due().await.unwrap(), 0);
}

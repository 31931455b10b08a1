//! What strangers, thieves and hostile pages try.

use super::*;
use oap_gateway::Config;
use oap_gateway::service::Tools;
use oap_gateway::state::waiting::MAX_WAITING_PER_NETWORK;
use oap_gateway::{api::agents::ToolCall, error::Unproved};
use oap_identity::{Random, random::Seeded};
use oap_store::Store;
use std::net::TcpListener;
use std::sync::Arc;

#[tokio::test]
async fn a_code_is_used_once_and_a_second_use_ends_what_it_gave() {
    let world = world().await;
    let code = code(&world, &[]).await;
    let given = exchange(&world, &code, &[]).await.json();
    let access = text(&given, "access_token");
    assert_eq!(uses(&world, &access).await, 200);
    refused(&exchange(&world, &code, &[]).await, "invalid_grant");
    assert_eq!(uses(&world, &access).await, 401);
    refused(&refresh(&world, &text(&given, "refresh_token"), &[]).await, "invalid_grant");
}

#[tokio::test]
async fn of_two_who_use_a_code_at_once_nobody_keeps_it() {
    let world = world().await;
    let code = code(&world, &[]).await;
    let (one, two) = tokio::join!(exchange(&world, &code, &[]), exchange(&world, &code, &[]));
    assert!(one.status == 400 || two.status == 400);
    for got in [one, two] {
        if got.status == 200 {
            assert_eq!(uses(&world, &text(&got.json(), "access_token")).await, 401);
        }
    }
}

#[tokio::test]
async fn a_stolen_code_is_worth_nothing() {
    let world = world().await;
    with_client(&world, "other", &[REDIRECT]).await;
    for change in [
        ("code_verifier", "aBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        // As it would be with the method `plain`.
        ("code_verifier", challenge().as_str()),
        ("client_id", "other"),
        ("redirect_uri", "https://app.example/cb"),
        ("redirect_uri", "http://127.0.0.1:33419/callback"),
    ] {
        let code = code(&world, &[]).await;
        refused(&exchange(&world, &code, &[change]).await, "invalid_grant");
        // It was burnt.
        refused(&exchange(&world, &code, &[]).await, "invalid_grant");
    }
    assert_eq!(world.owner("GET", "/oap/owner/oauth/consents", None).await.ok()["given"], json!([]));
    let code = code(&world, &[]).await;
    for (change, error) in [
        (("resource", "https://other.example/mcp"), "invalid_target"),
        (("code_verifier", ""), "invalid_request"),
        (("grant_type", "client_credentials"), "unsupported_grant_type"),
        (("client_secret", "x"), "invalid_client"),
        (("client_id", ""), "invalid_request"),
    ] {
        refused(&exchange(&world, &code, &[change]).await, error);
    }
    let basic = exchange_with(&world, &code, &[], &[("authorization", "Basic ZGVzazp4")]).await;
    assert_eq!((basic.status, basic.json()["error"].as_str()), (401, Some("invalid_client")));
    assert_eq!(basic.authenticate, ["Basic realm=\"clients are public here\""]);
    let json = world.raw("POST", "/oauth/token", &[], Some(&json!({"code": code}))).await;
    assert_eq!((json.status.as_u16(), json.body["error"].as_str()), (400, Some("invalid_request")));
    let twice = [
        ("grant_type", "authorization_code"),
        ("client_id", "desk"),
        ("code", "a"),
        ("code", "b"),
        ("code_verifier", VERIFIER),
    ];
    refused(&post_form(&world, "/oauth/token", &twice, &[]).await, "invalid_request");
    let long = "x".repeat(oap_gateway::oauth::token::MAX_FORM);
    refused(&exchange(&world, &code, &[("code_verifier", &long)]).await, "invalid_request");
    assert_eq!(exchange(&world, &code, &[]).await.status, 200);
}

/// Nobody is sent anywhere by a request that is refused, nor by one that the owner refused.
#[tokio::test]
async fn no_open_redirect() {
    let world = world().await;
    for change in [
        ("redirect_uri", "https://evil.example/cb"),
        ("redirect_uri", "https://app.example/cb/../../evil"),
        ("redirect_uri", "https://app.example.evil.example/cb"),
        ("redirect_uri", "http://127.0.0.1:33418/other"),
        ("redirect_uri", "http://localhost:33418/callback"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", ""),
        ("client_id", "unknown"),
        ("client_id", "http://app.example/client.json"),
        ("client_id", ""),
        ("response_type", "token"),
        ("code_challenge_method", "plain"),
        ("code_challenge_method", ""),
        ("code_challenge", ""),
        ("resource", "https://other.example/mcp"),
        ("scope", "openid"),
    ] {
        let got = get(&world, &asks(&[change])).await;
        assert_eq!((got.status, got.location), (400, None), "{change:?}");
        assert!(got.policy.is_some() && !got.text.contains("evil"), "{change:?} {}", got.text);
    }
    let twice = format!("{}&redirect_uri=https://evil.example/", asks(&[]));
    assert_eq!(get(&world, &twice).await.status, 400);

    // RFC 8252: any port of loopback, and the answer goes there.
    let moved = "http://127.0.0.1:50000/callback";
    let (page, shown) = waits(&world, &[("redirect_uri", moved)]).await;
    approve(&world, &shown, &json!({"agent": "scout"})).await.ok();
    assert_eq!(answered(&get(&world, &page).await).0, moved);

    let (page, shown) =
        waits(&world, &[("redirect_uri", "https://app.example/cb"), ("state", "\"><script>x")]).await;
    world.owner("POST", &format!("/oap/owner/oauth/consents/{shown}/decline"), Some(&json!({}))).await.ok();
    let no = get(&world, &page).await;
    assert_eq!((no.status, &no.location), (200, &None));
    assert!(
        no.text.contains("https://app.example/cb?error=access_denied&amp;state=")
            && !no.text.contains("<script"),
        "{}",
        no.text
    );
    assert_eq!(get(&world, &page).await.status, 404);
    world
        .owner("POST", &format!("/oap/owner/oauth/consents/{shown}/decline"), Some(&json!({})))
        .await
        .refused(409, "conflict");
}

/// The client's `state` comes back as it was, whatever is in it: with it the client knows its own request (CSRF).
#[tokio::test]
async fn state_comes_back_as_it_was() {
    let world = world().await;
    for state in ["a", "&code=evil&iss=https://evil.example", "\r\nSet-Cookie: a=b", "\u{1f375}#?%00"] {
        let (page, shown) = waits(&world, &[("state", state)]).await;
        approve(&world, &shown, &json!({"agent": "scout"})).await.ok();
        let (_, pairs) = answered(&get(&world, &page).await);
        assert_eq!((pairs["state"].as_str(), pairs["iss"].as_str(), pairs.len()), (state, ORIGIN, 3));
    }
    let (page, shown) = waits(&world, &[("state", "")]).await;
    approve(&world, &shown, &json!({"agent": "scout"})).await.ok();
    assert!(!answered(&get(&world, &page).await).1.contains_key("state"));
}

/// A refresh token that comes a second time ends everything: of the two who have it nobody knows who is the client.
#[tokio::test]
async fn a_refresh_token_is_used_once() {
    let world = world().await;
    with_client(&world, "other", &[REDIRECT]).await;
    let (access, first) = tokens(&world, &[]).await;
    refused(&refresh(&world, &first, &[("client_id", "other")]).await, "invalid_grant");
    refused(&refresh(&world, &first, &[("scope", "memory.admin")]).await, "invalid_scope");
    refused(&refresh(&world, &first, &[("resource", "https://other.example/mcp")]).await, "invalid_target");
    refused(&refresh(&world, &access, &[]).await, "invalid_grant");
    let given = refresh(&world, &first, &[]).await.json();
    let (second, next) = (text(&given, "access_token"), text(&given, "refresh_token"));
    assert_eq!(uses(&world, &second).await, 200);
    refused(&refresh(&world, &first, &[]).await, "invalid_grant");
    assert_eq!((uses(&world, &access).await, uses(&world, &second).await), (401, 401));
    refused(&refresh(&world, &next, &[]).await, "invalid_grant");

    let (_, token) = tokens(&world, &[]).await;
    let (one, two) = tokio::join!(refresh(&world, &token, &[]), refresh(&world, &token, &[]));
    let given: Vec<&Got> = [&one, &two].into_iter().filter(|got| got.status == 200).collect();
    assert_eq!(given.len(), 1);
    assert_eq!(uses(&world, &text(&given[0].json(), "access_token")).await, 401);
}

/// A token is for `/mcp` of this gateway, and opens nothing else; no other credential becomes one.
#[tokio::test]
async fn a_token_has_one_audience() {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
    let (kept, before) = Kept::new().await;
    made(&before, "scout", "memory.write").await;
    with_client(&before, "desk", &[REDIRECT]).await;
    let (access, next) = tokens(&before, &[]).await;
    assert_eq!(uses(&before, &access).await, 200);
    let bearer = format!("Bearer {access}");
    let authorization = [("authorization", bearer.as_str())];
    let call = json!({"tool": "memory_status", "arguments": {}});
    before.raw("POST", "/oap/agent/call", &authorization, Some(&call)).await.refused(401, "auth_required");
    before.raw("GET", "/api/v1/memory", &authorization, None).await.refused(401, "auth_required");
    before.raw("GET", "/oap/owner/items", &authorization, None).await.refused(401, "auth_required");
    before
        .raw("POST", "/oap/memory/query", &authorization, Some(&json!({})))
        .await
        .refused(401, "auth_required");
    // Nor in the address, nor beside a key.
    let message = tool("memory_status", json!({}));
    let address = format!("/mcp?access_token={access}");
    let got = mcp_at(&before, &address, &[], &message).await;
    assert_eq!((got.status, got.text.contains(&access)), (400, false));
    assert_eq!(mcp_at(&before, &address, &authorization, &message).await.status, 400);
    assert_eq!(mcp(&before, &[authorization[0], ("x-api-key", "x")], &message).await.status, 401);
    assert_eq!(mcp(&before, &[authorization[0], authorization[0]], &message).await.status, 401);
    // A grant's token, the owner's, and a refresh token are none.
    let grant = before.issue(&before.draft(&agent(7))).await;
    let granted = before.token(&agent(7), &grant).await;
    for other in [granted, before.token.clone(), next.clone(), String::new(), format!("{access}x")] {
        assert_eq!(uses(&before, &other).await, 401);
    }
    drop(before);
    // The same store under another address: its /mcp is another resource.
    let config = Config { origin: Some("https://other.example".parse().unwrap()), ..Config::default() };
    let after = World::open(kept.store(), config, random.clone()).await;
    assert_eq!(uses(&after, &access).await, 401);
    let form = [("grant_type", "refresh_token"), ("refresh_token", next.as_str()), ("client_id", "desk")];
    refused(&post_form(&after, "/oauth/token", &form, &[]).await, "invalid_grant");
    drop(after);
    // Out of a backup.
    let (kept, before) = Kept::new().await;
    made(&before, "scout", "memory.write").await;
    with_client(&before, "desk", &[REDIRECT]).await;
    let (access, _) = tokens(&before, &[]).await;
    drop(before);
    let store: Store = kept.store();
    oap_gateway::Gateway::end_tokens(&store, &*random).await.unwrap();
    drop(store);
    assert_eq!(uses(&kept.open().await, &access).await, 401);
}

/// So it is with an agent that holds its own key: its API key, which is bound to that, ends with the rotation, and what its clients have.
#[tokio::test]
async fn a_rotation_ends_the_clients_of_an_agent_with_its_own_key() {
    let world = world().await;
    let new = json!({"name": "far", "permission": "memory.write", "did": agent(41).did()});
    world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    for end in ["rotate", "remove"] {
        let (page, shown) = waits(&world, &[]).await;
        approve(&world, &shown, &json!({"agent": "far"})).await.ok();
        let code = answered(&get(&world, &page).await).1["code"].clone();
        let given = exchange(&world, &code, &[]).await.json();
        let access = text(&given, "access_token");
        assert_eq!(uses(&world, &access).await, 200);
        world.owner("POST", &format!("/oap/owner/agents/far/{end}"), Some(&json!({}))).await.ok();
        assert_eq!(uses(&world, &access).await, 401, "{end}");
        refused(&refresh(&world, &text(&given, "refresh_token"), &[]).await, "invalid_grant");
    }
}

/// Whatever ends the agent ends its clients, at once: also those that were let in and commit later.
#[tokio::test]
async fn the_agents_end_is_its_tokens_end() {
    for end in ["rotate", "remove"] {
        let world = world().await;
        let (access, next) = tokens(&world, &[]).await;
        let inside = world.gateway.agent_by_token(&access).unwrap().agent;
        let (page, shown) = waits(&world, &[]).await;
        approve(&world, &shown, &json!({"agent": "scout"})).await.ok();
        world.owner("POST", &format!("/oap/owner/agents/scout/{end}"), Some(&json!({}))).await.ok();
        assert_eq!(uses(&world, &access).await, 401, "{end}");
        let call: ToolCall =
            serde_json::from_value(json!({"tool": "memory_learn", "arguments": {"content": "x"}})).unwrap();
        let late = Tools(&world.gateway).call(&inside, call).await;
        assert!(matches!(late, Err(oap_gateway::Error::Owner(Unproved::TokenEnded))), "{end}");
        refused(&refresh(&world, &next, &[]).await, "invalid_grant");
        let code = answered(&get(&world, &page).await).1["code"].clone();
        refused(&exchange(&world, &code, &[]).await, "invalid_grant");
        assert_eq!(world.owner("GET", "/oap/owner/oauth/consents", None).await.ok()["given"], json!([]));
    }
    // So do the owner's word, the client's end, and time, for a call that is under way.
    let world = world().await;
    let learn = || {
        serde_json::from_value::<ToolCall>(json!({"tool": "memory_learn", "arguments": {"content": "x"}}))
            .unwrap()
    };
    let (access, _) = tokens(&world, &[]).await;
    let inside = world.gateway.agent_by_token(&access).unwrap().agent;
    assert!(Tools(&world.gateway).call(&inside, learn()).await.is_ok());
    world.clock.advance(ACCESS_LIFE);
    assert!(Tools(&world.gateway).call(&inside, learn()).await.is_err());
    let (access, _) = tokens(&world, &[]).await;
    let inside = world.gateway.agent_by_token(&access).unwrap().agent;
    let (waiting, shown) = waits(&world, &[]).await;
    world.owner("POST", "/oap/owner/oauth/clients/desk/remove", Some(&json!({}))).await.ok();
    assert!(Tools(&world.gateway).call(&inside, learn()).await.is_err());
    assert_eq!((uses(&world, &access).await, get(&world, &waiting).await.status), (401, 404));
    approve(&world, &shown, &json!({"agent": "scout"})).await.refused(409, "conflict");
}

/// A lockdown ends what every client has, and what one has the code of; lifting it gives nothing back.
#[tokio::test]
async fn a_lockdown_is_the_end_of_every_client() {
    let mut world = world().await;
    let (access, next) = tokens(&world, &[]).await;
    let code = code(&world, &[]).await;
    let locked = world.owner("POST", "/oap/owner/lockdown", Some(&json!({}))).await.ok();
    assert_eq!(locked["lockdown"]["clients"], 2, "{locked}");
    world.token = locked["trust_token"].as_str().unwrap().to_owned();
    assert_eq!(uses(&world, &access).await, 403);
    for answer in [exchange(&world, &code, &[]).await, refresh(&world, &next, &[]).await] {
        assert_eq!((answer.status, answer.json()["error"].as_str()), (403, Some("policy_block")));
    }
    world.owner("POST", "/oap/owner/lockdown/lift", Some(&json!({}))).await.ok();
    assert_eq!(uses(&world, &access).await, 401);
    refused(&refresh(&world, &next, &[]).await, "invalid_grant");
    refused(&exchange(&world, &code, &[]).await, "invalid_grant");
    assert_eq!(world.owner("GET", "/oap/owner/oauth/consents", None).await.ok()["given"], json!([]));
}

/// Requests that wait are bounded, and no page of another site makes any.
#[tokio::test]
async fn a_flood_of_requests() {
    let world = world().await;
    for (name, value) in [
        ("sec-purpose", "prefetch;prerender"),
        ("sec-fetch-dest", "image"),
        ("sec-fetch-dest", "iframe"),
        ("sec-fetch-dest", "empty"),
    ] {
        let got = get_with(&world, &asks(&[]), &[(name, value)]).await;
        assert_eq!((got.status, got.location), (400, None), "{value}");
    }
    assert_eq!(get_with(&world, &asks(&[]), &[("sec-fetch-dest", "document")]).await.status, 303);
    let (first, _) = waits(&world, &[]).await;
    for _ in 1..MAX_WAITING_PER_NETWORK {
        waits(&world, &[]).await;
    }
    // One more takes the place of the oldest of its own network.
    assert_eq!(get(&world, &first).await.status, 200);
    let (last, _) = waits(&world, &[]).await;
    assert_eq!((get(&world, &first).await.status, get(&world, &last).await.status), (404, 200));
    let list = world.owner("GET", "/oap/owner/oauth/consents", None).await.ok();
    assert_eq!(list["waiting"].as_array().unwrap().len(), MAX_WAITING_PER_NETWORK);
    // What was refused is out of the way.
    for one in list["waiting"].as_array().unwrap() {
        let path = format!("/oap/owner/oauth/waiting/{}/decline", text(one, "waiting"));
        world.owner("POST", &path, Some(&json!({}))).await.ok();
    }
    let (last, _) = waits(&world, &[]).await;
    waits(&world, &[]).await;
    assert_eq!(get(&world, &last).await.status, 200);
    world.clock.advance(WAITS);
    waits(&world, &[]).await;

    let few = Config { anonymous_rpm: 3, ..Config::default() };
    let world = World::with(1, few).await;
    for path in ["/oauth/authorize", "/oauth/authorize/x", "/oauth/authorize"] {
        assert_ne!(get(&world, path).await.status, 429);
    }
    assert_eq!(get(&world, "/oauth/authorize/x").await.status, 429);
    assert_eq!(post_form(&world, "/oauth/token", &[], &[]).await.status, 429);
    assert_eq!(uses(&world, "oapt_x").await, 429);
}

/// A client's address leads to no private network: nobody is even connected to.
#[tokio::test]
async fn a_clients_document_at_a_private_address() {
    let world = world().await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("[::ffff:7f00:1]:{port}"),
        "10.0.0.1".to_owned(),
        "169.254.169.254".to_owned(),
        "[::1]".to_owned(),
    ] {
        let client = format!("https://{host}/client.json");
        let got = get(&world, &asks(&[("client_id", &client)])).await;
        assert_eq!((got.status, got.location), (400, None), "{host}");
        assert!(
            got.text.contains("not reached over https at a public address") && !got.text.contains(&host),
            "{}",
            got.text
        );
    }
    assert_eq!(listener.accept().map(|_| ()).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

/// Pages in a browser are nobody's client, whatever they bring; and no name of somebody else's leads here.
#[tokio::test]
async fn pages_that_were_led_here() {
    let config: Config = serde_json::from_value({
        let mut config = serde_json::to_value(Config::default()).unwrap();
        config["mcp_origins"] = json!(["vscode-file://vscode-app"]);
        config["mcp_hosts"] = json!(["nas.local"]);
        config
    })
    .unwrap();
    let world = World::with(1, config).await;
    let key = made(&world, "scout", "memory.write").await;
    let bearer = format!("Bearer {key}");
    let message = tool("memory_status", json!({}));
    for (headers, status) in [
        (vec![], 200),
        (vec![("origin", "vscode-file://vscode-app")], 200),
        (vec![("origin", "https://evil.example")], 403),
        (vec![("origin", "https://user.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("origin", "vscode-file://vscode-app"), ("origin", "https://evil.example")], 403),
        (vec![("host", "user.example")], 200),
        (vec![("host", "127.0.0.1:8443")], 200),
        (vec![("host", "NAS.local:8443")], 200),
        (vec![("host", "evil.example:8443")], 403),
        (vec![("host", "user.example.evil.example")], 403),
    ] {
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend(headers.clone());
        assert_eq!(mcp(&world, &all, &message).await.status, status, "{headers:?}");
        // Before anything is said about credentials.
        let nobody = mcp(&world, &headers, &message).await.status;
        assert_eq!(nobody, if status == 200 { 401 } else { status }, "{headers:?}");
    }
    // Nor does a page under another name begin a request, read its code, or get tokens.
    let evil = [("host", "evil.example:8443")];
    let page = get_with(&world, "/oauth/authorize/x", &evil).await;
    let begun = get_with(&world, &asks(&[]), &evil).await;
    let (token, revoke) = (
        post_form(&world, "/oauth/token", &[], &evil).await,
        post_form(&world, "/oauth/revoke", &[], &evil).await,
    );
    assert_eq!([page.status, begun.status, token.status, revoke.status], [403; 4]);
    assert_eq!(get_with(&world, "/oauth/authorize/x", &[("host", "NAS.local:8443")]).await.status, 404);
    for wrong in ["null", "*", "https://*.example", "https://a.example/", ""] {
        let mut config = serde_json::to_value(Config::default()).unwrap();
        config["mcp_origins"] = json!([wrong]);
        assert!(serde_json::from_value::<Config>(config).is_err(), "{wrong}");
    }
}

/// Whoever is led to a page that another browser opened sees no code, and whoever opened it for somebody else gets nothing of what that
/// one says: the yes goes to the browser that began.
#[tokio::test]
async fn a_page_is_its_browsers() {
    let world = world().await;
    let (page, shown) = waits(&world, &[]).await;
    let (other, _) = waits(&world, &[]).await;
    let of = |path: &str| JAR.with_borrow(|jar| jar[path].clone());
    let (own, others) = (of(&page), of(&other));
    assert_ne!(own, others);
    let padded = format!("{own}x");
    let wrong = [None, Some(others.as_str()), Some("oap_oauth="), Some("oap_oauth"), Some(padded.as_str())];
    let nobody = async || {
        for cookie in wrong {
            let headers: Vec<(&str, &str)> = cookie.map(|cookie| ("cookie", cookie)).into_iter().collect();
            let got = get_with(&world, &page, &headers).await;
            assert_eq!((got.status, &got.location), (404, &None), "{cookie:?}");
            assert!(!got.text.contains("consent"), "{}", got.text);
        }
    };
    nobody().await;
    approve(&world, &shown, &json!({"agent": "scout"})).await.ok();
    nobody().await;
    // Nor does a request for the head alone use the yes up.
    let head = Request::head(&page).header("cookie", &own).body(Body::empty()).unwrap();
    let head = Got::of(world.router.clone().oneshot(head).await.unwrap()).await;
    assert_eq!((head.status, head.location), (400, None));
    // Beside what else a browser has.
    let all = format!("a=b; {own}; oap_oauth=c");
    assert!(answered(&get_with(&world, &page, &[("cookie", &all)]).await).1.contains_key("code"));
    assert_eq!(get(&world, &other).await.status, 200, "another tab waits on");
}

/// A token that is over, or made up from one that somebody saw, ends nothing; one in force ends the yes.
#[tokio::test]
async fn an_old_token_ends_nothing() {
    let world = world().await;
    let (access, first) = tokens(&world, &[]).await;
    let given = refresh(&world, &first, &[]).await.json();
    let (second, next) = (text(&given, "access_token"), text(&given, "refresh_token"));
    let last = if access.ends_with('A') { "B" } else { "A" };
    let made_up = format!("{}{last}", &access[..access.len() - 1]);
    let revoke = async |token: &str| {
        let fields = [("token", token), ("client_id", "desk")];
        post_form(&world, "/oauth/revoke", &fields, &[]).await.status
    };
    for token in [first.as_str(), made_up.as_str()] {
        assert_eq!((revoke(token).await, uses(&world, &second).await), (200, 200));
    }
    assert_eq!((revoke(&next).await, uses(&world, &second).await), (200, 401));
    // A refresh token of nothing is refused, too.
    refused(&refresh(&world, &format!("oapr_{}", "A".repeat(64)), &[]).await, "invalid_grant");
}

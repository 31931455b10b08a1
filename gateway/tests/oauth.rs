//! OAuth for `/mcp`: the whole way of a client, and every attack on it that ends in a refusal.

mod attacks;
mod keys;

use crate::common::*;
use axum::body::Body;
use axum::http::{Request, Response};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_gateway::state::approvals::{ACCESS_LIFE, IDLE, WHOLE};
use oap_gateway::state::waiting::{CODE_LIFE, WAITS};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;
use tower::ServiceExt;
use url::{Url, form_urlencoded};

const REDIRECT: &str = "http://127.0.0.1:33418/callback";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const MCP: &str = "https://user.example/mcp";

/// Sends a request; status, headers and text.
struct Got {
    status: u16,
    location: Option<String>,
    /// What the browser is to keep: the path, and the cookie for it.
    cookie: Option<(String, String)>,
    authenticate: Vec<String>,
    policy: Option<String>,
    text: String,
}

impl Got {
    async fn of(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let authenticate = head.headers.get_all("www-authenticate").iter();
        let authenticate = authenticate.map(|value| value.to_str().unwrap().to_owned()).collect();
        let cookie = header("set-cookie").map(|cookie| {
            assert!(cookie.contains("; HttpOnly; SameSite=Lax; Secure"), "{cookie}");
            let (pair, rest) = cookie.split_once("; Path=").unwrap();
            (rest.split(';').next().unwrap().to_owned(), pair.to_owned())
        });
        let (location, policy) = (header("location"), header("content-security-policy"));
        let text = axum::body::to_bytes(body, 1 << 20).await.unwrap().to_vec();
        Self {
            status: head.status.as_u16(),
            location,
            cookie,
            authenticate,
            policy,
            text: String::from_utf8(text).unwrap(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{}", self.text))
    }
}

thread_local! {
    /// The cookies of the one browser of a test, by path. A test runs on a thread of its own.
    static JAR: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
}

/// The browser opens an address.
async fn get(world: &World, path: &str) -> Got {
    let cookie = JAR.with_borrow(|jar| jar.get(path).cloned());
    let headers: Vec<(&str, &str)> = cookie.iter().map(|cookie| ("cookie", cookie.as_str())).collect();
    let got = get_with(world, path, &headers).await;
    JAR.with_borrow_mut(|jar| jar.extend(got.cookie.clone()));
    got
}

/// Somebody opens an address whose browser keeps nothing.
async fn get_with(world: &World, path: &str, headers: &[(&str, &str)]) -> Got {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Got::of(world.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()).await
}

async fn post_form(world: &World, path: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Got {
    let form: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let mut request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Got::of(world.router.clone().oneshot(request.body(Body::from(form)).unwrap()).await.unwrap()).await
}

/// A message to `/mcp`.
async fn mcp(world: &World, headers: &[(&str, &str)], message: &Value) -> Got {
    mcp_at(world, "/mcp", headers, message).await
}

async fn mcp_at(world: &World, path: &str, headers: &[(&str, &str)], message: &Value) -> Got {
    let mut request = Request::post(path)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Body::from(message.to_string());
    Got::of(world.router.clone().oneshot(request.body(body).unwrap()).await.unwrap()).await
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

/// The status of a call of a tool with a token.
async fn uses(world: &World, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    mcp(world, &[("authorization", &bearer)], &tool("memory_status", json!({}))).await.status
}

/// Makes an agent; its API key.
async fn made(world: &World, name: &str, permission: &str) -> String {
    let new = json!({"name": name, "permission": permission});
    let made = world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    made["api_key"].as_str().unwrap().to_owned()
}

/// A world with the agent `scout` and the client `desk`.
async fn world() -> World {
    let world = World::new().await;
    made(&world, "scout", "memory.write").await;
    with_client(&world, "desk", &[REDIRECT, "https://app.example/cb"]).await;
    world
}

async fn with_client(world: &World, name: &str, redirects: &[&str]) {
    let new = json!({"name": name, "redirect_uris": redirects});
    world.owner("POST", "/oap/owner/oauth/clients", Some(&new)).await.ok();
}

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER))
}

/// The address that a client opens in the browser, with these parameters in place of its usual ones.
fn asks(change: &[(&str, &str)]) -> String {
    let challenge = challenge();
    let mut parameters: BTreeMap<&str, &str> = BTreeMap::from([
        ("client_id", "desk"),
        ("redirect_uri", REDIRECT),
        ("response_type", "code"),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", MCP),
        ("scope", "memory.read memory.write"),
        ("state", "af0ifjsldkj"),
    ]);
    parameters.extend(change.iter().copied());
    parameters.retain(|_, value| !value.is_empty());
    let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("/oauth/authorize?{query}")
}

/// A request that waits: the path of its page, and the code that it shows.
async fn waits(world: &World, change: &[(&str, &str)]) -> (String, String) {
    let begun = get(world, &asks(change)).await;
    assert_eq!(begun.status, 303, "{}", begun.text);
    let page = begun.location.unwrap();
    assert!(page.starts_with("/oauth/authorize/"), "{page}");
    let shown = get(world, &page).await;
    assert_eq!(shown.status, 200);
    let (_, code) = shown.text.split_once("consent approve ").unwrap();
    (page, code[..9].to_owned())
}

async fn approve(world: &World, code: &str, body: &Value) -> Answer {
    world.owner("POST", &format!("/oap/owner/oauth/consents/{code}/approve"), Some(body)).await
}

/// What the redirect after a yes carries.
fn answered(got: &Got) -> (String, BTreeMap<String, String>) {
    assert_eq!(got.status, 303, "{}", got.text);
    let url: Url = got.location.as_ref().unwrap().parse().unwrap();
    let pairs = url.query_pairs().into_owned().collect();
    (got.location.clone().unwrap().split('?').next().unwrap().to_owned(), pairs)
}

/// A code, by the owner's yes to `scout`.
async fn code(world: &World, change: &[(&str, &str)]) -> String {
    let (page, shown) = waits(world, change).await;
    approve(world, &shown, &json!({"agent": "scout"})).await.ok();
    answered(&get(world, &page).await).1["code"].clone()
}

/// The form of a code, with these fields in place of the usual ones.
async fn exchange(world: &World, code: &str, change: &[(&str, &str)]) -> Got {
    exchange_with(world, code, change, &[]).await
}

async fn exchange_with(world: &World, code: &str, change: &[(&str, &str)], headers: &[(&str, &str)]) -> Got {
    let mut fields = BTreeMap::from([
        ("grant_type", "authorization_code"),
        ("code", code),
        ("client_id", "desk"),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
        ("resource", MCP),
    ]);
    fields.extend(change.iter().copied());
    fields.retain(|_, value| !value.is_empty());
    let fields: Vec<(&str, &str)> = fields.into_iter().collect();
    post_form(world, "/oauth/token", &fields, headers).await
}

async fn refresh(world: &World, token: &str, change: &[(&str, &str)]) -> Got {
    let mut fields = BTreeMap::from([
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", "desk"),
        ("resource", MCP),
    ]);
    fields.extend(change.iter().copied());
    fields.retain(|_, value| !value.is_empty());
    let fields: Vec<(&str, &str)> = fields.into_iter().collect();
    post_form(world, "/oauth/token", &fields, &[]).await
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_else(|| panic!("{member}: {value}")).to_owned()
}

/// Access and refresh token, by the owner's yes.
async fn tokens(world: &World, change: &[(&str, &str)]) -> (String, String) {
    let code = code(world, change).await;
    let given = exchange(world, &code, &[]).await;
    assert_eq!(given.status, 200, "{}", given.text);
    let given = given.json();
    (text(&given, "access_token"), text(&given, "refresh_token"))
}

#[track_caller]
fn refused(got: &Got, code: &str) {
    assert_eq!((got.status, got.json()["error"].as_str()), (400, Some(code)), "{}", got.text);
}

/// From a request without a credential to memory, as a client goes.
#[tokio::test]
async fn the_whole_way() {
    let world = world().await;
    let nobody = mcp(&world, &[], &tool("memory_status", json!({}))).await;
    assert_eq!(nobody.status, 401);
    assert_eq!(
        nobody.authenticate,
        [
            "Bearer resource_metadata=\"https://user.example/.well-known/oauth-protected-resource/mcp\", scope=\"memory.read memory.write\"",
            "DPoP algs=\"EdDSA\""
        ]
    );
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let resource = get(&world, path).await.json();
        assert_eq!(
            (&resource["resource"], &resource["authorization_servers"]),
            (&json!(MCP), &json!([ORIGIN]))
        );
    }
    let server = get(&world, "/.well-known/oauth-authorization-server").await.json();
    assert_eq!(server["issuer"], ORIGIN);
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(server["authorization_response_iss_parameter_supported"], true);
    assert_eq!(server.get("registration_endpoint"), None);

    let (page, shown) = waits(&world, &[]).await;
    let waiting = get(&world, &page).await;
    assert!(
        waiting
            .policy
            .unwrap()
            .contains("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    );
    assert!(waiting.text.contains("127.0.0.1:33418") && waiting.text.contains("http-equiv=\"refresh\""));
    let listed = world.owner("GET", "/oap/owner/oauth/consents", None).await.ok();
    assert_eq!(listed["waiting"][0]["client_id"], "desk");
    // Who says yes has seen the page.
    assert!(!listed.to_string().contains(&shown) && !listed.to_string().contains(&shown.replace('-', "")));
    let given = approve(&world, &shown.to_lowercase(), &json!({"agent": "scout"})).await.ok();
    assert_eq!((&given["agent"], &given["permission"]), (&json!("scout"), &json!("memory.write")));
    let (to, pairs) = answered(&get(&world, &page).await);
    assert_eq!(to, REDIRECT);
    assert_eq!((pairs["state"].as_str(), pairs["iss"].as_str(), pairs.len()), ("af0ifjsldkj", ORIGIN, 3));
    assert_eq!(get(&world, &page).await.status, 404, "the code is told once");

    let tokens = exchange(&world, &pairs["code"], &[]).await;
    assert_eq!(tokens.status, 200, "{}", tokens.text);
    let tokens = tokens.json();
    assert_eq!(
        (&tokens["token_type"], &tokens["expires_in"]),
        (&json!("Bearer"), &json!(ACCESS_LIFE.as_secs()))
    );
    assert_eq!(tokens["scope"], "memory.read memory.write");
    let (access, next) = (text(&tokens, "access_token"), text(&tokens, "refresh_token"));
    let bearer = format!("Bearer {access}");
    let learned =
        mcp(&world, &[("authorization", &bearer)], &tool("memory_learn", json!({"content": "tea is green"})))
            .await;
    assert!(learned.json()["result"]["structuredContent"]["item_id"].is_string(), "{}", learned.text);
    // What it wrote and was given is its agent's.
    let injected = world.owner("GET", "/oap/owner/agents/scout/injected", None).await.ok();
    assert_eq!(injected["agent"]["name"], "scout");
    for version in ["2025-06-18", "2025-11-25"] {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let hello = mcp(&world, &[("authorization", &bearer)], &hello).await.json();
        assert_eq!(hello["result"]["protocolVersion"], version, "{hello}");
    }

    let renewed = refresh(&world, &next, &[]).await.json();
    let (second, third) = (text(&renewed, "access_token"), text(&renewed, "refresh_token"));
    // A request under way is not broken by a renewal; of three tokens the oldest has ended.
    assert_eq!((uses(&world, &access).await, uses(&world, &second).await), (200, 200));
    let renewed = refresh(&world, &third, &[("scope", "memory.read")]).await.json();
    assert_eq!(renewed["scope"], "memory.read");
    assert_eq!((uses(&world, &access).await, uses(&world, &second).await), (401, 200));
    let done = post_form(&world, "/oauth/revoke", &[("token", &second), ("client_id", "desk")], &[]).await;
    assert_eq!(done.status, 200);
    assert_eq!(uses(&world, &second).await, 401);
    assert_eq!(world.owner("GET", "/oap/owner/oauth/consents", None).await.ok()["given"], json!([]));
}

#[tokio::test]
async fn everything_ends() {
    let world = world().await;
    let (page, shown) = waits(&world, &[]).await;
    world.clock.advance(WAITS);
    assert_eq!(get(&world, &page).await.status, 404);
    approve(&world, &shown, &json!({"agent": "scout"})).await.refused(409, "conflict");

    let late = code(&world, &[]).await;
    world.clock.advance(CODE_LIFE);
    refused(&exchange(&world, &late, &[]).await, "invalid_grant");

    let (access, next) = tokens(&world, &[]).await;
    world.clock.advance(ACCESS_LIFE - Duration::from_secs(1));
    assert_eq!(uses(&world, &access).await, 200);
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(uses(&world, &access).await, 401);
    world.clock.advance(IDLE);
    refused(&refresh(&world, &next, &[]).await, "invalid_grant");

    let (_, mut next) = tokens(&world, &[]).await;
    let mut lasted = Duration::ZERO;
    let half = IDLE / 2;
    loop {
        world.clock.advance(half);
        lasted += half;
        let renewed = refresh(&world, &next, &[]).await;
        if renewed.status != 200 {
            refused(&renewed, "invalid_grant");
            break;
        }
        next = text(&renewed.json(), "refresh_token");
    }
    assert!(lasted >= WHOLE && lasted < WHOLE + IDLE, "{lasted:?}");
}

/// The owner's own word decides, and decides how much.
#[tokio::test]
async fn the_owner_gives_what_they_want() {
    let world = world().await;
    made(&world, "reader", "memory.read").await;
    made(&world, "boss", "memory.admin").await;
    let given = async |change: &[(&str, &str)], body: Value| {
        let (_, shown) = waits(&world, change).await;
        approve(&world, &shown, &body).await
    };
    let most = given(&[], json!({"agent": "boss"})).await.ok();
    assert_eq!(most["permission"], "memory.write", "no more than it asked for");
    let less = given(&[], json!({"agent": "reader"})).await.ok();
    assert_eq!(less["permission"], "memory.read", "no more than the agent may");
    let less = given(&[], json!({"agent": "scout", "permission": "memory.read"})).await.ok();
    assert_eq!(less["permission"], "memory.read");
    let least = given(&[("scope", "")], json!({"agent": "boss"})).await.ok();
    assert_eq!(least["permission"], "memory.read", "whoever does not say gets the least");
    given(&[], json!({"agent": "boss", "permission": "memory.admin"})).await.refused(409, "conflict");
    given(&[], json!({"agent": "reader", "permission": "memory.write"})).await.refused(409, "conflict");
    given(&[], json!({"agent": "nobody"})).await.refused(404, "not_found");
    let list = world.owner("GET", "/oap/owner/oauth/consents", None).await.ok();
    assert_eq!((list["given"].as_array().unwrap().len(), list["waiting"].as_array().unwrap().len()), (4, 3));
    approve(&world, "ABCD-EFGH", &json!({"agent": "scout"})).await.refused(409, "conflict");
    approve(&world, "nonsense", &json!({"agent": "scout"})).await.refused(404, "not_found");

    // An agent's key, and a client's token, say yes to nobody.
    world.clock.advance(WAITS);
    let (_, shown) = waits(&world, &[]).await;
    let (access, _) = tokens(&world, &[]).await;
    let path = format!("/oap/owner/oauth/consents/{shown}/approve");
    let bearer = format!("Bearer {access}");
    let answer =
        world.raw("POST", &path, &[("authorization", &bearer)], Some(&json!({"agent": "scout"}))).await;
    answer.refused(401, "auth_required");
    let consent = text(&less, "consent");
    world.owner("POST", &format!("/oap/owner/oauth/given/{consent}/end"), Some(&json!({}))).await.ok();
    world
        .owner("POST", &format!("/oap/owner/oauth/given/{consent}/end"), Some(&json!({})))
        .await
        .refused(404, "not_found");
}

/// The owner is shown to what the yes is, and the most is given where the owner says so alone.
#[tokio::test]
async fn the_most_is_no_default() {
    let world = world().await;
    made(&world, "boss", "memory.admin").await;
    let all = [("scope", "memory.admin"), ("redirect_uri", "https://app.example/cb")];
    let (_, shown) = waits(&world, &all).await;
    let path = format!("/oap/owner/oauth/consents/{shown}");
    let asks = world.owner("GET", &path, None).await.ok();
    assert_eq!((&asks["client_id"], &asks["redirect_host"]), (&json!("desk"), &json!("app.example")));
    assert_eq!((&asks["permission"], &asks["loopback"]), (&json!("memory.admin"), &json!(false)));
    assert!(asks["network"].is_string() && asks["asked_at"].is_string(), "{asks}");
    // The id in the list is no code: it refuses, and gives nothing.
    let listed = world.owner("GET", "/oap/owner/oauth/consents", None).await.ok();
    assert_eq!(listed["waiting"][0], asks);
    let id = text(&asks, "waiting");
    approve(&world, &id, &json!({"agent": "boss"})).await.refused(404, "not_found");
    let given = approve(&world, &shown, &json!({"agent": "boss"})).await.ok();
    assert_eq!(given["permission"], "memory.write");
    world.owner("GET", &path, None).await.refused(409, "conflict");
    let (_, shown) = waits(&world, &all).await;
    let given = approve(&world, &shown, &json!({"agent": "boss", "permission": "memory.admin"})).await.ok();
    assert_eq!(given["permission"], "memory.admin");

    // Refused by its id, once.
    let (page, shown) = waits(&world, &[]).await;
    let listed = world.owner("GET", "/oap/owner/oauth/consents", None).await.ok();
    let path = format!("/oap/owner/oauth/waiting/{}/decline", text(&listed["waiting"][0], "waiting"));
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    world.owner("POST", &path, Some(&json!({}))).await.refused(409, "conflict");
    approve(&world, &shown, &json!({"agent": "scout"})).await.refused(409, "conflict");
    assert!(get(&world, &page).await.text.contains("error=access_denied"));
}

/// A token that reads does not write, and its client is told what to ask for, where the owner could give it.
#[tokio::test]
async fn a_token_has_its_scope() {
    let world = world().await;
    made(&world, "reader", "memory.read").await;
    let learn = tool("memory_learn", json!({"content": "x"}));
    for (agent, status) in [("scout", 403), ("reader", 200)] {
        let (page, shown) = waits(&world, &[("scope", "memory.read")]).await;
        approve(&world, &shown, &json!({"agent": agent})).await.ok();
        let code = answered(&get(&world, &page).await).1["code"].clone();
        let access = text(&exchange(&world, &code, &[]).await.json(), "access_token");
        let bearer = format!("Bearer {access}");
        let got = mcp(&world, &[("authorization", &bearer)], &learn).await;
        assert_eq!(got.status, status, "{}", got.text);
        if status == 403 {
            assert_eq!(
                got.authenticate,
                [
                    "Bearer error=\"insufficient_scope\", resource_metadata=\"https://user.example/.well-known/oauth-protected-resource/mcp\", scope=\"memory.read memory.write\""
                ]
            );
        } else {
            assert_eq!(got.json()["result"]["isError"], true);
        }
        assert_eq!(uses(&world, &access).await, 200);
    }
    let list = world.owner("GET", "/oap/owner/items", None).await.ok();
    assert_eq!(list["items"], json!([]));
}

/// Two clients of one agent are told apart in the log, and from its API key.
#[tokio::test]
async fn a_receipt_names_the_client() {
    let world = world().await;
    let (access, _) = tokens(&world, &[]).await;
    assert_eq!(uses(&world, &access).await, 200);
    let key = made(&world, "other", "memory.read").await;
    assert_eq!(uses(&world, &key).await, 200);
    let given = world.owner("GET", "/oap/owner/oauth/consents", None).await.ok()["given"][0].clone();
    let log = world.owner("GET", "/oap/audit?chain=@agents", None).await.ok();
    let said = log["receipts"].as_array().unwrap().iter().map(|receipt| &receipt["policy_decisions"][0]);
    let (by_token, others): (Vec<&Value>, Vec<&Value>) = said.partition(|said| said["client_id"] == "desk");
    assert_eq!(by_token.len(), 1, "{log}");
    assert_eq!((&by_token[0]["consent"], &by_token[0]["tool"]), (&given["consent"], &json!("memory_status")));
    let by_key = others.iter().find(|said| said["tool"] == "memory_status").unwrap();
    assert_eq!((&by_key["consent"], &by_key["client_id"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn metadata_is_of_this_gateway() {
    let config =
        oap_gateway::Config { origin: Some("https://m.example:8443".parse().unwrap()), ..Default::default() };
    let world = World::with(1, config).await;
    let got = get_with(&world, "/.well-known/oauth-authorization-server", &[("host", "evil.example")]).await;
    assert_eq!((got.status, got.json()["issuer"].as_str()), (200, Some("https://m.example:8443")));
}

//! The limit of anonymous calls, behind a reverse proxy and before one.

use crate::common::*;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use oap_gateway::system::config::Config;
use std::net::SocketAddr;

/// Calls a minute that a caller may make.
const RPM: u32 = 3;

async fn world() -> World {
    let trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    World::with(1, Config { anonymous_rpm: RPM, trusted_proxies, ..Config::default() }).await
}

async fn call(world: &World, peer: &str, headers: &[(&str, &str)]) -> StatusCode {
    let mut request = Request::builder().method("POST").uri("/oap/discover");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.header("content-type", "application/json");
    let mut request = request.body(Body::from(r#"{"intent": "memory"}"#)).unwrap();
    let peer: SocketAddr = format!("{peer}:4711").parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    world.send(request).await.status
}

async fn spend(world: &World, peer: &str, headers: &[(&str, &str)]) {
    for _ in 0..RPM {
        assert_eq!(call(world, peer, headers).await, StatusCode::OK);
    }
    assert_eq!(call(world, peer, headers).await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn callers_behind_a_trusted_proxy_have_limits_of_their_own() {
    let world = world().await;
    spend(&world, "10.0.0.1", &[("x-forwarded-for", "203.0.113.9")]).await;
    assert_eq!(call(&world, "10.0.0.1", &[("x-forwarded-for", "203.0.113.10")]).await, StatusCode::OK);
    // Through another proxy of ours, and in the other header: the same caller.
    for headers in [("x-forwarded-for", "203.0.113.9, 10.0.0.2"), ("forwarded", "for=\"203.0.113.9:80\"")] {
        assert_eq!(call(&world, "10.0.0.3", &[headers]).await, StatusCode::TOO_MANY_REQUESTS);
    }
    // IPv6 callers by their /64.
    spend(&world, "10.0.0.1", &[("forwarded", "for=\"[2001:db8::1]:4711\"")]).await;
    let neighbour = [("x-forwarded-for", "2001:db8::2")];
    assert_eq!(call(&world, "10.0.0.1", &neighbour).await, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn no_header_gives_a_stranger_another_limit() {
    let world = world().await;
    spend(&world, "203.0.113.9", &[]).await;
    for n in 0..20 {
        let (address, pair) = (format!("198.51.100.{n}"), format!("for=198.51.100.{n}"));
        for header in [("x-forwarded-for", &*address), ("forwarded", &*pair), ("x-real-ip", &*address)] {
            let status = call(&world, "203.0.113.9", &[header]).await;
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{header:?}");
        }
    }
    // And no caller behind a proxy, however much they write before what the proxy says.
    let world = self::world().await;
    spend(&world, "10.0.0.1", &[("x-forwarded-for", "203.0.113.9")]).await;
    for n in 0..20 {
        let forged = format!("198.51.100.{n}, 203.0.113.9");
        let status = call(&world, "10.0.0.1", &[("x-forwarded-for", &forged)]).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    }
}

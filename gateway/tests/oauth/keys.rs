//! Tokens that are bound to a key (RFC 9449): a thief of the token has nothing.

use super::*;
use oap_grants::dpop;
use oap_identity::Signer;
use oap_identity::random::Seeded;
use std::sync::atomic::{AtomicU64, Ordering};

/// A proof of a key for a request; with a token where that goes along.
fn proof(world: &World, key: &Signer, path: &str, token: &str) -> String {
    static DRAWN: AtomicU64 = AtomicU64::new(7_000_000);
    let random = Seeded::new(DRAWN.fetch_add(1, Ordering::SeqCst));
    let url = format!("{ORIGIN}{path}");
    dpop::prove(key, dpop::Request { method: "POST", url: &url }, token, world.now(), &random).unwrap()
}

async fn call(world: &World, scheme: &str, token: &str, proof: &str) -> Got {
    let authorization = format!("{scheme} {token}");
    let headers = [("authorization", authorization.as_str()), ("dpop", proof)];
    mcp(world, &headers[..if proof.is_empty() { 1 } else { 2 }], &tool("memory_status", json!({}))).await
}

#[tokio::test]
async fn a_bound_token_needs_its_key() {
    let world = world().await;
    let (key, thief) = (agent(40), agent(41));
    let code = code(&world, &[]).await;
    let given =
        exchange_with(&world, &code, &[], &[("dpop", &proof(&world, &key, "/oauth/token", ""))]).await;
    assert_eq!(given.status, 200, "{}", given.text);
    let given = given.json();
    assert_eq!(given["token_type"], "DPoP");
    let (access, next) = (text(&given, "access_token"), text(&given, "refresh_token"));
    let fresh = |key: &Signer| proof(&world, key, "/mcp", &access);
    assert_eq!(call(&world, "DPoP", &access, &fresh(&key)).await.status, 200);
    assert_eq!(call(&world, "Bearer", &access, "").await.status, 401);
    assert_eq!(call(&world, "Bearer", &access, &fresh(&key)).await.status, 401);
    assert_eq!(call(&world, "DPoP", &access, "").await.status, 401);
    assert_eq!(call(&world, "DPoP", &access, &fresh(&thief)).await.status, 401);
    assert_eq!(call(&world, "DPoP", &access, &proof(&world, &key, "/mcp", "other token")).await.status, 401);
    assert_eq!(
        call(&world, "DPoP", &access, &proof(&world, &key, "/oauth/token", &access)).await.status,
        401
    );
    let once = fresh(&key);
    assert_eq!(call(&world, "DPoP", &access, &once).await.status, 200);
    let again = call(&world, "DPoP", &access, &once).await;
    assert_eq!(again.status, 401, "a proof is used once");
    // The token is as good as before, and the client is told what is not.
    assert!(
        again.authenticate[0].starts_with("DPoP error=\"invalid_dpop_proof\", "),
        "{:?}",
        again.authenticate
    );
    assert!(
        again.authenticate[0].ends_with(", algs=\"EdDSA\"")
            && again.authenticate[1].starts_with("Bearer res")
    );
    let wrong = call(&world, "DPoP", &format!("{access}x"), &fresh(&key)).await;
    assert!(wrong.authenticate[0].starts_with("DPoP error=\"invalid_token\", "), "{:?}", wrong.authenticate);
    let unbound = tokens(&world, &[]).await.0;
    assert_eq!(call(&world, "DPoP", &unbound, &proof(&world, &key, "/mcp", &unbound)).await.status, 401);

    // The refresh token is bound, too; a thief who tries does not end what is the client's.
    let renew = async |proof: Option<&str>| {
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", next.as_str()), ("client_id", "desk")];
        let headers: Vec<(&str, &str)> = proof.map(|proof| ("dpop", proof)).into_iter().collect();
        post_form(&world, "/oauth/token", &fields, &headers).await
    };
    refused(&renew(None).await, "invalid_dpop_proof");
    refused(&renew(Some(&proof(&world, &thief, "/oauth/token", ""))).await, "invalid_dpop_proof");
    refused(&renew(Some(&proof(&world, &key, "/mcp", ""))).await, "invalid_dpop_proof");
    refused(&renew(Some("nonsense")).await, "invalid_dpop_proof");
    let first = proof(&world, &key, "/oauth/token", "");
    let renewed = renew(Some(&first)).await;
    assert_eq!((renewed.status, renewed.json()["token_type"].as_str()), (200, Some("DPoP")));
    let next = text(&renewed.json(), "refresh_token");
    let fields = [("grant_type", "refresh_token"), ("refresh_token", next.as_str()), ("client_id", "desk")];
    refused(&post_form(&world, "/oauth/token", &fields, &[("dpop", &first)]).await, "invalid_dpop_proof");
}

/// A code that was asked for with a key is worth nothing without it (RFC 9449 section 10).
#[tokio::test]
async fn a_code_that_is_bound_to_a_key() {
    let world = world().await;
    let (key, thief) = (agent(40), agent(41));
    let jkt = key.public().thumbprint();
    for (prover, status) in [(None, 400), (Some(&thief), 400), (Some(&key), 200)] {
        let code = code(&world, &[("dpop_jkt", &jkt)]).await;
        let proofs: Vec<String> =
            prover.map(|key| proof(&world, key, "/oauth/token", "")).into_iter().collect();
        let headers: Vec<(&str, &str)> = proofs.iter().map(|proof| ("dpop", proof.as_str())).collect();
        assert_eq!(exchange_with(&world, &code, &[], &headers).await.status, status);
    }
}

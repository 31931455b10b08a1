//! An agent that holds its own key.

use super::*;

#[tokio::test]
async fn an_agent_that_holds_its_own_key_proves_it() {
    let world = World::new().await;
    let (key, thief) = (agent(41), agent(42));
    let held = Held { world: &world, key: &key };
    let new = json!({"name": "far", "permission": "memory.write", "did": key.did()});
    let made = world.owner("POST", AGENTS, Some(&new)).await.ok();
    assert_eq!((&made["did"], &made["own_key"]), (&json!(key.did()), &json!(true)));
    let token = made["api_key"].as_str().unwrap().to_owned();
    let path = "/api/v1/memory/namespaces";
    // By the key alone, and by the token that is bound to it.
    let alone = held.proof("GET", path, None);
    held.with(path, &[("dpop", &alone)]).await.ok();
    held.with(path, &[("dpop", &alone)]).await.refused(401, "auth_required");
    let (dpop, bearer) = (format!("DPoP {token}"), format!("Bearer {token}"));
    let bound = held.proof("GET", path, Some(&token));
    held.with(path, &[("authorization", &dpop), ("dpop", &bound)]).await.ok();
    held.with(path, &[("authorization", &dpop), ("dpop", &bound)]).await.refused(401, "auth_required");
    // Who stole the token is nobody: without the key, with another, with a proof that was for something else.
    let by_thief = Held { world: &world, key: &thief }.proof("GET", path, Some(&token));
    let for_no_token = held.proof("GET", path, None);
    let for_token = held.proof("GET", path, Some(&token));
    let elsewhere = held.proof("GET", "/api/v1/memory", Some(&token));
    let other_method = held.proof("POST", path, Some(&token));
    let unknown_key = Held { world: &world, key: &thief }.proof("GET", path, None);
    let other_token = format!("DPoP oapk_{}", "A".repeat(43));
    for headers in [
        vec![("authorization", bearer.as_str())],
        vec![("x-api-key", token.as_str())],
        vec![("authorization", bearer.as_str()), ("dpop", for_token.as_str())],
        vec![("x-api-key", token.as_str()), ("dpop", for_no_token.as_str())],
        vec![("authorization", dpop.as_str())],
        vec![("authorization", dpop.as_str()), ("dpop", by_thief.as_str())],
        vec![("authorization", dpop.as_str()), ("dpop", for_no_token.as_str())],
        vec![("authorization", dpop.as_str()), ("dpop", elsewhere.as_str())],
        vec![("authorization", dpop.as_str()), ("dpop", other_method.as_str())],
        vec![("authorization", other_token.as_str()), ("dpop", for_token.as_str())],
        vec![("dpop", for_token.as_str())],
        vec![("dpop", unknown_key.as_str())],
        vec![("dpop", for_no_token.as_str()), ("dpop", bound.as_str())],
    ] {
        let refused = held.with(path, &headers).await.refused(401, "auth_required");
        assert!(!refused.to_string().contains(&token[5..]), "{refused}");
    }
    // At each of its doors.
    let call = json!({"tool": "memory_status", "arguments": {}});
    let proof = held.proof("POST", "/oap/agent/call", None);
    let told = world.raw("POST", "/oap/agent/call", &[("dpop", &proof)], Some(&call)).await.ok();
    assert_eq!(told["structured"]["agent"], "far");
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let proof = held.proof("POST", "/mcp", Some(&token));
    let headers = [
        ("authorization", dpop.as_str()),
        ("dpop", proof.as_str()),
        ("accept", "application/json, text/event-stream"),
    ];
    world.raw("POST", "/mcp", &headers, Some(&asked)).await.ok();
    // It is an agent, and no owner.
    let proof = held.proof("GET", AGENTS, Some(&token));
    let owned = held.with(AGENTS, &[("authorization", &dpop), ("dpop", &proof)]).await;
    owned.refused(401, "auth_required");
    // A rotation ends the token; a removal ends the key.
    let rotated = world.owner("POST", &format!("{AGENTS}/far/rotate"), None).await.ok();
    let proof = held.proof("GET", path, Some(&token));
    held.with(path, &[("authorization", &dpop), ("dpop", &proof)]).await.refused(401, "auth_required");
    let token = rotated["api_key"].as_str().unwrap();
    let (dpop, proof) = (format!("DPoP {token}"), held.proof("GET", path, Some(token)));
    held.with(path, &[("authorization", &dpop), ("dpop", &proof)]).await.ok();
    world.owner("POST", &format!("{AGENTS}/far/remove"), None).await.ok();
    let proof = held.proof("GET", path, None);
    held.with(path, &[("dpop", &proof)]).await.refused(401, "auth_required");
    // Whose key it was, it stays: nobody else is what it wrote.
    let again = json!({"name": "near", "permission": "memory.write", "did": key.did()});
    world.owner("POST", AGENTS, Some(&again)).await.refused(409, "conflict");
    for did in ["did:web:a.example", "did:key:z6Mk"] {
        let wrong = json!({"name": "near", "permission": "memory.write", "did": did});
        let refused = world.owner("POST", AGENTS, Some(&wrong)).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().starts_with("did: "), "{refused}");
    }
    // An API key of an agent whose key the gateway holds needs no proof, and no proof makes it one.
    let plain = json!({"name": "plain", "permission": "memory.read"});
    let plain = world.owner("POST", AGENTS, Some(&plain)).await.ok();
    let token = plain["api_key"].as_str().unwrap();
    let (dpop, proof) = (format!("DPoP {token}"), held.proof("GET", path, Some(token)));
    held.with(path, &[("authorization", &dpop), ("dpop", &proof)]).await.refused(401, "auth_required");
}

/// Whether a key is an agent's is told to who holds it alone: its DID is no secret.
#[tokio::test]
async fn who_tries_keys_learns_of_none() {
    let world = World::new().await;
    let (key, thief) = (agent(41), agent(42));
    let new = json!({"name": "far", "permission": "memory.read", "did": key.did()});
    world.owner("POST", AGENTS, Some(&new)).await.ok();
    let path = "/api/v1/memory/namespaces";
    for key in [&key, &thief] {
        let held = Held { world: &world, key };
        let proof = held.proof("GET", path, None);
        for signature in ["A".repeat(86).as_str(), "!", "A"] {
            let forged = format!("{}.{signature}", proof.rsplit_once('.').unwrap().0);
            let refused = held.with(path, &[("dpop", &forged)]).await.refused(401, "auth_required");
            let message = refused["message"].as_str().unwrap();
            assert!(message.contains("by no key of this gateway's agents"), "{signature}: {refused}");
        }
    }
}

/// A proof without a token counts from the API key in force on: a restored gateway, whose owner gave another, does not know which were
/// used after the backup.
#[tokio::test]
async fn a_proof_of_before_the_key_in_force_is_nobodys() {
    let world = World::new().await;
    let key = agent(41);
    let held = Held { world: &world, key: &key };
    let path = "/api/v1/memory/namespaces";
    let first = held.proof("GET", path, None);
    world.clock.advance(Duration::from_secs(1));
    let new = json!({"name": "far", "permission": "memory.read", "did": key.did()});
    world.owner("POST", AGENTS, Some(&new)).await.ok();
    let second = held.proof("GET", path, None);
    world.clock.advance(Duration::from_secs(1));
    let third = held.proof("GET", path, None);
    held.with(path, &[("dpop", &first)]).await.refused(401, "auth_required");
    held.with(path, &[("dpop", &second)]).await.ok();
    world.owner("POST", &format!("{AGENTS}/far/rotate"), None).await.ok();
    let fourth = held.proof("GET", path, None);
    world.owner("POST", &format!("{AGENTS}/far/rotate"), None).await.ok();
    for proof in [&third, &fourth] {
        held.with(path, &[("dpop", proof)]).await.ok();
    }
    world.clock.advance(Duration::from_secs(1));
    let late = held.proof("GET", path, None);
    world.clock.advance(Duration::from_secs(1));
    world.owner("POST", &format!("{AGENTS}/far/rotate"), None).await.ok();
    held.with(path, &[("dpop", &late)]).await.refused(401, "auth_required");
}

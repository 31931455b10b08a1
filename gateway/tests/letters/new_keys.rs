//! Whoever has a new key is looked up anew by whom they reply to, publish for or sign for: nothing waits for what is remembered to end.

use super::*;

/// A minute later, with another key.
async fn with_a_new_key(alice: &mut House, bob: &House) {
    for house in [&*alice, bob] {
        house.world.clock.advance(Duration::from_secs(60));
    }
    let rotated = alice.post("keys/rotate", &json!({})).await.ok();
    alice.world.token = rotated["trust_token"].as_str().unwrap().to_owned();
}

#[tokio::test]
async fn a_new_key_is_looked_up_at_once() {
    let (mut alice, bob) = pair().await;
    bob.ask(&alice, ask(json!({}))).await;
    bob.send().await;
    let task = alice.task().await;
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    let info = alice.post(&approve, &task["proposal"]).await.ok();
    alice.send().await;
    // The list of what was revoked is signed with it.
    with_a_new_key(&mut alice, &bob).await;
    let check = format!("received/{}/check", info["hash"].as_str().unwrap());
    assert_eq!(bob.act(&check).await.ok()["state"], "active");
    // The manifest that says where letters go, and the reply to one.
    with_a_new_key(&mut alice, &bob).await;
    bob.ask(&alice, ask(json!({"max_items": 4}))).await;
    assert_eq!((bob.send().await, &bob.letters().await[0]["state"]), (1, &json!("delivered")));
    // A grant that comes by another way.
    with_a_new_key(&mut alice, &bob).await;
    let mut draft = task["proposal"].clone();
    draft["max_items"] = json!(3);
    let grant = alice.world.issue(&draft).await;
    bob.post("received", &json!({"grant": grant})).await.ok();
    assert_eq!(bob.get("received").await["received"].as_array().unwrap().len(), 2);
}

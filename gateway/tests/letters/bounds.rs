//! What bounds letters tell, and what they cost others than whom they are for.

use super::*;
use oap_gateway::service::letters::PASS_EACH;
use oap_gateway::state::heard::MAX_HEARD_OF_STRANGERS_PER_SITE;
use oap_gateway::state::wallet::MAX_ASKED;

fn nothing() -> Content {
    Content::AccessWithdrawal(AccessWithdrawal { request: AskId::from_bytes([9; 16]) })
}

/// The letters of a kind.
fn of_kind(letters: &[Value], kind: &str) -> Vec<Value> {
    letters.iter().filter(|letter| letter["kind"] == kind).cloned().collect()
}

/// Strangers of one site have their room used up. Whoever is not proved is told the same, whomever they say they are: not whom Alice knows.
#[tokio::test]
async fn a_full_room_tells_nobody_who_is_known() {
    let (alice, bob) = pair().await;
    alice.ask(&bob, ask(json!({}))).await;
    let each = usize::try_from(MAX_LETTERS).unwrap();
    for n in 0..MAX_HEARD_OF_STRANGERS_PER_SITE {
        let stranger = Signer::did_key(&[u8::try_from(100 + n / each).unwrap(); 32]).unwrap();
        let one = letter(stranger.did(), &alice.did, u8::try_from(n % each).unwrap(), nothing());
        assert_eq!(deliver(&alice, &one, &stranger).await.ok()["outcome"], "taken");
    }
    let stranger = agent(7);
    let one_more = letter(stranger.did(), &alice.did, 1, nothing());
    assert_eq!(deliver(&alice, &one_more, &stranger).await.status, StatusCode::SERVICE_UNAVAILABLE);

    let nobody: Did = format!("did:web:localhost%3A{}", crate::program::free_port()).parse().unwrap();
    let mut said = BTreeSet::new();
    for did in [&bob.did, &nobody] {
        let forger = Signer::from_seed(did.key("key-1").unwrap(), &[1; 32]).unwrap();
        let forged = letter(did, &alice.did, 2, nothing());
        let refused = deliver(&alice, &forged, &forger).await.refused(401, "auth_required");
        said.insert(refused["message"].as_str().unwrap().to_owned());
    }
    assert_eq!(said.len(), 1, "{said:?}");

    // The known are heard, and so are strangers of other sites.
    let known = letter(&bob.did, &alice.did, 3, nothing());
    assert_eq!(deliver(&alice, &known, &bob.signer()).await.ok()["outcome"], "taken");
    let signed = SignedLetter::sign(&one_more, &stranger).unwrap();
    assert_eq!(at_the_door(&alice, "198.51.100.7", signed.bytes()).await.ok()["outcome"], "taken");
    // What is over makes room.
    for house in [&alice, &bob] {
        house.world.clock.advance(Duration::from_secs(16 * 60));
    }
    Deletions(&alice.world.gateway).sweep().await.unwrap();
    let mut later = letter(stranger.did(), &alice.did, 4, nothing());
    (later.issued_at, later.expires_at) = (alice.world.now(), alice.world.now().plus(MAX_LIFE));
    assert_eq!(deliver(&alice, &later, &stranger).await.ok()["outcome"], "taken");
}

/// Who was told no is a stranger yet.
#[tokio::test]
async fn a_no_makes_nobody_known() {
    let (alice, bob) = pair().await;
    bob.ask(&alice, ask(json!({}))).await;
    bob.send().await;
    let first = alice.task().await["task"].clone();
    alice.post(&format!("inbox/{}/decline", first.as_str().unwrap()), &json!({})).await.ok();
    assert_eq!(alice.send().await, 1);
    bob.ask(&alice, ask(json!({"max_items": 9}))).await;
    bob.send().await;
    let asks = alice.get("inbox").await["asks"].clone();
    let second = asks.as_array().unwrap().iter().find(|task| task["state"] == "pending").unwrap();
    assert_eq!(second["known"], false, "{asks}");
    // Who was given something is none.
    let approve = format!("inbox/{}/approve", second["task"].as_str().unwrap());
    alice.post(&approve, &second["proposal"]).await.ok();
    assert!(alice.get("inbox").await["asks"].as_array().unwrap().iter().all(|task| task["known"] == true));
}

/// Who has as many tasks as one may have, and asks on, costs nobody else theirs.
#[tokio::test]
async fn a_flood_from_one_removes_nothing_of_others() {
    let (alice, bob) = pair().await;
    let request_name = bob.ask(&alice, ask(json!({}))).await;
    bob.send().await;
    bob.act(&format!("asked/{request_name}/withdraw")).await.ok();
    bob.send().await;
    assert_eq!(alice.task().await["state"], "withdrawn");
    let mallory = agent(7);
    let mut outcomes = Vec::new();
    for number in 1..=MAX_OPEN_PER_DID + 2 {
        let number = u8::try_from(number).unwrap();
        let content = request(number, &ask(json!({"max_items": 10 + u32::from(number)})));
        let one = letter(mallory.did(), &alice.did, number, content);
        outcomes.push(deliver(&alice, &one, &mallory).await.ok()["outcome"].clone());
    }
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "taken").count(), MAX_OPEN_PER_DID);
    let asks = alice.get("inbox").await["asks"].clone();
    let mut of_bob = asks.as_array().unwrap().iter().filter(|task| task["from"] == json!(bob.did));
    assert_eq!(of_bob.next().unwrap()["state"], "withdrawn");
}

/// A grant that was revoked before it arrived does not arrive: else it would come after the word that it is void.
#[tokio::test]
async fn what_was_revoked_is_not_delivered() {
    let (alice, bob) = pair().await;
    bob.ask(&alice, ask(json!({}))).await;
    bob.send().await;
    let task = alice.task().await;
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    let info = alice.post(&approve, &task["proposal"]).await.ok();
    bob.is(DOWN);
    assert_eq!(alice.send().await, 1);
    let grant = info["grant"]["grant_id"].as_str().unwrap();
    alice.act(&format!("grants/{grant}/revoke")).await.ok();
    bob.is(UP);
    // Long enough for whatever was put off, and for what is remembered of a DID that could not be resolved.
    for house in [&alice, &bob] {
        house.world.clock.advance(Duration::from_secs(120));
    }
    assert_eq!(alice.send().await, 2);
    let letters = alice.letters().await;
    assert_eq!(of_kind(&letters, "grant_delivery")[0]["state"], "given_up", "{letters:?}");
    assert_eq!(of_kind(&letters, "revocation_notice")[0]["state"], "refused", "{letters:?}");
    assert!(bob.get("received").await["received"].as_array().unwrap().is_empty());
    assert_eq!(alice.send().await, 0);
}

/// However many letters wait to one gateway, those to another go in the same pass.
#[tokio::test]
async fn one_gateway_takes_no_more_than_its_part_of_a_pass() {
    let (alice, bob) = pair().await;
    let carol = House::new(3).await;
    for n in 0..=PASS_EACH {
        bob.ask(&alice, ask(json!({"max_items": 1 + n}))).await;
    }
    bob.ask(&carol, ask(json!({}))).await;
    alice.is(DOWN);
    assert_eq!(bob.send().await, PASS_EACH + 1);
    let letters = bob.letters().await;
    let to_carol: Vec<&Value> = letters.iter().filter(|letter| letter["to"] == json!(carol.did)).collect();
    assert_eq!((to_carol.len(), &to_carol[0]["state"]), (1, &json!("delivered")));
    // The rest follows.
    assert_eq!(bob.send().await, 1);
    assert_eq!(bob.send().await, 0);
}

/// A gateway that has no room for a request hears what else there is to tell.
#[tokio::test]
async fn what_is_to_come_later_holds_up_nothing_else() {
    let (alice, bob) = pair().await;
    let mut names = Vec::new();
    for n in 0..=MAX_OPEN_PER_DID {
        names.push(bob.ask(&alice, ask(json!({"max_items": 1 + n}))).await);
    }
    assert_eq!(bob.send().await, MAX_OPEN_PER_DID + 1);
    let mut taken = None;
    for name in &names {
        if bob.get(&format!("asked/{name}")).await["letter"] == "delivered" {
            taken = Some(name);
        }
    }
    for house in [&alice, &bob] {
        house.world.clock.advance(Duration::from_secs(1));
    }
    // The one that comes to nothing again is the first of the pass.
    bob.act(&format!("asked/{}/withdraw", taken.unwrap())).await.ok();
    assert_eq!(bob.send().await, 2);
    let letters = bob.letters().await;
    assert_eq!(of_kind(&letters, "access_withdrawal")[0]["state"], "delivered", "{letters:?}");
    let waiting: Vec<&Value> = letters.iter().filter(|letter| letter["state"] == "waiting").collect();
    assert_eq!((waiting.len(), &waiting[0]["failure"]), (1, &json!("later")), "{letters:?}");
}

/// Requests that are over make room for new ones; those that wait stay.
#[tokio::test]
async fn a_request_that_is_over_makes_room() {
    let (_, bob) = pair().await;
    // To one gateway a thousand letters wait at most, and what is taken back is a letter, too.
    let from = ["did:web:one.example", "did:web:two.example"];
    let new = |n: usize| json!({"from": from[n % 2], "ask": ask(json!({}))});
    let mut names = Vec::new();
    for n in 0..MAX_ASKED {
        names.push(bob.post("asked", &new(n)).await.ok()["request"].as_str().unwrap().to_owned());
    }
    bob.post("asked", &new(0)).await.refused(409, "conflict");
    bob.act(&format!("asked/{}/withdraw", names[2])).await.ok();
    bob.post("asked", &new(0)).await.ok();
    bob.world.owner("GET", &format!("/oap/owner/asked/{}", names[2]), None).await.refused(404, "not_found");
    bob.get(&format!("asked/{}", names[0])).await;
    bob.post("asked", &new(0)).await.refused(409, "conflict");
    assert_eq!(bob.get("asked").await["asked"].as_array().unwrap().len(), MAX_ASKED);
}

/// The same that was asked for twice is one task: what is taken back of it is one request, and the answer is one for all that are left.
#[tokio::test]
async fn one_task_of_two_requests() {
    let (alice, bob) = pair().await;
    let mut names = Vec::new();
    for _ in 0..3 {
        names.push(bob.ask(&alice, ask(json!({}))).await);
    }
    assert_eq!(bob.send().await, 3);
    assert_eq!(alice.task().await["state"], "pending");
    bob.act(&format!("asked/{}/withdraw", names[0])).await.ok();
    bob.send().await;
    let task = alice.task().await;
    assert_eq!(task["state"], "pending");
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    let info = alice.post(&approve, &task["proposal"]).await.ok();
    assert_eq!(alice.send().await, 2);
    assert!(alice.letters().await.iter().all(|letter| letter["state"] == "delivered"));
    assert_eq!(bob.get("received").await["received"].as_array().unwrap().len(), 1);
    for name in &names[1..] {
        let asked = bob.get(&format!("asked/{name}")).await;
        assert_eq!((&asked["state"], &asked["grant"]), (&json!("approved"), &info["hash"]));
    }
    assert_eq!(bob.get(&format!("asked/{}", names[0])).await["state"], "withdrawn");
}

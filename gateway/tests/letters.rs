//! Letters between gateways: what is refused and why, requests for access from the ask to the answer under the grant, floods, losses.
//! Two gateways in one process, each behind a listener of its own; and two real ones over TLS.

mod bounds;
mod new_keys;

use crate::common::*;
use crate::program::{Home, read};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use axum::middleware;
use axum::response::IntoResponse;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_exchange::gate::Sanctions;
use oap_federation::ask::{AccessRequest, AccessWithdrawal, GrantDelivery};
use oap_federation::letter::MAX_LIFE;
use oap_federation::{Ask, Content, Letter, SignedLetter};
use oap_gateway::service::{Deletions, Letters};
use oap_gateway::state::inbox::{MAX_OPEN_OF_STRANGERS, MAX_OPEN_PER_DID, MAX_OPEN_PER_NETWORK};
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::state::refusals::MAX_LETTERS;
use oap_gateway::{Config, Gateway};
use oap_identity::random::Seeded;
use oap_identity::{AskId, Did, LetterId, Random, Signer, Timestamp};
use oap_store::Store;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
/// The gateway answers.
const UP: u8 = 0;
/// It does not.
const DOWN: u8 = 1;
/// It does what it is asked for, and its answer is lost.
const DEAF: u8 = 2;

/// A gateway that others reach.
struct House {
    world: World,
    did: Did,
    state: Arc<AtomicU8>,
}

impl House {
    async fn new(seed: u64) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let did = format!("did:web:localhost%3A{}", listener.local_addr().unwrap().port());
        let config = Config { allow_local_dids: true, plain_http: true, ..Config::default() };
        let random: Arc<dyn Random> = Arc::new(Seeded::new(seed));
        let store = Store::in_memory(random.clone()).unwrap();
        let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
        Gateway::init(&store, &keys).await.unwrap();
        let world = World::of(&did, store, config, random, Sanctions::new(), None).await;
        let state = Arc::new(AtomicU8::new(UP));
        let seen = state.clone();
        let gate = middleware::from_fn(move |request: Request<Body>, next: middleware::Next| {
            let state = seen.load(Ordering::SeqCst);
            let letter = request.uri().path() == "/oap/peer/letter";
            async move {
                if state == DOWN {
                    return StatusCode::SERVICE_UNAVAILABLE.into_response();
                }
                let answer = next.run(request).await;
                if state == DEAF && letter { StatusCode::BAD_GATEWAY.into_response() } else { answer }
            }
        });
        let router = world.router.clone().layer(gate);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { world, did: did.parse().unwrap(), state }
    }

    fn is(&self, state: u8) {
        self.state.store(state, Ordering::SeqCst);
    }

    /// Sends what is due; how many letters were tried.
    async fn send(&self) -> usize {
        Letters(&self.world.gateway).send_due().await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        self.world.owner("GET", &format!("/oap/owner/{path}"), None).await.ok()
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.world.owner("POST", &format!("/oap/owner/{path}"), Some(body)).await
    }

    /// Without a body.
    async fn act(&self, path: &str) -> Answer {
        self.world.owner("POST", &format!("/oap/owner/{path}"), None).await
    }

    /// The key that it signs with.
    fn signer(&self) -> Arc<Signer> {
        self.world.gateway.keys().current().clone()
    }

    /// Asks another for access; the name of the request.
    async fn ask(&self, whom: &Self, ask: Value) -> String {
        let asked = self.post("asked", &json!({"from": whom.did, "ask": ask})).await.ok();
        asked["request"].as_str().unwrap().to_owned()
    }

    /// The only task of its inbox.
    async fn task(&self) -> Value {
        let asks = self.get("inbox").await["asks"].clone();
        assert_eq!(asks.as_array().unwrap().len(), 1, "{asks}");
        asks[0].clone()
    }

    async fn letters(&self) -> Vec<Value> {
        self.get("letters").await["letters"].as_array().unwrap().clone()
    }
}

async fn pair() -> (House, House) {
    (House::new(1).await, House::new(2).await)
}

/// What is asked in most of these tests.
fn ask(more: Value) -> Value {
    let mut ask = json!({
        "purpose": "Website redesign", "filter": {"labels_any": ["website", "dates"]}, "max_items": 5,
        "expires_at": Timestamp::from_millis(START).plus(30 * DAY), "operations": ["query"],
        "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
    });
    for (name, value) in more.as_object().unwrap() {
        ask[name] = value.clone();
    }
    ask
}

fn typed(ask: &Value) -> Ask {
    serde_json::from_value(ask.clone()).unwrap()
}

/// A letter of somebody's, as they would write it.
fn letter(from: &Did, to: &Did, number: u8, content: Content) -> Letter {
    let now = Timestamp::from_millis(START);
    Letter {
        id: LetterId::from_bytes([number; 16]),
        from: from.clone(),
        to: to.clone(),
        issued_at: now,
        expires_at: now.plus(MAX_LIFE),
        content,
    }
}

fn request(number: u8, ask: &Value) -> Content {
    let request = AskId::from_bytes([number; 16]);
    Content::AccessRequest(Box::new(AccessRequest { request, ask: typed(ask) }))
}

/// Bytes at the door for letters, from an address.
async fn at_the_door(house: &House, address: &str, bytes: &[u8]) -> Answer {
    let request = Request::post("/oap/peer/letter").header("content-type", "application/oap+json");
    let mut request = request.body(Body::from(bytes.to_vec())).unwrap();
    let peer: SocketAddr = format!("{address}:4711").parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    house.world.send(request).await
}

async fn deliver(house: &House, letter: &Letter, signer: &Signer) -> Answer {
    let signed = SignedLetter::sign(letter, signer).unwrap();
    at_the_door(house, "203.0.113.9", signed.bytes()).await
}

/// From the ask to the answer under the narrowed grant.
#[tokio::test]
async fn what_is_asked_is_narrowed_delivered_and_read() {
    let (alice, bob) = pair().await;
    let site = alice.world.capture(&[note("The site goes live on 1 June", &["website"])]).await;
    alice.world.capture(&[note("The fair is on 8 June", &["dates"])]).await;
    alice.world.capture(&[note("The doctor said to rest", &["health"])]).await;
    let request = bob.ask(&alice, ask(json!({}))).await;
    assert_eq!(bob.letters().await[0]["state"], "waiting");
    assert_eq!(bob.send().await, 1);
    assert_eq!((&bob.letters().await[0]["state"], bob.send().await), (&json!("delivered"), 0));

    let task = alice.task().await;
    assert_eq!(
        (&task["from"], &task["state"], &task["known"]),
        (&json!(bob.did), &json!("pending"), &json!(false))
    );
    let id = task["task"].as_str().unwrap();
    // The owner looks at what it would show now, and gives less.
    let mut draft = task["proposal"].clone();
    let preview = alice.post("grants/preview", &draft).await.ok();
    assert_eq!(preview["selected"], 2, "{preview}");
    draft["filter"]["labels_any"] = json!(["website"]);
    draft["max_items"] = json!(1);
    draft["trust_level"] = json!(2);
    let info = alice.post(&format!("inbox/{id}/approve"), &draft).await.ok();
    assert_eq!(alice.get("inbox").await["asks"][0]["state"], "approved");
    assert_eq!((alice.send().await, alice.send().await), (1, 0));

    let received = bob.get("received").await["received"].clone();
    assert_eq!(received.as_array().unwrap().len(), 1, "{received}");
    assert_eq!((&received[0]["hash"], &received[0]["request"]), (&info["hash"], &json!(request)));
    assert_eq!((&received[0]["state"], &received[0]["granter"]), (&json!("active"), &json!(alice.did)));
    let asked = bob.get(&format!("asked/{request}")).await;
    assert_eq!((&asked["state"], &asked["grant"]), (&json!("approved"), &info["hash"]));

    // The grantee is Bob's principal: his gateway's key asks.
    let signer = bob.signer();
    let token = alice.world.token(&signer, &received[0]["grant"]).await;
    let answer = alice.world.query(&signer, &token, &json!({})).await.ok();
    assert_eq!(ids(&answer), site);
    let hash = info["hash"].as_str().unwrap();
    bob.post(&format!("received/{hash}/answer"), &json!({"items": 1})).await.ok();
    assert_eq!(bob.get(&format!("received/{hash}")).await["reading"]["items"], 1);

    // Taken back: the status list says so to whoever looks.
    let grant = info["grant"]["grant_id"].as_str().unwrap();
    alice.act(&format!("grants/{grant}/revoke")).await.ok();
    let checked = bob.act(&format!("received/{hash}/check")).await.ok();
    assert_eq!(checked["state"], "revoked", "{checked}");
    bob.act(&format!("received/{hash}/remove")).await.ok();
    bob.act(&format!("received/{hash}/remove")).await.refused(404, "not_found");
    alice.world.chains_hold().await;
}

/// What is approved is never wider than what was asked, member by member.
#[tokio::test]
async fn narrowing_only_narrows() {
    let (alice, bob) = pair().await;
    let codes = json!({"purpose_codes": ["service_provision"], "budget": {"queries": 3}});
    bob.ask(&alice, ask(codes)).await;
    bob.send().await;
    let task = alice.task().await;
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    let later = Timestamp::from_millis(START).plus(31 * DAY);
    for (member, value) in [
        ("grantee", json!(agent(3).did())),
        ("purpose", json!("Anything")),
        ("purpose_codes", json!(["service_provision", "marketing"])),
        ("filter", json!({})),
        ("filter", json!({"labels_any": ["website", "dates", "health"]})),
        ("max_items", json!(6)),
        ("expires_at", json!(later)),
        ("redaction_profile", json!("oap.profile.projection.contact.v1")),
        ("trust_level", json!(4)),
        ("operations", json!(["query", "export"])),
        ("embedding_access", json!(true)),
        ("delegable", json!({"max_depth": 1})),
        ("budget", json!({"queries": 4})),
        ("bearer", json!(true)),
    ] {
        let mut draft = task["proposal"].clone();
        draft[member] = value;
        let refused = alice.post(&approve, &draft).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{member}: {}", refused.body);
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains(member), "{member}: {message}");
    }
    assert_eq!(alice.task().await["state"], "pending");
    assert!(alice.letters().await.is_empty());
    assert!(alice.get("grants").await["grants"].as_array().unwrap().is_empty());
    alice.post(&approve, &task["proposal"]).await.ok();
    // Once is once.
    alice.post(&approve, &task["proposal"]).await.refused(409, "conflict");
    alice.post(&approve.replace("approve", "decline"), &json!({})).await.refused(409, "conflict");
    assert_eq!(alice.get("grants").await["grants"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_no_has_a_word_or_none() {
    let (alice, bob) = pair().await;
    let with = bob.ask(&alice, ask(json!({}))).await;
    let without = bob.ask(&alice, ask(json!({"max_items": 9}))).await;
    bob.send().await;
    for task in alice.get("inbox").await["asks"].as_array().unwrap() {
        let word = if task["ask"]["max_items"] == 5 { json!({"word": "Not before May"}) } else { json!({}) };
        alice.post(&format!("inbox/{}/decline", task["task"].as_str().unwrap()), &word).await.ok();
    }
    alice.send().await;
    let with = bob.get(&format!("asked/{with}")).await;
    assert_eq!((&with["state"], &with["word"]), (&json!("declined"), &json!("Not before May")));
    let without = bob.get(&format!("asked/{without}")).await;
    assert_eq!((&without["state"], &without["word"]), (&json!("declined"), &Value::Null));
    // Words that a screen would obey are refused on either side.
    let hostile = ask(json!({"purpose": "a\u{1b}[2Jb"}));
    bob.post("asked", &json!({"from": alice.did, "ask": hostile})).await.refused(400, "invalid_input");
}

/// What was taken back is not answered; a grant that was on its way is not taken.
#[tokio::test]
async fn a_request_is_taken_back() {
    let (alice, bob) = pair().await;
    let first = bob.ask(&alice, ask(json!({}))).await;
    bob.send().await;
    bob.act(&format!("asked/{first}/withdraw")).await.ok();
    bob.act(&format!("asked/{first}/withdraw")).await.refused(409, "conflict");
    bob.send().await;
    let task = alice.task().await;
    assert_eq!(task["state"], "withdrawn");
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    alice.post(&approve, &task["proposal"]).await.refused(409, "conflict");

    let second = bob.ask(&alice, ask(json!({"max_items": 9}))).await;
    bob.send().await;
    let asks = alice.get("inbox").await["asks"].clone();
    let task = asks.as_array().unwrap().iter().find(|task| task["state"] == "pending").unwrap();
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    alice.post(&approve, &task["proposal"]).await.ok();
    bob.act(&format!("asked/{second}/withdraw")).await.ok();
    alice.send().await;
    assert_eq!(alice.letters().await[0]["state"], "refused");
    assert!(bob.get("received").await["received"].as_array().unwrap().is_empty());
    assert_eq!(bob.get(&format!("asked/{second}")).await["state"], "withdrawn");
}

/// Each refusal at the door, and that everybody who is not proved is told the same.
#[tokio::test]
async fn what_the_door_refuses() {
    let (alice, bob) = pair().await;
    let mallory = agent(7);
    let good = letter(mallory.did(), &alice.did, 1, request(1, &ask(json!({}))));
    let with = |change: &dyn Fn(&mut Letter)| {
        let mut letter = good.clone();
        change(&mut letter);
        letter
    };
    let minutes = |n: u64| Duration::from_secs(60 * n);
    for (why, letter) in [
        ("to", with(&|l| l.to = bob.did.clone())),
        ("expires_at", with(&|l| l.expires_at = l.issued_at.plus(minutes(11)))),
        ("expires_at", with(&|l| l.expires_at = l.issued_at)),
        (
            "issued_at",
            with(&|l| {
                (l.issued_at, l.expires_at) = (l.issued_at.plus(minutes(6)), l.issued_at.plus(minutes(7)))
            }),
        ),
        (
            "expires_at",
            with(&|l| {
                (l.issued_at, l.expires_at) = (l.issued_at.minus(minutes(9)), l.issued_at.minus(minutes(6)))
            }),
        ),
    ] {
        let refused = deliver(&alice, &letter, &mallory).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().starts_with(why), "{refused}");
    }
    // Signed by another than its sender.
    deliver(&alice, &good, &agent(8)).await.refused(400, "invalid_input");
    let own = with(&|l| l.from = alice.did.clone());
    deliver(&alice, &own, &alice.signer()).await.refused(400, "invalid_input");

    // With a key that the document does not have; of a DID without document; changed on the way: the same words.
    let of_bob = with(&|l| l.from = bob.did.clone());
    let unknown = Signer::from_seed(bob.did.key("key-9").unwrap(), &[1; 32]).unwrap();
    let taken = Signer::from_seed(bob.signer().kid().clone(), &[1; 32]).unwrap();
    let nobody: Did = format!("did:web:localhost%3A{}", crate::program::free_port()).parse().unwrap();
    let of_nobody = with(&|l| l.from = nobody.clone());
    let nobodys = Signer::from_seed(nobody.key("key-1").unwrap(), &[1; 32]).unwrap();
    let mut said = BTreeSet::new();
    for (letter, signer) in [(&of_bob, &unknown), (&of_bob, &taken), (&of_nobody, &nobodys)] {
        let refused = deliver(&alice, letter, signer).await.refused(401, "auth_required");
        said.insert(refused["message"].as_str().unwrap().to_owned());
    }
    let signed = SignedLetter::sign(&good, &mallory).unwrap();
    let text = String::from_utf8(signed.bytes().to_vec()).unwrap();
    let forged = text.replace("Website redesign", "Website redesigN");
    assert_ne!(text, forged);
    let refused = at_the_door(&alice, "203.0.113.9", forged.as_bytes()).await.refused(401, "auth_required");
    said.insert(refused["message"].as_str().unwrap().to_owned());
    assert_eq!(said.len(), 1, "{said:?}");

    // What is no letter.
    let long = format!("{}{}", text, " ".repeat(64 << 10));
    at_the_door(&alice, "203.0.113.9", long.as_bytes()).await.refused(413, "too_large");
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for bytes in [
        "",
        "{}",
        "[]",
        &deep,
        &text.replace("\"access_request\"", "\"anything\""),
        &text.replace("\"oap\":\"1.0\"", "\"oap\":\"2.0\""),
    ] {
        at_the_door(&alice, "203.0.113.9", bytes.as_bytes()).await.refused(400, "invalid_input");
    }
    let twice = text.replacen('{', "{\"oap\":\"1.0\",", 1);
    at_the_door(&alice, "203.0.113.9", twice.as_bytes()).await.refused(400, "invalid_input");
    assert!(alice.get("inbox").await["asks"].as_array().unwrap().is_empty());

    // The letter itself is taken, and once: the same again has the same reply, byte for byte.
    let first = at_the_door(&alice, "203.0.113.9", signed.bytes()).await;
    assert_eq!(
        (&first.body["outcome"], &first.body["access"]["state"]),
        (&json!("taken"), &json!("pending"))
    );
    assert_eq!(first.body["to"], signed.hash().to_string());
    alice.world.clock.advance(Duration::from_secs(30));
    let again = at_the_door(&alice, "203.0.113.9", signed.bytes()).await;
    assert_eq!(first.bytes, again.bytes);
    // Signed anew it is the same letter; with other words under its name it is none.
    let anew = with(&|l| l.issued_at = l.issued_at.plus(Duration::from_secs(9)));
    assert_eq!(deliver(&alice, &anew, &mallory).await.ok()["outcome"], "taken");
    let other = with(&|l| l.content = request(2, &ask(json!({"max_items": 4}))));
    assert_eq!(deliver(&alice, &other, &mallory).await.ok()["reason"], "other_letter");
    assert_eq!(alice.task().await["ask"]["max_items"], 5);
    // The same name of another sender is another letter.
    let another = letter(agent(8).did(), &alice.did, 1, request(1, &ask(json!({}))));
    deliver(&alice, &another, &agent(8)).await.ok();
    assert_eq!(alice.get("inbox").await["asks"].as_array().unwrap().len(), 2);

    // Once it is over it does not come in again.
    alice.world.clock.advance(Duration::from_secs(16 * 60));
    at_the_door(&alice, "203.0.113.9", signed.bytes()).await.refused(400, "invalid_input");
    Deletions(&alice.world.gateway).sweep().await.unwrap();
    at_the_door(&alice, "203.0.113.9", signed.bytes()).await.refused(400, "invalid_input");
}

/// One who asks again and again comes to the owner a few times, and the same twice is once.
#[tokio::test]
async fn a_flood_from_one_ends() {
    let (alice, _) = pair().await;
    let mallory = agent(7);
    let send = async |number: u8, ask: &Value| {
        deliver(&alice, &letter(mallory.did(), &alice.did, number, request(number, ask)), &mallory).await
    };
    assert_eq!(send(1, &ask(json!({}))).await.ok()["outcome"], "taken");
    assert_eq!(send(2, &ask(json!({}))).await.ok()["outcome"], "taken");
    assert_eq!(alice.get("inbox").await["asks"].as_array().unwrap().len(), 1);
    for number in 3..=MAX_OPEN_PER_DID + 1 {
        let number = u8::try_from(number).unwrap();
        assert_eq!(
            send(number, &ask(json!({"max_items": 10 * u32::from(number)}))).await.ok()["outcome"],
            "taken"
        );
    }
    let full = send(50, &ask(json!({"max_items": 501}))).await.ok();
    assert_eq!((&full["outcome"], &full["reason"]), (&json!("later"), &json!("full")));
    // To take some back makes room once, and not again and again: the places of what was taken back are used, not added to.
    let withdrawn = Content::AccessWithdrawal(AccessWithdrawal { request: AskId::from_bytes([3; 16]) });
    deliver(&alice, &letter(mallory.did(), &alice.did, 51, withdrawn), &mallory).await.ok();
    assert_eq!(send(52, &ask(json!({"max_items": 502}))).await.ok()["outcome"], "taken");
    assert_eq!(send(53, &ask(json!({"max_items": 503}))).await.ok()["outcome"], "later");
    assert_eq!(alice.get("inbox").await["asks"].as_array().unwrap().len(), MAX_OPEN_PER_DID);
    for number in 0..MAX_LETTERS {
        if send(u8::try_from(100 + number).unwrap(), &ask(json!({"max_items": 7}))).await.status == 429 {
            return;
        }
    }
    panic!("no bound of letters");
}

/// Many who ask are bounded by network, and in all; who is known is heard all the same.
#[tokio::test]
async fn a_flood_from_many_leaves_room_for_the_known() {
    let (alice, bob) = pair().await;
    // Alice wrote to Bob.
    alice.ask(&bob, ask(json!({}))).await;
    let mut taken = 0;
    for n in 0..=u16::try_from(MAX_OPEN_OF_STRANGERS).unwrap() {
        let mut seed = [9; 32];
        seed[..2].copy_from_slice(&n.to_be_bytes());
        let stranger = Signer::did_key(&seed).unwrap();
        let letter = letter(stranger.did(), &alice.did, 1, request(1, &ask(json!({}))));
        let signed = SignedLetter::sign(&letter, &stranger).unwrap();
        let network = usize::from(n) / MAX_OPEN_PER_NETWORK;
        let one = at_the_door(&alice, &format!("198.51.100.{network}"), signed.bytes()).await.ok();
        taken += usize::from(one["outcome"] == "taken");
        if n == u16::try_from(MAX_OPEN_PER_NETWORK - 1).unwrap() {
            let mut seed = seed;
            seed[31] = 1;
            let one_more = Signer::did_key(&seed).unwrap();
            let letter = Letter { from: one_more.did().clone(), ..letter.clone() };
            let signed = SignedLetter::sign(&letter, &one_more).unwrap();
            let full = at_the_door(&alice, "198.51.100.0", signed.bytes()).await.ok();
            assert_eq!(full["outcome"], "later", "{full}");
        }
    }
    assert_eq!(taken, MAX_OPEN_OF_STRANGERS);
    bob.ask(&alice, ask(json!({}))).await;
    bob.send().await;
    assert_eq!(bob.letters().await[0]["state"], "delivered");
    let asks = alice.get("inbox").await["asks"].clone();
    let mut of_bob = asks.as_array().unwrap().iter().filter(|task| task["from"] == json!(bob.did));
    assert_eq!(of_bob.next().unwrap()["known"], true);
}

/// A grant comes in only where it was asked for, of the one who was asked.
#[tokio::test]
async fn a_grant_that_nobody_asked_for_is_not_taken() {
    let (alice, bob) = pair().await;
    let draft = json!({
        "grantee": bob.did, "purpose": "A present", "filter": {}, "max_items": 5, "trust_level": 2,
        "expires_at": Timestamp::from_millis(START).plus(30 * DAY), "redaction_profile": "oap.profile.projection.memory.v1",
    });
    let grant = alice.post("grants", &draft).await.ok()["grant"].clone();
    let delivery = |request: Option<AskId>, grant: &Value| {
        Content::GrantDelivery(GrantDelivery { request, grant: grant.clone() })
    };
    let unasked = letter(&alice.did, &bob.did, 1, delivery(None, &grant));
    let reply = deliver(&bob, &unasked, &alice.signer()).await.ok();
    assert_eq!((&reply["outcome"], &reply["reason"]), (&json!("refused"), &json!("not_asked")));
    let invented = letter(&alice.did, &bob.did, 2, delivery(Some(AskId::from_bytes([5; 16])), &grant));
    assert_eq!(deliver(&bob, &invented, &alice.signer()).await.ok()["reason"], "not_asked");

    // Asked of Alice, answered by Mallory: with her grant, and with one of his own.
    let asked: AskId = bob.ask(&alice, ask(json!({}))).await.parse().unwrap();
    let mallory = agent(7);
    let borrowed = letter(mallory.did(), &bob.did, 3, delivery(Some(asked), &grant));
    assert_eq!(deliver(&bob, &borrowed, &mallory).await.ok()["reason"], "grant_not_sound");
    let mut changed = grant.clone();
    changed["max_items"] = json!(500);
    let forged = letter(&alice.did, &bob.did, 4, delivery(Some(asked), &changed));
    assert_eq!(deliver(&bob, &forged, &alice.signer()).await.ok()["reason"], "grant_not_sound");
    assert!(bob.get("received").await["received"].as_array().unwrap().is_empty());

    // The one that was asked for is taken once; a second one for the same request is not.
    let right = letter(&alice.did, &bob.did, 5, delivery(Some(asked), &grant));
    assert_eq!(deliver(&bob, &right, &alice.signer()).await.ok()["outcome"], "taken");
    let same = letter(&alice.did, &bob.did, 6, delivery(Some(asked), &grant));
    assert_eq!(deliver(&bob, &same, &alice.signer()).await.ok()["outcome"], "taken");
    let second = alice.post("grants", &draft).await.ok()["grant"].clone();
    let second = letter(&alice.did, &bob.did, 7, delivery(Some(asked), &second));
    assert_eq!(deliver(&bob, &second, &alice.signer()).await.ok()["reason"], "not_asked");
    assert_eq!(bob.get("received").await["received"].as_array().unwrap().len(), 1);
    // A file is the owner's own doing; somebody else's grant is nobody's here.
    let of_another = alice.world.issue(&alice.world.draft(&agent(3))).await;
    bob.post("received", &json!({"grant": of_another})).await.refused(400, "invalid_input");
    bob.post("received", &json!({"grant": changed})).await.refused(400, "invalid_input");
    bob.post("received", &json!({"grant": grant})).await.ok();
}

/// Somebody who is down is tried later each time, and gets the letter once they are up again.
#[tokio::test]
async fn who_is_down_is_tried_again() {
    let (alice, bob) = pair().await;
    bob.ask(&alice, ask(json!({}))).await;
    alice.is(DOWN);
    let mut waits = Vec::new();
    for attempt in 1..=20_u32 {
        assert_eq!((bob.send().await, bob.send().await), (1, 0), "{attempt}");
        let letter = bob.letters().await.remove(0);
        assert_eq!((&letter["state"], &letter["attempts"]), (&json!("waiting"), &json!(attempt)));
        assert!(["unreachable", "no_document"].contains(&letter["failure"].as_str().unwrap()), "{letter}");
        let next: Timestamp = letter["next_at"].as_str().unwrap().parse().unwrap();
        let wait = next.millis() - bob.world.now().millis();
        waits.push(wait);
        for world in [&alice.world, &bob.world] {
            world.clock.set(next);
        }
    }
    for (n, wait) in waits.iter().enumerate() {
        let whole = (1000_i64 << n.min(20)).min(6 * 3600 * 1000);
        assert!(*wait >= whole / 2 && *wait <= whole, "{n}: {wait}");
    }
    alice.is(UP);
    assert_eq!(bob.send().await, 1);
    assert_eq!(bob.letters().await[0]["state"], "delivered");
    assert_eq!(alice.task().await["state"], "pending");

    // A month of nothing is the end.
    bob.ask(&alice, ask(json!({"max_items": 9, "expires_at": bob.world.now().plus(90 * DAY)}))).await;
    alice.is(DOWN);
    bob.send().await;
    bob.world.clock.advance(31 * DAY);
    bob.send().await;
    assert_eq!(bob.letters().await[0]["state"], "given_up");
    bob.world.clock.advance(DAY);
    assert_eq!(bob.send().await, 0);
    assert_eq!(bob.get("asked").await["asked"][0]["state"], "expired");
}

/// Whose answers are lost has what was said to them once, however often it was said.
#[tokio::test]
async fn a_lost_reply_costs_nothing_but_time() {
    let (alice, bob) = pair().await;
    let both = |by: Duration| {
        alice.world.clock.advance(by);
        bob.world.clock.advance(by);
    };
    bob.ask(&alice, ask(json!({}))).await;
    alice.is(DEAF);
    bob.send().await;
    assert_eq!(bob.letters().await[0]["failure"], "no_reply");
    // While the first one is remembered, and long after.
    for wait in [Duration::from_secs(5), Duration::from_secs(3600)] {
        both(wait);
        bob.send().await;
        assert_eq!(alice.task().await["state"], "pending");
    }
    Deletions(&alice.world.gateway).sweep().await.unwrap();
    alice.is(UP);
    both(Duration::from_secs(3600));
    bob.send().await;
    assert_eq!(bob.letters().await[0]["state"], "delivered");

    let task = alice.task().await;
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    alice.post(&approve, &task["proposal"]).await.ok();
    bob.is(DEAF);
    alice.send().await;
    let received = bob.get("received").await;
    assert_eq!(received["received"].as_array().unwrap().len(), 1);
    bob.is(UP);
    both(Duration::from_secs(3600));
    Deletions(&bob.world.gateway).sweep().await.unwrap();
    alice.send().await;
    assert_eq!(alice.letters().await[0]["state"], "delivered");
    assert_eq!(bob.get("received").await, received);
}

/// Who cannot be reached fetches the grant with the name of the request.
#[tokio::test]
async fn a_grant_is_fetched_with_the_request() {
    let (alice, bob) = pair().await;
    let request = bob.ask(&alice, ask(json!({}))).await;
    bob.send().await;
    bob.is(DOWN);
    let task = alice.task().await;
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    alice.post(&approve, &task["proposal"]).await.ok();
    alice.send().await;
    assert!(bob.get("received").await["received"].as_array().unwrap().is_empty());
    bob.act(&format!("asked/{request}/again")).await.ok();
    bob.send().await;
    assert_eq!(bob.get(&format!("asked/{request}")).await["state"], "approved");
    assert_eq!(bob.get("received").await["received"].as_array().unwrap().len(), 1);
    // What comes by letter afterwards is the same one.
    bob.is(UP);
    alice.world.clock.advance(Duration::from_secs(60));
    bob.world.clock.advance(Duration::from_secs(60));
    alice.send().await;
    assert_eq!(alice.letters().await[0]["state"], "delivered");
    assert_eq!(bob.get("received").await["received"].as_array().unwrap().len(), 1);
}

/// How the letters of a gateway stand, in the order of the words.
async fn states(house: &House) -> Vec<String> {
    let letters = house.letters().await;
    let mut states: Vec<String> =
        letters.iter().map(|letter| letter["state"].as_str().unwrap().to_owned()).collect();
    states.sort_unstable();
    states
}

/// Its receiver hears of the revocation first, knows no such grant, and would take the delivery for one that counts.
#[tokio::test]
async fn a_grant_that_was_revoked_is_not_handed_over() {
    let (alice, bob) = pair().await;
    bob.ask(&alice, ask(json!({}))).await;
    bob.send().await;
    bob.is(DOWN);
    let task = alice.task().await;
    let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
    let info = alice.post(&approve, &task["proposal"]).await.ok();
    alice.send().await;
    assert_eq!(states(&alice).await, ["waiting"]);
    let grant = info["grant"]["grant_id"].as_str().unwrap();
    alice.act(&format!("grants/{grant}/revoke")).await.ok();
    bob.is(UP);
    for world in [&alice.world, &bob.world] {
        world.clock.advance(Duration::from_secs(60));
    }
    alice.send().await;
    assert_eq!(states(&alice).await, ["given_up", "refused"], "the delivery, and the notice");
    assert!(bob.get("received").await["received"].as_array().unwrap().is_empty());
}

/// A lockdown shuts the door for letters, and the owner says no yes while it lasts; what was on its way out is not handed over.
#[tokio::test]
async fn a_lockdown_takes_no_letter_and_hands_no_grant_over() {
    let (mut alice, bob) = pair().await;
    bob.ask(&alice, ask(json!({}))).await;
    bob.ask(&alice, ask(json!({"max_items": 9}))).await;
    bob.send().await;
    let asks = alice.get("inbox").await["asks"].clone();
    let approve = |n: usize| format!("inbox/{}/approve", asks[n]["task"].as_str().unwrap());
    alice.post(&approve(0), &asks[0]["proposal"]).await.ok();
    let locked = alice.post("lockdown", &json!({})).await.ok();
    alice.world.token = locked["trust_token"].as_str().unwrap().to_owned();
    alice.post(&approve(1), &asks[1]["proposal"]).await.refused(409, "conflict");
    let late = letter(&bob.did, &alice.did, 9, request(9, &ask(json!({"max_items": 3}))));
    deliver(&alice, &late, &bob.signer()).await.refused(403, "policy_block");
    assert_eq!(alice.get("inbox").await["asks"].as_array().unwrap().len(), 2);
    alice.send().await;
    assert_eq!(states(&alice).await, ["given_up", "refused"], "the delivery, and the notice");
    assert!(bob.get("received").await["received"].as_array().unwrap().is_empty());
}

/// A DID that is its own key has no place for letters: none is put into the outbox, to be tried for a month.
#[tokio::test]
async fn a_did_that_is_its_own_key_is_written_no_letters() {
    let alice = House::new(1).await;
    let jwk: Did = format!("did:jwk:{}", B64.encode(agent(41).public().jwk().to_string())).parse().unwrap();
    let by_jwk = Signer::from_seed(jwk.key("0").unwrap(), &[41; 32]).unwrap();
    for (number, signer) in [(1, agent(7)), (2, by_jwk)] {
        let asked = letter(signer.did(), &alice.did, number, request(number, &ask(json!({}))));
        assert_eq!(deliver(&alice, &asked, &signer).await.ok()["outcome"], "taken");
    }
    let asks = alice.get("inbox").await["asks"].clone();
    assert_eq!(asks.as_array().unwrap().len(), 2);
    for task in asks.as_array().unwrap() {
        let approve = format!("inbox/{}/approve", task["task"].as_str().unwrap());
        alice.post(&approve, &task["proposal"]).await.ok();
    }
    assert!(alice.letters().await.is_empty());
}

/// What a clock put off that stood a hundred days ahead does not wait for a hundred days once the owner has set it right.
#[tokio::test]
async fn a_letter_that_a_wrong_clock_put_off_is_sent() {
    let (alice, bob) = pair().await;
    let start = bob.world.now();
    bob.world.clock.set(start.plus(100 * DAY));
    bob.ask(&alice, ask(json!({"expires_at": start.plus(150 * DAY)}))).await;
    alice.is(DOWN);
    assert_eq!(bob.send().await, 1);
    alice.is(UP);
    bob.world.clock.set(start);
    bob.act("clock/accept").await.ok();
    assert_eq!(bob.send().await, 1);
    assert_eq!(bob.letters().await[0]["state"], "delivered");
    assert_eq!(bob.send().await, 0);
}

/// Tries until something is there: the gateways are at work by themselves.
pub fn until<T>(what: impl Fn() -> Option<T>) -> T {
    (0..2000).find_map(|_| what()).expect("it never came")
}

fn did(home: &Home) -> String {
    read(home.home().join("did.json"))["id"].as_str().unwrap().to_owned()
}

/// Two real gateways over TLS; the granter's is killed after the yes and before the delivery.
#[test]
fn killed_between_the_yes_and_its_delivery() {
    let (mut alice, mut bob) = (Home::web(), Home::web());
    // Each makes its certificate when it first serves.
    for home in [&alice, &bob] {
        home.serve(&[]).stop();
    }
    let flags = |other: &Home| {
        let authority = other.home().join("tls/cert.pem").to_string_lossy().into_owned();
        vec!["--trust-ca".to_owned(), authority, "--allow-local-dids".to_owned()]
    };
    (alice.flags, bob.flags) = (flags(&bob), flags(&alice));
    let (at_alice, at_bob) = (alice.serve(&[]), bob.serve(&[]));
    for text in ["The site goes live on 1 June", "The budget is 8000"] {
        alice.run(&["item", "add", "--kind", "fact", "--text", text, "--label", "website"]).ok();
    }
    let from = did(&alice);
    let request =
        ["grant", "request", "--from", &from, "--purpose", "Website redesign", "--label", "website"];
    let asked = bob.run(&[&request[..], &["--until", "30d", "--json"]].concat()).json();
    let task = until(|| {
        let asks = alice.run(&["grant", "inbox", "--json"]).json();
        asks["asks"][0]["requests"][0].as_str().map(str::to_owned)
    });
    // Both know it by one name.
    assert_eq!(asked["request"], task.as_str());
    assert!(alice.run(&["grant", "inbox"]).ok().contains(&task[..12]));
    let shown = alice.run(&["grant", "inbox", "show", &task]).ok();
    assert!(shown.contains("They say: \"Website redesign\"") && shown.contains("items selected"), "{shown}");
    alice.run(&["grant", "approve", &task, "--max-items", "600", "--yes"]).failed(2, "max");
    // Nobody is there to deliver to; and then nobody to deliver.
    at_bob.kill();
    alice.run(&["grant", "approve", &task, "--trust-level", "2", "--max-items", "1", "--yes"]).ok();
    at_alice.kill();
    let _at_bob = bob.serve(&[]);
    let _at_alice = alice.serve(&[]);
    let hash = until(|| {
        let received = bob.run(&["grant", "received", "--json"]).json();
        received["received"][0]["hash"].as_str().map(str::to_owned)
    });
    let file = bob.path("grant.json");
    bob.run(&["grant", "received", "show", &hash, "--out", &file]).ok();
    let answer = bob.run(&["query", "--grant", &file, "--json"]).json();
    assert_eq!(answer["items"].as_array().unwrap().len(), 1, "{answer}");
    let received = bob.run(&["grant", "received", "list", "--json"]).json();
    assert_eq!(received["received"].as_array().unwrap().len(), 1, "{received}");
    assert_eq!(received["received"][0]["reading"]["items"], 1, "{received}");
    assert_eq!(alice.run(&["grant", "list", "--json"]).json()["grants"].as_array().unwrap().len(), 1);
    until(|| {
        let letters = alice.run(&["peer", "outbox", "--json"]).json();
        (letters["letters"][0]["state"] == "delivered").then_some(())
    });
    assert!(bob.run(&["grant", "requests"]).ok().contains("approved"));
    bob.run(&["grant", "received", "check", &hash]).ok();
    alice.run(&["audit", "verify"]).ok();
}

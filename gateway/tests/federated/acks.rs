//! Acknowledgements: what was answered is countersigned, signed over and over, and counted; and what was never given, another's, out of order,
//! replayed or under a revoked grant is not.

use super::party::{Party, Town};
use crate::common::*;
use oap_federation::ack::{Acknowledgement, Countersignature, MAX_LINKS};
use oap_federation::letter::MAX_LIFE;
use oap_federation::reply::{Reason, Reply};
use oap_federation::{Content, Letter, Outcome, SignedLetter};
use oap_gateway::service::Letters;
use oap_identity::{LetterId, ReceiptId, Signer, json as strict};
use oap_memory::receipt::Receipt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Long enough for whoever answers, on a machine that does much else.
const PATIENT: u64 = 25;

/// Who gave, and who asked and was answered once.
struct Scene {
    giver: Party,
    asker: Party,
    grant: Value,
    hash: String,
}

/// The answers of which something is kept, newest first.
async fn acks(of: &Party) -> Vec<Value> {
    let list = of.world.owner("GET", "/oap/owner/acks", None).await.ok();
    list["answers"].as_array().unwrap().clone()
}

/// The only one of them: signatures and order.
async fn only(of: &Party) -> (u64, u64) {
    let all = acks(of).await;
    assert_eq!(all.len(), 1, "{all:?}");
    (all[0]["acknowledgements"].as_u64().unwrap(), all[0]["order"].as_u64().unwrap())
}

async fn automatic(of: &Party, automatic: bool, grant: Option<&str>) {
    let mut setting = json!({"automatic": automatic});
    if let Some(grant) = grant {
        setting["grant"] = grant.into();
    }
    of.world.owner("POST", "/oap/owner/acks", Some(&setting)).await.ok();
}

async fn send(of: &Party) -> usize {
    Letters(&of.world.gateway).send_due().await.unwrap()
}

async fn give(of: &Party, receipt: &str) -> Answer {
    of.world.owner("POST", &format!("/oap/owner/acks/{receipt}/give"), None).await
}

async fn show(of: &Party, receipt: &str) -> Value {
    of.world.owner("GET", &format!("/oap/owner/acks/{receipt}"), None).await.ok()
}

fn signer(of: &Party) -> Arc<Signer> {
    of.world.gateway.keys().current().clone()
}

/// A letter as its sender would write it, whatever its gateway does; the reply, which is believed.
async fn letter(from: &Party, to: &Party, number: u8, content: Content) -> Reply {
    letter_by(&signer(from), from, to, number, content).await
}

async fn letter_by(by: &Signer, from: &Party, to: &Party, number: u8, content: Content) -> Reply {
    let now = to.world.now();
    let letter = Letter {
        id: LetterId::from_bytes([number; 16]),
        from: from.did.parse().unwrap(),
        to: to.did.parse().unwrap(),
        issued_at: now,
        expires_at: now.plus(MAX_LIFE),
        content,
    };
    let signed = SignedLetter::sign(&letter, by).unwrap();
    let body = strict::parse(signed.bytes()).unwrap();
    let answer = to.world.raw("POST", "/oap/peer/letter", &[], Some(&body)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    Reply::verify(&answer.bytes, signed.hash(), &to.world.document(), now).unwrap()
}

fn outcome(reply: &Reply) -> (Outcome, Option<Reason>) {
    (reply.outcome, reply.reason)
}

const TAKEN: (Outcome, Option<Reason>) = (Outcome::Taken, None);

const fn refused(reason: Reason) -> (Outcome, Option<Reason>) {
    (Outcome::Refused, Some(reason))
}

impl Scene {
    async fn new(town: &Town) -> Self {
        let (giver, asker) = (town.party(300).await, town.party(301).await);
        giver.world.capture(&[note("Tea at four", &["tea"])]).await;
        let (grant, hash) = giver.grants(&asker, "tea").await;
        Self { giver, asker, grant, hash }
    }

    /// The asker recalls; the hash of the receipt.
    async fn answered(&self) -> String {
        let before = acks(&self.asker).await;
        let found = self.asker.recall("tea", PATIENT).await;
        assert_eq!(super::verdict(&found, &self.giver).0, "answered", "{found}");
        let after = acks(&self.asker).await;
        let is_known = |one: &Value| before.iter().any(|known| known["receipt_hash"] == one["receipt_hash"]);
        let new: Vec<&Value> = after.iter().filter(|one| !is_known(one)).collect();
        assert_eq!(new.len(), 1, "{after:?}");
        new[0]["receipt_hash"].as_str().unwrap().to_owned()
    }

    /// The receipt, as the asker has it.
    async fn receipt(&self, hash: &str) -> Receipt {
        serde_json::from_value(show(&self.asker, hash).await["receipt"].clone()).unwrap()
    }

    /// How many signatures the receipt has at the giver's.
    async fn signatures(&self, receipt: &Receipt) -> usize {
        let log = self.giver.world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
        let receipts = log["receipts"].as_array().unwrap();
        let id = json!(receipt.receipt_id);
        let found = receipts.iter().find(|one| one["receipt_id"] == id).unwrap();
        found["signatures"].as_array().unwrap().len()
    }
}

/// Off unless the owner says otherwise: nothing is signed, nothing is sent; what was got is there to be acknowledged by hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_acknowledged_that_the_owner_did_not_allow() {
    let town = Town::new();
    let scene = Scene::new(&town).await;
    let hash = scene.answered().await;
    assert_eq!((only(&scene.asker).await, send(&scene.asker).await), ((0, 1), 0));
    assert!(acks(&scene.giver).await.is_empty());
    let receipt = scene.receipt(&hash).await;
    assert_eq!(receipt.hash().unwrap().to_string(), hash);
    assert_eq!(scene.signatures(&receipt).await, 1);
    // By hand, on one side; the other side says nothing of itself.
    let given = give(&scene.asker, &hash).await.ok();
    assert_eq!(
        (&given["answer"]["acknowledgements"], &given["answer"]["letter"]),
        (&json!(1), &json!("waiting"))
    );
    give(&scene.asker, &hash).await.refused(409, "conflict");
    assert_eq!((send(&scene.asker).await, send(&scene.giver).await), (1, 0));
    assert_eq!((only(&scene.giver).await, only(&scene.asker).await), ((1, 2), (1, 1)));
    assert_eq!(scene.signatures(&receipt).await, 2);
    give(&scene.asker, &hash).await.refused(409, "conflict");
    assert_eq!(show(&scene.asker, &hash).await["answer"]["letter"], "delivered");
    scene.giver.world.chains_hold().await;
    scene.asker.world.chains_hold().await;
}

/// Each on its own: the receipt is countersigned, the countersignature is answered, and there it ends; by hand it goes on, up to the bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn gateways_acknowledge_on_their_own_where_both_owners_let_them() {
    let town = Town::new();
    let scene = Scene::new(&town).await;
    automatic(&scene.asker, true, None).await;
    automatic(&scene.giver, true, None).await;
    let hash = scene.answered().await;
    assert_eq!(only(&scene.asker).await, (1, 1));
    assert_eq!((send(&scene.asker).await, send(&scene.asker).await), (1, 0));
    assert_eq!(
        (only(&scene.giver).await, send(&scene.giver).await, send(&scene.giver).await),
        ((2, 2), 1, 0)
    );
    assert_eq!((only(&scene.asker).await, send(&scene.asker).await), ((2, 3), 0));
    // On, by hand: each signature that arrives is one order more, to whom it arrives.
    for number in 3..=MAX_LINKS as u64 {
        let (from, to) =
            if number % 2 == 1 { (&scene.asker, &scene.giver) } else { (&scene.giver, &scene.asker) };
        give(to, &hash).await.refused(409, "conflict");
        give(from, &hash).await.ok();
        assert_eq!((send(from).await, send(to).await), (1, 0));
        assert_eq!((only(from).await, only(to).await), ((number, number), (number, number + 1)));
    }
    for party in [&scene.asker, &scene.giver] {
        give(party, &hash).await.refused(409, "conflict");
        let proof = show(party, &hash).await;
        assert_eq!(proof["signed"].as_array().unwrap().len(), MAX_LINKS);
    }
    assert_eq!(show(&scene.asker, &hash).await["signed"], show(&scene.giver, &hash).await["signed"]);
    scene.giver.world.chains_hold().await;
}

/// What the owner says of one grant goes before what is said of all.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_grant_has_a_setting_of_its_own() {
    let town = Town::new();
    let scene = Scene::new(&town).await;
    automatic(&scene.asker, true, None).await;
    automatic(&scene.asker, false, Some(&scene.hash)).await;
    scene.answered().await;
    assert_eq!(only(&scene.asker).await, (0, 1));
    automatic(&scene.asker, false, None).await;
    automatic(&scene.asker, true, Some(&scene.hash)).await;
    scene.answered().await;
    let signed: Vec<u64> =
        acks(&scene.asker).await.iter().map(|one| one["acknowledgements"].as_u64().unwrap()).collect();
    // What came before stays as it is.
    assert_eq!((signed.len(), signed.iter().sum::<u64>()), (2, 1));
    let nobodys = json!({"automatic": true, "grant": oap_identity::Hash::of(b"x")});
    scene.asker.world.owner("POST", "/oap/owner/acks", Some(&nobodys)).await.refused(404, "not_found");
}

/// The attack: a letter says that something was got which was never given: another id, another's receipt, a receipt that names nobody's answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_never_given_is_not_acknowledged() {
    let town = Town::new();
    let scene = Scene::new(&town).await;
    let stranger = town.party(302).await;
    automatic(&scene.giver, true, None).await;
    let hash = scene.answered().await;
    let receipt = scene.receipt(&hash).await;
    let by = |of: &Party, receipt: &Receipt| {
        Content::Countersignature(Box::new(Countersignature::sign(receipt, &signer(of)).unwrap()))
    };
    let unknown = refused(Reason::Unknown);
    // Made up, and signed by whoever claims it.
    let mut invented = receipt.clone();
    invented.receipt_id = ReceiptId::from_bytes([9; 16]);
    let reply = letter(&scene.asker, &scene.giver, 1, by(&scene.asker, &invented)).await;
    assert_eq!(outcome(&reply), unknown);
    // The right id, and other words.
    let mut bent = receipt.clone();
    bent.provenance_tags_out.clear();
    let reply = letter(&scene.asker, &scene.giver, 2, by(&scene.asker, &bent)).await;
    assert_eq!(outcome(&reply), unknown);
    // Somebody else's answer, under the stranger's own name and under the grantee's.
    let reply = letter(&stranger, &scene.giver, 3, by(&stranger, &receipt)).await;
    assert_eq!(outcome(&reply), unknown);
    let reply = letter(&stranger, &scene.giver, 4, by(&scene.asker, &receipt)).await;
    assert_eq!(outcome(&reply), unknown);
    // What names the grantee and is no answer: the exchange of its grant for a token.
    let log = scene.giver.world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
    let other = log["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["agent_did"] == scene.asker.did.as_str() && one["action_id"] != "memory.query");
    let other: Receipt = serde_json::from_value(other.unwrap().clone()).unwrap();
    let reply = letter(&scene.asker, &scene.giver, 5, by(&scene.asker, &other)).await;
    assert_eq!(outcome(&reply), unknown);
    assert!(acks(&scene.giver).await.is_empty());
    assert_eq!((scene.signatures(&receipt).await, send(&scene.giver).await), (1, 0));
    // And one that was given is, all the same.
    let reply = letter(&scene.asker, &scene.giver, 6, by(&scene.asker, &receipt)).await;
    assert_eq!((outcome(&reply), only(&scene.giver).await), (TAKEN, (2, 2)));
}

/// The attack: a granter says that it has what was never signed; and nothing is countersigned because somebody says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_is_talked_into_an_acknowledgement() {
    let town = Town::new();
    let scene = Scene::new(&town).await;
    let hash = scene.answered().await;
    let receipt = scene.receipt(&hash).await;
    automatic(&scene.asker, true, None).await;
    let mut chain = oap_federation::ack::Chain::new(
        receipt.receipt_id,
        receipt.hash().unwrap(),
        scene.giver.did.parse().unwrap(),
        scene.asker.did.parse().unwrap(),
    );
    // A countersignature that the asker never made, forged by the giver for its own second link to stand on.
    let forged = Countersignature::sign(&receipt, &signer(&scene.asker)).unwrap();
    let now = scene.asker.world.now();
    let verified = forged.verify(&receipt, &scene.asker.world.document()).unwrap();
    chain.take(&verified, now);
    let second = chain.sign_next(&signer(&scene.giver), now).unwrap();
    let reply = letter(&scene.giver, &scene.asker, 1, Content::Acknowledgement(second.clone())).await;
    assert_eq!(outcome(&reply), refused(Reason::NotNext));
    // A receipt that the asker never got, signed by the giver as it may: nothing of it is known here.
    let mut never = receipt.clone();
    never.receipt_id = ReceiptId::from_bytes([8; 16]);
    never.sign(&signer(&scene.giver)).unwrap();
    let countersigned =
        Content::Countersignature(Box::new(Countersignature::sign(&never, &signer(&scene.giver)).unwrap()));
    let reply = letter(&scene.giver, &scene.asker, 2, countersigned).await;
    assert_eq!(outcome(&reply), refused(Reason::Unknown));
    // A stranger in the granter's place.
    let stranger = town.party(302).await;
    let reply = letter(&stranger, &scene.asker, 3, Content::Acknowledgement(second)).await;
    assert_eq!(outcome(&reply), refused(Reason::Unknown));
    assert_eq!((only(&scene.asker).await, send(&scene.asker).await), ((0, 1), 0));
}

/// The attack: the same again, out of order, in another name, over something else. Each has its effect once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn acknowledgements_follow_each_other_once() {
    let town = Town::new();
    let scene = Scene::new(&town).await;
    let hash = scene.answered().await;
    let receipt = scene.receipt(&hash).await;
    let first = Countersignature::sign(&receipt, &signer(&scene.asker)).unwrap();
    let first = Content::Countersignature(Box::new(first));
    for number in 1..=3 {
        let reply = letter(&scene.asker, &scene.giver, number, first.clone()).await;
        assert_eq!((outcome(&reply), only(&scene.giver).await), (TAKEN, (1, 2)));
        assert_eq!(scene.signatures(&receipt).await, 2);
    }
    give(&scene.giver, &hash).await.ok();
    // Its own gateway did not countersign that: what the giver sends stands on nothing there, and is told so.
    assert_eq!(send(&scene.giver).await, 1);
    assert_eq!(
        (only(&scene.asker).await, &show(&scene.giver, &hash).await["answer"]["letter"]),
        ((0, 1), &json!("refused"))
    );
    // Once it did, the letter that came to nothing is sent once more, and arrives.
    give(&scene.asker, &hash).await.ok();
    assert_eq!((send(&scene.asker).await, only(&scene.giver).await), (1, (2, 2)));
    give(&scene.giver, &hash).await.ok();
    assert_eq!(
        (send(&scene.giver).await, only(&scene.giver).await, only(&scene.asker).await),
        (1, (2, 2), (2, 3))
    );

    let signed = show(&scene.giver, &hash).await["signed"].clone();
    let second = Acknowledgement { acknowledgement: signed[1].clone() };
    // Replayed; by the wrong side; over something else; with a number that is to come.
    let again = letter(&scene.giver, &scene.asker, 10, Content::Acknowledgement(second.clone())).await;
    assert_eq!((outcome(&again), only(&scene.asker).await), (TAKEN, (2, 3)));
    let mirrored = letter(&scene.asker, &scene.giver, 11, Content::Acknowledgement(second)).await;
    assert_eq!(outcome(&mirrored), refused(Reason::Unknown));
    let ahead = |number: u64, by: &Party| {
        let mut statement = signed[1].clone();
        statement.as_object_mut().unwrap().remove("signature");
        (statement["number"], statement["by"]) = (json!(number), json!(by.did));
        let bytes = strict::canonical(&statement).unwrap();
        let signature = oap_identity::DetachedSignature::sign(&bytes, &signer(by));
        statement["signature"] = serde_json::to_value(&signature).unwrap();
        Content::Acknowledgement(Acknowledgement { acknowledgement: statement })
    };
    for (letter_number, number) in [(12, 3), (13, 5), (14, 4), (15, 2)] {
        let reply = letter(&scene.asker, &scene.giver, letter_number, ahead(number, &scene.asker)).await;
        assert_eq!(outcome(&reply), refused(Reason::NotNext), "{number}");
    }
    assert_eq!((only(&scene.giver).await, only(&scene.asker).await), ((2, 2), (2, 3)));
    scene.giver.world.chains_hold().await;
}

/// The attack: a grantee whose grant was taken back keeps the conversation going; and a granter who took it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_revoked_grant_ends_it() {
    let town = Town::new();
    let scene = Scene::new(&town).await;
    let hash = scene.answered().await;
    let receipt = scene.receipt(&hash).await;
    let id = scene.grant["grant_id"].as_str().unwrap();
    let other = scene.answered().await;
    assert_ne!(other, hash);
    let first = |receipt: &Receipt| {
        Content::Countersignature(Box::new(Countersignature::sign(receipt, &signer(&scene.asker)).unwrap()))
    };
    let reply = letter(&scene.asker, &scene.giver, 1, first(&receipt)).await;
    assert_eq!(outcome(&reply), TAKEN);
    automatic(&scene.giver, true, None).await;
    scene.giver.world.owner("POST", &format!("/oap/owner/grants/{id}/revoke"), None).await.ok();
    let later = scene.receipt(&other).await;
    let reply = letter(&scene.asker, &scene.giver, 2, first(&later)).await;
    assert_eq!((outcome(&reply), scene.signatures(&later).await), (refused(Reason::Over), 1));
    give(&scene.giver, &hash).await.refused(409, "conflict");
    // The revocation arrives: nothing more is signed on this side either, by hand or by itself.
    assert_eq!(send(&scene.giver).await, 1);
    give(&scene.asker, &other).await.refused(409, "conflict");
    assert_eq!((send(&scene.asker).await, only(&scene.giver).await), (0, (1, 2)));
    // Of what is not in the wallet any more likewise.
    scene.asker.world.owner("POST", &format!("/oap/owner/received/{}/remove", scene.hash), None).await.ok();
    give(&scene.asker, &hash).await.refused(409, "conflict");
}

/// The key that signs must be in force: a revoked one acknowledges nothing, whatever the letter around it is signed with.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_revoked_key_acknowledges_nothing() {
    let town = Town::new();
    let scene = Scene::new(&town).await;
    let hash = scene.answered().await;
    let receipt = scene.receipt(&hash).await;
    let former = signer(&scene.asker);
    let kid = former.kid().fragment().to_owned();
    scene.asker.world.owner("POST", &format!("/oap/owner/keys/{kid}/revoke"), Some(&json!({}))).await.ok();
    let current = signer(&scene.asker);
    assert_ne!(former.kid(), current.kid());
    // What the giver remembers of the asker's keys is read anew after a while.
    scene.giver.world.clock.advance(Duration::from_secs(660));
    let signed =
        |by: &Signer| Content::Countersignature(Box::new(Countersignature::sign(&receipt, by).unwrap()));
    let reply = letter_by(&current, &scene.asker, &scene.giver, 1, signed(&former)).await;
    assert_eq!(outcome(&reply), refused(Reason::Unknown));
    let reply = letter_by(&current, &scene.asker, &scene.giver, 2, signed(&current)).await;
    assert_eq!(outcome(&reply), TAKEN);
}

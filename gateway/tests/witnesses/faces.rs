//! A gateway with two faces: one key, two histories, each shown to another grantee. Witnesses sign one of them.

use super::*;
use crate::federated::party::{Mode, Party, Town, theirs, verdict};

const PATIENT: u64 = 25;

async fn post(world: &World, path: &str, body: Value) -> Value {
    world.owner("POST", &format!("/oap/owner/{path}"), Some(&body)).await.ok()
}

/// Pins each of these at a gateway.
async fn pins(world: &World, peers: &[&Party]) {
    for peer in peers {
        post(world, "peers", json!({"peer": peer.did})).await;
    }
}

/// What a gateway says, granted to a grantee whatever gateway answers for it.
async fn grants(from: &World, to: &Party) {
    let draft = json!({
        "grantee": to.did, "purpose": "x", "filter": {}, "max_items": 500,
        "expires_at": from.now().plus(Duration::from_secs(30 * 86_400)),
        "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
    });
    let grant = from.issue(&draft).await;
    post(&to.world, "received", json!({"grant": grant})).await;
}

fn is(what: &str, reason: &str) -> (String, String) {
    (what.to_owned(), reason.to_owned())
}

struct Story {
    /// Its files are those of all.
    _town: Town,
    liar: Party,
    /// Its other history: the same keys, and nobody reaches it but through the liar.
    second: World,
    witness: Party,
    one: Party,
    other: Party,
}

impl Story {
    async fn new() -> Self {
        let town = Town::new();
        let (liar, witness) = (town.party(200).await, town.party(300).await);
        let (one, other) = (town.party(100).await, town.party(101).await);
        let second = town.world(&liar.did, 200).await;
        // Which face answers while a third party looks who that is does not matter: the documents of both have the same keys.
        pins(&witness.world, &[&liar]).await;
        post(&witness.world, "witnessed", json!({"did": liar.did})).await;
        for (face, says) in [(&liar.world, "The price is 100"), (&second, "The price is 200")] {
            pins(face, &[&witness]).await;
            post(face, "witnesses", json!({"did": witness.did})).await;
            face.capture(&[note(says, &["price"])]).await;
        }
        grants(&liar.world, &one).await;
        grants(&second, &other).await;
        for grantee in [&one, &other] {
            pins(&grantee.world, &[&liar, &witness]).await;
            let demand = json!({"did": liar.did, "need": 1, "of": [witness.did]});
            post(&grantee.world, "peers/witnesses", demand).await;
        }
        Self { _town: town, liar, second, witness, one, other }
    }

    /// So much time goes by, and both faces have their logs signed.
    async fn later(&self, by: Duration) {
        for world in [&self.liar.world, &self.second, &self.witness.world, &self.one.world, &self.other.world]
        {
            world.clock.advance(by);
        }
        for face in [&self.liar.world, &self.second] {
            assert!(Witnesses(&face.gateway).round().await.unwrap());
        }
    }

    /// From now on the second face answers, and shows the checkpoint of this one.
    fn turns(&self, checkpoint: &World) {
        let (answers, checkpoint) = (self.second.router.clone(), checkpoint.router.clone());
        self.liar.set(Mode::Faces { answers, checkpoint });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_gateway_with_two_faces_is_caught() {
    let story = Story::new().await;
    story.later(MINUTE).await;
    // The witness signed the first that came, and kept the other.
    let list = story.witness.world.owner("GET", "/oap/owner/witnessed", None).await.ok();
    let kept = &list["witnessed"][0];
    assert_eq!((&kept["signed"]["size"], &kept["other"]["size"]), (&json!(1), &json!(1)), "{list}");
    let list = story.second.owner("GET", "/oap/owner/witnesses", None).await.ok();
    assert_eq!(list["witnesses"][0]["trouble"]["why"], "other_history", "{list}");
    for (world, says) in [(&story.witness.world, "signed another history"), (&story.second, "other_history")]
    {
        let examined = world.job(&json!({"job": "doctor"})).await;
        assert!(examined.to_string().contains(says), "{examined}");
    }

    let found = story.one.recall("price", PATIENT).await;
    assert_eq!(verdict(&found, &story.liar), is("answered", ""), "{found}");
    assert_eq!(theirs(&found), ["The price is 100"]);
    assert!(story.one.lies().await.is_empty());

    story.turns(&story.second);
    let found = story.other.recall("price", PATIENT).await;
    assert_eq!(verdict(&found, &story.liar), is("lied", "history"), "{found}");
    assert!(theirs(&found).is_empty(), "{found}");
    let lies = story.other.lies().await;
    assert_eq!((lies.len(), &lies[0]["lie"]), (1, &json!("history")), "{lies:?}");
    // Both checkpoints, as its key signed them, are the evidence.
    let evidence = lies[0]["answer"]["beginning"].as_str().unwrap();
    for face in [&story.liar.world, &story.second] {
        let note = face.raw("GET", "/.well-known/oap-checkpoint", &[], None).await;
        let (signed, _) = text(&note).split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert!(evidence.contains(&signed), "{signed} is not in {evidence}");
    }
    // Without the demand it is believed: nothing in one answer shows what others are shown.
    post(&story.other.world, "peers/witnesses", json!({"did": story.liar.did, "need": 0})).await;
    let found = story.other.recall("price", PATIENT).await;
    assert_eq!(theirs(&found), ["The price is 200"], "{found}");
}

/// It shows the checkpoint that the witness signed, and answers out of the other history: what it gave must be in that log half an hour later,
/// and is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_borrowed_checkpoint_does_not_help_for_long() {
    let story = Story::new().await;
    story.later(MINUTE).await;
    story.turns(&story.liar.world);
    let found = story.other.recall("price", PATIENT).await;
    assert_eq!(verdict(&found, &story.liar), is("answered", ""), "{found}");
    story.later(31 * MINUTE).await;
    let found = story.other.recall("price", PATIENT).await;
    assert_eq!(verdict(&found, &story.liar), is("lied", "history"), "{found}");
    assert!(theirs(&found).is_empty(), "{found}");
    assert_eq!(story.other.lies().await.len(), 1);
    // What was owed under a grant is forgotten with it, and not before.
    let received = story.other.world.owner("GET", "/oap/owner/received", None).await.ok();
    let given = &received["received"][0];
    let path = format!("received/{}/remove", given["hash"].as_str().unwrap());
    let found = story.other.recall("price", PATIENT).await;
    assert_eq!(verdict(&found, &story.liar), is("lied", "history"), "{found}");
    post(&story.other.world, &path, json!({})).await;
    post(&story.other.world, "received", json!({"grant": given["grant"]})).await;
    let found = story.other.recall("price", PATIENT).await;
    assert_eq!(verdict(&found, &story.liar), is("answered", ""), "{found}");
    // Whoever is shown the history that is signed goes on without a word.
    story.liar.set(Mode::Honest);
    for _ in 0..2 {
        let found = story.one.recall("price", PATIENT).await;
        assert_eq!(verdict(&found, &story.liar), is("answered", ""), "{found}");
        story.later(31 * MINUTE).await;
    }
    assert!(story.one.lies().await.is_empty());
}

/// During a lockdown of their own the owner recalls, and what others owe is remembered all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_demand_holds_during_a_lockdown() {
    let town = Town::new();
    let (granter, witness) = (town.party(200).await, town.party(300).await);
    let mut asker = town.party(100).await;
    granter.world.capture(&[note("Tea at nine", &["tea"])]).await;
    granter.grants(&asker, "tea").await;
    pins(&witness.world, &[&granter]).await;
    pins(&granter.world, &[&witness]).await;
    pins(&asker.world, &[&granter, &witness]).await;
    post(&witness.world, "witnessed", json!({"did": granter.did})).await;
    post(&granter.world, "witnesses", json!({"did": witness.did})).await;
    post(&asker.world, "peers/witnesses", json!({"did": granter.did, "need": 1, "of": [witness.did]})).await;
    for party in [&granter, &witness, &asker] {
        party.world.clock.advance(MINUTE);
    }
    assert!(Witnesses(&granter.world.gateway).round().await.unwrap());
    let locked = post(&asker.world, "lockdown", json!({})).await;
    asker.world.token = locked["trust_token"].as_str().unwrap().to_owned();
    let found = asker.recall("tea", PATIENT).await;
    assert_eq!(verdict(&found, &granter), is("answered", ""), "{found}");
    assert_eq!(theirs(&found), ["Tea at nine"]);
}

/// A witness that is down, or that does not sign, is nobody's lie; and of two that are demanded one is not enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn too_few_signatures_are_no_lie() {
    let town = Town::new();
    let (granter, mut witness) = (town.party(200).await, town.party(300).await);
    let (idle, asker) = (town.party(301).await, town.party(100).await);
    granter.world.capture(&[note("Tea at nine", &["tea"])]).await;
    granter.grants(&asker, "tea").await;
    pins(&witness.world, &[&granter]).await;
    pins(&granter.world, &[&witness, &idle]).await;
    pins(&asker.world, &[&granter, &witness, &idle]).await;
    post(&witness.world, "witnessed", json!({"did": granter.did})).await;
    for signs in [&witness, &idle] {
        post(&granter.world, "witnesses", json!({"did": signs.did})).await;
    }
    let demand = |need: u8| json!({"did": granter.did, "need": need, "of": [witness.did, idle.did]});
    let (one, two) = (demand(1), demand(2));
    let later = async |by: Duration| {
        for party in [&granter, &idle, &asker] {
            party.world.clock.advance(by);
        }
        assert!(Witnesses(&granter.world.gateway).round().await.unwrap());
    };
    post(&asker.world, "peers/witnesses", two).await;
    // There is no checkpoint at all yet.
    let found = asker.recall("tea", PATIENT).await;
    assert_eq!(verdict(&found, &granter), is("unreachable", "unwitnessed"), "{found}");
    witness.world.clock.advance(MINUTE);
    later(MINUTE).await;
    let found = asker.recall("tea", PATIENT).await;
    assert_eq!(verdict(&found, &granter), is("unreachable", "unwitnessed"), "{found}");
    let list = granter.world.owner("GET", "/oap/owner/witnesses", None).await.ok();
    let whys: Vec<&Value> = list["witnesses"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|witness| witness.get("trouble").map(|trouble| &trouble["why"]))
        .collect();
    assert_eq!(whys, [&json!("not_for_us")], "{list}");
    post(&asker.world, "peers/witnesses", one).await;
    assert_eq!(theirs(&asker.recall("tea", PATIENT).await), ["Tea at nine"]);
    // A signature of an hour ago says nothing of now.
    witness.ends().await;
    later(60 * MINUTE).await;
    let found = asker.recall("tea", PATIENT).await;
    assert_eq!(verdict(&found, &granter), is("unreachable", "unwitnessed"), "{found}");
    assert!(theirs(&found).is_empty() && asker.lies().await.is_empty(), "{found}");
}

//! Letters to gateways that misbehave: nothing but a signed reply to this very letter ends it, and nobody else's letter waits for them.

use super::*;
use crate::played::Shown;
use oap_federation::ask::AskState;
use oap_federation::reply::AccessReply;
use oap_grants::{Grant, LawfulBasis, Operation, SignedGrant};
use oap_identity::{Did, GrantId, ScopedDid};
use oap_memory::{Filter, TrustLevel};
use std::collections::BTreeSet;

fn pending() -> LetterResult {
    LetterResult::access(AccessReply { state: AskState::Pending, grant: None, word: None })
}

/// Each of them once, and an honest one among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn letters_to_hosts_that_misbehave_wait_and_those_to_others_arrive() {
    let (trust, elsewhere) = (Trust::new(), inside());
    let world = world(&trust).await;
    let (honest, other) = (peer(&world, &trust).await, peer(&world, &trust).await);
    honest.reply(path::LETTER, says(honest.signer(1), pending()));
    asks(&world, &honest, 5).await;
    let status = |status: &str| Reply::Raw(http(status, "", b""));
    // A reply to the letter that another peer signed, one to another letter, and one that nobody signed.
    let borrowed = says(other.signer(1), pending());
    let to_another = Reply::Made(Arc::new(|body| {
        let mut letter = strict::parse(body).unwrap();
        letter["issued_at"] = json!(Timestamp::from_millis(START));
        letter["id"] = json!("ltr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
        let did: Did = letter["to"].as_str().unwrap().parse().unwrap();
        let signer = Signer::from_seed(did.key("key-1").unwrap(), &[1; 32]).unwrap();
        reply_to(&letter, pending(), &signer)
    }));
    let unsigned = Reply::Made(Arc::new(|body| {
        let letter = strict::parse(body).unwrap();
        let hash = Hash::of_canonical(&letter).unwrap();
        let reply = json!({
            "oap": "1.0", "type": "reply", "to": hash, "from": letter["to"], "at": letter["issued_at"],
            "outcome": "taken", "access": {"state": "pending"},
        });
        http("200 OK", "", reply.to_string().as_bytes())
    }));
    let forged = Reply::Made(Arc::new(|body| {
        let letter = strict::parse(body).unwrap();
        let did: Did = letter["to"].as_str().unwrap().parse().unwrap();
        // Under the name of the key that is published, and with another.
        let signer = Signer::from_seed(did.key("key-1").unwrap(), &[9; 32]).unwrap();
        reply_to(&letter, pending(), &signer)
    }));
    let cases = [
        (path::DID, Reply::Raw(Vec::new()), "no_document"),
        (path::DID, Reply::Silent, "no_document"),
        (path::DID, cut_off(), "no_document"),
        (path::DID, Reply::Endless, "no_document"),
        (path::DID, Reply::Bare(deep()), "no_document"),
        (path::DID, onward(&elsewhere), "no_document"),
        (path::DID, Reply::Bare(other.body(path::DID)), "no_document"),
        (path::MEMORY_MANIFEST, Reply::Silent, "unreachable"),
        (path::MEMORY_MANIFEST, cut_off(), "unreachable"),
        (path::MEMORY_MANIFEST, Reply::Endless, "unreachable"),
        (path::MEMORY_MANIFEST, onward(&elsewhere), "unreachable"),
        (path::MEMORY_MANIFEST, Reply::Bare(deep()), "not_sound"),
        (path::MEMORY_MANIFEST, Reply::Bare(other.body(path::MEMORY_MANIFEST)), "not_sound"),
        (path::LETTER, Reply::Raw(Vec::new()), "unreachable"),
        (path::LETTER, Reply::Silent, "unreachable"),
        (path::LETTER, cut_off(), "unreachable"),
        (path::LETTER, Reply::Endless, "unreachable"),
        (path::LETTER, Reply::Bare(deep()), "no_reply"),
        (path::LETTER, onward(&elsewhere), "no_reply"),
        (path::LETTER, status("500 Internal Server Error"), "no_reply"),
        (path::LETTER, Reply::Bare(b"{\"outcome\":\"taken\"}".to_vec()), "no_reply"),
        (path::LETTER, borrowed, "no_reply"),
        (path::LETTER, to_another, "no_reply"),
        (path::LETTER, unsigned, "no_reply"),
        (path::LETTER, forged, "no_reply"),
    ];
    let mut peers = Vec::new();
    for (path, reply, failure) in cases {
        let peer = peer(&world, &trust).await;
        peer.reply(path::LETTER, says(peer.signer(1), pending()));
        peer.reply(path, reply);
        let request = asks(&world, &peer, 5).await;
        peers.push((peer, path, failure, request));
    }
    let tried = tokio::time::timeout(Duration::from_secs(240), send_due(&world)).await.expect("it hangs");
    assert_eq!(tried, peers.len() + 1);
    assert_eq!(letter_to(&world, &honest).await.0, "delivered");
    for (number, (peer, path, failure, request)) in peers.iter().enumerate() {
        assert_eq!(letter_to(&world, peer).await, pair("waiting", failure), "{number} {path}");
        let asked = get(&world, &format!("asked/{request}")).await;
        assert_eq!(
            (&asked["state"], &asked["heard_at"]),
            (&json!("pending"), &Value::Null),
            "{number} {path}"
        );
    }
    assert_eq!(get(&world, "received").await["received"], json!([]));
    nobody_came(&elsewhere);

    // Once they are themselves again they have their letters.
    let shown = PlayedPeer::shown(world.now());
    for (peer, ..) in &peers {
        peer.publish(&shown);
        peer.reply(path::LETTER, says(peer.signer(1), pending()));
    }
    // Longer than anything that was put off, and than what is remembered of a DID.
    world.clock.advance(Duration::from_secs(660));
    assert_eq!(send_due(&world).await, peers.len());
    for (number, (peer, path, ..)) in peers.iter().enumerate() {
        assert_eq!(letter_to(&world, peer).await.0, "delivered", "{number} {path}");
    }
}

/// The attack: a gateway that answers each letter, and takes almost all the time that it has. The letters to others are in the next pass, which
/// waits for this one: it ends long before each of its letters had its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_takes_their_time_holds_up_nobody_else() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let (honest, slow) = (peer(&world, &trust).await, peer(&world, &trust).await);
    honest.reply(path::LETTER, says(honest.signer(1), pending()));
    // More than half of what a gateway has in a pass.
    let each = Duration::from_secs(11);
    assert!(2 * each > oap_gateway::service::turns::TURN);
    slow.reply(path::LETTER, Reply::Slow(each, saying(slow.signer(1), |_| pending())));
    for n in 1..=4 {
        asks(&world, &slow, n).await;
    }
    asks(&world, &honest, 1).await;
    let tried = send_due(&world).await;
    assert!(tried <= 3, "{tried} letters of a pass");
    assert_eq!(letter_to(&world, &honest).await.0, "delivered");
    let letters = letters_to(&world, &slow).await;
    let left: Vec<&Value> = letters.iter().filter(|letter| letter["state"] == "waiting").collect();
    assert!(left.len() >= 2, "{letters:?}");
    // They were not tried, and nothing puts them off.
    assert!(left.iter().any(|letter| letter["attempts"] == 0), "{letters:?}");
    slow.reply(path::LETTER, says(slow.signer(1), pending()));
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(send_due(&world).await, left.len());
    assert!(letters_to(&world, &slow).await.iter().all(|letter| letter["state"] == "delivered"));
}

/// Where a gateway takes letters is looked up once for all that it has in a pass: one request and one signature less for each letter.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_place_is_looked_up_once_for_the_letters_of_a_pass() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    peer.reply(path::LETTER, says(peer.signer(1), pending()));
    for n in 1..=3 {
        asks(&world, &peer, n).await;
    }
    peer.asked();
    assert_eq!(send_due(&world).await, 3);
    let asked = peer.asked();
    let count = |path: &str| asked.iter().filter(|asked| asked.path == path).count();
    assert_eq!((count(path::MEMORY_MANIFEST), count(path::LETTER)), (1, 3), "{asked:?}");
    assert!(letters_to(&world, &peer).await.iter().all(|letter| letter["state"] == "delivered"));
}

/// Keys that are changed between two attempts: they are looked up with the next one, and not only when what is remembered of the peer is over.
/// Whoever signs with keys that nobody published has them looked up once a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_that_was_changed_between_two_attempts_is_looked_up() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let shown = PlayedPeer::shown(world.now());
    let later = LetterResult { outcome: oap_federation::Outcome::Later, ..LetterResult::taken() };
    for (signer, failure) in [(2, "not_sound"), (1, "no_reply")] {
        let peer = peer(&world, &trust).await;
        peer.reply(path::LETTER, says(peer.signer(1), later.clone()));
        asks(&world, &peer, 5).await;
        assert_eq!(send_due(&world).await, 1);
        assert_eq!(letter_to(&world, &peer).await, pair("waiting", "later"));
        // The manifest is signed by the new key, or still by the former one; the reply by the new one.
        let keys = vec![(2, None), (1, (signer == 2).then(|| world.now()))];
        peer.publish(&Shown { keys, signer, ..shown.clone() });
        peer.reply(path::LETTER, says(peer.signer(2), pending()));
        peer.asked();
        world.clock.advance(Duration::from_secs(5));
        assert_eq!(send_due(&world).await, 1);
        assert_eq!(letter_to(&world, &peer).await, pair("waiting", failure));
        assert!(peer.asked().iter().all(|asked| asked.path != path::DID));
        world.clock.advance(Duration::from_secs(60));
        assert_eq!(send_due(&world).await, 1);
        assert_eq!(letter_to(&world, &peer).await.0, "delivered", "{failure}");
    }
}

fn grant(world: &World, granter: &Signer, grantee: &Did) -> Value {
    let grant = Grant {
        version: 1,
        grant_id: GrantId::new(world.now(), &world.fresh()),
        granter: ScopedDid { principal: granter.did().clone(), scope: "personal".parse().unwrap() },
        grantee: grantee.clone(),
        purpose: "Website redesign".to_owned(),
        purpose_codes: Vec::new(),
        filter: Filter::default(),
        max_items: 5,
        issued_at: world.now(),
        not_before: None,
        expires_at: world.now().plus(DAY),
        revocable: true,
        redaction_profile: "oap.profile.projection.memory.v1".to_owned(),
        trust_level: TrustLevel::STRANGER,
        lawful_basis: LawfulBasis::default(),
        operations: BTreeSet::from([Operation::Query]),
        embedding_access: false,
        delegable: None,
        parent: None,
        budget: None,
        bearer: false,
        status: None,
    };
    SignedGrant::sign(grant, granter).unwrap().document().clone()
}

/// A granter that says yes, and hands over what is no grant of theirs to this owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_yes_with_a_grant_that_does_not_hold_gives_nothing() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let own: Did = PRINCIPAL.parse().unwrap();
    let mut peers = Vec::new();
    for case in 0..5 {
        let peer = peer(&world, &trust).await;
        let theirs = grant(&world, &peer.signer(1), &own);
        let handed = match case {
            0 => Some(grant(&world, &agent(7), &own)),
            1 => Some(grant(&world, &peer.signer(1), agent(7).did())),
            2 => {
                let mut changed = theirs.clone();
                changed["max_items"] = json!(500);
                Some(changed)
            }
            // A yes alone is none.
            3 => None,
            _ => Some(theirs),
        };
        let access = AccessReply { state: AskState::Approved, grant: handed, word: None };
        peer.reply(path::LETTER, says(peer.signer(1), LetterResult::access(access)));
        let request = asks(&world, &peer, 5).await;
        peers.push((peer, request));
    }
    assert_eq!(send_due(&world).await, peers.len());
    for (case, (peer, request)) in peers.iter().enumerate() {
        assert_eq!(letter_to(&world, peer).await.0, "delivered", "{case}");
        let state = get(&world, &format!("asked/{request}")).await["state"].clone();
        assert_eq!(state, if case == 4 { "approved" } else { "pending" }, "{case}");
    }
    let received = get(&world, "received").await["received"].clone();
    assert_eq!(received.as_array().unwrap().len(), 1, "{received}");
    assert_eq!(received[0]["granter"], peers[4].0.did.as_str());
}

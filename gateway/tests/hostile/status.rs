//! The status list of a granter, looked up for a grant in the wallet: one that does not hold says nothing, and none gives back what was revoked.

use super::*;
use crate::played::Shown;
use oap_grants::grant::{StatusIndex, StatusRef};
use oap_grants::{Grant, LawfulBasis, Operation, SignedGrant, status};
use oap_identity::{GrantId, ScopedDid};
use oap_memory::{Filter, TrustLevel};
use std::collections::BTreeSet;

pub(super) const LIST: &str = "/oap/memory/status";

/// A grant of a peer's to the principal of these tests, with its place in the peer's list.
pub(super) fn grant(world: &World, peer: &PlayedPeer, idx: u32) -> SignedGrant {
    let uri = format!("{}{LIST}", peer.origin);
    let grant = Grant {
        version: 1,
        grant_id: GrantId::new(world.now(), &world.fresh()),
        granter: ScopedDid { principal: peer.did.clone(), scope: "personal".parse().unwrap() },
        grantee: PRINCIPAL.parse().unwrap(),
        purpose: "testing".to_owned(),
        purpose_codes: Vec::new(),
        filter: Filter::default(),
        max_items: 10,
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
        status: Some(StatusRef { status_list: StatusIndex { idx, uri } }),
    };
    SignedGrant::sign(grant, &peer.signer(1)).unwrap()
}

/// A grant by a key that is newer than what is remembered of the granter is taken, and one by a key that its document does not have is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_grant_by_a_new_key_is_taken_from_a_file() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    let add = async |grant: SignedGrant| {
        let body = json!({"grant": grant.document()});
        world.owner("POST", "/oap/owner/received", Some(&body)).await
    };
    add(grant(&world, &peer, 7)).await.ok();
    let keys = vec![(1, None), (2, None)];
    peer.publish(&Shown { keys, ..PlayedPeer::shown(world.now()) });
    let by = |key: u8| {
        let other = grant(&world, &peer, 8).grant().clone();
        SignedGrant::sign(other, &peer.signer(key)).unwrap()
    };
    add(by(3)).await.refused(400, "invalid_input");
    // What was forgotten for that one is remembered again.
    let keys = vec![(1, None), (2, None), (4, None)];
    peer.publish(&Shown { keys, ..PlayedPeer::shown(world.now()) });
    add(by(4)).await.ok();
    assert_eq!(get(&world, "received").await["received"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_list_that_does_not_hold_says_nothing() {
    let (trust, elsewhere) = (Trust::new(), inside());
    let world = world(&trust).await;
    let (peer, other) = (peer(&world, &trust).await, peer(&world, &trust).await);
    let grant = grant(&world, &peer, 7);
    let body = json!({"grant": grant.document()});
    world.owner("POST", "/oap/owner/received", Some(&body)).await.ok();
    let check = async || {
        let path = format!("/oap/owner/received/{}/check", grant.hash());
        let checked = world.owner("POST", &path, None);
        tokio::time::timeout(Duration::from_secs(60), checked).await.expect("it hangs")
    };
    let (now, own) = (world.now(), format!("{}{LIST}", peer.origin));
    let list = |revoked: &[u32], address: &str, signer: &Signer, at: Timestamp| {
        let list = status::publish(revoked.iter().copied(), address, signer, at).unwrap();
        Reply::Bare(list.into_bytes())
    };
    let minutes = |n: u64| Duration::from_secs(60 * n);
    let key = peer.signer(1);
    let taken = Signer::from_seed(peer.did.key("key-1").unwrap(), &[9; 32]).unwrap();
    let theirs = format!("{}{LIST}", other.origin);
    let cases = [
        ("nothing", Reply::Raw(Vec::new())),
        ("500", Reply::Raw(http("500 Internal Server Error", "", b""))),
        ("cut off", cut_off()),
        ("silent", Reply::Silent),
        ("endless", Reply::Endless),
        ("deep", Reply::Bare(deep())),
        ("elsewhere", onward(&elsewhere)),
        ("another's", list(&[7], &theirs, &other.signer(1), now)),
        ("another's, of this address", list(&[7], &own, &other.signer(1), now)),
        ("of another address", list(&[7], &theirs, &key, now)),
        ("by another key", list(&[7], &own, &taken, now)),
        ("over", list(&[7], &own, &key, now.minus(minutes(6)))),
        ("by a clock ten minutes ahead", list(&[7], &own, &key, now.plus(minutes(10)))),
        ("by a clock ten minutes behind", list(&[7], &own, &key, now.minus(minutes(10)))),
    ];
    for (case, reply) in cases {
        peer.reply(LIST, reply);
        let answer = check().await;
        assert_eq!(answer.status, 503, "{case}: {}", answer.body);
        let received = get(&world, &format!("received/{}", grant.hash())).await;
        let said = (&received["state"], &received["checked_at"]);
        assert_eq!(said, (&json!("active"), &Value::Null), "{case}");
    }
    nobody_came(&elsewhere);
    let clear = list(&[6, 8], &own, &key, now);
    peer.reply(LIST, clear);
    assert_eq!(check().await.ok()["state"], "active");
    // Its key is changed, and what is remembered of it is not over: the list is believed at once.
    let keys = vec![(2, None), (1, Some(now))];
    peer.publish(&Shown { keys, signer: 2, ..PlayedPeer::shown(now) });
    peer.reply(LIST, list(&[6, 8], &own, &peer.signer(2), now));
    assert_eq!(check().await.ok()["state"], "active");
    peer.reply(LIST, list(&[7], &own, &peer.signer(2), now));
    assert_eq!(check().await.ok()["state"], "revoked");
    // The attack: a list of before, in its time. What was revoked stays so.
    peer.reply(LIST, list(&[6, 8], &own, &peer.signer(2), now));
    assert_eq!(check().await.ok()["state"], "revoked");
}

//! Each way in which a peer may change, and that no key is believed that no pinned key signed for.

use super::*;
use crate::pin::{Digests, PinnedKey};
use oap_identity::{Did, Hash, Signer};
use oap_manifest::handover::Handover;
use proptest::prelude::*;

const NOON: Timestamp = Timestamp::from_seconds(1_777_636_800);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(1_777_636_800 + seconds)
}

fn did() -> Did {
    "did:web:peer.example".parse().unwrap()
}

/// The key of a number: its seed and its id are of that number.
fn signer(number: u8) -> Signer {
    Signer::from_seed(did().key(&format!("key-{number}")).unwrap(), &[number; 32]).unwrap()
}

fn kid(number: u8) -> Kid {
    signer(number).kid().clone()
}

fn key(number: u8) -> VerificationKey {
    VerificationKey::new(kid(number), *signer(number).public())
}

/// What key `by` says of key `next`, when it was so many seconds after noon.
fn handover(by: u8, next: u8, seconds: i64) -> Handover {
    Handover::read(Handover::sign(&signer(by), &key(next), at(seconds)).unwrap()).unwrap()
}

fn pin(keys: Vec<VerificationKey>) -> Pin {
    let hash = Hash::of(b"as it was");
    Pin {
        did: did(),
        origin: "https://peer.example".parse().unwrap(),
        keys: keys.into_iter().map(PinnedKey::from).collect(),
        endpoints: [("query".to_owned(), "https://peer.example/q".to_owned())].into(),
        claims: ["L1".to_owned(), "L2".to_owned()].into(),
        digests: Digests { document: hash, memory: hash, tool: hash },
        published_at: NOON,
    }
}

/// What is seen later: a manifest with another hash, signed by that key.
fn seen(keys: Vec<VerificationKey>, signed_by: u8, handovers: Vec<Handover>) -> CheckedDocuments {
    let mut pin = pin(keys);
    pin.published_at = at(100);
    pin.digests.memory = Hash::of(b"as it is");
    CheckedDocuments { pin, signed_by: kid(signed_by), handovers }
}

fn changes(pinned: Vec<VerificationKey>, seen: &CheckedDocuments) -> Vec<Change> {
    compare(&pin(pinned), seen)
}

fn signed(number: u8) -> Change {
    Change::accepted(What::Manifest(kid(number)), Reason::SignedBy(kid(number)))
}

fn added(next: u8, by: u8) -> Change {
    Change::accepted(What::KeyAdded(kid(next)), Reason::HandedOver(kid(by)))
}

#[test]
fn nothing_changed() {
    let same = CheckedDocuments { pin: pin(vec![key(1)]), signed_by: kid(1), handovers: Vec::new() };
    assert_eq!(changes(vec![key(1)], &same), []);
    assert_eq!(changes(vec![key(1)], &seen(vec![key(1)], 1, vec![])), [signed(1)]);
    // The order of keys is nothing.
    let same = CheckedDocuments { pin: pin(vec![key(2), key(1)]), signed_by: kid(1), handovers: Vec::new() };
    assert_eq!(changes(vec![key(1), key(2)], &same), []);
}

#[test]
fn a_new_key_counts_where_the_former_one_names_it() {
    let rotated = || vec![key(2), key(1).retired(at(60))];
    let ended = Change::accepted(What::KeyEnded(kid(1)), Reason::Narrower);
    let with = seen(rotated(), 2, vec![handover(1, 2, 59)]);
    assert_eq!(changes(vec![key(1)], &with), [ended.clone(), added(2, 1), signed(2)]);
    let without = changes(vec![key(1)], &seen(rotated(), 2, vec![]));
    assert_eq!(without, [ended, Change::asks(What::KeyAdded(kid(2))), Change::asks(What::Manifest(kid(2)))]);
    assert!(without[1].wants_a_handover() && !without[0].wants_a_handover());
    // The former key may be gone altogether.
    let gone = seen(vec![key(2)], 2, vec![handover(1, 2, 59)]);
    let dropped = Change::accepted(What::KeyDropped(kid(1)), Reason::Narrower);
    assert_eq!(changes(vec![key(1)], &gone), [dropped, added(2, 1), signed(2)]);
}

#[test]
fn keys_name_each_other_in_turn() {
    let keys = vec![key(3), key(2).retired(at(90)), key(1).retired(at(60))];
    let chain = vec![handover(2, 3, 89), handover(1, 2, 59)];
    let found = changes(vec![key(1)], &seen(keys.clone(), 3, chain.clone()));
    assert_eq!(found[1..], [added(3, 2), added(2, 1), signed(3)]);
    // One of them does not hold: what follows it does not either.
    let broken = changes(vec![key(1)], &seen(keys, 3, vec![chain[0].clone(), handover(9, 2, 59)]));
    assert_eq!(broken.iter().filter(|change| change.asks_the_owner()).count(), 3);
}

#[test]
fn a_handover_that_does_not_count() {
    let rotated = || vec![key(2), key(1).retired(at(60))];
    let asks = |pinned: Vec<VerificationKey>, keys: Vec<VerificationKey>, handovers| {
        let found = changes(pinned, &seen(keys, 2, handovers));
        assert!(found.contains(&Change::asks(What::KeyAdded(kid(2)))), "{found:?}");
        assert!(found.contains(&Change::asks(What::Manifest(kid(2)))), "{found:?}");
    };
    // Signed after the key had ended, by its own document.
    asks(vec![key(1)], rotated(), vec![handover(1, 2, 60)]);
    // By a key that had ended when it was pinned.
    asks(vec![key(1).retired(at(60)), key(3)], [rotated(), vec![key(3)]].concat(), vec![handover(1, 2, 59)]);
    // By a key that is called compromised, whenever it signed.
    asks(vec![key(1)], vec![key(2), key(1).revoked(at(60))], vec![handover(1, 2, 10)]);
    asks(vec![key(1).revoked(at(60))], vec![key(2)], vec![handover(1, 2, 10)]);
    // By a key that nobody pinned, and by the new one itself.
    asks(vec![key(1)], [rotated(), vec![key(9)]].concat(), vec![handover(9, 2, 59)]);
    // Of another key under the same id.
    let other = VerificationKey::new(kid(2), *signer(9).public());
    asks(vec![key(1)], vec![other, key(1).retired(at(60))], vec![handover(1, 2, 59)]);
    // A successor that is compromised already.
    asks(vec![key(1)], vec![key(2).revoked(at(99)), key(1).retired(at(60))], vec![handover(1, 2, 59)]);
}

#[test]
fn a_key_that_ends_ends_and_does_not_come_back() {
    let of = |was: VerificationKey, is: VerificationKey| {
        let mut found = changes(vec![was, key(3)], &seen(vec![is, key(3)], 3, vec![]));
        assert_eq!(found.pop(), Some(signed(3)));
        found
    };
    let ended = [Change::accepted(What::KeyEnded(kid(1)), Reason::Narrower)];
    let revived = [Change::asks(What::KeyRevived(kid(1)))];
    assert_eq!(of(key(1), key(1).retired(at(5))), ended);
    assert_eq!(of(key(1), key(1).revoked(at(5))), ended);
    assert_eq!(of(key(1).retired(at(5)), key(1).retired(at(4))), ended);
    assert_eq!(of(key(1).retired(at(5)), key(1).retired(at(5))), []);
    assert_eq!(of(key(1).retired(at(5)), key(1).retired(at(6))), revived);
    assert_eq!(of(key(1).retired(at(5)), key(1)), revived);
    assert_eq!(of(key(1).revoked(at(5)), key(1)), revived);
    // Compromised instead of retired: as if it had not been retired.
    assert_eq!(of(key(1).retired(at(5)), key(1).revoked(at(9))), revived);
    let replaced = VerificationKey::new(kid(1), *signer(9).public());
    assert_eq!(of(key(1), replaced), [Change::asks(What::KeyReplaced(kid(1)))]);
}

#[test]
fn a_key_that_is_gone() {
    let found = changes(vec![key(1), key(3)], &seen(vec![key(3)], 3, vec![]));
    assert_eq!(found, [Change::asks(What::KeyGone(kid(1))), signed(3)]);
    let found = changes(vec![key(1).retired(at(5)), key(3)], &seen(vec![key(3)], 3, vec![]));
    assert_eq!(found, [Change::accepted(What::KeyDropped(kid(1)), Reason::Narrower), signed(3)]);
}

#[test]
fn an_endpoint_that_is_new_another_or_gone_asks() {
    let of = |change: fn(&mut Pin)| {
        let mut seen = seen(vec![key(1)], 1, vec![]);
        change(&mut seen.pin);
        let mut found = changes(vec![key(1)], &seen);
        assert_eq!(found.pop(), Some(signed(1)));
        found
    };
    let was = || Some("https://peer.example/q".to_owned());
    let asks = |name: &str, was, is| [Change::asks(What::Endpoint(name.to_owned(), was, is))];
    let elsewhere = "https://peer.example/other".to_owned();
    assert_eq!(
        of(|pin| drop(pin.endpoints.insert("query".into(), "https://peer.example/other".into()))),
        asks("query", was(), Some(elsewhere.clone()))
    );
    assert_eq!(
        of(|pin| drop(pin.endpoints.insert("more".into(), "https://peer.example/other".into()))),
        asks("more", None, Some(elsewhere))
    );
    assert_eq!(of(|pin| drop(pin.endpoints.remove("query"))), asks("query", was(), None));
}

#[test]
fn a_lowered_claim_asks_and_a_raised_one_is_signed_for() {
    let of = |claims: &[&str], keys: Vec<VerificationKey>, by| {
        let mut seen = seen(keys, by, vec![]);
        seen.pin.claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
        changes(vec![key(1)], &seen)
    };
    let lowered = Change::asks(What::ClaimLowered("L2".to_owned()));
    let raised = What::ClaimRaised("L3".to_owned());
    assert_eq!(of(&["L1"], vec![key(1)], 1), [lowered.clone(), signed(1)]);
    let by_one = Change::accepted(raised.clone(), Reason::SignedBy(kid(1)));
    assert_eq!(of(&["L1", "L2", "L3"], vec![key(1)], 1), [by_one.clone(), signed(1)]);
    assert_eq!(of(&["L1", "L3"], vec![key(1)], 1), [lowered, by_one, signed(1)]);
    // By a key that does not count, nothing is raised.
    assert!(of(&["L1", "L2", "L3"], vec![key(1), key(2)], 2).contains(&Change::asks(raised)));
}

#[test]
fn what_is_older_than_what_is_known_asks() {
    let mut old = seen(vec![key(1)], 1, vec![]);
    old.pin.published_at = at(-1);
    assert!(changes(vec![key(1)], &old).contains(&Change::asks(What::Older(NOON, at(-1)))));
    old.pin.published_at = NOON;
    assert_eq!(changes(vec![key(1)], &old), [signed(1)]);
}

#[test]
fn a_manifest_by_a_key_that_had_ended_asks() {
    let asks = || Change::asks(What::Manifest(kid(1)));
    // As it was pinned, and as it is said now.
    let retired = || key(1).retired(at(50));
    assert_eq!(changes(vec![retired()], &seen(vec![retired()], 1, vec![])), [asks()]);
    assert!(changes(vec![key(1)], &seen(vec![retired()], 1, vec![])).contains(&asks()));
}

#[test]
fn another_principal_asks() {
    let mut other = seen(vec![key(1)], 1, vec![]);
    other.pin.did = "did:web:other.example".parse().unwrap();
    assert!(changes(vec![key(1)], &other).contains(&Change::asks(What::Principal)));
}

/// Keys 1 to 4 are the peer's, 11 to 14 those of somebody who has its host and none of its keys.
fn number() -> impl Strategy<Value = u8> {
    prop_oneof![1_u8..=4, 11_u8..=14]
}

/// A handover that somebody can have: the peer's keys name keys of the peer's, whoever has other keys signs what they like.
fn can_be_had(by: u8, next: u8) -> bool {
    by > 10 || next < 10
}

/// A key as a document may show it: under its own id or another's, in force or ended.
fn shown() -> impl Strategy<Value = VerificationKey> {
    (number(), number(), proptest::option::of(0_i64..120), proptest::option::of(0_i64..120), any::<bool>())
        .prop_map(|(id, key, retired, revoked, own)| {
            let id = if own { key } else { id };
            let mut shown = VerificationKey::new(kid(id), *signer(key).public());
            if let Some(seconds) = retired {
                shown = shown.retired(at(seconds));
            }
            if let Some(seconds) = revoked {
                shown = shown.revoked(at(seconds));
            }
            shown
        })
}

/// Each id once, as a document has it.
fn once(keys: Vec<VerificationKey>) -> Vec<VerificationKey> {
    let mut ids = BTreeSet::new();
    keys.into_iter().filter(|key| ids.insert(key.kid().clone())).collect()
}

proptest! {
    /// Whatever a host shows: what is accepted without the owner was signed for by a pinned key, or takes trust away.
    #[test]
    fn what_is_accepted_is_signed_by_a_pinned_key(
        pinned in proptest::collection::vec(1_u8..=4, 1..4),
        shown in proptest::collection::vec(shown(), 0..6),
        handovers in proptest::collection::vec((number(), number(), 0_i64..120), 0..6),
        signed_by in number(),
    ) {
        let pinned = pin(once(pinned.into_iter().map(key).collect()));
        let handovers: Vec<Handover> = handovers
            .into_iter()
            .filter(|(by, next, _)| by != next && can_be_had(*by, *next))
            .map(|(by, next, seconds)| handover(by, next, seconds))
            .collect();
        let seen = seen(once(shown), signed_by, handovers);
        let found = compare(&pinned, &seen);
        let is_foreign = |key: &VerificationKey| (11..=14).any(|number| key.public() == signer(number).public());
        for change in found.iter().filter(|change| !change.asks_the_owner()) {
            match (&change.what, &change.verdict) {
                (What::KeyAdded(kid), Verdict::Accepted(Reason::HandedOver(by))) => {
                    let key = seen.pin.key(kid).unwrap().key();
                    prop_assert!(!is_foreign(key), "{kid} was believed");
                    let said = seen.handovers.iter().any(|h| h.by() == by && h.kid() == kid && h.public() == key.public());
                    prop_assert!(said && !is_foreign(&by_id(&pinned, &seen, by)));
                }
                (What::Manifest(_) | What::ClaimRaised(_), Verdict::Accepted(Reason::SignedBy(by))) => {
                    prop_assert_eq!(by, &seen.signed_by);
                    prop_assert!(!is_foreign(seen.pin.key(by).unwrap().key()), "{:?}", change);
                    if let What::Manifest(kid) = &change.what {
                        prop_assert_eq!(kid, by);
                    }
                }
                (What::KeyDropped(kid), Verdict::Accepted(Reason::Narrower)) => {
                    prop_assert!(seen.pin.key(kid).is_none());
                }
                (What::KeyEnded(kid), Verdict::Accepted(Reason::Narrower)) => {
                    let (was, is) = (pinned.key(kid).unwrap().key(), seen.pin.key(kid).unwrap().key());
                    // Whatever counts now counted before.
                    for seconds in -10..130 {
                        prop_assert!(is.usable_at(at(seconds)).is_err() || was.usable_at(at(seconds)).is_ok());
                    }
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        // Where nobody is asked, no key of somebody else's is pinned afterwards.
        if found.iter().all(|change| !change.asks_the_owner()) {
            prop_assert!(seen.pin.keys.iter().all(|key| !is_foreign(key.key())));
        }
    }
}

/// A key that is pinned, or else seen.
fn by_id(pinned: &Pin, seen: &CheckedDocuments, kid: &Kid) -> VerificationKey {
    pinned.key(kid).or(seen.pin.key(kid)).unwrap().key().clone()
}

//! did:webvh: what a log proves, and each way in which one may not (docs/protocol.md section 2).

#[path = "support/beside.rs"]
mod beside;
#[path = "support/logs.rs"]
mod logs;

use logs::{Made, approved, hours, multihash, multikey, proof, signer, state};
use oap_identity::signed::SignedError;
use oap_identity::webvh::{History, Log, LogError, MAX_ENTRIES, MAX_LOG, MAX_WITNESS_PROOFS};
use oap_identity::{Did, Timestamp};
use serde_json::{Value, json};

const HOST: &str = "a.example";

fn now() -> Timestamp {
    hours(1000)
}

fn read(made: &Made) -> Result<History, LogError> {
    Log::read(&made.bytes(), &made.did, now())?.proven(None)
}

fn witnessed(made: &Made, file: &Value) -> Result<History, LogError> {
    Log::read(&made.bytes(), &made.did, now())?.proven(Some(file.to_string().as_bytes()))
}

/// A log of one entry: its key signs entries, another one is in the document.
fn simple() -> Made {
    Made::new(HOST, &json!({}), &[("key-1", &signer(11))], &signer(1))
}

/// Logs of four implementations, and those that a resolver must refuse. Two of the suite's own are refused here: in `witness-update` the
/// witnesses that are replaced do not approve of it, which the specification asks for; in one `witness-threshold` witnesses are no DIDs.
#[test]
fn logs_of_the_test_suite() {
    let vectors: Vec<Value> =
        serde_json::from_slice(&std::fs::read(beside::own("webvh.json")).unwrap()).unwrap();
    let (mut held, mut refused) = (0, 0);
    for vector in &vectors {
        let name = &vector["name"];
        let lines: Vec<&str> =
            vector["log"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        let did: Did = vector["did"].as_str().unwrap().parse().unwrap();
        let log = Log::read(lines.join("\n").as_bytes(), &did, "2026-11-01T00:00:00Z".parse().unwrap());
        let history = log.and_then(|log| log.proven(vector["witness"].as_str().map(str::as_bytes)));
        match (history, vector["refused"].as_str()) {
            (Ok(history), None) => {
                held += 1;
                assert_eq!(history.length(), vector["versions"], "{name}");
                assert_eq!(history.is_deactivated(), vector["deactivated"], "{name}");
                assert_eq!(history.document().id(), &did, "{name}");
            }
            (Err(error), Some(check)) => {
                refused += 1;
                assert_eq!(format!("{error:?}"), check, "{name}");
            }
            (got, expected) => panic!("{name}: {got:?}, not {expected:?}"),
        }
    }
    assert_eq!((held, refused), (18, 14));
}

/// Which key was good when: a rotation ends one key and begins another, and neither counts beyond.
#[test]
fn which_key_was_good_at_a_time() {
    let (old, new) = (signer(11), signer(12));
    let mut made = simple();
    made.update(10, &json!({}), &[("key-1", &old), ("key-2", &new)], &signer(1));
    made.update(20, &json!({}), &[("key-2", &new)], &signer(1));
    let document = read(&made).unwrap().document().clone();
    let (first, second) = (made.did.key("key-1").unwrap(), made.did.key("key-2").unwrap());
    let good = |hour: u64| {
        (document.key_at(&first, hours(hour)).is_some(), document.key_at(&second, hours(hour)).is_some())
    };
    assert_eq!(
        [good(0), good(9), good(10), good(19), good(20), good(30)],
        [(true, false), (true, false), (true, true), (true, true), (false, true), (false, true)]
    );
    assert!(document.key_at(&first, hours(0).minus(std::time::Duration::from_millis(1))).is_none());
    // And so it is of everything that is verified with the document: grants, receipts, items, letters.
    let signed = |by: &oap_identity::Signer| by.signature(b"words");
    let verify = |kid, by, at| document.key(kid).unwrap().verify(b"words", &signed(by), at);
    assert_eq!(verify(&first, &old, hours(15)), Ok(()));
    assert_eq!(verify(&first, &old, hours(25)), Err(SignedError::Retired(hours(20))));
    assert_eq!(verify(&second, &new, hours(5)), Err(SignedError::NotYet(hours(10))));
    assert_eq!(verify(&second, &new, hours(25)), Ok(()));
    assert_eq!(verify(&second, &old, hours(25)), Err(SignedError::BadSignature));
}

/// A key that is put in again, or another one under its name, counts from then on; what a version says of its end counts too.
#[test]
fn keys_that_come_again() {
    let (old, other) = (signer(11), signer(12));
    let mut made = simple();
    let kid = made.did.key("key-1").unwrap();
    made.update(10, &json!({}), &[], &signer(1));
    assert!(read(&made).unwrap().document().key_at(&kid, hours(5)).is_some());
    assert!(read(&made).unwrap().document().key_at(&kid, hours(10)).is_none());
    made.update(20, &json!({}), &[("key-1", &old)], &signer(1));
    let again = read(&made).unwrap().document().clone();
    assert!(again.key_at(&kid, hours(20)).is_some() && again.key_at(&kid, hours(15)).is_none());
    made.update(30, &json!({}), &[("key-1", &other)], &signer(1));
    let replaced = read(&made).unwrap().document().clone();
    assert_eq!(replaced.key_at(&kid, hours(30)).unwrap().public(), other.public());
    assert!(replaced.key_at(&kid, hours(25)).is_none());
    let mut document = state(made.did.as_str(), &[("key-1", &other)]);
    document["verificationMethod"][0]["revoked"] = hours(35).to_string().into();
    made.push(40, &json!({}), document, &[&signer(1)]);
    let revoked = read(&made).unwrap().document().clone();
    assert_eq!(revoked.key(&kid).unwrap().revoked_at(), Some(hours(35)));
    assert!(revoked.key_at(&kid, hours(34)).is_some() && revoked.key_at(&kid, hours(36)).is_none());
    // The mistake, or the attack of who has a key of the log: what was compromised is listed as if it had not been, or under another name.
    made.update(50, &json!({}), &[("key-1", &other)], &signer(1));
    let listed = read(&made).unwrap().document().clone();
    assert_eq!(listed.key(&kid).unwrap().revoked_at(), Some(hours(35)));
    made.update(60, &json!({}), &[], &signer(1));
    made.update(70, &json!({}), &[("key-2", &other), ("key-3", &old)], &signer(1));
    let renamed = read(&made).unwrap().document().clone();
    let at = |name: &str| renamed.key_at(&made.did.key(name).unwrap(), hours(71)).is_some();
    assert_eq!([at("key-1"), at("key-2"), at("key-3")], [false, false, true]);
}

/// The attack: a log that was changed anywhere, cut in the middle, or put together anew.
#[test]
fn a_log_is_one_piece() {
    let mut made = simple();
    for hour in 1..4 {
        made.update(hour, &json!({}), &[("key-1", &signer(11))], &signer(1));
    }
    let whole = read(&made).unwrap();
    assert_eq!((whole.length(), whole.tip()), (4, made.tip()));
    assert!(whole.has(1, made.lines[0]["versionId"].as_str().unwrap()) && whole.has(4, made.tip()));
    assert!(!whole.has(3, made.tip()) && !whole.has(0, made.tip()) && !whole.has(5, made.tip()));
    let changed = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut other = made.clone();
        change(&mut other.lines);
        read(&other)
    };
    assert_eq!(changed(&|l| drop(l.remove(1))), Err(LogError::VersionId(2)));
    assert_eq!(changed(&|l| l.swap(1, 2)), Err(LogError::VersionId(2)));
    assert_eq!(changed(&|l| drop(l.remove(0))), Err(LogError::Scid));
    assert_eq!(changed(&|l| l[2]["state"]["more"] = json!(1)), Err(LogError::Hash(3)));
    assert_eq!(
        changed(&|l| l[2]["versionTime"] = json!(hours(2).plus(std::time::Duration::from_secs(1)))),
        Err(LogError::Hash(3))
    );
    assert_eq!(changed(&|l| l[0]["state"]["more"] = json!(1)), Err(LogError::Hash(1)));
    // One who holds no key makes hashes that are right, and no proof.
    let forged = |at: usize| {
        let mut other = Made { lines: made.lines[..at].to_vec(), ..made.clone() };
        other.update(50, &json!({}), &[("key-1", &signer(99))], &signer(99));
        read(&other)
    };
    assert_eq!(forged(1), Err(LogError::NotAuthorized(2)));
    assert_eq!(forged(4), Err(LogError::NotAuthorized(5)));
    let shape = |l: &mut Vec<Value>, name: &str| drop(l[1].as_object_mut().unwrap().remove(name));
    for name in ["versionId", "versionTime", "parameters", "state", "proof"] {
        assert!(matches!(changed(&|l| shape(l, name)), Err(LogError::Json(2, _))), "{name}");
    }
    assert!(matches!(changed(&|l| l[1]["more"] = json!(1)), Err(LogError::Json(2, _))));
    assert_eq!(Log::read(b"", &made.did, now()).unwrap_err(), LogError::Entries);
    assert_eq!(Log::read(&vec![b' '; MAX_LOG + 1], &made.did, now()).unwrap_err(), LogError::TooLong);
    assert!(matches!(Log::read(b"{", &made.did, now()), Err(LogError::Json(1, _))));
    // The log of another DID, on the host that was asked.
    let other = Made::new(HOST, &json!({}), &[], &signer(2));
    assert_eq!(Log::read(&other.bytes(), &made.did, now()).unwrap_err(), LogError::Scid);
    let elsewhere: Did = format!("did:webvh:{}:b.example", made.did.scid().unwrap()).parse().unwrap();
    assert_eq!(Log::read(&made.bytes(), &elsewhere, now()).unwrap_err(), LogError::OtherDid);
}

/// The attack: of two first entries that differ in where the placeholder stands, both would have the same SCID.
#[test]
fn the_placeholder_is_in_no_first_entry() {
    let preliminary = json!({
        "versionId": "{SCID}", "versionTime": hours(0).to_string(),
        "parameters": {"method": "did:webvh:1.0", "scid": "{SCID}", "updateKeys": [multikey(&signer(1))]},
        "state": {"id": format!("did:webvh:{{SCID}}:{HOST}"), "note": "{SCID}"},
    });
    let made = Made::of(&preliminary, &signer(1));
    assert!(read(&made).is_ok());
    let mut entry = made.lines[0].clone();
    entry["state"]["note"] = "{SCID}".into();
    entry.as_object_mut().unwrap().remove("proof");
    entry["versionId"] = made.did.scid().unwrap().into();
    let hash = multihash(&oap_identity::json::canonical(&entry).unwrap());
    entry["versionId"] = format!("1-{hash}").into();
    entry["proof"] = json!([proof(&entry, &signer(1))]);
    assert_eq!(read(&Made { lines: vec![entry], ..made }), Err(LogError::Scid));
}

/// Proofs: of the one suite, of keys that may sign, all of them.
#[test]
fn every_proof_holds() {
    let made = simple();
    let with = |proofs: Value| {
        let mut other = made.clone();
        other.lines[0]["proof"] = proofs;
        read(&other)
    };
    let good = made.lines[0]["proof"][0].clone();
    assert!(with(json!([good])).is_ok() && with(json!([good, good])).is_ok());
    assert_eq!(with(json!([])), Err(LogError::Proofs(1)));
    assert_eq!(with(json!([good, good, good])), Err(LogError::Proofs(1)));
    let mut unsigned = made.lines[0].clone();
    unsigned.as_object_mut().unwrap().remove("proof");
    // A stranger's proof beside the right one, and one alone.
    let strange = proof(&unsigned, &signer(9));
    assert_eq!(with(json!([good, strange])), Err(LogError::NotAuthorized(1)));
    assert_eq!(with(json!([strange])), Err(LogError::NotAuthorized(1)));
    // A stranger's signature in the name of the right key.
    let mut borrowed = strange;
    borrowed["verificationMethod"] = good["verificationMethod"].clone();
    assert_eq!(with(json!([borrowed])), Err(LogError::Proof(1)));
    let bent = |name: &str, value: Value| {
        let mut proof = good.clone();
        proof[name] = value;
        with(json!([proof]))
    };
    let key = multikey(&signer(1));
    for (name, value) in [
        ("type", json!("Ed25519Signature2020")),
        ("cryptosuite", json!("eddsa-rdfc-2022")),
        ("cryptosuite", json!("ecdsa-jcs-2019")),
        ("proofPurpose", json!("authentication")),
        ("created", json!("2026-02-03T00:00:00Z")),
        ("expires", json!("2030-01-01T00:00:00Z")),
        ("verificationMethod", json!(format!("did:key:{key}#{}", multikey(&signer(9))))),
        ("verificationMethod", json!(format!("did:key:{key}"))),
        ("proofValue", json!("")),
        ("proofValue", json!("u1234")),
    ] {
        assert_eq!(bent(name, value.clone()), Err(LogError::Proof(1)), "{name}: {value}");
    }
    // Without promised keys an entry is signed by those from before it, and the ones that it names sign the next.
    let mut rotated = made.clone();
    rotated.update(1, &json!({"updateKeys": [multikey(&signer(2))]}), &[], &signer(1));
    rotated.update(2, &json!({}), &[], &signer(2));
    assert!(read(&rotated).is_ok());
    let mut own_word = made.clone();
    own_word.update(1, &json!({"updateKeys": [multikey(&signer(2))]}), &[], &signer(2));
    assert_eq!(read(&own_word), Err(LogError::NotAuthorized(2)));
    rotated.update(3, &json!({}), &[], &signer(1));
    assert_eq!(read(&rotated), Err(LogError::NotAuthorized(4)));
}

/// The attack: who stole the key of today cannot go on where the keys of tomorrow were promised.
#[test]
fn promised_keys() {
    let promise = |of: &oap_identity::Signer| multihash(multikey(of).as_bytes());
    let begun = Made::new(HOST, &json!({"nextKeyHashes": [promise(&signer(2))]}), &[], &signer(1));
    let then = |parameters: Value, by: u8| {
        let mut made = begun.clone();
        made.update(1, &parameters, &[], &signer(by));
        read(&made).map(|history| history.length())
    };
    let (next, stolen) = (multikey(&signer(2)), multikey(&signer(1)));
    let wrong = |name| Err(LogError::Parameter(2, name));
    assert_eq!(then(json!({"updateKeys": [next], "nextKeyHashes": [promise(&signer(3))]}), 2), Ok(2));
    assert_eq!(then(json!({"updateKeys": [next], "nextKeyHashes": []}), 2), Ok(2));
    assert_eq!(then(json!({}), 1), wrong("updateKeys"));
    assert_eq!(then(json!({"updateKeys": [stolen], "nextKeyHashes": []}), 1), wrong("updateKeys"));
    assert_eq!(then(json!({"updateKeys": [next, stolen], "nextKeyHashes": []}), 1), wrong("updateKeys"));
    assert_eq!(then(json!({"updateKeys": [next]}), 2), wrong("nextKeyHashes"));
    assert_eq!(then(json!({"updateKeys": [next], "nextKeyHashes": []}), 1), Err(LogError::NotAuthorized(2)));
    // Taken back, the promise binds the entry that takes it back, and the next one is free.
    let mut free = begun.clone();
    free.update(1, &json!({"updateKeys": [next], "nextKeyHashes": []}), &[], &signer(2));
    free.update(2, &json!({"updateKeys": [multikey(&signer(5))]}), &[], &signer(2));
    assert!(read(&free).is_ok());
}

#[test]
fn parameters_that_must_not_be() {
    let first = |more: Value| read(&Made::new(HOST, &more, &[], &signer(1))).map(drop);
    let wrong = |number, name| Err(LogError::Parameter(number, name));
    assert_eq!(first(json!({"portable": true, "ttl": 60, "watchers": ["https://w.example"]})), Ok(()));
    assert_eq!(first(json!({"method": "did:webvh:0.5"})), wrong(1, "method"));
    assert_eq!(first(json!({"method": "did:webvh:99.0"})), wrong(1, "method"));
    for name in
        ["updateKeys", "nextKeyHashes", "witness", "portable", "deactivated", "ttl", "watchers", "method"]
    {
        assert_eq!(first(json!({name: null})), wrong(1, "*"), "{name}");
    }
    assert_eq!(first(json!({"witness": {"threshold": null, "witnesses": null}})), wrong(1, "*"));
    assert!(matches!(first(json!({"more": 1})), Err(LogError::Json(1, _))));
    assert_eq!(first(json!({"nextKeyHashes": vec!["Qm"; 17]})), wrong(1, "nextKeyHashes"));
    let second = |parameters: Value| {
        let mut made = simple();
        made.update(1, &parameters, &[], &signer(1));
        read(&made).map(drop)
    };
    assert_eq!(second(json!({"method": "did:webvh:1.0"})), Ok(()));
    assert_eq!(second(json!({"method": "did:webvh:0.5"})), wrong(2, "method"));
    assert_eq!(second(json!({"scid": simple().did.scid()})), wrong(2, "scid"));
    assert_eq!(second(json!({"portable": true})), wrong(2, "portable"));
    assert_eq!(second(json!({"updateKeys": vec![multikey(&signer(1)); 17]})), wrong(2, "updateKeys"));
    let w = |seed: u8| json!({"id": signer(seed).did()});
    for witness in [
        json!({"threshold": 0, "witnesses": [w(1)]}),
        json!({"threshold": 2, "witnesses": [w(1)]}),
        json!({"threshold": 2, "witnesses": [w(1), w(1)]}),
        json!({"threshold": 1, "witnesses": []}),
        json!({"threshold": 1}),
        json!({"witnesses": [w(1)]}),
        json!({"threshold": 1, "witnesses": [{"id": "did:web:w.example"}]}),
        json!({"threshold": 1, "witnesses": [{"id": multikey(&signer(1))}]}),
        json!({"threshold": 1, "witnesses": (1..=17).map(w).collect::<Vec<_>>()}),
    ] {
        assert_eq!(first(json!({"witness": witness})), wrong(1, "witness"), "{witness}");
    }
}

/// Times go forward, and none is later than now.
#[test]
fn times() {
    let at = |hour: u64, now: Timestamp| {
        let mut made = simple();
        made.update(2, &json!({}), &[], &signer(1));
        made.update(hour, &json!({}), &[], &signer(1));
        Log::read(&made.bytes(), &made.did, now).map(drop)
    };
    assert_eq!(at(3, hours(3)), Ok(()));
    assert_eq!(at(2, hours(3)), Err(LogError::Time(3)));
    assert_eq!(at(1, hours(3)), Err(LogError::Time(3)));
    assert_eq!(at(5, hours(4)), Err(LogError::Time(3)));
    let of = |time: &str| {
        let preliminary = json!({
            "versionId": "{SCID}", "versionTime": time,
            "parameters": {"method": "did:webvh:1.0", "scid": "{SCID}", "updateKeys": [multikey(&signer(1))]},
            "state": {"id": format!("did:webvh:{{SCID}}:{HOST}")},
        });
        read(&Made::of(&preliminary, &signer(1))).map(drop)
    };
    assert_eq!((of("2026-02-02T00:00:00Z"), of("2026-02-02T00:00:00+00:00")), (Ok(()), Ok(())));
    for time in ["2026-02-02T00:00:00", "2026-02-02T00:00:00+01:00", "2026-02-02", "now"] {
        assert_eq!(of(time), Err(LogError::Time(1)), "{time}");
    }
}

/// Witnesses: enough of them, different ones, of this very log; and those that are replaced approve of it.
#[test]
fn witnesses() {
    let (a, b, c) = (signer(21), signer(22), signer(23));
    let asks = |threshold: usize, of: &[&oap_identity::Signer]| {
        let listed: Vec<Value> = of.iter().map(|one| json!({"id": one.did()})).collect();
        json!({"witness": {"threshold": threshold, "witnesses": listed}})
    };
    let begun = Made::new(HOST, &asks(2, &[&a, &b, &c]), &[], &signer(1));
    let (id, few) = (begun.tip(), Err(LogError::Witnesses(1)));
    assert!(witnessed(&begun, &json!([approved(id, &[&a, &c])])).is_ok());
    assert_eq!(read(&begun), Err(LogError::WitnessFile));
    assert_eq!(witnessed(&begun, &json!({})), Err(LogError::WitnessFile));
    assert_eq!(witnessed(&begun, &json!([])), few);
    assert_eq!(witnessed(&begun, &json!([approved(id, &[&a])])), few);
    assert_eq!(witnessed(&begun, &json!([approved(id, &[&a, &a]), approved(id, &[&a])])), few);
    assert_eq!(witnessed(&begun, &json!([approved(id, &[&a, &signer(9)])])), few);
    assert_eq!(witnessed(&begun, &json!([approved(id, &[&a]), approved("2-QmNotYet", &[&b, &c])])), few);
    // What they signed of another log.
    let other = Made::new("b.example", &asks(2, &[&a, &b, &c]), &[], &signer(1));
    assert_eq!(witnessed(&begun, &json!([approved(other.tip(), &[&a, &b])])), few);
    let mut moved = approved(other.tip(), &[&a, &b]);
    moved["versionId"] = id.into();
    assert_eq!(witnessed(&begun, &json!([moved])), few);
    let many = vec![approved(id, &[&a])["proof"][0].clone(); MAX_WITNESS_PROOFS + 1];
    assert_eq!(witnessed(&begun, &json!([{"versionId": id, "proof": many}])), Err(LogError::WitnessFile));
    // A later approval stands for what is before it. The attack: whoever has the keys drops the witnesses, or names their own.
    let mut goes_on = begun.clone();
    goes_on.update(1, &json!({}), &[], &signer(1));
    assert!(witnessed(&goes_on, &json!([approved(goes_on.tip(), &[&b, &c])])).is_ok());
    assert_eq!(witnessed(&goes_on, &json!([approved(id, &[&b, &c])])), Err(LogError::Witnesses(2)));
    for parameters in [json!({"witness": {}}), asks(1, &[&signer(9)])] {
        let mut dropped = begun.clone();
        dropped.update(1, &parameters, &[], &signer(1));
        let own = approved(dropped.tip(), &[&signer(9)]);
        assert_eq!(witnessed(&dropped, &json!([approved(id, &[&a, &b]), own])), Err(LogError::Witnesses(2)));
        assert!(witnessed(&dropped, &json!([approved(dropped.tip(), &[&a, &b])])).is_ok());
    }
    // The first ones that a log names approve of being named.
    let mut named = simple();
    named.update(1, &asks(1, &[&a]), &[], &signer(1));
    assert_eq!(witnessed(&named, &json!([])), Err(LogError::Witnesses(2)));
    assert!(witnessed(&named, &json!([approved(named.tip(), &[&a])])).is_ok());
}

/// A DID that is over has no key in force and no place; what its keys signed before stays signed.
#[test]
fn deactivated() {
    let mut made = simple();
    let mut document = state(made.did.as_str(), &[("key-1", &signer(11))]);
    document["service"] =
        json!([{"id": "#x", "type": "OAPMemoryExchange", "serviceEndpoint": "https://a.example/x"}]);
    made.push(1, &json!({}), document.clone(), &[&signer(1)]);
    assert!(read(&made).unwrap().document().service("OAPMemoryExchange").is_some());
    made.push(2, &json!({"deactivated": true, "updateKeys": []}), document, &[&signer(1)]);
    let over = read(&made).unwrap();
    let kid = made.did.key("key-1").unwrap();
    assert!(over.is_deactivated() && over.document().service("OAPMemoryExchange").is_none());
    assert!(
        over.document().key_at(&kid, hours(1)).is_some() && over.document().key_at(&kid, hours(2)).is_none()
    );
    made.update(3, &json!({"deactivated": false}), &[], &signer(1));
    assert_eq!(read(&made), Err(LogError::Over(4)));
}

/// A DID moves where it was to be able to from its beginning, and says where it was.
#[test]
fn a_portable_did_moves() {
    let moved = |portable: bool, also: bool| {
        let mut made = Made::new(HOST, &json!({"portable": portable}), &[("key-1", &signer(11))], &signer(1));
        let (before, after) = (made.did.clone(), made.did.as_str().replace(HOST, "b.example"));
        let mut document = state(&after, &[("key-1", &signer(11))]);
        if also {
            document["alsoKnownAs"] = json!([before]);
        }
        made.push(1, &json!({}), document, &[&signer(1)]);
        made.did = after.parse().unwrap();
        (read(&made), made, before)
    };
    let (history, made, before) = moved(true, true);
    let document = history.unwrap().document().clone();
    let kid = made.did.key("key-1").unwrap();
    // Its key counts under the new name since it has that name.
    assert!(document.key_at(&kid, hours(1)).is_some() && document.key_at(&kid, hours(0)).is_none());
    assert!(document.key(&before.key("key-1").unwrap()).is_none());
    assert_eq!(Log::read(&made.bytes(), &before, now()).unwrap_err(), LogError::OtherDid);
    assert_eq!(moved(false, true).0, Err(LogError::State(2)));
    assert_eq!(moved(true, false).0, Err(LogError::State(2)));
    let mut swapped = simple();
    let other = Made::new(HOST, &json!({}), &[], &signer(2)).did;
    swapped.push(1, &json!({}), state(other.as_str(), &[]), &[&signer(1)]);
    assert_eq!(read(&swapped), Err(LogError::State(2)));
}

#[test]
fn a_log_has_a_longest_form() {
    let mut made = Made::new(HOST, &json!({}), &[], &signer(1));
    while made.lines.len() < MAX_ENTRIES {
        made.update(made.lines.len() as u64, &json!({}), &[], &signer(1));
    }
    assert_eq!(read(&made).map(|history| history.length()), Ok(MAX_ENTRIES));
    made.update(900, &json!({}), &[], &signer(1));
    assert_eq!(read(&made), Err(LogError::Entries));
}

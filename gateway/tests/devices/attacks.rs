//! Devices under attack: clocks that lie, old answers, whoever poses as a device, whoever sits between two, and a device that wants more
//! than is its.

use super::*;
use crate::federated::party::Rewrite;
use oap_federation::letter::MAX_LIFE;
use oap_federation::pairing::{Pairing, commitment};
use oap_federation::{Content, Letter, SignedLetter};
use oap_identity::{DetachedSignature, Hash, LetterId, Signer, json as strict};
use std::sync::{Arc, Mutex};

/// A list of changes with something else in it, signed by who told it.
fn resigned(signer: &Signer, bytes: &[u8], change: impl Fn(&mut Value)) -> Vec<u8> {
    let mut list = strict::parse(bytes).unwrap();
    list.as_object_mut().unwrap().remove("signature");
    change(&mut list);
    let signature = DetachedSignature::sign(&strict::canonical(&list).unwrap(), signer);
    list["signature"] = serde_json::to_value(signature).unwrap();
    strict::canonical(&list).unwrap()
}

/// Changes the lists that a device tells; what items say stays as it is.
fn tells(device: &Party, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Mode {
    let keys = device.world.gateway.keys();
    let rewrite: Rewrite = Arc::new(move |path, bytes| {
        if path == "/oap/memory/changes" { resigned(keys.current(), &bytes, &change) } else { bytes }
    });
    Mode::Rewrites(rewrite)
}

/// The attack: a correction from the future would be the last one for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_correction_from_the_future_is_not_taken() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = phone.writes("Tea", &[]).await;
    laptop.syncs(&phone).await;
    wait(&phone, &laptop, MINUTE);
    laptop.corrects(&item, "Poison").await;
    for part in ["words", "labels", "standing"] {
        let later = phone.world.now().plus(6 * MINUTE);
        laptop
            .set(tells(&laptop, move |list| list["told"][0]["stands"]["stamps"][part]["at"] = json!(later)));
        let why = phone.fails_to_sync(&laptop).await;
        assert!(why.contains("clock") && why.contains(&item), "{part}: {why}");
        assert_eq!(phone.says(&item).await.unwrap(), "Tea");
    }
    assert!(phone.shows(&laptop).await["trouble"]["why"].as_str().unwrap().starts_with("clock"));
    // Within what clocks may differ it is a correction like any other; and a later one here is later than it.
    let soon = phone.world.now().plus(4 * MINUTE);
    laptop.set(tells(&laptop, move |list| list["told"][0]["stands"]["stamps"]["words"]["at"] = json!(soon)));
    assert_eq!(phone.syncs(&laptop).await.0, 1);
    assert_eq!(phone.says(&item).await.unwrap(), "Poison");
    laptop.set(Mode::Honest);
    phone.corrects(&item, "Coffee").await;
    laptop.syncs(&phone).await;
    phone.syncs(&laptop).await;
    assert_eq!(phone.says(&item).await.unwrap(), "Coffee");
    assert_eq!(laptop.says(&item).await.unwrap(), "Coffee");
}

/// The attack: an answer of before brings back what was erased since, or undoes a correction.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_old_answer_brings_nothing_back() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = laptop.writes("Tea", &[]).await;
    let old = Arc::new(Mutex::new(Vec::<u8>::new()));
    let seen = old.clone();
    laptop.set(Mode::Rewrites(Arc::new(move |path, bytes| {
        if path == "/oap/memory/changes" {
            seen.lock().unwrap().clone_from(&bytes);
        }
        bytes
    })));
    phone.syncs(&laptop).await;
    let recorded = old.lock().unwrap().clone();
    // The device that does not know yet tells of it once more, honestly.
    phone.erases(&item).await;
    laptop.set(Mode::Honest);
    laptop.corrects(&item, "Tea again").await;
    assert_eq!(phone.syncs(&laptop).await.0, 0);
    assert_eq!(phone.says(&item).await, None);
    // And the old list, bytes and all.
    let replayed = recorded.clone();
    laptop.set(Mode::Rewrites(Arc::new(move |path, bytes| {
        if path == "/oap/memory/changes" { replayed.clone() } else { bytes }
    })));
    assert!(phone.fails_to_sync(&laptop).await.contains("lied: other_answer"));
    let lies = phone.lies().await;
    assert_eq!((lies.len(), &lies[0]["peer"]), (1, &json!(laptop.did)), "{lies:?}");
    assert_eq!(phone.says(&item).await, None);
    // What is gone on one is gone on the other.
    laptop.syncs(&phone).await;
    assert_eq!(laptop.says(&item).await, None);
}

/// The attack: a device that tells of what was never shown to it: it neither changes nor erases that.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_not_in_step_is_not_touched() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let mut secret = note("Stays here", &[]);
    secret["exportable"] = json!(false);
    let secret = phone.world.capture(&[secret]).await.remove(0);
    phone.does("relabel", &secret, Some(json!({"labels": ["a"]}))).await.ok();
    assert_eq!(laptop.syncs(&phone).await, (0, Vec::new()));
    laptop.item(&secret).await.refused(404, "not_found");
    laptop.writes("Tea", &[]).await;
    let links = phone.links(&secret).await;
    let stamp = json!({"at": phone.world.now().plus(MINUTE), "device": laptop.did});
    let stamps = json!({"words": stamp, "labels": stamp, "standing": stamp});
    let told = [
        json!({"item_id": secret}),
        json!({"item_id": secret, "stands": {"stamps": stamps, "retracted": true, "last_link": 0}}),
        json!({"item_id": secret, "stands": {"stamps": stamps, "retracted": false, "last_link": 0}}),
    ];
    for told in told {
        laptop.set(tells(&laptop, move |list| list["told"] = json!([told])));
        let report = phone.device("/sync", json!({"did": laptop.did})).await.ok();
        assert_eq!(
            (&report["taken"], &report["left"][0]["why"]),
            (&json!(0), &json!("not_in_step")),
            "{report}"
        );
        // The next list goes on where that one ended.
        laptop.writes("More tea", &[]).await;
    }
    assert_eq!(phone.stands(&secret).await, json!(["Stays here", ["a"], "current"]));
    assert_eq!(phone.links(&secret).await, links);
}

/// The attack: a list that somebody changed on the way, another's signature under it, or words that are not what the list is of.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_not_proved_is_not_taken() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = laptop.writes("Tea", &[]).await;
    let keys = phone.world.gateway.keys();
    let forged: [Rewrite; 3] = [
        Arc::new(|path, bytes| {
            if path != "/oap/memory/changes" {
                return bytes;
            }
            String::from_utf8(bytes)
                .unwrap()
                .replace("\"retracted\":false", "\"retracted\":true")
                .into_bytes()
        }),
        Arc::new(move |path, bytes| {
            if path == "/oap/memory/changes" { resigned(keys.current(), &bytes, |_| {}) } else { bytes }
        }),
        Arc::new(|path, bytes| {
            if path == "/oap/memory/changes" {
                return bytes;
            }
            String::from_utf8(bytes).unwrap().replace("Tea", "Gin").into_bytes()
        }),
    ];
    for forged in forged {
        laptop.set(Mode::Rewrites(forged));
        assert!(phone.fails_to_sync(&laptop).await.contains("lied: "));
        phone.item(&item).await.refused(404, "not_found");
    }
    assert_eq!(phone.lies().await.len(), 3);
    laptop.set(Mode::Honest);
    assert_eq!(phone.syncs(&laptop).await.0, 1);
}

/// The attack: a grantee with as much as a device has, and a device with another grant, ask what changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_grantee_is_no_device() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = phone.writes("Tea", &[]).await;
    let grantee = agent(5);
    let mut draft = phone.world.draft(&grantee);
    draft["redaction_profile"] = json!("oap.profile.projection.full.v1");
    draft["trust_level"] = json!(4);
    let grant = phone.world.issue(&draft).await;
    let token = phone.world.token(&grantee, &grant).await;
    let request_id = "01J9V8B7H1ZK4D2A0M9R8F0KQX";
    let since = json!({"request_id": request_id});
    let named = json!({"items": [item], "request_id": request_id});
    let signer = laptop.world.gateway.keys().current().clone();
    let (other, _) = phone.grants(&laptop, "reading").await;
    let others = phone.world.token(&signer, &other).await;
    for (caller, token) in [(&grantee, &token), (&*signer, &others)] {
        for (path, body) in [("/oap/memory/changes", &since), ("/oap/memory/changes/items", &named)] {
            let refused = phone.world.as_agent(caller, token, "POST", path, Some(body)).await;
            refused.refused(403, "policy_block");
        }
    }
    // With its own grant, the device is answered.
    let given = phone.world.owner("GET", "/oap/owner/grants", None).await.ok();
    let given =
        given["grants"].as_array().unwrap().iter().find(|info| {
            info["grant"]["grantee"] == laptop.did.as_str() && info["grant"]["trust_level"] == 4
        });
    let token = phone.world.token(&signer, &given.unwrap()["grant"]).await;
    let list = phone.world.as_agent(&signer, &token, "POST", "/oap/memory/changes", Some(&since)).await.ok();
    assert_eq!(list["told"][0]["item_id"], item.as_str(), "{list}");
    // A place that is none, too many names, and none.
    let many: Vec<&String> = std::iter::repeat_n(&item, 101).collect();
    for (path, body, names) in [
        ("/oap/memory/changes", json!({"request_id": request_id, "cursor": "0.journal.x"}), "cursor"),
        ("/oap/memory/changes", json!({"request_id": request_id, "cursor": "x".repeat(257)}), "cursor"),
        ("/oap/memory/changes/items", json!({"request_id": request_id, "items": []}), "items"),
        ("/oap/memory/changes/items", json!({"request_id": request_id, "items": many}), "items"),
    ] {
        let refused = phone.world.as_agent(&signer, &token, "POST", path, Some(&body)).await;
        let refused = refused.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains(names), "{refused}");
    }
}

/// What a letter of a pairing is answered.
async fn letter(to: &Party, from: &Signer, number: u8, step: Pairing) -> (String, String) {
    let now = to.world.now();
    let letter = Letter {
        id: LetterId::from_bytes([number; 16]),
        from: from.did().clone(),
        to: to.did.parse().unwrap(),
        issued_at: now,
        expires_at: now.plus(MAX_LIFE),
        content: Content::DevicePairing(step),
    };
    let signed = SignedLetter::sign(&letter, from).unwrap();
    let body = strict::parse(signed.bytes()).unwrap();
    let reply = to.world.raw("POST", "/oap/peer/letter", &[], Some(&body)).await.ok();
    let text = |name: &str| reply[name].as_str().unwrap_or_default().to_owned();
    (text("outcome"), text("reason"))
}

fn said(outcome: &str, reason: &str) -> (String, String) {
    (outcome.to_owned(), reason.to_owned())
}

/// The attack: letters alone, of whoever the owner does not want. Nothing comes of them, not even a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_letter_makes_nobody_a_device() {
    let town = Town::new();
    let (phone, laptop) = (town.party(11).await, town.party(12).await);
    let stranger = agent(21);
    let value = Hash::of(b"x");
    let to = phone.did.parse().unwrap();
    let offer = Pairing::Offer { commitment: commitment(stranger.did(), &to, &value) };
    assert_eq!(letter(&phone, &stranger, 1, offer.clone()).await, said("later", "not_asked"));
    assert_eq!(letter(&phone, &stranger, 1, offer).await, said("later", "not_asked"));
    assert_eq!(letter(&phone, &stranger, 2, Pairing::Reveal { value }).await, said("later", "not_asked"));
    let grant = phone.world.issue(&phone.world.draft(&stranger)).await;
    assert_eq!(letter(&phone, &stranger, 3, Pairing::Grant { grant }).await, said("refused", "not_asked"));
    let devices = async |party: &Party| party.world.owner("GET", "/oap/owner/devices", None).await.ok();
    assert_eq!(devices(&phone).await, json!({"devices": []}));

    // A gateway that wants this one for a device is heard once the owner wants it, too, however late.
    laptop.adds(&phone).await;
    settle(&phone, &laptop).await;
    assert_eq!(devices(&phone).await, json!({"devices": []}));
    assert_eq!(laptop.shows(&phone).await["state"], "asked");
    laptop.device("/confirm", json!({"did": phone.did, "code": "0000-0000"})).await.refused(409, "conflict");
    phone.adds(&laptop).await;
    settle(&phone, &laptop).await;
    assert_eq!(laptop.shows(&phone).await["code"], phone.shows(&laptop).await["code"]);
    let grants = async |party: &Party| {
        let grants = party.world.owner("GET", "/oap/owner/grants", None).await.ok();
        grants["grants"].as_array().unwrap().iter().filter(|info| info["grant"]["trust_level"] == 4).count()
    };
    assert_eq!((grants(&phone).await, grants(&laptop).await), (0, 0));
}

/// The attack: whoever is bound to a value chooses another one, once it knows this side's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_value_is_not_chosen_afterwards() {
    let town = Town::new();
    let (phone, laptop, code) = compared(&town).await;
    let (signer, to) = (laptop.world.gateway.keys().current().clone(), phone.did.parse().unwrap());
    let other = Hash::of(b"another");
    let offer = Pairing::Offer { commitment: commitment(signer.did(), &to, &other) };
    assert_eq!(letter(&phone, &signer, 1, offer).await, said("refused", "over"));
    assert_eq!(letter(&phone, &signer, 2, Pairing::Reveal { value: other }).await, said("refused", "over"));
    assert_eq!(phone.shows(&laptop).await["code"], code.as_str());
    // A grant that shows less than everything is none of a device's.
    let mut less = laptop.world.draft(&agent(5));
    less["grantee"] = json!(phone.did);
    let grant = laptop.world.issue(&less).await;
    assert_eq!(
        letter(&phone, &signer, 3, Pairing::Grant { grant }).await,
        said("refused", "grant_not_sound")
    );
    // Another code than the one that both show.
    let wrong =
        if code.starts_with('0') { code.replacen('0', "1", 1) } else { code.replacen(&code[..1], "0", 1) };
    let refused = phone.device("/confirm", json!({"did": laptop.did, "code": wrong})).await;
    let refused = refused.refused(400, "invalid_input");
    assert!(refused["message"].as_str().unwrap().starts_with("code: "), "{refused}");
    assert_eq!(phone.shows(&laptop).await["state"], "compare");
    // An hour later nobody says yes any more, and both begin anew, with another code.
    wait(&phone, &laptop, 60 * MINUTE);
    assert_eq!(phone.shows(&laptop).await["state"], "over");
    phone.device("/confirm", json!({"did": laptop.did, "code": code})).await.refused(409, "conflict");
    phone.adds(&laptop).await;
    laptop.adds(&phone).await;
    settle(&phone, &laptop).await;
    let anew = phone.shows(&laptop).await;
    assert_eq!(anew["code"], laptop.shows(&phone).await["code"]);
    assert_ne!(anew["code"], code.as_str());
}

/// The attack: somebody between the two, whom each was told is the other. The codes say it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn somebody_between_the_two_is_seen() {
    let town = Town::new();
    let (phone, laptop, mallory) = (town.party(11).await, town.party(12).await, town.party(13).await);
    for (one, two) in [(&phone, &mallory), (&laptop, &mallory), (&mallory, &phone), (&mallory, &laptop)] {
        one.adds(two).await;
    }
    for _ in 0..2 {
        settle(&phone, &mallory).await;
        settle(&laptop, &mallory).await;
    }
    let (here, there) = (phone.shows(&mallory).await, laptop.shows(&mallory).await);
    assert!(here["code"].is_string() && there["code"].is_string());
    assert_ne!(here["code"], there["code"]);
}

/// Removed on one side, it is over on both; what came stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_device_that_is_removed_is_none_on_either_side() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = phone.writes("Tea", &[]).await;
    laptop.syncs(&phone).await;
    phone.device("/remove", json!({"did": laptop.did})).await.ok();
    // Before it heard of it, it is refused.
    assert!(laptop.fails_to_sync(&phone).await.contains("refused: "));
    settle(&phone, &laptop).await;
    settle(&phone, &laptop).await;
    for (one, two) in [(&phone, &laptop), (&laptop, &phone)] {
        assert_eq!(one.shows(two).await["state"], "removed");
        assert_eq!(one.receipts("memory.device_remove").await.len(), 1);
        one.device("/sync", json!({"did": two.did})).await.refused(404, "not_found");
        let grants = one.world.owner("GET", "/oap/owner/grants", None).await.ok();
        assert!(
            grants["grants"].as_array().unwrap().iter().all(|info| info["state"] == "revoked"),
            "{grants}"
        );
        one.world.chains_hold().await;
    }
    assert_eq!(laptop.says(&item).await.unwrap(), "Tea");
    phone.corrects(&item, "Coffee").await;
    assert_eq!(laptop.says(&item).await.unwrap(), "Tea");
    // Added anew, they go on from there, and nothing is there twice.
    phone.adds(&laptop).await;
    laptop.adds(&phone).await;
    settle(&phone, &laptop).await;
    let code = phone.shows(&laptop).await["code"].clone();
    for (one, two) in [(&phone, &laptop), (&laptop, &phone)] {
        one.device("/confirm", json!({"did": two.did, "code": code})).await.ok();
    }
    settle(&phone, &laptop).await;
    assert_eq!(laptop.syncs(&phone).await.0, 1);
    assert_eq!(laptop.says(&item).await.unwrap(), "Coffee");
}

/// Nothing is taken over from whom the grant was taken back, though it says what it wants still: so a device stands in a backup from before
/// its removal, whose grant the restore revokes again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whose_grant_is_revoked_is_no_device() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = laptop.writes("Tea", &[]).await;
    let grant = phone.shows(&laptop).await["grant"].as_str().unwrap().to_owned();
    phone.world.owner("POST", &format!("/oap/owner/grants/{grant}/revoke"), Some(&json!({}))).await.ok();
    assert_eq!(phone.shows(&laptop).await["state"], "removed");
    phone.device("/sync", json!({"did": laptop.did})).await.refused(404, "not_found");
    phone.item(&item).await.refused(404, "not_found");
    // Both begin anew: here at once, there once it is heard of.
    assert_eq!(phone.adds(&laptop).await["state"], "asked");
    settle(&phone, &laptop).await;
    assert_eq!(laptop.shows(&phone).await["state"], "removed");
    laptop.adds(&phone).await;
    settle(&phone, &laptop).await;
    let code = phone.shows(&laptop).await["code"].clone();
    assert!(code.is_string() && laptop.shows(&phone).await["code"] == code);
    for device in [&phone, &laptop] {
        assert_eq!(device.receipts("memory.device_remove").await.len(), 1);
        device.world.chains_hold().await;
    }
}

/// A lockdown ends every device, and nothing is asked or answered meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lockdown_ends_it() {
    let town = Town::new();
    let (mut phone, laptop) = paired(&town).await;
    let item = laptop.writes("Tea", &[]).await;
    let locked = phone.world.owner("POST", "/oap/owner/lockdown", Some(&json!({}))).await.ok();
    phone.world.token = locked["trust_token"].as_str().unwrap().to_owned();
    assert_eq!(phone.shows(&laptop).await["state"], "removed");
    phone.device("/sync", json!({"did": laptop.did})).await.refused(404, "not_found");
    phone.device("", json!({"did": laptop.did})).await.refused(409, "conflict");
    assert!(laptop.fails_to_sync(&phone).await.contains("refused: "));
    phone.world.owner("POST", "/oap/owner/lockdown/lift", Some(&json!({}))).await.ok();
    phone.device("/sync", json!({"did": laptop.did})).await.refused(404, "not_found");
    phone.item(&item).await.refused(404, "not_found");
    // Its grant was taken back, and the laptop's ends with it.
    settle(&phone, &laptop).await;
    assert_eq!(laptop.shows(&phone).await["state"], "removed");
}

/// The attack: a device, and whoever was one, hands over a grant that renews nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_grant_is_renewed_by_a_later_one_of_a_device_alone() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let signer = laptop.world.gateway.keys().current().clone();
    let issues = async |days: u32, profile: &str, level: u8| {
        let draft = json!({
            "grantee": phone.did, "purpose": "Devices of one owner", "filter": {}, "max_items": 500,
            "expires_at": laptop.world.now().plus(days * DAY), "trust_level": level,
            "redaction_profile": format!("oap.profile.projection.{profile}.v1"),
        });
        Pairing::Grant { grant: laptop.world.issue(&draft).await }
    };
    let until = async || phone.shows(&laptop).await["until"].clone();
    let before = until().await;
    // One of the same moment is not later, whatever it promises.
    let early = issues(20, "full", 4).await;
    assert_eq!(letter(&phone, &signer, 1, early.clone()).await, said("refused", "over"));
    wait(&phone, &laptop, MINUTE);
    let less = issues(20, "memory", 3).await;
    assert_eq!(letter(&phone, &signer, 2, less).await, said("refused", "grant_not_sound"));
    assert_eq!(until().await, before);
    let later = issues(20, "full", 4).await;
    assert_eq!(letter(&phone, &signer, 3, later.clone()).await, said("taken", ""));
    let renewed = json!(phone.world.now().plus(20 * DAY));
    assert_eq!(until().await, renewed);
    // The same again changes nothing, and one of before does not come back.
    assert_eq!(letter(&phone, &signer, 4, later).await, said("taken", ""));
    assert_eq!(letter(&phone, &signer, 5, early).await, said("refused", "over"));
    assert_eq!(until().await, renewed);
    // Whoever is no device renews nothing.
    phone.device("/remove", json!({"did": laptop.did})).await.ok();
    wait(&phone, &laptop, MINUTE);
    let late = issues(20, "full", 4).await;
    assert_eq!(letter(&phone, &signer, 6, late).await, said("refused", "not_asked"));
    assert_eq!(phone.shows(&laptop).await["state"], "removed");
}

/// A device that says nothing, breaks off, never ends, nests too deep or leads elsewhere is named; nothing is taken, and none of it is a lie.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_device_that_gives_no_answer_changes_nothing() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = laptop.writes("Tea", &[]).await;
    for (mode, why) in [
        (Mode::Silent, "slow"),
        (Mode::CutsOff, "unreachable: connection"),
        (Mode::Endless, "unreachable: unreadable"),
        (Mode::Deep, "unreachable: unreadable"),
        (Mode::Redirects, "unreachable: redirected"),
    ] {
        laptop.set(mode);
        let said = phone.fails_to_sync(&laptop).await;
        assert!(said.starts_with(why), "{why}: {said}");
        assert_eq!(phone.says(&item).await, None);
    }
    assert!(phone.lies().await.is_empty());
    laptop.set(Mode::Honest);
    assert_eq!(phone.syncs(&laptop).await.0, 1);
}

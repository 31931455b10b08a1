//! The property *commitment*: what a receiver accepts is exactly what was captured, part by part.

mod support;

use oap_identity::signed::UnsignedJwt;
use oap_identity::time::MAX_SKEW;
use oap_identity::{DidDocument, ReceiptId, Timestamp, VerificationKey, json};
use oap_memory::chain::Event;
use oap_memory::commitment::{self, CommitmentError, Committed};
use oap_memory::epistemic::Epistemic;
use oap_memory::evidence::{self, EvidenceError};
use oap_memory::form::{CLEAR, FormError};
use oap_memory::profile::{Profile, TrustLevel};
use oap_memory::project::{explain, project};
use oap_memory::receipt::{self, Action, ReceiptError};
use oap_memory::record::ItemRecord;
use oap_memory::sd_jwt::{self, Child, Node, Presentation};
use oap_memory::tree::{Path, Step};
use oap_memory::unchecked::Unchecked;
use oap_memory::{Link, Receipt};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::{Owner, contact, full, now};

/// An item as an answer has it, under a profile and level.
fn answered(whole: &ItemRecord, profile: &str, level: u8) -> Value {
    let profile = Profile::built_in().into_iter().find(|p| p.name().ends_with(profile)).unwrap();
    let projected = project(&whole.committed, &profile, level.try_into().unwrap(), false).unwrap();
    let mut item = Value::Object(projected.item().clone());
    item["integrity"] = json!({
        "sd_jwt": projected.sd_jwt(&whole.committed).unwrap(),
        "chain": whole.chain.iter().map(|link| stored(link)).collect::<Vec<_>>(),
        "capture_receipt": stored(&whole.capture_receipt),
    });
    item["relevance"] = json!(1);
    item["epistemic"] = json!("belief");
    item
}

fn stored(document: &str) -> Value {
    serde_json::from_str(document).unwrap()
}

#[test]
fn every_level_of_every_profile_verifies() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    for profile in Profile::built_in() {
        for level in TrustLevel::all() {
            let item = answered(&whole, profile.name(), level.get());
            let verified = evidence::item(&item, &owner.document()).unwrap();
            assert_eq!(verified.capture.provenance_tags_out.len(), 1, "{} {level:?}", profile.name());
        }
    }
}

/// A receipt may be as far ahead as clocks may be apart, and no further.
#[test]
fn a_receipt_of_the_future_is_refused_from_the_first_millisecond_on() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let as_of = |behind: i64| {
        let verified = receipt::verify(&stored(&whole.capture_receipt), &owner.document()).unwrap();
        let at = verified.receipt.timestamp.millis();
        verified.as_of(Timestamp::from_millis(at - behind))
    };
    let skew = i64::try_from(MAX_SKEW.as_millis()).unwrap();
    assert!(as_of(skew).is_ok());
    assert!(as_of(skew + 1).is_err());
}

/// What each rule of a profile does is told, and where there is nothing for it.
#[test]
fn a_profile_is_explained_rule_by_rule() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let profile = Profile::built_in().into_iter().find(|p| p.name().ends_with("contact.v1")).unwrap();
    let told = |level: u8, rule: &str| {
        let rules = explain(&whole.committed, &profile, level.try_into().unwrap()).unwrap();
        rules.iter().find(|told| told.rule == rule).map(|told| told.effect.clone()).unwrap()
    };
    assert_eq!(told(0, "content.structured.names.given"), "shows content.structured.names.given");
    assert_eq!(told(0, "content.structured.addresses"), "hidden: needs level 3");
    assert_eq!(told(3, "content.structured.social"), "nothing there");
}

/// The text rule comes last, with the classes of spans that it shows and hides.
#[test]
fn the_text_rule_is_explained() {
    let owner = Owner::new(1);
    let told = |item: &Value, profile: &str, level: u8| {
        let (_, whole) = owner.capture(item);
        let profile = Profile::built_in().into_iter().find(|p| p.name().ends_with(profile)).unwrap();
        let mut rules = explain(&whole.committed, &profile, level.try_into().unwrap()).unwrap();
        let last = rules.pop().unwrap();
        assert_eq!((last.level, last.rule.as_str()), (level, "text"));
        (last.effect, rules)
    };
    let spans = "Mail a@b.example, IBAN DE89370400440532013000, password: hunter2!!";
    let note = json!({"kind": "fact", "content": {"text": spans}});
    for (level, effect) in [
        (1, "hidden"),
        (2, "shown; spans shown: none; spans hidden: email, iban, secret"),
        (3, "shown; spans shown: email, iban; spans hidden: secret"),
        (4, "shown; spans shown: email, iban, secret; spans hidden: none"),
    ] {
        assert_eq!(told(&note, "memory.v1", level).0, effect, "{level}");
    }
    let wordless = json!({"kind": "fact", "content": {"structured": {"colour": "red"}}});
    for level in 0..=4 {
        assert_eq!(told(&wordless, "memory.v1", level).0, "nothing there");
    }
    let (_, everything) = told(&note, "full.v1", 4);
    assert_eq!(everything.last().map(|told| told.effect.as_str()), Some("shows everything"));
}

#[test]
fn levels_of_the_contact_profile_are_the_table_of_rfc_0007() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let structured = |level| answered(&whole, "contact.v1", level)["content"]["structured"].clone();
    assert_eq!(structured(0), json!({"names": {"given": "Alice", "family": "Schmidt"}}));
    assert_eq!(structured(1)["affiliations"], json!([{"organization_id": "ent_org", "role": "Lead"}]));
    assert_eq!(structured(1).get("channels"), None);
    assert_eq!(
        structured(2)["channels"],
        json!([{"type": "email", "value": "alice@work.example", "primary": true}])
    );
    assert_eq!(structured(2)["languages"], json!(["de", "en"]));
    assert_eq!(structured(3)["channels"].as_array().unwrap().len(), 3);
    assert_eq!(structured(3)["affiliations"][0].get("since"), None);
    assert_eq!(structured(4), contact()["content"]["structured"]);
    for level in 0..4 {
        let item = answered(&whole, "contact.v1", level);
        for hidden in ["labels", "subject_entity_id", "extensions", "ttl_days", "scope_id"] {
            assert!(item.get(hidden).is_none(), "{hidden} at {level}");
        }
        assert!(item["content"].get("text").is_none());
        assert!(item["provenance"].get("confidence").is_none());
        assert!(item["provenance"].get("source_receipt").is_some());
    }
}

#[test]
fn levels_of_the_default_projection() {
    let owner = Owner::new(1);
    let mut note = contact();
    note["content"]["structured"]["entity_type"] = json!("note");
    note["content"]["text"] = json!("Mail a@b.example, IBAN DE89370400440532013000, password: hunter2!!");
    let (_, whole) = owner.capture(&note);
    let item = |level| answered(&whole, "memory.v1", level);
    assert!(item(0).get("labels").is_none() && item(0).get("content").is_none());
    assert_eq!(item(0)["kind"], "fact");
    assert_eq!(item(1)["labels"], json!(["contact", "project"]));
    assert_eq!(item(1)["subject_entity_id"], "ent_alice");
    assert_eq!(item(2)["content"]["text"], "Mail [email], IBAN [iban], password: [secret]");
    assert!(item(2)["content"].get("structured").is_none());
    assert_eq!(
        item(3)["content"]["text"],
        "Mail a@b.example, IBAN DE89370400440532013000, password: [secret]"
    );
    assert_eq!(item(4)["content"], note["content"]);
    assert_eq!(item(4)["extensions"], note["extensions"]);
}

#[test]
fn a_correction_is_seen_and_proved() {
    let owner = Owner::new(1);
    let (_, first) = owner.capture(&json!({"kind": "fact", "content": {"text": "old"}}));
    let second = owner.correct(&first, &json!({"kind": "fact", "content": {"text": "new"}}));
    let item = answered(&second, "memory.v1", 3);
    let verified = evidence::item(&item, &owner.document()).unwrap();
    assert_eq!((verified.chain.links().len(), item["version"].as_i64()), (2, Some(2)));
    assert!(evidence::explain(&verified).join(" ").contains("corrected once"));

    // The tail cut off: the SD-JWT of the version in force no longer fits.
    let mut cut = item.clone();
    cut["integrity"]["chain"].as_array_mut().unwrap().pop();
    assert_eq!(evidence::item(&cut, &owner.document()).unwrap_err(), EvidenceError::Commitment);

    // The old version passed off as the one in force.
    let mut stale = answered(&first, "memory.v1", 3);
    stale["integrity"]["chain"] = item["integrity"]["chain"].clone();
    assert_eq!(evidence::item(&stale, &owner.document()).unwrap_err(), EvidenceError::Commitment);

    // Order and signatures of the links.
    let mut swapped = item.clone();
    swapped["integrity"]["chain"].as_array_mut().unwrap().reverse();
    assert!(matches!(evidence::item(&swapped, &owner.document()), Err(EvidenceError::Chain(_))));
    let mut stripped = item;
    stripped["integrity"]["chain"][1].as_object_mut().unwrap().remove("signature");
    assert!(matches!(evidence::item(&stripped, &owner.document()), Err(EvidenceError::Chain(_))));
}

#[test]
fn pieces_of_another_item_do_not_fit() {
    let owner = Owner::new(1);
    let (_, a) = owner.capture(&contact());
    let (_, b) = owner.capture(&contact());
    let (a, b) = (answered(&a, "contact.v1", 2), answered(&b, "contact.v1", 2));
    for piece in ["sd_jwt", "chain", "capture_receipt"] {
        let mut mixed = a.clone();
        mixed["integrity"][piece] = b["integrity"][piece].clone();
        assert!(evidence::item(&mixed, &owner.document()).is_err(), "{piece}");
    }
    let mut renamed = a;
    renamed["item_id"] = b["item_id"].clone();
    assert!(evidence::item(&renamed, &owner.document()).is_err());
}

#[test]
fn a_stranger_cannot_sign_for_the_owner() {
    let owner = Owner::new(1);
    let kid = "did:web:user.example#key-1".parse().unwrap();
    let forger = Owner { signer: oap_identity::Signer::from_seed(kid, &[9; 32]).unwrap(), ..Owner::new(2) };
    let (_, forged) = forger.capture(&contact());
    let item = answered(&forged, "memory.v1", 2);
    assert!(evidence::item(&item, &forger.document()).is_ok());
    assert!(evidence::item(&item, &owner.document()).is_err());
}

/// The attack: whoever got hold of a key of today says that it signed an item of yesterday. Of a DID with a history (did:webvh) it is known that the
/// key was not there yet.
#[test]
fn an_item_is_not_older_than_the_key_that_signed_it() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let item = answered(&whole, "memory.v1", 2);
    let captured = now();
    let since = |at: Timestamp| {
        let key = VerificationKey::new(owner.signer.kid().clone(), *owner.signer.public()).since(at);
        evidence::item(&item, &DidDocument::new(owner.did(), vec![key]))
    };
    assert!(since(captured).is_ok());
    let later = Timestamp::from_millis(captured.millis() + 1);
    assert!(since(later).is_err());
    let key = VerificationKey::new(owner.signer.kid().clone(), *owner.signer.public()).since(later);
    let document = DidDocument::new(owner.did(), vec![key]);
    assert!(receipt::verify(&stored(&whole.capture_receipt), &document).is_err());
    assert!(commitment::verify(&full(&whole), &document).is_err());
}

/// Every leaf of a document, to change one at a time.
fn leaves(value: &Value, at: &Path, found: &mut Vec<Path>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, v)| leaves(v, &at.member(name), found)),
        Value::Array(values) => values.iter().enumerate().for_each(|(i, v)| leaves(v, &at.element(i), found)),
        _ => found.push(at.clone()),
    }
}

fn leaf_mut<'a>(root: &'a mut Value, path: &Path) -> &'a mut Value {
    path.steps().iter().fold(root, |value, step| match step {
        Step::Member(name) => &mut value[name.as_str()],
        Step::Element(i) => &mut value[*i as usize],
    })
}

/// Every leaf of an answered item (visible members, links, receipt), changed one at a time, is noticed.
#[test]
fn every_changed_leaf_is_detected() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let item = answered(&whole, "contact.v1", 3);
    let mut found = Vec::new();
    leaves(&item, &Path::default(), &mut found);
    let judged =
        |path: &Path| !matches!(&path.steps()[0], Step::Member(m) if m == "relevance" || m == "epistemic");
    let mut changed_leaves = 0;
    for path in found.iter().filter(|p| judged(p)) {
        let mut changed = item.clone();
        let leaf = leaf_mut(&mut changed, path);
        *leaf = match leaf {
            Value::String(text) => {
                let mut chars: Vec<char> = text.chars().collect();
                let middle = chars.len() / 2;
                match chars.get_mut(middle) {
                    Some(c) => *c = if *c == 'A' { 'B' } else { 'A' },
                    None => chars.push('A'),
                }
                Value::String(chars.into_iter().collect())
            }
            Value::Number(n) => json!(n.as_f64().unwrap() + 1.0),
            Value::Bool(b) => json!(!*b),
            _ => json!("x"),
        };
        assert!(evidence::item(&changed, &owner.document()).is_err(), "{path}");
        changed_leaves += 1;
    }
    assert!(changed_leaves > 30, "{changed_leaves}");
}

/// Every byte of the SD-JWT, flipped one at a time, is noticed.
#[test]
fn every_changed_byte_of_the_sd_jwt_is_detected() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&json!({"kind": "fact", "content": {"text": "mail a@b.example now"}}));
    let text = full(&whole);
    for position in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert!(commitment::verify(&changed, &owner.document()).is_err(), "byte {position}");
    }
}

#[test]
fn segments_cannot_change_their_order_or_class() {
    let owner = Owner::new(1);
    let (_, whole) =
        owner.capture(&json!({"kind": "fact", "content": {"text": "from a@b.example to c@d.example"}}));
    let text = full(&whole);
    let mut parts: Vec<&str> = text.trim_end_matches('~').split('~').collect();
    let expected = commitment::wire(commitment::verify(&text, &owner.document()).unwrap().claims()).unwrap();
    parts[1..].reverse();
    let reordered = parts.join("~") + "~";
    let claims = commitment::verify(&reordered, &owner.document()).unwrap();
    // The order of disclosures is the order of nothing: the text stays as it was captured.
    assert_eq!(commitment::wire(claims.claims()).unwrap(), expected);
}

/// A hidden value cannot be confirmed by guessing it: its digest is salted.
#[test]
fn hidden_digests_do_not_verify_guesses() {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let item = answered(&whole, "contact.v1", 0);
    let shown = item["integrity"]["sd_jwt"].as_str().unwrap();
    let known_salts: Vec<String> = shown
        .split('~')
        .skip(1)
        .filter(|d| !d.is_empty())
        .map(|d| {
            let parts: Vec<Value> = serde_json::from_slice(&B64.decode(d).unwrap()).unwrap();
            parts[0].as_str().unwrap().to_owned()
        })
        .collect();
    let mut salts = vec![String::new(), B64.encode([0; 16])];
    salts.extend(known_salts);
    for salt in salts {
        let guess = B64.encode(json!([salt, "subject_entity_id", "ent_alice"]).to_string());
        let guessed = format!("{shown}{guess}~");
        assert!(commitment::verify(&guessed, &owner.document()).is_err());
    }
}

/// The attack: a former house holds one part back, or puts its decoys where it likes. Of what came, each level discloses what it shows
/// and nothing else: what a receiver puts together is the visible item.
#[test]
fn what_came_in_part_is_shown_as_it_came() {
    let owner = Owner::new(1);
    let spans = "Mail a@b.example, IBAN DE89370400440532013000, password: hunter2!! or b@c.example.";
    let note = json!({"kind": "fact", "content": {"text": spans}, "labels": ["a", "b", "c"]});
    for item in [contact(), note] {
        let (_, whole) = owner.capture(&item);
        let all = whole.committed.disclosures().unwrap();
        for held_back in all {
            let rest = all.iter().filter(|part| !part.path().steps().starts_with(held_back.path().steps()));
            let read = Committed::read(&whole.committed.present(rest).unwrap()).unwrap();
            for profile in Profile::built_in() {
                for level in TrustLevel::all() {
                    let projected = project(&read, &profile, level, false).unwrap();
                    let shown = projected.sd_jwt(&read).unwrap();
                    let received = commitment::verify(&shown, &owner.document()).unwrap();
                    let mut received = commitment::wire(received.claims()).unwrap();
                    received.insert("status".into(), "current".into());
                    let at = format!("without {} at {} of {}", held_back.path(), level.get(), profile.name());
                    assert_eq!(&received, projected.item(), "{at}");
                }
            }
        }
    }
}

/// Earlier versions of the program stored elements by the place that they have among those that were held back.
#[test]
fn what_was_stored_in_part_is_read_as_it_is_revealed() {
    let owner = Owner::new(1);
    for left in [vec!["b"], vec!["b", "c"]] {
        let labels = [&["a"], left.as_slice()].concat();
        let (_, whole) = owner.capture(&json!({"kind": "fact", "content": {"text": "x"}, "labels": labels}));
        let all = whole.committed.disclosures().unwrap();
        let rest = || all.iter().filter(|part| part.path().to_string() != "labels[0]");
        let read = Committed::read(&whole.committed.present(rest()).unwrap()).unwrap();
        let now = json!(read);
        let mut then = now.clone();
        then["disclosures"] = rest().map(|part| json!(part)).collect();
        assert_ne!(then, now);
        for stored in [now, then] {
            let again: Committed = serde_json::from_value(stored).unwrap();
            assert_eq!(again.disclosures(), read.disclosures());
            assert_eq!((again.commitment(), again.claims()), (read.commitment(), read.claims()));
        }
        assert_eq!(read.claims().unwrap()["labels"], json!(left));
    }
}

/// A version of these claims, signed by its owner, which no gateway of ours writes.
fn signed(owner: &Owner, claims: &Value) -> String {
    let concealed = |(name, value): (&String, &Value)| {
        (name.clone(), Child { node: Node::concealed(value), concealed: true })
    };
    let nodes: Vec<_> = claims.as_object().unwrap().iter().map(concealed).collect();
    signed_parts(owner, &nodes)
}

fn signed_parts(owner: &Owner, nodes: &[(String, Child)]) -> String {
    let (_, whole) = owner.capture(&contact());
    let mut payload = commitment::verify(&full(&whole), &owner.document()).unwrap().claims().clone();
    payload.retain(|name, _| CLEAR.contains(&name.as_str()));
    payload.insert("_sd_alg".into(), json!("sha-256"));
    let (concealed, disclosures) = sd_jwt::conceal(nodes, true, &owner.random).unwrap();
    payload.extend(concealed);
    let jwt = UnsignedJwt::with_kid(owner.signer.kid(), commitment::TYP, &payload).unwrap();
    let all = disclosures.iter().map(|disclosure| disclosure.encoded() + "~");
    jwt.signed_by(&owner.signer) + "~" + &all.collect::<String>()
}

/// An owner signs what they like: what an item's members are not is refused by every receiver, one wrong value among right ones too.
#[test]
fn a_claim_has_the_shape_of_its_member() {
    let owner = Owner::new(1);
    let verified = |claims: Value| {
        let verified = commitment::verify(&signed(&owner, &claims), &owner.document());
        verified.map(|version| version.claims().clone())
    };
    let item = "mem_01JSM1E0000000000000000000";
    for (name, right, wrong) in [
        ("scope_id", vec![json!("work")], vec![json!(""), json!(1)]),
        ("kind", vec![json!("fact")], vec![json!("rumour"), json!(["fact"])]),
        ("subject_entity_id", vec![json!("ent_alice")], vec![json!(1), json!(["ent_alice"])]),
        ("embedding", vec![json!({"dim": 2})], vec![json!([1]), json!("x")]),
        (
            "labels",
            vec![json!([]), json!(["a", "b"])],
            vec![json!("a"), json!({"a": "b"}), json!([1]), json!(["a", 1])],
        ),
        (
            "ttl_days",
            vec![json!(0), json!(u32::MAX)],
            vec![json!(-1), json!("1"), json!(u64::from(u32::MAX) + 1)],
        ),
        ("expires_at", vec![json!("2030-01-01T00:00:00Z")], vec![json!("soon"), json!(1)]),
        ("exportable", vec![json!(true)], vec![json!("true"), json!(1)]),
        ("sensitivity", vec![json!("internal")], vec![json!("loud"), json!(1)]),
        (
            "derived_from",
            vec![json!([]), json!([item])],
            vec![json!(item), json!({}), json!(["x"]), json!([item, "x"])],
        ),
        ("extensions", vec![json!({"x.y": 1})], vec![json!([]), json!("x")]),
        ("provenance", vec![json!({"source": "user_statement"})], vec![json!([]), json!("x")]),
    ] {
        for value in right {
            let claims = verified(json!({name: value}));
            assert_eq!(claims.unwrap()[name], value);
        }
        for value in wrong {
            assert_eq!(verified(json!({name: value})), Err(CommitmentError::Claim(name)), "{value}");
        }
    }
    let at = json!("2026-01-01T00:00:00Z");
    assert!(verified(json!({"provenance": {"captured_at": at, "confidence": 0}})).is_ok());
    assert!(verified(json!({"provenance": {"captured_at": at, "confidence": 1}})).is_ok());
    for (provenance, refusal) in [
        (json!({"captured_at": "today"}), CommitmentError::Claim("provenance.captured_at")),
        (json!({"captured_at": 1, "confidence": 1}), CommitmentError::Claim("provenance.captured_at")),
        (json!({"captured_at": at, "confidence": "1"}), CommitmentError::Claim("provenance.confidence")),
        (json!({"confidence": 2}), CommitmentError::Claim("provenance.confidence")),
        (json!({"source_receipt": "rcpt_01JSM1E0000000000000000000"}), CommitmentError::SourceReceipt),
        (json!({"source_receipt": 1}), CommitmentError::SourceReceipt),
    ] {
        assert_eq!(verified(json!({"provenance": provenance})), Err(refusal), "{provenance}");
    }
}

/// What stands at `text` of another member is no span: its `t` is a part like any other.
#[test]
fn a_class_is_shown_of_spans_alone() {
    let item = json!({"content": {"text": [{"t": "email", "v": "a@b.example"}]}, "extensions": {"text": [{"t": 1, "v": 2}]}});
    let only =
        |steps: &[Step]| !matches!(steps.last(), Some(Step::Member(name)) if name == "t" || name == "v");
    let shown = Value::Object(commitment::shown(&item, only));
    assert_eq!(shown, json!({"content": {"text": [{"t": "email"}]}, "extensions": {"text": [{}]}}));
}

/// The attack: a gateway passes off as knowledge what its owner did not confirm, or is not certain of.
#[test]
fn knowledge_is_what_its_owner_confirmed_and_is_certain_of() {
    let owner = Owner::new(1);
    let captured = |confidence: f64| {
        let mut fact = contact();
        fact["provenance"]["confidence"] = json!(confidence);
        owner.capture(&fact).1
    };
    let known = |whole: &ItemRecord, level: u8| {
        let mut item = answered(whole, "memory.v1", level);
        item["epistemic"] = json!("knowledge");
        evidence::item(&item, &owner.document()).map(drop)
    };
    let refused = Err(EvidenceError::Epistemic(Epistemic::Knowledge));
    for confidence in [0.99, 1.0] {
        let whole = captured(confidence);
        let confirmed = owner.confirm(&whole);
        // Where confidence is hidden, nothing says that it is less.
        for (level, certain) in [(4, confidence == 1.0), (0, true)] {
            let outcome = if certain { Ok(()) } else { refused.clone() };
            assert_eq!(known(&confirmed, level), outcome, "{confidence} at {level}");
            assert_eq!(known(&whole, level), refused);
        }
    }
}

/// A clock that goes back writes no link before the one that it follows.
#[test]
fn a_link_is_no_earlier_than_the_one_before() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let first: Link = serde_json::from_str(&whole.chain[0]).unwrap();
    let receipt = ReceiptId::new(now(), &owner.random);
    for (at, becomes) in [(-1, 0), (0, 0), (1, 1)] {
        let after = |seconds: i64| Timestamp::from_seconds(first.at.seconds() + seconds);
        let next = first.followed_by(Event::Confirm, after(at), &owner.did(), receipt).unwrap();
        assert_eq!(next.at, after(becomes));
    }
}

/// By itself a receipt is signed, a head too; that an agent has not countersigned is said where the agent is another.
#[test]
fn a_receipt_alone_is_signed() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let own: Receipt = serde_json::from_str(&whole.capture_receipt).unwrap();
    let verified = |receipt: &Receipt| receipt::verify(&json!(receipt), &owner.document());
    assert_eq!(verified(&own).unwrap().unchecked, []);
    let mut head = own.head(own.hash().unwrap(), "chn_1", 1, &owner.random);
    assert_eq!(head.head_length(), Some(1));
    assert_eq!(verified(&head).unwrap_err(), ReceiptError::Unsigned(0));
    head.sign(&owner.signer).unwrap();
    assert_eq!(verified(&head).unwrap().unchecked, []);
    let mut agents = own;
    agents.agent_did = "did:web:agent.example".to_owned();
    agents.sign(&owner.signer).unwrap();
    assert_eq!(verified(&agents).unwrap().unchecked, [Unchecked::Agents(1)]);
}

/// What a receipt of a key that was compromised later is worth, and what a log says of it, is left to who reads it.
#[test]
fn what_is_not_checked_of_a_receipt_is_said() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let captured = stored(&whole.capture_receipt);
    let (kid, since) = (owner.signer.kid().clone(), Timestamp::from_millis(now().millis() + 1));
    let key = VerificationKey::new(kid.clone(), *owner.signer.public()).revoked(since);
    let document = DidDocument::new(owner.did(), vec![key]);
    let dated = receipt::verify(&captured, &document).unwrap();
    assert_eq!(dated.unchecked, [Unchecked::DatedByCompromisedKey { kid, since }]);

    let anchored = |anchors: Value| {
        let mut receipt = captured.clone();
        receipt["anchors"] = anchors;
        receipt::verify(&receipt, &owner.document())
    };
    let whole = json!([{"log_id": "log_1", "log_index": 7, "inclusion_proof": "AA"}, {}]);
    let verified = anchored(whole).unwrap();
    assert_eq!(verified.unchecked, [Unchecked::Anchors(verified.receipt.receipt_id)]);
    for anchors in [json!({}), json!([1]), json!([{"log": "log_1"}]), json!([{"log_index": "7"}])] {
        assert_eq!(anchored(anchors).unwrap_err(), ReceiptError::Anchors(0));
    }
}

/// A chain begins with its boot entry and ends with a signed head.
#[test]
fn a_chain_of_receipts_ends_with_a_signed_head() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let mut boot: Receipt = serde_json::from_str(&whole.capture_receipt).unwrap();
    (boot.action_id, boot.kind) = (Some(Action::Boot.to_string()), Action::Boot.kind());
    (boot.output_hash, boot.provenance_tags_out) = (None, Vec::new());
    boot.sign(&owner.signer).unwrap();
    let open = boot.head(boot.hash().unwrap(), "chn_1", 1, &owner.random);
    let mut head = open.clone();
    head.sign(&owner.signer).unwrap();
    let verified = |entries: &[&Receipt]| {
        receipt::verify_chain(entries.iter().map(|entry| json!(entry)), &owner.document())
            .map(|verified| (verified.chain, verified.length))
    };
    assert_eq!(verified(&[&boot, &head]), Ok(("chn_1".to_owned(), 2)));
    assert_eq!(verified(&[&boot, &open]), Err(ReceiptError::Unsigned(1)));
    assert_eq!(verified(&[&boot]), Err(ReceiptError::Cut));
    assert_eq!(verified(&[]), Err(ReceiptError::Cut));
    assert_eq!(verified(&[&head]), Err(ReceiptError::Broken(0)));
}

/// The attack: a former house lets `t` stand in the clear where no text is, so that whoever gets the part beside it reads it; or conceals
/// the class of a span, or puts a member beside what it says.
#[test]
fn a_class_stands_in_the_clear_at_spans_alone() {
    let owner = Owner::new(1);
    let leaf = |value: Value, concealed: bool| Child { node: Node::Leaf(value), concealed };
    let verified = |member: &str, within: &str, parts: Vec<(String, Child)>| {
        let list = Node::Array(vec![Child { node: Node::Object(parts), concealed: true }]);
        let inner = Node::Object(vec![(within.to_owned(), Child { node: list, concealed: true })]);
        let text = signed_parts(&owner, &[(member.to_owned(), Child { node: inner, concealed: true })]);
        let claims = commitment::verify(&text, &owner.document())?.claims().clone();
        commitment::wire(&claims)
    };
    let span = |clear: bool| {
        vec![
            ("t".to_owned(), leaf(json!("email"), !clear)),
            ("v".to_owned(), leaf(json!("a@b.example"), true)),
        ]
    };
    assert!(verified("content", "text", span(true)).is_ok());
    assert!(verified("extensions", "text", span(false)).is_ok());
    for (member, within, clear) in
        [("extensions", "text", true), ("content", "structured", true), ("content", "text", false)]
    {
        let refused = verified(member, within, span(clear)).unwrap_err();
        assert!(
            matches!(refused, CommitmentError::Form(FormError::Plain(_))),
            "{member}.{within}: {refused}"
        );
    }
    let mut more = span(true);
    more.push(("w".to_owned(), leaf(json!("aside"), true)));
    assert_eq!(verified("content", "text", more), Err(CommitmentError::Claim("content.text")));
}

/// A version that was prepared with a key is told from one of the next key, however it is kept.
#[test]
fn a_version_knows_the_key_that_signed_it() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let read = Committed::read(&full(&whole)).unwrap();
    let next = "did:web:user.example#key-2".parse().unwrap();
    for version in [&whole.committed, &read] {
        assert!(version.is_signed_by(owner.signer.kid()));
        assert!(!version.is_signed_by(&next));
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1_000_000i64..1_000_000).prop_map(Value::from),
        (-1e6..1e6f64).prop_map(|f| json::parse(f.to_string().as_bytes()).unwrap()),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..5)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn item() -> impl Strategy<Value = Value> {
    let structured = prop::collection::btree_map("[a-z]{1,6}", json_value(), 1..5);
    let text = prop_oneof![
        ".{0,60}".prop_map(|s| s),
        "[a-z ]{0,20}[a-z]{1,8}@[a-z]{1,8}\\.example[a-z ]{0,20}".prop_map(|s| s),
    ];
    (structured, text, prop::collection::vec("[a-z]{1,8}", 0..12)).prop_map(|(structured, text, labels)| {
        let structured: Map<String, Value> = structured.into_iter().collect();
        json!({"kind": "observation", "content": {"text": text, "structured": structured}, "labels": labels})
    })
}

/// The gateway puts the visible item together from its own disclosures; the receiver reveals it by digest.
fn receiver_sees_what_the_gateway_shows(committed: &Committed, chosen: &[bool]) {
    let mut shown: Vec<&Path> = Vec::new();
    let mut disclosures = Vec::new();
    for (disclosure, wanted) in committed.disclosures().unwrap().iter().zip(chosen.iter().cycle()) {
        let steps = disclosure.path().steps();
        let parents: Vec<&Path> = committed
            .disclosures()
            .unwrap()
            .iter()
            .map(|d| d.path())
            .filter(|p| p.steps().len() < steps.len())
            .collect();
        let orphan = parents.iter().any(|p| steps.starts_with(p.steps()) && !shown.contains(p));
        if *wanted && !orphan {
            shown.push(disclosure.path());
            disclosures.push(disclosure);
        }
    }
    let claims = Value::Object(committed.claims().unwrap());
    let gateway = commitment::shown(&claims, |steps| shown.iter().any(|path| path.steps() == steps));
    let text = committed.present(disclosures.iter().copied()).unwrap();
    let receiver = Presentation::parse(&text).unwrap().reveal().unwrap();
    assert_eq!(
        json::canonical(&Value::Object(gateway)).unwrap(),
        json::canonical(&Value::Object(receiver)).unwrap()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_choice_of_disclosures_reveals_what_was_captured(item in item(), chosen in prop::collection::vec(any::<bool>(), 1..40)) {
        let owner = Owner::new(3);
        let (_, whole) = owner.capture(&item);
        receiver_sees_what_the_gateway_shows(&whole.committed, &chosen);
        receiver_sees_what_the_gateway_shows(&whole.committed, &[true]);
        let claims = commitment::verify(&full(&whole), &owner.document()).unwrap();
        let wire = commitment::wire(claims.claims()).unwrap();
        // `null` and absent are not the same in structured content; everything comes back as it was written.
        prop_assert_eq!(&wire["content"]["structured"], &item["content"]["structured"]);
        if item["content"]["text"] != "" {
            prop_assert_eq!(&wire["content"]["text"], &item["content"]["text"]);
        }
    }
}

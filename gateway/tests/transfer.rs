//! Moving house: bundles between gateways, other vendors' records, and what is wrong with either.

use crate::common::*;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_gateway::Config;
use oap_gateway::embedding::EmbeddingModel;
use oap_gateway::service::Audit;
use oap_gateway::service::import::ImportRefusal;
use oap_identity::json::canonical;
use oap_identity::random::Seeded;
use oap_identity::{Did, DidDocument, Hash, Random};
use oap_memory::bundle::{BundleError, Line, Reader};
use oap_memory::evidence;
use oap_store::{Raw, Store, Table};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A gateway of another principal.
async fn house(name: &str, seed: u64) -> World {
    house_with(name, Arc::new(Seeded::new(seed))).await
}

/// Randomness of which the ids are chosen.
struct Chosen {
    seeded: Seeded,
    /// What is drawn for an id, beside its time.
    id: Mutex<Option<[u8; 10]>>,
}

impl Random for Chosen {
    fn fill(&self, buffer: &mut [u8]) {
        self.seeded.fill(buffer);
        if let (Some(id), true) = (*self.id.lock().unwrap(), buffer.len() == 10) {
            buffer.copy_from_slice(&id);
        }
    }
}

async fn house_with(name: &str, random: Arc<dyn Random>) -> World {
    let store = Store::in_memory(random.clone()).unwrap();
    let keys = oap_gateway::state::keyring::StoredKeys::generate(
        &*random,
        oap_identity::Timestamp::from_millis(START),
    );
    oap_gateway::Gateway::init(&store, &keys).await.unwrap();
    let config = Config { did: Some(name.parse().unwrap()), ..Config::default() };
    let none: Option<Box<dyn EmbeddingModel>> = None;
    World::of(name, store, config, random, Default::default(), none).await
}

const A: &str = "did:web:user.example";
const B: &str = "did:web:b.example";
const C: &str = "did:web:c.example";

/// A whole bundle, as the command line writes it.
async fn bundle(world: &World) -> Vec<Vec<u8>> {
    let header = world.owner("POST", "/oap/owner/export/header", Some(&json!({}))).await.ok();
    let header: oap_memory::bundle::Header = oap_identity::json::from_value(header).unwrap();
    let id = header.bundle_id;
    let mut tally = oap_memory::bundle::Tally::default();
    let mut lines = Vec::new();
    let line = Line::Header(header);
    let bytes = oap_memory::bundle::write(&line).unwrap();
    tally.add(&line, &bytes);
    lines.push(bytes);
    let mut after = Value::Null;
    loop {
        let body = json!({"part": "items", "after": after});
        let page = world.owner("POST", "/oap/owner/export/page", Some(&body)).await;
        let mut all = page.bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty());
        let cursor: Value = serde_json::from_slice(all.next().unwrap()).unwrap();
        for bytes in all {
            let line: Value = oap_identity::json::parse(bytes).unwrap();
            let line: Line = oap_identity::json::from_value(line).unwrap();
            tally.add(&line, bytes);
            lines.push(bytes.to_vec());
        }
        after = cursor["next"].clone();
        if after.is_null() {
            break;
        }
    }
    let trailer = serde_json::to_value(tally.trailer(id, world.now())).unwrap();
    let sealed = world.owner("POST", "/oap/owner/export/seal", Some(&trailer)).await.ok();
    lines.push(canonical(&sealed).unwrap());
    lines
}

fn item_lines(bundle: &[Vec<u8>]) -> Vec<Value> {
    let parse = |line: &Vec<u8>| oap_identity::json::parse(line).unwrap();
    bundle.iter().map(parse).filter(|line: &Value| line["type"] == "item").collect()
}

fn chunk(bundle: &[Vec<u8>], items: Vec<Value>) -> Value {
    let header: Value = oap_identity::json::parse(&bundle[0]).unwrap();
    let bare = |mut item: Value| {
        item.as_object_mut().unwrap().remove("type");
        item
    };
    json!({
        "bundle_id": header["bundle_id"], "principal": header["principal"], "documents": header["documents"],
        "items": items.into_iter().map(bare).collect::<Vec<_>>(),
    })
}

async fn import(world: &World, bundle: &[Vec<u8>]) -> Vec<Value> {
    let body = chunk(bundle, item_lines(bundle));
    let answer = world.owner("POST", "/oap/owner/import/bundle", Some(&body)).await.ok();
    answer["outcomes"].as_array().unwrap().clone()
}

fn count(outcomes: &[Value], what: &str) -> usize {
    outcomes.iter().filter(|outcome| outcome.get(what).is_some()).count()
}

fn documents(worlds: &[&World]) -> BTreeMap<Did, Arc<DidDocument>> {
    let document = |world: &&World| {
        let did = world.gateway.principal().clone();
        let raw = world.gateway.published().did.to_string();
        (did.clone(), Arc::new(DidDocument::parse(raw.as_bytes(), &did).unwrap()))
    };
    worlds.iter().map(document).collect()
}

async fn furnished() -> World {
    let world = house(A, 1).await;
    let ids = world
        .capture(&[
            note("Tea at four with Bob bob@mail.example", &["shared"]),
            note("The plan", &["shared"]),
            note("Taken back", &["shared"]),
            json!({"kind": "fact", "content": {"text": "Stays here"}, "exportable": false}),
        ])
        .await;
    let correct = json!({"item": {"content": {"text": "The better plan"}}});
    world.owner("POST", &format!("/oap/owner/items/{}/correct", ids[1]), Some(&correct)).await.ok();
    world.owner("POST", &format!("/oap/owner/items/{}/confirm", ids[0]), Some(&json!({}))).await.ok();
    world.owner("POST", &format!("/oap/owner/items/{}/retract", ids[2]), Some(&json!({}))).await.ok();
    world
}

#[tokio::test]
async fn a_whole_house_moves_and_every_proof_with_it() {
    let (a, b, c) = (furnished().await, house(B, 2).await, house(C, 3).await);
    let first = bundle(&a).await;
    assert_eq!(item_lines(&first).len(), 3, "what may not leave stays");
    let outcomes = import(&b, &first).await;
    assert_eq!(count(&outcomes, "imported"), 3, "{outcomes:?}");
    // Importing again changes nothing.
    let before =
        Audit(&b.gateway).chain_list(&b.proved().await).unwrap().iter().map(|c| c.length).sum::<u64>();
    assert_eq!(count(&import(&b, &first).await, "unchanged"), 3);
    assert_eq!(
        Audit(&b.gateway).chain_list(&b.proved().await).unwrap().iter().map(|c| c.length).sum::<u64>(),
        before
    );
    Audit(&b.gateway).verify_audit(&b.proved().await, &Default::default()).unwrap();

    // Every chain is the former one and a `migrate` link of the new house.
    let second = bundle(&b).await;
    let known = documents(&[&a, &b, &c]);
    for (was, is) in item_lines(&first).iter().zip(item_lines(&second)) {
        let chain = |line: &Value| line["item"]["integrity"]["chain"].as_array().unwrap().clone();
        assert_eq!(chain(&is)[..chain(was).len()], chain(was)[..]);
        assert_eq!(chain(&is).last().unwrap()["event"], "migrate");
        assert_eq!(chain(&is).last().unwrap()["actor"], B);
        assert_eq!(is["item"]["integrity"]["sd_jwt"], was["item"]["integrity"]["sd_jwt"]);
        assert_eq!(is["superseded"], was["superseded"]);
        evidence::item(&is["item"], &known).unwrap();
        assert!(
            evidence::item(&is["item"], &documents(&[&b])).is_err(),
            "the former house's keys are needed"
        );
    }
    // On to a third house, and back to the first: nothing is lost, nothing doubled.
    assert_eq!(count(&import(&c, &second).await, "imported"), 3);
    assert_eq!(count(&import(&a, &bundle(&c).await).await, "unchanged"), 3);

    // A grantee of the new house gets projected items whose proof leads to the old one.
    let grantee = agent(2);
    let answer = c.ask(&grantee, &c.draft(&grantee), &json!({"query": "tea"})).await;
    assert_eq!(texts(&answer), ["Tea at four with Bob bob@mail.example"]);
    let verified = evidence::answer(&answer, &known).unwrap();
    assert_eq!(verified.items[0].capture.principal_did.as_str(), A);
    assert!(evidence::answer(&answer, &documents(&[&b, &c])).is_err());
    // What was confirmed and taken back is so in the new house too.
    assert_eq!(answer["items"][0]["epistemic"], "knowledge");
    let all = c.ask(&grantee, &c.draft(&grantee), &json!({})).await;
    assert!(!texts(&all).contains(&"Taken back".to_owned()));
}

#[tokio::test]
async fn what_went_on_in_the_new_house_comes_back() {
    let (a, b) = (furnished().await, house(B, 2).await);
    import(&b, &bundle(&a).await).await;
    let items = b.owner("GET", "/oap/owner/items", None).await.ok();
    let id = items["items"][0]["item_id"].as_str().unwrap().to_owned();
    let correct = json!({"item": {"content": {"text": "Said anew in the new house"}}});
    b.owner("POST", &format!("/oap/owner/items/{id}/correct"), Some(&correct)).await.ok();
    let outcomes = import(&a, &bundle(&b).await).await;
    assert_eq!((count(&outcomes, "updated"), count(&outcomes, "unchanged")), (1, 2), "{outcomes:?}");
    let grantee = agent(2);
    let answer = a.ask(&grantee, &a.draft(&grantee), &json!({"query": "anew"})).await;
    evidence::answer(&answer, &documents(&[&a, &b])).unwrap();
    assert_eq!(texts(&answer), ["Said anew in the new house"]);
    // Changed in both houses since: neither history is thrown away.
    let correct = json!({"item": {"content": {"text": "Said once more here"}}});
    a.owner("POST", &format!("/oap/owner/items/{id}/correct"), Some(&correct)).await.ok();
    let correct = json!({"item": {"content": {"text": "Said once more there"}}});
    b.owner("POST", &format!("/oap/owner/items/{id}/correct"), Some(&correct)).await.ok();
    let outcomes = import(&a, &bundle(&b).await).await;
    assert_eq!(count(&outcomes, "refused"), 1, "{outcomes:?}");
}

#[tokio::test]
async fn what_was_erased_does_not_come_back() {
    let a = furnished().await;
    let saved = bundle(&a).await;
    a.owner("POST", "/oap/data/delete", Some(&json!({"labels": ["shared"]}))).await.ok();
    let outcomes = import(&a, &saved).await;
    assert_eq!(count(&outcomes, "refused"), 3);
    assert!(outcomes[0]["refused"].as_str().unwrap().contains("erased here"));
}

/// Leaves out of an SD-JWT the disclosure of the member of that name.
fn hold_back(sd_jwt: &mut Value, name: &str) {
    let parts: Vec<&str> = sd_jwt.as_str().unwrap().split('~').collect();
    let is_of = |part: &&str| {
        let bytes = URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
        serde_json::from_slice::<Value>(&bytes).is_ok_and(|disclosure| disclosure[1] == name)
    };
    let kept: Vec<&str> = parts.iter().copied().filter(|part| !is_of(part)).collect();
    assert_eq!(kept.len() + 1, parts.len());
    *sd_jwt = kept.join("~").into();
}

/// Every way to forge a line is refused by itself, and the lines beside it go in.
#[tokio::test]
async fn forged_lines_are_refused_and_the_rest_goes_in() {
    let a = furnished().await;
    let saved = bundle(&a).await;
    let mut lines = item_lines(&saved);
    // The one that was corrected is forged: a later version than its chain tells of is seen.
    let chain = |line: &Value| line["item"]["integrity"]["chain"].clone();
    let corrected = lines.iter().position(|line| chain(line)[1]["event"] == "correct").unwrap();
    lines.swap(1, corrected);
    let stranger = house(C, 9).await;
    let foreign = {
        stranger.capture(&[note("Mine", &[])]).await;
        item_lines(&bundle(&stranger).await)[0].clone()
    };
    let forge = |change: &dyn Fn(&mut Value)| {
        let mut forged = lines[1].clone();
        change(&mut forged);
        forged
    };
    let integrity =
        |forged: &mut Value, member: &str, value: Value| forged["item"]["integrity"][member] = value;
    let cases: Vec<(&str, Value, &str)> = vec![
        ("text", forge(&|f| f["item"]["content"]["text"] = json!("Forged")), "content"),
        ("label", forge(&|f| f["item"]["labels"] = json!(["admin"])), "labels"),
        (
            "signature of a link",
            forge(&|f| f["item"]["integrity"]["chain"][0]["signature"] = json!("e30..AAAA")),
            "link 0",
        ),
        (
            "cut chain",
            forge(&|f| {
                f["item"]["integrity"]["chain"].as_array_mut().unwrap().pop();
            }),
            "",
        ),
        (
            "spliced chain",
            forge(&|f| {
                let other = lines[0]["item"]["integrity"]["chain"][1].clone();
                f["item"]["integrity"]["chain"].as_array_mut().unwrap().push(other);
            }),
            "another item",
        ),
        (
            "another's SD-JWT",
            forge(&|f| integrity(f, "sd_jwt", lines[0]["item"]["integrity"]["sd_jwt"].clone())),
            "",
        ),
        (
            "another's capture receipt",
            forge(&|f| {
                integrity(f, "capture_receipt", lines[0]["item"]["integrity"]["capture_receipt"].clone())
            }),
            "capture",
        ),
        ("no SD-JWT", forge(&|f| drop(f["item"]["integrity"].as_object_mut().unwrap().remove("sd_jwt"))), ""),
        ("another id", forge(&|f| f["item"]["item_id"] = lines[0]["item"]["item_id"].clone()), "item_id"),
        (
            "a version that never was",
            forge(&|f| f["superseded"] = json!([lines[0]["item"]["integrity"]["sd_jwt"]])),
            "superseded",
        ),
        (
            "its sensitivity held back",
            forge(&|f| {
                hold_back(&mut f["item"]["integrity"]["sd_jwt"], "sensitivity");
                f["item"].as_object_mut().unwrap().remove("sensitivity");
            }),
            "does not disclose /sensitivity",
        ),
        (
            "its confidence held back",
            forge(&|f| {
                hold_back(&mut f["item"]["integrity"]["sd_jwt"], "confidence");
                f["item"]["provenance"].as_object_mut().unwrap().remove("confidence");
            }),
            "does not disclose /provenance/confidence",
        ),
        (
            "a former version's leave to be exported held back",
            forge(&|f| hold_back(&mut f["superseded"][0], "exportable")),
            "superseded: integrity.sd_jwt: does not disclose /exportable",
        ),
        ("an item of somebody else", foreign.clone(), ""),
        ("not an item", forge(&|f| f["item"] = json!({"item_id": "mem_1"})), "integrity"),
    ];
    for (name, forged, named) in cases {
        let b = house(B, 2).await;
        let body = chunk(&saved, vec![lines[0].clone(), forged, lines[2].clone()]);
        let outcomes =
            b.owner("POST", "/oap/owner/import/bundle", Some(&body)).await.ok()["outcomes"].clone();
        let reason = outcomes[1]["refused"].as_str().unwrap_or_else(|| panic!("{name}: {outcomes}"));
        assert!(reason.contains(named), "{name}: {reason}");
        assert!(
            outcomes[0].get("imported").is_some() && outcomes[2].get("imported").is_some(),
            "{name}: {outcomes}"
        );
    }
    // A stranger's item, even with the stranger's document at hand, is not the owner's memory.
    let b = house(B, 2).await;
    let mut body = chunk(&saved, vec![foreign]);
    body["documents"].as_array_mut().unwrap().push(stranger.gateway.published().did.clone());
    let outcomes = b.owner("POST", "/oap/owner/import/bundle", Some(&body)).await.ok()["outcomes"].clone();
    assert!(outcomes[0]["refused"].as_str().unwrap().contains("owner"), "{outcomes}");
}

/// The same id with other content: whoever comes second is refused.
#[tokio::test]
async fn a_duplicate_id_with_other_content() {
    let (a, b) = (house(A, 1).await, house(B, 2).await);
    a.capture(&[note("One", &[])]).await;
    let one = bundle(&a).await;
    import(&b, &one).await;
    // The same principal and randomness make the same id in another gateway.
    let twin = house(A, 1).await;
    twin.capture(&[note("Two", &[])]).await;
    let two = bundle(&twin).await;
    assert_eq!(item_lines(&one)[0]["item"]["item_id"], item_lines(&two)[0]["item"]["item_id"]);
    let outcomes = import(&b, &two).await;
    assert!(outcomes[0]["refused"].as_str().unwrap().contains("another"), "{outcomes:?}");
}

/// A bundle says what its own principal's keys are; of another house it may add keys and marks, and takes none back.
#[tokio::test]
async fn a_bundle_takes_back_nothing_that_is_known_of_a_third_house() {
    let (a, b, c) = (furnished().await, house(B, 2).await, house(C, 3).await);
    import(&b, &bundle(&a).await).await;
    let saved = bundle(&b).await;
    let of_a = |body: &Value| {
        let all = body["documents"].as_array().unwrap();
        all.iter().position(|document| document["id"] == A).unwrap()
    };
    let brought = |change: &dyn Fn(&mut Value)| {
        let mut body = chunk(&saved, item_lines(&saved));
        let place = of_a(&body);
        change(&mut body["documents"][place]);
        body
    };
    let known = async |of: &World| {
        let header = of.owner("POST", "/oap/owner/export/header", Some(&json!({}))).await.ok();
        header["documents"][of_a(&header)]["verificationMethod"].clone()
    };
    let later = "2030-01-01T00:00:00.000Z";
    let marked = brought(&|document| document["verificationMethod"][0]["revoked"] = json!(later));
    let outcomes = c.owner("POST", "/oap/owner/import/bundle", Some(&marked)).await.ok()["outcomes"].clone();
    assert!(count(outcomes.as_array().unwrap(), "imported") > 0, "{outcomes}");
    assert_eq!(known(&c).await[0]["revoked"], later);
    // Another bundle of the same house does not know it.
    c.owner("POST", "/oap/owner/import/bundle", Some(&brought(&|_| ()))).await.ok();
    assert_eq!(known(&c).await[0]["revoked"], later);
    // Nor does it say that the key is another one.
    let key = c.gateway.published().did["verificationMethod"][0]["publicKeyJwk"].clone();
    let other = brought(&|document| document["verificationMethod"][0]["publicKeyJwk"] = key.clone());
    let refused = c.owner("POST", "/oap/owner/import/bundle", Some(&other)).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.to_string().contains("documents"), "{}", refused.body);
    assert_eq!(known(&c).await.as_array().unwrap().len(), 1);
    // It may add one, and the house itself says what holds.
    let added = brought(&|document| {
        let mut method = document["verificationMethod"][0].clone();
        method["id"] = json!(format!("{A}#key-9"));
        document["verificationMethod"].as_array_mut().unwrap().push(method);
        for list in ["assertionMethod", "authentication"] {
            document[list].as_array_mut().unwrap().push(json!(format!("{A}#key-9")));
        }
    });
    c.owner("POST", "/oap/owner/import/bundle", Some(&added)).await.ok();
    let both = known(&c).await;
    assert_eq!((both.as_array().unwrap().len(), &both[1]["revoked"]), (2, &json!(later)), "{both}");
    import(&c, &bundle(&a).await).await;
    let own = known(&c).await;
    assert_eq!((own.as_array().unwrap().len(), own[0].get("revoked")), (1, None), "{own}");
}

#[tokio::test]
async fn items_from_the_future() {
    let (a, b) = (house(A, 1).await, house(B, 2).await);
    a.clock.advance(Duration::from_secs(3600));
    a.capture(&[note("Tomorrow's news", &[])]).await;
    let outcomes = import(&b, &bundle(&a).await).await;
    assert!(outcomes[0]["refused"].as_str().unwrap().contains("future"), "{outcomes:?}");
}

#[tokio::test]
async fn the_trailer_tells_of_every_line() {
    let a = furnished().await;
    let lines = bundle(&a).await;
    let known = documents(&[&a]);
    let read = |lines: &[Vec<u8>]| {
        let mut reader = Reader::default();
        let bad = lines.iter().filter(|line| reader.read(line).is_err()).count();
        (bad, reader.finish(&known))
    };
    assert!(matches!(read(&lines), (0, Ok(_))));
    // Cut, reordered, doubled, changed, mixed with another.
    assert_eq!(read(&lines[..lines.len() - 1]), (0, Err(BundleError::Cut)));
    let mut fewer = lines.clone();
    fewer.remove(1);
    assert!(matches!(read(&fewer), (0, Err(BundleError::Changed("another number of lines")))));
    let mut swapped = lines.clone();
    swapped.swap(1, 2);
    assert!(matches!(read(&swapped), (0, Err(BundleError::Changed("another hash")))));
    let other = bundle(&a).await;
    let mut mixed = lines.clone();
    *mixed.last_mut().unwrap() = other.last().unwrap().clone();
    assert!(matches!(read(&mixed), (0, Err(BundleError::OtherBundle))));
    let mut more = lines.clone();
    more.push(lines[1].clone());
    assert_eq!(read(&more).0, 1);
    for hostile in
        [b"\xff\xff".to_vec(), "[".repeat(100_000).into_bytes(), b"{\"type\":\"grants\"}".to_vec(), vec![]]
    {
        let mut hostile_lines = lines.clone();
        hostile_lines.insert(1, hostile);
        let (bad, whole) = read(&hostile_lines);
        assert_eq!(bad, 1);
        assert!(whole.is_err());
    }
    assert!(matches!(Reader::default().read(&lines[1]), Err(BundleError::Header)));
    let foreign = br#"{"format":"oap-memory-bundle/2","type":"header"}"#;
    assert!(matches!(Reader::default().read(foreign), Err(BundleError::Format(_))));
}

#[tokio::test]
async fn a_migration_has_its_receipt() {
    let (a, b) = (furnished().await, house(B, 2).await);
    let lines = bundle(&a).await;
    import(&b, &lines).await;
    let header: Value = oap_identity::json::parse(&lines[0]).unwrap();
    let trailer: Value = oap_identity::json::parse(lines.last().unwrap()).unwrap();
    let finish = json!({
        "bundle_id": header["bundle_id"], "principal": A, "hash": trailer["hash"], "counts": trailer["counts"],
        "imported": 3, "unchanged": 0, "refused": 0,
    });
    let receipt = b.owner("POST", "/oap/owner/import/finish", Some(&finish)).await.ok()["receipt"].clone();
    let decision = &receipt["policy_decisions"][0];
    assert_eq!(
        (&receipt["action_id"], &decision["export_hash"]),
        (&json!("memory.migrate"), &trailer["hash"])
    );
    assert!(decision["chain_head"]["tip"].is_string());
    Audit(&b.gateway).verify_audit(&b.proved().await, &Default::default()).unwrap();
}

#[tokio::test]
async fn a_grantee_exports_its_view_and_no_more() {
    let a = furnished().await;
    let grantee = agent(2);
    let mut draft = a.draft(&grantee);
    draft["trust_level"] = json!(2);
    draft["max_items"] = json!(1);
    let grant = a.issue(&draft).await;
    let token = a.token(&grantee, &grant).await;
    let refused = a.as_agent(&grantee, &token, "POST", "/oap/memory/export", None).await;
    refused.refused(403, "policy_block");
    draft["operations"] = json!(["export"]);
    let grant = a.issue(&draft).await;
    let token = a.token(&grantee, &grant).await;
    let answer = a.as_agent(&grantee, &token, "POST", "/oap/memory/export", None).await;
    assert_eq!(answer.status, 200);
    let mut reader = Reader::default();
    let mut items = Vec::new();
    for line in answer.bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        if let Line::Item(item) = reader.read(line).unwrap() {
            evidence::item(&item.item, &a.document()).unwrap();
            assert!(item.record.is_none() && item.superseded.is_empty());
            items.push(item);
        }
    }
    let projection = reader.header().unwrap().projected.clone().unwrap();
    assert_eq!((projection.trust_level.get(), projection.grantee.as_str()), (2, grantee.did().as_str()));
    reader.finish(&a.document()).unwrap();
    assert_eq!(items.len(), 1, "as many as the grant has");
    assert!(!String::from_utf8_lossy(&answer.bytes).contains("bob@mail"), "projected like an answer");
    // It disclosed: a query under the same grant is refused its operation, another export shows the same item.
    a.query(&grantee, &token, &json!({})).await.refused(403, "policy_block");
    let again = a.as_agent(&grantee, &token, "POST", "/oap/memory/export", None).await;
    assert_eq!(again.bytes.len(), answer.bytes.len());
}

async fn records(world: &World, records: Value, dry_run: bool) -> Vec<Value> {
    let body = json!({"records": records, "dry_run": dry_run});
    world.owner("POST", "/oap/owner/import/records", Some(&body)).await.ok()["outcomes"]
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn records_are_imported_once_corrected_and_never_brought_back() {
    let world = World::new().await;
    let record = |source: &str, text: &str| json!({"source": source, "item": note(text, &["from"])});
    let batch = json!([
        record("x:1", "One"),
        record("x:2", "Two"),
        json!({"source": "x:3", "item": {"kind": "none"}})
    ]);
    let outcomes = records(&world, batch.clone(), true).await;
    assert_eq!((count(&outcomes, "imported"), count(&outcomes, "refused")), (2, 1));
    assert_eq!(
        world.owner("GET", "/oap/owner/items", None).await.ok()["items"],
        json!([]),
        "a dry run writes nothing"
    );
    let outcomes = records(&world, batch.clone(), false).await;
    assert_eq!((count(&outcomes, "imported"), count(&outcomes, "refused")), (2, 1));
    assert!(outcomes[2]["refused"].as_str().unwrap().contains("content"), "{outcomes:?}");
    let owner = world.proved().await;
    let length = |world: &World| {
        Audit(&world.gateway).chain_list(&owner).unwrap().iter().map(|c| c.length).sum::<u64>()
    };
    let before = length(&world);
    assert_eq!(count(&records(&world, batch, false).await, "unchanged"), 2);
    assert_eq!(length(&world), before);
    let outcomes = records(&world, json!([record("x:1", "One, corrected")]), false).await;
    assert_eq!(count(&outcomes, "updated"), 1);
    let id = outcomes[0]["updated"].as_str().unwrap();
    let shown = world.owner("GET", &format!("/oap/owner/items/{id}"), None).await.ok();
    assert_eq!((&shown["item"]["version"], shown["chain"].as_array().unwrap().len()), (&json!(2), 2));
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [id]}))).await.ok();
    let outcomes = records(&world, json!([record("x:1", "One, corrected")]), false).await;
    assert!(outcomes[0]["deleted"].as_str().unwrap().contains("erased here"));
    // The same source twice in one chunk: the second is the same record.
    let outcomes = records(&world, json!([record("y:1", "Once"), record("y:1", "Once")]), false).await;
    assert_eq!((count(&outcomes, "imported"), count(&outcomes, "unchanged")), (1, 1));
}

/// Importers put a hash of the content in the place of an id that a format lacks. Nothing that was made of the content of an
/// erased record is left, not even under a key; and nothing of the same place comes back in silence.
#[tokio::test]
async fn nothing_that_tells_an_erased_record_is_kept() {
    use oap_gateway::state::schema::{SAID, SOURCES};
    let (kept, world) = Kept::new().await;
    let record = |pin: &str| {
        let source = format!("mcp:entity:PIN:{}", Hash::of(pin.as_bytes()));
        json!({"source": source, "item": note(&format!("PIN: {pin}"), &[])})
    };
    let outcomes =
        records(&world, json!([record("4711"), {"source": "x:1", "item": note("An id", &[])}]), false).await;
    assert_eq!(count(&outcomes, "imported"), 2);
    assert_eq!(count(&records(&world, json!([record("4711")]), false).await, "unchanged"), 1);
    // A correction takes along what is known of the source.
    let id = outcomes[0]["imported"].as_str().unwrap().to_owned();
    let path = format!("/oap/owner/items/{id}/correct");
    world.owner("POST", &path, Some(&json!({"item": {"labels": ["corrected"]}}))).await.ok();
    assert_eq!(count(&records(&world, json!([record("4711")]), false).await, "unchanged"), 1);

    let rows = |store: &Store| -> Vec<Vec<u8>> {
        let rows = |number| Table::<Vec<u8>, Vec<u8>, Raw>::new(number).scan(store).map(Result::unwrap);
        let both = rows(SAID.number()).chain(rows(SOURCES.number()));
        both.flat_map(|(key, value)| [key, value]).collect()
    };
    let says = Hash::of_canonical(&record("4711")["item"]).unwrap();
    let has = |rows: &[Vec<u8>], needle: &[u8]| {
        rows.iter().any(|row| row.windows(needle.len()).any(|w| w == needle))
    };
    drop(world);
    assert!(has(&rows(&kept.store()), says.as_bytes()), "the search finds what is there");
    let world = kept.open().await;
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [id]}))).await.ok();
    let outcomes = records(
        &world,
        json!([record("4711"), record("4712"), {"source": "y", "item": note("New", &[])}]),
        false,
    )
    .await;
    assert!(outcomes[0]["deleted"].as_str().unwrap().contains("erased here"), "{outcomes:?}");
    assert!(outcomes[1]["deleted"].as_str().unwrap().contains("item add"), "no telling which: {outcomes:?}");
    assert_eq!(count(&outcomes, "imported"), 1);
    drop(world);
    let store = kept.store();
    let left = rows(&store);
    // Whoever has store and master key tries every PIN: what the rows are then does not depend on it.
    assert!(!has(&left, says.as_bytes()));
    assert_eq!(SAID.scan(&store).count(), 2, "of the two that are here");
    for pin in ["4711", "4712"] {
        let source = record(pin)["source"].as_str().unwrap().to_owned();
        assert!(!has(&left, &Hash::of(source.as_bytes()).as_bytes()[..20]));
        assert!(!has(&left, Hash::of(pin.as_bytes()).as_bytes()));
    }
    drop(store);
    assert_eq!(count(&records(&kept.open().await, json!([record("9999")]), false).await, "deleted"), 1);
}

/// Rows of the former form lose their hashes at the next start; what is here is still known.
#[tokio::test]
async fn sources_of_the_former_form_are_brought_into_this_one() {
    use oap_gateway::state::schema::{FORMER_SOURCES, FORWARD, SOURCES};
    let (kept, world) = Kept::new().await;
    let (here, gone) = (note("Here", &[]), note("4711", &[]));
    let ids = world.capture(&[here.clone(), gone.clone()]).await;
    let row = |source: &str, id: &str, item: &Value| {
        let id: oap_identity::ItemId = id.parse().unwrap();
        let says = Hash::of_canonical(item).unwrap();
        (*Hash::of(source.as_bytes()).as_bytes().first_chunk::<20>().unwrap(), (id, says))
    };
    let rows = [row("x:1", &ids[0], &here), row("x:2", &ids[1], &gone)];
    world
        .gateway
        .commit(move |w| {
            for (key, value) in &rows {
                FORMER_SOURCES.put(w.tx, key, value)?;
            }
            // Of a version that brought nothing forward.
            FORWARD.delete(w.tx, &"sources".to_owned());
            Ok(())
        })
        .await
        .unwrap();
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [ids[1]]}))).await.ok();
    drop(world);
    let world = kept.open().await;
    let again = json!([{"source": "x:1", "item": here}]);
    assert_eq!(count(&records(&world, again.clone(), false).await, "unchanged"), 1);
    drop(world);
    let store = kept.store();
    assert_eq!(SOURCES.scan(&store).count(), 0);
    drop(store);
    // Known by its identity from then on.
    let world = kept.open().await;
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [ids[0]]}))).await.ok();
    let outcomes = records(&world, again, false).await;
    assert!(outcomes[0]["deleted"].as_str().unwrap().contains("erased here"));
    Audit(&world.gateway).verify_audit(&world.proved().await, &Default::default()).unwrap();
}

/// A grantee's bundle has the documents of those former houses that signed something in it, and no other.
#[tokio::test]
async fn a_grantees_export_names_no_house_that_it_shows_nothing_of() {
    let (a, b, c) = (house(A, 1).await, house(B, 2).await, house(C, 3).await);
    a.capture(&[note("From the first house", &["first"])]).await;
    b.capture(&[note("From the second house", &["second"])]).await;
    import(&c, &bundle(&a).await).await;
    import(&c, &bundle(&b).await).await;
    c.capture(&[note("From here", &["here"])]).await;
    for (labels, houses) in
        [(vec!["first"], vec![A, C]), (vec!["here"], vec![C]), (vec!["first", "second"], vec![A, B, C])]
    {
        let grantee = agent(2);
        let mut draft = c.draft(&grantee);
        draft["operations"] = json!(["query", "export"]);
        draft["filter"] = json!({"labels_any": labels});
        let grant = c.issue(&draft).await;
        let token = c.token(&grantee, &grant).await;
        let answer = c.as_agent(&grantee, &token, "POST", "/oap/memory/export", Some(&json!({}))).await;
        let header: Value =
            serde_json::from_slice(answer.bytes.split(|b| *b == b'\n').next().unwrap()).unwrap();
        let documents = header["documents"].as_array().unwrap_or_else(|| panic!("{}", answer.body));
        let mut found: Vec<&str> = documents.iter().map(|d| d["id"].as_str().unwrap()).collect();
        found.sort_unstable();
        let mut expected = houses.clone();
        expected.sort_unstable();
        assert_eq!(found, expected, "{labels:?}");
    }
}

#[tokio::test]
async fn hostile_records() {
    let world = World::new().await;
    let deep = (0..80).fold(json!(1), |inner, _| json!({"a": inner}));
    for (item, named) in [
        (json!({"kind": "fact", "content": {"text": "x".repeat(70_000)}}), "content.text"),
        (
            json!({"kind": "fact", "content": {"text": "x"}, "provenance": {"captured_at": "2030-01-01T00:00:00Z"}}),
            "future",
        ),
        (json!({"kind": "fact", "content": {"text": "x"}, "owner_did": "did:web:else.example"}), "owner"),
        (
            json!({"kind": "fact", "content": {"text": "x"}, "item_id": "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"}),
            "item_id",
        ),
        (json!({"kind": "fact", "content": {"structured": {"_sd": []}}}), "_sd"),
        (json!({"kind": "fact"}), "content"),
    ] {
        let outcomes = records(
            &world,
            json!([{"source": "x", "item": item}, {"source": "ok", "item": note("Fine", &[])}]),
            true,
        )
        .await;
        let reason = outcomes[0]["refused"].as_str().unwrap_or_else(|| panic!("{named}: {outcomes:?}"));
        assert!(reason.contains(named), "{named}: {reason}");
        assert!(outcomes[1].get("imported").is_some());
    }
    // What is no JSON for the wire refuses its own record alone.
    let large = json!({"kind": "fact", "content": {"structured": {"n": 9_007_199_254_740_993_u64}}});
    for (item, named) in [(deep, "nested"), (large, "2^53"), (json!(7), "object")] {
        let chunk = json!([{"source": "x", "item": item}, {"source": "ok", "item": note("Fine", &[])}]);
        let outcomes = records(&world, chunk, true).await;
        assert!(outcomes[0]["refused"].as_str().unwrap().contains(named), "{named}: {outcomes:?}");
        assert!(outcomes[1].get("imported").is_some(), "{named}");
    }
    let body = json!({"records": []});
    world.owner("POST", "/oap/owner/import/records", Some(&body)).await.refused(400, "invalid_input");
}

fn golden(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/../docs/bundle-v1/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).unwrap();
    bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

/// The golden files of the format's specification, and its schema.
#[test]
fn golden_bundles() {
    let header: Value = oap_identity::json::parse(&golden("whole.jsonl")[0]).unwrap();
    let raw = &header["documents"][0];
    let did: Did = raw["id"].as_str().unwrap().parse().unwrap();
    let document = DidDocument::parse(raw.to_string().as_bytes(), &did).unwrap();
    let read = |name: &str| {
        let mut reader = Reader::default();
        let mut wrong = 0;
        for bytes in golden(name) {
            match reader.read(&bytes).unwrap() {
                Line::Item(item) => wrong += usize::from(evidence::item(&item.item, &document).is_err()),
                Line::Receipt { receipt } => drop(oap_memory::receipt::verify(&receipt, &document).unwrap()),
                _ => {}
            }
        }
        (wrong, reader.finish(&document).map(|trailer| trailer.counts.items))
    };
    assert_eq!(read("whole.jsonl"), (0, Ok(2)));
    assert_eq!(read("cut.jsonl"), (0, Err(BundleError::Cut)));
    assert_eq!(read("changed.jsonl"), (1, Err(BundleError::Changed("another hash"))));

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/bundle-line.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for bytes in golden("whole.jsonl") {
        let line: Value = oap_identity::json::parse(&bytes).unwrap();
        assert!(validator.is_valid(&line), "{line}");
        let mut more = line.clone();
        more["colour"] = json!("red");
        assert!(!validator.is_valid(&more));
        // Written again, it is the same.
        let again: Line = oap_identity::json::from_value(line).unwrap();
        assert_eq!(oap_memory::bundle::write(&again).unwrap(), bytes);
    }
}

/// A receipt is known by its id alone, and whoever made it chose that: another house's bundle does not put its own receipt in the place of
/// one that is here.
#[tokio::test]
async fn a_bundle_replaces_no_capture_receipt_of_another_house() {
    let (a, b) = (house(A, 1).await, house(B, 2).await);
    a.capture(&[note("Of the first house", &[])]).await;
    import(&b, &bundle(&a).await).await;
    b.capture(&[note("Of this house", &[])]).await;
    let before = item_lines(&bundle(&b).await);
    assert_eq!(before.len(), 2);
    // A house that draws the ids that it likes.
    let chosen = Arc::new(Chosen { seeded: Seeded::new(3), id: Mutex::default() });
    let c = house_with(C, chosen.clone()).await;
    c.capture(&[note("The first of a hostile house", &[])]).await;
    for line in &before {
        let id = line["item"]["integrity"]["capture_receipt"]["receipt_id"].clone();
        let id: oap_identity::ReceiptId = serde_json::from_value(id).unwrap();
        *chosen.id.lock().unwrap() = id.to_bytes().last_chunk().copied();
        c.capture(&[note("Another of a hostile house", &[])]).await;
    }
    *chosen.id.lock().unwrap() = None;
    let hostile = bundle(&c).await;
    let receipts = |lines: &[Value]| -> BTreeSet<String> {
        let id = |line: &Value| line["item"]["integrity"]["capture_receipt"]["receipt_id"].to_string();
        lines.iter().map(id).collect()
    };
    assert!(receipts(&before).is_subset(&receipts(&item_lines(&hostile))), "the ids are the same");
    let mut body = chunk(&hostile, item_lines(&hostile));
    for dry_run in [true, false] {
        body["dry_run"] = json!(dry_run);
        let answer = b.owner("POST", "/oap/owner/import/bundle", Some(&body)).await.ok();
        let outcomes = answer["outcomes"].as_array().unwrap();
        assert_eq!((count(outcomes, "imported"), count(outcomes, "refused")), (1, 2), "{answer}");
        for refused in outcomes.iter().filter_map(|outcome| outcome.get("refused")) {
            assert!(refused.as_str().unwrap().contains("capture_receipt"), "{answer}");
        }
    }
    let after = item_lines(&bundle(&b).await);
    assert_eq!(after.len(), 3);
    let known = documents(&[&a, &b, &c]);
    for line in &after {
        evidence::item(&line["item"], &known).unwrap();
    }
    // The same receipt again is no other one.
    assert_eq!(count(&import(&b, &bundle(&a).await).await, "unchanged"), 1);
}

#[tokio::test]
async fn a_key_that_another_entry_has_here_is_not_given_twice() {
    let write = async |world: &World, key: &str, says: &str| {
        let agent = json!({"name": format!("agent-{key}"), "permission": "memory.write"});
        let made = world.owner("POST", "/oap/owner/agents", Some(&agent)).await.ok();
        let entry = json!({
            "agent_id": format!("agent-{key}"), "namespace": "plans", "key": key, "value": {"says": says},
            "memory_type": "semantic",
        });
        let key = [("x-api-key", made["api_key"].as_str().unwrap())];
        world.raw("POST", "/api/v1/memory", &key, Some(&entry)).await.ok()
    };
    let (from, to) = (house(A, 1).await, house(B, 2).await);
    write(&from, "trip", "to Rome").await;
    write(&from, "diet", "no nuts").await;
    write(&to, "trip", "to Oslo").await;
    let outcomes = import(&to, &bundle(&from).await).await;
    assert_eq!(count(&outcomes, "imported"), 1, "{outcomes:?}");
    let refused: Vec<_> = outcomes.iter().filter_map(|outcome| outcome["refused"].as_str()).collect();
    assert_eq!(refused, [ImportRefusal::EntryKey.to_string()]);
}

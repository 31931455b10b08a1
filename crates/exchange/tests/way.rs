//! From a grant to the bytes that leave: each step takes what the step before made, and refuses another's.

mod support;

use oap_exchange::allowance::Disclosed;
use oap_exchange::answer::{Answer, find, find_items};
use oap_exchange::ccc::Ccc;
use oap_exchange::gate::{Obligations, Rule};
use oap_exchange::preview::Preview;
use oap_exchange::respond::{Frame, Items, RespondError, Unsent};
use oap_exchange::{Allowance, Durable, Model, Query, Setting, Vector, View, ViewError, respond};
use oap_grants::Grant;
use oap_grants::limits::LimitError;
use oap_identity::random::Seeded;
use oap_identity::{DecisionId, Did, Hash, ItemId, ReceiptId, RequestId, Timestamp, json};
use oap_memory::receipt::{Decision, GENESIS, Outcome, Receipt, ReceiptType};
use oap_memory::record::ItemRecord;
use oap_memory::{Filter, Head, Profile, TrustLevel};
use serde_json::{Map, Value, json as value};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use support::*;

const MEMORY: &str = "oap.profile.projection.memory.v1";

/// A store that keeps what it is given.
struct Kept(Receipt);

impl Durable for Kept {
    fn receipt(&self) -> &Receipt {
        &self.0
    }
}

fn receipt(owner: &Owner, output_hash: Hash) -> Kept {
    let mut receipt = Receipt {
        receipt_id: ReceiptId::new(now(), &owner.random),
        kind: ReceiptType::Invocation,
        timestamp: now(),
        principal_did: owner.did(),
        agent_did: grantee().to_string(),
        tool_did: Some(owner.did()),
        action_id: Some("memory.query".to_owned()),
        input_hash: None,
        output_hash: Some(output_hash),
        policy_decisions: vec![Decision {
            id: DecisionId::new(now(), &owner.random),
            outcome: Outcome::Allow,
            rules: Vec::new(),
            more: Map::new(),
        }],
        provenance_tags_out: Vec::new(),
        previous_receipt_hash: GENESIS.to_owned(),
        signatures: Vec::new(),
    };
    receipt.sign(&owner.signer).unwrap();
    Kept(receipt)
}

fn items(owner: &Owner) -> Vec<(Head, ItemRecord)> {
    let note = |text: &str| value!({"kind": "fact", "content": {"text": text}, "labels": ["shared"]});
    ["tea on Tuesday", "tea with a@b.example", "coffee"].map(|text| owner.capture(&note(text))).into()
}

fn written(answer: Answer, seed: u64) -> Unsent<Items> {
    let id = || RequestId::new(now(), &Seeded::new(seed));
    answer.write(Frame { request_id: id(), response_id: id(), next_cursor: None })
}

#[test]
fn a_view_applies_the_profile_that_its_grant_names_or_is_none() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let known = presented(&owner, grant(&Filter::default(), MEMORY, TrustLevel::STRANGER));
    assert_eq!(view(&items, &known, &profiles).unwrap().len(), 3);
    let others: Vec<Profile> = profiles.iter().filter(|profile| profile.name() != MEMORY).cloned().collect();
    let refused = view(&items, &known, &others).unwrap_err();
    assert!(matches!(refused, ViewError::Profile(LimitError::UnknownProfile(name)) if name == MEMORY));
    let demanding = profiles.iter().find(|profile| profile.minimum_level() > TrustLevel::STRANGER).unwrap();
    let low = presented(&owner, grant(&Filter::default(), demanding.name(), TrustLevel::STRANGER));
    let refused = view(&items, &low, &profiles).unwrap_err();
    assert!(matches!(refused, ViewError::Profile(LimitError::ProfileLevel { .. })));
}

#[test]
fn an_answer_leaves_with_its_own_receipt_alone() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let presented = presented(&owner, grant(&Filter::default(), MEMORY, 2.try_into().unwrap()));
    let items = items(&owner);
    let view = view(&items, &presented, &profiles).unwrap();
    let query = Query { query: "tea".to_owned(), ..Query::default() };
    let ask = |seed| {
        let answer = write_out(find(&view, &Allowance::unused(10), &query, None, None), &items);
        assert_eq!((answer.items().len(), answer.newly_disclosed().count()), (2, 2));
        written(answer, seed)
    };
    let (one, other) = (ask(5), ask(6));
    assert_eq!(one.shown().len(), 2);
    // The same items under another name: another answer.
    assert_ne!(one.output_hash(), other.output_hash());
    let stored = receipt(&owner, one.output_hash());
    assert!(matches!(respond(other, &stored, &owner.signer), Err(RespondError::OtherReceipt)));
    let bytes = respond(one, &stored, &owner.signer).unwrap();
    let answer = json::parse(&bytes).unwrap();
    assert_eq!(json::canonical(&answer).unwrap(), bytes);
    assert_eq!(answer["receipt"]["receipt_id"], value!(stored.0.receipt_id));
    assert_eq!(answer["projection_applied"]["profile"], MEMORY);
}

/// `Durable` is the one proof that another room gives: it has one type for it.
#[test]
fn one_type_says_that_a_receipt_is_durable() {
    fn implementations(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                implementations(&path, found);
            } else if path.extension().is_some_and(|name| name == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                found.extend(lines.filter(|line| line.contains("Durable for")).map(str::to_owned));
            }
        }
    }
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let manifest = std::fs::read_to_string(Path::new(root).join("Cargo.toml")).unwrap();
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    let mut found = Vec::new();
    for room in members.split(',').map(|room| room.trim().trim_matches('"')) {
        let folder = Path::new(root).join(room);
        // The fuzz targets have a folder of another name.
        let source = ["src", "fuzz_targets"].map(|name| folder.join(name)).into_iter().find(|at| at.is_dir());
        implementations(&source.unwrap(), &mut found);
    }
    assert_eq!(found, ["impl Durable for Stored<Receipt> {"]);
}

#[test]
fn a_preview_shows_what_the_view_shows() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    for level in TrustLevel::all() {
        let proposed = grant(&Filter::default(), MEMORY, level);
        let preview = preview(&items, &proposed, &profiles);
        let view = view(&items, &presented(&owner, proposed), &profiles).unwrap();
        let all =
            written(write_out(find(&view, &Allowance::unused(10), &Query::default(), None, None), &items), 5);
        let stored = receipt(&owner, all.output_hash());
        let answer = json::parse(&respond(all, &stored, &owner.signer).unwrap()).unwrap();
        let mut shown = answer["items"].as_array().unwrap().clone();
        shown.sort_by_key(|item| item["item_id"].to_string());
        for item in &mut shown {
            item.as_object_mut().unwrap().retain(|name, _| name != "integrity" && name != "relevance");
        }
        let previewed: Vec<_> = preview.items().iter().map(|item| item.visible().unwrap()).collect();
        assert_eq!(shown, previewed, "level {}", level.get());
        assert_eq!(preview.matching("tea"), if level.get() < 2 { 0 } else { 2 });
    }
}

/// A page that holds one new item is counted, even among known ones; what was disclosed before may be shown anyway.
#[test]
fn an_answer_discloses_what_is_new_in_it() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let ids: Vec<ItemId> = items.iter().map(|(head, _)| head.item_id).collect();
    let view =
        view(&items, &presented(&owner, grant(&Filter::default(), MEMORY, 2.try_into().unwrap())), &profiles)
            .unwrap();
    let discloses = |had: &[ItemId], query: &str| {
        let allowance = Allowance::new(vec![Arc::new(Disclosed::new(10, had.iter().copied()))]);
        let query = Query { query: query.to_owned(), ..Query::default() };
        find(&view, &allowance, &query, None, None).discloses()
    };
    assert!(discloses(&[], ""));
    assert!(discloses(&ids[..1], ""), "two are new");
    assert!(!discloses(&ids, ""));
    assert!(!discloses(&[], "zeppelin"), "nothing is found");
}

/// What the gates keep back is the owner's to know: a change of it concerns the report and not the view.
#[test]
fn changes_of_what_is_kept_back_are_noted() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let private =
        owner.capture(&value!({"kind": "fact", "content": {"text": "diary"}, "labels": ["private"]}));
    let new = owner.capture(&value!({"kind": "fact", "content": {"text": "cocoa"}, "labels": ["shared"]}));
    let filter: Filter = json::from_value(value!({"labels_any": ["shared"]})).unwrap();
    let mut setting = setting(&profiles);
    let embargo = value!({"ccc_version": "1.0", "scope_id": "personal", "embargo_list": [grantee()]});
    setting.obligations.contexts.insert("personal".parse().unwrap(), Ccc::parse(embargo).unwrap());
    let verified = presented(&owner, grant(&filter, MEMORY, 2.try_into().unwrap()));
    let load = |_: &Head| Ok::<_, Infallible>(None::<ItemRecord>);
    let heads = items.iter().map(|(head, _)| head);
    let view = View::build(&verified, &Allowance::unused(10), &setting, heads, load).unwrap();
    let kept_back = items[0].0.item_id;
    assert!(view.is_empty() && view.is_noted(kept_back, None, now()), "it was kept back, and is gone");
    assert!(view.is_noted(new.0.item_id, Some(&new.0), now()), "the grant selects it");
    assert!(!view.is_noted(private.0.item_id, Some(&private.0), now()), "the grant does not select it");
    assert!(!view.is_noted(private.0.item_id, None, now()));
}

/// What may not leave is shown to the owner's own agents alone, in a preview as well.
#[test]
fn a_preview_knows_the_owners_own_agent() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let mut items = items(&owner);
    items.push(owner.capture(&value!({"kind": "fact", "content": {"text": "diary"}, "exportable": false})));
    let shown = |grantee: Did| {
        let proposed = Grant { grantee, ..grant(&Filter::default(), MEMORY, 2.try_into().unwrap()) };
        preview(&items, &proposed, &profiles).items().len()
    };
    assert_eq!((shown(owner.did()), shown(grantee())), (4, 3));
}

/// A preview says where vectors are, as an answer would, where the grantee may have them.
#[test]
fn a_preview_says_where_vectors_are() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let embed = |texts: Vec<String>| texts.iter().map(|_| Vector::new(vec![1.0, 0.0])).collect();
    let model = Model { name: "even", dimensions: 2, url: "https://user.example/vec/", embed: &embed };
    let proposed = |embedding_access: bool, embeddings: bool| {
        let terms = grant(&Filter::default(), MEMORY, TrustLevel::INNER_CIRCLE);
        let terms = Grant { embedding_access, ..terms };
        let setting = Setting { embeddings, model: Some(&model), ..setting(&profiles) };
        let load = |head: &Head| {
            let found = items.iter().find(|(known, _)| known.item_id == head.item_id);
            Ok::<_, Infallible>(found.map(|(_, whole)| whole.clone()))
        };
        let preview = Preview::build(&terms, &setting, items.iter().map(|(head, _)| head), load).unwrap();
        let item = preview.item(items[0].0.item_id).unwrap().visible().unwrap();
        (item["embedding_ref"].clone(), preview.vectors().len())
    };
    let url = format!("{}{}", model.url, items[0].0.item_id);
    let referred = value!({"dimensions": 2, "model": "even", "vector_url": url});
    assert_eq!(proposed(true, true), (referred, 3));
    for (access, asked) in [(true, false), (false, true)] {
        assert_eq!(proposed(access, asked).0, Value::Null, "{access} {asked}");
    }
}

/// At the moment at which an item ends it is neither shown nor kept back.
#[test]
fn an_item_ends_at_its_end() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let mut items = items(&owner);
    let end = now().plus(std::time::Duration::from_secs(3600));
    let ending = value!({"kind": "fact", "content": {"text": "cocoa"}, "expires_at": end});
    items.push(owner.capture(&ending));
    let verified = presented(&owner, grant(&Filter::default(), MEMORY, 2.try_into().unwrap()));
    let mut shown = view(&items, &verified, &profiles).unwrap();
    let mut setting = setting(&profiles);
    let embargo = value!({"ccc_version": "1.0", "scope_id": "personal", "embargo_list": [grantee()]});
    setting.obligations.contexts.insert("personal".parse().unwrap(), Ccc::parse(embargo).unwrap());
    let load = |_: &Head| Ok::<_, Infallible>(None::<ItemRecord>);
    let heads = items.iter().map(|(head, _)| head);
    let kept_back = View::build(&verified, &Allowance::unused(10), &setting, heads, load).unwrap();
    for (at, left) in [(Timestamp::from_millis(end.millis() - 1), 4_u32), (end, 3)] {
        shown.expire(at);
        assert_eq!((shown.len(), shown.report(at).passed), (left as usize, left));
        assert_eq!(kept_back.report(at).withheld, left);
    }
    // What is kept back takes some, too.
    assert!((1..10_000).contains(&kept_back.bytes()));
    assert!(kept_back.is_empty() && !shown.is_empty());
}

/// A gate that may decide otherwise, or a model that was out: whichever comes first.
#[test]
fn a_view_is_over_at_the_first_of_its_ends() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let verified = presented(&owner, grant(&Filter::default(), MEMORY, 2.try_into().unwrap()));
    let out = |_: Vec<String>| None;
    let model = Model { name: "out", dimensions: 2, url: "https://user.example/vec/", embed: &out };
    let promise = value!({"ccc_version": "1.0", "scope_id": "personal", "non_solicits": [{"valid_until": "2026-06-30"}]});
    let allowance = Allowance::unused(1000);
    let over = |is_out: bool, promised: bool| {
        let mut setting = Setting { model: is_out.then_some(&model), ..setting(&profiles) };
        if promised {
            let context = Ccc::parse(promise.clone()).unwrap();
            setting.obligations.contexts.insert("personal".parse().unwrap(), context);
        }
        let load = |head: &Head| {
            let found = items.iter().find(|(known, _)| known.item_id == head.item_id);
            Ok::<_, Infallible>(found.map(|(_, whole)| whole.clone()))
        };
        let heads = items.iter().map(|(head, _)| head);
        let view = View::build(&verified, &allowance, &setting, heads, load).unwrap();
        let end = view.ends()?;
        assert!(
            !view.is_over(&allowance, Timestamp::from_millis(end.millis() - 1))
                && view.is_over(&allowance, end)
        );
        Some(end)
    };
    let soon = now().plus(std::time::Duration::from_secs(60));
    let day: Timestamp = "2026-07-01T00:00:00Z".parse().unwrap();
    assert_eq!(over(false, false), None);
    assert_eq!([over(true, false), over(false, true), over(true, true)], [soon, day, soon].map(Some));
}

/// What moved on or was erased while a step was made is not taken over by it.
#[test]
fn of_what_a_step_leaves_out_the_view_keeps_what_it_has() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let verified = presented(&owner, grant(&Filter::default(), MEMORY, 2.try_into().unwrap()));
    let mut view = view(&[], &verified, &profiles).unwrap();
    let items = items(&owner);
    let load = |head: &Head| {
        let found = items.iter().find(|(known, _)| known.item_id == head.item_id);
        Ok::<_, Infallible>(found.map(|(_, whole)| whole.clone()))
    };
    let changed = items.iter().map(|(head, _)| (head.item_id, Some(Arc::new(head.clone()))));
    let mut step = view.renewal().step(changed, None, now(), load).unwrap();
    let [first, moved] = [0, 1].map(|number: usize| items[number].0.item_id);
    step.leave_out(|item| item == moved);
    assert!(view.take(step));
    let mut step = view.renewal().step([(first, None)], None, now(), load).unwrap();
    step.leave_out(|item| item == first);
    assert!(view.take(step));
    assert_eq!(
        items.iter().map(|(head, _)| view.contains(head.item_id)).collect::<Vec<_>>(),
        [true, false, true]
    );
}

/// What stays kept back for another reason is reported by that one, as in a view that is built.
#[test]
fn what_is_kept_back_is_reported_by_the_rules_of_now() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let verified = presented(&owner, grant(&Filter::default(), MEMORY, 2.try_into().unwrap()));
    let owed = |more: &Value| {
        let mut context = value!({"ccc_version": "1.0", "scope_id": "personal"});
        context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut obligations = Obligations::default();
        obligations.contexts.insert("personal".parse().unwrap(), Ccc::parse(context).unwrap());
        obligations
    };
    let built = |obligations: Obligations| {
        let setting = Setting { obligations, ..setting(&profiles) };
        let load = |_: &Head| Ok::<_, Infallible>(None::<ItemRecord>);
        let heads = items.iter().map(|(head, _)| head);
        View::build(&verified, &Allowance::unused(10), &setting, heads, load).unwrap()
    };
    let head =
        |item| items.iter().find(|(head, _)| head.item_id == item).map(|(head, _)| Arc::new(head.clone()));
    let embargo = value!({"embargo_list": [grantee()]});
    let mut view = built(owed(&embargo));
    for (more, rules) in [
        (value!({"professional_codes": ["law"]}), [Rule::ProfessionalCode].as_slice()),
        (
            value!({"professional_codes": ["law"], "embargo_list": [grantee()]}),
            &[Rule::Embargo, Rule::ProfessionalCode],
        ),
        (embargo, &[Rule::Embargo]),
    ] {
        assert_eq!(view.oblige(&owed(&more), false, now(), head), Some(Vec::new()));
        let report = view.report(now());
        assert_eq!(report, built(owed(&more)).report(now()));
        assert_eq!((report.withheld, report.rules), (3, rules.iter().map(|rule| (*rule, 3)).collect()));
    }
}

/// Where members have vectors, what a question means decides beside its words; where they have none it does not.
#[test]
fn a_question_is_answered_by_its_meaning() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let verified = presented(&owner, grant(&Filter::default(), MEMORY, 3.try_into().unwrap()));
    let drink = |tea: bool| Vector::new(if tea { vec![1.0, 0.0] } else { vec![0.0, 1.0] });
    let embed = |texts: Vec<String>| texts.iter().map(|text| drink(text.contains("tea"))).collect();
    let model = Model { name: "drinks", dimensions: 2, url: "https://user.example/vec/", embed: &embed };
    let setting = Setting { model: Some(&model), ..setting(&profiles) };
    let load = |head: &Head| {
        let found = items.iter().find(|(known, _)| known.item_id == head.item_id);
        Ok::<_, Infallible>(found.map(|(_, whole)| whole.clone()))
    };
    let heads = || items.iter().map(|(head, _)| head);
    let allowance = Allowance::unused(1000);
    let embedded = View::build(&verified, &allowance, &setting, heads(), load).unwrap();
    let nothing = [].iter().map(|(head, _): &(Head, ItemRecord)| head);
    let empty = View::build(&verified, &allowance, &setting, nothing, load).unwrap();
    let plain = view(&items, &verified, &profiles).unwrap();
    assert!(embedded.has_vectors() && !plain.has_vectors() && !empty.has_vectors());

    let asked = |view: &View, words: &str, meaning: Option<bool>| {
        let query = Query { query: words.to_owned(), ..Query::default() };
        let meaning = meaning.map(|tea| drink(tea).unwrap());
        let found = find(view, &allowance, &query, meaning.as_ref(), None);
        write_out(found, &items).items().collect::<Vec<_>>()
    };
    let coffee = items[2].0.item_id;
    for words in ["zanzibar", "tea"] {
        assert!(asked(&embedded, words, Some(false)).contains(&coffee), "{words}");
        assert_eq!(asked(&embedded, words, None), asked(&plain, words, Some(false)), "{words}");
        assert!(!asked(&plain, words, Some(false)).contains(&coffee));
    }
    assert_eq!(asked(&embedded, "zanzibar", Some(false))[0], coffee);
    assert_ne!(asked(&embedded, "zanzibar", Some(true))[0], coffee);
}

/// Items that are named are found by the rest of the question too.
#[test]
fn named_items_are_found_by_words() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let verified = presented(&owner, grant(&Filter::default(), MEMORY, 3.try_into().unwrap()));
    let view = view(&items, &verified, &profiles).unwrap();
    let [tea, _, coffee] = [0, 1, 2].map(|n| items[n].0.item_id);
    let named = |words: &str| {
        let query = Query { query: words.to_owned(), ..Query::default() };
        let found = find_items(&view, &Allowance::unused(1000), &query, &[tea, coffee]);
        write_out(found, &items).items().collect::<BTreeSet<_>>()
    };
    assert_eq!(named(""), BTreeSet::from([tea, coffee]));
    assert_eq!(named("coffee"), BTreeSet::from([coffee]));
    assert_eq!(named("zanzibar"), BTreeSet::new());
}

#[test]
fn a_view_says_how_much_memory_it_takes() {
    let (owner, profiles) = (Owner::new(1), Profile::built_in());
    let items = items(&owner);
    let verified = presented(&owner, grant(&Filter::default(), MEMORY, 2.try_into().unwrap()));
    let bytes = |items: &[(Head, ItemRecord)]| view(items, &verified, &profiles).unwrap().bytes();
    let text: usize = "tea on Tuesday".len();
    assert!(bytes(&items[..1]) > text && bytes(&items) > bytes(&items[..1]) + text);
    assert_eq!(bytes(&[]), 0);
    // The same words, in a label and not.
    let one = |item: Value| bytes(&[owner.capture(&item)]);
    let labelled = one(value!({"kind": "fact", "content": {"text": "tea"}, "labels": ["tea"]}));
    assert!(labelled > one(value!({"kind": "fact", "content": {"text": "tea tea"}})));
}

//! Contexts, bridges and consent at random: the items that pass are those that the model says.

use crate::maker::Dice;
use crate::support::*;
use oap_conformance::model::{Disclosed, Model, Rule, undecided};
use oap_conformance::world::Planted;
use oap_exchange::bridge::Bridge;
use oap_exchange::ccc::{Ccc, SanctionsList};
use oap_exchange::gate::Obligations;
use oap_exchange::{Allowance, View};
use oap_grants::SignedGrant;
use oap_identity::{Did, ItemId};
use oap_memory::record::ItemRecord;
use oap_memory::{Filter, Head, Profile};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

/// Worlds.
const SEEDS: u64 = 1500;

/// A context of a scope that says one or two things.
fn context(dice: &mut Dice, scope: &str, me: &str) -> Value {
    let organizations =
        ["did:web:acme.example", "did:web:ACME.example", "did:web:acme.exampl", "did:web:other.example"];
    let party = if dice.below(2) == 0 { me } else { dice.one(&organizations) }.to_owned();
    let nda = json!({
        "id": "n", "counterparties": [party], "jurisdiction": "DE",
        "type": dice.one(&["mutual", "one_way_inbound", "one_way_outbound"]),
        "valid_from": dice.one(&["2026-01-01", "2026-05-01", "2026-05-02"]),
        "valid_until": dice.one(&["2026-04-30", "2026-05-01", "2027-01-01"]),
        "document_hash": format!("sha256:{}", "0".repeat(64)),
        "covered_categories": dice.one(&[json!(["a"]), json!(["fact"]), json!([])]),
    });
    let compete = json!({
        "ex_employer": party, "scope": "x", "valid_until": dice.one(&["2026-04-30", "2026-05-01"]),
        "covered_industries": dice.one(&[json!(["a"]), json!(["preference"])]),
    });
    let solicit = dice.one(&[
        json!({}),
        json!({"subject_did": me}),
        json!({"subject_did": "ent_ann", "valid_until": "2026-05-01"}),
    ]);
    let sides = dice.one(&[["work", "personal"], ["work", me], ["work", "third"], [scope, me]]);
    let inside = dice.one(&[
        json!({}),
        json!({"issuer": "ent_ann"}),
        json!({"instrument": "a"}),
        json!({"issuer": "z"}),
    ]);
    let class = dice.one(&[
        "none",
        "attorney_client_privileged",
        "medical_confidentiality",
        "therapeutic_privilege",
        "diplomatic_classified",
        "trade_secret",
    ]);
    let all = [
        ("embargo_list", json!([party])),
        ("active_ndas", json!([nda])),
        ("non_competes", json!([compete])),
        ("non_solicits", json!([solicit])),
        ("chinese_walls", json!([{"between": sides, "reason": "x"}])),
        ("professional_codes", json!(["x"])),
        ("fiduciary_duties", json!(["x"])),
        ("regulatory_classification", json!(class)),
        ("insider_lists", json!([inside])),
        ("sanctions_screening", json!(["eu"])),
        ("export_control_classification", json!("x")),
        ("security_clearance", dice.one(&[json!([]), json!(["a"]), json!(["a", "b"])])),
    ];
    let mut context = json!({"ccc_version": "1.0", "scope_id": scope});
    for _ in 0..=dice.below(2) {
        let (name, said) = dice.one(&all);
        context[name] = said;
    }
    context
}

fn bridge(dice: &mut Dice, number: usize) -> Value {
    let (now, later) = (now(), oap_identity::Timestamp::from_millis(now().millis() + 1));
    json!({
        "bridge_id": format!("brg_01KQHPJ698F5XSMYT5R3DWBM4{number}"), "principal": "did:web:user.example",
        "from_scope": "work", "to_scope": dice.one(&["personal", "personal", "third"]), "revocable": true,
        "data_categories": [dice.one(&["a", "fact", "z"])], "issued_at": dice.one(&[now, now, later]),
        "valid_until": dice.one(&[now, later, later]),
    })
}

fn draft(dice: &mut Dice) -> Value {
    let mut draft = json!({
        "kind": dice.one(&["fact", "preference"]), "scope_id": dice.one(&["personal", "work"]), "content": {"text": "x"},
        "labels": dice.one(&[json!([]), json!(["a"]), json!(["b"]), json!(["a", "b"])]),
    });
    if dice.below(2) == 0 {
        draft["subject_entity_id"] = json!("ent_ann");
    }
    draft
}

#[test]
fn gates_let_through_what_the_model_says() {
    let profiles = Profile::built_in();
    let mut decided: BTreeMap<Rule, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let (owner, mut dice) = (Owner::new(seed), Dice::new(seed));
        let organizations = [
            "did:web:acme.example",
            "did:web:acme.example:legal",
            "did:web:acme.example%3A8443",
            "did:web:acme.examples",
        ];
        let me: Did = match dice.below(2) {
            0 => grantee(),
            _ => dice.one(&organizations).parse().unwrap(),
        };
        let mut model = Model::new(owner.did(), &json!({}), Vec::new());
        let mut items: Vec<(Head, ItemRecord)> = Vec::new();
        for _ in 0..3 {
            let draft = draft(&mut dice);
            let id = ItemId::new(now(), &owner.random);
            items.push(owner.capture_as(id, &draft));
            model.captured(&id.to_string(), &draft, now(), &Planted::default());
        }
        let mut obligations = Obligations::default();
        for scope in ["personal", "work"] {
            if dice.below(3) > 0 {
                let context = context(&mut dice, scope, me.as_str());
                model.context(&context);
                obligations.contexts.insert(scope.parse().unwrap(), Ccc::parse(context).unwrap());
            }
        }
        for number in 0..dice.below(3) {
            let bridge = bridge(&mut dice, number);
            model.bridged(&bridge);
            obligations.bridges.push(serde_json::from_value::<Bridge>(bridge).unwrap());
        }
        if dice.below(2) == 0 {
            let named = dice.one(&[me.as_str(), "did:web:Acme.example", "did:web:other.example"]).to_owned();
            model.screened("eu", std::slice::from_ref(&named));
            obligations.sanctions = Arc::new(BTreeMap::from([(SanctionsList::Eu, BTreeSet::from([named]))]));
        }
        let filter: Filter = serde_json::from_value(json!({"scopes": ["personal", "work"]})).unwrap();
        let level = u8::try_from(dice.below(5)).unwrap().try_into().unwrap();
        let profile = dice.one(&["memory", "memory", "task"]);
        let mut grant = grant(&filter, &format!("oap.profile.projection.{profile}.v1"), level);
        grant.grantee = if dice.below(10) == 0 { owner.did() } else { me.clone() };
        let signed = SignedGrant::sign(grant.clone(), &owner.signer).unwrap();
        model.granted(signed.document());
        let id = grant.grant_id.to_string();
        let mut setting = setting(&profiles);
        setting.consented = dice.below(3) == 0;
        if setting.consented {
            model.consented(&id);
        }
        setting.obligations = obligations.clone();
        let load = |head: &Head| {
            let found = items.iter().find(|(known, _)| known.item_id == head.item_id);
            Ok::<_, Infallible>(found.map(|(_, whole)| whole.clone()))
        };
        let verified = presented(&owner, grant);
        let heads = items.iter().map(|(head, _)| head);
        let view = View::build(&verified, &Allowance::unused(9), &setting, heads, load).unwrap();
        let passed = items.iter().map(|(head, _)| head.item_id).filter(|item| view.contains(*item));
        let passed: BTreeSet<String> = passed.map(|item| item.to_string()).collect();
        let expected = model.query(&id, &json!({}), now(), &Disclosed::default());
        let expected: BTreeSet<String> = expected.answer().unwrap().items.keys().cloned().collect();
        assert_eq!(
            passed, expected,
            "seed {seed}: {obligations:?}, level {level:?}, consent {}",
            setting.consented
        );
        model.decided().into_iter().for_each(|(rule, count)| *decided.entry(rule).or_default() += count);
    }
    let never: Vec<Rule> = undecided(&decided).into_iter().filter(|rule| rule.is_of_gates()).collect();
    assert_eq!(never, []);
}

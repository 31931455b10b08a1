//! Grants at random: what may be issued, and what may be made from another, is what the model says.

use crate::maker::{Dice, filter};
use crate::support::*;
use oap_conformance::model::Model;
use oap_grants::limits::Limits;
use oap_grants::{Grant, SignedGrant, attenuate};
use oap_identity::json;
use oap_memory::Profile;
use serde_json::{Value, json as value};

/// Pairs of grants.
const SEEDS: u64 = 4000;

/// Some members of a grant: within every limit, at it, and beyond it.
fn members(dice: &mut Dice) -> Value {
    let at = |millis: i64| value!(oap_identity::Timestamp::from_millis(now().millis() + millis));
    let days = |n: i64| at(n * 86_400_000);
    let all = [
        ("filter", filter(dice, now())),
        ("max_items", value!(dice.one(&[0, 1, 5, 10, 11]))),
        ("expires_at", dice.one(&[at(0), at(1), days(2), days(30), days(31)])),
        ("not_before", dice.one(&[at(0), days(1), days(2)])),
        (
            "redaction_profile",
            value!(format!("oap.profile.projection.{}.v1", dice.one(&["memory", "task", "full", "x"]))),
        ),
        ("trust_level", value!(dice.below(5))),
        ("lawful_basis", value!(dice.one(&["consent", "contract"]))),
        ("operations", dice.one(&[value!(["query"]), value!(["export", "query"]), value!([])])),
        ("embedding_access", value!(dice.below(2) == 0)),
        ("bearer", value!(dice.below(2) == 0)),
        ("purpose", value!(dice.one(&["x", " ", ""]))),
        ("purpose_codes", dice.one(&[value!(["a"]), value!(["a", "b"]), value!([]), value!(["A"])])),
        (
            "budget",
            dice.one(&[value!({"queries": 2}), value!({"epsilon": 0.5}), value!({"queries": 0}), value!({})]),
        ),
        (
            "delegable",
            dice.one(&[value!({"max_depth": 1}), value!({"max_depth": 2}), value!({"max_depth": 6})]),
        ),
        ("revocable", value!(dice.below(4) > 0)),
    ];
    let mut some = value!({});
    for _ in 0..dice.below(3) {
        let (name, said) = dice.one(&all);
        some[name] = said;
    }
    some
}

fn with(grant: &Value, more: &Value) -> Value {
    let mut grant = grant.clone();
    grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    grant
}

#[test]
fn grants_are_issued_and_passed_on_as_the_model_says() {
    let owner = Owner::new(1);
    let profiles = Profile::built_in();
    let limits = Limits { max_items: 10, max_duration_days: 30 };
    let names: Vec<&str> = profiles.iter().map(Profile::name).collect();
    let manifest = value!({"memory_exchange": {
        "max_grant_size_items": 10, "max_grant_duration_days": 30, "supported_redaction_profiles": names,
    }});
    let (mut issued, mut passed, mut refused) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let mut model = Model::new(owner.did(), &manifest, Vec::new());
        // The limits do not know of bridges: that one is there is asked at issue.
        model.bridged(&value!({"bridge_id": "brg_1", "from_scope": "work", "to_scope": "personal"}));
        let plain = grant(&oap_memory::Filter::default(), names[0], 2.try_into().unwrap());
        let plain =
            with(&value!(plain), &value!({"max_items": 5, "delegable": {"max_depth": 2}, "bearer": false}));
        let above = with(&plain, &members(&mut dice));
        let parent: Grant = json::from_value(above.clone()).unwrap();
        let profile = profiles.iter().find(|profile| profile.name() == parent.redaction_profile);
        let is_issued = limits.check(&parent, &owner.did(), profile, now());
        let expected = model.issues(&above, now());
        assert_eq!(is_issued.is_ok(), expected.is_ok(), "{above}: {is_issued:?}, {expected:?}");
        if is_issued.is_err() {
            refused += 1;
            continue;
        }
        issued += 1;
        let parent = SignedGrant::sign(parent, &owner.signer).unwrap();
        model.granted(parent.document());
        let below = with(&above, &value!({"parent": parent.hash(), "delegable": {"max_depth": 1}}));
        let below = with(&below, &members(&mut dice));
        let child: Grant = json::from_value(below.clone()).unwrap();
        let now = parent.grant().begins();
        let is_within = attenuate::check(parent.grant(), &child).map_err(|e| e.to_string());
        let is_within =
            is_within.and_then(|()| limits.check_delegated(&child, now).map_err(|e| e.to_string()));
        let expected = model.delegates(&with(&below, &value!({"signature": "x"})), now);
        assert_eq!(is_within.is_ok(), expected.is_ok(), "{above} {below}: {is_within:?}, {expected:?}");
        passed += usize::from(is_within.is_ok());
    }
    assert!(issued > 500 && passed > 200 && refused > 500, "{issued} {passed} {refused}");
}

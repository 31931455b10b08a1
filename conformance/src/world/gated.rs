//! What an owner may owe to others (protocol section 7, the two gates): for each a small world of two scopes, and what its owner does there.

use super::chance::Chance;
use super::grant::Grant;
use super::item::{self, Common, Item};
use super::text::VOCABULARY;
use super::{Setting, World};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// In what owners write stands for the DID of the grantee of the first grant.
pub const FIRST_GRANTEE: &str = "did:web:first-grantee.invalid";
/// Somebody else.
const OTHER: &str = "did:web:somebody.example";

/// What happens in one of these worlds. Grants are those of the world, by number.
#[derive(Debug, Clone, PartialEq)]
pub enum Owed {
    /// The owner sets the context of a scope: a document of `oap-ccc.schema.json`.
    Context(Value),
    /// The owner signs a bridge.
    Bridge {
        /// Its draft, without its end.
        draft: Value,
        /// How long it holds.
        life: Duration,
    },
    /// The owner takes the last bridge back.
    Unbridge,
    /// A grant is issued, or passed on, and exchanged.
    Grant(usize),
    /// The owner consents to a grant.
    Consent(usize),
    /// Time passes.
    Wait(Duration),
    /// The grantee of a grant asks for everything.
    Ask(usize),
}

/// A world, and what happens in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Gated {
    /// What is tried.
    pub what: &'static str,
    /// The world: items of two scopes; its second grant is made from the first.
    pub world: World,
    /// What happens once the items are there.
    pub steps: Vec<Owed>,
}

/// The names of a world.
struct Names {
    /// The scope of its grants, and another one.
    own: String,
    other: String,
    /// The labels of its items.
    labels: [String; 2],
}

type Make = fn(&Names) -> Vec<Owed>;

/// How long a bridge holds that is to end while it is looked at, and one that is not.
const SHORT: Duration = Duration::from_millis(4_000);
const LONG: Duration = Duration::from_secs(86_400);

fn context(scope: &str, said: Value) -> Owed {
    let mut document = json!({"ccc_version": "1.0", "scope_id": scope});
    if let (Some(document), Some(said)) = (document.as_object_mut(), said.as_object()) {
        document.extend(said.clone());
    }
    Owed::Context(document)
}

/// What the context of the grants' scope says, asked before and after.
fn owed(names: &Names, said: Value) -> Vec<Owed> {
    vec![Owed::Grant(0), Owed::Ask(0), context(&names.own, said), Owed::Ask(0)]
}

fn consented(names: &Names, said: Value) -> Vec<Owed> {
    let mut steps = owed(names, said);
    steps.extend([Owed::Consent(0), Owed::Ask(0)]);
    steps
}

fn nda(names: &Names, said: Value) -> Value {
    let mut nda = json!({
        "id": "nda:1", "counterparties": [OTHER], "type": "mutual", "valid_from": "2020-01-01",
        "valid_until": "2099-12-31", "jurisdiction": "DE", "document_hash": format!("sha256:{}", "0".repeat(64)),
        "covered_categories": [names.labels[0]],
    });
    if let (Some(nda), Some(said)) = (nda.as_object_mut(), said.as_object()) {
        nda.extend(said.clone());
    }
    json!({"active_ndas": [nda]})
}

fn bridge(names: &Names, categories: &[&String], life: Duration) -> Owed {
    let draft = json!({"from_scope": names.other, "to_scope": names.own, "data_categories": categories});
    Owed::Bridge { draft, life }
}

/// Over a bridge: the bridge first, for a grant that names a scope without one is refused.
fn across(names: &Names, more: Vec<Owed>) -> Vec<Owed> {
    let mut steps = vec![bridge(names, &[&names.labels[0]], LONG), Owed::Grant(0), Owed::Ask(0)];
    steps.extend(more);
    steps.push(Owed::Ask(0));
    steps
}

/// What is tried, at which level, and whether the grant is over both scopes.
const CASES: &[(&str, u8, bool, Make)] = &[
    ("nothing", 3, false, |n| owed(n, json!({}))),
    ("an embargo", 3, false, |n| owed(n, json!({"embargo_list": [FIRST_GRANTEE]}))),
    ("an embargo on somebody else", 3, false, |n| owed(n, json!({"embargo_list": [OTHER]}))),
    ("an embargo on who passed it on", 3, false, |n| {
        let embargo = context(&n.own, json!({"embargo_list": [FIRST_GRANTEE]}));
        vec![Owed::Grant(0), Owed::Grant(1), Owed::Ask(1), embargo, Owed::Ask(1)]
    }),
    ("an NDA with somebody else", 3, false, |n| owed(n, nda(n, json!({})))),
    ("an NDA with the grantee", 3, false, |n| owed(n, nda(n, json!({"counterparties": [FIRST_GRANTEE]})))),
    ("an NDA of the other side", 3, false, |n| owed(n, nda(n, json!({"type": "one_way_outbound"})))),
    ("an NDA that has ended", 3, false, |n| owed(n, nda(n, json!({"valid_until": "2021-01-01"})))),
    ("an NDA that has not begun", 3, false, |n| owed(n, nda(n, json!({"valid_from": "2099-01-01"})))),
    ("a non-compete", 3, false, |n| {
        let promise = json!({
            "ex_employer": OTHER, "valid_until": "2099-12-31", "scope": "DE", "covered_industries": [n.labels[0]],
        });
        consented(n, json!({"non_competes": [promise]}))
    }),
    ("a non-solicitation", 3, false, |n| {
        let promise = json!({"subject_did": FIRST_GRANTEE, "valid_until": "2099-12-31"});
        consented(n, json!({"non_solicits": [promise]}))
    }),
    ("a wall before the grantee", 3, false, |n| {
        owed(n, json!({"chinese_walls": [{"between": [n.own, FIRST_GRANTEE], "reason": "competitors"}]}))
    }),
    ("a professional code", 3, false, |n| consented(n, json!({"professional_codes": ["bar:de"]}))),
    ("a fiduciary duty", 3, false, |n| consented(n, json!({"fiduciary_duties": ["trustee"]}))),
    ("inside knowledge", 3, false, |n| consented(n, json!({"insider_lists": [{"instrument": n.labels[0]}]}))),
    ("a privilege", 3, false, |n| {
        consented(n, json!({"regulatory_classification": "tax_advisor_confidentiality"}))
    }),
    ("a trade secret", 3, false, |n| consented(n, json!({"regulatory_classification": "trade_secret"}))),
    ("health, identified", 3, false, |n| {
        consented(n, json!({"regulatory_classification": "medical_confidentiality"}))
    }),
    ("health, of nobody that is named", 2, false, |n| {
        owed(n, json!({"regulatory_classification": "therapeutic_privilege"}))
    }),
    ("a state secret", 3, false, |n| {
        consented(n, json!({"regulatory_classification": "diplomatic_classified"}))
    }),
    ("export control", 3, false, |n| consented(n, json!({"export_control_classification": "5D002"}))),
    ("a bridge for a label", 3, true, |n| across(n, vec![])),
    ("a bridge that was taken back", 3, true, |n| across(n, vec![Owed::Unbridge])),
    ("a bridge out of what became a privilege", 3, true, |n| {
        let class = json!({"regulatory_classification": "attorney_client_privileged"});
        across(n, vec![Owed::Consent(0), Owed::Ask(0), context(&n.other, class)])
    }),
    ("a wall between the scopes", 3, true, |n| {
        let wall = json!({"chinese_walls": [{"between": [n.own, n.other], "reason": "apart"}]});
        across(n, vec![context(&n.other, wall)])
    }),
    ("a clearance for one label", 3, true, |n| {
        let cleared = json!({"security_clearance": [n.labels[0]]});
        across(n, vec![bridge(n, &[&n.labels[1]], LONG), context(&n.own, cleared)])
    }),
    ("a bridge that ends", 3, true, |n| {
        vec![bridge(n, &[&n.labels[0]], SHORT), Owed::Grant(0), Owed::Ask(0), Owed::Wait(SHORT), Owed::Ask(0)]
    }),
];

/// The worlds of a seed, each in scopes of its own.
#[must_use]
pub fn gated(seed: u64, setting: &Setting) -> Vec<Gated> {
    let mut chance = Chance::new(seed);
    CASES.iter().map(|case| one(seed, setting, &mut chance, case)).collect()
}

fn one(
    seed: u64,
    setting: &Setting,
    chance: &mut Chance,
    (what, level, across, make): &(&'static str, u8, bool, Make),
) -> Gated {
    let names = Names {
        own: format!("w{}", chance.canary()),
        other: format!("x{}", chance.canary()),
        labels: [chance.canary(), chance.canary()],
    };
    let common = Common {
        scope: names.own.clone(),
        labels: names.labels.to_vec(),
        subjects: vec![format!("urn:entity:{}", chance.canary())],
        ..Common::default()
    };
    let [a, b] = names.labels.each_ref();
    let mut items: Vec<Item> = Vec::new();
    // One is of a scope that no grant is for.
    let third = format!("y{}", chance.canary());
    for (scope, count) in [(&names.own, 4), (&names.other, 4), (&third, 1)] {
        let all = [(json!([a]), false), (json!([b]), true), (json!([a, b]), false), (json!([]), false)];
        for (labels, subject) in all.into_iter().take(count) {
            let minute = i64::try_from(items.len()).unwrap_or(0) * 60_000;
            let mut draft = json!({
                "kind": setting.kinds.first(), "scope_id": scope, "labels": labels,
                "content": {"text": format!("{} {}", chance.of(&VOCABULARY), chance.canary())},
                "provenance": {"captured_at": Timestamp::from_millis(setting.now.millis() - 86_400_000 + minute)},
            });
            if subject {
                draft["subject_entity_id"] = json!(common.subjects[0]);
            }
            items.push(item::finished(chance, draft, Vec::new(), &common));
        }
    }
    let mut draft = json!({
        "scope": names.own, "purpose": "a look past the gates", "max_items": setting.max_items.min(50),
        "expires_at": setting.now.plus(Duration::from_secs(86_400 - 600)),
        "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": level, "delegable": {"max_depth": 1},
    });
    draft["filter"] = if *across { json!({"scopes": [names.own, names.other]}) } else { json!({}) };
    let grant = |grantee, parent, draft| Grant { grantee, parent, draft, queries: Vec::new() };
    let grants = vec![grant(0, None, draft), grant(1, Some(0), json!({}))];
    let steps = make(&names);
    Gated { what, world: World { seed, scope: names.own, batches: vec![items], grants }, steps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_scopes_of_its_own() {
        let setting = Setting::of(&json!({}), Timestamp::from_millis(1_777_636_800_000));
        let all = gated(1, &setting);
        let scopes: std::collections::BTreeSet<&str> =
            all.iter().map(|one| one.world.scope.as_str()).collect();
        assert_eq!(scopes.len(), CASES.len());
        assert!(all.iter().all(|one| one.world.items().count() == 9));
        assert!(all.iter().all(|one| matches!(one.steps.last(), Some(Owed::Ask(_)))));
    }
}

//! What an owner may owe to others (protocol section 7, the two gates): for each a small world of two scopes, and what its owner does there.

use super::chance::Chance;
use super::grant::Grant;
use super::item::{self, Common, Item};
use super::text::VOCABULARY;
use super::{Setting, World, whole_name};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// In what owners write stands for the DID of the grantee of the first grant.
pub const FIRST_GRANTEE: &str = "did:web:first-grantee.invalid";
/// The same of the second grant.
pub const SECOND_GRANTEE: &str = "did:web:second-grantee.invalid";
/// Somebody else.
const OTHER: &str = "did:web:somebody.example";

/// What happens in one of these worlds. Grants are those of the world, by number.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
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
    /// Time passes until so long before the end of the last bridge or item that ends, where the gateway's clock can be set; else to its end alone.
    End {
        /// How long before it.
        before: Duration,
    },
    /// A grant is issued, or passed on, and exchanged.
    Grant(usize),
    /// The owner consents to a grant.
    Consent(usize),
    /// An item is captured that was not there before.
    Capture {
        /// Its number.
        item: usize,
        /// How long it lives, where it ends.
        life: Option<Duration>,
    },
    /// A sanctions list is at hand from the next context on, or is not any more.
    Sanctions {
        /// Which one, as `oap-ccc.schema.json` calls it.
        list: &'static str,
        /// Whom it names.
        named: Option<Vec<String>>,
    },
    /// The grantee of a grant asks for everything, and for its export.
    Ask(usize),
    /// The grantee of a grant asks for the first item of a listing.
    First(usize),
    /// The same, for what is behind it.
    Page(usize),
    /// The grantee of a grant asks for vectors.
    Vectors(usize),
}

/// A world, and what happens in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Gated {
    /// What is tried.
    pub what: &'static str,
    /// The world: items of three scopes; its second grant is made from the first.
    pub world: World,
    /// What happens once the items are there, but for those that are captured then.
    pub steps: Vec<Step>,
}

/// The names of a world.
struct Names {
    /// The scope of its grants, another one, and one that no grant is for.
    own: String,
    other: String,
    third: String,
    /// The labels of its items.
    labels: [String; 2],
    /// The subject of some, and the kind of all.
    subject: String,
    kind: String,
    /// Days, `YYYY-MM-DD`.
    today: String,
    yesterday: String,
}

/// What is tried.
struct Case {
    what: &'static str,
    /// `x` of `oap.profile.projection.x.v1`; where it says nothing, one of those that the gateway has.
    profile: Option<&'static str>,
    level: u8,
    /// Whose items the grant is for.
    over: Over,
    make: fn(&Names) -> Vec<Step>,
}

/// The scopes that a grant selects from.
#[derive(Clone, Copy)]
enum Over {
    /// Its own, which the filter need not name.
    Own,
    /// Its own and another one.
    Both,
    /// Another one alone.
    Other,
    /// All three.
    All,
}

impl Over {
    fn filter(self, names: &Names) -> Value {
        let Names { own, other, third, .. } = names;
        match self {
            Self::Own => json!({}),
            Self::Both => json!({"scopes": [own, other]}),
            Self::Other => json!({"scopes": [other]}),
            Self::All => json!({"scopes": [own, other, third]}),
        }
    }
}

const fn within(what: &'static str, make: fn(&Names) -> Vec<Step>) -> Case {
    Case { what, profile: None, level: 3, over: Over::Own, make }
}

const fn across(what: &'static str, make: fn(&Names) -> Vec<Step>) -> Case {
    Case { over: Over::Both, ..within(what, make) }
}

/// How long a bridge holds that is to end while it is looked at, and one that is not.
const SHORT: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(86_400);

const fn captured(item: usize, life: Option<Duration>) -> Step {
    Step::Capture { item, life }
}

const fn end(millis: u64) -> Step {
    Step::End { before: Duration::from_millis(millis) }
}

fn context(scope: &str, said: Value) -> Step {
    Step::Context(with(json!({"ccc_version": "1.0", "scope_id": scope}), said))
}

/// A document with more members; null takes one away.
fn with(mut document: Value, said: Value) -> Value {
    if let (Some(document), Value::Object(said)) = (document.as_object_mut(), said) {
        document.extend(said);
        document.retain(|_, value| !value.is_null());
    }
    document
}

/// What the context of the grants' scope says, asked before and after.
fn says(names: &Names, said: Value) -> Vec<Step> {
    vec![Step::Grant(0), Step::Ask(0), context(&names.own, said), Step::Ask(0)]
}

/// The same, and once the owner has consented.
fn with_consent(names: &Names, said: Value) -> Vec<Step> {
    let mut steps = says(names, said);
    steps.extend([Step::Consent(0), Step::Ask(0)]);
    steps
}

/// The same before a grantee, and before the one that it passed its grant on to.
fn passed_on(names: &Names, said: Value) -> Vec<Step> {
    let mut steps = vec![Step::Grant(0), Step::Grant(1), Step::Ask(0), Step::Ask(1)];
    steps.extend([context(&names.own, said), Step::Ask(0), Step::Ask(1)]);
    steps
}

fn class(names: &Names, class: &str) -> Vec<Step> {
    with_consent(names, json!({"regulatory_classification": class}))
}

/// An NDA with somebody else of what has a label.
pub(super) fn nda_of(label: &str) -> Value {
    json!({"active_ndas": [{
        "id": "nda:1", "counterparties": [OTHER], "type": "mutual", "valid_from": "2020-01-01",
        "valid_until": "2099-12-31", "jurisdiction": "DE", "document_hash": format!("sha256:{}", "0".repeat(64)),
        "covered_categories": [label],
    }]})
}

fn nda(names: &Names, said: Value) -> Value {
    let mut nda = nda_of(&names.labels[0]);
    nda["active_ndas"][0] = with(nda["active_ndas"][0].take(), said);
    nda
}

/// A promise to somebody else not to compete in what has a label.
pub(super) fn non_compete_of(label: &str) -> Value {
    json!({"non_competes": [{
        "ex_employer": OTHER, "valid_until": "2099-12-31", "scope": "DE", "covered_industries": [label],
    }]})
}

fn non_compete(names: &Names, said: Value) -> Value {
    let mut promise = non_compete_of(&names.labels[0]);
    promise["non_competes"][0] = with(promise["non_competes"][0].take(), said);
    promise
}

fn non_solicit(said: Value) -> Value {
    json!({"non_solicits": [with(json!({"subject_did": FIRST_GRANTEE, "valid_until": "2099-12-31"}), said)]})
}

/// A wall between two sides.
pub(super) fn wall(between: [&str; 2]) -> Value {
    json!({"chinese_walls": [{"between": between, "reason": "apart"}]})
}

fn bridge(from: &str, to: &str, category: &str, life: Duration) -> Step {
    Step::Bridge { draft: json!({"from_scope": from, "to_scope": to, "data_categories": [category]}), life }
}

/// One context after the other in which several things of a kind stand and one of them counts, or all but one.
fn one_of_several(n: &Names) -> Vec<Step> {
    let [a, b] = n.labels.each_ref();
    let two = |name: &str, one: Value, other: Value| {
        let first = |mut said: Value| said[name][0].take();
        json!({name: [first(one), first(other)]})
    };
    let ended = |said: Value| with(said, json!({"valid_until": n.yesterday}));
    let told = |said: Value| json!({"insider_lists": said});
    let mut steps = vec![Step::Grant(0), Step::Ask(0)];
    for said in [
        json!({"embargo_list": [OTHER, FIRST_GRANTEE]}),
        nda(n, json!({"counterparties": [OTHER, FIRST_GRANTEE]})),
        nda(n, json!({"counterparties": [FIRST_GRANTEE, OTHER]})),
        two("active_ndas", nda_of(a), nda(n, json!({"id": "nda:2", "counterparties": [FIRST_GRANTEE]}))),
        nda(n, json!({"covered_categories": [b, n.kind]})),
        two("non_competes", non_compete(n, json!({"ex_employer": FIRST_GRANTEE})), non_compete_of(b)),
        two(
            "non_competes",
            non_compete_of(a),
            json!({"non_competes": [ended(non_compete_of(b)["non_competes"][0].clone())]}),
        ),
        two(
            "non_solicits",
            non_solicit(json!({"subject_did": OTHER})),
            non_solicit(json!({"subject_did": n.subject})),
        ),
        told(json!([{"instrument": a}, {"issuer": n.subject}])),
        told(json!([{"instrument": a, "issuer": n.subject}, {"instrument": "nobody has it"}])),
    ] {
        steps.extend([context(&n.own, said), Step::Ask(0)]);
    }
    steps
}

/// Walls of which one counts, with more than two sides.
fn walls(n: &Names) -> Value {
    let wall = |between: Value| json!({"between": between, "reason": "apart"});
    let elsewhere = wall(json!([n.third, OTHER]));
    json!({"chinese_walls": [elsewhere, wall(json!([n.third, FIRST_GRANTEE, n.other, OTHER]))]})
}

/// Over a bridge: the bridge first, for a grant that names a scope without one is refused.
fn over(names: &Names, more: Vec<Step>) -> Vec<Step> {
    let mut steps =
        vec![bridge(&names.other, &names.own, &names.labels[0], LONG), Step::Grant(0), Step::Ask(0)];
    steps.extend(more);
    steps.push(Step::Ask(0));
    steps
}

/// Over a bridge that another one takes the place of.
fn instead(names: &Names, from: &str, to: &str) -> Vec<Step> {
    over(names, vec![Step::Unbridge, bridge(from, to, &names.labels[0], LONG)])
}

const CASES: &[Case] = &[
    within("nothing", |n| says(n, json!({}))),
    within("an embargo", |n| with_consent(n, json!({"embargo_list": [FIRST_GRANTEE]}))),
    within("an embargo on somebody else", |n| says(n, json!({"embargo_list": [OTHER, "did:key"]}))),
    within("an embargo on who passed it on", |n| {
        let embargo = context(&n.own, json!({"embargo_list": [FIRST_GRANTEE]}));
        vec![Step::Grant(0), Step::Grant(1), Step::Ask(1), embargo, Step::Ask(1)]
    }),
    within("an embargo on whom it was passed on to", |n| {
        passed_on(n, json!({"embargo_list": [SECOND_GRANTEE]}))
    }),
    within("what is captured behind an embargo that is lifted", |n| {
        let embargo = context(&n.own, json!({"embargo_list": [FIRST_GRANTEE]}));
        let lifted = context(&n.own, json!({}));
        vec![Step::Grant(0), Step::Ask(0), embargo, captured(0, None), Step::Ask(0), lifted, Step::Ask(0)]
    }),
    within("an item that ends before a promise does", |n| {
        let promise = context(&n.own, nda(n, json!({"counterparties": [FIRST_GRANTEE]})));
        let fleeting = captured(0, Some(SHORT));
        vec![promise, Step::Grant(0), fleeting, Step::Ask(0), end(1), Step::Ask(0), end(0), Step::Ask(0)]
    }),
    within("an embargo between two pages", |n| {
        let embargo = context(&n.own, json!({"embargo_list": [FIRST_GRANTEE]}));
        vec![Step::Grant(0), Step::First(0), embargo, Step::Page(0), Step::Ask(0)]
    }),
    Case {
        level: 4,
        ..within("an embargo, and vectors", |n| {
            let embargo = context(&n.own, json!({"embargo_list": [FIRST_GRANTEE]}));
            vec![Step::Grant(0), Step::Ask(0), Step::Vectors(0), embargo, Step::Vectors(0), Step::Ask(0)]
        })
    },
    within("an NDA with somebody else", |n| with_consent(n, nda(n, json!({})))),
    within("an NDA with the grantee", |n| says(n, nda(n, json!({"counterparties": [FIRST_GRANTEE]})))),
    within("an NDA of everything", |n| says(n, nda(n, json!({"covered_categories": null})))),
    within("an NDA of a kind", |n| says(n, nda(n, json!({"covered_categories": [n.kind]})))),
    within("an NDA that binds the owner alone", |n| says(n, nda(n, json!({"type": "one_way_inbound"})))),
    within("an NDA that binds the other side alone", |n| {
        says(n, nda(n, json!({"type": "one_way_outbound"})))
    }),
    within("an NDA that has ended", |n| says(n, nda(n, json!({"valid_until": n.yesterday})))),
    within("an NDA on its last day", |n| says(n, nda(n, json!({"valid_until": n.today})))),
    within("an NDA on its first day", |n| says(n, nda(n, json!({"valid_from": n.today})))),
    within("an NDA that has not begun", |n| says(n, nda(n, json!({"valid_from": "2099-01-01"})))),
    within("an NDA of nothing", |n| says(n, nda(n, json!({"covered_categories": []})))),
    within("a non-compete of nothing", |n| says(n, non_compete(n, json!({"covered_industries": []})))),
    within("codes, duties and lists without entries", |n| {
        says(n, json!({"professional_codes": [], "fiduciary_duties": [], "insider_lists": []}))
    }),
    within("a non-compete", |n| with_consent(n, non_compete(n, json!({})))),
    within("a non-compete of everything", |n| says(n, non_compete(n, json!({"covered_industries": null})))),
    within("a non-compete before who was promised it", |n| {
        says(n, non_compete(n, json!({"ex_employer": FIRST_GRANTEE})))
    }),
    within("a non-compete that has ended", |n| says(n, non_compete(n, json!({"valid_until": n.yesterday})))),
    within("a non-compete on its last day", |n| says(n, non_compete(n, json!({"valid_until": n.today})))),
    within("a non-solicitation", |n| with_consent(n, non_solicit(json!({})))),
    within("a non-solicitation of everybody", |n| {
        says(n, non_solicit(json!({"subject_did": null, "valid_until": null})))
    }),
    within("a non-solicitation of somebody else", |n| says(n, non_solicit(json!({"subject_did": OTHER})))),
    within("a non-solicitation of a subject", |n| says(n, non_solicit(json!({"subject_did": n.subject})))),
    within("a non-solicitation that has ended", |n| {
        says(n, non_solicit(json!({"valid_until": n.yesterday})))
    }),
    within("a non-solicitation on its last day", |n| says(n, non_solicit(json!({"valid_until": n.today})))),
    within("a wall before the grantee", |n| with_consent(n, wall([&n.own, FIRST_GRANTEE]))),
    within("a wall before who passed it on", |n| passed_on(n, wall([&n.own, FIRST_GRANTEE]))),
    within("a wall between others", |n| says(n, wall([&n.other, FIRST_GRANTEE]))),
    within("a professional code", |n| with_consent(n, json!({"professional_codes": ["bar:de"]}))),
    within("consent to what was passed on", |n| {
        let mut steps = passed_on(n, json!({"professional_codes": ["bar:de"]}));
        steps.extend([Step::Consent(0), Step::Ask(0), Step::Ask(1), Step::Consent(1), Step::Ask(1)]);
        steps
    }),
    within("a fiduciary duty", |n| with_consent(n, json!({"fiduciary_duties": ["trustee"]}))),
    within("inside knowledge", |n| with_consent(n, json!({"insider_lists": [{"instrument": n.labels[0]}]}))),
    within("inside knowledge of a subject", |n| says(n, json!({"insider_lists": [{"issuer": n.subject}]}))),
    within("inside knowledge of everything", |n| says(n, json!({"insider_lists": [{}]}))),
    within("what a lawyer was told", |n| class(n, "attorney_client_privileged")),
    within("what a tax adviser was told", |n| class(n, "tax_advisor_confidentiality")),
    within("what an auditor was told", |n| class(n, "auditor_confidentiality")),
    within("what a bank was told", |n| class(n, "banking_secrecy")),
    within("what a journalist was told", |n| class(n, "journalist_source_protection")),
    within("what was confessed", |n| class(n, "confessional_seal")),
    within("a trade secret", |n| class(n, "trade_secret")),
    within("no classification", |n| class(n, "none")),
    within("health, identified", |n| class(n, "medical_confidentiality")),
    within("health in therapy, identified", |n| class(n, "therapeutic_privilege")),
    Case { level: 2, ..within("health, of nobody that is named", |n| class(n, "medical_confidentiality")) },
    Case { level: 0, ..within("health, of nobody that is shown", |n| class(n, "medical_confidentiality")) },
    Case {
        level: 2,
        ..within("health in therapy, of nobody that is named", |n| class(n, "therapeutic_privilege"))
    },
    Case {
        profile: Some("task"),
        level: 2,
        ..within("health under a profile of structured content", |n| class(n, "medical_confidentiality"))
    },
    Case {
        level: 2,
        ..within("health, and a professional code", |n| {
            let class = "medical_confidentiality";
            with_consent(n, json!({"regulatory_classification": class, "professional_codes": ["bar:de"]}))
        })
    },
    within("a state secret", |n| class(n, "diplomatic_classified")),
    within("export control", |n| with_consent(n, json!({"export_control_classification": "5D002"}))),
    within("one of several", one_of_several),
    across("a bridge for a label", |n| over(n, vec![])),
    across("a bridge for a kind", |n| over(n, vec![bridge(&n.other, &n.own, &n.kind, LONG)])),
    across("a bridge that was taken back", |n| over(n, vec![Step::Unbridge])),
    across("a bridge the other way", |n| instead(n, &n.own, &n.other)),
    across("a bridge out of a third scope", |n| instead(n, &n.third, &n.own)),
    across("a bridge to a third scope", |n| instead(n, &n.other, &n.third)),
    across("a bridge out of what became a privilege", |n| {
        let class = json!({"regulatory_classification": "attorney_client_privileged"});
        over(n, vec![Step::Consent(0), Step::Ask(0), context(&n.other, class)])
    }),
    across("a bridge out of what became a matter of health", |n| {
        let class = json!({"regulatory_classification": "medical_confidentiality"});
        over(n, vec![Step::Consent(0), Step::Ask(0), context(&n.other, class)])
    }),
    across("a bridge out of what became a trade secret", |n| {
        let class = json!({"regulatory_classification": "trade_secret"});
        over(n, vec![Step::Consent(0), Step::Ask(0), context(&n.other, class)])
    }),
    across("an embargo in the other scope", |n| {
        over(n, vec![context(&n.other, json!({"embargo_list": [FIRST_GRANTEE]}))])
    }),
    across("a wall between the scopes", |n| over(n, vec![context(&n.other, wall([&n.own, &n.other]))])),
    across("a wall in the context of the grant's scope", |n| {
        over(n, vec![context(&n.own, wall([&n.own, &n.other]))])
    }),
    across("a wall in the context of a third scope", |n| {
        over(n, vec![context(&n.third, wall([&n.own, &n.other]))])
    }),
    across("walls in the context of a third scope, one of which counts", |n| {
        over(n, vec![context(&n.third, walls(n))])
    }),
    Case {
        over: Over::All,
        ..across("bridges from two scopes, for a label each", |n| {
            // What is in the third scope has the first label.
            let from_third = bridge(&n.third, &n.own, &n.labels[0], LONG);
            let from_other = bridge(&n.other, &n.own, &n.labels[1], LONG);
            vec![from_other, from_third, Step::Grant(0), Step::Ask(0), Step::Unbridge, Step::Ask(0)]
        })
    },
    across("a bridge for several labels", |n| {
        let several = json!({"from_scope": n.other, "to_scope": n.own, "data_categories": ["nobody-has-it", n.labels[1]]});
        over(n, vec![Step::Unbridge, Step::Bridge { draft: several, life: LONG }])
    }),
    Case {
        over: Over::Other,
        ..across("a clearance for one label, before another scope alone", |n| {
            let cleared = json!({"security_clearance": [n.labels[0]]});
            over(
                n,
                vec![bridge(&n.other, &n.own, &n.labels[1], LONG), Step::Ask(0), context(&n.own, cleared)],
            )
        })
    },
    across("a clearance for one label", |n| {
        let cleared = json!({"security_clearance": [n.labels[0]]});
        over(n, vec![bridge(&n.other, &n.own, &n.labels[1], LONG), Step::Ask(0), context(&n.own, cleared)])
    }),
    across("a clearance for nothing", |n| {
        let cleared = json!({"security_clearance": []});
        over(n, vec![bridge(&n.other, &n.own, &n.kind, LONG), Step::Ask(0), context(&n.own, cleared)])
    }),
    across("a bridge that ends before another one", |n| {
        let long = bridge(&n.other, &n.own, &n.labels[1], LONG);
        let short = bridge(&n.other, &n.own, &n.labels[0], SHORT);
        over(n, vec![Step::Unbridge, long, short, Step::Ask(0), end(1), Step::Ask(0), end(0)])
    }),
    across("a bridge that ends", |n| {
        let short = bridge(&n.other, &n.own, &n.labels[0], SHORT);
        over(n, vec![Step::Unbridge, short, Step::Ask(0), end(1), Step::Ask(0), end(0)])
    }),
];

fn list(named: Option<&[&str]>) -> Step {
    Step::Sanctions { list: LIST, named: named.map(|all| all.iter().map(|one| (*one).to_owned()).collect()) }
}

/// A list that the probes have set.
pub const LIST: &str = "uk_ofsi";

/// What sanctions lists stop. Each ends without one.
const SCREENED: &[Case] = &[
    within("a sanctions list that is not there", |n| {
        let screened = || context(&n.own, json!({"sanctions_screening": [LIST]}));
        // Beside a context that is asked as well, for its wall, and screens nobody.
        let beside = context(&n.third, wall([&n.own, &n.other]));
        let mut steps = vec![list(None), beside, Step::Grant(0), Step::Ask(0), screened(), Step::Ask(0)];
        steps.extend([Step::Consent(0), Step::Ask(0)]);
        // It is there now, and names somebody else.
        steps.extend([list(Some(&[OTHER])), screened(), Step::Ask(0), list(None), screened(), Step::Ask(0)]);
        steps
    }),
    within("a sanctions list before the grantee, and before whom it passed its grant on to", |n| {
        let screened = || context(&n.own, json!({"sanctions_screening": [LIST]}));
        let mut steps = vec![list(Some(&[OTHER])), Step::Grant(0), Step::Grant(1), screened()];
        steps.extend([Step::Ask(0), Step::Ask(1), list(Some(&[OTHER, SECOND_GRANTEE])), screened()]);
        steps.extend([Step::Ask(0), Step::Ask(1), list(Some(&[FIRST_GRANTEE])), screened()]);
        steps.extend([Step::Ask(0), Step::Ask(1), Step::Consent(0), Step::Ask(0)]);
        steps.extend([list(None), screened(), Step::Ask(0)]);
        steps
    }),
];

impl Gated {
    /// The items that are there at the beginning, with their numbers.
    pub fn first(&self) -> impl Iterator<Item = (usize, &Item)> {
        let is_later = |number: &usize| {
            self.steps.iter().any(|step| matches!(step, Step::Capture { item, .. } if item == number))
        };
        self.world.items().enumerate().filter(move |(number, _)| !is_later(number))
    }
}

/// The worlds of a seed, each in scopes of its own: those whose profile the gateway has.
#[must_use]
pub fn worlds(seed: u64, setting: &Setting) -> Vec<Gated> {
    of_cases(CASES, seed, setting)
}

/// The same, of sanctions lists.
#[must_use]
pub fn screened(seed: u64, setting: &Setting) -> Vec<Gated> {
    of_cases(SCREENED, seed, setting)
}

fn of_cases(cases: &[Case], seed: u64, setting: &Setting) -> Vec<Gated> {
    let mut chance = Chance::new(seed);
    let known = cases.iter().filter_map(|case| {
        let profile = case.profile.filter(|name| setting.has_profile(name));
        Some((case, if case.profile.is_some() { profile } else { setting.general() }?))
    });
    known.map(|(case, profile)| one(seed, setting, &mut chance, case, profile)).collect()
}

fn one(seed: u64, setting: &Setting, chance: &mut Chance, case: &Case, profile: &str) -> Gated {
    let subject = format!("urn:entity:{}", chance.canary());
    let names = Names {
        own: format!("w{}", chance.canary()),
        other: format!("x{}", chance.canary()),
        third: format!("y{}", chance.canary()),
        labels: [chance.canary(), chance.canary()],
        subject: subject.clone(),
        kind: setting.kinds.first().cloned().unwrap_or_default(),
        today: setting.now.date(),
        yesterday: Timestamp::from_millis(setting.now.millis() - 86_400_000).date(),
    };
    let common = Common {
        scope: names.own.clone(),
        labels: names.labels.to_vec(),
        subjects: vec![subject],
        ..Common::default()
    };
    let [a, b] = names.labels.each_ref();
    let mut items: Vec<Item> = Vec::new();
    for (scope, count) in [(&names.own, 4), (&names.other, 4), (&names.third, 1)] {
        let all = [(json!([a]), false), (json!([b]), true), (json!([a, b]), false), (json!([]), false)];
        for (labels, subject) in all.into_iter().take(count) {
            let minute = i64::try_from(items.len()).unwrap_or(0) * 60_000;
            let mut draft = json!({
                "kind": names.kind, "scope_id": scope, "labels": labels,
                "content": {"text": format!("{} {}", chance.of(&VOCABULARY), chance.canary())},
                "provenance": {"captured_at": Timestamp::from_millis(setting.now.millis() - 86_400_000 + minute)},
            });
            if subject {
                draft["subject_entity_id"] = json!(names.subject);
            }
            items.push(item::finished(chance, draft, Vec::new(), &common));
        }
    }
    let mut draft = json!({
        "scope": names.own, "purpose": "a look past the gates", "max_items": setting.max_items.min(50),
        "expires_at": setting.now.plus(Duration::from_secs(86_400 - 600)), "operations": ["query", "export"],
        "redaction_profile": whole_name(profile), "trust_level": case.level,
        "embedding_access": case.level == 4, "delegable": {"max_depth": 1},
    });
    draft["filter"] = case.over.filter(&names);
    let grant = |grantee, parent, draft| Grant { grantee, parent, draft, queries: Vec::new() };
    let grants = vec![grant(0, None, draft), grant(1, Some(0), json!({}))];
    let steps = (case.make)(&names);
    Gated { what: case.what, world: World { seed, scope: names.own, batches: vec![items], grants }, steps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_scopes_of_its_own() {
        let setting = Setting::of(&json!({}), Timestamp::from_millis(1_777_636_800_000));
        let all = worlds(1, &setting);
        let scopes: std::collections::BTreeSet<&str> =
            all.iter().map(|one| one.world.scope.as_str()).collect();
        assert_eq!(scopes.len(), CASES.len());
        assert!(all.iter().all(|one| one.world.items().count() == 9));
        assert!(all.iter().all(|one| matches!(one.steps.last(), Some(Step::Ask(_)))));
    }
}

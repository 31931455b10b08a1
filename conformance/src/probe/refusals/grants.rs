//! Violations of the conditions on grants at issue, and on children at their exchange, with what is right at each boundary.

use super::cases::Cases;
use crate::model::rule::Granting;
use crate::world::whole_name;
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// What drafts are made with.
pub(super) struct Limits {
    /// When drafts begin whose life is what is tried: later than now on any clock. Of a child, when the grant above it does.
    pub(super) begins: Timestamp,
    /// By how much the gateway's clock may be another than the prober's.
    pub(super) apart: Duration,
    /// Most items and longest life in days, as the manifest has them.
    pub(super) max_items: u64,
    pub(super) max_days: u64,
}

impl Limits {
    fn end(&self) -> Timestamp {
        self.begins.plus(Duration::from_secs(self.max_days * 86_400))
    }
}

/// What makes a draft, or a child, another than one that is right.
pub(super) type Change = fn(&mut Value, &Limits);

fn broken(what: &'static str, change: Change) -> Cases<Change> {
    Cases::breaking(what, change)
}

fn without(value: &mut Value, member: &str) {
    value.as_object_mut().map(|members| members.remove(member));
}

fn many(count: usize) -> Value {
    json!(words(count))
}

/// By how much a clock may be behind another (protocol section 1).
const SKEW: Duration = Duration::from_secs(300);
const FULL: &str = "oap.profile.projection.full.v1";
const EARLIER: &str = "2026-01-01T00:00:00.000Z";
const LATER: &str = "2026-01-01T00:00:00.001Z";

/// What is brought for a condition.
pub(super) enum Violation {
    /// Drafts of the owner's. A child that broke the condition would be wider than its parent as well, or is among `Forms`.
    AtIssue(Cases<Change>),
    /// Grants that a grantee makes of its own. What a child has of its parent is the same but for `delegable`, whose depth is 1.
    OfChild(Cases<Change>),
    /// Drafts, and children that stay within their parent.
    Both(Cases<Change>, Cases<Change>),
    /// Children of which each member has each form in turn.
    Forms,
}

impl Violation {
    pub(super) fn at_issue(self) -> Option<Cases<Change>> {
        match self {
            Self::AtIssue(cases) | Self::Both(cases, _) => Some(cases),
            Self::OfChild(_) | Self::Forms => None,
        }
    }
}

/// The violations of a condition.
pub(super) fn violations(granting: Granting) -> Violation {
    match granting {
        Granting::MaxItemsZero => Violation::Both(
            broken("0", |d, _| d["max_items"] = json!(0)).right("1", |d, _| d["max_items"] = json!(1)),
            broken("0", |c, _| c["max_items"] = json!(0)),
        ),
        Granting::MaxItemsAbove => Violation::AtIssue(
            broken("one more", |d, l| d["max_items"] = json!(l.max_items + 1))
                .right("the most", |d, l| d["max_items"] = json!(l.max_items)),
        ),
        Granting::DurationAbove => Violation::AtIssue(
            broken("a millisecond more", |d, l| lives(d, l, l.end().plus(Duration::from_millis(1))))
                .broken("a little more, from now on", |d, l| d["expires_at"] = json!(l.end()))
                .right("the longest", |d, l| lives(d, l, l.end())),
        ),
        Granting::Ended => Violation::Both(
            broken("when it begins", |d, l| lives(d, l, l.begins))
                .broken("long ago", |d, _| d["expires_at"] = json!(EARLIER))
                .right("a second later", |d, l| lives(d, l, l.begins.plus(Duration::from_secs(1)))),
            broken("when it begins", |c, _| c["not_before"] = c["expires_at"].clone()),
        ),
        Granting::UnknownProfile => Violation::AtIssue(broken("nonsense", |d, _| {
            d["redaction_profile"] = json!("oap.profile.projection.nonsense.v9")
        })),
        Granting::ProfileLevel => Violation::AtIssue(
            broken("full at 3", |d, _| (d["redaction_profile"], d["trust_level"]) = (json!(FULL), json!(3)))
                .right("full at 4", |d, _| {
                    (d["redaction_profile"], d["trust_level"]) = (json!(FULL), json!(4))
                }),
        ),
        Granting::Irrevocable => Violation::Both(
            broken("false", |d, _| d["revocable"] = json!(false)),
            broken("false", |c, _| c["revocable"] = json!(false)),
        ),
        Granting::NoOperations => Violation::Both(
            broken("none", |d, _| d["operations"] = json!([])).right("the usual ones", |_, _| {}),
            broken("none", |c, _| c["operations"] = json!([])),
        ),
        Granting::PurposeEmpty => Violation::Both(
            broken("nothing", |d, _| d["purpose"] = json!(""))
                .broken("a blank", |d, _| d["purpose"] = json!(" "))
                .right("a letter", |d, _| d["purpose"] = json!("x")),
            broken("nothing", |c, _| c["purpose"] = json!(""))
                .broken("a blank", |c, _| c["purpose"] = json!(" "))
                .right("another", |c, _| c["purpose"] = json!("x")),
        ),
        Granting::PurposeTooLong => Violation::Both(
            broken("1001", |d, _| d["purpose"] = json!("x".repeat(1001)))
                .right("1000", |d, _| d["purpose"] = json!("ö".repeat(1000))),
            broken("1001", |c, _| c["purpose"] = json!("x".repeat(1001)))
                .right("1000", |c, _| c["purpose"] = json!("ö".repeat(1000))),
        ),
        // The parent is one without codes, below which a child may have any.
        Granting::PurposeCodes => Violation::Both(purpose_codes(), purpose_codes()),
        Granting::FilterList => Violation::Both(
            broken("257", |d, _| d["filter"]["labels_any"] = many(257))
                .right("256", |d, _| d["filter"]["labels_any"] = many(256))
                .broken("257 excluded", |d, _| d["filter"]["exclude_labels"] = many(257))
                .broken("257 subjects", |d, _| d["filter"]["subject_entity_ids"] = many(257))
                .broken("257 needed", |d, _| d["filter"]["labels_all"] = many(257))
                .broken("257 kinds", |d, _| d["filter"]["kinds"] = json!(vec!["fact"; 257]))
                .broken("257 sensitivities", |d, _| d["filter"]["sensitivities"] = json!(vec!["public"; 257]))
                .broken("257 characters", |d, _| d["filter"]["labels_all"] = json!(["ö".repeat(257)]))
                .broken("257 characters of any", |d, _| d["filter"]["labels_any"] = json!(["ö".repeat(257)]))
                .broken("257 characters excluded", |d, _| {
                    d["filter"]["exclude_labels"] = json!(["ö".repeat(257)])
                })
                .broken("257 characters of a subject", |d, _| {
                    d["filter"]["subject_entity_ids"] = json!(["ö".repeat(257)]);
                })
                .right("256 characters", |d, _| d["filter"]["labels_all"] = json!(["ö".repeat(256)])),
            broken("257 needed", |c, _| with(c, "labels_all", "c", words(256)))
                .right("256 needed", |c, _| with(c, "labels_all", "c", words(255)))
                .broken("257 excluded", |c, _| with(c, "exclude_labels", "x", words(256)))
                .right("256 excluded", |c, _| with(c, "exclude_labels", "x", words(255)))
                .broken("257 characters needed", |c, _| with(c, "labels_all", "c", vec!["ö".repeat(257)]))
                .broken("257 characters excluded", |c, _| {
                    with(c, "exclude_labels", "x", vec!["ö".repeat(257)])
                }),
        ),
        Granting::FilterTimes => Violation::Both(
            broken("the same", |d, _| between(d, EARLIER, EARLIER))
                .broken("turned round", |d, _| between(d, LATER, EARLIER))
                .right("a millisecond", |d, _| between(d, EARLIER, LATER)),
            broken("the same", |c, _| between(c, "2026-02-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"))
                .broken("turned round", |c, _| {
                    between(c, "2026-02-01T00:00:00.001Z", "2026-02-01T00:00:00.000Z")
                })
                .right("a millisecond", |c, _| {
                    between(c, "2026-02-01T00:00:00.000Z", "2026-02-01T00:00:00.001Z")
                }),
        ),
        Granting::FilterScopes => Violation::AtIssue(
            broken("another", |d, _| over(d, &["probe-other"]))
                .right("its own", |d, _| over(d, &["probe-own"]))
                .broken("another beside it", |d, _| over(d, &["probe-own", "probe-other"])),
        ),
        Granting::Depth => Violation::Both(
            broken("0", |d, _| d["delegable"] = json!({"max_depth": 0}))
                .right("1", |d, _| d["delegable"] = json!({"max_depth": 1}))
                .right("5", |d, _| d["delegable"] = json!({"max_depth": 5}))
                .broken("6", |d, _| d["delegable"] = json!({"max_depth": 6})),
            broken("0", |c, _| c["delegable"] = json!({"max_depth": 0})),
        ),
        Granting::Budget => Violation::Both(
            broken("no queries", |d, _| d["budget"] = json!({"queries": 0}))
                .broken("no epsilon", |d, _| d["budget"] = json!({"epsilon": 0}))
                .broken("less than none", |d, _| d["budget"] = json!({"epsilon": -1}))
                .broken("neither", |d, _| d["budget"] = json!({}))
                .right("one query", |d, _| d["budget"] = json!({"queries": 1}))
                .right("a little", |d, _| d["budget"] = json!({"epsilon": 0.01})),
            broken("no queries", |c, _| c["budget"]["queries"] = json!(0))
                .broken("no epsilon", |c, _| c["budget"]["epsilon"] = json!(0))
                .broken("less than none", |c, _| c["budget"]["epsilon"] = json!(-1)),
        ),
        Granting::UnknownMember => Violation::Both(
            broken("a colour", |d, _| d["colour"] = json!("red")),
            broken("a colour", |c, _| c["colour"] = json!("red")),
        ),
        Granting::UnknownFilterMember => Violation::Both(
            broken("a colour", |d, _| d["filter"]["colour"] = json!(["red"])),
            broken("a colour", |c, _| c["filter"]["colour"] = json!(["red"])),
        ),
        Granting::Form => Violation::AtIssue(forms()),
        // The parent is another one, which the caller has issued.
        Granting::ChildNotDelegable => {
            Violation::OfChild(broken("of a grant that is not delegable", |_, _| {}))
        }
        Granting::ChildDepth => Violation::OfChild(
            broken("the same depth", |c, _| c["delegable"]["max_depth"] = json!(2))
                .right("none", |c, _| without(c, "delegable")),
        ),
        Granting::ChildGranter => Violation::OfChild(broken("another scope", |c, _| {
            let (did, scope) = c["granter"].as_str().and_then(|g| g.split_once('#')).unwrap_or_default();
            (c["filter"]["scopes"], c["granter"]) = (json!([scope]), json!(format!("{did}#another")));
        })),
        Granting::ChildProfile => Violation::OfChild(broken("another", |c, _| {
            let other = if c["redaction_profile"] == *whole_name("task") { "contact" } else { "task" };
            c["redaction_profile"] = json!(whole_name(other));
        })),
        Granting::ChildBasis => {
            Violation::OfChild(broken("another", |c, _| c["lawful_basis"] = json!("contract")))
        }
        Granting::ChildMaxItems => Violation::OfChild(
            broken("one more", |c, _| c["max_items"] = json!(c["max_items"].as_u64().unwrap_or(0) + 1))
                .right("as many", |_, _| {})
                .right("one", |c, _| c["max_items"] = json!(1)),
        ),
        Granting::ChildBegins => Violation::OfChild(
            broken("years earlier", |c, _| c["not_before"] = json!("2020-01-01T00:00:00.000Z"))
                .broken("a millisecond earlier", |c, l| {
                    c["not_before"] = json!(Timestamp::from_millis(l.begins.millis() - 1));
                })
                .right("as it", |c, l| c["not_before"] = json!(l.begins)),
        ),
        Granting::ChildEnds => Violation::OfChild(broken("a millisecond later", |c, _| {
            let end: Option<Timestamp> = c["expires_at"].as_str().and_then(|end| end.parse().ok());
            c["expires_at"] = json!(end.map(|end| end.plus(Duration::from_millis(1))));
        })),
        Granting::ChildLevel => Violation::OfChild(
            broken("one more", |c, _| c["trust_level"] = json!(3))
                .right("one less", |c, _| c["trust_level"] = json!(1)),
        ),
        Granting::ChildOperations => {
            Violation::OfChild(broken("one more", |c, _| c["operations"] = json!(["query", "export"])))
        }
        Granting::ChildEmbeddings => {
            Violation::OfChild(broken("granted", |c, _| c["embedding_access"] = json!(true)))
        }
        Granting::ChildBearer => Violation::OfChild(broken("granted", |c, _| c["bearer"] = json!(true))),
        Granting::ChildPurposeCodes => Violation::OfChild(
            broken("one more", |c, _| c["purpose_codes"] = json!(["travel", "diary", "letters"]))
                .broken("none", |c, _| without(c, "purpose_codes"))
                .right("one", |c, _| c["purpose_codes"] = json!(["travel"])),
        ),
        Granting::ChildBudget => Violation::OfChild(
            broken("more queries", |c, _| c["budget"]["queries"] = json!(11))
                .broken("more epsilon", |c, _| c["budget"]["epsilon"] = json!(1.5))
                .broken("no bound of queries", |c, _| without(&mut c["budget"], "queries"))
                .broken("no bound of epsilon", |c, _| without(&mut c["budget"], "epsilon"))
                .broken("none", |c, _| without(c, "budget"))
                .right("less", |c, _| c["budget"] = json!({"queries": 1, "epsilon": 0.5})),
        ),
        Granting::ChildScopes => {
            Violation::OfChild(broken("another", |c, _| list(c, "scopes", &["another"])))
        }
        Granting::ChildSubjects => Violation::OfChild(
            broken("one more", |c, _| list(c, "subject_entity_ids", &["s", "t", "u"]))
                .broken("any", |c, _| without(&mut c["filter"], "subject_entity_ids"))
                .right("one", |c, _| list(c, "subject_entity_ids", &["s"])),
        ),
        Granting::ChildKinds => Violation::OfChild(
            broken("one more", |c, _| list(c, "kinds", &["fact", "preference", "summary"]))
                .broken("any", |c, _| without(&mut c["filter"], "kinds"))
                .right("one", |c, _| list(c, "kinds", &["fact"])),
        ),
        Granting::ChildLabelsAny => Violation::OfChild(
            broken("one more", |c, _| list(c, "labels_any", &["a", "b", "d"]))
                .broken("any", |c, _| without(&mut c["filter"], "labels_any"))
                .right("none", |c, _| list(c, "labels_any", &[])),
        ),
        Granting::ChildLabelsAll => Violation::OfChild(
            broken("another", |c, _| list(c, "labels_all", &["d"]))
                .broken("none", |c, _| without(&mut c["filter"], "labels_all"))
                .right("one more", |c, _| list(c, "labels_all", &["c", "d"])),
        ),
        Granting::ChildExcludeLabels => Violation::OfChild(
            broken("another", |c, _| list(c, "exclude_labels", &["y"]))
                .broken("none", |c, _| without(&mut c["filter"], "exclude_labels"))
                .right("one more", |c, _| list(c, "exclude_labels", &["x", "y"])),
        ),
        Granting::ChildCapturedAfter => Violation::OfChild(
            broken("a millisecond earlier", |c, _| {
                c["filter"]["captured_after"] = json!("2025-12-31T23:59:59.999Z");
            })
            .broken("any", |c, _| without(&mut c["filter"], "captured_after"))
            .right("a millisecond later", |c, _| c["filter"]["captured_after"] = json!(LATER)),
        ),
        Granting::ChildCapturedBefore => Violation::OfChild(
            broken("a millisecond later", |c, _| {
                c["filter"]["captured_before"] = json!("2026-03-01T00:00:00.001Z");
            })
            .broken("any", |c, _| without(&mut c["filter"], "captured_before"))
            .right("a millisecond earlier", |c, _| {
                c["filter"]["captured_before"] = json!("2026-02-28T23:59:59.999Z");
            }),
        ),
        Granting::ChildMinConfidence => Violation::OfChild(
            broken("a little lower", |c, _| c["filter"]["min_confidence"] = json!(0.499))
                .broken("any", |c, _| without(&mut c["filter"], "min_confidence"))
                .right("higher", |c, _| c["filter"]["min_confidence"] = json!(0.501)),
        ),
        Granting::ChildSensitivities => Violation::OfChild(
            broken("one more", |c, _| list(c, "sensitivities", &["public", "internal", "confidential"]))
                .broken("any", |c, _| without(&mut c["filter"], "sensitivities"))
                .right("one", |c, _| list(c, "sensitivities", &["public"])),
        ),
        Granting::ChildStatus => Violation::OfChild(broken("a place of its own", |c, _| {
            c["status"] = json!({"status_list": {"idx": 7, "uri": "https://gateway.example/status"}});
        })),
        Granting::ChildIssued => Violation::OfChild(
            broken("an hour later", |c, l| issued_later(c, l, 12 * SKEW))
                .broken("later than a clock may be wrong", |c, l| {
                    issued_later(c, l, SKEW + l.apart.max(Duration::from_millis(1)));
                })
                .right("as a clock may be wrong", |c, l| issued_later(c, l, SKEW - l.apart)),
        ),
        Granting::ChildShape => Violation::Forms,
        Granting::ChildParent => Violation::OfChild(broken("a hash of nothing", |c, _| {
            c["parent"] = json!(format!("sha256:{}", "0".repeat(64)))
        })),
    }
}

/// The codes of a draft, or of a child.
fn purpose_codes() -> Cases<Change> {
    broken("17", |d, _| d["purpose_codes"] = many(17))
        .right("16", |d, _| d["purpose_codes"] = many(16))
        .broken("a capital", |d, _| d["purpose_codes"] = json!(["Travel"]))
        .right("every sign", |d, _| d["purpose_codes"] = json!(["a-z_0.9"]))
        .broken("65 bytes", |d, _| d["purpose_codes"] = json!(["x".repeat(65)]))
        .right("64 bytes", |d, _| d["purpose_codes"] = json!(["x".repeat(64)]))
}

/// Drafts in which one member is nothing that a grant may have, whatever it means.
fn forms() -> Cases<Change> {
    broken("a level of 5", |d, _| d["trust_level"] = json!(5))
        .broken("a level below 0", |d, _| d["trust_level"] = json!(-1))
        .broken("a basis that there is not", |d, _| d["lawful_basis"] = json!("whim"))
        .broken("an operation that there is not", |d, _| d["operations"] = json!(["query", "write"]))
        .broken("a kind that there is not", |d, _| d["filter"]["kinds"] = json!(["fact", "rumour"]))
        .broken("a sensitivity that there is not", |d, _| {
            d["filter"]["sensitivities"] = json!(["public", "secret"]);
        })
        .broken("a confidence above 1", |d, _| d["filter"]["min_confidence"] = json!(1.001))
        .right("a confidence of 1", |d, _| d["filter"]["min_confidence"] = json!(1))
        .broken("a confidence below 0", |d, _| d["filter"]["min_confidence"] = json!(-0.001))
        .right("a confidence of 0", |d, _| d["filter"]["min_confidence"] = json!(0))
        .broken("a bound that is no time", |d, _| d["filter"]["captured_after"] = json!("yesterday"))
        .broken("labels that are no list", |d, _| d["filter"]["labels_any"] = json!("l0"))
        .broken("a label that is no text", |d, _| d["filter"]["exclude_labels"] = json!([7]))
        .broken("a filter that is a list", |d, _| d["filter"] = json!([]))
        .broken("a beginning that is no time", |d, _| d["not_before"] = json!("today"))
        .broken("an end that is no time", |d, _| d["expires_at"] = json!("tomorrow"))
        .broken("a part of an item", |d, _| d["max_items"] = json!(1.5))
        .broken("a grantee without a DID", |d, _| d["grantee"] = json!("somebody"))
        .broken("a purpose that is no text", |d, _| d["purpose"] = json!(["testing"]))
        .broken("delegable without a depth", |d, _| d["delegable"] = json!(true))
        .broken("embeddings in words", |d, _| d["embedding_access"] = json!("yes"))
        .broken("bearer in words", |d, _| d["bearer"] = json!("yes"))
        .broken("a part of a query", |d, _| d["budget"] = json!({"queries": 1.5}))
}

/// It was issued so much later than now, and begins with the grant above.
fn issued_later(child: &mut Value, limits: &Limits, by: Duration) {
    let issued: Option<Timestamp> = child["issued_at"].as_str().and_then(|at| at.parse().ok());
    (child["not_before"], child["issued_at"]) = (json!(limits.begins), json!(issued.map(|at| at.plus(by))));
}

/// A draft in a scope whose filter names these.
fn over(draft: &mut Value, scopes: &[&str]) {
    (draft["scope"], draft["filter"]["scopes"]) = (json!("probe-own"), json!(scopes));
}

/// A child whose filter has another list.
fn list(child: &mut Value, name: &str, values: &[&str]) {
    child["filter"][name] = json!(values);
}

/// A child whose filter has in a list what its parent's has, and more.
fn with(child: &mut Value, name: &str, own: &str, more: Vec<String>) {
    let own = std::iter::once(own.to_owned());
    child["filter"][name] = json!(own.chain(more).collect::<Vec<_>>());
}

fn words(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("l{n}")).collect()
}

/// It begins later than now on any clock, and ends so long after.
fn lives(draft: &mut Value, limits: &Limits, end: Timestamp) {
    (draft["not_before"], draft["expires_at"]) = (json!(limits.begins), json!(end));
}

fn between(draft: &mut Value, after: &str, before: &str) {
    (draft["filter"]["captured_after"], draft["filter"]["captured_before"]) = (json!(after), json!(before));
}

/// The grant that children are made from: it has every member that a child must stay within.
pub(super) fn parent(draft: &mut Value) {
    draft["max_items"] = json!(draft["max_items"].as_u64().unwrap_or(2).min(5));
    draft["filter"] = json!({
        "labels_any": ["a", "b"], "labels_all": ["c"], "exclude_labels": ["x"], "kinds": ["fact", "preference"],
        "subject_entity_ids": ["s", "t"], "captured_after": "2026-01-01T00:00:00.000Z",
        "captured_before": "2026-03-01T00:00:00.000Z", "min_confidence": 0.5, "sensitivities": ["public", "internal"],
    });
    draft["operations"] = json!(["query"]);
    draft["purpose_codes"] = json!(["travel", "diary"]);
    draft["budget"] = json!({"queries": 10, "epsilon": 1});
    draft["delegable"] = json!({"max_depth": 2});
}

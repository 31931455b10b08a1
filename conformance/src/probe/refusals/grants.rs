//! Violations of the conditions on grants at issue, and on children at their exchange, with what is right at each boundary.

use crate::model::rule::Granting;
use crate::world::whole_name;
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// What drafts are made with.
pub(super) struct Limits {
    /// When grants begin whose life is what is tried: later than now on any clock.
    pub(super) begins: Timestamp,
    /// Most items and longest life in days, as the manifest has them.
    pub(super) max_items: u64,
    pub(super) max_days: u64,
}

impl Limits {
    fn end(&self) -> Timestamp {
        self.begins.plus(Duration::from_secs(self.max_days * 86_400))
    }
}

/// A draft, or a child, that is right but for one condition, or is at its boundary.
pub(super) struct Case {
    pub(super) what: &'static str,
    pub(super) holds: bool,
    pub(super) change: fn(&mut Value, &Limits),
}

const fn bad(what: &'static str, change: fn(&mut Value, &Limits)) -> Case {
    Case { what, holds: false, change }
}

const fn good(what: &'static str, change: fn(&mut Value, &Limits)) -> Case {
    Case { what, holds: true, change }
}

fn without(value: &mut Value, member: &str) {
    value.as_object_mut().map(|members| members.remove(member));
}

fn many(count: usize) -> Value {
    json!((0..count).map(|n| format!("l{n}")).collect::<Vec<_>>())
}

const FULL: &str = "oap.profile.projection.full.v1";
const EARLIER: &str = "2026-01-01T00:00:00.000Z";
const LATER: &str = "2026-01-01T00:00:00.001Z";

/// The cases of a draft of the owner's; none of what is a child's alone.
pub(super) fn of_issue(granting: Granting) -> Vec<Case> {
    match granting {
        Granting::Issued => vec![good("within every limit", |_, _| {})],
        Granting::MaxItemsZero => {
            vec![bad("0", |d, _| d["max_items"] = json!(0)), good("1", |d, _| d["max_items"] = json!(1))]
        }
        Granting::MaxItemsAt => vec![good("the most", |d, l| d["max_items"] = json!(l.max_items))],
        Granting::MaxItemsAbove => vec![bad("one more", |d, l| d["max_items"] = json!(l.max_items + 1))],
        Granting::DurationAt => vec![good("the longest", |d, l| lives(d, l, l.end()))],
        Granting::DurationAbove => {
            vec![bad("a millisecond more", |d, l| lives(d, l, l.end().plus(Duration::from_millis(1))))]
        }
        Granting::Ended => vec![
            bad("when it begins", |d, l| lives(d, l, l.begins)),
            good("a second later", |d, l| lives(d, l, l.begins.plus(Duration::from_secs(1)))),
        ],
        Granting::UnknownProfile => {
            vec![bad("nonsense", |d, _| d["redaction_profile"] = json!("oap.profile.projection.nonsense.v9"))]
        }
        Granting::ProfileLevel => vec![
            bad("full at 3", |d, _| (d["redaction_profile"], d["trust_level"]) = (json!(FULL), json!(3))),
            good("full at 4", |d, _| (d["redaction_profile"], d["trust_level"]) = (json!(FULL), json!(4))),
        ],
        Granting::Irrevocable => vec![bad("false", |d, _| d["revocable"] = json!(false))],
        Granting::NoOperations => vec![bad("none", |d, _| d["operations"] = json!([]))],
        Granting::PurposeEmpty => vec![
            bad("nothing", |d, _| d["purpose"] = json!("")),
            bad("a blank", |d, _| d["purpose"] = json!(" ")),
            good("a letter", |d, _| d["purpose"] = json!("x")),
        ],
        Granting::PurposeTooLong => vec![
            bad("1001", |d, _| d["purpose"] = json!("x".repeat(1001))),
            good("1000", |d, _| d["purpose"] = json!("ö".repeat(1000))),
        ],
        Granting::PurposeCodes => vec![
            bad("17", |d, _| d["purpose_codes"] = many(17)),
            good("16", |d, _| d["purpose_codes"] = many(16)),
            bad("a capital", |d, _| d["purpose_codes"] = json!(["Travel"])),
            good("every sign", |d, _| d["purpose_codes"] = json!(["a-z_0.9"])),
            bad("65 bytes", |d, _| d["purpose_codes"] = json!(["x".repeat(65)])),
            good("64 bytes", |d, _| d["purpose_codes"] = json!(["x".repeat(64)])),
        ],
        Granting::FilterList => vec![
            bad("257", |d, _| d["filter"]["labels_any"] = many(257)),
            good("256", |d, _| d["filter"]["labels_any"] = many(256)),
            bad("257 excluded", |d, _| d["filter"]["exclude_labels"] = many(257)),
            bad("257 subjects", |d, _| d["filter"]["subject_entity_ids"] = many(257)),
            bad("257 needed", |d, _| d["filter"]["labels_all"] = many(257)),
            bad("257 kinds", |d, _| d["filter"]["kinds"] = json!(vec!["fact"; 257])),
            bad("257 sensitivities", |d, _| d["filter"]["sensitivities"] = json!(vec!["public"; 257])),
            bad("257 characters", |d, _| d["filter"]["labels_all"] = json!(["ö".repeat(257)])),
            bad("257 characters of any", |d, _| d["filter"]["labels_any"] = json!(["ö".repeat(257)])),
            bad("257 characters excluded", |d, _| d["filter"]["exclude_labels"] = json!(["ö".repeat(257)])),
            bad("257 characters of a subject", |d, _| {
                d["filter"]["subject_entity_ids"] = json!(["ö".repeat(257)]);
            }),
            good("256 characters", |d, _| d["filter"]["labels_all"] = json!(["ö".repeat(256)])),
        ],
        Granting::FilterTimes => vec![
            bad("the same", |d, _| between(d, EARLIER, EARLIER)),
            bad("turned round", |d, _| between(d, LATER, EARLIER)),
            good("a millisecond", |d, _| between(d, EARLIER, LATER)),
        ],
        Granting::FilterScopes => {
            fn over(draft: &mut Value, scopes: &[&str]) {
                (draft["scope"], draft["filter"]["scopes"]) = (json!("probe-own"), json!(scopes));
            }
            vec![
                good("its own", |d, _| over(d, &["probe-own"])),
                bad("another", |d, _| over(d, &["probe-other"])),
                bad("another beside it", |d, _| over(d, &["probe-own", "probe-other"])),
            ]
        }
        Granting::Depth => vec![
            bad("0", |d, _| d["delegable"] = json!({"max_depth": 0})),
            good("1", |d, _| d["delegable"] = json!({"max_depth": 1})),
            good("5", |d, _| d["delegable"] = json!({"max_depth": 5})),
            bad("6", |d, _| d["delegable"] = json!({"max_depth": 6})),
        ],
        Granting::Budget => vec![
            bad("no queries", |d, _| d["budget"] = json!({"queries": 0})),
            bad("no epsilon", |d, _| d["budget"] = json!({"epsilon": 0})),
            bad("less than none", |d, _| d["budget"] = json!({"epsilon": -1})),
            good("one query", |d, _| d["budget"] = json!({"queries": 1})),
            good("a little", |d, _| d["budget"] = json!({"epsilon": 0.01})),
        ],
        Granting::UnknownMember => vec![bad("a colour", |d, _| d["colour"] = json!("red"))],
        Granting::UnknownFilterMember => {
            vec![bad("a colour", |d, _| d["filter"]["colour"] = json!(["red"]))]
        }
        Granting::ChildWithin
        | Granting::ChildNotDelegable
        | Granting::ChildDepth
        | Granting::ChildGranter
        | Granting::ChildProfile
        | Granting::ChildBasis
        | Granting::ChildMaxItems
        | Granting::ChildBegins
        | Granting::ChildEnds
        | Granting::ChildLevel
        | Granting::ChildOperations
        | Granting::ChildEmbeddings
        | Granting::ChildBearer
        | Granting::ChildPurposeCodes
        | Granting::ChildBudget
        | Granting::ChildScopes
        | Granting::ChildSubjects
        | Granting::ChildKinds
        | Granting::ChildLabelsAny
        | Granting::ChildLabelsAll
        | Granting::ChildExcludeLabels
        | Granting::ChildCapturedAfter
        | Granting::ChildCapturedBefore
        | Granting::ChildMinConfidence
        | Granting::ChildSensitivities
        | Granting::ChildStatus
        | Granting::ChildShape
        | Granting::ChildParent => vec![],
    }
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

/// The cases of a grant that a grantee makes of its own. What a child has of its parent is the same but for `delegable`, whose depth is 1. A
/// condition on drafts is broken by a child that stays within its parent.
pub(super) fn of_child(granting: Granting) -> Vec<Case> {
    fn list(child: &mut Value, name: &str, values: &[&str]) {
        child["filter"][name] = json!(values);
    }
    match granting {
        Granting::ChildWithin => vec![good("the same", |_, _| {})],
        // The parent is another one, which the caller has issued.
        Granting::ChildNotDelegable => vec![bad("of a grant that is not delegable", |_, _| {})],
        Granting::ChildDepth => vec![
            bad("the same depth", |c, _| c["delegable"]["max_depth"] = json!(2)),
            good("none", |c, _| without(c, "delegable")),
        ],
        Granting::ChildGranter => vec![bad("another scope", |c, _| {
            let (did, scope) = c["granter"].as_str().and_then(|g| g.split_once('#')).unwrap_or_default();
            (c["filter"]["scopes"], c["granter"]) = (json!([scope]), json!(format!("{did}#another")));
        })],
        Granting::ChildProfile => vec![bad("another", |c, _| {
            let other = if c["redaction_profile"] == *whole_name("task") { "contact" } else { "task" };
            c["redaction_profile"] = json!(whole_name(other));
        })],
        Granting::ChildBasis => vec![bad("another", |c, _| c["lawful_basis"] = json!("contract"))],
        Granting::ChildMaxItems => vec![
            bad("one more", |c, _| c["max_items"] = json!(c["max_items"].as_u64().unwrap_or(0) + 1)),
            good("one", |c, _| c["max_items"] = json!(1)),
        ],
        Granting::ChildBegins => {
            vec![bad("earlier", |c, _| c["not_before"] = json!("2020-01-01T00:00:00.000Z"))]
        }
        Granting::ChildEnds => vec![bad("a millisecond later", |c, _| {
            let end: Option<Timestamp> = c["expires_at"].as_str().and_then(|end| end.parse().ok());
            c["expires_at"] = json!(end.map(|end| end.plus(Duration::from_millis(1))));
        })],
        Granting::ChildLevel => vec![
            bad("one more", |c, _| c["trust_level"] = json!(3)),
            good("one less", |c, _| c["trust_level"] = json!(1)),
        ],
        Granting::ChildOperations => {
            vec![bad("one more", |c, _| c["operations"] = json!(["query", "export"]))]
        }
        Granting::ChildEmbeddings => vec![bad("granted", |c, _| c["embedding_access"] = json!(true))],
        Granting::ChildBearer => vec![bad("granted", |c, _| c["bearer"] = json!(true))],
        Granting::ChildPurposeCodes => vec![
            bad("one more", |c, _| c["purpose_codes"] = json!(["travel", "diary", "letters"])),
            bad("none", |c, _| without(c, "purpose_codes")),
            good("one", |c, _| c["purpose_codes"] = json!(["travel"])),
        ],
        Granting::ChildBudget => vec![
            bad("more queries", |c, _| c["budget"]["queries"] = json!(11)),
            bad("more epsilon", |c, _| c["budget"]["epsilon"] = json!(1.5)),
            bad("no bound of queries", |c, _| without(&mut c["budget"], "queries")),
            bad("none", |c, _| without(c, "budget")),
            good("less", |c, _| c["budget"] = json!({"queries": 1, "epsilon": 0.5})),
        ],
        Granting::ChildScopes => vec![bad("another", |c, _| list(c, "scopes", &["another"]))],
        Granting::ChildSubjects => vec![
            bad("one more", |c, _| list(c, "subject_entity_ids", &["s", "t", "u"])),
            bad("any", |c, _| without(&mut c["filter"], "subject_entity_ids")),
            good("one", |c, _| list(c, "subject_entity_ids", &["s"])),
        ],
        Granting::ChildKinds => vec![
            bad("one more", |c, _| list(c, "kinds", &["fact", "preference", "summary"])),
            bad("any", |c, _| without(&mut c["filter"], "kinds")),
            good("one", |c, _| list(c, "kinds", &["fact"])),
        ],
        Granting::ChildLabelsAny => vec![
            bad("one more", |c, _| list(c, "labels_any", &["a", "b", "d"])),
            bad("any", |c, _| without(&mut c["filter"], "labels_any")),
            good("none", |c, _| list(c, "labels_any", &[])),
        ],
        Granting::ChildLabelsAll => vec![
            bad("another", |c, _| list(c, "labels_all", &["d"])),
            bad("none", |c, _| without(&mut c["filter"], "labels_all")),
            good("one more", |c, _| list(c, "labels_all", &["c", "d"])),
        ],
        Granting::ChildExcludeLabels => vec![
            bad("another", |c, _| list(c, "exclude_labels", &["y"])),
            bad("none", |c, _| without(&mut c["filter"], "exclude_labels")),
            good("one more", |c, _| list(c, "exclude_labels", &["x", "y"])),
        ],
        Granting::ChildCapturedAfter => vec![
            bad("a millisecond earlier", |c, _| {
                c["filter"]["captured_after"] = json!("2025-12-31T23:59:59.999Z");
            }),
            bad("any", |c, _| without(&mut c["filter"], "captured_after")),
            good("a millisecond later", |c, _| c["filter"]["captured_after"] = json!(LATER)),
        ],
        Granting::ChildCapturedBefore => vec![
            bad("a millisecond later", |c, _| {
                c["filter"]["captured_before"] = json!("2026-03-01T00:00:00.001Z");
            }),
            bad("any", |c, _| without(&mut c["filter"], "captured_before")),
            good("a millisecond earlier", |c, _| {
                c["filter"]["captured_before"] = json!("2026-02-28T23:59:59.999Z");
            }),
        ],
        Granting::ChildMinConfidence => vec![
            bad("a little lower", |c, _| c["filter"]["min_confidence"] = json!(0.499)),
            bad("any", |c, _| without(&mut c["filter"], "min_confidence")),
            good("higher", |c, _| c["filter"]["min_confidence"] = json!(0.501)),
        ],
        Granting::ChildSensitivities => vec![
            bad("one more", |c, _| list(c, "sensitivities", &["public", "internal", "confidential"])),
            bad("any", |c, _| without(&mut c["filter"], "sensitivities")),
            good("one", |c, _| list(c, "sensitivities", &["public"])),
        ],
        Granting::ChildStatus => vec![bad("a place of its own", |c, _| {
            c["status"] = json!({"status_list": {"idx": 7, "uri": "https://gateway.example/status"}});
        })],
        Granting::ChildShape => vec![
            bad("no purpose", |c, _| without(c, "purpose")),
            bad("max_items as text", |c, _| c["max_items"] = json!("1")),
            bad("another version", |c, _| c["version"] = json!(2)),
            bad("a level between two", |c, _| c["trust_level"] = json!(1.5)),
            bad("more than sure", |c, _| c["filter"]["min_confidence"] = json!(1.001)),
            bad("a time as a number", |c, _| c["filter"]["captured_after"] = json!(1_772_000_000)),
        ],
        Granting::ChildParent => {
            vec![bad("a hash of nothing", |c, _| c["parent"] = json!(format!("sha256:{}", "0".repeat(64))))]
        }
        Granting::MaxItemsZero => vec![bad("0", |c, _| c["max_items"] = json!(0))],
        Granting::Irrevocable => vec![bad("false", |c, _| c["revocable"] = json!(false))],
        Granting::NoOperations => vec![bad("none", |c, _| c["operations"] = json!([]))],
        Granting::PurposeEmpty => vec![
            bad("nothing", |c, _| c["purpose"] = json!("")),
            bad("a blank", |c, _| c["purpose"] = json!(" ")),
            good("another", |c, _| c["purpose"] = json!("x")),
        ],
        Granting::PurposeTooLong => vec![
            bad("1001", |c, _| c["purpose"] = json!("x".repeat(1001))),
            good("1000", |c, _| c["purpose"] = json!("ö".repeat(1000))),
        ],
        Granting::FilterList => {
            fn with(child: &mut Value, name: &str, own: &str, more: Vec<String>) {
                let own = std::iter::once(own.to_owned());
                child["filter"][name] = json!(own.chain(more).collect::<Vec<_>>());
            }
            fn words(count: usize) -> Vec<String> {
                (0..count).map(|n| format!("l{n}")).collect()
            }
            vec![
                bad("257 needed", |c, _| with(c, "labels_all", "c", words(256))),
                good("256 needed", |c, _| with(c, "labels_all", "c", words(255))),
                bad("257 excluded", |c, _| with(c, "exclude_labels", "x", words(256))),
                good("256 excluded", |c, _| with(c, "exclude_labels", "x", words(255))),
                bad("257 characters needed", |c, _| with(c, "labels_all", "c", vec!["ö".repeat(257)])),
                bad("257 characters excluded", |c, _| with(c, "exclude_labels", "x", vec!["ö".repeat(257)])),
            ]
        }
        Granting::FilterTimes => vec![
            bad("the same", |c, _| between(c, "2026-02-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z")),
            bad("turned round", |c, _| between(c, "2026-02-01T00:00:00.001Z", "2026-02-01T00:00:00.000Z")),
            good("a millisecond", |c, _| between(c, "2026-02-01T00:00:00.000Z", "2026-02-01T00:00:00.001Z")),
        ],
        Granting::Depth => vec![bad("0", |c, _| c["delegable"] = json!({"max_depth": 0}))],
        Granting::Budget => vec![
            bad("no queries", |c, _| c["budget"]["queries"] = json!(0)),
            bad("no epsilon", |c, _| c["budget"]["epsilon"] = json!(0)),
            bad("less than none", |c, _| c["budget"]["epsilon"] = json!(-1)),
        ],
        Granting::UnknownMember => vec![bad("a colour", |c, _| c["colour"] = json!("red"))],
        Granting::UnknownFilterMember => {
            vec![bad("a colour", |c, _| c["filter"]["colour"] = json!(["red"]))]
        }
        // Of these a child that breaks them is wider than its parent as well.
        Granting::Issued
        | Granting::MaxItemsAt
        | Granting::MaxItemsAbove
        | Granting::DurationAt
        | Granting::DurationAbove
        | Granting::Ended
        | Granting::UnknownProfile
        | Granting::ProfileLevel
        | Granting::PurposeCodes
        | Granting::FilterScopes => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_cases() {
        for granting in Granting::ALL {
            assert!(!of_issue(*granting).is_empty() || !of_child(*granting).is_empty(), "{granting}");
        }
    }
}

//! Violations of the conditions on queries, cursors and exports, with what is right at each boundary. What must come back the reference model says.

use super::cases::OneOrMore;
use crate::model::rule::Refusal;
use crate::world::{Grant, World};
use oap_identity::Timestamp;
use serde_json::{Value, json};

/// What is done under the grants of the world below.
pub(super) enum Step {
    /// A query under a grant.
    Ask(usize, Value),
    /// An export under a grant.
    Export(usize),
    /// The owner takes a grant back.
    Revoke(usize),
    /// The first page under one grant, and a query with its cursor under another, changed.
    Page { of: usize, under: usize, change: fn(&mut Value) },
}

/// The grants of the world below by what they are for.
const PLAIN: usize = 0;
const OTHER: usize = 1;
const FOR_EXPORTS: usize = 2;
const FOR_QUERIES: usize = 3;
const OF_ONE_QUERY: usize = 4;
const OF_LITTLE_EPSILON: usize = 5;
const ABOVE_SPENT: usize = 6;
const BELOW_SPENT: usize = 7;
const ABOVE_REVOKED: usize = 8;
const BELOW_REVOKED: usize = 9;
const REVOKED: usize = 10;
/// Another grant of the grantee of the first one, alike.
const OF_THE_SAME: usize = 11;
/// A budget that two answers spend to the last, where the second shows again what the first did.
const OF_TWO_ANSWERS: usize = 12;
/// One that is too small for that, and large enough for an answer that shows nothing again.
const OF_LESS: usize = 13;
const OF_ONE_ANSWER: usize = 14;
/// A grant without a budget, and one below it that has one.
const WITHOUT_BUDGET: usize = 15;
const BELOW_WITH_BUDGET: usize = 16;
/// A grant with two purposes and embeddings, and one below it with one purpose and without them.
const OF_MORE: usize = 17;
const BELOW_OF_LESS: usize = 18;

/// A world with a grant for each condition.
pub(super) fn granting(mut world: World, profile: &str, end: Timestamp, max_items: u64) -> World {
    let scope = world.scope.clone();
    let issued = |more: Value| {
        let mut draft = json!({
            "scope": scope, "purpose": "planning of a journey", "expires_at": end, "max_items": max_items.min(50),
            "redaction_profile": profile, "trust_level": 4, "filter": {},
        });
        if let (Some(draft), Some(more)) = (draft.as_object_mut(), more.as_object()) {
            draft.extend(more.clone());
        }
        draft
    };
    let one = json!({"queries": 1});
    let drafts = [
        (None, issued(json!({"operations": ["query", "export"], "purpose_codes": ["travel"]}))),
        (None, issued(json!({"operations": ["query", "export"]}))),
        (None, issued(json!({"operations": ["export"]}))),
        (None, issued(json!({"operations": ["query"]}))),
        (None, issued(json!({"budget": one}))),
        (None, issued(json!({"budget": {"epsilon": 0.015}}))),
        (None, issued(json!({"budget": one, "delegable": {"max_depth": 1}}))),
        (Some(ABOVE_SPENT), json!({})),
        (None, issued(json!({"delegable": {"max_depth": 1}}))),
        (Some(ABOVE_REVOKED), json!({})),
        (None, issued(json!({}))),
        (None, issued(json!({"operations": ["query", "export"], "purpose_codes": ["travel"]}))),
        (None, issued(json!({"budget": {"epsilon": 0.021}}))),
        (None, issued(json!({"budget": {"epsilon": 0.0205}}))),
        (None, issued(json!({"budget": one}))),
        (None, issued(json!({"delegable": {"max_depth": 1}}))),
        (Some(WITHOUT_BUDGET), json!({"budget": one})),
        (
            None,
            issued(json!({
                "purpose_codes": ["travel", "diary"], "embedding_access": true, "delegable": {"max_depth": 1},
            })),
        ),
        (Some(OF_MORE), json!({"purpose_codes": ["travel"], "embedding_access": false})),
    ];
    let grant = |(number, (parent, draft))| Grant {
        grantee: if number == OF_THE_SAME { PLAIN } else { number },
        parent,
        draft,
        queries: Vec::new(),
    };
    world.grants = drafts.into_iter().enumerate().map(grant).collect();
    world
}

fn ask(query: Value) -> Step {
    Step::Ask(PLAIN, query)
}

/// The first page and a query with its cursor, under the same grant.
fn page(change: fn(&mut Value)) -> Step {
    Step::Page { of: PLAIN, under: PLAIN, change }
}

/// A query of which every member is null that may be.
fn nulls() -> Value {
    json!({
        "max_results": null, "kinds": null, "labels_any": null, "min_confidence": null, "cursor": null, "purpose": null,
    })
}

/// One item, the same each time.
fn newest() -> Value {
    json!({"max_results": 1})
}

fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn many(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("l{n}")).collect()
}

/// What is brought for a condition.
pub(super) enum Violation {
    /// What breaks it alone, and what is right beside it.
    Asked(OneOrMore<Step>),
    /// The same, and a grant of which it is so, at every door to which that applies.
    UnderGrant(OneOrMore<Step>, Ground),
    /// A grant before its end, at it and after it, at every door.
    Ends,
    /// Without a grant that is known and has begun there is no token: [`DocumentRule::Known`](super::rules::DocumentRule::Known), `InForce`.
    AtExchange,
    /// A child never outlives the grant above it.
    Never,
}

/// Why a grant gives nothing at some doors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    Revoked,
    AboveRevoked,
    /// It is not for queries.
    NotForQueries,
    NotForExports,
    NoEmbeddings,
    /// A budget is spent: of queries, of epsilon, or of the grant above.
    Queries,
    Epsilon,
    Above,
}

/// The violations of a condition.
pub(super) fn violations(refusal: Refusal) -> Violation {
    let one = OneOrMore::one;
    Violation::Asked(match refusal {
        Refusal::UnknownGrant | Refusal::Draft => return Violation::AtExchange,
        Refusal::Expired => return Violation::Ends,
        Refusal::AboveEnded => return Violation::Never,
        Refusal::Revoked => {
            let steps = one(Step::Ask(REVOKED, json!({})))
                .and(Step::Revoke(REVOKED))
                .and(Step::Ask(REVOKED, json!({})))
                // What is malformed is so under any grant; a cursor comes last.
                .and(Step::Ask(REVOKED, json!({"colour": 1})))
                .and(Step::Ask(REVOKED, json!({"cursor": "AAAA"})));
            return Violation::UnderGrant(steps, Ground::Revoked);
        }
        Refusal::AboveRevoked => {
            let steps = one(Step::Ask(BELOW_REVOKED, json!({})))
                .and(Step::Revoke(ABOVE_REVOKED))
                .and(Step::Ask(BELOW_REVOKED, json!({})));
            return Violation::UnderGrant(steps, Ground::AboveRevoked);
        }
        Refusal::OperationQuery => {
            let steps = one(Step::Export(FOR_EXPORTS)).and(Step::Ask(FOR_EXPORTS, json!({})));
            return Violation::UnderGrant(steps, Ground::NotForQueries);
        }
        Refusal::OperationExport => {
            let steps = one(Step::Ask(FOR_QUERIES, json!({}))).and(Step::Export(FOR_QUERIES));
            return Violation::UnderGrant(steps, Ground::NotForExports);
        }
        Refusal::Embeddings => {
            let steps = one(ask(json!({"include_embeddings": false})))
                .and(ask(json!({"include_embeddings": true})))
                .and(Step::Ask(OF_MORE, json!({"include_embeddings": true})))
                .and(Step::Ask(BELOW_OF_LESS, json!({"include_embeddings": true})));
            return Violation::UnderGrant(steps, Ground::NoEmbeddings);
        }
        Refusal::Purpose => one(ask(json!({"purpose": "travel"})))
            .and(ask(json!({"purpose": "surveys"})))
            .and(Step::Ask(OTHER, json!({"purpose": "surveys"})))
            .and(Step::Ask(OF_MORE, json!({"purpose": "diary"})))
            .and(Step::Ask(BELOW_OF_LESS, json!({"purpose": "travel"})))
            .and(Step::Ask(BELOW_OF_LESS, json!({"purpose": "diary"}))),
        Refusal::QueryShape => one(ask(json!({})))
            .and(ask(json!({"query": " \t"})))
            .and(ask(json!([])))
            .and(ask(json!("tea")))
            .and(ask(json!({"query": 1})))
            .and(ask(json!({"max_results": "1"})))
            .and(ask(json!({"max_results": -1})))
            .and(ask(json!({"max_results": 1.5})))
            .and(ask(json!({"kinds": "fact"})))
            .and(ask(json!({"labels_any": [1]})))
            .and(ask(json!({"include_embeddings": "no"})))
            .and(ask(json!({"cursor": 1})))
            .and(ask(json!({"integrity": true})))
            .and(ask(json!({"purpose": ["travel"]})))
            .and(ask(json!({"request_id": 1})))
            .and(ask(json!({"min_confidence": "0.5"}))),
        Refusal::QueryUnknownMember => one(ask(json!({"filter": {}}))).and(ask(json!({"trust_level": 4}))),
        Refusal::QueryNull => one(ask(json!({"query": null})))
            .and(ask(json!({"include_embeddings": null})))
            .and(ask(json!({"integrity": null})))
            .and(ask(nulls())),
        Refusal::MaxResultsZero => one(ask(json!({"max_results": 1}))).and(ask(json!({"max_results": 0}))),
        Refusal::MaxResultsAbove => {
            one(ask(json!({"max_results": 100}))).and(ask(json!({"max_results": 101})))
        }
        Refusal::QueryTooLong => one(ask(json!({"query": long(4096)})))
            .and(ask(json!({"query": long(4097)})))
            .and(ask(json!({"query": "ö".repeat(2049)}))),
        Refusal::ListTooLong => one(ask(json!({"labels_any": many(256)})))
            .and(ask(json!({"labels_any": many(257)})))
            .and(ask(json!({"kinds": vec!["fact"; 256]})))
            .and(ask(json!({"kinds": vec!["fact"; 257]}))),
        Refusal::LabelTooLong => one(ask(json!({"labels_any": [long(256)]})))
            .and(ask(json!({"labels_any": [long(257)]})))
            .and(ask(json!({"labels_any": ["ö".repeat(128)]})))
            .and(ask(json!({"labels_any": ["ö".repeat(129)]}))),
        Refusal::UnknownKind => {
            one(ask(json!({"kinds": ["fact"]}))).and(ask(json!({"kinds": ["fact", "rumour"]})))
        }
        Refusal::ConfidenceRange => one(ask(json!({"min_confidence": 0})))
            .and(ask(json!({"min_confidence": 1})))
            .and(ask(json!({"min_confidence": 1.000_001})))
            .and(ask(json!({"min_confidence": -0.000_001}))),
        Refusal::CursorTooLong => one(ask(json!({"cursor": long(257)}))),
        Refusal::CursorForeign => one(ask(json!({"cursor": long(256)})))
            .and(ask(json!({"cursor": ""})))
            .and(ask(json!({"cursor": "AAAA"})))
            .and(page(|_| {}))
            .and(Step::Page { of: PLAIN, under: OTHER, change: |_| {} })
            .and(Step::Page { of: PLAIN, under: OF_THE_SAME, change: |_| {} })
            .and(page(|query| {
                let cursor = query["cursor"].as_str().unwrap_or_default();
                query["cursor"] = json!(super::jws::changed(cursor));
            })),
        Refusal::CursorOtherQuery => one(page(|query| query["max_results"] = json!(2)))
            .and(page(|query| query["integrity"] = json!("chain")))
            .and(page(|query| query["request_id"] = json!("01J9V8B7H1ZK4D2A0M9R8F0KQX")))
            .and(page(|query| query["kinds"] = json!(["fact"])))
            .and(page(|query| query["query"] = json!("garden")))
            .and(page(|query| query["query"] = json!(" ")))
            .and(page(|query| query["min_confidence"] = json!(0)))
            .and(page(|query| query["labels_any"] = json!(["x"])))
            .and(page(|query| query["purpose"] = json!("travel"))),
        Refusal::IntegrityUnknown => {
            one(ask(json!({"integrity": "full"}))).and(ask(json!({"integrity": "none"})))
        }
        Refusal::PurposeTooLong => one(Step::Ask(OTHER, json!({"purpose": long(64)})))
            .and(Step::Ask(OTHER, json!({"purpose": long(65)})))
            .and(Step::Ask(OTHER, json!({"purpose": "ö".repeat(33)}))),
        Refusal::RequestId => one(ask(json!({"request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"})))
            .and(ask(json!({"request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQI"})))
            .and(ask(json!({"request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQ"}))),
        Refusal::BudgetQueries => {
            let steps = one(Step::Ask(OF_ONE_QUERY, json!({})))
                .and(Step::Ask(OF_ONE_QUERY, json!({})))
                // Before it stands what is malformed, and what the grant does not give; behind it a cursor.
                .and(Step::Ask(OF_ONE_QUERY, json!({"colour": 1})))
                .and(Step::Ask(OF_ONE_QUERY, json!({"include_embeddings": true})))
                .and(Step::Ask(OF_ONE_QUERY, json!({"cursor": "AAAA"})))
                // What is refused costs nothing.
                .and(Step::Ask(OF_ONE_ANSWER, json!({"colour": 1})))
                .and(Step::Ask(OF_ONE_ANSWER, json!({"include_embeddings": true})))
                .and(Step::Ask(OF_ONE_ANSWER, json!({"cursor": "AAAA"})))
                .and(Step::Ask(OF_ONE_ANSWER, json!({})))
                .and(Step::Ask(OF_ONE_ANSWER, json!({})))
                // A grant below one without a budget has its own.
                .and(Step::Ask(WITHOUT_BUDGET, json!({})))
                .and(Step::Ask(WITHOUT_BUDGET, json!({})))
                .and(Step::Ask(BELOW_WITH_BUDGET, json!({})))
                .and(Step::Ask(BELOW_WITH_BUDGET, json!({})))
                .and(Step::Ask(WITHOUT_BUDGET, json!({})));
            return Violation::UnderGrant(steps, Ground::Queries);
        }
        Refusal::BudgetEpsilon => {
            let steps = one(Step::Ask(OF_LITTLE_EPSILON, json!({})))
                .and(Step::Ask(OF_LITTLE_EPSILON, json!({})))
                .and(Step::Ask(OF_TWO_ANSWERS, newest()))
                .and(Step::Ask(OF_TWO_ANSWERS, newest()))
                .and(Step::Ask(OF_TWO_ANSWERS, json!({"kinds": []})))
                .and(Step::Ask(OF_LESS, newest()))
                .and(Step::Ask(OF_LESS, newest()))
                .and(Step::Ask(OF_LESS, json!({"kinds": []})))
                .and(Step::Ask(OF_LESS, json!({"kinds": []})));
            return Violation::UnderGrant(steps, Ground::Epsilon);
        }
        Refusal::BudgetAbove => {
            let steps = one(Step::Ask(ABOVE_SPENT, json!({}))).and(Step::Ask(BELOW_SPENT, json!({})));
            return Violation::UnderGrant(steps, Ground::Above);
        }
    })
}

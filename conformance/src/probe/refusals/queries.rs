//! Violations of the conditions on queries, cursors and exports, with what is right at each boundary. What must come back the reference model says.

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
    ];
    let grant = |(grantee, (parent, draft))| Grant { grantee, parent, draft, queries: Vec::new() };
    world.grants = drafts.into_iter().enumerate().map(grant).collect();
    world
}

fn ask(query: Value) -> Step {
    Step::Ask(PLAIN, query)
}

fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn many(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("l{n}")).collect()
}

/// What is done for a condition: what breaks it alone, and what is right beside it. Empty for what other probes do.
pub(super) fn steps(refusal: Refusal) -> Vec<Step> {
    match refusal {
        // Without a grant there is no token: `DocumentRule::Known`, `InForce`, and the probe `grant-expired`.
        Refusal::UnknownGrant | Refusal::Draft | Refusal::Expired => vec![],
        // A child never outlives the grant above it.
        Refusal::AboveEnded => vec![],
        Refusal::Revoked => {
            vec![Step::Ask(REVOKED, json!({})), Step::Revoke(REVOKED), Step::Ask(REVOKED, json!({}))]
        }
        Refusal::AboveRevoked => vec![
            Step::Ask(BELOW_REVOKED, json!({})),
            Step::Revoke(ABOVE_REVOKED),
            Step::Ask(BELOW_REVOKED, json!({})),
        ],
        Refusal::OperationQuery => vec![Step::Export(FOR_EXPORTS), Step::Ask(FOR_EXPORTS, json!({}))],
        Refusal::OperationExport => vec![Step::Ask(FOR_QUERIES, json!({})), Step::Export(FOR_QUERIES)],
        Refusal::Embeddings => {
            vec![ask(json!({"include_embeddings": false})), ask(json!({"include_embeddings": true}))]
        }
        Refusal::Purpose => vec![
            ask(json!({"purpose": "travel"})),
            ask(json!({"purpose": "surveys"})),
            Step::Ask(OTHER, json!({"purpose": "surveys"})),
        ],
        Refusal::QueryShape => vec![
            ask(json!({})),
            ask(json!([])),
            ask(json!("tea")),
            ask(json!({"query": 1})),
            ask(json!({"max_results": "1"})),
            ask(json!({"max_results": -1})),
            ask(json!({"max_results": 1.5})),
            ask(json!({"kinds": "fact"})),
            ask(json!({"labels_any": [1]})),
            ask(json!({"include_embeddings": "no"})),
            ask(json!({"min_confidence": "0.5"})),
        ],
        Refusal::QueryUnknownMember => vec![ask(json!({"filter": {}})), ask(json!({"trust_level": 4}))],
        Refusal::QueryNull => vec![
            ask(json!({"query": null})),
            ask(json!({"include_embeddings": null})),
            ask(json!({"integrity": null})),
            ask(json!({
                "max_results": null, "kinds": null, "labels_any": null, "min_confidence": null, "cursor": null,
                "purpose": null,
            })),
        ],
        Refusal::MaxResultsZero => vec![ask(json!({"max_results": 1})), ask(json!({"max_results": 0}))],
        Refusal::MaxResultsAbove => vec![ask(json!({"max_results": 100})), ask(json!({"max_results": 101}))],
        Refusal::QueryTooLong => vec![
            ask(json!({"query": long(4096)})),
            ask(json!({"query": long(4097)})),
            ask(json!({"query": "ö".repeat(2049)})),
        ],
        Refusal::ListTooLong => vec![
            ask(json!({"labels_any": many(256)})),
            ask(json!({"labels_any": many(257)})),
            ask(json!({"kinds": vec!["fact"; 256]})),
            ask(json!({"kinds": vec!["fact"; 257]})),
        ],
        Refusal::LabelTooLong => {
            vec![ask(json!({"labels_any": [long(256)]})), ask(json!({"labels_any": [long(257)]}))]
        }
        Refusal::UnknownKind => {
            vec![ask(json!({"kinds": ["fact"]})), ask(json!({"kinds": ["fact", "rumour"]}))]
        }
        Refusal::ConfidenceRange => vec![
            ask(json!({"min_confidence": 0})),
            ask(json!({"min_confidence": 1})),
            ask(json!({"min_confidence": 1.000_001})),
            ask(json!({"min_confidence": -0.000_001})),
        ],
        Refusal::CursorTooLong => vec![ask(json!({"cursor": long(257)}))],
        Refusal::CursorForeign => vec![
            ask(json!({"cursor": long(256)})),
            ask(json!({"cursor": ""})),
            ask(json!({"cursor": "AAAA"})),
            Step::Page { of: PLAIN, under: PLAIN, change: |_| {} },
            Step::Page { of: PLAIN, under: OTHER, change: |_| {} },
            Step::Page {
                of: PLAIN,
                under: PLAIN,
                change: |query| {
                    let cursor = query["cursor"].as_str().unwrap_or_default();
                    query["cursor"] = json!(super::jws::changed(cursor));
                },
            },
        ],
        Refusal::CursorOtherQuery => vec![
            Step::Page { of: PLAIN, under: PLAIN, change: |query| query["max_results"] = json!(2) },
            Step::Page { of: PLAIN, under: PLAIN, change: |query| query["integrity"] = json!("chain") },
            Step::Page {
                of: PLAIN,
                under: PLAIN,
                change: |query| query["request_id"] = json!("01J9V8B7H1ZK4D2A0M9R8F0KQX"),
            },
            Step::Page { of: PLAIN, under: PLAIN, change: |query| query["kinds"] = json!(["fact"]) },
            Step::Page { of: PLAIN, under: PLAIN, change: |query| query["query"] = json!("garden") },
            Step::Page { of: PLAIN, under: PLAIN, change: |query| query["min_confidence"] = json!(0) },
            Step::Page { of: PLAIN, under: PLAIN, change: |query| query["labels_any"] = json!(["x"]) },
        ],
        Refusal::IntegrityUnknown => {
            vec![ask(json!({"integrity": "full"})), ask(json!({"integrity": "none"}))]
        }
        Refusal::PurposeTooLong => vec![
            Step::Ask(OTHER, json!({"purpose": long(64)})),
            Step::Ask(OTHER, json!({"purpose": long(65)})),
        ],
        Refusal::RequestId => vec![
            ask(json!({"request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"})),
            ask(json!({"request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQI"})),
            ask(json!({"request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQ"})),
        ],
        Refusal::BudgetQueries => {
            vec![Step::Ask(OF_ONE_QUERY, json!({})), Step::Ask(OF_ONE_QUERY, json!({}))]
        }
        Refusal::BudgetEpsilon => {
            vec![Step::Ask(OF_LITTLE_EPSILON, json!({})), Step::Ask(OF_LITTLE_EPSILON, json!({}))]
        }
        Refusal::BudgetAbove => vec![Step::Ask(ABOVE_SPENT, json!({})), Step::Ask(BELOW_SPENT, json!({}))],
    }
}

//! What is accepted at each bound of this room; one more is refused.

use oap_exchange::Query;
use oap_exchange::bridge::{Bridge, MAX_CATEGORIES, SignedBridge};
use oap_exchange::query::{MAX_CURSOR, MAX_PURPOSE_CODE, MAX_QUERY, QueryError};
use oap_identity::random::Seeded;
use oap_identity::{BridgeId, Timestamp};
use oap_memory::Kind;
use oap_memory::answer::MAX_RESULTS;
use oap_memory::filter::MAX_LIST;
use oap_memory::item::MAX_SHORT;

#[test]
fn the_categories_of_a_bridge() {
    let owner = oap_identity::Signer::did_key(&[1; 32]).unwrap();
    let at = Timestamp::from_seconds(1_777_636_800);
    let sign = |categories: usize| {
        SignedBridge::sign(
            Bridge {
                bridge_id: BridgeId::new(at, &Seeded::new(1)),
                principal: owner.did().clone(),
                from_scope: "work".parse().unwrap(),
                to_scope: "personal".parse().unwrap(),
                data_categories: (0..categories).map(|n| format!("c{n}")).collect(),
                issued_at: at,
                valid_until: at.plus(std::time::Duration::from_secs(60)),
                revocable: true,
            },
            &owner,
        )
    };
    assert!(sign(1).is_ok() && sign(MAX_CATEGORIES).is_ok());
    assert!(sign(0).is_err() && sign(MAX_CATEGORIES + 1).is_err());
}

#[test]
fn the_members_of_a_query() {
    let texts = |len: usize| Query { query: "x".repeat(len), ..Query::default() };
    let labels =
        |n: usize, len: usize| Query { labels_any: Some(vec!["x".repeat(len); n]), ..Query::default() };
    let kinds = |n: usize| Query { kinds: Some(vec![Kind::Fact; n]), ..Query::default() };
    let purpose = |len: usize| Query { purpose: Some("x".repeat(len)), ..Query::default() };
    let cursor = |len: usize| Query { cursor: Some("x".repeat(len)), ..Query::default() };
    let results = |n: u16| Query { max_results: Some(n), ..Query::default() };
    for (most, one_more, why) in [
        (texts(MAX_QUERY), texts(MAX_QUERY + 1), QueryError::TooLong),
        (labels(MAX_LIST, 1), labels(MAX_LIST + 1, 1), QueryError::List("labels_any")),
        (labels(2, MAX_SHORT), labels(2, MAX_SHORT + 1), QueryError::Text("labels_any", MAX_SHORT)),
        (kinds(MAX_LIST), kinds(MAX_LIST + 1), QueryError::List("kinds")),
        (
            purpose(MAX_PURPOSE_CODE),
            purpose(MAX_PURPOSE_CODE + 1),
            QueryError::Text("purpose", MAX_PURPOSE_CODE),
        ),
        (cursor(MAX_CURSOR), cursor(MAX_CURSOR + 1), QueryError::Text("cursor", MAX_CURSOR)),
        (results(MAX_RESULTS), results(MAX_RESULTS + 1), QueryError::MaxResults),
        (results(1), results(0), QueryError::MaxResults),
    ] {
        assert_eq!(most.check(), Ok(()));
        assert_eq!(one_more.check(), Err(why));
    }
}

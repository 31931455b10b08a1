//! How many entries an agent has is counted without a walk over all, and is what a walk counts.

use oap_gateway::state::heads::Heads;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::item::{Body, Defaults};
use oap_memory::record::{Head, Meta, Status, Tier};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

fn author(n: u8) -> Did {
    format!("did:web:a{n}.example").parse().unwrap()
}

fn head(item: ItemId, by: u8, tier: Tier, status: Status, end: Option<u8>, keyed: bool) -> Head {
    let (principal, scope) = (author(9), "personal".parse().unwrap());
    let defaults = Defaults { principal: &principal, scope: &scope, now: Timestamp::from_seconds(0) };
    let body = Body::parse(&json!({"kind": "fact", "content": {"text": "x"}}), &defaults).unwrap();
    let mut meta = Meta { tier, ..Meta::owner(author(by), false) };
    if keyed {
        (meta.namespace, meta.key) = (Some(Arc::new("n".to_owned())), Some(Box::new("k".to_owned())));
    }
    let mut head = Head::new(item, &body, meta);
    head.status = status;
    head.end_of_life = end.map(|end| Timestamp::from_seconds(i64::from(end)));
    head
}

proptest! {
    /// Whatever is put, changed and taken out: what is counted is what a walk over all of them counts.
    #[test]
    fn the_count_is_that_of_a_walk(
        steps in prop::collection::vec(
            (0..6_u8, 0..3_u8, 0..3_usize, any::<bool>(), prop::option::of(0..6_u8), any::<bool>(), 0..4_u8),
            0..60,
        ),
        now in 0..7_i64,
    ) {
        let heads = Heads::default();
        for (item, by, tier, current, end, keyed, removes) in steps {
            let item = ItemId::from_bytes([item; 16]);
            let status = if current { Status::Current } else { Status::Retracted };
            let put = (removes > 0).then(|| head(item, by, Tier::ALL[tier], status, end, keyed));
            heads.set(item, put);
        }
        let now = Timestamp::from_seconds(now);
        for by in 0..3 {
            for tier in Tier::ALL {
                let mut own = heads.keyed();
                own.retain(|head| *head.meta.author == author(by) && head.meta.tier == *tier && head.is_live(now));
                prop_assert_eq!(heads.count_own(&author(by), *tier, now), own.len());
                let mut listed = heads.own(&author(by), *tier);
                listed.retain(|head| head.is_live(now));
                let ids = |heads: &[Arc<Head>]| {
                    heads.iter().map(|head| head.item_id).collect::<BTreeSet<_>>()
                };
                prop_assert_eq!(ids(&listed), ids(&own));
            }
        }
        for head in heads.all() {
            heads.set(head.item_id, None);
        }
        let left = (0..3).flat_map(|by| Tier::ALL.iter().map(move |tier| (by, tier)));
        prop_assert!(left.into_iter().all(|(by, tier)| heads.own(&author(by), *tier).is_empty()));
    }
}

//! What is accepted at each bound of this room; one more is refused.

use oap_exchange::bridge::{Bridge, MAX_CATEGORIES, SignedBridge};
use oap_identity::random::Seeded;
use oap_identity::{BridgeId, Timestamp};

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

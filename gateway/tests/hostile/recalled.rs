//! Memories whose gateways have another time than ours.

use super::*;
use crate::federated::party::{Town, theirs, verdict};

/// A clock that is ten minutes off, ahead or behind, is no lie: that peer is named, and the rest comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_peer_whose_clock_is_off_is_no_liar() {
    let town = Town::new();
    let asker = town.party(100).await;
    let (off, right) = (town.party(200).await, town.party(201).await);
    for (peer, text) in [(&off, "Tea of another time"), (&right, "Tea of ours")] {
        peer.world.capture(&[note(text, &["tea"])]).await;
        peer.grants(&asker, "tea").await;
    }
    assert_eq!(theirs(&asker.recall("tea", 25).await).len(), 2);
    let ten = Duration::from_secs(600);
    off.world.clock.advance(ten);
    for which in ["ahead", "behind"] {
        let found = asker.recall("tea", 25).await;
        assert_eq!(theirs(&found), ["Tea of ours"], "{which}: {found}");
        assert_eq!(verdict(&found, &off).0, "refused", "{which}: {found}");
        assert!(asker.lies().await.is_empty(), "{which}");
        for party in [&asker, &right] {
            party.world.clock.advance(2 * ten);
        }
    }
}

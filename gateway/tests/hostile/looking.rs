//! A peer that changes its keys while it is looked at.

use super::*;
use crate::played::Shown;

const PEERS: &str = "/oap/owner/peers";

/// The document that was read first is of one key, the manifest that is read next by another: nothing of it is believed, and the next look sees it
/// whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_that_are_changed_between_two_documents() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    let shown = PlayedPeer::shown(world.now());
    world.owner("POST", PEERS, Some(&json!({"peer": peer.did}))).await.ok();
    let check = async || {
        let path = format!("{PEERS}/check");
        world.owner("POST", &path, Some(&json!({"did": peer.did}))).await.ok()
    };
    let pinned = check().await["pinned"].clone();
    assert_eq!(pinned["keys"].as_array().unwrap().len(), 1, "{pinned}");
    let before = world.now().minus(Duration::from_millis(1));
    let rotated = Shown {
        keys: vec![(2, None), (1, Some(world.now()))],
        signer: 2,
        handovers: vec![peer.handover(1, 2, before)],
        ..shown.clone()
    };
    peer.publish(&rotated);
    let manifest = peer.body(path::MEMORY_MANIFEST);
    peer.publish(&shown);
    peer.reply(path::MEMORY_MANIFEST, Reply::Bare(manifest));
    let info = check().await;
    assert_eq!((&info["state"], &info["pinned"]), (&json!("disbelieved"), &pinned), "{info}");
    peer.publish(&rotated);
    let info = check().await;
    assert_eq!(info["state"], "sound", "{info}");
    assert_eq!(info["pinned"]["keys"].as_array().unwrap().len(), 2, "{info}");
}

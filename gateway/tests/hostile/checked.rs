//! Where the grants of the wallet stand is looked up by the house itself: once an hour at each granter, whatever comes of it.

use super::status::{LIST, grant};
use super::*;
use oap_gateway::service::Wallet;
use oap_gateway::state::wallet::{CHECKED_EVERY, MAX_CHECKED, MAX_LISTS};
use oap_grants::grant::{StatusIndex, StatusRef};
use oap_grants::{SignedGrant, status};

const SECOND: Duration = Duration::from_secs(1);

/// Looks up what is due; how many lists were asked for.
async fn due(world: &World) -> usize {
    Wallet(&world.gateway).check_due().await.unwrap()
}

/// Takes a grant into the wallet; its hash.
async fn take(world: &World, grant: &SignedGrant) -> String {
    let body = json!({"grant": grant.document()});
    world.owner("POST", "/oap/owner/received", Some(&body)).await.ok();
    grant.hash().to_string()
}

/// Where a grant stands as far as is known, and when that was looked up.
async fn stands(world: &World, hash: &str) -> (String, Option<Timestamp>) {
    let info = get(world, &format!("received/{hash}")).await;
    let checked_at = info["checked_at"].as_str().map(|at| at.parse().unwrap());
    (info["state"].as_str().unwrap().to_owned(), checked_at)
}

fn stood(state: &str, checked_at: Option<Timestamp>) -> (String, Option<Timestamp>) {
    (state.to_owned(), checked_at)
}

/// A list of a signer's at an address, of that time.
fn list(revoked: &[u32], address: &str, signer: &Signer, at: Timestamp) -> Reply {
    Reply::Bare(status::publish(revoked.iter().copied(), address, signer, at).unwrap().into_bytes())
}

/// Has a peer show its list.
fn shows(peer: &PlayedPeer, revoked: &[u32], at: Timestamp) {
    peer.reply(LIST, list(revoked, &format!("{}{LIST}", peer.origin), &peer.signer(1), at));
}

/// How often a peer was asked for its list since the last time.
fn lists(peer: &PlayedPeer) -> usize {
    peer.asked().iter().filter(|asked| asked.path == LIST).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn grants_are_looked_up_once_an_hour() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    let (ends, stays) = (grant(&world, &peer, 7), grant(&world, &peer, 8));
    let (ends, stays) = (take(&world, &ends).await, take(&world, &stays).await);
    let first = world.now();
    shows(&peer, &[6], first);
    // Both are in one list.
    assert_eq!((due(&world).await, lists(&peer)), (1, 1));
    for hash in [&ends, &stays] {
        assert_eq!(stands(&world, hash).await, stood("active", Some(first)));
    }
    // One more of the same granter's has no hour of its own.
    let late = take(&world, &grant(&world, &peer, 9)).await;
    world.clock.advance(CHECKED_EVERY - SECOND);
    shows(&peer, &[6, 7], world.now());
    assert_eq!((due(&world).await, lists(&peer)), (0, 0));
    world.clock.advance(SECOND);
    let second = world.now();
    shows(&peer, &[6, 7], second);
    assert_eq!((due(&world).await, lists(&peer)), (1, 1));
    assert_eq!(stands(&world, &ends).await, stood("revoked", Some(second)));
    assert_eq!(stands(&world, &stays).await, stood("active", Some(second)));
    assert_eq!(stands(&world, &late).await, stood("active", Some(second)));
    // What was revoked is not looked up any more, nor what has ended.
    world.clock.advance(CHECKED_EVERY);
    shows(&peer, &[], world.now());
    assert_eq!((due(&world).await, lists(&peer)), (1, 1));
    assert_eq!(stands(&world, &ends).await, stood("revoked", Some(second)));
    world.clock.advance(DAY);
    assert_eq!((due(&world).await, lists(&peer)), (0, 0));
}

/// What the owner has just looked up is not looked up again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_the_owner_looked_up_waits_for_its_hour() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    let hash = take(&world, &grant(&world, &peer, 7)).await;
    shows(&peer, &[], world.now());
    world.owner("POST", &format!("/oap/owner/received/{hash}/check"), None).await.ok();
    lists(&peer);
    world.clock.advance(CHECKED_EVERY - SECOND);
    assert_eq!((due(&world).await, lists(&peer)), (0, 0));
    world.clock.advance(SECOND);
    shows(&peer, &[7], world.now());
    assert_eq!((due(&world).await, lists(&peer)), (1, 1));
    assert_eq!(stands(&world, &hash).await, stood("revoked", Some(world.now())));
}

/// A list that cannot be had or does not hold leaves everything as it was, and is not asked for again before the next hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_list_that_does_not_hold_changes_nothing() {
    let (trust, elsewhere) = (Trust::new(), inside());
    let world = world(&trust).await;
    let (peer, other) = (peer(&world, &trust).await, peer(&world, &trust).await);
    let hash = take(&world, &grant(&world, &peer, 7)).await;
    let first = world.now();
    shows(&peer, &[], first);
    assert_eq!(due(&world).await, 1);
    lists(&peer);
    let own = format!("{}{LIST}", peer.origin);
    let at = |hours: u32| first.plus(hours * CHECKED_EVERY);
    let cases = [
        ("nothing", Reply::Raw(Vec::new())),
        ("500", Reply::Raw(http("500 Internal Server Error", "", b""))),
        ("cut off", cut_off()),
        ("endless", Reply::Endless),
        ("elsewhere", onward(&elsewhere)),
        ("another's", list(&[7], &own, &other.signer(1), at(6))),
        ("over", list(&[7], &own, &peer.signer(1), at(6))),
    ];
    for (case, reply) in cases {
        world.clock.advance(CHECKED_EVERY);
        peer.reply(LIST, reply);
        assert_eq!(due(&world).await, 1, "{case}");
        assert!(lists(&peer) > 0, "{case}");
        assert_eq!(stands(&world, &hash).await, stood("active", Some(first)), "{case}");
        assert_eq!((due(&world).await, lists(&peer)), (0, 0), "{case}");
    }
    nobody_came(&elsewhere);
    world.clock.advance(CHECKED_EVERY);
    shows(&peer, &[7], world.now());
    assert_eq!(due(&world).await, 1);
    assert_eq!(stands(&world, &hash).await, stood("revoked", Some(world.now())));
}

/// What was looked up by a clock that stood ahead is looked up again by the one that is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_clock_that_stood_ahead_puts_no_look_off() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    let hash = take(&world, &grant(&world, &peer, 7)).await;
    let (start, ahead) = (world.now(), world.now().plus(3 * CHECKED_EVERY));
    world.clock.set(ahead);
    shows(&peer, &[], ahead);
    assert_eq!(due(&world).await, 1);
    assert_eq!(stands(&world, &hash).await, stood("active", Some(ahead)));
    world.clock.set(start);
    shows(&peer, &[7], start);
    lists(&peer);
    // Not before the owner says that it is right.
    assert_eq!((due(&world).await, lists(&peer)), (0, 0));
    world.owner("POST", "/oap/owner/clock/accept", None).await.ok();
    assert_eq!((due(&world).await, lists(&peer)), (1, 1));
    assert_eq!(stands(&world, &hash).await, stood("revoked", Some(start)));
}

/// The attack: a granter whose grants each name a list of its own, at somebody else's host. In an hour that is asked for a few of them; the
/// others have their turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_granter_sends_nobody_many_questions() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let (peer, granter) = (peer(&world, &trust).await, agent(7));
    let mut places = Vec::new();
    for number in 0..=MAX_LISTS {
        let mut terms = grant(&world, &peer, 7).grant().clone();
        terms.granter.principal = granter.did().clone();
        let place = format!("/lists/{number}");
        let uri = format!("{}{place}", peer.origin);
        terms.status = Some(StatusRef { status_list: StatusIndex { idx: 7, uri: uri.clone() } });
        take(&world, &SignedGrant::sign(terms, &granter).unwrap()).await;
        places.push((place, uri));
    }
    let mut asked = Vec::new();
    for _ in 0..2 {
        for (place, uri) in &places {
            peer.reply(place, list(&[], uri, &granter, world.now()));
        }
        peer.asked();
        assert_eq!((due(&world).await, due(&world).await), (MAX_LISTS, 0));
        asked.extend(peer.asked().into_iter().map(|asked| asked.path));
        world.clock.advance(CHECKED_EVERY);
    }
    assert_eq!(asked.len(), 2 * MAX_LISTS, "{asked:?}");
    for (place, _) in &places {
        assert!(asked.contains(place), "{place}: {asked:?}");
    }
}

/// A pass asks so many granters, and the next one the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pass_is_bounded() {
    let trust = Trust::new();
    let world = world(&trust).await;
    let peer = peer(&world, &trust).await;
    for number in 0..=u8::try_from(MAX_CHECKED).unwrap() {
        let granter = agent(number);
        let mut terms = grant(&world, &peer, 7).grant().clone();
        terms.granter.principal = granter.did().clone();
        take(&world, &SignedGrant::sign(terms, &granter).unwrap()).await;
    }
    let passes = [due(&world).await, due(&world).await, due(&world).await];
    assert_eq!(passes, [MAX_CHECKED, 1, 0]);
}

//! What devices gave each other is renewed well before it ends, on both sides, and of those alone that are devices still.

use super::bounds::pair;
use super::*;
use oap_gateway::Config;
use oap_gateway::service::Devices;

/// Id and end of each grant of a party to another that is in force, the first that ends first.
async fn given(party: &Party, to: &Party) -> Vec<(String, String)> {
    let grants = party.world.owner("GET", "/oap/owner/grants", None).await.ok();
    let all = grants["grants"].as_array().unwrap().iter();
    let theirs = all.filter(|info| info["grant"]["grantee"] == to.did.as_str() && info["state"] == "active");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut given: Vec<(String, String)> =
        theirs.map(|info| (text(&info["grant"]["grant_id"]), text(&info["grant"]["expires_at"]))).collect();
    given.sort_by(|one, other| one.1.cmp(&other.1));
    given
}

/// What the server does by itself on both, and the letters that come of it.
async fn turn(one: &Party, two: &Party) {
    for device in [one, two] {
        Devices(&device.world.gateway).sync_due().await.unwrap();
    }
    settle(one, two).await;
}

/// Grants last 180 days, and have a successor after two thirds of it, once; the two go on under that.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_devices_gave_is_renewed_before_it_ends() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let first = (given(&phone, &laptop).await, given(&laptop, &phone).await);
    assert_eq!((first.0.len(), first.1.len()), (1, 1));
    let until = phone.shows(&laptop).await["until"].clone();
    wait(&phone, &laptop, 119 * DAY);
    turn(&phone, &laptop).await;
    assert_eq!((given(&phone, &laptop).await, given(&laptop, &phone).await), first);

    wait(&phone, &laptop, 2 * DAY);
    let end = json!(phone.world.now().plus(180 * DAY));
    for _ in 0..3 {
        turn(&phone, &laptop).await;
        for (one, two, first) in [(&phone, &laptop, &first.0), (&laptop, &phone, &first.1)] {
            let both = given(one, two).await;
            assert_eq!((both.len(), &both[0]), (2, &first[0]), "{both:?}");
            assert_eq!(both[1].1, end.as_str().unwrap());
            let shown = one.shows(two).await;
            assert_eq!((&shown["until"], &shown["grant"]), (&end, &json!(both[1].0)));
            assert!(shown["trouble"].is_null(), "{shown}");
        }
    }
    assert_ne!(until, end);

    // The former ones are over, and nothing is missing.
    wait(&phone, &laptop, 61 * DAY);
    assert_eq!((given(&phone, &laptop).await.len(), given(&laptop, &phone).await.len()), (1, 1));
    let (tea, oil) = (phone.writes("Tea", &[]).await, laptop.writes("Oil", &[]).await);
    assert_eq!(laptop.syncs(&phone).await, (1, Vec::new()));
    assert_eq!(phone.syncs(&laptop).await, (1, Vec::new()));
    assert_eq!(laptop.says(&tea).await.unwrap(), "Tea");
    assert_eq!(phone.says(&oil).await.unwrap(), "Oil");
    for device in [&phone, &laptop] {
        assert_eq!(device.receipts("memory.device_add").await.len(), 1);
        device.world.chains_hold().await;
    }
}

/// Whoever is away for longer than letters are tried is handed the same grant by another letter.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_renewed_is_handed_over_again() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    laptop.set(Mode::Away);
    wait(&phone, &laptop, 121 * DAY);
    let tries = async || {
        Devices(&phone.world.gateway).sync_due().await.unwrap();
        phone.sends().await;
    };
    tries().await;
    let both = given(&phone, &laptop).await;
    assert_eq!(both.len(), 2);
    // The letter is given up.
    wait(&phone, &laptop, 31 * DAY);
    phone.sends().await;
    let waiting = async || {
        let letters = phone.world.owner("GET", "/oap/owner/letters", None).await.ok();
        let letters = letters["letters"].as_array().unwrap().clone();
        letters.iter().filter(|letter| letter["state"] == "waiting").count()
    };
    assert_eq!(waiting().await, 0);
    laptop.set(Mode::Honest);
    tries().await;
    assert_eq!(waiting().await, 0, "not before a day is over");
    wait(&phone, &laptop, DAY + MINUTE);
    tries().await;
    assert_eq!(given(&phone, &laptop).await, both, "it is the same grant");
    // The first one is over, and the laptop asks under the second.
    wait(&phone, &laptop, 29 * DAY);
    let tea = phone.writes("Tea", &[]).await;
    assert_eq!(laptop.syncs(&phone).await, (1, Vec::new()));
    assert_eq!(laptop.says(&tea).await.unwrap(), "Tea");
}

/// A device that was removed is given nothing any more, and what it was given is revoked, what was renewed with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_renewed_of_a_device_that_was_removed() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    wait(&phone, &laptop, 121 * DAY);
    turn(&phone, &laptop).await;
    assert_eq!((given(&phone, &laptop).await.len(), given(&laptop, &phone).await.len()), (2, 2));
    phone.device("/remove", json!({"did": laptop.did})).await.ok();
    assert!(given(&phone, &laptop).await.is_empty());
    settle(&phone, &laptop).await;
    assert_eq!(laptop.shows(&phone).await["state"], "removed");
    for _ in 0..2 {
        wait(&phone, &laptop, 70 * DAY);
        turn(&phone, &laptop).await;
        assert_eq!((given(&phone, &laptop).await.len(), given(&laptop, &phone).await.len()), (0, 0));
    }
}

/// Of two grants of a device that are in force the owner revokes one: it is no device any more, and the other goes with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whose_grant_is_revoked_keeps_no_other() {
    for revoked in [0, 1] {
        let town = Town::new();
        let (phone, laptop) = paired(&town).await;
        wait(&phone, &laptop, 121 * DAY);
        turn(&phone, &laptop).await;
        let (grant, _) = given(&phone, &laptop).await.remove(revoked);
        phone.world.owner("POST", &format!("/oap/owner/grants/{grant}/revoke"), Some(&json!({}))).await.ok();
        assert!(given(&phone, &laptop).await.is_empty());
        assert_eq!(phone.shows(&laptop).await["state"], "removed");
        settle(&phone, &laptop).await;
        assert_eq!(laptop.shows(&phone).await["state"], "removed");
        assert!(given(&laptop, &phone).await.is_empty());
    }
}

/// What a grant that is used up leaves out comes with the one that renews it, where that has room; on a page without news, too, a device says
/// that its grant is used up.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_left_out_comes_with_the_renewal() {
    let town = Town::new();
    let small = Config { max_grant_items: 2, ..Config::default() };
    let (phone, laptop) = (town.party_with(11, small).await, town.party(12).await);
    pair(&phone, &laptop).await;
    let items = phone.world.capture(&[note("One", &[]), note("Two", &[]), note("Three", &[])]).await;
    assert_eq!(laptop.syncs(&phone).await, (2, Vec::new()));
    let full = async || laptop.shows(&phone).await["full"].clone();
    assert_eq!(full().await, true);
    assert_eq!(laptop.syncs(&phone).await, (0, Vec::new()));
    assert_eq!(full().await, true);
    phone.erases(&items[0]).await;
    assert_eq!(laptop.syncs(&phone).await, (1, Vec::new()));
    wait(&phone, &laptop, 121 * DAY);
    turn(&phone, &laptop).await;
    laptop.syncs(&phone).await;
    assert_eq!(laptop.says(&items[0]).await, None);
    assert_eq!(laptop.says(&items[1]).await.unwrap(), "Two");
    assert_eq!(laptop.says(&items[2]).await.unwrap(), "Three");
}

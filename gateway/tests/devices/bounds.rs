//! What travels, and what stays where it is.

use super::*;

/// Captured with more members than text and labels.
async fn write(party: &Party, text: &str, members: Value) -> String {
    let mut item = note(text, &[]);
    for (name, value) in members.as_object().unwrap() {
        item[name] = value.clone();
    }
    party.world.capture(&[item]).await.remove(0)
}

/// What may not leave, what an agent keeps to itself and what waits for the owner stays; what is restricted travels, for it is its owner's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_travels_and_what_stays() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let scout = json!({"name": "scout", "permission": "memory.write"});
    phone.world.owner("POST", "/oap/owner/agents", Some(&scout)).await.ok();
    let learn = async |scope: &str| {
        let call = json!({"tool": "memory_learn", "arguments": {
            "content": format!("Learned {scope}"), "kind": "fact", "scope": scope, "confidence": 0.8, "level": "tool_verified",
        }});
        let learned = phone.world.owner("POST", "/oap/owner/agents/scout/call", Some(&call)).await.ok();
        learned["structured"]["item_id"].as_str().unwrap().to_owned()
    };
    let stays = [
        write(&phone, "Not for export", json!({"exportable": false})).await,
        learn("private").await,
        learn("local").await,
        learn("shared").await,
    ];
    let travels = [
        write(&phone, "Restricted", json!({"sensitivity": "restricted"})).await,
        write(&phone, "Of the week", json!({"ttl_days": 7})).await,
    ];
    // The owner's correction of a private note of an agent's is that agent's alone still.
    phone.corrects(&stays[1], "The owner's word on it").await;
    assert_eq!(laptop.syncs(&phone).await, (2, Vec::new()));
    for item in &travels {
        assert_eq!(laptop.stands(item).await, phone.stands(item).await);
    }
    for item in &stays {
        laptop.item(item).await.refused(404, "not_found");
    }
    // What the owner says yes to is the owner's.
    phone.does("confirm", &stays[3], Some(json!({"version": 1}))).await.ok();
    assert_eq!(laptop.syncs(&phone).await, (1, Vec::new()));
    assert_eq!(laptop.says(&stays[3]).await.unwrap(), "Learned shared");
    // It ends on both, each by itself.
    wait(&phone, &laptop, 8 * DAY);
    for device in [&phone, &laptop] {
        oap_gateway::service::Deletions(&device.world.gateway).sweep().await.unwrap();
        assert_eq!(device.says(&travels[1]).await, None);
    }
    assert_eq!(laptop.syncs(&phone).await, (0, Vec::new()));
}

/// A hold keeps on one what the other erased, out of every view, until it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_held_is_erased_when_its_hold_ends() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = phone.writes("Evidence", &[]).await;
    laptop.syncs(&phone).await;
    let hold = json!({"items": [item], "reason": "legal_hold", "until": laptop.world.now().plus(2 * DAY)});
    laptop.world.owner("POST", "/oap/owner/holds", Some(&hold)).await.ok();
    phone.erases(&item).await;
    let (taken, left) = laptop.syncs(&phone).await;
    assert_eq!((taken, &left[0]["why"]), (0, &json!("conflict")));
    assert_eq!(laptop.stands(&item).await[2], "retracted");
    wait(&phone, &laptop, 3 * DAY);
    oap_gateway::service::Deletions(&laptop.world.gateway).sweep().await.unwrap();
    assert_eq!(laptop.says(&item).await, None);
    // The phone is told, and knows it.
    assert_eq!(phone.syncs(&laptop).await, (0, Vec::new()));
}

/// Makes two gateways devices of each other.
pub async fn pair(one: &Party, two: &Party) {
    one.adds(two).await;
    two.adds(one).await;
    settle(one, two).await;
    let code = one.shows(two).await["code"].clone();
    for (here, there) in [(one, two), (two, one)] {
        here.device("/confirm", json!({"did": there.did, "code": code})).await.ok();
    }
    settle(one, two).await;
}

/// Three that are devices of each other: what one has by way of another was never shown to it by the third. It is erased on both all the same,
/// with nobody between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_in_a_ring() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let tablet = town.party(13).await;
    pair(&tablet, &laptop).await;
    pair(&tablet, &phone).await;
    let (tea, coffee) = (phone.writes("Tea", &[]).await, phone.writes("Coffee", &[]).await);
    laptop.syncs(&phone).await;
    tablet.syncs(&laptop).await;
    assert_eq!(tablet.syncs(&phone).await, (0, Vec::new()), "it has them by now");
    assert_eq!(phone.syncs(&tablet).await, (0, Vec::new()));
    tablet.erases(&tea).await;
    assert_eq!(phone.syncs(&tablet).await, (1, Vec::new()));
    phone.erases(&coffee).await;
    assert_eq!(tablet.syncs(&phone).await, (1, Vec::new()));
    for device in [&phone, &tablet] {
        for item in [&tea, &coffee] {
            assert_eq!(device.says(item).await, None);
        }
        device.world.chains_hold().await;
    }
}

/// Three devices in a row: what is written at one end arrives at the other, and what is erased is gone everywhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_in_a_row() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let tablet = town.party(13).await;
    pair(&tablet, &laptop).await;
    let item = phone.writes("Tea", &[]).await;
    laptop.syncs(&phone).await;
    tablet.syncs(&laptop).await;
    let came = tablet.item(&item).await.ok();
    assert_eq!(came["item"]["extensions"]["dev.oap-memory.device"]["device"], phone.did.as_str(), "{came}");
    for party in [&phone, &laptop, &tablet] {
        party.world.clock.advance(MINUTE);
    }
    tablet.corrects(&item, "Coffee").await;
    laptop.syncs(&tablet).await;
    phone.syncs(&laptop).await;
    assert_eq!(phone.says(&item).await.unwrap(), "Coffee");
    phone.erases(&item).await;
    laptop.syncs(&phone).await;
    tablet.syncs(&laptop).await;
    for party in [&phone, &laptop, &tablet] {
        assert_eq!(party.says(&item).await, None);
    }
}

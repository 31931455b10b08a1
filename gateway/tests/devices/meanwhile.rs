//! What the owner does while something of a device's is taken over, after the look at the item and before the transaction: that reads again
//! whether the item is kept in step, and whether the device is one.

use super::*;
use oap_gateway::service::{Devices, Items};
use oap_identity::{Did, ItemId};
use oap_memory::chain::Event;

/// What the phone did, which the laptop takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Erased,
    TakenBack,
    Corrected,
    Written,
}

/// What is done on the laptop meanwhile.
#[derive(Debug, Clone, Copy)]
enum Here {
    /// The item may not leave any more.
    Kept,
    /// The phone is removed.
    Removed,
}

/// Two devices of which one did something, and the item that it is of.
async fn told(town: &Town, there: There) -> (Party, Party, String) {
    let (phone, laptop) = paired(town).await;
    let item = phone.writes("Tea", &["tea"]).await;
    if there == There::Written {
        return (phone, laptop, item);
    }
    laptop.syncs(&phone).await;
    wait(&phone, &laptop, MINUTE);
    match there {
        There::Erased => phone.erases(&item).await,
        There::TakenBack => drop(phone.does("retract", &item, None).await.ok()),
        There::Corrected => phone.corrects(&item, "Coffee").await,
        There::Written => {}
    }
    (phone, laptop, item)
}

/// The laptop asks the phone; what is done here meanwhile is in the writer's hands before anything of the phone's is, and was not when the
/// laptop looked at the item.
async fn asks(phone: &Party, laptop: &Party, item: &str, here: Here) {
    let owner = laptop.world.proved().await;
    let (gateway, item): (_, ItemId) = (laptop.world.gateway.clone(), item.parse().unwrap());
    let did: Did = phone.did.parse().unwrap();
    let gate = &laptop.world.clock.gate;
    gate.close();
    let done = tokio::spawn(async move {
        match here {
            Here::Kept => {
                let change = json!({"exportable": false});
                Items(&gateway).correct(&owner, item, change, None, Event::Correct).await.map(drop)
            }
            Here::Removed => Devices(&gateway).remove(&owner, did).await,
        }
    });
    while !gate.waits() {
        tokio::task::yield_now().await;
    }
    let gateway = laptop.world.gateway.clone();
    let asks = tokio::spawn(async move { Devices(&gateway).sync_due().await });
    laptop.world.writes_wait(1).await;
    gate.open();
    done.await.unwrap().unwrap();
    asks.await.unwrap().unwrap();
}

/// An item that is not kept in step any more is left as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_made_private_meanwhile_is_left() {
    for there in [There::Erased, There::TakenBack, There::Corrected] {
        let town = Town::new();
        let (phone, laptop, item) = told(&town, there).await;
        asks(&phone, &laptop, &item, Here::Kept).await;
        assert_eq!(laptop.stands(&item).await, json!(["Tea", ["tea"], "current"]), "{there:?}");
        assert_eq!(laptop.item(&item).await.ok()["item"]["exportable"], false, "{there:?}");
        let shown = laptop.shows(&phone).await;
        assert_eq!((&shown["left"], &shown["state"]), (&json!(1), &json!("active")), "{there:?}");
        laptop.world.chains_hold().await;
    }
}

/// Nothing of a device has an effect once it is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_device_said_that_is_removed_meanwhile_is_not_taken() {
    for there in [There::Erased, There::TakenBack, There::Corrected, There::Written] {
        let town = Town::new();
        let (phone, laptop, item) = told(&town, there).await;
        asks(&phone, &laptop, &item, Here::Removed).await;
        if there == There::Written {
            laptop.item(&item).await.refused(404, "not_found");
        } else {
            assert_eq!(laptop.stands(&item).await, json!(["Tea", ["tea"], "current"]), "{there:?}");
        }
        assert_eq!(laptop.shows(&phone).await["state"], "removed", "{there:?}");
        laptop.world.chains_hold().await;
    }
}

//! Two gateways of one owner, over loopback by TLS: paired with a yes on both sides, and in step from then on, whatever was done on either
//! while the other was away.

mod attacks;
mod bounds;
mod meanwhile;
mod renewed;

use crate::common::*;
use crate::federated::party::{Mode, Party, Town};
use crate::letters::until;
use crate::program::{Home, read};
use oap_gateway::service::{Devices, Letters};
use serde_json::{Value, json};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);

/// What a device does and says.
impl Party {
    async fn device(&self, what: &str, body: Value) -> Answer {
        self.world.owner("POST", &format!("/oap/owner/devices{what}"), Some(&body)).await
    }

    async fn adds(&self, other: &Self) -> Value {
        self.device("", json!({"did": other.did})).await.ok()
    }

    async fn shows(&self, other: &Self) -> Value {
        self.device("/show", json!({"did": other.did})).await.ok()
    }

    /// Asks the other until it has no more to tell; how many changes were taken over, and what was left.
    async fn syncs(&self, other: &Self) -> (u64, Vec<Value>) {
        let (mut taken, mut left) = (0, Vec::new());
        loop {
            let report = self.device("/sync", json!({"did": other.did})).await.ok();
            assert!(report["trouble"].is_null(), "{report}");
            taken += report["taken"].as_u64().unwrap();
            left.extend(report["left"].as_array().unwrap().clone());
            if report["more"] == false {
                return (taken, left);
            }
        }
    }

    /// Why asking the other comes to nothing.
    async fn fails_to_sync(&self, other: &Self) -> String {
        let report = self.device("/sync", json!({"did": other.did})).await.ok();
        report["trouble"].as_str().unwrap_or_else(|| panic!("{report}")).to_owned()
    }

    async fn writes(&self, text: &str, labels: &[&str]) -> String {
        self.world.capture(&[note(text, labels)]).await.remove(0)
    }

    async fn does(&self, what: &str, item: &str, body: Option<Value>) -> Answer {
        self.world.owner("POST", &format!("/oap/owner/items/{item}/{what}"), body.as_ref()).await
    }

    async fn corrects(&self, item: &str, text: &str) {
        self.does("correct", item, Some(json!({"item": {"content": {"text": text}}}))).await.ok();
    }

    async fn erases(&self, item: &str) {
        self.world.owner("POST", "/oap/data/delete", Some(&json!({"items": [item]}))).await.ok();
    }

    async fn item(&self, item: &str) -> Answer {
        self.world.owner("GET", &format!("/oap/owner/items/{item}"), None).await
    }

    /// What an item says; `None` where it says nothing.
    async fn says(&self, item: &str) -> Option<String> {
        let shown = self.item(item).await;
        shown.body["item"]["content"]["text"].as_str().map(str::to_owned)
    }

    /// Text, labels and status of an item.
    async fn stands(&self, item: &str) -> Value {
        let shown = self.item(item).await.ok();
        let item = &shown["item"];
        json!([item["content"]["text"], item["labels"], item["status"]])
    }

    /// Every text that is kept of an item, the one in force last.
    async fn kept(&self, item: &str) -> Vec<String> {
        let shown = self.item(item).await.ok();
        let former = shown["superseded"].as_array().cloned().unwrap_or_default();
        let texts = former.iter().chain([&shown["item"]]);
        texts.map(|version| version["content"]["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    async fn links(&self, item: &str) -> usize {
        self.item(item).await.ok()["chain"].as_array().unwrap().len()
    }

    /// The receipts of an action.
    async fn receipts(&self, action: &str) -> Vec<Value> {
        let audit = self.world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
        let all = audit["receipts"].as_array().unwrap().clone();
        all.into_iter().filter(|receipt| receipt["action_id"] == action).collect()
    }

    async fn sends(&self) {
        Letters(&self.world.gateway).send_due().await.unwrap();
    }
}

/// Lets both send their letters until nobody has one to send.
pub async fn settle(one: &Party, two: &Party) {
    for _ in 0..4 {
        one.sends().await;
        two.sends().await;
    }
}

/// Both clocks go on.
fn wait(one: &Party, two: &Party, by: Duration) {
    one.world.clock.advance(by);
    two.world.clock.advance(by);
}

/// Two gateways whose owner wants them for devices of each other, and has a code on both.
pub async fn compared(town: &Town) -> (Party, Party, String) {
    let (phone, laptop) = (town.party(11).await, town.party(12).await);
    assert_eq!(phone.adds(&laptop).await["state"], "asked");
    laptop.adds(&phone).await;
    settle(&phone, &laptop).await;
    let (here, there) = (phone.shows(&laptop).await, laptop.shows(&phone).await);
    assert_eq!((&here["state"], &there["state"]), (&json!("compare"), &json!("compare")));
    let code = here["code"].as_str().unwrap().to_owned();
    assert_eq!(there["code"], code.as_str(), "both show the same");
    (phone, laptop, code)
}

/// Two devices.
async fn paired(town: &Town) -> (Party, Party) {
    let (phone, laptop, code) = compared(town).await;
    let yes = |other: &Party| json!({"did": other.did, "code": code});
    assert_eq!(phone.device("/confirm", yes(&laptop)).await.ok()["state"], "waits");
    settle(&phone, &laptop).await;
    // The grant came, and without a yes here it is nothing.
    assert_eq!(laptop.shows(&phone).await["state"], "compare");
    laptop.device("/sync", json!({"did": phone.did})).await.refused(404, "not_found");
    laptop.device("/confirm", yes(&phone)).await.ok();
    settle(&phone, &laptop).await;
    for (one, two) in [(&phone, &laptop), (&laptop, &phone)] {
        assert_eq!(one.shows(two).await["state"], "active");
        assert_eq!(one.receipts("memory.device_add").await.len(), 1);
    }
    (phone, laptop)
}

/// What is written on one is on the other, under its id and with where it came from; and what is done to it there comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_done_on_one_is_done_on_the_other() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let before = phone.writes("Tea in the morning", &["tea"]).await;
    assert_eq!(laptop.syncs(&phone).await, (1, Vec::new()));
    assert_eq!(laptop.stands(&before).await, json!(["Tea in the morning", ["tea"], "current"]));
    let came = laptop.item(&before).await.ok();
    assert_eq!(
        came["item"]["extensions"]["dev.oap-memory.device"],
        json!({"device": phone.did, "item_id": before})
    );
    // The chain is this gateway's own, from its first link on.
    assert_eq!(came["chain"][0]["actor"], laptop.did.as_str());

    wait(&phone, &laptop, MINUTE);
    laptop.corrects(&before, "Tea at noon").await;
    laptop.does("relabel", &before, Some(json!({"labels": ["noon", "tea"]}))).await.ok();
    let after = laptop.writes("The car needs oil", &["car"]).await;
    assert_eq!(phone.syncs(&laptop).await, (2, Vec::new()));
    assert_eq!(phone.stands(&before).await, json!(["Tea at noon", ["noon", "tea"], "current"]));
    assert_eq!(phone.stands(&after).await, json!(["The car needs oil", ["car"], "current"]));

    wait(&phone, &laptop, MINUTE);
    phone.does("retract", &after, None).await.ok();
    phone.corrects(&before, "No tea").await;
    assert_eq!(laptop.syncs(&phone).await.0, 2);
    assert_eq!(laptop.stands(&after).await[2], "retracted");
    assert_eq!(laptop.says(&before).await.unwrap(), "No tea");
    // What its owner says on the phone comes from there, though the item came from elsewhere before.
    assert!(phone.item(&before).await.ok()["item"]["extensions"]["dev.oap-memory.device"].is_null());

    wait(&phone, &laptop, MINUTE);
    laptop.does("restore", &after, None).await.ok();
    laptop.erases(&before).await;
    assert_eq!(phone.syncs(&laptop).await.0, 2);
    assert_eq!(phone.stands(&after).await[2], "current");
    assert_eq!(phone.says(&before).await, None);

    // Nobody tells the other what it said itself.
    let links = (phone.links(&after).await, laptop.links(&after).await);
    for _ in 0..3 {
        assert_eq!((phone.syncs(&laptop).await.0, laptop.syncs(&phone).await.0), (0, 0));
    }
    assert_eq!((phone.links(&after).await, laptop.links(&after).await), links);

    for (one, two) in [(&phone, &laptop), (&laptop, &phone)] {
        // Told and taken over: each has its receipt, and the taker's names the teller's.
        let synced = one.receipts("memory.device_sync").await;
        let told: Vec<&Value> =
            synced.iter().filter(|receipt| receipt["agent_did"] == two.did.as_str()).collect();
        let theirs = two.receipts("memory.device_sync").await;
        let taken = theirs.iter().filter(|receipt| receipt["agent_did"] == two.did.as_str());
        for taken in taken {
            let named = &taken["policy_decisions"][0]["told_by"];
            let teller = told.iter().find(|receipt| receipt["receipt_id"] == *named);
            assert_eq!(teller.unwrap()["output_hash"], taken["output_hash"], "{taken}");
        }
        assert!(!told.is_empty());
        assert!(one.lies().await.is_empty());
        one.world.chains_hold().await;
    }
}

/// Both corrected the same: the later is in force on both, whoever hears first, and what lost is kept in the chain.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_correction_is_in_force_and_both_are_kept() {
    for phone_is_later in [false, true] {
        for phone_hears_first in [false, true] {
            let town = Town::new();
            let (phone, laptop) = paired(&town).await;
            let item = phone.writes("Tea", &[]).await;
            laptop.syncs(&phone).await;
            let (first, second) = if phone_is_later { (&laptop, &phone) } else { (&phone, &laptop) };
            wait(&phone, &laptop, MINUTE);
            first.corrects(&item, "Coffee").await;
            wait(&phone, &laptop, MINUTE);
            second.corrects(&item, "Water").await;
            let (one, two) = if phone_hears_first { (&phone, &laptop) } else { (&laptop, &phone) };
            for (to, from) in [(one, two), (two, one), (one, two)] {
                to.syncs(from).await;
            }
            for device in [&phone, &laptop] {
                assert_eq!(
                    device.says(&item).await.unwrap(),
                    "Water",
                    "{phone_is_later} {phone_hears_first}"
                );
                device.world.chains_hold().await;
            }
            // Who was overruled has both; who was not has the other's too, where it heard of it before.
            let kept = first.kept(&item).await;
            assert!(kept.contains(&"Coffee".to_owned()) && kept.contains(&"Water".to_owned()), "{kept:?}");
            let second_heard_first = std::ptr::eq(one, second);
            assert_eq!(second.kept(&item).await.contains(&"Coffee".to_owned()), second_heard_first);
            assert_eq!((one.syncs(two).await.0, two.syncs(one).await.0), (0, 0));
        }
    }
}

/// Said in the same millisecond: both come to the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tie_is_broken_alike() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = phone.writes("Tea", &[]).await;
    laptop.syncs(&phone).await;
    wait(&phone, &laptop, MINUTE);
    phone.corrects(&item, "Coffee").await;
    laptop.corrects(&item, "Water").await;
    for _ in 0..2 {
        phone.syncs(&laptop).await;
        laptop.syncs(&phone).await;
    }
    let greater = if phone.did > laptop.did { "Coffee" } else { "Water" };
    assert_eq!(phone.says(&item).await.unwrap(), greater);
    assert_eq!(laptop.says(&item).await.unwrap(), greater);
}

/// Labels and words are parts of their own: what was done to one does not undo what was done to the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn other_labels_undo_no_correction() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = phone.writes("Tea", &["drink"]).await;
    laptop.syncs(&phone).await;
    wait(&phone, &laptop, MINUTE);
    phone.corrects(&item, "Coffee").await;
    wait(&phone, &laptop, MINUTE);
    laptop.does("relabel", &item, Some(json!({"labels": ["hot"]}))).await.ok();
    for _ in 0..2 {
        phone.syncs(&laptop).await;
        laptop.syncs(&phone).await;
    }
    for device in [&phone, &laptop] {
        assert_eq!(device.stands(&item).await, json!(["Coffee", ["hot"], "current"]));
    }
}

/// A week apart: everything that happened meanwhile arrives, more than one list of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_week_offline() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let (kept, gone) = (phone.writes("Kept", &[]).await, phone.writes("Gone", &[]).await);
    laptop.syncs(&phone).await;
    phone.set(Mode::Away);
    let mut written = Vec::new();
    for day in 0..7 {
        wait(&phone, &laptop, DAY);
        let notes: Vec<Value> = (0..20).map(|n| note(&format!("Day {day}, note {n}"), &["diary"])).collect();
        written.extend(phone.world.capture(&notes).await);
        assert!(laptop.fails_to_sync(&phone).await.starts_with("unreachable: "));
    }
    let trouble = laptop.shows(&phone).await["trouble"].clone();
    assert_eq!(trouble["times"], 7, "{trouble}");
    laptop.corrects(&kept, "Kept on the laptop").await;
    phone.erases(&gone).await;
    phone.set(Mode::Honest);
    // That there was no document is remembered for half a minute.
    wait(&phone, &laptop, MINUTE);
    assert_eq!(laptop.syncs(&phone).await.0, 141);
    assert_eq!(phone.syncs(&laptop).await.0, 1);
    for device in [&phone, &laptop] {
        for item in &written {
            assert!(device.says(item).await.unwrap().starts_with("Day "));
        }
        assert_eq!(device.says(&kept).await.unwrap(), "Kept on the laptop");
        assert_eq!(device.says(&gone).await, None);
        device.world.chains_hold().await;
    }
    assert!(laptop.shows(&phone).await.get("trouble").is_none());
    assert_eq!((laptop.syncs(&phone).await.0, phone.syncs(&laptop).await.0), (0, 0));
}

/// What was there before there were devices comes along, what was erased on one while the other did not know it does not come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_there_before_comes_along() {
    let town = Town::new();
    let (phone, laptop, code) = compared(&town).await;
    let old = phone.writes("Old", &["a"]).await;
    wait(&phone, &laptop, MINUTE);
    phone.corrects(&old, "Old and mended").await;
    let taken_back = phone.writes("Taken back", &[]).await;
    phone.does("retract", &taken_back, None).await.ok();
    for (one, two) in [(&phone, &laptop), (&laptop, &phone)] {
        one.device("/confirm", json!({"did": two.did, "code": code})).await.ok();
    }
    settle(&phone, &laptop).await;
    assert_eq!(laptop.syncs(&phone).await, (1, Vec::new()));
    assert_eq!(laptop.says(&old).await.unwrap(), "Old and mended");
    assert_eq!(laptop.says(&taken_back).await, None);
    laptop.item(&taken_back).await.refused(404, "not_found");
    // Put back, it comes.
    phone.does("restore", &taken_back, None).await.ok();
    laptop.syncs(&phone).await;
    assert_eq!(laptop.says(&taken_back).await.unwrap(), "Taken back");
}

/// The server asks by itself, and less often whoever does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_server_asks_by_itself() {
    use oap_gateway::service::Devices;
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = phone.writes("Tea", &[]).await;
    assert_eq!(Devices(&laptop.world.gateway).sync_due().await.unwrap(), 1);
    assert_eq!(laptop.says(&item).await.unwrap(), "Tea");
    assert!(laptop.shows(&phone).await["synced_at"].is_string());
    phone.set(Mode::Away);
    let times = async |expected: u64| {
        Devices(&laptop.world.gateway).sync_due().await.unwrap();
        assert_eq!(laptop.shows(&phone).await["trouble"]["times"], expected);
    };
    times(1).await;
    wait(&phone, &laptop, MINUTE);
    times(2).await;
    // The second time in vain: it waits.
    times(2).await;
    wait(&phone, &laptop, MINUTE);
    times(3).await;
}

/// The real program on both sides: `device add` on both, the code compared, and what one is told the other knows.
#[test]
fn the_program_keeps_two_in_step() {
    let (mut phone, mut laptop) = (Home::web(), Home::web());
    // Each makes its certificate when it first serves.
    for home in [&phone, &laptop] {
        home.serve(&[]).stop();
    }
    let flags = |other: &Home| {
        let authority = other.home().join("tls/cert.pem").to_string_lossy().into_owned();
        vec!["--trust-ca".to_owned(), authority, "--allow-local-dids".to_owned()]
    };
    (phone.flags, laptop.flags) = (flags(&laptop), flags(&phone));
    let (_at_phone, at_laptop) = (phone.serve(&[]), laptop.serve(&[]));
    let did = |home: &Home| read(home.home().join("did.json"))["id"].as_str().unwrap().to_owned();
    let (phones, laptops) = (did(&phone), did(&laptop));
    phone.run(&["device", "show", &laptops]).failed(1, "no such device");
    assert!(phone.run(&["device", "add", &laptops]).ok().contains("asked"));
    phone.run(&["device", "add", &laptops, "--code", "1234-5678"]).failed(3, "no code to compare");
    phone.run(&["device", "add", &laptops, "--code", "12345"]).failed(2, "8 digits");
    laptop.run(&["device", "add", &phones]).ok();
    let code = |home: &Home, other: &str| {
        until(|| {
            let shown = home.run(&["device", "show", other, "--json"]).json();
            shown["code"].as_str().map(str::to_owned)
        })
    };
    let shown = code(&phone, &laptops);
    assert_eq!(code(&laptop, &phones), shown);
    phone.run(&["device", "add", &laptops, "--code", &shown]).ok();
    laptop.run(&["device", "add", &phones, "--code", &shown]).ok();
    for (home, other) in [(&phone, &laptops), (&laptop, &phones)] {
        until(|| home.run(&["device", "show", other]).ok().contains("active").then_some(()));
    }
    phone.run(&["item", "add", "--kind", "fact", "--text", "The boiler is in the cellar"]).ok();
    let synced = laptop.run(&["device", "sync", &phones, "--json"]).json();
    assert_eq!(synced["left"], json!([]), "{synced}");
    let found = laptop.run(&["search", "boiler", "--json"]).json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
    // Nobody there: it says so, and goes on later.
    at_laptop.kill();
    phone.run(&["device", "sync", &laptops]).failed(1, "unreachable");
    assert!(phone.run(&["device", "list"]).ok().contains("unreachable"));
    phone.run(&["device", "remove", &laptops]).ok();
    assert!(phone.run(&["device", "list"]).ok().contains("removed"));
    phone.run(&["audit", "verify"]).ok();
}

/// A key that a device changed between two lists is no lie: what is remembered of it is looked up anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_key_of_a_device_is_no_lie() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    let item = phone.writes("Tea", &[]).await;
    laptop.syncs(&phone).await;
    wait(&phone, &laptop, MINUTE);
    phone.corrects(&item, "Coffee").await;
    phone.world.owner("POST", "/oap/owner/keys/rotate", Some(&json!({}))).await.ok();
    assert_eq!(laptop.syncs(&phone).await.0, 1);
    assert_eq!(laptop.says(&item).await.unwrap(), "Coffee");
    assert!(laptop.lies().await.is_empty());
}

/// A device that could not be asked while the clock stood ahead is asked by the one that is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_clock_that_stood_ahead_puts_no_device_off() {
    let town = Town::new();
    let (phone, laptop) = paired(&town).await;
    phone.writes("Tea", &[]).await;
    let start = laptop.world.now();
    laptop.world.clock.set(start.plus(10 * DAY));
    phone.set(Mode::Away);
    Devices(&laptop.world.gateway).sync_due().await.unwrap();
    assert_eq!(laptop.shows(&phone).await["trouble"]["times"], 1);
    phone.set(Mode::Honest);
    laptop.world.clock.set(start);
    laptop.world.owner("POST", "/oap/owner/clock/accept", None).await.ok();
    assert_eq!(Devices(&laptop.world.gateway).sync_due().await.unwrap(), 1);
}

//! The same with the real program: three gateways over TLS, killed with SIGKILL at any time, also while an owner's act is under way. What was
//! acknowledged holds from then on; and in the end what one wrote down is what the others have of it.

use super::model::text;
use super::wire::HOUSES;
use crate::interleavings::Dice;
use crate::program::{Home, Server, read};
use oap_gateway::client::{Caller, HomeClient};
use oap_gateway::system::clock::SystemClock;
use oap_gateway::system::home;
use oap_identity::Clock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Random acts of one history.
const ACTS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kill,
    Write,
    Ask,
    Approve,
    Revoke,
    Delete,
    Recall,
}

/// As often as each is there.
const KINDS: [Kind; 12] = [
    Kind::Kill,
    Kind::Write,
    Kind::Write,
    Kind::Ask,
    Kind::Ask,
    Kind::Approve,
    Kind::Approve,
    Kind::Approve,
    Kind::Revoke,
    Kind::Delete,
    Kind::Recall,
    Kind::Recall,
];

struct Gateways {
    homes: Vec<Home>,
    dids: Vec<String>,
    /// Those that run.
    servers: Vec<Option<Server>>,
    /// Whether none is killed while an act is under way.
    steady: bool,
    /// What was said to be done.
    revoked: BTreeSet<String>,
    deleted: BTreeMap<String, (usize, String)>,
    numbers: u32,
}

async fn owner(home: &Home) -> Option<HomeClient> {
    HomeClient::connect(home::Home::new(home.home()), &BTreeMap::new(), Caller::default()).await.ok()
}

/// An owner's request; nothing where the gateway was killed meanwhile.
async fn ask(home: &Home, method: &str, path: &str, body: Option<&Value>) -> Option<Value> {
    owner(home).await?.call(method, path, &[], body).await.ok()
}

async fn get(home: &Home, path: &str) -> Value {
    ask(home, "GET", path, None).await.unwrap_or_else(|| panic!("no answer: {path}"))
}

/// Waits for a first row: letters have their times, which are the machine's here.
async fn until(home: &Home, path: &str, name: &str) {
    for _ in 0..900 {
        if rows(&get(home, path).await, name).next().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nothing came: {path}");
}

fn rows<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of[name].as_array().unwrap_or_else(|| panic!("no {name}: {of}")).iter()
}

impl Gateways {
    fn new() -> Self {
        let mut homes: Vec<Home> = (0..HOUSES).map(|_| Home::web()).collect();
        let mut authorities = String::new();
        for home in &homes {
            // Its certificate is made by its first start.
            home.serve(&[]).stop();
            authorities += &std::fs::read_to_string(home.home().join("tls/cert.pem")).unwrap();
        }
        for home in &mut homes {
            let file = home.path("authorities.pem");
            std::fs::write(&file, &authorities).unwrap();
            home.flags = vec!["--trust-ca".into(), file, "--allow-local-dids".into()];
        }
        let dids =
            homes.iter().map(|home| text(&read(home.home().join("did.json"))["id"]).to_owned()).collect();
        let servers = homes.iter().map(|home| Some(home.serve(&[]))).collect();
        let (revoked, deleted) = (BTreeSet::new(), BTreeMap::new());
        Self { homes, dids, servers, steady: true, revoked, deleted, numbers: 0 }
    }

    fn kill(&mut self, who: usize) {
        if let Some(server) = self.servers[who].take() {
            server.kill();
        }
    }

    fn serve(&mut self, who: usize) {
        if self.servers[who].is_none() {
            self.servers[who] = Some(self.homes[who].serve(&[]));
        }
    }

    /// An act of an owner's; now and then its gateway is killed while it is under way, and nobody knows what came of it.
    async fn act(&mut self, dice: &mut Dice, who: usize, path: &str, body: &Value) -> Option<Value> {
        if self.steady || dice.roll(6) > 0 {
            return ask(&self.homes[who], "POST", path, Some(body)).await;
        }
        let server = self.servers[who].take();
        let killed = tokio::task::spawn_blocking(move || {
            if let Some(server) = server {
                server.kill();
            }
        });
        let (answer, killed) = tokio::join!(ask(&self.homes[who], "POST", path, Some(body)), killed);
        killed.unwrap();
        self.serve(who);
        answer
    }

    /// Everybody has something, and was granted to read what the next one has.
    async fn begins(&mut self, dice: &mut Dice) {
        for by in 0..HOUSES {
            self.step(dice, Kind::Write, by, by).await;
            self.step(dice, Kind::Ask, by, (by + 1) % HOUSES).await;
        }
        for by in 0..HOUSES {
            until(&self.homes[by], "/oap/owner/inbox", "asks").await;
            self.step(dice, Kind::Approve, by, by).await;
        }
        for by in 0..HOUSES {
            until(&self.homes[by], "/oap/owner/received", "received").await;
            self.recall(by).await;
        }
    }

    async fn random(&mut self, dice: &mut Dice) {
        let by = dice.roll(HOUSES);
        let other = (by + 1 + dice.roll(HOUSES - 1)) % HOUSES;
        let kind = KINDS[dice.roll(KINDS.len())];
        self.step(dice, kind, by, other).await;
    }

    async fn step(&mut self, dice: &mut Dice, kind: Kind, by: usize, other: usize) {
        if kind == Kind::Kill {
            return self.kill(by);
        }
        self.serve(by);
        self.numbers += 1;
        match kind {
            Kind::Write => {
                let content = json!({"text": format!("Tea number {} of {by}", self.numbers)});
                let item = json!({"kind": "fact", "content": content, "labels": ["shared"]});
                self.act(dice, by, "/oap/owner/items", &json!({"items": [item]})).await;
            }
            Kind::Ask => {
                let until = SystemClock.now().plus(Duration::from_secs(30 * 86_400));
                let ask = json!({
                    "purpose": format!("Ask {}", self.numbers), "filter": {"labels_any": ["shared"]},
                    "max_items": 100, "expires_at": until, "operations": ["query"],
                    "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
                });
                let new = json!({"from": self.dids[other], "ask": ask});
                self.act(dice, by, "/oap/owner/asked", &new).await;
            }
            Kind::Approve => {
                let inbox = get(&self.homes[by], "/oap/owner/inbox").await;
                let pending = rows(&inbox, "asks").find(|ask| ask["state"] == "pending").cloned();
                if let Some(task) = pending {
                    let path = format!("/oap/owner/inbox/{}/approve", text(&task["task"]));
                    self.act(dice, by, &path, &task["proposal"]).await;
                }
            }
            Kind::Revoke => {
                let grants = get(&self.homes[by], "/oap/owner/grants").await;
                let active = rows(&grants, "grants").find(|grant| grant["state"] == "active").cloned();
                if let Some(grant) = active {
                    let path = format!("/oap/owner/grants/{}/revoke", text(&grant["grant"]["grant_id"]));
                    if self.act(dice, by, &path, &json!({})).await.is_some() {
                        self.revoked.insert(text(&grant["hash"]).to_owned());
                    }
                }
            }
            Kind::Delete => {
                let items = get(&self.homes[by], "/oap/owner/items").await;
                let first = rows(&items, "items").next().map(|item| text(&item["item_id"]).to_owned());
                if let Some(item) = first {
                    let delete = json!({"items": [item]});
                    if let Some(done) = self.act(dice, by, "/oap/data/delete", &delete).await {
                        let id = text(&done["deletion_receipt"]["receipt_id"]).to_owned();
                        self.deleted.insert(id, (by, item));
                    }
                }
            }
            Kind::Recall | Kind::Kill => self.recall(by).await,
        }
    }

    /// What was revoked answers nobody, and what was deleted is not shown.
    async fn recall(&self, by: usize) {
        let query = json!({"text": "tea", "deadline": 25, "limit": 100});
        let found = ask(&self.homes[by], "POST", "/oap/owner/recall", Some(&query)).await.unwrap();
        for peer in rows(&found["from_peers"], "peers") {
            let ended = self.revoked.contains(text(&peer["grant"]));
            assert!(!ended || peer["verdict"] != "answered", "answered after the revocation: {peer}");
            assert_ne!(peer["verdict"], "lied", "nobody lies here: {peer}");
        }
        for item in rows(&found["from_peers"], "items") {
            let gone = self.deleted.values().any(|(_, deleted)| item["item_id"] == deleted.as_str());
            assert!(!gone, "shown after it was deleted: {item}");
        }
    }

    /// Everybody runs, until no letter waits any more.
    async fn ends(&mut self) {
        (0..HOUSES).for_each(|who| self.serve(who));
        for home in &self.homes {
            let mut left = 1800;
            loop {
                let letters = get(home, "/oap/owner/letters").await;
                let waiting = rows(&letters, "letters").filter(|letter| letter["state"] == "waiting");
                if waiting.count() == 0 {
                    break;
                }
                left -= 1;
                assert!(left > 0, "letters that never arrive: {letters}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// The Deletion Receipts that a gateway signed to others, by their deletions.
    async fn confirmed(&self, who: usize) -> BTreeMap<String, String> {
        let mut confirmed = BTreeMap::new();
        let owner = owner(&self.homes[who]).await.unwrap();
        let audit = owner.call("GET", "/oap/audit", &[("limit", "1000".to_owned())], None).await.unwrap();
        for receipt in rows(&audit, "receipts") {
            let decision = &receipt["policy_decisions"][0];
            if let Some(deletion) = decision["granter_deletion"].as_str() {
                let id = text(&decision["deletion_receipt"]).to_owned();
                assert!(confirmed.insert(deletion.to_owned(), id).is_none(), "{deletion} confirmed twice");
            }
        }
        confirmed
    }

    async fn counterparts(&self) {
        let mut grants = BTreeMap::new();
        for home in &self.homes {
            let list = get(home, "/oap/owner/grants").await;
            for grant in rows(&list, "grants") {
                grants.insert(text(&grant["hash"]).to_owned(), grant["state"] == "revoked");
            }
        }
        for hash in &self.revoked {
            assert!(grants[hash], "{hash} was revoked, and is not");
        }
        let mut requests = BTreeMap::new();
        for home in &self.homes {
            let received = get(home, "/oap/owner/received").await;
            for row in rows(&received, "received") {
                let hash = text(&row["hash"]);
                assert_eq!(row["state"] == "revoked", grants[hash], "{row}");
            }
            let asked = get(home, "/oap/owner/asked").await;
            for row in rows(&asked, "asked") {
                requests.insert(text(&row["ask"]["purpose"]).to_owned(), row.clone());
            }
        }
        for home in &self.homes {
            let inbox = get(home, "/oap/owner/inbox").await;
            for task in rows(&inbox, "asks") {
                let asked = &requests[text(&task["ask"]["purpose"])];
                let void = asked["grant"].is_null() && task["state"] == "approved";
                assert!(asked["state"] == task["state"] || void, "{task}: {asked}");
            }
        }
        let mut confirmed = Vec::new();
        for who in 0..HOUSES {
            confirmed.push(self.confirmed(who).await);
        }
        for (id, (by, item)) in &self.deleted {
            let report = get(&self.homes[*by], &format!("/oap/owner/deletions/{id}")).await;
            for row in rows(&report, "grantees") {
                let to = self.dids.iter().position(|did| row["grantee"] == did.as_str()).unwrap();
                assert_eq!((text(&row["state"]), &row["items"]), ("confirmed", &json!([item])), "{report}");
                let there = confirmed[to].remove(id);
                assert_eq!(row["deletion_receipt"]["receipt_id"].as_str(), there.as_deref(), "{report}");
            }
        }
        for home in &self.homes {
            home.run(&["audit", "verify"]).ok();
        }
    }
}

#[test]
fn what_was_acknowledged_holds_among_three_that_are_killed() {
    oap_gateway::system::tls::install();
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let long = std::env::var("OAP_LONG").is_ok_and(|value| value == "1");
    let first = number("OAP_HISTORY_SEED").unwrap_or(0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for seed in first..first + if long { 10 } else { 1 } {
        eprintln!("OAP_HISTORY_SEED={seed}");
        let (mut gateways, mut dice) = (Gateways::new(), Dice(seed));
        runtime.block_on(async {
            gateways.begins(&mut dice).await;
            // Whoever was shown something is away when it is deleted, and when the grant is revoked.
            for (kind, by) in [(Kind::Kill, 2), (Kind::Delete, 0), (Kind::Revoke, 0)] {
                gateways.step(&mut dice, kind, by, by).await;
            }
            gateways.steady = false;
            for _ in 0..ACTS {
                gateways.random(&mut dice).await;
            }
            gateways.ends().await;
            gateways.counterparts().await;
        });
    }
}

//! That every gateway stands as the model says, after each step; and at the end of a history, when everybody reaches everybody again, that
//! every receipt has its counterpart.

use super::house::View;
use super::model::{KEY, MONTH, Standing, Told, text};
use super::play::Play;
use super::wire::{HOUSES, Link};
use crate::common::agent;
use oap_gateway::service::Deletions;
use oap_identity::{Hash, Timestamp, json};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longer than a letter waits for its next attempt.
const LONG: Duration = Duration::from_secs(7 * 3600);
/// Passes over the letters after which none waits any more.
const PASSES: usize = 30;

/// What is compared as text.
fn canonical(value: &Value) -> String {
    json::canonical_text(value).unwrap()
}

/// A receipt's decision.
fn decision(receipt: &Value) -> &Value {
    &receipt["policy_decisions"][0]
}

/// What a member of the decisions of some receipts says, each once.
fn said_once(receipts: &[Value], action: &str, member: &str) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    for receipt in receipts.iter().filter(|receipt| receipt["action_id"] == action) {
        let decision = decision(receipt);
        if decision["outcome"] == "allow"
            && let Some(what) = decision[member].as_str()
        {
            assert!(said.insert(what.to_owned()), "{action} of {what} twice");
        }
    }
    said
}

impl Play {
    /// Every gateway is asked how it stands.
    pub(super) fn agree(&mut self) {
        for who in 0..HOUSES {
            let view = self.houses[who].view();
            self.agrees(who, &view);
        }
        self.reports_agree();
    }

    fn agrees(&self, who: usize, view: &View) {
        let (model, now) = (&self.model, self.model.now);
        let house = &model.houses[who];
        let did = |number: usize| self.houses[number].did.as_str();

        let asked: BTreeMap<&str, (&str, Option<&str>)> = {
            let rows = view.asked.iter();
            rows.map(|row| (text(&row["request"]), (text(&row["state"]), row["grant"].as_str()))).collect()
        };
        let expected = house
            .asked
            .iter()
            .map(|(request, asked)| (request.as_str(), (asked.stands(now).text(), asked.grant.as_deref())));
        assert_eq!(asked, expected.collect::<BTreeMap<_, _>>(), "what {who} asked others for");

        let mut inbox: Vec<(&str, String, &str)> = {
            let rows = view.inbox.iter();
            rows.map(|row| (text(&row["from"]), canonical(&row["ask"]), text(&row["state"]))).collect()
        };
        let tasks = house.tasks.iter();
        let mut expected: Vec<(&str, String, &str)> =
            tasks.map(|task| (did(task.from), canonical(&task.ask), task.stands(now).text())).collect();
        inbox.sort_unstable();
        expected.sort_unstable();
        assert_eq!(inbox, expected, "what others ask {who} for");

        let received: BTreeMap<&str, (&str, &str, Option<u64>)> = {
            let state = |row: &Value| row["reading"]["answers"].as_u64();
            let rows = view.received.iter();
            rows.map(|r| (text(&r["hash"]), (text(&r["granter"]), text(&r["state"]), state(r)))).collect()
        };
        let expected = house.wallet.iter().map(|(hash, held)| {
            let grant = &model.grants[hash];
            let state = match held.revoked {
                true => "revoked",
                false if grant.ends <= now => "expired",
                false => "active",
            };
            (hash.as_str(), (did(grant.from), state, Some(held.answers)))
        });
        assert_eq!(received, expected.collect::<BTreeMap<_, _>>(), "the wallet of {who}");

        let grants: BTreeMap<&str, bool> = {
            let rows = view.grants.iter();
            rows.map(|row| (text(&row["hash"]), !row["revoked_at"].is_null())).collect()
        };
        let of_them = model.grants.iter().filter(|(_, grant)| grant.from == who);
        let expected = of_them.map(|(hash, grant)| (hash.as_str(), grant.revoked));
        assert_eq!(grants, expected.collect::<BTreeMap<_, _>>(), "what {who} granted");
    }

    /// The report of every deletion says of every grantee what the model says.
    fn reports_agree(&mut self) {
        let deletions: Vec<String> = self.model.deletions.keys().cloned().collect();
        for id in deletions {
            let deletion = self.model.deletions[&id].clone();
            let report = self.houses[deletion.by].report(&id);
            let mut rows = BTreeMap::new();
            for row in &report {
                let key = agent(7).did().to_string();
                let is_key = row["grantee"] == key.as_str();
                let to = if is_key { KEY } else { self.model.number(&row["grantee"]) };
                assert!(rows.insert(to, row).is_none(), "told twice: {report:?}");
                if row["state"] == "unreachable" && deletion.told.get(&to) == Some(&Told::Waiting) {
                    assert!(self.may_be_given_up(deletion.by, to, deletion.at), "given up: {row}");
                    self.model.deletions.get_mut(&id).unwrap().told.insert(to, Told::Unreachable);
                }
            }
            let deletion = &self.model.deletions[&id];
            let said = rows.iter().map(|(to, row)| (*to, text(&row["state"]))).collect::<BTreeMap<_, _>>();
            let expected =
                deletion.told.iter().map(|(to, told)| (*to, told.text())).collect::<BTreeMap<_, _>>();
            assert_eq!(said, expected, "the report of {id}: {report:?}");
            for (to, told) in &deletion.told {
                let receipt = rows[to]["deletion_receipt"]["receipt_id"].as_str();
                let confirmed =
                    if let Told::Confirmed(receipt) = told { Some(receipt.as_str()) } else { None };
                assert_eq!(receipt, confirmed, "{report:?}");
            }
        }
    }

    /// A letter is given up only after a month, and only where its receiver was away.
    fn may_be_given_up(&self, by: usize, to: usize, made: Timestamp) -> bool {
        let away = self.model.houses[to].locked || !self.wire.is_calm(by, to);
        made.plus(MONTH) <= self.model.now && away
    }

    fn heal(&self) {
        for a in 0..HOUSES {
            for b in 0..HOUSES {
                self.wire.set(a, b, Link::Up);
            }
        }
    }

    /// Everybody reaches everybody, and what waits is sent, until nothing waits any more.
    pub(super) async fn ends(&mut self) {
        self.heal();
        for who in 0..HOUSES {
            if self.model.houses[who].locked {
                self.lift(who).await;
            }
        }
        for _ in 0..PASSES {
            if (0..HOUSES).all(|who| self.waiting(who) == 0) {
                break;
            }
            self.goes_on(LONG);
            for who in 0..HOUSES {
                self.send(who).await;
                self.hears(None);
                self.agree();
            }
        }
        for who in 0..HOUSES {
            assert_eq!(self.waiting(who), 0, "letters of {who} that never arrive");
            // What is forgotten by then changes nothing of what is known.
            Deletions(&self.world(who).gateway).sweep().await.unwrap();
            self.model.sweep(who);
        }
        self.agree();
        for who in 0..HOUSES {
            self.counterparts(who).await;
        }
    }

    fn waiting(&self, who: usize) -> usize {
        self.houses[who].letters().iter().filter(|letter| letter["state"] == "waiting").count()
    }

    /// Whether a letter of this type to somebody was given up: it never arrived, for a month.
    fn gave_up(&self, by: usize, to: usize, kind: &str) -> bool {
        let to = self.houses[to].did.as_str();
        let letters = self.houses[by].letters();
        letters.iter().any(|l| l["to"] == to && l["kind"] == kind && l["state"] == "given_up")
    }

    /// Every receipt of a gateway, oldest last.
    async fn receipts(&self, who: usize) -> Vec<Value> {
        let (mut receipts, mut before) = (Vec::new(), String::new());
        loop {
            let page = self.get(who, &format!("/oap/audit?limit=1000{before}")).await;
            receipts.extend(page["receipts"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next"].as_str() else { return receipts };
            before = format!("&before={next}");
        }
    }

    /// What a gateway wrote down is what others have of it, and the other way round.
    async fn counterparts(&self, who: usize) {
        let (model, house) = (&self.model, &self.model.houses[who]);
        let receipts = self.receipts(who).await;
        // What left has a receipt, and what has a receipt left.
        let of_answers: BTreeSet<String> = {
            let answers = receipts.iter().filter(|receipt| receipt["action_id"] == "memory.query");
            let allowed = answers.filter(|receipt| decision(receipt)["outcome"] == "allow");
            allowed.map(|receipt| text(&receipt["receipt_id"]).to_owned()).collect()
        };
        assert_eq!(of_answers, house.answers, "the receipts of the answers of {who}");
        let of_them = || model.grants.iter().filter(move |(_, grant)| grant.from == who);
        let signed: BTreeSet<String> = of_them().map(|(hash, _)| hash.clone()).collect();
        assert_eq!(said_once(&receipts, "memory.grant", "grant_hash"), signed, "the grants of {who}");
        let void: BTreeSet<String> =
            of_them().filter(|(_, grant)| grant.revoked).map(|(hash, _)| hash.clone()).collect();
        assert_eq!(said_once(&receipts, "memory.revoke", "grant_hash"), void, "the revocations of {who}");

        // The grantee's wallet says what its granter says, unless it was away for a month.
        for (hash, grant) in of_them().filter(|(_, grant)| grant.to != KEY && grant.revoked) {
            if let Some(held) = model.houses[grant.to].wallet.get(hash) {
                let told = held.revoked || self.gave_up(who, grant.to, "revocation_notice");
                assert!(told, "{hash} is void, and its grantee was not told");
            }
        }
        // Whoever asked has the answer that was given; of a grant that was revoked before it came there is none.
        for task in &house.tasks {
            for name in &task.names {
                let asked = &model.houses[task.from].asked[name];
                let kind = match task.state {
                    Standing::Approved => "grant_delivery",
                    Standing::Declined => "access_status",
                    _ => continue,
                };
                let void = task.grant.as_ref().is_some_and(|hash| model.grants[hash].revoked);
                let answered = asked.state == task.state || asked.state == Standing::Withdrawn;
                assert!(answered || void || self.gave_up(who, task.from, kind), "{task:?}: {asked:?}");
            }
        }

        // Each of its deletions has one receipt; and each that it confirmed to another has one there.
        let own: BTreeSet<String> = {
            let deletions = model.deletions.iter().filter(|(_, deletion)| deletion.by == who);
            deletions.map(|(id, _)| id.clone()).collect()
        };
        let signed: BTreeSet<String> =
            house.confirmed.values().map(|receipt| text(&receipt["receipt_id"]).to_owned()).collect();
        let mut deleted = said_once(&receipts, "memory.delete", "deletion_receipt");
        assert!(own.iter().all(|id| deleted.remove(id)), "a deletion without a receipt");
        assert_eq!(deleted, signed, "the Deletion Receipts that {who} signed to others");
        for ((granter, _), receipt) in &house.confirmed {
            let id = text(&receipt["receipt_id"]);
            let noted = receipts.iter().find(|noted| decision(noted)["deletion_receipt"] == id).unwrap();
            let hash = Hash::of_canonical(receipt).unwrap().to_string();
            assert_eq!(noted["output_hash"], hash.as_str(), "{noted}");
            let deletion = text(&decision(noted)["granter_deletion"]);
            let told = &model.deletions[deletion];
            assert_eq!(told.by, *granter, "{noted}");
            let there = &told.told[&who];
            let is_there = *there == Told::Confirmed(id.to_owned()) || *there == Told::Unreachable;
            assert!(is_there, "{who} confirmed {deletion}, and the report says: {there:?}");
        }

        // Nothing of others is kept, and nobody was taken for a liar.
        let items = self.get(who, "/oap/owner/items?limit=500").await;
        let items: BTreeSet<String> =
            items["items"].as_array().unwrap().iter().map(|item| text(&item["item_id"]).to_owned()).collect();
        assert_eq!(items, house.items, "the own memory of {who}");
        let lies = self.houses[who].lies();
        assert!(lies.is_empty(), "{lies:?}");
        self.world(who).chains_hold().await;
    }
}

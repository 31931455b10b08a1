//! The reference model and the rooms that decide what a grantee learns, written apart: over random items, grants and queries they
//! agree. No gateway: views are built, asked and answered as a gateway does it.

#[path = "../../../crates/exchange/tests/support/mod.rs"]
mod support;

mod cells;
mod gates;
mod grants;
mod maker;

use maker::{Dice, OWN, PROFILES};
use oap_conformance::model::{Disclosed, Model, ProfileText, Rule, report, rule, undecided};
use oap_exchange::answer;
use oap_exchange::respond::Frame;
use oap_exchange::{Allowance, Durable, Query, View, allowance, respond};
use oap_grants::SignedGrant;
use oap_identity::{DecisionId, GrantId, Hash, ItemId, ReceiptId, RequestId, json};
use oap_memory::receipt::{Decision, GENESIS, Outcome, Receipt, ReceiptType};
use oap_memory::record::ItemRecord;
use oap_memory::{Filter, Head, Profile};
use serde_json::{Map, Value, json as value};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use support::*;

/// Worlds of items.
const SEEDS: u64 = 40;
/// Grants of each, and queries under each of them.
const GRANTS: usize = 6;
const QUERIES: usize = 4;

/// A store that keeps what it is given.
struct Kept(Receipt);

impl Durable for Kept {
    fn receipt(&self) -> &Receipt {
        &self.0
    }
}

fn kept(owner: &Owner, output_hash: Hash) -> Kept {
    let decision = Decision {
        id: DecisionId::new(now(), &owner.random),
        outcome: Outcome::Allow,
        rules: Vec::new(),
        more: Map::new(),
    };
    let mut receipt = Receipt {
        receipt_id: ReceiptId::new(now(), &owner.random),
        kind: ReceiptType::Invocation,
        timestamp: now(),
        principal_did: owner.did(),
        agent_did: grantee().to_string(),
        tool_did: Some(owner.did()),
        action_id: Some("memory.query".to_owned()),
        input_hash: None,
        output_hash: Some(output_hash),
        policy_decisions: vec![decision],
        provenance_tags_out: Vec::new(),
        previous_receipt_hash: GENESIS.to_owned(),
        signatures: Vec::new(),
    };
    receipt.sign(&owner.signer).unwrap();
    Kept(receipt)
}

fn profiles() -> Vec<Profile> {
    let mut profiles = Profile::built_in();
    profiles.push(Profile::parse(OWN).unwrap());
    profiles
}

/// What a grantee asks, page by page, beside what the model says.
struct Asking<'a> {
    owner: &'a Owner,
    model: &'a Model,
    profiles: &'a [Profile],
    items: &'a [(Head, ItemRecord)],
    spent: Disclosed,
    had: Vec<ItemId>,
}

impl Asking<'_> {
    fn ask(&mut self, grant: &oap_grants::Grant, asked: &Value) {
        let verified = presented(self.owner, grant.clone());
        let id = grant.grant_id.to_string();
        let query: Query = json::from_value(asked.clone()).unwrap();
        let (mut asked, mut after) = (asked.clone(), None);
        for page in 0..4 {
            let expected = self.model.query(&id, &asked, now(), &self.spent);
            if query.include_embeddings && !grant.embedding_access {
                assert!(expected.answer().is_none(), "{asked}");
                return;
            }
            let most = usize::try_from(grant.max_items).unwrap();
            let allowance =
                Allowance::new(vec![Arc::new(allowance::Disclosed::new(most, self.had.iter().copied()))]);
            let mut setting = setting(self.profiles);
            setting.embeddings = query.include_embeddings;
            let find = |head: &Head| self.items.iter().find(|(known, _)| known.item_id == head.item_id);
            let load = |head: &Head| Ok::<_, Infallible>(find(head).map(|(_, whole)| whole.clone()));
            let heads = self.items.iter().map(|(head, _)| head);
            let view = View::build(&verified, &allowance, &setting, heads, load).unwrap();
            let found = write_out(answer::find(&view, &allowance, &query, None, after), self.items);
            after = found.next();
            self.had.extend(found.items());
            let fresh = || RequestId::new(now(), &self.owner.random);
            let next_cursor = after.map(|_| format!("{id} {page} {asked}").replace('"', "'"));
            let next_cursor = next_cursor.map(|text| Hash::of(text.as_bytes()).to_string());
            let unsent = found.write(Frame { request_id: fresh(), response_id: fresh(), next_cursor });
            let receipt = kept(self.owner, unsent.output_hash());
            let came = json::parse(&respond(unsent, &receipt, &self.owner.signer).unwrap()).unwrap();
            let mut differences = expected.differences(200, &came);
            // The receipt is the gateway's, and not made here.
            differences.retain(|difference| !difference.at.starts_with("/receipt"));
            let filter = value!(grant.filter);
            let level = value!(grant.trust_level);
            assert!(
                differences.is_empty(),
                "{} level {level}, filter {filter}, asked {asked}: {differences:#?}",
                grant.redaction_profile
            );
            self.spent.answered(self.model, &id, &asked, &came);
            let Some(cursor) = came["next_cursor"].as_str() else { return };
            asked["cursor"] = value!(cursor);
        }
    }
}

#[test]
fn answers_are_what_the_model_says() {
    let profiles = profiles();
    let mut decided: BTreeMap<Rule, u64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let (owner, mut dice) = (Owner::new(seed), Dice::new(seed));
        let manifest = value!({"belief_threshold": 0.5});
        let mut model = Model::new(owner.did(), &manifest, vec![ProfileText(OWN.to_owned())]);
        model.clock_is_exact();
        let mut items = Vec::new();
        for _ in 0..14 {
            let (draft, planted) = maker::item(&mut dice, now());
            let item_id = ItemId::new(now(), &owner.random);
            items.push(owner.capture_as(item_id, &draft));
            model.captured(&item_id.to_string(), &draft, now(), &planted);
        }
        for number in 0..GRANTS {
            let filter: Filter = json::from_value(maker::filter(&mut dice, now())).unwrap();
            let profile = dice.one(&PROFILES);
            let level = if profile == "full" { 4 } else { u8::try_from(dice.below(5)).unwrap() };
            let named = format!("oap.profile.projection.{profile}.v1");
            let mut grant = grant(&filter, &named, level.try_into().unwrap());
            grant.max_items = dice.one(&[1, 3, 100]);
            grant.embedding_access = dice.below(2) == 0;
            if dice.below(6) == 0 {
                grant.grantee = owner.did();
            }
            let random = oap_identity::random::Seeded::new(seed * 100 + number as u64);
            grant.grant_id = GrantId::new(now(), &random);
            let signed = SignedGrant::sign(grant.clone(), &owner.signer).unwrap();
            model.granted(signed.document());
            let mut asking = Asking {
                owner: &owner,
                model: &model,
                profiles: &profiles,
                items: &items,
                spent: Disclosed::default(),
                had: Vec::new(),
            };
            (0..QUERIES).for_each(|_| asking.ask(&grant, &maker::query(&mut dice)));
        }
        model.decided().into_iter().for_each(|(rule, count)| *decided.entry(rule).or_default() += count);
    }
    // What this exercises, but for a few rare ones: every case of every filter field, every cell but those of spans.
    let never: Vec<Rule> = undecided(&decided).into_iter().filter(is_exercised_here).collect();
    assert!(never.len() < 40, "{}", report(&decided));
}

/// Rules that random views of single versions can decide.
fn is_exercised_here(rule: &Rule) -> bool {
    use oap_conformance::model::profile::table::Column;
    match rule {
        Rule::Cell(cell) => !matches!(cell.column, Column::Span(_) | Column::Field("derived_from")),
        Rule::Filter(..) | Rule::FilterBound(..) | Rule::Condition(_) | Rule::Written(_) => true,
        Rule::Epistemic(epistemic) => {
            use rule::Epistemic::{ConfirmedUncertain, Knowledge};
            ![Knowledge, ConfirmedUncertain].contains(epistemic)
        }
        _ => false,
    }
}

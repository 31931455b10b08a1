//! What the owner is shown of an item that an agent wrote, before it counts as the owner's word.

use super::names::Names;
use super::{output, screen};
use crate::api::grants::{GrantInfo, GrantList};
use crate::api::items::WholeItem;
use oap_grants::GrantState;
use oap_identity::ScopeId;
use oap_memory::filter::{Filter, Shown};
use oap_memory::record::{Tier, Visibility};
use serde_json::json;
use std::fmt::Write;

/// Members of an item that its writer did not choose.
const MADE: [&str; 4] = ["item_id", "owner_did", "version", "status"];

/// The item with every member that its writer chose, and the grants that it would reach, line by line.
pub(super) fn question(shown: &WholeItem, grants: &GrantList, names: &Names) -> String {
    let mut item = shown.item.whole().clone();
    if let Some(members) = item.as_object_mut() {
        members.retain(|name, _| !MADE.contains(&name.as_str()));
        if let Some(record) = &shown.record {
            members.insert("visibility".to_owned(), json!(record.visibility));
            members.insert("tier".to_owned(), json!(record.tier));
        }
    }
    let by = shown.record.as_ref().map(|record| names.who(&record.author)).unwrap_or_default();
    let version = output::or_none(shown.item.version);
    let mut text = format!("{}, version {version}, by the agent {by}:\n", shown.item.item_id);
    text.push_str(&output::pretty(&item));
    let reached: Vec<&GrantInfo> = grants.grants.iter().filter(|info| reaches(info, shown)).collect();
    match reached.as_slice() {
        [] => text.push_str("\nNo grant in force would show it."),
        some => {
            let _ = write!(text, "\n{} grant(s) in force would show it:", some.len());
        }
    }
    for info in reached {
        let line = format!("{}  {}  {}", info.grant.grant_id, info.grant.grantee, info.grant.purpose);
        let _ = write!(text, "\n  {}", screen::line(&line));
    }
    text
}

/// Whether a grant in force selects the item once it is confirmed. What contexts and bridges withhold is not looked at.
fn reaches(info: &GrantInfo, shown: &WholeItem) -> bool {
    let grant = &info.grant;
    let own_agent = grant.grantee == grant.granter.principal;
    info.state == GrantState::Active && selects(&grant.filter, &grant.granter.scope, own_agent, shown)
}

fn selects(filter: &Filter, scope: &ScopeId, own_agent: bool, shown: &WholeItem) -> bool {
    let record = shown.record.as_ref();
    let leaves = record.is_none_or(|r| r.visibility == Visibility::Shared && r.tier != Tier::Working);
    let known = Shown::of_item(shown.item.whole(), &shown.item.labels);
    leaves && filter.check(&known, scope, own_agent).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sensitivity: &str) -> WholeItem {
        let document = json!({
            "chain": [],
            "item": {
                "item_id": "mem_01ARZ3NDEKTSV4RRFFQ69G5FAV", "owner_did": "did:web:user.example", "version": 2, "status": "current",
                "kind": "preference", "scope_id": "personal", "labels": ["medical"], "subject_entity_id": "ent_person_sam",
                "sensitivity": sensitivity, "confidence": 0.9, "content": {"text": "tea\u{e0041}"},
                "provenance": {"captured_at": "2026-01-01T00:00:00Z"}, "extensions": {"org.example": {"k": "v"}},
                "derived_from": ["mem_01ARZ3NDEKTSV4RRFFQ69G5FAW"],
            },
            "record": {
                "author": "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", "tier": "semantic", "visibility": "shared",
                "human_verified": false, "needs_verification": true, "namespace": null, "key": null,
            },
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn every_member_that_an_agent_chose_is_shown() {
        let text = question(&shown("internal"), &GrantList { grants: Vec::new() }, &Names::default());
        for part in [
            "version 2",
            "z6Mkha",
            "preference",
            "medical",
            "ent_person_sam",
            "sensitivity",
            "shared",
            "0.9",
            "org.example",
            "5FAW",
            "No grant",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // What no screen shows is shown.
        assert!(text.contains("tea\\udb40\\udc41"), "{text}");
    }

    #[test]
    fn whom_it_would_reach_is_what_the_filters_say() {
        let scope = "personal".parse().unwrap();
        let labelled = |label: &str| Filter { labels_any: Some(vec![label.to_owned()]), ..Filter::default() };
        let normal = shown("internal");
        assert!(selects(&Filter::default(), &scope, false, &normal));
        assert!(selects(&labelled("medical"), &scope, false, &normal));
        assert!(!selects(&labelled("food"), &scope, false, &normal));
        assert!(!selects(&Filter::default(), &"work".parse().unwrap(), false, &normal));
        assert!(!selects(&Filter::default(), &scope, false, &shown("restricted")));
    }
}

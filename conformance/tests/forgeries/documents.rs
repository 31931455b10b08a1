//! Grants, Deletion Receipts, status lists.

use crate::fixture::other_hash;
use crate::forge::*;
use crate::items::{leaves, other};
use crate::reseals;
use crate::table::{By, Document, Table};
use oap_grants::status;
use oap_identity::signed::sign_jwt;
use serde_json::{Value, json};

pub fn forge(table: &mut Table) {
    grants(table);
    deletions(table);
    lists(table);
}

fn grants(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, grant) = (keys.current(), table.fixture.grant.clone());
    let mut all = Vec::new();
    leaves(&grant, "", &mut all);
    for at in all {
        let changed = with(&grant, |g| {
            let new = other(g.pointer(&at).unwrap());
            set(g, &at, new);
        });
        let checks = ["grant.document", "grant.no_document"];
        table.refused(By::Nobody, format!("{at} changed"), &checks, Document::Grant(changed));
    }
    type Change = (&'static str, &'static str, Box<dyn Fn(&mut Value)>);
    let changes: Vec<Change> = vec![
        ("of no items", "grant.limit", Box::new(|g| g["max_items"] = json!(0))),
        ("of nothing allowed", "grant.limit", Box::new(|g| g["operations"] = json!([]))),
        ("that cannot be taken back", "grant.limit", Box::new(|g| g["revocable"] = json!(false))),
        ("of no purpose", "grant.limit", Box::new(|g| g["purpose"] = json!(" "))),
        ("with a code that is none", "grant.limit", Box::new(|g| g["purpose_codes"] = json!(["A b"]))),
        ("ended before it begins", "grant.limit", Box::new(|g| g["not_before"] = g["expires_at"].clone())),
        ("for ever", "grant.limit", Box::new(|g| g["expires_at"] = json!("2226-05-31T12:00:00.000Z"))),
        (
            "to be passed on without end",
            "grant.limit",
            Box::new(|g| g["delegable"] = json!({"max_depth": 9})),
        ),
        (
            "of times that exclude each other",
            "grant.limit",
            Box::new(|g| {
                g["filter"] = json!({"captured_after": "2026-05-02T00:00:00Z", "captured_before": "2026-05-01T00:00:00Z"});
            }),
        ),
        ("of an empty budget", "grant.limit", Box::new(|g| g["budget"] = json!({"queries": 0}))),
        (
            "issued in the future",
            "grant.future",
            Box::new(|g| g["issued_at"] = json!("2026-05-02T12:00:00.000Z")),
        ),
        ("with a parent", "grant.no_parent", Box::new(|g| g["parent"] = json!(other_hash()))),
        ("version 2", "grant.document", Box::new(|g| g["version"] = json!(2))),
        ("with an unknown member", "grant.document", Box::new(|g| g["more"] = json!(1))),
        ("with an unknown condition", "grant.document", Box::new(|g| g["filter"]["colour"] = json!(["red"]))),
        ("without filter", "grant.document", Box::new(|g| remove(g, "", "filter"))),
        ("level 5", "grant.document", Box::new(|g| g["trust_level"] = json!(5))),
    ];
    for (name, check, change) in changes {
        let changed = with(&grant, |g| {
            change(g);
            sign(g, owner);
        });
        table.refused(By::Owner, name, &[check], Document::Grant(changed));
    }
    let mallory = &table.fixture.mallory;
    let forged = with(&grant, |g| sign(g, mallory));
    table.refused(By::Mallory, "signed by another", &["grant.document"], Document::Grant(forged));
    let wider = with(&grant, |g| {
        g["trust_level"] = json!(3);
        g["grantee"] = json!(mallory.did());
        sign(g, mallory);
    });
    table.refused(By::Mallory, "to herself", &["grant.document"], Document::Grant(wider));
}

fn deletions(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, deletion) = (keys.current(), table.fixture.deletion.clone());
    let mut all = Vec::new();
    leaves(&deletion, "", &mut all);
    for at in all {
        let changed = with(&deletion, |d| {
            let new = other(d.pointer(&at).unwrap());
            set(d, &at, new);
        });
        let checks = [
            "deletion.malformed",
            "deletion.signature",
            "deletion.tool",
            "deletion.signer",
            "deletion.unsigned",
        ];
        table.refused(By::Nobody, format!("{at} changed"), &checks, Document::Deletion(changed));
    }
    let item = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
    let tag = format!("{item}@{}", other_hash());
    type Change<'a> = (&'static str, &'static str, Box<dyn Fn(&mut Value) + 'a>);
    let changes: Vec<Change> = vec![
        (
            "an item that the cascade does not name",
            "deletion.cascade",
            Box::new(|d| {
                d["scope"]["items"].as_array_mut().unwrap().insert(0, json!(tag));
            }),
        ),
        (
            "an item of the cascade that was not destroyed",
            "deletion.cascade",
            Box::new(|d| {
                d["scope"]["cascade"]["derived"] = json!([item]);
            }),
        ),
        (
            "an item named twice",
            "deletion.cascade",
            Box::new(|d| {
                d["scope"]["cascade"]["derived"] = d["scope"]["cascade"]["named"].clone();
            }),
        ),
        (
            "held and destroyed",
            "deletion.cascade",
            Box::new(|d| {
                d["scope"]["cascade"]["held"] = d["scope"]["cascade"]["named"].clone();
            }),
        ),
        (
            "held without a reason",
            "deletion.exceptions",
            Box::new(|d| {
                d["scope"]["cascade"]["held"] = json!([item]);
            }),
        ),
        (
            "a reason until never",
            "deletion.until",
            Box::new(|d| {
                d["exceptions"] = json!([{"reason": "legal_hold", "retention_until": "never"}]);
            }),
        ),
        (
            "a reason of no kind",
            "deletion.malformed",
            Box::new(|d| {
                d["exceptions"] = json!([{"reason": "habit", "retention_until": "2026-05-11"}]);
            }),
        ),
        (
            "an item without its commitment",
            "deletion.items",
            Box::new(|d| d["scope"]["items"] = json!([item])),
        ),
        (
            "an item twice",
            "deletion.items",
            Box::new(|d| {
                let tag = d["scope"]["items"][0].clone();
                d["scope"]["items"] = json!([tag, tag]);
            }),
        ),
        ("of nothing named", "deletion.malformed", Box::new(|d| remove(d, "/scope", "items"))),
        ("without cascade", "deletion.malformed", Box::new(|d| remove(d, "/scope", "cascade"))),
        (
            "done before it was asked for",
            "deletion.times",
            Box::new(|d| {
                d["request_received_at"] = json!("2026-05-02T00:00:00.000Z");
            }),
        ),
        (
            "done in the future",
            "deletion.future",
            Box::new(|d| d["completed_at"] = json!("2026-06-01T00:00:00.000Z")),
        ),
        (
            "by another gateway",
            "deletion.tool",
            Box::new(|d| d["tool_did"] = json!("did:web:mallory.example")),
        ),
        ("by magic", "deletion.malformed", Box::new(|d| d["method"] = json!("magic"))),
        ("with a member more", "deletion.malformed", Box::new(|d| d["more"] = json!(1))),
    ];
    for (name, check, change) in changes {
        let changed = with(&deletion, |d| {
            change(d);
            sign_deletion(d, owner);
        });
        table.refused(By::Owner, name, &[check], Document::Deletion(changed));
    }
    let forged = with(&deletion, |d| sign_deletion(d, &table.fixture.mallory));
    table.refused(By::Mallory, "signed by another", &["deletion.signer"], Document::Deletion(forged));
    let backdated = with(&deletion, |d| {
        for member in ["principal_did", "tool_did"] {
            d[member] = json!(reseals::HOUSE);
        }
        sign_deletion(d, &reseals::key(3));
    });
    table.named(
        By::Owner,
        "by a key that was compromised later",
        "unchecked.dated_by_compromised_key",
        Document::Deletion(backdated),
    );
    let more = with(&deletion, |d| d["signature"]["note"] = json!("x"));
    table.refused(By::Nobody, "a member more in signature", &["deletion.unsigned"], Document::Deletion(more));
    let bare = with(&deletion, |d| remove(d, "", "signature"));
    table.refused(By::Nobody, "no signature", &["deletion.unsigned"], Document::Deletion(bare));
}

fn lists(table: &mut Table) {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
    let keys = table.fixture.world.gateway.keys();
    let (owner, list) = (keys.current(), table.fixture.list.clone());
    let claims = B64.decode(list.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let signed = |typ: &'static str, change: &dyn Fn(&mut Value)| {
        let mut claims = claims.clone();
        change(&mut claims);
        sign_jwt(owner, typ, &claims).unwrap()
    };
    for (name, check, list) in [
        ("another issuer", "status.claim", signed(status::TYP, &|c| c["iss"] = json!("did:web:b.example"))),
        ("another address", "status.claim", signed(status::TYP, &|c| c["sub"] = json!("https://b.example/"))),
        ("over", "status.claim", signed(status::TYP, &|c| c["exp"] = c["iat"].clone())),
        (
            "from the future",
            "status.claim",
            signed(status::TYP, &|c| {
                c["iat"] = json!(c["iat"].as_i64().unwrap() + 86_400);
                c["exp"] = json!(c["exp"].as_i64().unwrap() + 86_400);
            }),
        ),
        (
            "two bits a place",
            "status.malformed",
            signed(status::TYP, &|c| c["status_list"]["bits"] = json!(2)),
        ),
        ("no list", "status.malformed", signed(status::TYP, &|c| c["status_list"]["lst"] = json!("x"))),
        ("a claim more", "status.jwt", signed(status::TYP, &|c| c["more"] = json!(1))),
        ("another typ", "status.jwt", signed("JWT", &|_| ())),
    ] {
        table.refused(By::Owner, name, &[check], Document::List(list));
    }
    let forged = sign_jwt(&table.fixture.mallory, status::TYP, &claims).unwrap();
    table.refused(By::Mallory, "signed by another", &["status.claim"], Document::List(forged));
    let parts: Vec<&str> = list.split('.').collect();
    let stripped = format!("{}.{}.", parts[0], parts[1]);
    table.refused(By::Nobody, "no signature", &["status.jwt"], Document::List(stripped));
}

//! Receipts by themselves, and chains of them.

use crate::fixture::{Fixture, other_hash};
use crate::forge::*;
use crate::items::{leaves, other};
use crate::table::{By, Document::Receipt, Document::Receipts, Table};
use oap_identity::Signer;
use oap_memory::receipt::{Action, Covers};
use serde_json::{Value, json};

pub fn forge(table: &mut Table) {
    kinds(table);
    contents(table);
    signatures(table);
    chains(table);
}

/// One receipt of each action in the log, and each signed: a head within a group is not.
pub fn one_of_each(log: &[Value]) -> Vec<Value> {
    let mut seen = std::collections::BTreeSet::new();
    log.iter()
        .filter(|receipt| receipt["signatures"][0].is_object())
        .filter(|receipt| seen.insert(receipt["action_id"].as_str().unwrap().to_owned()))
        .cloned()
        .collect()
}

/// One receipt of each action: those of the log, and of what is not in it as the table of actions has it.
pub fn one_of_every(fixture: &Fixture) -> Vec<Value> {
    let mut all = one_of_each(&fixture.log);
    let capture = all.iter().find(|receipt| receipt["action_id"] == "memory.capture").unwrap().clone();
    let missing: Vec<Action> = Action::ALL
        .iter()
        .copied()
        .filter(|action| all.iter().all(|receipt| receipt["action_id"] != action.as_str()))
        .collect();
    let keys = fixture.world.gateway.keys();
    for action in missing {
        let mut receipt = capture.clone();
        receipt["action_id"] = json!(action.as_str());
        receipt["type"] = json!(action.kind());
        if action.covers() != Covers::Version {
            remove(&mut receipt, "", "provenance_tags_out");
            remove(&mut receipt, "", "output_hash");
        }
        if matches!(action.covers(), Covers::Document | Covers::Disclosure) {
            receipt["output_hash"] = json!(other_hash());
        }
        sign_receipt(&mut receipt, keys.current());
        all.push(receipt);
    }
    assert_eq!(all.len(), Action::ALL.len());
    all
}

/// Every leaf of one receipt of each kind, changed by whoever carries it.
fn kinds(table: &mut Table) {
    for receipt in one_of_each(&table.fixture.log) {
        let action = receipt["action_id"].as_str().unwrap().to_owned();
        for member in ["timestamp", "principal_did", "action_id", "previous_receipt_hash", "policy_decisions"]
        {
            let cut = with(&receipt, |r| remove(r, "", member));
            let checks = ["receipt.malformed", "receipt.signature"];
            table.refused(By::Nobody, format!("{action} without {member}"), &checks, Receipt(cut));
        }
        let mut all = Vec::new();
        leaves(&receipt["policy_decisions"], "/policy_decisions", &mut all);
        all.push("/agent_did".to_owned());
        for at in all {
            let changed = with(&receipt, |r| {
                let new = other(r.pointer(&at).unwrap());
                set(r, &at, new);
            });
            let checks = ["receipt.malformed", "receipt.signature"];
            table.refused(By::Nobody, format!("{action}: {at} changed"), &checks, Receipt(changed));
        }
    }
}

/// What a receipt of each kind says, signed by its owner.
fn contents(table: &mut Table) {
    let fixture = table.fixture;
    let keys = fixture.world.gateway.keys();
    let owner = keys.current();
    let each = one_of_each(&fixture.log);
    let of = |action: &str| each.iter().find(|r| r["action_id"] == action).unwrap();
    for receipt in &each {
        let action = receipt["action_id"].as_str().unwrap();
        let mut put = |name: &str, check: &'static str, change: &dyn Fn(&mut Value)| {
            let changed = with(receipt, |r| {
                change(r);
                sign_receipt(r, owner);
            });
            table.refused(By::Owner, format!("{action} {name}"), &[check], Receipt(changed));
        };
        for kind in ["invocation", "consent", "deletion", "incident", "kill_switch"] {
            if receipt["type"] != kind {
                put(&format!("as {kind}"), "receipt.type", &|r| r["type"] = json!(kind));
            }
        }
        put("without a decision", "receipt.decision", &|r| r["policy_decisions"] = json!([]));
        put("that asks first", "receipt.outcome", &|r| {
            set(r, "/policy_decisions/0/outcome", json!("require_consent"));
        });
        let tags = receipt["provenance_tags_out"].as_array().map_or(0, Vec::len);
        let is_refusable = ["memory.exchange", "memory.query"].contains(&action);
        if !is_refusable {
            put("that was blocked", "receipt.outcome", &|r| {
                set(r, "/policy_decisions/0/outcome", json!("block"));
            });
        }
        put("of a text", "receipt.tag", &|r| r["provenance_tags_out"] = json!(["tea"]));
        let tag = of("memory.capture")["provenance_tags_out"][0].clone();
        if action != "memory.query" {
            put("of an item more", "receipt.tags", &|r| {
                let mut tags = r["provenance_tags_out"].as_array().cloned().unwrap_or_default();
                tags.push(tag.clone());
                r["provenance_tags_out"] = json!(tags);
            });
        }
        if receipt["output_hash"].is_null() {
            put("with an output", "receipt.output_hash", &|r| r["output_hash"] = json!(other_hash()));
        } else {
            put("without its output", "receipt.output_hash", &|r| remove(r, "", "output_hash"));
            if tags == 1 {
                put("of another output", "receipt.output_hash", &|r| r["output_hash"] = json!(other_hash()));
            }
        }
    }
    let signed = |base: &Value, change: &dyn Fn(&mut Value)| {
        with(base, |r| {
            change(r);
            sign_receipt(r, owner);
        })
    };
    let refusal = |r: &mut Value| {
        set(r, "/policy_decisions/0/outcome", json!("block"));
        r["provenance_tags_out"] = json!([]);
        remove(r, "", "output_hash");
    };
    let query = of("memory.query");
    let refused = signed(query, &refusal);
    table.named(By::Owner, "a refusal that nobody asked for", "unchecked.agent", Receipt(refused));
    for (name, check, receipt) in [
        (
            "a refusal with what it refuses",
            "receipt.tags",
            signed(query, &|r| {
                let tags = r["provenance_tags_out"].clone();
                refusal(r);
                r["provenance_tags_out"] = tags;
            }),
        ),
        (
            "a refusal with an output",
            "receipt.output_hash",
            signed(query, &|r| {
                refusal(r);
                r["output_hash"] = json!(other_hash());
            }),
        ),
        (
            "blocked and allowed",
            "receipt.outcome",
            signed(query, &|r| {
                refusal(r);
                let mut decision = r["policy_decisions"][0].clone();
                decision["outcome"] = json!("allow");
                r["policy_decisions"].as_array_mut().unwrap().push(decision);
            }),
        ),
        (
            "a tag of an item that is none",
            "receipt.tag",
            signed(query, &|r| {
                r["provenance_tags_out"][0] = json!(format!("mem_7@{}", other_hash()));
            }),
        ),
        (
            "a tag of a hash that is none",
            "receipt.tag",
            signed(query, &|r| {
                let tag = r["provenance_tags_out"][0].as_str().unwrap().replace("sha256:", "md5:");
                r["provenance_tags_out"][0] = json!(tag);
            }),
        ),
        (
            "a move of no bundle",
            "receipt.input_hash",
            signed(of("memory.capture"), &|r| {
                r["action_id"] = json!("memory.migrate");
                r["provenance_tags_out"] = json!([]);
                remove(r, "", "output_hash");
            }),
        ),
        (
            "a move of a bundle, with an output",
            "receipt.output_hash",
            signed(of("memory.capture"), &|r| {
                r["action_id"] = json!("memory.migrate");
                r["provenance_tags_out"] = json!([]);
                r["input_hash"] = json!(other_hash());
            }),
        ),
    ] {
        table.refused(By::Owner, name, &[check], Receipt(receipt));
    }
    let unknown = signed(of("memory.capture"), &|r| r["action_id"] = json!("memory.dream"));
    table.named(By::Owner, "of an action that nobody knows", "unchecked.action", Receipt(unknown));
    let none = signed(of("memory.capture"), &|r| remove(r, "", "action_id"));
    table.named(By::Owner, "of no action", "unchecked.action", Receipt(none));
}

fn signatures(table: &mut Table) {
    let fixture = table.fixture;
    let keys = fixture.world.gateway.keys();
    let owner = keys.current();
    let query = fixture.log.iter().find(|r| r["action_id"] == "memory.query").unwrap().clone();
    let entry = |signer: &Signer, receipt: &Value| {
        let mut signed = receipt.clone();
        sign_receipt(&mut signed, signer);
        signed["signatures"][0].clone()
    };
    let push = |entry: Value| with(&query, |r| r["signatures"].as_array_mut().unwrap().push(entry));
    let genuine = entry(&fixture.grantee, &query);
    let joint = push(genuine.clone());
    assert!(Receipt(joint.clone()).judge(&fixture.reader).is_ok(), "a joint receipt");
    for (by, name, checks, receipt) in [
        (
            By::Mallory,
            "countersigned by one who has no part in it",
            &["receipt.stranger"][..],
            push(entry(&fixture.mallory, &query)),
        ),
        (
            By::Nobody,
            "a countersignature over something else",
            &["receipt.countersignature"],
            push({
                let mut other = query.clone();
                other["agent_did"] = json!("did:web:else.example");
                entry(&fixture.grantee, &other)
            }),
        ),
        (
            By::Nobody,
            "a countersignature of another alg",
            &["receipt.algorithm"],
            push({
                let mut other = genuine.clone();
                other["alg"] = json!("ES256");
                other
            }),
        ),
        (
            By::Nobody,
            "a countersignature by an unknown key",
            &["receipt.countersignature"],
            push({
                let mut other = genuine.clone();
                other["by"] = json!(format!("{}#key-9", fixture.grantee.did()));
                other
            }),
        ),
        (By::Nobody, "countersigned twice", &["receipt.signatures", "receipt.repeated_signer"], {
            let mut twice = joint.clone();
            twice["signatures"].as_array_mut().unwrap().push(genuine.clone());
            twice
        }),
        (
            By::Nobody,
            "the countersignature alone",
            &["receipt.unsigned"],
            with(&query, |r| r["signatures"] = json!([genuine])),
        ),
    ] {
        table.refused(by, name, checks, Receipt(receipt));
    }
    let unknown = with(&query, |r| {
        r["agent_did"] = json!("did:web:unknown.example");
        sign_receipt(r, owner);
        let entry = json!({"by": "did:web:unknown.example#key-1", "alg": "EdDSA", "value": "AAAA"});
        r["signatures"].as_array_mut().unwrap().push(entry);
    });
    table.named(
        By::Owner,
        "countersigned by one whose key nobody has",
        "unchecked.countersignature",
        Receipt(unknown),
    );
    let future = with(&query, |r| {
        r["timestamp"] = json!("2026-06-01T00:00:00.000Z");
        sign_receipt(r, owner);
    });
    table.refused(By::Owner, "from the future", &["receipt.future"], Receipt(future));
    let more = with(&query, |r| {
        r["zkp"] = json!("x");
        r["cost"] = json!(7);
        sign_receipt(r, owner);
    });
    table.named(By::Owner, "with members that nobody writes", "unchecked.members", Receipt(more));
    for (name, member, value) in [
        ("an outcome of no kind", "/policy_decisions/0/outcome", json!("perhaps")),
        ("a decision that is no decision", "/policy_decisions/0/id", json!("7")),
        ("a hash of another kind", "/output_hash", json!("md5:00")),
        ("a receipt_id of another kind", "/receipt_id", json!("urn:oap:deletion:01HX2QFXR0Q4S8T9V3W7X2Y0Z1")),
        ("tags that are a text", "/provenance_tags_out", json!("mem")),
        ("a principal that is no DID", "/principal_did", json!("ann")),
        ("a time of another zone", "/timestamp", json!("2026-05-01T14:00:00+02:00")),
    ] {
        let wrong = with(&query, |r| {
            set(r, member, value);
            sign_receipt(r, owner);
        });
        table.refused(By::Owner, name, &["receipt.malformed"], Receipt(wrong));
    }
}

/// The principal's chain.
fn chains(table: &mut Table) {
    let fixture = table.fixture;
    let keys = fixture.world.gateway.keys();
    let (owner, log) = (keys.current(), fixture.log.clone());
    let mut put = |by: By, name: &str, check: &'static str, change: &dyn Fn(&mut Vec<Value>)| {
        let mut changed = log.clone();
        change(&mut changed);
        assert_ne!(changed, log);
        table.refused(by, name, &[check], Receipts(changed));
    };
    put(By::Nobody, "empty", "receipt.cut", &|l| l.clear());
    put(By::Nobody, "the tail cut", "receipt.cut", &|l| drop(l.pop()));
    put(By::Nobody, "the beginning cut", "receipt.broken", &|l| drop(l.remove(0)));
    put(By::Nobody, "a pair cut out", "receipt.broken", &|l| drop(l.drain(2..4)));
    put(By::Nobody, "two swapped", "receipt.broken", &|l| l.swap(1, 2));
    put(By::Nobody, "an entry twice", "receipt.broken", &|l| l.insert(2, l[1].clone()));
    put(By::Nobody, "stripped", "receipt.unsigned", &|l| l[2]["signatures"] = json!([]));
    put(By::Nobody, "the last head stripped", "receipt.unsigned", &|l| {
        l.last_mut().unwrap()["signatures"] = json!([]);
    });
    put(By::Nobody, "cut at a head that more came after, unsigned", "receipt.unsigned", &|l| {
        l.truncate(4);
        l[3]["signatures"] = json!([]);
    });
    put(By::Owner, "a head of another length", "receipt.head", &|l| {
        set(&mut l[1], "/policy_decisions/0/length", json!(7));
        sign_receipt(&mut l[1], owner);
    });
    put(By::Owner, "a head of another chain", "receipt.other_chain", &|l| {
        let last = l.len() - 1;
        set(&mut l[last], "/policy_decisions/0/chain", json!("did:web:user.example#work"));
        sign_receipt(&mut l[last], owner);
    });
    put(By::Owner, "that does not begin with its boot entry", "receipt.boot", &|l| {
        l[0]["action_id"] = json!("memory.exchange");
        rechain(l, owner);
    });
    put(By::Owner, "heads that name no chain", "receipt.head", &|l| {
        for head in l.iter_mut().skip(1).step_by(2) {
            remove(head, "/policy_decisions/0", "chain");
        }
        rechain(l, owner);
    });
    put(By::Owner, "heads whose chain is a number", "receipt.head", &|l| {
        for head in l.iter_mut().skip(1).step_by(2) {
            set(head, "/policy_decisions/0/chain", json!(7));
        }
        rechain(l, owner);
    });
    put(By::Owner, "a head of another type", "receipt.type", &|l| {
        let last = l.len() - 1;
        l[last]["type"] = json!("consent");
        sign_receipt(&mut l[last], owner);
    });
    put(By::Owner, "an entry older than the one before", "receipt.time", &|l| {
        let last = l.len() - 1;
        l[last]["timestamp"] = json!("2026-04-01T00:00:00.000Z");
        sign_receipt(&mut l[last], owner);
    });
    put(By::Owner, "an entry that follows another", "receipt.broken", &|l| {
        l[4]["previous_receipt_hash"] = json!(other_hash());
        sign_receipt(&mut l[4], owner);
    });
    put(By::Mallory, "an entry of another principal", "receipt.other_chain", &|l| {
        l[2]["principal_did"] = json!(fixture.mallory.did());
        sign_receipt(&mut l[2], &fixture.mallory);
    });
}

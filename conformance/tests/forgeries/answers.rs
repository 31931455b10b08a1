//! Answers: who disclosed what to whom, under which grant.

use crate::fixture::other_hash;
use crate::forge::*;
use crate::items::{leaves, other};
use crate::table::{By, Document::Answer, Document::Under, Table};
use oap_identity::Signer;
use serde_json::{Value, json};

pub fn forge(table: &mut Table) {
    carried(table);
    wrapped(table);
    receipts(table);
    items(table);
    envelopes(table);
    expired(table);
    grants(table);
}

/// What is changed by whoever carries the answer.
fn carried(table: &mut Table) {
    let answer = table.fixture.answer.clone();
    let mut all = Vec::new();
    let mut envelope = answer.clone();
    remove(&mut envelope, "", "items");
    leaves(&envelope, "", &mut all);
    for at in all {
        let changed = with(&answer, |answer| {
            let new = other(answer.pointer(&at).unwrap());
            set(answer, &at, new);
        });
        let checks = [
            "answer.malformed",
            "answer.signature",
            "answer.signer",
            "receipt.signature",
            "receipt.malformed",
            "receipt.other_chain",
            "receipt.previous",
            "receipt.stranger",
            "receipt.algorithm",
        ];
        table.refused(By::Nobody, format!("{at} changed"), &checks, Answer(changed));
    }
    for member in answer.as_object().unwrap().keys() {
        let cut = with(&answer, |answer| remove(answer, "", member));
        let checks: &[&str] =
            if member == "next_cursor" { &["answer.signature"] } else { &["answer.malformed"] };
        table.refused(By::Nobody, format!("{member} left out"), checks, Answer(cut));
    }
    let mut put = |name: &str, checks: &[&'static str], change: &dyn Fn(&mut Value)| {
        table.refused(By::Nobody, name, checks, Answer(with(&answer, |a| change(a))));
    };
    put("an item left out", &["answer.output_hash"], &|a| drop(a["items"].as_array_mut().unwrap().pop()));
    put("items in another order", &["answer.output_hash"], &|a| a["items"].as_array_mut().unwrap().reverse());
    put("an item's relevance changed", &["answer.output_hash"], &|a| a["items"][0]["relevance"] = json!(0.5));
    put("an item's attitude changed", &["answer.output_hash"], &|a| {
        a["items"][0]["epistemic"] = json!("possession");
    });
    put("an embedding_ref added", &["answer.output_hash"], &|a| {
        a["items"][0]["embedding_ref"] = json!({"model": "m", "dimensions": 1, "vector_url": "x"});
    });
    put("an item's chain cut", &["answer.output_hash"], &|a| {
        let items = a["items"].as_array_mut().unwrap();
        let long = items.iter_mut().find(|i| i["integrity"]["chain"].as_array().unwrap().len() > 1).unwrap();
        long["integrity"]["chain"].as_array_mut().unwrap().pop();
    });
    put("an unknown member", &["answer.malformed"], &|a| a["note"] = json!("trust me"));
    put("a member more in signature", &["answer.malformed"], &|a| a["signature"]["note"] = json!("x"));
    put("a member more in projection_applied", &["answer.malformed"], &|a| {
        a["projection_applied"]["note"] = json!("x");
    });
    put("no value in signature", &["answer.malformed"], &|a| remove(a, "/signature", "value"));
    put("a list for a signature", &["answer.malformed"], &|a| a["signature"] = json!(["EdDSA"]));
    put("a garbage countersignature of the grantee", &["receipt.countersignature"], &|a| {
        let by = format!("{}#key-1", a["receipt"]["agent_did"].as_str().unwrap());
        let entry = json!({"by": by, "alg": "EdDSA", "value": "AAAA"});
        a["receipt"]["signatures"].as_array_mut().unwrap().push(entry);
    });
}

/// Somebody else's genuine items in an answer of one's own.
fn wrapped(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, mallory) = (keys.current(), &table.fixture.mallory);
    let answer = table.fixture.answer.clone();
    let own = |answer: &mut Value| {
        for member in ["principal_did", "tool_did"] {
            answer["receipt"][member] = json!(mallory.did());
        }
    };
    let wrapped = with(&answer, |a| {
        own(a);
        seal(a, mallory);
    });
    table.refused(
        By::Mallory,
        "a victim's items in an answer of her own",
        &["answer.copied"],
        Answer(wrapped),
    );
    let to_another = with(&answer, |a| {
        own(a);
        a["receipt"]["agent_did"] = json!("did:web:anybody.example");
        seal(a, mallory);
    });
    table.refused(By::Mallory, "the same, to anybody", &["answer.copied"], Answer(to_another));
    let mixed = with(&answer, |a| {
        own(a);
        a["items"].as_array_mut().unwrap().truncate(1);
        seal(a, mallory);
    });
    table.refused(By::Mallory, "one of a victim's items", &["answer.copied"], Answer(mixed));
    let envelope = with(&answer, |a| seal_envelope(a, mallory));
    table.refused(
        By::Mallory,
        "her envelope around a victim's receipt",
        &["answer.signer"],
        Answer(envelope),
    );
    let receipt = with(&answer, |a| {
        own(a);
        sign_receipt(&mut a["receipt"], mallory);
        seal_envelope(a, owner);
    });
    table.refused(By::Owner, "a victim's envelope around her receipt", &["answer.signer"], Answer(receipt));
    let forged = with(&answer, |a| seal(a, mallory));
    table.refused(
        By::Mallory,
        "her signature under a victim's receipt",
        &["receipt.stranger"],
        Answer(forged),
    );
    let moved = with(&answer, |a| {
        own(a);
        for item in a["items"].as_array_mut().unwrap() {
            *item = and_then(item, "migrate", mallory);
        }
        seal(a, mallory);
    });
    table.named(By::Mallory, "moved to her by her own word", "unchecked.move", Answer(moved));
}

/// What the receipt of an answer says, signed by its owner.
fn receipts(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, answer) = (keys.current(), table.fixture.answer.clone());
    let items = table.fixture.answer["items"].as_array().unwrap().iter();
    let links = items.flat_map(|item| item["integrity"]["chain"].as_array().unwrap());
    let times = links.map(|link| link["at"].as_str().unwrap().parse::<oap_identity::Timestamp>().unwrap());
    let before = oap_identity::Timestamp::from_millis(times.max().unwrap().millis() - 1);
    let mut put = |name: &str, check: &'static str, change: &dyn Fn(&mut Value)| {
        let changed = with(&answer, |a| {
            change(&mut a["receipt"]);
            seal_receipt(a, owner);
        });
        table.refused(By::Owner, format!("receipt: {name}"), &[check], Answer(changed));
    };
    for kind in ["consent", "deletion", "incident", "kill_switch"] {
        put(&format!("type {kind}"), "receipt.type", &|r| r["type"] = json!(kind));
    }
    for action in ["memory.capture", "memory.describe", "memory.chain_head"] {
        put(action, "receipt.tags", &|r| r["action_id"] = json!(action));
    }
    for action in ["memory.export", "memory.dream"] {
        put(action, "answer.action", &|r| r["action_id"] = json!(action));
    }
    put("no action", "answer.action", &|r| remove(r, "", "action_id"));
    put("nobody as grantee", "answer.grantee", &|r| r["agent_did"] = json!("anonymous"));
    put("another tool", "answer.tool", &|r| r["tool_did"] = json!("did:web:mallory.example"));
    for outcome in ["require_consent", "require_anonymization", "allow_with_conditions"] {
        put(outcome, "receipt.outcome", &|r| set(r, "/policy_decisions/0/outcome", json!(outcome)));
    }
    let block = |r: &mut Value| set(r, "/policy_decisions/0/outcome", json!("block"));
    put("block", "receipt.tags", &block);
    put("block, of no items", "receipt.output_hash", &|r| {
        block(r);
        r["provenance_tags_out"] = json!([]);
    });
    put("a refusal's", "answer.output_hash", &|r| {
        block(r);
        r["provenance_tags_out"] = json!([]);
        remove(r, "", "output_hash");
    });
    put("a tag without its commitment", "receipt.tag", &|r| {
        let tag = r["provenance_tags_out"][0].as_str().unwrap().split('@').next().unwrap().to_owned();
        r["provenance_tags_out"][0] = json!(tag);
    });
    put("no decision", "receipt.decision", &|r| r["policy_decisions"] = json!([]));
    for fact in [
        "consumed_grant_id",
        "grant_hash",
        "scope_id",
        "trust_level",
        "profile",
        "profile_hash",
        "lawful_basis",
    ] {
        put(&format!("without {fact}"), "answer.no_grant", &|r| remove(r, "/policy_decisions/0", fact));
    }
    put("a grant that is none", "answer.no_grant", &|r| {
        set(r, "/policy_decisions/0/consumed_grant_id", json!("grant 7"));
    });
    put("no input_hash", "answer.input_hash", &|r| remove(r, "", "input_hash"));
    put("no output_hash", "receipt.output_hash", &|r| remove(r, "", "output_hash"));
    put("another output_hash", "answer.output_hash", &|r| r["output_hash"] = json!(other_hash()));
    put("no tags", "answer.tags", &|r| r["provenance_tags_out"] = json!([]));
    put("tags in another order", "answer.tags", &|r| {
        r["provenance_tags_out"].as_array_mut().unwrap().reverse();
    });
    put("a tag more", "answer.tags", &|r| {
        let tags = r["provenance_tags_out"].as_array_mut().unwrap();
        tags.push(tags[0].clone());
    });
    put("older than its items", "answer.younger", &|r| r["timestamp"] = json!("2026-04-30T00:00:00.000Z"));
    put("a millisecond older than its newest item", "answer.younger", &|r| r["timestamp"] = json!(before));
    put("from the future", "item.future", &|r| r["timestamp"] = json!("2026-06-30T00:00:00.000Z"));
    put("another level than was applied", "answer.projection", &|r| {
        set(r, "/policy_decisions/0/trust_level", json!(0));
    });
    put("another profile than was applied", "answer.projection", &|r| {
        set(r, "/policy_decisions/0/profile", json!("oap.profile.projection.contact.v1"));
    });
    put("another basis than was applied", "answer.projection", &|r| {
        set(r, "/policy_decisions/0/lawful_basis", json!("contract"));
    });
}

/// What the items of an answer say, sealed by its owner.
fn items(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, answer) = (keys.current(), table.fixture.answer.clone());
    let retracted = table.fixture.retracted.clone();
    let one = answer["items"].as_array().unwrap().iter().position(|i| i["version"] == 1).unwrap();
    let mut put = |by: By, name: &str, check: &'static str, change: &dyn Fn(&mut Vec<Value>)| {
        let changed = with(&answer, |a| {
            change(a["items"].as_array_mut().unwrap());
            seal(a, owner);
        });
        table.refused(by, format!("items: {name}"), &[check], Answer(changed));
    };
    put(By::Owner, "one twice", "answer.repeated", &|items| items.push(items[0].clone()));
    put(By::Owner, "a retracted one", "answer.not_current", &|items| items.push(retracted.clone()));
    put(By::Owner, "retracted just now", "answer.not_current", &|items| {
        items[one] = and_then(&items[one], "retract", owner);
        items[one]["status"] = json!("retracted");
    });
    put(By::Owner, "a retracted one, said to be current", "item.status", &|items| {
        items[one] = and_then(&items[one], "retract", owner);
    });
    put(By::Owner, "an erased one with its content", "item.ended", &|items| {
        items[one] = and_then(&items[one], "erase", owner);
    });
    put(By::Owner, "one without proof", "item.unproved", &|items| {
        remove(&mut items[one], "/integrity", "sd_jwt")
    });
    put(By::Owner, "a word changed", "item.visible", &|items| {
        set(&mut items[one], "/content/text", json!("Tea"))
    });
    put(By::Owner, "another owner", "item.owner", &|items| {
        items[one]["owner_did"] = json!("did:web:mallory.example");
    });
    put(By::Owner, "another version", "item.version", &|items| items[one]["version"] = json!(2));
    put(By::Owner, "knowledge that nobody confirmed", "item.epistemic", &|items| {
        items[one]["epistemic"] = json!("knowledge");
    });
    put(By::Owner, "more than an answer may have", "answer.too_many", &|items| {
        let item = items[one].clone();
        items.extend(std::iter::repeat_n(item, 100));
    });
    put(By::Owner, "one that is a list", "item.member", &|items| {
        let chain = items[one]["integrity"]["chain"].clone();
        items[one] = json!({"item_id": items[one]["item_id"], "integrity": {"chain": chain}});
    });
}

/// The envelope, signed by its owner.
fn envelopes(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, answer) = (keys.current(), table.fixture.answer.clone());
    let mut put = |name: &str, checks: &[&'static str], change: &dyn Fn(&mut Value)| {
        let changed = with(&answer, |a| {
            change(a);
            seal_envelope(a, owner);
        });
        table.refused(By::Owner, format!("envelope: {name}"), checks, Answer(changed));
    };
    for (member, value) in [
        ("trust_level", json!(0)),
        ("profile", json!("oap.profile.projection.full.v1")),
        ("lawful_basis", json!("contract")),
    ] {
        put(&format!("another {member}"), &["answer.projection"], &|a| {
            a["projection_applied"][member] = value.clone();
        });
    }
    for (member, value) in [
        ("trust_level", json!(9)),
        ("redacted_field_count", json!(-1)),
        ("profile", json!(null)),
        ("lawful_basis", json!(1)),
    ] {
        put(&format!("{member} of another shape"), &["answer.malformed"], &|a| {
            a["projection_applied"][member] = value.clone();
        });
    }
    put("another response_id", &["answer.output_hash"], &|a| {
        a["response_id"] = json!("01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
    });
    put("a response_id that is none", &["answer.malformed"], &|a| a["response_id"] = json!("7"));
    put("a cursor that is a number", &["answer.malformed"], &|a| a["next_cursor"] = json!(7));
    put("an unknown member", &["answer.malformed"], &|a| a["total"] = json!(7));
    let signature =
        |change: &dyn Fn(&mut Value, &Signer)| with(&answer, |a| change(&mut a["signature"], owner));
    for (name, check, changed) in [
        ("alg none", "answer.signature", signature(&|s, _| s["alg"] = json!("none"))),
        ("alg ES256", "answer.signature", signature(&|s, _| s["alg"] = json!("ES256"))),
        (
            "an unknown key",
            "answer.signature",
            signature(&|s, _| s["kid"] = json!("did:web:user.example#key-9")),
        ),
        (
            "a signature over something else",
            "answer.signature",
            signature(&|s, o| s["value"] = json!(o.sign(b"x"))),
        ),
        (
            "padding",
            "answer.signature",
            signature(&|s, _| {
                s["value"] = json!(format!("{}==", s["value"].as_str().unwrap()));
            }),
        ),
    ] {
        table.refused(By::Nobody, format!("signature: {name}"), &[check], Answer(changed));
    }
}

/// States another value of a member of the item of one link that has an end.
fn restate(answer: &mut Value, member: &str, value: &Value, signer: &Signer) {
    let items = answer["items"].as_array_mut().unwrap();
    let item = items.iter_mut().find(|item| item["expires_at"].is_string()).unwrap();
    *item = recommitted(item, signer, |opened| opened.change(member, |d| d[2] = value.clone()));
    item[member] = value.clone();
}

/// Items whose time was over.
fn expired(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, answer) = (keys.current(), table.fixture.answer.clone());
    let at = answer["receipt"]["timestamp"].clone();
    let ended = with(&answer, |a| {
        restate(a, "expires_at", &at, owner);
        seal(a, owner);
    });
    table.refused(
        By::Owner,
        "an item that ended as it was answered with",
        &["answer.expired"],
        Answer(ended),
    );
    let lived = with(&answer, |a| {
        restate(a, "ttl_days", &json!(0), owner);
        let items = a["items"].as_array_mut().unwrap();
        let item = items.iter_mut().find(|item| item["expires_at"].is_string()).unwrap();
        let mut opened = open(item);
        opened.disclosures.retain(|disclosure| disclosure[1] != "expires_at");
        item["integrity"]["sd_jwt"] = json!(opened.text(owner));
        remove(item, "", "expires_at");
        seal(a, owner);
    });
    let name = "an item whose days were over, and whose end is hidden";
    table.refused(By::Owner, name, &["answer.expired"], Answer(lived));
}

/// A genuine answer under another grant than it was given under.
fn grants(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, mallory) = (keys.current(), &table.fixture.mallory);
    let (answer, grant) = (table.fixture.answer.clone(), table.fixture.grant.clone());
    let at = answer["receipt"]["timestamp"].as_str().unwrap().to_owned();
    let signed = |signer: &Signer, change: &dyn Fn(&mut Value)| {
        with(&grant, |grant| {
            change(grant);
            sign(grant, signer);
        })
    };
    let own = signed(mallory, &|g| g["granter"] = json!(format!("{}#personal", mallory.did())));
    table.refused(By::Mallory, "her own grant", &["grant.granter"], Under(answer.clone(), own));
    for (name, check, changed) in [
        (
            "to another grantee",
            "grant.grantee",
            signed(owner, &|g| g["grantee"] = json!("did:web:b.example")),
        ),
        (
            "another grant",
            "grant.other",
            signed(owner, &|g| g["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1")),
        ),
        (
            "the same grant, with another purpose",
            "grant.other",
            signed(owner, &|g| g["purpose"] = json!("x")),
        ),
    ] {
        table.refused(By::Owner, name, &[check], Under(answer.clone(), changed));
    }
    // Sealed for that grant, and still not within it.
    let mut sealed = |name: &str, check: &'static str, change: &dyn Fn(&mut Value)| {
        let grant = signed(owner, change);
        let hash = oap_identity::Hash::of_canonical(&grant).unwrap();
        let changed = with(&answer, |a| {
            set(&mut a["receipt"], "/policy_decisions/0/grant_hash", json!(hash));
            seal(a, owner);
        });
        table.refused(By::Owner, name, &[check], Under(changed, grant));
    };
    sealed("after its end", "grant.time", &|g| {
        g["issued_at"] = json!("2026-04-01T00:00:00.000Z");
        g["expires_at"] = json!(at);
    });
    sealed("before its beginning", "grant.time", &|g| g["not_before"] = json!("2026-05-02T00:00:00.000Z"));
    sealed("without the right to ask", "grant.operation", &|g| g["operations"] = json!(["export"]));
    sealed("at a lower level", "grant.projection", &|g| g["trust_level"] = json!(1));
    sealed("by another profile", "grant.projection", &|g| {
        g["redaction_profile"] = json!("oap.profile.projection.contact.v1");
    });
    sealed("on another basis", "grant.projection", &|g| g["lawful_basis"] = json!("contract"));
    sealed("of fewer items", "grant.too_many", &|g| g["max_items"] = json!(1));
    for (name, filter) in [
        ("of another kind", json!({"kinds": ["summary"]})),
        ("of another label", json!({"labels_any": ["other"]})),
        ("of two labels", json!({"labels_all": ["case", "more"]})),
        ("without that label", json!({"exclude_labels": ["case"]})),
        ("of another scope", json!({"scopes": ["work"]})),
        ("of later items", json!({"captured_after": "2026-05-02T00:00:00.000Z"})),
        ("of earlier items", json!({"captured_before": "2026-04-01T00:00:00.000Z"})),
        ("of surer items", json!({"min_confidence": 0.9})),
        ("of another subject", json!({"subject_entity_ids": ["ent_bob"]})),
        ("of other sensitivities", json!({"sensitivities": ["public"]})),
        ("of no labels at all", json!({"labels_all": []})),
        ("of no subjects at all", json!({"subject_entity_ids": []})),
    ] {
        sealed(name, "grant.filter", &|g| g["filter"] = filter.clone());
    }
    // An item that is other than it was, and the filter that does not admit it.
    let mut shown = |name: &str, filter: Value, member: &str, value: Value| {
        let grant = signed(owner, &|g| g["filter"] = filter.clone());
        let hash = oap_identity::Hash::of_canonical(&grant).unwrap();
        let changed = with(&answer, |a| {
            restate(a, member, &value, owner);
            set(&mut a["receipt"], "/policy_decisions/0/grant_hash", json!(hash));
            seal(a, owner);
        });
        table.refused(By::Owner, name, &["grant.filter"], Under(changed, grant));
    };
    let case = json!({"labels_any": ["case", "other"]});
    shown("of a restricted item, which it does not name", case.clone(), "sensitivity", json!("restricted"));
    shown("of less sensitive items", json!({"sensitivities": ["internal"]}), "sensitivity", json!("public"));
    shown("of an item that must not leave", case, "exportable", json!(false));
    for (name, check, member, value) in [
        ("of another scope, says the receipt", "grant.scope", "scope_id", json!("work")),
        (
            "by a profile of that name that says something else",
            "grant.profile_hash",
            "profile_hash",
            json!(other_hash()),
        ),
    ] {
        let changed = with(&answer, |a| {
            a["receipt"]["policy_decisions"][0][member] = value;
            seal(a, owner);
        });
        table.refused(By::Owner, name, &[check], Under(changed, grant.clone()));
    }
    let named = "oap.profile.projection.own.v1";
    let own = signed(owner, &|g| g["redaction_profile"] = json!(named));
    let hash = oap_identity::Hash::of_canonical(&own).unwrap();
    let by_own = with(&answer, |a| {
        a["projection_applied"]["profile"] = json!(named);
        a["receipt"]["policy_decisions"][0]["profile"] = json!(named);
        a["receipt"]["policy_decisions"][0]["profile_hash"] = json!(other_hash());
        a["receipt"]["policy_decisions"][0]["grant_hash"] = json!(hash);
        seal(a, owner);
    });
    table.named(By::Owner, "by a profile of its own", "unchecked.profile", Under(by_own, own));
    let less = with(&answer, |a| {
        a["items"].as_array_mut().unwrap().truncate(1);
        seal(a, owner);
    });
    table.named(
        By::Owner,
        "of fewer items than there are",
        "unchecked.projection",
        Under(less, grant.clone()),
    );
    table.named(
        By::Owner,
        "for a grantee who never asked",
        "unchecked.agent",
        Answer(with(&answer, |a| {
            a["receipt"]["agent_did"] = json!("did:web:anybody.example");
            seal(a, owner);
        })),
    );
    let hash = oap_identity::Hash::of_canonical(&grant).unwrap();
    let delegated = with(&answer, |a| {
        a["receipt"]["policy_decisions"][0]["delegation"] = json!([hash]);
        seal(a, owner);
    });
    table.refused(
        By::Owner,
        "delegated, says the receipt",
        &["grant.delegation"],
        Under(delegated, grant.clone()),
    );
    let vector = with(&answer, |a| {
        a["items"][0]["embedding_ref"] = json!({"model": "m", "dimensions": 1, "vector_url": "https://x/"});
        seal(a, owner);
    });
    table.refused(
        By::Owner,
        "embeddings without the right to them",
        &["grant.embedding"],
        Under(vector, grant),
    );
}

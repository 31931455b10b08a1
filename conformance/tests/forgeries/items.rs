//! Items: what is shown, its SD-JWT, its chain, its capture receipt.

use crate::fixture::other_hash;
use crate::forge::*;
use crate::table::{By, Document::Item, Table};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_identity::Signer;
use oap_memory::form::{CLEAR, CONCEALED, NEVER_CLAIMED};
use serde_json::{Value, json};

pub fn forge(table: &mut Table) {
    visible(table);
    disclosures(table);
    claims(table);
    forms(table);
    places(table);
    chains(table);
    links(table);
    captures(table);
}

/// Every leaf of a value, by pointer.
pub fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, value)| leaves(value, &format!("{at}/{name}"), found));
        }
        Value::Array(values) if !values.is_empty() => {
            values.iter().enumerate().for_each(|(n, value)| leaves(value, &format!("{at}/{n}"), found));
        }
        _ => found.push(at.to_owned()),
    }
}

pub fn other(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(format!("{text}x")),
        Value::Number(number) => json!(number.as_f64().unwrap() / 2.0 + 0.125),
        Value::Bool(bool) => json!(!bool),
        _ => json!("x"),
    }
}

/// What the item shows, changed by whoever carries it.
fn visible(table: &mut Table) {
    let one = table.fixture.one.clone();
    let mut shown = one.clone();
    remove(&mut shown, "", "integrity");
    let mut all = Vec::new();
    leaves(&shown, "", &mut all);
    for at in all {
        let changed = with(&one, |item| {
            let new = other(item.pointer(&at).unwrap());
            set(item, &at, new);
        });
        let name = format!("{at} changed");
        match at.as_str() {
            "/relevance" => table.named(By::Nobody, name, "relevance", Item(changed)),
            "/epistemic" => table.refused(By::Nobody, name, &["item.member"], Item(changed)),
            "/item_id" => table.refused(By::Nobody, name, &["item.member"], Item(changed)),
            "/owner_did" => table.refused(By::Nobody, name, &["item.owner"], Item(changed)),
            "/version" => table.refused(By::Nobody, name, &["item.version"], Item(changed)),
            "/status" => table.refused(By::Nobody, name, &["item.status"], Item(changed)),
            _ => table.refused(By::Nobody, name, &["item.visible"], Item(changed)),
        }
    }
    for name in shown.as_object().unwrap().keys() {
        let cut = with(&one, |item| remove(item, "", name));
        let checks: &[&str] = match name.as_str() {
            "relevance" | "epistemic" => continue,
            "item_id" | "owner_did" | "version" | "status" => &["item.member"],
            _ => &["item.visible"],
        };
        table.refused(By::Nobody, format!("{name} left out"), checks, Item(cut));
    }
    let mut put = |name: &str, member: &str, value: Value, check: &'static str| {
        let changed = with(&one, |item| item[member] = value);
        table.refused(By::Nobody, name, &[check], Item(changed));
    };
    put("an unknown member", "colour", json!("red"), "item.visible");
    put("updated_at, which no claim carries", "updated_at", json!("2026-05-01T12:00:00Z"), "item.visible");
    put("an embedding that was not disclosed", "embedding", json!({"model": "m"}), "item.visible");
    put("knowledge that nobody confirmed", "epistemic", json!("knowledge"), "item.epistemic");
    put("relevance above one", "relevance", json!(1.5), "item.member");
    put("relevance in words", "relevance", json!("high"), "item.member");
    put("status retracted", "status", json!("retracted"), "item.status");
    put("status superseded", "status", json!("superseded"), "item.status");
    put("the owner is the forger", "owner_did", json!("did:web:mallory.example"), "item.owner");
    put("an embedding_ref of another shape", "embedding_ref", json!({"url": "x"}), "item.member");
    let attitude = with(&one, |item| item["epistemic"] = json!("possession"));
    table.named(By::Nobody, "another attitude", "epistemic", Item(attitude));
    let reference = json!({"model": "m", "dimensions": 3, "vector_url": "https://mallory.example/"});
    let vector = with(&one, |item| item["embedding_ref"] = reference);
    table.named(By::Nobody, "an embedding_ref added", "embedding_ref", Item(vector));
    for (name, check) in [("integrity", "item.member"), ("item_id", "item.member")] {
        let null = with(&one, |item| item[name] = Value::Null);
        table.refused(By::Nobody, format!("{name} null"), &[check], Item(null));
    }
    for (name, check) in
        [("sd_jwt", "item.unproved"), ("chain", "item.member"), ("capture_receipt", "item.member")]
    {
        let cut = with(&one, |item| remove(item, "/integrity", name));
        table.refused(By::Nobody, format!("integrity without {name}"), &[check], Item(cut));
        let long = table.fixture.long["integrity"][name].clone();
        let swapped = with(&one, |item| item["integrity"][name] = long);
        let check: &[&str] = match name {
            "sd_jwt" => &["item.commitment"],
            _ => &["capture.receipt"],
        };
        table.refused(By::Nobody, format!("{name} of another item"), check, Item(swapped));
    }
    let more = with(&one, |item| item["integrity"]["note"] = json!("trust me"));
    table.refused(By::Nobody, "an unknown member of integrity", &["item.unknown_member"], Item(more));
}

/// The disclosures, taken away and mixed by whoever carries the item.
fn disclosures(table: &mut Table) {
    let one = table.fixture.one.clone();
    let text = one["integrity"]["sd_jwt"].as_str().unwrap().to_owned();
    let parts: Vec<String> = text.split_terminator('~').map(str::to_owned).collect();
    let put =
        |parts: &[String]| with(&one, |item| item["integrity"]["sd_jwt"] = json!(parts.join("~") + "~"));
    for number in 1..parts.len() {
        let mut fewer = parts.clone();
        fewer.remove(number);
        let name = format!("disclosure {number} left out");
        table.refused(
            By::Nobody,
            name,
            &["item.visible", "sd_jwt.disclosures", "commitment.claim"],
            Item(put(&fewer)),
        );
    }
    let mut add = |name: &str, more: &str, checks: &[&'static str]| {
        let mut all = parts.clone();
        all.push(more.to_owned());
        table.refused(By::Nobody, name, checks, Item(put(&all)));
    };
    let disclosure = |value: Value| encode(&value);
    add("a disclosure twice", &parts[1].clone(), &["sd_jwt.repeated_disclosure"]);
    add(
        "a disclosure that no digest asks for",
        &disclosure(json!([SALT, "colour", "red"])),
        &["sd_jwt.disclosures"],
    );
    add("an element that no digest asks for", &disclosure(json!([SALT, "red"])), &["sd_jwt.disclosures"]);
    add("a disclosure of one part", &disclosure(json!([SALT])), &["sd_jwt.disclosure"]);
    add("a disclosure of four parts", &disclosure(json!([SALT, "a", 1, 2])), &["sd_jwt.disclosure"]);
    add("a disclosure that is an object", &disclosure(json!({"a": 1})), &["sd_jwt.disclosure"]);
    add("a disclosure of _sd", &disclosure(json!([SALT, "_sd", []])), &["sd_jwt.reserved"]);
    add("a disclosure of _sd_alg", &disclosure(json!([SALT, "_sd_alg", "x"])), &["sd_jwt.reserved"]);
    add("a disclosure of ...", &disclosure(json!([SALT, "...", "x"])), &["sd_jwt.reserved"]);
    add("a disclosure that is no base64url", "!", &["sd_jwt.disclosure"]);
    add("a disclosure that is no JSON", &B64.encode("["), &["sd_jwt.json"]);
    let bound = with(&one, |item| item["integrity"]["sd_jwt"] = json!(format!("{text}{}", parts[0])));
    table.refused(By::Nobody, "a key-binding JWT", &["sd_jwt.key_binding"], Item(bound));
    let bare = with(&one, |item| item["integrity"]["sd_jwt"] = json!(parts[0]));
    table.refused(By::Nobody, "no tilde", &["sd_jwt.malformed"], Item(bare));
    let mut foreign = table.fixture.long["integrity"]["sd_jwt"].as_str().unwrap().split('~');
    let foreign = foreign.nth(1).unwrap().to_owned();
    let mut all = parts.clone();
    all.push(foreign);
    table.refused(By::Nobody, "a disclosure of another item", &["sd_jwt.disclosures"], Item(put(&all)));
    let jwt: Vec<&str> = parts[0].split('.').collect();
    for (name, changed) in [
        ("the issuer's signature cut", format!("{}.{}.", jwt[0], jwt[1])),
        ("another header", format!("{}.{}.{}", B64.encode(r#"{"alg":"none"}"#), jwt[1], jwt[2])),
        ("another payload", format!("{}.{}.{}", jwt[0], B64.encode("{}"), jwt[2])),
    ] {
        let mut all = parts.clone();
        all[0] = changed;
        table.refused(By::Nobody, name, &["commitment.signature"], Item(put(&all)));
    }
}

/// Claims that the owner's key signs and that no item has, or not so.
fn claims(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, one) = (keys.current(), table.fixture.one.clone());
    for name in NEVER_CLAIMED {
        let value = json!("did:web:victim.example");
        let shown = recommitted(&one, owner, |opened| opened.add(name, value.clone()));
        table.refused(By::Owner, format!("a disclosed claim {name}"), &["form.never_claimed"], Item(shown));
        let clear = recommitted(&one, owner, |opened| drop(opened.payload.insert(name.into(), value)));
        table.refused(By::Owner, format!("a clear claim {name}"), &["form.never_claimed"], Item(clear));
    }
    let unknown = recommitted(&one, owner, |opened| opened.add("colour", json!("red")));
    table.refused(By::Owner, "a disclosed claim of no member", &["form.unknown_claim"], Item(unknown));
    let unknown = recommitted(&one, owner, |opened| drop(opened.payload.insert("exp".into(), json!(1))));
    table.refused(By::Owner, "a clear claim of no member", &["form.unknown_claim"], Item(unknown));
    for name in CONCEALED {
        let clear = recommitted(&one, owner, |opened| drop(opened.payload.insert(name.into(), json!("x"))));
        table.refused(By::Owner, format!("{name} in the clear"), &["form.in_the_clear"], Item(clear));
    }
    for name in CLEAR {
        let concealed = recommitted(&one, owner, |opened| {
            let value = opened.payload.remove(name).unwrap();
            opened.add(name, value);
        });
        table.refused(By::Owner, format!("{name} concealed"), &["form.not_in_the_clear"], Item(concealed));
    }
    for (name, value) in [
        ("kind", json!("rumour")),
        ("kind", json!(1)),
        ("scope_id", json!("not a scope")),
        ("subject_entity_id", json!(7)),
        ("labels", json!("case")),
        ("ttl_days", json!(-1)),
        ("ttl_days", json!("300")),
        ("expires_at", json!("tomorrow")),
        ("exportable", json!("yes")),
        ("sensitivity", json!("secret")),
        ("extensions", json!("x")),
        ("provenance", json!([])),
        ("content", json!("Tea")),
    ] {
        let title = format!("claim {name} is {value}");
        let wrong = recommitted(&one, owner, |opened| opened.change(name, |d| d[2] = value));
        // Where its parts are disclosed still, no digest asks for them any more.
        table.refused(By::Owner, title, &["commitment.claim", "sd_jwt.disclosures"], Item(wrong));
    }
    // Parts of a container: found by their value, changed with the digests of everything around them.
    for (title, old, new, checks) in [
        ("confidence above one", json!(0.75), json!(7), ["commitment.claim"]),
        ("a span of an unknown class", json!("email"), json!("e-mail"), ["commitment.claim"]),
    ] {
        let wrong = recommitted(&one, owner, |opened| deep(opened, &old, &new));
        table.refused(By::Owner, title, &checks, Item(wrong));
    }
    let receipt = one["provenance"]["source_receipt"].clone();
    let other = json!("rec_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
    let wrong = recommitted(&one, owner, |opened| deep(opened, &receipt, &other));
    table.refused(By::Owner, "another source_receipt", &["commitment.source_receipt"], Item(wrong));
    let mallory = &table.fixture.mallory;
    let issuer = recommitted(&one, owner, |opened| {
        opened.payload.insert("iss".into(), json!(mallory.did()));
    });
    table.refused(By::Owner, "another issuer than the signer", &["commitment.issuer"], Item(issuer));
}

/// Changes the disclosure that says a value, or shows its class, and every digest on the way to the root.
fn deep(opened: &mut Opened, old: &Value, new: &Value) {
    let says = |d: &Value| {
        let last = d.as_array().unwrap().last().unwrap();
        last == old || last.get("t") == Some(old)
    };
    let place = opened.disclosures.iter().position(says).unwrap();
    let before = digest(&opened.disclosures[place]);
    let last = opened.disclosures[place].as_array_mut().unwrap().last_mut().unwrap();
    if last == old {
        *last = new.clone()
    } else {
        last["t"] = new.clone()
    }
    let after = digest(&opened.disclosures[place]);
    carry(opened, before, after);
}

/// Puts a new digest in the place of an old one, up to the root.
fn carry(opened: &mut Opened, mut old: String, mut new: String) {
    loop {
        let holds = |d: &Value| d.to_string().contains(&old);
        let Some(place) = opened.disclosures.iter().position(holds) else {
            opened.swap(&old, &new);
            return;
        };
        let before = digest(&opened.disclosures[place]);
        let text = opened.disclosures[place].to_string().replace(&old, &new);
        let mut disclosure: Value = serde_json::from_str(&text).unwrap();
        let last = disclosure.as_array_mut().unwrap().last_mut().unwrap();
        if let Some(digests) = last.get_mut("_sd").and_then(Value::as_array_mut) {
            digests.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        }
        opened.disclosures[place] = disclosure;
        (old, new) = (before, digest(&opened.disclosures[place]));
    }
}

/// Forms that the owner's key signs and protocol section 4.1 does not have.
fn forms(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, one) = (keys.current(), table.fixture.one.clone());
    let mut add = |name: &str, check: &'static str, change: &dyn Fn(&mut Opened)| {
        let item = recommitted(&one, owner, change);
        table.refused(By::Owner, name, &[check], Item(item));
    };
    add("digests of the root reversed", "form.unsorted", &|o| o.root().reverse());
    add("two digests of the root swapped", "form.unsorted", &|o| o.root().swap(0, 1));
    add("a digest of the root twice", "form.unsorted", &|o| {
        let first = o.root()[0].clone();
        o.root().insert(0, first);
        o.root().remove(2);
    });
    let decoys = |o: &mut Opened, n: usize| {
        let known: Vec<String> = o.disclosures.iter().map(digest).collect();
        for _ in 0..n {
            let decoy = o.root().iter().position(|d| !known.iter().any(|k| d == k)).unwrap();
            o.root().remove(decoy);
        }
    };
    add("a decoy of the root less", "form.padding", &|o| decoys(o, 1));
    add("two decoys of the root less", "form.padding", &|o| decoys(o, 2));
    add("a decoy of the root more", "form.padding", &|o| o.root().push(json!("z".repeat(42) + "8")));
    add("no digests at the root", "form.padding", &|o| {
        o.root().clear();
        o.disclosures.clear();
    });
    add("_sd is no array", "form.padding", &|o| drop(o.payload.insert("_sd".into(), json!("x"))));
    for (name, digest) in [
        ("a digest of three bytes", "AAAA"),
        ("a digest of 31 bytes", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        ("an empty digest", ""),
        ("a digest that is no base64url", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA!"),
    ] {
        add(name, "form.digest", &|o| {
            decoys(o, 1);
            o.root().insert(0, json!(digest));
        });
    }
    add("_sd_alg missing", "sd_jwt.algorithm", &|o| drop(o.payload.remove("_sd_alg")));
    add("_sd_alg of another hash", "sd_jwt.algorithm", &|o| {
        o.payload.insert("_sd_alg".into(), json!("sha-512"));
    });
    for (name, salt) in [
        ("a salt of one character", "A"),
        ("an empty salt", ""),
        ("a salt of 15 bytes", "AAAAAAAAAAAAAAAAAAAA"),
        ("a salt of 17 bytes", "AAAAAAAAAAAAAAAAAAAAAAA"),
        ("a salt that is no base64url", "AAAAAAAAAAAAAAAAAAAA+A"),
        ("a salt with spare bits", "AAAAAAAAAAAAAAAAAAAAAB"),
    ] {
        add(name, "form.salt", &|o| o.change("kind", |d| d[0] = json!(salt)));
    }
    add("an object with a plain member", "form.plain", &|o| {
        o.change("content", |d| drop(d[2].as_object_mut().unwrap().insert("text".into(), json!("x"))));
    });
    add("an object that is not concealed by part", "form.plain", &|o| {
        o.change("extensions", |d| d[2] = json!({"example.app": 1}));
    });
    add("an array that is not concealed by part", "form.plain", &|o| {
        o.change("labels", |d| d[2] = json!(["case"]));
    });
    add("an array half concealed", "form.plain", &|o| o.change("labels", |d| d[2][7] = json!("tea")));
    add("an array with a decoy less", "form.padding", &|o| {
        o.change("labels", |d| drop(d[2].as_array_mut().unwrap().pop()));
    });
    add("an array with a decoy of three bytes", "form.digest", &|o| {
        o.change("labels", |d| d[2][7] = json!({"...": "AAAA"}));
    });
    add("an element with a member beside its digest", "form.plain", &|o| {
        o.change("labels", |d| d[2][7]["more"] = json!(1));
    });
    add("digests of an object reversed", "form.unsorted", &|o| {
        o.change("content", |d| d[2]["_sd"].as_array_mut().unwrap().reverse());
    });
    add("digests of an object with a decoy less", "form.padding", &|o| {
        let known: Vec<String> = o.disclosures.iter().map(digest).collect();
        o.change("content", |d| {
            let digests = d[2]["_sd"].as_array_mut().unwrap();
            let decoy = digests.iter().position(|d| !known.iter().any(|k| d == k)).unwrap();
            digests.remove(decoy);
        });
    });
    let typ = with(&one, |item| {
        let text = open(item).text_as("JWT", owner);
        commit(item, &text, owner);
    });
    table.refused(By::Owner, "another typ", &["commitment.signature"], Item(typ));
}

/// A version at another place than its chain says, all signed.
fn places(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, one) = (keys.current(), table.fixture.one.clone());
    for (name, value) in [
        ("item_id", json!("mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1")),
        ("seq", json!(1)),
        ("event", json!("correct")),
        ("prev", json!(other_hash())),
        ("iat", json!(1_700_000_000)),
    ] {
        let item = recommitted(&one, owner, |o| drop(o.payload.insert(name.into(), value)));
        table.refused(By::Owner, format!("a version with another {name}"), &["item.place"], Item(item));
    }
    for (name, value) in [
        ("item_id", json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1")),
        ("seq", json!(-1)),
        ("event", json!("rumour")),
        ("prev", json!("before")),
        ("iat", json!("now")),
        ("receipt", json!(7)),
    ] {
        // `ssi` reads `iat` itself.
        let checks: &[&str] = if name == "iat" { &["sd_jwt.disclosures"] } else { &["commitment.claim"] };
        let item = recommitted(&one, owner, |o| drop(o.payload.insert(name.into(), value)));
        table.refused(By::Owner, format!("claim {name} of another shape"), checks, Item(item));
    }
    // An older version passed off as the one in force.
    let long = table.fixture.long.clone();
    let stale = with(&long, |item| item["integrity"]["sd_jwt"] = one["integrity"]["sd_jwt"].clone());
    table.refused(
        By::Nobody,
        "another item's version at the end of the chain",
        &["item.commitment"],
        Item(stale),
    );
    let mallory = &table.fixture.mallory;
    let own = recommitted(&one, mallory, |o| drop(o.payload.insert("iss".into(), json!(mallory.did()))));
    table.refused(By::Mallory, "captured anew by another, in the owner's name", &["chain.signer"], Item(own));
}

/// Chains that the owner's key signs and no gateway makes.
fn chains(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, mallory) = (keys.current(), &table.fixture.mallory);
    let (one, long) = (table.fixture.one.clone(), table.fixture.long.clone());
    for (event, check) in [
        ("capture", "chain.event"),
        ("correct", "chain.repeated_commitment"),
        ("relabel", "chain.repeated_commitment"),
        ("reseal", "chain.repeated_commitment"),
        ("merge", "chain.repeated_commitment"),
        ("restore", "chain.state"),
        ("erase", "item.ended"),
        ("expire", "item.ended"),
    ] {
        let name = format!("ends with {event}, and shows content");
        table.refused(By::Owner, name, &[check], Item(and_then(&one, event, owner)));
    }
    let retracted = and_then(&one, "retract", owner);
    for event in ["correct", "relabel", "merge", "confirm", "retract"] {
        let twice = and_then(&retracted, event, owner);
        table.refused(By::Owner, format!("{event} of a retracted item"), &["chain.state"], Item(twice));
    }
    table.refused(By::Owner, "retracted, and said to be current", &["item.status"], Item(retracted.clone()));
    for event in ["erase", "expire"] {
        let ended = and_then(&one, event, owner);
        let more = and_then(&ended, "restore", owner);
        table.refused(By::Owner, format!("restored after {event}"), &["chain.event"], Item(more));
    }
    for event in ["confirm", "retract", "restore", "migrate", "import"] {
        let base = if event == "restore" { retracted.clone() } else { one.clone() };
        let changed = with(&base, |item| {
            let mut link = next_link(item, event);
            link["commitment"] = json!(other_hash());
            let links = item["integrity"]["chain"].as_array_mut().unwrap();
            links.push(link);
            let last = links.len() - 1;
            relink(item, last, owner);
        });
        let name = format!("{event} changes the commitment");
        table.refused(By::Owner, name, &["chain.changed_commitment"], Item(changed));
    }
    for event in ["correct", "retract", "confirm", "migrate", "erase"] {
        let begins = with(&one, |item| {
            item["integrity"]["chain"][0]["event"] = json!(event);
            relink(item, 0, owner);
        });
        table.refused(By::Owner, format!("begins with {event}"), &["chain.event"], Item(begins));
    }
    // A tail that shows nothing when it is cut, and says so.
    let cut = with(&table.fixture.retracted, |item| {
        item["integrity"]["chain"].as_array_mut().unwrap().pop();
        item["status"] = json!("current");
    });
    table.named(By::Nobody, "a trailing retract cut off", "unchecked.chain_end", Item(cut));
    // Taken over: a link by another.
    for event in ["retract", "erase", "confirm", "correct"] {
        let name = format!("another's {event}");
        let checks: &[&str] =
            if event == "correct" { &["chain.repeated_commitment"] } else { &["chain.actor"] };
        table.refused(By::Mallory, name, checks, Item(and_then(&long, event, mallory)));
    }
    let moved = and_then(&one, "migrate", mallory);
    table.named(By::Mallory, "moved by the word of the new house alone", "unchecked.move", Item(moved));
    let back = with(&one, |item| {
        let mut link = next_link(item, "confirm");
        link["actor"] = json!(mallory.did());
        item["integrity"]["chain"].as_array_mut().unwrap().push(link);
        relink(item, 1, owner);
    });
    table.refused(By::Owner, "signed for another actor", &["chain.signer"], Item(back));
}

/// Links that are changed with and without the owner's key.
fn links(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, long) = (keys.current(), table.fixture.long.clone());
    let chain = |change: &dyn Fn(&mut Vec<Value>)| {
        with(&long, |item| change(item["integrity"]["chain"].as_array_mut().unwrap()))
    };
    for (name, checks, item) in [
        ("no links", &["chain.empty"][..], chain(&|links| links.clear())),
        ("links reversed", &["chain.number"], chain(&|links| links.reverse())),
        ("the first link left out", &["chain.number"], chain(&|links| drop(links.remove(0)))),
        ("a link in the middle left out", &["chain.number"], chain(&|links| drop(links.remove(2)))),
        ("the last link twice", &["chain.number"], chain(&|links| links.push(links[4].clone()))),
        ("cut back to the first version", &["item.commitment"], chain(&|links| links.truncate(1))),
        ("a link that is a list", &["chain.malformed"], chain(&|links| links[1] = json!([]))),
    ] {
        table.refused(By::Nobody, name, checks, Item(item));
    }
    let members = ["item_id", "seq", "event", "at", "actor", "commitment", "prev", "receipt", "signature"];
    for number in [0, 2] {
        for member in members {
            let cut = chain(&|links| drop(links[number].as_object_mut().unwrap().remove(member)));
            let checks = ["chain.malformed", "chain.signature"];
            table.refused(By::Nobody, format!("link {number} without {member}"), &checks, Item(cut));
        }
        let more = chain(&|links| links[number]["more"] = json!(1));
        table.refused(
            By::Nobody,
            format!("link {number} with a member more"),
            &["chain.malformed"],
            Item(more),
        );
    }
    for (member, value, checks) in [
        ("at", json!("2026-05-01T12:00:00.001Z"), &["chain.signature"][..]),
        ("event", json!("reseal"), &["chain.signature", "chain.repeated_commitment"]),
        ("commitment", json!(other_hash()), &["chain.changed_commitment", "chain.signature"]),
        ("receipt", json!("urn:oap:receipt:01HX2QFXR0Q4S8T9V3W7X2Y0Z1"), &["chain.signature"]),
        ("actor", json!("did:web:mallory.example"), &["chain.signer"]),
        ("prev", json!("genesis"), &["chain.broken"]),
        ("seq", json!(7), &["chain.number"]),
        ("item_id", json!("mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"), &["chain.other_item"]),
    ] {
        let changed = chain(&|links| links[1][member] = value.clone());
        table.refused(By::Nobody, format!("another {member} in link 1"), checks, Item(changed));
    }
    let signed = |number: usize, change: &dyn Fn(&mut Value)| {
        with(&long, |item| {
            change(&mut item["integrity"]["chain"][number]);
            relink(item, number, owner);
        })
    };
    for (name, check, item) in [
        (
            "a link earlier than the one before",
            "chain.time",
            signed(2, &|l| l["at"] = json!("2026-04-01T00:00:00Z")),
        ),
        (
            "a link of another item, signed",
            "chain.other_item",
            signed(2, &|l| {
                l["item_id"] = json!("mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
            }),
        ),
        ("a number left out, signed", "chain.number", signed(4, &|l| l["seq"] = json!(5))),
        (
            "a version that no SD-JWT has, signed",
            "chain.changed_commitment",
            signed(1, &|l| {
                l["commitment"] = json!(other_hash());
            }),
        ),
        ("from the future", "item.future", signed(4, &|l| l["at"] = json!("2026-06-01T00:00:00.000Z"))),
    ] {
        table.refused(By::Owner, name, &[check], Item(item));
    }
    let fork = with(&long, |item| {
        item["integrity"]["chain"][4]["prev"] = json!(other_hash());
        let links = item["integrity"]["chain"].as_array_mut().unwrap();
        sign(&mut links[4], owner);
    });
    table.refused(By::Owner, "a link that follows another, signed", &["chain.broken"], Item(fork));
}

/// Capture receipts, signed by the owner and by others.
fn captures(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let (owner, one) = (keys.current(), table.fixture.one.clone());
    let mallory = table.fixture.mallory.did().to_string();
    let signed = |signer: &Signer, change: &dyn Fn(&mut Value)| {
        with(&one, |item| {
            let receipt = &mut item["integrity"]["capture_receipt"];
            change(receipt);
            sign_receipt(receipt, signer);
        })
    };
    let id = one["item_id"].as_str().unwrap().to_owned();
    type Change<'a> = (&'static str, &'static str, Box<dyn Fn(&mut Value) + 'a>);
    let changes: Vec<Change> = vec![
        ("consent", "receipt.type", Box::new(|r| r["type"] = json!("consent"))),
        ("deletion", "receipt.type", Box::new(|r| r["type"] = json!("deletion"))),
        ("a query", "capture.action", Box::new(|r| r["action_id"] = json!("memory.query"))),
        ("a grant", "receipt.type", Box::new(|r| r["action_id"] = json!("memory.grant"))),
        ("a correction", "capture.action", Box::new(|r| r["action_id"] = json!("memory.correct"))),
        ("no action", "capture.action", Box::new(|r| remove(r, "", "action_id"))),
        ("blocked", "receipt.outcome", Box::new(|r| set(r, "/policy_decisions/0/outcome", json!("block")))),
        (
            "to be consented to",
            "receipt.outcome",
            Box::new(|r| {
                set(r, "/policy_decisions/0/outcome", json!("require_consent"));
            }),
        ),
        ("another agent", "capture.agent", Box::new(|r| r["agent_did"] = json!(mallory))),
        ("another tool", "capture.tool", Box::new(|r| r["tool_did"] = json!(mallory))),
        ("no output_hash", "receipt.output_hash", Box::new(|r| remove(r, "", "output_hash"))),
        ("another output_hash", "receipt.output_hash", Box::new(|r| r["output_hash"] = json!(other_hash()))),
        ("an input_hash", "capture.input_hash", Box::new(|r| r["input_hash"] = json!(other_hash()))),
        (
            "another receipt_id",
            "capture.receipt",
            Box::new(|r| {
                r["receipt_id"] = json!("urn:oap:receipt:01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
            }),
        ),
        ("no tags", "receipt.tags", Box::new(|r| r["provenance_tags_out"] = json!([]))),
        (
            "another version's tag",
            "capture.item",
            Box::new(|r| {
                r["provenance_tags_out"] = json!([format!("{id}@{}", other_hash())]);
                r["output_hash"] = json!(other_hash());
            }),
        ),
        (
            "two tags",
            "receipt.tags",
            Box::new(|r| {
                let tag = r["provenance_tags_out"][0].clone();
                r["provenance_tags_out"] = json!([tag, tag]);
            }),
        ),
        (
            "older than the capture",
            "capture.time",
            Box::new(|r| r["timestamp"] = json!("2026-04-30T00:00:00.000Z")),
        ),
        ("from the future", "item.future", Box::new(|r| r["timestamp"] = json!("2026-06-01T00:00:00.000Z"))),
        ("an unknown member", "receipt.unknown_member", Box::new(|r| r["colour"] = json!("red"))),
        ("an unknown type", "receipt.malformed", Box::new(|r| r["type"] = json!("rumour"))),
        ("following nothing", "receipt.previous", Box::new(|r| r["previous_receipt_hash"] = json!("before"))),
        ("no time", "receipt.malformed", Box::new(|r| r["timestamp"] = json!("yesterday"))),
    ];
    for (name, check, change) in changes {
        let item = signed(owner, &*change);
        table.refused(By::Owner, format!("capture receipt: {name}"), &[check], Item(item));
    }
    let own = signed(&table.fixture.mallory, &|r| {
        for member in ["principal_did", "agent_did", "tool_did"] {
            r[member] = json!(mallory);
        }
    });
    table.refused(
        By::Mallory,
        "capture receipt: another's, for the same item",
        &["capture.principal"],
        Item(own),
    );
    let forged = signed(&table.fixture.mallory, &|_| ());
    table.refused(By::Mallory, "capture receipt: signed by another", &["receipt.stranger"], Item(forged));
    let receipt =
        |change: &dyn Fn(&mut Value)| with(&one, |item| change(&mut item["integrity"]["capture_receipt"]));
    let signatures =
        |change: &dyn Fn(&mut Vec<Value>)| receipt(&|r| change(r["signatures"].as_array_mut().unwrap()));
    let garbage = |by: &str| json!({"by": by, "alg": "EdDSA", "value": "AAAA"});
    let kid = owner.kid().to_string();
    for (name, check, item) in [
        ("no signatures", "receipt.unsigned", signatures(&|s| s.clear())),
        (
            "a garbage countersignature",
            "receipt.stranger",
            signatures(&|s| {
                s.push(garbage("did:web:mallory.example#key-1"));
            }),
        ),
        (
            "a garbage signature of the owner's behind the real one",
            "receipt.repeated_signer",
            signatures(&|s| {
                s.push(garbage(&kid));
            }),
        ),
        (
            "a garbage signature of the owner's before the real one",
            "receipt.signature",
            signatures(&|s| {
                s.insert(0, garbage(&kid));
            }),
        ),
        (
            "three signatures",
            "receipt.signatures",
            signatures(&|s| {
                s.push(garbage("did:web:a.example#key-1"));
                s.push(garbage("did:web:b.example#key-1"));
            }),
        ),
        ("alg none", "receipt.algorithm", signatures(&|s| s[0]["alg"] = json!("none"))),
        ("alg ES256", "receipt.algorithm", signatures(&|s| s[0]["alg"] = json!("ES256"))),
        ("a member more in a signature", "receipt.malformed", signatures(&|s| s[0]["note"] = json!("x"))),
        ("a signature without value", "receipt.malformed", signatures(&|s| remove(&mut s[0], "", "value"))),
        ("a signature cut", "receipt.signature", signatures(&|s| s[0]["value"] = json!("AAAA"))),
        (
            "an unknown key",
            "receipt.signature",
            signatures(&|s| s[0]["by"] = json!("did:web:user.example#key-9")),
        ),
        ("anchors of another shape", "receipt.anchors", receipt(&|r| r["anchors"] = json!([{"log": "x"}]))),
        ("anchors that are no list", "receipt.anchors", receipt(&|r| r["anchors"] = json!("x"))),
    ] {
        table.refused(By::Nobody, format!("capture receipt: {name}"), &[check], Item(item));
    }
    let anchored =
        receipt(&|r| r["anchors"] = json!([{"log_id": "x", "log_index": 1, "inclusion_proof": "y"}]));
    table.named(By::Nobody, "capture receipt: anchors that nobody gave", "unchecked.anchors", Item(anchored));
}

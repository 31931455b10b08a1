//! Bundles: lines, and the whole, with a trailer that the owner signs unless said otherwise.

use crate::forge::*;
use crate::items::leaves;
use crate::reseals;
use crate::table::{By, Document::Bundle, Table};
use oap_identity::json as strict;
use serde_json::{Value, json};
use std::time::Duration;

pub fn forge(table: &mut Table) {
    lines(table);
    headers(table);
    items(table);
    others(table);
    agreements(table);
    wholes(table);
}

fn place(lines: &[Value], kind: &str) -> usize {
    lines.iter().position(|line| line["type"] == kind).unwrap()
}

/// The bytes of a line that are not those of its content.
fn lines(table: &mut Table) {
    let fixture = table.fixture;
    let base = fixture.bundle.clone();
    let raw: Vec<Vec<u8>> = base.iter().map(|line| strict::canonical(line).unwrap()).collect();
    for kind in ["header", "item", "grant", "receipt"] {
        let at = place(&base, kind);
        let mut put = |name: &str, checks: &[&'static str], change: &dyn Fn(&mut Vec<u8>)| {
            let mut lines = raw.clone();
            change(&mut lines[at]);
            assert_ne!(lines, raw);
            table.refused(By::Owner, format!("{kind}: {name}"), checks, Bundle(sealed_raw(fixture, &lines)));
        };
        let canonical = &["bundle.not_canonical"];
        put("a carriage return", canonical, &|line| line.push(b'\r'));
        put("a space at the end", canonical, &|line| line.push(b' '));
        put("a space at the beginning", canonical, &|line| line.insert(0, b' '));
        put("a space within", canonical, &|line| line.insert(1, b' '));
        put("an escape more", canonical, &|line| {
            let text = String::from_utf8(line.clone()).unwrap().replacen("\"type\"", "\"\\u0074ype\"", 1);
            *line = text.into_bytes();
        });
        put("members in another order", canonical, &|line| {
            let value = strict::parse(line).unwrap();
            let mut members: Vec<_> = value.as_object().unwrap().iter().collect();
            members.sort_by(|a, b| b.0.cmp(a.0));
            let all: Vec<String> = members.iter().map(|(k, v)| format!("{}:{v}", json!(k))).collect();
            *line = format!("{{{}}}", all.join(",")).into_bytes();
        });
        put("a member more", &["bundle.malformed", "bundle.not_canonical"], &|line| {
            let mut value = strict::parse(line).unwrap();
            value["more"] = json!(1);
            *line = strict::canonical(&value).unwrap();
        });
        put("a duplicate member", &["bundle.malformed"], &|line| {
            line.truncate(line.len() - 1);
            line.extend(format!(",\"type\":\"{kind}\"}}").bytes());
        });
        put("cut in the middle", &["bundle.malformed"], &|line| line.truncate(line.len() / 2));
    }
    let whole = sealed(fixture, &base);
    let mut crlf = Vec::new();
    for byte in &whole {
        if *byte == b'\n' {
            crlf.push(b'\r');
        }
        crlf.push(*byte);
    }
    table.refused(By::Nobody, "CRLF throughout", &["bundle.not_canonical"], Bundle(crlf));
    let cut = whole[..whole.len() - 1].to_vec();
    table.refused(By::Nobody, "the last line feed cut", &["bundle.line_feed"], Bundle(cut));
    let mut marked = b"\xef\xbb\xbf".to_vec();
    marked.extend(&whole);
    table.refused(By::Nobody, "a byte order mark", &["bundle.malformed"], Bundle(marked));
    for (name, extra) in [("an empty line", &b"\n"[..]), ("a line that is a number", b"7\n")] {
        let end = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let bytes = [&whole[..end], extra, &whole[end..]].concat();
        table.refused(By::Nobody, name, &["bundle.malformed"], Bundle(bytes));
    }
}

fn headers(table: &mut Table) {
    let fixture = table.fixture;
    let base = fixture.bundle.clone();
    let mut put = |name: &str, checks: &[&'static str], change: &dyn Fn(&mut Value)| {
        let mut lines = base.clone();
        change(&mut lines[0]);
        table.refused(By::Owner, format!("header: {name}"), checks, Bundle(sealed(fixture, &lines)));
    };
    put("an item more than there are", &["bundle.header_count"], &|h| h["items"] = json!(4));
    put("an item less than there are", &["bundle.header_count"], &|h| h["items"] = json!(2));
    put("no items", &["bundle.header_count"], &|h| h["items"] = json!(0));
    put("begun in the future", &["bundle.future"], &|h| h["created_at"] = json!("2026-06-01T00:00:00.000Z"));
    put("begun after its end", &["bundle.times"], &|h| {
        let at = h["created_at"].as_str().unwrap().replace("T12:00:", "T12:04:");
        h["created_at"] = json!(at);
    });
    put("another format", &["bundle.format"], &|h| h["format"] = json!("oap-memory-bundle/2"));
    put("another's memory", &["bundle.holder"], &|h| h["principal"] = json!("did:web:mallory.example"));
    put("none of its scopes", &["bundle.scope"], &|h| h["scopes"] = json!([]));
    put("another scope", &["bundle.scope"], &|h| h["scopes"] = json!(["work"]));
    put("a time that is not to the millisecond", &["bundle.not_canonical"], &|h| {
        h["created_at"] = json!("2026-05-01T12:00:00Z");
    });
    put("no principal", &["bundle.malformed"], &|h| remove(h, "", "principal"));
    put("projected, with records", &["bundle.whole_line"], &|h| {
        h["projected"] = json!({
            "grant_id": "mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1", "profile": "p", "trust_level": 4,
            "grantee": "did:web:b.example",
        });
    });
    let projected = json!({
        "grant_id": "mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1", "profile": "p", "trust_level": 4, "grantee": "did:web:b.example",
    });
    let bare = |line: &mut Value| {
        if line["type"] == "item" {
            let line = line.as_object_mut().unwrap();
            line.remove("record");
            line.remove("superseded");
        }
    };
    let current = |line: &&Value| line["type"] == "header" || line["item"]["status"] == "current";
    let mut recorded: Vec<Value> = base.iter().filter(current).cloned().collect();
    recorded[0]["projected"] = projected.clone();
    recorded[0]["items"] = json!(recorded.len() - 1);
    let name = "projected, with records and nothing else";
    table.refused(By::Owner, name, &["bundle.whole_line"], Bundle(sealed(fixture, &recorded)));
    for (name, check, kinds) in [
        ("projected, with a retracted item", "bundle.not_current", &["header", "item"][..]),
        ("projected, with grants", "bundle.projected", &["header", "grant"]),
        ("projected, with receipts", "bundle.projected", &["header", "receipt"]),
    ] {
        let mut lines: Vec<Value> =
            base.iter().filter(|line| kinds.contains(&line["type"].as_str().unwrap())).cloned().collect();
        lines[0]["projected"] = projected.clone();
        lines[0]["items"] = json!(lines.iter().filter(|line| line["type"] == "item").count());
        lines.iter_mut().for_each(bare);
        table.refused(By::Owner, name, &[check], Bundle(sealed(fixture, &lines)));
    }
}

fn items(table: &mut Table) {
    let fixture = table.fixture;
    let keys = fixture.world.gateway.keys();
    let (owner, base) = (keys.current(), fixture.bundle.clone());
    let long = base.iter().position(|line| line["superseded"].as_array().is_some()).unwrap();
    let one = base.iter().position(|l| l["type"] == "item" && l["item"]["labels"][1] == "tea").unwrap();
    let mut put = |by: By, name: &str, checks: &[&'static str], change: &dyn Fn(&mut Vec<Value>)| {
        let mut lines = base.clone();
        change(&mut lines);
        assert_ne!(lines, base);
        table.refused(by, format!("item: {name}"), checks, Bundle(sealed(fixture, &lines)));
    };
    put(By::Owner, "twice", &["bundle.repeated_item"], &|l| {
        l[0]["items"] = json!(4);
        l.insert(1, l[1].clone());
    });
    put(By::Owner, "superseded rubbish", &["sd_jwt.malformed", "commitment.signature"], &|l| {
        l[long]["superseded"] = json!(["rubbish"])
    });
    put(By::Owner, "superseded is an SD-JWT of nobody", &["commitment.signature"], &|l| {
        l[long]["superseded"] = json!(["e30.e30.AAAA~"]);
    });
    put(By::Owner, "superseded by the version in force", &["bundle.superseded"], &|l| {
        l[long]["superseded"] = json!([l[long]["item"]["integrity"]["sd_jwt"]]);
    });
    put(By::Owner, "superseded of another item", &["bundle.superseded"], &|l| {
        l[long]["superseded"] = json!([l[one]["item"]["integrity"]["sd_jwt"]]);
    });
    put(By::Owner, "superseded twice", &["bundle.repeated_version"], &|l| {
        let version = l[long]["superseded"][0].clone();
        l[long]["superseded"].as_array_mut().unwrap().push(version);
    });
    put(By::Owner, "status current of a retracted one", &["item.status"], &|l| {
        let retracted = l.iter_mut().find(|line| line["item"]["status"] == "retracted").unwrap();
        retracted["item"]["status"] = json!("current");
    });
    put(By::Owner, "retracted, says a current one", &["item.status"], &|l| {
        l[one]["item"]["status"] = json!("retracted")
    });
    put(By::Owner, "an attitude", &["item.epistemic"], &|l| l[one]["item"]["epistemic"] = json!("knowledge"));
    put(By::Owner, "erased, with its content", &["item.ended"], &|l| {
        l[one]["item"] = and_then(&l[one]["item"], "erase", owner);
    });
    put(By::Owner, "expired, with its content", &["item.ended"], &|l| {
        l[one]["item"] = and_then(&l[one]["item"], "expire", owner);
    });
    put(By::Mallory, "moved away", &["bundle.holder"], &|l| {
        l[one]["item"] = and_then(&l[one]["item"], "migrate", &fixture.mallory);
    });
    put(By::Owner, "that must not leave", &["bundle.not_exportable"], &|l| {
        l[one]["item"] =
            recommitted(&l[one]["item"], owner, |o| o.change("exportable", |d| d[2] = json!(false)));
        l[one]["item"]["exportable"] = json!(false);
    });
    put(By::Owner, "without its proof", &["item.unproved"], &|l| {
        remove(&mut l[one], "/item/integrity", "sd_jwt")
    });
    put(By::Owner, "a record with a member more", &["bundle.malformed", "bundle.not_canonical"], &|l| {
        l[one]["record"]["more"] = json!(1);
    });
    put(By::Owner, "a record of another shape", &["bundle.malformed"], &|l| l[one]["record"] = json!("x"));
    put(By::Owner, "a line of the future", &["item.future"], &|l| {
        let mut item = and_then(&l[one]["item"], "confirm", owner);
        set(&mut item, "/integrity/chain/1/at", json!("2026-06-01T00:00:00.000Z"));
        relink(&mut item, 1, owner);
        l[one]["item"] = item;
    });
    let mut shown = Vec::new();
    leaves(&base[one]["item"]["content"], "/item/content", &mut shown);
    for at in shown {
        put(By::Owner, &format!("{at} changed"), &["item.visible"], &|l| {
            set(&mut l[one], &at, json!("another"));
        });
    }
}

/// Grants and receipts.
fn others(table: &mut Table) {
    let fixture = table.fixture;
    let keys = fixture.world.gateway.keys();
    let (owner, base) = (keys.current(), fixture.bundle.clone());
    let grant = place(&base, "grant");
    // The principal's own chain: the one that has more than a beginning.
    let genesis = |line: &Value| line["receipt"]["previous_receipt_hash"] == "genesis";
    let receipt = (0..base.len() - 2).find(|at| genesis(&base[*at]) && !genesis(&base[at + 2])).unwrap();
    let mut put = |by: By, name: &str, checks: &[&'static str], change: &dyn Fn(&mut Vec<Value>)| {
        let mut lines = base.clone();
        change(&mut lines);
        assert_ne!(lines, base);
        table.refused(by, name, checks, Bundle(sealed(fixture, &lines)));
    };
    put(By::Owner, "grant: a broken signature", &["grant.document"], &|l| {
        l[grant]["grant"]["signature"] = json!("x")
    });
    put(By::Owner, "grant: no signature", &["grant.document"], &|l| {
        remove(&mut l[grant], "/grant", "signature")
    });
    put(By::Owner, "grant: a member changed", &["grant.document"], &|l| {
        l[grant]["grant"]["max_items"] = json!(7)
    });
    put(By::Owner, "grant: twice", &["bundle.repeated_grant"], &|l| l.insert(grant, l[grant].clone()));
    put(By::Owner, "grant: made from one that is not there", &["grant.no_parent"], &|l| {
        l[grant]["grant"]["parent"] = json!(crate::fixture::other_hash());
        sign(&mut l[grant]["grant"], owner);
    });
    put(By::Mallory, "grant: another's", &["bundle.granter"], &|l| {
        l[grant]["grant"]["granter"] = json!("did:web:mallory.example#personal");
        sign(&mut l[grant]["grant"], &fixture.mallory);
    });
    put(By::Mallory, "grant: signed by another", &["grant.document"], &|l| {
        sign(&mut l[grant]["grant"], &fixture.mallory)
    });
    put(By::Owner, "receipt: a member changed", &["receipt.signature"], &|l| {
        l[receipt]["receipt"]["action_id"] = json!("memory.nothing");
    });
    put(By::Owner, "receipt: left out", &["receipt.broken", "receipt.head"], &|l| {
        drop(l.remove(receipt + 2))
    });
    put(By::Owner, "receipts: the last head left out", &["receipt.cut"], &|l| drop(l.pop()));
    put(By::Owner, "receipts: the first pair left out", &["receipt.broken"], &|l| {
        drop(l.drain(receipt..receipt + 2))
    });
    put(By::Owner, "receipts: two swapped", &["receipt.broken"], &|l| l.swap(receipt + 2, receipt + 4));
    put(By::Owner, "receipt: twice", &["receipt.broken"], &|l| l.insert(receipt + 3, l[receipt + 2].clone()));
    put(By::Owner, "receipt: stripped", &["receipt.unsigned"], &|l| {
        l[receipt]["receipt"]["signatures"] = json!([])
    });
    put(
        By::Mallory,
        "receipts: another's chain",
        &["bundle.receipt_principal", "receipt.other_chain"],
        &|l| {
            let mut own = l[receipt]["receipt"].clone();
            for member in ["principal_did", "agent_did", "tool_did"] {
                own[member] = json!(fixture.mallory.did());
            }
            sign_receipt(&mut own, &fixture.mallory);
            l.push(json!({"type": "receipt", "receipt": own}));
        },
    );
}

/// Receipts and links against each other, what a projected bundle leaves open, and whose trailer it is.
fn agreements(table: &mut Table) {
    let fixture = table.fixture;
    let keys = fixture.world.gateway.keys();
    let (owner, base) = (keys.current(), fixture.bundle.clone());
    let one = base.iter().position(|l| l["type"] == "item" && l["item"]["labels"][1] == "tea").unwrap();
    let genuine = Bundle(sealed(fixture, &base)).judge(&fixture.reader).unwrap();
    assert!(!genuine.contains(&"unchecked.link_receipts"), "{genuine:?}");

    let unknown = json!("urn:oap:receipt:01KQHPHXG0FN6AMW9YQM51XCBZ");
    let linked = |receipt: &Value, at: &Value| {
        let mut lines = base.clone();
        let item = &mut lines[one]["item"];
        *item = and_then(item, "confirm", owner);
        item["integrity"]["chain"][1]["receipt"] = receipt.clone();
        item["integrity"]["chain"][1]["at"] = at.clone();
        relink(item, 1, owner);
        Bundle(sealed(fixture, &lines))
    };
    let first = base[one]["item"]["integrity"]["chain"][0].clone();
    let name = "item: a link whose receipt is not there";
    table.named(By::Owner, name, "unchecked.link_receipts", linked(&unknown, &first["at"]));
    let name = "item: a link that names the receipt of another event";
    table.refused(By::Owner, name, &["bundle.link_receipt"], linked(&first["receipt"], &first["at"]));
    let other = base.iter().find(|l| l["receipt"]["action_id"] == "memory.confirm").unwrap();
    let name = "item: a link that names the receipt of another item";
    let other = linked(&other["receipt"]["receipt_id"], &first["at"]);
    table.refused(By::Owner, name, &["bundle.link_receipt"], other);
    let after = json!(fixture.now().plus(Duration::from_millis(1)));
    let name = "item: changed after the bundle was finished";
    table.refused(By::Owner, name, &["bundle.late"], linked(&unknown, &after));

    let bare: Vec<Value> = base.iter().filter(|line| line["type"] != "receipt").cloned().collect();
    let name = "without receipts";
    table.named(By::Owner, name, "unchecked.link_receipts", Bundle(sealed(fixture, &bare)));
    let mut twice = base.clone();
    let chain = base.iter().position(|line| line["receipt"]["action_id"] == "memory.boot").unwrap();
    twice.extend_from_slice(&base[chain..chain + 2]);
    let name = "receipts: a chain twice, the second time its beginning";
    table.refused(By::Owner, name, &["bundle.repeated_chain"], Bundle(sealed(fixture, &twice)));

    let mut shown = vec![base[0].clone(), base[one].clone()];
    shown[0]["items"] = json!(1);
    shown[0]["projected"] = json!({
        "grant_id": "mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1", "profile": "p", "trust_level": 4, "grantee": "did:web:b.example",
    });
    remove(&mut shown[1], "", "record");
    for what in ["unchecked.grant", "unchecked.projection", "unchecked.state"] {
        let name = format!("projected, and its grant is not there: {what}");
        table.named(By::Owner, name, what, Bundle(sealed(fixture, &shown)));
    }

    let mut robbed = base[0].clone();
    robbed["principal"] = json!(reseals::HOUSE);
    robbed["items"] = json!(0);
    let line = strict::canonical(&robbed).unwrap();
    let backdated = sealed_by(fixture, &[line], &reseals::key(3));
    let name = "trailer: by a key that was compromised later";
    table.named(By::Owner, name, "unchecked.dated_by_compromised_key", Bundle(backdated));
}

/// The trailer and the order of lines.
fn wholes(table: &mut Table) {
    let fixture = table.fixture;
    let bytes = sealed(fixture, &fixture.bundle);
    let lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let last = lines.len() - 1;
    let mut put = |by: By, name: &str, checks: &[&'static str], change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut changed = lines.clone();
        change(&mut changed);
        assert_ne!(changed, lines);
        table.refused(by, name, checks, Bundle(changed.concat()));
    };
    put(By::Nobody, "no trailer", &["bundle.cut"], &|l| drop(l.pop()));
    put(By::Nobody, "an item left out", &["bundle.header_count", "bundle.changed"], &|l| drop(l.remove(1)));
    put(By::Nobody, "two items swapped", &["bundle.changed"], &|l| l.swap(1, 2));
    put(By::Nobody, "a second header", &["bundle.header"], &|l| l.insert(1, l[0].clone()));
    put(By::Nobody, "no header", &["bundle.header"], &|l| drop(l.remove(0)));
    put(By::Nobody, "something behind the trailer", &["bundle.after_trailer"], &|l| l.push(l[1].clone()));
    put(By::Nobody, "a second trailer", &["bundle.after_trailer"], &|l| l.push(l[last].clone()));
    let trailer = |l: &mut Vec<Vec<u8>>, change: &dyn Fn(&mut Value)| {
        let mut trailer = strict::parse(l[last].trim_ascii_end()).unwrap();
        change(&mut trailer);
        l[last] = strict::canonical(&trailer).unwrap();
        l[last].push(b'\n');
    };
    let signed = |signer: &oap_identity::Signer, change: &dyn Fn(&mut Value), trailer: &mut Value| {
        change(trailer);
        let members = trailer.as_object_mut().unwrap();
        members.remove("type");
        sign(trailer, signer);
        trailer["type"] = json!("trailer");
    };
    let keys = fixture.world.gateway.keys();
    let owner = keys.current();
    type Change<'a> = (&'static str, &'static [&'static str], Box<dyn Fn(&mut Value) + 'a>);
    let changes: Vec<Change> = vec![
        (
            "of another bundle",
            &["bundle.other_bundle"],
            Box::new(|t| {
                t["bundle_id"] = json!("bdl_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
            }),
        ),
        ("another hash", &["bundle.changed"], Box::new(|t| t["hash"] = json!(crate::fixture::other_hash()))),
        ("other counts", &["bundle.changed"], Box::new(|t| t["counts"]["items"] = json!(9))),
        ("another number of lines", &["bundle.changed"], Box::new(|t| t["lines"] = json!(1))),
        ("a member more", &["bundle.malformed"], Box::new(|t| t["more"] = json!(1))),
        (
            "finished in the future",
            &["bundle.future"],
            Box::new(|t| {
                t["finished_at"] = json!("2026-06-01T00:00:00.000Z");
            }),
        ),
        (
            "finished before it was begun",
            &["bundle.times"],
            Box::new(|t| {
                t["finished_at"] = json!("2026-04-01T00:00:00.000Z");
            }),
        ),
    ];
    for (name, checks, change) in &changes {
        let name = format!("trailer: {name}");
        put(By::Owner, &name, checks, &|l| trailer(l, &|t| signed(owner, change, t)));
    }
    put(By::Mallory, "trailer: signed by another", &["bundle.other_bundle"], &|l| {
        trailer(l, &|t| signed(&fixture.mallory, &|_| (), t));
    });
    put(By::Nobody, "trailer: no signature", &["bundle.signature"], &|l| {
        trailer(l, &|t| remove(t, "", "signature"));
    });
    put(By::Nobody, "trailer: a signature of nothing", &["bundle.signature"], &|l| {
        trailer(l, &|t| t["signature"] = json!("a..b"));
    });
}

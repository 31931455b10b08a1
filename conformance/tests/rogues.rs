//! Gateways with one fault each, and the probe that is meant for it: the suite is worth what it catches.
//!
//! Each is the real gateway behind a front that spoils one thing: what comes in, what goes out (signed anew, so that the fault
//! itself is what shows), what its owner asks, its clock, or its randomness. Faults in the code itself are in
//! `conformance/rogues`.

#[path = "../../gateway/tests/common/mod.rs"]
mod common;
mod support;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use common::*;
use oap_conformance::probe::{self, Limits, Outcome, Reply, Request, SetupError, Side};
use oap_identity::random::Seeded;
use oap_identity::{Hash, Random, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::among_gateways;
use support::front::{
    Front, HONEST, Memory, ProbesClock, Rogue, at, body, captured, draft, edit, forged, header, ignored,
    is_audit, is_letter, is_query, items, let_in, part, refused, rewrite, unhidden, widened,
};
use support::inside::{Behind, Inside, equipment, probed, probed_on, with_log, with_model};

const POSSESSION: &str = "memory-exchange-possession";
const CONFIDENTIALITY: &str = "memory-exchange-confidentiality";

/// Randomness whose seeds are all alike, and so are the salts that are derived from them.
struct Unsalted(Seeded);

impl Random for Unsalted {
    fn fill(&self, bytes: &mut [u8]) {
        if bytes.len() == 32 { bytes.fill(7) } else { self.0.fill(bytes) }
    }
}

fn link(item: &mut Value, number: usize) -> &mut Value {
    &mut item["integrity"]["chain"][number]
}

/// What an item hides below level 3: mail addresses and structured content.
fn hides(memory: &Memory, word: &str) -> bool {
    let hidden = |item: &Value| {
        let text = item["content"]["text"].as_str().unwrap_or_default();
        let address = text.split(' ').find(|part| part.contains('@')).unwrap_or_default();
        address.contains(word) || item["content"]["structured"].to_string().contains(word)
    };
    word.len() > 4 && memory.items.iter().any(hidden)
}

#[rustfmt::skip]
fn rogues() -> Vec<Rogue> {
    let mut rogues = vec![
        // Projection and filter.
        Rogue { name: "skips projection", meant: "projection",
            owner: |_, c| widened(c, |d| d["trust_level"] = json!(4)), ..HONEST },
        Rogue { name: "shows contacts a level early", meant: "projection-tables",
            owner: |_, c| widened(c, |d| if d["trust_level"] == 2 && d["redaction_profile"].as_str().unwrap().contains("contact") {
                d["trust_level"] = json!(3);
            }), ..HONEST },
        Rogue { name: "has kinds of its own", meant: "item-form",
            answered: |_, r, reply| items(r, reply, |item| item["kind"] = json!("thought")), ..HONEST },
        Rogue { name: "ignores the filter", meant: "filter",
            owner: |_, c| widened(c, |d| d["filter"] = json!({})), ..HONEST },
        Rogue { name: "forgets excluded labels", meant: "filter",
            owner: |_, c| widened(c, |d| drop(d["filter"].as_object_mut().unwrap().remove("exclude_labels"))), ..HONEST },
        Rogue { name: "forgets kinds", meant: "filter",
            owner: |_, c| widened(c, |d| drop(d["filter"].as_object_mut().unwrap().remove("kinds"))), ..HONEST },
        Rogue { name: "shows restricted items", meant: "filter",
            owner: |_, c| widened(c, |d| d["filter"]["sensitivities"] = json!(["internal", "restricted"])), ..HONEST },
        Rogue { name: "crosses scopes", meant: "filter",
            owner: |_, c| captured(c, |item| drop(item.as_object_mut().unwrap().remove("scope_id"))), ..HONEST },
        Rogue { name: "passes on what may not leave", meant: "filter",
            owner: |_, c| captured(c, |item| drop(item.as_object_mut().unwrap().remove("exportable"))), ..HONEST },
        Rogue { name: "keeps items beyond their end", meant: "filter",
            owner: |_, c| captured(c, |item| drop(item.as_object_mut().unwrap().remove("expires_at"))), ..HONEST },
        Rogue { name: "drops filter fields that it does not know", meant: "grant-unknown-filter-field",
            owner: |_, c| widened(c, |d| {
                let known = ["labels_any", "exclude_labels", "kinds"];
                d["filter"].as_object_mut().unwrap().retain(|name, _| known.contains(&name.as_str()));
            }), ..HONEST },
        Rogue { name: "does not count items", meant: "max-items",
            owner: |_, c| widened(c, |d| d["max_items"] = json!(50)), ..HONEST },
        Rogue { name: "gives embeddings to anybody", meant: "embeddings-by-default",
            owner: |_, c| widened(c, |d| d["embedding_access"] = json!(true)), ..HONEST },
        Rogue { name: "allows exports to all", meant: "export",
            owner: |_, c| widened(c, |d| d["operations"] = json!(["query", "export"])), ..HONEST },
        Rogue { name: "exports without projection", meant: "export",
            owner: |_, c| widened(c, |d| if d["operations"] == json!(["export"]) { d["trust_level"] = json!(4) }), ..HONEST },
        Rogue { name: "takes labels for the same in any case", meant: "filter",
            owner: |_, c| captured(c, |item| for label in item["labels"].as_array_mut().into_iter().flatten() {
                *label = json!(label.as_str().unwrap_or_default().to_lowercase());
            }), ..HONEST },
        Rogue { name: "erases what was made of an item, and nothing that was made of that", meant: "deletion",
            owner: |m, c| captured(c, |item| {
                let from = item["derived_from"][0].as_str().unwrap_or_default();
                if m.captured.get(from).is_some_and(|from| !from["derived_from"].is_null()) {
                    drop(item.as_object_mut().unwrap().remove("derived_from"));
                }
            }), ..HONEST },
        Rogue { name: "takes a cursor under another grant of the same grantee", meant: "refused-queries",
            answered: |m, r, reply| {
                let key = |r: &Request| part(header(r, "dpop"), 0)["jwk"].clone();
                let asked = |r: &Request| { let mut asked = body(r); drop(asked.as_object_mut().map(|a| a.remove("cursor"))); asked };
                let cursor = &body(r)["cursor"];
                let is_of = |(b, first): &&(Request, Reply)| is_query(b) && cursor.is_string() && first.json()["next_cursor"] == *cursor
                    && key(b) == key(r) && asked(b) == asked(r) && header(b, "authorization") != header(r, "authorization");
                if !is_query(r) || reply.status != 400 { return reply }
                m.good.iter().find(is_of).map(|(_, first)| first.clone()).unwrap_or(reply)
            }, ..HONEST },
        Rogue { name: "takes no chain of five grants", meant: "worlds-over-time",
            answered: |_, r, reply| if body(r)["chain"].as_array().is_some_and(|chain| chain.len() == 5) {
                refused(reply, 403, "policy_block")
            } else { reply }, ..HONEST },
        Rogue { name: "tells anybody which receipts there are", meant: "refused-countersignatures",
            answered: |m, r, reply| {
                let known = m.good.iter().any(|(_, b)| b.json()["receipt"]["receipt_id"] == body(r)["receipt_id"]);
                if r.path == "/oap/memory/ack" && reply.status == 404 && known { refused(reply, 403, "policy_block") } else { reply }
            }, ..HONEST },
        Rogue { name: "falls over what is no JSON at a path that is none", meant: "answer-forms",
            answered: |_, r, reply| if r.method == "POST" && reply.status == 404 && body(r).is_null() {
                refused(reply, 500, "internal_error")
            } else { reply }, ..HONEST },
        Rogue { name: "falls over long bodies", meant: "hostile-bodies",
            answered: |_, _, reply| if reply.status == 413 { refused(reply, 500, "internal_error") } else { reply }, ..HONEST },
        // What none of the probes of one case each looks for.
        Rogue { name: "shows telephone numbers at level 2", meant: "worlds",
            answered: |m, r, reply| {
                let at_two = reply.json()["projection_applied"]["trust_level"] == 2;
                items(r, reply, |item| if at_two && item["content"]["text"].is_string() {
                    let whole = draft(m, item)["content"]["text"].as_str().unwrap_or_default().to_owned();
                    item["content"]["text"] = json!(unhidden(item["content"]["text"].as_str().unwrap(), &whole, "phone"));
                })
            }, ..HONEST },
        // What is published, and envelopes.
        Rogue { name: "declares an action of an unacceptable risk", meant: "tool-manifest",
            answered: |_, r, reply| at("/.well-known/oap-tool.json", r, reply, |tool| tool["actions"][0]["risk_class"] = json!("unacceptable")), ..HONEST },
        Rogue { name: "finds no action", meant: "discover",
            answered: |_, r, reply| at("/oap/discover", r, reply, |found| found["actions"] = json!([])), ..HONEST },
        Rogue { name: "takes envelopes of any form", meant: "refused-envelopes",
            answered: |_, r, reply| if r.path == "/oap/invoke" && reply.status == 400 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "does by envelope what a grant does not permit", meant: "refused-actions",
            answered: |_, r, reply| if r.path == "/oap/invoke" && reply.status == 403 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "shows whole affiliations", meant: "every-table",
            answered: |m, r, reply| items(r, reply, |item| {
                let whole = draft(m, item)["content"]["structured"]["affiliations"].clone();
                let shown = &mut item["content"]["structured"]["affiliations"];
                if shown.is_array() { *shown = whole }
            }), ..HONEST },
        Rogue { name: "forgets the times of a filter", meant: "worlds",
            // Everything is taken in as of a time that filters admit, and shown with its own.
            owner: |_, c| captured(c, |item| if item["provenance"]["captured_at"].is_string() {
                item["provenance"]["captured_at"] = json!("2026-04-05T00:00:00.000Z");
            }),
            answered: |m, r, reply| items(r, reply, |item| {
                let own = &draft(m, item)["provenance"]["captured_at"];
                if own.is_string() { item["provenance"]["captured_at"] = own.clone() }
            }), ..HONEST },
        Rogue { name: "checks no signature of a token or a proof", meant: "forged-signatures",
            answered: |m, r, reply| {
                let token = header(r, "authorization");
                let known = m.before(|b| b.path == "/oap/memory/query" && part(header(b, "authorization"), 1) == part(token, 1));
                let proof = part(header(r, "dpop"), 1);
                let made_for = proof["htu"].as_str().is_some_and(|url| url.ends_with(&r.path))
                    && proof["ath"] == json!(URL_SAFE_NO_PAD.encode(Hash::of(token.as_bytes()).as_bytes()));
                if reply.status == 401 && made_for { known.unwrap_or(reply) } else { reply }
            }, ..HONEST },
        Rogue { name: "tells a hidden word in a header", meant: "worlds",
            answered: |m, r, mut reply| {
                let said = m.items.last().and_then(|item| item["content"]["text"].as_str()).unwrap_or_default();
                if is_query(r) { reply.headers.push(("x-trace".to_owned(), URL_SAFE_NO_PAD.encode(said))) }
                reply
            }, ..HONEST },
        Rogue { name: "tells a hidden word where a grant is exchanged", meant: "worlds",
            answered: |m, r, mut reply| {
                let said = m.items.last().and_then(|item| item["content"]["text"].as_str()).unwrap_or_default();
                if r.path == "/oap/memory/grant" { reply.headers.push(("x-trace".to_owned(), URL_SAFE_NO_PAD.encode(said))) }
                reply
            }, ..HONEST },
        Rogue { name: "tells a hidden word beside the output of an envelope", meant: "refused-actions",
            answered: |m, r, reply| at("/oap/invoke", r, reply, |envelope| {
                envelope["trace"] = json!(m.items.iter().map(|item| item["content"]["text"].clone()).collect::<Vec<_>>());
            }), ..HONEST },
        Rogue { name: "tells when everything was captured", meant: "worlds",
            answered: |m, r, mut reply| {
                let times: Vec<&str> = m.items.iter().filter_map(|item| item["provenance"]["captured_at"].as_str()).collect();
                if is_query(r) { reply.headers.push(("x-trace".to_owned(), times.join(" "))) }
                reply
            }, ..HONEST },
        Rogue { name: "tells a hidden number", meant: "worlds",
            answered: |m, r, mut reply| {
                let numbers = m.items.iter().filter_map(|item| item["content"]["structured"]["number"].as_u64());
                let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
                if is_query(r) { reply.headers.push(("x-trace".to_owned(), numbers.join(" "))) }
                reply
            }, ..HONEST },
        Rogue { name: "makes tokens for everywhere", meant: "worlds",
            answered: |_, r, reply| at("/oap/memory/grant", r, reply, |body| if body["memory_grant_jwt"].is_string() {
                let token = forged(body["memory_grant_jwt"].as_str().unwrap(), |claims| claims["aud"] = json!("*"));
                body["memory_grant_jwt"] = json!(token);
            }), ..HONEST },
        Rogue { name: "says that a token lives for an hour", meant: "worlds",
            answered: |_, r, reply| at("/oap/memory/grant", r, reply, |body| if body["expires_in"].is_number() {
                body["expires_in"] = json!(3600);
            }), ..HONEST },
        Rogue { name: "does not say where a delegated grant is revoked", meant: "worlds",
            answered: |_, r, reply| at("/oap/memory/grant", r, reply, |body| drop(body.as_object_mut().unwrap().remove("status"))), ..HONEST },
        Rogue { name: "says that every grant is active", meant: "histories",
            answered: |_, r, reply| at("/oap/memory/grant/", r, reply, |body| body["state"] = json!("active")), ..HONEST },
        Rogue { name: "tells anybody the state of a grant", meant: "histories",
            answered: |_, r, reply| if r.path.starts_with("/oap/memory/grant/") && reply.status == 404 {
                Reply { status: 200, bytes: json!({"grant_id": r.path.rsplit('/').next(), "state": "active"}).to_string().into_bytes(), ..reply }
            } else { reply }, ..HONEST },
        Rogue { name: "tells how much it holds", meant: "paired-fillings",
            answered: |m, r, mut reply| {
                let scope = part(header(r, "authorization"), 1)["oap_scope"].clone();
                let count = m.items.iter().filter(|item| item["scope_id"] == scope).count();
                if is_query(r) { reply.headers.push(("x-total".to_owned(), count.to_string())) }
                reply
            }, ..HONEST },
        Rogue { name: "says that it revokes", meant: "histories",
            owner: |_, c| ignored(c, "revoke"), ..HONEST },
        Rogue { name: "does not take items back", meant: "histories", owner: |_, c| ignored(c, "retract"), ..HONEST },
        Rogue { name: "has a vector for everybody", meant: "worlds",
            answered: |_, r, reply| {
                let asked = r.path.starts_with("/oap/memory/vec/") && reply.status != 401;
                if asked { Reply { status: 200, bytes: vec![0; 128], ..reply } } else { reply }
            }, ..HONEST },
        Rogue { name: "says where vectors are that it does not have", meant: "every-table",
            answered: |_, r, reply| items(r, reply, |item| {
                item["embedding_ref"] = json!({"model": "m", "dimensions": 8, "vector_url": "https://user.example/v"});
            }), ..HONEST },
        Rogue { name: "shows what it joined in a text with very many spans", meant: "every-table",
            answered: |m, r, reply| items(r, reply, |item| {
                let joined = item["content"]["text"].as_str().is_some_and(|text| text.contains("[mixed]"));
                if joined { item["content"]["text"] = draft(m, item)["content"]["text"].clone() }
            }), ..HONEST },
        Rogue { name: "says that it owes something and owes nothing", meant: "gates", owner: |_, c| ignored(c, "context"), ..HONEST },
        Rogue { name: "takes no bridge back", meant: "gates", owner: |_, c| ignored(c, "unbridge"), ..HONEST },
        Rogue { name: "says that it heard its owner's consent", meant: "histories", owner: |_, c| ignored(c, "consent"), ..HONEST },
        Rogue { name: "owes nothing before a push", meant: "events-behind-gates", owner: |_, c| ignored(c, "context"), ..HONEST },
        Rogue { name: "owes nothing in the middle of a history", meant: "histories", owner: |_, c| ignored(c, "context"), ..HONEST },
        Rogue { name: "corrects what an item says alone", meant: "every-table", owner: |_, c| words_alone(c), ..HONEST },
        Rogue { name: "corrects what an item says alone, in the middle of a history", meant: "histories", owner: |_, c| words_alone(c), ..HONEST },
        Rogue { name: "does not put items back", meant: "histories", owner: |_, c| ignored(c, "restore"), ..HONEST },
        Rogue { name: "says that it rotates its keys", meant: "histories", owner: |_, c| ignored(c, "rotate"), ..HONEST },
        Rogue { name: "publishes the key in use alone", meant: "histories",
            answered: |_, r, reply| at("did.json", r, reply, |document| {
                document["verificationMethod"].as_array_mut().unwrap().retain(|key| key["expires"].is_null());
            }), ..HONEST },
        Rogue { name: "ends the tokens of a former key", meant: "histories",
            answered: |m, r, reply| {
                let kid = part(header(r, "authorization"), 0)["kid"].clone();
                if is_query(r) && former(m, &kid) { refused(reply, 401, "auth_required") } else { reply }
            }, ..HONEST },
        Rogue { name: "exchanges no grant of a former key", meant: "histories",
            answered: |m, r, reply| {
                let kid = part(body(r)["grant"]["signature"].as_str().unwrap_or_default(), 0)["kid"].clone();
                if r.path == "/oap/memory/grant" && former(m, &kid) { refused(reply, 400, "invalid_input") } else { reply }
            }, ..HONEST },
        Rogue { name: "exchanges a grant whenever it is shown", meant: "worlds-over-time",
            answered: |_, r, reply| if r.path == "/oap/memory/grant" && reply.status == 403 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "lets items end by days a little later", meant: "worlds-over-time",
            owner: |_, c| captured(c, |item| if item["ttl_days"].is_number() && item["expires_at"].is_null() {
                let at = item["provenance"]["captured_at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
                let days = item["ttl_days"].as_u64().unwrap_or(0);
                let end = at.map(|at| at.plus(Duration::from_secs(days * 86_400)).plus(Duration::from_millis(1)));
                if end.is_some() { item["expires_at"] = json!(end) }
            }), ..HONEST },
        Rogue { name: "forgets the end of items", meant: "worlds-over-time",
            owner: |_, c| captured(c, |item| drop(item.as_object_mut().unwrap().remove("expires_at"))), ..HONEST },
        // Grants.
        Rogue { name: "hands out bearer tokens", meant: "token-bound",
            owner: |_, c| widened(c, |d| d["bearer"] = json!(true)), ..HONEST },
        Rogue { name: "does not revoke", meant: "grant-revoked", owner: |_, c| ignored(c, "revoke"), ..HONEST },
        Rogue { name: "accepts expired grants", meant: "grant-expired", timeless: true, ..HONEST },
        Rogue { name: "accepts grants before their time", meant: "grant-not-yet-valid",
            owner: |_, c| widened(c, |d| drop(d.as_object_mut().unwrap().remove("not_before"))), ..HONEST },
        Rogue { name: "goes by a grant's signature without looking at what it signs", meant: "grant-altered",
            answered: |m, r, reply| known_grant(m, r, reply, |shown, kept| shown["signature"] == kept["signature"]), ..HONEST },
        Rogue { name: "accepts unsigned grants", meant: "grant-unsigned",
            answered: |m, r, reply| known_grant(m, r, reply, |shown, _| shown["signature"].is_null()), ..HONEST },
        Rogue { name: "accepts grants that somebody else signed", meant: "grant-foreign",
            answered: |m, r, reply| known_grant(m, r, reply, |shown, kept| {
                part(shown["signature"].as_str().unwrap_or_default(), 0)["kid"] != part(kept["signature"].as_str().unwrap(), 0)["kid"]
                    && shown["signature"].is_string()
            }), ..HONEST },
        Rogue { name: "lets anybody present a grant", meant: "grant-of-another-grantee",
            answered: |m, r, reply| known_grant(m, r, reply, |shown, kept| shown == kept), ..HONEST },
        Rogue { name: "declares limits that it does not have", meant: "grant-limits",
            answered: |_, r, reply| at("oap-memory.json", r, reply, |body| body["max_grant_size_items"] = json!(10)), ..HONEST },
        // Tokens and proofs.
        Rogue { name: "takes tokens of any algorithm", meant: "token-algorithms",
            answered: |_, r, reply| {
                let algorithm = part(header(r, "authorization"), 0)["alg"].clone();
                if is_query(r) && reply.status == 401 && algorithm == "HS256" { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "takes bound tokens as bearer tokens", meant: "token-bound",
            answered: |m, r, reply| {
                let bare = m.is_token(header(r, "authorization")) && header(r, "dpop").is_empty();
                if is_query(r) && reply.status == 401 && bare { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "takes the proof of any key", meant: "token-bound",
            answered: |m, r, reply| {
                let genuine = m.is_token(header(r, "authorization")) && !header(r, "dpop").is_empty();
                let own = m.before(|b| part(header(b, "dpop"), 0)["jwk"] == part(header(r, "dpop"), 0)["jwk"]).is_some();
                if is_query(r) && reply.status == 401 && genuine && !own { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "takes a proof twice", meant: "proof-replayed",
            answered: |m, r, reply| {
                let seen = m.before(|b| is_query(b) && header(b, "dpop") == header(r, "dpop"));
                if is_query(r) && reply.status == 401 && !header(r, "dpop").is_empty() { seen.unwrap_or(reply) } else { reply }
            }, ..HONEST },
        Rogue { name: "does not look at what a proof was made for", meant: "proof-of-another-request",
            answered: |_, r, reply| {
                let made_for = part(header(r, "dpop"), 1)["htu"].as_str().is_some_and(|url| url.ends_with("/oap/memory/export"));
                if is_query(r) && reply.status == 401 && made_for { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "makes tokens that live for a day", meant: "token-short-lived",
            answered: |_, r, reply| at("/oap/memory/grant", r, reply, |body| {
                let token = forged(body["memory_grant_jwt"].as_str().unwrap(), |c| c["exp"] = json!(c["iat"].as_i64().unwrap() + 86_400));
                body["memory_grant_jwt"] = json!(token);
            }), ..HONEST },
        // What an answer must not depend on.
        Rogue { name: "ranks with global statistics", meant: "ranking-by-the-view-alone",
            answered: |m, r, reply| {
                let all = m.items.len() as f64;
                items(r, reply, |item| item["relevance"] = json!(item["relevance"].as_f64().unwrap_or(0.0) / (1.0 + all / 1e4)))
            }, ..HONEST },
        Rogue { name: "ranks the worst first", meant: "ranking-by-words",
            answered: |_, r, reply| at("/oap/memory/query", r, reply, |answer| if body(r)["query"] != "" {
                let items = answer["items"].as_array_mut().unwrap();
                let relevance: Vec<Value> = items.iter().map(|item| item["relevance"].clone()).collect();
                items.reverse();
                items.iter_mut().zip(relevance).for_each(|(item, relevance)| item["relevance"] = relevance);
            }), ..HONEST },
        Rogue { name: "matches hidden text", meant: "hidden-text-does-not-match",
            asked: |m, r| {
                let word = body(&r)["query"].as_str().unwrap_or_default().to_owned();
                if is_query(&r) && hides(m, &word) { rewrite(r, |q| q["query"] = json!("")) } else { r }
            }, ..HONEST },
        Rogue { name: "tells how many items are hidden", meant: "labels-outside",
            answered: |m, r, mut reply| {
                // A label that is known makes the answer one byte longer.
                let known = |label: &Value| m.items.iter().any(|item| item["labels"].as_array().is_some_and(|l| l.contains(label)));
                if is_query(r) && body(r)["labels_any"].as_array().is_some_and(|labels| labels.iter().any(known)) {
                    reply.bytes.push(b' ');
                }
                reply
            }, ..HONEST },
        Rogue { name: "answers longer for longer secrets", meant: "paired-worlds",
            answered: |m, r, mut reply| {
                if is_query(r) {
                    let secret = m.items.last().map_or(0, |item| item["content"]["structured"].to_string().len());
                    reply.bytes.extend(std::iter::repeat_n(b' ', secret));
                }
                reply
            }, ..HONEST },
        Rogue { name: "adds what it knows for debugging", meant: CONFIDENTIALITY,
            answered: |m, r, reply| at("/oap/memory/query", r, reply, |body| {
                body["debug"] = m.items.last().map_or(Value::Null, |item| item["content"]["structured"].clone());
            }), ..HONEST },
        Rogue { name: "shows structured content a level early", meant: CONFIDENTIALITY,
            owner: |_, c| widened(c, |d| if d["trust_level"] == 3 { d["trust_level"] = json!(4) }), ..HONEST },
        Rogue { name: "raises belief to knowledge", meant: "belief-stays-belief",
            answered: |_, r, reply| items(r, reply, |item| item["epistemic"] = json!("knowledge")), ..HONEST },
        Rogue { name: "reorders the answer", meant: "max-results",
            answered: |_, r, reply| {
                let mut n = 0;
                items(r, reply, |item| { item["relevance"] = json!(f64::from(n) / 10.0); n += 1; })
            }, ..HONEST },
        Rogue { name: "takes any cursor for the first page", meant: "cursors",
            asked: |m, r| {
                let own = |cursor: &Value| m.good.iter().any(|(_, reply)| reply.json()["next_cursor"] == *cursor);
                let cursor = body(&r)["cursor"].clone();
                if is_query(&r) && !cursor.is_null() && !own(&cursor) {
                    rewrite(r, |q| drop(q.as_object_mut().unwrap().remove("cursor")))
                } else { r }
            }, ..HONEST },
        Rogue { name: "overlooks members that it does not know", meant: "unknown-query-members",
            asked: |_, r| {
                let unknown = ["filter", "trust_level", "scopes"];
                if is_query(&r) && body(&r).is_object() {
                    rewrite(r, |q| q.as_object_mut().unwrap().retain(|name, _| !unknown.contains(&name.as_str())))
                } else { r }
            }, ..HONEST },
        Rogue { name: "takes the last of two members", meant: "strict-json",
            asked: |_, mut r| {
                let lenient = r.body.as_deref().and_then(|body| serde_json::from_slice::<Value>(body).ok());
                if let Some(lenient) = lenient.filter(|_| is_query(&r)) {
                    r.body = Some(lenient.to_string().into_bytes());
                }
                r
            }, ..HONEST },
        // Proofs.
        Rogue { name: "cuts chains", meant: POSSESSION,
            answered: |_, r, reply| items(r, reply, |item| drop(item["integrity"]["chain"].as_array_mut().map(Vec::pop))), ..HONEST },
        Rogue { name: "strips signatures from links", meant: POSSESSION,
            answered: |_, r, reply| items(r, reply, |item| drop(link(item, 0).as_object_mut().map(|l| l.remove("signature")))), ..HONEST },
        Rogue { name: "rewrites a link", meant: POSSESSION,
            answered: |_, r, reply| items(r, reply, |item| link(item, 0)["actor"] = json!("did:web:somebody.example")), ..HONEST },
        Rogue { name: "gives chains backwards", meant: POSSESSION,
            answered: |_, r, reply| items(r, reply, |item| item["integrity"]["chain"].as_array_mut().unwrap().reverse()), ..HONEST },
        Rogue { name: "forgets what was before a correction", meant: "correction",
            answered: |_, r, reply| items(r, reply, |item| {
                let last = item["integrity"]["chain"].as_array_mut().and_then(Vec::pop);
                item["integrity"]["chain"] = json!([last]);
            }), ..HONEST },
        Rogue { name: "swaps the chains of two items", meant: POSSESSION,
            answered: |_, r, reply| {
                let said = reply.json();
                let chains: Vec<Value> = said["items"].as_array().into_iter().flatten()
                    .map(|item| item["integrity"]["chain"].clone()).collect();
                let mut n = 0;
                items(r, reply, |item| {
                    n += 1;
                    item["integrity"]["chain"] = chains[n % chains.len()].clone();
                    // One item alone has nobody to swap with.
                    if chains.len() == 1 {
                        link(item, 0)["item_id"] = json!("mem_01M7YSCNYMS8E27HX54GMC7CC3");
                    }
                })
            }, ..HONEST },
        Rogue { name: "rewrites content after signing", meant: POSSESSION,
            answered: |_, r, reply| items(r, reply, |item| item["labels"] = json!(["rewritten"])), ..HONEST },
        Rogue { name: "gives content without its proof", meant: POSSESSION,
            answered: |_, r, reply| items(r, reply, |item| drop(item["integrity"].as_object_mut().map(|i| i.remove("sd_jwt")))), ..HONEST },
        Rogue { name: "names another capture receipt", meant: POSSESSION,
            answered: |_, r, reply| items(r, reply, |item| item["integrity"]["capture_receipt"]["timestamp"] = json!("2026-01-01T00:00:00Z")), ..HONEST },
        Rogue { name: "conceals without salt", meant: "salted-digests",
            random: || Arc::new(Unsalted(Seeded::new(1))), ..HONEST },
        // Receipts.
        Rogue { name: "lets every receipt follow the same one", meant: "receipt-chain",
            answered: |_, r, reply| at("/oap/memory/query", r, reply, |body| {
                body["receipt"]["previous_receipt_hash"] = json!(Hash::of(b"the same"));
            }), ..HONEST },
        Rogue { name: "has no heads", meant: "whole-chain",
            done: |done| logged(done, |receipts| receipts.retain(|receipt| receipt["action_id"] != "memory.chain_head")), ..HONEST },
        Rogue { name: "records no deletion", meant: "whole-chain",
            done: |done| logged(done, |receipts| receipts.retain(|receipt| receipt["type"] != "deletion")), ..HONEST },
        Rogue { name: "answers without a receipt", meant: POSSESSION,
            answered: |_, r, reply| at("/oap/memory/query", r, reply, |body| body["receipt"] = Value::Null), ..HONEST },
        Rogue { name: "signs the receipt of another answer", meant: POSSESSION,
            answered: |_, r, reply| at("/oap/memory/query", r, reply, |body| body["receipt"]["output_hash"] = json!(Hash::of(b"another"))), ..HONEST },
        Rogue { name: "keeps no log", meant: POSSESSION,
            answered: |_, r, reply| at("/oap/audit", r, reply, |body| body["receipts"] = json!([])), ..HONEST },
        Rogue { name: "logs receipts after the answer", meant: POSSESSION,
            answered: |m, r, reply| {
                let late = m.before(|b| is_audit(b) && header(b, "authorization") == header(r, "authorization")).is_none();
                at("/oap/audit", r, reply, |body| if late {
                    // The newest are not there yet when they are first asked for.
                    let newest = body["receipts"].as_array().and_then(|all| all.iter().map(|r| r["timestamp"].to_string()).max());
                    if let Some(all) = body["receipts"].as_array_mut() {
                        all.retain(|receipt| Some(receipt["timestamp"].to_string()) != newest);
                    }
                })
            }, ..HONEST },
        Rogue { name: "shows everybody's receipts", meant: "receipts-of-others",
            answered: |_, r, reply| at("/oap/audit", r, reply, |body| {
                let mut other = body["receipts"][0].clone();
                other["agent_did"] = json!("did:web:somebody.example");
                if let Some(all) = body["receipts"].as_array_mut() { all.push(other); }
            }), ..HONEST },
        Rogue { name: "names items in the public log", meant: "anonymous-audit",
            answered: |_, r, reply| at("/oap/audit", r, reply, |body| {
                for receipt in body["receipts"].as_array_mut().into_iter().flatten() {
                    receipt["provenance_tags_out"] = json!(["mem_01M7YSCNYMS8E27HX54GMC7CC3@sha256:0"]);
                }
            }), ..HONEST },
        // Deletion and correction.
        Rogue { name: "does not delete", meant: "deletion", owner: |_, c| ignored(c, "delete"), ..HONEST },
        Rogue { name: "leaves the deleted in a cache", meant: "deletion",
            answered: |m, r, reply| {
                let same = m.before(|b| is_query(b) && b.body == r.body && header(b, "authorization") == header(r, "authorization"));
                if is_query(r) && m.deleted { same.unwrap_or(reply) } else { reply }
            }, ..HONEST },
        Rogue { name: "does not sign Deletion Receipts", meant: "deletion-receipt",
            done: |done| done.map(|mut done| { drop(done["deletion_receipt"].as_object_mut().map(|r| r.remove("signature"))); done }), ..HONEST },
        Rogue { name: "does not correct", meant: "correction", owner: |_, c| ignored(c, "correct"), ..HONEST },
        // What is published, and strangers.
        Rogue { name: "publishes half a manifest", meant: "memory-manifest",
            answered: |_, r, reply| at("oap-memory.json", r, reply, |body| drop(body.as_object_mut().unwrap().remove("endpoints"))), ..HONEST },
        Rogue { name: "publishes an unsigned manifest", meant: "memory-manifest-signed",
            answered: |_, r, reply| at("oap-memory.json", r, reply, |body| drop(body.as_object_mut().unwrap().remove("signature"))), ..HONEST },
        Rogue { name: "serves a manifest of another principal", meant: "memory-manifest-signed",
            answered: |_, r, reply| at("oap-memory.json", r, reply, |body| body["principal"] = json!("did:web:somebody.example")), ..HONEST },
        Rogue { name: "changes the tool manifest behind the signed one", meant: "tool-manifest-agrees",
            answered: |_, r, reply| at("oap-tool.json", r, reply, |body| body["risk_class"] = json!("high")), ..HONEST },
        Rogue { name: "publishes no key", meant: "did-document",
            answered: |_, r, reply| at("did.json", r, reply, |body| {
                body["assertionMethod"] = json!([]);
                body["authentication"] = json!([]);
            }), ..HONEST },
        Rogue { name: "serves anybody", meant: "anonymous-query",
            answered: |_, r, reply| if is_query(r) && reply.status == 401 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "exports to anybody", meant: "anonymous-export",
            answered: |_, r, reply| if r.path == "/oap/memory/export" && reply.status == 401 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "answers errors without a code", meant: "errors",
            answered: |_, _, reply| if reply.status >= 400 { Reply { bytes: b"no".to_vec(), ..reply } } else { reply }, ..HONEST },
        Rogue { name: "fails with a stack trace on bad input", meant: "hostile-bodies",
            answered: |_, r, reply| if r.path == "/oap/memory/grant" && reply.status == 400 {
                Reply { status: 500, bytes: b"panicked at src/main.rs".to_vec(), ..reply }
            } else { reply }, ..HONEST },
        // Refusals one at a time.
        Rogue { name: "takes whatever it signed for a token", meant: "refused-tokens",
            answered: |_, r, reply| {
                let typ = part(header(r, "authorization"), 0)["typ"].clone();
                if is_query(r) && reply.status == 401 && typ == "statuslist+jwt" { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "takes a bearer token under any scheme", meant: "refused-bearer-tokens",
            asked: |_, mut r| {
                let token = header(&r, "authorization").to_owned();
                if part(&token, 1)["cnf"].is_null() && part(&token, 1)["grant_id"].is_string() {
                    r.headers.retain(|(name, _)| name != "authorization" && name != "dpop");
                    r.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
                }
                r
            }, ..HONEST },
        Rogue { name: "shows to whoever has a bearer token the whole log of its grantee", meant: "refused-bearer-tokens",
            answered: |_, r, reply| {
                let bearer = part(header(r, "authorization"), 1)["cnf"].is_null();
                at("/oap/audit", r, reply, |log| if bearer {
                    let mut other = log["receipts"][0].clone();
                    other["policy_decisions"][0]["grant_hash"] = json!(Hash::of(b"another"));
                    if let Some(all) = log["receipts"].as_array_mut() { all.push(other) }
                })
            }, ..HONEST },
        Rogue { name: "takes any child as an action", meant: "refused-grant-actions",
            answered: |_, r, reply| {
                let child = body(r)["input"]["grant"]["parent"].is_string();
                if r.path == "/oap/invoke" && reply.status == 400 && child { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "overlooks a nonce", meant: "refused-proofs",
            answered: |_, r, reply| {
                let nonce = part(header(r, "dpop"), 1)["nonce"].is_string();
                if is_query(r) && reply.status == 401 && nonce { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "takes any proof at subscriptions", meant: "subscription-credentials",
            answered: |_, r, reply| if r.path.starts_with("/oap/memory/subscribe") { with_any_proof(r, reply, 200) } else { reply }, ..HONEST },
        Rogue { name: "takes any proof where it shows its log", meant: "witnessed-credentials",
            answered: |_, r, reply| if r.path.starts_with("/oap/memory/witnessed/") { with_any_proof(r, reply, 404) } else { reply }, ..HONEST },
        Rogue { name: "takes any proof of devices", meant: "device-credentials",
            answered: |_, r, reply| if r.path == "/oap/memory/changes/items" { with_any_proof(r, reply, 403) } else { reply }, ..HONEST },
        Rogue { name: "takes any proof of an agent", meant: "mcp-credentials",
            answered: |_, r, reply| if r.path == "/mcp" { with_any_proof(r, reply, 200) } else { reply }, ..HONEST },
        Rogue { name: "hides its tools from who has no token", meant: "mcp-credentials",
            answered: |_, r, reply| if r.path == "/mcp" { hidden(r, reply) } else { reply }, ..HONEST },
        Rogue { name: "hides subscriptions from who has no token", meant: "subscriptions",
            answered: |_, r, reply| if r.path.starts_with("/oap/memory/subscribe") { hidden(r, reply) } else { reply }, ..HONEST },
        Rogue { name: "hides its log from who has no token", meant: "witnessed-credentials",
            answered: |_, r, reply| if r.path.starts_with("/oap/memory/witnessed/") { hidden(r, reply) } else { reply }, ..HONEST },
        Rogue { name: "hides from who has no token that it deletes", meant: "refused-deletions",
            answered: |_, r, reply| if r.path == "/oap/data/delete" { hidden(r, reply) } else { reply }, ..HONEST },
        Rogue { name: "is busy for good once it has said what is not so", meant: "worlds",
            answered: |_, r, reply| match r.path.as_str() {
                "/oap/memory/export" => refused(reply, 429, "rate_limited"),
                _ => items(r, reply, |item| item["kind"] = json!("thought")),
            }, ..HONEST },
        Rogue { name: "gives an agent a hundred for more than a hundred", meant: "mcp-answers",
            asked: |_, r| if r.path == "/mcp" && body(&r)["params"]["arguments"]["max_results"] == 101 {
                rewrite(r, |call| call["params"]["arguments"]["max_results"] = json!(100))
            } else { r }, ..HONEST },
        Rogue { name: "explains whatever item an agent names", meant: "mcp-answers",
            answered: |m, r, reply| {
                let named = &body(r)["params"]["arguments"]["item_id"];
                let known = named.as_str().and_then(|id| m.captured.get(id)).cloned();
                at("/mcp", r, reply, |said| if let Some(item) = known.filter(|_| said["result"]["structuredContent"]["items"] == json!([])) {
                    said["result"]["structuredContent"]["items"] = json!([item]);
                })
            }, ..HONEST },
        Rogue { name: "writes into an agent's text what it does not answer", meant: "mcp-answers",
            answered: |m, r, reply| {
                let other = m.captured.keys().next().cloned().unwrap_or_default();
                at("/mcp", r, reply, |said| if let Some(text) = said["result"]["content"][0]["text"].as_str() {
                    said["result"]["content"][0]["text"] = json!(format!("{text}\n<memory-item id=\"{other}\"></memory-item>"));
                })
            }, ..HONEST },
        Rogue { name: "gives vectors under a grant that was taken back", meant: "grants-not-in-force",
            answered: |_, r, reply| if r.path.starts_with("/oap/memory/vec/") && reply.status == 403 { refused(reply, 404, "not_found") } else { reply }, ..HONEST },
        Rogue { name: "says of a grant that was taken back that it is active", meant: "grants-not-in-force",
            answered: |_, r, reply| at("/oap/memory/grant/", r, reply, |said| said["state"] = json!("active")), ..HONEST },
        Rogue { name: "does not count what it exports", meant: "grants-not-in-force",
            answered: |m, r, reply| if r.path == "/oap/memory/export" && reply.status == 429 {
                m.before(|b| b.path == r.path).unwrap_or(reply)
            } else { reply }, ..HONEST },
        Rogue { name: "goes on subscribing under a grant that ended", meant: "grant-expired",
            answered: |m, r, reply| if r.path == "/oap/memory/subscribe" && [401, 403].contains(&reply.status) && !header(r, "dpop").is_empty() {
                m.before(|b| b.path == r.path).unwrap_or(reply)
            } else { reply }, ..HONEST },
        Rogue { name: "deletes for whoever has a token", meant: "refused-deletions",
            answered: |m, r, reply| {
                let is_token = m.is_token(header(r, "authorization"));
                if r.path == "/oap/data/delete" && reply.status >= 400 && is_token { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "knows its receipts by their names alone", meant: "receipts-verified",
            answered: |m, r, reply| {
                let name = &body(r)["receipt_id"];
                let before = m.before(|b| b.path == r.path && body(b)["receipt_id"] == *name);
                if r.path == "/oap/receipt/verify" && reply.status == 404 { before.unwrap_or(reply) } else { reply }
            }, ..HONEST },
        Rogue { name: "takes a proof of longer life", meant: "refused-grant-proofs",
            answered: |_, r, reply| {
                let claims = part(body(r)["proof"].as_str().unwrap_or_default(), 1);
                let life = claims["exp"].as_i64().zip(claims["iat"].as_i64()).map_or(0, |(exp, iat)| exp - iat);
                if r.path == "/oap/memory/grant" && reply.status == 401 && life > 60 { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "overlooks members of a grant that it does not know", meant: "refused-grants",
            answered: |m, r, reply| known_grant(m, r, reply, |shown, kept| {
                shown["colour"].is_string() && shown["signature"] == kept["signature"]
            }), ..HONEST },
        Rogue { name: "cuts grants that are too long instead of refusing them", meant: "refused-drafts",
            owner: |_, c| widened(c, |d| {
                let time = |value: &Value| value.as_str().and_then(|at| at.parse::<Timestamp>().ok());
                if let Some((begin, end)) = time(&d["not_before"]).zip(time(&d["expires_at"])) {
                    d["expires_at"] = json!(end.min(begin.plus(Duration::from_secs(180 * 86_400))));
                }
            }), ..HONEST },
        Rogue { name: "takes any child", meant: "refused-children",
            answered: |_, r, reply| {
                let child = body(r)["grant"]["parent"].is_string();
                if r.path == "/oap/memory/grant" && reply.status == 400 && child { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "takes a hundred for more than a hundred", meant: "refused-queries",
            asked: |_, r| if is_query(&r) && body(&r)["max_results"] == 101 {
                rewrite(r, |q| q["max_results"] = json!(100))
            } else { r }, ..HONEST },
        Rogue { name: "takes any countersignature", meant: "refused-countersignatures",
            answered: |_, r, reply| if r.path == "/oap/memory/ack" && reply.status >= 400 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "gives as much of the log as is asked for", meant: "refused-log-questions",
            answered: |_, r, reply| if r.path.starts_with("/oap/audit?limit=") && reply.status == 400 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "does not say that its answers are no pages", meant: "answer-forms",
            answered: |_, r, mut reply| {
                if is_query(r) { reply.headers.retain(|(name, _)| name != "x-content-type-options") }
                reply
            }, ..HONEST },
        // Among gateways.
        Rogue { name: "takes letters of anybody", meant: "letters",
            answered: |_, r, reply| if is_letter(r) && reply.status == 401 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "takes letters that are for others", meant: "letters",
            answered: |m, r, reply| {
                let said = reply.json()["message"].to_string();
                let for_others = is_letter(r) && reply.status == 400 && said.contains("to: ");
                if for_others { m.before(is_letter).unwrap_or(reply) } else { reply }
            }, ..HONEST },
        Rogue { name: "takes letters that are over", meant: "letters",
            answered: |m, r, reply| {
                let said = reply.json()["message"].to_string();
                let is_over = is_letter(r) && reply.status == 400 && said.contains("later than now");
                if is_over { m.before(is_letter).unwrap_or(reply) } else { reply }
            }, ..HONEST },
        Rogue { name: "does not sign its replies", meant: "letter-replies",
            answered: |_, r, reply| at("/oap/peer/letter", r, reply, |said| drop(said.as_object_mut().unwrap().remove("signature"))), ..HONEST },
        Rogue { name: "names another letter in its replies", meant: "letter-replies",
            answered: |_, r, reply| at("/oap/peer/letter", r, reply, |said| said["to"] = json!(Hash::of(b"another"))), ..HONEST },
        Rogue { name: "takes another letter under a name that was used", meant: "letter-replies",
            answered: |_, r, reply| at("/oap/peer/letter", r, reply, |said| if said["reason"] == "other_letter" {
                said["outcome"] = json!("taken");
                said.as_object_mut().unwrap().remove("reason");
            }), ..HONEST },
        Rogue { name: "tells whose document it does not have", meant: "letters-of-nobody",
            answered: |_, r, reply| {
                let of_web = body(r)["from"].as_str().is_some_and(|from| from.starts_with("did:web:"));
                if is_letter(r) && reply.status == 401 && of_web { edit(reply, |said| said["message"] = json!("no document")) } else { reply }
            }, ..HONEST },
        Rogue { name: "gives access to whoever asks", meant: "access-requests",
            answered: |_, r, reply| at("/oap/peer/letter", r, reply, |said| if said["access"].is_object() {
                said["access"]["state"] = json!("approved");
            }), ..HONEST },
        Rogue { name: "tells who else asked", meant: "access-requests",
            answered: |m, r, reply| {
                let handle = body(r)["body"]["request"].clone();
                let before = m.before(|b| is_letter(b) && body(b)["body"]["request"] == handle).is_some();
                at("/oap/peer/letter", r, reply, |said| if before && said["access"].is_object() {
                    said["access"]["word"] = json!("so somebody asked before");
                })
            }, ..HONEST },
        Rogue { name: "believes the notices of strangers", meant: "notices-of-strangers",
            answered: |_, r, reply| {
                let is_notice = body(r)["type"].as_str().is_some_and(|kind| kind.ends_with("_notice"));
                at("/oap/peer/letter", r, reply, |said| if is_notice {
                    said["outcome"] = json!("taken");
                    said.as_object_mut().unwrap().remove("reason");
                })
            }, ..HONEST },
        Rogue { name: "has a card that nobody signed", meant: "agent-card",
            answered: |_, r, reply| at("agent-card.json", r, reply, |card| card["signatures"] = json!([])), ..HONEST },
        Rogue { name: "has a card that was changed", meant: "agent-card",
            answered: |_, r, reply| at("agent-card.json", r, reply, |card| card["name"] = json!("Another")), ..HONEST },
        Rogue { name: "hands no key over", meant: "key-handovers",
            answered: |_, r, reply| at("oap-key-handovers.json", r, reply, |list| list["handovers"] = json!([])), ..HONEST },
        Rogue { name: "shows a status list of before", meant: "status-list",
            answered: |m, r, reply| if r.path == "/oap/memory/status" { m.before(|b| b.path == r.path).unwrap_or(reply) } else { reply }, ..HONEST },
        // Profiles of the owner's own, sanctions lists, the owner's log.
        Rogue { name: "forgets the conditions of a profile of its owner's own", meant: "own-profiles",
            answered: |m, r, reply| {
                let own = reply.json()["projection_applied"]["profile"].as_str().is_some_and(|name| name.ends_with("probe_event.v1"));
                items(r, reply, |item| {
                    let whole = &draft(m, item)["content"]["structured"];
                    if own && whole["entity_type"] == "oap.entity.calendar_event" && whole["title"].is_string() {
                        item["content"]["structured"]["title"] = whole["title"].clone();
                    }
                })
            }, ..HONEST },
        Rogue { name: "forgets its sanctions lists", meant: "sanctions", owner: |_, c| ignored(c, "sanctions"), ..HONEST },
        Rogue { name: "keeps from its owner what was answered", meant: "owners-log",
            done: |done| done.map(|mut said| {
                if let Some(receipts) = said["receipts"].as_array_mut() {
                    receipts.retain(|receipt| receipt["action_id"] != "memory.query");
                }
                said
            }), ..HONEST },
        Rogue { name: "keeps from its owner what was taken back", meant: "owners-log",
            done: |done| done.map(|mut said| {
                if let Some(receipts) = said["receipts"].as_array_mut() {
                    receipts.retain(|receipt| receipt["action_id"] != "memory.retract");
                }
                said
            }), ..HONEST },
        Rogue { name: "says that it is locked down", meant: "lockdown", owner: |_, c| ignored(c, "lockdown"), ..HONEST },
        Rogue { name: "answers without TLS", meant: "tls-only", forbidden: || Ok(Some(let_in())), ..HONEST },
    ];
    rogues.extend(among_gateways::rogues());
    rogues
}

/// What the owner is told of the log, with other receipts.
fn logged(
    done: Result<Value, SetupError>,
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<Value, SetupError> {
    done.map(|mut said| {
        if let Some(receipts) = said["receipts"].as_array_mut() {
            change(receipts);
        }
        said
    })
}

/// A command that corrects nothing but what an item says.
fn words_alone(command: Value) -> Value {
    if command["item"]["content"].is_null() { ignored(command, "correct") } else { command }
}

/// What is answered where any proof will do, with the status of whoever is let in.
fn with_any_proof(request: &Request, reply: Reply, status: u16) -> Reply {
    if reply.status != 401 || header(request, "dpop").is_empty() {
        return reply;
    }
    if status == 200 {
        let_in()
    } else {
        refused(reply, status, if status == 403 { "policy_block" } else { "not_found" })
    }
}

/// Whether a key is one of the gateway's that was retired, as far as its document was read.
fn former(memory: &Memory, kid: &Value) -> bool {
    let document = memory.before(|b| b.path == "/.well-known/did.json").map(|reply| reply.json());
    let keys = document.map(|document| document["verificationMethod"].clone()).unwrap_or_default();
    keys.as_array().into_iter().flatten().any(|key| key["id"] == *kid && !key["expires"].is_null())
}

/// Nothing is there for who shows no credential.
fn hidden(request: &Request, reply: Reply) -> Reply {
    if header(request, "authorization").is_empty() { refused(reply, 404, "not_found") } else { reply }
}

/// A grant that was refused, exchanged nevertheless if one of that id was before and the two are so.
fn known_grant(
    memory: &Memory,
    request: &Request,
    reply: Reply,
    so: impl Fn(&Value, &Value) -> bool,
) -> Reply {
    if request.path != "/oap/memory/grant" || !(400..500).contains(&reply.status) {
        return reply;
    }
    let shown = body(request)["grant"].clone();
    let before = memory.before(|b| {
        let kept = &body(b)["grant"];
        b.path == "/oap/memory/grant" && kept["grant_id"] == shown["grant_id"] && so(&shown, kept)
    });
    before.unwrap_or(reply)
}

/// What a probe, and no other, finds of a rogue.
async fn found(rogue: &Rogue, meant: &str) -> Outcome {
    let random = (rogue.random)();
    let store = oap_store::Store::in_memory(random.clone()).unwrap();
    let world = match meant {
        "own-log" | "witnessed-receipts" => with_log(store, random).await,
        _ => probed_on(store, oap_gateway::Config::default(), random, equipment()).await,
    };
    let clock = ProbesClock(&world, Mutex::new(Duration::ZERO));
    let front = Front::of(&world, rogue, &clock);
    // Worlds are much to ask: they are asked of those that nothing else is meant for.
    let of_worlds = [
        "worlds",
        "worlds-over-time",
        "paired-fillings",
        "histories",
        "every-table",
        "gates",
        "own-profiles",
        "sanctions",
        "owners-log",
    ]
    .contains(&meant);
    // What a history does with one item few of its grantees see.
    let worlds = if meant == "histories" { 8 } else { 3 * u64::from(of_worlds) };
    let only = probe::all().iter().map(|probe| probe.id).find(|id| *id == meant);
    let (random, limits) = (Seeded::new(7), Limits { worlds, only, ..Limits::default() });
    let report = probe::run(ORIGIN, &front, Some(&front), &clock, &random, limits, &mut |_| {}).await;
    report.results.iter().find(|r| r.id == meant).unwrap().outcome.clone()
}

/// Why a rogue is missed by the probe meant for it; `None` where that probe catches it.
async fn missed(rogue: &Rogue) -> Option<String> {
    let (name, meant) = (rogue.name, rogue.meant);
    let outcome = found(rogue, meant).await;
    let Outcome::Failed(why) = outcome else { return Some(format!("{name}: {meant} says {outcome:?}")) };
    println!("{name:<70}{meant:<35}{why}");
    why.contains("the answer's signature")
        .then(|| format!("{name} is caught only because it does not sign: {why}"))
}

/// What is said of each of these, by as many threads as there are cores.
fn of_each<T: Send>(
    all: impl Iterator<Item = T> + Send,
    says: impl AsyncFn(&T) -> Option<String> + Sync,
) -> Vec<String> {
    let (left, said) = (Mutex::new(all), Mutex::new(Vec::new()));
    // A gateway each: they know nothing of each other.
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                loop {
                    let Some(one) = left.lock().unwrap().next() else { break };
                    let why = runtime.block_on(says(&one));
                    said.lock().unwrap().extend(why);
                }
            });
        }
    });
    said.into_inner().unwrap()
}

#[test]
fn each_is_caught_by_the_probe_meant_for_it() {
    let rogues = rogues();
    let names: BTreeSet<_> = rogues.iter().map(|rogue| rogue.name).collect();
    assert_eq!(names.len(), rogues.len());
    // A part of a name, to look at some of them.
    let some = std::env::var("OAP_ROGUE").unwrap_or_default();
    let missed =
        of_each(rogues.iter().filter(|rogue| rogue.name.contains(&some)), async |rogue| missed(rogue).await);
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Doors at which something is refused.
const DOORS: [&str; 10] = [
    "/oap/memory/grant",
    "/oap/memory/query",
    "/oap/memory/export",
    "/oap/memory/ack",
    "/oap/memory/subscribe",
    "/oap/invoke",
    "/oap/audit",
    "/oap/receipt/verify",
    "/oap/peer/letter",
    "/mcp",
];

/// What may pass where a door lets nobody in at which it is refused otherwise, with why.
const UNCONTROLLED: &[(&str, &str, &str)] = &[
    ("/oap/memory/grant", "answer-forms", "of the form of refusals"),
    ("/oap/memory/query", "answer-forms", "of the form of refusals"),
    ("/oap/memory/query", "errors", "of the form of refusals"),
];

/// How each probe ends where this door is closed, and where it was refused.
async fn ends(closed: Option<&'static str>) -> BTreeMap<String, (Outcome, BTreeSet<&'static str>)> {
    let world = probed(1, oap_gateway::Config::default(), equipment()).await;
    // Where the probe under way was refused.
    let refusing: Mutex<BTreeSet<&'static str>> = Mutex::default();
    let closing = Behind::of(&world, |request: &Request, reply: Reply| {
        let Some(door) = DOORS.into_iter().find(|door| request.path.starts_with(door)) else { return reply };
        let shut = closed == Some(door) && reply.status < 400;
        let reply = if shut { refused(reply, 403, "policy_block") } else { reply };
        if (400..500).contains(&reply.status) {
            refusing.lock().unwrap().insert(door);
        }
        reply
    });
    let mut ends = BTreeMap::new();
    let mut told = |result: &probe::report::Result| {
        let refused = std::mem::take(&mut *refusing.lock().unwrap());
        ends.insert(result.id.clone(), (result.outcome.clone(), refused));
    };
    // Those that make worlds take most of the time.
    let worlds = u64::from(std::env::var_os("OAP_LONG").is_some());
    let (random, limits) = (Seeded::new(7), Limits { worlds, ..Limits::default() });
    probe::run(ORIGIN, &closing, Some(&Inside(&world)), &*world.clock, &random, limits, &mut told).await;
    ends
}

/// Who refuses everything at a door has not refused what had to be refused there: whatever probe is refused at it asks for what must be let in as well.
#[test]
fn who_refuses_everything_at_a_door_passes_none_of_its_probes() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let open = runtime.block_on(ends(None));
    let passed = of_each(DOORS.into_iter(), async |door| {
        let closed = ends(Some(*door)).await;
        let is_known = |id: &str| UNCONTROLLED.iter().any(|(at, probe, _)| at == door && *probe == id);
        let blind = closed.iter().filter(|(id, (outcome, _))| {
            *outcome == Outcome::Passed && open[*id].1.contains(*door) && !is_known(id.as_str())
        });
        let blind: Vec<&str> = blind.map(|(id, _)| id.as_str()).collect();
        (!blind.is_empty()).then(|| format!("nobody gets in at {door}, and these pass: {blind:?}"))
    });
    assert!(passed.is_empty(), "{passed:#?}");
    for door in DOORS {
        assert!(open.values().any(|(_, refused)| refused.contains(door)), "nothing is refused at {door}");
    }
}

/// The same of the log, which few gateways have.
#[tokio::test]
async fn who_shows_nobody_a_receipt_of_the_log_does_not_pass() {
    let rogue = Rogue {
        name: "shows nobody a receipt of its log",
        answered: |_, r, reply| {
            let shut = r.path.starts_with("/oap/memory/witnessed") && reply.status < 400;
            if shut { refused(reply, 403, "policy_block") } else { reply }
        },
        ..HONEST
    };
    assert!(matches!(found(&rogue, "witnessed-receipts").await, Outcome::Failed(_)));
}

/// A reply that tells how many items the gateway was given.
fn telling(memory: &Memory, mut reply: Reply) -> Reply {
    reply.headers.push(("x-items".to_owned(), memory.items.len().to_string()));
    reply
}

/// What is told under a grant with purposes, under one that was made from another, with vectors and with events is compared, too.
#[tokio::test]
async fn what_is_told_with_some_replies_alone_is_found() {
    let all = [
        HONEST,
        Rogue {
            name: "a purpose that is not stated",
            answered: |m, r, reply| {
                if reply.status == 403 && body(r)["purpose"].is_string() { telling(m, reply) } else { reply }
            },
            ..HONEST
        },
        Rogue {
            name: "a child",
            answered: |m, r, reply| if body(r)["chain"].is_array() { telling(m, reply) } else { reply },
            ..HONEST
        },
        Rogue {
            name: "a vector",
            answered: |m, r, reply| {
                let is_vector = r.path.starts_with("/oap/memory/vec/") && reply.status != 403;
                if is_vector { telling(m, reply) } else { reply }
            },
            ..HONEST
        },
        Rogue {
            name: "an event",
            answered: |m, r, reply| if r.path.ends_with("/events") { telling(m, reply) } else { reply },
            ..HONEST
        },
    ];
    for rogue in &all {
        let worlds = [with_model(9).await, with_model(9).await];
        let clocks = worlds.each_ref().map(|world| ProbesClock(world, Mutex::default()));
        let [one, other] = [0, 1].map(|side: usize| Front::of(&worlds[side], rogue, &clocks[side]));
        let sides = [(&one, &clocks[0]), (&other, &clocks[1])].map(|(front, clock)| Side {
            wire: front,
            setup: front,
            clock,
        });
        let found = probe::pairs(ORIGIN, sides, 2, Limits { worlds: 2, ..Limits::default() }).await;
        let is_found = matches!(&found, Err(probe::Failed::Wrong(why)) if why.contains("x-items"));
        let fits = if rogue.name == HONEST.name { found == Ok(()) } else { is_found };
        assert!(fits, "{}: {found:?}", rogue.name);
    }
}

/// A probe that nothing is known to fail is not known to catch anything: one of these, or a fault of the witness (`tests/witness.rs` puts it in).
#[test]
fn every_probe_has_a_rogue() {
    let faults = concat!(env!("CARGO_MANIFEST_DIR"), "/rogues/witness.toml");
    let faults: toml::Table = std::fs::read_to_string(faults).unwrap().parse().unwrap();
    let of_the_witness =
        faults["fault"].as_array().unwrap().iter().map(|fault| fault["meant"].as_str().unwrap());
    let meant: BTreeSet<&str> = rogues().iter().map(|rogue| rogue.meant).chain(of_the_witness).collect();
    let idle: Vec<&str> =
        probe::all().iter().map(|probe| probe.id).filter(|id| !meant.contains(id)).collect();
    assert!(idle.is_empty(), "{idle:?}");
}

/// The faults in the code itself (`conformance/rogues/faults.toml`) still fit it; `run.py` there builds them.
#[test]
fn the_faults_in_the_code_still_fit_it() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let faults = std::fs::read_to_string(format!("{root}/conformance/rogues/faults.toml")).unwrap();
    let faults: toml::Table = faults.parse().unwrap();
    let faults = faults["fault"].as_array().unwrap();
    assert!(faults.len() >= 30, "{}", faults.len());
    let probes: BTreeSet<&str> = probe::all().iter().map(|probe| probe.id).collect();
    for fault in faults {
        assert!(probes.contains(fault["meant"].as_str().unwrap()), "{fault}");
        let also = fault.get("also").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        for edit in also.iter().chain([fault]) {
            let file = std::fs::read_to_string(format!("{root}/{}", edit["file"].as_str().unwrap())).unwrap();
            assert_eq!(file.matches(edit["was"].as_str().unwrap()).count(), 1, "{fault}");
        }
    }
}

/// Probes that a gateway passes which answers no query: they are about something else, or ask at another door.
const SHOW_NOTHING: &[&str] = &[
    "access-requests",
    "agent-card",
    "anonymous-audit",
    "anonymous-export",
    "anonymous-query",
    "answer-forms",
    "deletion-receipt",
    "device-letters",
    "did-document",
    "discover",
    "documents-agree",
    "errors",
    "events",
    "events-behind-gates",
    "export",
    "grant-altered",
    "grant-foreign",
    "grant-limits",
    "grant-not-yet-valid",
    "grant-of-another-grantee",
    "grant-unknown-filter-field",
    "grant-unsigned",
    "hostile-bodies",
    "key-handovers",
    "letter-replies",
    "letters",
    "letters-of-nobody",
    "mcp-answers",
    "memory-manifest",
    "memory-manifest-signed",
    "outputs-by-schema",
    "public-log",
    "push-door",
    "refused-actions",
    "refused-children",
    "refused-drafts",
    "refused-grant-actions",
    "refused-grants",
    "refused-log-questions",
    "refused-profiles",
    "status-list",
    "subscriptions",
    "tls-only",
    "token-short-lived",
    "tool-manifest",
    "tool-manifest-agrees",
    "transitions",
    "what-grantees-may-know",
    "witness-door",
];

/// Those that look at the status of a query, and not at what it shows.
const BY_STATUS: &[&str] = &[
    "device-credentials",
    "forged-signatures",
    "grant-expired",
    "grant-revoked",
    "grants-not-in-force",
    "grants-of-every-basis",
    "lockdown",
    "mcp-credentials",
    "proof-of-another-request",
    "proof-replayed",
    "receipt-chain",
    "receipts-name-grants",
    "receipts-of-others",
    "refused-bearer-tokens",
    "refused-countersignatures",
    "refused-envelopes",
    "refused-grant-proofs",
    "refused-proofs",
    "refused-tokens",
    "strict-json",
    "subscription-credentials",
    "token-algorithms",
    "token-bound",
    "unknown-query-members",
    "witnessed-credentials",
];

/// What is not there is not hidden: who refuses every query, or answers each with nothing, passes no probe of what a grant shows or hides.
#[tokio::test]
async fn who_shows_nothing_passes_nothing_that_is_about_items() {
    let mute = Rogue {
        name: "refuses every query",
        answered: |_, r, reply| {
            if is_query(r) && reply.status == 200 { refused(reply, 403, "policy_block") } else { reply }
        },
        ..HONEST
    };
    let empty = Rogue {
        name: "finds nothing",
        answered: |_, r, reply| at("/oap/memory/query", r, reply, |answer| answer["items"] = json!([])),
        ..HONEST
    };
    for (rogue, by_status) in [(mute, &[][..]), (empty, BY_STATUS)] {
        let world = probed(1, oap_gateway::Config::default(), equipment()).await;
        let clock = ProbesClock(&world, Mutex::new(Duration::ZERO));
        let front = Front::of(&world, &rogue, &clock);
        let (random, limits) = (Seeded::new(7), Limits { worlds: 1, ..Limits::default() });
        let report = probe::run(ORIGIN, &front, Some(&front), &clock, &random, limits, &mut |_| {}).await;
        let passed = report.results.iter().filter(|result| result.outcome == Outcome::Passed);
        let passed: BTreeSet<&str> = passed.map(|result| result.id.as_str()).collect();
        let passes = |id: &&&str| SHOW_NOTHING.contains(*id) || by_status.contains(*id);
        let more: Vec<_> = passed.iter().filter(|id| !passes(id)).collect();
        assert!(more.is_empty(), "{}: {more:?}", rogue.name);
    }
}

/// The front itself makes no difference.
#[tokio::test]
async fn the_honest_one_behind_the_front_is_not_caught() {
    let world = probed(1, oap_gateway::Config::default(), equipment()).await;
    let clock = ProbesClock(&world, Mutex::new(Duration::ZERO));
    let front = Front::of(&world, &HONEST, &clock);
    let (random, limits) = (Seeded::new(7), Limits { worlds: 1, ..Limits::default() });
    let report = probe::run(ORIGIN, &front, Some(&front), &clock, &random, limits, &mut |_| {}).await;
    assert!(report.failures().is_empty(), "{}", report.text());
}

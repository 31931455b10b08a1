//! Rogues of what gateways tell each other: pushes, subscriptions, logs, acknowledgements, devices.

use super::front::{HONEST, Request, Rogue, at, body, edit, header, is_event, let_in, refused};
use oap_conformance::probe::Reply;
use oap_identity::Hash;
use serde_json::{Value, json};

/// A reply to a letter that says that it was taken.
fn taken(said: &mut Value) {
    said["outcome"] = json!("taken");
    said.as_object_mut().unwrap().remove("reason");
}

#[rustfmt::skip]
pub fn rogues() -> Vec<Rogue> {
    vec![
        Rogue { name: "takes pushes of anybody", meant: "push-door",
            answered: |_, r, reply| if r.path.starts_with("/oap/peer/push/") && reply.status == 401 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "takes pushes of any form", meant: "push-door",
            answered: |_, r, reply| if r.path.starts_with("/oap/peer/push/sub_") && reply.status == 400 && !header(r, "Signature").is_empty() {
                refused(reply, 401, "auth_required")
            } else { reply }, ..HONEST },
        Rogue { name: "tells who pushes in its own name that it knows better", meant: "push-door",
            answered: |_, r, reply| {
                let own = header(r, "Signature-Input").contains("did:web:user.example");
                let is_push = r.path.starts_with("/oap/peer/push/") && reply.status == 401;
                if is_push && own { edit(reply, |said| said["message"] = json!("that is me")) } else { reply }
            }, ..HONEST },
        Rogue { name: "lets everybody subscribe", meant: "subscriptions",
            answered: |_, r, reply| if r.path == "/oap/memory/subscribe" && reply.status == 403 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "pushes wherever it is told to", meant: "subscriptions",
            answered: |_, r, reply| {
                let to_a_stranger = body(r)["push"]["url"] == "https://stranger.example/push";
                if r.path == "/oap/memory/subscribe" && reply.status == 400 && to_a_stranger { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "has anybody end a subscription", meant: "subscriptions",
            answered: |_, r, reply| {
                let is_end = r.path.starts_with("/oap/memory/subscribe/sub_") && r.path.ends_with("/end");
                if is_end && reply.status == 404 { let_in() } else { reply }
            }, ..HONEST },
        Rogue { name: "shows whoever knows its name a subscription", meant: "events",
            answered: |_, r, reply| if is_event(r) && reply.status == 404 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "tells again what came", meant: "events",
            answered: |m, r, reply| if is_event(r) && reply.bytes.starts_with(b":") { m.before(is_event).unwrap_or(reply) } else { reply }, ..HONEST },
        Rogue { name: "does not say what left", meant: "events",
            answered: |_, r, reply| {
                let said = String::from_utf8_lossy(&reply.bytes).into_owned();
                if is_event(r) && said.contains(r#""left":["mem_"#) { Reply { bytes: b":\n\n".to_vec(), ..reply } } else { reply }
            }, ..HONEST },
        Rogue { name: "pushes what its receipt does not cover", meant: "events",
            answered: |_, r, reply| if is_event(r) && reply.status == 200 {
                let said = String::from_utf8_lossy(&reply.bytes).replacen(r#""more":false"#, r#""more":true"#, 1);
                Reply { bytes: said.into_bytes(), ..reply }
            } else { reply }, ..HONEST },
        Rogue { name: "streams under a grant that was taken back", meant: "events",
            answered: |m, r, reply| if is_event(r) && reply.status == 403 { m.before(is_event).unwrap_or(reply) } else { reply }, ..HONEST },
        Rogue { name: "witnesses whatever log it is shown", meant: "witness-door",
            answered: |_, r, reply| if r.path.starts_with("/oap/witness/") && reply.status == 404 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "reads whatever it is shown as a checkpoint", meant: "witness-door",
            answered: |_, r, reply| if r.path.starts_with("/oap/witness/") && reply.status == 400 { refused(reply, 404, "not_found") } else { reply }, ..HONEST },
        Rogue { name: "publishes a log that is longer than it signed", meant: "own-log",
            answered: |_, r, reply| if r.path == "/.well-known/oap-checkpoint" {
                let said = String::from_utf8_lossy(&reply.bytes).into_owned();
                let longer: Vec<String> = said.split('\n').enumerate().map(|(at, line)| if at == 1 { "1000".to_owned() } else { line.to_owned() }).collect();
                Reply { bytes: longer.join("\n").into_bytes(), ..reply }
            } else { reply }, ..HONEST },
        Rogue { name: "goes back to a log of before", meant: "own-log",
            answered: |m, r, reply| if r.path == "/.well-known/oap-checkpoint" {
                let seen: Vec<&Reply> = m.good.iter().filter(|(b, _)| b.path == r.path).map(|(_, reply)| reply).collect();
                if seen.len() == 2 { seen[0].clone() } else { reply }
            } else { reply }, ..HONEST },
        Rogue { name: "proves nothing of its log", meant: "own-log",
            answered: |_, r, reply| at("/oap/log/consistency", r, reply, |said| said["proof"] = json!([])), ..HONEST },
        Rogue { name: "shows everybody that a receipt is in its log", meant: "witnessed-receipts",
            answered: |_, r, reply| if r.path.starts_with("/oap/memory/witnessed/") && reply.status == 404 { let_in() } else { reply }, ..HONEST },
        Rogue { name: "shows another receipt in its log", meant: "witnessed-receipts",
            answered: |_, r, reply| at("/oap/memory/witnessed/", r, reply, |shown| shown["siblings"][0] = json!(Hash::of(b"another"))), ..HONEST },
        Rogue { name: "takes an acknowledgement of what it never gave", meant: "acknowledgements",
            answered: |_, r, reply| {
                let first = body(r)["type"] == "countersignature";
                at("/oap/peer/letter", r, reply, |said| if first && said["reason"] == "unknown" { taken(said) })
            }, ..HONEST },
        Rogue { name: "takes an acknowledgement out of its turn", meant: "acknowledgements",
            answered: |_, r, reply| at("/oap/peer/letter", r, reply, |said| if said["reason"] == "not_next" { taken(said) }), ..HONEST },
        Rogue { name: "takes an acknowledgement under a revoked grant", meant: "acknowledgements",
            answered: |_, r, reply| at("/oap/peer/letter", r, reply, |said| if said["reason"] == "over" { taken(said) }), ..HONEST },
        Rogue { name: "forgets what was acknowledged", meant: "acknowledgements",
            answered: |_, r, reply| at("/oap/audit", r, reply, |log| for receipt in log["receipts"].as_array_mut().into_iter().flatten() {
                if let Some(signatures) = receipt["signatures"].as_array_mut() { signatures.truncate(1) }
            }), ..HONEST },
        Rogue { name: "has anybody for a device", meant: "device-letters",
            answered: |_, r, reply| {
                let pairs = body(r)["type"] == "device_pairing";
                at("/oap/peer/letter", r, reply, |said| if pairs { taken(said) })
            }, ..HONEST },
        Rogue { name: "tells who wanted to be a device before", meant: "device-letters",
            answered: |m, r, reply| {
                let sender = body(r)["from"].clone();
                let pairs = |b: &Request| body(b)["type"] == "device_pairing" && body(b)["from"] == sender;
                let again = pairs(r) && m.before(pairs).is_some();
                at("/oap/peer/letter", r, reply, |said| if again { said["word"] = json!("you again") })
            }, ..HONEST },
        Rogue { name: "tells every grantee what changed", meant: "device-changes",
            answered: |_, r, reply| if r.path.starts_with("/oap/memory/changes") && reply.status == 403 { let_in() } else { reply }, ..HONEST },
    ]
}

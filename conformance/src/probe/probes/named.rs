//! What receipts say: of the grant and of those above it, of what was refused, and before everybody.

use super::super::context::{Context, INVOKE, Session, expect, seal};
use super::super::refusals::{child, signed};
use super::super::{Failed, Probe, Severity};
use super::{note, owned, probe, public};
use oap_identity::{Hash, Timestamp};
use oap_memory::receipt;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned(
            "receipts-name-grants",
            &["RC-1", "ME-12", "DE-01", "CO-14", "CO-26"],
            Major,
            probe!(receipts_name_grants),
        ),
        public("public-log", &["RC-2", "SP-07", "CO-10"], Critical, probe!(public_log)),
    ]
}

fn hash(document: &Value) -> Result<Value, Failed> {
    Hash::of_canonical(document).map(|hash| json!(hash)).map_err(|e| Failed::Skipped(e.to_string()))
}

/// The receipts that name a grantee: all of them of its grant, as that says it; one at least of each action with its outcome.
async fn named(
    context: &Context<'_>,
    session: &Session,
    above: &[Value],
    done: &[(&str, &str)],
) -> Result<(), Failed> {
    let reply = context.get_as(session, "/oap/audit").await?;
    let (log, grant) = (reply.json(), &session.grant);
    let receipts = log["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let scope = grant["granter"].as_str().and_then(|granter| granter.split('#').nth(1));
    let above: Vec<Value> = above.iter().map(hash).collect::<Result<_, _>>()?;
    let must = [
        ("consumed_grant_id", grant["grant_id"].clone()),
        ("grant_hash", hash(grant)?),
        ("delegation", if above.is_empty() { Value::Null } else { json!(above) }),
        ("scope_id", json!(scope)),
        ("trust_level", grant["trust_level"].clone()),
        ("profile", grant["redaction_profile"].clone()),
        ("lawful_basis", json!(grant["lawful_basis"].as_str().unwrap_or("consent"))),
    ];
    let mut decisions = BTreeSet::new();
    for receipt in receipts {
        let (action, decision) = (&receipt["action_id"], &receipt["policy_decisions"][0]);
        for (member, must) in &must {
            // What is refused may end before all of it is known.
            let is_left_out = decision["outcome"] == "block" && decision[*member].is_null();
            let is_needed = ["consumed_grant_id", "grant_hash", "delegation"].contains(member);
            expect(decision[*member] == *must || (is_left_out && !is_needed), || {
                format!("a receipt of {action}: {member} is {}, must be {must}", decision[*member])
            })?;
        }
        let is_named = |rule: &Value| rule.as_str().is_some_and(|rule| !rule.is_empty());
        let rules = decision["rules"].as_array();
        expect(rules.is_some_and(|rules| !rules.is_empty() && rules.iter().all(is_named)), || {
            format!("a receipt of {action} has the rules {}, must name one at least", decision["rules"])
        })?;
        let id = &decision["id"];
        expect(is_named(id) && decisions.insert(id.to_string()), || {
            format!("a receipt of {action}: the decision's id is {id}, must be its own")
        })?;
    }
    for (action, outcome) in done {
        let is_there = receipts.iter().any(|receipt| {
            receipt["action_id"] == *action && receipt["policy_decisions"][0]["outcome"] == *outcome
        });
        expect(is_there, || format!("a grantee's log has no receipt of {action} ({outcome}) that was"))?;
    }
    Ok(())
}

/// Every receipt under a grant names it, its hash, and the grants above it, first one first; those of what was refused, too (protocol 5.2, 6, 8).
async fn receipts_name_grants(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    context.capture(&[note("a note", &[&label])]).await?;
    let refused = async |session: &Session, query: Value, status: u16| {
        let got = context.query(session, &query).await?.status;
        expect(got == status, || {
            format!("a query that must be refused, {query}: status {got}, must be {status}")
        })
    };
    let delegator = context.stranger();
    let mut draft = context.draft(&delegator, &label, 2);
    (draft["operations"], draft["delegable"]) = (json!(["query", "export"]), json!({"max_depth": 1}));
    (draft["purpose_codes"], draft["lawful_basis"]) = (json!(["support"]), json!("contract"));
    let first = context.session(delegator, draft).await?;
    context.answer(&first, &json!({"purpose": "support"})).await?;
    refused(&first, json!({"purpose": "marketing"}), 403).await?;
    let export = context.export(&first).await?;
    expect(export.status == 200, || format!("an export that the grant permits: status {}", export.status))?;
    let asked = [("memory.exchange", "allow"), ("memory.query", "allow"), ("memory.query", "block")];
    named(context, &first, &[], &[&asked[..], &[("memory.export", "allow")]].concat()).await?;

    let grantee = context.stranger();
    let mut made = child(context, &first.grant, &grantee)?;
    (made["operations"], made["budget"]) = (json!(["query"]), json!({"queries": 1}));
    signed(&mut made, &first.grantee)?;
    let above = [first.grant.clone()];
    let (second, _) = context.session_below(grantee, made, &above).await?;
    context.answer(&second, &json!({})).await?;
    for (what, query, status) in [
        ("a purpose that is not named", json!({"purpose": "marketing"}), 403),
        ("embeddings", json!({"include_embeddings": true}), 403),
        ("beyond a budget", json!({}), 429),
    ] {
        let blocked = async || {
            let log = context.get_as(&second, "/oap/audit?limit=1000").await?.json();
            let receipts = log["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_block = |receipt: &&Value| receipt["policy_decisions"][0]["outcome"] == "block";
            Ok::<usize, Failed>(receipts.iter().filter(is_block).count())
        };
        let before = blocked().await?;
        refused(&second, query, status).await?;
        let after = blocked().await?;
        expect(after == before + 1, || {
            format!("a query that was refused ({what}) leaves {} receipts, must leave one", after - before)
        })?;
    }
    let export = context.export(&second).await?.status;
    expect(export == 403, || format!("an export under a grant for queries: status {export}"))?;
    named(context, &second, &above, &[&asked[..], &[("memory.export", "block")]].concat()).await
}

/// Anybody may ask what a gateway is, leaves a receipt that anybody sees, and is not named in it by a DID that they only say (protocol 8, 12).
async fn public_log(context: &Context<'_>) -> Result<(), Failed> {
    let words = [context.word(), context.word(), context.word(), context.word()];
    let [principal, another, agent, nobody] = words.each_ref().map(|word| format!("did:plc:{word}"));
    let described = async |principal: &str| {
        let mut envelope = context.envelope(&context.stranger(), "memory.describe", &json!({}))?;
        (envelope["principal_did"], envelope["agent_did"]) = (json!(principal), json!(agent));
        // Nobody finds that key, so that whoever has it is nobody.
        envelope["signature"] = json!({"alg": "EdDSA", "kid": format!("{agent}#key-1"), "value": "AA"});
        let reply = context.post(INVOKE, &[], &envelope).await?;
        expect(reply.status == 200, || {
            format!(
                "memory.describe, signed by a key that nobody finds: status {}, must be 200",
                reply.status
            )
        })?;
        Ok::<Value, Failed>(reply.json())
    };
    let answers = [described(&principal).await?, described(&principal).await?];
    described(&another).await?;
    let log = context.get(&format!("/oap/audit?principal_did={principal}")).await?;
    let receipts = log["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |receipts: &[Value], answers: &[Value]| {
        let ids = |all: &[Value]| all.iter().map(|one| one["receipt_id"].clone()).collect::<Vec<Value>>();
        ids(receipts) == ids(answers)
    };
    expect(has(receipts, &answers), || {
        "the public log, asked for a principal, has not the receipts of its two memory.describe, oldest first"
            .to_owned()
    })?;
    let document = context.document().await?;
    for (made, answer) in receipts.iter().zip(&answers) {
        receipt::verify(made, &document)
            .map_err(|e| Failed::Wrong(format!("a receipt of the public log: {e}")))?;
        expect(
            made["action_id"] == "memory.describe" && made["output_hash"] == hash(&answer["output"])?,
            || format!("the receipt of memory.describe does not have the hash of what was answered: {made}"),
        )?;
    }
    // A limit counts what was asked for.
    let last = context.get(&format!("/oap/audit?principal_did={principal}&limit=1")).await?;
    let newest = last["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
    expect(has(newest, &answers[1..]), || {
        "the public log, asked for the last receipt of a principal, does not have that alone".to_owned()
    })?;
    // From a time on, that time included.
    let at = |millis: i64| {
        let last: Option<Timestamp> = receipts.last().and_then(|r| r["timestamp"].as_str()?.parse().ok());
        last.map(|last| Timestamp::from_millis(last.millis() + millis)).unwrap_or(context.now())
    };
    for (since, must) in [(at(0), &answers[1..]), (at(1), &[][..])] {
        let log = context.get(&format!("/oap/audit?principal_did={principal}&since={since}")).await?;
        let listed = log["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
        // Both may be of one moment.
        let both = !must.is_empty() && has(listed, &answers);
        expect(has(listed, must) || both, || {
            format!("the public log from {since} on has {} receipts of a principal", listed.len())
        })?;
    }
    // Whoever signs with a key of their own is not whom they name.
    let (signer, named) = (context.stranger(), context.stranger());
    let mut envelope = context.envelope(&signer, "memory.describe", &json!({}))?;
    envelope["agent_did"] = json!(named.did());
    seal(&mut envelope, &signer, &signer)?;
    let status = context.post(INVOKE, &[], &envelope).await?.status;
    expect([200, 401].contains(&status), || {
        format!("memory.describe, signed by another than it names: status {status}, must be 200 or 401")
    })?;
    let all = context.get("/oap/audit").await?;
    let told = all.to_string();
    expect(!told.contains(named.did().as_str()), || {
        "the public log names an agent for whom another one signed".to_owned()
    })?;
    expect(words.iter().all(|word| !told.contains(word)), || {
        "the public log names a DID that was asserted and not proved".to_owned()
    })?;
    let others = context.get(&format!("/oap/audit?principal_did={nobody}")).await?;
    expect(others["receipts"] == json!([]), || {
        format!("the public log, asked for a principal that nobody claimed: {}", others["receipts"])
    })
}

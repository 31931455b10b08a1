//! Confidentiality as negative knowledge (RFC 0010 A.9), on the epistemic model: everything that a grantee receives is
//! decoded into propositions, and its accessibility relation on the confidential ones must be what it was before.

use super::super::context::{Context, expect};
use super::super::wire::Reply;
use super::super::{Failed, Probe, Severity};
use super::{items, note, owned, probe};
use crate::epistemic::{Formula, Model, Partition, decode};
use crate::world::{GENERAL, whole_name};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Probe> {
    use Severity::Critical;
    vec![
        owned("memory-exchange-confidentiality", &["ME-14"], Critical, probe!(negative_knowledge)),
        owned("paired-worlds", &["ME-13", "ME-14"], Critical, probe!(paired_worlds)),
    ]
}

const GRANTEE: &str = "grantee";

/// Two worlds, told apart by one confidential proposition; what was received refines what the grantee sees.
fn knows(received: &[String], confidential: &str) -> bool {
    let model =
        Model::new(2).agent(GRANTEE, Partition::blind(2)).proposition(confidential, vec![true, false]);
    let disclosed: Vec<&str> = received.iter().map(String::as_str).filter(|p| *p == confidential).collect();
    let after = model.discriminate(GRANTEE, &disclosed);
    after.is_true(&Formula::holds(confidential).known_by(GRANTEE), 0)
}

async fn negative_knowledge(context: &Context<'_>) -> Result<(), Failed> {
    let (label, secret) = (context.word(), context.word());
    let subject = format!("urn:entity:{}", context.word());
    let mut item = note("a note about somebody", &[&label]);
    item["subject_entity_id"] = json!(subject);
    item["content"]["structured"] = json!({"diagnosis": secret, "since": {"year": 2024}});
    let confidential = decode::propositions(&item);
    context.capture(&[item]).await?;
    // Grants that try: every level below the whole, wide filters, other profiles.
    let mut known = GENERAL.into_iter().map(whole_name).filter(|name| context.declared().has_profile(name));
    let first = known.next().unwrap_or_else(|| context.profile());
    let levels = (0..=3u8).map(|level| (level, first.clone())).chain(known.next().map(|other| (3, other)));
    for (level, profile) in levels {
        let grantee = context.stranger();
        let mut draft = context.draft(&grantee, &label, level);
        draft["redaction_profile"] = json!(profile);
        let session = context.session(grantee, draft).await?;
        let mut received = Vec::new();
        let mut everything = Vec::new();
        for query in [
            json!({"query": ""}),
            json!({"query": secret}),
            json!({"query": "diagnosis year 2024"}),
            json!({"query": "", "min_confidence": 1.0}),
            json!({"query": "", "integrity": "chain"}),
            json!({"query": "", "include_embeddings": true}),
            json!({"query": "", "cursor": secret}),
        ] {
            let reply = context.query(&session, &query).await?;
            let answer = reply.json();
            // What is not told is told apart from what is refused.
            let lists = query == json!({"query": ""});
            expect(!lists || items(&answer).len() == 1, || {
                format!("at level {level} of {profile} the item is not there: status {}", reply.status)
            })?;
            for item in answer["items"].as_array().into_iter().flatten() {
                // Told by its subject or not, a proposition is the same.
                let mut told = item.clone();
                told["subject_entity_id"] = json!(subject);
                received.extend(decode::propositions(&told));
            }
            everything.extend(reply.bytes);
        }
        everything.extend(context.get_as(&session, "/oap/audit").await?.bytes);
        for proposition in &confidential {
            expect(!knows(&received, proposition), || {
                format!("at level {level} of {profile} the grantee knows that {proposition}")
            })?;
        }
        let asked = String::from_utf8_lossy(&everything).matches(secret.as_str()).count();
        expect(asked == 0, || format!("at level {level} of {profile} the confidential value comes back"))?;
    }
    Ok(())
}

/// Two fillings that differ only in the confidential proposition look alike: the same statuses, sizes and structure.
async fn paired_worlds(context: &Context<'_>) -> Result<(), Failed> {
    let mut seen: Vec<Vec<(u16, usize, Value)>> = Vec::new();
    for value in ["yes", "no, and never was, as far as anybody can tell"] {
        let label = context.word();
        let mut item = note("a note about somebody", &[&label]);
        item["content"]["structured"] = json!({"diagnosis": value});
        item["provenance"] = json!({"captured_at": "2026-01-01T00:00:00Z"});
        context.capture(&[item]).await?;
        let session = context.granted(&label, 2).await?;
        let mut replies = Vec::new();
        for query in [
            json!({"query": ""}),
            json!({"query": "note"}),
            json!({"query": "yes"}),
            json!({"query": "never"}),
        ] {
            let reply = context.query(&session, &query).await?;
            let found = items(&reply.json()).len();
            expect(reply.status == 200 && (found == 1 || query["query"] != ""), || {
                format!("asked {query}: status {}, {found} items", reply.status)
            })?;
            replies.push(shape(&reply));
        }
        seen.push(replies);
    }
    expect(seen[0] == seen[1], || {
        "two fillings that differ in a hidden value alone are told apart".to_owned()
    })
}

/// A reply without its values: what it has, and how long each text is.
fn shape(reply: &Reply) -> (u16, usize, Value) {
    fn lengths(value: &Value) -> Value {
        match value {
            Value::String(text) => json!(text.len()),
            Value::Array(values) => Value::Array(values.iter().map(lengths).collect()),
            Value::Object(members) => members.iter().map(|(name, v)| (name.clone(), lengths(v))).collect(),
            Value::Number(_) => json!("number"),
            other => other.clone(),
        }
    }
    (reply.status, reply.bytes.len(), lengths(&reply.json()))
}

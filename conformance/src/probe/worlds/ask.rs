//! Every query of every grantee, with what must come back.

use super::super::Failed;
use super::super::wire::Reply;
use super::Finding;
use super::fill::Lived;
use crate::model::{Difference, ExpectedAnswer};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Pages that are walked after the first.
const PAGES: usize = 4;
/// Clocks that differ by more are wrong (protocol section 1).
const SKEW: Duration = Duration::from_secs(300);
/// Clocks that differ by less are taken for one, in milliseconds: so long an answer may be on its way.
const APART: i64 = 1_000;
/// So near to the end of an item it cannot be said from outside which side of it an answer was made.
const NEAR: Duration = Duration::from_secs(2);

/// Asks everything, the grantees in turns.
///
/// # Errors
/// When the run is over; nothing that the gateway answers is one.
pub(in super::super) async fn ask_all(
    lived: &mut Lived<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let rounds = lived.world.grants.iter().map(|grant| grant.queries.len()).max().unwrap_or(0);
    for round in 0..rounds {
        for grant in 0..lived.world.grants.len() {
            let query = lived.world.grants.get(grant).and_then(|g| g.queries.get(round)).cloned();
            if let Some(query) = query {
                walk(lived, grant, query, findings).await?;
            }
        }
    }
    Ok(())
}

/// A query and the pages behind it.
async fn walk(
    lived: &mut Lived<'_>,
    grant: usize,
    mut query: Value,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    for _ in 0..=PAGES {
        let answer = ask(lived, grant, &query, findings).await?;
        let cursor = answer.as_ref().and_then(|answer| answer["next_cursor"].as_str().map(str::to_owned));
        let Some(cursor) = cursor else { break };
        query["cursor"] = json!(cursor);
    }
    Ok(())
}

/// One query; its answer, where it is one.
pub(in super::super) async fn ask(
    lived: &mut Lived<'_>,
    grant: usize,
    query: &Value,
    findings: &mut Vec<Finding>,
) -> Result<Option<Value>, Failed> {
    let (mut differences, mut answer) = once(lived, grant, query).await?;
    // Whether it is refused does not hang on an item.
    let of_items = differences.iter().all(|difference| difference.at != "/status");
    if !differences.is_empty() && of_items && near_an_end(lived) {
        lived.context.wait(NEAR).await?;
        (differences, answer) = once(lived, grant, query).await?;
    }
    let live = lived.grants.get(&grant).map_or(&Value::Null, |live| &live.session.grant);
    let of = format!("grant {grant} (level {} of {})", live["trust_level"], live["redaction_profile"]);
    findings.extend(differences.into_iter().map(|difference| Finding {
        seed: lived.world.seed,
        grant: of.clone(),
        query: query.clone(),
        difference,
    }));
    Ok(answer)
}

/// Whether an item of the world ends about now.
fn near_an_end(lived: &Lived<'_>) -> bool {
    let now = lived.context.now();
    let (from, to) = (Timestamp::from_millis(now.millis() - NEAR.as_millis() as i64), now.plus(NEAR));
    lived.model.ends().any(|end| (from..=to).contains(&end))
}

async fn once(
    lived: &mut Lived<'_>,
    grant: usize,
    query: &Value,
) -> Result<(Vec<Difference>, Option<Value>), Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok((Vec::new(), None)) };
    let context = lived.context;
    let before = context.now();
    let (reply, whole) = match lived.by_envelope {
        true => context.query_by_envelope(&live.session, query).await?,
        false => {
            let reply = context.query(&live.session, query).await?;
            (reply.clone(), reply)
        }
    };
    let answer = reply.json();
    // The gateway's clock decides: what it says, where that can be.
    let stated = answer["receipt"]["timestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let near = |at: &Timestamp| at.plus(SKEW) >= before && context.now().plus(SKEW) >= *at;
    let at = stated.filter(near).unwrap_or(before);
    let ahead = at.millis() - before.millis();
    lived.ahead = if ahead.abs() < APART { 0 } else { ahead };
    let expected = lived.model.query(live.id(), query, at, &lived.disclosed);
    let mut differences = expected.differences(reply.status, &answer);
    let shown = expected.answer().filter(|_| reply.status == 200);
    leaks(lived, grant, &whole, shown, &mut differences);
    if reply.status != 200 {
        return Ok((differences, None));
    }
    lived.disclosed.answered(&lived.model, live.id(), query, &answer);
    Ok((differences, Some(answer)))
}

/// Canaries in a reply that its grantee may not see: all but those of what the items in it show, and of the own grant.
pub(super) fn leaks(
    lived: &Lived<'_>,
    grant: usize,
    reply: &Reply,
    expected: Option<&ExpectedAnswer>,
    differences: &mut Vec<Difference>,
) {
    let shown = expected.map(|expected| {
        let known = lived.grants.get(&grant).map_or("", |live| &live.known);
        expected.may_hold() + known
    });
    leaks_beyond(lived, reply, shown.as_deref().unwrap_or_default(), differences);
}

/// Canaries in a reply that are not in this text.
pub(super) fn leaks_beyond(lived: &Lived<'_>, reply: &Reply, shown: &str, differences: &mut Vec<Difference>) {
    let words = lived.canaries.find(shown.as_bytes()).into_iter();
    let allowed: BTreeSet<String> = words.map(|found| found.word).collect();
    let headers: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    for (place, bytes) in [("the body", reply.bytes.as_slice()), ("a header", headers.as_bytes())] {
        for found in lived.canaries.find(bytes) {
            if !allowed.contains(&found.word) {
                let why = format!("holds {:?} of {}, written {}", found.word, found.planted, found.written);
                differences.push(Difference { at: place.to_owned(), why });
            }
        }
    }
}

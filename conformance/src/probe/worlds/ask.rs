//! Every query of every grantee, with what must come back.

use super::super::context::mcp;
use super::super::wire::Reply;
use super::super::{Failed, judged};
use super::Finding;
use super::fill::{Lived, Through};
use crate::model::rule::Refusal;
use crate::model::{Difference, Expected, ExpectedAnswer, Rule};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// Pages that are walked after the first.
const PAGES: usize = 4;
/// Clocks that differ by more are wrong (protocol section 1).
const SKEW: Duration = Duration::from_secs(300);
/// Clocks that differ by less are taken for one, in milliseconds: so long an answer may be on its way.
const APART: i64 = 1_000;

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
    let (differences, answer) = once(lived, grant, query).await?;
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

async fn once(
    lived: &mut Lived<'_>,
    grant: usize,
    query: &Value,
) -> Result<(Vec<Difference>, Option<Value>), Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok((Vec::new(), None)) };
    let context = lived.context;
    let before = context.now();
    let (reply, whole) = match lived.through {
        Through::Query => (context.query(&live.session, query).await?, None),
        Through::Action => {
            let (reply, envelope) = context.query_by_envelope(&live.session, query).await?;
            (reply, Some(envelope))
        }
        Through::Mcp => {
            let whole = context.query_by_mcp(&live.session, query).await?;
            (mcp::said(&whole), Some(whole))
        }
    };
    let answer = reply.json();
    // The gateway's clock decides: what it says, where that can be.
    let stated = answer["receipt"]["timestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let near = |at: &Timestamp| at.plus(SKEW) >= before && context.now().plus(SKEW) >= *at;
    let at = stated.filter(near).unwrap_or(before);
    let ahead = at.millis() - before.millis();
    lived.ahead = if ahead.abs() < APART { 0 } else { ahead };
    let mut expected = lived.model.query(live.id(), query, at, &lived.disclosed);
    judged::note();
    let mut differences = expected.differences(reply.status, &answer);
    // A cursor is judged after the budgets.
    let is_open = matches!(
        expected,
        Expected::Answer(_)
            | Expected::Refused {
                rule: Rule::Refusal(Refusal::CursorForeign | Refusal::CursorOtherQuery),
                ..
            }
    );
    if is_open && is_spent(reply.status, &answer) && lived.disclosed.account_spent(&lived.model, live.id()) {
        differences.clear();
    }
    // Whether it is refused does not hang on an item.
    if !differences.is_empty() && differences.iter().all(|difference| difference.at != "/status") {
        // An item may have ended while it was asked: what was said is from before that, or from after it.
        let took = context.now().millis() - before.millis();
        let (from, to) = (at.millis() - took, at.millis() + took);
        // What is only thought of decides nothing.
        let model = lived.model.clone();
        let ends = model.ends().filter(|end| (from..=to).contains(&end.millis()));
        for moment in std::iter::once(Timestamp::from_millis(from)).chain(ends) {
            let other = model.query(live.id(), query, moment, &lived.disclosed);
            let others = other.differences(reply.status, &answer);
            if others.is_empty() {
                (expected, differences) = (other, others);
                break;
            }
        }
    }
    let shown = expected.answer().filter(|_| reply.status == 200);
    leaks(lived, grant, whole.as_ref().unwrap_or(&reply), shown, &mut differences);
    let of_tool = whole.as_ref().filter(|_| lived.through == Through::Mcp);
    differences.extend(of_tool.and_then(|whole| retold(whole, &answer)));
    if reply.status != 200 {
        return Ok((differences, None));
    }
    lived.disclosed.answered(&lived.model, live.id(), query, &answer);
    Ok((differences, Some(answer)))
}

/// Whether a budget refused an answer.
pub(super) fn is_spent(status: u16, body: &Value) -> bool {
    status == 429 && body["error"] == "budget_exhausted"
}

/// Where the text of an answer of a tool has not the items that it has for programs.
fn retold(whole: &Reply, answer: &Value) -> Option<Difference> {
    let items = answer["items"].as_array().into_iter().flatten();
    let ids: Vec<&str> = items.filter_map(|item| item["item_id"].as_str()).collect();
    let told = mcp::told(whole);
    let why = || format!("has the items {told:?}, must have {ids:?}");
    (told != ids).then(|| Difference { at: "/result/content/0/text".to_owned(), why: why() })
}

/// What is explained of one item is what it is in an answer, and nothing of one that a grant does not show.
pub(in super::super) async fn explain(
    lived: &mut Lived<'_>,
    grant: usize,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let everything = json!({"max_results": 100});
    let Some(answer) = ask(lived, grant, &everything, findings).await? else { return Ok(()) };
    let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_shown = |id: &&String| items.iter().any(|item| item["item_id"] == ***id);
    let hidden = lived.ids.values().find(|id| !is_shown(id)).cloned();
    let shown = items.first().and_then(|item| item["item_id"].as_str()).map(str::to_owned);
    for id in [shown, hidden].into_iter().flatten() {
        let Some(live) = lived.grants.get(&grant) else { return Ok(()) };
        // A budget may be spent by now.
        let expected = lived.model.clone().query(live.id(), &everything, lived.now(), &lived.disclosed);
        let Some(shown) = expected.answer() else { return Ok(()) };
        let whole = lived.context.call(&live.session, "memory_explain", &json!({"item_id": id})).await?;
        let reply = mcp::said(&whole);
        let said = reply.json();
        if is_spent(reply.status, &said) && lived.disclosed.account_spent(&lived.model, live.id()) {
            return Ok(());
        }
        let must: Vec<&Value> = items.iter().filter(|item| item["item_id"] == *id).collect();
        let is_so = said["items"].as_array().is_some_and(|found| found.iter().collect::<Vec<_>>() == must);
        let mut differences = Vec::new();
        if !is_so {
            let why = format!("explains {id} by {}, must by {must:?}", said["items"]);
            differences.push(Difference { at: "/items".to_owned(), why });
        }
        leaks(lived, grant, &whole, Some(shown), &mut differences);
        lived.disclosed.answered(&lived.model, live.id(), &json!({"max_results": 1}), &said);
        findings.extend(differences.into_iter().map(|difference| Finding {
            seed: lived.world.seed,
            grant: format!("grant {grant}"),
            query: json!("memory_explain"),
            difference,
        }));
    }
    Ok(())
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
    let headers: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    for (place, bytes) in [("the body", reply.bytes.as_slice()), ("a header", headers.as_bytes())] {
        let found = lived.canaries.find(bytes);
        if found.is_empty() {
            continue;
        }
        let allowed = lived.canaries.among(&found.iter().map(|found| found.word.as_str()).collect(), shown);
        for found in found.iter().filter(|found| !allowed.contains(&found.word)) {
            let why = format!("holds {:?} of {}, written {}", found.word, found.planted, found.written);
            differences.push(Difference { at: place.to_owned(), why });
        }
    }
}

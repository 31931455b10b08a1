//! What a world is asked beside queries: exports, the log, the passing of time, strangers.

use super::super::wire::Request;
use super::super::{Failed, judged};
use super::Finding;
use super::ask::{ask, is_spent, leaks, leaks_beyond};
use super::fill::Lived;
use crate::model::rule::Vectors;
use crate::model::{Difference, ExpectedExport, Reader, Rule};
use oap_identity::{Timestamp, json as strict};
use serde_json::{Value, json};
use std::time::Duration;

/// What everybody may ask.
const PUBLIC: [&str; 11] = [
    "/.well-known/oap-memory.json",
    "/.well-known/oap-tool.json",
    "/.well-known/oap-scopes.json",
    "/.well-known/did.json",
    "/.well-known/oap-key-handovers.json",
    "/.well-known/agent-card.json",
    "/oap/memory/status",
    "/oap/memory/query",
    "/oap/incident",
    "/oap/audit",
    "/oap/nowhere",
];

/// Every grantee's export and log.
///
/// # Errors
/// When the run is over.
pub(in super::super) async fn exports(
    lived: &mut Lived<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    for grant in 0..lived.world.grants.len() {
        export(lived, grant, findings).await?;
        audit(lived, grant, findings).await?;
        vectors(lived, grant, findings).await?;
    }
    Ok(())
}

/// An item that there is not.
const NO_ITEM: &str = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";

/// The vector of one item for each reason to give it, or not to.
///
/// # Errors
/// When the run is over.
pub(in super::super) async fn vectors(
    lived: &mut Lived<'_>,
    grant: usize,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok(()) };
    let ids: Vec<String> = lived.ids.values().cloned().chain([NO_ITEM.to_owned()]).collect();
    let (id, items, at) = (live.id().to_owned(), ids.iter().map(String::as_str), lived.now());
    let mut given = false;
    for (item, expected) in lived.model.vectors(&id, items, at, &lived.disclosed) {
        let Some(live) = lived.grants.get(&grant) else { return Ok(()) };
        let reply = lived.context.get_as(&live.session, &format!("/oap/memory/vec/{item}")).await?;
        judged::note();
        let mut differences = expected.differences(reply.status, &reply.bytes);
        // On a clock that goes on the item, or the grant, may have ended while it was asked.
        if !differences.is_empty() {
            let now = lived.model.vector(&id, item, lived.now(), &lived.disclosed);
            differences = now.differences(reply.status, &reply.bytes);
        }
        let is_open = matches!(expected.rule, Rule::Vectors(rule) if rule != Vectors::NoAccess);
        if is_open
            && is_spent(reply.status, &reply.json())
            && lived.disclosed.account_spent(&lived.model, &id)
        {
            differences.clear();
        }
        if reply.status == 200 {
            lived.disclosed.given(&lived.model, &id, item, &reply.bytes);
            given = true;
        }
        lived.model.vector_asked(&expected);
        leaks(lived, grant, &reply, None, &mut differences);
        told(lived, grant, &format!("the vector of {item}"), differences, findings);
    }
    // What was given has a receipt.
    if given {
        log(lived, grant, &json!({"limit": 1000}), findings).await?;
    }
    Ok(())
}

/// A grantee's log: all of it, and what each parameter leaves of it.
pub(super) async fn audit(
    lived: &Lived<'_>,
    grant: usize,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok(()) };
    let whole = log(lived, grant, &json!({}), findings).await?;
    let receipts = whole["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let middle = receipts.get(receipts.len() / 2);
    let since = middle.map(|receipt| receipt["timestamp"].clone()).filter(Value::is_string);
    let items = receipts.iter().flat_map(|r| r["provenance_tags_out"].as_array().into_iter().flatten());
    let item = items.filter_map(|tag| tag.as_str()?.split('@').next()).next();
    let questions = [
        Some(json!({"limit": 1})),
        Some(json!({"grant_id": live.id()})),
        Some(json!({"grantee": "did:web:somebody.example"})),
        since.map(|since| json!({"since": since})),
        item.map(|item| json!({"item_id": item})),
        item.map(|item| json!({"item_id": item, "limit": 1})),
        Some(json!({"grant_id": live.id(), "limit": 1})),
        lived
            .grants
            .values()
            .map(|other| other.id())
            .find(|id| *id != live.id())
            .map(|id| json!({"grant_id": id})),
    ];
    for asked in questions.into_iter().flatten() {
        log(lived, grant, &asked, findings).await?;
    }
    Ok(())
}

/// A question of a grantee's log; what came back.
async fn log(
    lived: &Lived<'_>,
    grant: usize,
    asked: &Value,
    findings: &mut Vec<Finding>,
) -> Result<Value, Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok(Value::Null) };
    let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parameters: Vec<String> = asked
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={}", written(value)))
        .collect();
    let path = format!("/oap/audit?{}", parameters.join("&"));
    let reply = lived.context.get_as(&live.session, path.trim_end_matches('?')).await?;
    let answer = reply.json();
    let mut differences = match lived.model.log_refused(live.id(), lived.now()) {
        Some(refused) => refused.differences(reply.status, &answer),
        // Whoever asks for another's log may be refused as well.
        None if asked["grantee"].is_string() && (400..500).contains(&reply.status) => Vec::new(),
        None if reply.status != 200 => {
            vec![Difference { at: "/status".to_owned(), why: format!("is {}, must be 200", reply.status) }]
        }
        None => {
            let reader = Reader::Grantee(live.session.grantee.did().as_str());
            lived.model.audit_where(reader, asked, &lived.disclosed).differences(&answer)
        }
    };
    // A receipt names the scope of its grant.
    leaks_beyond(lived, &reply, &live.known, &mut differences);
    told(lived, grant, &format!("the log, {asked}"), differences, findings);
    Ok(answer)
}

/// The owner's log: all of it, and what each parameter leaves of it; each is to have something.
///
/// # Errors
/// When the run is over, or the owner's side does not read the log.
pub(in super::super) async fn owner_reads(
    lived: &Lived<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let whole = json!({"limit": 1000});
    let receipts = owners(lived, &whole, findings).await?;
    let of_items = |receipt: &&Value| {
        let is_under_grant = receipt["policy_decisions"][0]["consumed_grant_id"].is_string();
        is_under_grant && receipt["provenance_tags_out"][0].is_string()
    };
    let Some(answered) = receipts.iter().find(of_items) else { return Ok(()) };
    let item = answered["provenance_tags_out"][0].as_str().and_then(|tag| tag.split('@').next());
    for asked in [
        json!({"limit": 3}),
        json!({"grantee": answered["agent_did"]}),
        json!({"grant_id": answered["policy_decisions"][0]["consumed_grant_id"]}),
        json!({"item_id": item}),
        json!({"since": answered["timestamp"]}),
    ] {
        owners(lived, &asked, findings).await?;
    }
    Ok(())
}

/// A question of the owner's; the receipts that came.
async fn owners(lived: &Lived<'_>, asked: &Value, findings: &mut Vec<Finding>) -> Result<Vec<Value>, Failed> {
    let log = lived.context.owner(json!({"do": "audit", "asked": asked})).await?;
    judged::note();
    let mut differences = lived.model.audit_where(Reader::Owner, asked, &lived.disclosed).differences(&log);
    let receipts = log["receipts"].as_array().cloned().unwrap_or_default();
    if receipts.is_empty() {
        let why = "is empty, and there is a receipt that was asked for".to_owned();
        differences.push(Difference { at: "/receipts".to_owned(), why });
    }
    findings.extend(differences.into_iter().map(|difference| Finding {
        seed: lived.world.seed,
        grant: "the owner".to_owned(),
        query: json!({"the log": asked}),
        difference,
    }));
    Ok(receipts)
}

fn told(
    lived: &Lived<'_>,
    grant: usize,
    what: &str,
    differences: Vec<Difference>,
    findings: &mut Vec<Finding>,
) {
    findings.extend(differences.into_iter().map(|difference| Finding {
        seed: lived.world.seed,
        grant: format!("grant {grant}"),
        query: json!(what),
        difference,
    }));
}

/// A grantee's export.
pub(in super::super) async fn export(
    lived: &mut Lived<'_>,
    grant: usize,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok(()) };
    let context = lived.context;
    let at = lived.now();
    let reply = context.export(&live.session).await?;
    let expected = lived.model.export(live.id(), at, &lived.disclosed);
    let lines = reply.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines: Vec<Value> = lines.map(|line| strict::parse(line).unwrap_or(Value::Null)).collect();
    judged::note();
    let mut differences = expected.differences(reply.status, &lines);
    let mut expected = expected;
    let is_open = matches!(expected, ExpectedExport::Bundle(_)) && is_spent(reply.status, &reply.json());
    if is_open && lived.disclosed.account_spent(&lived.model, live.id()) {
        differences.clear();
    }
    // On a clock that goes on something may have ended while it was asked.
    if !differences.is_empty() {
        let later = lived.model.export(live.id(), lived.now(), &lived.disclosed);
        let others = later.differences(reply.status, &lines);
        if others.is_empty() {
            (expected, differences) = (later, others);
        }
    }
    let shown = match &expected {
        ExpectedExport::Bundle(shown) if reply.status == 200 => Some(&**shown),
        _ => None,
    };
    leaks(lived, grant, &reply, shown, &mut differences);
    if reply.status == 200 {
        lived.disclosed.exported(&lived.model, live.id(), &lines);
    }
    told(lived, grant, "an export", differences, findings);
    Ok(())
}

/// What anybody can ask shows nothing of any item.
///
/// # Errors
/// When the run is over.
pub(in super::super) async fn strangers(
    lived: &Lived<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    for path in PUBLIC {
        let request = Request { method: "GET", path: path.to_owned(), ..Request::default() };
        let reply = lived.context.send(request).await?;
        let mut differences = match path {
            "/oap/audit" => lived.model.audit(Reader::Nobody).differences(&reply.json()),
            _ => Vec::new(),
        };
        leaks_beyond(lived, &reply, "", &mut differences);
        // Nor which scopes there are (protocol section 3).
        if String::from_utf8_lossy(&reply.bytes).contains(&lived.world.scope) {
            let why = format!("names the scope {:?}", lived.world.scope);
            differences.push(Difference { at: "the body".to_owned(), why });
        }
        findings.extend(differences.into_iter().map(|difference| Finding {
            seed: lived.world.seed,
            grant: "nobody's".to_owned(),
            query: json!(path),
            difference,
        }));
    }
    Ok(())
}

/// Lists what each grantee sees now, and again before, at and after each of these times.
///
/// # Errors
/// When the run is over, or time cannot pass.
pub(in super::super) async fn over_time(
    lived: &mut Lived<'_>,
    ends: &[Timestamp],
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    const STEP: Duration = Duration::from_millis(1);
    let query = json!({"query": "", "max_results": 100});
    list(lived, &query, findings).await?;
    for end in ends {
        let left = end.millis() - lived.context.now().millis() - 1;
        if let Ok(left @ 1..) = u64::try_from(left) {
            lived.context.wait(Duration::from_millis(left)).await?;
        }
        for _ in 0..3 {
            list(lived, &query, findings).await?;
            lived.context.wait(STEP).await?;
        }
    }
    Ok(())
}

async fn list(lived: &mut Lived<'_>, query: &Value, findings: &mut Vec<Finding>) -> Result<(), Failed> {
    for grant in 0..lived.world.grants.len() {
        ask(lived, grant, query, findings).await?;
    }
    Ok(())
}

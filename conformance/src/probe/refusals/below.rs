//! Children of grants that lack something, or have it otherwise than the one that most children are made from; and children of children
//! (protocol section 5.2). The model says of each whether it may be.

use super::children::{child, issued_with, signed};
use super::doors::of_way;
use super::made::{Way, model};
use crate::model::Model;
use crate::probe::Failed;
use crate::probe::context::{Context, expect};
use oap_identity::{Signer, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// What a draft, and what is made from it, become.
type Change = fn(&mut Value);
/// The same of a child's child, of which the first grant is known.
type Further = fn(&mut Value, &Value);

/// A grant and a child of it, and whether that is within it.
const OTHERWISE: &[(&str, Change, Change, bool)] = &[
    (
        "restricted items of all that are not",
        |d| filter(d, "sensitivities", None),
        |c| only(c, "sensitivities", &["restricted"]),
        false,
    ),
    (
        "restricted items too, of all that are not",
        |d| filter(d, "sensitivities", None),
        |c| only(c, "sensitivities", &["public", "restricted"]),
        false,
    ),
    (
        "all sensitivities that are not restricted, by name",
        |d| filter(d, "sensitivities", None),
        |c| only(c, "sensitivities", NOT_RESTRICTED),
        true,
    ),
    (
        "all that are not restricted, of those by name",
        |d| only(d, "sensitivities", NOT_RESTRICTED),
        |c| filter(c, "sensitivities", None),
        true,
    ),
    (
        "the granter's scope by name",
        |_| {},
        |c| {
            let scope =
                c["granter"].as_str().and_then(|g| g.split_once('#')).map(|(_, scope)| scope.to_owned());
            filter(c, "scopes", Some(json!([scope])));
        },
        true,
    ),
    (
        "another basis by default",
        |d| d["lawful_basis"] = json!("contract"),
        |c| without(c, "lawful_basis"),
        false,
    ),
    (
        "another operation by default",
        |d| d["operations"] = json!(["export"]),
        |c| without(c, "operations"),
        false,
    ),
    (
        "one operation of two",
        |d| d["operations"] = json!(["query", "export"]),
        |c| c["operations"] = json!(["export"]),
        true,
    ),
    (
        "a label that all need, of none at all",
        |d| only(d, "labels_all", &[]),
        |c| only(c, "labels_all", &["c"]),
        false,
    ),
    ("none at all, as above", |d| only(d, "labels_all", &[]), |_| {}, true),
    ("a kind, of no kinds", |d| only(d, "kinds", &[]), |c| only(c, "kinds", &["fact"]), false),
    ("a label, of no labels", |d| only(d, "labels_any", &[]), |c| only(c, "labels_any", &["a"]), false),
    (
        "one excluded, of none",
        |d| only(d, "exclude_labels", &[]),
        |c| only(c, "exclude_labels", &["x"]),
        true,
    ),
    (
        "the first of two that all need",
        |d| only(d, "labels_all", &["c", "e"]),
        |c| only(c, "labels_all", &["c"]),
        false,
    ),
    (
        "the second of two that all need",
        |d| only(d, "labels_all", &["c", "e"]),
        |c| only(c, "labels_all", &["e"]),
        false,
    ),
    (
        "two that all need, turned round",
        |d| only(d, "labels_all", &["c", "e"]),
        |c| only(c, "labels_all", &["e", "c"]),
        true,
    ),
    (
        "the first of two excluded",
        |d| only(d, "exclude_labels", &["x", "z"]),
        |c| only(c, "exclude_labels", &["x"]),
        false,
    ),
    (
        "the second of two excluded",
        |d| only(d, "exclude_labels", &["x", "z"]),
        |c| only(c, "exclude_labels", &["z"]),
        false,
    ),
    (
        "three excluded, of two",
        |d| only(d, "exclude_labels", &["x", "z"]),
        |c| only(c, "exclude_labels", &["y", "z", "x"]),
        true,
    ),
    (
        "purpose codes, of any",
        |d| without(d, "purpose_codes"),
        |c| c["purpose_codes"] = json!(["travel"]),
        true,
    ),
    ("a budget, of none", |d| without(d, "budget"), |c| c["budget"] = json!({"queries": 1}), true),
    ("no budget, of none", |d| without(d, "budget"), |_| {}, true),
    (
        "four below, of five",
        |d| d["delegable"] = json!({"max_depth": 5}),
        |c| c["delegable"] = json!({"max_depth": 4}),
        true,
    ),
    (
        "five below, of five",
        |d| d["delegable"] = json!({"max_depth": 5}),
        |c| c["delegable"] = json!({"max_depth": 5}),
        false,
    ),
];

/// What a child narrows, and what its own child has then: the first grant's is wider than the child's.
const FURTHER: &[(&str, Change, Further, bool)] = &[
    ("the same", |_| {}, |_, _| {}, true),
    (
        "a level as of the first grant",
        |c| c["trust_level"] = json!(1),
        |g, first| copy(g, first, "trust_level"),
        false,
    ),
    ("an end as of the first grant", sooner, |g, first| copy(g, first, "expires_at"), false),
    (
        "labels as of the first grant",
        |c| only(c, "labels_any", &["a"]),
        |g, first| copy(g, first, "filter"),
        false,
    ),
    (
        "a confidence as of the first grant",
        |c| filter(c, "min_confidence", Some(json!(0.75))),
        |g, first| copy(g, first, "filter"),
        false,
    ),
    (
        "codes as of the first grant",
        |c| c["purpose_codes"] = json!(["travel"]),
        |g, first| copy(g, first, "purpose_codes"),
        false,
    ),
    (
        "a budget as of the first grant",
        |c| c["budget"] = json!({"queries": 1, "epsilon": 1}),
        |g, first| copy(g, first, "budget"),
        false,
    ),
    ("a grant above that may not be passed on", |c| without(c, "delegable"), |_, _| {}, false),
];

const NOT_RESTRICTED: &[&str] = &["public", "internal", "confidential"];

fn filter(grant: &mut Value, name: &str, value: Option<Value>) {
    match value {
        Some(value) => grant["filter"][name] = value,
        None => without(&mut grant["filter"], name),
    }
}

fn only(grant: &mut Value, name: &str, values: &[&str]) {
    filter(grant, name, Some(json!(values)));
}

fn without(value: &mut Value, member: &str) {
    value.as_object_mut().map(|members| members.remove(member));
}

fn copy(grant: &mut Value, first: &Value, member: &str) {
    grant[member] = first[member].clone();
}

/// An hour sooner than it did.
fn sooner(grant: &mut Value) {
    let end: Option<Timestamp> = grant["expires_at"].as_str().and_then(|end| end.parse().ok());
    grant["expires_at"] = json!(end.map(|end| Timestamp::from_millis(end.millis() - 3_600_000)));
}

/// Hands a grant in, and holds what comes back against the model and against what the table says.
async fn judged(
    context: &Context<'_>,
    (way, what): (Way, &str),
    model: &Model,
    (grantee, made, above): (&Signer, &Value, &[Value]),
    holds: bool,
) -> Result<(), Failed> {
    if model.delegates(made, context.now()).is_ok() != holds {
        return Err(Failed::Skipped(format!("{what}: the model and the table differ")));
    }
    let reply = way.hand_in(context, grantee, made, above).await?;
    let must = if holds { 200 } else { 400 };
    expect(reply.status == must, || {
        format!("{way:?}: a grant made from another: {what}: status {}, must be {must}", reply.status)
    })
}

/// Children of grants of many kinds.
pub(super) async fn otherwise(context: &Context<'_>, way: Way) -> Result<(), Failed> {
    let mut model = model(&context.get("/.well-known/oap-memory.json").await?)?;
    for (what, of_parent, of_child, holds) in of_way(context, OTHERWISE, way == Way::Endpoint) {
        let (delegator, grantee) = (context.stranger(), context.stranger());
        let above = issued_with(context, &delegator, of_parent).await?;
        model.granted(&above);
        let mut made = child(context, &above, &grantee)?;
        of_child(&mut made);
        signed(&mut made, &delegator)?;
        judged(context, (way, what), &model, (&grantee, &made, std::slice::from_ref(&above)), holds).await?;
    }
    context.decided(&model);
    Ok(())
}

/// Children of children: within the grant above them, which is not the first one.
pub(super) async fn further(context: &Context<'_>, way: Way) -> Result<(), Failed> {
    let mut model = model(&context.get("/.well-known/oap-memory.json").await?)?;
    for (what, of_child, of_grandchild, holds) in FURTHER {
        let [delegator, next, last] = [context.stranger(), context.stranger(), context.stranger()];
        let first = issued_with(context, &delegator, |_| {}).await?;
        model.granted(&first);
        let mut between = child(context, &first, &next)?;
        of_child(&mut between);
        signed(&mut between, &delegator)?;
        model.granted(&between);
        let mut made = child(context, &between, &last)?;
        of_grandchild(&mut made, &first);
        signed(&mut made, &next)?;
        if *holds {
            // All above it, each once, the first one first.
            let (first, between) = (first.clone(), between.clone());
            for chain in [
                vec![between.clone()],
                vec![between.clone(), first.clone()],
                vec![first.clone()],
                vec![first, between.clone(), between],
            ] {
                let status = way.hand_in(context, &last, &made, &chain).await?.status;
                expect(status == 400, || {
                    format!(
                        "{way:?}: a grant made from a child, with other grants above it: status {status}, must be 400"
                    )
                })?;
            }
        }
        judged(context, (way, what), &model, (&last, &made, &[first, between]), *holds).await?;
    }
    context.decided(&model);
    Ok(())
}

/// A child that begins later than its parent is not in force before.
pub(super) async fn not_begun(context: &Context<'_>, way: Way) -> Result<(), Failed> {
    let (delegator, grantee) = (context.stranger(), context.stranger());
    let above = issued_with(context, &delegator, |_| {}).await?;
    let mut made = child(context, &above, &grantee)?;
    made["not_before"] = json!(context.now().plus(Duration::from_secs(3_600)));
    signed(&mut made, &delegator)?;
    let status = way.hand_in(context, &grantee, &made, std::slice::from_ref(&above)).await?.status;
    expect(status == 403, || {
        format!("{way:?}: a child before its time, of a grant in force: status {status}, must be 403")
    })
}

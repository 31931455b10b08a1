//! The conditions on a child, brought to the gateway at its exchange (protocol section 5.2).

use super::below;
use super::cases::Case;
use super::doors::of_way;
use super::forms;
use super::grants::{self, Limits, Violation, parent};
use super::jws::{lifted, part, resign};
use super::made::{Way, model};
use super::rules::{ChildRule, Condition};
use crate::model::Model;
use crate::model::rule::Granting;
use crate::probe::Failed;
use crate::probe::context::{Context, PURPOSE, expect};
use crate::probe::worlds::issued_below;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::signed::{UnverifiedSignature, sign_document};
use oap_identity::{GrantId, Hash, Signer, json as strict, random};
use serde_json::{Value, json};
use std::time::Duration;

/// A grant made of another: the same but for its grantee and its depth.
pub(in super::super) fn child(
    context: &Context<'_>,
    above: &Value,
    grantee: &Signer,
) -> Result<Value, Failed> {
    let mut child = above.clone();
    if let Some(members) = child.as_object_mut() {
        for member in ["signature", "status", "delegable"] {
            members.remove(member);
        }
    }
    let depth = above["delegable"]["max_depth"].as_u64().unwrap_or(0);
    if depth > 1 {
        child["delegable"] = json!({"max_depth": depth - 1});
    }
    child["grant_id"] = json!(GrantId::new(context.now(), context.random()));
    child["grantee"] = json!(grantee.did());
    child["issued_at"] = json!(issued_below(context, above));
    child["parent"] = json!(Hash::of_canonical(above).map_err(|e| Failed::Skipped(e.to_string()))?);
    Ok(child)
}

/// A grant that children are made from, or that none may be made from.
pub(super) async fn issued(
    context: &Context<'_>,
    grantee: &Signer,
    delegable: bool,
) -> Result<Value, Failed> {
    let barren = |draft: &mut Value| drop(draft.as_object_mut().map(|members| members.remove("delegable")));
    issued_with(context, grantee, |draft| {
        if !delegable {
            barren(draft)
        }
    })
    .await
}

/// The same, with a change to its draft.
pub(super) async fn issued_with(
    context: &Context<'_>,
    grantee: &Signer,
    change: impl Fn(&mut Value) + Send,
) -> Result<Value, Failed> {
    let mut draft = context.draft(grantee, "a", 2);
    parent(&mut draft);
    change(&mut draft);
    Ok(context.owner(json!({"do": "grant", "draft": draft})).await?["grant"].clone())
}

/// Every condition on a child, at its exchange.
pub(in super::super) async fn children(context: &Context<'_>) -> Result<(), Failed> {
    children_by(context, Way::Endpoint).await
}

pub(super) async fn children_by(context: &Context<'_>, way: Way) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let mut model = model(&manifest)?;
    let [above, alone, free] = [context.stranger(), context.stranger(), context.stranger()];
    let (delegable, barren) = (issued(context, &above, true).await?, issued(context, &alone, false).await?);
    let for_anything = issued_with(context, &free, |draft| {
        draft.as_object_mut().map(|members| members.remove("purpose_codes"));
    })
    .await?;
    for grant in [&delegable, &barren, &for_anything] {
        model.granted(grant);
    }
    for granting in of_way(context, Granting::ALL, way == Way::Endpoint) {
        let note = || context.note_at(&Condition::Granting(granting), way.door());
        match grants::violations(granting) {
            Violation::AtIssue(_) => {}
            Violation::OfChild(cases) | Violation::Both(_, cases) => {
                let above = match granting {
                    Granting::ChildNotDelegable => (&barren, &alone),
                    Granting::PurposeCodes => (&for_anything, &free),
                    _ => (&delegable, &above),
                };
                for case in cases {
                    let holds = case.holds;
                    brought(context, way, &model, above, granting, case).await?;
                    if !holds {
                        note();
                    }
                }
            }
            Violation::Forms => {
                misshapen(context, way).await?;
                note();
            }
        }
    }
    for rule in ChildRule::ALL.iter().copied() {
        match rule {
            ChildRule::Signature => forged(context, way, &above, &delegable).await?,
            ChildRule::Name => renamed(context, way, &above, &delegable).await?,
            // Sixty exchanges of one grant a minute are enough of a gateway whose clock goes by itself, and memory.grant is the same to it.
            ChildRule::Number if way == Way::Action || !context.asks_everywhere() => continue,
            ChildRule::Number => too_many(context, way).await?,
        }
        context.note_at(&Condition::Child(rule), way.door());
    }
    below::otherwise(context, way).await?;
    below::further(context, way).await?;
    below::not_begun(context, way).await?;
    context.decided(&model);
    Ok(())
}

/// A child of a grant, and the delegator who signs it, handed in.
async fn brought(
    context: &Context<'_>,
    way: Way,
    model: &Model,
    (grant, delegator): (&Value, &Signer),
    granting: Granting,
    Case { what, holds, change }: Case<grants::Change>,
) -> Result<(), Failed> {
    let grantee = context.stranger();
    let mut made = child(context, grant, &grantee)?;
    let begins = ["not_before", "issued_at"].into_iter().find_map(|name| grant[name].as_str()?.parse().ok());
    let begins = begins.ok_or_else(|| Failed::Wrong("a grant was signed that says no time".to_owned()))?;
    let apart = Duration::from_secs(if context.sets_clock() { 0 } else { 60 });
    change(&mut made, &Limits { begins, apart, max_items: 0, max_days: 0 });
    signed(&mut made, delegator)?;
    let _ = model.delegates(&made, context.now());
    let reply = way.hand_in(context, &grantee, &made, std::slice::from_ref(grant)).await?;
    let must = if holds { 200 } else { 400 };
    expect(reply.status == must, || {
        format!("{way:?}: a child: {granting}: {what}: status {}, must be {must}", reply.status)
    })
}

pub(in super::super) fn signed(grant: &mut Value, by: &Signer) -> Result<(), Failed> {
    sign_document(grant, by).map_err(|e| Failed::Skipped(e.to_string()))
}

/// Every member of a child, left out and with each of some values. The model says which of them may be.
async fn misshapen(context: &Context<'_>, way: Way) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let mut model = model(&manifest)?;
    let delegator = context.stranger();
    let above = issued(context, &delegator, true).await?;
    model.granted(&above);
    let all = forms::of(&child(context, &above, &context.stranger())?);
    // A gateway whose clock goes by itself is asked a few of them, by the seed.
    let every = if context.sets_clock() { 1 } else { all.len() / 12 };
    let begin = usize::from(random::bytes::<1>(context.random())[0]) % every.max(1);
    for form in all.iter().skip(begin).step_by(every.max(1)) {
        let grantee = context.stranger();
        let mut made = child(context, &above, &grantee)?;
        form.put_into(&mut made);
        signed(&mut made, &delegator)?;
        let may_be = model.delegates(&made, context.now()).is_ok();
        // Whether null is as good as nothing the protocol does not say.
        if may_be && form.is_null() {
            continue;
        }
        let reply = way.hand_in(context, &grantee, &made, std::slice::from_ref(&above)).await?;
        let must = if may_be { 200 } else { 400 };
        expect(reply.status == must, || {
            format!("{way:?}: a child {form}: status {}, must be {must}", reply.status)
        })?;
    }
    context.decided(&model);
    Ok(())
}

/// Most grants that may be made from one, at whatever depth (protocol section 5.2).
const MOST: usize = 100;
/// So many exchanges of one grant a gateway may be asked for in a minute.
const AT_A_TIME: usize = 25;

/// As many as may be made from one, half of them from the first of these, and then one more of either.
async fn too_many(context: &Context<'_>, way: Way) -> Result<(), Failed> {
    let (delegator, next) = (context.stranger(), context.stranger());
    let first = issued(context, &delegator, true).await?;
    let mut below = child(context, &first, &next)?;
    signed(&mut below, &delegator)?;
    let reply = way.hand_in(context, &next, &below, std::slice::from_ref(&first)).await?;
    expect(reply.status == 200, || format!("{way:?}: a child within its parent: status {}", reply.status))?;
    let chain = [first, below];
    for number in 1..MOST + 2 {
        if number % AT_A_TIME == 0 {
            context.advance(Duration::from_secs(60)).await?;
        }
        let (above, by) = if number % 2 == 0 { (&chain[..1], &delegator) } else { (&chain[..], &next) };
        let grantee = context.stranger();
        let mut made = child(context, &above[above.len() - 1], &grantee)?;
        signed(&mut made, by)?;
        let must = if number < MOST { 200 } else { 400 };
        // Whoever was taken in before is not one more.
        for must in if number + 1 == MOST { vec![must, must] } else { vec![must] } {
            let reply = way.hand_in(context, &grantee, &made, above).await?;
            expect(reply.status == must, || {
                format!(
                    "{way:?}: grant {} that was made from one: status {}, must be {must}",
                    number + 1,
                    reply.status
                )
            })?;
        }
    }
    Ok(())
}

/// A signature over a document, under any header.
fn seal_under(document: &mut Value, header: &Value, by: &Signer) -> Result<(), Failed> {
    document.as_object_mut().map(|members| members.remove("signature"));
    let bytes = strict::canonical(&document).map_err(|e| Failed::Skipped(e.to_string()))?;
    let header = part(header);
    let signature = by.sign(format!("{header}.{}", URL_SAFE_NO_PAD.encode(bytes)).as_bytes());
    document["signature"] = json!(format!("{header}..{signature}"));
    Ok(())
}

/// A child that is handed in under the id of another one of the same parent: the same content is that one, another is refused.
async fn renamed(context: &Context<'_>, way: Way, delegator: &Signer, above: &Value) -> Result<(), Failed> {
    let grantee = context.stranger();
    let mut made = child(context, above, &grantee)?;
    for (purpose, statuses) in [(PURPOSE, &[200][..]), (PURPOSE, &[200]), ("another", &[400, 409])] {
        made["purpose"] = json!(purpose);
        sign_document(&mut made, delegator).map_err(|e| Failed::Skipped(e.to_string()))?;
        let reply = way.hand_in(context, &grantee, &made, std::slice::from_ref(above)).await?;
        expect(statuses.contains(&reply.status), || {
            format!(
                "{way:?}: a child under the id of one that was taken in, purpose {purpose:?}: status {}, must be one of {statuses:?}",
                reply.status
            )
        })?;
    }
    Ok(())
}

/// A child that its delegator did not sign, or under a header that says something else.
async fn forged(context: &Context<'_>, way: Way, delegator: &Signer, above: &Value) -> Result<(), Failed> {
    let kid = delegator.kid().to_string();
    for (what, header, is_good) in [
        ("nothing wrong", json!({"alg": "EdDSA", "kid": kid}), true),
        ("alg none", json!({"alg": "none", "kid": kid}), false),
        ("alg ES256", json!({"alg": "ES256", "kid": kid}), false),
        ("no kid", json!({"alg": "EdDSA"}), false),
        (
            "the principal's kid",
            json!({"alg": "EdDSA", "kid": UnverifiedSignature::of(above).map(|s| s.kid().to_string()).unwrap_or_default()}),
            false,
        ),
        (
            "crit",
            json!({"alg": "EdDSA", "kid": kid, "crit": ["example.org/x"], "example.org/x": true}),
            false,
        ),
        ("b64", json!({"alg": "EdDSA", "kid": kid, "b64": false, "crit": ["b64"]}), false),
        ("jku", json!({"alg": "EdDSA", "kid": kid, "jku": "https://somebody.example/keys"}), false),
        ("x5u", json!({"alg": "EdDSA", "kid": kid, "x5u": "https://somebody.example/key"}), false),
        ("x5c", json!({"alg": "EdDSA", "kid": kid, "x5c": ["AAAA"]}), false),
    ] {
        let grantee = context.stranger();
        let mut made = child(context, above, &grantee)?;
        seal_under(&mut made, &header, delegator)?;
        let reply = way.hand_in(context, &grantee, &made, std::slice::from_ref(above)).await?;
        let statuses: &[u16] = if is_good { &[200] } else { &[400, 401] };
        expect(statuses.contains(&reply.status), || {
            format!(
                "{way:?}: a child whose signature's header is another, {what}: status {}, must be one of {statuses:?}",
                reply.status
            )
        })?;
    }
    for (what, is_its_own) in
        [("that its own grantee signed", true), ("whose signature has S + L for S", false)]
    {
        let grantee = context.stranger();
        let mut made = child(context, above, &grantee)?;
        signed(&mut made, if is_its_own { &grantee } else { delegator })?;
        if !is_its_own {
            resign(&mut made["signature"], lifted);
        }
        let reply = way.hand_in(context, &grantee, &made, std::slice::from_ref(above)).await?;
        expect([400, 401].contains(&reply.status), || {
            format!("{way:?}: a child {what}: status {}, must be 400 or 401", reply.status)
        })?;
    }
    Ok(())
}

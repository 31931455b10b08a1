//! The conditions on credentials, brought to every endpoint that takes one.

use super::cases::Case;
use super::doors::{Family, dealt};
use super::jws::{NEUTRAL, Seal};
use super::proofs::{Violation as OfProof, of_grant_proof, of_proof};
use super::rules::{BearerRule, Condition, Door, GrantProofRule, ProofRule, ShownAt, TokenRule};
use super::scene::{Ahead, Scene, bearer};
use super::tokens::{Given, Violation as OfToken, violations};
use crate::probe::Failed;
use crate::probe::context::{Context, expect};
use crate::probe::declared::Place;
use crate::probe::wire::Request;
use oap_identity::{Hash, Signer, Timestamp, random};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many conditions of each kind are brought to a door of what a gateway need not offer, in a run whose time costs some; and to how many of
/// the other doors each condition is.
const FEW: usize = 2;

/// How many conditions are brought to each door of a family at least.
fn least(family: Family, all: usize) -> usize {
    if family == Family::Exchange { (FEW * all).div_ceil(family.doors().len().max(1)) } else { FEW }
}

/// Every condition on tokens.
pub(in super::super) async fn tokens(context: &Context<'_>) -> Result<(), Failed> {
    of_tokens(context, Family::Exchange, false).await
}

/// The same of tokens that are bound to no key, and what is particular of them.
pub(in super::super) async fn bearer_tokens(context: &Context<'_>) -> Result<(), Failed> {
    of_tokens(context, Family::Exchange, true).await?;
    for rule in BearerRule::ALL.iter().copied() {
        let door = match rule {
            BearerRule::Issued => {
                let scene = Scene::set(context, true, false).await?;
                let token = super::jws::read(&scene.session.token, 1);
                expect(token["cnf"].is_null(), || format!("a token: {rule}: it has a cnf"))?;
                ShownAt::Exchange.as_str()
            }
            BearerRule::Log => {
                own_log(context).await?;
                Door::Log.as_str()
            }
        };
        context.note_at(&Condition::OfBearer(rule), door);
    }
    Ok(())
}

/// Two grants of one grantee, under each of which something was answered: of a bearer token the log has the receipts of its own.
async fn own_log(context: &Context<'_>) -> Result<(), Failed> {
    let key: [u8; 32] = random::bytes(context.random());
    let grantee = || Signer::did_key(&key).map_err(|e| Failed::Skipped(e.to_string()));
    let bound = context.session(grantee()?, context.draft(&grantee()?, "l0", 2)).await?;
    let session = bearer(context, grantee()?, context.draft(&grantee()?, "l1", 2)).await?;
    for session in [&bound, &session] {
        context.answer(session, &json!({})).await?;
    }
    let hash = Hash::of_canonical(&session.grant).map_err(|e| Failed::Skipped(e.to_string()))?;
    let log = context.get_as(&session, "/oap/audit").await?;
    let receipts = log.json()["receipts"].as_array().cloned().unwrap_or_default();
    let own = |receipt: &Value| {
        receipt.pointer("/policy_decisions/0/grant_hash").is_some_and(|named| *named == hash.to_string())
    };
    expect(!receipts.is_empty() && receipts.iter().all(own), || {
        format!("a bearer token: {}: the log has others, or none", BearerRule::Log)
    })
}

/// Every condition on DPoP proofs.
pub(in super::super) async fn proofs_of_possession(context: &Context<'_>) -> Result<(), Failed> {
    of_proofs(context, Family::Exchange).await
}

/// Tokens of both kinds and proofs with one thing wrong, at the doors of what a gateway need not offer.
async fn of_family(context: &Context<'_>, family: Family) -> Result<(), Failed> {
    family.offered(context).await?;
    of_tokens(context, family, false).await?;
    of_proofs(context, family).await?;
    // Where there are none, the probe of bearer tokens says so.
    match of_tokens(context, family, true).await {
        Err(Failed::NotDeclared(_)) => Ok(()),
        done => done,
    }
}

/// At the endpoints of subscriptions (protocol section 17).
pub(in super::super) async fn of_subscriptions(context: &Context<'_>) -> Result<(), Failed> {
    of_family(context, Family::Subscriptions).await
}

/// Where a receipt is shown in the log (protocol section 16.4).
pub(in super::super) async fn of_witnessed(context: &Context<'_>) -> Result<(), Failed> {
    of_family(context, Family::Witnessed).await
}

/// Where devices ask what changed (protocol section 18).
pub(in super::super) async fn of_devices(context: &Context<'_>) -> Result<(), Failed> {
    of_family(context, Family::Devices).await
}

/// At `/mcp` (protocol section 11).
pub(in super::super) async fn of_mcp(context: &Context<'_>) -> Result<(), Failed> {
    of_family(context, Family::Mcp).await
}

async fn of_tokens(context: &Context<'_>, family: Family, bearer: bool) -> Result<(), Failed> {
    let document = context.document().await?;
    let status = Request { method: "GET", path: context.at(Place::Status).to_owned(), ..Request::default() };
    let status = String::from_utf8_lossy(&context.send(status).await?.bytes).into_owned();
    let of: fn(TokenRule) -> Condition = if bearer { Condition::Bearer } else { Condition::Token };
    let doors = family.doors();
    let hands = dealt(context, TokenRule::ALL, doors.len(), least(family, TokenRule::ALL.len()));
    for (door, rules) in doors.into_iter().zip(hands) {
        let mut rules: Vec<TokenRule> =
            rules.into_iter().filter(|rule| door.applies(*rule, bearer)).collect();
        if rules.is_empty() {
            continue;
        }
        // Time passes with it.
        rules.sort_by_key(|rule| *rule == TokenRule::Lives);
        // A grantee of its own for each: what is asked too often is refused for another reason.
        let scene = Scene::set(context, bearer, family == Family::Subscriptions).await?;
        let own = scene.grant_proof(context, context.at(Place::Grant))?;
        let kid = super::jws::read(&scene.session.token, 0)["kid"].as_str().and_then(|kid| kid.parse().ok());
        let granter = kid.and_then(|kid| document.key(&kid)).map(|key| *key.public().as_bytes());
        let given = Given {
            token: &scene.session.token,
            granter: granter.unwrap_or_default(),
            grantee: &scene.session.grantee,
            stranger: &scene.stranger,
            bearer,
            others: vec![("the status list", status.clone()), ("the grantee's own proof", scene.made(&own))],
        };
        for rule in rules {
            let all = match violations(rule, &given) {
                OfToken::Shown(all) => all,
                OfToken::Ends => {
                    if ends(context, door, bearer).await? {
                        context.note_at(&of(rule), door.as_str());
                    }
                    continue;
                }
            };
            scene.control(context, door).await?;
            for shown in all {
                let first = shown.authorization.first().map(String::as_str).unwrap_or_default();
                let text = first.rsplit(' ').next().unwrap_or_default();
                let proofs = || match shown.proof {
                    true => vec![scene.made(&scene.proof(context, door, text))],
                    false => Vec::new(),
                };
                let reply = door.send(context, &scene, &shown.authorization, proofs).await?;
                expect(reply.status == 401, || {
                    format!("{door}, {}: {}: status {}, must be 401", of(rule), shown.what, reply.status)
                })?;
                context.note_at(&of(rule), door.as_str());
            }
        }
    }
    Ok(())
}

/// How often the end of a token is looked at where the clock goes on meanwhile.
const TRIES: usize = 5;
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A token just before its end, at it and just after it; whether that can be asked: it takes ten minutes where no clock can be set.
async fn ends(context: &Context<'_>, door: Door, bearer: bool) -> Result<bool, Failed> {
    if !context.sets_clock() {
        return Ok(false);
    }
    let said = |what: &str, status: u16, must: u16| {
        format!("{door}, token: {}: {what}: status {status}, must be {must}", TokenRule::Lives)
    };
    for _ in 0..TRIES {
        let scene = Scene::set(context, bearer, door.family() == Family::Subscriptions).await?;
        let end = super::jws::read(&scene.session.token, 1)["exp"].as_i64().unwrap_or_default();
        let (end, ahead) = (Timestamp::from_seconds(end), scene.ahead);
        let (near, what) = match ahead.is_exact(context) {
            true => (MILLISECOND, "a millisecond"),
            false => (SECOND, "a second"),
        };
        let near_millis = i64::try_from(near.as_millis()).unwrap_or_default();
        ahead.before(context, Timestamp::from_millis(end.millis() - near_millis)).await?;
        let (status, must) = (scene.asked(context, door).await?.status, door.let_in(&scene));
        // On a clock that goes on it may have ended while it was asked.
        if status != must && ahead.latest(context) >= end {
            continue;
        }
        expect(status == must, || said(&format!("{what} before its end"), status, must))?;
        for (when, at) in [("at its end".to_owned(), end), (format!("{what} after its end"), end.plus(near))]
        {
            ahead.after(context, at).await?;
            let status = scene.asked(context, door).await?.status;
            expect(status == 401, || said(&when, status, 401))?;
        }
        return Ok(true);
    }
    Ok(false)
}

async fn of_proofs(context: &Context<'_>, family: Family) -> Result<(), Failed> {
    let doors = family.doors();
    let hands = dealt(context, ProofRule::ALL, doors.len(), least(family, ProofRule::ALL.len()));
    for (door, rules) in doors.into_iter().zip(hands) {
        // A grantee of its own for each: what is asked too often is refused for another reason.
        let scene = Scene::set(context, false, family == Family::Subscriptions).await?;
        let authorization = [format!("DPoP {}", scene.session.token)];
        for rule in rules {
            let wrong = |what: &str, status: u16, must: u16| {
                format!("{door}, proof: {rule}: {what}: status {status}, must be {must}")
            };
            let let_in = door.let_in(&scene);
            let cases = match of_proof(rule) {
                OfProof::Cases(cases) => cases,
                OfProof::Twice => {
                    let last = Mutex::new(Vec::new());
                    let proofs = || {
                        let proofs = vec![scene.made(&scene.proof(context, door, &scene.session.token))];
                        last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&proofs);
                        proofs
                    };
                    let first = door.send(context, &scene, &authorization, proofs).await?.status;
                    let proofs = last.into_inner().unwrap_or_else(PoisonError::into_inner);
                    let again = door.send(context, &scene, &authorization, || proofs.clone()).await?.status;
                    expect(first == let_in, || wrong("once", first, let_in))?;
                    expect(again == 401, || wrong("twice", again, 401))?;
                    context.note_at(&Condition::Proof(rule), door.as_str());
                    continue;
                }
                // Of grantees' proofs alone: nobody has a token that is bound to such a key.
                OfProof::Weak => continue,
            };
            scene.control(context, door).await?;
            for Case { what, holds, change } in cases {
                let proofs = || {
                    let mut jws = scene.proof(context, door, &scene.session.token);
                    change(&mut jws, &scene.around(context));
                    vec![scene.made(&jws); jws.copies]
                };
                let reply = door.send(context, &scene, &authorization, proofs).await?;
                let must = if holds { let_in } else { 401 };
                expect(reply.status == must, || wrong(what, reply.status, must))?;
                if !holds {
                    context.note_at(&Condition::Proof(rule), door.as_str());
                }
            }
        }
    }
    Ok(())
}

/// A grant made out to the neutral point, under which anything is signed: it is refused at issue, or whoever shows it is.
async fn weak(context: &Context<'_>, place: ShownAt, ahead: Ahead) -> Result<(), Failed> {
    let mut draft = context.draft(&context.stranger(), &context.word(), 2);
    draft["grantee"] = json!(NEUTRAL);
    let Ok(mut issued) = context.try_owner(json!({"do": "grant", "draft": draft})).await? else {
        return Ok(());
    };
    let scene = Scene::shown(context, issued["grant"].take(), ahead);
    let address = format!("{}{}", context.origin(), place.path(context, &scene.session.grant));
    let made = || {
        let mut jws = scene.grant_proof(context, &address)?;
        let name = NEUTRAL.trim_start_matches("did:key:");
        (jws.header["kid"], jws.seal) = (json!(format!("{NEUTRAL}#{name}")), Seal::Neutral);
        (jws.claims["iss"], jws.claims["sub"]) = (json!(NEUTRAL), json!(NEUTRAL));
        place.request(context, &scene, &scene.made(&jws))
    };
    // It may not have been issued, either.
    let (status, must) = (context.send_each(made).await?.status, place.refuses());
    expect([400, must].contains(&status), || {
        format!(
            "{place}: {}: the neutral point: status {status}, must be {must} or 400",
            GrantProofRule::Weak
        )
    })
}

/// Every condition on grantees' proofs, where they are shown.
pub(in super::super) async fn grant_proofs(context: &Context<'_>) -> Result<(), Failed> {
    let places = ShownAt::ALL;
    let least = GrantProofRule::ALL.len().div_ceil(places.len().max(1));
    let hands = dealt(context, GrantProofRule::ALL, places.len(), least);
    for (place, rules) in places.iter().copied().zip(hands) {
        let scene = Scene::set(context, false, false).await?;
        let address = format!("{}{}", context.origin(), place.path(context, &scene.session.grant));
        for rule in rules {
            let wrong = |what: &str, status: u16, must: u16| {
                format!("{place}: {rule}: {what}: status {status}, must be {must}")
            };
            let right = place.asked(context, &scene).await?.status;
            expect(right == 200, || wrong("nothing wrong", right, 200))?;
            let cases = match of_grant_proof(rule) {
                OfProof::Cases(cases) => cases,
                OfProof::Twice => {
                    let last = Mutex::new(String::new());
                    let made = || {
                        let proof = scene.made(&scene.grant_proof(context, &address)?);
                        last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&proof);
                        place.request(context, &scene, &proof)
                    };
                    let first = context.send_each(made).await?.status;
                    let proof = last.into_inner().unwrap_or_else(PoisonError::into_inner);
                    let again = context.send(place.request(context, &scene, &proof)?).await?.status;
                    expect(first == 200, || wrong("once", first, 200))?;
                    expect(again == place.refuses(), || wrong("twice", again, place.refuses()))?;
                    context.note_at(&Condition::GrantProof(rule), place.as_str());
                    continue;
                }
                OfProof::Weak => {
                    weak(context, place, scene.ahead).await?;
                    context.note_at(&Condition::GrantProof(rule), place.as_str());
                    continue;
                }
            };
            for Case { what, holds, change } in cases {
                // Where it is waited for it is made anew: its times are those of the request.
                let made = || {
                    let mut jws = scene.grant_proof(context, &address)?;
                    change(&mut jws, &scene.around(context));
                    place.request(context, &scene, &scene.made(&jws))
                };
                let reply = context.send_each(made).await?;
                let must = if holds { 200 } else { place.refuses() };
                expect(reply.status == must, || wrong(what, reply.status, must))?;
                if !holds {
                    context.note_at(&Condition::GrantProof(rule), place.as_str());
                }
            }
        }
    }
    Ok(())
}

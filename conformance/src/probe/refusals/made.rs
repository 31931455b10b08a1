//! The conditions on grants, countersignatures and questions of the log, brought to the gateway.

use super::cases::Case;
use super::children::{child, children_by, issued};
use super::grants::{self, Limits};
use super::rules::{AckRule, Condition, DocumentRule, Door, LogRule, ShownAt};
use super::scene::unnamed_proof;
use super::{beside, documents};
use crate::model::Model;
use crate::model::rule::{Granting, Refusal, Rule};
use crate::probe::Failed;
use crate::probe::context::{Context, INVOKE, Session, expect, post};
use crate::probe::declared::Place;
use crate::probe::drafted::departures_of_grant;
use crate::probe::wire::{Refused, Reply};
use oap_identity::signed::sign_document;
use oap_identity::{Signer, json as strict};
use serde_json::{Value, json};
use std::time::Duration;

const ACK: &str = "/oap/memory/ack";
const VERIFY: &str = "/oap/receipt/verify";

/// From when on grants of these cases hold: later than now on any clock, so that their longest life does not hang on it.
const BEGINS: Duration = Duration::from_secs(3_600);

pub(super) fn model(manifest: &Value) -> Result<Model, Failed> {
    let principal = manifest["principal"].as_str().and_then(|did| did.parse().ok());
    let principal = principal.ok_or_else(|| Failed::Wrong("the manifest has no principal".to_owned()))?;
    Ok(Model::new(principal, manifest, Vec::new()))
}

/// How a grant is handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Endpoint,
    /// The action `memory.grant`.
    Action,
}

impl Way {
    /// Where it is shown then.
    pub(super) fn door(self) -> &'static str {
        match self {
            Self::Endpoint => ShownAt::Exchange.as_str(),
            Self::Action => ShownAt::Invoke.as_str(),
        }
    }

    pub(super) async fn hand_in(
        self,
        context: &Context<'_>,
        grantee: &Signer,
        grant: &Value,
        above: &[Value],
    ) -> Result<Reply, Failed> {
        match self {
            Self::Endpoint => context.present(grantee, grant, grant, above).await,
            Self::Action => context.present_by_action(grantee, grant, above).await,
        }
    }

    /// The same, with a member beside the grant and its proof.
    async fn hand_in_with(
        self,
        context: &Context<'_>,
        grantee: &Signer,
        grant: &Value,
        name: &str,
        value: &Value,
    ) -> Result<Reply, Failed> {
        context.present_with(grantee, grant, self == Self::Action, (name, value)).await
    }

    /// The same, with a proof that names no grant: what was issued is then told by the document alone.
    async fn hand_in_unnamed(
        self,
        context: &Context<'_>,
        grantee: &Signer,
        grant: &Value,
    ) -> Result<Reply, Failed> {
        let path = match self {
            Self::Endpoint => context.at(Place::Grant),
            Self::Action => INVOKE,
        };
        let made = || {
            let address = format!("{}{path}", context.origin());
            let proof = unnamed_proof(context, grantee, &address, context.now().seconds());
            let body = json!({"grant": grant, "proof": proof.made(grantee, grantee)});
            let body = match self {
                Self::Endpoint => body,
                Self::Action => context.envelope(grantee, "memory.grant", &body)?,
            };
            Ok(post(path, &[], &body.to_string()))
        };
        context.send_each(made).await
    }
}

/// Every condition on a grant that is exchanged.
pub(in super::super) async fn of_documents(context: &Context<'_>) -> Result<(), Failed> {
    documents_by(context, Way::Endpoint).await
}

/// The same, and every condition on a child, of what is handed in as the action `memory.grant`.
pub(in super::super) async fn of_grant_actions(context: &Context<'_>) -> Result<(), Failed> {
    documents_by(context, Way::Action).await?;
    children_by(context, Way::Action).await
}

async fn documents_by(context: &Context<'_>, way: Way) -> Result<(), Failed> {
    let label = context.word();
    for rule in DocumentRule::ALL.iter().copied() {
        // A grant for each: what is asked too often is refused for another reason.
        let session = context.granted(&label, 2).await?;
        let (grantee, grant) = (&session.grantee, &session.grant);
        let note = || context.note_at(&Condition::Document(rule), way.door());
        match documents::violations(rule) {
            documents::Violation::Altered(cases) => {
                for (number, Case { what, change, .. }) in cases.into_iter().enumerate() {
                    let mut other = grant.clone();
                    change(&mut other, &context.stranger());
                    let mut statuses = vec![way.hand_in(context, grantee, &other, &[]).await?.status];
                    // Where an address is let in so often a minute, one of them.
                    if number == 0 || context.asks_everywhere() {
                        statuses.push(way.hand_in_unnamed(context, grantee, &other).await?.status);
                    }
                    expect(statuses.iter().all(|status| *status == 400), || {
                        format!("{way:?}: a grant: {rule}: {what}: status {statuses:?}, must be 400")
                    })?;
                    note();
                }
                if rule == DocumentRule::Known {
                    context.note(&Rule::Refusal(Refusal::UnknownGrant));
                }
            }
            documents::Violation::Beside => {
                for (chain, must) in [(json!([grant]), 400), (json!({}), 400), (json!([]), 200)] {
                    let reply = way.hand_in_with(context, grantee, grant, "chain", &chain).await?;
                    expect(reply.status == must, || {
                        format!("{way:?}: a grant: {rule}: {chain}: status {}, must be {must}", reply.status)
                    })?;
                }
                let reply = way.hand_in_with(context, grantee, grant, "colour", &json!("red")).await?;
                expect(reply.status == 400, || {
                    format!("{way:?}: a grant beside an unknown member: status {}, must be 400", reply.status)
                })?;
                note();
            }
            documents::Violation::NotInForce => {
                not_in_force(context, way, &label, &session).await?;
                note();
                continue;
            }
            documents::Violation::Chained => {
                let (delegator, alone) = (context.stranger(), context.stranger());
                let (above, other) =
                    (issued(context, &delegator, true).await?, issued(context, &alone, false).await?);
                unchained(context, way, &delegator, [&above, &other]).await?;
                note();
            }
        }
        let reply = way.hand_in(context, grantee, grant, &[]).await?;
        expect(reply.status == 200, || {
            format!("{way:?}: a grant with nothing wrong: status {}", reply.status)
        })?;
    }
    Ok(())
}

/// A grant that begins tomorrow, and one that was taken back: 403.
async fn not_in_force(context: &Context<'_>, way: Way, label: &str, session: &Session) -> Result<(), Failed> {
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, label, 2);
    draft["not_before"] = json!(context.now().plus(BEGINS));
    let grant = context.owner(json!({"do": "grant", "draft": draft})).await?["grant"].clone();
    let reply = way.hand_in(context, &grantee, &grant, &[]).await?;
    expect(reply.status == 403, || {
        format!("{way:?}: a grant before its time: status {}, must be 403", reply.status)
    })?;
    context.note(&Rule::Refusal(Refusal::Draft));
    context.owner(json!({"do": "revoke", "grant_id": session.grant["grant_id"]})).await?;
    let reply = way.hand_in(context, &session.grantee, &session.grant, &[]).await?;
    expect(reply.status == 403, || {
        format!("{way:?}: a grant that was taken back: status {}, must be 403", reply.status)
    })
}

/// Every condition on a draft. Where a gateway refuses it, at issue or at the exchange, the protocol leaves open.
pub(in super::super) async fn drafts(context: &Context<'_>) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let model = model(&manifest)?;
    let declared = context.declared();
    let (max_items, max_days) = (declared.max_items, declared.max_days);
    // Where nothing is issued at all, nothing is known of what may not be.
    let good = context.draft(&context.stranger(), "l0", 2);
    context.owner(json!({"do": "grant", "draft": good})).await?;
    for granting in Granting::ALL.iter().copied() {
        let Some(cases) = grants::violations(granting).at_issue() else { continue };
        for Case { what, holds, change } in cases {
            let begins = context.now().plus(BEGINS);
            let limits = Limits { begins, apart: Duration::ZERO, max_items, max_days };
            let grantee = context.stranger();
            let mut draft = context.draft(&grantee, "l0", 2);
            change(&mut draft, &limits);
            if !declared.has_profile(draft["redaction_profile"].as_str().unwrap_or_default()) && holds {
                continue;
            }
            let _ = model.issues(&draft, context.now());
            let issued = context.try_owner(json!({"do": "grant", "draft": draft})).await?;
            match issued {
                Err(Refused(why)) if holds => {
                    return Err(Failed::Wrong(format!("a draft: {granting}: {what}: refused: {why}")));
                }
                Err(_) => {}
                Ok(issued) => {
                    // Nobody may be given another grant than the one that may not be.
                    let departs = departures_of_grant(&draft, &issued["grant"]);
                    expect(departs.is_empty(), || {
                        format!("a draft: {granting}: {what}: issued as another: {}", departs.join("; "))
                    })?;
                    let status = context.exchange(&grantee, &issued["grant"]).await?.status;
                    let has_begun = draft["not_before"].is_null();
                    // One that may be and has not begun is refused for that alone, with 403.
                    let fits = match (holds, has_begun) {
                        (true, true) => status == 200,
                        (true, false) => status == 403,
                        // Whether what may not be or when it begins is said first the protocol leaves open of what the owner issues.
                        (false, _) => [400, 401, 403].contains(&status),
                    };
                    expect(fits, || {
                        format!(
                            "a draft: {granting}: {what} (to be refused: {}): issued, and at its exchange status {status}",
                            !holds
                        )
                    })?;
                }
            }
            if !holds {
                context.note_at(&Condition::Granting(granting), "issue");
            }
        }
    }
    context.decided(&model);
    Ok(())
}

/// A child that is handed in with other grants than the one above it.
async fn unchained(
    context: &Context<'_>,
    way: Way,
    delegator: &Signer,
    [above, other]: [&Value; 2],
) -> Result<(), Failed> {
    let chains: [(&str, Vec<Value>); 4] = [
        ("without the grant above", vec![]),
        ("with another grant", vec![other.clone()]),
        ("with the grant above twice", vec![above.clone(), above.clone()]),
        ("with another grant before the one above", vec![other.clone(), above.clone()]),
    ];
    for (what, chain) in chains {
        let grantee = context.stranger();
        let mut made = child(context, above, &grantee)?;
        sign_document(&mut made, delegator).map_err(|e| Failed::Skipped(e.to_string()))?;
        let reply = way.hand_in(context, &grantee, &made, &chain).await?;
        expect(reply.status == 400, || {
            format!("{way:?}: a child {what}: status {}, must be 400", reply.status)
        })?;
    }
    Ok(())
}

/// Every condition on countersignatures.
pub(in super::super) async fn acknowledgements(context: &Context<'_>) -> Result<(), Failed> {
    let session = context.granted(&context.word(), 2).await?;
    let receipt = context.answer(&session, &json!({})).await?["receipt"].clone();
    let mut unsigned = receipt.clone();
    unsigned.as_object_mut().map(|members| members.remove("signatures"));
    let bytes = strict::canonical(&unsigned).map_err(|e| Failed::Skipped(e.to_string()))?;
    let grantee = &session.grantee;
    let signature = json!({"by": grantee.kid(), "alg": "EdDSA", "value": grantee.sign(&bytes)});
    let body = json!({"receipt_id": receipt["receipt_id"], "signature": signature});
    for rule in AckRule::ALL.iter().copied() {
        for beside::Signed { what, statuses, change } in beside::of_ack(rule) {
            let mut other = body.clone();
            change(&mut other, &context.stranger(), &bytes);
            let reply = context.post(ACK, &[], &other).await?;
            expect(statuses.contains(&reply.status), || {
                format!(
                    "a countersignature: {rule}: {what}: status {}, must be one of {statuses:?}",
                    reply.status
                )
            })?;
            context.note_at(&Condition::Ack(rule), "countersignature");
        }
    }
    let reply = context.post(ACK, &[], &body).await?;
    let joint = reply.json()["receipt"].clone();
    let signatures = joint["signatures"].as_array().map_or(0, Vec::len);
    expect(reply.status == 200 && signatures == 2, || {
        format!("a countersignature with nothing wrong: status {}, {signatures} signatures", reply.status)
    })?;
    jointly(context, &session, (&receipt, &body), &joint).await
}

/// A receipt of both: the same one, with the grantee's signature behind the principal's; the same again, also when the grant is over. It is
/// the gateway's receipt with both signatures and with one, and with no other (protocol section 8, bytes 6.2).
async fn jointly(
    context: &Context<'_>,
    session: &Session,
    (receipt, body): (&Value, &Value),
    joint: &Value,
) -> Result<(), Failed> {
    let unsigned = |receipt: &Value| {
        let mut bare = receipt.clone();
        bare.as_object_mut().map(|members| members.remove("signatures"));
        bare
    };
    expect(unsigned(joint) == unsigned(receipt), || {
        "a countersigned receipt is another than was countersigned".to_owned()
    })?;
    let first = joint["signatures"][0] == receipt["signatures"][0];
    let second = ["by", "value"].iter().all(|name| joint["signatures"][1][name] == body["signature"][name]);
    expect(first && second, || {
        format!("a countersigned receipt has the signatures {}", joint["signatures"])
    })?;
    // Whoever has no such endpoint has 404 for its own receipt as well.
    if context.post(VERIFY, &[], receipt).await?.status == 200 {
        let status = context.post(VERIFY, &[], joint).await?.status;
        expect(status == 200, || format!("{VERIFY}: a countersigned receipt: status {status}"))?;
    }
    for revoked in [false, true] {
        if revoked {
            context.owner(json!({"do": "revoke", "grant_id": session.grant["grant_id"]})).await?;
        }
        let reply = context.post(ACK, &[], body).await?;
        expect(reply.status == 200 && reply.json()["receipt"] == *joint, || {
            format!("a countersignature once more, the grant revoked: {revoked}: status {}", reply.status)
        })?;
    }
    Ok(())
}

/// Whether a log has the receipts of a grantee and no others.
fn is_own(log: &Value, session: &Session) -> bool {
    let agent = session.grantee.did().as_str();
    log["receipts"].as_array().is_some_and(|all| all.iter().all(|receipt| receipt["agent_did"] == agent))
}

/// Every condition on a grantee's questions of the log.
pub(in super::super) async fn log(context: &Context<'_>) -> Result<(), Failed> {
    let session = context.granted(&context.word(), 2).await?;
    for rule in LogRule::ALL.iter().copied() {
        for Case { what: parameters, holds, change: must } in beside::of_log(rule) {
            let reply = context.get_as(&session, &format!("/oap/audit?{parameters}")).await?;
            let refused = (400..500).contains(&reply.status);
            let fits = match must {
                _ if holds => reply.status == 200,
                beside::Must::Refuse => refused,
                beside::Must::TellNothingMore => refused || is_own(&reply.json(), &session),
            };
            expect(fits, || format!("the log: {rule}: {parameters}: status {}", reply.status))?;
            if !holds {
                context.note_at(&Condition::Log(rule), Door::Log.as_str());
            }
        }
    }
    Ok(())
}

//! Acknowledgements of answers, as a grantee can write them in letters (protocol section 8.1).

use super::super::context::{Context, Session, expect, seal};
use super::super::refusals::rules::AckLetterRule;
use super::super::refusals::{Condition, lifted, resign};
use super::super::{Failed, Probe, Severity};
use super::letters::{door, letter, replied};
use super::{note, owned, probe};
use oap_identity::{DidDocument, Hash, ReceiptId, Signer, json as strict};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Probe> {
    vec![owned("acknowledgements", &["FE-14"], Severity::Critical, probe!(acknowledgements))]
}

/// What is signed of a receipt.
fn signed_bytes(receipt: &Value) -> Result<Vec<u8>, Failed> {
    let mut unsigned = receipt.clone();
    for beside in ["signatures", "anchors"] {
        unsigned.as_object_mut().map(|members| members.remove(beside));
    }
    strict::canonical(&unsigned).map_err(|e| Failed::Skipped(e.to_string()))
}

/// The body of a `countersignature`, made with a key under the name of another.
fn countersignature(receipt: &Value, by: &Signer, named: &Signer) -> Result<Value, Failed> {
    let bytes = signed_bytes(receipt)?;
    Ok(json!({
        "receipt": receipt["receipt_id"], "receipt_hash": Hash::of(&bytes),
        "signature": {"by": named.kid(), "alg": "EdDSA", "value": by.sign(&bytes)},
    }))
}

/// The body of an `acknowledgement`: the link of a number, over the one before it.
fn link(
    context: &Context<'_>,
    receipt: &Value,
    number: u64,
    before: &Value,
    by: &Signer,
) -> Result<Value, Failed> {
    let of = Hash::of_canonical(before).map_err(|e| Failed::Skipped(e.to_string()))?;
    let mut statement = json!({
        "oap": "1.0", "type": "acknowledgement", "receipt": receipt["receipt_id"],
        "receipt_hash": Hash::of(&signed_bytes(receipt)?), "number": number, "of": of, "by": by.did(),
        "at": context.now(),
    });
    seal(&mut statement, by, by)?;
    Ok(json!({"acknowledgement": statement}))
}

/// Sends letters about acknowledgements, and reads what becomes of them.
struct Teller<'a> {
    context: &'a Context<'a>,
    document: DidDocument,
}

impl Teller<'_> {
    /// What a letter of somebody's came to.
    async fn told(&self, from: &Signer, kind: &str, body: Value) -> Result<Value, Failed> {
        let letter = letter(self.context, from, self.document.id(), kind, body)?;
        replied(self.context, &letter, &self.document).await
    }

    /// That it is taken.
    async fn takes(&self, what: &str, from: &Signer, kind: &str, body: Value) -> Result<(), Failed> {
        let said = self.told(from, kind, body).await?;
        expect(said["outcome"] == "taken", || {
            format!("{what}: outcome {}, reason {}, must be taken", said["outcome"], said["reason"])
        })
    }

    /// That it is refused.
    async fn refuses(&self, rule: AckLetterRule, wrong: Wrong<'_>) -> Result<(), Failed> {
        let Wrong { what, reasons, from, kind, body } = wrong;
        let said = self.told(from, kind, body).await?;
        let is_reason = said["reason"].as_str().is_some_and(|reason| reasons.contains(&reason));
        expect(said["outcome"] == "refused" && is_reason, || {
            format!(
                "an acknowledgement in a letter: {rule}: {what}: outcome {}, reason {}, must be refused, {}",
                said["outcome"],
                said["reason"],
                reasons.join(" or ")
            )
        })
    }
}

/// A letter that breaks one condition.
struct Wrong<'a> {
    what: &'static str,
    /// One of which the reply must name.
    reasons: &'static [&'static str],
    from: &'a Signer,
    kind: &'static str,
    body: Value,
}

impl<'a> Wrong<'a> {
    const fn countersignature(what: &'static str, from: &'a Signer, body: Value) -> Self {
        Self { what, reasons: &["unknown"], from, kind: FIRST, body }
    }

    const fn link(what: &'static str, from: &'a Signer, body: Value) -> Self {
        Self { what, reasons: &["not_next"], from, kind: NEXT, body }
    }
}

const FIRST: &str = "countersignature";
const NEXT: &str = "acknowledgement";

/// What a receipt's own log says of it: the receipts of the grantee, each with its signatures.
async fn listed(context: &Context<'_>, session: &Session) -> Result<Vec<Value>, Failed> {
    let log = context.get_as(session, "/oap/audit").await?.json();
    Ok(log["receipts"].as_array().cloned().unwrap_or_default())
}

/// How often a grantee's signature stands under a receipt, by the log.
async fn countersigned(context: &Context<'_>, session: &Session, receipt: &Value) -> Result<usize, Failed> {
    let receipts = listed(context, session).await?;
    let found = receipts.iter().find(|one| one["receipt_id"] == receipt["receipt_id"]);
    let signatures = found.and_then(|one| one["signatures"].as_array().cloned()).unwrap_or_default();
    let kid = json!(session.grantee.kid());
    Ok(signatures.iter().filter(|signature| signature["by"] == kid).count())
}

/// What was given is acknowledged by whom it was given to, once, and in turn; anything else proves nothing and is not taken. Each condition is
/// broken alone, in their order: what has to be taken between two of them is.
pub(in super::super) async fn acknowledgements(context: &Context<'_>) -> Result<(), Failed> {
    door(context)?;
    let document = context.document().await?;
    let label = context.word();
    context.capture(&[note("it was given", &[&label])]).await?;
    let session = context.granted(&label, 2).await?;
    let everything = json!({"query": ""});
    let receipt = context.answer(&session, &everything).await?["receipt"].clone();
    let later = context.answer(&session, &everything).await?["receipt"].clone();
    let (me, other) = (&session.grantee, context.stranger());
    let teller = Teller { context, document };
    let first = countersignature(&receipt, me, me)?;
    let linked = |number, before: &Value| link(context, &receipt, number, before, me);
    let like = |change: &dyn Fn(&mut Value)| {
        let mut receipt = receipt.clone();
        change(&mut receipt);
        countersignature(&receipt, me, me)
    };
    for rule in AckLetterRule::ALL.iter().copied() {
        let wrong = match rule {
            AckLetterRule::Receipt => {
                let id = ReceiptId::new(context.now(), context.random());
                Wrong::countersignature("there is none", me, like(&|r| r["receipt_id"] = json!(id))?)
            }
            AckLetterRule::Words => {
                Wrong::countersignature("other tags", me, like(&|r| r["provenance_tags_out"] = json!([]))?)
            }
            AckLetterRule::Agent => Wrong::countersignature(
                "somebody whom it does not name",
                &other,
                countersignature(&receipt, &other, &other)?,
            ),
            AckLetterRule::Sender => Wrong::countersignature("somebody else's letter", &other, first.clone()),
            AckLetterRule::Signature => Wrong::countersignature(
                "another key in the grantee's name",
                me,
                countersignature(&receipt, &other, me)?,
            ),
            AckLetterRule::Scalar => {
                let mut body = first.clone();
                resign(&mut body["signature"]["value"], lifted);
                Wrong::countersignature("S + L", me, body)
            }
            AckLetterRule::Answer => {
                // The exchange of the grant for a token names the grantee, and is no answer.
                let log = listed(context, &session).await?;
                let agent = me.did().as_str();
                let is_none = |one: &&Value| one["action_id"] != "memory.query" && one["agent_did"] == agent;
                let none = log.iter().find(is_none);
                let none = none.ok_or_else(|| Failed::Wrong("a grantee's log has no exchange".to_owned()))?;
                Wrong::countersignature("an exchange", me, countersignature(none, me, me)?)
            }
            AckLetterRule::Begun => Wrong {
                reasons: &["unknown", "not_next"],
                ..Wrong::link("the third link of no chain", me, linked(3, &first["signature"])?)
            },
            AckLetterRule::Turn => {
                expect(countersigned(context, &session, &receipt).await? == 0, || {
                    "a countersignature that was refused is under the receipt".to_owned()
                })?;
                // What is right, and the same once more in a letter of its own.
                for what in ["a countersignature with nothing wrong", "the same countersignature again"] {
                    teller.takes(what, me, FIRST, first.clone()).await?;
                    expect(countersigned(context, &session, &receipt).await? == 1, || {
                        format!("{what}: it is not once under the receipt")
                    })?;
                }
                Wrong::link("the granter's by the grantee", me, linked(2, &first["signature"])?)
            }
            AckLetterRule::Next => {
                let before = linked(2, &first["signature"])?["acknowledgement"].clone();
                Wrong::link("one is left out", me, linked(3, &before)?)
            }
            AckLetterRule::InForce => {
                context.owner(json!({"do": "revoke", "grant_id": session.grant["grant_id"]})).await?;
                let body = countersignature(&later, me, me)?;
                Wrong { reasons: &["over"], ..Wrong::countersignature("it was taken back since", me, body) }
            }
        };
        teller.refuses(rule, wrong).await?;
        context.note_at(&Condition::AckLetter(rule), "acknowledgement in a letter");
    }
    Ok(())
}

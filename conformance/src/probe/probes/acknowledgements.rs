//! Acknowledgements of answers, as a grantee can write them in letters (protocol section 8.1).

use super::super::context::{Context, Session, expect, seal};
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

    /// That it is refused, for one of these reasons.
    async fn refuses(
        &self,
        what: &str,
        reasons: &[&str],
        from: &Signer,
        kind: &str,
        body: Value,
    ) -> Result<(), Failed> {
        let said = self.told(from, kind, body).await?;
        let is_reason = said["reason"].as_str().is_some_and(|reason| reasons.contains(&reason));
        expect(said["outcome"] == "refused" && is_reason, || {
            format!(
                "{what}: outcome {}, reason {}, must be refused, {}",
                said["outcome"],
                said["reason"],
                reasons.join(" or ")
            )
        })
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

/// What was given is acknowledged by whom it was given to, once, and in turn; anything else proves nothing and is not taken.
async fn acknowledgements(context: &Context<'_>) -> Result<(), Failed> {
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
    // Of nothing that was given.
    let mut invented = receipt.clone();
    invented["receipt_id"] = json!(ReceiptId::new(context.now(), context.random()));
    let mut bent = receipt.clone();
    bent["provenance_tags_out"] = json!([]);
    let mut wrong = vec![
        ("a receipt that there is not", me, countersignature(&invented, me, me)?),
        ("a receipt with other words", me, countersignature(&bent, me, me)?),
        ("a receipt by somebody whom it does not name", &other, countersignature(&receipt, &other, &other)?),
        (
            "a receipt by its grantee, in a letter of somebody else's",
            &other,
            countersignature(&receipt, me, me)?,
        ),
        ("a receipt by another key in the grantee's name", me, countersignature(&receipt, &other, me)?),
    ];
    // The exchange of the grant for a token names the grantee, and is no answer.
    let log = listed(context, &session).await?;
    let is_none = |one: &&Value| one["action_id"] != "memory.query" && one["agent_did"] == me.did().as_str();
    if let Some(none) = log.iter().find(is_none) {
        wrong.push(("a receipt of no answer", me, countersignature(none, me, me)?));
    }
    for (what, from, body) in wrong {
        teller.refuses(&format!("a countersignature of {what}"), &["unknown"], from, FIRST, body).await?;
    }
    // Whatever of a chain that nobody began.
    let first = countersignature(&receipt, me, me)?;
    let linked = |number, before: &Value| link(context, &receipt, number, before, me);
    let none = ["unknown", "not_next"];
    teller.refuses("the third link of no chain", &none, me, NEXT, linked(3, &first["signature"])?).await?;
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
    // The next link is the granter's to give.
    let next = ["not_next"];
    teller
        .refuses("the granter's link by the grantee", &next, me, NEXT, linked(2, &first["signature"])?)
        .await?;
    let skipping = linked(3, &linked(2, &first["signature"])?["acknowledgement"])?;
    teller.refuses("a link that skips one", &next, me, NEXT, skipping).await?;
    // What was given under a grant that was taken back since.
    context.owner(json!({"do": "revoke", "grant_id": session.grant["grant_id"]})).await?;
    let over = countersignature(&later, me, me)?;
    teller.refuses("a countersignature under a revoked grant", &["over"], me, FIRST, over).await
}

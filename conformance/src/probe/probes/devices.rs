//! The owner's devices, as a stranger and an ordinary grantee meet them (protocol section 18).

use super::super::context::{Context, PURPOSE, expect};
use super::super::refusals::Family;
use super::super::{Failed, Probe, Severity};
use super::letters::{door, harmless, letter, replied, taken};
use super::{ids, note, owned, probe, public};
use oap_identity::{Hash, RequestId, random};
use serde_json::{Value, json};

/// The profile of the grants of devices: it shows everything.
const FULL: &str = "oap.profile.projection.full.v1";
/// Where a device asks what changed, and what that says.
const CHANGES: &str = "/oap/memory/changes";
const CHANGED: &str = "/oap/memory/changes/items";

pub(super) fn all() -> Vec<Probe> {
    use Severity::Critical;
    vec![
        public("device-letters", &["FE-15"], Critical, probe!(letters_of_strangers)),
        owned("device-changes", &["FE-16"], Critical, probe!(changes)),
    ]
}

/// Whoever wants to be a device and is not wanted is told so, whoever they are, and however often they ask.
async fn letters_of_strangers(context: &Context<'_>) -> Result<(), Failed> {
    door(context)?;
    let document = context.document().await?;
    let (one, two) = (context.stranger(), context.stranger());
    taken(context, &harmless(context, &one, document.id())?, &document).await?;
    let value = || Hash::from_bytes(random::bytes::<32>(context.random()));
    let mut steps = vec![
        ("offer", json!({"step": "offer", "commitment": value()})),
        ("reveal", json!({"step": "reveal", "value": value()})),
        // The value comes before a commitment to it, too.
        ("offer", json!({"step": "offer", "commitment": value()})),
    ];
    let grant = json!({
        "granter": {"principal": one.did()}, "grantee": document.id(), "purpose": PURPOSE,
        "redaction_profile": FULL, "trust_level": 4, "operations": ["query"],
    });
    steps.push(("grant", json!({"step": "grant", "grant": grant})));
    for (step, body) in steps {
        let mut answers = Vec::new();
        for from in [&one, &two, &one] {
            let letter = letter(context, from, document.id(), "device_pairing", body.clone())?;
            let mut said = replied(context, &letter, &document).await?;
            // What it hands over may be refused for good: it is nobody's who was asked for it.
            let outcomes: &[&str] = if step == "grant" { &["later", "refused"] } else { &["later"] };
            let is_told = said["outcome"].as_str().is_some_and(|outcome| outcomes.contains(&outcome));
            expect(is_told && said["reason"] == "not_asked", || {
                format!(
                    "a {step} of a device that nobody wants: outcome {}, reason {}, must be {}, not_asked",
                    said["outcome"],
                    said["reason"],
                    outcomes.join(" or ")
                )
            })?;
            for of_letter in ["to", "at", "signature"] {
                said.as_object_mut().map(|members| members.remove(of_letter));
            }
            answers.push(said);
        }
        expect(answers.windows(2).all(|two| two[0] == two[1]), || {
            format!(
                "a {step} of a device that nobody wants is answered differently, for who asks or how often"
            )
        })?;
    }
    // Nothing came of it: letters are taken as before.
    taken(context, &harmless(context, &one, document.id())?, &document).await.map(drop)
}

/// A grant that shows everything makes no device: what changed is told to nobody else.
async fn changes(context: &Context<'_>) -> Result<(), Failed> {
    let since = || json!({"request_id": RequestId::new(context.now(), context.random())});
    Family::Devices.offered(context).await?;
    let label = context.word();
    let made = context.capture(&[note("it is there", &[&label])]).await?;
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &label, 4);
    if context.declared().has_profile(FULL) {
        draft["redaction_profile"] = json!(FULL);
    }
    let session = context.session(grantee, draft).await?;
    let everything = json!({"query": ""});
    let shown = context.answer(&session, &everything).await?;
    expect(ids(&shown) == made, || "a grant does not show what is in it".to_owned())?;
    let mut named: Value = since();
    named["items"] = json!(made);
    for (path, body) in [(CHANGES, since()), (CHANGED, named)] {
        let status = context.post_as(&session, path, &body).await?.status;
        expect(status == 403, || format!("POST {path} of who is no device: status {status} instead of 403"))?;
    }
    let after = context.answer(&session, &everything).await?;
    expect(ids(&after) == made, || "whoever asked as a device is not shown what their grant shows".to_owned())
}

//! Outputs of actions, beside what the tool manifest says of them (OAP-CORE 7.1).

use super::super::context::{Context, expect};
use super::super::refusals::{by_envelope, called};
use super::super::schema::departures;
use super::super::{Failed, Probe, Severity};
use super::{items, note, owned, probe};

pub(super) fn all() -> Vec<Probe> {
    vec![owned("outputs-by-schema", &["CO-08"], Severity::Major, probe!(outputs))]
}

/// The actions that a gateway has (protocol section 3).
const ACTIONS: [&str; 3] = ["memory_describe", "memory_query", "memory_grant"];

/// The output of each action has what its `output_schema` asks for.
async fn outputs(context: &Context<'_>) -> Result<(), Failed> {
    let tool = context.get("/.well-known/oap-tool.json").await?;
    let label = context.word();
    context.capture(&[note("a note", &[&label])]).await?;
    let session = context.granted(&label, 4).await?;
    for action in ACTIONS {
        let mut declared = tool["actions"].as_array().into_iter().flatten();
        let declared = declared.find(|one| one["id"] == action);
        let declared =
            declared.ok_or_else(|| Failed::Wrong(format!("oap-tool.json has no action {action}")))?;
        let made = || by_envelope(context, &session, action, &called(context, &session, action)?);
        let reply = context.send_each(made).await?;
        expect(reply.status == 200, || format!("{action}: status {}, must be 200", reply.status))?;
        let output = reply.json()["output"].clone();
        expect(action != "memory_query" || !items(&output).is_empty(), || {
            format!("{action}: no item where there is one")
        })?;
        let wrong = departures(&declared["output_schema"], &output, "output");
        expect(wrong.is_empty(), || format!("{action}, by its output_schema: {}", wrong.join("; ")))?;
    }
    Ok(())
}

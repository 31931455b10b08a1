//! Outputs of actions, beside what the tool manifest says of them (OAP-CORE 7.1).

use super::super::context::{Context, expect};
use super::super::refusals::{by_envelope, called};
use super::super::{Failed, Probe, Severity};
use super::{items, note, owned, probe};
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

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
        held(action, &declared["output_schema"], &output)?;
    }
    Ok(())
}

/// An output against the schema that is declared of it. One that refers to another document cannot be read here: nothing is fetched that a
/// stranger names.
fn held(action: &str, schema: &Value, output: &Value) -> Result<(), Failed> {
    let schema = match jsonschema::validator_for(schema) {
        Ok(schema) => schema,
        Err(why) if matches!(why.kind(), ValidationErrorKind::Referencing(_)) => {
            return Err(Failed::Skipped(format!("{action}: its output_schema refers to another document")));
        }
        Err(why) => {
            return Err(Failed::Wrong(format!("{action}: its output_schema is none: {}", why.masked())));
        }
    };
    schema.validate(output).map_err(|wrong| {
        let (at, why) = (wrong.instance_path(), wrong.masked());
        Failed::Wrong(format!("{action}, by its output_schema: output{at}: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_output_is_held_against_its_schema_and_nothing_is_fetched() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"enum": [1]}}});
        assert_eq!(held("it", &schema, &json!({"a": 1})), Ok(()));
        for wrong in [json!({}), json!([]), json!({"a": 2})] {
            assert!(matches!(held("it", &schema, &wrong), Err(Failed::Wrong(_))), "{wrong}");
        }
        assert!(matches!(held("it", &json!({"type": "tea"}), &json!({})), Err(Failed::Wrong(_))));
        let elsewhere = json!({"$ref": "https://somebody.example/answer.schema.json"});
        assert!(matches!(held("it", &elsewhere, &json!({})), Err(Failed::Skipped(_))));
    }
}

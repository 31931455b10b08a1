//! What the JSON Schema of an action asks of its output, as far as manifests of tools go: `type`, `const`, `enum`, `required`, `properties`,
//! `additionalProperties: false`, `items`. Any other keyword asks nothing here.

use serde_json::Value;

/// Where a value departs from a schema, each as the place and what is wrong there.
pub(super) fn departures(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if !has_type(&schema["type"], value) {
        wrong.push(format!("{at} is not of the type {}", schema["type"]));
    }
    let is_other = schema.get("const").is_some_and(|only| only != value);
    if is_other || schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        wrong.push(format!("{at} is none of the values that it may have"));
    }
    if let Some(items) = value.as_array() {
        let each = items.iter().flat_map(|item| departures(&schema["items"], item, &format!("{at}[]")));
        wrong.extend(each);
    }
    let Some(members) = value.as_object() else { return wrong };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    wrong.extend(
        required.filter(|name| !members.contains_key(*name)).map(|name| format!("{at} has no {name}")),
    );
    let is_closed = schema["additionalProperties"] == false && schema.get("patternProperties").is_none();
    for (name, inner) in members {
        match schema["properties"].get(name) {
            Some(schema) => wrong.extend(departures(schema, inner, &format!("{at}.{name}"))),
            None if is_closed => wrong.push(format!("{at} may not have {name}")),
            None => {}
        }
    }
    wrong
}

/// Whether a value has the type, or one of them; an absent one is any.
fn has_type(named: &Value, value: &Value) -> bool {
    match named {
        Value::Array(all) => all.iter().any(|one| has_type(one, value)),
        Value::String(name) => match name.as_str() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            _ => false,
        },
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_departs_is_named_with_its_place() {
        let schema = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": {"type": ["string", "null"]}, "b": {"type": "array", "items": {"type": "integer"}},
                "c": {"enum": [1, 2]}, "d": {"const": "x"},
            },
        });
        let of = |value: Value| departures(&schema, &value, "it");
        assert!(of(json!({"a": null, "b": [1, 2.0], "c": 2, "d": "x"})).is_empty());
        assert_eq!(of(json!({})), ["it has no a"]);
        assert_eq!(of(json!([])), ["it is not of the type \"object\""]);
        assert_eq!(of(json!({"a": "", "e": 1})), ["it may not have e"]);
        assert_eq!(of(json!({"a": "", "b": [1.5]})), ["it.b[] is not of the type \"integer\""]);
        for wrong in [json!({"a": 1}), json!({"a": "", "c": 3}), json!({"a": "", "d": "y"})] {
            assert_eq!(of(wrong.clone()).len(), 1, "{wrong}");
        }
        assert!(departures(&json!({}), &json!(7), "it").is_empty());
    }
}

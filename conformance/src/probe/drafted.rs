//! What a gateway signed, beside what its owner drafted.

use oap_identity::Timestamp;
use serde_json::{Value, json};

/// Where a signed document is not as it was drafted: each member of the draft that it has otherwise.
///
/// Times are compared as moments, numbers by their value, lists as sets; objects have the same members.
#[must_use]
pub(super) fn departures(draft: &Value, signed: &Value) -> Vec<String> {
    let members = draft.as_object().into_iter().flatten();
    let departs = members.filter(|(name, drafted)| !is_same(drafted, &signed[name.as_str()]));
    departs.map(|(name, drafted)| format!("{name} is {}, was {drafted}", signed[name.as_str()])).collect()
}

/// The same of a grant, whose draft has its scope beside `granter`.
#[must_use]
pub(super) fn departures_of_grant(draft: &Value, signed: &Value) -> Vec<String> {
    let mut draft = draft.clone();
    let scope = draft.as_object_mut().and_then(|members| members.remove("scope"));
    let mut signed = signed.clone();
    if let Some(members) = signed.as_object_mut() {
        for (name, value) in absent() {
            members.entry(name).or_insert(value);
        }
    }
    let signed = &signed;
    let mut departs = departures(&draft, signed);
    let fragment =
        signed["granter"].as_str().and_then(|granter| granter.split_once('#')).map(|(_, scope)| scope);
    if let Some(scope) = scope.as_ref().and_then(Value::as_str).filter(|scope| fragment != Some(*scope)) {
        departs.push(format!("granter is {}, was of the scope {scope:?}", signed["granter"]));
    }
    departs
}

/// What the members of a grant are where they are absent (protocol section 5).
fn absent() -> [(&'static str, Value); 7] {
    [
        ("trust_level", json!(0)),
        ("lawful_basis", json!("consent")),
        ("operations", json!(["query"])),
        ("embedding_access", json!(false)),
        ("bearer", json!(false)),
        ("revocable", json!(true)),
        ("filter", json!({})),
    ]
}

fn is_same(drafted: &Value, signed: &Value) -> bool {
    match (drafted, signed) {
        (Value::String(a), Value::String(b)) => {
            let moment = |text: &str| text.parse::<Timestamp>().ok();
            a == b || moment(a).zip(moment(b)).is_some_and(|(a, b)| a == b)
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            let within = |a: &[Value], b: &[Value]| a.iter().all(|a| b.iter().any(|b| is_same(a, b)));
            within(a, b) && within(b, a)
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        _ => drafted == signed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_signed_is_what_was_drafted() {
        let draft = json!({
            "scope": "work", "max_items": 5, "bearer": false, "filter": {"labels_any": ["a", "b"], "captured_after": "2026-05-01T12:00:00Z"},
        });
        let good = json!({
            "granter": "did:web:user.example#work", "max_items": 5.0, "version": 1,
            "filter": {"labels_any": ["b", "a"], "captured_after": "2026-05-01T12:00:00.000Z"},
        });
        assert_eq!(departures_of_grant(&draft, &good), Vec::<String>::new());
        for (at, other) in [
            ("/max_items", json!(6)),
            ("/granter", json!("did:web:user.example#home")),
            ("/filter", json!({"labels_any": ["a", "b"]})),
            ("/filter/labels_any", json!(["a", "b", "c"])),
            ("/filter/captured_after", json!("2026-05-01T12:00:00.001Z")),
            ("/filter/kinds", json!(["fact"])),
        ] {
            let mut bad = good.clone();
            let (above, name) = at.rsplit_once('/').unwrap();
            bad.pointer_mut(above).unwrap()[name] = other;
            assert_eq!(departures_of_grant(&draft, &bad).len(), 1, "{at}");
        }
    }
}

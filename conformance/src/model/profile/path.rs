//! Field paths: which places of an item a field names.
//!
//! Members are separated by dots; `a[]` is every element of `a`, `a[x=1,y=true]` those elements whose members have these values, `*`
//! everything.

use serde_json::{Map, Value};

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Member(String),
    Element(usize),
}

/// A place: the steps from the root.
pub(super) type Place = Vec<Step>;

/// The places that a path names in a document.
pub(super) fn places(path: &str, root: &Value) -> Vec<Place> {
    let mut found: Vec<(Place, &Value)> = vec![(Vec::new(), root)];
    if path == "*" {
        return vec![Vec::new()];
    }
    for step in path.split('.') {
        let (name, selector) = match step.split_once('[') {
            Some((name, rest)) => (name, Some(rest.trim_end_matches(']'))),
            None => (step, None),
        };
        let into = |(place, value): (Place, &'_ Value)| -> Option<Place> {
            value.get(name).map(|_| [place, vec![Step::Member(name.to_owned())]].concat())
        };
        let members: Vec<Place> = found.into_iter().filter_map(into).collect();
        found = Vec::new();
        for place in members {
            let Some(value) = at(root, &place) else { continue };
            match selector {
                None => found.push((place, value)),
                Some(selector) => {
                    let elements = value.as_array().map(Vec::as_slice).unwrap_or_default().iter().enumerate();
                    let chosen = elements.filter(|(_, element)| fits(element, selector));
                    found.extend(
                        chosen
                            .map(|(n, element)| ([place.clone(), vec![Step::Element(n)]].concat(), element)),
                    );
                }
            }
        }
    }
    found.into_iter().map(|(place, _)| place).collect()
}

fn at<'a>(root: &'a Value, place: &[Step]) -> Option<&'a Value> {
    place.iter().try_fold(root, |value, step| match step {
        Step::Member(name) => value.get(name),
        Step::Element(n) => value.get(n),
    })
}

fn fits(element: &Value, selector: &str) -> bool {
    let conditions = selector.split(',').filter(|condition| !condition.is_empty());
    conditions
        .map(|condition| condition.split_once('=').unwrap_or((condition, "")))
        .all(|(name, wanted)| element.get(name.trim()).is_some_and(|value| reads(value, wanted.trim())))
}

/// Whether a value reads so: text without quotes, numbers and truth values as JSON writes them.
pub(super) fn reads(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Bool(is) => wanted == if *is { "true" } else { "false" },
        Value::Number(number) => wanted == number.as_str(),
        _ => false,
    }
}

/// What of a document stands at, below, or on the way to these places. An array closes up over what is left out.
pub(super) fn only(value: &Value, shown: &[Place]) -> Option<Value> {
    kept(value, &mut Vec::new(), shown)
}

fn kept(value: &Value, here: &mut Place, shown: &[Place]) -> Option<Value> {
    if shown.iter().any(|place| here.starts_with(place)) {
        return Some(value.clone());
    }
    if !shown.iter().any(|place| place.starts_with(here)) {
        return None;
    }
    let mut below = |step: Step, value: &Value| {
        here.push(step);
        let kept = kept(value, here, shown);
        here.pop();
        kept
    };
    match value {
        Value::Object(members) => {
            let members = members.iter().filter_map(|(name, member)| {
                Some((name.clone(), below(Step::Member(name.clone()), member)?))
            });
            Some(Value::Object(members.collect::<Map<_, _>>()))
        }
        Value::Array(elements) => {
            let elements = elements.iter().enumerate().filter_map(|(n, e)| below(Step::Element(n), e));
            Some(Value::Array(elements.collect()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(value: &Value, paths: &[&str]) -> Value {
        let places: Vec<Place> = paths.iter().flat_map(|path| places(path, value)).collect();
        only(value, &places).unwrap_or(Value::Null)
    }

    #[test]
    fn selectors_choose_elements_and_arrays_close_up() {
        let value =
            json!({"a": [{"t": "x", "p": true}, {"t": "y", "p": true}, {"t": "x", "p": false}], "b": 1});
        assert_eq!(shown(&value, &["a[t=x,p=true]"]), json!({"a": [{"t": "x", "p": true}]}));
        assert_eq!(shown(&value, &["a[p=true].t"]), json!({"a": [{"t": "x"}, {"t": "y"}]}));
        assert_eq!(shown(&value, &["a[p=false]", "a[t=y]"])["a"].as_array().map(Vec::len), Some(2));
        assert_eq!(shown(&value, &["a[].none", "b"]), json!({"b": 1}));
        assert_eq!(shown(&value, &["a[t=z]", "c.d"]), Value::Null);
        assert_eq!(shown(&value, &["*"]), value);
    }
}

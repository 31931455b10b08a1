//! JSON Patch (RFC 6902), as far as the cases need it: `replace`, `remove`, `add`, in order.

#![allow(dead_code, reason = "who writes the cases makes patches, who runs them applies them")]

use serde_json::{Value, json};

/// The operations that make one value of another.
pub fn between(old: &Value, new: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(old, new, "", &mut operations);
    operations
}

fn operation(kind: &str, path: &str, value: Option<&Value>) -> Value {
    match value {
        Some(value) => json!({"op": kind, "path": path, "value": value}),
        None => json!({"op": kind, "path": path}),
    }
}

fn compare(old: &Value, new: &Value, at: &str, out: &mut Vec<Value>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                match after.get(name) {
                    Some(new) => compare(value, new, &at, out),
                    None => out.push(operation("remove", &at, None)),
                }
            }
            for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                out.push(operation("add", &at, Some(value)));
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            let same = |pair: &(&Value, &Value)| pair.0 == pair.1;
            let head = before.iter().zip(after).take_while(same).count();
            let rest = before.len().min(after.len()) - head;
            let tail = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(same).count();
            let (old, new) = (&before[head..before.len() - tail], &after[head..after.len() - tail]);
            let both = old.len().min(new.len());
            for (n, (old, new)) in old.iter().zip(new).enumerate() {
                compare(old, new, &format!("{at}/{}", head + n), out);
            }
            for n in (both..old.len()).rev() {
                out.push(operation("remove", &format!("{at}/{}", head + n), None));
            }
            for (n, value) in new.iter().enumerate().skip(both) {
                out.push(operation("add", &format!("{at}/{}", head + n), Some(value)));
            }
        }
        (_, new) => out.push(operation("replace", at, Some(new))),
    }
}

/// The value with the operations done.
pub fn apply(value: &Value, operations: &[Value]) -> Value {
    let mut value = value.clone();
    for operation in operations {
        let path = operation["path"].as_str().unwrap();
        let new = operation["value"].clone();
        let Some((parent, last)) = path.rsplit_once('/') else {
            value = new;
            continue;
        };
        let last = last.replace("~1", "/").replace("~0", "~");
        match (value.pointer_mut(parent).unwrap(), operation["op"].as_str().unwrap()) {
            (Value::Object(members), "remove") => drop(members.remove(&last).unwrap()),
            (Value::Object(members), _) => drop(members.insert(last, new)),
            (Value::Array(elements), "add") => elements.insert(last.parse().unwrap(), new),
            (Value::Array(elements), "remove") => drop(elements.remove(last.parse().unwrap())),
            (Value::Array(elements), _) => elements[last.parse::<usize>().unwrap()] = new,
            _ => panic!("{path}"),
        }
    }
    value
}

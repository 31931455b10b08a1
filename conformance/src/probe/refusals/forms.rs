//! Every member of a grant in every form: left out, and with each of some values, of which most may not be.

use serde_json::{Value, json};
use std::fmt;

/// What one member becomes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    /// The member, and the one that it is in.
    within: Option<String>,
    name: String,
    /// `None`: it is not there.
    value: Option<Value>,
}

/// Members that may stand in a grant, and do not in one that a grantee makes.
const MORE: [(Option<&str>, &str); 3] = [(None, "not_before"), (None, "status"), (Some("filter"), "scopes")];

fn values() -> [Value; 11] {
    [
        Value::Null,
        json!(true),
        json!(7),
        json!(1.5),
        json!(-1),
        json!(""),
        json!("x"),
        json!([]),
        json!([7]),
        json!(["x"]),
        json!({}),
    ]
}

/// All forms of a grant's members, and of the members of those that have some. The signature is made anew each time, and so left out.
pub(super) fn of(grant: &Value) -> Vec<Form> {
    let own = grant.as_object().into_iter().flatten();
    let inner = own.clone().flat_map(|(outer, value)| {
        value
            .as_object()
            .into_iter()
            .flat_map(|all| all.keys())
            .map(|name| (Some(outer.as_str()), name.as_str()))
    });
    let members = own.map(|(name, _)| (None, name.as_str())).chain(inner).chain(MORE);
    members
        .filter(|(_, name)| *name != "signature")
        .flat_map(|(within, name)| {
            let form = move |value| Form { within: within.map(str::to_owned), name: name.to_owned(), value };
            std::iter::once(form(None)).chain(values().into_iter().map(move |value| form(Some(value))))
        })
        .collect()
}

impl Form {
    /// Makes the member so.
    pub(super) fn put_into(&self, grant: &mut Value) {
        let object = match &self.within {
            Some(outer) => &mut grant[outer],
            None => grant,
        };
        let Some(members) = object.as_object_mut() else { return };
        match &self.value {
            Some(value) => members.insert(self.name.clone(), value.clone()),
            None => members.remove(&self.name),
        };
    }

    /// Whether it is there, and nothing.
    pub(super) fn is_null(&self) -> bool {
        self.value == Some(Value::Null)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = self.within.iter().map(|outer| format!("{outer}.")).collect::<String>();
        match &self.value {
            Some(value) => write!(f, "whose {within}{} is {value}", self.name),
            None => write!(f, "without {within}{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_left_out_once_and_has_every_value_once() {
        let grant = json!({"purpose": "x", "signature": "s", "budget": {"queries": 1}});
        let forms = of(&grant);
        let named: Vec<String> =
            forms.iter().filter(|form| form.value.is_none()).map(ToString::to_string).collect();
        let all = ["budget", "purpose", "budget.queries", "not_before", "status", "filter.scopes"];
        assert_eq!(named, all.map(|name| format!("without {name}")));
        assert_eq!(forms.len(), all.len() * (values().len() + 1));
        let mut changed = grant.clone();
        forms
            .iter()
            .find(|form| form.to_string() == "whose budget.queries is -1")
            .unwrap()
            .put_into(&mut changed);
        assert_eq!(changed, json!({"purpose": "x", "signature": "s", "budget": {"queries": -1}}));
        forms.iter().find(|form| form.to_string() == "without budget").unwrap().put_into(&mut changed);
        assert_eq!(changed, json!({"purpose": "x", "signature": "s"}));
    }
}

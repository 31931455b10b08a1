//! The permissions of a namespace, as they are set (RFC-0015 2.3).

use super::{EntryError, Must, refused};
use crate::namespaces::{Access, MAX_ALLOWED};
use oap_identity::json;
use serde::Deserialize;
use serde_json::Value;

/// What to set of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetPermissions {
    /// Its permissions; none takes them away.
    pub permissions: Option<GivenPermissions>,
}

/// Permissions that name agents as their writer does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenPermissions {
    /// What every agent may do that is not named.
    pub default: Access,
    /// Who may do something else.
    pub allow: Vec<(String, Access)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    namespace: Option<String>,
    permissions: Option<Set>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    default: Access,
    #[serde(default)]
    allow: Vec<Allowed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    agent: String,
    access: Access,
}

impl SetPermissions {
    /// Reads what to set of the namespace that an address names.
    ///
    /// # Errors
    /// [`EntryError`], naming the field.
    pub fn read(text: &[u8], namespace: &str) -> Result<Self, EntryError> {
        let body = json::parse(text).map_err(EntryError::NotJson)?;
        if body.get("permissions").is_none() {
            return refused("permissions", Must::Required);
        }
        let Given { namespace: said, permissions } = json::from_value::<Given>(Value::clone(&body))?;
        if said.is_some_and(|said| said != namespace) {
            return refused("namespace", Must::Address);
        }
        let Some(Set { default, allow }) = permissions else { return Ok(Self { permissions: None }) };
        if allow.len() > MAX_ALLOWED {
            return refused("permissions.allow", Must::OneAgent);
        }
        let allow = allow.into_iter().map(|Allowed { agent, access }| (agent, access)).collect();
        Ok(Self { permissions: Some(GivenPermissions { default, allow }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_read_strictly() {
        let read = |text: &str| SetPermissions::read(text.as_bytes(), "policy");
        let set = read(r#"{"permissions":{"default":"read","allow":[{"agent":"a","access":"write"}]}}"#);
        let given = set.unwrap().permissions.unwrap();
        assert_eq!((given.default, given.allow), (Access::Read, vec![("a".to_owned(), Access::Write)]));
        assert_eq!(read(r#"{"namespace":"policy","permissions":null}"#).unwrap().permissions, None);
        for (text, field) in [
            ("{}", "permissions"),
            (r#"{"permissions":{}}"#, "default"),
            (r#"{"permissions":{"default":"all"}}"#, "default"),
            (r#"{"permissions":null,"namespace":"x"}"#, "namespace"),
            (r#"{"permissions":null,"more":1}"#, "more"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(field), "{text}: {error}");
        }
    }
}

//! Who may do what with the semantic entries of a namespace (RFC-0015 2.3): among the owner's own agents alone, and never for a grantee.
//!
//! | namespace | agent | may |
//! |---|---|---|
//! | without permissions of its own | any | write entries, and change its own |
//! | with permissions | in `allow` | what that says; with `write` it changes what others wrote there, too |
//! | with permissions | any other | what `default` says |
//! | any | with `memory.admin` | everything |

use oap_identity::Did;
use oap_memory::closed_enum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most namespaces that have permissions.
pub const MAX_SHARED: usize = 1000;
/// Most agents that are named in those of one.
pub const MAX_ALLOWED: usize = 64;

closed_enum! {
    /// What an agent may do with the entries of a namespace; each includes those before it.
    Access {
        /// Not even know of them.
        None = "none",
        /// Read them.
        Read = "read",
        /// Write them.
        Write = "write",
    }
}

/// The permissions of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// What every agent may do that is not named.
    pub default: Access,
    /// What some may do in place of that.
    pub allow: BTreeMap<Did, Access>,
}

/// The namespaces that have permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces(BTreeMap<String, Sharing>);

impl FromIterator<(String, Sharing)> for Namespaces {
    fn from_iter<T: IntoIterator<Item = (String, Sharing)>>(from: T) -> Self {
        Self(from.into_iter().collect())
    }
}

impl Namespaces {
    /// The permissions of a namespace, where it has any.
    #[must_use]
    pub fn of(&self, namespace: &str) -> Option<&Sharing> {
        self.0.get(namespace)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// What an agent may do in a namespace.
    #[must_use]
    pub fn access(&self, namespace: &str, agent: &Did, is_admin: bool) -> Access {
        match self.of(namespace) {
            Some(_) if is_admin => Access::Write,
            None => Access::Write,
            Some(sharing) => sharing.allow.get(agent).copied().unwrap_or(sharing.default),
        }
    }

    /// Whether an agent is named as one that writes in a namespace: it changes what others wrote there.
    #[must_use]
    pub fn curates(&self, namespace: &str, agent: &Did) -> bool {
        self.of(namespace).is_some_and(|sharing| sharing.allow.get(agent) == Some(&Access::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_above_holds() {
        let did = |name: &str| format!("did:web:{name}.example").parse::<Did>().unwrap();
        let allow =
            [(did("curator"), Access::Write), (did("reader"), Access::Read), (did("out"), Access::None)];
        for default in Access::ALL {
            let sharing = Sharing { default: *default, allow: allow.iter().cloned().collect() };
            let all: Namespaces = [("policy".to_owned(), sharing)].into_iter().collect();
            for (name, access) in [
                ("curator", Access::Write),
                ("reader", Access::Read),
                ("out", Access::None),
                ("any", *default),
            ] {
                assert_eq!(all.access("policy", &did(name), false), access, "{default} {name}");
                assert_eq!(all.access("policy", &did(name), true), Access::Write);
                assert_eq!(all.access("other", &did(name), false), Access::Write);
                assert_eq!(all.curates("policy", &did(name)), name == "curator");
                assert!(!all.curates("other", &did(name)));
            }
        }
        assert!(Access::None < Access::Read && Access::Read < Access::Write);
    }
}

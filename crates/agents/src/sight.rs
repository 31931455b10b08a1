//! Which records an agent may see, and which it may change.
//!
//! | record | seen by |
//! |---|---|
//! | the agent's own | the agent |
//! | what was its own and private, and the owner corrected | the agent, which does not change it |
//! | stopped by the guard, and not yet accepted by the owner | nobody |
//! | `private`, or in the working tier | its author alone |
//! | `restricted` | its author alone |
//! | any other of the owner's | every agent of the owner's that may read |
//!
//! A semantic entry stands in a namespace, whose permissions come on top ([`crate::namespaces`]), for its author too.
//!
//! What an agent may not see does not exist for it: it is not matched, not ranked with, not counted, and asking for it is answered
//! as asking for what never was.

use crate::namespaces::{Access, Namespaces};
use crate::quarantine::is_quarantined;
use oap_identity::Did;
use oap_memory::item::Sensitivity;
use oap_memory::record::{Head, Tier, Visibility};

/// An agent's view of its owner's memory.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// Who looks.
    pub agent: &'a Did,
    /// Whether it may change what others wrote: `memory.admin`.
    pub changes_all: bool,
    /// The permissions of namespaces.
    pub namespaces: &'a Namespaces,
}

impl Sight<'_> {
    /// Whether the agent may see a record at all, whatever its state.
    #[must_use]
    pub fn sees(&self, head: &Head) -> bool {
        let is_shared = head.meta.tier != Tier::Working
            && head.meta.visibility != Visibility::Private
            && head.sensitivity != Sensitivity::Restricted;
        !is_quarantined(head) && (self.has(head) || is_shared) && self.access_to(head) >= Access::Read
    }

    /// What the agent may do in a namespace of semantic entries.
    #[must_use]
    pub fn access(&self, namespace: &str) -> Access {
        self.namespaces.access(namespace, self.agent, self.changes_all)
    }

    fn access_to(&self, head: &Head) -> Access {
        match &head.meta.namespace {
            Some(namespace) if head.meta.tier == Tier::Semantic => self.access(namespace),
            _ => Access::Write,
        }
    }

    fn curates(&self, head: &Head) -> bool {
        let namespace = head.meta.namespace.as_ref().filter(|_| head.meta.tier == Tier::Semantic);
        namespace.is_some_and(|namespace| self.namespaces.curates(namespace, self.agent))
    }

    /// Whether the agent wrote the version in force.
    #[must_use]
    pub fn wrote(&self, head: &Head) -> bool {
        *head.meta.author == *self.agent
    }

    /// Whether a record is the agent's: it wrote the version in force, or what it wrote stays private to it in the owner's words.
    #[must_use]
    pub fn has(&self, head: &Head) -> bool {
        **head.meta.whose() == *self.agent
    }

    /// Whether the agent, which sees a record, may correct it or take it back.
    #[must_use]
    pub fn may_change(&self, head: &Head) -> bool {
        self.sees(head)
            && self.access_to(head) == Access::Write
            && (self.wrote(head) || self.changes_all || self.curates(head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::{ItemId, Timestamp};
    use oap_memory::item::{Body, Defaults};
    use oap_memory::record::Meta;
    use serde_json::json;

    fn head(author: &Did, visibility: Visibility, tier: Tier, sensitivity: &str) -> Head {
        let (scope, now) = ("personal".parse().unwrap(), Timestamp::from_millis(0));
        let item = json!({"kind": "fact", "content": {"text": "x"}, "sensitivity": sensitivity});
        let body = Body::parse(&item, &Defaults { principal: author, scope: &scope, now }).unwrap();
        let meta = Meta { visibility, tier, ..Meta::owner(author.clone(), false) };
        Head::new(ItemId::from_bytes([0; 16]), &body, meta)
    }

    #[test]
    fn the_table_above_holds() {
        let (a, b): (Did, Did) = ("did:web:a.example".parse().unwrap(), "did:web:b.example".parse().unwrap());
        let owner: Did = "did:web:owner.example".parse().unwrap();
        let namespaces = Namespaces::default();
        for visibility in Visibility::ALL {
            for tier in Tier::ALL {
                for sensitivity in Sensitivity::ALL {
                    let head = head(&b, *visibility, *tier, sensitivity.as_str());
                    let others = *visibility != Visibility::Private
                        && *tier != Tier::Working
                        && *sensitivity != Sensitivity::Restricted;
                    let mut stopped = head.clone();
                    stopped.meta.needs_verification = true;
                    stopped.labels = std::sync::Arc::new(vec![crate::quarantine::LABEL.to_owned()]);
                    for (agent, changes_all) in [(&a, true), (&b, true), (&b, false)] {
                        let sight = Sight { agent, changes_all, namespaces: &namespaces };
                        assert!(!sight.sees(&stopped) && !sight.may_change(&stopped), "{stopped:?}");
                        // What the owner accepted is a record like others.
                        let mut accepted = stopped.clone();
                        accepted.meta.needs_verification = false;
                        assert_eq!(sight.sees(&accepted), sight.sees(&head), "{accepted:?}");
                    }
                    for changes_all in [false, true] {
                        let sight = Sight { agent: &a, changes_all, namespaces: &namespaces };
                        assert_eq!(sight.sees(&head), others, "{head:?}");
                        assert_eq!(sight.may_change(&head), others && changes_all, "{head:?}");
                        let own = Sight { agent: &b, changes_all, namespaces: &namespaces };
                        assert!(own.sees(&head) && own.may_change(&head), "{head:?}");
                        // In the owner's words it is read as before where it was the agent's alone, and is the owner's to change.
                        let mut corrected = head.clone();
                        corrected.write_as(owner.clone(), &owner);
                        let is_kept = corrected.meta.is_for_one() && *sensitivity != Sensitivity::Restricted;
                        assert_eq!(own.sees(&corrected), is_kept || others, "{corrected:?}");
                        assert_eq!(own.may_change(&corrected), (is_kept || others) && changes_all);
                        assert_eq!(sight.sees(&corrected), others, "{corrected:?}");
                        assert!(!own.wrote(&corrected) && own.has(&corrected) == is_kept);
                    }
                }
            }
        }
    }
}

//! What a gateway declares of itself in its memory manifest: nothing that is asked of it goes beyond.

use crate::world::{GENERAL, whole_name};
use serde_json::Value;
use std::time::Duration;

/// An endpoint that the memory manifest names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Where queries go.
    Query,
    /// Where grants are exchanged. The state of one is below it.
    Grant,
    /// Where a grantee gets its export.
    Export,
    /// Where the status list is.
    Status,
}

impl Place {
    const ALL: [Self; 4] = [Self::Query, Self::Grant, Self::Export, Self::Status];

    /// Its member in `endpoints`, and where it is without one (protocol section 5.1).
    const fn usual(self) -> (&'static str, &'static str) {
        match self {
            Self::Query => ("query", "/oap/memory/query"),
            Self::Grant => ("grant", "/oap/memory/grant"),
            Self::Export => ("export", "/oap/memory/export"),
            Self::Status => ("revocation", "/oap/memory/status"),
        }
    }
}

/// Limits, thresholds, profiles and endpoints of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// Where belief begins, 0 to 1.
    pub belief_threshold: f64,
    /// Most items of a grant.
    pub max_items: u64,
    /// Longest life of a grant, in days.
    pub max_days: u64,
    /// Whether it has a model of embeddings.
    pub embeddings: bool,
    /// Its redaction profiles; `None` where it does not say.
    profiles: Option<Vec<String>>,
    /// Paths of its endpoints, in the order of [`Place::ALL`].
    places: [String; 4],
    /// Where it takes letters of other gateways; `None` where it takes none.
    letters: Option<String>,
    /// Where the checkpoint of its log is; `None` where it names none.
    checkpoint: Option<String>,
    /// Where it witnesses the logs of others; `None` where it does not.
    witness: Option<String>,
}

impl Default for Declared {
    fn default() -> Self {
        Self::of(&Value::Null, "")
    }
}

/// By how much a grant ends before its longest life does: clocks differ.
const EARLY: Duration = Duration::from_secs(600);

impl Declared {
    /// From a memory manifest of a gateway at an origin. What it does not say is as the protocol has it, or modest.
    #[must_use]
    pub fn of(manifest: &Value, origin: &str) -> Self {
        let exchange = &manifest["memory_exchange"];
        let profiles = exchange["supported_redaction_profiles"].as_array();
        let named = |member: &str| {
            let here = manifest["endpoints"][member].as_str().and_then(|url| url.strip_prefix(origin));
            here.filter(|path| path.starts_with('/')).map(str::to_owned)
        };
        let place = |place: Place| {
            let (member, usual) = place.usual();
            named(member).unwrap_or_else(|| usual.to_owned())
        };
        Self {
            belief_threshold: manifest["belief_threshold"].as_f64().unwrap_or(0.5),
            max_items: exchange["max_grant_size_items"]
                .as_u64()
                .or(manifest["max_grant_size_items"].as_u64())
                .unwrap_or(50),
            max_days: exchange["max_grant_duration_days"].as_u64().unwrap_or(30),
            embeddings: manifest["embedding_profiles"].as_array().is_some_and(|all| !all.is_empty()),
            profiles: profiles.map(|all| all.iter().filter_map(|p| p.as_str().map(str::to_owned)).collect()),
            places: Place::ALL.map(place),
            letters: named("peer"),
            checkpoint: named("checkpoint"),
            witness: named("witness"),
        }
    }

    /// Where letters of other gateways are taken, if anywhere.
    #[must_use]
    pub fn letters(&self) -> Option<&str> {
        self.letters.as_deref()
    }

    /// Where the checkpoint of its own log is, if anywhere.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&str> {
        self.checkpoint.as_deref()
    }

    /// What stands before the addresses where it witnesses the logs of others, if anywhere.
    #[must_use]
    pub fn witness(&self) -> Option<&str> {
        self.witness.as_deref()
    }

    /// The path of an endpoint.
    #[must_use]
    pub fn at(&self, place: Place) -> &str {
        let [query, grant, export, status] = &self.places;
        match place {
            Place::Query => query,
            Place::Grant => grant,
            Place::Export => export,
            Place::Status => status,
        }
    }

    /// Whether a grant may name this profile.
    #[must_use]
    pub fn has_profile(&self, name: &str) -> bool {
        self.profiles.as_ref().is_none_or(|all| all.iter().any(|known| known == name))
    }

    /// The profile of grants that are not about profiles: the first of [`GENERAL`] that the manifest names; `None` where it names others alone.
    #[must_use]
    pub fn general(&self) -> Option<String> {
        GENERAL.into_iter().map(whole_name).find(|name| self.has_profile(name))
    }

    /// How long the grants of probes live: a month, or what is allowed.
    #[must_use]
    pub fn life(&self) -> Duration {
        Duration::from_secs(self.max_days.clamp(1, 30) * 86_400) - EARLY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_manifest_says_counts() {
        let manifest = json!({
            "belief_threshold": 0.8, "max_grant_size_items": 7,
            "memory_exchange": {"max_grant_duration_days": 2, "supported_redaction_profiles": ["a"]},
            "endpoints": {"query": "https://g.example/ask", "grant": "https://other.example/grant"},
        });
        let declared = Declared::of(&manifest, "https://g.example");
        assert_eq!(declared.at(Place::Query), "/ask");
        assert_eq!(declared.at(Place::Grant), "/oap/memory/grant");
        assert_eq!(declared.letters(), None);
        let peer = json!({"endpoints": {"peer": "https://g.example/letters"}});
        assert_eq!(Declared::of(&peer, "https://g.example").letters(), Some("/letters"));
        let log = json!({"endpoints": {"checkpoint": "https://g.example/log", "witness": "https://other.example/w"}});
        let log = Declared::of(&log, "https://g.example");
        assert_eq!((log.checkpoint(), log.witness()), (Some("/log"), None));
        assert_eq!((declared.max_items, declared.max_days, declared.belief_threshold), (7, 2, 0.8));
        assert!(declared.has_profile("a") && !declared.has_profile("b"));
        assert_eq!(declared.life(), Duration::from_secs(2 * 86_400 - 600));
        assert!(Declared::default().has_profile("b"));
        assert_eq!(declared.general(), None);
        let manifest =
            json!({"memory_exchange": {"supported_redaction_profiles": ["oap.profile.projection.task.v1"]}});
        assert_eq!(Declared::of(&manifest, "").general().as_deref(), Some("oap.profile.projection.task.v1"));
        assert_eq!(Declared::default().general().as_deref(), Some("oap.profile.projection.memory.v1"));
    }
}

//! Whose word a record is, and how far it is believed.

use oap_memory::closed_enum;
use oap_memory::item::Confidence;
use oap_memory::record::Visibility;
use serde_json::{Map, Value};
use std::borrow::Cow;

closed_enum! {
    /// Whose word a record is (protocol section 11).
    Level {
        /// The owner said it.
        UserStated = "user_stated",
        /// A tool's result.
        ToolVerified = "tool_verified",
        /// An agent's conclusion.
        AgentInferred = "agent_inferred",
        /// Taken from memory of an earlier conversation.
        Recalled = "recalled",
        /// From elsewhere: a web page, a mail, another program's export.
        External = "external",
    }
}

/// Under what name of an item's `extensions` its level and source stand.
pub const EXTENSION: &str = "dev.oap-memory.agent";

/// What the owner writes, without what an agent said of its own word: an item that is sent back as it was shown has it.
#[must_use]
pub fn owners_own(item: &Value) -> Cow<'_, Value> {
    let mut own = Cow::Borrowed(item);
    let claims = item.get("extensions").is_some_and(|extensions| extensions.get(EXTENSION).is_some());
    if claims && let Some(members) = own.to_mut().as_object_mut() {
        disown(members);
    }
    own
}

/// Takes from an item what an agent said of its own word.
pub fn disown(item: &mut Map<String, Value>) {
    if let Some(extensions) = item.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.remove(EXTENSION);
    }
}

/// The member of an item's `provenance` that an import writes.
const IMPORTED: &str = "imported_from";
/// Below this confidence a record waits for the owner's confirmation.
pub const VERIFIED_FROM: f64 = 0.7;

/// Whether what an agent writes waits for the owner's confirmation: where it is not sure enough, and always where a grant could
/// reach it, since its level is the agent's own claim.
#[must_use]
pub fn waits(confidence: f64, visibility: Visibility) -> bool {
    visibility == Visibility::Shared || confidence < VERIFIED_FROM
}

impl Level {
    /// The most confidence that it can have, 0 to 1; what is claimed beyond it is cut. It is also what a record has whose writer
    /// does not say.
    #[must_use]
    pub const fn most(self) -> f64 {
        match self {
            Self::UserStated => 1.0,
            Self::ToolVerified => 0.9,
            Self::AgentInferred => 0.6,
            Self::Recalled | Self::External => 0.5,
        }
    }

    /// The confidence of a record of this level whose writer claims that much.
    #[must_use]
    pub fn confidence(self, claimed: Option<Confidence>) -> f64 {
        claimed.map_or(self.most(), |claimed| claimed.get().min(self.most()))
    }

    /// Whether an agent may claim it: what the owner said, the owner says.
    #[must_use]
    pub const fn can_be_claimed(self) -> bool {
        !matches!(self, Self::UserStated)
    }

    /// The level of an item with everything shown. `by_owner` says whether its record names the owner as its author.
    #[must_use]
    pub fn of(item: &Map<String, Value>, by_owner: bool) -> Self {
        if is_imported(item) {
            return Self::External;
        }
        if by_owner {
            return Self::UserStated;
        }
        claimed(item).unwrap_or(Self::AgentInferred)
    }

    /// The level of an item as far as it says so itself, whatever is hidden of it; that it is the owner's word, no item says.
    #[must_use]
    pub fn shown(item: &Map<String, Value>) -> Option<Self> {
        if is_imported(item) { Some(Self::External) } else { claimed(item) }
    }
}

fn is_imported(item: &Map<String, Value>) -> bool {
    item.get("provenance").is_some_and(|provenance| provenance.get(IMPORTED).is_some())
}

/// The level that the writer of an item claims.
fn claimed(item: &Map<String, Value>) -> Option<Level> {
    let claimed = item.get("extensions")?.get(EXTENSION)?.get("level")?.as_str()?;
    claimed.parse().ok().filter(|level: &Level| level.can_be_claimed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nobody_claims_the_owners_word() {
        let item = |extension: Value| match json!({"extensions": {EXTENSION: extension}}) {
            Value::Object(item) => item,
            _ => Map::new(),
        };
        assert_eq!(Level::of(&item(json!({"level": "tool_verified"})), false), Level::ToolVerified);
        assert_eq!(Level::of(&item(json!({"level": "user_stated"})), false), Level::AgentInferred);
        assert_eq!(Level::of(&item(json!({"level": 1})), false), Level::AgentInferred);
        assert_eq!(Level::of(&item(json!({"level": "external"})), true), Level::UserStated);
        let mut imported = item(json!({"level": "tool_verified"}));
        imported.insert("provenance".to_owned(), json!({"imported_from": "chatgpt"}));
        assert_eq!(Level::of(&imported, true), Level::External);
        assert_eq!(Level::of(&imported, false), Level::External);
        // What is shown of it says no more.
        assert_eq!(Level::shown(&imported), Some(Level::External));
        assert_eq!(Level::shown(&item(json!({"level": "tool_verified"}))), Some(Level::ToolVerified));
        assert_eq!(Level::shown(&item(json!({"level": "user_stated"}))), None);
        assert_eq!(Level::shown(&Map::new()), None);
    }

    #[test]
    fn what_the_owner_sends_back_is_no_agents_word() {
        let shown =
            json!({"kind": "fact", "extensions": {EXTENSION: {"level": "external"}, "org.example": 1}});
        assert_eq!(*owners_own(&shown), json!({"kind": "fact", "extensions": {"org.example": 1}}));
        for other in
            [json!({"extensions": {"org.example": 1}}), json!({"extensions": [EXTENSION]}), json!("x")]
        {
            assert_eq!(*owners_own(&other), other);
        }
    }

    #[test]
    fn what_a_grant_could_reach_waits_whatever_it_claims() {
        for (confidence, visibility, expected) in [
            (0.9, Visibility::Shared, true),
            (0.9, Visibility::Local, false),
            (0.9, Visibility::Private, false),
            (0.6, Visibility::Local, true),
        ] {
            assert_eq!(waits(confidence, visibility), expected, "{confidence} {visibility}");
        }
    }

    #[test]
    fn a_claim_is_cut_at_its_level() {
        let claimed = |value: f64| Some(Confidence::try_from(value).unwrap());
        assert!((Level::AgentInferred.confidence(claimed(1.0)) - 0.6).abs() < f64::EPSILON);
        assert!((Level::ToolVerified.confidence(claimed(0.3)) - 0.3).abs() < f64::EPSILON);
        assert!((Level::External.confidence(None) - 0.5).abs() < f64::EPSILON);
    }
}

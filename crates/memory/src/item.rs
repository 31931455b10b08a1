//! The memory item (RFC 0010 section 3.2, protocol section 4): reading it strictly from the wire.

mod expected;
mod members;

pub use expected::{Expected, NotConfidence, NotOneOf, NotShort};
pub use members::short_text;

use crate::form::CONCEALED;
use crate::size;
use members::{
    boolean, confidence, extensions, ids, labels, object, open_object, optional, parsed, read, short,
    structured, text_of, time, ttl_days,
};
use oap_identity::json::quoted;
use oap_identity::{Did, ItemId, ReceiptId, ScopeId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// Longest text of an item, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// Largest `content.structured`, in bytes of its JSON.
pub const MAX_STRUCTURED: usize = 64 * 1024;
/// Largest `extensions`, in bytes of its JSON.
pub const MAX_EXTENSIONS: usize = 16 * 1024;
/// Largest `provenance`, in bytes of its JSON, without what the gateway adds.
pub const MAX_PROVENANCE: usize = 16 * 1024;
/// Largest `embedding`, in bytes of its JSON.
pub const MAX_EMBEDDING: usize = 16 * 1024;
/// Most items that an item was made from.
pub const MAX_DERIVED: usize = 1024;
/// Most labels of an item.
pub const MAX_LABELS: usize = 64;
/// Longest label, subject or other short text, in characters.
pub const MAX_SHORT: usize = 256;
/// Longest life, in days.
pub const MAX_TTL_DAYS: u32 = 36_500;

/// Why an item was refused. The text names the member and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// A member that the item schema does not have.
    #[error("unknown member{}: put it under extensions.<did or reverse domain>", quoted(.0))]
    Unknown(String),
    /// A member that `content` does not have.
    #[error("unknown member {}: content has text and structured", of_content(.0))]
    UnknownContent(String),
    /// A member of the wrong type or value.
    #[error("{member}: {expected}")]
    Member {
        /// The member's path.
        member: String,
        /// What it must be.
        expected: Expected,
    },
    /// Neither text nor structured content.
    #[error("content: needs text or structured")]
    Empty,
    /// `owner_did` is somebody else.
    #[error("owner_did: must be {0} or absent")]
    OtherOwner(Did),
    /// A member that the gateway makes itself.
    #[error("{0}: is made by the gateway; leave it out")]
    Made(&'static str),
}

fn member<T>(member: impl Into<String>, expected: Expected) -> Result<T, ItemError> {
    Err(ItemError::Member { member: member.into(), expected })
}

#[doc(hidden)]
#[macro_export]
macro_rules! closed_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
            schemars::JsonSchema, strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray,
            strum::VariantNames,
        )]
        #[strum(parse_err_ty = $crate::item::NotOneOf, parse_err_fn = Self::unknown)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] #[strum(serialize = $text)] $variant),+
        }

        impl $name {
            /// Every value, in the order of the protocol.
            pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

            /// The text on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                self.into()
            }

            fn unknown(_: &str) -> $crate::item::NotOneOf {
                $crate::item::NotOneOf(<Self as strum::VariantNames>::VARIANTS)
            }
        }
    };
}
pub(crate) use closed_enum;

closed_enum! {
    /// What sort of memory an item is (RFC 0010 section 3.2).
    Kind {
        /// Something held to be true.
        Fact = "fact",
        /// What the person likes.
        Preference = "preference",
        /// One turn of a conversation.
        ConversationTurn = "conversation_turn",
        /// A summary of other memory.
        Summary = "summary",
        /// Something that an agent noticed.
        Observation = "observation",
        /// A pointer to a document.
        DocumentReference = "document_reference",
    }
}

closed_enum! {
    /// How much harm disclosure would do (protocol section 4). `restricted` needs to be named in a filter.
    #[allow(missing_docs, reason = "the names say it")]
    Sensitivity {
        /// Nobody minds.
        Public = "public",
        Internal = "internal",
        /// Named parties only.
        Confidential = "confidential",
        /// Never by default.
        Restricted = "restricted",
    }
}

/// Confidence in an item, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
// Its schema is its own: a number has no bounds.
#[schemars(!try_from, !into)]
pub struct Confidence(#[schemars(range(min = 0, max = 1))] f64);

#[allow(missing_docs, reason = "the names say it")]
impl Confidence {
    /// The highest there is: what a person said or checked.
    pub const CERTAIN: Self = Self(1.0);

    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Eq for Confidence {}

impl TryFrom<f64> for Confidence {
    type Error = NotConfidence;
    fn try_from(value: f64) -> Result<Self, NotConfidence> {
        // `-0.0` and `0` are one value on the wire.
        if (0.0..=1.0).contains(&value) { Ok(Self(value + 0.0)) } else { Err(NotConfidence) }
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        confidence.0
    }
}

/// Everything of an item that its owner may keep to themselves: all that is concealed in its commitment.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// The context that the item belongs to.
    pub scope_id: ScopeId,
    /// What sort of memory it is.
    pub kind: Kind,
    /// Whom or what it is about.
    pub subject_entity_id: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// What it says, for machines; may be a canonical entity (RFC 0005).
    pub structured: Option<Map<String, Value>>,
    /// The embedding's model and place.
    pub embedding: Option<Map<String, Value>>,
    /// When it became known.
    pub captured_at: Timestamp,
    /// How sure the owner is of it.
    pub confidence: Confidence,
    /// Further provenance tags (OAP-CORE 17.2), kept as they came.
    pub provenance: Map<String, Value>,
    /// Labels, sorted, each once.
    pub labels: Vec<String>,
    /// Days of life from `captured_at`.
    pub ttl_days: Option<u32>,
    /// End of life; outranks `ttl_days`.
    pub expires_at: Option<Timestamp>,
    /// Whether it may leave in an export, or under a grant to another.
    pub exportable: bool,
    /// How much harm disclosure would do.
    pub sensitivity: Sensitivity,
    /// The items that it was made from.
    pub derived_from: Vec<ItemId>,
    /// Members of others, under a DID or a reverse domain.
    pub extensions: Map<String, Value>,
}

/// What the gateway adds where the writer is silent.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Defaults<'a> {
    pub principal: &'a Did,
    /// The scope of an item that names none.
    pub scope: &'a ScopeId,
    /// The gateway's clock.
    pub now: Timestamp,
}

/// What every version has, whatever its writer left open, as JSON pointers into its claims. Who reads a version without one of them reads
/// [`Defaults`] where something was held back.
pub const ALWAYS: [&str; 8] = [
    "/scope_id",
    "/kind",
    "/content",
    "/provenance/source_receipt",
    "/provenance/captured_at",
    "/provenance/confidence",
    "/exportable",
    "/sensitivity",
];

/// The members of an item that the gateway alone makes.
const MADE: [&str; 6] = ["item_id", "version", "updated_at", "status", "integrity", "embedding_ref"];
/// The member that says whose an item is.
const OWNER: &str = "owner_did";

/// A foreign member of `content`, as a message may show it.
fn of_content(name: &str) -> String {
    if quoted(name).is_empty() { "of content".to_owned() } else { format!("content.{name}") }
}

impl Body {
    /// Reads an item as its owner writes it. Members that the gateway makes (`item_id`, `version`, `status`,
    /// `updated_at`, `integrity`, `provenance.source_receipt`) are refused.
    ///
    /// # Errors
    /// [`ItemError`], naming the member.
    pub fn parse(item: &Value, defaults: &Defaults) -> Result<Self, ItemError> {
        let Value::Object(members) = item else { return member("item", Expected::Object) };
        if let Some(name) = members.keys().find(|name| {
            let name = name.as_str();
            !CONCEALED.contains(&name) && !MADE.contains(&name) && name != OWNER
        }) {
            return Err(ItemError::Unknown(name.clone()));
        }
        for made in MADE {
            if members.contains_key(made) {
                return Err(ItemError::Made(made));
            }
        }
        for (name, value) in members {
            if 1 + size::depth(value) > size::MAX_DEPTH {
                return member(name, Expected::Depth);
            }
        }
        if members.get(OWNER).is_some_and(|owner| owner != defaults.principal.as_str()) {
            return Err(ItemError::OtherOwner(defaults.principal.clone()));
        }
        let content = object(members, "content")?;
        if let Some(name) = content.keys().find(|k| *k != "text" && *k != "structured") {
            return Err(ItemError::UnknownContent(name.clone()));
        }
        let text = optional(&content, "text", "content.text", text_of(MAX_TEXT))?;
        let structured = optional(&content, "structured", "content.structured", structured)?;
        if text.as_ref().is_none_or(String::is_empty) && structured.as_ref().is_none_or(Map::is_empty) {
            return Err(ItemError::Empty);
        }
        let mut provenance = object(members, "provenance")?;
        if provenance.contains_key("source_receipt") {
            return Err(ItemError::Made("provenance.source_receipt"));
        }
        let captured_at = optional(&provenance, "captured_at", "provenance.captured_at", time)?;
        let confidence = optional(&provenance, "confidence", "provenance.confidence", confidence)?;
        provenance.remove("captured_at");
        provenance.remove("confidence");
        open_object(&provenance, "provenance", MAX_PROVENANCE)?;
        let embedding = optional(members, "embedding", "embedding", |v| match v {
            Value::Object(map) => Ok(map.clone()),
            _ => Err(Expected::Object),
        })?;
        if let Some(embedding) = &embedding {
            open_object(embedding, "embedding", MAX_EMBEDDING)?;
        }
        let body = Self {
            scope_id: optional(members, "scope_id", "scope_id", parsed)?
                .unwrap_or_else(|| defaults.scope.clone()),
            kind: match members.get("kind") {
                None => return member("kind", Expected::Required),
                Some(kind) => read(kind, "kind", parsed)?,
            },
            subject_entity_id: optional(members, "subject_entity_id", "subject_entity_id", short)?,
            text,
            structured,
            embedding,
            captured_at: captured_at.unwrap_or(defaults.now),
            confidence: confidence.unwrap_or(Confidence::CERTAIN),
            provenance,
            labels: optional(members, "labels", "labels", labels)?.unwrap_or_default(),
            ttl_days: optional(members, "ttl_days", "ttl_days", ttl_days)?,
            expires_at: optional(members, "expires_at", "expires_at", time)?,
            exportable: optional(members, "exportable", "exportable", boolean)?.unwrap_or(true),
            sensitivity: optional(members, "sensitivity", "sensitivity", parsed)?
                .unwrap_or(Sensitivity::Internal),
            derived_from: optional(members, "derived_from", "derived_from", ids)?.unwrap_or_default(),
            extensions: optional(members, "extensions", "extensions", extensions)?.unwrap_or_default(),
        };
        size::check(&body.parts())?;
        Ok(body)
    }

    /// The members that are made of parts, with their places.
    fn parts(&self) -> Vec<(&'static str, Value)> {
        let object = |map: &Map<String, Value>| Value::Object(map.clone());
        let ids = self.derived_from.iter().map(ItemId::to_string);
        vec![
            ("content.structured", self.structured.as_ref().map_or(Value::Null, object)),
            ("extensions", object(&self.extensions)),
            ("provenance", object(&self.provenance)),
            ("embedding", self.embedding.as_ref().map_or(Value::Null, object)),
            ("labels", self.labels.iter().map(String::as_str).collect()),
            ("derived_from", ids.collect()),
        ]
    }

    /// From when on the item is in no view: `expires_at`, else `captured_at + ttl_days` (protocol section 4).
    #[must_use]
    pub fn end_of_life(&self) -> Option<Timestamp> {
        self.expires_at.or_else(|| {
            let days = u64::from(self.ttl_days?);
            Some(self.captured_at.plus(Duration::from_secs(days * 86_400)))
        })
    }

    /// The entity type of the structured content, such as `oap.entity.contact`.
    #[must_use]
    pub fn entity_type(&self) -> Option<&str> {
        self.structured.as_ref()?.get("entity_type")?.as_str()
    }

    /// Of a contact: its names, e-mail addresses, telephone numbers and street addresses. Empty for anything else.
    #[must_use]
    pub fn people(&self) -> Vec<String> {
        self.structured.as_ref().map_or_else(Vec::new, crate::detect::of_contact)
    }

    /// The members of the wire form (RFC 0010 section 3.2) but for `item_id` and `owner_did`: all that a
    /// commitment conceals.
    #[must_use]
    pub fn members(&self, source_receipt: ReceiptId) -> Map<String, Value> {
        let mut content = Map::new();
        insert(&mut content, "text", self.text.as_ref());
        insert(&mut content, "structured", self.structured.as_ref());
        let mut provenance = self.provenance.clone();
        insert(&mut provenance, "source_receipt", Some(source_receipt.short()));
        insert(&mut provenance, "captured_at", Some(self.captured_at));
        provenance.insert("confidence".into(), number(self.confidence));
        let mut item = Map::new();
        insert(&mut item, "scope_id", Some(&self.scope_id));
        insert(&mut item, "kind", Some(self.kind));
        insert(&mut item, "subject_entity_id", self.subject_entity_id.as_ref());
        insert(&mut item, "content", Some(content));
        insert(&mut item, "embedding", self.embedding.as_ref());
        insert(&mut item, "provenance", Some(provenance));
        insert(&mut item, "labels", (!self.labels.is_empty()).then_some(&self.labels));
        insert(&mut item, "ttl_days", self.ttl_days);
        insert(&mut item, "expires_at", self.expires_at);
        insert(&mut item, "exportable", Some(self.exportable));
        insert(&mut item, "sensitivity", Some(self.sensitivity));
        insert(&mut item, "derived_from", (!self.derived_from.is_empty()).then_some(&self.derived_from));
        insert(&mut item, "extensions", (!self.extensions.is_empty()).then_some(&self.extensions));
        item
    }
}

/// A confidence as the canonical form writes it: `1`, not `1.0`.
pub(crate) fn number(confidence: Confidence) -> Value {
    let value = confidence.get();
    if value == 0.0 || value == 1.0 { Value::from(value as i64) } else { Value::from(value) }
}

fn insert<T: Serialize>(map: &mut Map<String, Value>, name: &str, value: Option<T>) {
    if let Some(value) = value
        && let Ok(value) = serde_json::to_value(value)
    {
        map.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(item: Value) -> Result<Body, ItemError> {
        let principal: Did = "did:web:user.example".parse().unwrap();
        let scope: ScopeId = "personal".parse().unwrap();
        let now = Timestamp::from_seconds(1_700_000_000);
        Body::parse(&item, &Defaults { principal: &principal, scope: &scope, now })
    }

    #[test]
    fn the_example_of_the_rfc() {
        let body = parse(json!({
            "owner_did": "did:web:user.example", "scope_id": "personal", "kind": "preference",
            "subject_entity_id": "ent_org_acme",
            "content": {"text": "User prefers morning meetings.",
                "structured": {"preference_kind": "scheduling", "value": {"preferred_days": ["tue", "thu"]}}},
            "embedding": {"model": "openai/text-embedding-3-small", "dimensions": 1536},
            "provenance": {"captured_at": "2026-05-01T14:00:00Z", "confidence": 0.92},
            "labels": ["scheduling", "preference", "scheduling"], "ttl_days": 365, "exportable": true,
        }))
        .unwrap();
        assert_eq!(body.labels, ["preference", "scheduling"]);
        assert_eq!(body.end_of_life().unwrap().to_string(), "2027-05-01T14:00:00.000Z");
        assert_eq!(body.sensitivity, Sensitivity::Internal);
    }

    #[test]
    fn what_every_version_has() {
        let body = parse(json!({"kind": "fact", "content": {"text": "x"}})).unwrap();
        let written = body.members(ReceiptId::from_bytes([0; 16]));
        let mut places: Vec<String> = Vec::new();
        for (name, value) in &written {
            match (name.as_str(), value) {
                ("provenance", Value::Object(tags)) => {
                    places.extend(tags.keys().map(|tag| format!("/{name}/{tag}")));
                }
                _ => places.push(format!("/{name}")),
            }
        }
        places.sort();
        let mut always = ALWAYS;
        always.sort_unstable();
        assert_eq!(places, always);
    }

    #[test]
    fn refusals_name_the_member() {
        let base = |patch: Value| {
            let mut item = json!({"kind": "fact", "content": {"text": "x"}});
            for (name, value) in patch.as_object().unwrap() {
                item[name] = value.clone();
            }
            parse(item).unwrap_err().to_string()
        };
        for (patch, names) in [
            (json!({"colour": "red"}), "colour"),
            (json!({"item_id": "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"}), "item_id"),
            (json!({"status": "current"}), "status"),
            (json!({"owner_did": "did:web:other.example"}), "owner_did"),
            (json!({"kind": "rumour"}), "kind"),
            (json!({"scope_id": "key-1"}), "scope_id"),
            (json!({"content": {}}), "content"),
            (json!({"content": {"text": 1}}), "content.text"),
            (json!({"content": {"text": "x", "html": "y"}}), "content.html"),
            (json!({"content": {"structured": []}}), "content.structured"),
            (json!({"content": {"structured": {"a": {"_sd": []}}}}), "content.structured"),
            (json!({"content": {"structured": {"a": [{"...": "x"}]}}}), "content.structured"),
            (
                json!({"content": {"structured": {"entity_type": "oap.entity.contact", "channels": [1]}}}),
                "content.structured",
            ),
            (json!({"provenance": {"confidence": 1.01}}), "provenance.confidence"),
            (json!({"provenance": {"captured_at": "yesterday"}}), "provenance.captured_at"),
            (json!({"provenance": {"source_receipt": "rec_1"}}), "provenance.source_receipt"),
            (json!({"provenance": {"_sd": 1}}), "provenance"),
            (json!({"labels": ["a", 1]}), "labels"),
            (json!({"labels": [""]}), "labels"),
            (json!({"labels": ["a\u{0}"]}), "labels"),
            (json!({"ttl_days": 0}), "ttl_days"),
            (json!({"ttl_days": 1.5}), "ttl_days"),
            (json!({"extensions": {"colour": 1}}), "extensions"),
            (json!({"derived_from": ["x"]}), "derived_from"),
            (json!({"sensitivity": "secret"}), "sensitivity"),
        ] {
            let message = base(patch.clone());
            assert!(message.contains(names), "{patch}: {message}");
        }
        assert!(parse(json!([])).is_err());
        assert!(parse(json!({"content": {"text": "x"}})).unwrap_err().to_string().contains("kind"));
    }
}

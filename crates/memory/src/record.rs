//! The record behind an item (protocol section 11), the little of it that selection needs, and the whole item as it is stored.

use crate::commitment::Committed;
use crate::item::{Body, Confidence, Kind, Sensitivity, closed_enum};
use oap_identity::{Did, ItemId, ScopeId, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Borrow;
use std::sync::Arc;
use thin_vec::ThinVec;

closed_enum! {
    /// Where an item stands (protocol section 4). Only `current` items are in a view.
    Status {
        /// In force.
        Current = "current",
        /// Replaced by a later version.
        Superseded = "superseded",
        /// Taken back.
        Retracted = "retracted",
        /// Its content key is destroyed; the salted links remain.
        Erased = "erased",
    }
}

closed_enum! {
    /// The tier of a record (protocol section 11). The working tier is in no view.
    Tier {
        /// A scratch pad.
        Working = "working",
        /// What happened.
        Episodic = "episodic",
        /// What is so.
        Semantic = "semantic",
    }
}

closed_enum! {
    /// Who may reach a record at all; `shared` allows a grant to reach it, and is no grant.
    Visibility {
        /// Its author alone.
        Private = "private",
        /// The owner's own agents.
        Local = "local",
        /// A grant may reach it.
        Shared = "shared",
    }
}

/// What a record has beside the item's own members. Never on the wire of section 4.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Meta {
    /// The agent that wrote it.
    pub author: Arc<Did>,
    pub tier: Tier,
    /// Who may reach it.
    pub visibility: Visibility,
    /// Whether the owner has confirmed it.
    pub human_verified: bool,
    /// Whether it waits for confirmation; such a record is in no view.
    pub needs_verification: bool,
    /// The namespace of agent memory, where set.
    pub namespace: Option<Arc<String>>,
    /// The key in that namespace, where set.
    pub key: Option<Box<String>>,
    /// Whose what is not for others stays, where somebody else is the author: the agent whose private note the owner corrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_to: Option<Arc<Did>>,
}

impl Meta {
    /// The record of an item that the owner wrote through the items interface.
    #[must_use]
    pub fn owner(author: Did, human_verified: bool) -> Self {
        Self {
            author: Arc::new(author),
            tier: Tier::Episodic,
            visibility: Visibility::Shared,
            human_verified,
            needs_verification: false,
            namespace: None,
            key: None,
            private_to: None,
        }
    }

    /// Whose record it is: its author's, or that of who it stays private to.
    #[must_use]
    pub fn whose(&self) -> &Arc<Did> {
        self.private_to.as_ref().unwrap_or(&self.author)
    }

    /// Whether nobody but whose it is may reach it: it is private, or in the working tier.
    #[must_use]
    pub fn is_for_one(&self) -> bool {
        self.visibility == Visibility::Private || self.tier == Tier::Working
    }
}

/// The record as heads have had it from the first on: what came later stands behind the head ([`Head`]).
mod as_stored {
    use super::{Arc, Did, Meta, Tier, Visibility};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Stored {
        author: Arc<Did>,
        tier: Tier,
        visibility: Visibility,
        human_verified: bool,
        needs_verification: bool,
        namespace: Option<Arc<String>>,
        key: Option<String>,
    }

    pub fn serialize<S: Serializer>(meta: &Meta, to: S) -> Result<S::Ok, S::Error> {
        let Meta { author, tier, visibility, human_verified, needs_verification, namespace, key, .. } =
            meta.clone();
        let key = key.map(|key| *key);
        Stored { author, tier, visibility, human_verified, needs_verification, namespace, key }.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Meta, D::Error> {
        let Stored { author, tier, visibility, human_verified, needs_verification, namespace, key } =
            Stored::deserialize(from)?;
        let (key, private_to) = (key.map(Box::new), None);
        Ok(Meta { author, tier, visibility, human_verified, needs_verification, namespace, key, private_to })
    }
}

/// What selection needs of an item: kept in memory for every item, sealed beside the item's versions.
///
/// One pointer each for what many items have in common, and for lists that are nearly always empty: 144 bytes. In its stored form
/// [`Meta::private_to`] is left out; who stores it keeps that beside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Head {
    pub item_id: ItemId,
    /// The number of the last link of its chain.
    pub seq: u32,
    /// The number of the link whose version is in force.
    pub version_seq: u32,
    /// Where it stands.
    pub status: Status,
    pub scope_id: Arc<ScopeId>,
    pub kind: Kind,
    pub subject_entity_id: Option<Arc<String>>,
    /// Its labels, sorted.
    pub labels: Arc<Vec<String>>,
    /// When it became known.
    pub captured_at: Timestamp,
    /// How sure the owner is.
    pub confidence: Confidence,
    /// From when on it is in no view.
    pub end_of_life: Option<Timestamp>,
    /// Whether it may leave.
    pub exportable: bool,
    /// How much harm disclosure would do.
    pub sensitivity: Sensitivity,
    /// The record behind it.
    #[serde(with = "as_stored")]
    pub meta: Meta,
    /// When it was retracted, for retention.
    pub ended_at: Option<Timestamp>,
    /// Versions that were replaced and whose content is still kept: the number of the link, and when.
    pub replaced: ThinVec<(u32, Timestamp)>,
    pub few: Few,
}

/// What few items have, behind one pointer that is null where there is none of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Few(Option<Box<(Vec<ItemId>, Vec<String>)>>);

impl Few {
    /// These.
    #[must_use]
    pub fn new(derived_from: Vec<ItemId>, people: Vec<String>) -> Self {
        let none = derived_from.is_empty() && people.is_empty();
        Self((!none).then(|| Box::new((derived_from, people))))
    }

    /// The items that it was made from.
    #[must_use]
    pub fn derived_from(&self) -> &[ItemId] {
        self.0.as_ref().map_or(&[], |few| &few.0)
    }

    /// Of a contact: the names, addresses and numbers that are third-party spans in other items' text.
    #[must_use]
    pub fn people(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |few| &few.1)
    }
}

impl Serialize for Few {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.derived_from(), self.people()).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Few {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <(Vec<ItemId>, Vec<String>)>::deserialize(from)
            .map(|(derived_from, people)| Self::new(derived_from, people))
    }
}

impl Head {
    /// The head of a new item.
    #[must_use]
    pub fn new(item_id: ItemId, body: &Body, meta: Meta) -> Self {
        let mut head = Self {
            item_id,
            seq: 0,
            version_seq: 0,
            status: Status::Current,
            scope_id: Arc::new(body.scope_id.clone()),
            kind: body.kind,
            subject_entity_id: None,
            labels: Arc::default(),
            captured_at: body.captured_at,
            confidence: body.confidence,
            end_of_life: None,
            exportable: false,
            sensitivity: Sensitivity::Restricted,
            meta,
            ended_at: None,
            replaced: ThinVec::new(),
            few: Few::default(),
        };
        head.take(body);
        head
    }

    /// Takes over what a new version says.
    pub fn take(&mut self, body: &Body) {
        self.scope_id = Arc::new(body.scope_id.clone());
        self.kind = body.kind;
        self.subject_entity_id = body.subject_entity_id.clone().map(Arc::new);
        self.labels = Arc::new(body.labels.clone());
        self.captured_at = body.captured_at;
        self.confidence = body.confidence;
        self.end_of_life = body.end_of_life();
        self.exportable = body.exportable;
        self.sensitivity = body.sensitivity;
        self.few = Few::new(body.derived_from.clone(), body.people());
    }

    /// Makes somebody the author of what it says from now on, the owner or an agent: what is for one agent alone stays that one's in the
    /// owner's words, unless these are `restricted`.
    pub fn write_as(&mut self, author: Did, owner: &Did) {
        let whose = self.meta.whose();
        let stays = author == *owner
            && **whose != *owner
            && self.meta.is_for_one()
            && self.sensitivity != Sensitivity::Restricted;
        self.meta.private_to = stays.then(|| whose.clone());
        self.meta.author = Arc::new(author);
    }

    /// Whether the item is alive at that time: current and not expired.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.status == Status::Current && self.end_of_life.is_none_or(|end| now < end)
    }
}

/// A whole item, as the store has it.
#[derive(Debug, Clone)]
pub struct ItemRecord {
    /// The version in force.
    pub committed: Committed,
    /// The item's chain, oldest link first: each link in canonical form, as stored.
    pub chain: Vec<String>,
    /// The receipt of its capture, in canonical form, as stored.
    pub capture_receipt: String,
}

impl Borrow<Committed> for ItemRecord {
    fn borrow(&self) -> &Committed {
        &self.committed
    }
}

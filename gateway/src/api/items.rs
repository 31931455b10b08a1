//! Items: written, read, listed, corrected, taken back and put back.

use super::{Document, endpoints};
use oap_identity::{Did, Hash, ItemId, ReceiptId, ScopeId, Timestamp};
use oap_memory::chain::Link;
use oap_memory::project::Explained;
use oap_memory::record::{Meta, Tier};
use oap_memory::{Kind, Status, TrustLevel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

endpoints! {
    /// Items as their owner sees them, newest first.
    ListItems: GET "/oap/owner/items" needs Read query(ListQuery) answers(ItemPage);
    /// Writes new items, all or none. An item without `items` around it is a list of one.
    WriteItems: POST "/oap/owner/items" needs Write body(NewItems) answers(WrittenItems);
    /// An item with its record, its chain and the former versions that are kept.
    ShowItem: GET "/oap/owner/items/{id}" at(ItemId) needs Read answers(WholeItem);
    /// What each rule of a profile does to an item at a trust level.
    ExplainItem: GET "/oap/owner/items/{id}/explain" at(ItemId) needs Read query(ExplainQuery) answers(Explanation);
    /// Changes what an item says; members that are not named stay.
    CorrectItem: POST "/oap/owner/items/{id}/correct" at(ItemId) needs Write body(Correction) answers(Written);
    /// Gives an item other labels.
    RelabelItem: POST "/oap/owner/items/{id}/relabel" at(ItemId) needs Write body(Relabelling) answers(Written);
    /// Takes an item out of every view.
    RetractItem: POST "/oap/owner/items/{id}/retract" at(ItemId) needs Write answers(Written);
    /// Takes an item out of every view that waits for the owner, where it says what the owner read.
    RejectItem: POST "/oap/owner/items/{id}/reject" at(ItemId) needs Write body(Rejection) answers(Written);
    /// Puts a retracted item back.
    RestoreItem: POST "/oap/owner/items/{id}/restore" at(ItemId) needs Write answers(Written);
    /// Confirms that an item is so.
    ConfirmItem: POST "/oap/owner/items/{id}/confirm" at(ItemId) needs Write body(Confirmation) answers(Written);
    /// Cuts an item's text anew with the detectors and contacts of today.
    ResealItem: POST "/oap/owner/items/{id}/reseal" at(ItemId) needs Write body(Resealing) answers(Resealed);
}

/// What is read of an item. The document has the other members of the protocol's section 4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Item {
    pub item_id: ItemId,
    /// Where it stands.
    pub status: Status,
    /// What sort of memory it is; absent of an erased one, as is what follows.
    #[serde(default)]
    pub kind: Option<Kind>,
    #[serde(default)]
    pub scope_id: Option<ScopeId>,
    #[serde(default)]
    pub labels: Vec<String>,
    /// What it says.
    #[serde(default)]
    pub content: Content,
    /// Where it comes from.
    #[serde(default)]
    pub provenance: Provenance,
    /// Its version, from 1.
    #[serde(default)]
    pub version: Option<u32>,
    /// In a list: who wrote it, the owner or an agent of theirs.
    #[serde(default)]
    pub author: Option<Did>,
    /// In a list: whether it waits for the owner's confirmation, and reaches no grantee before.
    #[serde(default)]
    pub waiting: bool,
    /// In a list: the tier of its record.
    #[serde(default)]
    pub tier: Option<Tier>,
    /// In a list: the namespace of agent memory, where set.
    #[serde(default)]
    pub namespace: Option<String>,
    /// In a list: the key in that namespace, where set.
    #[serde(default)]
    pub key: Option<String>,
    /// In a list: whether it can be relied on no more, as its writer said.
    #[serde(default)]
    pub stale: bool,
}

/// What an item says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// For people.
    #[serde(default)]
    pub text: Option<String>,
    /// For machines.
    #[serde(default)]
    pub structured: Option<Map<String, Value>>,
}

/// Where an item comes from, as far as it is read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// When it became known.
    #[serde(default)]
    pub captured_at: Option<Timestamp>,
}

/// An item in one line. An erased one has its id and its state alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Brief {
    /// When it became known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<Timestamp>,
    /// The beginning of what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gist: Option<String>,
    pub item_id: ItemId,
    /// What sort of memory it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// What a search found, in place of the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// Where it stands.
    pub status: Status,
}

/// What to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Only with this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only of this scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeId>,
    /// Only about this subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Only in this state; current ones if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Only those that wait for the owner's confirmation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting: bool,
    /// Only older than this item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ItemId>,
    /// At most so many, 1 to 1000; 50 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Items, and where to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemPage {
    /// The items, newest first.
    pub items: Vec<Document<Item>>,
    /// What to give as `before` for the next page; null where this is the last one.
    pub next: Option<ItemId>,
}

/// Items to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewItems {
    /// Items in the form of RFC 0010 section 3.2, 1 to 1000.
    pub items: Vec<Value>,
}

/// What was made of written items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenItems {
    /// One for each item, in the order given.
    pub items: Vec<Written>,
}

/// What was made of a written item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Written {
    pub item_id: ItemId,
    /// The receipt of the event.
    pub receipt_id: ReceiptId,
    /// The commitment now in force.
    pub commitment: Hash,
    /// The item's version.
    pub version: u32,
}

/// An item with everything beside it. An erased one has its chain alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WholeItem {
    /// Its links, the first one first.
    pub chain: Vec<Document<Link>>,
    pub item: Document<Item>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Document<Meta>>,
    /// Its former versions, as far as they are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<Vec<Value>>,
}

/// What to correct.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// The members that change.
    pub item: Value,
    /// The version that is corrected; whichever is in force if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// What to confirm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Confirmation {
    /// The version that was read; whichever is in force if absent, where the owner wrote it. Of what an agent wrote it has to be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// What is taken back of what waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// The version that was read: no other one is taken back.
    pub version: u32,
    /// The item that stays in its place, in force still; absent where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<ItemId>,
}

/// Which labels an item gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relabelling {
    /// The labels, in place of those that are there.
    pub labels: Vec<String>,
}

/// How an item is resealed: where its text would be cut in another way, unless `always`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resealing {
    /// Whether to say only if it would be.
    pub dry_run: bool,
    /// Whether to reseal it in any case.
    pub always: bool,
    /// When the job began that this is part of; now if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// Whether an item was resealed, or would be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Resealed {
    /// The answer to a dry run.
    Would {
        /// Whether it would be.
        would_reseal: bool,
    },
    /// What was done.
    Done {
        /// The new version; null where nothing changes.
        resealed: Option<Written>,
    },
}

/// What became of all items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllResealed {
    /// How many current items there were.
    pub seen: usize,
    /// Those that have a version more.
    pub resealed: Vec<ItemId>,
}

/// What to explain an item with.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// The profile's whole name.
    pub profile: String,
    /// The trust level.
    pub level: TrustLevel,
}

/// What each rule of a profile does to an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Explanation {
    pub item_id: ItemId,
    /// The trust level.
    pub level: TrustLevel,
    pub profile: String,
    /// What each rule does.
    pub rules: Vec<Explained>,
    /// The item as a grantee would see it.
    pub visible: Value,
}

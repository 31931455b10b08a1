//! Many items at once: found by the beginnings of their ids, by words, by selectors; relabelled and retracted.

use super::endpoints;
use super::holds::HeldItem;
use super::items::Brief;
use oap_identity::{ItemId, ScopeId, Timestamp};
use oap_memory::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Which items the beginnings of ids stand for.
    ResolveItems: POST "/oap/owner/items/resolve" needs Read body(ResolveQuery) answers(ResolvedItems);
    /// The items that hold words, the best first. Nothing is recorded.
    SearchItems: POST "/oap/owner/items/search" needs Read body(SearchQuery) answers(FoundItems);
    /// What a selection selects, and what deleting it would do. Nothing is written.
    SelectItems: POST "/oap/owner/items/select" needs Admin body(SelectQuery) answers(Selected);
    /// Gives at most 1000 items other labels, all or none.
    RelabelItems: POST "/oap/owner/items/relabel" needs Write body(BulkRelabel) answers(Changed);
    /// Takes at most 1000 items out of every view, all or none.
    RetractItems: POST "/oap/owner/items/retract" needs Write body(BulkRetract) answers(Changed);
}

/// Which items are meant.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveQuery {
    /// Beginnings of ids, at most [`MAX_PREFIXES`](crate::api::prefix::MAX_PREFIXES).
    pub ids: Vec<String>,
    /// Only items that were erased.
    #[serde(default)]
    pub erased: bool,
}

/// What one beginning stands for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    /// As it was given.
    pub given: String,
    /// The items that begin so, at most [`MAX_CANDIDATES`](crate::api::prefix::MAX_CANDIDATES): those that are there, or, where none is, those that were erased.
    pub found: Vec<ItemId>,
    /// Whether there are more.
    pub more: bool,
}

/// What beginnings of ids stand for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedItems {
    /// One for each beginning, in the order given.
    pub resolved: Vec<Resolved>,
}

/// What to search for.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// Words, at most [`MAX_QUERY`](oap_exchange::query::MAX_QUERY) bytes.
    pub text: String,
    /// Only of one of these kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
    /// Only among these; all current items if nothing is named.
    #[serde(default)]
    pub selection: Selection,
    /// At most so many, 1 to [`MAX_FOUND`](crate::service::search::MAX_FOUND); 20 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// What a search found.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FoundItems {
    /// The best of them.
    pub items: Vec<Brief>,
    /// How many hold one of the words.
    pub matched: usize,
}

/// Which items. One that fits every selector that is given, and of each selector one of its values.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// One of these items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemId>,
    /// With one of these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// About one of these subjects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Of one of these scopes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<ScopeId>,
    /// With one of these provenance tags: `<member>=<value>` of its provenance, such as `imported_from=chatgpt`, or
    /// `<item_id>@<commitment>` as receipts name it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provenance_tags: Vec<String>,
    /// Captured at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_after: Option<Timestamp>,
    /// Captured before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_before: Option<Timestamp>,
    /// Everything. Only times may stand beside it.
    #[serde(default)]
    pub all: bool,
}

/// What to look up before something is done to it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelectQuery {
    /// Which items.
    pub selection: Selection,
    /// Only current ones: those that can be relabelled or retracted.
    #[serde(default)]
    pub current: bool,
}

/// What a selection selects, and what deleting it would do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Selected {
    /// How many items.
    pub count: usize,
    /// Their ids, oldest first: what a change is to name.
    pub items: Vec<ItemId>,
    /// The newest of them.
    pub samples: Vec<Brief>,
    /// How many others were made from them: a deletion takes them along.
    pub derived_count: usize,
    /// The newest of those.
    pub derived: Vec<Brief>,
    /// How many of both are under a legal hold: a deletion takes them out of every view, and erases them when it ends.
    pub held_count: usize,
    /// The first of those.
    pub held: Vec<HeldItem>,
    /// How many active grants show one of them.
    pub grants_shrunk: usize,
}

/// Which labels items get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLabels {
    /// These, in place of those that are there; none removes all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<Vec<String>>,
    /// These too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Without these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// A relabelling of many items.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct BulkRelabel {
    /// Which items: 1 to [`MAX_BULK`](crate::service::bulk::MAX_BULK) by id, of those the ones that still fit the other selectors.
    pub selection: Selection,
    pub labels: NewLabels,
}

/// A retraction of many items.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRetract {
    /// Which items: 1 to [`MAX_BULK`](crate::service::bulk::MAX_BULK) by id, of those the ones that still fit the other selectors.
    pub selection: Selection,
}

/// What a bulk change did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The items that have another version or state now.
    pub changed: Vec<ItemId>,
    /// How many of the named ones were left alone: as they should be already, not current, or not selected any more.
    pub left: usize,
}

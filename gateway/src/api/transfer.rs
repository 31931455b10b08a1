//! Memory taken along and brought in: pages of a bundle, chunks of an import.

use super::document::Signed;
use super::{Document, endpoints};
use oap_identity::{BundleId, Did, Hash, ItemId, ScopeId, Timestamp};
use oap_memory::Kind;
use oap_memory::bundle::{Counts, Header, ItemLine, Trailer};
use oap_memory::receipt::Receipt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

endpoints! {
    /// The header of a bundle that is about to be written.
    ExportHeader: POST "/oap/owner/export/header" needs Admin body(ExportSelection) answers(Header);
    /// A page of a bundle: a line with `next`, where the next page begins, and then the lines.
    ExportPage: POST "/oap/owner/export/page" needs Admin body(PageRequest) answers(PageHead) as "application/jsonl";
    /// Signs a bundle's trailer, and records the export.
    ExportSeal: POST "/oap/owner/export/seal" needs Admin body(Trailer) answers(Document<TrailerLine>);
    /// Brings items of a bundle in.
    ImportBundle: POST "/oap/owner/import/bundle" needs Admin body(BundleItems) answers(ImportOutcomes);
    /// Brings records of another vendor in.
    ImportRecords: POST "/oap/owner/import/records" needs Admin body(Records) answers(ImportOutcomes);
    /// Records that a bundle came in.
    ImportFinish: POST "/oap/owner/import/finish" needs Admin body(Finish) answers(Migration);
}

/// What to export: all of it that every named list admits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExportSelection {
    /// Only of these scopes.
    pub scopes: Vec<ScopeId>,
    /// Only with one of these labels.
    pub labels: Vec<String>,
    /// Only of these kinds.
    pub kinds: Vec<Kind>,
    /// Only captured at or after this time.
    pub captured_after: Option<Timestamp>,
    /// Only captured before this time.
    pub captured_before: Option<Timestamp>,
}

/// Which lines of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Part {
    Items,
    Grants,
    Receipts,
}

/// A page to write.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageRequest {
    /// Of which part.
    pub part: Part,
    /// Of which items.
    #[serde(default)]
    pub selection: ExportSelection,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The first line of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageHead {
    /// How many items of the page were left out, for a compromised key signed something of them.
    #[serde(default)]
    pub held_back: u64,
    /// What to give as `after` for the next page; null where this is the last one.
    pub next: Option<String>,
}

/// The last line of a bundle.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct TrailerLine {
    /// What the line is.
    #[serde(rename = "type")]
    pub kind: TrailerMark,
    /// The trailer.
    #[serde(flatten)]
    pub trailer: Signed<Trailer>,
}

/// `trailer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrailerMark {
    /// The last line.
    Trailer,
}

/// Items of a bundle.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleItems {
    /// Of which bundle.
    pub bundle_id: BundleId,
    /// Whose memory it was: this principal, or a DID of the owner's own at the former house.
    pub principal: Did,
    /// The documents of all who signed something, as the owner trusts them.
    pub documents: Vec<Value>,
    /// The items, at most 1000; what is wrong with one refuses that one.
    pub items: Vec<ItemLine>,
    /// Whether nothing is to be written.
    #[serde(default)]
    pub dry_run: bool,
}

/// Records that an importer made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Records {
    /// The records, at most 1000; what is wrong with one refuses that one.
    pub records: Vec<Record>,
    /// Items that were erased here and are asked back: their records come in anew, as other items. At most 1000.
    #[serde(default)]
    pub again: Vec<ItemId>,
    /// Whether all that were erased here are asked back.
    #[serde(default)]
    pub again_all: bool,
    /// Whether nothing is to be written.
    #[serde(default)]
    pub dry_run: bool,
}

/// A record of another vendor, as an item.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// What it is told apart by, over all imports: format, account or file, thread and id; 1 to 4096 bytes.
    pub source: String,
    /// Of a record without an id of its own: the list that it stands in; at most 4096 bytes. All records of a
    /// list are in one chunk, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The item, as its owner would write it.
    pub item: Value,
}

/// What became of items or records, in the order given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportOutcomes {
    /// One for each.
    pub outcomes: Vec<ImportOutcome>,
}

/// What became of one item or record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportOutcome {
    /// It is here now.
    Imported(ItemId),
    /// It was here, and has a version more now.
    Updated(ItemId),
    /// It was here.
    Unchanged(ItemId),
    /// It is not here, for its owner erased it here; what asks it back. Of records alone.
    Deleted(String),
    /// It is not here, and why.
    Refused(String),
}

impl ImportOutcome {
    /// The item that is here.
    #[must_use]
    pub const fn item(&self) -> Option<ItemId> {
        match self {
            Self::Imported(item) | Self::Updated(item) | Self::Unchanged(item) => Some(*item),
            Self::Deleted(_) | Self::Refused(_) => None,
        }
    }
}

/// What a finished import is recorded as.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Finish {
    pub bundle_id: BundleId,
    /// Whose memory it was.
    pub principal: Did,
    /// The hash in its trailer.
    pub hash: Hash,
    /// What it held.
    pub counts: Counts,
    /// Items that came in.
    pub imported: u64,
    /// Items that were here.
    pub unchanged: u64,
    /// Items that were refused.
    pub refused: u64,
}

/// A finished import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Migration {
    pub receipt: Document<Receipt>,
}

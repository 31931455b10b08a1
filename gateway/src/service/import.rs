//! Memory on its way in: items of a bundle with their history, and records of other vendors (protocol section 8).
//!
//! An import is hostile ground: every item is verified on its own, what is wrong is refused with its reason, and the
//! rest of the chunk goes in with one transaction. Importing again changes nothing.

mod bundle;
mod judging;
mod records;
mod refusal;

pub use crate::api::transfer::{Finish, ImportOutcome, Migration, Record};
pub(crate) use records::Looked;
pub use refusal::ImportRefusal;

use crate::api::Document;
use crate::error::{Error, MemberError};
use crate::service::Imports;
use crate::state::commits::chain_of;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use oap_identity::json::{self, JsonError};
use oap_identity::{BundleId, Did, ItemId};
use oap_memory::bundle::ItemLine;
use oap_memory::receipt::Action;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Most items of one chunk.
pub const MAX_CHUNK: usize = 1000;

/// Longest source or group of a record, in bytes.
pub const MAX_SOURCE: usize = 4096;

/// A chunk of a bundle.
#[derive(Debug, Clone)]
pub struct BundleChunk {
    /// Of which bundle.
    pub bundle_id: BundleId,
    /// Whose memory it was: this principal, or a DID of the owner's own at the former house.
    pub principal: Did,
    /// The documents of all who signed something, as the owner trusts them.
    pub documents: Vec<Value>,
    /// Items, each read on its own: what is wrong with one refuses that one.
    pub items: Vec<Result<ItemLine, JsonError>>,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

/// A chunk of records that an importer made.
#[derive(Debug, Clone)]
pub struct RecordChunk {
    /// The records, each read on its own: what is wrong with one refuses that one.
    pub records: Vec<Result<Record, JsonError>>,
    /// Items that were erased here and are asked back: their records come in anew, as other items. At most [`MAX_CHUNK`].
    pub again: Vec<ItemId>,
    /// Whether all that were erased here are asked back.
    pub again_all: bool,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

impl BundleChunk {
    /// Reads a chunk.
    ///
    /// # Errors
    /// [`Error::Member`] for what stands around the items, [`Error::Json`] for a document.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw<'a> {
            bundle_id: BundleId,
            principal: Did,
            #[serde(borrow)]
            documents: Vec<&'a RawValue>,
            #[serde(borrow)]
            items: Vec<&'a RawValue>,
            #[serde(default)]
            dry_run: bool,
        }
        let Raw { bundle_id, principal, documents, items, dry_run } = around(bytes)?;
        let documents =
            documents.iter().map(|raw| json::parse(raw.get().as_bytes())).collect::<Result<_, _>>()?;
        let items = items.iter().map(|raw| json::parse_as(raw.get().as_bytes())).collect();
        Ok(Self { bundle_id, principal, documents, items, dry_run })
    }
}

impl RecordChunk {
    /// Reads a chunk.
    ///
    /// # Errors
    /// [`Error::Member`] for what stands around the records.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Raw<'a> {
            #[serde(borrow)]
            records: Vec<&'a RawValue>,
            #[serde(default)]
            again: Vec<ItemId>,
            #[serde(default)]
            again_all: bool,
            #[serde(default)]
            dry_run: bool,
        }
        let Raw { records, again, again_all, dry_run } = around(bytes)?;
        let records = records.iter().map(|raw| json::parse_as(raw.get().as_bytes())).collect();
        Ok(Self { records, again, again_all, dry_run })
    }
}

/// What stands around the raw elements of a chunk.
fn around<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    // `serde` alone would take an array's elements for the members in order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Error::Member("body", MemberError::NotObject));
    }
    // What serde says may quote what was sent.
    serde_json::from_slice(bytes)
        .map_err(|e| Error::Member("body", MemberError::Chunk { line: e.line(), column: e.column() }))
}

impl Imports<'_> {
    /// Records a finished import: the Migration Receipt (RFC 0023 section 3.6), which cites the export and names the
    /// new head of the chain.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn import_finish(
        self,
        owner: &Owner<impl Permits<Admin>>,
        finish: Finish,
    ) -> Result<Migration, Error> {
        let gateway = self.0.clone();
        let (receipt, ()) = self
            .0
            .record_as(owner, move |w| {
                let chain = chain_of(&gateway.config.default_scope);
                let head = w.chain(&chain)?;
                let agent = gateway.principal.as_str();
                let mut draft = gateway.draft(Action::Migrate, agent);
                draft.rules = vec!["principal".to_owned()];
                draft.input_hash = Some(finish.hash);
                draft.more = Map::from_iter([
                    ("bundle_id".to_owned(), json!(finish.bundle_id)),
                    ("from".to_owned(), json!(finish.principal)),
                    ("export_hash".to_owned(), json!(finish.hash)),
                    ("counts".to_owned(), json!(finish.counts)),
                    ("imported".to_owned(), json!(finish.imported)),
                    ("unchanged".to_owned(), json!(finish.unchanged)),
                    ("refused".to_owned(), json!(finish.refused)),
                    ("chain_head".to_owned(), json!({"length": head.length, "tip": head.tip})),
                ]);
                Ok((w.receipt(&chain, draft)?, ()))
            })
            .await?;
        let receipt = receipt.into_inner();
        Ok(Migration { receipt: Document::of(serde_json::to_value(&receipt)?, receipt) })
    }
}

//! What is carried out and in: bundles and records.

use crate::Error;
use crate::api::Document;
use crate::api::transfer::{
    ExportHeader, ExportPage, ExportSeal, ImportBundle, ImportFinish, ImportOutcomes, ImportRecords, PageHead,
};
use crate::http::door::{Answer, Call};
use crate::service::import::{BundleChunk, RecordChunk};
use crate::service::{Exports, Imports};
use crate::state::gateway::blocking;

pub(in crate::http) async fn export_header(call: Call<ExportHeader>) -> Answer<ExportHeader> {
    blocking(move || Exports(&call.gateway).export_header(&call.owner, &call.body)).await
}

/// The cursor of the next page, and how many items were held back; then the page's lines.
pub(in crate::http) async fn export_page(call: Call<ExportPage>) -> Result<(PageHead, Vec<u8>), Error> {
    let page = blocking(move || Exports(&call.gateway).export_page(&call.owner, &call.body)).await?;
    Ok((page.head, page.lines))
}

pub(in crate::http) async fn export_seal(call: Call<ExportSeal>) -> Answer<ExportSeal> {
    let line = Exports(&call.gateway).export_seal(&call.owner, call.body).await?;
    Ok(Document::read(serde_json::to_value(line)?)?)
}

pub(in crate::http) async fn import_bundle(call: Call<ImportBundle, BundleChunk>) -> Answer<ImportBundle> {
    Ok(ImportOutcomes { outcomes: Imports(&call.gateway).import_bundle(&call.owner, call.body).await? })
}

pub(in crate::http) async fn import_records(call: Call<ImportRecords, RecordChunk>) -> Answer<ImportRecords> {
    Ok(ImportOutcomes { outcomes: Imports(&call.gateway).import_records(&call.owner, call.body).await? })
}

pub(in crate::http) async fn import_finish(call: Call<ImportFinish>) -> Answer<ImportFinish> {
    Imports(&call.gateway).import_finish(&call.owner, call.body).await
}

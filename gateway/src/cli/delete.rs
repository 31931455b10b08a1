//! `oap-memory delete`

use super::output::OutFile;
use super::selectors::{Act, Asking, Selectors, confirmed, select};
use super::{CliError, Global, ids, output, values};
use crate::api::Document;
use crate::api::deletion as api;
use crate::api::deletion::{CascadeReport, Deleted, DeletionNote};
use crate::api::prefix::ItemPrefix;
use crate::api::selections::{SelectItems, SelectQuery, Selected, Selection};
use crate::service::deletion::MAX_DELETED;
use oap_client::OwnerClient;
use oap_identity::ItemId;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Destroy memory for good
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory delete --item mem_01...
  oap-memory delete --label website --subject ent_proj_site --dry-run
  oap-memory delete --label website --yes --receipt deletion.json
  oap-memory delete --provenance imported_from=chatgpt --until 2025-01-01
  oap-memory delete --all

Different selectors intersect: --label a --subject p is what has label a AND is about p. The same one given twice is
either: --label a --label b is what has a OR b. What is deleted is what was counted and confirmed, by id: nothing that
came or changed since. Where nothing matches, nothing is recorded and the exit status is 1.

The keys of the content are overwritten before this returns; what was made from an erased item goes with it. What
remains is that something was held, and when it ended. To take an item out of every view and be able to put it back,
use `oap-memory item retract`.")]
pub(super) struct Delete {
    /// This item, by its id or the beginning of it; may be given several times
    #[arg(long, value_name = "ID")]
    item: Vec<ItemPrefix>,
    /// Items with this label
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    #[command(flatten)]
    selectors: Selectors,
    /// Everything, or everything of the times that --since and --until say
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    asking: Asking,
    /// Write the signed Deletion Receipt to this file
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    receipt: Option<PathBuf>,
}

/// Destroy items for good, as `oap-memory delete` does
#[derive(clap::Args)]
pub(super) struct DeleteItems {
    /// These items, by their ids or the beginnings of them; with selectors, those of them that fit
    #[arg(value_name = "ID")]
    ids: Vec<ItemPrefix>,
    #[command(flatten)]
    delete: Delete,
}

impl DeleteItems {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let Self { ids, mut delete } = self;
        delete.item.extend(ids);
        delete.run(global).await
    }
}

impl Delete {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        // What is wrong with the selectors is said before anything is opened.
        self.selectors.check(&self.item, &self.label, self.all)?;
        let file = self.receipt.as_deref().map(OutFile::create).transpose()?;
        let owner = global.owner().await?;
        let items = ids::all(&owner, &self.item).await?;
        let selection = self.selectors.selection(items, &self.label, self.all);
        let selected = select(&owner, &selection, Act::Delete).await?;
        if !self.asking.goes_on(global, Act::Delete, &selected)? {
            return Ok(());
        }
        let mut done = delete(global, &owner, &selection, &selected.items).await?;
        if !(self.label.is_empty() && self.selectors.is_empty()) || self.all {
            done.came_since = came_since(&owner, &selection, &selected).await?;
        }
        if let Some(file) = file {
            let kept = match done.deletion_receipts.as_slice() {
                [one] => json!(one),
                several => json!(several),
            };
            file.write((output::pretty(&kept) + "\n").as_bytes())?;
        }
        output::print(global.json, &done, summary);
        Ok(())
    }
}

/// What a deletion did, in as many requests as it took.
#[derive(Serialize)]
struct Done {
    deletion_receipt: Document<DeletionNote>,
    deletion_receipts: Vec<Document<DeletionNote>>,
    cascade_report: CascadeReport,
    /// How many were deleted by others or had changed by then.
    gone_or_changed: usize,
    /// How many match that did not when they were counted.
    came_since: usize,
}

/// Deletes what was confirmed, in as few transactions as the gateway's limit allows; each has a receipt of its own.
async fn delete(
    global: &Global,
    owner: &OwnerClient,
    selection: &Selection,
    items: &[ItemId],
) -> Result<Done, CliError> {
    let mut receipts = Vec::new();
    let mut all = CascadeReport::default();
    let mut open: BTreeSet<ItemId> = items.iter().copied().collect();
    for some in items.chunks(MAX_DELETED) {
        loop {
            // What followed an item of a former request is gone already.
            let left: Vec<ItemId> = some.iter().filter(|id| open.contains(id)).copied().collect();
            if left.is_empty() {
                break;
            }
            let answer = owner.send::<api::Delete>((), &confirmed(selection, &left)).await;
            let Deleted { deletion_receipt, cascade_report: report } = match answer {
                // Deleted or changed since it was counted.
                Err(error) if error.is_gone() => break,
                answer => answer?,
            };
            receipts.push(deletion_receipt);
            for id in report.erased.iter().chain(&report.derived).chain(&report.held).chain(&report.not_found)
            {
                open.remove(id);
            }
            all.erased.extend(report.erased);
            all.derived.extend(report.derived);
            all.held.extend(report.held);
            all.not_found.extend(report.not_found);
            for grant in report.grants_shrunk {
                if !all.grants_shrunk.contains(&grant) {
                    all.grants_shrunk.push(grant);
                }
            }
            if report.remaining == 0 {
                break;
            }
        }
        if items.len() > MAX_DELETED && !global.json {
            eprintln!("{} of {} items", items.len() - open.len(), items.len());
        }
    }
    let first = receipts.first().cloned().ok_or_else(|| {
        CliError::Other("nothing matched any more: it was deleted or changed meanwhile".to_owned())
    })?;
    Ok(Done {
        deletion_receipt: first,
        deletion_receipts: receipts,
        gone_or_changed: all.not_found.len() + open.len(),
        cascade_report: all,
        came_since: 0,
    })
}

/// How many items match that were not there, or did not match, when they were counted.
async fn came_since(
    owner: &OwnerClient,
    selection: &Selection,
    selected: &Selected,
) -> Result<usize, CliError> {
    let query = SelectQuery { selection: selection.clone(), current: false };
    let now = owner.send::<SelectItems>((), &query).await?;
    let known: BTreeSet<ItemId> = selected.items.iter().copied().collect();
    Ok(now.items.iter().filter(|id| !known.contains(id)).count())
}

fn summary(done: &Done) -> String {
    let report = &done.cascade_report;
    let mut text = format!(
        "{} item(s) erased, {} made from them; {} grant(s) shrank",
        report.erased.len(),
        report.derived.len(),
        report.grants_shrunk.len()
    );
    let mut note = |number: usize, what: &str| {
        if number > 0 {
            text.push_str(&format!("\n{number} {what}"));
        }
    };
    note(report.held.len(), "under a legal hold: out of every view, erased when it ends");
    note(done.gone_or_changed, "were deleted by others or had changed by then: left as they are");
    note(done.came_since, "more match since they were counted: still here, ask again");
    for receipt in &done.deletion_receipts {
        text.push_str(&format!("\n{}", receipt.receipt_id));
    }
    text
}

//! `oap-memory delete`

use super::grant::words::minute;
use super::output::OutFile;
use super::selectors::{Act, Asking, Selectors, confirmed, select};
use super::{CliError, Global, ids, job, output, values};
use crate::api::Document;
use crate::api::deletion as api;
use crate::api::deletion::{
    CascadeReport, Deleted, DeletedInSteps, DeletionNote, DeletionReport, ReportDeletion,
};
use crate::api::jobs::JobRequest;
use crate::api::prefix::ItemPrefix;
use crate::api::selections::{SelectItems, SelectQuery, Selected, Selection};
use crate::service::deletion::MAX_DELETED;
use crate::service::deletion_steps::MAX_STEP;
use oap_client::OwnerClient;
use oap_identity::{DeletionId, ItemId};
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
  oap-memory delete --report urn:oap:deletion:01J9V8B7H1ZK4D2A0M9R8F0KQX

Different selectors intersect: --label a --subject p is what has label a AND is about p. The same one given twice is
either: --label a --label b is what has a OR b. What is deleted is what was counted and confirmed, by id: nothing that
came or changed since. Where nothing matches, nothing is recorded and the exit status is 1. More than 1000 items are a job
of the gateway's, in steps with a receipt each, which Ctrl-C cancels between two of them (`oap-memory job`).

The keys of the content are overwritten before this returns; what was made from an erased item goes with it. What
remains is that something was held, and when it ended. The gateways of those who were shown something of it are told,
for 30 days until they answer: --report says who confirmed it with a signed receipt of their own, who refused, who
cannot be reached, and who has no gateway that could say anything. To take an item out of every view and be able to put it back,
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
    /// Delete nothing: say what became, at those who were shown it, of the deletion with this receipt
    #[arg(long, value_name = "ID", conflicts_with_all = ["item", "label", "all", "dry_run", "receipt"])]
    report: Option<DeletionId>,
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
        if let Some(deletion) = self.report {
            let report = global.owner().await?.get::<ReportDeletion>(deletion, &()).await?;
            output::print(global.json, &report, told);
            return Ok(());
        }
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
        let mut deletion = Deletion {
            owner: &owner,
            selection: &selection,
            quiet: global.json,
            open: selected.items.iter().copied().collect(),
            done: DeletedInSteps::default(),
        };
        let ended = deletion.run(&selected).await;
        let Deletion { open, done: deleted, .. } = deletion;
        // What was erased has its receipts, however it ended.
        if let Some(file) = file
            && let [first, more @ ..] = deleted.deletion_receipts.as_slice()
        {
            let kept = if more.is_empty() { json!(first) } else { json!(deleted.deletion_receipts) };
            file.write((output::pretty(&kept) + "\n").as_bytes())?;
        }
        ended?;
        let first = deleted.deletion_receipts.first().cloned().ok_or_else(|| {
            CliError::Other("nothing matched any more: it was deleted or changed meanwhile".to_owned())
        })?;
        let mut done = Done {
            deletion_receipt: first,
            deletion_receipts: deleted.deletion_receipts,
            gone_or_changed: deleted.cascade_report.not_found.len() + open.len(),
            cascade_report: deleted.cascade_report,
            came_since: 0,
        };
        if !(self.label.is_empty() && self.selectors.is_empty()) || self.all {
            done.came_since = came_since(&owner, &selection, &selected).await?;
        }
        output::print(global.json, &done, summary);
        Ok(())
    }
}

/// What a deletion did, in as many requests or jobs as it took.
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

/// A deletion of what was confirmed.
struct Deletion<'a> {
    owner: &'a OwnerClient,
    selection: &'a Selection,
    quiet: bool,
    /// What is not deleted yet.
    open: BTreeSet<ItemId>,
    done: DeletedInSteps,
}

impl Deletion<'_> {
    /// Deletes by one request where one step takes everything, else by jobs, each of as many ids as a request holds. What is done stands
    /// in `done`, also where it ends early.
    async fn run(&mut self, selected: &Selected) -> Result<(), CliError> {
        let is_long = selected.count + selected.derived_count > MAX_STEP;
        for some in selected.items.chunks(MAX_DELETED) {
            loop {
                // What followed an item of a former request is gone already.
                let left: Vec<ItemId> = some.iter().filter(|id| self.open.contains(id)).copied().collect();
                if left.is_empty() {
                    break;
                }
                let these = confirmed(self.selection, &left);
                let goes_on = if is_long { self.job(these).await? } else { self.request(&these).await? };
                if !goes_on {
                    break;
                }
            }
            if selected.items.len() > MAX_DELETED && !self.quiet {
                let all = selected.items.len();
                eprintln!("{} of {all} items", all - self.open.len());
            }
        }
        Ok(())
    }

    /// By one request; whether something is left of it.
    async fn request(&mut self, these: &Selection) -> Result<bool, CliError> {
        match self.owner.send::<api::Delete>((), these).await {
            // Deleted or changed since it was counted.
            Err(error) if error.is_gone() => Ok(false),
            answer => {
                let Deleted { deletion_receipt, cascade_report } = answer?;
                Ok(self.add(DeletedInSteps { deletion_receipts: vec![deletion_receipt], cascade_report }))
            }
        }
    }

    /// By a job, which is followed to its end; whether something is left of it.
    async fn job(&mut self, these: Selection) -> Result<bool, CliError> {
        let mut report = job::watch(self.owner, self.quiet, &JobRequest::Delete(these)).await?;
        // Deleted or changed since it was counted.
        if report.so_far.is_none() && report.error.as_ref().is_some_and(|error| error.status == 404) {
            return Ok(false);
        }
        if let Some(deleted) = report.so_far.take().and_then(job::deletion) {
            self.add(deleted);
        }
        let deleted = job::result(report, job::deletion)?;
        Ok(self.add(deleted))
    }

    /// Adds what was done; whether something is left of it.
    fn add(&mut self, deleted: DeletedInSteps) -> bool {
        let report = &deleted.cascade_report;
        for id in report.erased.iter().chain(&report.derived).chain(&report.held).chain(&report.not_found) {
            self.open.remove(id);
        }
        let goes_on = report.remaining > 0;
        self.done.add(deleted.deletion_receipts, deleted.cascade_report);
        goes_on
    }
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

/// Who was told of a deletion, a line each.
fn told(report: &DeletionReport) -> String {
    if report.grantees.is_empty() {
        return "nobody is known to have been shown what this deletion erased".to_owned();
    }
    let rows = report.grantees.iter().map(|told| {
        let why = told.failure.map(|failure| failure.as_str().replace('_', " "));
        let tried = told.attempts.map(|attempts| format!("tried {attempts} time(s)"));
        let more: Vec<String> = tried.into_iter().chain(why).collect();
        vec![
            told.grantee.to_string(),
            told.items.len().to_string(),
            told.state.as_str().to_owned(),
            minute(told.since),
            more.join(", "),
        ]
    });
    output::table(&["grantee", "items", "state", "since", ""], rows)
}

fn summary(done: &Done) -> String {
    told_of(&done.cascade_report, &done.deletion_receipts, done.gone_or_changed, done.came_since)
}

/// What a job deleted.
pub(super) fn in_steps(deleted: &DeletedInSteps) -> String {
    let report = &deleted.cascade_report;
    told_of(report, &deleted.deletion_receipts, report.not_found.len(), 0)
}

fn told_of(
    report: &CascadeReport,
    receipts: &[Document<DeletionNote>],
    gone_or_changed: usize,
    came_since: usize,
) -> String {
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
    note(gone_or_changed, "were deleted by others or had changed by then: left as they are");
    note(report.remaining, "are left: ask again");
    note(came_since, "more match since they were counted: still here, ask again");
    note(
        report.told.len(),
        "gateway(s) are told that were shown something of it: delete --report ID says what they answer",
    );
    for receipt in receipts {
        text.push_str(&format!("\n{}", receipt.receipt_id));
    }
    text
}

//! `oap-memory delete`

use super::output::OutFile;
use super::selectors::{Act, Asking, Selectors, confirmed, ids as ids_of, select};
use super::{CliError, Global, ids, output, values};
use crate::client::owner::OwnerClient;
use crate::service::deletion::MAX_DELETED;
use crate::service::prefix::ItemPrefix;
use serde_json::{Value, json};
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
        self.asking.check()?;
        // What is wrong with the selectors is said before anything is opened.
        let named: Vec<String> = self.item.iter().map(ToString::to_string).collect();
        self.selectors.selection(&named, &self.label, self.all)?;
        let file = self.receipt.as_deref().map(OutFile::create).transpose()?;
        let mut owner = global.owner().await?;
        let items = ids::all(&owner, &self.item).await?;
        let selection = self.selectors.selection(&items, &self.label, self.all)?;
        let selected = select(&mut owner, &selection, Act::Delete).await?;
        if !self.asking.goes_on(global, Act::Delete, &selected)? {
            return Ok(());
        }
        let mut done = delete(global, &mut owner, &selection, ids_of(&selected)).await?;
        if self.label.is_empty() && self.selectors.is_empty() && !self.all {
            done["came_since"] = json!(0);
        } else {
            done["came_since"] = json!(came_since(&mut owner, &selection, &selected).await?);
        }
        if let Some(file) = file {
            let receipts = &done["deletion_receipts"];
            let kept =
                if receipts.as_array().is_some_and(|all| all.len() == 1) { &receipts[0] } else { receipts };
            file.write((output::pretty(kept) + "\n").as_bytes())?;
        }
        output::print(global.json, &done, summary);
        Ok(())
    }
}

/// Deletes what was confirmed, in as few transactions as the gateway's limit allows; each has a receipt of its own.
async fn delete(
    global: &Global,
    owner: &mut OwnerClient,
    selection: &Value,
    items: Vec<String>,
) -> Result<Value, CliError> {
    let mut receipts = Vec::new();
    let mut report = json!({"erased": [], "derived": [], "grants_shrunk": [], "held": [], "not_found": []});
    let mut open: BTreeSet<String> = items.iter().cloned().collect();
    for some in items.chunks(MAX_DELETED) {
        loop {
            // What followed an item of a former request is gone already.
            let left: Vec<String> = some.iter().filter(|id| open.contains(*id)).cloned().collect();
            if left.is_empty() {
                break;
            }
            let answer =
                owner.call("POST", "/oap/data/delete", &[], Some(&confirmed(selection, &left))).await;
            let answer = match answer {
                // Deleted or changed since it was counted.
                Err(error) if error.is_gone() => break,
                answer => answer?,
            };
            receipts.push(answer["deletion_receipt"].clone());
            for (member, all) in report.as_object_mut().into_iter().flatten() {
                for id in answer["cascade_report"][member].as_array().into_iter().flatten() {
                    if let Some(id) = id.as_str() {
                        open.remove(id);
                    }
                    if let Some(all) = all.as_array_mut()
                        && (member != "grants_shrunk" || !all.contains(id))
                    {
                        all.push(id.clone());
                    }
                }
            }
            if answer["cascade_report"]["remaining"] == 0 {
                break;
            }
        }
        if items.len() > MAX_DELETED && !global.json {
            eprintln!("{} of {} items", items.len() - open.len(), items.len());
        }
    }
    let gone = report["not_found"].as_array().map_or(0, Vec::len) + open.len();
    if receipts.is_empty() {
        return Err(CliError::Other(
            "nothing matched any more: it was deleted or changed meanwhile".to_owned(),
        ));
    }
    report["remaining"] = json!(0);
    Ok(json!({
        "deletion_receipt": receipts.first(), "deletion_receipts": receipts, "cascade_report": report,
        "gone_or_changed": gone,
    }))
}

/// How many items match that were not there, or did not match, when they were counted.
async fn came_since(owner: &mut OwnerClient, selection: &Value, selected: &Value) -> Result<usize, CliError> {
    let body = json!({"selection": selection});
    let now = owner.call("POST", "/oap/owner/items/select", &[], Some(&body)).await?;
    let known: BTreeSet<String> = ids_of(selected).into_iter().collect();
    Ok(ids_of(&now).iter().filter(|id| !known.contains(*id)).count())
}

fn summary(done: &Value) -> String {
    let count = |member: &str| done["cascade_report"][member].as_array().map_or(0, Vec::len);
    let mut text = format!(
        "{} item(s) erased, {} made from them; {} grant(s) shrank",
        count("erased"),
        count("derived"),
        count("grants_shrunk")
    );
    let mut note = |number: u64, what: &str| {
        if number > 0 {
            text.push_str(&format!("\n{number} {what}"));
        }
    };
    note(count("held") as u64, "under a legal hold: out of every view, erased when it ends");
    note(
        done["gone_or_changed"].as_u64().unwrap_or(0),
        "were deleted by others or had changed by then: left as they are",
    );
    note(
        done["came_since"].as_u64().unwrap_or(0),
        "more match since they were counted: still here, ask again",
    );
    for receipt in done["deletion_receipts"].as_array().into_iter().flatten() {
        text.push_str(&format!("\n{}", output::text(receipt, "/receipt_id")));
    }
    text
}

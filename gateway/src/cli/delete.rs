//! `oap-memory delete`

use super::output::OutFile;
use super::when::{self, When};
use super::{CliError, Global, output, values};
use oap_identity::{ItemId, ScopeId};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Destroy memory for good
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory delete --item mem_01...
  oap-memory delete --label website --yes --receipt deletion.json
  oap-memory delete --provenance imported_from=chatgpt --until 2025-01-01
  oap-memory delete --all

The keys of the content are overwritten before this returns; what was made from an erased item goes with it. What
remains is that something was held, and when it ended. To take an item out of every view and be able to put it back,
use `oap-memory item retract`.")]
pub(super) struct Delete {
    /// This item; may be given several times
    #[arg(long, value_name = "ID")]
    item: Vec<ItemId>,
    /// Items with this label
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    /// Items about this
    #[arg(long, value_name = "ENTITY", value_parser = values::short)]
    subject: Vec<String>,
    /// Items of this scope
    #[arg(long)]
    scope: Vec<ScopeId>,
    /// Items with this provenance tag, such as imported_from=chatgpt
    #[arg(long, value_name = "NAME=VALUE")]
    provenance: Vec<String>,
    /// Of those, or of all, only items captured at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Of those, or of all, only items captured until this time
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// Everything
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Write the signed Deletion Receipt to this file
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
}

impl Delete {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if !self.yes && !confirmed()? {
            return Err(CliError::Usage("nothing was deleted".to_owned()));
        }
        let now = when::now();
        let mut request = json!({
            "items": self.item, "labels": self.label, "subjects": self.subject, "scopes": self.scope,
            "provenance_tags": self.provenance, "all": self.all,
        });
        for (member, value) in [
            ("captured_after", self.since.map(|t| t.since(now))),
            ("captured_before", self.until.map(|t| t.until(now))),
        ] {
            if let Some(value) = value {
                request[member] = json!(value);
            }
        }
        let file = self.receipt.as_deref().map(OutFile::create).transpose()?;
        let mut owner = global.owner().await?;
        let mut answer = owner.call("POST", "/oap/data/delete", &[], Some(&request)).await?;
        let mut receipts = vec![answer["deletion_receipt"].clone()];
        // One deletion takes so many; the rest follows, each with a receipt of its own.
        while answer["cascade_report"]["remaining"].as_u64().is_some_and(|n| n > 0) {
            let next = owner.call("POST", "/oap/data/delete", &[], Some(&request)).await?;
            receipts.push(next["deletion_receipt"].clone());
            for member in ["erased", "derived", "grants_shrunk", "held"] {
                let more = next["cascade_report"][member].as_array().cloned().unwrap_or_default();
                if let Some(all) = answer["cascade_report"][member].as_array_mut() {
                    all.extend(more);
                }
            }
            answer["cascade_report"]["remaining"] = next["cascade_report"]["remaining"].clone();
        }
        answer["deletion_receipts"] = json!(receipts);
        if let Some(file) = file {
            let kept = if receipts.len() == 1 { &receipts[0] } else { &answer["deletion_receipts"] };
            file.write((output::pretty(kept) + "\n").as_bytes())?;
        }
        output::print(global.json, &answer, |a| {
            let count = |member: &str| a["cascade_report"][member].as_array().map_or(0, Vec::len);
            let held = match count("held") {
                0 => String::new(),
                n => format!("; {n} under a legal hold: out of every view, erased when it ends"),
            };
            format!(
                "{} item(s) erased, {} made from them; {} grant(s) shrank{held}\n{}",
                count("erased"),
                count("derived"),
                count("grants_shrunk"),
                output::text(a, "/deletion_receipt/receipt_id")
            )
        });
        Ok(())
    }
}

fn confirmed() -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::Usage("this cannot be undone: say --yes".to_owned()));
    }
    eprint!("This cannot be undone. Go on? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| CliError::Other(e.to_string()))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

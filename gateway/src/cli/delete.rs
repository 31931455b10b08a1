//! `oap-memory delete`

use super::{CliError, Global, output};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Destroy memory for good
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory delete --item mem_01...
  oap-memory delete --label website --yes --receipt deletion.json
  oap-memory delete --all

The keys of the content are overwritten before this returns; what was made from an erased item goes with it. What
remains is that something was held, and when it ended. To take an item out of every view and be able to put it back,
use `oap-memory item retract`.")]
pub(super) struct Delete {
    /// This item; may be given several times
    #[arg(long, value_name = "ID")]
    item: Vec<String>,
    /// Items with this label
    #[arg(long)]
    label: Vec<String>,
    /// Items about this
    #[arg(long, value_name = "ENTITY")]
    subject: Vec<String>,
    /// Items of this scope
    #[arg(long)]
    scope: Vec<String>,
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
        let request = json!({
            "items": self.item, "labels": self.label, "subjects": self.subject, "scopes": self.scope,
            "all": self.all,
        });
        let mut owner = global.owner().await?;
        let answer = owner.call("POST", "/oap/data/delete", &[], Some(&request)).await?;
        if let Some(path) = &self.receipt {
            output::write(path, &(output::pretty(&answer["deletion_receipt"]) + "\n"))?;
        }
        output::print(global.json, &answer, |a| {
            let count = |member: &str| a["cascade_report"][member].as_array().map_or(0, Vec::len);
            format!(
                "{} item(s) erased, {} made from them; {} grant(s) shrank\n{}",
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

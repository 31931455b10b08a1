//! `oap-memory hold`

use super::when::{self, When};
use super::{CliError, Global, ids, output, values};
use crate::service::holds::HoldReason;
use crate::service::prefix::ItemPrefix;
use serde_json::{Value, json};

/// Legal holds: the one reason for which deletion waits
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory hold set mem_01... --reason ongoing_dispute --until 2027-01-01
  oap-memory hold list
  oap-memory hold release mem_01...

A held item whose deletion is asked for is in no view from then on, and is erased when its hold ends. The Deletion Receipt
states the exception.")]
pub(super) enum Hold {
    /// Put items under a hold
    Set {
        /// The items, by their ids or the beginnings of them
        #[arg(required = true, value_name = "ITEM")]
        items: Vec<ItemPrefix>,
        /// Why
        #[arg(long, default_value = "legal_hold", value_parser = values::hold_reason())]
        reason: HoldReason,
        /// Until when
        #[arg(long, value_name = "TIME")]
        until: When,
    },
    /// List holds
    List,
    /// End holds now; what waited for it is erased
    Release {
        /// The items, by their ids or the beginnings of them
        #[arg(required = true, value_name = "ITEM")]
        items: Vec<ItemPrefix>,
    },
}

impl Hold {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Set { items, reason, until } => {
                let until = until.ends(when::now());
                let mut owner = global.owner().await?;
                let items = ids::all(&owner, &items).await?;
                let body = json!({"items": items, "reason": reason, "until": until});
                let answer = owner.call("POST", "/oap/owner/holds", &[], Some(&body)).await?;
                output::print(global.json, &answer, |_| {
                    format!("{} item(s) held until {until}", items.len())
                });
            }
            Self::List => {
                let answer = global.owner().await?.call("GET", "/oap/owner/holds", &[], None).await?;
                output::print(global.json, &answer, table);
            }
            Self::Release { items } => {
                let mut owner = global.owner().await?;
                let body = json!({"items": ids::all(&owner, &items).await?});
                let path = "/oap/owner/holds/release";
                let answer = owner.call("POST", path, &[], Some(&body)).await?;
                output::print(global.json, &answer, |_| format!("{} hold(s) ended", items.len()));
            }
        }
        Ok(())
    }
}

pub(super) fn table(answer: &Value) -> String {
    let holds = answer["holds"].as_array().cloned().unwrap_or_default();
    let members = ["/item_id", "/reason", "/until", "/erase_after"];
    let rows = holds.iter().map(|hold| members.map(|m| output::text(hold, m)).to_vec());
    output::table(&["item", "reason", "until", "then erased"], rows)
}

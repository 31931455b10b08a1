//! `oap-memory hold`

use super::when::{self, When};
use super::{CliError, Global, ids, output, values};
use crate::api::holds as api;
use crate::api::holds::{HoldReason, HoldRequest, Holds, Release};
use crate::api::prefix::ItemPrefix;

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
                let owner = global.owner().await?;
                let request = HoldRequest { items: ids::all(&owner, &items).await?, reason, until };
                let answer = owner.send::<api::SetHolds>((), &request).await?;
                output::print(global.json, &answer, |_| {
                    format!("{} item(s) held until {until}", request.items.len())
                });
            }
            Self::List => {
                let answer = global.owner().await?.get::<api::ListHolds>((), &()).await?;
                output::print(global.json, &answer, table);
            }
            Self::Release { items } => {
                let owner = global.owner().await?;
                let release = Release { items: ids::all(&owner, &items).await? };
                let answer = owner.send::<api::ReleaseHolds>((), &release).await?;
                output::print(global.json, &answer, |_| format!("{} hold(s) ended", release.items.len()));
            }
        }
        Ok(())
    }
}

pub(super) fn table(answer: &Holds) -> String {
    let rows = answer.holds.iter().map(|hold| {
        let (reason, until) = (hold.reason.as_str().to_owned(), hold.until.to_string());
        vec![hold.item_id.to_string(), reason, until, hold.erase_after.to_string()]
    });
    output::table(&["item", "reason", "until", "then erased"], rows)
}

//! `oap-memory budget`

use super::reference::GrantRef;
use super::{CliError, Global, output, values};
use crate::api::budgets as api;
use crate::api::budgets::Refill;
use oap_identity::Did;

/// See and refill what grantees may still ask
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory budget list
  oap-memory budget refill did:web:contractor.example
  oap-memory budget refill did:web:contractor.example --grant mgr_01...

An answer costs 0.01, and as much again for every ten items in it that the grantee got before under the same grant.
Beyond the limit (`epsilon_per_grantee`, and the grant's own budget) queries are refused until you refill.")]
pub(super) enum Budget {
    /// What each grantee has spent
    List,
    /// Set a grantee's account back
    Refill {
        /// The grantee
        #[arg(value_name = "DID", value_parser = values::grantee)]
        grantee: Did,
        /// Set the own budget of this grant back too
        #[arg(long, value_name = "ID")]
        grant: Option<GrantRef>,
    },
}

impl Budget {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self {
            Self::List => {
                let answer = owner.get::<api::ListBudgets>((), &()).await?;
                output::print(global.json, &answer, |answer| {
                    let rows = answer.accounts.iter().map(|account| {
                        vec![
                            account.grantee.to_string(),
                            account.queries.to_string(),
                            account.epsilon_spent.to_string(),
                            account.epsilon_limit.to_string(),
                        ]
                    });
                    output::table(&["grantee", "answers", "spent", "of"], rows)
                });
            }
            Self::Refill { grantee, grant } => {
                let grant = match grant {
                    Some(grant) => Some(grant.resolve(&owner).await?),
                    None => None,
                };
                let refill = Refill { grantee, grant };
                let answer = owner.send::<api::RefillBudget>((), &refill).await?;
                output::print(global.json, &answer, |_| format!("{} may ask again", refill.grantee));
            }
        }
        Ok(())
    }
}

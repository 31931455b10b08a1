//! `oap-memory budget`

use super::reference::GrantRef;
use super::{CliError, Global, output, values};
use oap_identity::Did;
use serde_json::json;

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
        let mut owner = global.owner().await?;
        match self {
            Self::List => {
                let answer = owner.call("GET", "/oap/owner/budgets", &[], None).await?;
                output::print(global.json, &answer, |a| {
                    let accounts = a["accounts"].as_array().cloned().unwrap_or_default();
                    let rows = accounts.iter().map(|account| {
                        ["/grantee", "/queries", "/epsilon_spent", "/epsilon_limit"]
                            .map(|member| output::text(account, member))
                            .to_vec()
                    });
                    output::table(&["grantee", "answers", "spent", "of"], rows)
                });
            }
            Self::Refill { grantee, grant } => {
                let mut body = json!({"grantee": grantee});
                if let Some(grant) = grant {
                    body["grant"] = json!(grant.resolve(&mut owner).await?);
                }
                let answer = owner.call("POST", "/oap/owner/budgets/refill", &[], Some(&body)).await?;
                output::print(global.json, &answer, |_| format!("{grantee} may ask again"));
            }
        }
        Ok(())
    }
}

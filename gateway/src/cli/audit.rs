//! `oap-memory audit`

use super::reference::GrantRef;
use super::when::{self, When};
use super::{CliError, Global, ids, output, values};
use crate::service::prefix::ItemPrefix;
use oap_identity::{DecisionId, Did};
use serde_json::{Value, json};

/// Read and verify the audit log
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  oap-memory audit
  oap-memory audit --grantee did:web:contractor.example --since 2w
  oap-memory audit verify
  oap-memory audit decision pol_01...
  oap-memory audit memorization")]
pub(super) struct Audit {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Only at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Only of this agent
    #[arg(long, value_name = "DID", value_parser = values::grantee)]
    grantee: Option<Did>,
    /// Only under this grant
    #[arg(long, value_name = "ID")]
    grant: Option<GrantRef>,
    /// Only about this item
    #[arg(long, value_name = "ID")]
    item: Option<ItemPrefix>,
    /// Only of this chain: a scope, or @anonymous
    #[arg(long)]
    chain: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

#[derive(clap::Subcommand)]
enum AuditCommand {
    /// Verify every receipt of every chain: hashes, times, signatures, heads
    Verify,
    /// Plant canaries in a throw-away copy, measure what the derived artefacts tell of them, and declare the result in
    /// the manifest
    Memorization,
    /// Show the Decision Record behind a receipt: which rules fired, what was withheld
    Decision {
        /// The decision, as a receipt names it
        id: DecisionId,
    },
}

impl Audit {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let mut owner = global.owner().await?;
        if let Some(AuditCommand::Decision { id }) = &self.command {
            let answer = owner.call("GET", &format!("/oap/owner/decisions/{id}"), &[], None).await?;
            output::print(global.json, &answer, |a| output::text(a, "/explanation_for_principal"));
            return Ok(());
        }
        if let Some(AuditCommand::Memorization) = self.command {
            let answer = owner.call("POST", "/oap/owner/audit/memorization", &[], Some(&json!({}))).await?;
            output::print(global.json, &answer, memorization);
            let passed = answer["status"] == "passed";
            return if passed {
                Ok(())
            } else {
                Err(CliError::Proof("an artefact exposes canaries".to_owned()))
            };
        }
        if let Some(AuditCommand::Verify) = self.command {
            let answer = owner.call("GET", "/oap/owner/audit/verify", &[], None).await;
            let answer = answer.map_err(|error| match error {
                crate::client::ClientError::Refused { status: 500, .. } => {
                    CliError::Proof("a chain is broken; the server's log names it".to_owned())
                }
                error => error.into(),
            })?;
            output::print(global.json, &answer, |a| {
                let chains = a["chains"].as_array().cloned().unwrap_or_default();
                let rows = chains.iter().map(|chain| {
                    ["/chain", "/length", "/at", "/tip"].iter().map(|p| output::text(chain, p)).collect()
                });
                output::table(&["chain", "entries", "last", "tip"], rows) + "\nEvery chain holds."
            });
            return Ok(());
        }
        let item = match &self.item {
            Some(item) => Some(ids::one(&owner, item).await?),
            None => None,
        };
        let grant = match &self.grant {
            Some(grant) => Some(grant.resolve(&mut owner).await?),
            None => None,
        };
        let query: Vec<(&str, String)> = [
            ("since", self.since.map(|since| since.since(when::now()).to_string())),
            ("grantee", self.grantee.map(|did| did.to_string())),
            ("grant_id", grant.map(|id| id.to_string())),
            ("item_id", item),
            ("chain", self.chain),
            ("limit", Some(self.limit.to_string())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
        let answer = owner.call("GET", "/oap/audit", &query, None).await?;
        output::print(global.json, &answer, table);
        Ok(())
    }
}

fn memorization(report: &Value) -> String {
    let artefacts = report["artefacts"].as_array().cloned().unwrap_or_default();
    let rows = artefacts.iter().map(|artefact| {
        let members = [
            "/artefact",
            "/profile",
            "/trust_level",
            "/canaries",
            "/mean_exposure_bits",
            "/bound_bits",
            "/passed",
        ];
        members.iter().map(|p| output::text(artefact, p)).collect()
    });
    let header = ["artefact", "profile", "level", "canaries", "mean exposure", "at most", "passed"];
    format!("{}\n{}; declared in the manifest", output::table(&header, rows), output::text(report, "/status"))
}

pub(super) fn table(answer: &Value) -> String {
    let receipts = answer["receipts"].as_array().cloned().unwrap_or_default();
    let rows = receipts.iter().map(|receipt| {
        vec![
            output::text(receipt, "/timestamp"),
            output::text(receipt, "/action_id"),
            output::text(receipt, "/policy_decisions/0/outcome"),
            output::text(receipt, "/agent_did"),
            receipt["provenance_tags_out"].as_array().map_or(0, Vec::len).to_string(),
            output::text(receipt, "/receipt_id"),
        ]
    });
    output::table(&["time", "action", "outcome", "agent", "items", "receipt"], rows)
}

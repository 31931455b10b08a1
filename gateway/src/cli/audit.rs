//! `oap-memory audit`

use super::job::{JobStopped, follow};
use super::reference::GrantRef;
use super::when::{self, When};
use super::{CliError, Global, ids, job, output, values};
use crate::api::audit as api;
use crate::api::audit::{AuditQuery, Chains, Memorization, MemorizationStatus, Receipts};
use crate::api::gates::ShowDecision;
use crate::api::jobs::JobRequest;
use crate::api::prefix::ItemPrefix;
use oap_client::ClientError;
use oap_identity::{DecisionId, Did};

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
    chain: Option<values::ChainName>,
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
        let owner = global.owner().await?;
        match self.command {
            Some(AuditCommand::Decision { id }) => {
                let record = owner.get::<ShowDecision>(id, &()).await?;
                output::print(global.json, &record, |record| record.explanation_for_principal.clone());
                return Ok(());
            }
            Some(AuditCommand::Memorization) => {
                let report = owner.send::<api::AuditMemorization>((), &()).await?;
                output::print(global.json, &report, |report| memorization(report));
                return match report.status {
                    MemorizationStatus::Passed => Ok(()),
                    MemorizationStatus::Failed => {
                        Err(CliError::Proof("an artefact exposes canaries".to_owned()))
                    }
                };
            }
            Some(AuditCommand::Verify) => {
                let request = JobRequest::VerifyAudit {};
                let answer = follow(&owner, global.json, &request, job::verify_audit).await;
                let answer = answer.map_err(|stopped| match stopped {
                    JobStopped::Client(ClientError::Refused { status: 500, .. }) => {
                        CliError::Proof("a chain is broken; the server's log names it".to_owned())
                    }
                    stopped => stopped.into(),
                })?;
                output::print(global.json, &answer, chains);
                return Ok(());
            }
            None => {}
        }
        let item = match &self.item {
            Some(item) => Some(ids::one(&owner, item).await?),
            None => None,
        };
        let grant = match &self.grant {
            Some(grant) => Some(grant.resolve(&owner).await?),
            None => None,
        };
        let query = AuditQuery {
            since: self.since.map(|since| since.since(when::now())),
            grantee: self.grantee.map(|did| did.to_string()),
            grant_id: grant,
            item_id: item,
            chain: self.chain.map(|chain| chain.to_string()),
            limit: Some(self.limit),
            ..AuditQuery::default()
        };
        output::print(global.json, &owner.get::<api::Audit>((), &query).await?, table);
        Ok(())
    }
}

/// Chains that were verified.
pub(super) fn chains(verified: &Chains) -> String {
    let rows = verified.chains.iter().map(|chain| {
        let (length, at) = (chain.length.to_string(), chain.at.to_string());
        vec![chain.chain.clone(), length, at, output::or_none(chain.tip)]
    });
    output::table(&["chain", "entries", "last", "tip"], rows) + "\nEvery chain holds."
}

fn memorization(report: &Memorization) -> String {
    let rows = report.artefacts.iter().map(|artefact| {
        vec![
            artefact.artefact.clone(),
            artefact.profile.clone(),
            artefact.trust_level.get().to_string(),
            artefact.canaries.to_string(),
            artefact.mean_exposure_bits.to_string(),
            artefact.bound_bits.to_string(),
            artefact.passed.to_string(),
        ]
    });
    let header = ["artefact", "profile", "level", "canaries", "mean exposure", "at most", "passed"];
    format!("{}\n{}; declared in the manifest", output::table(&header, rows), report.status.as_str())
}

pub(super) fn table(answer: &Receipts) -> String {
    let rows = answer.receipts.iter().map(|receipt| {
        vec![
            receipt.timestamp.to_string(),
            receipt.action_id.clone().unwrap_or_default(),
            output::or_none(receipt.policy_decisions.first().map(|decision| decision.outcome)),
            receipt.agent_did.clone(),
            receipt.provenance_tags_out.len().to_string(),
            receipt.receipt_id.to_string(),
        ]
    });
    output::table(&["time", "action", "outcome", "agent", "items", "receipt"], rows)
}

//! `oap-memory audit`

mod acks;

use super::job::{JobStopped, follow};
use super::names::{Names, Whom};
use super::reference::GrantRef;
use super::when::{self, When};
use super::{CliError, Global, agent, ids, job, output, values};
use crate::api::agents::{
    AgentRef, Injected, InjectedList, InjectedQuery, ListAgents, MAX_INJECTED, ShownUnder,
};
use crate::api::audit as api;
use crate::api::audit::{AuditQuery, Chains, Memorization, MemorizationStatus, Receipts};
use crate::api::gates::ShowDecision;
use crate::api::jobs::{JobError, JobRequest};
use crate::api::prefix::ItemPrefix;
use crate::service::audit::MAX_AUDITED;
use oap_agents::foreign::Via;
use oap_client::OwnerClient;
use oap_identity::{DecisionId, Timestamp};

/// Read and verify the audit log
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  oap-memory audit
  oap-memory audit --grantee did:web:contractor.example --since 2w
  oap-memory audit --grantee scout
  oap-memory audit verify
  oap-memory audit decision pol_01...
  oap-memory audit memorization
  oap-memory audit acks
  oap-memory audit injected --agent scout --at 2026-06-30T14:00:00Z")]
pub(super) struct Audit {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Only at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Only of this grantee, or of this agent of yours
    #[arg(long, value_name = "DID|NAME")]
    grantee: Option<Whom>,
    /// Only under this grant
    #[arg(long, value_name = "ID")]
    grant: Option<GrantRef>,
    /// Only about this item
    #[arg(long, value_name = "ID")]
    item: Option<ItemPrefix>,
    /// Only of this chain: a scope, @anonymous, or @agents
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
    /// Show which answers were acknowledged, and which order of mutual knowledge that proves
    Acks(acks::AcksArgs),
    /// Show what an agent of yours was given until a time: which version of which items, the last answer first
    Injected {
        /// The agent's name, or its DID
        #[arg(long, value_name = "NAME")]
        agent: AgentRef,
        /// Until this time; now if absent
        #[arg(long, value_name = "TIME")]
        at: Option<When>,
        /// Only at or after this time
        #[arg(long, value_name = "TIME")]
        since: Option<When>,
        /// At most so many answers
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=MAX_INJECTED as i64))]
        limit: u16,
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
            Some(AuditCommand::Injected { agent, at, since, limit }) => {
                let now = when::now();
                let query = InjectedQuery {
                    at: at.map(|at| at.until(now)),
                    since: since.map(|since| since.since(now)),
                    limit: Some(limit.into()),
                };
                let given =
                    owner.get::<Injected>(agent.clone(), &query).await.map_err(agent::named(&agent))?;
                output::print(global.json, &given, |given| injected(given, query.at));
                return tell_of_earlier(&owner, &agent, &given).await;
            }
            Some(AuditCommand::Memorization) => {
                let request = JobRequest::AuditMemorization {};
                let report = follow(&owner, global.json, &request, job::audit_memorization).await?;
                output::print(global.json, &report, |report| memorization(report));
                return match report.status {
                    MemorizationStatus::Passed => Ok(()),
                    MemorizationStatus::Failed => {
                        Err(CliError::Proof("an artefact exposes canaries".to_owned()))
                    }
                };
            }
            Some(AuditCommand::Acks(acks)) => return acks.run(global, &owner).await,
            Some(AuditCommand::Verify) => {
                let request = JobRequest::VerifyAudit {};
                let answer = follow(&owner, global.json, &request, job::verify_audit).await;
                let answer = answer.map_err(|stopped| match stopped {
                    JobStopped::Failed(JobError { status: 500, .. }) => {
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
        let grantee = match self.grantee {
            Some(whom) => Some(whom.find(&owner).await?.0.to_string()),
            None => None,
        };
        // One more tells whether there are more.
        let wanted = self.limit.saturating_add(usize::from(self.limit < MAX_AUDITED));
        let mut query = AuditQuery {
            since: self.since.map(|since| since.since(when::now())),
            grantee,
            grant_id: grant,
            item_id: item,
            chain: self.chain.map(|chain| chain.to_string()),
            limit: Some(wanted),
            ..AuditQuery::default()
        };
        let mut found = owner.get::<api::Audit>((), &query).await?;
        // Each answer looks at some of the log; what is asked for may be far behind.
        while let Some(next) = found.next.take().filter(|_| found.receipts.len() < wanted) {
            query.before = Some(next);
            query.limit = Some(wanted - found.receipts.len());
            let more = owner.get::<api::Audit>((), &query).await?;
            found.receipts.extend(more.receipts);
            found.next = more.next;
        }
        found.next = None;
        let more = found.receipts.len() > self.limit;
        found.receipts.truncate(self.limit);
        let names = Names::of(&owner).await?;
        let dids = found.receipts.iter().map(|receipt| receipt.agent_did.as_str());
        output::print(global.json, &names.beside(&found, dids), |named| {
            let more = if more { "\nThere are earlier receipts: --limit shows more" } else { "" };
            table(named.answer, &names) + more
        });
        Ok(())
    }
}

/// Tells of agents that had the name before, and were removed: what they were given is not in the answer.
async fn tell_of_earlier(
    owner: &OwnerClient,
    asked: &AgentRef,
    given: &InjectedList,
) -> Result<(), CliError> {
    let AgentRef::Name(name) = asked else { return Ok(()) };
    let list = owner.get::<ListAgents>((), &()).await?;
    for earlier in list.agents.iter().filter(|agent| agent.name == *name && agent.did != given.agent.did) {
        eprintln!("oap-memory: an earlier {name} ({}) was removed; ask by its DID", earlier.did);
    }
    Ok(())
}

/// Chains that were verified.
pub(super) fn chains(verified: &Chains) -> String {
    let rows = verified.chains.iter().map(|chain| {
        let (length, at) = (chain.length.to_string(), chain.at.to_string());
        vec![chain.chain.clone(), length, at, output::or_none(chain.tip)]
    });
    output::table(&["chain", "entries", "last", "tip"], rows) + "\nEvery chain holds."
}

/// What an agent was given until a time: a line for each item of each answer.
pub(super) fn injected(given: &InjectedList, until: Option<Timestamp>) -> String {
    if given.answers.is_empty() {
        let until = until.map(|until| format!(" before {until}")).unwrap_or_default();
        return format!("{} was given nothing{until}", given.agent.name);
    }
    let rows = given.answers.iter().flat_map(|answer| {
        let (at, tool) = (answer.at.to_string(), answer.tool.clone());
        let row = move |item: String, version: String, said: String| {
            vec![at.clone(), tool.clone(), item, version, said]
        };
        let is_empty = answer.items.is_empty() && answer.foreign.is_empty();
        let none = is_empty.then(|| row(String::new(), String::new(), "nothing".to_owned()));
        let gone = || "(not kept any more)".to_owned();
        let items = answer.items.iter().map(|item| {
            row(
                item.item_id.to_string(),
                output::or_none(item.version),
                item.said.clone().unwrap_or_else(gone),
            )
        });
        let told =
            answer.links.iter().map(|link| row(link.to_string(), String::new(), "(a link)".to_owned()));
        let theirs = answer.foreign.iter().map(|foreign| {
            let from: Vec<String> = foreign.shown_by.iter().map(|via| shown_under(given, via)).collect();
            row(foreign.item_id.to_string(), String::new(), format!("(of {})", from.join(", ")))
        });
        items.chain(none).chain(theirs).chain(told).collect::<Vec<_>>()
    });
    let table = output::table(&["time", "tool", "item", "version", "said"], rows);
    if given.more { format!("{table}\nThere are earlier answers: --limit shows more") } else { table }
}

/// Whose memory showed something, and what for: the granter's words, where the wallet still has the grant.
fn shown_under(given: &InjectedList, via: &Via) -> String {
    match given.grants.iter().find(|known| known.grant == via.grant) {
        Some(ShownUnder { grant_id, purpose, .. }) => format!("{} for \"{purpose}\", {grant_id}", via.peer),
        None => format!("{} by grant {}, which is removed", via.peer, via.grant),
    }
}

/// What the artefacts tell of canaries.
pub(super) fn memorization(report: &Memorization) -> String {
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

pub(super) fn table(answer: &Receipts, names: &Names) -> String {
    let rows = answer.receipts.iter().map(|receipt| {
        vec![
            receipt.timestamp.to_string(),
            receipt.action_id.clone().unwrap_or_default(),
            output::or_none(receipt.policy_decisions.first().map(|decision| decision.outcome)),
            names.of_text(&receipt.agent_did),
            receipt.provenance_tags_out.len().to_string(),
            receipt.receipt_id.to_string(),
        ]
    });
    output::table(&["time", "action", "outcome", "agent", "items", "receipt"], rows)
}

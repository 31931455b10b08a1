//! `oap-memory who`

use super::names::Whom;
use super::{CliError, Global, audit, ids, output};
use crate::api::agents::{AgentRef, Injected, InjectedList, InjectedQuery};
use crate::api::disclosures as api;
use crate::api::disclosures::{DisclosedAs, Grantee, WhoQuery};
use crate::api::prefix::ItemPrefix;
use oap_memory::Status;
use serde::Serialize;
use std::collections::BTreeSet;

/// Show what somebody was granted, and everything that they were ever shown
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory who did:web:contractor.example
  oap-memory who did:web:contractor.example --limit 200 --json
  oap-memory who scout

It reads the grants and the receipts. Refusals are counted as the receipts tell them: of more than 30 in a minute, 30. Of an
agent of yours it tells what its tools gave it, as `audit injected` does.")]
pub(super) struct Who {
    /// The grantee by DID, or an agent of yours by name
    #[arg(value_name = "DID|NAME")]
    whom: Whom,
    /// Only items older than this one
    #[arg(long, value_name = "ID")]
    before: Option<ItemPrefix>,
    /// At most so many items, and so many grants; of an agent, so many answers
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// What an agent of the owner's was given; and what grants showed it, where it has or had any.
#[derive(Serialize)]
struct OfAgent {
    given: InjectedList,
    grantee: Option<Grantee>,
}

impl Who {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        let (did, agent) = self.whom.find(&owner).await?;
        let before = match &self.before {
            Some(before) => Some(ids::one(&owner, before).await?),
            None => None,
        };
        let limit = Some(self.limit.into());
        let query = WhoQuery { did: did.clone(), before, limit };
        let grantee = match owner.send::<api::Who>((), &query).await {
            Ok(answer) => Some(answer),
            Err(error) if error.is_gone() => None,
            Err(error) => return Err(error.into()),
        };
        match (agent, grantee) {
            (Some(agent), grantee) => {
                let query = InjectedQuery { limit, ..InjectedQuery::default() };
                let given = owner.get::<Injected>(AgentRef::Did(agent.did), &query).await?;
                let grantee = grantee.filter(|grantee| grantee.grants_count + grantee.shown_count > 0);
                output::print(global.json, &OfAgent { given, grantee }, of_agent);
            }
            (None, Some(grantee)) => output::print(global.json, &grantee, people),
            (None, None) => {
                return Err(CliError::Other(format!(
                    "{did}: no grant to them, and they never asked with one; what they ask you for is in `grant inbox`"
                )));
            }
        }
        Ok(())
    }
}

fn of_agent(answer: &OfAgent) -> String {
    let agent = &answer.given.agent;
    let removed = agent.removed_at.map(|at| format!(", removed at {at}")).unwrap_or_default();
    let mut text = format!("{} is an agent of yours, {}{removed}\n\n", agent.name, agent.did);
    if let Some(grantee) = &answer.grantee {
        text.push_str(&people(grantee));
        text.push_str("\n\n");
    }
    text.push_str(&audit::injected(&answer.given, None));
    text
}

fn people(answer: &Grantee) -> String {
    let mut text = String::new();
    let grants = &answer.grants;
    if grants.is_empty() {
        text.push_str("no grant\n");
    } else {
        let rows = grants.iter().map(|grant| {
            vec![
                grant.grant_id.to_string(),
                grant.state.as_str().to_owned(),
                grant.expires_at.to_string(),
                grant.trust_level.get().to_string(),
                grant.disclosed.to_string(),
                grant.purpose.clone(),
            ]
        });
        text.push_str(&output::table(&["grant", "state", "until", "level", "shown", "purpose"], rows));
        let rest = answer.grants_count.saturating_sub(grants.len());
        if rest > 0 {
            text.push_str(&format!("\nand {rest} more"));
        }
        text.push('\n');
    }
    text.push_str(&format!("\n{} item(s) shown in {} queries", answer.shown_count, answer.queries));
    if let Some(last) = &answer.last_query {
        text.push_str(&format!(", the last at {}", last.at));
    }
    text.push_str(&format!("; {} refusal(s)\n", answer.refusals));
    if !answer.shown.is_empty() {
        let rows = answer.shown.iter().map(|item| {
            let gist = match item.status {
                Status::Erased => "(erased)".to_owned(),
                _ => output::short(item.gist.as_deref().unwrap_or_default(), 40),
            };
            vec![
                item.item_id.to_string(),
                item.times.to_string(),
                item.first.to_string(),
                item.last.to_string(),
                seen_at(&item.seen_at),
                gist,
            ]
        });
        text.push_str(&output::table(&["item", "times", "first", "last", "level", "content"], rows));
    }
    if let Some(next) = answer.next {
        text.push_str(&format!("\nmore: --before {next}"));
    }
    if !answer.complete {
        text.push_str(&format!("\nonly the newest {} receipts were looked at", answer.receipts));
    }
    text
}

/// At which level by which profile, such as `2 memory.v1`.
pub(super) fn seen_at(seen: &BTreeSet<DisclosedAs>) -> String {
    let one = |seen: &DisclosedAs| {
        let short = seen.profile.strip_prefix(oap_memory::profile::NAME_PREFIX).unwrap_or(&seen.profile);
        format!("{} {short}", seen.level)
    };
    seen.iter().map(one).collect::<Vec<_>>().join(", ")
}

//! `oap-memory who`

use super::{CliError, Global, ids, output, values};
use crate::api::disclosures as api;
use crate::api::disclosures::{DisclosedAs, Grantee, WhoQuery};
use crate::api::prefix::ItemPrefix;
use oap_identity::Did;
use oap_memory::Status;
use std::collections::BTreeSet;

/// Show what somebody was granted, and everything that they were ever shown
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory who did:web:contractor.example
  oap-memory who did:web:contractor.example --limit 200 --json

It reads the grants and the receipts. Refusals are counted as the receipts tell them: of more than 30 in a minute, 30.")]
pub(super) struct Who {
    /// The grantee
    #[arg(value_parser = values::grantee)]
    did: Did,
    /// Only items older than this one
    #[arg(long, value_name = "ID")]
    before: Option<ItemPrefix>,
    /// At most so many items, and so many grants
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

impl Who {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let did = &self.did;
        let owner = global.owner().await?;
        let before = match &self.before {
            Some(before) => Some(ids::one(&owner, before).await?),
            None => None,
        };
        let query = WhoQuery { did: did.clone(), before, limit: Some(self.limit.into()) };
        let answer = owner.send::<api::Who>((), &query).await;
        let answer = answer.map_err(|error| match error {
            error if error.is_gone() => {
                CliError::Other(format!("{did}: no grant to them, and they never asked"))
            }
            error => error.into(),
        })?;
        output::print(global.json, &answer, people);
        Ok(())
    }
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

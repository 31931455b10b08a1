//! `oap-memory review`: what waits for the owner, why, and what is proposed.

use super::{CliError, Global, ids, item, output, screen};
use crate::api::Document;
use crate::api::items as api;
use crate::api::items::ListQuery;
use crate::api::policy::{Policy, ShowPolicy};
use crate::api::prefix::ItemPrefix;
use oap_agents::level::EXTENSION;
use oap_agents::{Level, quarantine};
use oap_client::OwnerClient;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::item::Confidence;
use oap_soundness::alike::{Proposal, Record, Sketch, proposals};
use oap_soundness::guard::{Findings, Severity, examine};
use oap_soundness::trust::{Known, trust};
use serde::Serialize;
use std::fmt::Write;

/// Most items that what waits is compared with, the newest ones.
const MAX_COMPARED: usize = 5000;
/// Items of one page.
const PAGE: usize = 500;
/// Most proposals of one item.
const MAX_PROPOSALS: usize = 3;

/// See what your agents wrote that waits for you, and decide
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory review
  oap-memory review accept mem_01J9V8B7
  oap-memory review reject mem_01J9V8B7
  oap-memory review merge mem_01J9V8B7 --into mem_01J9V8C0

What reads as an order to an assistant is stopped: no agent is given it before you accept it. What is rejected or merged is
taken back, and can be put back until it is erased (`item restore`).")]
pub(super) struct Review {
    #[command(subcommand)]
    decision: Option<Decision>,
}

#[derive(clap::Subcommand)]
enum Decision {
    /// Confirm what an item says; of what an agent wrote you are shown all of it, and asked
    Accept {
        /// The item
        id: ItemPrefix,
        /// Only if this version is in force: the one that you read
        #[arg(long, value_name = "VERSION")]
        if_version: Option<u32>,
    },
    /// Take an item back
    Reject {
        /// The item
        id: ItemPrefix,
    },
    /// Take an item back, for another one says the same
    Merge {
        /// The item that goes
        id: ItemPrefix,
        /// The item that stays
        #[arg(long, value_name = "ID")]
        into: ItemPrefix,
    },
}

/// What waits, and what there is to know of it.
#[derive(Serialize)]
struct Waiting {
    item_id: ItemId,
    version: Option<u32>,
    author: Option<Did>,
    /// What sort of observation its writer says that it is.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    sort: Option<String>,
    level: Level,
    confidence: f64,
    /// Whether no agent is given it.
    quarantined: bool,
    /// Why it waits, in sentences.
    why: Vec<String>,
    /// What is proposed, in sentences.
    proposals: Vec<String>,
    text: String,
}

impl Review {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        match self.decision {
            None => {
                let listed = list(&owner, super::when::now()).await?;
                output::print(global.json, &listed, |waiting| people(waiting));
                Ok(())
            }
            Some(Decision::Accept { id, if_version }) => item::confirm(global, &owner, &id, if_version).await,
            Some(Decision::Reject { id }) => retract(global, &owner, &id).await,
            Some(Decision::Merge { id, into }) => {
                let (goes, stays) = (ids::one(&owner, &id).await?, ids::one(&owner, &into).await?);
                if goes == stays {
                    return Err(CliError::Usage("--into must be another item".to_owned()));
                }
                let kept = owner.get::<api::ShowItem>(stays, &()).await?;
                if kept.item.status != oap_memory::Status::Current {
                    return Err(CliError::Usage(format!("--into: {stays} is not in force")));
                }
                retract(global, &owner, &id).await
            }
        }
    }
}

async fn retract(global: &Global, owner: &OwnerClient, id: &ItemPrefix) -> Result<(), CliError> {
    let id = ids::one(owner, id).await?;
    item::done(global, &owner.send::<api::RetractItem>(id, &()).await?);
    Ok(())
}

/// The newest items, as many as that.
async fn newest(
    owner: &OwnerClient,
    waiting: bool,
    most: usize,
) -> Result<Vec<Document<api::Item>>, CliError> {
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let query = ListQuery { waiting, before, limit: Some(PAGE), ..ListQuery::default() };
        let page = owner.get::<api::ListItems>((), &query).await?;
        found.extend(page.items);
        before = page.next;
        if before.is_none() || found.len() >= most {
            found.truncate(most);
            return Ok(found);
        }
    }
}

async fn list(owner: &OwnerClient, now: Timestamp) -> Result<Vec<Waiting>, CliError> {
    let waiting = newest(owner, true, MAX_COMPARED).await?;
    if waiting.is_empty() {
        return Ok(Vec::new());
    }
    let policy = owner.get::<ShowPolicy>((), &()).await?;
    let known: Vec<Record> = newest(owner, false, MAX_COMPARED).await?.iter().map(record).collect();
    Ok(waiting.iter().map(|item| describe(item, &known, &policy, now)).collect())
}

/// An item as it is compared.
fn record(item: &Document<api::Item>) -> Record {
    Record {
        item: item.item_id,
        sketch: Sketch::of(&output::says(&item.content)),
        level: level(item),
        confirmed: false,
        written_at: written_at(item),
    }
}

fn level(item: &Document<api::Item>) -> Level {
    let by_owner = item.whole()["owner_did"].as_str() == item.author.as_ref().map(Did::as_str);
    item.whole().as_object().map_or(Level::External, |members| Level::of(members, by_owner))
}

fn written_at(item: &Document<api::Item>) -> Timestamp {
    item.provenance.captured_at.unwrap_or(Timestamp::from_millis(0))
}

fn describe(item: &Document<api::Item>, known: &[Record], policy: &Policy, now: Timestamp) -> Waiting {
    let (text, level) = (output::says(&item.content), level(item));
    let said = [&item.whole()["provenance"]["confidence"], &item.whole()["confidence"]];
    let claimed = said
        .into_iter()
        .find_map(serde_json::Value::as_f64)
        .and_then(|value| Confidence::try_from(value).ok());
    let claimed = claimed.map_or_else(|| level.most(), |claimed| level.confidence(Some(claimed)));
    let confidence = Confidence::try_from(claimed).unwrap_or(Confidence::CERTAIN);
    let known_of = Known { level, confidence, written_at: written_at(item), confirmed: false };
    let trust = trust(&known_of, &policy.decay, now);
    let quarantined = item.labels.iter().any(|label| label == quarantine::LABEL);
    let mut why = found(&examine(&text));
    why.extend(stopped(item).filter(|_| quarantined));
    why.push(trust.says());
    let proposals = proposals(&record(item), known).into_iter().take(MAX_PROPOSALS).map(proposed).collect();
    Waiting {
        item_id: item.item_id,
        version: item.version,
        author: item.author.clone(),
        sort: item.whole()["extensions"][EXTENSION]["type"].as_str().map(str::to_owned),
        level,
        confidence: trust.confidence(),
        quarantined,
        why,
        proposals,
        text,
    }
}

/// For what the guard stopped an item when it was written: it may be what stands beside the text.
fn stopped(item: &Document<api::Item>) -> Option<String> {
    let kinds = item.whole()["extensions"][EXTENSION]["guard"].as_array()?;
    let kinds: Vec<&str> = kinds.iter().filter_map(serde_json::Value::as_str).collect();
    Some(format!("stopped when it was written, text or labels, for: {}", kinds.join(", ")))
}

/// What the guard finds, each thing once.
fn found(findings: &Findings) -> Vec<String> {
    let mut says = Vec::new();
    for found in findings.all().iter().filter(|found| found.severity >= Severity::Note) {
        let line = format!("{} ({}): {}", found.kind, found.severity, found.says);
        if !says.contains(&line) {
            says.push(line);
        }
    }
    says
}

fn proposed(proposal: Proposal) -> String {
    match proposal {
        Proposal::Merge { keep, drop, likeness, .. } => {
            format!("{likeness} of 100 parts are the same: oap-memory review merge {drop} --into {keep}")
        }
        Proposal::Decide { later, earlier, clash } => {
            format!("{earlier} and {later} may contradict each other. {}", clash.says())
        }
    }
}

fn people(waiting: &[Waiting]) -> String {
    if waiting.is_empty() {
        return "nothing waits for you".to_owned();
    }
    let mut text = String::new();
    for item in waiting {
        let by = item.author.as_ref().map(ToString::to_string).unwrap_or_default();
        let stopped = if item.quarantined { ", stopped" } else { "" };
        let sort = item.sort.as_ref().map(|sort| format!(", {}", screen::line(sort))).unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  version {}, {} {}{sort}{stopped}, by {}",
            item.item_id,
            output::or_none(item.version),
            item.level,
            item.confidence,
            screen::line(&by)
        );
        let _ = writeln!(text, "  | {}", output::short(&item.text, 160));
        for line in item.why.iter().chain(&item.proposals) {
            let _ = writeln!(text, "  - {line}");
        }
    }
    let _ = write!(text, "\n{} wait: oap-memory review accept|reject|merge ID", waiting.len());
    text
}

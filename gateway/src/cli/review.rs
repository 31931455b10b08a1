//! `oap-memory review`: what waits for the owner, why, and what is proposed.

use super::names::Names;
use super::{CliError, Global, ids, item, output, screen};
use crate::api::Document;
use crate::api::items as api;
use crate::api::items::{ListQuery, Rejection, WholeItem};
use crate::api::policy::{Policy, ShowPolicy};
use crate::api::prefix::ItemPrefix;
use oap_agents::level::EXTENSION;
use oap_agents::{Level, quarantine};
use oap_client::OwnerClient;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::Status;
use oap_memory::item::Confidence;
use oap_memory::record::Tier;
use oap_soundness::alike::{Proposal, Record, Relation, Sketch, compare, proposals};
use oap_soundness::guard::{Findings, Severity, examine};
use oap_soundness::trust::{Known, trust};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::{IsTerminal, Write as _};

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
  oap-memory review merge mem_01J9V8B7 --into mem_01J9V8C0 --yes

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
    /// Take an item back that waits
    Reject {
        /// The item
        id: ItemPrefix,
        #[command(flatten)]
        asking: Asking,
    },
    /// Take an item back that waits, for another one says the same
    Merge {
        /// The item that goes
        id: ItemPrefix,
        /// The item that stays
        #[arg(long, value_name = "ID")]
        into: ItemPrefix,
        #[command(flatten)]
        asking: Asking,
    },
}

/// How a decision asks before it is carried out.
#[derive(clap::Args)]
struct Asking {
    /// Only if this version is in force, and without asking: the one that you read
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u32>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// What waits, and what there is to know of it.
#[derive(Serialize)]
struct Waiting {
    item_id: ItemId,
    version: Option<u32>,
    author: Option<Did>,
    /// The name of the agent that wrote it; the DID of anybody else.
    agent: Option<String>,
    tier: Option<Tier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// What sort of observation its writer says that it is.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    sort: Option<String>,
    level: Level,
    confidence: f64,
    /// Whether no agent is given it.
    quarantined: bool,
    /// Whether it can be relied on no more, as its writer said.
    stale: bool,
    /// Whether it has waited for an hour or longer.
    due: bool,
    /// Why it waits, in sentences.
    why: Vec<String>,
    /// What is proposed, in sentences: of two items once, beside the first of them.
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
            Some(Decision::Reject { id, asking }) => {
                let id = ids::one(&owner, &id).await?;
                let goes = waiting(&owner, id).await?;
                let version = asking.goes_on(&goes, &format!("Take it back? ({id})"))?;
                reject(global, &owner, id, Rejection { version, into: None }).await
            }
            Some(Decision::Merge { id, into, asking }) => {
                let (goes, stays) = (ids::one(&owner, &id).await?, ids::one(&owner, &into).await?);
                if goes == stays {
                    return Err(CliError::Usage("--into must be another item".to_owned()));
                }
                let kept = owner.get::<api::ShowItem>(stays, &()).await?;
                if kept.item.status != Status::Current {
                    return Err(CliError::Usage(format!("--into: {stays} is not in force")));
                }
                let shown = waiting(&owner, goes).await?;
                let version = asking.goes_on(&shown, &merging(&shown, &kept))?;
                reject(global, &owner, goes, Rejection { version, into: Some(stays) }).await
            }
        }
    }
}

/// An item that waits for the owner.
async fn waiting(owner: &OwnerClient, id: ItemId) -> Result<WholeItem, CliError> {
    let shown = owner.get::<api::ShowItem>(id, &()).await?;
    let waits = shown.item.status == Status::Current
        && shown.record.as_ref().is_some_and(|record| record.needs_verification);
    if waits {
        return Ok(shown);
    }
    Err(CliError::Usage(format!(
        "{id} does not wait for you; `oap-memory item retract {id}` takes any item back"
    )))
}

/// What is asked before an item goes for another one.
fn merging(goes: &WholeItem, stays: &WholeItem) -> String {
    let says = |of: &WholeItem| output::says(&of.item.content);
    let mut text = format!("stays: {}\n  | {}\n", stays.item.item_id, output::short(&says(stays), 160));
    if !matches!(compare(&Sketch::of(&says(goes)), &Sketch::of(&says(stays))), Relation::Alike { .. }) {
        text.push_str("They do not say the same.\n");
    }
    if stays.record.as_ref().is_some_and(|record| record.needs_verification) {
        text.push_str("The one that stays waits for you, too.\n");
    }
    text + "Take the first one back?"
}

impl Asking {
    /// Which version is taken back, where it is to be: the gateway takes back no other. Who is not there to be asked has said --yes, or which
    /// version was read.
    fn goes_on(&self, goes: &WholeItem, question: &str) -> Result<u32, CliError> {
        if let Some(version) = self.if_version {
            return Ok(version);
        }
        let shown = goes.item.version.ok_or_else(|| {
            CliError::Other(format!(
                "{} is not kept any more: there is nothing to take back",
                goes.item.item_id
            ))
        })?;
        if self.yes {
            return Ok(shown);
        }
        if !std::io::stdin().is_terminal() {
            return Err(CliError::Usage(
                "there is no terminal to ask on: say --yes, or --if-version with the version that you read"
                    .to_owned(),
            ));
        }
        let (id, says) = (goes.item.item_id, output::short(&output::says(&goes.item.content), 160));
        eprint!("{}", screen::plain(&format!("{id}\n  | {says}\n{question} [y/N] ")));
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(|e| CliError::Other(e.to_string()))?;
        if matches!(line.trim(), "y" | "Y" | "yes") {
            return Ok(shown);
        }
        Err(CliError::Other("nothing was taken back".to_owned()))
    }
}

async fn reject(
    global: &Global,
    owner: &OwnerClient,
    id: ItemId,
    rejection: Rejection,
) -> Result<(), CliError> {
    item::done(global, &owner.send::<api::RejectItem>(id, &rejection).await?);
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
    let (names, mut told) = (Names::of(owner).await?, BTreeSet::new());
    Ok(waiting.iter().map(|item| describe(item, &known, &names, &policy, &mut told, now)).collect())
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

/// What there is to know of an item; `told` are the pairs that were proposed before.
fn describe(
    item: &Document<api::Item>,
    known: &[Record],
    names: &Names,
    policy: &Policy,
    told: &mut BTreeSet<(ItemId, ItemId)>,
    now: Timestamp,
) -> Waiting {
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
    if item.stale {
        why.push("stale: its writer said how long it can be relied on, and that is over".to_owned());
    }
    if trust.is_due {
        why.push("it has waited for an hour or longer".to_owned());
    }
    let found = proposals(&record(item), known).into_iter().take(MAX_PROPOSALS);
    let proposals = found.filter(|of| told.insert(pair(of))).map(proposed).collect();
    Waiting {
        item_id: item.item_id,
        version: item.version,
        author: item.author.clone(),
        agent: item.author.as_ref().map(|author| names.who(author)),
        tier: item.tier,
        namespace: item.namespace.clone(),
        key: item.key.clone(),
        sort: item.whole()["extensions"][EXTENSION]["type"].as_str().map(str::to_owned),
        level,
        confidence: trust.confidence(),
        quarantined,
        stale: item.stale,
        due: trust.is_due,
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

/// The two items that are proposed, in one order.
fn pair(proposal: &Proposal) -> (ItemId, ItemId) {
    let (one, other) = match proposal {
        Proposal::Merge { keep, drop, .. } => (*keep, *drop),
        Proposal::Decide { later, earlier, .. } => (*later, *earlier),
    };
    (one.min(other), one.max(other))
}

fn proposed(proposal: Proposal) -> String {
    match proposal {
        Proposal::Merge { keep, drop, likeness, .. } => {
            format!(
                "{drop} and {keep} say the same ({likeness} %): oap-memory review merge {drop} --into {keep}"
            )
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
        let stopped = if item.quarantined { ", stopped" } else { "" };
        let stale = if item.stale { ", stale" } else { "" };
        let sort = item.sort.as_ref().map(|sort| format!(", {}", screen::line(sort))).unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  version {}, {} {}{sort}{stopped}{stale}, by {}",
            item.item_id,
            output::or_none(item.version),
            item.level,
            item.confidence,
            screen::line(&output::or_none(item.agent.as_ref()))
        );
        if let (Some(namespace), Some(key)) = (&item.namespace, &item.key) {
            let tier = output::or_none(item.tier);
            let _ = writeln!(
                text,
                "  {}",
                screen::line(&format!("{tier} entry, namespace {namespace}, key {key}"))
            );
        }
        let _ = writeln!(text, "  | {}", output::short(&item.text, 160));
        for line in item.why.iter().chain(&item.proposals) {
            let _ = writeln!(text, "  - {line}");
        }
    }
    let due = waiting.iter().filter(|item| item.due).count();
    let late = if due > 0 { format!(", {due} of them for an hour or longer") } else { String::new() };
    let _ = write!(text, "\n{} wait{late}: oap-memory review accept|reject|merge ID", waiting.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_long_is_counted() {
        let waiting = |due| Waiting {
            item_id: "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX".parse().unwrap(),
            version: Some(1),
            author: None,
            agent: None,
            tier: None,
            namespace: None,
            key: None,
            sort: None,
            level: Level::External,
            confidence: 0.5,
            quarantined: false,
            stale: false,
            due,
            why: Vec::new(),
            proposals: Vec::new(),
            text: "tea".to_owned(),
        };
        assert!(people(&[waiting(true), waiting(false)]).contains("2 wait, 1 of them for an hour"));
        assert!(people(&[waiting(false)]).contains("1 wait:"));
    }
}

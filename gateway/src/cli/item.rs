//! `oap-memory item`

mod list;
mod shown;

pub(super) use list::{List, table};

use super::bulk::{Relabel, Retract};
use super::delete::DeleteItems;
use super::job::{self, follow};
use super::names::Names;
use super::when::{self, When};
use super::{CliError, Global, confirm, history, ids, output, refusal, values};
use crate::api::Endpoint;
use crate::api::disclosures::ItemHistory;
use crate::api::grants::ListGrants;
use crate::api::items as api;
use crate::api::items::{
    AllResealed, Confirmation, Correction, NewItems, Resealed, Resealing, Written, WrittenItems,
};
use crate::api::jobs::JobRequest;
use crate::api::prefix::ItemPrefix;
use crate::system::config::Config;
use oap_client::OwnerClient;
use oap_identity::{ItemId, ScopeId};
use oap_memory::item::{Confidence, Kind, Sensitivity};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Items of one request.
const BATCH: usize = 500;

/// Write, read and correct memory items
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory item add --kind fact --text \"The site goes live on 1 June\" --label website --subject ent_proj_site
  oap-memory item add --file items.jsonl
  oap-memory item list --label website --since 30d
  oap-memory item list --waiting
  oap-memory item show mem_01...
  oap-memory item relabel mem_01... --label website --label dates
  oap-memory item restore mem_01...
  oap-memory item reseal --all
  oap-memory item confirm mem_01...
  oap-memory item correct mem_01... --text \"The site goes live on 8 June\"
  oap-memory item relabel --with-label web --add website --remove web --dry-run
  oap-memory item show mem_01... --history
  oap-memory item retract mem_01...

An item's id may be cut to its beginning, mem_ and 4 characters or more, where no other item's begins so.")]
pub(super) enum Item {
    /// Write an item, or a file of items
    Add(Box<Add>),
    /// List items, newest first
    List(List),
    /// Show an item with its record, chain and former versions
    Show {
        /// The item, by its id or the beginning of it
        id: ItemPrefix,
        /// Every version with what it changed, and to whom which version was shown
        #[arg(long)]
        history: bool,
    },
    /// Change what an item says; what is not named stays, the former version is kept for the retention time
    Correct(Box<Correct>),
    /// Change the labels of an item, or of many
    Relabel(Box<Relabel>),
    /// Take items back: out of every view at once, erased after the retention time
    Retract(Box<Retract>),
    /// Destroy items for good, as `oap-memory delete` does
    Delete(Box<DeleteItems>),
    /// Put a retracted item back
    Restore {
        /// The item, by its id or the beginning of it
        id: ItemPrefix,
    },
    /// Cut texts anew with the detectors and contacts of today: what they find is hidden from now on
    Reseal {
        /// The items, by their ids or the beginnings of them
        ids: Vec<ItemPrefix>,
        /// All current items
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
    /// Confirm that an item is so, as it is shown: with confidence 1 it counts as knowledge
    Confirm {
        /// The item, by its id or the beginning of it
        id: ItemPrefix,
        /// Refuse if the item has another version; where an agent wrote it and there is no terminal to ask on, this says what you read
        #[arg(long, value_name = "VERSION")]
        if_version: Option<u32>,
    },
}

/// What an item says, as flags.
#[derive(clap::Args)]
pub(super) struct Members {
    /// What it says
    #[arg(long)]
    text: Option<String>,
    /// What it says for machines: a JSON object
    #[arg(long, value_name = "JSON", value_parser = values::object)]
    structured: Option<Map<String, Value>>,
    /// Labels; may be given several times
    #[arg(long = "label", value_name = "LABEL", value_parser = values::short)]
    labels: Vec<String>,
    /// Whom or what it is about
    #[arg(long, value_name = "ENTITY", value_parser = values::short)]
    subject: Option<String>,
    /// How sure you are, 0 to 1
    #[arg(long, value_name = "0..1", value_parser = values::confidence)]
    confidence: Option<Confidence>,
    /// When it became known
    #[arg(long, value_name = "TIME")]
    captured_at: Option<When>,
    /// How much harm disclosure would do
    #[arg(long, value_parser = values::sensitivity())]
    sensitivity: Option<Sensitivity>,
    /// Days of life
    #[arg(long, value_name = "DAYS")]
    ttl_days: Option<u32>,
    /// Keep it out of exports and of grants to others
    #[arg(long)]
    not_exportable: bool,
}

impl Members {
    fn to_item(&self) -> Result<Value, CliError> {
        let mut item = json!({});
        let mut content = json!({});
        if let Some(text) = &self.text {
            content["text"] = json!(text);
        }
        if let Some(structured) = &self.structured {
            content["structured"] = json!(structured);
        }
        if content != json!({}) {
            item["content"] = content;
        }
        let mut provenance = json!({});
        if let Some(confidence) = self.confidence {
            provenance["confidence"] = json!(confidence);
        }
        if let Some(at) = &self.captured_at {
            provenance["captured_at"] = json!(at.since(when::now()));
        }
        if provenance != json!({}) {
            item["provenance"] = provenance;
        }
        if !self.labels.is_empty() {
            item["labels"] = json!(self.labels);
        }
        if let Some(subject) = &self.subject {
            item["subject_entity_id"] = json!(subject);
        }
        if let Some(sensitivity) = &self.sensitivity {
            item["sensitivity"] = json!(sensitivity);
        }
        if let Some(days) = self.ttl_days {
            item["ttl_days"] = json!(days);
        }
        if self.not_exportable {
            item["exportable"] = json!(false);
        }
        Ok(item)
    }
}

/// Write an item, or a file of items
#[derive(clap::Args)]
pub(super) struct Add {
    /// What sort of memory it is
    #[arg(long, required_unless_present = "file", value_parser = values::kind())]
    kind: Option<Kind>,
    /// The scope; the default one if absent
    #[arg(long)]
    scope: Option<ScopeId>,
    #[command(flatten)]
    members: Members,
    /// A file of items in the form of RFC 0010 section 3.2: one JSON object, an array, or one object a line; - is
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "text", "structured"])]
    file: Option<PathBuf>,
}

/// Change what an item says
#[derive(clap::Args)]
pub(super) struct Correct {
    /// The item, by its id or the beginning of it
    id: ItemPrefix,
    #[command(flatten)]
    members: Members,
    /// With --text: the structured content stays as it is, for it still fits
    #[arg(long, conflicts_with_all = ["structured", "no_structured"])]
    keep_structured: bool,
    /// Take the structured content away
    #[arg(long, conflicts_with = "structured")]
    no_structured: bool,
    /// Refuse if the item has another version by now
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u32>,
}

impl Item {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Relabel(relabel) => relabel.run(global).await,
            Self::Retract(retract) => retract.run(global).await,
            Self::Delete(delete) => delete.run(global).await,
            other => other.run_with(global, &*global.owner().await?).await,
        }
    }

    async fn run_with(self, global: &Global, owner: &OwnerClient) -> Result<(), CliError> {
        match self {
            Self::Add(add) => {
                let items = add.items()?;
                let refused = |error| match &add.file {
                    Some(path) => refusal::of_file("--file", path, error),
                    None => error.into(),
                };
                let mut written = WrittenItems { items: Vec::new() };
                for batch in items.chunks(BATCH) {
                    let batch = NewItems { items: batch.to_vec() };
                    let answer = owner.send::<api::WriteItems>((), &batch).await.map_err(refused)?;
                    written.items.extend(answer.items);
                    if items.len() > BATCH {
                        eprintln!("{} of {} items", written.items.len(), items.len());
                    }
                }
                output::print(global.json, &written, |written| {
                    if written.items.len() > 20 {
                        return format!("{} items written", written.items.len());
                    }
                    // Whole ids: those of one second have the same beginning.
                    let ids = written.items.iter().map(|item| item.item_id.to_string());
                    ids.collect::<Vec<_>>().join("\n")
                });
                Ok(())
            }
            Self::List(list) => {
                let (page, names) = (list.page(owner).await?, Names::of(owner).await?);
                let named = names.beside(&page, list::authors(&page));
                output::print(global.json, &named, |named| table(named.answer, &names));
                Ok(())
            }
            Self::Show { id, history } => {
                let id = ids::one(owner, &id).await?;
                if history {
                    let answer = owner.get::<ItemHistory>(id, &()).await?;
                    output::print(global.json, &answer, history::people);
                } else {
                    let (item, names) = (owner.get::<api::ShowItem>(id, &()).await?, Names::of(owner).await?);
                    let named = names.beside(&item, shown::authors(&item));
                    output::print(global.json, &named, |named| shown::people(named.answer, &names));
                }
                Ok(())
            }
            Self::Correct(correct) => correct.run(global, owner).await,
            // Those ask before they open anything.
            Self::Relabel(_) | Self::Retract(_) | Self::Delete(_) => Ok(()),
            Self::Restore { id } => mark::<api::RestoreItem>(global, owner, &id).await,
            Self::Reseal { ids, all } => reseal(global, owner, ids, all).await,
            Self::Confirm { id, if_version } => confirm(global, owner, &id, if_version).await,
        }
    }
}

async fn mark<E>(global: &Global, owner: &OwnerClient, id: &ItemPrefix) -> Result<(), CliError>
where
    E: Endpoint<Place = ItemId, Query = (), Body = (), Answer = Written>,
{
    let id = ids::one(owner, id).await?;
    done(global, &owner.send::<E>(id, &()).await?);
    Ok(())
}

/// Shows an item and confirms what was shown. Where an agent wrote it, its owner is asked, or has named the version.
pub(super) async fn confirm(
    global: &Global,
    owner: &OwnerClient,
    id: &ItemPrefix,
    if_version: Option<u32>,
) -> Result<(), CliError> {
    let id = ids::one(owner, id).await?;
    let shown = owner.get::<api::ShowItem>(id, &()).await?;
    let version = if_version.or(shown.item.version);
    let by = shown.record.as_ref().map(|record| record.author.as_str());
    let home = global.home();
    let principal = Config::load(home.path(), &global.flags())?.principal(home.path())?;
    // What came from a former house names that one as its owner.
    let agents = by.is_some_and(|by| by != principal.as_str());
    if agents && if_version.is_none() {
        if !std::io::stdin().is_terminal() {
            return Err(CliError::Usage(format!(
                "an agent wrote this item; read it (`item show {id}`) and say --if-version with the version that you read"
            )));
        }
        let grants = owner.get::<ListGrants>((), &()).await?;
        eprint!("{}\nConfirm it? [y/N] ", confirm::question(&shown, &grants, &Names::of(owner).await?));
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(|e| CliError::Other(e.to_string()))?;
        if !matches!(line.trim(), "y" | "Y" | "yes") {
            return Err(CliError::Other("nothing was confirmed".to_owned()));
        }
    }
    done(global, &owner.send::<api::ConfirmItem>(id, &Confirmation { version }).await?);
    Ok(())
}

impl Correct {
    /// A text and a structured content say the same thing twice. One that is corrected alone leaves the other behind, and grantees would
    /// be shown both; so the owner says what becomes of it.
    async fn run(&self, global: &Global, owner: &OwnerClient) -> Result<(), CliError> {
        let mut item = self.members.to_item()?;
        if self.no_structured {
            item["content"]["structured"] = Value::Null;
        }
        if item == json!({}) {
            let why = "say what to correct: --text, --structured, --label or another member; see `item correct --help`";
            return Err(CliError::Usage(why.to_owned()));
        }
        let id = ids::one(owner, &self.id).await?;
        let shown = owner.get::<api::ShowItem>(id, &()).await?.item;
        if says(shown.whole(), &item) && self.if_version.is_none_or(|v| Some(v) == shown.version) {
            let same = json!({"item_id": id, "version": shown.version, "changed": false});
            output::print(global.json, &same, |_| "nothing changed".to_owned());
            return Ok(());
        }
        let (text, structured) = (self.members.text.is_some(), self.members.structured.is_some());
        let mut version = self.if_version;
        if text != structured && !self.keep_structured && !self.no_structured {
            let content = &shown.content;
            if let Some(kept) = content.structured.as_ref().filter(|_| text) {
                return Err(CliError::Usage(format!(
                    "the item has structured content, which --text would leave as it is: {}\ncorrect it too with \
                     --structured JSON, take it away with --no-structured, or say --keep-structured if it still fits",
                    output::short(&json!(kept).to_string(), 200)
                )));
            }
            if structured && content.text.is_some() && !global.json {
                eprintln!(
                    "oap-memory: the text stays as it was; correct it with --text if it does not fit any more"
                );
            }
            // What was looked at is what is corrected.
            version = version.or(shown.version);
        }
        done(global, &owner.send::<api::CorrectItem>(id, &Correction { item, version }).await?);
        Ok(())
    }
}

/// Whether an item says already what a correction would make it say.
fn says(item: &Value, correction: &Value) -> bool {
    match correction {
        Value::Object(members) => members.iter().all(|(name, to)| match (name.as_str(), to) {
            // Taken as a whole.
            ("structured", to) => &item[name] == to,
            (_, to) => says(&item[name], to),
        }),
        to => item == to,
    }
}

async fn reseal(
    global: &Global,
    owner: &OwnerClient,
    ids: Vec<ItemPrefix>,
    all: bool,
) -> Result<(), CliError> {
    if ids.is_empty() && !all {
        return Err(CliError::Usage("name items, or say --all".to_owned()));
    }
    let done = if all {
        follow(owner, global.json, &JobRequest::ResealItems {}, job::reseal_items).await?
    } else {
        let ids = ids::all(owner, &ids).await?;
        let mut done = AllResealed { seen: ids.len(), resealed: Vec::new() };
        for id in ids {
            let answer = owner.send::<api::ResealItem>(id, &Resealing::default()).await?;
            if matches!(answer, Resealed::Done { resealed: Some(_) }) {
                done.resealed.push(id);
            }
        }
        done
    };
    output::print(global.json, &done, all_resealed);
    Ok(())
}

/// What became of items that were to be resealed.
pub(super) fn all_resealed(done: &AllResealed) -> String {
    format!("{} of {} items resealed", done.resealed.len(), done.seen)
}

impl Add {
    fn items(&self) -> Result<Vec<Value>, CliError> {
        let Some(path) = &self.file else {
            let mut item = self.members.to_item()?;
            if item.get("content").is_none() {
                return Err(CliError::Usage("--text or --structured is needed".to_owned()));
            }
            item["kind"] = json!(self.kind);
            if let Some(scope) = &self.scope {
                item["scope_id"] = json!(scope);
            }
            return Ok(vec![item]);
        };
        let bytes = output::read(path)?;
        let bad = |line: usize, e: &dyn std::fmt::Display| {
            CliError::File(path.clone(), format!("line {line}: {e}"))
        };
        match oap_identity::json::parse(&bytes) {
            Ok(Value::Array(items)) => Ok(items),
            Ok(item @ Value::Object(_)) => Ok(vec![item]),
            _ => bytes
                .split(|byte| *byte == b'\n')
                .enumerate()
                .filter(|(_, line)| !line.trim_ascii().is_empty())
                .map(|(number, line)| oap_identity::json::parse(line).map_err(|e| bad(number + 1, &e)))
                .collect(),
        }
    }
}

pub(super) fn done(global: &Global, written: &Written) {
    output::print(global.json, written, |w| format!("{} version {}", w.item_id, w.version));
}

//! `oap-memory item`

use super::bulk::{Relabel, Retract};
use super::delete::DeleteItems;
use super::when::{self, When};
use super::{CliError, Global, history, ids, output, refusal, values};
use crate::client::owner::OwnerClient;
use crate::service::prefix::ItemPrefix;
use oap_identity::{ScopeId, Timestamp};
use oap_memory::item::{Confidence, Kind, Sensitivity};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Items of one request.
const BATCH: usize = 500;

/// Write, read and correct memory items
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory item add --kind fact --text \"The site goes live on 1 June\" --label website --subject ent_proj_site
  oap-memory item add --file items.jsonl
  oap-memory item list --label website --since 30d
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
    /// Confirm that an item is so: with confidence 1 it counts as knowledge
    Confirm {
        /// The item, by its id or the beginning of it
        id: ItemPrefix,
    },
}

/// What an item says, as flags.
#[derive(clap::Args)]
pub(super) struct Members {
    /// What it says
    #[arg(long)]
    text: Option<String>,
    /// What it says for machines: a JSON object
    #[arg(long, value_name = "JSON")]
    structured: Option<String>,
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
            let structured = oap_identity::json::parse(structured.as_bytes()).map_err(|e| e.to_string());
            content["structured"] = structured
                .and_then(
                    |value| if value.is_object() { Ok(value) } else { Err("must be a JSON object".into()) },
                )
                .map_err(|e| CliError::Usage(format!("--structured: {e}")))?;
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

/// List items, newest first
#[derive(clap::Args)]
pub(super) struct List {
    /// Only of this kind
    #[arg(long, value_parser = values::kind())]
    kind: Option<Kind>,
    /// Only with this label
    #[arg(long, value_parser = values::short)]
    label: Option<String>,
    /// Only of this scope
    #[arg(long)]
    scope: Option<ScopeId>,
    /// Only about this subject
    #[arg(long)]
    subject: Option<String>,
    /// Only in this state
    #[arg(long, value_parser = ["current", "retracted"], default_value = "current")]
    status: String,
    /// Only older than this item
    #[arg(long, value_name = "ID")]
    before: Option<ItemPrefix>,
    /// Only captured at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Only captured until this time
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
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
            other => other.run_with(global, &mut global.owner().await?).await,
        }
    }

    async fn run_with(self, global: &Global, owner: &mut OwnerClient) -> Result<(), CliError> {
        match self {
            Self::Add(add) => {
                let items = add.items()?;
                let refused = |error| match &add.file {
                    Some(path) => refusal::of_file("--file", path, error),
                    None => error.into(),
                };
                let mut written = Vec::new();
                for batch in items.chunks(BATCH) {
                    let body = json!({"items": batch});
                    let answer = owner.call("POST", "/oap/owner/items", &[], Some(&body)).await;
                    let answer = answer.map_err(refused)?;
                    written.extend(answer["items"].as_array().cloned().unwrap_or_default());
                    if items.len() > BATCH {
                        eprintln!("{} of {} items", written.len(), items.len());
                    }
                }
                output::print(global.json, &json!({"items": written}), |_| {
                    if written.len() > 20 {
                        return format!("{} items written", written.len());
                    }
                    // Whole ids: those of one second have the same beginning.
                    let ids = written.iter().map(|item| output::text(item, "/item_id"));
                    ids.collect::<Vec<_>>().join("\n")
                });
                Ok(())
            }
            Self::List(list) => {
                output::print(global.json, &list.page(owner).await?, table);
                Ok(())
            }
            Self::Show { id, history } => {
                let id = ids::one(owner, &id).await?;
                let (of, people): (&str, fn(&Value) -> String) =
                    if history { ("/history", history::people) } else { ("", show) };
                let answer = owner.call("GET", &format!("/oap/owner/items/{id}{of}"), &[], None).await?;
                output::print(global.json, &answer, people);
                Ok(())
            }
            Self::Correct(correct) => correct.run(global, owner).await,
            // Those ask before they open anything.
            Self::Relabel(_) | Self::Retract(_) | Self::Delete(_) => Ok(()),
            Self::Restore { id } => mark(global, owner, &id, "restore").await,
            Self::Reseal { ids, all } => reseal(global, owner, ids, all).await,
            Self::Confirm { id } => mark(global, owner, &id, "confirm").await,
        }
    }
}

async fn mark(
    global: &Global,
    owner: &mut OwnerClient,
    id: &ItemPrefix,
    event: &str,
) -> Result<(), CliError> {
    let id = ids::one(owner, id).await?;
    let path = format!("/oap/owner/items/{id}/{event}");
    done(global, &owner.call("POST", &path, &[], Some(&json!({}))).await?);
    Ok(())
}

impl Correct {
    /// A text and a structured content say the same thing twice. One that is corrected alone leaves the other behind, and grantees would
    /// be shown both; so the owner says what becomes of it.
    async fn run(&self, global: &Global, owner: &mut OwnerClient) -> Result<(), CliError> {
        let mut body = json!({"item": self.members.to_item()?});
        if self.no_structured {
            body["item"]["content"]["structured"] = Value::Null;
        }
        if body["item"] == json!({}) {
            let why = "say what to correct: --text, --structured, --label or another member; see `item correct --help`";
            return Err(CliError::Usage(why.to_owned()));
        }
        let id = ids::one(owner, &self.id).await?;
        let shown = owner.call("GET", &format!("/oap/owner/items/{id}"), &[], None).await?;
        let seen = shown["item"]["version"].as_u64();
        if says(&shown["item"], &body["item"]) && self.if_version.is_none_or(|v| Some(v.into()) == seen) {
            let same = json!({"item_id": id, "version": seen, "changed": false});
            output::print(global.json, &same, |_| "nothing changed".to_owned());
            return Ok(());
        }
        let (text, structured) = (self.members.text.is_some(), self.members.structured.is_some());
        let mut version = self.if_version.map(u64::from);
        if text != structured && !self.keep_structured && !self.no_structured {
            let content = &shown["item"]["content"];
            if text && content["structured"].is_object() {
                return Err(CliError::Usage(format!(
                    "the item has structured content, which --text would leave as it is: {}\ncorrect it too with \
                     --structured JSON, take it away with --no-structured, or say --keep-structured if it still fits",
                    output::short(&content["structured"].to_string(), 200)
                )));
            }
            if structured && content["text"].is_string() && !global.json {
                eprintln!(
                    "oap-memory: the text stays as it was; correct it with --text if it does not fit any more"
                );
            }
            // What was looked at is what is corrected.
            version = version.or(seen);
        }
        if let Some(version) = version {
            body["version"] = json!(version);
        }
        let path = format!("/oap/owner/items/{id}/correct");
        done(global, &owner.call("POST", &path, &[], Some(&body)).await?);
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

/// Items of one page.
const PAGE: usize = 500;

async fn reseal(
    global: &Global,
    owner: &mut OwnerClient,
    ids: Vec<ItemPrefix>,
    all: bool,
) -> Result<(), CliError> {
    if ids.is_empty() && !all {
        return Err(CliError::Usage("name items, or say --all".to_owned()));
    }
    let (seen, resealed) = if all {
        let ids = current_items(owner).await?;
        (ids.len(), reseal_all(owner, ids).await?)
    } else {
        let mut resealed = Vec::new();
        let ids = ids::all(owner, &ids).await?;
        for id in &ids {
            let path = format!("/oap/owner/items/{id}/reseal");
            if !owner.call("POST", &path, &[], Some(&json!({}))).await?["resealed"].is_null() {
                resealed.push(id.clone());
            }
        }
        (ids.len(), resealed)
    };
    let done = json!({"seen": seen, "resealed": resealed});
    output::print(global.json, &done, |_| format!("{} of {seen} items resealed", resealed.len()));
    Ok(())
}

/// Every current item.
async fn current_items(owner: &mut OwnerClient) -> Result<Vec<String>, CliError> {
    let (mut ids, mut before) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("limit", PAGE.to_string())];
        query.extend(before.take().map(|id| ("before", id)));
        let page = owner.call("GET", "/oap/owner/items", &query, None).await?;
        ids.extend(page["items"].as_array().into_iter().flatten().map(|i| output::text(i, "/item_id")));
        before = page["next"].as_str().map(str::to_owned);
        if before.is_none() {
            return Ok(ids);
        }
    }
}

/// Reseals every item or, where the text of none would be cut in another way, none: a grantee who saw that some items got
/// a version more would learn which ones mention a contact. For the same reason their order is a random one.
async fn reseal_all(owner: &mut OwnerClient, mut ids: Vec<String>) -> Result<Vec<String>, CliError> {
    let mut changes = false;
    for (number, id) in ids.iter().enumerate() {
        let path = format!("/oap/owner/items/{id}/reseal");
        match owner.call("POST", &path, &[], Some(&json!({"dry_run": true}))).await {
            Ok(answer) => changes = answer["would_reseal"] == true,
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error.into()),
        }
        if (number + 1) % PAGE == 0 {
            eprintln!("{} items looked at", number + 1);
        }
        if changes {
            break;
        }
    }
    if !changes {
        return Ok(Vec::new());
    }
    let salt: [u8; 32] = oap_identity::random::bytes(&crate::system::clock::SystemRandom);
    ids.sort_by_cached_key(|id| oap_identity::Hash::of(&[&salt, id.as_bytes()].concat()));
    // One time for the whole job: who sees two of its links learns nothing of how many came between.
    let at = oap_identity::Clock::now(&crate::system::clock::SystemClock);
    let mut resealed = Vec::with_capacity(ids.len());
    for id in ids {
        let path = format!("/oap/owner/items/{id}/reseal");
        match owner.call("POST", &path, &[], Some(&json!({"always": true, "at": at}))).await {
            Ok(_) => resealed.push(id),
            // Erased or taken back meanwhile.
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error.into()),
        }
        if resealed.len() % PAGE == 0 {
            eprintln!("{} items resealed", resealed.len());
        }
    }
    Ok(resealed)
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

impl List {
    fn query(&self) -> Vec<(&'static str, String)> {
        [
            ("kind", self.kind.map(|kind| kind.to_string())),
            ("label", self.label.clone()),
            ("scope", self.scope.as_ref().map(ToString::to_string)),
            ("subject", self.subject.clone()),
            ("status", Some(self.status.clone())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }

    /// The items, and where to go on.
    async fn page(&self, owner: &mut OwnerClient) -> Result<Value, CliError> {
        let mut before = match &self.before {
            Some(before) => Some(ids::one(owner, before).await?),
            None => None,
        };
        let timed = self.since.is_some() || self.until.is_some();
        let limit = usize::from(self.limit);
        let now = when::now();
        let (since, until) = (self.since.map(|t| t.since(now)), self.until.map(|t| t.until(now)));
        let mut found: Vec<Value> = Vec::new();
        // The gateway lists by the time of writing; the time of capture is another, and may be any.
        loop {
            let mut query = self.query();
            query.push(("limit", if timed { PAGE } else { limit }.to_string()));
            query.extend(before.take().map(|id| ("before", id)));
            let mut answer = owner.call("GET", "/oap/owner/items", &query, None).await?;
            if !timed {
                return Ok(answer);
            }
            if let Value::Array(items) = answer["items"].take() {
                found.extend(items.into_iter().filter(|item| captured(item, since, until)));
            }
            before = answer["next"].as_str().map(str::to_owned);
            if before.is_none() || found.len() > limit {
                break;
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|item| output::text(item, "/item_id"));
        Ok(json!({"items": found, "next": next}))
    }
}

/// Whether an item was captured in this time: from its beginning, to before its end.
fn captured(item: &Value, since: Option<Timestamp>, until: Option<Timestamp>) -> bool {
    let at = output::text(item, "/provenance/captured_at").parse::<Timestamp>();
    at.is_ok_and(|at| since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until))
}

pub(super) fn done(global: &Global, written: &Value) {
    output::print(global.json, written, |w| {
        format!("{} version {}", output::text(w, "/item_id"), output::text(w, "/version"))
    });
}

pub(super) fn table(answer: &Value) -> String {
    let items = answer["items"].as_array().cloned().unwrap_or_default();
    let rows = items.iter().map(|item| {
        vec![
            output::text(item, "/item_id"),
            output::text(item, "/kind"),
            output::text(item, "/scope_id"),
            item["labels"].as_array().map_or(String::new(), |labels| {
                labels.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
            }),
            output::gist(item),
        ]
    });
    let mut text = output::table(&["item", "kind", "scope", "labels", "content"], rows);
    if let Some(next) = answer["next"].as_str() {
        text.push_str(&format!("\nmore: --before {next}"));
    }
    text
}

fn show(answer: &Value) -> String {
    let mut text = output::pretty(&answer["item"]);
    text.push_str("\n\nchain\n");
    let links = answer["chain"].as_array().cloned().unwrap_or_default();
    let rows = links
        .iter()
        .map(|link| ["/seq", "/event", "/at", "/receipt"].iter().map(|p| output::text(link, p)).collect());
    text.push_str(&output::table(&["link", "event", "at", "receipt"], rows));
    let former = answer["superseded"].as_array().map_or(0, Vec::len);
    if former > 0 {
        text.push_str(&format!("\n{former} former version(s) kept; --json shows them"));
    }
    text
}

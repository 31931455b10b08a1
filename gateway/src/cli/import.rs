//! `oap-memory import`

use super::trust::{Known, Trust};
use super::verify::is_bundle;
use super::{CliError, Global, output};
use crate::client::owner::OwnerClient;
use crate::config::Config;
use crate::transfer::{bundle_file, sources};
use indicatif::{ProgressBar, ProgressStyle};
use oap_memory::bundle::{FORMAT, Header, Line, MAX_LINE, Reader};
use oap_memory::import::{Format, Found, Mapping, about};
use oap_memory::lines::whole_lines;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Records of one chunk, and its bytes.
const CHUNK: usize = 100;
const CHUNK_BYTES: usize = 4 << 20;
/// Chunks on their way at once: one is written while the next ones are prepared.
const IN_FLIGHT: usize = 3;
/// Samples that a dry run shows.
const SAMPLES: usize = 5;

/// Bring memory in: a bundle, or another vendor's export
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory import chatgpt-export.zip --dry-run
  oap-memory import chatgpt-export.zip --label chatgpt
  oap-memory import ~/notes --scope personal
  oap-memory import table.csv --map text=body,label=tags,captured_at=when
  oap-memory import memory.bundle --former-did did:web:old-vendor.example

Formats are recognised by content: chatgpt, claude, gemini, mem0, letta, mcp-memory, notes (basic-memory, Obsidian),
agents-md (CLAUDE.md, AGENTS.md, MEMORY.md), locomo, openintent, csv, jsonl, and bundles of this program (compressed or
encrypted too). `import --formats` says what each keeps and drops. Importing again changes nothing, so an interrupted
import is resumed by running it again. Exit status 1 when records were refused, 4 when a bundle's proof does not hold.")]
pub(super) struct Import {
    /// The file, folder or archive
    #[arg(value_name = "FILE|FOLDER", required_unless_present = "formats")]
    path: Option<PathBuf>,
    /// The format, where it is not recognised
    #[arg(long, value_name = "FORMAT")]
    from: Option<String>,
    /// Show counts and samples, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// The scope of what comes in; the default one if absent
    #[arg(long)]
    scope: Option<String>,
    /// A label for everything that comes in; may be given several times
    #[arg(long)]
    label: Vec<String>,
    /// Of tables: which column is which member, such as text=body,label=tags
    #[arg(long, value_name = "MEMBER=COLUMN,…")]
    map: Option<String>,
    /// Of bundles: your own DID at the former house
    #[arg(long, value_name = "DID")]
    former_did: Option<String>,
    #[command(flatten)]
    trust: Trust,
    /// Of encrypted bundles: your age identity
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Say what each format keeps, maps and drops
    #[arg(long)]
    formats: bool,
}

/// What became of everything.
#[derive(Default)]
struct Report {
    formats: Vec<String>,
    imported: u64,
    updated: u64,
    unchanged: u64,
    skipped: BTreeMap<String, u64>,
    refused: Vec<Value>,
    samples: Vec<Value>,
    bundle: Option<Value>,
}

impl Report {
    fn fate(&mut self, place: &str, fate: &Value) {
        match fate.as_object().and_then(|f| f.iter().next()).map(|(name, value)| (name.as_str(), value)) {
            Some(("imported", _)) => self.imported += 1,
            Some(("updated", _)) => self.updated += 1,
            Some(("unchanged", _)) => self.unchanged += 1,
            Some((_, reason)) => self.refuse(place, reason.as_str().unwrap_or_default()),
            None => self.refuse(place, "the gateway said nothing of it"),
        }
    }

    fn refuse(&mut self, place: &str, reason: &str) {
        self.refused.push(json!({"place": place, "reason": reason}));
    }

    fn done(&self) -> u64 {
        self.imported + self.updated + self.unchanged + self.refused.len() as u64
    }

    fn json(&self, dry_run: bool, seconds: f64) -> Value {
        let mut report = json!({
            "formats": self.formats, "dry_run": dry_run, "imported": self.imported, "updated": self.updated,
            "unchanged": self.unchanged, "skipped": self.skipped, "refused": self.refused,
            "seconds": (seconds * 1000.0).round() / 1000.0,
            "per_second": (self.done() as f64 / seconds.max(0.001)).round(),
        });
        if dry_run {
            report["samples"] = json!(self.samples);
        }
        if let Some(bundle) = &self.bundle {
            report["bundle"] = bundle.clone();
        }
        report
    }
}

type Answering = JoinHandle<Result<Value, CliError>>;

/// Chunks on their way to the gateway.
struct Sending {
    owner: Arc<OwnerClient>,
    path: &'static str,
    ahead: VecDeque<(Vec<String>, Answering)>,
    progress: ProgressBar,
}

impl Sending {
    fn new(owner: Arc<OwnerClient>, path: &'static str) -> Self {
        let progress = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {human_pos} records, {per_sec}, {elapsed} {msg}");
        progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        progress.enable_steady_tick(Duration::from_millis(200));
        Self { owner, path, ahead: VecDeque::new(), progress }
    }

    async fn send(&mut self, places: Vec<String>, body: Value, report: &mut Report) -> Result<(), CliError> {
        while self.ahead.len() >= IN_FLIGHT {
            self.receive(report).await?;
        }
        let (owner, path) = (self.owner.clone(), self.path);
        let task = tokio::spawn(async move { Ok(owner.post(path, &body).await?) });
        self.ahead.push_back((places, task));
        Ok(())
    }

    async fn receive(&mut self, report: &mut Report) -> Result<(), CliError> {
        let Some((places, task)) = self.ahead.pop_front() else { return Ok(()) };
        let answer = task.await.map_err(|e| CliError::Other(e.to_string()))??;
        for (number, place) in places.iter().enumerate() {
            report.fate(place, &answer["fates"][number]);
        }
        self.progress.set_position(report.done());
        Ok(())
    }

    async fn finish(mut self, report: &mut Report) -> Result<Arc<OwnerClient>, CliError> {
        while !self.ahead.is_empty() {
            self.receive(report).await?;
        }
        self.progress.finish_and_clear();
        Ok(self.owner)
    }
}

impl Import {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.formats {
            let all: BTreeMap<&str, &str> = Format::ALL.iter().map(|f| (f.as_str(), about(*f))).collect();
            output::print(global.json, &json!(all), |_| {
                all.iter().map(|(name, about)| format!("{name}\n    {about}\n")).collect()
            });
            return Ok(());
        }
        let path = self.path.clone().unwrap_or_default();
        let began = crate::ambient::SystemClock;
        let start = oap_identity::Clock::now(&began);
        let mut report = Report::default();
        let bundle = !path.is_dir() && self.from.is_none() && is_bundle(&path, self.identity.as_deref())?;
        let sound = match bundle {
            true => self.bundle(global, &path, &mut report).await?,
            false => {
                self.records(global, &path, &mut report).await?;
                true
            }
        };
        let seconds = (oap_identity::Clock::now(&began).millis() - start.millis()) as f64 / 1000.0;
        let json = report.json(self.dry_run, seconds);
        output::print(global.json, &json, people);
        if !sound {
            let why = output::text(&json, "/bundle/why");
            return Err(CliError::Proof(format!("the bundle as a whole: {why}")));
        }
        match report.refused.len() {
            0 => Ok(()),
            1 => Err(CliError::Other("1 record was refused".to_owned())),
            n => Err(CliError::Other(format!("{n} records were refused"))),
        }
    }

    async fn records(&self, global: &Global, path: &Path, report: &mut Report) -> Result<(), CliError> {
        let format = self.from.as_deref().map(str::parse::<Format>).transpose();
        let format = format.map_err(|e| CliError::Usage(format!("--from {e}")))?;
        let mapping = Mapping::parse(self.map.as_deref().unwrap_or_default()).map_err(CliError::Usage)?;
        let owner = Arc::new(global.owner().await?);
        let (send, mut found) = mpsc::channel::<Told>(4 * CHUNK);
        let reading = {
            let path = path.to_owned();
            tokio::task::spawn_blocking(move || {
                let source = sources::Source { path: &path, format, mapping: &mapping };
                let other = send.clone();
                let mut told = |format: Format| {
                    let _ = other.blocking_send(Told::File(format));
                };
                sources::read(&source, &mut told, &mut |found| match send.blocking_send(Told::Found(found)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                })
            })
        };
        let mut sending = Sending::new(owner, "/oap/owner/import/records");
        let (mut places, mut records, mut size) = (Vec::new(), Vec::new(), 0);
        while let Some(told) = found.recv().await {
            match told {
                Told::File(format) => {
                    if !report.formats.iter().any(|known| known == format.as_str()) {
                        report.formats.push(format.as_str().to_owned());
                    }
                }
                Told::Found(Found::Skipped { reason, .. }) => *report.skipped.entry(reason).or_default() += 1,
                Told::Found(Found::Refused { place, reason }) => report.refuse(&place, &reason),
                Told::Found(Found::Record(record)) => {
                    let item = self.dressed(record.item);
                    if report.samples.len() < SAMPLES {
                        report.samples.push(item.clone());
                    }
                    size += item.to_string().len();
                    places.push(record.place);
                    records.push(json!({"source": record.source, "item": item}));
                    if records.len() == CHUNK || size > CHUNK_BYTES {
                        let body = json!({"records": std::mem::take(&mut records), "dry_run": self.dry_run});
                        sending.send(std::mem::take(&mut places), body, report).await?;
                        size = 0;
                    }
                }
            }
        }
        if !records.is_empty() {
            sending.send(places, json!({"records": records, "dry_run": self.dry_run}), report).await?;
        }
        sending.finish(report).await?;
        let read = reading.await.map_err(|e| CliError::Other(e.to_string()))?;
        read.map_err(|e| CliError::File(path.to_owned(), e.to_string()))
    }

    /// The item with the owner's scope and labels.
    fn dressed(&self, mut item: Value) -> Value {
        if let Some(scope) = &self.scope {
            item["scope_id"] = json!(scope);
        }
        if let Some(labels) = item["labels"].as_array_mut() {
            labels.extend(self.label.iter().map(|label| json!(label)));
        }
        item
    }

    async fn bundle(&self, global: &Global, path: &Path, report: &mut Report) -> Result<bool, CliError> {
        report.formats.push(FORMAT.to_owned());
        let failed = |e: std::io::Error| CliError::File(path.to_owned(), e.to_string());
        let reader = bundle_file::open(path, self.identity.as_deref()).map_err(failed)?;
        let (send, mut found) = mpsc::channel(4 * CHUNK);
        let reading = tokio::task::spawn_blocking(move || {
            let mut bundle = Reader::default();
            whole_lines(reader, MAX_LINE, |number, line| {
                let read = match line {
                    Some(line) => bundle.read_line(line).map_err(|e| e.to_string()),
                    None => {
                        bundle.skip();
                        Err("the line is too long".to_owned())
                    }
                };
                let size = line.map_or(0, <[u8]>::len);
                match send.blocking_send((number, size, read)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            })
            .map(|()| bundle)
        });
        let owner = Arc::new(global.owner().await?);
        let mut sending = Sending::new(owner, "/oap/owner/import/bundle");
        let mut header: Option<(Header, Vec<Value>, Known)> = None;
        let (mut places, mut items, mut size) = (Vec::new(), Vec::new(), 0);
        while let Some((number, bytes, line)) = found.recv().await {
            let place = format!("line {number}");
            match (line, &header) {
                (Err(reason), _) => report.refuse(&place, &reason),
                (Ok(Line::Header(found)), None) => {
                    self.check_header(global, &found)?;
                    let (documents, known) = self.trust.documents(global, &found).await?;
                    header = Some((found, documents, known));
                }
                (Ok(_), None) => return Err(CliError::Proof("a bundle begins with its header".to_owned())),
                (Ok(Line::Item(item)), Some((head, documents, _))) => {
                    if report.samples.len() < SAMPLES {
                        let mut sample = item.item.clone();
                        sample["integrity"] = Value::Null;
                        report.samples.push(sample);
                    }
                    places.push(place);
                    items.push(item);
                    size += bytes;
                    if items.len() == CHUNK || size > CHUNK_BYTES {
                        let body = chunk(head, documents, &std::mem::take(&mut items), self.dry_run);
                        sending.send(std::mem::take(&mut places), body, report).await?;
                        size = 0;
                    }
                }
                (Ok(Line::Grant { .. }), _) => {
                    *report
                        .skipped
                        .entry("a grant of the former house: it is void here".into())
                        .or_default() += 1;
                }
                (Ok(Line::Receipt { .. }), _) => {
                    *report.skipped.entry("a receipt of the former house's log".into()).or_default() += 1;
                }
                (Ok(Line::Header(_) | Line::Trailer(_)), _) => {}
            }
        }
        let Some((head, documents, known)) = header else {
            return Err(CliError::Proof("a bundle begins with its header".to_owned()));
        };
        if !items.is_empty() {
            let body = chunk(&head, &documents, &items, self.dry_run);
            sending.send(places, body, report).await?;
        }
        let owner = sending.finish(report).await?;
        let bundle = reading.await.map_err(|e| CliError::Other(e.to_string()))?.map_err(failed)?;
        match bundle.finish(&known) {
            Err(why) => {
                report.bundle = Some(json!({"whole": false, "why": why.to_string()}));
                Ok(false)
            }
            Ok(trailer) => {
                report.bundle =
                    Some(json!({"whole": true, "bundle_id": trailer.bundle_id, "hash": trailer.hash}));
                if !self.dry_run {
                    let finish = json!({
                        "bundle_id": trailer.bundle_id, "principal": head.principal, "hash": trailer.hash,
                        "counts": trailer.counts, "imported": report.imported + report.updated,
                        "unchanged": report.unchanged, "refused": report.refused.len(),
                    });
                    let answer = owner.post("/oap/owner/import/finish", &finish).await?;
                    if let Some(bundle) = &mut report.bundle {
                        bundle["migration_receipt"] = answer["receipt"].clone();
                    }
                }
                Ok(true)
            }
        }
    }

    /// That the bundle is the owner's own memory, and one to import.
    fn check_header(&self, global: &Global, header: &Header) -> Result<(), CliError> {
        if header.projected.is_some() {
            let why = "it is the slice that a grant shows, of somebody else's memory: `verify` reads it";
            return Err(CliError::Usage(why.to_owned()));
        }
        let home = global.home();
        let own = Config::load(home.path(), &global.flags())?.principal(home.path())?;
        if header.principal == own || self.former_did.as_deref() == Some(header.principal.as_str()) {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "the bundle is of {0}, and this is {own}: say --former-did {0} if that is you",
            header.principal
        )))
    }
}

enum Told {
    File(Format),
    Found(Found),
}

fn chunk(
    header: &Header,
    documents: &[Value],
    items: &[Box<oap_memory::bundle::ItemLine>],
    dry_run: bool,
) -> Value {
    json!({
        "bundle_id": header.bundle_id, "principal": header.principal, "documents": documents, "items": items,
        "dry_run": dry_run,
    })
}

fn people(report: &Value) -> String {
    let mut text = format!(
        "{} imported, {} updated, {} unchanged, {} refused in {} s ({} a second)\n",
        report["imported"],
        report["updated"],
        report["unchanged"],
        report["refused"].as_array().map_or(0, Vec::len),
        report["seconds"],
        report["per_second"],
    );
    if report["dry_run"] == true {
        text.insert_str(0, "Nothing was written. With this file there would be:\n");
        for sample in report["samples"].as_array().into_iter().flatten() {
            text.push_str(&format!(
                "  {:<18} {}\n",
                output::text(sample, "/kind"),
                output::short(&output::gist(sample), 80)
            ));
        }
    }
    for (reason, count) in report["skipped"].as_object().into_iter().flatten() {
        text.push_str(&format!("left out: {count} × {reason}\n"));
    }
    for refused in report["refused"].as_array().into_iter().flatten() {
        text.push_str(&format!(
            "refused: {}: {}\n",
            output::text(refused, "/place"),
            output::text(refused, "/reason")
        ));
    }
    if let Some(receipt) = report.pointer("/bundle/migration_receipt/receipt_id").and_then(Value::as_str) {
        text.push_str(&format!("Migration Receipt {receipt}\n"));
    }
    text
}

//! `oap-memory import`

mod report;
mod sending;

use super::trust::{Known, Trust};
use super::verify::{header, is_bundle};
use super::{CliError, Global, ids, output, values};
use crate::api::prefix::{ItemPrefix, PrefixError};
use crate::api::transfer as api;
use crate::api::transfer::{BundleItems, Finish, Migration, Record, Records};
use crate::system::bundle_file::{self, Held};
use crate::system::clock::SystemClock;
use crate::system::config::Config;
use crate::system::tasks::blocking;
use oap_formats::import::{FORMATS, Format, Found, Mapping};
use oap_formats::sources;
use oap_identity::time::MAX_SKEW;
use oap_identity::{Clock, Did, ItemId, ScopeId};
use oap_memory::bundle::{BundleError, FORMAT, Header, ItemLine, Line, MAX_LINE, Reader, Trailer};
use oap_memory::lines::whole_lines;
use report::{BundleReport, Report};
use sending::Sending;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Records of one chunk, and its bytes.
const CHUNK: usize = 500;
const CHUNK_BYTES: usize = 4 << 20;

/// Bring memory in: a bundle, or another vendor's export
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory import chatgpt-export.zip --dry-run
  oap-memory import chatgpt-export.zip --label chatgpt
  oap-memory import ~/notes --scope personal
  oap-memory import table.csv --map text=body,label=tags,captured_at=when
  oap-memory import second-account.zip --as work
  oap-memory import chatgpt-export.zip --again all
  oap-memory import memory.bundle --former-did did:web:old-vendor.example

Formats are recognised by content: chatgpt, claude, gemini, mem0, letta, mcp-memory, notes (basic-memory, Obsidian), okf
(Open Knowledge Format), agents-md (CLAUDE.md, AGENTS.md, MEMORY.md), locomo, openintent, csv, jsonl, and bundles of this
program (compressed or encrypted too). `import --formats` says what each keeps and drops. Importing again changes nothing,
so an interrupted import is resumed by running it again.

What is imported is told apart by the account that the export names or by ids that are unique everywhere (UUIDs), and
otherwise by the path of the file or folder: a newer export of an account brings what is new in it and corrects what
changed, and another account, vault or table never changes what this one brought. Give a file that moves, or is exported
under a new name each time, the same --as NAME each time.

A bundle is read to its signed end before anything of it goes in: what stands beside an item, and that nothing was held back
from it, is proved by that end alone. Where the end does not hold (the bundle was cut, or changed on its way), nothing goes in:
--dry-run says which items hold by themselves, and --broken takes those.

Exit status 1 when records were refused or nothing was found, 4 when a bundle's proof does not hold.")]
pub(super) struct Import {
    /// The file, folder or archive
    #[arg(value_name = "FILE|FOLDER", required_unless_present = "formats")]
    path: Option<PathBuf>,
    /// The format, where it is not recognised
    #[arg(long, value_name = "FORMAT", value_parser = values::import_format())]
    from: Option<Format>,
    /// Show counts and samples, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// The scope of what comes in; the default one if absent
    #[arg(long)]
    scope: Option<ScopeId>,
    /// A label for everything that comes in; may be given several times
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    /// Of tables: which column is which member, such as text=body,label=tags
    #[arg(long, value_name = "MEMBER=COLUMN,…")]
    map: Option<Mapping>,
    /// What you call the account, vault or table that it comes from: one name, one origin
    #[arg(long = "as", value_name = "NAME", value_parser = values::origin_name)]
    name: Option<String>,
    /// Bring back what this item was, which you deleted here, by its id or the beginning of it; may be given several times.
    /// `all` brings back everything in it that you deleted here
    #[arg(long, value_name = "ID|all")]
    again: Vec<Again>,
    /// Say where everything stands that was left out
    #[arg(long, short)]
    verbose: bool,
    /// Of bundles: your own DID at the former house
    #[arg(long, value_name = "DID", value_parser = values::did)]
    former_did: Option<Did>,
    #[command(flatten)]
    trust: Trust,
    /// Of encrypted bundles: your age identity
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Of bundles whose signed end does not hold: take the items that hold by themselves. Whoever changed the bundle may have held back
    /// words, members, labels and ends of life, cut off that an item was retracted, and made an agent's words yours; the whole bundle
    /// does not mend that later
    #[arg(long)]
    broken: bool,
    /// Say what each format keeps, maps and drops
    #[arg(long)]
    formats: bool,
}

/// What is brought back of what was deleted here.
#[derive(Debug, Clone)]
enum Again {
    All,
    Item(ItemPrefix),
}

impl Again {
    const fn item(&self) -> Option<&ItemPrefix> {
        match self {
            Self::All => None,
            Self::Item(item) => Some(item),
        }
    }
}

/// Neither everything nor an item.
#[derive(Debug, thiserror::Error)]
#[error("{0}, or \"all\"")]
struct AgainError(PrefixError);

impl FromStr for Again {
    type Err = AgainError;

    fn from_str(text: &str) -> Result<Self, AgainError> {
        if text == "all" {
            return Ok(Self::All);
        }
        text.parse().map(Self::Item).map_err(AgainError)
    }
}

/// What becomes of a chunk, beside its records.
struct Asked {
    /// Whole ids.
    again: Vec<ItemId>,
    again_all: bool,
    dry_run: bool,
}

impl Import {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.formats {
            let all: BTreeMap<&str, &str> = FORMATS.iter().map(|f| (f.format.as_str(), f.about)).collect();
            output::print(global.json, &json!(all), |_| {
                let rows = all.iter().map(|(name, about)| vec![(*name).to_owned(), (*about).to_owned()]);
                output::wrapped(&["format", "what becomes of it"], rows)
            });
            return Ok(());
        }
        let path = self.path.clone().unwrap_or_default();
        let start = SystemClock.now();
        let mut report = Report::new(self.dry_run, self.verbose);
        let bundle = !path.is_dir() && self.from.is_none() && is_bundle(&path, self.identity.as_deref())?;
        let of_bundles = self.former_did.is_some() || self.broken || self.trust.is_given();
        if of_bundles && !bundle {
            let why = "--former-did, --did-document, --trust-bundle and --broken are for bundles, without --from, and it is none";
            return Err(CliError::Usage(why.to_owned()));
        }
        let sound = match bundle {
            true if self.name.is_some() || !self.again.is_empty() => {
                let why = "--as and --again are for other vendors' exports: a bundle's items keep their ids";
                return Err(CliError::Usage(why.to_owned()));
            }
            true => self.bundle(global, &path, &mut report).await?,
            false => {
                self.records(global, &path, &mut report).await?;
                true
            }
        };
        let seconds = (SystemClock.now().millis() - start.millis()) as f64 / 1000.0;
        report.finish(seconds);
        output::print(global.json, &report, Report::people);
        if !sound {
            let why = report.bundle.and_then(|bundle| bundle.why).unwrap_or_default();
            let then = match self.broken || self.dry_run {
                true => "",
                false => {
                    ". Nothing went in: --dry-run says which items hold by themselves, --broken takes those"
                }
            };
            return Err(CliError::Proof(format!("the bundle as a whole: {why}{then}")));
        }
        if !bundle && report.done() == 0 {
            return Err(CliError::Other(match &self.from {
                Some(format) => format!("nothing of the format {format} was found in it"),
                None => "nothing to import was found in it: --from names the format".to_owned(),
            }));
        }
        let asks_back = self.again.iter().any(|again| again.item().is_some());
        if asks_back && report.imported == 0 && report.refused_count == 0 {
            return Err(CliError::Other("--again: nothing in it was one of these items".to_owned()));
        }
        match report.refused_count {
            0 => Ok(()),
            1 => Err(CliError::Other("1 record was refused".to_owned())),
            n => Err(CliError::Other(format!("{n} records were refused"))),
        }
    }

    async fn records(&self, global: &Global, path: &Path, report: &mut Report) -> Result<(), CliError> {
        let format = self.from;
        let mapping = self.map.clone().unwrap_or_default();
        let name = self.name.clone();
        let owner = Arc::new(global.owner().await?);
        let again: Vec<ItemPrefix> = self.again.iter().filter_map(Again::item).cloned().collect();
        let asked = Asked {
            again: ids::erased(&owner, &again).await?,
            again_all: self.again.iter().any(|again| matches!(again, Again::All)),
            dry_run: self.dry_run,
        };
        let (send, mut found) = mpsc::channel::<FileEvent>(4 * CHUNK);
        let reading = {
            let path = path.to_owned();
            blocking(move || {
                let source =
                    sources::Source { path: &path, format, mapping: &mapping, name: name.as_deref() };
                let other = send.clone();
                let mut begins = |format: Format| {
                    let _ = other.blocking_send(FileEvent::File(format));
                };
                let read = sources::read(&source, &mut begins, &mut |found| match send
                    .blocking_send(FileEvent::Found(found))
                {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                });
                read.map_err(|e| CliError::File(path.clone(), e.to_string()))
            })
        };
        let mut sending = Sending::new(owner);
        let mut chunk = Chunk::default();
        while let Some(event) = found.recv().await {
            // The records of a list are sent together: a chunk ends before a file, or before a record of no list.
            let may_end = match &event {
                FileEvent::File(_) => true,
                FileEvent::Found(Found::Record(record)) => record.group.is_none(),
                FileEvent::Found(_) => false,
            };
            if may_end && chunk.is_full() {
                let (places, body) = std::mem::take(&mut chunk).end(&asked);
                sending.send::<api::ImportRecords>(places, body, report).await?;
            }
            match event {
                FileEvent::File(format) => {
                    if !report.formats.iter().any(|known| known == format.as_str()) {
                        report.formats.push(format.as_str().to_owned());
                    }
                }
                FileEvent::Found(Found::Skipped { place, reason }) => report.skip(&place, reason),
                FileEvent::Found(Found::Refused { place, reason }) => report.refuse(&place, &reason),
                FileEvent::Found(Found::Record(record)) => {
                    let item = self.dressed(record.item);
                    report.sample(|| item.clone());
                    chunk.size += item.to_string().len();
                    chunk.places.push(record.place);
                    chunk.records.push(Record { source: record.source, group: record.group, item });
                }
            }
        }
        if !chunk.records.is_empty() {
            let (places, body) = chunk.end(&asked);
            sending.send::<api::ImportRecords>(places, body, report).await?;
        }
        sending.finish(report).await?;
        reading.await
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
        let failed = |e: io::Error| CliError::File(path.to_owned(), e.to_string());
        // What is another's is told before anything is copied; what was copied is what counts.
        let first = bundle_file::open(path, self.identity.as_deref()).map_err(failed)?;
        self.check_header(global, &header(first)?)?;
        let (of, folder) = (path.to_owned(), global.home().path().to_owned());
        let copy = move || {
            let copied = Held::copy(&of, &folder);
            copied.map_err(|e| CliError::File(of, format!("its copy in {}: {e}", folder.display())))
        };
        let held = blocking(copy).await?;
        let opened = || held.open(self.identity.as_deref()).map_err(failed);
        let head = header(opened()?)?;
        self.check_header(global, &head)?;
        let (documents, known) = self.trust.documents(global, &head).await?;
        let mut sending = Sending::new(Arc::new(global.owner().await?));
        // What a line says of itself does not prove that nothing was held back from it.
        sending.says("the bundle is read to its end");
        let (read, cut) = lines(opened()?, |_, _, _| ControlFlow::Continue(())).await?;
        let sealed = seal(read, whole_read(cut, path)?, &known);
        sending.says("");
        if let Err(why) = &sealed
            && !(self.broken || self.dry_run)
        {
            sending.finish(report).await?;
            report.bundle = Some(BundleReport::broken(why));
            return Ok(false);
        }
        let (send, mut found) = mpsc::channel(4 * CHUNK);
        let reading =
            lines(opened()?, move |number, size, read| match send.blocking_send((number, size, read)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            });
        let (mut places, mut items, mut size) = (Vec::new(), Vec::new(), 0);
        while let Some((number, bytes, line)) = found.recv().await {
            let place = format!("line {number}");
            match line {
                Err(reason) => report.refuse(&place, &reason.to_string()),
                Ok(Line::Item(item)) => {
                    report.sample(|| {
                        let mut sample = item.item.clone();
                        sample["integrity"] = Value::Null;
                        sample
                    });
                    places.push(place);
                    items.push(*item);
                    size += bytes;
                    if items.len() == CHUNK || size > CHUNK_BYTES {
                        let body = chunk(&head, &documents, std::mem::take(&mut items), self.dry_run);
                        sending.send::<api::ImportBundle>(std::mem::take(&mut places), body, report).await?;
                        size = 0;
                    }
                }
                Ok(Line::Grant { .. }) => {
                    report.skip(&place, "a grant of the former house: it is void here".into());
                }
                Ok(Line::Receipt { .. }) => {
                    report.skip(&place, "a receipt of the former house's log".into());
                }
                Ok(Line::Header(_) | Line::Trailer(_)) => {}
            }
        }
        if !items.is_empty() {
            let body = chunk(&head, &documents, items, self.dry_run);
            sending.send::<api::ImportBundle>(places, body, report).await?;
        }
        let owner = sending.finish(report).await?;
        let (_, cut) = reading.await?;
        whole_read(cut, path)?;
        let trailer = match sealed {
            Err(why) => {
                report.bundle = Some(BundleReport::broken(&why));
                return Ok(false);
            }
            Ok(trailer) => trailer,
        };
        let (bundle_id, hash) = (Some(trailer.bundle_id), Some(trailer.hash));
        let bundle =
            report.bundle.insert(BundleReport { whole: true, bundle_id, hash, ..BundleReport::default() });
        if !self.dry_run {
            let finish = Finish {
                bundle_id: trailer.bundle_id,
                principal: head.principal,
                hash: trailer.hash,
                counts: trailer.counts,
                imported: report.imported + report.updated,
                unchanged: report.unchanged,
                refused: report.refused_count,
            };
            let Migration { receipt } = owner.send::<api::ImportFinish>((), &finish).await?;
            bundle.migration_receipt = Some(receipt);
        }
        Ok(true)
    }

    /// That the bundle is the owner's own memory, and one to import.
    fn check_header(&self, global: &Global, header: &Header) -> Result<(), CliError> {
        if header.projected.is_some() {
            let why = "it is the slice that a grant shows, of somebody else's memory: `verify` reads it";
            return Err(CliError::Usage(why.to_owned()));
        }
        let home = global.home();
        let own = Config::load(home.path(), &global.flags())?.principal(home.path())?;
        if header.principal == own || self.former_did.as_ref() == Some(&header.principal) {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "the bundle is of {0}, and this is {own}: say --former-did {0} if that is you",
            header.principal
        )))
    }
}

/// Reads the lines of a bundle, beside what is done with them; and why they end before its end, where they do.
fn lines(
    bundle: impl Read + Send + 'static,
    mut take: impl FnMut(usize, usize, Result<Line, BundleError>) -> ControlFlow<()> + Send + 'static,
) -> impl Future<Output = Result<(Reader, Option<io::Error>), CliError>> {
    blocking(move || {
        let mut reader = Reader::default();
        let read = whole_lines(bundle, MAX_LINE, |number, line| {
            take(number, line.map_or(0, <[u8]>::len), reader.take(line))
        });
        Ok((reader, read.err()))
    })
}

/// Why a bundle ends before its end, where that is the bundle's fault.
///
/// # Errors
/// Where it is the system's: nothing is known of the bundle then.
fn whole_read(cut: Option<io::Error>, path: &Path) -> Result<Option<io::Error>, CliError> {
    match cut {
        Some(e) if e.raw_os_error().is_some() => Err(CliError::File(path.to_owned(), e.to_string())),
        cut => Ok(cut),
    }
}

/// The trailer of a whole bundle; why it is not whole otherwise.
fn seal(read: Reader, cut: Option<io::Error>, known: &Known) -> Result<Trailer, String> {
    if let Some(cut) = cut {
        return Err(format!("it cannot be read to its end: {cut}"));
    }
    // Whoever has a key that was compromised dates what it signs as it likes.
    if let Some(dated) = read.dated(known) {
        return Err(format!("its trailer counts for nothing: {dated}"));
    }
    let trailer = read.finish(known).map_err(|why| why.to_string())?;
    if trailer.finished_at > SystemClock.now().plus(MAX_SKEW) {
        return Err("trailer: finished_at is in the future; is the clock of this machine right?".to_owned());
    }
    Ok(trailer)
}

/// Records that are sent together.
#[derive(Default)]
struct Chunk {
    places: Vec<String>,
    records: Vec<Record>,
    size: usize,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.records.len() >= CHUNK || self.size > CHUNK_BYTES
    }

    fn end(self, asked: &Asked) -> (Vec<String>, Records) {
        let Asked { again, again_all, dry_run } = asked;
        let (again, again_all, dry_run) = (again.clone(), *again_all, *dry_run);
        (self.places, Records { records: self.records, again, again_all, dry_run })
    }
}

enum FileEvent {
    File(Format),
    Found(Found),
}

fn chunk(header: &Header, documents: &[Value], items: Vec<ItemLine>, dry_run: bool) -> BundleItems {
    BundleItems {
        bundle_id: header.bundle_id,
        principal: header.principal.clone(),
        documents: documents.to_vec(),
        items,
        dry_run,
    }
}

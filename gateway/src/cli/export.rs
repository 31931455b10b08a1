//! `oap-memory export`

use super::when::{self, When};
use super::{CliError, Global, output, values};
use crate::api::Document;
use crate::api::items::Item;
use crate::api::transfer as api;
use crate::api::transfer::{ExportSelection, PageHead, PageRequest, Part};
use crate::system::bundle_file::BundleWriter;
use crate::system::files;
use indicatif::{ProgressBar, ProgressStyle};
use oap_formats::export::{Form, Index, Layout};
use oap_identity::ScopeId;
use oap_memory::Status;
use oap_memory::bundle::{self, Line, Tally};
use oap_memory::item::Kind;
use serde_json::{Value, json};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Take your memory along: as a bundle with every proof, or in a form that other programs read
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory export memory.bundle --zstd
  oap-memory export memory.bundle.age --zstd --to age1…
  oap-memory export project.bundle --label website --since 2026-01-01
  oap-memory export notes/ --as markdown
  oap-memory export memory.json --as mem0

A bundle carries items with their whole history and signatures, and verifies offline with `oap-memory verify`. The other
forms (mem0, mcp-memory, markdown, okf, jsonl, rdf) carry no proofs. Items marked as not exportable are in none of them.")]
pub(super) struct Export {
    /// The file, or for markdown and okf the folder
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Only items of this scope; may be given several times
    #[arg(long)]
    scope: Vec<ScopeId>,
    /// Only items with this label
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    /// Only items of this kind
    #[arg(long, value_parser = values::kind())]
    kind: Vec<Kind>,
    /// Only items captured at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Only items captured until this time
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// Put the grants in, for the record
    #[arg(long)]
    grants: bool,
    /// Put the receipts in
    #[arg(long)]
    receipts: bool,
    /// Compress with zstd
    #[arg(long)]
    zstd: bool,
    /// Encrypt to this age recipient; may be given several times
    #[arg(long, value_name = "age1…", value_parser = values::recipient)]
    to: Vec<age::x25519::Recipient>,
    /// Another form than the bundle
    #[arg(long = "as", value_name = "FORM", value_parser = values::export_form())]
    form: Option<Form>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

impl Export {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.path.exists() && !self.force {
            return Err(CliError::Usage(format!("{} is there already: say --force", self.path.display())));
        }
        match self.form {
            None => self.bundle(global).await,
            Some(_) if self.zstd || !self.to.is_empty() || self.grants || self.receipts => {
                Err(CliError::Usage("--zstd, --to, --grants and --receipts are for bundles".to_owned()))
            }
            Some(form) => self.plain(global, form).await,
        }
    }

    fn selection(&self) -> ExportSelection {
        let now = when::now();
        ExportSelection {
            scopes: self.scope.clone(),
            labels: self.label.clone(),
            kinds: self.kind.clone(),
            captured_after: self.since.map(|since| since.since(now)),
            captured_before: self.until.map(|until| until.until(now)),
        }
    }

    async fn bundle(self, global: &Global) -> Result<(), CliError> {
        let failed = |e: io::Error| CliError::File(self.path.clone(), e.to_string());
        let selection = self.selection();
        let owner = global.owner().await?;
        let header = owner.send::<api::ExportHeader>((), &selection).await?;
        let progress = bar(header.items);
        let mut writer = BundleWriter::create(&self.path, self.zstd, &self.to).map_err(failed)?;
        let mut tally = Tally::default();
        let (bundle_id, selected) = (header.bundle_id, header.items);
        put(&mut writer, &mut tally, &Line::Header(header)).map_err(failed)?;
        let mut held_back = 0;
        let mut parts = vec![Part::Items];
        parts.extend(self.grants.then_some(Part::Grants));
        parts.extend(self.receipts.then_some(Part::Receipts));
        for part in parts {
            let mut after = None;
            loop {
                let request = PageRequest { part, selection: selection.clone(), after };
                let page = owner.bytes::<api::ExportPage>((), &request).await?;
                let (next, held, lines) = split(&page)?;
                held_back += held;
                for line in lines {
                    let parsed = kind_of(part);
                    tally.add(&parsed, line);
                    progress.inc(u64::from(part == Part::Items));
                }
                writer.write(rest(&page)).map_err(failed)?;
                after = next;
                if after.is_none() {
                    break;
                }
            }
        }
        let trailer = tally.trailer(bundle_id, when::now());
        let counts = trailer.counts;
        if counts.items != selected {
            let why = "items changed while they were exported: export again";
            return Err(CliError::Other(why.to_owned()));
        }
        let sealed = owner.send::<api::ExportSeal>((), &trailer).await?;
        writer.write(&oap_identity::json::canonical(&sealed).map_err(odd)?).map_err(failed)?;
        writer.write(b"\n").map_err(failed)?;
        writer.finish().map_err(failed)?;
        progress.finish_and_clear();
        let done = json!({
            "file": self.path, "bundle_id": bundle_id, "counts": counts, "hash": trailer.hash,
            "held_back": held_back,
        });
        output::print(global.json, &done, |_| {
            let left = left_out(held_back);
            format!("{} items in {}{left}\n{}", counts.items, self.path.display(), trailer.hash)
        });
        Ok(())
    }

    async fn plain(self, global: &Global, form: Form) -> Result<(), CliError> {
        let failed = |e: io::Error| CliError::File(self.path.clone(), e.to_string());
        let selection = self.selection();
        let owner = global.owner().await?;
        let mut out = Output::create(&self.path, form).map_err(failed)?;
        let progress = bar(0);
        let (mut after, mut held_back) = (None, 0);
        loop {
            let request = PageRequest { part: Part::Items, selection: selection.clone(), after };
            let page = owner.bytes::<api::ExportPage>((), &request).await?;
            let (next, held, lines) = split(&page)?;
            held_back += held;
            for line in lines {
                let line: Value = oap_identity::json::parse(line).map_err(odd)?;
                let Line::Item(line) = oap_identity::json::from_value(line).map_err(odd)? else { continue };
                let item = Document::<Item>::read(line.item).map_err(odd)?;
                // What was taken back is part of a bundle's history, and of nothing else.
                if item.status != Status::Retracted {
                    out.put(&item).map_err(failed)?;
                    progress.inc(1);
                }
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        let count = out.finish().map_err(failed)?;
        progress.finish_and_clear();
        let done = json!({"file": self.path, "form": form, "items": count, "held_back": held_back});
        output::print(global.json, &done, |_| {
            format!("{count} items in {}{}", self.path.display(), left_out(held_back))
        });
        Ok(())
    }
}

/// An answer that the gateway should not have given.
fn odd(error: impl std::fmt::Display) -> CliError {
    CliError::Other(format!("the gateway's answer: {error}"))
}

fn bar(items: u64) -> ProgressBar {
    let bar = ProgressBar::new(items);
    let style = ProgressStyle::with_template("{human_pos} of {human_len} items, {per_sec}, {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn put(writer: &mut BundleWriter, tally: &mut Tally, line: &Line) -> io::Result<()> {
    let bytes = bundle::write(line).map_err(io::Error::other)?;
    tally.add(line, &bytes);
    writer.write(&bytes)?;
    writer.write(b"\n")
}

/// A line of that part, for counting: the gateway wrote it.
fn kind_of(part: Part) -> Line {
    match part {
        Part::Grants => Line::Grant { grant: Value::Null },
        Part::Receipts => Line::Receipt { receipt: Value::Null },
        Part::Items => {
            Line::Item(Box::new(bundle::ItemLine { item: Value::Null, record: None, superseded: Vec::new() }))
        }
    }
}

/// A page's lines without the cursor's.
fn rest(page: &[u8]) -> &[u8] {
    page.iter().position(|byte| *byte == b'\n').map_or(&[], |end| &page[end + 1..])
}

/// What is said of items that are held back.
fn left_out(held_back: u64) -> String {
    match held_back {
        0 => String::new(),
        some => format!(
            "\n{some} items were left out: a compromised key signed something of them; `oap-memory keys reseal` mends what is yours"
        ),
    }
}

/// Where the next page begins, how many items of this one were held back, and its lines.
fn split(page: &[u8]) -> Result<(Option<String>, u64, impl Iterator<Item = &[u8]>), CliError> {
    let lines = rest(page);
    let head: PageHead = serde_json::from_slice(&page[..page.len() - lines.len()]).map_err(odd)?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok((head.next, head.held_back, lines))
}

/// A file that is being written, and what it will be called.
struct Pending {
    file: BufWriter<files::Pending>,
    path: PathBuf,
}

impl Pending {
    fn begin(path: PathBuf, before: &str) -> io::Result<Self> {
        let mut file = BufWriter::new(files::begin(&path)?);
        file.write_all(before.as_bytes())?;
        Ok(Self { file, path })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }

    fn finish(self) -> io::Result<()> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?.finish(&self.path)
    }
}

/// Items on their way into a file or a folder.
struct Output {
    write: fn(&Value) -> String,
    place: Place,
    count: u64,
}

enum Place {
    File { file: Pending, between: &'static str, after: &'static str },
    Folder { path: PathBuf, index: Option<(Index, Pending)> },
}

impl Output {
    fn create(path: &Path, form: Form) -> io::Result<Self> {
        let exporter = form.exporter();
        let place = match exporter.layout {
            Layout::File { before, between, after } => {
                Place::File { file: Pending::begin(path.to_owned(), before)?, between, after }
            }
            Layout::Folder(index) => {
                files::create_folder(path)?;
                let begin = |index: Index| {
                    io::Result::Ok((index, Pending::begin(path.join(index.name), index.before)?))
                };
                let index = index.map(begin).transpose()?;
                Place::Folder { path: path.to_owned(), index }
            }
        };
        Ok(Self { write: exporter.write, place, count: 0 })
    }

    fn put(&mut self, item: &Document<Item>) -> io::Result<()> {
        let text = (self.write)(item.whole());
        let first = self.count == 0;
        self.count += 1;
        match &mut self.place {
            Place::File { file, between, .. } => {
                file.write(if first { "" } else { between })?;
                file.write(&text)
            }
            Place::Folder { path, index } => {
                let name = format!("{}.md", item.item_id);
                if let Some((index, file)) = index {
                    file.write(&(index.entry)(item.whole(), &name))?;
                }
                let path = path.join(name);
                if path.exists() {
                    std::fs::remove_file(&path)?;
                }
                files::create(&path)?.write_all(text.as_bytes())
            }
        }
    }

    fn finish(self) -> io::Result<u64> {
        match self.place {
            Place::File { mut file, after, .. } => {
                file.write(after)?;
                file.finish()?;
            }
            Place::Folder { index, .. } => {
                if let Some((_, file)) = index {
                    file.finish()?;
                }
            }
        }
        Ok(self.count)
    }
}

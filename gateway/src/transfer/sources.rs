//! Vendors' files, folders and archives, as they come: an archive is read entry by entry and never unpacked.

use super::bundle_file::peek;
use oap_memory::import::{self, Format, Found, HEAD, Mapping};
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Most entries of an archive, and most files of a folder.
pub const MAX_FILES: usize = 200_000;
/// Deepest folder.
pub const MAX_DEPTH: usize = 32;
/// Most bytes that an entry of an archive may unfold to. It is read as a stream; what is held of it is one record.
pub const MAX_ENTRY: u64 = 4 << 30;
/// Most bytes that an archive may unfold to.
pub const MAX_UNFOLDED: u64 = 16 << 30;
/// An entry that unfolds to more than [`BOMB_BYTES`] and to more than so many times its size is a bomb.
pub const BOMB_RATIO: u64 = 100;
/// See [`BOMB_RATIO`].
pub const BOMB_BYTES: u64 = 16 << 20;
/// Longest name of an entry, in bytes; records carry it.
pub const MAX_NAME: usize = 1024;

/// What to read.
pub struct Source<'a> {
    /// A file, a folder or an archive.
    pub path: &'a Path,
    /// The format, where the owner named it.
    pub format: Option<Format>,
    /// How columns become members.
    pub mapping: &'a Mapping,
}

/// What is told of a file before its records.
pub type Told<'a> = &'a mut dyn FnMut(Format);

/// Reads everything there is.
///
/// # Errors
/// What the system says of the file or folder itself; what is wrong within is told to the sink.
pub fn read(source: &Source, told: Told, sink: import::Sink) -> io::Result<()> {
    if source.path.is_dir() {
        let mut files = Vec::new();
        walk(source.path, 0, &mut files)?;
        files.sort();
        for path in files {
            let name = path.strip_prefix(source.path).unwrap_or(&path).to_string_lossy().into_owned();
            let file = File::open(&path)?;
            if one(source, &name, file, told, sink)?.is_break() {
                return Ok(());
            }
        }
        return Ok(());
    }
    let name = source.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (head, reader) = peek(Box::new(File::open(source.path)?), 4)?;
    if head == b"PK\x03\x04" {
        return archive(source, told, sink);
    }
    one(source, &name, reader, told, sink).map(drop)
}

/// Files of a folder. Links are not followed, and what begins with a dot is not memory.
fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if depth > MAX_DEPTH || files.len() > MAX_FILES {
        return Err(io::Error::other("the folder is too deep or has too many files"));
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), depth + 1, files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn archive(source: &Source, told: Told, sink: import::Sink) -> io::Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(source.path)?).map_err(io::Error::other)?;
    if archive.len() > MAX_FILES {
        return Err(io::Error::other("the archive has too many entries"));
    }
    let mut left = MAX_UNFOLDED;
    for index in 0..archive.len() {
        let entry = match archive.by_index(index) {
            Ok(entry) => entry,
            Err(error) => {
                let place = format!("entry {index}");
                if sink(Found::Refused { place, reason: error.to_string() }).is_break() {
                    return Ok(());
                }
                continue;
            }
        };
        if entry.is_dir() {
            continue;
        }
        let name = entry.name().map_or_else(|_| format!("entry {index}"), |name| name.into_owned());
        let why = if name.len() > MAX_NAME {
            Some("its name is too long")
        } else if entry.enclosed_name().is_none() || entry.is_symlink() {
            Some("its name leads out of the archive, or it is a link")
        } else if entry.size() > BOMB_BYTES && entry.size() / BOMB_RATIO > entry.compressed_size() {
            Some("it unfolds to many times its size")
        } else if entry.size() > MAX_ENTRY {
            Some("it unfolds to too much")
        } else if entry.size() > left {
            Some("the archive unfolds to too much")
        } else {
            None
        };
        if let Some(why) = why {
            if sink(Found::Refused { place: name, reason: why.to_owned() }).is_break() {
                return Ok(());
            }
            continue;
        }
        left -= entry.size();
        // What the entry says of its size is what it may unfold to.
        let most = entry.size();
        if one(source, &name, entry.take(most), told, sink)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// One file.
fn one(
    source: &Source,
    name: &str,
    mut reader: impl Read,
    told: Told,
    sink: import::Sink,
) -> io::Result<ControlFlow<()>> {
    let mut head = Vec::new();
    if let Err(error) = (&mut reader).take(HEAD as u64).read_to_end(&mut head) {
        return Ok(sink(Found::Refused { place: name.to_owned(), reason: error.to_string() }));
    }
    let Some(format) = source.format.or_else(|| import::recognise(name, &head)) else {
        let reason = "not of a format that is read here".to_owned();
        return Ok(sink(Found::Skipped { place: name.to_owned(), reason }));
    };
    told(format);
    let mut flow = ControlFlow::Continue(());
    let mut watch = |found: Found| {
        flow = sink(found);
        flow
    };
    let mut reader = io::Cursor::new(head).chain(reader);
    import::read(format, import::File { name, bytes: &mut reader, mapping: source.mapping }, &mut watch);
    Ok(flow)
}

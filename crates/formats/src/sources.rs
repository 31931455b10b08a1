//! Vendors' files, folders and archives, as they come: an archive is read entry by entry and never unpacked.

use crate::import::{self, Format, Found, HEAD, LeftOut, Mapping, Origin, names_account};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

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
    /// What the owner calls the account, vault or file that it comes from.
    pub name: Option<&'a str>,
}

/// What is told of a file before its records.
pub type OnFormat<'a> = &'a mut dyn FnMut(Format);

/// Reads everything there is.
///
/// # Errors
/// What the system says of the file or folder itself; what is wrong within is told to the sink.
pub fn read(source: &Source, told: OnFormat, sink: import::Sink) -> io::Result<()> {
    let root = source.path.canonicalize()?.to_string_lossy().into_owned();
    let name = source.name.map(str::to_owned);
    let mut origins = Origins { name, root, alone: false, accounts: BTreeMap::new() };
    if source.path.is_dir() {
        return folder(source, origins, told, sink);
    }
    let name = source.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (head, reader) = peek(File::open(source.path)?, 4)?;
    if head == b"PK\x03\x04" {
        return archive(source, origins, told, sink);
    }
    origins.alone = true;
    one(source, &origins, &name, reader, told, sink).map(drop)
}

/// A reader whose first bytes were looked at, with them still before it.
pub type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The first bytes of a reader, and the reader with them still before it.
///
/// # Errors
/// What the reader says.
pub fn peek<R: Read>(mut reader: R, most: usize) -> io::Result<(Vec<u8>, Peeked<R>)> {
    let mut head = Vec::new();
    (&mut reader).take(most as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(reader)))
}

/// Where the files of a folder or an archive come from.
struct Origins {
    name: Option<String>,
    root: String,
    /// Whether the root is the only file: the owner named it.
    alone: bool,
    /// The accounts that the export tells of, by format and by the folder that says so.
    accounts: BTreeMap<(&'static str, String), String>,
}

impl Origins {
    /// Takes the id of an account from a file that has one.
    fn tell(&mut self, name: &str, reader: impl Read) {
        let mut bytes = Vec::new();
        let read = reader.take(import::MAX_ACCOUNT_FILE as u64 + 1).read_to_end(&mut bytes);
        if let (Ok(_), Some((format, id))) = (read, import::account(name, &bytes)) {
            self.accounts.insert((format.as_str(), above(name).to_owned()), id);
        }
    }

    /// Where a file comes from.
    fn of(&self, name: &str, format: Format) -> Origin {
        Origin {
            name: self.name.clone(),
            account: self.account(name, format),
            root: self.root.clone(),
            file: if self.alone { String::new() } else { name.to_owned() },
        }
    }

    /// The account that a file of a format belongs to: what its folder, or one above, says.
    fn account(&self, name: &str, format: Format) -> Option<String> {
        let mut folder = above(name);
        loop {
            if let Some(id) = self.accounts.get(&(format.as_str(), folder.to_owned())) {
                return Some(id.clone());
            }
            if folder.is_empty() {
                return None;
            }
            folder = above(folder);
        }
    }
}

/// The folder that a file or folder lies in.
fn above(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn folder(source: &Source, mut origins: Origins, told: OnFormat, sink: import::Sink) -> io::Result<()> {
    let (mut files, hidden) = walk(source.path)?;
    files.sort();
    let name_of =
        |path: &Path| path.strip_prefix(source.path).unwrap_or(path).to_string_lossy().replace('\\', "/");
    for path in &hidden {
        let skipped = Found::Skipped { place: name_of(path), reason: "a hidden file".to_owned() };
        if sink(skipped).is_break() {
            return Ok(());
        }
    }
    for path in &files {
        let name = name_of(path);
        if names_account(&name) {
            origins.tell(&name, File::open(path)?);
        }
    }
    for path in files {
        let name = name_of(&path);
        if one(source, &origins, &name, File::open(&path)?, told, sink)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Files of a folder, and what is hidden in it. Links are not followed, and what begins with a dot is not memory.
fn walk(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut hidden) = (Vec::new(), Vec::new());
    let mut entries = WalkDir::new(folder).min_depth(1).into_iter();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if entry.depth() > MAX_DEPTH + 1 || files.len() + hidden.len() > MAX_FILES {
            return Err(io::Error::other("the folder is too deep or has too many files"));
        }
        let name = entry.file_name();
        if name.to_string_lossy().starts_with('.') || name == "__MACOSX" {
            if entry.file_type().is_dir() {
                entries.skip_current_dir();
            }
            hidden.push(entry.into_path());
        } else if entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    Ok((files, hidden))
}

fn archive(source: &Source, mut origins: Origins, told: OnFormat, sink: import::Sink) -> io::Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(source.path)?).map_err(io::Error::other)?;
    if archive.len() > MAX_FILES {
        return Err(io::Error::other("the archive has too many entries"));
    }
    for index in 0..archive.len() {
        let name = archive.name_for_index(index).and_then(Result::ok).map(|name| name.into_owned());
        if let Some(name) = name.filter(|name| names_account(name))
            && let Ok(entry) = archive.by_index(index)
        {
            origins.tell(&name, entry);
        }
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
        if one(source, &origins, &name, entry.take(most), told, sink)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// One file, by its name in the folder or archive.
fn one(
    source: &Source,
    origins: &Origins,
    name: &str,
    mut reader: impl Read,
    told: OnFormat,
    sink: import::Sink,
) -> io::Result<ControlFlow<()>> {
    let mut head = Vec::new();
    if let Err(error) = (&mut reader).take(HEAD as u64).read_to_end(&mut head) {
        return Ok(sink(Found::Refused { place: name.to_owned(), reason: error.to_string() }));
    }
    let format = match format_of(source, origins.alone, name, &head) {
        Ok(format) => format,
        Err(reason) => {
            return Ok(sink(Found::Skipped { place: name.to_owned(), reason: reason.to_string() }));
        }
    };
    told(format);
    let origin = origins.of(name, format);
    let mut flow = ControlFlow::Continue(());
    let mut watch = |mut found: Found| {
        if let Found::Record(record) = &mut found {
            origin.complete(record);
        }
        flow = sink(found);
        flow
    };
    let mut reader = Cursor::new(head).chain(reader);
    let file = import::File { name, bytes: &mut reader, mapping: source.mapping };
    (format.importer().read)(file, &mut watch);
    Ok(flow)
}

/// What a file is read as, or why it is left out as a whole. A format that the owner named is read whatever the file
/// looks like; among several files, only those that do not look like anything else.
fn format_of(source: &Source, alone: bool, name: &str, head: &[u8]) -> Result<Format, LeftOut> {
    if let (Some(format), true) = (source.format, alone) {
        return Ok(format);
    }
    if let Some(reason) = import::left_out(name, head) {
        return Err(reason);
    }
    let looks = import::recognise(name, head);
    let Some(format) = source.format else { return looks.ok_or(LeftOut::Unknown) };
    match looks {
        Some(looks) if looks == format || looks.importer().general => Ok(format),
        Some(_) => Err(LeftOut::OtherFormat),
        None if head.contains(&0) || head.trim_ascii_start().starts_with(b"<") => Err(LeftOut::Unknown),
        None => Ok(format),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(paths: &[PathBuf], root: &Path) -> Vec<String> {
        let mut names: Vec<String> = paths
            .iter()
            .map(|path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_walked_without_links_and_hidden_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["a/b.md", ".git/config", "a/.b/c.md", "__MACOSX/x.md", "z.md"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "x").unwrap();
        }
        std::os::unix::fs::symlink(root.join("z.md"), root.join("link.md")).unwrap();
        std::os::unix::fs::symlink(root, root.join("a/ring")).unwrap();
        let (files, hidden) = walk(root).unwrap();
        assert_eq!(names(&files, root), ["a/b.md", "z.md"]);
        assert_eq!(names(&hidden, root), [".git", "__MACOSX", "a/.b"]);
    }

    #[test]
    fn a_folder_that_is_too_deep_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut deep = folder.path().to_owned();
        (0..MAX_DEPTH).for_each(|_| deep.push("d"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("x.md"), "x").unwrap();
        assert_eq!(walk(folder.path()).unwrap().0.len(), 1);
        fs::create_dir(deep.join("d")).unwrap();
        fs::write(deep.join("d/x.md"), "x").unwrap();
        assert!(walk(folder.path()).is_err());
    }
}

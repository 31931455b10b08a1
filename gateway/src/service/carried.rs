//! What of a home goes into a backup in clear, beside store and vault: what the owner wrote and the world may see. None of it holds memory, a
//! key or a token: the administrator's credential and the self-made certificate stay, and are made anew by a restore.

use crate::service::backup::BackupError;
use crate::system::files;
use oap_identity::Hash;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Files of a home.
const FILES: [&str; 2] = ["config.toml", "did.json"];
/// Folders of a home, and how the names of their files end.
const FOLDERS: [(&str, &str); 2] = [("profiles", "toml"), ("sanctions", "txt")];
/// Most files of a backup beside store and vault.
pub const MAX_CARRIED: usize = 10_000;

/// Files of a home by their names in it, such as `profiles/mine.toml`, and their hashes.
pub type Carried = BTreeMap<String, Hash>;

/// The hash of a file.
///
/// # Errors
/// What the system says.
pub(crate) fn hash(path: &Path) -> io::Result<Hash> {
    let mut hash = Sha256::new();
    io::copy(&mut BufReader::new(File::open(path)?), &mut hash)?;
    Ok(Hash::from_bytes(hash.finalize().into()))
}

/// The names of those files that are in a folder: a home, or a backup.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> =
        FILES.iter().filter(|name| folder.join(name).exists()).map(|name| (*name).to_owned()).collect();
    for (below, end) in FOLDERS {
        let entries = match std::fs::read_dir(folder.join(below)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            if Path::new(&name).extension().is_none_or(|extension| extension != end) {
                continue;
            }
            if names.len() >= MAX_CARRIED {
                return Err(io::Error::other(format!("more than {MAX_CARRIED} files beside the store")));
            }
            let name =
                name.into_string().map_err(|_| io::Error::other(format!("{below}: a name is not UTF-8")))?;
            names.push(format!("{below}/{name}"));
        }
    }
    Ok(names)
}

/// Whether a backup may name such a file.
fn is_carried(name: &str) -> bool {
    let in_folder = |(below, file): (&str, &str)| {
        let path = Path::new(file);
        // The one name of a file: no folder, no way up.
        path.file_name().is_some_and(|name| name == file)
            && FOLDERS
                .iter()
                .any(|(folder, end)| below == *folder && path.extension().is_some_and(|e| e == *end))
    };
    FILES.contains(&name) || name.split_once('/').is_some_and(in_folder)
}

/// Copies what of a home goes along, to a folder that has none of it yet, and waits until it is on disk.
///
/// # Errors
/// What the system says.
pub(crate) fn take_along(home: &Path, to: &Path) -> io::Result<Carried> {
    let mut carried = Carried::new();
    for name in names(home)? {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
        carry(home, to, &name).map_err(named)?;
        let hash = hash(&to.join(&name)).map_err(named)?;
        carried.insert(name, hash);
    }
    sync(to)?;
    Ok(carried)
}

fn carry(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let copy = to.join(name);
    if let Some(folder) = copy.parent() {
        files::create_folder(folder)?;
    }
    files::copy(&from.join(name), &copy)?;
    Ok(())
}

fn sync(folder: &Path) -> io::Result<()> {
    for (below, _) in FOLDERS {
        match files::sync(&folder.join(below)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            synced => synced?,
        }
    }
    files::sync(folder)
}

/// What a backup of an earlier version has of it, which named no file: whatever is there.
///
/// # Errors
/// [`BackupError::File`].
pub(crate) fn found(backup: &Path) -> Result<Carried, BackupError> {
    let failed = |error| BackupError::File("the backup".to_owned(), error);
    let of = |name: String| Ok((name.clone(), hash(&backup.join(name)).map_err(failed)?));
    names(backup).map_err(failed)?.into_iter().map(of).collect()
}

/// Checks that a backup names nothing else, and that its files are those.
///
/// # Errors
/// [`BackupError::Files`], [`BackupError::File`], [`BackupError::Hash`].
pub(crate) fn check(backup: &Path, carried: &Carried) -> Result<(), BackupError> {
    if carried.len() > MAX_CARRIED || !carried.keys().all(|name| is_carried(name)) {
        return Err(BackupError::Files);
    }
    for (name, expected) in carried {
        let found = hash(&backup.join(name)).map_err(|error| BackupError::File(name.clone(), error))?;
        if found != *expected {
            return Err(BackupError::Hash(name.clone()));
        }
    }
    Ok(())
}

/// Copies what a checked backup has of it into a home that is being made.
///
/// # Errors
/// [`BackupError::File`].
pub(crate) fn restore(backup: &Path, home: &Path, carried: &Carried) -> Result<(), BackupError> {
    for name in carried.keys() {
        carry(backup, home, name).map_err(|error| BackupError::File(name.clone(), error))?;
    }
    Ok(())
}

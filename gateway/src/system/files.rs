//! Files and folders that their owner alone may read.

use rustix::fs::{Mode, OFlags};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// The mode of a private file.
pub const FILE_MODE: u32 = 0o600;
/// The mode of a private folder.
pub const FOLDER_MODE: u32 = 0o700;

/// Makes everything that the process creates from now on private.
pub fn keep_private() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Makes a folder and those above it, private, where they are not there.
///
/// # Errors
/// What the system says.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Makes a folder private that others may look into; whether that was needed.
///
/// # Errors
/// What the system says: only the folder's owner can.
pub fn tighten_folder(path: &Path) -> io::Result<bool> {
    let mode = std::fs::metadata(path)?.mode();
    let loose = mode & 0o077 != 0;
    if loose {
        std::fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))?;
    }
    Ok(loose)
}

/// Begins a private file that takes the place of another, or of a link, once it is whole: see [`Pending::finish`]. Until
/// then it has a name that nobody could foresee, and is gone when it is dropped.
///
/// # Errors
/// What the system says.
pub fn begin(path: &Path) -> io::Result<Pending> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new()
        .prefix(".oap-")
        .suffix(".part")
        .permissions(Permissions::from_mode(FILE_MODE))
        .tempfile_in(folder)
        .map_err(nameless)?;
    Ok(Pending(file))
}

/// What the system said, without the name of the unfinished file: nobody gave it that name.
fn nameless(error: io::Error) -> io::Error {
    let said = error.get_ref().and_then(|of_file| of_file.source()?.downcast_ref::<io::Error>());
    match said.map(io::Error::raw_os_error) {
        Some(Some(code)) => io::Error::from_raw_os_error(code),
        Some(None) => io::Error::from(error.kind()),
        None => error,
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct Pending(NamedTempFile);

impl Pending {
    /// Brings it to disk and gives it its name.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(self, path: &Path) -> io::Result<()> {
        self.0.as_file().sync_all()?;
        self.0.persist(path)?;
        Ok(())
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(nameless)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(nameless)
    }
}

/// Writes a private file in one step; its folder is made where it is not there.
///
/// # Errors
/// What the system says.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_folder(folder)?;
    }
    let mut file = begin(path)?;
    file.write_all(bytes)?;
    file.finish(path)
}

/// Creates a private file under a name that is still free: never through a link.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], and what else the system says.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
}

/// Opens a private file to add to it, and makes it where it is not there: never through a link.
///
/// # Errors
/// What the system says.
pub fn append(path: &Path) -> io::Result<File> {
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
    OpenOptions::new().append(true).create(true).mode(FILE_MODE).custom_flags(no_link).open(path)
}

/// Copies a file to a name that is still free, private whatever the mode of the original is.
///
/// # Errors
/// What the system says.
pub fn copy(from: &Path, to: &Path) -> io::Result<u64> {
    let (mut from, mut to) = (File::open(from)?, create(to)?);
    let copied = io::copy(&mut from, &mut to)?;
    to.sync_all()?;
    Ok(copied)
}

/// Waits until a file's bytes, or the names in a folder, are on disk.
///
/// # Errors
/// What the system says.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_is_private_and_takes_the_place_of_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, theirs) = (folder.path().join("a/mine"), folder.path().join("theirs"));
        std::fs::write(&theirs, "theirs").unwrap();
        create_folder(mine.parent().unwrap()).unwrap();
        symlink(&theirs, &mine).unwrap();
        write(&mine, b"mine").unwrap();
        assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
        assert_eq!((mode(&mine), std::fs::read(&mine).unwrap()), (0o600, b"mine".to_vec()));
        assert_eq!(mode(mine.parent().unwrap()), 0o700);
    }

    #[test]
    fn nothing_is_made_or_added_to_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, theirs) = (folder.path().join("link"), folder.path().join("theirs"));
        std::fs::write(&theirs, "theirs").unwrap();
        symlink(&theirs, &link).unwrap();
        assert!(create(&link).is_err());
        assert!(append(&link).is_err());
        assert!(copy(&theirs, &link).is_err());
        let copied = folder.path().join("copy");
        std::fs::set_permissions(&theirs, Permissions::from_mode(0o644)).unwrap();
        copy(&theirs, &copied).unwrap();
        assert_eq!(mode(&copied), 0o600);
        append(&folder.path().join("new")).unwrap();
        assert_eq!(mode(&folder.path().join("new")), 0o600);
    }

    #[test]
    fn an_unfinished_file_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = begin(&folder.path().join("name")).unwrap();
        file.write_all(b"half").unwrap();
        let entry = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
        assert_eq!(mode(&entry.path()), 0o600);
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_loose_folder_is_tightened_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        assert!(tighten_folder(folder.path()).unwrap());
        assert!(!tighten_folder(folder.path()).unwrap());
        assert_eq!(mode(folder.path()), 0o700);
    }
}

//! A bundle as a file: JSON Lines, compressed with zstd where asked for, then encrypted with age where asked for.

use super::files::{self, Pending};
use age::x25519;
use oap_formats::sources::peek;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

const AGE: &[u8] = b"age-encryption.org/v1";
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The window that a compressed bundle may ask for, as a power of two: 8 MiB.
const WINDOW_LOG: u32 = 23;
const LEVEL: i32 = 3;

/// Something that is written and has an end.
trait End: Write + Send {
    fn end(self: Box<Self>) -> io::Result<Pending>;
}

struct Plain(BufWriter<Pending>);

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl End for Plain {
    fn end(self: Box<Self>) -> io::Result<Pending> {
        self.0.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// An end that has another one behind it.
struct Age(age::stream::StreamWriter<Box<dyn End>>);

impl Write for Age {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl End for Age {
    fn end(self: Box<Self>) -> io::Result<Pending> {
        self.0.finish()?.end()
    }
}

struct Zstd(zstd::stream::write::Encoder<'static, Box<dyn End>>);

impl Write for Zstd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl End for Zstd {
    fn end(self: Box<Self>) -> io::Result<Pending> {
        self.0.finish()?.end()
    }
}

/// A bundle that is being written: under another name until it is whole.
pub struct BundleWriter {
    writer: Box<dyn End>,
    path: PathBuf,
}

impl BundleWriter {
    /// Begins a file, readable by its owner alone.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(path: &Path, compress: bool, recipients: &[x25519::Recipient]) -> io::Result<Self> {
        let file = files::begin(path)?;
        let mut writer: Box<dyn End> = Box::new(Plain(BufWriter::with_capacity(1 << 20, file)));
        if !recipients.is_empty() {
            let all = recipients.iter().map(|recipient| recipient as &dyn age::Recipient);
            let encryptor = age::Encryptor::with_recipients(all).map_err(io::Error::other)?;
            writer = Box::new(Age(encryptor.wrap_output(writer)?));
        }
        if compress {
            writer = Box::new(Zstd(zstd::stream::write::Encoder::new(writer, LEVEL)?));
        }
        Ok(Self { writer, path: path.to_owned() })
    }

    /// Writes on.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(self) -> io::Result<()> {
        self.writer.end()?.finish(&self.path)
    }
}

/// A bundle as it was at one moment, in a file without a name: nobody else can change what is read of it, however often that is. It is
/// sealed to a key that is in memory alone, so that it leaves nothing on the disk that can be read.
pub struct Held {
    file: File,
    key: x25519::Identity,
}

impl Held {
    /// Copies a bundle, as it is, into this folder's file system.
    ///
    /// # Errors
    /// What the system says.
    pub fn copy(path: &Path, folder: &Path) -> io::Result<Self> {
        let mut bundle = File::open(path)?;
        let (file, key) = (tempfile::tempfile_in(folder)?, x25519::Identity::generate());
        let recipient = key.to_public();
        let to = std::iter::once(&recipient as &dyn age::Recipient);
        let sealing = age::Encryptor::with_recipients(to).map_err(io::Error::other)?;
        let mut sealed = sealing.wrap_output(BufWriter::with_capacity(1 << 20, file))?;
        io::copy(&mut bundle, &mut sealed)?;
        let file = sealed.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Self { file, key })
    }

    /// Opens it from its beginning. One reader of it is used at a time.
    ///
    /// # Errors
    /// As those of [`open`].
    pub fn open(&self, identity: Option<&Path>) -> io::Result<Box<dyn Read + Send>> {
        let mut file = self.file.try_clone()?;
        file.rewind()?;
        let sealed = age::Decryptor::new_buffered(BufReader::with_capacity(1 << 20, file));
        let own = std::iter::once(&self.key as &dyn age::Identity);
        let bundle = sealed.and_then(|sealed| sealed.decrypt(own)).map_err(io::Error::other)?;
        opened(bundle, identity)
    }
}

/// Opens what may be encrypted and compressed.
///
/// # Errors
/// What the system says; for an encrypted file without a fitting identity, that.
pub fn open(path: &Path, identity: Option<&Path>) -> io::Result<Box<dyn Read + Send>> {
    opened(File::open(path)?, identity)
}

fn opened(file: impl Read + Send + 'static, identity: Option<&Path>) -> io::Result<Box<dyn Read + Send>> {
    let file: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(1 << 20, file));
    let (head, reader) = peek(file, AGE.len())?;
    let reader: Box<dyn Read + Send> =
        if head == AGE { Box::new(decrypt(reader, identity)?) } else { Box::new(reader) };
    let (head, reader) = peek(reader, ZSTD.len())?;
    if head == ZSTD {
        let mut decoder = zstd::stream::read::Decoder::new(reader)?;
        decoder.window_log_max(WINDOW_LOG)?;
        return Ok(Box::new(decoder));
    }
    Ok(Box::new(reader))
}

fn decrypt<R: Read + Send + 'static>(
    reader: R,
    identity: Option<&Path>,
) -> io::Result<age::stream::StreamReader<R>> {
    let needed =
        || io::Error::new(io::ErrorKind::PermissionDenied, "it is encrypted: name your age identity file");
    let text = std::fs::read_to_string(identity.ok_or_else(needed)?)?;
    let identities: Vec<x25519::Identity> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    let decryptor = age::Decryptor::new(reader).map_err(io::Error::other)?;
    let all = identities.iter().map(|identity| identity as &dyn age::Identity);
    decryptor.decrypt(all).map_err(|e| io::Error::new(io::ErrorKind::PermissionDenied, e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever writes to the file meanwhile changes nothing of what is read, however often that is.
    #[test]
    fn a_bundle_is_what_it_was_when_it_was_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.bundle");
        std::fs::write(&path, "as it was\n").unwrap();
        let held = Held::copy(&path, folder.path()).unwrap();
        std::fs::write(&path, "as it is now\n").unwrap();
        let mut on_disk = Vec::new();
        let mut file = held.file.try_clone().unwrap();
        file.rewind().unwrap();
        file.read_to_end(&mut on_disk).unwrap();
        assert!(!String::from_utf8_lossy(&on_disk).contains("as it was"));
        for _ in 0..2 {
            let mut read = String::new();
            held.open(None).unwrap().read_to_string(&mut read).unwrap();
            assert_eq!(read, "as it was\n");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the copy has no name");
    }
}

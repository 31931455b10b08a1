//! The key that everything in a home is sealed under: of a passphrase, or in a file.

use super::{HomeError, file_error, write_private};
use crate::system::clock::SystemRandom;
use crate::system::config::Config;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::Signer;
use oap_store::Master;
use std::io::IsTerminal;
use std::path::Path;
use zeroize::Zeroizing;

/// Where the passphrase is taken from, if set.
pub const PASSPHRASE: &str = "OAP_MEMORY_PASSPHRASE";

/// The master key that a configuration names, or asks for.
///
/// # Errors
/// [`HomeError::NoMaster`]; [`HomeError::File`], [`HomeError::Malformed`] for a key file.
pub fn master(config: &Config) -> Result<Master, HomeError> {
    master_of(config.key_file.as_deref())
}

pub(super) fn master_of(key_file: Option<&Path>) -> Result<Master, HomeError> {
    match key_file {
        Some(path) => read_key_file(path),
        None => passphrase("Passphrase: ").map(Master::Passphrase),
    }
}

/// The passphrase: from the environment, or asked for.
///
/// # Errors
/// [`HomeError::NoMaster`] where nobody can be asked.
pub fn passphrase(prompt: &str) -> Result<Zeroizing<String>, HomeError> {
    if let Ok(passphrase) = std::env::var(PASSPHRASE) {
        return Ok(passphrase.into());
    }
    if !std::io::stdin().is_terminal() {
        return Err(HomeError::NoMaster);
    }
    rpassword::prompt_password(prompt).map(Zeroizing::new).map_err(|_| HomeError::NoMaster)
}

pub(super) fn new_passphrase() -> Result<Master, HomeError> {
    let once = passphrase("New passphrase: ")?;
    if once.is_empty() {
        return Err(HomeError::EmptyPassphrase);
    }
    if passphrase("Once more: ")? != once {
        Err(HomeError::Passphrases)
    } else {
        Ok(Master::Passphrase(once))
    }
}

pub(super) fn new_key_file(path: &Path) -> Result<Master, HomeError> {
    if path.exists() {
        return read_key_file(path);
    }
    let key = Signer::seed(&SystemRandom);
    let text = Zeroizing::new(URL_SAFE_NO_PAD.encode(*key) + "\n");
    write_private(path, text.as_bytes())?;
    Ok(Master::KeyFile(key))
}

fn read_key_file(path: &Path) -> Result<Master, HomeError> {
    let text = Zeroizing::new(std::fs::read(path).map_err(|e| file_error(path, e))?);
    let bytes =
        URL_SAFE_NO_PAD.decode(text.trim_ascii()).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let expected =
        "must be 32 bytes in base64url, as `init --key-file` writes them to a file that is not there yet";
    bytes
        .map(|bytes| Master::KeyFile(Zeroizing::new(bytes)))
        .ok_or_else(|| HomeError::Malformed(path.to_owned(), expected.into()))
}

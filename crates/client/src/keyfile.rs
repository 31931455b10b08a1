//! A grantee's key in a file: all that one needs who was given a grant and has no gateway.
//!
//! The file is a private JWK (RFC 8037): `{"kty":"OKP","crv":"Ed25519","x":…,"d":…,"kid":"<DID>#<fragment>"}`.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::jwk::KeyError;
use oap_identity::{Did, Kid, Random, Signer};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// The fragment of the key of a did:web.
const FRAGMENT: &str = "key-1";

/// Why a key file was refused, or could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum KeyFileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A name that is taken.
    #[error("there is a file of that name already; a key is never overwritten")]
    Exists,
    /// Not a file of this form.
    #[error("is not a private Ed25519 JWK as `oap-memory key new` makes it")]
    Form,
    /// The parts of the file contradict each other.
    #[error("its {0} is not that of its key")]
    Contradiction(&'static str),
    /// A DID that no single key is.
    #[error("the DID must be a did:web, or did:key for a fresh one")]
    Method,
    #[error(transparent)]
    Key(#[from] KeyError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Jwk {
    kty: String,
    crv: String,
    kid: Kid,
    x: String,
    d: Zeroizing<String>,
}

/// Makes a fresh key in a file under a name that is still free, for its owner alone (0600). Without a DID it is a did:key.
///
/// # Errors
/// [`KeyFileError`]; [`KeyFileError::Exists`] rather than touching a file that is there.
pub fn create(path: &Path, did: Option<&Did>, random: &dyn Random) -> Result<Signer, KeyFileError> {
    let seed = Signer::seed(random);
    let signer = match did {
        None => Signer::did_key(&seed)?,
        Some(did) if did.method() == "web" => {
            Signer::from_seed(did.key(FRAGMENT).map_err(|_| KeyFileError::Form)?, &seed)?
        }
        Some(_) => return Err(KeyFileError::Method),
    };
    let jwk = Jwk {
        kty: "OKP".to_owned(),
        crv: "Ed25519".to_owned(),
        kid: signer.kid().clone(),
        x: URL_SAFE_NO_PAD.encode(signer.public().as_bytes()),
        d: Zeroizing::new(URL_SAFE_NO_PAD.encode(*seed)),
    };
    let text = Zeroizing::new(serde_json::to_string_pretty(&jwk).map_err(io::Error::other)? + "\n");
    let mut made = private(path).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => KeyFileError::Exists,
        _ => e.into(),
    })?;
    let written = made.write_all(text.as_bytes()).and_then(|()| made.sync_all());
    if let Err(error) = written {
        // Half a key is none, and would hold the name.
        let _ = std::fs::remove_file(path);
        return Err(error.into());
    }
    Ok(signer)
}

/// A file for its owner alone under a name that is still free: never through a link.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Reads a key file.
///
/// # Errors
/// [`KeyFileError`].
pub fn read(path: &Path) -> Result<Signer, KeyFileError> {
    let text = Zeroizing::new(std::fs::read(path)?);
    let jwk: Jwk = serde_json::from_slice(&text).map_err(|_| KeyFileError::Form)?;
    if jwk.kty != "OKP" || jwk.crv != "Ed25519" {
        return Err(KeyFileError::Form);
    }
    let seed = URL_SAFE_NO_PAD.decode(&*jwk.d).map(Zeroizing::new).map_err(|_| KeyFileError::Form)?;
    let seed: Zeroizing<[u8; 32]> =
        Zeroizing::new(seed.as_slice().try_into().map_err(|_| KeyFileError::Form)?);
    let signer = Signer::from_seed(jwk.kid, &seed)?;
    if URL_SAFE_NO_PAD.encode(signer.public().as_bytes()) != jwk.x {
        return Err(KeyFileError::Contradiction("x"));
    }
    if signer.did().method() == "key" && *signer.kid() != *Signer::did_key(&seed)?.kid() {
        return Err(KeyFileError::Contradiction("kid"));
    }
    Ok(signer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::Seeded;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_key_is_private_never_overwritten_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let random = Seeded::new(1);
        let path = folder.path().join("a.key");
        let made = create(&path, None, &random).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap().kid(), made.kid());
        assert!(matches!(create(&path, None, &random), Err(KeyFileError::Exists)));
        assert_eq!(read(&path).unwrap().kid(), made.kid());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).unwrap();
        assert!(matches!(create(&link, None, &random), Err(KeyFileError::Exists)));

        let web = folder.path().join("web.key");
        let did: Did = "did:web:contractor.example".parse().unwrap();
        create(&web, Some(&did), &random).unwrap();
        assert_eq!(read(&web).unwrap().kid().to_string(), "did:web:contractor.example#key-1");
        let other: Did = "did:plc:abc".parse().unwrap();
        let path = folder.path().join("none");
        assert!(matches!(create(&path, Some(&other), &random), Err(KeyFileError::Method)));
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_contradicts_itself_is_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let random = Seeded::new(1);
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        create(&one, None, &random).unwrap();
        create(&two, None, &random).unwrap();
        let value =
            |path| serde_json::from_slice::<serde_json::Value>(&std::fs::read(path).unwrap()).unwrap();
        for member in ["x", "d", "kid", "kty", "crv"] {
            let mut mixed = value(&one);
            mixed[member] = if member.starts_with('k') && member != "kid" || member == "crv" {
                "else".into()
            } else {
                value(&two)[member].clone()
            };
            let path = folder.path().join("mixed");
            std::fs::write(&path, mixed.to_string()).unwrap();
            assert!(read(&path).is_err(), "{member}");
        }
        std::fs::write(&one, "AAAA").unwrap();
        assert!(matches!(read(&one), Err(KeyFileError::Form)));
    }
}

//! The DID methods that are resolved here, and DIDs that can be said to be none before anybody is asked.

use crate::did::Did;
use crate::document::multibase_key;
use crate::resolve::jwk;

/// Why a DID can never have a document here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// A method that is not resolved here: its name.
    #[error("the DID method {0:?} is not known here: use did:web, did:webvh, did:key or did:jwk")]
    Unknown(String),
    /// A did:key whose identifier is no Ed25519 key.
    #[error("the did:key is not a whole Ed25519 key (did:key:z6Mk… has 48 characters after did:key:)")]
    Key,
    /// A did:jwk whose identifier is no Ed25519 key.
    #[error("the did:jwk is not an Ed25519 public key in JWK form, in base64url")]
    Jwk,
    /// A did:web with a number where its path begins, which is how a port looks that was not encoded: the DID with the
    /// port encoded.
    #[error("a did:web writes its port as %3A<port>: {0}")]
    Port(String),
}

impl MethodError {
    /// The rule that is broken, without a word of the DID: for answers, which never quote what was sent.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "must be a did:web, a did:webvh, a did:key or a did:jwk",
            Self::Key => "must be a whole Ed25519 key where it is a did:key",
            Self::Jwk => "must be an Ed25519 public key where it is a did:jwk",
            Self::Port(_) => "must have its port as %3A<port> where it is a did:web",
        }
    }
}

impl Did {
    /// Checks what can be checked of a DID without asking anybody: its method is one that is resolved here, a did:key or did:jwk is an
    /// Ed25519 key, and the path of a did:web does not begin with a port. A DID of other parties' documents needs not
    /// pass: only one that a grant is made out to.
    ///
    /// # Errors
    /// [`MethodError`].
    pub fn check_method(&self) -> Result<(), MethodError> {
        match self.method() {
            "key" => {
                let key = self.as_str().strip_prefix("did:key:").unwrap_or_default();
                multibase_key(key).map(drop).ok_or(MethodError::Key)
            }
            // Its form was checked when it was read.
            "webvh" => Ok(()),
            "jwk" => jwk::key(self).map(drop).ok_or(MethodError::Jwk),
            "web" => {
                let id = self.as_str().strip_prefix("did:web:").unwrap_or_default();
                let mut parts = id.splitn(3, ':');
                let (host, path, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
                match path.filter(|path| path.parse::<u16>().is_ok_and(|port| port > 0)) {
                    // A port is there already: the number is a path's.
                    Some(port) if !host.contains('%') => {
                        let rest = rest.map(|rest| format!(":{rest}")).unwrap_or_default();
                        Err(MethodError::Port(format!("did:web:{host}%3A{port}{rest}")))
                    }
                    _ => Ok(()),
                }
            }
            other => Err(MethodError::Unknown(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), MethodError> {
        text.parse::<Did>().unwrap().check_method()
    }

    #[test]
    fn what_cannot_be_resolved_is_told_at_once() {
        let key = crate::Signer::did_key(&[7; 32]).unwrap().did().to_string();
        for good in ["did:web:a.example", "did:web:localhost%3A8444", "did:web:a.example:u:8444", &key] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check("did:web:a.example%3A80:8444"), Ok(()));
        for bad in ["did:key:z6Mkj54rW9", "did:key:z6Mk", &key[..key.len() - 1], &format!("{key}1")] {
            assert_eq!(check(bad), Err(MethodError::Key), "{bad}");
        }
        assert_eq!(check("did:jwk:e30"), Err(MethodError::Jwk));
        let jwk = "did:jwk:eyJrdHkiOiJPS1AiLCJjcnYiOiJFZDI1NTE5IiwieCI6IjExcVlBWUt4Q3JmVlNfN1R5V1FIT2c3aGN2UGFwaU1scndJYWFQY0hVUm8ifQ";
        assert_eq!(check(jwk), Ok(()));
        assert_eq!(check("did:wbe:a.example"), Err(MethodError::Unknown("wbe".into())));
        let port = |text: &str| Err(MethodError::Port(text.to_owned()));
        assert_eq!(check("did:web:localhost:8444"), port("did:web:localhost%3A8444"));
        assert_eq!(check("did:web:a.example:8444:u"), port("did:web:a.example%3A8444:u"));
    }
}

//! Signed notes (C2SP signed-note): a text, an empty line, and a line for each signature.

use base64::{Engine, engine::general_purpose::STANDARD};
use oap_identity::Signer;
use sha2::{Digest, Sha256};
use std::fmt;

/// Longest note, in bytes.
pub const MAX_NOTE: usize = 64 << 10;
/// Most signatures of a note; a reader must take 16.
pub const MAX_NOTE_SIGNATURES: usize = 64;

/// What each line of a signature begins with: an em dash and a space.
const DASH: &str = "\u{2014} ";

/// Why this is no note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// Beyond [`MAX_NOTE`].
    #[error("the note is longer than {MAX_NOTE} bytes")]
    TooLong,
    /// No UTF-8, or with a control character other than the newline.
    #[error("the note is not plain text")]
    Text,
    /// No empty line with lines of signatures behind it.
    #[error("the note has no signatures")]
    Unsigned,
    /// More than [`MAX_NOTE_SIGNATURES`].
    #[error("the note has more than {MAX_NOTE_SIGNATURES} signatures")]
    Signatures,
    /// A line of a signature that is none.
    #[error("a signature of the note cannot be read")]
    Signature,
}

/// What a key signs in notes; the number is the type of its signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum NoteKey {
    /// The text of a note (Ed25519).
    Text = 0x01,
    /// That a checkpoint was seen at a time, and goes on from all that were seen before (tlog-cosignature, Ed25519).
    Cosignature = 0x04,
}

impl NoteKey {
    /// The first bytes of the hash of name, type and key: by what a signature names its key.
    #[must_use]
    pub fn id(self, name: &str, public: &[u8; 32]) -> [u8; 4] {
        let hash = Sha256::new().chain_update(name).chain_update([b'\n', self as u8]).chain_update(public);
        let [a, b, c, d, ..]: [u8; 32] = hash.finalize().into();
        [a, b, c, d]
    }
}

/// A signature of a note, whoever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    /// The name of the key.
    pub name: String,
    /// [`NoteKey::id`].
    pub id: [u8; 4],
    /// What the type of the key says.
    pub bytes: Vec<u8>,
}

impl NoteSignature {
    /// One by this key under the name of its DID.
    #[must_use]
    pub fn by(signer: &Signer, key: NoteKey, bytes: Vec<u8>) -> Self {
        let name = signer.did().to_string();
        Self { id: key.id(&name, signer.public().as_bytes()), name, bytes }
    }

    /// Reads a line, without its newline.
    ///
    /// # Errors
    /// [`NoteError::Signature`].
    pub fn parse(line: &str) -> Result<Self, NoteError> {
        let parts = line.strip_prefix(DASH).and_then(|rest| rest.split_once(' '));
        let (name, signature) = parts.ok_or(NoteError::Signature)?;
        let bytes = STANDARD.decode(signature).map_err(|_| NoteError::Signature)?;
        match bytes.split_first_chunk::<4>() {
            Some((id, bytes)) if is_name(name) && !bytes.is_empty() => {
                Ok(Self { name: name.to_owned(), id: *id, bytes: bytes.to_vec() })
            }
            _ => Err(NoteError::Signature),
        }
    }
}

impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, id, bytes } = self;
        write!(f, "{DASH}{name} {}", STANDARD.encode([id.as_slice(), bytes].concat()))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '+')
}

/// A note. That it was read says nothing of its signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<NoteSignature>,
}

impl Note {
    /// A note of this text, which ends with a newline, with one signature.
    #[must_use]
    pub fn new(text: String, signature: NoteSignature) -> Self {
        Self { text, signatures: vec![signature] }
    }

    /// Reads a note.
    ///
    /// # Errors
    /// [`NoteError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > MAX_NOTE {
            return Err(NoteError::TooLong);
        }
        let whole = std::str::from_utf8(bytes).map_err(|_| NoteError::Text)?;
        if whole.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
            return Err(NoteError::Text);
        }
        let (before, lines) = whole.rsplit_once("\n\n").ok_or(NoteError::Unsigned)?;
        let lines = lines.strip_suffix('\n').ok_or(NoteError::Unsigned)?;
        if lines.split('\n').count() > MAX_NOTE_SIGNATURES {
            return Err(NoteError::Signatures);
        }
        let signatures = lines.split('\n').map(NoteSignature::parse).collect::<Result<_, _>>()?;
        Ok(Self { text: format!("{before}\n"), signatures })
    }

    /// The text, with its last newline: what is signed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures.
    #[must_use]
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// The same with one more signature; in place of one that names the same key.
    #[must_use]
    pub fn with(mut self, signature: NoteSignature) -> Self {
        self.signatures.retain(|known| (&known.name, known.id) != (&signature.name, signature.id));
        self.signatures.push(signature);
        self
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::jwk::PublicKey;

    /// The note and the key of C2SP signed-note, "Verifier keys".
    const EXAMPLE: &str = "This is an example message.\n\n\u{2014} example.com/foo \
        Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

    #[test]
    fn the_published_example() {
        let key = STANDARD.decode("AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k").unwrap();
        let (kind, key) = key.split_first().unwrap();
        let public = PublicKey::from_bytes(key).unwrap();
        assert_eq!(*kind, NoteKey::Text as u8);
        let id = NoteKey::Text.id("example.com/foo", public.as_bytes());
        assert_eq!(id, [0x53, 0x0d, 0x90, 0x3a]);
        let note = Note::parse(EXAMPLE.as_bytes()).unwrap();
        assert_eq!(note.text(), "This is an example message.\n");
        let [signature] = note.signatures() else { panic!("{note:?}") };
        assert_eq!((signature.name.as_str(), signature.id), ("example.com/foo", id));
        public.verify(note.text().as_bytes(), &signature.bytes).unwrap();
        assert_eq!(note.to_string(), EXAMPLE);
        assert_ne!(NoteKey::Cosignature.id("example.com/foo", public.as_bytes()), id);
    }

    /// The text goes on to the last empty line.
    #[test]
    fn a_text_may_have_empty_lines() {
        let text = "one\n\nthree\n";
        let note = Note::parse(EXAMPLE.replace("This is an example message.\n", text).as_bytes()).unwrap();
        assert_eq!(note.text(), text);
    }

    #[test]
    fn one_key_has_one_signature() {
        let note = Note::parse(EXAMPLE.as_bytes()).unwrap();
        let again = NoteSignature { bytes: vec![1], ..note.signatures()[0].clone() };
        let other = NoteSignature { id: [0; 4], ..again.clone() };
        let note = note.with(again.clone()).with(other.clone());
        assert_eq!(note.signatures(), [again, other]);
        assert_eq!(Note::parse(note.to_string().as_bytes()), Ok(note));
    }

    #[test]
    fn what_is_no_note() {
        let line = EXAMPLE.split_once("\n\n").unwrap().1;
        let many = format!("text\n\n{}", line.repeat(MAX_NOTE_SIGNATURES + 1));
        for (text, expected) in [
            ("", NoteError::Unsigned),
            ("text\n", NoteError::Unsigned),
            ("text\n\n", NoteError::Unsigned),
            ("te\txt\n\n", NoteError::Text),
            (EXAMPLE.trim_end(), NoteError::Unsigned),
            (EXAMPLE.replace('\u{2014}', "-").as_str(), NoteError::Signature),
            (EXAMPLE.replace("example.com/foo", "a+b").as_str(), NoteError::Signature),
            (EXAMPLE.replace("example.com/foo", "a\u{a0}b").as_str(), NoteError::Signature),
            (EXAMPLE.replace("aQM=", "aQM").as_str(), NoteError::Signature),
            ("text\n\n\u{2014} name UwCQOg==\n", NoteError::Signature),
            ("text\n\n\u{2014} name UwCQ\n", NoteError::Signature),
            (many.as_str(), NoteError::Signatures),
            ("x".repeat(MAX_NOTE + 1).as_str(), NoteError::TooLong),
        ] {
            assert_eq!(Note::parse(text.as_bytes()), Err(expected), "{text:?}");
        }
        assert_eq!(Note::parse(b"\xff\n\n"), Err(NoteError::Text));
        // 16 are always read.
        assert!(Note::parse(format!("text\n\n{}", line.repeat(16)).as_bytes()).is_ok());
    }
}

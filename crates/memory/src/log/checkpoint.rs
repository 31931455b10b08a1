//! Checkpoints (C2SP tlog-checkpoint) and their cosignatures (C2SP tlog-cosignature, Ed25519).
//!
//! The origin of a log is its principal's DID, and so is the name of the key that signs it: a principal has one log. A witness signs under
//! its own DID.

use super::note::{Note, NoteKey, NoteSignature};
use base64::{Engine, engine::general_purpose::STANDARD};
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, DidDocument, Hash, Signer, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How old the signature of a witness may be that says how a log stands now.
pub const MAX_AGE: Duration = Duration::from_secs(10 * 60);
/// How long after it was made a receipt must be in the log: longer than a checkpoint may be old, with three clocks that are apart.
pub const MAX_DELAY: Duration = Duration::from_secs(30 * 60);
/// Largest size of a log.
pub const MAX_SIZE: u64 = i64::MAX as u64;

/// Why a checkpoint is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The text is none of a checkpoint.
    #[error("it is no checkpoint: origin, size and root, a line each")]
    Shape,
    /// It is of another log.
    #[error("it is of another log")]
    Origin,
    /// No key of the log's principal that is in force signed it.
    #[error("no key of its principal that is in force signed it")]
    Unsigned,
    /// A signature under the name of a known key does not hold.
    #[error("its signature does not hold")]
    Signature,
}

/// What a log says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log: one non-empty line.
    pub origin: String,
    /// How many leaves it has, at most [`MAX_SIZE`].
    pub size: u64,
    /// The root of the tree.
    pub root: Hash,
}

impl Checkpoint {
    /// The text of the note.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root.as_bytes()))
    }

    /// Reads the text of a note; further lines are passed over.
    ///
    /// # Errors
    /// [`CheckpointError::Shape`].
    pub fn read(text: &str) -> Result<Self, CheckpointError> {
        let read = || {
            let mut lines = text.strip_suffix('\n')?.split('\n');
            let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
            let is_whole = !origin.is_empty() && lines.all(|line| !line.is_empty());
            let (size, root) = (decimal(size)?, node(root)?);
            is_whole.then(|| Self { origin: origin.to_owned(), size, root })
        };
        read().ok_or(CheckpointError::Shape)
    }

    /// Signs it.
    #[must_use]
    pub fn sign(&self, signer: &Signer) -> Note {
        let text = self.text();
        let signature = signer.signature(text.as_bytes()).to_vec();
        Note::new(text, NoteSignature::by(signer, NoteKey::Text, signature))
    }

    /// The checkpoint of a note, where a key of the log's principal that is in force signed it.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn verify(note: &Note, principal: &DidDocument, now: Timestamp) -> Result<Self, CheckpointError> {
        let checkpoint = Self::read(note.text())?;
        if checkpoint.origin != principal.id().as_str() {
            return Err(CheckpointError::Origin);
        }
        let mut is_signed = false;
        for (key, signature) in known(note, principal, NoteKey::Text) {
            if key.usable_at(now).is_err() {
                continue;
            }
            key.verify(note.text().as_bytes(), &signature.bytes, now)
                .map_err(|_| CheckpointError::Signature)?;
            is_signed = true;
        }
        if is_signed { Ok(checkpoint) } else { Err(CheckpointError::Unsigned) }
    }
}

/// The signatures of a note that name keys of a document.
fn known<'a>(
    note: &'a Note,
    document: &'a DidDocument,
    kind: NoteKey,
) -> impl Iterator<Item = (&'a oap_identity::VerificationKey, &'a NoteSignature)> {
    let name = document.id().as_str();
    document.keys().iter().flat_map(move |key| {
        let id = kind.id(name, key.public().as_bytes());
        let is_its = move |signature: &&NoteSignature| signature.name == name && signature.id == id;
        note.signatures().iter().filter(is_its).map(move |signature| (key, signature))
    })
}

/// What a witness signs: the text, and when.
fn cosigned(text: &str, seconds: u64) -> String {
    format!("cosignature/v1\ntime {seconds}\n{text}")
}

/// The signature of a witness under a checkpoint. That it goes on from all that it signed before is for the witness to know.
#[must_use]
pub fn cosign(note: &Note, witness: &Signer, now: Timestamp) -> NoteSignature {
    let seconds = u64::try_from(now.seconds()).unwrap_or_default();
    let signature = witness.signature(cosigned(note.text(), seconds).as_bytes());
    let bytes = [seconds.to_be_bytes().as_slice(), &signature].concat();
    NoteSignature::by(witness, NoteKey::Cosignature, bytes)
}

/// When a witness signed a checkpoint, as it says itself; `None` where it did not, or with a key that did not count then. The latest,
/// where it signed with several keys.
#[must_use]
pub fn cosigned_at(note: &Note, witness: &DidDocument, now: Timestamp) -> Option<Timestamp> {
    let times = known(note, witness, NoteKey::Cosignature).filter_map(|(key, signature)| {
        let (time, bytes) = signature.bytes.split_first_chunk::<8>()?;
        let seconds = u64::from_be_bytes(*time);
        let at = i64::try_from(seconds).ok().filter(|at| *at <= now.plus(MAX_SKEW).seconds());
        let at = Timestamp::from_seconds(at?);
        key.verify(cosigned(note.text(), seconds).as_bytes(), bytes, at).ok()?;
        Some(at)
    });
    times.max()
}

/// Which of these witnesses signed a checkpoint within [`MAX_AGE`].
#[must_use]
pub fn witnesses(note: &Note, of: &[Arc<DidDocument>], now: Timestamp) -> BTreeSet<Did> {
    let is_fresh = |witness: &&Arc<DidDocument>| {
        cosigned_at(note, witness, now).is_some_and(|at| at.plus(MAX_AGE) >= now)
    };
    of.iter().filter(is_fresh).map(|witness| witness.id().clone()).collect()
}

/// A number as the formats write it: decimal digits, without leading zeros, at most [`MAX_SIZE`].
pub(super) fn decimal(text: &str) -> Option<u64> {
    let is_number =
        text.bytes().all(|digit| digit.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|size| is_number && *size <= MAX_SIZE)
}

/// A hash as the formats write it: base64 of 32 bytes.
pub(super) fn node(text: &str) -> Option<Hash> {
    let bytes: [u8; 32] = STANDARD.decode(text).ok()?.try_into().ok()?;
    Some(Hash::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::VerificationKey;

    fn signer(did: &str, seed: u8) -> Signer {
        Signer::from_seed(format!("{did}#key-1").parse().unwrap(), &[seed; 32]).unwrap()
    }

    fn document(signer: &Signer) -> DidDocument {
        let key = VerificationKey::new(signer.kid().clone(), *signer.public());
        DidDocument::new(signer.did().clone(), vec![key])
    }

    fn now() -> Timestamp {
        "2026-05-01T12:00:00Z".parse().unwrap()
    }

    fn checkpoint() -> Checkpoint {
        let root = node("CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=").unwrap();
        Checkpoint { origin: "did:web:user.example".to_owned(), size: 20_852_163, root }
    }

    #[test]
    fn the_text_is_that_of_the_specification() {
        let text = "did:web:user.example\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
        assert_eq!(checkpoint().text(), text);
        assert_eq!(Checkpoint::read(text), Ok(checkpoint()));
        assert_eq!(Checkpoint::read(&format!("{text}an extension\n")), Ok(checkpoint()));
        for wrong in [
            text.trim_end().to_owned(),
            text.replace("20852163", "020852163"),
            text.replace("20852163", "+20852163"),
            text.replace("20852163", "9223372036854775808"),
            text.replace("20852163", ""),
            text.replace("did:web:user.example", ""),
            text.replace("q2I=", "q2I"),
            text.replace("CsUY", ""),
            format!("{text}\n"),
            String::new(),
        ] {
            assert_eq!(Checkpoint::read(&wrong), Err(CheckpointError::Shape), "{wrong:?}");
        }
    }

    #[test]
    fn a_checkpoint_is_its_principals() {
        let (log, other) = (signer("did:web:user.example", 1), signer("did:web:user.example", 2));
        let note = checkpoint().sign(&log);
        assert_eq!(Checkpoint::verify(&note, &document(&log), now()), Ok(checkpoint()));
        let expected = Err(CheckpointError::Unsigned);
        assert_eq!(Checkpoint::verify(&note, &document(&other), now()), expected);
        let stranger = signer("did:web:stranger.example", 1);
        let expected = Err(CheckpointError::Origin);
        assert_eq!(Checkpoint::verify(&note, &document(&stranger), now()), expected);
        // A key that ended counts no more.
        let key = VerificationKey::new(log.kid().clone(), *log.public()).revoked(now());
        let ended = DidDocument::new(log.did().clone(), vec![key]);
        assert_eq!(Checkpoint::verify(&note, &ended, now()), Err(CheckpointError::Unsigned));
        // Another text under the same signature.
        let larger = Checkpoint { size: checkpoint().size + 1, ..checkpoint() };
        let forged = Note::new(larger.text(), note.signatures()[0].clone());
        assert_eq!(Checkpoint::verify(&forged, &document(&log), now()), Err(CheckpointError::Signature));
    }

    #[test]
    fn a_witness_says_when() {
        let (log, witness) = (signer("did:web:user.example", 1), signer("did:web:witness.example", 3));
        let note = checkpoint().sign(&log);
        assert_eq!(cosigned_at(&note, &document(&witness), now()), None);
        let signed = note.clone().with(cosign(&note, &witness, now()));
        assert_eq!(cosigned_at(&signed, &document(&witness), now()), Some(now()));
        // The bytes, spelled out.
        let line = signed.signatures()[1].clone();
        let message = format!("cosignature/v1\ntime {}\n{}", now().seconds(), checkpoint().text());
        assert_eq!(line.bytes[..8], now().seconds().to_be_bytes());
        witness.public().verify(message.as_bytes(), &line.bytes[8..]).unwrap();
        // Another time, another checkpoint, another key, or from the future: nothing.
        let mut later = line.clone();
        later.bytes[7] ^= 1;
        assert_eq!(cosigned_at(&note.clone().with(later), &document(&witness), now()), None);
        let larger = Checkpoint { size: 20_852_164, ..checkpoint() }.sign(&log).with(line);
        assert_eq!(cosigned_at(&larger, &document(&witness), now()), None);
        assert_eq!(cosigned_at(&signed, &document(&log), now()), None);
        let before = now().minus(Duration::from_secs(301));
        assert_eq!(cosigned_at(&signed, &document(&witness), before), None);
        // The signature of a log is none of a witness, whosever it is.
        let own = checkpoint().sign(&witness);
        assert_eq!(cosigned_at(&own, &document(&witness), now()), None);
    }

    #[test]
    fn a_witness_counts_once_and_for_a_while() {
        let (log, one) = (signer("did:web:user.example", 1), signer("did:web:one.example", 3));
        let two = signer("did:web:two.example", 4);
        let note = checkpoint().sign(&log);
        let note = note.clone().with(cosign(&note, &one, now())).with(cosign(&note, &one, now()));
        let of = [Arc::new(document(&one)), Arc::new(document(&two))];
        assert_eq!(witnesses(&note, &of, now()), BTreeSet::from([one.did().clone()]));
        assert_eq!(witnesses(&note, &of, now().plus(MAX_AGE)).len(), 1);
        assert_eq!(witnesses(&note, &of, now().plus(MAX_AGE + Duration::from_secs(1))).len(), 0);
    }
}

//! The witness: it signs a checkpoint of another's log where that goes on from the last one that it signed, and remembers it before it says so
//! (C2SP tlog-witness).

use super::pinned;
use crate::error::{Error, WitnessError};
use crate::service::Witnesses;
use crate::state::commits::Writing;
use crate::state::schema::{EPOCH, PEERS, WITNESSED};
use crate::state::witnessing::Cosigned;
use oap_identity::Did;
use oap_memory::log::checkpoint::{Checkpoint, cosign};
use oap_memory::log::merkle::{self, ProofError};
use oap_memory::log::note::{Note, NoteKey, NoteSignature};
use oap_memory::log::submission::Submission;
use sha2::{Digest, Sha256};

/// What is answered to a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It is signed: the line of the signature.
    Signed(String),
    /// It goes on from another size than this witness signed last: which that is.
    Conflict(u64),
}

impl Witnesses<'_> {
    /// Signs a checkpoint, or says why not. What costs something comes after what shows that the log's own key signed it; that it goes on is
    /// judged in the transaction that remembers it, and the signature leaves when that is durable.
    ///
    /// # Errors
    /// [`Error::Witness`]; [`Error::NotFound`] for a log whose witness this gateway is not; [`Error::Unavailable`].
    pub async fn add_checkpoint(self, body: &[u8]) -> Result<Answered, Error> {
        let submission = Submission::parse(body).map_err(WitnessError::from)?;
        self.0.clock.believe()?;
        let checkpoint = Checkpoint::read(submission.note.text()).map_err(WitnessError::from)?;
        let origin: Did = checkpoint.origin.parse().map_err(|_| Error::NotFound)?;
        let (Some(_), Some(peer)) =
            (WITNESSED.get(&self.0.store, &origin)?, PEERS.get(&self.0.store, &origin)?)
        else {
            return Err(Error::NotFound);
        };
        Checkpoint::verify(&submission.note, &pinned(&peer), self.0.clock.now())
            .map_err(WitnessError::from)?;
        if submission.old > checkpoint.size {
            return Err(WitnessError::Old.into());
        }
        self.0.commit(move |w| judge(w, &origin, &submission)).await?
    }

    /// What this witness signed last of the log whose origin has this hash, in lower-case hex digits.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn last_of(self, origin: &str) -> Result<String, Error> {
        for row in WITNESSED.scan(&self.0.store) {
            let (did, known) = row?;
            if data_encoding::HEXLOWER.encode(&Sha256::digest(did.as_str())) == origin {
                return Ok(known.signed.ok_or(Error::NotFound)?.note);
            }
        }
        Err(Error::NotFound)
    }
}

/// Judges a checkpoint by what was signed before it, and remembers it. Another one of the same size is remembered, too: its principal's key
/// signed both.
fn judge(
    w: &mut Writing<'_, '_>,
    origin: &Did,
    submission: &Submission,
) -> Result<Result<Answered, Error>, Error> {
    let mut known = WITNESSED.get(w.tx, origin)?.ok_or(Error::NotFound)?;
    let peer = PEERS.get(w.tx, origin)?.ok_or(Error::NotFound)?;
    let checkpoint =
        Checkpoint::verify(&submission.note, &pinned(&peer), w.now).map_err(WitnessError::from)?;
    if known.epoch != EPOCH.get(w.tx)? {
        return Err(WitnessError::Forgetful.into());
    }
    let (size, root) = known.last();
    if submission.old != size {
        return Ok(Ok(Answered::Conflict(size)));
    }
    let signed = own_signatures(&submission.note, origin, &pinned(&peer));
    let seen = |note: &Note, w: &Writing<'_, '_>| Cosigned {
        at: w.now,
        size: checkpoint.size,
        root: checkpoint.root,
        note: note.to_string(),
    };
    let holds = match checkpoint.size {
        0 if checkpoint.root != merkle::empty() => Err(ProofError::Root),
        _ => merkle::check_consistency(size, &root, checkpoint.size, &checkpoint.root, &submission.proof),
    };
    if let Err(error) = holds {
        // Anybody can hand in a published checkpoint with a proof that is none. Two roots of one size are two histories, whoever hands them in.
        if checkpoint.size == size && checkpoint.root != root {
            known.other = Some(seen(&signed, w));
            WITNESSED.put(w.tx, origin, &known)?;
        }
        return Ok(Err(WitnessError::Inconsistent(error).into()));
    }
    let signature = cosign(&signed, w.keys.current(), w.now);
    known.signed = Some(seen(&signed.with(signature.clone()), w));
    WITNESSED.put(w.tx, origin, &known)?;
    Ok(Ok(Answered::Signed(format!("{signature}\n"))))
}

/// The note with the signatures of the log's own keys alone: those of strangers are not kept.
fn own_signatures(note: &Note, origin: &Did, document: &oap_identity::DidDocument) -> Note {
    let is_own = |signature: &&NoteSignature| {
        let id =
            |key: &oap_identity::VerificationKey| NoteKey::Text.id(origin.as_str(), key.public().as_bytes());
        signature.name == origin.as_str() && document.keys().iter().any(|key| id(key) == signature.id)
    };
    let mut own = note.signatures().iter().filter(is_own).cloned();
    let first = own.next();
    let kept = first.map(|first| Note::new(note.text().to_owned(), first));
    kept.map_or_else(|| note.clone(), |kept| own.fold(kept, Note::with))
}

//! The own log is submitted to its witnesses, and what they signed is published (protocol section 16.3).

use super::pinned;
use super::showing::node;
use crate::error::Error;
use crate::service::Witnesses;
use crate::state::commits::Writing;
use crate::state::schema::{CHECKPOINT, LOG, PEERS, WITNESSES};
use crate::state::witnessing::{StoredLog, StoredWitness, Trouble};
use oap_identity::outgoing::{Allowance, StatusCode};
use oap_identity::{Did, DidDocument, Timestamp};
use oap_memory::log::checkpoint::cosigned_at;
use oap_memory::log::merkle;
use oap_memory::log::note::{MAX_NOTE, Note, NoteSignature};
use oap_memory::log::submission::Submission;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a witness may take for one submission.
pub const SUBMIT_TIME: Duration = Duration::from_secs(10);
/// What it may answer.
const ANSWER: Allowance = Allowance { bytes: MAX_NOTE, time: SUBMIT_TIME };
/// What it is sent.
const MEDIA_TYPE: &str = "text/plain; charset=utf-8";

impl Witnesses<'_> {
    /// Makes the leaf of this minute, where there is none; and where there was none, has it signed and publishes it.
    ///
    /// # Errors
    /// As [`Witnesses::tick`].
    pub async fn round(self) -> Result<bool, Error> {
        let grown = self.tick().await?;
        if grown {
            self.submit().await?;
        }
        Ok(grown)
    }

    /// Has the log signed by all its witnesses at once, and publishes it with the signatures that came.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn submit(self) -> Result<(), Error> {
        let Some(log) = LOG.get(&self.0.store)?.filter(|log| log.size > 0) else { return Ok(()) };
        let note = log.checkpoint(&self.0.principal).sign(self.0.keys().current());
        let mut asked = JoinSet::new();
        for row in WITNESSES.scan(&self.0.store) {
            let (did, witness) = row?;
            let (gateway, log, note) = (self.0.clone(), log.clone(), note.clone());
            asked.spawn(async move {
                let signed = Witnesses(&gateway).submit_to(&did, &witness, &log, &note).await;
                (did, signed)
            });
        }
        let mut signed = Vec::new();
        while let Some(done) = asked.join_next().await {
            let Ok((did, came)) = done else { return Err(Error::Panicked) };
            signed.push((did, came?));
        }
        let publish = move |w: &mut Writing<'_, '_>| {
            let mut note = note;
            for (did, came) in signed {
                // It may have been removed meanwhile.
                let Some(mut witness) = WITNESSES.get(w.tx, &did)? else { continue };
                match came {
                    Ok(line) => {
                        (witness.size, witness.signed_at, witness.trouble) = (log.size, Some(w.now), None);
                        note = note.with(line);
                    }
                    Err(why) => {
                        tracing::info!(witness = %did, why = why.as_str(), "a witness did not sign");
                        witness.trouble = Some((w.now, why));
                    }
                }
                WITNESSES.put(w.tx, &did, &witness)?;
            }
            Ok(CHECKPOINT.put(w.tx, &note.to_string().into_bytes())?)
        };
        self.0.commit_own(publish).await
    }

    /// Has one witness sign: its line, which holds; or why there is none. The size that it signed last may be another than is known here, for
    /// its answer may have been lost; it says so, once.
    async fn submit_to(
        self,
        did: &Did,
        witness: &StoredWitness,
        log: &StoredLog,
        note: &Note,
    ) -> Result<Result<NoteSignature, Trouble>, Error> {
        let Some(peer) = PEERS.get(&self.0.store, did)? else { return Ok(Err(Trouble::NoPlace)) };
        let Some(prefix) = peer.pin.endpoints.get("witness") else { return Ok(Err(Trouble::NoPlace)) };
        let (url, document) = (format!("{prefix}/add-checkpoint"), pinned(&peer));
        let mut old = witness.size;
        for _ in 0..2 {
            if old > log.size {
                return Ok(Err(Trouble::OtherHistory));
            }
            let proof = merkle::consistency(old, log.size, |place| node(self.0, place))?;
            let body = Submission { old, proof, note: note.clone() }.to_string().into_bytes();
            let sent = self.0.resolver.post(&url, MEDIA_TYPE, body, ANSWER).await;
            let Ok(answer) = sent else { return Ok(Err(Trouble::Unreachable)) };
            match answer.status {
                StatusCode::OK => return Ok(line(&answer.body, note, &document, self.0.clock.now())),
                StatusCode::CONFLICT => match size(&answer.body) {
                    Some(size) => old = size,
                    None => return Ok(Err(Trouble::Unreachable)),
                },
                StatusCode::NOT_FOUND => return Ok(Err(Trouble::NotForUs)),
                StatusCode::UNPROCESSABLE_ENTITY => return Ok(Err(Trouble::OtherHistory)),
                StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => return Ok(Err(Trouble::Refused)),
                _ => return Ok(Err(Trouble::Unreachable)),
            }
        }
        Ok(Err(Trouble::Unreachable))
    }
}

/// The first line of a witness that holds, by its pinned keys. One is enough, and who has many keys would make the note longer than anybody
/// reads it.
fn line(body: &[u8], note: &Note, witness: &DidDocument, now: Timestamp) -> Result<NoteSignature, Trouble> {
    let text = std::str::from_utf8(body).map_err(|_| Trouble::Disbelieved)?;
    let mut lines = text.lines().filter_map(|line| NoteSignature::parse(line).ok());
    let holds = |line: &NoteSignature| cosigned_at(&note.clone().with(line.clone()), witness, now).is_some();
    lines.find(holds).ok_or(Trouble::Disbelieved)
}

/// The size that a witness says in a 409.
fn size(body: &[u8]) -> Option<u64> {
    std::str::from_utf8(body).ok()?.strip_suffix('\n')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::{Hash, Signer, VerificationKey};
    use oap_memory::log::checkpoint::{Checkpoint, cosign};

    /// The attack: a witness with very many keys signs with all of them, so that nobody can read the checkpoint and the signatures of the
    /// others are worth nothing.
    #[test]
    fn a_witness_has_one_line() {
        let now = Timestamp::from_seconds(1_777_636_800);
        let key = |did: &str, number: u8| {
            Signer::from_seed(format!("{did}#key-{number}").parse().unwrap(), &[number; 32]).unwrap()
        };
        let keys: Vec<Signer> = (1..=100).map(|number| key("did:web:witness.example", number)).collect();
        let known = keys.iter().map(|key| VerificationKey::new(key.kid().clone(), *key.public())).collect();
        let witness = DidDocument::new(keys[0].did().clone(), known);
        let log = key("did:web:log.example", 200);
        let note = Checkpoint { origin: log.did().to_string(), size: 1, root: Hash::of(b"root") }.sign(&log);
        let stranger = cosign(&note, &log, now).to_string();
        let all: Vec<String> = keys.iter().map(|key| cosign(&note, key, now).to_string()).collect();
        let body = format!("{stranger}\n{}\n", all.join("\n"));
        let first = line(body.as_bytes(), &note, &witness, now).unwrap();
        assert_eq!(first.to_string(), all[0]);
        let published = note.clone().with(first).to_string();
        assert!(Note::parse(published.as_bytes()).is_ok());
        assert_eq!(line(stranger.as_bytes(), &note, &witness, now), Err(Trouble::Disbelieved));
    }
}

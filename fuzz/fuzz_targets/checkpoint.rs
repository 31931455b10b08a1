//! Signed notes, checkpoints, submissions to a witness, and the way from a receipt to a checkpoint.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::{DidDocument, Hash, ReceiptId, Signer, Timestamp, VerificationKey, json};
use oap_memory::log::checkpoint::{Checkpoint, cosign, cosigned_at};
use oap_memory::log::inclusion::{Inclusion, Known};
use oap_memory::log::merkle;
use oap_memory::log::note::Note;
use oap_memory::log::submission::Submission;

fuzz_target!(|data: &[u8]| {
    let now = Timestamp::from_seconds(1_777_636_800);
    let Ok(kid) = "did:web:user.example#key-1".parse() else { return };
    let Ok(signer) = Signer::from_seed(kid, &[1; 32]) else { return };
    let key = VerificationKey::new(signer.kid().clone(), *signer.public());
    let document = DidDocument::new(signer.did().clone(), vec![key]);
    if let Ok(note) = Note::parse(data) {
        // What is read is written as it was.
        assert_eq!(note.to_string().as_bytes(), data);
        let _ = Checkpoint::verify(&note, &document, now);
        let _ = cosigned_at(&note, &document, now);
        if let Ok(checkpoint) = Checkpoint::read(note.text()) {
            assert_eq!(Checkpoint::read(&checkpoint.text()), Ok(checkpoint));
            let signed = note.clone().with(cosign(&note, &signer, now));
            assert_eq!(cosigned_at(&signed, &document, now), Some(now));
        }
    }
    if let Ok(submission) = Submission::parse(data) {
        assert_eq!(submission.to_string().as_bytes(), data);
        if let Ok(to) = Checkpoint::read(submission.note.text()) {
            let before = Hash::of(b"before");
            let _ = merkle::check_consistency(submission.old, &before, to.size, &to.root, &submission.proof);
        }
    }
    if let Ok(inclusion) = json::parse_as::<Inclusion>(data) {
        let receipt = Known {
            receipt_id: ReceiptId::from_bytes([1; 16]),
            hash: Hash::of(b"receipt"),
            previous: Hash::of(b"head"),
            at: now,
        };
        let _ = inclusion.check(&receipt, &document, now);
    }
});

//! What a witness is sent: `add-checkpoint` of C2SP tlog-witness.

use super::checkpoint::{decimal, node};
use super::merkle::MAX_PATH;
use super::note::{MAX_NOTE, Note, NoteError};
use base64::{Engine, engine::general_purpose::STANDARD};
use oap_identity::Hash;
use std::fmt;

/// Longest submission, in bytes: the note, and before it the size and the hashes.
pub const MAX_SUBMISSION: usize = MAX_NOTE + (4 << 10);

/// Why this is no submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmissionError {
    /// Beyond [`MAX_SUBMISSION`].
    #[error("the submission is longer than {MAX_SUBMISSION} bytes")]
    TooLong,
    /// The first line is not `old` and a size.
    #[error("the first line must be \"old\", a space and a size")]
    Old,
    /// More than [`MAX_PATH`] hashes, or a line that is none.
    #[error("the lines up to the empty one must be at most {MAX_PATH} hashes in base64")]
    Proof,
    /// What follows is no note.
    #[error("the checkpoint: {0}")]
    Note(#[from] NoteError),
}

/// A checkpoint, and that it goes on from an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The size of the earlier one.
    pub old: u64,
    /// The consistency proof.
    pub proof: Vec<Hash>,
    /// The checkpoint, as a signed note.
    pub note: Note,
}

impl Submission {
    /// Reads one. Nothing of it is verified.
    ///
    /// # Errors
    /// [`SubmissionError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, SubmissionError> {
        if bytes.len() > MAX_SUBMISSION {
            return Err(SubmissionError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| NoteError::Text)?;
        let (first, mut rest) = text.split_once('\n').ok_or(SubmissionError::Old)?;
        let old = first.strip_prefix("old ").and_then(decimal).ok_or(SubmissionError::Old)?;
        let mut proof = Vec::new();
        loop {
            let (line, after) = rest.split_once('\n').ok_or(SubmissionError::Proof)?;
            rest = after;
            if line.is_empty() {
                break;
            }
            if proof.len() == MAX_PATH {
                return Err(SubmissionError::Proof);
            }
            proof.push(node(line).ok_or(SubmissionError::Proof)?);
        }
        Ok(Self { old, proof, note: Note::parse(rest.as_bytes())? })
    }
}

impl fmt::Display for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old)?;
        for hash in &self.proof {
            writeln!(f, "{}", STANDARD.encode(hash.as_bytes()))?;
        }
        write!(f, "\n{}", self.note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of C2SP tlog-witness, `add-checkpoint`.
    const EXAMPLE: &str = "old 20852014
PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=
jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=
5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=
/6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=

example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

\u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
\u{2014} example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V6267UEjw6QUXTS5Rovnzv++qbSzm9Q=
";

    #[test]
    fn the_published_example() {
        let submission = Submission::parse(EXAMPLE.as_bytes()).unwrap();
        assert_eq!((submission.old, submission.proof.len()), (20_852_014, 4));
        assert_eq!(submission.note.signatures().len(), 2);
        assert_eq!(submission.to_string(), EXAMPLE);
        let first = Submission { old: 0, proof: Vec::new(), ..submission };
        assert_eq!(Submission::parse(first.to_string().as_bytes()), Ok(first));
    }

    #[test]
    fn what_is_no_submission() {
        let hash = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n";
        let many = EXAMPLE.replacen(hash, &hash.repeat(60), 1);
        for (text, expected) in [
            (String::new(), SubmissionError::Old),
            ("old 1".to_owned(), SubmissionError::Old),
            (EXAMPLE.replacen("old 20852014", "old 020852014", 1), SubmissionError::Old),
            (EXAMPLE.replacen("old", "new", 1), SubmissionError::Old),
            (EXAMPLE.replacen("PlRN", "", 1), SubmissionError::Proof),
            (many.replacen(hash, &hash.repeat(2), 1), SubmissionError::Proof),
            ("old 0\n".to_owned(), SubmissionError::Proof),
            ("old 0\n\n".to_owned(), SubmissionError::Note(NoteError::Unsigned)),
            ("x".repeat(MAX_SUBMISSION + 1), SubmissionError::TooLong),
        ] {
            assert_eq!(Submission::parse(text.as_bytes()), Err(expected), "{text:?}");
        }
        assert!(Submission::parse(many.as_bytes()).is_ok());
    }
}

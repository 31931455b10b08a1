//! Why a witness does not sign a checkpoint.

use oap_memory::log::checkpoint::CheckpointError;
use oap_memory::log::merkle::ProofError;
use oap_memory::log::submission::SubmissionError;

/// Why a checkpoint is not signed; a message is what its sender reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says itself what its message says")]
pub enum WitnessError {
    #[error(transparent)]
    Submission(#[from] SubmissionError),
    #[error("the checkpoint: {0}")]
    Checkpoint(#[from] CheckpointError),
    #[error("old: must not be larger than the size of the checkpoint")]
    Old,
    #[error("the checkpoint does not go on from the one that was signed last: {0}")]
    Inconsistent(ProofError),
    #[error(
        "this witness was restored or locked down since it signed last, and does not sign until its owner says so again"
    )]
    Forgetful,
}

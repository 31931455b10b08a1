//! Refusals one at a time: every condition of the closed lists in `refusals`.

use super::super::refusals::{
    acknowledgements, children, drafts, grant_proofs, log, of_documents, of_queries, of_tokens,
    proofs_of_possession,
};
use super::super::{Probe, Severity};
use super::{owned, probe};

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("refused-tokens", &["ME-04"], Critical, probe!(of_tokens)),
        owned("refused-proofs", &["ME-04"], Critical, probe!(proofs_of_possession)),
        owned("refused-grant-proofs", &["ME-08"], Critical, probe!(grant_proofs)),
        owned("refused-grants", &["ME-08"], Critical, probe!(of_documents)),
        owned("refused-drafts", &["ME-08", "ME-10"], Major, probe!(drafts)),
        owned("refused-children", &["ME-08"], Critical, probe!(children)),
        owned("refused-queries", &["ME-09", "PM-4"], Major, probe!(of_queries)),
        owned("refused-countersignatures", &["RC-2"], Major, probe!(acknowledgements)),
        owned("refused-log-questions", &["RC-2"], Major, probe!(log)),
    ]
}

//! Refusals one at a time: every condition of the closed lists in `refusals`.

use super::super::refusals::{
    acknowledgements, bearer_tokens, children, drafts, envelopes, grant_proofs, log, of_actions,
    of_documents, of_grant_actions, of_queries, of_tokens, proofs_of_possession,
};
use super::super::{Probe, Severity};
use super::{owned, probe};

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("refused-tokens", &["ME-04", "CO-13"], Critical, probe!(of_tokens)),
        owned("refused-bearer-tokens", &["ME-04", "CO-13"], Critical, probe!(bearer_tokens)),
        owned("refused-proofs", &["ME-04", "CO-34"], Critical, probe!(proofs_of_possession)),
        owned("refused-grant-proofs", &["ME-08"], Critical, probe!(grant_proofs)),
        owned("refused-grants", &["ME-08", "SP-05"], Critical, probe!(of_documents)),
        owned("refused-drafts", &["ME-08", "ME-10", "DE-03"], Major, probe!(drafts)),
        owned("refused-children", &["ME-08", "DE-01", "DE-03", "DE-04"], Critical, probe!(children)),
        owned(
            "refused-grant-actions",
            &["ME-08", "SP-05", "DE-01", "DE-04"],
            Critical,
            probe!(of_grant_actions),
        ),
        owned("refused-queries", &["ME-09", "PM-4", "CO-38", "SP-03", "PJ-06"], Major, probe!(of_queries)),
        owned("refused-actions", &["ME-09", "PM-4"], Major, probe!(of_actions)),
        owned("refused-envelopes", &["ME-04", "PM-4", "CO-10"], Critical, probe!(envelopes)),
        owned("refused-countersignatures", &["RC-2"], Major, probe!(acknowledgements)),
        owned("refused-log-questions", &["RC-2"], Major, probe!(log)),
    ]
}

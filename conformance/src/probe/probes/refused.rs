//! Refusals one at a time: every condition of the closed lists in `refusals`.

use super::super::refusals::{
    acknowledgements, bearer_tokens, children, deletion, drafts, ending, envelopes, grant_proofs, log,
    of_actions, of_devices, of_documents, of_grant_actions, of_mcp, of_queries, of_subscriptions, of_tokens,
    of_tools, of_witnessed, proofs_of_possession, receipts, under_grants,
};
use super::super::{Probe, Severity};
use super::{owned, probe, waiting};

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("refused-tokens", &["ME-04", "CO-13", "DE-05"], Critical, probe!(of_tokens)),
        owned("refused-bearer-tokens", &["ME-04", "CO-13", "DE-05"], Critical, probe!(bearer_tokens)),
        owned("refused-proofs", &["ME-04", "CO-34"], Critical, probe!(proofs_of_possession)),
        owned("subscription-credentials", &["ME-04", "CO-13", "CO-34"], Critical, probe!(of_subscriptions)),
        owned("witnessed-credentials", &["ME-04", "CO-13", "CO-34"], Critical, probe!(of_witnessed)),
        owned("device-credentials", &["ME-04", "CO-13", "CO-34"], Critical, probe!(of_devices)),
        owned("mcp-credentials", &["ME-04", "CO-13", "CO-34"], Critical, probe!(of_mcp)),
        owned("mcp-answers", &["ME-09", "ME-14", "CO-22"], Critical, probe!(of_tools)),
        owned("grants-not-in-force", &["ME-08", "SP-03", "SP-04", "PJ-06"], Critical, probe!(under_grants)),
        waiting(owned("grant-expired", &["ME-08"], Critical, probe!(ending))),
        owned("refused-deletions", &["CO-17", "CO-13"], Critical, probe!(deletion)),
        owned("receipts-verified", &["RC-1"], Major, probe!(receipts)),
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
        owned("refused-envelopes", &["ME-04", "PM-4", "CO-10", "CO-11"], Critical, probe!(envelopes)),
        owned("refused-countersignatures", &["RC-2"], Major, probe!(acknowledgements)),
        owned("refused-log-questions", &["RC-2"], Major, probe!(log)),
    ]
}

//! What was found out about acknowledgements.

use super::{Of, Report, listed};
use oap_federation::ack::Chain;
use oap_identity::{Did, Hash, ReceiptId};
use oap_memory::receipt::VerifiedReceipt;
use oap_memory::unchecked::Unchecked;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct AcksReport {
    receipt_id: ReceiptId,
    hash: Hash,
    granter: Did,
    grantee: Did,
    /// How many signatures stand over the receipt, each over the one before.
    acknowledgements: usize,
    /// The order of mutual knowledge that they prove to either.
    order_to_granter: usize,
    order_to_grantee: usize,
    /// What is not of the proof.
    pub(super) outside: Vec<String>,
}

/// A receipt and what was signed over it, and the names of what stands beside them in the document.
pub(in crate::cli) fn acks(verified: &VerifiedReceipt, chain: &Chain, outside: Vec<String>) -> Report {
    let (granter, grantee) = (&chain.granter, &chain.grantee);
    let report = AcksReport {
        receipt_id: chain.receipt,
        hash: chain.receipt_hash,
        granter: granter.clone(),
        grantee: grantee.clone(),
        acknowledgements: chain.links().len(),
        order_to_granter: chain.order(granter),
        order_to_grantee: chain.order(grantee),
        outside,
    };
    let mut says = super::receipt(verified).says;
    says.push(match report.acknowledgements {
        0 => format!("{grantee} signed nothing of it."),
        1 => format!("{grantee} signed that it has it."),
        many => {
            format!("{grantee} and {granter} signed in turn, {many} times, each over what was signed before.")
        }
    });
    says.push(format!(
        "This proves mutual knowledge of order {} to {granter} and of order {} to {grantee}, and no common knowledge.",
        report.order_to_granter, report.order_to_grantee
    ));
    // That the agent has not signed under the receipt as it came along says nothing where its signature is among the others.
    let is_open = |what: &&Unchecked| report.acknowledgements == 0 || !matches!(what, Unchecked::Agents(_));
    let unchecked = listed(verified.unchecked.iter().filter(is_open));
    Report::new("acknowledgements", says, unchecked, Of::Acks(Box::new(report)))
}

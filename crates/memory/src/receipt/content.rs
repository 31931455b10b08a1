//! What a receipt says, judged by its action.

use super::{Action, Covers, Outcome, Receipt, ReceiptError, read_tag};
use crate::unchecked::Unchecked;

/// Checks type, decisions, outcome, tags and hashes against the action.
///
/// # Errors
/// [`ReceiptError`].
pub(super) fn check(receipt: &Receipt, index: usize) -> Result<Option<Unchecked>, ReceiptError> {
    let name = receipt.action_id.as_deref().unwrap_or_default();
    // A later version of the protocol may know it.
    let Ok(action) = name.parse::<Action>() else {
        return Ok(Some(Unchecked::Action(receipt.receipt_id)));
    };
    if receipt.kind != action.kind() {
        return Err(ReceiptError::Type(index, action, action.kind()));
    }
    if receipt.policy_decisions.is_empty() {
        return Err(ReceiptError::Decision(index));
    }
    let outcomes = || receipt.policy_decisions.iter().map(|decision| decision.outcome);
    let is_refusal = action.can_be_refused() && outcomes().all(|outcome| outcome == Outcome::Block);
    if !is_refusal && outcomes().any(|outcome| outcome != Outcome::Allow) {
        return Err(ReceiptError::Outcome(index, action));
    }
    check_covered(receipt, action, is_refusal, index)?;
    Ok(None)
}

fn check_covered(
    receipt: &Receipt,
    action: Action,
    is_refusal: bool,
    index: usize,
) -> Result<(), ReceiptError> {
    let tags = &receipt.provenance_tags_out;
    if tags.iter().any(|tag| read_tag(tag).is_none()) {
        return Err(ReceiptError::Tag(index));
    }
    let is_move = action == Action::Migrate && tags.is_empty();
    if is_move && receipt.input_hash.is_none() {
        return Err(ReceiptError::InputHash(index));
    }
    let covers = if is_refusal || is_move { Covers::Nothing } else { action.covers() };
    let fits = match covers {
        Covers::Version => tags.len() == 1,
        Covers::Disclosure => true,
        Covers::Document | Covers::Nothing => tags.is_empty(),
    };
    if !fits {
        return Err(ReceiptError::Tags(index, action));
    }
    let fits = match covers {
        Covers::Version => {
            let version = tags.first().and_then(|tag| read_tag(tag));
            version.is_some_and(|(_, commitment)| receipt.output_hash == Some(commitment))
        }
        Covers::Disclosure | Covers::Document => receipt.output_hash.is_some(),
        Covers::Nothing => receipt.output_hash.is_none(),
    };
    if !fits {
        return Err(ReceiptError::OutputHash(index, action));
    }
    Ok(())
}

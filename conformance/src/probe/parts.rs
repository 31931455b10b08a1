//! Which requirement each rule of the reference model is a part of.

use super::refusals::{of_granting, of_refusal};
use crate::model::Rule;
use crate::model::rule::{Asked, Beside, Epistemic, Exchanged, Gate, GrantState, Permitted, Reach, Standing};

/// The requirement ([`super::requirements::ALL`]) that a rule is a part of: the closest of those that a probe checks.
pub(super) const fn of_rule(rule: &Rule) -> &'static str {
    match rule {
        Rule::Filter(..) | Rule::FilterBound(..) | Rule::FilterPair(..) | Rule::Paged(_) => "ME-09",
        Rule::Reach(Reach::OtherScope) => "PS-03",
        Rule::Reach(Reach::AboveRefuses) | Rule::Permitted(Permitted::ChildWithin) => "DE-04",
        Rule::Reach(_) => "ME-09",
        Rule::Gate(Gate::Bridge | Gate::NoBridge) => "PS-03",
        Rule::Gate(Gate::BridgeEnded | Gate::BridgeOfOthers) => "PS-04",
        Rule::Gate(Gate::Privileged) => "CO-20",
        Rule::Gate(Gate::Cleared | Gate::NotCleared) => "CO-19",
        Rule::Gate(_) => "CO-18",
        Rule::Standing(Standing::Erased) => "ME-06",
        Rule::Standing(Standing::DerivedErased) => "ST-07",
        Rule::Standing(_) | Rule::Corrected(_) | Rule::Written(_) => "IT-1",
        Rule::Cell(_) | Rule::Condition(_) | Rule::SpanPlace(..) => "PR-1",
        Rule::Epistemic(Epistemic::Above | Epistemic::At | Epistemic::Below) => "ME-11",
        Rule::Epistemic(_) => "ME-13",
        Rule::Asked(asked) => of_asked(*asked),
        Rule::Refusal(refusal) => of_refusal(*refusal),
        Rule::Granting(granting) => of_granting(*granting),
        Rule::Permitted(Permitted::MaxItemsAt | Permitted::DurationAt) => "ME-10",
        Rule::Permitted(Permitted::Issued) => "ME-08",
        Rule::Beside(beside) => of_beside(*beside),
        Rule::Keys(_) => "ID-1",
        Rule::Exchanged(Exchanged::First | Exchanged::Delegated) => "ME-08",
        Rule::Exchanged(_) => "ME-04",
        Rule::GrantState(GrantState::Revoked | GrantState::AboveRevoked) => "SP-04",
        Rule::GrantState(_) => "ME-08",
        Rule::Vectors(_) => "ME-05",
    }
}

const fn of_asked(asked: Asked) -> &'static str {
    match asked {
        Asked::WordHidden | Asked::LabelsAnyHidden | Asked::MinConfidenceHidden => "ME-13",
        Asked::IntegrityFull | Asked::IntegrityChain => "ME-02",
        Asked::PurposeStated | Asked::PurposeAny => "SP-03",
        Asked::EmbeddingHidden | Asked::EmbeddingShown => "ME-05",
        // All others are of what is found.
        _ => "ME-09",
    }
}

const fn of_beside(beside: Beside) -> &'static str {
    match beside {
        Beside::ProjectionApplied | Beside::RedactedCount => "PJ-03",
        Beside::ReceiptDecision | Beside::ReceiptProfileHash => "PJ-04",
        Beside::ReceiptDelegation => "DE-02",
        Beside::ReceiptPurpose => "SP-02",
        Beside::ReceiptTags | Beside::ReceiptInput | Beside::ReceiptOutput => "RC-1",
        Beside::ChainEvents => "ME-03",
        Beside::AuditOwner | Beside::AuditGrantee | Beside::AuditNobody => "RC-2",
        Beside::Export => "EX-1",
        Beside::AccountSpent => "PJ-06",
    }
}

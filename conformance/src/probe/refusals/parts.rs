//! Which requirement each condition is a part of.

use super::rules::{ChildRule, Condition, DocumentRule, ProofRule, TokenRule};
use crate::model::rule::{Granting as G, Refusal as R};

impl Condition {
    /// The requirement ([`crate::probe::requirements::ALL`]) that it is a part of: the closest of those that its probes name.
    #[must_use]
    pub const fn requirement(self) -> &'static str {
        match self {
            Self::Token(TokenRule::Lives) | Self::Bearer(TokenRule::Lives) | Self::OfBearer(_) => "ME-04",
            Self::Token(_) | Self::Bearer(_) | Self::Owner(_) => "CO-13",
            Self::Proof(ProofRule::Time | ProofRule::Once) => "CO-34",
            Self::Proof(_) => "ME-04",
            Self::Envelope(_) => "CO-10",
            Self::GrantProof(_) => "ME-08",
            Self::Document(DocumentRule::Signature | DocumentRule::Members) => "SP-05",
            Self::Document(_) => "ME-08",
            Self::Child(ChildRule::Signature) => "DE-01",
            Self::Child(_) => "DE-04",
            Self::Granting(rule) => of_granting(rule),
            Self::Refusal(refusal) => of_refusal(refusal),
            Self::AckLetter(_) => "FE-14",
            Self::Ack(_) | Self::Log(_) => "RC-2",
            Self::Verify(_) => "RC-1",
        }
    }
}

pub(in crate::probe) const fn of_granting(rule: G) -> &'static str {
    match rule {
        G::MaxItemsAbove | G::DurationAbove => "ME-10",
        G::Depth | G::ChildDepth => "DE-03",
        G::MaxItemsZero
        | G::Ended
        | G::UnknownProfile
        | G::ProfileLevel
        | G::Irrevocable
        | G::NoOperations
        | G::PurposeEmpty
        | G::PurposeTooLong
        | G::PurposeCodes
        | G::FilterList
        | G::FilterTimes
        | G::FilterScopes
        | G::Budget
        | G::UnknownMember
        | G::UnknownFilterMember
        | G::Form => "ME-08",
        // All others are of a child within its parent.
        _ => "DE-04",
    }
}

pub(in crate::probe) const fn of_refusal(refusal: R) -> &'static str {
    match refusal {
        R::Revoked | R::AboveRevoked => "SP-04",
        R::UnknownGrant
        | R::Draft
        | R::Expired
        | R::AboveEnded
        | R::OperationQuery
        | R::OperationExport
        | R::Embeddings
        | R::Purpose => "SP-03",
        R::BudgetQueries | R::BudgetEpsilon | R::BudgetAbove => "PJ-06",
        R::CursorForeign | R::CursorOtherQuery => "ME-09",
        // All others are of what a query may say.
        _ => "CO-38",
    }
}

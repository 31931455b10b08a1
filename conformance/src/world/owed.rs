//! What an owner may come to owe in the middle of a history (protocol section 7, the two gates): the context that then stands.

use super::gated::{FIRST_GRANTEE, nda_of, non_compete_of, wall};
use serde_json::{Value, json};

/// What the context of a scope says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owed {
    Nothing,
    Embargo,
    Nda,
    NonCompete,
    ProfessionalCode,
    InsideKnowledge,
    Wall,
    TradeSecret,
    Privilege,
    Health,
    Clearance,
}

impl Owed {
    pub(super) const ALL: [Self; 11] = [
        Self::Nothing,
        Self::Embargo,
        Self::Nda,
        Self::NonCompete,
        Self::ProfessionalCode,
        Self::InsideKnowledge,
        Self::Wall,
        Self::TradeSecret,
        Self::Privilege,
        Self::Health,
        Self::Clearance,
    ];

    /// The context of a scope: a document of `oap-ccc.schema.json`. What covers some items covers those that `label` names; whom it is
    /// about is [`FIRST_GRANTEE`].
    pub(super) fn context(self, scope: &str, label: &str) -> Value {
        let mut context = match self {
            Self::Nothing => json!({}),
            Self::Embargo => json!({"embargo_list": [FIRST_GRANTEE]}),
            Self::Nda => nda_of(label),
            Self::NonCompete => non_compete_of(label),
            Self::ProfessionalCode => json!({"professional_codes": ["bar:de"]}),
            Self::InsideKnowledge => json!({"insider_lists": [{"instrument": label}]}),
            Self::Wall => wall([scope, FIRST_GRANTEE]),
            Self::TradeSecret => json!({"regulatory_classification": "trade_secret"}),
            Self::Privilege => json!({"regulatory_classification": "attorney_client_privileged"}),
            Self::Health => json!({"regulatory_classification": "medical_confidentiality"}),
            Self::Clearance => json!({"security_clearance": [label]}),
        };
        (context["ccc_version"], context["scope_id"]) = (json!("1.0"), json!(scope));
        context
    }
}

//! Decisions, as they are stored, and the Decision Records that are made of them (OAP-CORE 18).

use oap_exchange::gate::{Report, Rule};
use oap_grants::Grant;
use oap_identity::{DecisionId, Timestamp};
use oap_memory::receipt::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What was decided, as it is stored: the Decision Record is made of it when it is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Decided {
    at: Timestamp,
    rules: Vec<(String, u32)>,
    outcome: Outcome,
    passed: u32,
    withheld: u32,
    grantee: String,
}

impl Decided {
    /// What the gates decided of a grant's items.
    #[must_use]
    pub fn of(report: &Report, at: Timestamp, grant: &Grant) -> Self {
        let Report { passed, withheld, rules } = report;
        Self {
            at,
            rules: rules.iter().map(|(rule, count)| (rule.as_str().to_owned(), *count)).collect(),
            outcome: report.outcome(),
            passed: *passed,
            withheld: *withheld,
            grantee: grant.grantee.to_string(),
        }
    }

    /// What was decided of a request that was refused as a whole.
    #[must_use]
    pub fn refused(rule: &str, grant: &Grant, at: Timestamp) -> Self {
        let rules = vec![(rule.to_owned(), 0)];
        let grantee = grant.grantee.to_string();
        Self { at, rules, outcome: Outcome::Block, passed: 0, withheld: 0, grantee }
    }

    /// The Decision Record (`oap-decision-record.schema.json`). Its outcome is the strictest that any item asked for;
    /// the receipt's is that of the answer, which holds only what passed.
    #[must_use]
    pub fn record(&self, id: DecisionId) -> Value {
        let fired = |rules: &[Rule]| {
            !self.rules.iter().any(|(name, _)| rules.iter().any(|rule| rule.as_str() == name))
        };
        let counted = self.rules.iter().map(|(rule, count)| match count {
            0 => rule.clone(),
            count => format!("{rule} ({count})"),
        });
        let why = counted.collect::<Vec<_>>().join(", ");
        let why = if why.is_empty() { "no rule fired".to_owned() } else { why };
        let conditions: Vec<&str> = self
            .rules
            .iter()
            .filter_map(|(name, _)| {
                let rule: Rule = name.parse().ok()?;
                (rule.outcome() == Outcome::AllowWithConditions).then_some(rule.as_str())
            })
            .collect();
        let applied: Vec<&String> = self.rules.iter().map(|(rule, _)| rule).collect();
        json!({
            "decision_id": id, "evaluated_at": self.at, "layers_evaluated": ["L2", "L3", "L4"],
            "applied_rules": applied, "outcome": self.outcome, "conditions": conditions,
            "explanation": format!("{why}; {} passed, {} withheld", self.passed, self.withheld),
            "explanation_for_principal": format!(
                "Of what the grant selects, {} could see {} and was not shown {}: {why}.",
                self.grantee, count(self.passed), count(self.withheld),
            ),
            "ccc_evaluation": {
                "embargo_clear": fired(&[Rule::Embargo]),
                "nda_coverage": fired(&[Rule::Nda]),
                "non_compete_clear": fired(&[Rule::NonCompete, Rule::NonSolicit]),
                "chinese_wall_clear": fired(&[Rule::ChineseWall]),
                "professional_code_compliant": fired(&[
                    Rule::ProfessionalCode, Rule::FiduciaryDuty, Rule::Classification, Rule::Health,
                    Rule::Classified, Rule::Insider,
                ]),
                "sanctions_clear": fired(&[Rule::Sanctions, Rule::Unscreened]),
                "export_classification_compatible": fired(&[Rule::ExportControl]),
            },
        })
    }
}

fn count(items: u32) -> String {
    match items {
        1 => "1 item".to_owned(),
        n => format!("{n} items"),
    }
}

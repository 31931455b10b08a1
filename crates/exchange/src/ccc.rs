//! The Confidentiality and Compliance Context of a scope (OAP-CORE 18.2, `oap-ccc.schema.json`): what its owner
//! owes to others and to the law.

use oap_identity::json::{self, JsonError};
use oap_identity::{Hash, ScopeId, Timestamp};
use oap_memory::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

closed_enum! {
    /// Whom an NDA binds.
    NdaType {
        /// Both sides.
        Mutual = "mutual",
        /// The owner, who received something.
        OneWayInbound = "one_way_inbound",
        /// The counterparty: it does not restrict the owner.
        OneWayOutbound = "one_way_outbound",
    }
}

closed_enum! {
    /// The privilege or secrecy under which a scope stands.
    #[allow(missing_docs, reason = "the names are those of OAP-CORE 18.2")]
    Classification {
        None = "none",
        AttorneyClientPrivileged = "attorney_client_privileged",
        MedicalConfidentiality = "medical_confidentiality",
        TaxAdvisorConfidentiality = "tax_advisor_confidentiality",
        AuditorConfidentiality = "auditor_confidentiality",
        BankingSecrecy = "banking_secrecy",
        JournalistSourceProtection = "journalist_source_protection",
        ConfessionalSeal = "confessional_seal",
        TherapeuticPrivilege = "therapeutic_privilege",
        DiplomaticClassified = "diplomatic_classified",
        TradeSecret = "trade_secret",
    }
}

closed_enum! {
    /// The lists that a grantee is screened against.
    SanctionsList {
        /// United States.
        Ofac = "ofac",
        /// European Union.
        Eu = "eu",
        /// United Nations.
        Un = "un",
        /// United Kingdom.
        UkOfsi = "uk_ofsi",
    }
}

/// A calendar day, `YYYY-MM-DD`, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Day(Timestamp);

impl Day {
    /// Its first moment.
    #[must_use]
    pub const fn begins(self) -> Timestamp {
        self.0
    }

    /// The moment after its last.
    #[must_use]
    pub fn ends(self) -> Timestamp {
        self.0.plus(Duration::from_secs(86_400))
    }
}

/// What is written in another form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// A day.
    #[error("a day is written YYYY-MM-DD")]
    Day,
    /// A country.
    #[error("a jurisdiction is two capital letters")]
    Country,
}

impl TryFrom<String> for Day {
    type Error = FormError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let day = if text.len() == 10 { format!("{text}T00:00:00Z").parse() } else { text.parse() };
        day.ok().filter(|_| text.len() == 10).map(Self).ok_or(FormError::Day)
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.0.date()
    }
}

/// A non-disclosure agreement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Nda {
    pub id: String,
    /// With whom: they may have what it covers.
    pub counterparties: Vec<String>,
    /// Whom it binds.
    #[serde(rename = "type")]
    pub kind: NdaType,
    /// The labels and kinds that it covers; everything if absent.
    pub covered_categories: Option<Vec<String>>,
    /// Its first day.
    pub valid_from: Day,
    /// Its last day.
    pub valid_until: Day,
    /// Under whose law.
    #[serde(rename = "jurisdiction")]
    _jurisdiction: Country,
    #[serde(rename = "document_hash")]
    _document_hash: Hash,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
struct Country;

impl TryFrom<String> for Country {
    type Error = FormError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let two = text.len() == 2 && text.bytes().all(|c| c.is_ascii_uppercase());
        two.then_some(Self).ok_or(FormError::Country)
    }
}

/// A promise not to work for competitors of a former employer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NonCompete {
    /// To whom.
    pub ex_employer: String,
    /// Its last day.
    pub valid_until: Day,
    #[serde(rename = "scope")]
    _scope: String,
    /// The labels that it concerns; everything if absent.
    pub covered_industries: Option<Vec<String>>,
}

/// A promise not to solicit somebody's people.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NonSolicit {
    /// Whose people.
    pub subject_did: Option<String>,
    /// Its last day; for ever if absent.
    pub valid_until: Option<Day>,
}

/// A wall: nothing passes between any two of its sides, which are scopes or DIDs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ChineseWall {
    pub between: Vec<String>,
    #[serde(rename = "reason")]
    _reason: String,
}

/// Inside knowledge of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct InsiderList {
    /// Of whom.
    pub issuer: Option<String>,
    /// About what.
    pub instrument: Option<String>,
}

/// The context of one scope. [`Ccc::parse`] alone makes one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names are those of OAP-CORE 18.2")]
pub struct Ccc {
    #[serde(rename = "ccc_version")]
    version: String,
    /// Of which scope.
    pub scope_id: ScopeId,
    #[serde(default)]
    pub active_ndas: Vec<Nda>,
    #[serde(default)]
    pub non_competes: Vec<NonCompete>,
    #[serde(default)]
    pub non_solicits: Vec<NonSolicit>,
    /// DIDs that get nothing.
    #[serde(default)]
    pub embargo_list: Vec<String>,
    #[serde(default)]
    pub chinese_walls: Vec<ChineseWall>,
    /// Professional codes that restrict disclosure.
    #[serde(default)]
    pub professional_codes: Vec<String>,
    /// Fiduciary duties that restrict disclosure.
    #[serde(default)]
    pub fiduciary_duties: Vec<String>,
    /// The privilege or secrecy.
    #[serde(default)]
    pub regulatory_classification: Option<Classification>,
    #[serde(default)]
    pub insider_lists: Vec<InsiderList>,
    /// The lists to screen against.
    #[serde(default)]
    pub sanctions_screening: Vec<SanctionsList>,
    #[serde(default)]
    pub export_control_classification: Option<String>,
    /// What may come in from other scopes: the labels.
    #[serde(default)]
    pub security_clearance: Option<Vec<String>>,
}

/// Why a context was refused.
#[derive(Debug, thiserror::Error)]
pub enum CccError {
    /// Not a context of the schema.
    #[error("the confidentiality context is refused: {0}")]
    Malformed(#[from] JsonError),
    /// Another version.
    #[error("ccc_version: must be \"1.0\"")]
    Version,
    /// A wall with one side.
    #[error("chinese_walls: a wall stands between two sides at least")]
    Wall,
    /// A member that has a form which the schema does not give it.
    #[error("{0}: has another form in oap-ccc.schema.json")]
    Form(&'static str),
}

/// Members that may be absent and are never null: absent, some of them restrict nothing.
const NEVER_NULL: [&str; 2] = ["regulatory_classification", "security_clearance"];
/// The same of what is in lists.
const NEVER_NULL_IN: [(&str, &str); 6] = [
    ("active_ndas", "covered_categories"),
    ("non_competes", "covered_industries"),
    ("non_solicits", "subject_did"),
    ("non_solicits", "valid_until"),
    ("insider_lists", "issuer"),
    ("insider_lists", "instrument"),
];
/// Whose people somebody promised not to solicit.
const APPLIES_TO: [&str; 3] = ["customers", "employees", "both"];

/// The member that departs from the schema where [`Ccc`] does not read it, or reads it as absent.
fn departs(document: &Value) -> Option<&'static str> {
    let in_lists = |list: &str, member: &str, departs: fn(&Value) -> bool| {
        let all = document.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(|one| one.get(member)).any(departs)
    };
    let at_root = NEVER_NULL.into_iter().find(|name| document.get(name).is_some_and(Value::is_null));
    let within = NEVER_NULL_IN.into_iter().find(|(list, name)| in_lists(list, name, Value::is_null));
    let other = |value: &Value| !value.as_str().is_some_and(|text| APPLIES_TO.contains(&text));
    at_root
        .or(within.map(|(_, name)| name))
        .or_else(|| in_lists("non_solicits", "applies_to", other).then_some("applies_to"))
        .or_else(|| in_lists("insider_lists", "added_on", |value| !is_time(value)).then_some("added_on"))
}

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<Timestamp>().is_ok())
}

impl Ccc {
    /// Reads a context that its owner sets: one that keeps the whole schema, also where no gate asks.
    ///
    /// # Errors
    /// [`CccError`], naming what is wrong.
    pub fn written(document: Value) -> Result<Self, CccError> {
        match departs(&document) {
            Some(member) => Err(CccError::Form(member)),
            None => Self::parse(document),
        }
    }

    /// Reads a context of `oap-ccc.schema.json` that is stored.
    ///
    /// # Errors
    /// [`CccError`], naming what is wrong.
    pub fn parse(document: Value) -> Result<Self, CccError> {
        let ccc: Self = json::from_value(document)?;
        if ccc.version != "1.0" {
            return Err(CccError::Version);
        }
        if ccc.chinese_walls.iter().any(|wall| wall.between.len() < 2) {
            return Err(CccError::Wall);
        }
        Ok(ccc)
    }

    /// When what is in it begins and ends, in no order.
    pub(crate) fn turns(&self) -> impl Iterator<Item = Timestamp> {
        let ndas = self.active_ndas.iter().flat_map(|nda| [nda.valid_from.begins(), nda.valid_until.ends()]);
        let competes = self.non_competes.iter().map(|promise| promise.valid_until.ends());
        let solicits = self.non_solicits.iter().filter_map(|promise| promise.valid_until.map(Day::ends));
        ndas.chain(competes).chain(solicits)
    }

    /// Whether the scope is privileged: no bridge leads out of it (RFC 0006 section 3.6).
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        !matches!(
            self.regulatory_classification,
            None | Some(Classification::None | Classification::TradeSecret)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Absent, a classification or a clearance restricts nothing: `null` must not be taken for that.
    #[test]
    fn what_the_schema_does_not_have_is_not_set() {
        let whole = json!({
            "ccc_version": "1.0", "scope_id": "personal", "regulatory_classification": "none", "security_clearance": [],
            "active_ndas": [{
                "id": "n", "counterparties": [], "type": "mutual", "covered_categories": [], "valid_from": "2026-05-01",
                "valid_until": "2026-05-02", "jurisdiction": "DE", "document_hash": format!("sha256:{}", "0".repeat(64)),
            }],
            "non_competes": [{
                "ex_employer": "did:web:a.example", "valid_until": "2026-05-02", "scope": "all", "covered_industries": [],
            }],
            "non_solicits": [{"subject_did": "did:web:a.example", "applies_to": "both", "valid_until": "2026-05-02"}],
            "insider_lists": [{"issuer": "a", "instrument": "b", "added_on": "2026-05-01T00:00:00Z"}],
            "export_control_classification": null,
        });
        assert!(Ccc::written(whole.clone()).is_ok());
        for (at, other) in [
            ("/regulatory_classification", Value::Null),
            ("/security_clearance", Value::Null),
            ("/active_ndas/0/covered_categories", Value::Null),
            ("/non_competes/0/covered_industries", Value::Null),
            ("/non_solicits/0/subject_did", Value::Null),
            ("/non_solicits/0/valid_until", Value::Null),
            ("/non_solicits/0/applies_to", Value::Null),
            ("/non_solicits/0/applies_to", json!("nobody")),
            ("/insider_lists/0/issuer", Value::Null),
            ("/insider_lists/0/instrument", Value::Null),
            ("/insider_lists/0/added_on", json!(1)),
            ("/insider_lists/0/added_on", json!("lately")),
        ] {
            let mut bad = whole.clone();
            *bad.pointer_mut(at).unwrap() = other;
            let (_, name) = at.rsplit_once('/').unwrap();
            assert!(matches!(Ccc::written(bad), Err(CccError::Form(member)) if member == name), "{at}");
        }
    }
}

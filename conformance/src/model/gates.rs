//! The two gates before projection (protocol section 7): scopes, and what the owner owes to others.
//!
//! The contexts are documents of `oap-ccc.schema.json`. A gate is asked for every item and every grantee of a chain; what one of them
//! may not have, none gets.

use super::filter::Verdict;
use super::grant::{Grant, texts};
use super::item::{Version, time};
use super::rule::{Gate, Rule};
use oap_identity::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Classifications that are privileges: nothing leaves their scope over a bridge, and disclosure needs consent.
const PRIVILEGES: [&str; 7] = [
    "attorney_client_privileged",
    "tax_advisor_confidentiality",
    "auditor_confidentiality",
    "banking_secrecy",
    "journalist_source_protection",
    "confessional_seal",
    "diplomatic_classified",
];
/// Those of health.
const HEALTH: [&str; 2] = ["medical_confidentiality", "therapeutic_privilege"];

/// What the owner owes and allows.
#[derive(Debug, Clone, Default)]
pub(super) struct Gates {
    /// The contexts by scope.
    pub contexts: BTreeMap<String, Value>,
    /// The bridges by id.
    pub bridges: BTreeMap<String, Value>,
    /// The grants to which the owner consented.
    pub consented: BTreeSet<String>,
    /// Whom each sanctions list that is at hand names.
    pub sanctions: BTreeMap<String, BTreeSet<String>>,
}

/// Whom an item goes to.
pub(super) struct To<'a> {
    pub chain: &'a [&'a Grant],
    pub owner: &'a str,
    pub at: Timestamp,
    /// Whether what the grant shows of this item identifies nobody.
    pub anonymous: bool,
}

impl Gates {
    /// What the gates say of an item: nothing where no gate stands before it.
    pub fn judge(&self, version: &Version, to: &To) -> Vec<Verdict> {
        let mut fired: Vec<(Gate, bool)> = Vec::new();
        let Some(grant) = to.chain.first() else { return Vec::new() };
        let scope = version.text("/scope_id").unwrap_or_default();
        let consented = self.consented.contains(&grant.id);
        if scope != grant.scope {
            self.scopes(scope, grant, version, to.at, &mut fired);
        }
        if to.chain.iter().any(|grant| grant.grantee != to.owner) {
            self.walls(scope, grant, to, &mut fired);
            if let Some(context) = self.contexts.get(scope) {
                for grant in to.chain {
                    confidentiality(context, version, &grant.grantee, to, consented, &mut fired);
                    self.screening(context, &grant.grantee, &mut fired);
                }
            }
        }
        fired.sort_unstable();
        fired.dedup();
        fired.into_iter().map(|(gate, lets)| (Rule::Gate(gate), lets)).collect()
    }

    /// Whether a bridge is in force from one scope to another.
    pub fn leads(&self, from: &str, to: &str, at: Timestamp) -> bool {
        self.bridges
            .values()
            .any(|bridge| bridge["from_scope"] == from && bridge["to_scope"] == *to && is_live(bridge, at))
    }

    /// Out of another scope: over a bridge that is in force, with labels that this scope is cleared for, and out of no privilege.
    fn scopes(
        &self,
        from: &str,
        grant: &Grant,
        version: &Version,
        at: Timestamp,
        fired: &mut Vec<(Gate, bool)>,
    ) {
        let leads = |bridge: &&Value| bridge["from_scope"] == from && bridge["to_scope"] == *grant.scope;
        let bridges: Vec<&Value> = self.bridges.values().filter(leads).collect();
        let carries = |bridge: &&Value| covers(&bridge["data_categories"], version);
        fired.push(if bridges.iter().filter(|bridge| is_live(bridge, at)).any(carries) {
            (Gate::Bridge, true)
        } else if bridges.iter().any(carries) {
            (Gate::BridgeEnded, false)
        } else if !bridges.is_empty() {
            (Gate::BridgeOfOthers, false)
        } else {
            (Gate::NoBridge, false)
        });
        let class = self.contexts.get(from).map(|context| text(&context["regulatory_classification"]));
        if class.is_some_and(|class| PRIVILEGES.contains(&class) || HEALTH.contains(&class)) {
            fired.push((Gate::Privileged, false));
        }
        if let Some(cleared) = self.contexts.get(&grant.scope).and_then(|c| texts(&c["security_clearance"])) {
            let all = version.texts("labels").iter().all(|label| cleared.iter().any(|c| c == label));
            fired.push((if all { Gate::Cleared } else { Gate::NotCleared }, all));
        }
    }

    /// Each list that a context names is at hand, and does not name the grantee.
    fn screening(&self, context: &Value, grantee: &str, fired: &mut Vec<(Gate, bool)>) {
        for list in context["sanctions_screening"].as_array().into_iter().flatten() {
            match self.sanctions.get(text(list)) {
                None => fired.push((Gate::MissingList, false)),
                Some(named) if named.iter().any(|entry| is_of(entry, grantee)) => {
                    fired.push((Gate::Sanctioned, false));
                }
                Some(_) => {}
            }
        }
    }

    /// A wall stands between two sides, whatever scope's context names it.
    fn walls(&self, scope: &str, grant: &Grant, to: &To, fired: &mut Vec<(Gate, bool)>) {
        let walls =
            self.contexts.values().filter_map(|context| context["chinese_walls"].as_array()).flatten();
        for sides in walls.filter_map(|wall| texts(&wall["between"])) {
            let across = |side: &String| {
                side != scope
                    && (*side == grant.scope || to.chain.iter().any(|grant| is_of(side, &grant.grantee)))
            };
            if sides.iter().any(|side| side == scope) && sides.iter().any(across) {
                fired.push((Gate::Wall, false));
            }
        }
    }
}

/// What the context of the item's scope says before one grantee.
fn confidentiality(
    context: &Value,
    version: &Version,
    grantee: &str,
    to: &To,
    consented: bool,
    fired: &mut Vec<(Gate, bool)>,
) {
    let entries = |name: &str| context[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |name: &str| !entries(name).is_empty();
    let covered = |words: &Value| words.is_null() || covers(words, version);
    let holds = |promise: &Value| day_ends(&promise["valid_until"]).is_none_or(|end| to.at < end);
    let begun = |promise: &Value| day(&promise["valid_from"]).is_none_or(|begin| begin <= to.at);
    let among = |list: &Value| texts(list).unwrap_or_default().iter().any(|entry| is_of(entry, grantee));
    if among(&context["embargo_list"]) {
        fired.push((Gate::Embargo, false));
    }
    for nda in entries("active_ndas").iter().filter(|nda| covered(&nda["covered_categories"])) {
        fired.push(if nda["type"] == "one_way_outbound" || !holds(nda) || !begun(nda) {
            (Gate::NdaNotHere, true)
        } else if among(&nda["counterparties"]) {
            (Gate::NdaParty, true)
        } else {
            (Gate::Nda, false)
        });
    }
    let competes = entries("non_competes").iter().any(|promise| {
        holds(promise)
            && covered(&promise["covered_industries"])
            && !is_of(text(&promise["ex_employer"]), grantee)
    });
    let solicits = entries("non_solicits").iter().any(|promise| {
        let whom = promise["subject_did"].as_str();
        let about = |did: &str| version.text("/subject_entity_id") == Some(did) || is_of(did, grantee);
        holds(promise) && whom.is_none_or(about)
    });
    let inside = entries("insider_lists").iter().any(|list| {
        let named = |word: &Value| {
            word.as_str().is_some_and(|word| {
                version.texts("labels").contains(&word) || version.text("/subject_entity_id") == Some(word)
            })
        };
        let (issuer, instrument) = (&list["issuer"], &list["instrument"]);
        (issuer.is_null() && instrument.is_null()) || named(issuer) || named(instrument)
    });
    let class = text(&context["regulatory_classification"]);
    for (fires, gate) in [
        (competes, Gate::NonCompete),
        (solicits, Gate::NonSolicit),
        (has("professional_codes"), Gate::ProfessionalCode),
        (has("fiduciary_duties"), Gate::FiduciaryDuty),
        (inside, Gate::Insider),
        (
            (PRIVILEGES.contains(&class) && class != "diplomatic_classified") || class == "trade_secret",
            Gate::Privilege,
        ),
    ] {
        if fires {
            fired.push((if consented { Gate::Consented } else { gate }, consented));
        }
    }
    if HEALTH.contains(&class) {
        fired.push(match (consented, to.anonymous) {
            (true, _) => (Gate::Consented, true),
            (_, true) => (Gate::HealthAnonymous, true),
            _ => (Gate::Health, false),
        });
    }
    if class == "diplomatic_classified" {
        fired.push((Gate::StateSecret, false));
    }
    if !context["export_control_classification"].is_null() {
        fired.push((Gate::ExportControl, false));
    }
}

fn is_live(bridge: &Value, at: Timestamp) -> bool {
    let begun = time(&bridge["issued_at"]).is_none_or(|begin| begin <= at);
    begun && time(&bridge["valid_until"]).is_none_or(|end| at < end)
}

/// Whether a list names a label of the item, or its kind.
fn covers(words: &Value, version: &Version) -> bool {
    let words = texts(words).unwrap_or_default();
    words
        .iter()
        .any(|word| version.texts("labels").contains(&word.as_str()) || version.text("/kind") == Some(word))
}

/// Whether a DID is an entry's, or a did:web below it. The names of hosts have no case.
fn is_of(entry: &str, did: &str) -> bool {
    let (entry, lower) = (entry.trim(), did.to_ascii_lowercase());
    if !entry.to_ascii_lowercase().starts_with("did:web:") {
        return entry == did;
    }
    let entry = entry.to_ascii_lowercase();
    let below = |rest: &str| rest.is_empty() || rest.starts_with(':') || rest.starts_with("%3a");
    lower.strip_prefix(&entry).is_some_and(below)
}

fn day(value: &Value) -> Option<Timestamp> {
    format!("{}T00:00:00Z", value.as_str()?).parse().ok()
}

/// The end of a day: a promise holds through its last one.
fn day_ends(value: &Value) -> Option<Timestamp> {
    day(value).map(|day| day.plus(Duration::from_secs(86_400)))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

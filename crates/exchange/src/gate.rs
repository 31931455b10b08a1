//! The two gates before projection: scopes (RFC 0006 section 3.5) and confidentiality (OAP-CORE 18.3).
//!
//! A gate says of one item whether one grantee may have it at all. A block leaves no trace in an answer:
//! a view is built of what passed.

use crate::bridge::{Bridge, covers};
use crate::ccc::{Ccc, Classification, NdaType, SanctionsList};
use oap_identity::{Did, ScopeId, Timestamp};
use oap_memory::receipt::Outcome;
use oap_memory::{Head, closed_enum};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

closed_enum! {
    /// A rule that fired, as decision records name it.
    Rule {
        /// A bridge leads to the grant's scope.
        Bridge = "scope.bridge",
        /// None does.
        NoBridge = "scope.no_bridge",
        /// A bridge never leads out of a privileged scope.
        Privileged = "scope.privileged",
        /// The grant's scope is not cleared for the item's labels.
        Clearance = "scope.clearance",
        /// The grantee is under embargo.
        Embargo = "ccc.embargo",
        /// An NDA with others covers the item.
        Nda = "ccc.nda",
        /// An NDA with the grantee covers the item.
        NdaCounterparty = "ccc.nda_counterparty",
        /// A non-compete may be touched.
        NonCompete = "ccc.non_compete",
        /// A non-solicitation may be touched.
        NonSolicit = "ccc.non_solicit",
        /// A wall stands between.
        ChineseWall = "ccc.chinese_wall",
        /// A professional code restricts disclosure.
        ProfessionalCode = "ccc.professional_code",
        /// A fiduciary duty restricts disclosure.
        FiduciaryDuty = "ccc.fiduciary_duty",
        /// A privilege or secrecy restricts disclosure.
        Classification = "ccc.classification",
        /// Health: only without what identifies.
        Health = "ccc.health",
        /// A state secret.
        Classified = "ccc.classified",
        /// Inside knowledge.
        Insider = "ccc.insider",
        /// The grantee is on a sanctions list.
        Sanctions = "ccc.sanctions",
        /// A list that must be screened against is not there.
        Unscreened = "ccc.unscreened",
        /// Export control: where the grantee is cannot be told.
        ExportControl = "ccc.export_control",
    }
}

impl Rule {
    /// What the rule asks for.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Bridge | Self::NdaCounterparty => Outcome::AllowWithConditions,
            Self::NonCompete
            | Self::NonSolicit
            | Self::ProfessionalCode
            | Self::FiduciaryDuty
            | Self::Classification
            | Self::Insider => Outcome::RequireConsent,
            Self::Health => Outcome::RequireAnonymization,
            Self::NoBridge
            | Self::Privileged
            | Self::Clearance
            | Self::Embargo
            | Self::Nda
            | Self::ChineseWall
            | Self::Classified
            | Self::Sanctions
            | Self::Unscreened
            | Self::ExportControl => Outcome::Block,
        }
    }
}

/// The sanctions lists that are at hand: the DIDs on each.
pub type Sanctions = BTreeMap<SanctionsList, BTreeSet<String>>;

/// What the owner owes, and which bridges hold: the same for every grantee.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Obligations {
    /// The contexts, by scope.
    pub contexts: BTreeMap<ScopeId, Ccc>,
    /// The bridges that were signed and not taken back.
    pub bridges: Vec<Bridge>,
    pub sanctions: Arc<Sanctions>,
}

impl Obligations {
    /// Those of them that a gate before a destination asks: contexts of the scopes that are selected from, of the grant's own, and
    /// with a wall at one of them; bridges from one of them to it. Lists are whole or not there.
    fn before(&self, destination: &Destination) -> Self {
        let Destination { scope: to, selected, .. } = destination;
        let is_wall = |side: &String| selected.iter().any(|scope| scope.as_str() == side);
        let asked = |scope: &ScopeId, ccc: &Ccc| {
            scope == to
                || selected.contains(scope)
                || ccc.chinese_walls.iter().any(|wall| wall.between.iter().any(is_wall))
        };
        let contexts = self.contexts.iter().filter(|(scope, ccc)| asked(scope, ccc));
        let contexts: BTreeMap<ScopeId, Ccc> =
            contexts.map(|(scope, ccc)| (scope.clone(), ccc.clone())).collect();
        let bridges =
            self.bridges.iter().filter(|b| b.to_scope == *to && selected.contains(&b.from_scope)).cloned();
        let screened = contexts.values().any(|ccc| !ccc.sanctions_screening.is_empty());
        let sanctions = if screened { self.sanctions.clone() } else { Arc::default() };
        Self { bridges: bridges.collect(), contexts, sanctions }
    }
}

/// Whom a gate stands before.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    /// Everybody through whose hands the grant came, its grantee first: what one of them may not have, none gets.
    pub(crate) grantees: Vec<Did>,
    /// Whether it is one of the owner's own agents: then nothing leaves, and the second gate is open.
    pub(crate) own_agent: bool,
    /// The scope that the grant was given under.
    pub(crate) scope: ScopeId,
    /// The scopes whose items the grant selects.
    pub(crate) selected: Vec<ScopeId>,
    /// Whether the owner consented to this very grant.
    pub(crate) consented: bool,
    /// Whether what the grant shows identifies nobody but through an item's subject.
    pub(crate) anonymous: bool,
    /// Whether it shows the subject.
    pub(crate) shows_subject: bool,
}

/// What was decided of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// The rules that fired.
    pub(crate) rules: BTreeSet<Rule>,
    /// The strictest of what they ask for.
    pub(crate) outcome: Outcome,
    /// Whether the item passes: allowed, or what was asked for is there.
    pub(crate) passes: bool,
}

/// The rules that fired for an item, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fired(u32);

const _: () = assert!(Rule::ALL.len() <= 32);

impl Fired {
    pub(crate) fn of(rules: &BTreeSet<Rule>) -> Self {
        Self(rules.iter().fold(0, |bits, rule| bits | 1 << *rule as u32))
    }

    fn iter(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.iter().copied().filter(move |rule| self.0 & (1 << *rule as u32) != 0)
    }
}

/// What the gates decided of all items that a grant selects: the owner's to know, and nobody else's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Items that passed.
    pub passed: u32,
    /// Items that did not.
    pub withheld: u32,
    /// How many items each rule fired for.
    pub rules: BTreeMap<Rule, u32>,
}

impl Report {
    /// Notes an item that passed, or did not.
    pub(crate) fn note(&mut self, rules: Fired, passes: bool) {
        *(if passes { &mut self.passed } else { &mut self.withheld }) += 1;
        rules.iter().for_each(|rule| *self.rules.entry(rule).or_default() += 1);
    }

    /// Takes back what was noted.
    pub(crate) fn take_back(&mut self, rules: Fired, passes: bool) {
        *(if passes { &mut self.passed } else { &mut self.withheld }) -= 1;
        for rule in rules.iter() {
            if let Some(count) = self.rules.get_mut(&rule) {
                *count -= 1;
            }
        }
        self.rules.retain(|_, count| *count > 0);
    }

    /// The strictest that was asked for.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.rules.keys().map(|rule| rule.outcome()).max().unwrap_or(Outcome::Allow)
    }
}

/// Both gates, before one destination at one time.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    /// Nothing that is not asked here: what else the owner owes must not even tell by when a view is built anew.
    obligations: Obligations,
    destination: Destination,
    now: Timestamp,
}

impl Gate {
    /// The gates as they stand now.
    pub(crate) fn new(obligations: &Obligations, destination: Destination, now: Timestamp) -> Self {
        Self { obligations: obligations.before(&destination), destination, now }
    }

    /// The gates before the same destination, by what the owner owes now; `None` where nothing changed that they ask.
    pub(crate) fn changed(&self, obligations: &Obligations, consented: bool, now: Timestamp) -> Option<Self> {
        let destination = Destination { consented, ..self.destination.clone() };
        let gate = Self::new(obligations, destination, now);
        // Only a context asks for consent.
        let asks = !gate.obligations.contexts.is_empty();
        let is_other = gate.obligations != self.obligations
            || (asks && gate.destination.consented != self.destination.consented);
        is_other.then_some(gate)
    }

    /// What the gates decide of an item.
    pub(crate) fn judge(&self, head: &Head) -> Judgement {
        let mut rules = BTreeSet::new();
        self.scopes(head, &mut rules);
        if !self.destination.own_agent {
            self.walls(head, &mut rules);
            if let Some(ccc) = self.obligations.contexts.get(&*head.scope_id) {
                for grantee in &self.destination.grantees {
                    self.confidentiality(ccc, head, grantee, &mut rules);
                }
            }
        }
        let outcome = rules.iter().map(|rule| rule.outcome()).max().unwrap_or(Outcome::Allow);
        let passes = match outcome {
            Outcome::Allow | Outcome::AllowWithConditions => true,
            Outcome::RequireConsent => self.destination.consented,
            Outcome::RequireAnonymization => {
                self.destination.consented
                    || (self.is_anonymous(head)
                        && !rules.iter().any(|rule| rule.outcome() == Outcome::RequireConsent))
            }
            Outcome::Block => false,
        };
        Judgement { rules, outcome, passes }
    }

    /// When what the gates decide may change by itself: the end of a bridge, or a day that a context names.
    pub(crate) fn ends(&self) -> Option<Timestamp> {
        let bridges =
            self.obligations.bridges.iter().flat_map(|bridge| [bridge.issued_at, bridge.valid_until]);
        let days = self.obligations.contexts.values().flat_map(Ccc::turns);
        bridges.chain(days).filter(|end| *end > self.now).min()
    }

    fn is_anonymous(&self, head: &Head) -> bool {
        let destination = &self.destination;
        destination.anonymous && !(destination.shows_subject && head.subject_entity_id.is_some())
    }

    fn scopes(&self, head: &Head, rules: &mut BTreeSet<Rule>) {
        let (obligations, to) = (&self.obligations, &self.destination.scope);
        if *head.scope_id == *to {
            return;
        }
        let bridged = obligations.bridges.iter().any(|bridge| bridge.carries(head, to, self.now));
        rules.insert(if bridged { Rule::Bridge } else { Rule::NoBridge });
        if obligations.contexts.get(&*head.scope_id).is_some_and(Ccc::is_privileged) {
            rules.insert(Rule::Privileged);
        }
        let clearance = obligations.contexts.get(to).and_then(|ccc| ccc.security_clearance.as_ref());
        if clearance.is_some_and(|cleared| !head.labels.iter().all(|label| cleared.contains(label))) {
            rules.insert(Rule::Clearance);
        }
    }

    /// A wall may stand in the context of any scope: it has no inside.
    fn walls(&self, head: &Head, rules: &mut BTreeSet<Rule>) {
        let (to, item) = (&self.destination.scope, head.scope_id.as_str());
        let walls = self.obligations.contexts.values().flat_map(|ccc| &ccc.chinese_walls);
        for wall in walls.filter(|wall| wall.between.iter().any(|side| side == item)) {
            let grantees = &self.destination.grantees;
            let other = |side: &String| {
                side != item && (side == to.as_str() || grantees.iter().any(|grantee| is_of(side, grantee)))
            };
            if wall.between.iter().any(other) {
                rules.insert(Rule::ChineseWall);
            }
        }
    }

    fn confidentiality(&self, ccc: &Ccc, head: &Head, grantee: &Did, rules: &mut BTreeSet<Rule>) {
        let now = self.now;
        let labelled = |words: &Option<Vec<String>>| words.as_ref().is_none_or(|words| covers(words, head));
        if ccc.embargo_list.iter().any(|entry| is_of(entry, grantee)) {
            rules.insert(Rule::Embargo);
        }
        for nda in &ccc.active_ndas {
            let holds = nda.valid_from.begins() <= now && now < nda.valid_until.ends();
            if holds && nda.kind != NdaType::OneWayOutbound && labelled(&nda.covered_categories) {
                let party = nda.counterparties.iter().any(|entry| is_of(entry, grantee));
                rules.insert(if party { Rule::NdaCounterparty } else { Rule::Nda });
            }
        }
        let competes = ccc.non_competes.iter().any(|promise| {
            now < promise.valid_until.ends()
                && labelled(&promise.covered_industries)
                && !is_of(&promise.ex_employer, grantee)
        });
        let about = |did: &String| head.subject_entity_id.as_deref() == Some(did) || is_of(did, grantee);
        let solicits = ccc.non_solicits.iter().any(|promise| {
            promise.valid_until.is_none_or(|day| now < day.ends())
                && promise.subject_did.as_ref().is_none_or(about)
        });
        let named = |word: &Option<String>| {
            word.as_ref().is_some_and(|word| {
                head.labels.contains(word) || head.subject_entity_id.as_deref() == Some(word)
            })
        };
        let inside = ccc.insider_lists.iter().any(|list| {
            (list.issuer.is_none() && list.instrument.is_none())
                || named(&list.issuer)
                || named(&list.instrument)
        });
        for (fires, rule) in [
            (competes, Rule::NonCompete),
            (solicits, Rule::NonSolicit),
            (!ccc.professional_codes.is_empty(), Rule::ProfessionalCode),
            (!ccc.fiduciary_duties.is_empty(), Rule::FiduciaryDuty),
            (inside, Rule::Insider),
            (ccc.export_control_classification.is_some(), Rule::ExportControl),
        ] {
            if fires {
                rules.insert(rule);
            }
        }
        rules.extend(ccc.regulatory_classification.and_then(classified));
        for list in &ccc.sanctions_screening {
            match self.obligations.sanctions.get(list) {
                None => rules.insert(Rule::Unscreened),
                Some(entries) => entries.iter().any(|e| is_of(e, grantee)) && rules.insert(Rule::Sanctions),
            };
        }
    }
}

const fn classified(class: Classification) -> Option<Rule> {
    match class {
        Classification::None => None,
        Classification::MedicalConfidentiality | Classification::TherapeuticPrivilege => Some(Rule::Health),
        Classification::DiplomaticClassified => Some(Rule::Classified),
        Classification::AttorneyClientPrivileged
        | Classification::TaxAdvisorConfidentiality
        | Classification::AuditorConfidentiality
        | Classification::BankingSecrecy
        | Classification::JournalistSourceProtection
        | Classification::ConfessionalSeal
        | Classification::TradeSecret => Some(Rule::Classification),
    }
}

/// Whether a DID is the one of an entry, or, for a did:web, one below it: an organization's entry covers its
/// departments. Letter case does not matter in domain names.
fn is_of(entry: &str, did: &Did) -> bool {
    let (entry, did) = (entry.trim(), did.as_str());
    if !entry.to_ascii_lowercase().starts_with("did:web:") {
        return entry == did;
    }
    let (entry, did) = (entry.to_ascii_lowercase(), did.to_ascii_lowercase());
    did.strip_prefix(&entry)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(':') || rest.starts_with("%3a"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::ItemId;
    use oap_identity::random::Seeded;
    use oap_memory::Kind;
    use oap_memory::item::{Confidence, Sensitivity};
    use oap_memory::record::{Few, Meta, Status};
    use serde_json::{Value, json};

    fn did(name: &str) -> Did {
        format!("did:web:{name}.example").parse().unwrap()
    }

    fn head(scope: &str) -> Head {
        let at: Timestamp = "2026-04-01T00:00:00Z".parse().unwrap();
        Head {
            item_id: ItemId::new(at, &Seeded::new(1)),
            seq: 0,
            version_seq: 0,
            status: Status::Current,
            scope_id: Arc::new(scope.parse().unwrap()),
            kind: Kind::Fact,
            subject_entity_id: None,
            labels: Arc::new(vec!["a".to_owned()]),
            captured_at: at,
            confidence: Confidence::try_from(1.0).unwrap(),
            end_of_life: None,
            exportable: true,
            sensitivity: Sensitivity::Internal,
            meta: Meta::owner(did("user"), false),
            ended_at: None,
            replaced: [].into(),
            few: Few::default(),
        }
    }

    /// The gates of a context of the scope `personal` before these grantees, at a time.
    fn gate(context: &Value, grantees: &[&str], at: &str) -> Gate {
        let mut context = context.clone();
        context["ccc_version"] = json!("1.0");
        context["scope_id"] = json!("personal");
        let mut obligations = Obligations::default();
        obligations.contexts.insert("personal".parse().unwrap(), Ccc::parse(context).unwrap());
        let destination = Destination {
            grantees: grantees.iter().map(|name| did(name)).collect(),
            own_agent: false,
            scope: "personal".parse().unwrap(),
            selected: vec!["personal".parse().unwrap()],
            consented: false,
            anonymous: false,
            shows_subject: false,
        };
        Gate::new(&obligations, destination, at.parse().unwrap())
    }

    /// The rules that fire for an item of that scope.
    fn fired(context: &Value, grantees: &[&str], at: &str) -> BTreeSet<Rule> {
        gate(context, grantees, at).judge(&head("personal")).rules
    }

    /// What holds until a day holds to its last millisecond, and from a day on from its first.
    #[test]
    fn days_begin_and_end_at_midnight() {
        let nda = json!({"active_ndas": [{
            "id": "n", "counterparties": ["did:web:other.example"], "jurisdiction": "DE", "type": "mutual",
            "valid_from": "2026-05-01", "valid_until": "2026-05-02", "document_hash": format!("sha256:{}", "0".repeat(64)),
        }]});
        let compete = json!({"non_competes": [
            {"ex_employer": "did:web:other.example", "scope": "x", "valid_until": "2026-05-02"},
        ]});
        let solicit = json!({"non_solicits": [{"valid_until": "2026-05-02"}]});
        for (context, rule) in [(&nda, Rule::Nda), (&compete, Rule::NonCompete), (&solicit, Rule::NonSolicit)]
        {
            let fires = |at: &str| fired(context, &["b"], at).contains(&rule);
            assert!(fires("2026-05-02T23:59:59.999Z"), "{rule:?}");
            assert!(!fires("2026-05-03T00:00:00.000Z"), "{rule:?}");
        }
        assert!(!fired(&nda, &["b"], "2026-04-30T23:59:59.999Z").contains(&Rule::Nda));
        assert!(fired(&nda, &["b"], "2026-05-01T00:00:00.000Z").contains(&Rule::Nda));
    }

    /// A gate may decide otherwise by itself on the days that a context names, and on no others.
    #[test]
    fn a_gate_ends_with_what_it_asks() {
        let nda = json!({"active_ndas": [{
            "id": "n", "counterparties": ["did:web:other.example"], "jurisdiction": "DE", "type": "mutual",
            "valid_from": "2026-05-01", "valid_until": "2026-05-02", "document_hash": format!("sha256:{}", "0".repeat(64)),
        }]});
        let compete = json!({"non_competes": [
            {"ex_employer": "did:web:other.example", "scope": "x", "valid_until": "2026-05-02"},
        ]});
        let solicit = json!({"non_solicits": [{"valid_until": "2026-05-02"}, {}]});
        let (begins, ends) = ("2026-05-01T00:00:00.000Z", "2026-05-03T00:00:00.000Z");
        for (context, at, expected) in [
            (&nda, "2026-04-20T12:00:00Z", Some(begins)),
            (&nda, "2026-05-01T00:00:00Z", Some(ends)),
            (&compete, "2026-04-20T12:00:00Z", Some(ends)),
            (&solicit, "2026-04-20T12:00:00Z", Some(ends)),
            (&solicit, "2026-05-03T00:00:00Z", None),
            (&json!({}), "2026-04-20T12:00:00Z", None),
        ] {
            let expected = expected.map(|at| at.parse::<Timestamp>().unwrap());
            assert_eq!(gate(context, &["b"], at).ends(), expected, "{context} at {at}");
        }
    }

    /// One of those through whose hands a grant came is enough.
    #[test]
    fn a_wall_before_one_of_the_grantees_is_a_wall() {
        let wall = json!({"chinese_walls": [{"between": ["personal", "did:web:c.example"], "reason": "x"}]});
        let at = "2026-05-01T12:00:00Z";
        assert!(fired(&wall, &["c"], at).contains(&Rule::ChineseWall));
        assert!(fired(&wall, &["b", "c"], at).contains(&Rule::ChineseWall));
        assert!(!fired(&wall, &["b", "d"], at).contains(&Rule::ChineseWall));
    }

    #[test]
    fn a_jurisdiction_is_two_capital_letters() {
        for (text, is) in [("DE", true), ("De", false), ("de", false), ("DEU", false), ("D", false)] {
            let context = json!({"ccc_version": "1.0", "scope_id": "personal", "active_ndas": [{
                "id": "n", "counterparties": ["did:web:other.example"], "jurisdiction": text, "type": "mutual",
                "valid_from": "2026-05-01", "valid_until": "2026-05-02", "document_hash": format!("sha256:{}", "0".repeat(64)),
            }]});
            assert_eq!(Ccc::parse(context).is_ok(), is, "{text}");
        }
    }

    /// What a gate does not ask is not with it, so that a change of that is none.
    #[test]
    fn a_gate_has_what_it_asks() {
        let context = |scope: &str, more: Value| {
            let mut context = json!({"ccc_version": "1.0", "scope_id": scope});
            context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            (scope.parse::<ScopeId>().unwrap(), Ccc::parse(context).unwrap())
        };
        let bridge = |from: &str, to: &str| Bridge {
            bridge_id: oap_identity::BridgeId::from_bytes([1; 16]),
            principal: did("user"),
            from_scope: from.parse().unwrap(),
            to_scope: to.parse().unwrap(),
            data_categories: vec!["a".to_owned()],
            issued_at: "2026-04-01T00:00:00Z".parse().unwrap(),
            valid_until: "2026-06-01T00:00:00Z".parse().unwrap(),
            revocable: true,
        };
        let destination = Destination {
            grantees: vec![did("b")],
            own_agent: false,
            scope: "personal".parse().unwrap(),
            selected: ["personal", "work"].map(|scope| scope.parse().unwrap()).to_vec(),
            consented: false,
            anonymous: false,
            shows_subject: false,
        };
        let now: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        let gate = Gate::new(&Obligations::default(), destination, now);
        assert!(gate.changed(&Obligations::default(), true, now).is_none(), "nobody asks for consent");
        let wall =
            |side: &str| json!({"chinese_walls": [{"between": [side, "did:web:b.example"], "reason": "x"}]});
        for (asked, (scope, ccc)) in [
            (true, context("personal", json!({}))),
            (true, context("work", json!({}))),
            (true, context("clinic", wall("work"))),
            (false, context("clinic", wall("club"))),
            (false, context("clinic", json!({"embargo_list": ["did:web:b.example"]}))),
        ] {
            let obligations =
                Obligations { contexts: [(scope.clone(), ccc)].into(), ..Obligations::default() };
            let changed = gate.changed(&obligations, false, now);
            assert_eq!(changed.is_some(), asked, "{scope}");
            if let Some(gate) = changed {
                assert!(gate.changed(&obligations, false, now).is_none());
                assert!(gate.changed(&obligations, true, now).is_some(), "consent may count");
            }
        }
        for (asked, from, to) in
            [(true, "work", "personal"), (false, "club", "personal"), (false, "personal", "work")]
        {
            let bridges = vec![bridge(from, to)];
            let obligations = Obligations { bridges, ..Obligations::default() };
            let changed = gate.changed(&obligations, false, now);
            assert_eq!(changed.is_some(), asked, "{from} to {to}");
            assert_eq!(changed.and_then(|gate| gate.ends()).is_some(), asked);
        }
        let sanctions: Sanctions = [(SanctionsList::Eu, BTreeSet::new())].into();
        let mut obligations = Obligations { sanctions: Arc::new(sanctions), ..Obligations::default() };
        assert!(gate.changed(&obligations, false, now).is_none(), "nobody is screened");
        // One of two contexts screens.
        let screening = context("work", json!({"sanctions_screening": ["eu"]}));
        obligations.contexts.extend([screening, context("personal", json!({}))]);
        let gate = gate.changed(&obligations, false, now).unwrap();
        obligations.sanctions = Arc::default();
        assert!(gate.changed(&obligations, false, now).is_some());
    }

    /// An organization's entry covers what is below it, and no other name that begins alike.
    #[test]
    fn an_entry_covers_its_departments() {
        let did = |text: &str| text.parse::<Did>().unwrap();
        assert!(is_of("did:web:ACME.example", &did("did:web:acme.example:legal")));
        assert!(is_of("did:web:acme.example", &did("did:web:acme.example%3A8443")));
        assert!(!is_of("did:web:acme.example", &did("did:web:acme.examples")));
        assert!(!is_of("did:web:acme.example", &did("did:web:other.example")));
        assert!(!is_of("did:key:z6Mk", &did("did:web:other.example")));
    }
}

//! Which grants may be issued, and which may be made from another (protocol sections 5 and 5.2).

mod shape;

use super::Model;
use super::filter::Filter;
use super::grant::{Grant, texts};
use super::item::time;
use super::rule::{Granting, List, Permitted, Refusal, Rule};
use oap_identity::Timestamp;
use serde_json::Value;
use std::time::Duration;

const MEMBERS: [&str; 22] = [
    "version",
    "grant_id",
    "granter",
    "grantee",
    "purpose",
    "purpose_codes",
    "filter",
    "max_items",
    "issued_at",
    "not_before",
    "expires_at",
    "revocable",
    "redaction_profile",
    "trust_level",
    "lawful_basis",
    "operations",
    "embedding_access",
    "bearer",
    "delegable",
    "parent",
    "budget",
    "signature",
];
const BOUNDS: [&str; 3] = ["captured_after", "captured_before", "min_confidence"];
const MAX_LIST: usize = 256;
const MAX_PURPOSE: usize = 1000;
const MAX_CODES: usize = 16;
const MAX_CODE: usize = 64;
const MAX_DEPTH: u64 = 5;
/// By how much a clock may be behind another (protocol section 1).
const SKEW: Duration = Duration::from_secs(300);
/// Levels below which `full.v1` may not be named.
const FULL: (&str, u64) = ("oap.profile.projection.full.v1", 4);

/// What the manifest declares of grants.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    pub max_items: Option<u64>,
    pub days: Option<u64>,
    pub profiles: Option<Vec<String>>,
}

impl Limits {
    pub fn read(manifest: &Value) -> Self {
        let exchange = &manifest["memory_exchange"];
        Self {
            max_items: exchange["max_grant_size_items"]
                .as_u64()
                .or(manifest["max_grant_size_items"].as_u64()),
            days: exchange["max_grant_duration_days"].as_u64(),
            profiles: texts(&exchange["supported_redaction_profiles"]),
        }
    }
}

impl Model {
    /// Whether a draft of a grant may be issued, and the rule that says so. Of a draft that breaks several conditions the first
    /// one is named, and none counts as having decided.
    ///
    /// # Errors
    /// The condition that is broken: the owner's side refuses it, with 400 over HTTP.
    pub fn issues(&self, draft: &Value, at: Timestamp) -> Result<Rule, Rule> {
        self.judged(self.broken(draft, at, at), || self.at_bounds(draft, at))
    }

    /// Whether a child of a grant may be taken in when it is exchanged.
    ///
    /// # Errors
    /// The condition that is broken: the exchange is refused with 400, or with 403 where a grant above is not in force.
    pub fn delegates(&self, child: &Value, at: Timestamp) -> Result<Rule, Rule> {
        if !shape::is_grant(child) {
            return self.judged(vec![Granting::ChildShape], Vec::new);
        }
        let parent = self.grants.values().find(|grant| child["parent"] == grant.hash);
        let Some(parent) = parent else { return self.judged(vec![Granting::ChildParent], Vec::new) };
        if let Some(refusal) =
            self.not_in_force(&self.chain(&parent.id), "query", at).filter(|r| *r != Refusal::OperationQuery)
        {
            let rule = Rule::Refusal(refusal);
            self.decided.note(rule);
            return Err(rule);
        }
        let issued = time(&child["issued_at"]).unwrap_or(at);
        let mut broken = self.broken(child, issued, at);
        if issued > at.plus(SKEW) {
            broken.push(Granting::ChildIssued);
        }
        // Rules of issue, and what is wider than its parent.
        broken.retain(|granting| {
            !matches!(granting, Granting::UnknownProfile | Granting::ProfileLevel | Granting::FilterScopes)
        });
        broken.extend(wider(parent, child));
        self.judged(broken, || vec![Permitted::ChildWithin])
    }

    fn judged(&self, broken: Vec<Granting>, kept: impl FnOnce() -> Vec<Permitted>) -> Result<Rule, Rule> {
        match broken.as_slice() {
            [] => {
                kept().into_iter().for_each(|permitted| self.decided.note(Rule::Permitted(permitted)));
                Ok(Rule::Permitted(Permitted::Issued))
            }
            [only] => {
                self.decided.note(Rule::Granting(*only));
                Err(Rule::Granting(*only))
            }
            [first, ..] => Err(Rule::Granting(*first)),
        }
    }

    /// Whether a bridge leads to a draft's scope from each other one that its filter names.
    #[must_use]
    pub fn is_bridged(&self, draft: &Value, at: Timestamp) -> bool {
        let own = draft["scope"].as_str().unwrap_or(&self.default_scope);
        let named = texts(&draft["filter"]["scopes"]).unwrap_or_default();
        named.iter().all(|scope| scope == own || self.gates.leads(scope, own, at))
    }

    /// The bounds that a good draft is at.
    fn at_bounds(&self, draft: &Value, at: Timestamp) -> Vec<Permitted> {
        let mut rules = vec![Permitted::Issued];
        if draft["max_items"].as_u64().is_some_and(|n| Some(n) == self.limits.max_items) {
            rules.push(Permitted::MaxItemsAt);
        }
        let begins = time(&draft["not_before"]).unwrap_or(at);
        if self.longest(begins) == time(&draft["expires_at"]) {
            rules.push(Permitted::DurationAt);
        }
        rules
    }

    fn longest(&self, begins: Timestamp) -> Option<Timestamp> {
        self.limits.days.map(|days| begins.plus(Duration::from_secs(days.saturating_mul(86_400))))
    }

    /// The lowest level at which a grant may name a profile.
    fn least_level(&self, profile: Option<&str>) -> u64 {
        let own = self.profiles.iter().find(|own| Some(own.name.as_str()) == profile);
        if profile == Some(FULL.0) { FULL.1 } else { own.map_or(0, |own| own.minimum_level()) }
    }

    /// The conditions that a draft breaks.
    fn broken(&self, draft: &Value, issued: Timestamp, now: Timestamp) -> Vec<Granting> {
        let begins = time(&draft["not_before"]).unwrap_or(issued);
        let ends = time(&draft["expires_at"]);
        let max_items = draft["max_items"].as_u64().unwrap_or(0);
        let purpose = draft["purpose"].as_str().map_or(0, |text| text.trim().chars().count());
        let (profile, level) =
            (draft["redaction_profile"].as_str(), draft["trust_level"].as_u64().unwrap_or(0));
        let named = |known: &Vec<String>| known.iter().any(|known| Some(known.as_str()) == profile);
        let unknown = |value: &Value, known: &dyn Fn(&str) -> bool| {
            value.as_object().into_iter().flatten().any(|(name, _)| !known(name))
        };
        let filter = &draft["filter"];
        let lists = |name: &str| List::ALL.iter().any(|list| list.as_str() == name) || BOUNDS.contains(&name);
        let strange = unknown(filter, &lists);
        // The scope of a draft, which has no granter yet, stands by itself.
        let is_draft = draft["granter"].is_null();
        let known = |name: &str| MEMBERS.contains(&name) || name == "status" || is_draft && name == "scope";
        let wide = |element: &Value| element.as_str().is_some_and(|text| text.chars().count() > MAX_LIST);
        let long = |list: &&List| {
            let list = filter[list.as_str()].as_array();
            list.is_some_and(|list| list.len() > MAX_LIST || list.iter().any(wide))
        };
        let depth = &draft["delegable"]["max_depth"];
        let (queries, epsilon) = (&draft["budget"]["queries"], &draft["budget"]["epsilon"]);
        let is_nothing = draft["budget"].is_object() && queries.is_null() && epsilon.is_null();
        let (after, before) = (time(&filter["captured_after"]), time(&filter["captured_before"]));
        [
            (max_items == 0, Granting::MaxItemsZero),
            (self.limits.max_items.is_some_and(|most| max_items > most), Granting::MaxItemsAbove),
            (ends.is_none_or(|end| end <= now || end <= begins), Granting::Ended),
            (ends.zip(self.longest(begins)).is_some_and(|(end, most)| end > most), Granting::DurationAbove),
            (self.limits.profiles.as_ref().is_some_and(|known| !named(known)), Granting::UnknownProfile),
            (level < self.least_level(profile), Granting::ProfileLevel),
            (draft["revocable"] == false, Granting::Irrevocable),
            (draft["operations"].as_array().is_some_and(Vec::is_empty), Granting::NoOperations),
            (purpose == 0, Granting::PurposeEmpty),
            (purpose > MAX_PURPOSE, Granting::PurposeTooLong),
            (!texts(&draft["purpose_codes"]).is_none_or(|codes| are_codes(&codes)), Granting::PurposeCodes),
            (List::ALL.iter().any(|list| long(&list)), Granting::FilterList),
            (after.zip(before).is_some_and(|(after, before)| before <= after), Granting::FilterTimes),
            (!self.is_bridged(draft, issued), Granting::FilterScopes),
            (
                !depth.is_null() && !depth.as_u64().is_some_and(|n| (1..=MAX_DEPTH).contains(&n)),
                Granting::Depth,
            ),
            (
                is_nothing || queries == 0 || epsilon.as_f64().is_some_and(|epsilon| epsilon <= 0.0),
                Granting::Budget,
            ),
            (unknown(draft, &known), Granting::UnknownMember),
            (strange, Granting::UnknownFilterMember),
            (!strange && !shape::is_formed(draft), Granting::Form),
        ]
        .into_iter()
        .filter_map(|(broken, granting)| broken.then_some(granting))
        .collect()
    }
}

fn are_codes(codes: &[String]) -> bool {
    let alphabet = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"_.-".contains(&c);
    codes.len() <= MAX_CODES
        && codes.iter().all(|code| (1..=MAX_CODE).contains(&code.len()) && code.bytes().all(alphabet))
}

/// Where a child is not within its parent, member by member.
fn wider(parent: &Grant, document: &Value) -> Vec<Granting> {
    let child = Grant::read(document);
    let depth = document["delegable"]["max_depth"].as_u64();
    let least =
        |own: Option<f64>, above: Option<f64>| above.is_none_or(|most| own.is_some_and(|own| own <= most));
    let queries = |grant: &Grant| grant.queries.map(|n| n as f64);
    let codes = parent.purpose_codes.is_empty()
        || (!child.purpose_codes.is_empty() && all_in(&child.purpose_codes, &parent.purpose_codes));
    let mut within = vec![
        (parent.depth > 0, Granting::ChildNotDelegable),
        (parent.depth == 0 || depth.is_none_or(|depth| depth < parent.depth), Granting::ChildDepth),
        ((&child.granter, &child.scope) == (&parent.granter, &parent.scope), Granting::ChildGranter),
        (child.profile == parent.profile, Granting::ChildProfile),
        (child.lawful_basis == parent.lawful_basis, Granting::ChildBasis),
        (child.max_items <= parent.max_items, Granting::ChildMaxItems),
        (child.begins >= parent.begins, Granting::ChildBegins),
        (child.ends <= parent.ends, Granting::ChildEnds),
        (child.level <= parent.level, Granting::ChildLevel),
        (all_in(&child.operations, &parent.operations), Granting::ChildOperations),
        (parent.embedding_access || !child.embedding_access, Granting::ChildEmbeddings),
        (parent.bearer || !child.bearer, Granting::ChildBearer),
        (codes, Granting::ChildPurposeCodes),
        (
            least(child.epsilon, parent.epsilon) && least(queries(&child), queries(parent)),
            Granting::ChildBudget,
        ),
        (document["status"].is_null(), Granting::ChildStatus),
    ];
    let (above, own) = (&parent.filter, &child.filter);
    for (list, granting) in [
        (List::Scopes, Granting::ChildScopes),
        (List::SubjectEntityIds, Granting::ChildSubjects),
        (List::Kinds, Granting::ChildKinds),
        (List::LabelsAny, Granting::ChildLabelsAny),
        (List::Sensitivities, Granting::ChildSensitivities),
    ] {
        let of = |grant: &Grant| match (grant.filter.list(list), list) {
            (Some(list), _) => Some(list.clone()),
            (None, List::Scopes) => Some(vec![grant.scope.clone()]),
            (None, List::Sensitivities) => {
                Some(["public", "internal", "confidential"].map(str::to_owned).into())
            }
            (None, _) => None,
        };
        let narrower = of(parent).is_none_or(|above| of(&child).is_some_and(|own| all_in(&own, &above)));
        within.push((narrower, granting));
    }
    let extends = |list: List| {
        above.list(list).is_none_or(|above| own.list(list).is_some_and(|own| all_in(above, own)))
    };
    // An empty `labels_all` admits nothing: within it is an empty one alone.
    let nothing = |filter: &Filter| filter.list(List::LabelsAll).is_some_and(Vec::is_empty);
    within.extend([
        (extends(List::LabelsAll) && (!nothing(above) || nothing(own)), Granting::ChildLabelsAll),
        (extends(List::ExcludeLabels), Granting::ChildExcludeLabels),
    ]);
    let after = above.after.is_none_or(|above| own.after.is_some_and(|own| own >= above));
    let before = above.before.is_none_or(|above| own.before.is_some_and(|own| own <= above));
    let sure = above.min_confidence.is_none_or(|above| own.min_confidence.is_some_and(|own| own >= above));
    within.extend([
        (after, Granting::ChildCapturedAfter),
        (before, Granting::ChildCapturedBefore),
        (sure, Granting::ChildMinConfidence),
    ]);
    within.into_iter().filter_map(|(within, granting)| (!within).then_some(granting)).collect()
}

fn all_in(some: &[String], all: &[String]) -> bool {
    some.iter().all(|element| all.contains(element))
}

#[cfg(test)]
mod tests;

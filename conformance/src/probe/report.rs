//! What a run found: for people, as JSON, as JUnit.

use super::refusals::Condition;
use super::{parts, requirements};
use crate::model::Rule;
use oap_identity::Timestamp;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// How bad a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something leaks, or somebody gets in.
    Critical,
    /// A MUST is not kept.
    Major,
    /// A form is not kept.
    Minor,
}

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "outcome", content = "why")]
pub enum Outcome {
    /// As it must be.
    Passed,
    /// Not as it must be.
    Failed(String),
    /// Not made.
    Skipped(String),
    /// Of something that nobody need have, and that this gateway does not offer.
    #[serde(rename = "not_declared")]
    NotDeclared(String),
    /// Of something that the owner's side has no command for: nothing is known of it.
    #[serde(rename = "not_covered")]
    NotCovered(String),
}

impl Outcome {
    pub(super) fn of(done: std::result::Result<(), super::Failed>) -> Self {
        match done {
            Ok(()) => Self::Passed,
            Err(super::Failed::Skipped(why)) => Self::Skipped(why),
            Err(super::Failed::NotDeclared(why)) => Self::NotDeclared(why),
            Err(super::Failed::NotCovered(why)) => Self::NotCovered(why),
            Err(super::Failed::Wrong(why) | super::Failed::Fault(why)) => Self::Failed(why),
        }
    }
}

/// What a whole run says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every probe was made, and passed, but for those of what the gateway does not offer, or what its owner's side has no command for.
    Passed,
    /// Something was not made, and nothing that was failed: nobody knows.
    Incomplete,
    /// Something is not as it must be.
    Failed,
}

/// One probe's end.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Result {
    pub id: String,
    /// The requirements that it checks.
    pub checks: Vec<String>,
    /// How bad a failure is.
    pub severity: Severity,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Whether it failed because the gateway broke down: what it was asked has no answer then, neither a right one nor a wrong one.
    pub fault: bool,
    /// How often it decided whether what came back is what it must be.
    pub judged: usize,
    /// Requests made by it.
    pub requests: usize,
    /// The last thing that was sent.
    pub sent: String,
    /// What came back.
    pub got: String,
}

/// How many probes ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    /// Of the failed ones, those that the gateway broke down over.
    pub faults: usize,
    pub skipped: usize,
    pub not_declared: usize,
    /// Nothing is known of what these check, whatever the verdict.
    pub not_covered: usize,
}

/// A whole run.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Report {
    /// Against which gateway.
    pub gateway: String,
    pub at: Timestamp,
    /// Requests made.
    pub requests: usize,
    /// Why it was over before all was asked, where the owner's side could be asked no more: what the rest would have found nobody knows.
    pub ended: Option<String>,
    /// Every probe, in the order in which they were made.
    pub results: Vec<Result>,
    /// What the run exercised.
    pub rules: Rules,
    /// How often each requirement decided something.
    pub requirements: Looked,
}

/// How often each requirement decided something, by its id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// How often the probes that name it judged what came back.
    pub decided: BTreeMap<String, usize>,
    /// Those of what the gateway does not offer: no probe that names them was made, and none was skipped.
    pub not_declared: BTreeSet<String>,
    /// Those of what the owner's side has no command for: the same.
    pub not_covered: BTreeSet<String>,
}

impl Looked {
    /// From the ends of probes.
    #[must_use]
    pub fn of(results: &[Result]) -> Self {
        let (mut decided, mut not_declared) = (BTreeMap::new(), BTreeSet::new());
        let (mut not_covered, mut skipped) = (BTreeSet::new(), BTreeSet::new());
        for result in results {
            for id in &result.checks {
                match result.outcome {
                    Outcome::Passed | Outcome::Failed(_) if result.judged > 0 => {
                        *decided.entry(id.clone()).or_default() += result.judged;
                    }
                    Outcome::Passed | Outcome::Failed(_) | Outcome::Skipped(_) => {
                        skipped.insert(id.clone());
                    }
                    Outcome::NotDeclared(_) => {
                        not_declared.insert(id.clone());
                    }
                    Outcome::NotCovered(_) => {
                        not_covered.insert(id.clone());
                    }
                }
            }
        }
        not_covered.retain(|id| !decided.contains_key(id) && !skipped.contains(id));
        not_declared
            .retain(|id| !decided.contains_key(id) && !skipped.contains(id) && !not_covered.contains(id));
        Self { decided, not_declared, not_covered }
    }

    /// Requirements that can be seen from outside, are of what the gateway offers, and decided nothing.
    #[must_use]
    pub fn never(&self) -> BTreeSet<&'static str> {
        let seen = requirements::ALL.iter().filter(|requirement| requirement.unseen.is_none());
        let is_known = |id: &&str| {
            self.decided.contains_key(*id)
                || self.not_declared.contains(*id)
                || self.not_covered.contains(*id)
        };
        seen.map(|requirement| requirement.id).filter(|id| !is_known(id)).collect()
    }
}

impl Serialize for Looked {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut looked = serializer.serialize_struct("Looked", 5)?;
        looked.serialize_field("of", &requirements::ALL.len())?;
        looked.serialize_field("decided", &self.decided)?;
        looked.serialize_field("not_declared", &self.not_declared)?;
        looked.serialize_field("not_covered", &self.not_covered)?;
        looked.serialize_field("never", &self.never())?;
        looked.end()
    }
}

/// How often each rule of the reference model and each condition of the refusals decided something, by its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Wherever that was.
    pub decided: BTreeMap<String, u64>,
    /// Of the conditions, by the door that they were brought to.
    pub at_doors: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Rules that are told for people; more say little more.
const TOLD: usize = 40;

impl Rules {
    /// Every rule and every condition.
    #[must_use]
    pub fn all() -> BTreeSet<String> {
        let rules = Rule::all().into_iter().map(|rule| rule.to_string());
        rules.chain(Condition::all().into_iter().map(|condition| condition.to_string())).collect()
    }

    /// Those that never decided anything.
    #[must_use]
    pub fn never(&self) -> BTreeSet<String> {
        Self::all().into_iter().filter(|rule| !self.decided.contains_key(rule)).collect()
    }

    /// Each requirement that has rules or conditions, with these.
    #[must_use]
    pub fn parts(&self) -> BTreeMap<&'static str, Parts> {
        // What may not be granted is a condition, too.
        let rules = Rule::all().into_iter().filter(|rule| !matches!(rule, Rule::Granting(_)));
        let rules = rules.map(|rule| (parts::of_rule(&rule), rule.to_string()));
        let conditions = Condition::all().into_iter();
        let conditions = conditions.map(|condition| (condition.requirement(), condition.to_string()));
        let mut all: BTreeMap<&'static str, Parts> = BTreeMap::new();
        for (requirement, part) in rules.chain(conditions) {
            let times = self.decided.get(&part).copied().unwrap_or_default();
            let parts = all.entry(requirement).or_default();
            parts.of += 1;
            parts.decided += usize::from(times > 0);
            parts.times += times;
        }
        all
    }
}

/// The rules and conditions that are a part of one requirement: how many there are, how many of them decided something, and how often all together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Parts {
    pub of: usize,
    pub decided: usize,
    pub times: u64,
}

impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut rules = serializer.serialize_struct("Rules", 5)?;
        rules.serialize_field("of", &Self::all().len())?;
        rules.serialize_field("decided", &self.decided)?;
        rules.serialize_field("at_doors", &self.at_doors)?;
        rules.serialize_field("requirements", &self.parts())?;
        rules.serialize_field("never", &self.never())?;
        rules.end()
    }
}

impl Report {
    /// Requirements that probes looked at without one of their rules and conditions deciding anything: of these they asked something else.
    #[must_use]
    pub fn not_exercised(&self) -> Vec<&'static str> {
        let parts = self.rules.parts().into_iter().filter(|(_, parts)| parts.decided == 0);
        parts.map(|(id, _)| id).filter(|id| self.requirements.decided.contains_key(*id)).collect()
    }

    /// The probes that failed, worst first.
    #[must_use]
    pub fn failures(&self) -> Vec<&Result> {
        let mut failed: Vec<&Result> =
            self.results.iter().filter(|r| matches!(r.outcome, Outcome::Failed(_))).collect();
        failed.sort_by_key(|result| result.severity);
        failed
    }

    /// What the run says as a whole: what was skipped is not passed.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.failed() > 0 {
            Verdict::Failed
        } else if self.skipped() > 0 {
            Verdict::Incomplete
        } else {
            Verdict::Passed
        }
    }

    /// How many probes were not made.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.count(|o| matches!(o, Outcome::Skipped(_)))
    }

    /// How many probes are of what the gateway does not offer.
    #[must_use]
    pub fn not_declared(&self) -> usize {
        self.count(|o| matches!(o, Outcome::NotDeclared(_)))
    }

    /// How many probes are of what the owner's side has no command for.
    #[must_use]
    pub fn not_covered(&self) -> usize {
        self.count(|o| matches!(o, Outcome::NotCovered(_)))
    }

    /// How many of the failures are faults of the gateway.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.results.iter().filter(|result| result.fault).count()
    }

    fn failed(&self) -> usize {
        self.count(|o| matches!(o, Outcome::Failed(_)))
    }

    /// How many probes ended how.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            passed: self.count(|o| *o == Outcome::Passed),
            failed: self.failed(),
            faults: self.faults(),
            skipped: self.skipped(),
            not_declared: self.not_declared(),
            not_covered: self.not_covered(),
        }
    }

    fn count(&self, wanted: fn(&Outcome) -> bool) -> usize {
        self.results.iter().filter(|result| wanted(&result.outcome)).count()
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for failure in self.failures() {
            let Outcome::Failed(why) = &failure.outcome else { continue };
            text.push_str(&format!("FAILED {} ({:?})\n    {why}\n", failure.id, failure.severity));
            for check in &failure.checks {
                if let Some(requirement) = requirements::of(check) {
                    text.push_str(&format!("    {check}, {}: {}\n", requirement.source, requirement.text));
                }
            }
            text.push_str(&format!("    sent: {}\n    got:  {}\n", failure.sent, failure.got));
        }
        for result in &self.results {
            match &result.outcome {
                Outcome::Skipped(why) => text.push_str(&format!("skipped {}: {why}\n", result.id)),
                Outcome::NotDeclared(why) => {
                    text.push_str(&format!("not declared {}: {why}\n", result.id));
                }
                Outcome::NotCovered(why) => {
                    text.push_str(&format!("NOT COVERED {}: {why}\n", result.id));
                }
                Outcome::Passed | Outcome::Failed(_) => {}
            }
        }
        let never = self.rules.never();
        if !self.rules.decided.is_empty() {
            let of = Rules::all().len();
            text.push_str(&format!("{} of {of} rules and conditions decided something\n", of - never.len()));
            for rule in never.iter().take(TOLD) {
                text.push_str(&format!("never: {rule}\n"));
            }
            if never.len() > TOLD {
                text.push_str(&format!("never: {} more (--json lists all)\n", never.len() - TOLD));
            }
        }
        let never = self.requirements.never();
        if !never.is_empty() {
            let ids: Vec<&str> = never.into_iter().collect();
            text.push_str(&format!("requirements that never decided anything: {}\n", ids.join(", ")));
        }
        let not_exercised = self.not_exercised();
        if !not_exercised.is_empty() {
            let ids = not_exercised.join(", ");
            text.push_str(&format!(
                "requirements of whose rules and conditions none decided anything: {ids}\n"
            ));
        }
        for (what, ids) in [
            ("of what it does not offer", &self.requirements.not_declared),
            ("that are NOT COVERED, for the owner's side has no command", &self.requirements.not_covered),
        ] {
            if !ids.is_empty() {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                text.push_str(&format!("requirements {what}: {}\n", ids.join(", ")));
            }
        }
        let Counts { passed, failed, faults, skipped, not_declared, not_covered } = self.counts();
        let faults =
            if faults == 0 { String::new() } else { format!(" ({faults} by a fault of the gateway)") };
        text.push_str(&format!(
            "{passed} passed, {failed} failed{faults}, {skipped} skipped, {not_declared} not declared, {not_covered} not covered; {} requests to {}\n",
            self.requests, self.gateway
        ));
        match self.verdict() {
            Verdict::Incomplete => {
                text.push_str("INCOMPLETE: the run says nothing of what the skipped probes check\n");
            }
            Verdict::Passed if not_covered > 0 => text.push_str(&format!(
                "PASSED, but for {not_covered} NOT COVERED: the run says nothing of what they check\n"
            )),
            Verdict::Passed | Verdict::Failed => {}
        }
        text
    }

    /// As JUnit's XML.
    #[must_use]
    pub fn junit(&self) -> String {
        let counts = self.counts();
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"oap-memory\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n  \
             <properties><property name=\"verdict\" value=\"{}\"/><property name=\"not_covered\" value=\"{}\"/><property name=\"ended\" value=\"{}\"/></properties>\n",
            self.results.len(),
            counts.failed - counts.faults,
            counts.faults,
            counts.skipped + counts.not_declared + counts.not_covered,
            match self.verdict() {
                Verdict::Passed => "passed",
                Verdict::Incomplete => "incomplete",
                Verdict::Failed => "failed",
            },
            counts.not_covered,
            escape(self.ended.as_deref().unwrap_or_default()),
        );
        for result in &self.results {
            let name = escape(&result.id);
            let inner = match &result.outcome {
                Outcome::Passed => String::new(),
                Outcome::Failed(why) => {
                    let element = if result.fault { "error" } else { "failure" };
                    format!(
                        "<{element} message=\"{}\">sent: {}\ngot: {}</{element}>",
                        escape(why),
                        escape(&result.sent),
                        escape(&result.got)
                    )
                }
                Outcome::Skipped(why) => format!("<skipped message=\"{}\"/>", escape(why)),
                Outcome::NotDeclared(why) => {
                    format!("<skipped message=\"not declared: {}\"/>", escape(why))
                }
                Outcome::NotCovered(why) => {
                    format!("<skipped message=\"not covered: {}\"/>", escape(why))
                }
            };
            xml.push_str(&format!(
                "  <testcase classname=\"oap-memory\" name=\"{name}\">{inner}</testcase>\n"
            ));
        }
        xml + "</testsuite>\n"
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if (c as u32) < 0x20 && c != '\n' && c != '\t' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_what_was_sent_and_which_requirement() {
        let result = |outcome| Result {
            id: "anonymous-query".into(),
            checks: vec!["ME-08".into()],
            severity: Severity::Critical,
            outcome,
            fault: false,
            judged: 1,
            requests: 1,
            sent: "POST <x>".into(),
            got: "200 \"all\" & more".into(),
        };
        let report = Report {
            gateway: "https://g.example".into(),
            at: Timestamp::from_millis(0),
            ended: None,
            requests: 1,
            results: vec![result(Outcome::Failed("it answered".into())), result(Outcome::Passed)],
            rules: Rules::default(),
            requirements: Looked::default(),
        };
        let text = report.text();
        assert!(
            text.contains("ME-08") && text.contains("sent: POST <x>") && text.contains("1 passed, 1 failed")
        );
        assert!(report.junit().contains("got: 200 &quot;all&quot; &amp; more"));
        assert_eq!(serde_json::to_value(&report.results[0]).unwrap_or_default()["outcome"], "failed");
    }

    /// Each rule and condition is a part of a requirement that some probe checks.
    #[test]
    fn a_requirement_none_of_whose_conditions_decided_is_named() {
        let probes = crate::probe::all();
        for condition in Condition::all() {
            let id = condition.requirement();
            assert!(probes.iter().any(|probe| probe.checks.contains(&id)), "{condition}: {id}");
        }
        for rule in Rule::all() {
            let id = parts::of_rule(&rule);
            assert!(probes.iter().any(|probe| probe.checks.contains(&id)), "{rule}: {id}");
        }
        let decided = Condition::all().into_iter().filter(|condition| condition.requirement() != "PJ-06");
        let decided = decided.map(|condition| (condition.to_string(), 2)).collect();
        let mut report = Report {
            gateway: String::new(),
            at: Timestamp::from_millis(0),
            ended: None,
            requests: 0,
            results: Vec::new(),
            rules: Rules { decided, ..Rules::default() },
            requirements: Looked::default(),
        };
        // Nobody looked.
        assert_eq!(report.not_exercised(), Vec::<&str>::new());
        report.requirements.decided = BTreeMap::from([("PJ-06".to_owned(), 3), ("CO-13".to_owned(), 3)]);
        assert_eq!(report.not_exercised(), ["PJ-06"]);
        let parts = report.rules.parts();
        // Three budgets as rules of the model and as conditions, and the account.
        assert_eq!(parts.get("PJ-06"), Some(&Parts { of: 7, decided: 0, times: 0 }));
        let on_grants = parts["ME-10"];
        assert_eq!((on_grants.decided, on_grants.times), (2, 4));
        assert!(
            report
                .text()
                .contains("requirements of whose rules and conditions none decided anything: PJ-06\n")
        );
    }

    /// Who breaks down has not answered wrongly: it is told apart everywhere.
    #[test]
    fn a_fault_is_a_failure_of_its_own() {
        let result = |fault| Result {
            id: String::new(),
            checks: Vec::new(),
            severity: Severity::Major,
            outcome: Outcome::Failed(String::new()),
            fault,
            judged: 1,
            requests: 1,
            sent: String::new(),
            got: String::new(),
        };
        let report = Report {
            gateway: String::new(),
            at: Timestamp::from_millis(0),
            ended: None,
            requests: 2,
            results: vec![result(true), result(false)],
            rules: Rules::default(),
            requirements: Looked::default(),
        };
        assert_eq!(report.verdict(), Verdict::Failed);
        assert_eq!((report.counts().failed, report.counts().faults), (2, 1));
        assert!(report.text().contains("2 failed (1 by a fault of the gateway)"));
        let junit = report.junit();
        assert!(junit.contains("failures=\"1\" errors=\"1\""), "{junit}");
        assert!(junit.contains("</error>") && junit.contains("</failure>"), "{junit}");
        let fault =
            |at: usize| serde_json::to_value(&report.results[at]).unwrap_or_default()["fault"].clone();
        assert_eq!([fault(0), fault(1)], [true, false]);
    }

    /// What nobody need offer is not what a run left out.
    #[test]
    fn a_requirement_of_what_is_not_offered_is_told_apart() {
        let result = |checks: &[&str], outcome| Result {
            id: String::new(),
            checks: checks.iter().map(|&id| id.to_owned()).collect(),
            severity: Severity::Minor,
            outcome,
            fault: false,
            judged: 2,
            requests: 3,
            sent: String::new(),
            got: String::new(),
        };
        let not_declared = || Outcome::NotDeclared(String::new());
        let not_covered = || Outcome::NotCovered(String::new());
        let results = [
            result(&["FE-1", "FE-2", "FE-3"], not_declared()),
            result(&["FE-2"], Outcome::Passed),
            result(&["FE-3", "FE-4"], Outcome::Skipped(String::new())),
            result(&["FE-2", "FE-4", "CO-30"], not_covered()),
        ];
        let looked = Looked::of(&results);
        assert_eq!(looked.not_declared, BTreeSet::from(["FE-1".to_owned()]));
        assert_eq!(looked.not_covered, BTreeSet::from(["CO-30".to_owned()]));
        assert_eq!(looked.decided, BTreeMap::from([("FE-2".to_owned(), 2)]));
        // What judged nothing looked at nothing.
        let blind = Looked::of(&[Result { judged: 0, ..result(&["FE-2"], Outcome::Passed) }]);
        assert!(blind.decided.is_empty() && blind.never().contains("FE-2"));
        let never = looked.never();
        assert!(never.is_superset(&BTreeSet::from(["FE-3", "FE-4"])));
        assert!(!never.contains("FE-1") && !never.contains("FE-2"));
        let report = Report {
            gateway: String::new(),
            at: Timestamp::from_millis(0),
            ended: None,
            requests: 0,
            results: Vec::new(),
            rules: Rules::default(),
            requirements: looked,
        };
        let text = report.text();
        assert!(text.contains("requirements of what it does not offer: FE-1\n"));
        assert!(
            text.contains("requirements that are NOT COVERED, for the owner's side has no command: CO-30\n")
        );
    }

    #[test]
    fn what_was_skipped_did_not_pass() {
        let verdict = |outcomes: &[Outcome]| {
            let result = |outcome: &Outcome| Result {
                id: String::new(),
                checks: Vec::new(),
                severity: Severity::Minor,
                outcome: outcome.clone(),
                fault: false,
                judged: 1,
                requests: 1,
                sent: String::new(),
                got: String::new(),
            };
            let results = outcomes.iter().map(result).collect();
            let report = Report {
                gateway: String::new(),
                at: Timestamp::from_millis(0),
                ended: None,
                requests: 1,
                results,
                rules: Rules::default(),
                requirements: Looked::default(),
            };
            assert_eq!(report.text().contains("INCOMPLETE"), report.verdict() == Verdict::Incomplete);
            let but_for = report.verdict() == Verdict::Passed && report.not_covered() > 0;
            assert_eq!(report.text().contains("PASSED, but for 1 NOT COVERED"), but_for);
            let not_covered = format!("name=\"not_covered\" value=\"{}\"", report.not_covered());
            assert!(report.junit().contains(&not_covered));
            report.verdict()
        };
        let (failed, skipped) = (Outcome::Failed(String::new()), Outcome::Skipped(String::new()));
        assert_eq!(verdict(&[Outcome::Passed]), Verdict::Passed);
        assert_eq!(verdict(&[Outcome::Passed, skipped.clone()]), Verdict::Incomplete);
        assert_eq!(verdict(&[skipped.clone(), failed.clone()]), Verdict::Failed);
        // What nobody need offer, and this one does not, hides nothing.
        let not_declared = Outcome::NotDeclared(String::new());
        assert_eq!(verdict(&[Outcome::Passed, not_declared.clone()]), Verdict::Passed);
        // Nor does what the owner's side need not have a command for, but the report says so.
        let not_covered = Outcome::NotCovered(String::new());
        assert_eq!(verdict(&[Outcome::Passed, not_covered.clone()]), Verdict::Passed);
        assert_eq!(verdict(&[not_covered, skipped.clone()]), Verdict::Incomplete);
        assert_eq!(verdict(&[not_declared.clone(), skipped]), Verdict::Incomplete);
        assert_eq!(verdict(&[not_declared, failed]), Verdict::Failed);
    }
}

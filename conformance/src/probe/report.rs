//! What a run found: for people, as JSON, as JUnit.

use super::requirements;
use oap_identity::Timestamp;
use serde::Serialize;

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
}

impl Outcome {
    pub(super) fn of(done: std::result::Result<(), super::Failed>) -> Self {
        match done {
            Ok(()) => Self::Passed,
            Err(super::Failed::Skipped(why)) => Self::Skipped(why),
            Err(super::Failed::Wrong(why)) => Self::Failed(why),
        }
    }
}

/// One probe's end.
#[derive(Debug, Clone, Serialize)]
pub struct Result {
    /// The probe.
    pub id: String,
    /// The requirements that it checks.
    pub checks: Vec<String>,
    /// How bad a failure is.
    pub severity: Severity,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The last thing that was sent.
    pub sent: String,
    /// What came back.
    pub got: String,
}

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Against which gateway.
    pub gateway: String,
    /// When.
    pub at: Timestamp,
    /// Requests made.
    pub requests: usize,
    /// Every probe, in the order in which they were made.
    pub results: Vec<Result>,
}

impl Report {
    /// The probes that failed, worst first.
    #[must_use]
    pub fn failures(&self) -> Vec<&Result> {
        let mut failed: Vec<&Result> =
            self.results.iter().filter(|r| matches!(r.outcome, Outcome::Failed(_))).collect();
        failed.sort_by_key(|result| result.severity);
        failed
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
            if let Outcome::Skipped(why) = &result.outcome {
                text.push_str(&format!("skipped {}: {why}\n", result.id));
            }
        }
        text.push_str(&format!(
            "{} passed, {} failed, {} skipped; {} requests to {}\n",
            self.count(|o| *o == Outcome::Passed),
            self.count(|o| matches!(o, Outcome::Failed(_))),
            self.count(|o| matches!(o, Outcome::Skipped(_))),
            self.requests,
            self.gateway
        ));
        text
    }

    /// As JUnit's XML.
    #[must_use]
    pub fn junit(&self) -> String {
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"oap-memory\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
            self.results.len(),
            self.count(|o| matches!(o, Outcome::Failed(_))),
            self.count(|o| matches!(o, Outcome::Skipped(_))),
        );
        for result in &self.results {
            let name = escape(&result.id);
            let inner = match &result.outcome {
                Outcome::Passed => String::new(),
                Outcome::Failed(why) => format!(
                    "<failure message=\"{}\">sent: {}\ngot: {}</failure>",
                    escape(why),
                    escape(&result.sent),
                    escape(&result.got)
                ),
                Outcome::Skipped(why) => format!("<skipped message=\"{}\"/>", escape(why)),
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
            sent: "POST <x>".into(),
            got: "200 \"all\" & more".into(),
        };
        let report = Report {
            gateway: "https://g.example".into(),
            at: Timestamp::from_millis(0),
            requests: 1,
            results: vec![result(Outcome::Failed("it answered".into())), result(Outcome::Passed)],
        };
        let text = report.text();
        assert!(
            text.contains("ME-08") && text.contains("sent: POST <x>") && text.contains("1 passed, 1 failed")
        );
        assert!(report.junit().contains("got: 200 &quot;all&quot; &amp; more"));
        assert_eq!(serde_json::to_value(&report.results[0]).unwrap_or_default()["outcome"], "failed");
    }
}

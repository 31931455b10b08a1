//! Which items a command means, what is shown of them before anything is done, and the question.

use super::when::{self, When};
use super::{CliError, Global, output, values};
use crate::client::owner::OwnerClient;
use oap_identity::ScopeId;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// Selectors beside ids and labels.
#[derive(clap::Args, Default)]
pub(super) struct Selectors {
    /// Items about this
    #[arg(long, value_name = "ENTITY", value_parser = values::short)]
    subject: Vec<String>,
    /// Items of this scope
    #[arg(long)]
    scope: Vec<ScopeId>,
    /// Items with this provenance tag, such as imported_from=chatgpt
    #[arg(long, value_name = "NAME=VALUE")]
    provenance: Vec<String>,
    /// Items captured at or after this time
    #[arg(long, value_name = "TIME")]
    since: Option<When>,
    /// Items captured until this time
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
}

impl Selectors {
    /// Whether none is given.
    pub(super) fn is_empty(&self) -> bool {
        self.subject.is_empty()
            && self.scope.is_empty()
            && self.provenance.is_empty()
            && self.since.is_none()
            && self.until.is_none()
    }

    /// The selection, with these ids and labels; `all` is everything of those times.
    pub(super) fn selection(
        &self,
        items: &[String],
        labels: &[String],
        all: bool,
    ) -> Result<Value, CliError> {
        let mut selection = json!({
            "items": items, "labels": labels, "subjects": self.subject, "scopes": self.scope,
            "provenance_tags": self.provenance, "all": all,
        });
        let now = when::now();
        let times = [
            ("captured_after", self.since.map(|since| since.since(now))),
            ("captured_before", self.until.map(|until| until.until(now))),
        ];
        for (member, time) in times {
            if let Some(time) = time {
                selection[member] = json!(time);
            }
        }
        let names = |member: &str| selection[member].as_array().is_some_and(|values| !values.is_empty());
        let named = ["items", "labels", "subjects", "scopes", "provenance_tags"].into_iter().any(names);
        if all && named {
            return Err(CliError::Usage(
                "--all is everything: leave it out, or the other selectors".to_owned(),
            ));
        }
        let timed = self.since.is_some() || self.until.is_some();
        if !(named || timed || all) {
            return Err(CliError::Usage(
                "say which items: by id or by a selector; --all is everything".to_owned(),
            ));
        }
        Ok(selection)
    }
}

/// How a command asks before it acts.
#[derive(clap::Args)]
pub(super) struct Asking {
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
}

/// What is done to items, in the words of the question.
#[derive(Clone, Copy)]
pub(super) enum Act {
    /// For good.
    Delete,
    /// Reversible.
    Retract,
    /// Reversible.
    Relabel,
}

impl Act {
    const fn verb(self) -> (&'static str, &'static str) {
        match self {
            Self::Delete => ("Delete", "deleted"),
            Self::Retract => ("Retract", "retracted"),
            Self::Relabel => ("Relabel", "relabelled"),
        }
    }
}

impl Asking {
    /// That somebody is there to be asked, or nobody has to be.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if self.yes || self.dry_run || std::io::stdin().is_terminal() {
            return Ok(());
        }
        Err(CliError::Usage(
            "there is no terminal to ask on: say --yes, or --dry-run to look first".to_owned(),
        ))
    }

    /// Shows what is selected, and asks; whether to go on. The dry run ends here.
    pub(super) fn goes_on(&self, global: &Global, act: Act, selected: &Value) -> Result<bool, CliError> {
        if self.dry_run {
            output::print(global.json, selected, |s| format!("{}\nNothing was written.", preview(act, s)));
            return Ok(false);
        }
        if self.yes {
            return Ok(true);
        }
        eprint!("{}\n{} [y/N] ", preview(act, selected), question(act, selected));
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(|e| CliError::Other(e.to_string()))?;
        if matches!(line.trim(), "y" | "Y" | "yes") {
            return Ok(true);
        }
        Err(CliError::Other(format!("nothing was {}", act.verb().1)))
    }
}

/// What a selection selects. Nothing is an error.
pub(super) async fn select(owner: &mut OwnerClient, selection: &Value, act: Act) -> Result<Value, CliError> {
    let body = json!({"selection": selection, "current": !matches!(act, Act::Delete)});
    let selected = owner.call("POST", "/oap/owner/items/select", &[], Some(&body)).await?;
    if selected["count"] == 0 {
        return Err(CliError::Other("nothing matched".to_owned()));
    }
    Ok(selected)
}

/// The ids that were shown and are to be changed.
pub(super) fn ids(selected: &Value) -> Vec<String> {
    let items = selected["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect()
}

/// The same selectors, of those items alone.
pub(super) fn confirmed(selection: &Value, items: &[String]) -> Value {
    let mut confirmed = selection.clone();
    confirmed["items"] = json!(items);
    // The ids say it; everything else would contradict them.
    confirmed["all"] = json!(false);
    confirmed
}

fn count(selected: &Value, member: &str) -> u64 {
    selected[member].as_u64().unwrap_or(0)
}

fn items(number: u64) -> String {
    if number == 1 { "1 item".to_owned() } else { format!("{number} items") }
}

/// The items that were selected, and what goes with them.
fn preview(act: Act, selected: &Value) -> String {
    let number = count(selected, "count");
    let mut text = format!("{} would be {}:\n", items(number), act.verb().1);
    let samples = |text: &mut String, member: &str, of: u64| {
        let lines = selected[member].as_array().map(Vec::as_slice).unwrap_or_default();
        text.push_str(&format!("{}\n", table(lines)));
        let rest = of.saturating_sub(lines.len() as u64);
        if rest > 0 {
            text.push_str(&format!("and {rest} more\n"));
        }
    };
    samples(&mut text, "samples", number);
    if matches!(act, Act::Delete) {
        let derived = count(selected, "derived_count");
        if derived > 0 {
            text.push_str(&format!("{} made from them would go too:\n", items(derived)));
            samples(&mut text, "derived", derived);
        }
        let held = count(selected, "held_count");
        if held > 0 {
            text.push_str(&format!(
                "{} under a legal hold: out of every view, deleted when it ends:\n",
                items(held)
            ));
            let holds = selected["held"].as_array().cloned().unwrap_or_default();
            let row =
                |hold: &Value| ["/item_id", "/reason", "/until"].map(|m| output::text(hold, m)).to_vec();
            text.push_str(&format!(
                "{}\n",
                output::table(&["item", "reason", "until"], holds.iter().map(row))
            ));
        }
    }
    let grants = count(selected, "grants_shrunk");
    if grants > 0 && !matches!(act, Act::Relabel) {
        text.push_str(&format!("{grants} active grant(s) show some of it.\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Items, a line each: id, kind, day, labels, the beginning of what it says.
pub(super) fn table(items: &[Value]) -> String {
    let rows = items.iter().map(|item| {
        let says = ["/snippet", "/gist"].map(|member| output::text(item, member)).concat();
        let day = output::text(item, "/captured_at").chars().take(10).collect();
        vec![output::text(item, "/item_id"), output::text(item, "/kind"), day, labels(item), says]
    });
    output::table(&["item", "kind", "captured", "labels", "content"], rows)
}

/// The labels of an item.
pub(super) fn labels(item: &Value) -> String {
    let labels = item["labels"].as_array().map(Vec::as_slice).unwrap_or_default();
    labels.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

fn question(act: Act, selected: &Value) -> String {
    let number = count(selected, "count");
    let these = format!("{} {}", act.verb().0, items(number));
    match (act, count(selected, "derived_count")) {
        (Act::Delete, 0) => format!("{these}? This cannot be undone."),
        (Act::Delete, derived) => format!("{these}, and {derived} made from them? This cannot be undone."),
        _ => format!("{these}?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected() -> Value {
        let line = |n: usize| json!({"item_id": format!("mem_{n}"), "kind": "fact", "captured_at": "2026-05-01T00:00:00Z", "labels": ["a"], "gist": "x"});
        json!({
            "count": 7, "items": [], "samples": (0..5).map(line).collect::<Vec<_>>(), "derived_count": 1,
            "derived": [line(8)], "held_count": 1, "grants_shrunk": 2,
            "held": [{"item_id": "mem_9", "reason": "legal_hold", "until": "2027-01-01T00:00:00Z"}],
        })
    }

    #[test]
    fn the_question_names_the_number() {
        assert_eq!(
            question(Act::Delete, &selected()),
            "Delete 7 items, and 1 made from them? This cannot be undone."
        );
        assert_eq!(question(Act::Retract, &json!({"count": 1})), "Retract 1 item?");
    }

    #[test]
    fn the_preview_shows_samples_and_what_goes_along() {
        let text = preview(Act::Delete, &selected());
        for says in [
            "7 items would be deleted",
            "mem_4  fact  2026-05-01  a       x",
            "and 2 more",
            "mem_8",
            "mem_9  legal_hold  2027",
        ] {
            assert!(text.contains(says), "{says} is not in {text}");
        }
        assert!(!preview(Act::Retract, &selected()).contains("mem_8"), "a retraction takes nothing along");
    }

    #[test]
    fn confirmed_ids_take_the_place_of_everything() {
        let all = json!({"items": [], "labels": ["a"], "all": true});
        assert_eq!(
            confirmed(&all, &["mem_1".to_owned()]),
            json!({"items": ["mem_1"], "labels": ["a"], "all": false})
        );
    }
}

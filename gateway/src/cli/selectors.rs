//! Which items a command means, what is shown of them before anything is done, and the question.

use super::when::{self, When};
use super::{CliError, Global, output, values};
use crate::api::items::Brief;
use crate::api::prefix::ItemPrefix;
use crate::api::selections::{SelectItems, SelectQuery, Selected, Selection};
use oap_client::OwnerClient;
use oap_identity::{ItemId, ScopeId};
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
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::tag)]
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

    /// That these selectors, with ids and labels or `all`, name something and nothing contradictory.
    pub(super) fn check(&self, ids: &[ItemPrefix], labels: &[String], all: bool) -> Result<(), CliError> {
        let named = !(ids.is_empty()
            && labels.is_empty()
            && self.subject.is_empty()
            && self.scope.is_empty()
            && self.provenance.is_empty());
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
        Ok(())
    }

    /// The selection, with these ids and labels; `all` is everything of those times.
    pub(super) fn selection(&self, items: Vec<ItemId>, labels: &[String], all: bool) -> Selection {
        let now = when::now();
        Selection {
            items,
            labels: labels.to_vec(),
            subjects: self.subject.clone(),
            scopes: self.scope.clone(),
            provenance_tags: self.provenance.clone(),
            captured_after: self.since.map(|since| since.since(now)),
            captured_before: self.until.map(|until| until.until(now)),
            all,
        }
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
    Retract,
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
    /// Shows what is selected, and asks; whether to go on. The dry run ends here, and so does what nobody is there to be asked about.
    pub(super) fn goes_on(&self, global: &Global, act: Act, selected: &Selected) -> Result<bool, CliError> {
        if self.dry_run {
            output::print(global.json, selected, |s| format!("{}\nNothing was written.", preview(act, s)));
            return Ok(false);
        }
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            return Err(CliError::Usage(
                "there is no terminal to ask on: say --yes, or --dry-run to look first".to_owned(),
            ));
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
pub(super) async fn select(
    owner: &OwnerClient,
    selection: &Selection,
    act: Act,
) -> Result<Selected, CliError> {
    let query = SelectQuery { selection: selection.clone(), current: !matches!(act, Act::Delete) };
    let selected = owner.send::<SelectItems>((), &query).await?;
    if selected.count == 0 {
        return Err(CliError::Other("nothing matched".to_owned()));
    }
    Ok(selected)
}

/// The same selectors, of those items alone.
pub(super) fn confirmed(selection: &Selection, items: &[ItemId]) -> Selection {
    // The ids say it; everything else would contradict them.
    Selection { items: items.to_vec(), all: false, ..selection.clone() }
}

fn items(number: usize) -> String {
    if number == 1 { "1 item".to_owned() } else { format!("{number} items") }
}

/// The items that were selected, and what goes with them.
fn preview(act: Act, selected: &Selected) -> String {
    let mut text = format!("{} would be {}:\n", items(selected.count), act.verb().1);
    let samples = |text: &mut String, lines: &[Brief], of: usize| {
        text.push_str(&format!("{}\n", table(lines)));
        let rest = of.saturating_sub(lines.len());
        if rest > 0 {
            text.push_str(&format!("and {rest} more\n"));
        }
    };
    samples(&mut text, &selected.samples, selected.count);
    if matches!(act, Act::Delete) {
        let derived = selected.derived_count;
        if derived > 0 {
            text.push_str(&format!("{} made from them would go too:\n", items(derived)));
            samples(&mut text, &selected.derived, derived);
        }
        let held = selected.held_count;
        if held > 0 {
            text.push_str(&format!(
                "{} under a legal hold: out of every view, deleted when it ends:\n",
                items(held)
            ));
            let rows = selected.held.iter().map(|held| {
                vec![held.item_id.to_string(), held.reason.as_str().to_owned(), held.until.to_string()]
            });
            text.push_str(&format!("{}\n", output::table(&["item", "reason", "until"], rows)));
        }
    }
    let grants = selected.grants_shrunk;
    if grants > 0 && !matches!(act, Act::Relabel) {
        text.push_str(&format!("{grants} active grant(s) show some of it.\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Items, a line each: id, kind, day, labels, the beginning of what it says.
pub(super) fn table(items: &[Brief]) -> String {
    let rows = items.iter().map(|item| {
        let says = output::or_none(item.snippet.as_ref().or(item.gist.as_ref()));
        let day = output::or_none(item.captured_at).chars().take(10).collect();
        let labels = item.labels.as_deref().unwrap_or_default().join(" ");
        vec![item.item_id.to_string(), output::or_none(item.kind), day, labels, says]
    });
    output::table(&["item", "kind", "captured", "labels", "content"], rows)
}

fn question(act: Act, selected: &Selected) -> String {
    let these = format!("{} {}", act.verb().0, items(selected.count));
    match (act, selected.derived_count) {
        (Act::Delete, 0) => format!("{these}? This cannot be undone."),
        (Act::Delete, derived) => format!("{these}, and {derived} made from them? This cannot be undone."),
        _ => format!("{these}?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn id(n: u8) -> ItemId {
        ItemId::from_bytes([n; 16])
    }

    /// An id as a list shows it: cut.
    fn shown(n: u8) -> String {
        id(n).to_string().chars().take(16).collect()
    }

    fn selected() -> Selected {
        let line = |n: u8| json!({"item_id": id(n), "kind": "fact", "captured_at": "2026-05-01T00:00:00Z", "labels": ["a"], "gist": "x", "status": "current"});
        serde_json::from_value(json!({
            "count": 7, "items": [], "samples": (0..5).map(line).collect::<Vec<_>>(), "derived_count": 1,
            "derived": [line(8)], "held_count": 1, "grants_shrunk": 2,
            "held": [{"item_id": id(9), "reason": "legal_hold", "until": "2027-01-01T00:00:00Z"}],
        }))
        .unwrap()
    }

    #[test]
    fn the_question_names_the_number() {
        assert_eq!(
            question(Act::Delete, &selected()),
            "Delete 7 items, and 1 made from them? This cannot be undone."
        );
        assert_eq!(question(Act::Retract, &Selected { count: 1, ..selected() }), "Retract 1 item?");
    }

    #[test]
    fn the_preview_shows_samples_and_what_goes_along() {
        let text = preview(Act::Delete, &selected());
        for says in [
            "7 items would be deleted",
            &format!("{}  fact  2026-05-01  a       x", shown(4)),
            "and 2 more",
            &shown(8),
            &format!("{}  legal_hold  2027", shown(9)),
        ] {
            assert!(text.contains(says), "{says} is not in {text}");
        }
        assert!(
            !preview(Act::Retract, &selected()).contains(&id(8).to_string()),
            "a retraction takes nothing along"
        );
    }

    #[test]
    fn confirmed_ids_take_the_place_of_everything() {
        let all = Selection { labels: vec!["a".to_owned()], all: true, ..Selection::default() };
        assert_eq!(
            json!(confirmed(&all, &[id(1)])),
            json!({"items": [id(1)], "labels": ["a"], "all": false})
        );
    }
}

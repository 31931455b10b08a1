//! `oap-memory item show --history`

use super::{output, who};
use crate::api::disclosures::{History, Kept};

/// The versions of an item, what each changed, and to whom which was shown.
pub(super) fn people(answer: &History) -> String {
    let mut text = format!("{} ({})\n", answer.item_id, answer.status);
    for event in &answer.events {
        let by = match (&event.agent, event.by_agent) {
            (Some(agent), _) => format!("{agent}, signed by "),
            (None, true) => "an agent, signed by ".to_owned(),
            (None, false) => String::new(),
        };
        text.push_str(&format!(
            "\n{}  version {}  {}\n    by {by}{}\n",
            event.at, event.version, event.event, event.actor
        ));
        if event.content == Some(Kept::Gone) {
            text.push_str("    what it said is not kept any more\n");
        }
        let Some(changes) = &event.changes else { continue };
        let names = [
            ("+ label", &changes.labels_added),
            ("- label", &changes.labels_removed),
            ("~ changed", &changes.other),
        ];
        for (what, names) in names.into_iter().filter(|(_, names)| !names.is_empty()) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            text.push_str(&format!("    {what} {}\n", names.join(" ")));
        }
        let says = changes.text.iter().flat_map(|text| [('-', &text.before), ('+', &text.after)]);
        for (sign, says) in says {
            if let Some(says) = says {
                text.push_str(&format!("    {sign} {}\n", output::short(says, 72)));
            }
        }
    }
    if answer.disclosed.is_empty() {
        text.push_str("\nnever shown to a grantee");
    } else {
        let rows = answer.disclosed.iter().map(|shown| {
            vec![
                shown.grantee.to_string(),
                output::or_none(shown.version),
                shown.times.to_string(),
                shown.first.to_string(),
                shown.last.to_string(),
                who::seen_at(&shown.seen_at),
            ]
        });
        text.push('\n');
        text.push_str(&output::table(&["shown to", "version", "times", "first", "last", "level"], rows));
    }
    if answer.given.is_empty() {
        text.push_str("\nnever given to an agent of yours");
    } else {
        let rows = answer.given.iter().map(|given| {
            vec![
                given.agent.to_string(),
                output::or_none(given.version),
                given.times.to_string(),
                given.first.to_string(),
                given.last.to_string(),
            ]
        });
        text.push_str("\n\n");
        text.push_str(&output::table(&["given to agent", "version", "times", "first", "last"], rows));
        text.push_str("\nwhat each answer was: oap-memory audit injected --agent NAME");
    }
    if !answer.complete {
        text.push_str("\nonly the newest receipts were looked at");
    }
    output::fitted(&text)
}

//! What was found out about a document, in words.

use super::{ItemReport, Of, Report};

impl Report {
    /// The report in words.
    pub(in crate::cli) fn text(&self) -> String {
        let mut lines = self.says.clone();
        for item in self.items() {
            for (number, line) in item.story.iter().enumerate() {
                lines.push(format!("{}{line}", if number == 0 { "" } else { "  " }));
            }
            lines.push(format!(
                "  proved: {}; derived from the proof: {}; outside the proof: {}",
                names(&item.proved),
                names(&item.derived),
                names(&item.outside)
            ));
            lines.extend(item.unchecked.iter().map(|what| format!("  not checked: {}", what.what)));
        }
        if let Some(outside) = self.outside().filter(|outside| !outside.is_empty()) {
            lines.push(format!("outside the proof: {}", names(outside)));
        }
        lines.extend(self.unchecked.iter().map(|what| format!("not checked: {}", what.what)));
        if let Of::Bundle(bundle) = &self.of {
            let wrong = bundle.wrong.iter();
            lines.extend(wrong.map(|wrong| format!("line {}: {}", wrong.line, wrong.reason)));
            lines.extend(bundle.note.map(|note| format!("note: {note}")));
        }
        lines.join("\n")
    }

    fn items(&self) -> &[ItemReport] {
        match &self.of {
            Of::Answer(answer) => &answer.items,
            Of::Item { items } => items,
            _ => &[],
        }
    }

    fn outside(&self) -> Option<&[String]> {
        match &self.of {
            Of::Deletion(deletion) => deletion.outside.as_deref(),
            Of::Acks(acks) => Some(&acks.outside),
            Of::Deletions { outside, .. } | Of::DidDocument { outside } => Some(outside),
            _ => None,
        }
    }
}

fn names(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

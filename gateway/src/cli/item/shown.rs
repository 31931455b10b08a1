//! `oap-memory item show`

use crate::api::items::WholeItem;
use crate::cli::names::Names;
use crate::cli::{output, screen};
use oap_identity::Did;

/// Who wrote an item, and whose it stays.
pub(super) fn authors(answer: &WholeItem) -> impl Iterator<Item = &str> {
    let record = answer.record.as_ref();
    let author = record.map(|record| &*record.author);
    author.into_iter().chain(record.and_then(|record| record.private_to.as_deref())).map(Did::as_str)
}

/// An item with its record and its chain, for people.
pub(super) fn people(answer: &WholeItem, names: &Names) -> String {
    let mut text = output::pretty(&answer.item);
    if let Some(record) = &answer.record {
        let by_owner = answer.item.whole()["owner_did"] == record.author.as_str();
        let by = if by_owner { "you".to_owned() } else { format!("the agent {}", names.who(&record.author)) };
        text.push_str(&format!("\n\nwritten by {by}"));
        if record.needs_verification {
            let id = answer.item.item_id;
            text.push_str(&format!("\nwaits for your confirmation: oap-memory item confirm {id}"));
        }
        text.push_str(&format!("\n{}, {}", record.tier, record.visibility));
        if let Some(agent) = &record.private_to {
            text.push_str(&format!("\nthe agent {} still reads it, and no other does", names.who(agent)));
        }
        if let (Some(namespace), Some(key)) = (&record.namespace, &record.key) {
            let place = format!("namespace {namespace}, key {key}");
            text.push_str(&format!("\nan entry: {}", screen::line(&place)));
        }
        if record.whole()["stale"] == true {
            text.push_str("\nstale: its writer said how long it can be relied on, and that is over");
        }
        if record.human_verified {
            text.push_str("\nconfirmed by you");
        }
    }
    text.push_str("\n\nchain\n");
    let rows = answer.chain.iter().map(|link| {
        vec![link.seq.to_string(), link.event.to_string(), link.at.to_string(), link.receipt.to_string()]
    });
    text.push_str(&output::table(&["link", "event", "at", "receipt"], rows));
    let former = answer.superseded.as_ref().map_or(0, Vec::len);
    if former > 0 {
        text.push_str(&format!("\n{former} former version(s) kept; --json shows them"));
    }
    text
}

//! The story of an item, for people.

use super::VerifiedItem;
use crate::chain::Event;
use crate::form::CLEAR;

/// The story of an item in one sentence a line, for people.
#[must_use]
pub fn explain(verified: &VerifiedItem) -> Vec<String> {
    let links = verified.chain.links();
    let (first, last) = (verified.chain.first(), verified.chain.last());
    let mut lines = vec![format!(
        "{} was captured on {} by {}, receipt {}.",
        verified.item_id,
        first.at,
        first.actor,
        first.receipt.short()
    )];
    let vouched = verified.chain.vouched();
    for (seq, by) in vouched {
        let Some(voucher) = links.get(*by as usize) else { continue };
        lines.push(format!(
            "A key that was compromised by then signed link {seq}; {} vouches for it at link {by}, with a key in force.",
            voucher.actor
        ));
    }
    for (seq, from, to) in verified.chain.moves() {
        lines.push(format!("At link {seq} {to} says that it came from {from}; {from} has not signed that."));
    }
    let version = links.iter().rev().find(|link| link.event.commits()).unwrap_or(last).at;
    let times = |event: Event, what: &str| match links.iter().filter(|l| l.event == event).count() {
        0 => None,
        1 => Some(format!("{what} once")),
        n => Some(format!("{what} {n} times")),
    };
    let changes = [
        (Event::Correct, "corrected"),
        (Event::Relabel, "relabelled"),
        (Event::Reseal, "committed anew, it says with the same content,"),
    ];
    let changes: Vec<String> = changes.into_iter().filter_map(|(event, what)| times(event, what)).collect();
    let never = if links.iter().any(|l| l.event == Event::Correct) { "" } else { " It was never corrected." };
    if changes.is_empty() {
        lines.push(never.trim().to_owned());
    } else {
        lines.push(format!("It was {}; this version is of {version}.{never}", changes.join(" and ")));
    }
    lines.push(format!(
        "Its chain has {} link{}, each signed and following the one before; it is {}.",
        links.len(),
        if links.len() == 1 { "" } else { "s" },
        verified.status
    ));
    let list = |names: Vec<&str>| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    match &verified.claims {
        Some(claims) => {
            let shown = claims.claims().keys().map(String::as_str).filter(|name| !CLEAR.contains(name));
            lines.push(format!(
                "Shown: {}. Everything else was committed to and is hidden.",
                list(shown.collect())
            ));
        }
        None => lines.push("Only the chain was asked for: the content shown is not proved.".to_owned()),
    }
    if !verified.outside.is_empty() {
        lines.push(format!("Outside the proof: {}.", list(verified.outside.clone())));
    }
    lines
}

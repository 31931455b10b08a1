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
    for (seq, from, to) in verified.chain.moves() {
        lines.push(format!("At link {seq} {to} says that it came from {from}; {from} has not signed that."));
    }
    let version = links.iter().rev().find(|link| link.event.commits()).unwrap_or(last).at;
    let corrections = links.iter().filter(|l| l.event == Event::Correct).count();
    lines.push(match corrections {
        0 => "It was never corrected.".to_owned(),
        1 => format!("It was corrected once; this version is of {version}."),
        n => format!("It was corrected {n} times; this version is of {version}."),
    });
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

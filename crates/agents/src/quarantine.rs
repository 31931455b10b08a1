//! What was found to give orders, and waits for the owner before any agent is given it (protocol section 11).
//!
//! It is a record like others, with a label that says so. As long as it waits for the owner's confirmation it does not exist for agents, its
//! author among them; what the owner confirmed is a record like others. A record that waits is in no view of a grant.

use oap_memory::record::Head;

/// The label of what the guard stopped.
pub const LABEL: &str = "oap:quarantined";

/// Whether a record is kept from agents until the owner decides.
#[must_use]
pub fn is_quarantined(head: &Head) -> bool {
    head.meta.needs_verification && head.labels.iter().any(|label| label == LABEL)
}

/// Labels with, or without, the one that says that the guard stopped it.
pub fn mark(labels: &mut Vec<String>, is_stopped: bool) {
    labels.retain(|label| label != LABEL);
    if is_stopped {
        labels.push(LABEL.to_owned());
    }
}

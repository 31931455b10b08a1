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

/// The labels of what says something else now that the guard did not stop; `None` where they are those that there are.
#[must_use]
pub fn lifted(labels: &[String]) -> Option<Vec<String>> {
    let mut other = labels.to_vec();
    mark(&mut other, false);
    (other.len() < labels.len()).then_some(other)
}

/// Labels with, or without, the one that says that the guard stopped it.
pub fn mark(labels: &mut Vec<String>, is_stopped: bool) {
    labels.retain(|label| label != LABEL);
    if is_stopped {
        labels.push(LABEL.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_there_once_or_not_at_all() {
        let mut labels = vec!["tea".to_owned(), LABEL.to_owned()];
        mark(&mut labels, true);
        assert_eq!(labels, ["tea", LABEL]);
        assert_eq!(lifted(&labels).unwrap(), ["tea"]);
        mark(&mut labels, false);
        assert_eq!(labels, ["tea"]);
        assert_eq!(lifted(&labels), None);
    }
}

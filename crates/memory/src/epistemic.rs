//! What a receiver may be said to have of an item (RFC 0010 appendix A.2, A.6.2; protocol section 6).

use crate::item::{Confidence, closed_enum};

closed_enum! {
    /// The attitude that an item supports. Never more than the granter has.
    Epistemic {
        /// Certain, and confirmed by the owner.
        Knowledge = "knowledge",
        /// At or above the belief threshold.
        Belief = "belief",
        /// Held, and no more.
        Possession = "possession",
    }
}

/// The attitude for a confidence, the owner's confirmation, and the gateway's belief threshold.
#[must_use]
pub fn classify(confidence: Confidence, confirmed: bool, threshold: Confidence) -> Epistemic {
    if confirmed && confidence == Confidence::CERTAIN {
        Epistemic::Knowledge
    } else if confidence >= threshold {
        Epistemic::Belief
    } else {
        Epistemic::Possession
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knowledge_needs_certainty_and_the_owner() {
        let c = |value: f64| Confidence::try_from(value).unwrap();
        let half = c(0.5);
        assert_eq!(classify(c(1.0), true, half), Epistemic::Knowledge);
        assert_eq!(classify(c(1.0), false, half), Epistemic::Belief);
        assert_eq!(classify(c(0.999), true, half), Epistemic::Belief);
        assert_eq!(classify(c(0.5), false, half), Epistemic::Belief);
        assert_eq!(classify(c(0.49), true, half), Epistemic::Possession);
    }
}

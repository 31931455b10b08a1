//! What the owner's agents may write, by sort of observation, and how it is believed.

use super::endpoints;
pub use oap_soundness::kept::{Change, Policy, Rule};

endpoints! {
    /// The write policy, with every rule spelled out.
    ShowPolicy: GET "/oap/owner/policy" needs Read answers(Policy);
    /// Changes the write policy: each rule that is named stands in the place of the one before; all else stays.
    SetPolicy: POST "/oap/owner/policy" needs Admin body(Change) answers(Policy);
}

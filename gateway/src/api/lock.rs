//! The end of `unlock`: an endpoint of its process alone, on the socket in the home.

use super::endpoints;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Ends `unlock`. Its process alone has this endpoint, on the socket in the home.
    Lock: POST "/oap/owner/lock" needs Admin answers(Locked);
}

/// What was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Locked {
    /// Always true.
    pub locked: bool,
}

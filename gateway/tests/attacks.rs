//! Attempts to get one field more than granted, each a test that goes red when the attempt succeeds.

mod counts;
mod credentials;
mod cursors;
mod errors;
mod filters;
mod proofs;
mod queries;
mod target;

use crate::common::*;
use serde_json::{Value, json};
use target::Target;

/// What an answer says, without what may differ (protocol section 9).
fn masked(mut answer: Answer) -> (u16, usize, Value) {
    if answer.body.get("error").is_some() {
        answer.body["request_id"] = json!("");
    }
    crate::twins::mask(&mut answer.body);
    (answer.status.as_u16(), answer.bytes.len(), answer.body)
}

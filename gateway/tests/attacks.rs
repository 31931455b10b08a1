//! Attempts to get one field more than granted, each a test that goes red when the attempt succeeds.

#[path = "common/mod.rs"]
mod common;
#[path = "attacks/counts.rs"]
mod counts;
#[path = "attacks/credentials.rs"]
mod credentials;
#[path = "attacks/cursors.rs"]
mod cursors;
#[path = "attacks/errors.rs"]
mod errors;
#[path = "attacks/filters.rs"]
mod filters;
#[path = "attacks/proofs.rs"]
mod proofs;
#[path = "attacks/queries.rs"]
mod queries;
#[path = "attacks/target.rs"]
mod target;
#[path = "attacks/time.rs"]
mod time;
#[path = "common/twins.rs"]
mod twins;

use common::*;
use serde_json::{Value, json};
use target::Target;

/// What an answer says, without what may differ (protocol section 9).
fn masked(mut answer: Answer) -> (u16, usize, Value) {
    if answer.body.get("error").is_some() {
        answer.body["request_id"] = json!("");
    }
    twins::mask(&mut answer.body);
    (answer.status.as_u16(), answer.bytes.len(), answer.body)
}

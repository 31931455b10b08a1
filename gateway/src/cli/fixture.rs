//! The commands of a probe's fixture interface (docs/probes.md) as requests of this gateway's owner.

use crate::api::deletion::Delete;
use crate::api::grants::{IssueGrant, RevokeGrant};
use crate::api::items::{CorrectItem, WriteItems};
use crate::api::{Endpoint, Place, path};
use serde_json::{Value, json};

/// The path and body of a command, for POST.
///
/// # Errors
/// What is wrong with the command.
pub fn request(command: &Value) -> Result<(String, Value), String> {
    Ok(match command["do"].as_str().unwrap_or_default() {
        "capture" => (path::<WriteItems>(&()), json!({"items": command["items"]})),
        "grant" => (path::<IssueGrant>(&()), command["draft"].clone()),
        "revoke" => (at::<RevokeGrant>(command, "grant_id")?, json!({})),
        "correct" => (at::<CorrectItem>(command, "item_id")?, json!({"item": command["item"]})),
        "delete" => (path::<Delete>(&()), json!({"items": command["item_ids"]})),
        other => return Err(format!("{other:?} is no command")),
    })
}

/// The path of an endpoint at the place that a command names.
fn at<E: Endpoint>(command: &Value, member: &str) -> Result<String, String> {
    let place = E::Place::parse(command[member].as_str());
    Ok(path::<E>(&place.ok_or_else(|| format!("{member}: names nothing"))?))
}

/// The answer to a command, made of the gateway's.
#[must_use]
pub fn answer(command: &Value, mut done: Value) -> Value {
    if command["do"] == "capture" {
        let items = done["items"].as_array().cloned().unwrap_or_default();
        done["item_ids"] = items.iter().map(|item| item["item_id"].clone()).collect();
    }
    done
}

//! The commands of a probe's fixture interface (docs/probes.md) as requests of this gateway's owner.

use crate::api::deletion::Delete;
use crate::api::grants::{IssueGrant, RevokeGrant};
use crate::api::items::{ConfirmItem, CorrectItem, RelabelItem, RestoreItem, RetractItem, WriteItems};
use crate::api::{Endpoint, Place, path};
use serde_json::{Value, json};

/// What is wrong with a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// None of those that there are.
    #[error("{0:?} is no command")]
    Unknown(String),
    /// A member that should say what is meant.
    #[error("{0}: names nothing")]
    Nameless(&'static str),
}

/// The path and body of a command, for POST.
///
/// # Errors
/// [`CommandError`].
pub fn request(command: &Value) -> Result<(String, Value), CommandError> {
    Ok(match command["do"].as_str().unwrap_or_default() {
        "capture" => (path::<WriteItems>(&()), json!({"items": command["items"]})),
        "grant" => (path::<IssueGrant>(&()), command["draft"].clone()),
        "revoke" => (at::<RevokeGrant>(command, "grant_id")?, json!({})),
        "correct" => (at::<CorrectItem>(command, "item_id")?, json!({"item": command["item"]})),
        "relabel" => (at::<RelabelItem>(command, "item_id")?, json!({"labels": command["labels"]})),
        "confirm" => (at::<ConfirmItem>(command, "item_id")?, json!({})),
        "retract" => (at::<RetractItem>(command, "item_id")?, json!({})),
        "restore" => (at::<RestoreItem>(command, "item_id")?, json!({})),
        "delete" => (path::<Delete>(&()), json!({"items": command["item_ids"]})),
        other => return Err(CommandError::Unknown(other.to_owned())),
    })
}

/// The path of an endpoint at the place that a command names.
fn at<E: Endpoint>(command: &Value, member: &'static str) -> Result<String, CommandError> {
    let place = E::Place::parse(command[member].as_str());
    Ok(path::<E>(&place.ok_or(CommandError::Nameless(member))?))
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

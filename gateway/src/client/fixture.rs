//! The commands of a probe's fixture interface (docs/probes.md) as requests of this gateway's owner.

use serde_json::{Value, json};

/// The path and body of a command, for POST.
///
/// # Errors
/// What is wrong with the command.
pub fn request(command: &Value) -> Result<(String, Value), String> {
    let text = |member: &str| command[member].as_str().unwrap_or_default();
    Ok(match text("do") {
        "capture" => ("/oap/owner/items".to_owned(), json!({"items": command["items"]})),
        "grant" => ("/oap/owner/grants".to_owned(), command["draft"].clone()),
        "revoke" => (format!("/oap/owner/grants/{}/revoke", text("grant_id")), json!({})),
        "correct" => {
            (format!("/oap/owner/items/{}/correct", text("item_id")), json!({"item": command["item"]}))
        }
        "delete" => ("/oap/data/delete".to_owned(), json!({"items": command["item_ids"]})),
        other => return Err(format!("{other:?} is no command")),
    })
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

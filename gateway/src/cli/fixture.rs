//! The commands of a probe's fixture interface (docs/probes.md) as requests of this gateway's owner.

use crate::api::deletion::Delete;
use crate::api::gates::{IssueBridge, RevokeBridge, SetContext};
use crate::api::grants::{ConsentToGrant, IssueGrant, RevokeGrant};
use crate::api::items::{
    ConfirmItem, CorrectItem, RelabelItem, RestoreItem, RetractItem, WriteItems, WrittenItems,
};
use crate::api::keys::RotateKeys;
use crate::api::path;
use oap_identity::json::{self as strict, JsonError};
use oap_identity::{BridgeId, GrantId, ItemId};
use serde::Deserialize;
use serde_json::{Value, json};

/// A command. What the gateway has to judge goes on as it is: a probe sends what is wrong, too.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Command {
    Capture { items: Value },
    Grant { draft: Value },
    Revoke { grant_id: GrantId },
    Correct { item_id: ItemId, item: Value },
    Relabel { item_id: ItemId, labels: Value },
    Confirm { item_id: ItemId },
    Retract { item_id: ItemId },
    Restore { item_id: ItemId },
    Context { context: Value },
    Bridge { draft: Value },
    Unbridge { bridge_id: BridgeId },
    Consent { grant_id: GrantId },
    Rotate {},
    Delete { item_ids: Value },
}

/// The path and body of a command, for POST.
///
/// # Errors
/// [`JsonError`] for what is no command.
pub fn request(command: &Value) -> Result<(String, Value), JsonError> {
    Ok(match strict::from_value(command.clone())? {
        Command::Capture { items } => (path::<WriteItems>(&()), json!({"items": items})),
        Command::Grant { draft } => (path::<IssueGrant>(&()), draft),
        Command::Revoke { grant_id } => (path::<RevokeGrant>(&grant_id), json!({})),
        Command::Correct { item_id, item } => (path::<CorrectItem>(&item_id), json!({"item": item})),
        Command::Relabel { item_id, labels } => (path::<RelabelItem>(&item_id), json!({"labels": labels})),
        Command::Confirm { item_id } => (path::<ConfirmItem>(&item_id), json!({})),
        Command::Retract { item_id } => (path::<RetractItem>(&item_id), json!({})),
        Command::Restore { item_id } => (path::<RestoreItem>(&item_id), json!({})),
        Command::Context { context } => (path::<SetContext>(&()), context),
        Command::Bridge { draft } => (path::<IssueBridge>(&()), draft),
        Command::Unbridge { bridge_id } => (path::<RevokeBridge>(&bridge_id), json!({})),
        Command::Consent { grant_id } => (path::<ConsentToGrant>(&grant_id), json!({"given": true})),
        Command::Rotate {} => (path::<RotateKeys>(&()), json!({})),
        Command::Delete { item_ids } => (path::<Delete>(&()), json!({"items": item_ids})),
    })
}

/// What an answer depends on: the command's name.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "do")]
    name: Name,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Capture,
    Bridge,
    Rotate,
    #[serde(other)]
    Other,
}

/// The answer to a command, made of the gateway's. A credential is none of it.
#[must_use]
pub fn answer(command: &Value, mut done: Value) -> Value {
    match strict::from_value(command.clone()).map_or(Name::Other, |Named { name }| name) {
        Name::Rotate => json!({}),
        Name::Bridge => json!({"bridge": done}),
        Name::Capture => {
            if let Ok(WrittenItems { items }) = strict::from_value(done.clone()) {
                done["item_ids"] = items.iter().map(|written| json!(written.item_id)).collect();
            }
            done
        }
        Name::Other => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_tells_no_credential() {
        let command = json!({"do": "rotate"});
        let (path, _) = request(&command).unwrap();
        assert_eq!(path, "/oap/owner/keys/rotate");
        assert_eq!(answer(&command, json!({"keys": [], "trust_token": "secret"})), json!({}));
    }

    #[test]
    fn what_is_owed_has_its_place() {
        let bridge = json!({"do": "unbridge", "bridge_id": "brg_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"});
        let (path, _) = request(&bridge).unwrap();
        assert_eq!(path, "/oap/owner/bridges/brg_01HX2QFXR0Q4S8T9V3W7X2Y0Z1/revoke");
        let nameless = request(&json!({"do": "consent"})).unwrap_err().to_string();
        assert!(nameless.contains("grant_id"), "{nameless}");
        assert!(request(&json!({"do": "dance"})).is_err() && request(&json!({})).is_err());
        let signed = answer(&json!({"do": "bridge"}), json!({"bridge_id": "b"}));
        assert_eq!(signed, json!({"bridge": {"bridge_id": "b"}}));
    }
}

//! The commands of a probe's fixture interface (docs/probes.md) as requests of this gateway's owner.

use crate::api::audit::Audit;
use crate::api::deletion::Delete;
use crate::api::gates::{IssueBridge, RevokeBridge, SetContext};
use crate::api::grants::{ConsentToGrant, IssueGrant, RevokeGrant};
use crate::api::items::{
    ConfirmItem, CorrectItem, RelabelItem, RestoreItem, RetractItem, WriteItems, WrittenItems,
};
use crate::api::keys::RotateKeys;
use crate::api::lockdown::{LiftLockdown, LockDown};
use crate::api::path;
use crate::api::standing::{ListProfiles, Profiles};
use oap_identity::json::{self as strict, JsonError};
use oap_identity::{BridgeId, GrantId, Hash, ItemId};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

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
    DeleteSelected { selection: Value },
    Audit { asked: BTreeMap<String, Value> },
    Profile {},
    Sanctions {},
    Lockdown {},
    Unlock {},
}

/// What the owner asks for: a document that is sent, or what is read.
#[derive(Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Asked {
    Post { path: String, body: Value },
    Get { path: String, query: Vec<(String, String)> },
}

/// Why a command does not reach the gateway.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    /// It is no command.
    #[error(transparent)]
    Unknown(#[from] JsonError),
    /// A gateway of one's own has no such command.
    #[error("{0}")]
    None(&'static str),
}

/// What a command is for the owner's side.
///
/// # Errors
/// [`NotAsked`].
pub fn request(command: &Value) -> Result<Asked, NotAsked> {
    let (path, body) = match strict::from_value(command.clone())? {
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
        Command::DeleteSelected { selection } => (path::<Delete>(&()), selection),
        Command::Lockdown {} => (path::<LockDown>(&()), json!({})),
        Command::Unlock {} => (path::<LiftLockdown>(&()), json!({})),
        Command::Audit { asked } => {
            let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let query = asked.iter().map(|(name, value)| (name.clone(), written(value))).collect();
            return Ok(Asked::Get { path: path::<Audit>(&()), query });
        }
        // Which profiles there are is read at start; whether this one is among them is seen.
        Command::Profile {} => {
            return Ok(Asked::Get { path: path::<ListProfiles>(&()), query: Vec::new() });
        }
        Command::Sanctions {} => return Err(NotAsked::None(NO_LISTS)),
    };
    Ok(Asked::Post { path, body })
}

/// Why no list is put into a home.
const NO_LISTS: &str =
    "sanctions lists are files of the home: what a probe put there could be taken for a list";

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
    Lockdown,
    Profile,
    #[serde(other)]
    Other,
}

/// The answer to a command, made of the gateway's. A credential is none of it.
///
/// # Errors
/// Why a gateway of one's own has no such command: it takes no profile that it does not have.
pub fn answer(command: &Value, mut done: Value) -> Result<Value, String> {
    Ok(match strict::from_value(command.clone()).map_or(Name::Other, |Named { name }| name) {
        Name::Rotate | Name::Lockdown => json!({}),
        Name::Profile => {
            let profile = &command["profile"];
            let hash = Hash::of_canonical(profile).map_err(|e| e.to_string())?;
            let known = |profiles: Profiles| profiles.profiles.iter().any(|one| one.hash == hash);
            if !strict::from_value(done).is_ok_and(known) {
                return Err(format!(
                    "profiles are read at start: {} is not among them (docs/probes.md)",
                    profile["name"]
                ));
            }
            json!({})
        }
        Name::Bridge => json!({"bridge": done}),
        Name::Capture => {
            if let Ok(WrittenItems { items }) = strict::from_value(done.clone()) {
                done["item_ids"] = items.iter().map(|written| json!(written.item_id)).collect();
            }
            done
        }
        Name::Other => done,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::standing::ProfileInfo;

    fn posts(command: &Value) -> String {
        match request(command).unwrap() {
            Asked::Post { path, .. } => path,
            Asked::Get { .. } => unreachable!("{command}"),
        }
    }

    #[test]
    fn a_rotation_tells_no_credential() {
        let command = json!({"do": "rotate"});
        let told = json!({"keys": [], "trust_token": "secret"});
        assert_eq!(posts(&command), "/oap/owner/keys/rotate");
        assert_eq!(answer(&command, told.clone()), Ok(json!({})));
        assert_eq!(posts(&json!({"do": "lockdown"})), "/oap/owner/lockdown");
        assert_eq!(answer(&json!({"do": "lockdown"}), told), Ok(json!({})));
    }

    #[test]
    fn what_is_owed_has_its_place() {
        let bridge = json!({"do": "unbridge", "bridge_id": "brg_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"});
        assert_eq!(posts(&bridge), "/oap/owner/bridges/brg_01HX2QFXR0Q4S8T9V3W7X2Y0Z1/revoke");
        let nameless = request(&json!({"do": "consent"})).unwrap_err().to_string();
        assert!(nameless.contains("grant_id"), "{nameless}");
        assert_eq!(
            posts(&json!({"do": "delete_selected", "selection": {"labels": ["a"]}})),
            "/oap/data/delete"
        );
        assert!(request(&json!({"do": "dance"})).is_err() && request(&json!({})).is_err());
        let signed = answer(&json!({"do": "bridge"}), json!({"bridge_id": "b"}));
        assert_eq!(signed, Ok(json!({"bridge": {"bridge_id": "b"}})));
    }

    #[test]
    fn what_is_read_has_its_place() {
        let audit = json!({"do": "audit", "asked": {"limit": 3, "grantee": "did:web:a.example"}});
        let query =
            [("grantee", "did:web:a.example"), ("limit", "3")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let asked = Asked::Get { path: "/oap/audit".to_owned(), query: query.into() };
        assert_eq!(request(&audit).unwrap(), asked);
        // A list of a probe's is never put into a home.
        let list = json!({"do": "sanctions", "list": "un", "named": []});
        assert!(matches!(request(&list), Err(NotAsked::None(_))));
    }

    #[test]
    fn a_profile_is_there_or_it_is_not() {
        let known: toml::Table =
            include_str!("../../../crates/memory/profiles/task.v1.toml").parse().unwrap();
        let mut document = serde_json::to_value(known).unwrap();
        let profiles = oap_memory::Profile::built_in();
        let done = json!(Profiles { profiles: profiles.iter().map(ProfileInfo::of).collect() });
        let asked = |document: &Value| json!({"do": "profile", "profile": document});
        assert_eq!(answer(&asked(&document), done.clone()), Ok(json!({})));
        document["description"] = json!("another");
        assert!(answer(&asked(&document), done).unwrap_err().contains("task.v1"));
    }
}

//! Items by the beginning of their ids. The gateway finds them; nothing is listed to the client.

use super::CliError;
use crate::api::prefix::{ItemPrefix, MAX_PREFIXES};
use crate::api::selections::{ResolveItems, ResolveQuery, Resolved};
use oap_client::OwnerClient;
use oap_identity::ItemId;
use std::collections::BTreeMap;

/// The whole id of an item that is there, or of an erased one where none is.
pub(super) async fn one(owner: &OwnerClient, id: &ItemPrefix) -> Result<ItemId, CliError> {
    let mut found = all(owner, std::slice::from_ref(id)).await?;
    found.pop().ok_or_else(|| nobody(&id.to_string(), false))
}

/// The whole ids of items, in the order given.
pub(super) async fn all(owner: &OwnerClient, ids: &[ItemPrefix]) -> Result<Vec<ItemId>, CliError> {
    among(owner, ids, false).await
}

/// The whole ids of items that were erased.
pub(super) async fn erased(owner: &OwnerClient, ids: &[ItemPrefix]) -> Result<Vec<ItemId>, CliError> {
    among(owner, ids, true).await
}

async fn among(owner: &OwnerClient, ids: &[ItemPrefix], erased: bool) -> Result<Vec<ItemId>, CliError> {
    // Of an erased one, a whole id too may be nobody's.
    let asked = |id: &&ItemPrefix| erased || id.whole().is_none();
    let cut: Vec<String> = ids.iter().filter(asked).map(ToString::to_string).collect();
    let mut found = BTreeMap::new();
    for some in cut.chunks(MAX_PREFIXES) {
        let query = ResolveQuery { ids: some.to_vec(), erased };
        for resolved in owner.send::<ResolveItems>((), &query).await?.resolved {
            found.insert(resolved.given.clone(), of(&resolved, erased)?);
        }
    }
    let whole = |id: &ItemPrefix| {
        let given = id.to_string();
        found.get(&given).copied().or_else(|| id.whole()).ok_or_else(|| nobody(&given, erased))
    };
    ids.iter().map(whole).collect()
}

fn nobody(given: &str, erased: bool) -> CliError {
    let whose = if erased { "no deleted item's" } else { "no item's" };
    CliError::Other(format!("{given}: {whose} id begins so"))
}

/// The one item that a beginning stands for.
fn of(resolved: &Resolved, erased: bool) -> Result<ItemId, CliError> {
    let given = &resolved.given;
    match resolved.found.as_slice() {
        [] => Err(nobody(given, erased)),
        [one] => Ok(*one),
        several => {
            let more = if resolved.more { "\n  and more" } else { "" };
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(CliError::Usage(format!(
                "{given}: several items' ids begin so:\n  {}{more}",
                several.join("\n  ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_meant_or_it_is_said_who_could_be() {
        let (one, other) = (ItemId::from_bytes([1; 16]), ItemId::from_bytes([2; 16]));
        let resolved = |found: &[ItemId]| {
            of(&Resolved { given: "mem_01HX".to_owned(), found: found.to_vec(), more: false }, false)
        };
        assert_eq!(resolved(&[one]).unwrap(), one);
        assert_eq!(resolved(&[]).unwrap_err().status(), 1);
        let several = resolved(&[one, other]).unwrap_err();
        assert_eq!(several.status(), 2);
        let told = several.to_string();
        assert!(told.contains(&one.to_string()) && told.contains(&other.to_string()));
    }
}

//! Items by the beginning of their ids. The gateway finds them; nothing is listed to the client.

use super::CliError;
use crate::client::owner::OwnerClient;
use crate::service::prefix::{ItemPrefix, MAX_PREFIXES};
use serde_json::{Value, json};

/// The whole id of an item that is there, or of an erased one where none is.
pub(super) async fn one(owner: &OwnerClient, id: &ItemPrefix) -> Result<String, CliError> {
    let mut found = all(owner, std::slice::from_ref(id)).await?;
    found.pop().ok_or_else(|| nobody(&id.to_string(), false))
}

/// The whole ids of items, in the order given.
pub(super) async fn all(owner: &OwnerClient, ids: &[ItemPrefix]) -> Result<Vec<String>, CliError> {
    among(owner, ids, false).await
}

/// The whole ids of items that were erased.
pub(super) async fn erased(owner: &OwnerClient, ids: &[ItemPrefix]) -> Result<Vec<String>, CliError> {
    among(owner, ids, true).await
}

async fn among(owner: &OwnerClient, ids: &[ItemPrefix], erased: bool) -> Result<Vec<String>, CliError> {
    let mut whole: Vec<String> = ids.iter().map(ToString::to_string).collect();
    // Of an erased one, a whole id too may be nobody's.
    let asked = |id: &&ItemPrefix| erased || id.whole().is_none();
    let cut: Vec<String> = ids.iter().filter(asked).map(ToString::to_string).collect();
    for some in cut.chunks(MAX_PREFIXES) {
        let body = json!({"ids": some, "erased": erased});
        let answer = owner.post("/oap/owner/items/resolve", &body).await?;
        for resolved in answer["resolved"].as_array().into_iter().flatten() {
            let found = of(resolved, erased)?;
            whole.iter_mut().filter(|id| **id == resolved["given"]).for_each(|id| id.clone_from(&found));
        }
    }
    Ok(whole)
}

fn nobody(given: &str, erased: bool) -> CliError {
    let whose = if erased { "no deleted item's" } else { "no item's" };
    CliError::Other(format!("{given}: {whose} id begins so"))
}

/// The one item that a beginning stands for.
fn of(resolved: &Value, erased: bool) -> Result<String, CliError> {
    let given = resolved["given"].as_str().unwrap_or_default();
    let found: Vec<&str> =
        resolved["found"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match found.as_slice() {
        [] => Err(nobody(given, erased)),
        [one] => Ok((*one).to_owned()),
        several => {
            let more = if resolved["more"] == true { "\n  and more" } else { "" };
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
        let resolved =
            |found: &[&str]| of(&json!({"given": "mem_01HX", "found": found, "more": false}), false);
        assert_eq!(resolved(&["mem_01HX1"]).unwrap(), "mem_01HX1");
        assert_eq!(resolved(&[]).unwrap_err().status(), 1);
        let several = resolved(&["mem_01HX1", "mem_01HX2"]).unwrap_err();
        assert_eq!(several.status(), 2);
        assert!(several.to_string().contains("mem_01HX1") && several.to_string().contains("mem_01HX2"));
    }
}

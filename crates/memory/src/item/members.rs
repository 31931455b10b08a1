//! How each member of an item is read.

use super::{
    Confidence, Expected, ItemError, MAX_DERIVED, MAX_EXTENSIONS, MAX_LABELS, MAX_SHORT, MAX_STRUCTURED,
    MAX_TTL_DAYS, NotShort, member,
};
use oap_identity::{Did, ItemId, Timestamp};
use serde_json::{Map, Value};

pub(super) fn object(members: &Map<String, Value>, name: &str) -> Result<Map<String, Value>, ItemError> {
    match members.get(name) {
        None => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(_) => member(name, Expected::Object),
    }
}

pub(super) fn read<T>(
    value: &Value,
    path: &str,
    reader: impl FnOnce(&Value) -> Result<T, Expected>,
) -> Result<T, ItemError> {
    reader(value).or_else(|expected| member(path, expected))
}

pub(super) fn optional<T>(
    members: &Map<String, Value>,
    name: &str,
    path: &str,
    reader: impl FnOnce(&Value) -> Result<T, Expected>,
) -> Result<Option<T>, ItemError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value, path, reader).map(Some),
    }
}

pub(super) fn text_of(max: usize) -> impl FnOnce(&Value) -> Result<String, Expected> {
    move |value| match value.as_str() {
        Some(text) if text.len() <= max => Ok(text.to_owned()),
        Some(_) => Err(Expected::Bytes(max)),
        None => Err(Expected::Text),
    }
}

pub(super) fn short(value: &Value) -> Result<String, Expected> {
    // What is no text is no short one.
    Ok(short_text(value.as_str().unwrap_or_default())?)
}

/// A label, subject or other short text: 1 to [`MAX_SHORT`] characters, none of them a control character.
///
/// # Errors
/// [`NotShort`].
pub fn short_text(text: &str) -> Result<String, NotShort> {
    if (1..=MAX_SHORT).contains(&text.chars().count()) && !text.contains(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(NotShort)
    }
}

pub(super) fn parsed<T: std::str::FromStr<Err: Into<Expected>>>(value: &Value) -> Result<T, Expected> {
    value.as_str().ok_or(Expected::Text)?.parse().map_err(T::Err::into)
}

pub(super) fn time(value: &Value) -> Result<Timestamp, Expected> {
    parsed(value)
}

pub(super) fn boolean(value: &Value) -> Result<bool, Expected> {
    value.as_bool().ok_or(Expected::Boolean)
}

pub(super) fn confidence(value: &Value) -> Result<Confidence, Expected> {
    Ok(value.as_f64().ok_or(Expected::Number)?.try_into()?)
}

pub(super) fn ttl_days(value: &Value) -> Result<u32, Expected> {
    match value.as_u64().and_then(|days| u32::try_from(days).ok()) {
        Some(days) if (1..=MAX_TTL_DAYS).contains(&days) => Ok(days),
        _ => Err(Expected::Days),
    }
}

/// Labels as a set: sorted, each once. Their order never says anything, also not about hidden ones.
pub(super) fn labels(value: &Value) -> Result<Vec<String>, Expected> {
    let array = value.as_array().ok_or(Expected::Texts)?;
    let mut labels = array.iter().map(short).collect::<Result<Vec<_>, _>>()?;
    labels.sort_unstable();
    labels.dedup();
    if labels.len() > MAX_LABELS { Err(Expected::Labels) } else { Ok(labels) }
}

pub(super) fn ids(value: &Value) -> Result<Vec<ItemId>, Expected> {
    let array = value.as_array().ok_or(Expected::ItemIds)?;
    let ids = array.iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
    if ids.len() > MAX_DERIVED { Err(Expected::Sources) } else { Ok(ids) }
}

pub(super) fn structured(value: &Value) -> Result<Map<String, Value>, Expected> {
    let Value::Object(map) = value else { return Err(Expected::Object) };
    let mut map = map.clone();
    count_participants(&mut map);
    fits(&map, MAX_STRUCTURED)?;
    claim_names(value)?;
    if map.get("entity_type").is_some_and(|t| t == "oap.entity.contact") {
        contact(&map)?;
    }
    Ok(map)
}

/// Writes down how many take part in a calendar event, where the event does not say: RFC 0007's table shows the
/// number at a level that shows none of the participants, and only what was committed to can be shown.
fn count_participants(event: &mut Map<String, Value>) {
    if event.get("entity_type") != Some(&Value::from("oap.entity.calendar_event")) {
        return;
    }
    let listed = ["participants", "participant_dids"].iter().filter_map(|name| event.get(*name)?.as_array());
    if let Some(count) = listed.map(Vec::len).max()
        && !event.contains_key("participants_count")
    {
        event.insert("participants_count".to_owned(), Value::from(count));
    }
}

/// The shape of `oap.entity.contact` (RFC 0005 section 3.4), as far as projection relies on it.
fn contact(map: &Map<String, Value>) -> Result<(), Expected> {
    if map.get("names").is_some_and(|names| !names.is_object()) {
        return Err(Expected::ContactNames);
    }
    for list in ["channels", "affiliations"] {
        let objects = |v: &Value| v.as_array().is_some_and(|a| a.iter().all(Value::is_object));
        if map.get(list).is_some_and(|v| !objects(v)) {
            return Err(Expected::ContactList(list));
        }
    }
    Ok(())
}

pub(super) fn extensions(value: &Value) -> Result<Map<String, Value>, Expected> {
    let Value::Object(map) = value else { return Err(Expected::Object) };
    fits(map, MAX_EXTENSIONS)?;
    let owned = |name: &String| name.parse::<Did>().is_ok() || (name.contains('.') && !name.contains(' '));
    if map.keys().any(|name| !owned(name)) {
        return Err(Expected::ExtensionName);
    }
    claim_names(value)?;
    Ok(map.clone())
}

/// Whether the JSON of an object has at most so many bytes.
fn fits(map: &Map<String, Value>, most: usize) -> Result<(), Expected> {
    let fits = serde_json::to_vec(map).is_ok_and(|json| json.len() <= most);
    if fits { Ok(()) } else { Err(Expected::Bytes(most)) }
}

/// An object whose members others define.
pub(super) fn open_object(map: &Map<String, Value>, path: &str, most: usize) -> Result<(), ItemError> {
    let names =
        || map.iter().try_for_each(|(name, value)| claim_name(name).and_then(|()| claim_names(value)));
    fits(map, most).and_then(|()| names()).or_else(|expected| member(path, expected))
}

/// No member may be named like the machinery of an SD-JWT (RFC 9901 section 4.1).
fn claim_names(value: &Value) -> Result<(), Expected> {
    match value {
        Value::Object(map) => {
            map.iter().try_for_each(|(name, value)| claim_name(name).and_then(|()| claim_names(value)))
        }
        Value::Array(values) => values.iter().try_for_each(claim_names),
        _ => Ok(()),
    }
}

fn claim_name(name: &str) -> Result<(), Expected> {
    match name {
        "_sd" | "..." | "_sd_alg" => Err(Expected::Reserved(name.to_owned())),
        _ => Ok(()),
    }
}

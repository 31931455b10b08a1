//! What is asked in the dialect: read strictly, each field within its bounds, before anything is done.

use super::members::{Members, VALUE, parts, unreadable};
use super::{EntryError, MAX_ENTRIES, Must, Opaque, Priority, Scope, Ttl, USUAL_ENTRIES, refused};
use crate::quarantine;
use oap_identity::Timestamp;
use oap_identity::json;
use oap_memory::item::{MAX_LABELS, Sensitivity, short_text};
use oap_memory::record::Tier;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The entries of a batch, each as it stands in the text.
///
/// # Errors
/// [`EntryError`].
pub fn entries_of(text: &[u8]) -> Result<Vec<New>, EntryError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Batch<'a> {
        #[serde(borrow)]
        entries: Vec<&'a RawValue>,
    }
    let Members(members) = serde_json::from_slice(text).map_err(|error| unreadable(&error))?;
    if members.len() != 1 || members.iter().any(|(name, _)| name != "entries") {
        return refused("entries", Must::Batch);
    }
    let Batch { entries } =
        serde_json::from_slice(text).map_err(|_| EntryError::Field("entries", Must::Batch))?;
    if !(1..=MAX_ENTRIES).contains(&entries.len()) {
        return refused("entries", Must::Batch);
    }
    let read = |(index, entry): (usize, &&RawValue)| {
        New::read(entry.get().as_bytes()).map_err(|error| error.within("entries", index))
    };
    let entries = entries.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut keys = BTreeSet::new();
    for (index, entry) in entries.iter().enumerate() {
        if !keys.insert((entry.tier == Tier::Semantic, &entry.namespace, &entry.key)) {
            return Err(EntryError::Field("key", Must::Twice).within("entries", index));
        }
    }
    Ok(entries)
}

/// An entry to write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct New {
    /// Whose it is, as the writer says.
    pub agent_id: Option<String>,
    pub namespace: String,
    pub key: String,
    pub value: Opaque,
    pub tier: Tier,
    /// What it is bound to, where that is said.
    pub scope: Option<Scope>,
    pub tags: Vec<String>,
    pub ttl: Option<(String, Ttl)>,
    pub expires_at: Option<Timestamp>,
    pub pinned: bool,
    pub priority: Priority,
    pub sensitivity: Option<Sensitivity>,
    /// Who brings it in, as the writer says.
    pub curated_by: Option<String>,
    /// Of an entry of a batch that is there: the version that it replaces.
    pub version: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    agent_id: Option<String>,
    namespace: Option<String>,
    key: Option<String>,
    memory_type: Option<Tier>,
    scope: Option<Scope>,
    tags: Option<Vec<String>>,
    ttl: Option<String>,
    expires_at: Option<String>,
    pinned: Option<bool>,
    priority: Option<Priority>,
    sensitivity: Option<Sensitivity>,
    curated_by: Option<String>,
    version: Option<u32>,
    // Read apart from the others; named here so that the list of members has it.
    #[serde(rename = "value")]
    _value: Option<IgnoredAny>,
    // The gateway makes these; a copy of an entry may have them.
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
    #[serde(rename = "created_at")]
    _created_at: Option<IgnoredAny>,
    #[serde(rename = "updated_at")]
    _updated_at: Option<IgnoredAny>,
    #[serde(rename = "created_by")]
    _created_by: Option<IgnoredAny>,
}

impl New {
    /// Reads an entry to write.
    ///
    /// # Errors
    /// [`EntryError`], naming the field.
    pub fn read(text: &[u8]) -> Result<Self, EntryError> {
        let (others, value) = parts(text)?;
        Self::of(others, value)
    }

    /// Reads an entry to write at a place that its address says; and whether its tier is said.
    ///
    /// # Errors
    /// As [`New::read`]; where namespace or key are said and are others.
    pub fn read_at(text: &[u8], namespace: &str, key: &str) -> Result<(Self, bool), EntryError> {
        let (mut others, value) = parts(text)?;
        for (field, place) in [("namespace", namespace), ("key", key)] {
            let said = others.insert(field.to_owned(), Value::String(place.to_owned()));
            if said.is_some_and(|said| said.as_str() != Some(place)) {
                return refused(field, Must::Address);
            }
        }
        let says_tier = others.get("memory_type").is_some_and(|tier| !tier.is_null());
        Ok((Self::of(others, value)?, says_tier))
    }

    fn of(others: Map<String, Value>, value: Option<Opaque>) -> Result<Self, EntryError> {
        let given: Given = json::from_value(Value::Object(others))?;
        let scope = given.scope;
        scope.iter().try_for_each(Scope::check)?;
        let new = Self {
            agent_id: given.agent_id,
            namespace: short("namespace", given.namespace)?,
            key: short("key", given.key)?,
            value: value.ok_or(EntryError::Field(VALUE, Must::Required))?,
            tier: given.memory_type.unwrap_or(Tier::Working),
            scope,
            tags: new_tags(given.tags.unwrap_or_default())?,
            ttl: ttl(given.ttl)?,
            expires_at: given.expires_at.map(|text| time("expires_at", &text)).transpose()?,
            pinned: given.pinned.unwrap_or(false),
            priority: given.priority.unwrap_or_default(),
            sensitivity: given.sensitivity,
            curated_by: given.curated_by,
            version: given.version,
        };
        let scope = new.scope.clone().unwrap_or_default();
        check_together(new.tier, new.sensitivity, new.ttl.as_ref().map(|(_, ttl)| *ttl), &scope)?;
        Ok(new)
    }
}

/// Checks what the fields of an entry must be together.
///
/// # Errors
/// [`EntryError::Field`].
pub fn check_together(
    tier: Tier,
    sensitivity: Option<Sensitivity>,
    ttl: Option<Ttl>,
    scope: &Scope,
) -> Result<(), EntryError> {
    if ttl == Some(Ttl::Task) && scope.task_id.is_none() {
        return refused("scope.task_id", Must::Task);
    }
    if tier == Tier::Semantic && sensitivity == Some(Sensitivity::Restricted) {
        return refused("sensitivity", Must::Shared);
    }
    Ok(())
}

/// What to change of an entry. What is absent stays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Change {
    pub value: Option<Opaque>,
    /// What it is bound to from now on. A batch alone says it.
    pub scope: Option<Scope>,
    pub tags: Option<Vec<String>>,
    /// `Some(None)` is no life of its own.
    pub ttl: Option<Option<(String, Ttl)>>,
    /// `Some(None)` is no end.
    pub expires_at: Option<Option<Timestamp>>,
    pub pinned: Option<bool>,
    pub priority: Option<Priority>,
    pub sensitivity: Option<Sensitivity>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    // Read apart from the others.
    #[serde(rename = "value")]
    _value: Option<IgnoredAny>,
    tags: Option<Vec<String>>,
    ttl: Option<String>,
    expires_at: Option<String>,
    pinned: Option<bool>,
    priority: Option<Priority>,
    sensitivity: Option<Sensitivity>,
}

impl Change {
    /// Reads a change.
    ///
    /// # Errors
    /// [`EntryError`], naming the field.
    pub fn read(text: &[u8]) -> Result<Self, EntryError> {
        let (others, value) = parts(text)?;
        let names = |name: &str| others.contains_key(name);
        let (has_ttl, has_end) = (names("ttl"), names("expires_at"));
        let given: Changed = json::from_value(Value::Object(others))?;
        let end = given.expires_at.map(|text| time("expires_at", &text)).transpose()?;
        let ttl = ttl(given.ttl)?;
        Ok(Self {
            value,
            scope: None,
            tags: given.tags.map(new_tags).transpose()?,
            ttl: has_ttl.then_some(ttl),
            expires_at: has_end.then_some(end),
            pinned: given.pinned,
            priority: given.priority,
            sensitivity: given.sensitivity,
        })
    }

    /// What replaces an entry that is there.
    #[must_use]
    pub fn of(new: New) -> Self {
        Self {
            value: Some(new.value),
            scope: new.scope,
            tags: Some(new.tags),
            ttl: Some(new.ttl),
            expires_at: Some(new.expires_at),
            pinned: Some(new.pinned),
            priority: Some(new.priority),
            sensitivity: new.sensitivity,
        }
    }
}

/// Which entries, as far as an entry says it (RFC-0015 4.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Match {
    pub agent_id: Option<String>,
    pub namespace: Option<String>,
    /// Whether a namespace that ends with `*` is one, and no prefix.
    pub is_whole: bool,
    pub key: Option<String>,
    pub tier: Option<Tier>,
    /// All of these.
    pub tags: Vec<String>,
    /// One of these, if there are any.
    pub tags_any: Vec<String>,
    pub scope: Scope,
    pub pinned: Option<bool>,
    pub updated_after: Option<Timestamp>,
    pub updated_before: Option<Timestamp>,
}

impl Match {
    /// Whether a namespace is asked for: by its name, or by a prefix that ends with `*`.
    #[must_use]
    pub fn admits_namespace(&self, namespace: &str) -> bool {
        match self.namespace.as_deref() {
            None => true,
            Some(wanted) => match wanted.strip_suffix('*').filter(|_| !self.is_whole) {
                Some(prefix) => namespace.starts_with(prefix),
                None => namespace == wanted,
            },
        }
    }

    /// Whether labels are asked for.
    #[must_use]
    pub fn admits_labels(&self, labels: &[String]) -> bool {
        self.tags.iter().all(|tag| labels.contains(tag))
            && (self.tags_any.is_empty() || self.tags_any.iter().any(|tag| labels.contains(tag)))
    }

    /// Whether the entry that is asked for must be opened to know.
    #[must_use]
    pub fn looks_inside(&self) -> bool {
        self.scope != Scope::default() || self.pinned.is_some()
    }
}

/// Which entries, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Filter {
    pub of: Match,
    pub limit: usize,
    pub offset: usize,
    /// Whether either was asked for.
    pub is_page: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    agent_id: Option<String>,
    namespace: Option<String>,
    key: Option<String>,
    memory_type: Option<Tier>,
    tags: Option<String>,
    tags_any: Option<String>,
    #[serde(rename = "scope.task_id")]
    task_id: Option<String>,
    #[serde(rename = "scope.intent_id")]
    intent_id: Option<String>,
    pinned: Option<String>,
    updated_after: Option<String>,
    updated_before: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
}

impl Filter {
    /// Reads the parameters of an address.
    ///
    /// # Errors
    /// [`EntryError`], naming the parameter.
    pub fn read(parameters: Vec<(String, String)>) -> Result<Self, EntryError> {
        let given: Parameters = json::from_parameters(parameters)?;
        let scope = Scope { task_id: given.task_id, intent_id: given.intent_id };
        scope.check()?;
        let limit = given.limit.unwrap_or(USUAL_ENTRIES);
        if !(1..=MAX_ENTRIES).contains(&limit) {
            return refused("limit", Must::Number);
        }
        let list = |field, text: Option<String>| {
            let text = text.unwrap_or_default();
            tags(field, text.split(',').filter(|tag| !tag.is_empty()).map(str::to_owned).collect())
        };
        let of = Match {
            agent_id: given.agent_id,
            namespace: given.namespace,
            is_whole: false,
            key: given.key,
            tier: given.memory_type,
            tags: list("tags", given.tags)?,
            tags_any: list("tags_any", given.tags_any)?,
            scope,
            pinned: match given.pinned.as_deref() {
                None => None,
                Some("true") => Some(true),
                Some("false") => Some(false),
                Some(_) => return refused("pinned", Must::Boolean),
            },
            updated_after: given.updated_after.map(|text| time("updated_after", &text)).transpose()?,
            updated_before: given.updated_before.map(|text| time("updated_before", &text)).transpose()?,
        };
        let is_page = given.limit.is_some() || given.offset.is_some();
        Ok(Self { of, limit, offset: given.offset.unwrap_or(0), is_page })
    }

    /// That it is said whose entries are meant (RFC-0015 4.1).
    ///
    /// # Errors
    /// [`EntryError::Field`].
    pub fn says_whose(self) -> Result<Self, EntryError> {
        let Match { agent_id, tier, scope, .. } = &self.of;
        if agent_id.is_some() || scope.task_id.is_some() || *tier == Some(Tier::Semantic) {
            Ok(self)
        } else {
            refused("agent_id", Must::Whose)
        }
    }

    /// That something selects, and no page of it is asked for.
    ///
    /// # Errors
    /// [`EntryError::Field`].
    pub fn selects(self) -> Result<Self, EntryError> {
        if self.is_page {
            return refused("limit", Must::All);
        }
        if self.of == Match::default() { refused("parameters", Must::Selector) } else { Ok(self) }
    }
}

fn short(field: &'static str, text: Option<String>) -> Result<String, EntryError> {
    let text = text.ok_or(EntryError::Field(field, Must::Required))?;
    short_text(&text).or_else(|error| refused(field, error))
}

fn tags(field: &'static str, given: Vec<String>) -> Result<Vec<String>, EntryError> {
    if given.len() > MAX_LABELS {
        return refused(field, Must::Tags);
    }
    given.iter().map(|tag| short_text(tag).or_else(|error| refused(field, error))).collect()
}

/// The tags that an entry is to have: none of those that the gateway gives.
fn new_tags(given: Vec<String>) -> Result<Vec<String>, EntryError> {
    let tags = tags("tags", given)?;
    if tags.iter().any(|tag| tag == quarantine::LABEL) { refused("tags", Must::Reserved) } else { Ok(tags) }
}

fn ttl(text: Option<String>) -> Result<Option<(String, Ttl)>, EntryError> {
    let Some(text) = text else { return Ok(None) };
    let ttl = Ttl::read(&text)?;
    Ok(Some((text, ttl)))
}

fn time(field: &'static str, text: &str) -> Result<Timestamp, EntryError> {
    Timestamp::with_offset(text).map_or_else(|| refused(field, Must::Time), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(text: &str) -> Result<New, EntryError> {
        New::read(text.as_bytes())
    }

    #[test]
    fn an_entry_is_read_with_its_value_untouched() {
        let read =
            new(r#"{"namespace":"n","key":"k","value":{"z":1,"a":9007199254740993},"tags":["b","a"]}"#);
        let read = read.unwrap();
        assert_eq!(read.value.as_str(), r#"{"z":1,"a":9007199254740993}"#);
        assert_eq!((read.tier, read.priority, read.pinned), (Tier::Working, Priority::Normal, false));
        assert_eq!(read.tags, ["b", "a"]);
        // What the gateway makes is no mistake in a copy of an entry.
        assert!(
            new(r#"{"id":"x","created_at":1,"updated_at":null,"namespace":"n","key":"k","value":{}}"#)
                .is_ok()
        );
    }

    #[test]
    fn a_refusal_names_the_field() {
        for (text, field) in [
            (r#"{"key":"k","value":{}}"#, "namespace"),
            (r#"{"namespace":"n","value":{}}"#, "key"),
            (r#"{"namespace":"n","key":"","value":{}}"#, "key"),
            (r#"{"namespace":"n","key":"k"}"#, "value"),
            (r#"{"namespace":"n","key":"k","value":[]}"#, "value"),
            (r#"{"namespace":"n","key":"k","value":{},"memory_type":"magic"}"#, "memory_type"),
            (r#"{"namespace":"n","key":"k","value":{},"priority":"urgent"}"#, "priority"),
            (r#"{"namespace":"n","key":"k","value":{},"tag":[]}"#, "tag"),
            (r#"{"namespace":"n","key":"k","foo":{}}"#, "value,"),
            (r#"{"namespace":"n","key":"k","value":{},"tags":["a","oap:quarantined"]}"#, "tags"),
            (r#"{"namespace":"n","key":"k","value":{},"ttl":"P1D"}"#, "ttl"),
            (r#"{"namespace":"n","key":"k","value":{},"ttl":"task_lifetime"}"#, "scope.task_id"),
            (r#"{"namespace":"n","key":"k","value":{},"expires_at":"tomorrow"}"#, "expires_at"),
            (r#"{"namespace":"n","key":"k","value":{},"scope":{"task":"t"}}"#, "task"),
            (
                r#"{"namespace":"n","key":"k","value":{},"memory_type":"semantic","sensitivity":"restricted"}"#,
                "sensitivity",
            ),
        ] {
            let error = new(text).unwrap_err().to_string();
            assert!(error.contains(field), "{text}: {error}");
        }
        for text in ["", "[]", "1", "{", "{\"value\":{}}x", "{\"key\":1,\"key\":2}"] {
            assert!(matches!(new(text), Err(EntryError::NotJson(_))), "{text}");
        }
    }

    #[test]
    fn a_refusal_of_a_batch_names_the_entry() {
        let batch = |second: &str| {
            let text = format!(r#"{{"entries":[{{"namespace":"n","key":"k","value":{{}}}},{second}]}}"#);
            entries_of(text.as_bytes()).unwrap_err().to_string()
        };
        for (second, begins) in [
            (r#"{"namespace":"n","key":"l"}"#, "entries[1].value: is required"),
            (r#"{"namespace":"n","key":"l","value":{},"ttl":"P1D"}"#, "entries[1].ttl: must be"),
            (
                r#"{"namespace":"n","key":"l","value":{},"memory_type":"x"}"#,
                "entries[1]: memory_type: must be",
            ),
            (r#"{"namespace":"n","key":"k","value":{}}"#, "entries[1].key: an entry before it"),
        ] {
            let told = batch(second);
            assert!(told.starts_with(begins), "{second}: {told}");
        }
        let change = Change::read(br#"{"vaule":{}}"#).unwrap_err().to_string();
        assert!(change.contains("the members are value, tags"), "{change}");
        assert!(Change::read(br#"{"tags":["oap:quarantined"]}"#).is_err());
        // What is asked for may have it.
        assert!(Filter::read(vec![("tags".to_owned(), "oap:quarantined".to_owned())]).is_ok());
    }

    #[test]
    fn a_change_tells_null_from_absent() {
        let read = Change::read(br#"{"ttl":null,"pinned":true}"#).unwrap();
        assert_eq!((read.ttl, read.expires_at, read.pinned), (Some(None), None, Some(true)));
        for text in [&br#"{"namespace":"n"}"#[..], br#"{"memory_type":"working"}"#] {
            assert!(matches!(Change::read(text), Err(EntryError::Shape(_))));
        }
    }

    #[test]
    fn parameters() {
        let read = |pairs: &[(&str, &str)]| {
            Filter::read(
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            )
        };
        let plain = read(&[]).unwrap();
        assert_eq!((plain.limit, plain.offset), (USUAL_ENTRIES, 0));
        assert!(plain.clone().selects().is_err() && plain.says_whose().is_err());
        let all = read(&[
            ("tags", "a,,b"),
            ("scope.task_id", "t"),
            ("pinned", "true"),
            ("limit", "1000"),
            ("offset", "7"),
        ]);
        let all = all.unwrap();
        assert_eq!((all.of.tags.len(), all.of.pinned, all.limit, all.offset), (2, Some(true), 1000, 7));
        assert!(all.clone().says_whose().is_ok());
        // What is erased has no pages.
        assert!(matches!(all.selects(), Err(EntryError::Field("limit", Must::All))));
        assert!(read(&[("tags", "a")]).unwrap().selects().is_ok());
        assert!(read(&[("memory_type", "semantic")]).and_then(Filter::says_whose).is_ok());
        for wrong in [
            ("limit", "0"),
            ("limit", "1001"),
            ("limit", "x"),
            ("pinned", "1"),
            ("tag", "a"),
            ("updated_after", "x"),
        ] {
            let error = read(&[wrong]).unwrap_err().to_string();
            assert!(error.contains(wrong.0), "{wrong:?}: {error}");
        }
        let wanted = |text: &str| Match { namespace: Some(text.to_owned()), ..Match::default() };
        assert!(wanted("a.*").admits_namespace("a.b") && !wanted("a.*").admits_namespace("a"));
        assert!(wanted("a").admits_namespace("a") && !wanted("a").admits_namespace("a.b"));
    }
}

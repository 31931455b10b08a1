//! Field paths: which places of an item a level shows, and under which conditions.

use super::entities::has_member;
use crate::form::CONCEALED;
use crate::tree::{Path, Step};
use serde_json::Value;

/// A place, or several, in an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath {
    text: String,
    steps: Vec<FieldStep>,
    when: Vec<Condition>,
    unless: Vec<Condition>,
}

/// `<path>=<value>`: whether a member has that value, as JSON writes it, strings without quotes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Condition {
    path: Vec<String>,
    value: String,
}

impl Condition {
    fn parse(text: &str) -> Result<Self, FieldPathError> {
        let (path, value) = text.split_once('=').ok_or(FieldPathError::ConditionForm)?;
        let path = path.trim();
        FieldPath::parse(path)?;
        if path.contains('[') {
            return Err(FieldPathError::ConditionMember);
        }
        Ok(Self { path: path.split('.').map(str::to_owned).collect(), value: value.trim().to_owned() })
    }

    fn holds(&self, item: &Value) -> bool {
        let member = self.path.iter().try_fold(item, |value, name| value.get(name));
        member.is_some_and(|member| is_value(member, &self.value))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum FieldStep {
    Member(String),
    Elements(Vec<(String, String)>),
}

impl FieldPath {
    fn parse(text: &str) -> Result<Self, FieldPathError> {
        let mut steps = Vec::new();
        if text != "*" {
            for step in text.split('.') {
                let (name, selector) = match step.split_once('[') {
                    Some((name, rest)) => {
                        (name, Some(rest.strip_suffix(']').ok_or(FieldPathError::OpenSelector)?))
                    }
                    None => (step, None),
                };
                if name.is_empty() {
                    return Err(FieldPathError::EmptyStep);
                }
                steps.push(FieldStep::Member(name.to_owned()));
                if let Some(selector) = selector {
                    steps.push(FieldStep::Elements(conditions(selector)?));
                }
            }
            match &steps[0] {
                // A path begins with a member that an item can have at its root.
                FieldStep::Member(root) if CONCEALED.contains(&root.as_str()) => {}
                _ => return Err(FieldPathError::ItemMember),
            }
            if text == "content" || text.starts_with("content.text") {
                return Err(FieldPathError::Text);
            }
        }
        Ok(Self { text: text.to_owned(), steps, when: Vec::new(), unless: Vec::new() })
    }

    pub(super) fn read(value: &toml::Value) -> Result<Self, (String, FieldPathError)> {
        if let toml::Value::String(path) = value {
            return Self::parse(path).map_err(|why| (path.clone(), why));
        }
        let shape = |why| (value.to_string(), why);
        let table = value.as_table().ok_or_else(|| shape(FieldPathError::Form))?;
        if table.keys().any(|key| !["path", "when", "unless"].contains(&key.as_str())) {
            return Err(shape(FieldPathError::Member));
        }
        let path =
            table.get("path").and_then(toml::Value::as_str).ok_or_else(|| shape(FieldPathError::NoPath))?;
        let mut field = Self::parse(path).map_err(shape)?;
        let conditions = |name: &str| {
            let list = match table.get(name) {
                None => return Ok(Vec::new()),
                Some(list) => list.as_array().ok_or_else(|| shape(FieldPathError::ConditionList))?,
            };
            let read = |c: &toml::Value| Condition::parse(c.as_str().unwrap_or_default()).map_err(shape);
            list.iter().map(read).collect::<Result<Vec<_>, _>>()
        };
        field.when = conditions("when")?;
        field.unless = conditions("unless")?;
        Ok(field)
    }

    /// The conditions of the field, as people read them; empty if there are none.
    #[must_use]
    pub fn conditions(&self) -> String {
        let list = |word: &str, conditions: &[Condition]| {
            let all = conditions.iter().map(|c| format!("{}={}", c.path.join("."), c.value));
            let all: Vec<String> = all.collect();
            if all.is_empty() { String::new() } else { format!(" {word} {}", all.join(", ")) }
        };
        format!("{}{}", list("when", &self.when), list("unless", &self.unless))
    }

    /// Whether the field can be in an entity of that type: `false` for a member that the type does not have.
    pub(super) fn is_known(&self, entity: &str) -> bool {
        match self.steps.as_slice() {
            [FieldStep::Member(a), FieldStep::Member(b), FieldStep::Member(member), ..]
                if a == "content" && b == "structured" =>
            {
                has_member(entity, member)
            }
            _ => true,
        }
    }

    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the field's conditions hold for this item.
    pub(crate) fn is_met(&self, item: &Value) -> bool {
        self.when.iter().all(|c| c.holds(item)) && !self.unless.iter().any(|c| c.holds(item))
    }

    /// The places in this item that the path names.
    pub(crate) fn places(&self, item: &Value) -> Vec<Path> {
        if !self.is_met(item) {
            return Vec::new();
        }
        let mut places = vec![(Path::default(), item)];
        for step in &self.steps {
            places = places
                .into_iter()
                .flat_map(|(path, value)| match step {
                    FieldStep::Member(name) => {
                        value.get(name).map(|v| (path.member(name), v)).into_iter().collect::<Vec<_>>()
                    }
                    FieldStep::Elements(conditions) => {
                        let elements = value.as_array().map(Vec::as_slice).unwrap_or_default();
                        let chosen = elements.iter().enumerate().filter(|(_, e)| fits(e, conditions));
                        chosen.map(|(i, e)| (path.element(i), e)).collect()
                    }
                })
                .collect();
        }
        places.into_iter().map(|(path, _)| path).collect()
    }
}

fn conditions(selector: &str) -> Result<Vec<(String, String)>, FieldPathError> {
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    selector
        .split(',')
        .map(|condition| match condition.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(FieldPathError::Selector),
        })
        .collect()
}

fn fits(element: &Value, conditions: &[(String, String)]) -> bool {
    conditions.iter().all(|(name, wanted)| element.get(name).is_some_and(|value| is_value(value, wanted)))
}

fn is_value(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Bool(flag) => wanted == if *flag { "true" } else { "false" },
        Value::Number(number) => number.as_str() == wanted,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether a place is shown, when `shown` places are: it is one of them, below one, or on the way to one.
#[must_use]
pub fn is_shown(place: &[Step], shown: &[Path]) -> bool {
    shown.iter().any(|path| {
        let (a, b) = (path.steps(), place);
        let common = a.len().min(b.len());
        a[..common] == b[..common]
    })
}

/// Why a text is not a field path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FieldPathError {
    /// Neither a path nor a table.
    #[error("a field is a path, or {{ path, when, unless }}")]
    Form,
    /// A table with another member.
    #[error("a field has path, when and unless")]
    Member,
    /// A table without a path.
    #[error("a field needs a path")]
    NoPath,
    /// A step without a name.
    #[error("an empty step")]
    EmptyStep,
    /// A selector that does not end.
    #[error("a [ without its ]")]
    OpenSelector,
    /// A selector of another form.
    #[error("a selector is [] or [name=value,…]")]
    Selector,
    /// A member that no item has.
    #[error("items have no such member")]
    ItemMember,
    /// A member that the entity does not have.
    #[error("the entity has no such member")]
    EntityMember,
    /// The text, or what holds it.
    #[error("text is shown by the text rule")]
    Text,
    /// Conditions that are no list.
    #[error("conditions are a list")]
    ConditionList,
    /// A condition of another form.
    #[error("a condition is path=value")]
    ConditionForm,
    /// A condition on elements.
    #[error("a condition names one member")]
    ConditionMember,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_choose_elements() {
        let item = json!({"content": {"structured": {"channels": [
            {"type": "email", "primary": true}, {"type": "email", "primary": false}, {"type": "phone", "primary": true},
        ]}}});
        let places = |text: &str| {
            let places = FieldPath::parse(text).unwrap().places(&item);
            places.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            places("content.structured.channels[type=email,primary=true]"),
            ["content.structured.channels[0]"]
        );
        assert_eq!(places("content.structured.channels[type=email].primary").len(), 2);
        assert_eq!(places("content.structured.channels[].type").len(), 3);
        assert_eq!(places("content.structured.channels"), ["content.structured.channels"]);
        assert_eq!(places("content.structured.nothing"), [""; 0]);
        assert_eq!(places("*"), [""]);
    }

    #[test]
    fn what_is_no_path_says_why() {
        use FieldPathError::*;
        for (text, why) in [
            ("", EmptyStep),
            ("provenance.", EmptyStep),
            ("provenance..source", EmptyStep),
            ("labels.[]", EmptyStep),
            ("labels[", OpenSelector),
            ("labels[]x", OpenSelector),
            ("content.structured.channels[type]", Selector),
            ("content.structured.channels[=email]", Selector),
            ("content.structured.channels[ =email]", Selector),
            ("content.structured.channels[type=email,]", Selector),
            ("colour", ItemMember),
            ("content", Text),
            ("content.text", Text),
            ("content.text.segments", Text),
        ] {
            assert_eq!(FieldPath::parse(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn only_members_of_the_entity_itself_are_looked_up() {
        for (path, known) in [
            ("content.structured.title", true),
            ("content.structured.begin", false),
            ("content.structured.begin.hour", false),
            ("content.structured", true),
            ("provenance.conversation.begin", true),
        ] {
            assert_eq!(
                FieldPath::parse(path).unwrap().is_known("oap.entity.calendar_event"),
                known,
                "{path}"
            );
        }
    }

    #[test]
    fn a_condition_is_about_one_member() {
        for (text, why) in [
            ("content.structured.visibility", FieldPathError::ConditionForm),
            ("content.structured.attendees[]=x", FieldPathError::ConditionMember),
            ("content..visibility=x", FieldPathError::EmptyStep),
            ("content.text=x", FieldPathError::Text),
        ] {
            assert_eq!(Condition::parse(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn a_condition_compares_texts_flags_and_numbers() {
        for (value, wanted, is) in [
            (json!("busy"), "busy", true),
            (json!("busy"), "free", false),
            (json!(true), "true", true),
            (json!(false), "true", false),
            (json!(5), "5", true),
            (json!(5), "6", false),
            (json!(null), "null", false),
        ] {
            assert_eq!(is_value(&value, wanted), is, "{value} {wanted}");
        }
    }
}

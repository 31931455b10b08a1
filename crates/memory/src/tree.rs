//! Where in a document something is, and documents put together from their leaves.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Step {
    /// Into the member of that name.
    Member(String),
    /// Into the element of that number.
    Element(u32),
}

/// A place in a document: the steps from its root.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Path(Vec<Step>);

impl Path {
    /// The place of a member below this one.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        self.with(Step::Member(name.to_owned()))
    }

    /// The place of an element below this one.
    #[must_use]
    pub fn element(&self, index: usize) -> Self {
        self.with(Step::Element(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The steps from the root.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// A path of members, such as `["content", "text"]`.
    #[must_use]
    pub fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|n| Step::Member((*n).to_owned())).collect())
    }
}

impl std::fmt::Display for Path {
    /// As people write it: `content.structured.channels[0].value`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Member(name) if i == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Element(n) => write!(f, "[{n}]")?,
            }
        }
        Ok(())
    }
}

/// The value at a place.
#[must_use]
pub fn at<'a>(root: &'a Value, path: &Path) -> Option<&'a Value> {
    path.steps().iter().try_fold(root, |value, step| match step {
        Step::Member(name) => value.get(name),
        Step::Element(index) => value.get(*index as usize),
    })
}

/// Puts a value at a place whose parents are already there. Elements come in ascending order and close up over
/// those that are missing, as an SD-JWT verifier shows an array with hidden elements.
///
/// `places` tracks where each element of the original array ended up.
#[derive(Debug, Default)]
pub struct Assembly {
    root: Map<String, Value>,
    places: std::collections::BTreeMap<Path, u32>,
}

impl Assembly {
    /// An assembly that starts with these members.
    #[must_use]
    pub fn new(root: Map<String, Value>) -> Self {
        Self { root, places: std::collections::BTreeMap::new() }
    }

    /// Puts a value at a place. A place whose parent is not there is left out.
    pub fn put(&mut self, path: &Path, value: Value) {
        let Some((last, parents)) = path.steps().split_last() else { return };
        if let (Step::Member(name), []) = (last, parents) {
            self.root.insert(name.clone(), value);
            return;
        }
        let Some(parent) = self.parent(parents) else { return };
        match (last, parent) {
            (Step::Member(name), Value::Object(map)) => {
                map.insert(name.clone(), value);
            }
            (Step::Element(_), Value::Array(array)) => {
                array.push(value);
                let place = u32::try_from(array.len() - 1).unwrap_or(u32::MAX);
                self.places.insert(path.clone(), place);
            }
            _ => {}
        }
    }

    fn parent(&mut self, steps: &[Step]) -> Option<&mut Value> {
        let mut walked = Path::default();
        let mut steps = steps.iter();
        let Step::Member(first) = steps.next()? else { return None };
        walked = walked.member(first);
        let mut value = self.root.get_mut(first)?;
        for step in steps {
            walked = walked.with(step.clone());
            value = match step {
                Step::Member(name) => value.get_mut(name)?,
                Step::Element(_) => value.get_mut(*self.places.get(&walked)? as usize)?,
            };
        }
        Some(value)
    }

    /// The document with what was put in.
    #[must_use]
    pub fn finish(self) -> Map<String, Value> {
        self.root
    }
}
